#include "tests/model/model_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- uploads: gathered in memory, with waits as a device would have them ---- */

struct store_upload {
    struct store_upload *next; /* of its worker's waiting ones */
    struct store_worker *worker;
    struct value *value;
    uint64_t filled;
    bool is_open; /* its value grows */
    bool waiting, has_waited, is_finished;
    void (*ready)(void *arg);
    void *arg;
    struct iovec vectors[2];
};

enum store_result store_upload_begin(struct store_worker *worker, uint64_t length,
                                     void (*ready)(void *arg), void *arg,
                                     struct store_upload **upload)
{
    bool is_open = length == STORE_UPLOAD_OPEN;
    if (length > STORE_VALUE_MAX && !is_open)
        return STORE_TOO_LARGE;
    struct store_upload *begun = model_alloc(sizeof *begun);
    begun->worker = worker;
    begun->is_open = is_open;
    begun->value = value_new(is_open ? STORE_READER_PIECE : length);
    begun->ready = ready;
    begun->arg = arg;
    *upload = begun;
    return STORE_OK;
}

static bool waits(struct store_upload *upload)
{
    struct store_worker *worker = upload->worker;
    if (upload->waiting)
        return true;
    upload->waiting =
        !upload->has_waited && model_random(&worker->random) % 1000 < worker->store->wait_per_mille;
    upload->has_waited = false;
    if (upload->waiting) {
        upload->next = worker->waiting_uploads;
        worker->waiting_uploads = upload;
        worker_signal(worker);
    }
    return upload->waiting;
}

void model_wake_uploads(struct store_worker *worker)
{
    struct store_upload *upload, *next = worker->waiting_uploads;
    worker->waiting_uploads = NULL;
    while ((upload = next) != NULL) {
        next = upload->next;
        upload->waiting = false;
        upload->has_waited = true;
        upload->ready(upload->arg);
    }
}

static void grow(struct store_upload *upload)
{
    struct value *longer = value_new(2 * upload->value->len);
    memcpy(longer->bytes, upload->value->bytes, upload->filled);
    value_unref(upload->value);
    upload->value = longer;
}

/* Two spans with an edge that moves, as between frames. */
enum store_result store_upload_space(struct store_upload *upload, const struct iovec **vectors,
                                     int *count)
{
    if (upload->is_open && upload->filled == upload->value->len)
        grow(upload);
    uint64_t left = upload->value->len - upload->filled;
    assert(left > 0);
    bool is_begun = upload->filled % STORE_READER_PIECE != 0;
    if (!is_begun && waits(upload))
        return STORE_WAIT;
    size_t len = STORE_READER_PIECE - (size_t)(upload->filled % STORE_READER_PIECE);
    len = left < len ? (size_t)left : len;
    size_t first = len / 3;
    char *to = upload->value->bytes + upload->filled;
    upload->vectors[0] = (struct iovec){to, first > 0 ? first : len};
    upload->vectors[1] = (struct iovec){to + first, len - first};
    *vectors = upload->vectors;
    *count = first > 0 ? 2 : 1;
    return STORE_OK;
}

void store_upload_filled(struct store_upload *upload, size_t len)
{
    upload->filled += len;
    assert(upload->filled <= upload->value->len);
}

enum store_result store_upload_put(struct store_upload *upload, const char *bytes, size_t len)
{
    uint64_t left = upload->value->len - upload->filled;
    uint64_t whole = left < STORE_READER_PIECE ? left : STORE_READER_PIECE;
    assert(upload->filled % STORE_READER_PIECE == 0 && len <= whole && !upload->is_open);
    if (waits(upload))
        return STORE_WAIT;
    char *to = upload->value->bytes + upload->filled;
    memcpy(to, bytes, len);
    memset(to + len, 0, whole - len);
    upload->filled += whole;
    return STORE_OK;
}

enum store_result store_upload_finish(struct store_upload *upload)
{
    if (upload->is_open)
        upload->value->len = upload->filled;
    assert(upload->filled == upload->value->len);
    if (!upload->is_finished && waits(upload))
        return STORE_WAIT;
    upload->is_finished = true;
    return STORE_OK;
}

void store_upload_close(struct store_upload *upload)
{
    if (upload->waiting) {
        struct store_upload **link = &upload->worker->waiting_uploads;
        while (*link != upload)
            link = &(*link)->next;
        *link = upload->next;
    }
    value_unref(upload->value);
    free(upload);
}

enum store_result store_upload_read(struct store_worker *worker, struct store_upload *upload,
                                    uint64_t offset, struct store_reader **reader)
{
    assert(upload->is_finished);
    *reader = model_open_reader(worker, upload->value, offset);
    return STORE_OK;
}

enum store_result store_reader_open_upload(struct store_txn *txn, struct store_upload *upload,
                                           struct store_reader **reader)
{
    enum store_result result = store_upload_read(txn->worker, upload, 0, reader);
    if (result == STORE_OK)
        model_join_reader(txn, *reader);
    return result;
}

enum store_result store_put_upload(struct store_txn *txn, const struct store_key *key, uint8_t type,
                                   struct store_upload *upload, int64_t expire_ms)
{
    check_declared(txn, key, STORE_EXCLUSIVE);
    assert(upload->is_finished);
    if (key->len > STORE_KEY_MAX)
        return STORE_TOO_LARGE;
    txn_write(txn, key, type, value_ref(upload->value), expire_ms);
    return STORE_OK;
}
