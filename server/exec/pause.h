/*
 * CLIENT PAUSE: until a time, or until CLIENT UNPAUSE, no command begins, or none that may change
 * data or send messages. Those that have begun go on.
 *
 * The first command that must not begin stays parked, and its connection takes no others: its input
 * is not read, so it costs no time and no more memory. A command with an error is answered at once.
 * Meanwhile the store deletes no expired keys, and evicts none to gain memory.
 *
 * Threads: the state belongs to the server, a paused connection to its worker.
 */
#ifndef VELLUM_PAUSE_H
#define VELLUM_PAUSE_H

#include "server/exec/request.h"

struct conn;

enum pause_mode { PAUSE_NOTHING, PAUSE_WRITES, PAUSE_ALL };

STORE_MUST_CHECK bool pause_open(struct worker *worker); /* false: out of memory */
void pause_close(struct worker *worker);                 /* its base is still open */

/* From now to `end_ms`, of the store's clock. If a pause is in progress, the later end and the
 * stricter mode apply. */
void pause_begin(struct server *server, enum pause_mode mode, int64_t end_ms);
void pause_end(struct server *server);
/* After pause_end, on each worker: its connections go on. */
void pause_resume(struct worker *worker);

/* What is paused now, and for how much longer. */
enum pause_mode pause_now(struct server *server, int64_t *left_ms);

/* The request is the first of its connection that has not begun. True: it must not begin now, and
 * its connection is paused. */
bool pause_look(struct request *request);
static inline bool pause_takes(struct request *request)
{
    const struct server *server = request->call.server;
    return atomic_load_explicit(&server->pause, memory_order_relaxed) != 0 && pause_look(request);
}

/* The connection is closed. */
void pause_leave(struct conn *conn);

#endif
