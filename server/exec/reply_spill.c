#include "server/exec/reply_spill.h"

#include <string.h>

#include "server/net/conn.h"
#include "server/exec/request_reply.h"
#include "server/exec/request.h"
#include "server/core/server.h"

#define LEAST_BYTES (256 * 1024) /* less always stays in memory */
#define MEMORY_SHARE 64 /* of memory, for all collected replies: beyond it they are spilled */

static bool may_spill(const struct call *call, const struct request *request)
{
    return call == &request->call && request->state == REQUEST_RUNNING && !request->discard &&
           call->session->reply_mode == SESSION_REPLY_ON && request->reader_count == 0;
}

static bool is_due(const struct call *call, const struct reply_spill *spill, size_t len)
{
    struct server *server = call->server;
    if (spill->is_over || len < STORE_READER_PIECE)
        return false;
    if (spill->upload != NULL)
        return true;
    uint64_t memory = atomic_load_explicit(&server->memory_bound, memory_order_relaxed);
    uint64_t collected = atomic_load_explicit(&server->collected_bytes, memory_order_relaxed);
    return len >= LEAST_BYTES && collected > memory / MEMORY_SHARE;
}

static size_t copy_part(const struct iovec *vectors, int count, const char *from)
{
    size_t len = 0;
    for (int i = 0; i < count; i++) {
        memcpy(vectors[i].iov_base, from + len, vectors[i].iov_len);
        len += vectors[i].iov_len;
    }
    return len;
}

/* Writes a piece at once; or, where memory is short, part by part, each written before the next. */
static enum store_result put_piece(struct reply_spill *spill, const char *piece)
{
    while (spill->part < STORE_READER_PIECE) {
        const struct iovec *vectors;
        int count;
        enum store_result result = store_upload_space(spill->upload, &vectors, &count);
        if (result != STORE_OK)
            return result;
        size_t len = copy_part(vectors, count, piece + spill->part);
        store_upload_filled(spill->upload, len);
        spill->part += len;
    }
    spill->part = 0;
    return STORE_OK;
}

/* Writes as many whole pieces as there are and as the device takes now. */
static enum store_result put_pieces(struct reply_spill *spill, struct resp_writer *out)
{
    enum store_result result = STORE_OK;
    size_t at = 0;
    while (out->len - at >= STORE_READER_PIECE) {
        result = put_piece(spill, out->data + at);
        if (result != STORE_OK)
            break;
        at += STORE_READER_PIECE;
    }
    memmove(out->data, out->data + at, out->len - at);
    out->len -= at;
    spill->bytes += at;
    return result;
}

enum store_result reply_spill_step(struct call *call, struct reply_spill *spill,
                                   struct resp_writer *out)
{
    struct request *request = request_of_call(call);
    struct conn *conn = request->conn;
    if (out->failed)
        return STORE_NO_MEMORY;
    if (!may_spill(call, request) || !is_due(call, spill, out->len))
        return store_step(call->txn);
    if (conn->transport == NULL || conn->kill)
        return STORE_CANCELLED;
    enum store_result result = STORE_OK;
    if (spill->upload == NULL)
        result = call_upload_begin(call, STORE_UPLOAD_OPEN, &spill->upload);
    if (result == STORE_OK)
        result = put_pieces(spill, out);
    if (result == STORE_WAIT)
        return store_suspend(call->txn);
    spill->is_over = result != STORE_OK;
    return store_step(call->txn);
}

enum store_result reply_spill_reply(struct call *call, struct reply_spill *spill,
                                    struct resp_writer *out)
{
    if (out->failed)
        return STORE_NO_MEMORY;
    if (spill->part > 0 && put_pieces(spill, out) == STORE_WAIT)
        return store_suspend(call->txn);
    if (spill->bytes > 0) {
        enum store_result result = store_upload_finish(spill->upload);
        if (result == STORE_WAIT)
            return store_suspend(call->txn);
        if (result == STORE_OK)
            result = call_reply_upload(call, spill->upload);
        if (result != STORE_OK)
            return result;
    }
    /* A write runs again if it has to wait after its reply, and needs the bytes once more. */
    if ((call->command->flags & CMD_READONLY) != 0 && call->outer == NULL)
        resp_move(call->reply, out);
    else
        resp_raw(call->reply, out->data, out->len);
    return STORE_OK;
}

void reply_spill_free(struct reply_spill *spill)
{
    if (spill->upload != NULL)
        store_upload_close(spill->upload);
    spill->upload = NULL;
}
