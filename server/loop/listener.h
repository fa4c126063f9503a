/*
 * The server's listening sockets: TCP on every address of `bind`, and a Unix socket. Accepted
 * connections go to the worker that has the fewest.
 *
 * Threads: all calls from the main thread, but for listener_move.
 */
#ifndef VELLUM_LISTENER_H
#define VELLUM_LISTENER_H

#include <stdbool.h>

#include "server/core/server.h"

struct listener;

/* Takes the addresses, without letting anybody connect yet. NULL: logged what is wrong. */
struct listener *listener_bind(struct server *server);

/* Lets clients connect. False: logged what is wrong. */
bool listener_listen(struct listener *listener);

/* From a worker: other addresses or another port (0: none) for TCP. Waits until clients can connect
 * there, and no more to the old ones. False: logged why, and they are what they were. */
bool listener_move(struct listener *listener, int port, const char *addresses);

/* Accepts until the server stops. */
void listener_run(struct listener *listener);

/* Closes the sockets; the Unix socket's name goes away. */
void listener_free(struct listener *listener);

#endif
