/*
 * The output of a connection: replies and pushes. On failure (memory) the connection is killed.
 */
#ifndef VELLUM_CONN_OUTPUT_H
#define VELLUM_CONN_OUTPUT_H

#include "server/net/conn.h"

#define CONN_READER_COST 2048 /* bytes: about the store's memory for a reader in a reply */

struct publication;

/* Replaces replies that show commits which will never be durable, see conn_withholds. */
#define CONN_UNKEPT_TEXT                                                                           \
    "MISCONF Errors writing to the journal: whether the change that this reply would show or "     \
    "acknowledge is kept is not known until the server is started again. See the log."

/* A write to the journal has failed, and by the policy a reply or message that shows this commit
 * must never be sent. */
bool conn_withholds(const struct conn *conn, uint64_t shown);

/* Counts the replies just written to worker->output; 0: a part of one. */
void conn_output_count(struct conn *conn, uint32_t count);

/* Moves the first bytes of worker->output, with all the replies counted there, to the queue. */
void conn_output_settle(struct conn *conn, size_t len);

/* Each appends part of a reply to the queue; worker->output must be empty, and comes after it. */
void conn_output_piece(struct conn *conn, const char *data, size_t len);
void conn_output_reader(struct conn *conn, struct store_reader *reader, uint64_t length);

/* Appends a push: `head` is copied, the publication's bytes are shared if they are long. Only
 * between turns, nested ones included; the connection gets a turn in this round. Without a
 * publication (NULL) also in its turn, between two replies that were settled. */
void conn_output_push(struct conn *conn, const struct resp_slice *head, int head_count,
                      struct publication *publication);

/* Moves a writer's buffer, with so many replies, to the end of the output, without copying it. */
void conn_output_take(struct conn *conn, struct resp_writer *writer, uint32_t count);

/* Appends the pushes that were held back. */
void conn_output_release(struct conn *conn);

/* Sends as much as may be sent and the transport takes; keeps the rest. A short reply may be
 * corked: it is sent with those of other connections, at the latest in conn_output_uncork. */
void conn_output_flush(struct conn *conn);
/* Sends the corked replies of all connections of this round; connections may become ready. */
void conn_output_uncork_all(struct worker *worker);
static inline void conn_output_uncork(struct worker *worker)
{
    if (worker->corked_count > 0)
        conn_output_uncork_all(worker);
}
void conn_output_free(struct conn *conn);

#endif
