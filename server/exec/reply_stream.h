/*
 * Replies that leave while their command runs: what a read says of a whole collection goes to its
 * client part by part, and takes no more memory than the client is behind.
 *
 *     gathers --a part is whole, its turn in the connection has come--> flows --> finished
 *
 * In both states it rests when it is far enough ahead of the client: it keeps its shared claims, no
 * page and no lock. It goes on when the client has read, or, once others have waited for its keys
 * for REPLY_STREAM_PATIENCE_MS in all while it rested, hurried: then all goes to the output at
 * once, under the limits that hold there.
 *
 * Invariants:
 * 1. Only a request whose run cannot be thrown away flows: a read, not inside another command, by
 *    its declared keys. It is then the oldest of its connection.
 * 2. Once a part has left, a failure closes the connection.
 * 3. While conn->is_flowing no push is put into its output: they come behind the reply.
 * 4. worker->resting holds the requests that rest.
 */
#ifndef VELLUM_REPLY_STREAM_H
#define VELLUM_REPLY_STREAM_H

#include "server/net/conn.h"
#include "server/exec/request.h"

#define REPLY_STREAM_PULSE_MS 25
#define REPLY_STREAM_PATIENCE_MS 100

/* The end of a connection's turn: what rests for it may go on. */
void reply_stream_turn(struct conn *conn);

/* Every REPLY_STREAM_PULSE_MS while anything rests: looks who is waited for. */
void reply_stream_pulse(struct worker *worker);

/* The request goes on if it rests: its connection is closed. */
void reply_stream_resume(struct request *request);
/* There is somebody to send a reply to. */
bool reply_stream_is_heard(const struct conn *conn);

/* There is little memory, and its reply could not leave yet: it is not to be made now. */
bool reply_stream_holds_back(const struct request *request);
enum store_result reply_stream_suspend(struct request *request);
/* It is finished. */
void reply_stream_end(struct request *request);
/* Its whole reply is in the output. */
void reply_stream_answered(struct request *request);

/* The connection's oldest command rests: only its client can make it go on. */
bool reply_stream_is_stuck(const struct conn *conn);

/* ---- for command functions ---- */

/* store_step, for commands that write their reply from its first byte into a buffer kept over the
 * steps: what `said` holds may have left for the client afterwards, and then it is empty. */
STORE_MUST_CHECK enum store_result call_step(struct call *call, struct resp_writer *said);

/* The server ends, and a long read that only replies would hold that up. Its connection is closed.
 */
bool call_is_in_vain(struct call *call);

/* Within a step of such a command: puts a large item, from `offset` on, as a bulk string behind
 * what was said, which leaves for the client with it. STORE_ABSENT: it has to be read into `said`;
 * with other results than STORE_OK, too, all is as it was. */
STORE_MUST_CHECK enum store_result call_pass_on(struct call *call, struct resp_writer *said,
                                                const struct store_item *item, uint64_t offset);

#endif
