/*
 * Values in replies, large ones streamed from the store, and the value readers of a request.
 */
#ifndef VELLUM_REQUEST_REPLY_H
#define VELLUM_REQUEST_REPLY_H

#include "server/core/command.h"

struct request;

#define READER_OF_NO_VALUE UINT64_MAX /* the `length` of bytes that are no value */

/* A large value, to be sent after the first `offset` bytes of the reply. */
struct reply_stream {
    size_t offset;
    uint64_t length; /* of the value, if the client may have a buffer for it */
    struct store_reader *reader;
};

/* Inserts these bytes into the finished reply, `offset` bytes after its start. */
void request_insert(struct request *request, size_t offset, const struct resp_writer *bytes);

/* Drops the readers of a run. are_ours: the run's transaction has succeeded (otherwise the engine
 * has closed them). */
void request_drop_readers(struct request *request, bool are_ours);

/* ---- for command functions ---- */

/* An upload of `length` bytes that continues while the call is suspended: waits for the device use
 * store_suspend. */
STORE_MUST_CHECK enum store_result call_upload_begin(struct call *call, uint64_t length,
                                                     struct store_upload **upload);

/* Writes a value as a bulk reply. A large one is streamed from the store after the reply's other
 * bytes, and is never in memory as a whole. */
enum store_result call_reply_item(struct call *call, const struct store_item *item);
/* The same from `offset` on. */
enum store_result call_reply_part(struct call *call, const struct store_item *item,
                                  uint64_t offset);
/* And of `len` bytes. */
enum store_result call_reply_range(struct call *call, const struct store_item *item,
                                   uint64_t offset, uint64_t len);
/* Writes the bytes of a value, or of a finished upload, in the middle of the reply; the upload may
 * be closed when the request is finished. */
STORE_MUST_CHECK enum store_result call_reply_bytes(struct call *call,
                                                    const struct store_item *item);
STORE_MUST_CHECK enum store_result call_reply_upload(struct call *call,
                                                     struct store_upload *upload);

/* Counts the reply as collected while it grows, as call_yield does: a short command may name one
 * value very often. False: it has become too long. */
bool call_may_reply(struct call *call);
/* A command inside another one has ended: if a script reads its reply, it counts as the script's
 * memory from now on. */
void call_count_ended(struct call *call);

#endif
