/*
 * A long value of a command (command->value_at) that goes to its place in the store while it
 * arrives, instead of being gathered in memory. The rest of the command stands where it always
 * does:
 *
 *     conn.c: upload_start, when the value's length is known -> upload_take, upload_read, until it
 *     is whole -> the command is taken; it waits in the runner until the upload is settled, and
 * runs
 *     -> upload_put, if it puts the value anywhere -> freed with its request, or its place in MULTI
 *
 * If the store cannot take the value, the rest of it is read and thrown away, and the command meets
 * the failure where it puts the value: it answers as if it had had it in memory.
 *
 * Threads: as with connections.
 */
#ifndef VELLUM_UPLOAD_H
#define VELLUM_UPLOAD_H

#include <sys/types.h>

#include "storage/store.h"

struct transport;

struct conn;

#define UPLOAD_WEIGHT 8 /* of a long one; of those that would be short by TCP: 1 */

struct upload {
    struct conn *conn;
    struct store_upload *store; /* NULL: there is none, and `result` tells why */
    uint64_t length, received;
    size_t head;              /* bytes of the command before the value */
    size_t argument;          /* which of its arguments the value is */
    bool waits;               /* nothing is received until the store has caught up */
    uint32_t counted;         /* in conn->unsettled_uploads: its weight, or 0 */
    enum store_result result; /* STORE_WAIT: it is not settled */
};

/* Whether the next bytes are only referred to. */
bool upload_is_referred_to(const struct conn *conn);

/* If the connection's parser, in the middle of the command that begins at `data`, waits for a value
 * that may go to its place, begins conn->upload. Whether it has. */
bool upload_start(struct conn *conn, const char *data, size_t len);

/* Takes bytes of the value that have arrived; fewer than `len` if the store has to catch up. */
size_t upload_take(struct upload *upload, const char *data, size_t len);

#define UPLOAD_TAIL 2 /* the line end behind the value */

/* Reads from the connection what has come of the value, and of the line end behind it: *tailed
 * bytes of that are in `tail` then. How many bytes in all, or what the transport says. */
ssize_t upload_read(struct upload *upload, char tail[UPLOAD_TAIL], size_t *tailed);

static inline bool upload_is_whole(const struct upload *upload)
{
    return upload->received == upload->length;
}

/* The command has been taken: conn->upload, from here on the caller's; NULL: there is none. */
struct upload *upload_pass_on(struct conn *conn);

/* Whether the command may run; true also if there is none. */
static inline bool upload_is_settled(const struct upload *upload)
{
    return upload == NULL || upload->result != STORE_WAIT;
}

/* In a run function: gives the key the value. */
STORE_MUST_CHECK static inline enum store_result upload_put(const struct upload *upload,
                                                            struct store_txn *txn,
                                                            const struct store_key *key,
                                                            uint8_t type, int64_t expire_ms)
{
    if (upload->store == NULL)
        return upload->result;
    return store_put_upload(txn, key, type, upload->store, expire_ms);
}

void upload_free(struct upload *upload); /* or NULL */

/* The connection is about to close its transport: frees the upload, or NULL, as soon as the
 * transport has let go of what it fills. */
void upload_abandon(struct upload *upload, struct transport *transport);

#endif
