/*
 * Values in replies. A long value does not pass through memory: the reply records a value reader
 * and its offset among the reply's own bytes.
 *
 * Invariant: the readers of a request are those of its last run, in the order of their offsets.
 */
#include "server/exec/request_reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/core/server.h"
#include "server/exec/nested.h"
#include "server/exec/request.h"
#include "server/net/conn.h"
#include "server/net/conn_output.h"
#include "storage/base/array.h"

#define COUNT_STEP (64 * 1024)  /* of a reply, between two counts */
#define COPIED_PART (64 * 1024) /* shorter values are copied */
#define COPIED_SHARE 8          /* of memory, for other values read whole */

/* ---- value readers of a reply ---- */

void request_drop_readers(struct request *request, bool are_ours)
{
    for (uint32_t i = 0; are_ours && i < request->reader_count; i++)
        store_reader_close(request->readers[i].reader);
    request->reader_count = 0;
}

void request_insert(struct request *request, size_t offset, const struct resp_writer *bytes)
{
    struct resp_writer *reply = request->call.reply;
    size_t at = request->reply_start + offset, behind = reply->len - at;
    if (bytes->failed || resp_reserve(reply, bytes->len) == NULL) {
        reply->failed = true;
        return;
    }
    memmove(reply->data + at + bytes->len, reply->data + at, behind);
    if (bytes->len > 0)
        memcpy(reply->data + at, bytes->data, bytes->len);
    reply->len += bytes->len;
    for (uint32_t i = 0; i < request->reader_count; i++)
        if (request->readers[i].offset >= at)
            request->readers[i].offset += bytes->len;
}

/* ---- uploads ---- */

/* The upload has made progress. */
static void on_upload_ready(void *arg)
{
    struct request *request = arg;
    if (request->state == REQUEST_RUNNING)
        store_resume(&request->store);
}

enum store_result call_upload_begin(struct call *call, uint64_t length,
                                    struct store_upload **upload)
{
    struct request *request = request_of_call(call);
    return store_upload_begin(request->conn->worker->store, length, on_upload_ready, request,
                              upload);
}

/* ---- values ---- */

static bool reserve_reader(struct request *request)
{
    return array_reserve(&request->readers, &request->reader_capacity, request->reader_count + 1,
                         sizeof *request->readers);
}

/* A part of a reply: bytes of a value. */
struct part {
    const struct store_item *item;
    uint64_t offset, len;
};

static bool is_tail(const struct part *part)
{
    return part->offset + part->len == part->item->length;
}

/* part NULL: all of the upload. `length` as in struct reply_stream. */
static enum store_result reply_stream(struct call *call, const struct part *part,
                                      struct store_upload *upload, uint64_t length)
{
    struct request *request = request_of_call(call);
    if (!reserve_reader(request))
        return STORE_NO_MEMORY;
    struct reply_stream *added = &request->readers[request->reader_count];
    enum store_result result =
        part != NULL ? store_reader_open(call->txn, part->item, part->offset, &added->reader)
                     : store_reader_open_upload(call->txn, upload, &added->reader);
    if (result != STORE_OK)
        return result;
    if (part != NULL && !is_tail(part))
        store_reader_end_after(added->reader, part->len);
    request->reader_count++;
    added->length = length;
    added->offset = call->reply->len;
    return STORE_OK;
}

enum store_result call_reply_upload(struct call *call, struct store_upload *upload)
{
    return reply_stream(call, NULL, upload, READER_OF_NO_VALUE);
}

/* The value is copied once more into the reply, and a third time into Lua. */
static uint64_t most_copied(const struct call *call)
{
    return atomic_load_explicit(&call->server->memory_bound, memory_order_relaxed) / COPIED_SHARE;
}

static uint64_t counted_reply(const struct request *request)
{
    assert(request->call.reply->len >= request->reply_start);
    return request->call.reply->len - request->reply_start +
           request->reader_count * (uint64_t)CONN_READER_COST;
}

/* A script reads the replies of its commands one after the other. */
static bool is_read_by_script(const struct call *call, const struct request *request)
{
    return call->reply != request->call.reply;
}

bool call_may_reply(struct call *call)
{
    struct request *request = request_of_call(call);
    uint64_t bytes = counted_reply(request);
    if (is_read_by_script(call, request))
        bytes += call->reply->len;
    if (bytes < request->replied.bytes + COUNT_STEP)
        return true;
    request->replied.server = call->server;
    return collected_set(&request->replied, bytes);
}

void call_count_ended(struct call *call)
{
    struct request *request = request_of_call(call);
    if (is_read_by_script(call, request) && request->replied.bytes > 0)
        (void)collected_set(&request->replied, counted_reply(request));
}

/* A command may name one long value many times. */
static enum store_result count_part(struct call *call, const struct part *part)
{
    return part->len <= COPIED_PART || call_may_reply(call) ? STORE_OK : STORE_NO_MEMORY;
}

/* For a short part, or one that a script reads. */
static enum store_result copy_part(struct call *call, const struct part *part)
{
    bool is_much = part->len > COPIED_PART && part->len > most_copied(call);
    char *to = is_much ? NULL : resp_reserve(call->reply, part->len);
    if (to == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = store_read(call->txn, part->item, part->offset, part->len, to);
    if (result == STORE_OK)
        call->reply->len += part->len;
    return result == STORE_OK ? count_part(call, part) : result;
}

static enum store_result load_part(struct call *call, const struct part *part)
{
    const char *bytes;
    enum store_result result = store_load_within(call->txn, part->item, most_copied(call), &bytes);
    if (result == STORE_OK)
        resp_raw(call->reply, bytes + part->offset, part->len);
    return result == STORE_OK ? count_part(call, part) : result;
}

/* `length` as in struct reply_stream. */
static enum store_result reply_bytes(struct call *call, const struct part *part, uint64_t length)
{
    const struct store_item *item = part->item;
    bool may_reader = call->reply == request_of_call(call)->call.reply;
    if (!item->large) {
        resp_raw(call->reply, item->bytes + part->offset, part->len);
        return STORE_OK;
    }
    if (!is_tail(part) && part->len < COPIED_PART)
        return copy_part(call, part);
    if (may_reader && store_needs_reader(item))
        return reply_stream(call, part, NULL, length);
    bool is_whole = part->len == item->length;
    return is_whole ? load_part(call, part) : copy_part(call, part);
}

enum store_result call_reply_bytes(struct call *call, const struct store_item *item)
{
    struct part part = {item, 0, item->length};
    return reply_bytes(call, &part, READER_OF_NO_VALUE);
}

enum store_result call_reply_range(struct call *call, const struct store_item *item,
                                   uint64_t offset, uint64_t len)
{
    struct part part = {item, offset, len};
    resp_bulk_header(call->reply, len);
    enum store_result result = reply_bytes(call, &part, is_tail(&part) ? len : READER_OF_NO_VALUE);
    resp_raw(call->reply, "\r\n", 2);
    return result;
}

enum store_result call_reply_part(struct call *call, const struct store_item *item, uint64_t offset)
{
    return call_reply_range(call, item, offset, item->length - offset);
}

enum store_result call_reply_item(struct call *call, const struct store_item *item)
{
    return call_reply_part(call, item, 0);
}
