#include "server/exec/request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"
#include "server/net/conn.h"
#include "server/exec/nested.h"
#include "server/exec/batch.h"
#include "server/core/server.h"
#include "server/exec/upload.h"
#include "server/core/call.h"

#define FREE_REQUESTS_MAX 1024
#define KEPT_ENTRIES_MAX 1024 /* longer arrays are freed, not reused */
#define KEPT_REPLY_MAX (16 * 1024)

static void request_destroy(struct request *request)
{
    free(request->argv);
    free(request->keys);
    free(request->readers);
    resp_writer_free(&request->reply);
    free(request);
}

struct request *request_new(struct conn *conn)
{
    struct worker *worker = conn->worker;
    struct request *request = SLIST_FIRST(&worker->free_requests);
    if (request != NULL) {
        SLIST_REMOVE_HEAD(&worker->free_requests, of_free);
        worker->free_request_count--;
    } else {
        request = calloc(1, sizeof *request);
        if (request == NULL)
            return NULL;
        resp_writer_init(&request->reply, 2);
        request->call.server = worker->server;
        request->call.effects = &request->effects;
        effects_init(&request->effects);
    }
    request->conn = conn;
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
    assert(request->reader_count == 0 && request->state != REQUEST_RUNNING);
    assert(STAILQ_EMPTY(&request->effects.messages) && request->fiber == NULL);
    call_drop_progress(call);
    if (!invalidation_is_empty(&request->reread))
        invalidation_clear(&request->reread);
    request_uncount_reply(request);
    nested_calls_free(call->nested_calls);
    call->nested_calls = NULL;
    upload_free(call->upload);
    call->upload = NULL;
    input_buffer_release(request->block);
    request->block = request->source = NULL;
    assert(!request->is_suspended);
    batch_drop(call);
    call->batch_taken = 0;
    request->is_streamed = request->is_hurried = false;
    request->awaited_ms = 0;
    request->is_read = request->discard = request->rejected = request->wants_all = false;
    request->wants_libraries = false;
    request->library_commit = 0;
    request->is_long = false;
    request->reply_start = 0;
    request->line = 0;
    if (worker->free_request_count >= FREE_REQUESTS_MAX) {
        request_destroy(request);
        return;
    }
    trim(request);
    SLIST_INSERT_HEAD(&worker->free_requests, request, of_free);
    worker->free_request_count++;
}

void request_free_spares(struct worker *worker)
{
    for (struct request *request; (request = SLIST_FIRST(&worker->free_requests)) != NULL;) {
        SLIST_REMOVE_HEAD(&worker->free_requests, of_free);
        request_destroy(request);
    }
    worker->free_request_count = 0;
}

/* Arguments that the parser keeps itself (inline commands) are overwritten by the next command:
 * they are copied to a block of their own. */
static struct input_buffer *copy_arguments(uint64_t *counted, struct resp_slice *argv, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += argv[i].len;
    struct input_buffer *block = input_buffer_new(counted, total + 1);
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
    call->batch = commands;
    call->batch_left = count;
    return request_reserve_arguments(request, (1 + count) * call->argc);
}

void request_hold(struct request *request, struct input_buffer *block)
{
    struct call *call = &request->call;
    size_t count = batch_length(call) * call->argc;
    assert(request->block == NULL && count <= request->argv_capacity);
    memcpy(request->argv, call->argv, count * sizeof *request->argv);
    request->block = input_buffer_hold(block);
    call->argv = request->argv;
}

bool request_hold_copy(struct request *request)
{
    struct call *call = &request->call;
    assert(request->block == NULL && call->argc <= request->argv_capacity);
    memcpy(request->argv, call->argv, call->argc * sizeof *request->argv);
    request->block = copy_arguments(&request->conn->block_bytes, request->argv, call->argc);
    call->argv = request->argv;
    request->known = NULL; /* it refers to the original */
    return request->block != NULL;
}

bool request_reserve_keys(struct request *request, size_t count)
{
    return array_reserve(&request->keys, &request->key_capacity, count, sizeof *request->keys);
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
