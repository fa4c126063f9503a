/*
 * DEBUG DIGEST and DIGEST-VALUE: whether two stores, or two values, hold the same.
 */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_debug.h"
#include "member_tree.h"
#include "packed.h"
#include "server.h"

#define DIGEST_LANES 3 /* 160 bits are shown */
#define DIGEST_PIECE (64 * 1024)
#define DIGEST_STEP 128 /* index entries */

struct digest {
    uint64_t lanes[DIGEST_LANES];
};

static void absorb_word(struct digest *digest, uint64_t word)
{
    static const uint64_t factors[DIGEST_LANES] = {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f,
                                                   0xd6e8feb86659fd93};
    for (int i = 0; i < DIGEST_LANES; i++) {
        uint64_t lane = (digest->lanes[i] ^ word) * factors[i];
        digest->lanes[i] = lane ^ (lane >> 29);
    }
}

/* In words; only the last piece of a text may have a length that is not a multiple of 8. */
static void absorb(struct digest *digest, const char *bytes, size_t len)
{
    for (size_t at = 0; at < len; at += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, len - at < 8 ? len - at : 8);
        absorb_word(digest, word);
    }
}

static struct digest digest_begin(uint64_t purpose)
{
    struct digest digest = {{1, 2, 3}};
    absorb_word(&digest, purpose);
    return digest;
}

/* The order of keys is nobody's business: what is found of each is added up. */
static void add(struct digest *sum, const struct digest *digest)
{
    for (int i = 0; i < DIGEST_LANES; i++)
        sum->lanes[i] += digest->lanes[i];
}

/* ---- values ---- */

static struct digest element_digest(struct resp_slice name, struct resp_slice value)
{
    struct digest digest = digest_begin(name.len);
    absorb(&digest, name.data, name.len);
    absorb_word(&digest, value.len);
    absorb(&digest, value.data, value.len);
    return digest;
}

static enum store_result digest_bytes(struct store_txn *txn, const struct store_item *item,
                                      struct digest *digest)
{
    absorb_word(digest, item->length);
    if (!item->large) {
        absorb(digest, item->bytes, item->length);
        return STORE_OK;
    }
    char *piece = malloc(DIGEST_PIECE);
    enum store_result result = piece == NULL ? STORE_NO_MEMORY : STORE_OK;
    for (uint64_t at = 0; at < item->length && result == STORE_OK; at += DIGEST_PIECE) {
        uint64_t left = item->length - at;
        size_t len = left < DIGEST_PIECE ? left : DIGEST_PIECE;
        result = store_read(txn, item, at, len, piece);
        if (result == STORE_OK)
            absorb(digest, piece, len);
    }
    free(piece);
    return result;
}

/* Lists come in their order; of the other collections what is found of each element is added up,
 * so that it is the same however they are kept. */
static void add_element(struct digest *digest, enum item_type type, struct resp_slice name,
                        struct resp_slice value)
{
    struct digest element = element_digest(name, value);
    if (type != TYPE_LIST)
        add(digest, &element);
    else
        for (int i = 0; i < DIGEST_LANES; i++)
            absorb_word(digest, element.lanes[i]);
}

static enum store_result digest_packed(const struct store_item *item, struct digest *digest)
{
    enum item_type type = item_type(item);
    bool has_values = type == TYPE_HASH || type == TYPE_ZSET;
    struct packed packed;
    struct packed_entry entry = {.at = 0};
    if (item->large || !packed_open(&packed, item->bytes, item->length))
        return STORE_DAMAGED;
    while (packed_next(&packed, &entry)) {
        struct resp_slice name = entry.slice, value = {"", 0};
        if (has_values && packed_next(&packed, &entry))
            value = entry.slice;
        add_element(digest, type, name, value);
    }
    return STORE_OK;
}

static enum store_result digest_entry(struct call *call, struct store_cursor *cursor,
                                      enum item_type type, struct digest *digest)
{
    struct resp_slice value = {"", 0};
    enum store_result result;
    if (type == TYPE_LIST) {
        struct store_entry entry;
        result = store_tree_get(cursor, &entry);
        const char *bytes = entry.value.bytes;
        if (result == STORE_OK && entry.value.large)
            result = store_load(call->txn, &entry.value, &bytes);
        if (result == STORE_OK)
            add_element(digest, type, (struct resp_slice){bytes, entry.value.length}, value);
        return result;
    }
    struct member member;
    result = member_read(call, cursor, &member);
    if (result == STORE_OK)
        result = member_value(call, &member, &value);
    if (result == STORE_OK)
        add_element(digest, type, member.name, value);
    return result;
}

/* Of the tree in which the members are found by their names. */
static enum store_result digest_tree(struct call *call, const struct store_key *key,
                                     const struct store_item *item, struct digest *digest)
{
    struct store_tree *tree;
    struct store_cursor cursor;
    enum store_result result =
        store_tree_open(call->txn, key, item, item_type(item) == TYPE_ZSET ? 1 : 0, &tree);
    if (result == STORE_OK)
        result = store_tree_seek_rank(tree, 0, &cursor);
    while (result == STORE_OK) {
        result = digest_entry(call, &cursor, item_type(item), digest);
        if (result == STORE_OK)
            result = store_tree_next(&cursor);
    }
    return result == STORE_ABSENT ? STORE_OK : result;
}

/* Of a value, and of whether it will expire. */
static enum store_result digest_value(struct call *call, const struct store_key *key,
                                      const struct store_item *item, struct digest *digest)
{
    *digest = digest_begin(item_type(item));
    absorb_word(digest, item->expire_ms != STORE_NO_EXPIRY);
    if (item_type(item) == TYPE_STRING)
        return digest_bytes(call->txn, item, digest);
    return item->trees > 0 ? digest_tree(call, key, item, digest) : digest_packed(item, digest);
}

/* ---- DIGEST, DIGEST-VALUE ---- */

static void reply_digest(struct call *call, const struct digest *digest)
{
    char text[41];
    snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64 "%08" PRIx32, digest->lanes[0],
             digest->lanes[1], (uint32_t)(digest->lanes[2] >> 32));
    resp_status(call->reply, text);
}

/* Kept over reruns, and changed only by whole steps. */
struct digest_walk {
    uint32_t db;
    uint64_t cursor;
    struct digest sum;
};

struct digest_step {
    struct call *call;
    uint32_t db;
    struct digest sum;
    enum store_result result;
};

/* A key met in a scan; its bytes and its struct must live as long as the run. */
static enum store_result digest_found(struct call *call, uint32_t db, struct resp_slice name,
                                      const struct store_item *item, struct digest *digest)
{
    struct store_key *key = store_alloc(call->txn, sizeof *key + name.len);
    if (key == NULL)
        return STORE_NO_MEMORY;
    char *copy = (char *)(key + 1);
    memcpy(copy, name.data, name.len);
    store_key(call->server->store, key, db, copy, name.len, STORE_SHARED);
    return digest_value(call, key, item, digest);
}

static void visit_key(void *arg, const char *key, uint32_t key_len, const struct store_item *item)
{
    struct digest_step *step = arg;
    struct digest value, digest = digest_begin(step->db);
    if (step->result != STORE_OK)
        return;
    step->result =
        digest_found(step->call, step->db, (struct resp_slice){key, key_len}, item, &value);
    absorb_word(&digest, key_len);
    absorb(&digest, key, key_len);
    for (int i = 0; i < DIGEST_LANES; i++)
        absorb_word(&digest, value.lanes[i]);
    add(&step->sum, &digest);
}

static enum store_result digest_step(struct call *call, struct digest_walk *walk)
{
    uint64_t cursor = walk->cursor;
    uint32_t budget = DIGEST_STEP;
    struct digest_step step = {.call = call, .db = walk->db};
    enum store_result result = store_scan(call->txn, walk->db, &cursor, &budget, visit_key, &step);
    if (result == STORE_OK)
        result = step.result;
    if (result != STORE_OK)
        return result;
    add(&walk->sum, &step.sum);
    walk->cursor = cursor;
    walk->db += cursor == 0;
    return STORE_OK;
}

enum store_result cmd_debug_digest(struct call *call)
{
    if (!debug_is_allowed(call))
        return STORE_OK;
    if (call->progress == NULL) {
        call->progress = calloc(1, sizeof(struct digest_walk));
        call->progress_free = free;
    }
    struct digest_walk *walk = call->progress;
    if (walk == NULL)
        return STORE_NO_MEMORY;
    while (walk->db < STORE_DB_COUNT) {
        enum store_result result = digest_step(call, walk);
        if (result != STORE_OK)
            return result;
    }
    reply_digest(call, &walk->sum);
    return STORE_OK;
}

enum store_result cmd_debug_digest_value(struct call *call)
{
    if (!debug_is_allowed(call))
        return STORE_OK;
    resp_array(call->reply, call->key_count);
    for (uint32_t i = 0; i < call->key_count; i++) {
        struct store_item item;
        struct digest digest = {{0}};
        enum store_result result = store_get(call->txn, &call->keys[i], &item);
        if (result == STORE_OK)
            result = digest_value(call, &call->keys[i], &item, &digest);
        if (result != STORE_OK && result != STORE_ABSENT)
            return result;
        reply_digest(call, &digest);
    }
    return STORE_OK;
}
