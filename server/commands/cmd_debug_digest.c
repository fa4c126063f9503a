/*
 * DEBUG DIGEST and DIGEST-VALUE: whether two stores, or two values, have the same contents. Both
 * work in steps while they hold their key locks.
 *
 * Invariant: whenever a run may end, the state in call->progress covers exactly the data before
 * the position that it records.
 */
#include "server/commands/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/commands/cmd_debug.h"
#include "server/types/member_tree.h"
#include "server/types/members_expiry.h"
#include "server/types/packed.h"
#include "server/types/stream_group.h"
#include "server/types/string_walk.h"
#include "server/core/server.h"

#define DIGEST_LANES 3 /* of which 160 bits are shown */
#define DIGEST_PIECE (64 * 1024)
#define DIGEST_SCAN 64u      /* index entries per scan */
#define DIGEST_STEP 2048     /* elements */
#define DIGEST_PIECE_COST 64 /* counted in elements */
#define DIGEST_LIST_COST 8   /* of finding a group or a consumer: likewise */
#define DIGEST_ELEMENT 1024  /* bytes of a long element that count as another one */

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

/* Hashes word by word; only the last piece of a text may have a length that is not a multiple of 8.
 */
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

/* Keys have no order, so their digests are added. */
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

/* The progress in one value. */
struct value_walk {
    bool has_begun;
    uint64_t at; /* in bytes or elements */
    struct digest digest;
    uint64_t group, consumer; /* of a stream, and the first of the consumer's pending entries */
    struct stream_id pending;
};

static enum store_result spend(struct call *call, int64_t cost, int64_t *budget)
{
    *budget -= cost;
    return *budget > 0 ? STORE_OK : store_step(call->txn);
}

static enum store_result digest_large(struct call *call, const struct store_item *item,
                                      struct value_walk *walk, int64_t *budget)
{
    char *piece = malloc(DIGEST_PIECE);
    enum store_result result = piece == NULL ? STORE_NO_MEMORY : STORE_OK;
    while (walk->at < item->length && result == STORE_OK) {
        uint64_t left = item->length - walk->at;
        size_t len = left < DIGEST_PIECE ? left : DIGEST_PIECE;
        result = store_read(call->txn, item, walk->at, len, piece);
        if (result != STORE_OK)
            break;
        absorb(&walk->digest, piece, len);
        walk->at += len;
        result = spend(call, DIGEST_PIECE_COST, budget);
    }
    free(piece);
    return result;
}

/* The elements of a list are hashed in order. In other collections the digests of the elements are
 * added, so the result does not depend on how they are stored. */
static void add_element(struct digest *digest, enum item_type type, struct resp_slice name,
                        struct resp_slice value, int64_t expire_ms)
{
    struct digest element = element_digest(name, value);
    if (expire_ms != STORE_NO_EXPIRY)
        absorb_word(&element, (uint64_t)expire_ms);
    if (type != TYPE_LIST)
        add(digest, &element);
    else
        for (int i = 0; i < DIGEST_LANES; i++)
            absorb_word(digest, element.lanes[i]);
}

static bool is_over(const struct call *call, int64_t expire_ms)
{
    return expire_ms != STORE_NO_EXPIRY && expire_ms < store_now(call->txn);
}

/* A hash of which fields may expire. */
static enum store_result digest_timed(struct call *call, const struct store_key *key,
                                      const struct store_item *item, struct digest *digest)
{
    struct members hash;
    struct packed_entry entry = {.at = 0};
    enum store_result result = members_open(call, key, item, &hash);
    while (result == STORE_OK && packed_next(&hash.packed, &entry)) {
        struct resp_slice name = entry.slice;
        int64_t expire_ms = members_packed_expiry(&hash, entry);
        packed_next(&hash.packed, &entry);
        if (!is_over(call, expire_ms))
            add_element(digest, TYPE_HASH, name, entry.slice, expire_ms);
        packed_next(&hash.packed, &entry);
    }
    return result;
}

static enum store_result digest_packed(struct call *call, const struct store_key *key,
                                       const struct store_item *item, struct digest *digest)
{
    enum item_type type = item_type(item);
    bool has_values = type == TYPE_HASH || type == TYPE_ZSET;
    struct packed packed;
    struct packed_entry entry = {.at = 0};
    if (type == TYPE_HASH && (item->type & ITEM_TIMED) != 0)
        return digest_timed(call, key, item, digest);
    if (item->large || !packed_open(&packed, item->bytes, item->length))
        return STORE_DAMAGED;
    while (packed_next(&packed, &entry)) {
        struct resp_slice name = entry.slice, value = {"", 0};
        if (has_values && packed_next(&packed, &entry))
            value = entry.slice;
        add_element(digest, type, name, value, STORE_NO_EXPIRY);
    }
    return STORE_OK;
}

/* An element of a list; or an entry of a stream, with its ID. */
static enum store_result digest_raw(struct call *call, struct store_cursor *cursor,
                                    enum item_type type, struct digest *digest, int64_t *budget)
{
    struct store_entry entry;
    char key[STORE_TREE_KEY_MAX];
    enum store_result result = store_tree_get(cursor, &entry);
    if (result != STORE_OK)
        return result;
    memcpy(key, entry.key, entry.key_len); /* the value may have to be read */
    struct resp_slice name = {key, entry.key_len}, value = {entry.value.bytes, entry.value.length};
    if (entry.value.large)
        result = string_view(call, &entry.value, 0, value.len, &value.data);
    if (result != STORE_OK)
        return result;
    if (type == TYPE_LIST)
        add_element(digest, type, value, (struct resp_slice){"", 0}, STORE_NO_EXPIRY);
    else
        add_element(digest, type, name, value, STORE_NO_EXPIRY);
    *budget -= (int64_t)(value.len / DIGEST_ELEMENT);
    return STORE_OK;
}

static enum store_result digest_entry(struct call *call, struct store_cursor *cursor,
                                      enum item_type type, struct digest *digest, int64_t *budget)
{
    struct resp_slice value = {"", 0};
    if (type == TYPE_LIST || type == TYPE_STREAM)
        return digest_raw(call, cursor, type, digest, budget);
    struct member member;
    enum store_result result = member_read(call, cursor, &member);
    if (result == STORE_OK)
        result = member_value(call, &member, &value);
    *budget -= (int64_t)(value.len / DIGEST_ELEMENT);
    if (result == STORE_OK && !is_over(call, member.expire_ms))
        add_element(digest, type, member.name, value, member.expire_ms);
    return result;
}

/* For the tree that finds members by name. */
static enum store_result digest_tree(struct call *call, const struct store_key *key,
                                     const struct store_item *item, struct value_walk *walk,
                                     int64_t *budget)
{
    struct store_tree *tree;
    struct store_cursor cursor;
    enum store_result result =
        store_tree_open(call->txn, key, item, item_type(item) == TYPE_ZSET ? 1 : 0, &tree);
    if (result == STORE_OK)
        result = store_tree_seek_rank(tree, walk->at, &cursor);
    while (result == STORE_OK) {
        result = digest_entry(call, &cursor, item_type(item), &walk->digest, budget);
        if (result != STORE_OK)
            break;
        walk->at++;
        if (call->outer == NULL)
            store_drop_loaded(call->txn);
        result = spend(call, 1, budget);
        if (result == STORE_OK)
            result = store_tree_next(&cursor);
    }
    return result == STORE_ABSENT ? STORE_OK : result;
}

/* ---- streams ---- */

/* Groups and consumers go in by their names: their numbers differ between equal streams. */
static struct digest absorb_name(struct digest digest, struct resp_slice name)
{
    absorb_word(&digest, name.len);
    absorb(&digest, name.data, name.len);
    return digest;
}

static void add_words(struct digest *sum, struct digest named, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        absorb_word(&named, words[i]);
    add(sum, &named);
}

static void add_pending(struct digest *sum, struct digest named,
                        const struct stream_pending *pending)
{
    const uint64_t words[] = {pending->id.ms, pending->id.seq, (uint64_t)pending->delivered_ms,
                              pending->count};
    add_words(sum, named, words, sizeof words / sizeof words[0]);
}

/* The current consumer, whose pending entries have been added; the next one follows. */
static void add_consumer(struct value_walk *walk, struct digest named,
                         const struct stream_consumer *consumer)
{
    const uint64_t words[] = {(uint64_t)consumer->seen_ms, (uint64_t)consumer->active_ms};
    add_words(&walk->digest, named, words, sizeof words / sizeof words[0]);
    walk->consumer++;
    walk->pending = STREAM_ID_MIN;
}

static void add_group(struct value_walk *walk, struct digest named,
                      const struct stream_group *group)
{
    const uint64_t words[] = {group->last.ms, group->last.seq, group->read};
    add_words(&walk->digest, named, words, sizeof words / sizeof words[0]);
    walk->group++;
    walk->consumer = 0;
}

static enum store_result digest_consumer(struct call *call, const struct stream_group *group,
                                         struct digest named, struct value_walk *walk,
                                         int64_t *budget)
{
    struct stream_consumer consumer;
    struct stream_pending pending;
    enum store_result result = stream_consumer_at(group, walk->consumer, &consumer);
    if (result != STORE_OK)
        return result;
    named = absorb_name(named, consumer.name);
    do {
        result = stream_pending_seek(group, &consumer, walk->pending, &pending);
        if (result != STORE_OK)
            break;
        add_pending(&walk->digest, named, &pending);
        walk->pending = pending.id;
        if (!stream_id_increment(&walk->pending)) {
            result = STORE_ABSENT;
            break;
        }
        result = spend(call, 1, budget);
    } while (result == STORE_OK);
    if (result != STORE_ABSENT)
        return result;
    add_consumer(walk, named, &consumer);
    return spend(call, DIGEST_LIST_COST, budget);
}

static enum store_result digest_group(struct call *call, const struct stream_group *group,
                                      struct value_walk *walk, int64_t *budget)
{
    struct digest named = absorb_name(digest_begin(TYPE_STREAM), group->name);
    uint64_t count;
    enum store_result result = stream_consumer_count(group, &count);
    while (result == STORE_OK && walk->consumer < count)
        result = digest_consumer(call, group, named, walk, budget);
    if (result != STORE_OK)
        return result;
    add_group(walk, named, group);
    return spend(call, DIGEST_LIST_COST, budget);
}

static enum store_result digest_groups(struct call *call, struct stream *stream,
                                       struct value_walk *walk, int64_t *budget)
{
    struct stream_group group;
    uint64_t count;
    enum store_result result = stream_group_count(stream, &count);
    while (result == STORE_OK && walk->group < count) {
        result = stream_group_at(stream, walk->group, &group);
        if (result == STORE_OK)
            result = digest_group(call, &group, walk, budget);
    }
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

/* What a stream has besides its entries; the head comes last, in one run. */
static enum store_result digest_stream_state(struct call *call, const struct store_key *key,
                                             const struct store_item *item, struct value_walk *walk,
                                             int64_t *budget)
{
    struct stream stream;
    enum store_result result = stream_open(call, key, item, &stream);
    if (result == STORE_OK)
        result = digest_groups(call, &stream, walk, budget);
    if (result == STORE_OK)
        result = stream_load_head(&stream);
    if (result != STORE_OK)
        return result;
    const struct stream_head *head = &stream.head;
    const uint64_t words[] = {head->last.ms, head->last.seq, head->max_deleted.ms,
                              head->max_deleted.seq, head->added};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        absorb_word(&walk->digest, words[i]);
    return STORE_OK;
}

/* For a value, and whether it will expire. */
static enum store_result digest_value(struct call *call, const struct store_key *key,
                                      const struct store_item *item, struct value_walk *walk,
                                      int64_t *budget)
{
    if (!walk->has_begun) {
        walk->digest = digest_begin(item_type(item));
        absorb_word(&walk->digest, item->expire_ms != STORE_NO_EXPIRY);
        if (item_type(item) == TYPE_STRING)
            absorb_word(&walk->digest, item->length);
        walk->has_begun = true;
    }
    if (item->trees > 0) {
        enum store_result result = digest_tree(call, key, item, walk, budget);
        return result == STORE_OK && item_type(item) == TYPE_STREAM
                   ? digest_stream_state(call, key, item, walk, budget)
                   : result;
    }
    if (item->large)
        return digest_large(call, item, walk, budget);
    if (item_type(item) != TYPE_STRING)
        return digest_packed(call, key, item, &walk->digest);
    absorb(&walk->digest, item->bytes, item->length);
    return STORE_OK;
}

/* ---- DIGEST, DIGEST-VALUE ---- */

static void reply_digest(struct call *call, const struct digest *digest)
{
    char text[41];
    snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64 "%08" PRIx32, digest->lanes[0],
             digest->lanes[1], (uint32_t)(digest->lanes[2] >> 32));
    resp_status(call->reply, text);
}

struct digest_walk {
    uint32_t db;
    uint64_t cursor;
    uint32_t key_count; /* keys from the cursor on that are done */
    struct digest sum;
    struct value_walk value; /* of the next key */
};

struct digest_step {
    struct call *call;
    struct digest_walk *walk;
    uint32_t met; /* keys met by this scan */
    int64_t *budget;
    enum store_result result;
};

/* Handles a key met in a scan; its bytes and its struct must live as long as the run. */
static enum store_result digest_found(struct call *call, struct digest_walk *walk,
                                      struct resp_slice name, const struct store_item *item,
                                      int64_t *budget)
{
    struct store_key *key = store_alloc(call->txn, sizeof *key + name.len);
    if (key == NULL)
        return STORE_NO_MEMORY;
    char *copy = (char *)(key + 1);
    memcpy(copy, name.data, name.len);
    store_key(call->server->store, key, walk->db, copy, name.len, STORE_SHARED);
    return digest_value(call, key, item, &walk->value, budget);
}

static void visit_key(void *arg, const char *key, uint32_t key_len, const struct store_item *item)
{
    struct digest_step *step = arg;
    struct digest_walk *walk = step->walk;
    if (step->result != STORE_OK || step->met++ < walk->key_count)
        return;
    step->result =
        digest_found(step->call, walk, (struct resp_slice){key, key_len}, item, step->budget);
    if (step->result != STORE_OK)
        return;
    struct digest digest = digest_begin(walk->db);
    absorb_word(&digest, key_len);
    absorb(&digest, key, key_len);
    for (int i = 0; i < DIGEST_LANES; i++)
        absorb_word(&digest, walk->value.digest.lanes[i]);
    add(&walk->sum, &digest);
    walk->value = (struct value_walk){.has_begun = false};
    walk->key_count++;
}

static enum store_result digest_scan(struct call *call, struct digest_walk *walk, int64_t *budget)
{
    uint64_t cursor = walk->cursor;
    uint32_t entries = DIGEST_SCAN;
    struct digest_step step = {.call = call, .walk = walk, .budget = budget};
    enum store_result result = store_scan(call->txn, walk->db, &cursor, &entries, visit_key, &step);
    if (result == STORE_OK)
        result = step.result;
    if (result != STORE_OK)
        return result;
    walk->cursor = cursor;
    walk->key_count = 0;
    walk->db += cursor == 0;
    return spend(call, DIGEST_SCAN, budget);
}

enum store_result cmd_debug_digest(struct call *call)
{
    if (!debug_is_allowed(call))
        return STORE_OK;
    if (call->progress == NULL) {
        call->progress = calloc(1, sizeof(struct digest_walk));
        call->progress_free = free;
    }
    int64_t budget = DIGEST_STEP;
    struct digest_walk *walk = call->progress;
    if (walk == NULL)
        return STORE_NO_MEMORY;
    while (walk->db < STORE_DB_COUNT) {
        enum store_result result = digest_scan(call, walk, &budget);
        if (result != STORE_OK)
            return result;
    }
    reply_digest(call, &walk->sum);
    return STORE_OK;
}

struct named_walk {
    uint32_t done; /* keys */
    struct value_walk values[];
};

static enum store_result digest_named(struct call *call, struct named_walk *walk, int64_t *budget)
{
    const struct store_key *key = &call->keys[walk->done];
    struct store_item item;
    enum store_result result = store_get(call->txn, key, &item);
    if (result == STORE_OK)
        result = digest_value(call, key, &item, &walk->values[walk->done], budget);
    return result == STORE_ABSENT ? STORE_OK : result;
}

enum store_result cmd_debug_digest_value(struct call *call)
{
    if (!debug_is_allowed(call))
        return STORE_OK;
    if (call->progress == NULL) {
        call->progress =
            calloc(1, sizeof(struct named_walk) + call->key_count * sizeof(struct value_walk));
        call->progress_free = free;
    }
    int64_t budget = DIGEST_STEP;
    struct named_walk *walk = call->progress;
    if (walk == NULL)
        return STORE_NO_MEMORY;
    for (; walk->done < call->key_count; walk->done++) {
        enum store_result result = digest_named(call, walk, &budget);
        if (result != STORE_OK)
            return result;
    }
    resp_array(call->reply, call->key_count);
    for (uint32_t i = 0; i < call->key_count; i++)
        reply_digest(call, &walk->values[i].digest);
    return STORE_OK;
}
