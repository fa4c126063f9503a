/*
 * What main does about its process: descriptors, daemon, pidfile, signals.
 */
#ifndef VELLUM_PROCESS_H
#define VELLUM_PROCESS_H

#include <stdbool.h>

#include "server/core/server.h"

/* Makes room for maxclients and what the server opens itself; lowers maxclients where the system
 * does not grant that. False: not even one client would fit; it is logged. */
bool process_raise_descriptors(struct server *server);

/* Descriptors that the server needs besides those of clients. */
uint64_t process_own_descriptors(const struct config *config);

/* Goes on as a child of its own session, without terminal. Before any thread is started. */
bool process_daemonize(void);

/* Written if a pidfile is configured, or the process is a daemon. */
void process_write_pidfile(struct server *server);
void process_remove_pidfile(struct server *server);

/* oom-score-adj and oom-score-adj-values: the score becomes the first value, or is what it was.
 * False: the system refuses, which is logged. */
bool process_adjust_oom_score(struct server *server, int64_t mode, const char *values);

/* A thread that waits for SIGTERM and SIGINT: the first of them stops the server in order; a SIGINT
 * after it ends the process at once, a SIGTERM changes nothing. Blocks them for all threads started
 * later. */
bool process_catch_signals(struct server *server, pthread_t *thread);
void process_release_signals(pthread_t thread);

/* The memory this process has now, all counted; 0: not known, or not to be judged by (sanitizers
 * take memory of their own). */
uint64_t process_resident(void);

/* The memory this process may use at most: the machine's, or its control group's. */
uint64_t process_memory(void);

#endif
