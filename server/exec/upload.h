/*
 * A long value of a command (command->value_at) that is written to its place in the store while it
 * arrives, instead of being collected in memory. The rest of the command is parsed as usual:
 *
 *     conn_turn.c: upload_start, when the value's length is known
 *       -> upload_take, upload_read, until it is complete
 *       -> the command is taken; it is parked in the runner until the upload is settled, and runs
 *       -> upload_put, if the command stores the value
 *       -> freed with its request, or with its nested call if MULTI queued it
 *
 * If the store cannot take the value, the rest of it is read and discarded, and the command fails
 * where it stores the value: it answers as if the value had been in memory.
 *
 * Threads: an upload belongs to its connection's worker.
 */
#ifndef VELLUM_UPLOAD_H
#define VELLUM_UPLOAD_H

#include <sys/types.h>

#include "storage/store.h"

struct transport;

struct conn;

#define UPLOAD_WEIGHT 8 /* of an upload from STORE_UPLOAD_MIN bytes on; of a shorter one: 1 */

struct upload {
    struct conn *conn;
    struct store_upload *store; /* NULL: none, and `result` is the reason */
    uint64_t length, received;
    size_t head;              /* bytes of the command before the value */
    size_t argument;          /* index of the argument that is the value */
    bool waits;               /* nothing is received until the store has caught up */
    uint32_t counted;         /* in conn->unsettled_uploads: its weight, or 0 */
    enum store_result result; /* STORE_WAIT: not settled */
};

/* Whether the next bytes arrive as references to the client's memory. */
bool upload_is_referred_to(const struct conn *conn);

/* If the connection's parser, in the middle of the command that begins at `data`, waits for a
 * value that may be uploaded, starts conn->upload. Returns whether it has. */
bool upload_start(struct conn *conn, const char *data, size_t len);

/* Takes bytes of the value that have arrived; fewer than `len` if the store has to catch up. */
size_t upload_take(struct upload *upload, const char *data, size_t len);

#define UPLOAD_TAIL 2 /* the CRLF after the value */

/* Reads the bytes of the value, and of the CRLF after it, that have arrived; *tailed bytes of the
 * CRLF are in `tail` then. Returns the number of bytes, or the transport's result. */
ssize_t upload_read(struct upload *upload, char tail[UPLOAD_TAIL], size_t *tailed);

static inline bool upload_is_whole(const struct upload *upload)
{
    return upload->received == upload->length;
}

/* The command has been taken: moves conn->upload to the caller; NULL: there is none. */
struct upload *upload_pass_on(struct conn *conn);

/* Whether the command may run; true also without an upload. */
static inline bool upload_is_settled(const struct upload *upload)
{
    return upload == NULL || upload->result != STORE_WAIT;
}

/* In a run function: makes the value the key's. */
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

/* The connection is about to close its transport: frees the upload (or NULL) as soon as the
 * transport does not write into its buffers any more. */
void upload_abandon(struct upload *upload, struct transport *transport);

#endif
