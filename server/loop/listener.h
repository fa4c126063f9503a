/*
 * The server's listening sockets: TCP on every address of `bind`, and a Unix socket. An accepted
 * connection goes to the worker with the fewest connections.
 *
 * Threads: all calls from the main thread, except for listener_move and listener_remove_name.
 */
#ifndef VELLUM_LISTENER_H
#define VELLUM_LISTENER_H

#include <stdbool.h>

#include "server/core/server.h"

struct listener;

/* Opens the sockets; clients that connect wait. NULL: failed, logged. */
struct listener *listener_open(struct server *server);

/* Lets the clients in. False: failed. */
bool listener_admit(struct listener *listener);

/* Called by a worker: moves TCP to other addresses or another port (0: none). Waits until clients
 * can connect there and no longer to the old ones. False: failed, logged, nothing has changed. */
bool listener_move(struct listener *listener, int port, const char *addresses);

/* Accepts until the server stops. */
void listener_run(struct listener *listener);

/* For a process that ends at once, from any thread, after listener_open: removes the Unix socket's
 * name, unless that is another server's by now. */
void listener_remove_name(const struct listener *listener);

/* Closes the sockets and removes the Unix socket's name likewise. */
void listener_free(struct listener *listener);

#endif
