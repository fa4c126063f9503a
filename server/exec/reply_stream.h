/*
 * Streamed replies: the reply of a read over a whole collection is sent to the client part by part
 * while the command runs, and takes no more memory than the client lags behind.
 *
 *     collecting --a part is complete, its turn in the connection--> streaming --> finished
 *
 * In both states the request is suspended when it is far enough ahead of the client: it keeps its
 * shared key locks, but no page and no mutex. It resumes when the client has read. When other
 * requests have waited for its keys for REPLY_STREAM_PATIENCE_MS in total while it was suspended,
 * it is hurried: the rest goes to the output at once, within the output limits.
 *
 * Invariants:
 * 1. Only a request whose run is never repeated may stream: a read, not nested in another command,
 *    on its declared keys. It is then the oldest request of its connection.
 * 2. Once a part has been sent, a failure closes the connection.
 * 3. While conn->is_streaming no push is put into its output; pushes follow the reply.
 * 4. worker->suspended holds the suspended requests.
 */
#ifndef VELLUM_REPLY_STREAM_H
#define VELLUM_REPLY_STREAM_H

#include "server/net/conn.h"
#include "server/exec/request.h"

#define REPLY_STREAM_PULSE_MS 25
#define REPLY_STREAM_PATIENCE_MS 100

/* The end of a connection's turn: its suspended request may resume. */
void reply_stream_turn(struct conn *conn);

/* Every REPLY_STREAM_PULSE_MS while a request is suspended: checks for waiters on its keys. */
void reply_stream_pulse(struct worker *worker);

/* Resumes the request if it is suspended: its connection is closed. */
void reply_stream_resume(struct request *request);
/* The connection still has a client to send a reply to. */
bool reply_stream_is_heard(const struct conn *conn);

/* Memory is short, and the request's reply could not be sent yet: it should not be produced now. */
bool reply_stream_holds_back(const struct request *request);
enum store_result reply_stream_suspend(struct request *request);
/* The request is finished. */
void reply_stream_end(struct request *request);
/* Its whole reply is in the output. */
void reply_stream_answered(struct request *request);

/* The connection's oldest request is suspended: only its client can make it resume. */
bool reply_stream_is_stuck(const struct conn *conn);

/* ---- for command functions ---- */

/* store_step, for commands that write their reply from its first byte into a buffer kept over the
 * steps. The contents of `out` may have been sent afterwards, and then it is empty. */
STORE_MUST_CHECK enum store_result call_step(struct call *call, struct resp_writer *out);

/* The server is stopping, and a long read whose only effect is its reply would delay that. Its
 * connection is closed. */
bool call_is_in_vain(struct call *call);

/* Within a step of such a command: appends a large item, from `offset` on, as a bulk string after
 * the output so far, and streams both to the client. STORE_ABSENT: the caller has to read the item
 * into `out`. With any result but STORE_OK nothing has changed. */
STORE_MUST_CHECK enum store_result call_pass_on(struct call *call, struct resp_writer *out,
                                                const struct store_item *item, uint64_t offset);

#endif
