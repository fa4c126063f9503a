/*
 * What main does for its process: file descriptors, daemon mode, pidfile, service managers,
 * signals.
 */
#ifndef VELLUM_PROCESS_H
#define VELLUM_PROCESS_H

#include <stdbool.h>

#include "server/core/server.h"

/* Raises the descriptor limit for maxclients and the server's own files; lowers maxclients if the
 * system does not grant that. False: not even one client would fit; logged. */
bool process_raise_descriptors(struct server *server);

/* Descriptors that the server needs besides its clients'. */
uint64_t process_own_descriptors(const struct config *config);

/* Whether `daemonize` counts: as in Redis, not under a service manager. */
bool process_is_daemon(const struct config *config);

/* Continues as a child with its own session, without terminal. Call before starting threads. */
bool process_daemonize(void);

/* Writes the pidfile if one is configured, or the process is a daemon. Call with the store open:
 * then no server that runs on this directory has written it. Removed is it only if it is still
 * ours. */
void process_write_pidfile(struct server *server);
void process_remove_pidfile(struct server *server);

/* The service manager that `supervised` names, if the environment shows that it is there:
 * "systemd", "upstart" or "no". */
const char *process_supervised(const struct config *config);

/* Tell the service manager, if there is one, that clients may connect, and that the server stops.
 */
void process_tell_ready(struct server *server);
void process_tell_stopping(struct server *server);

/* oom-score-adj and oom-score-adj-values: sets the score to the first value, or restores the old
 * one. False: the system refuses; logged. */
bool process_adjust_oom_score(struct server *server, int64_t mode, const char *values);

/* Starts a thread that waits for SIGTERM and SIGINT. The first of them stops the server in order,
 * or ends the process at once while server->is_opening: nothing has been acknowledged by then; a
 * SIGINT after it ends the process at once, a SIGTERM then changes nothing. Blocks both for all
 * threads started later. */
bool process_catch_signals(struct server *server, pthread_t *thread);
void process_release_signals(pthread_t thread);

/* The process's resident memory, and the part of it that is mapped from files; 0: unknown, or not
 * meaningful (sanitizers use memory of their own). */
uint64_t process_resident(uint64_t *shared);

/* The memory that the process may use at most: the machine's, or its control group's limit. */
uint64_t process_memory(void);

#endif
