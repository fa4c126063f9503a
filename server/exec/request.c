#include "server/exec/request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"
#include "server/net/conn.h"
#include "server/exec/blocked.h"
#include "server/exec/nested.h"
#include "server/exec/row.h"
#include "server/core/server.h"
#include "server/exec/upload.h"
#include "server/core/call.h"

#define COPIED_PART (64 * 1024) /* shorter ones are not worth a stream */
#define COPIED_SHARE 8          /* of memory, for what else is read whole */

#define FREE_REQUESTS_MAX 1024
#define KEPT_ENTRIES_MAX 1024 /* longer arrays are not kept for reuse */
#define KEPT_REPLY_MAX (16 * 1024)
#define REQUEST_MEMORY 2048 /* about: a request and what the store knows of it */
#define KEY_MEMORY 64       /* likewise of each key */

static void request_destroy(struct request *request)
{
    free(request->argv);
    free(request->keys);
    free(request->streams);
    resp_writer_free(&request->reply);
    free(request);
}

struct request *request_new(struct conn *conn)
{
    struct worker *worker = conn->worker;
    struct request *request = worker->free_requests;
    if (request != NULL) {
        worker->free_requests = request->next;
        worker->free_request_count--;
    } else {
        request = calloc(1, sizeof *request);
        if (request == NULL)
            return NULL;
        resp_writer_init(&request->reply, 2);
        request->call.server = worker->server;
        request->call.effects = &request->effects;
    }
    request->conn = conn;
    request->next = NULL;
    request->state = REQUEST_PARKED;
    request->is_monitored = false;
    request->call.session = &conn->session;
    request->call.worker = worker;
    return request;
}

static void trim(struct request *request)
{
    if (request->argv_capacity > KEPT_ENTRIES_MAX) {
        free(request->argv);
        request->argv = NULL;
        request->argv_capacity = 0;
    }
    if (request->key_capacity > KEPT_ENTRIES_MAX) {
        free(request->keys);
        request->keys = NULL;
        request->key_capacity = 0;
    }
    if (request->reply.capacity > KEPT_REPLY_MAX || request->reply.failed) {
        resp_writer_free(&request->reply);
        resp_writer_init(&request->reply, 2);
    }
    resp_truncate(&request->reply, 0);
}

void request_free(struct request *request)
{
    struct worker *worker = request->conn->worker;
    struct call *call = &request->call;
    assert(request->stream_count == 0 && request->state != REQUEST_RUNNING);
    assert(request->effects.first == NULL && request->fiber == NULL);
    call_drop_progress(call);
    nest_free(call->nest);
    call->nest = NULL;
    upload_free(call->upload);
    call->upload = NULL;
    block_release(request->block);
    request->block = request->source = NULL;
    assert(!request->rests);
    row_drop(call);
    call->row_taken = 0;
    request->flows = request->is_hurried = false;
    request->awaited_ms = 0;
    request->is_read = request->discard = request->rejected = request->wants_all = false;
    request->is_long = false;
    request->reply_start = 0;
    request->line = 0;
    if (worker->free_request_count >= FREE_REQUESTS_MAX) {
        request_destroy(request);
        return;
    }
    trim(request);
    request->next = worker->free_requests;
    worker->free_requests = request;
    worker->free_request_count++;
}

void request_free_spares(struct worker *worker)
{
    for (struct request *request; (request = worker->free_requests) != NULL;) {
        worker->free_requests = request->next;
        request_destroy(request);
    }
    worker->free_request_count = 0;
}

/* Arguments that the parser keeps itself (inline commands) are gone with the next command: they
 * move to a block of their own. */
static struct block *copy_arguments(struct resp_slice *argv, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += argv[i].len;
    struct block *block = block_new(total + 1);
    if (block == NULL)
        return NULL;
    char *to = block->data;
    for (size_t i = 0; i < count; i++) {
        if (argv[i].len > 0)
            memcpy(to, argv[i].data, argv[i].len);
        argv[i].data = to;
        to += argv[i].len;
    }
    return block;
}

bool request_reserve_arguments(struct request *request, size_t count)
{
    return array_reserve(&request->argv, &request->argv_capacity, count, sizeof *request->argv);
}

bool request_offer_row(struct request *request, const struct ahead *commands, uint32_t count)
{
    struct call *call = &request->call;
    if (count == 0 || commands->command != request->named || commands->count != call->argc ||
        call->session->reply_mode != SESSION_REPLY_ON)
        return true;
    assert(commands->args == call->argv + call->argc);
    call->row = commands;
    call->row_left = count;
    return request_reserve_arguments(request, (1 + count) * call->argc);
}

void request_hold(struct request *request, struct block *block)
{
    struct call *call = &request->call;
    size_t count = row_length(call) * call->argc;
    assert(request->block == NULL && count <= request->argv_capacity);
    memcpy(request->argv, call->argv, count * sizeof *request->argv);
    request->block = block_hold(block);
    call->argv = request->argv;
}

bool request_hold_copy(struct request *request)
{
    struct call *call = &request->call;
    assert(request->block == NULL && call->argc <= request->argv_capacity);
    memcpy(request->argv, call->argv, call->argc * sizeof *request->argv);
    request->block = copy_arguments(request->argv, call->argc);
    call->argv = request->argv;
    return request->block != NULL;
}

bool request_reserve_keys(struct request *request, size_t count)
{
    return array_reserve(&request->keys, &request->key_capacity, count, sizeof *request->keys);
}

void request_drop_streams(struct request *request, bool are_ours)
{
    for (uint32_t i = 0; are_ours && i < request->stream_count; i++)
        store_stream_close(request->streams[i].stream);
    request->stream_count = 0;
}

void request_drop_reply(struct request *request)
{
    struct resp_writer *reply = &request->reply;
    if (request->call.reply != reply || reply->capacity <= KEPT_REPLY_MAX)
        return;
    int version = reply->version;
    resp_writer_free(reply);
    resp_writer_init(reply, version);
}

uint64_t request_memory(const struct request *request)
{
    uint64_t bytes = REQUEST_MEMORY + request->argv_capacity * sizeof *request->argv +
                     request->key_capacity * (sizeof *request->keys + KEY_MEMORY);
    if (request->waiter != NULL)
        bytes += blocked_memory(request->waiter);
    size_t count = row_length(&request->call) * request->call.argc;
    for (size_t i = 0; request->block != NULL && i < count; i++)
        bytes += request->call.argv[i].len;
    return bytes;
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
    for (uint32_t i = 0; i < request->stream_count; i++)
        if (request->streams[i].offset >= at)
            request->streams[i].offset += bytes->len;
}

/* The device has got on. */
static void on_upload_ready(void *arg)
{
    struct request *request = arg;
    if (request->state == REQUEST_RUNNING)
        store_rouse(&request->store);
}

enum store_result call_upload_begin(struct call *call, uint64_t length,
                                    struct store_upload **upload)
{
    struct request *request = request_of_call(call);
    return store_upload_begin(request->conn->worker->store, length, on_upload_ready, request,
                              upload);
}

static bool reserve_stream(struct request *request)
{
    return array_reserve(&request->streams, &request->stream_capacity, request->stream_count + 1,
                         sizeof *request->streams);
}

/* A part of what a command says: bytes of a value. */
struct part {
    const struct store_item *item;
    uint64_t offset, len;
};

static bool is_tail(const struct part *part)
{
    return part->offset + part->len == part->item->length;
}

/* Without a part: all of the upload. `length` as in struct reply_stream. */
static enum store_result reply_stream(struct call *call, const struct part *part,
                                      struct store_upload *upload, uint64_t length)
{
    struct request *request = request_of_call(call);
    if (!reserve_stream(request))
        return STORE_NO_MEMORY;
    struct reply_stream *added = &request->streams[request->stream_count];
    enum store_result result =
        part != NULL ? store_stream_open(call->txn, part->item, part->offset, &added->stream)
                     : store_stream_open_upload(call->txn, upload, &added->stream);
    if (result != STORE_OK)
        return result;
    if (part != NULL && !is_tail(part))
        store_stream_end_after(added->stream, part->len);
    request->stream_count++;
    added->length = length;
    added->offset = call->reply->len;
    return STORE_OK;
}

enum store_result call_reply_upload(struct call *call, struct store_upload *upload)
{
    return reply_stream(call, NULL, upload, STREAM_OF_NO_VALUE);
}

/* It stands there once more in the reply, and a third time in Lua. */
static uint64_t most_copied(const struct call *call)
{
    return atomic_load_explicit(&call->server->memory_bound, memory_order_relaxed) / COPIED_SHARE;
}

/* A script reads it, or it is not much. */
static enum store_result copy_part(struct call *call, const struct part *part)
{
    bool is_much = part->len > COPIED_PART && part->len > most_copied(call);
    char *to = is_much ? NULL : resp_reserve(call->reply, part->len);
    if (to == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = store_read(call->txn, part->item, part->offset, part->len, to);
    if (result == STORE_OK)
        call->reply->len += part->len;
    return result;
}

static enum store_result load_part(struct call *call, const struct part *part)
{
    const char *bytes;
    enum store_result result = store_load_within(call->txn, part->item, most_copied(call), &bytes);
    if (result == STORE_OK)
        resp_raw(call->reply, bytes + part->offset, part->len);
    return result;
}

/* `length` as in struct reply_stream. */
static enum store_result reply_bytes(struct call *call, const struct part *part, uint64_t length)
{
    const struct store_item *item = part->item;
    bool may_stream = call->reply == request_of_call(call)->call.reply;
    if (!item->large) {
        resp_raw(call->reply, item->bytes + part->offset, part->len);
        return STORE_OK;
    }
    if (!is_tail(part) && part->len < COPIED_PART)
        return copy_part(call, part);
    if (may_stream && store_streams(item))
        return reply_stream(call, part, NULL, length);
    bool is_whole = part->len == item->length;
    return is_whole ? load_part(call, part) : copy_part(call, part);
}

enum store_result call_reply_bytes(struct call *call, const struct store_item *item)
{
    struct part part = {item, 0, item->length};
    return reply_bytes(call, &part, STREAM_OF_NO_VALUE);
}

enum store_result call_reply_range(struct call *call, const struct store_item *item,
                                   uint64_t offset, uint64_t len)
{
    struct part part = {item, offset, len};
    resp_bulk_header(call->reply, len);
    enum store_result result = reply_bytes(call, &part, is_tail(&part) ? len : STREAM_OF_NO_VALUE);
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
