#include "tests/storage/sender.h"

#include <stdlib.h>
#include <string.h>

static void on_ready(void *arg)
{
    struct sender *sender = arg;
    sender->is_woken = true;
}

struct sender *sender_new(struct rig *rig, const char *key, size_t key_len, struct blob *value)
{
    struct sender *sender = calloc(1, sizeof *sender);
    must(sender, "out of memory");
    sender->rig = rig;
    sender->value = value;
    sender->name = malloc(key_len);
    must(sender->name, "out of memory");
    memcpy(sender->name, key, key_len);
    store_key(rig->store, &sender->key, 0, sender->name, key_len, STORE_EXCLUSIVE);
    enum store_result result =
        store_upload_begin(rig->workers[0], value->len, on_ready, sender, &sender->upload);
    must(result == STORE_OK, "begin: %d", result);
    return sender;
}

void sender_free(struct sender *sender)
{
    store_upload_close(sender->upload);
    blob_unref(sender->value);
    free(sender->name);
    free(sender);
}

enum store_result sender_send(struct sender *sender, size_t most)
{
    const struct iovec *vectors;
    int count;
    enum store_result result = store_upload_space(sender->upload, &vectors, &count);
    if (result != STORE_OK)
        return result;
    size_t sent = 0;
    for (int i = 0; i < count && sent < most; i++) {
        size_t len = vectors[i].iov_len < most - sent ? vectors[i].iov_len : most - sent;
        memcpy(vectors[i].iov_base, sender->value->bytes + sender->sent + sent, len);
        sent += len;
    }
    must(sent > 0, "there is space, but none");
    store_upload_filled(sender->upload, sent);
    sender->sent += sent;
    return STORE_OK;
}

void sender_await(struct sender *sender)
{
    for (uint32_t rounds = 0; !sender->is_woken; rounds++) {
        must(rounds < 20000, "nobody wakes it");
        rig_round(sender->rig);
    }
    sender->is_woken = false;
}

enum store_result sender_send_until(struct sender *sender, struct rng *rng, uint64_t until)
{
    while (sender->sent < until) {
        uint64_t left = until - sender->sent;
        uint32_t piece = rng ? 1 + rng_below(rng, 50000) : STORE_READER_PIECE;
        enum store_result result = sender_send(sender, piece < left ? piece : left);
        if (result == STORE_WAIT)
            sender_await(sender);
        else if (result != STORE_OK)
            return result;
    }
    return STORE_OK;
}

enum store_result sender_run_put(struct store_txn *txn, struct store_request *request)
{
    struct sender *sender = (struct sender *)request;
    return store_put_upload(txn, &sender->key, 7, sender->upload, STORE_NO_EXPIRY);
}

void sender_put_done(struct store_request *request, enum store_result result)
{
    struct sender *sender = (struct sender *)request;
    sender->result = result;
    sender->is_done = true;
}

enum store_result sender_put(struct sender *sender)
{
    enum store_result result;
    while ((result = store_upload_finish(sender->upload)) == STORE_WAIT)
        sender_await(sender);
    if (result != STORE_OK)
        return result;
    sender->request = (struct store_request){.run = sender_run_put,
                                             .done = sender_put_done,
                                             .keys = &sender->key,
                                             .key_count = 1,
                                             .now_ms = 1000};
    sender->is_done = false;
    result = store_execute(sender->rig->workers[0], &sender->request);
    while (result == STORE_WAIT && !sender->is_done)
        rig_round(sender->rig);
    return result == STORE_WAIT ? sender->result : result;
}
