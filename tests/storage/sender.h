/*
 * A client of store_upload: sends a value piece by piece, puts it under a key, or gives up.
 */
#ifndef VELLUM_TEST_STORAGE_SENDER_H
#define VELLUM_TEST_STORAGE_SENDER_H

#include "tests/storage/harness.h"

struct sender {
    struct store_request request; /* puts the value */
    struct rig *rig;
    struct store_key key;
    char *name;
    struct blob *value;
    struct store_upload *upload;
    uint64_t sent;
    bool is_woken, is_done;
    enum store_result result;
};

/* To database 0; `value` is taken over. */
struct sender *sender_new(struct rig *rig, const char *key, size_t key_len, struct blob *value);
void sender_free(struct sender *sender);
/* At most `most` bytes in one go. STORE_OK: some were taken. */
enum store_result sender_send(struct sender *sender, size_t most);
/* Up to `until` bytes, in pieces of random lengths unless rng is NULL. */
enum store_result sender_send_until(struct sender *sender, struct rng *rng, uint64_t until);
void sender_await(struct sender *sender); /* after STORE_WAIT */
/* What was sent becomes the key's value. */
enum store_result sender_put(struct sender *sender);
/* What its request does, for requests that do more. */
enum store_result sender_run_put(struct store_txn *txn, struct store_request *request);
void sender_put_done(struct store_request *request, enum store_result result);

#endif
