/*
 * Values in replies, large ones as streams from the store, and what a request's streams need.
 */
#ifndef VELLUM_REQUEST_REPLY_H
#define VELLUM_REQUEST_REPLY_H

#include "server/core/command.h"

struct request;

/* Puts these bytes into the finished reply, `offset` bytes behind its start. */
void request_insert(struct request *request, size_t offset, const struct resp_writer *bytes);

/* Drops the streams of a run: `are_ours` if the run's transaction has succeeded (else the engine
 * has closed them). */
void request_drop_readers(struct request *request, bool are_ours);

/* ---- for command functions ---- */

/* An upload of this many bytes that goes on while the call rests: what waits for the device goes on
 * by store_suspend. */
STORE_MUST_CHECK enum store_result call_upload_begin(struct call *call, uint64_t length,
                                                     struct store_upload **upload);

/* Writes a value as a bulk reply; a large one is streamed from the store after the reply's other
 * bytes, so that its length never stands in memory. */
enum store_result call_reply_item(struct call *call, const struct store_item *item);
/* The same from `offset` on. */
enum store_result call_reply_part(struct call *call, const struct store_item *item,
                                  uint64_t offset);
/* And of `len` bytes. */
enum store_result call_reply_range(struct call *call, const struct store_item *item,
                                   uint64_t offset, uint64_t len);
/* The bytes of a value, and then of a finished upload, in the middle of what is written otherwise;
 * it may be closed when the request is finished. */
STORE_MUST_CHECK enum store_result call_reply_bytes(struct call *call,
                                                    const struct store_item *item);
STORE_MUST_CHECK enum store_result call_reply_upload(struct call *call,
                                                     struct store_upload *upload);

#endif
