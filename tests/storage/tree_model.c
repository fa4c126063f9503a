#include "tests/storage/tree_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/txn/engine.h"

#define ITEM_HEADS (sizeof(struct format_item) + sizeof(struct format_overflow_key))

enum tree_op_kind {
    OP_CREATE,
    OP_DELETE,
    OP_RENAME,
    OP_SET_TYPE,
    OP_EXPIRE,
    OP_WAKE,
    OP_ADD_TREE,
    OP_STRING, /* over it */
    OP_INSERT,
    OP_INSERT_TWIN, /* of the key at a rank, before it */
    OP_INSERT_AT,   /* a list's */
    OP_REMOVE_KEY,
    OP_REMOVE_AT,
    OP_REPLACE_AT,
    OP_REKEY_AT, /* longer or shorter, if the order allows */
    OP_WALK,
};

struct tree_op {
    enum tree_op_kind kind;
    uint32_t key, other, which;
    uint32_t random; /* a rank, modulo what is there */
    char entry_key[STORE_TREE_KEY_MAX];
    uint32_t entry_key_len;
    char *value;
    uint64_t value_seed;
    uint32_t value_len;
    uint64_t found; /* a digest of everything that was seen */
};

struct tree_batch {
    struct store_request request; /* first */
    struct store_key keys[TREE_KEYS];
    struct tree_op ops[TREE_OPS];
    uint32_t count;
    bool finished;
    enum store_result result;
};

static const char *const names[TREE_KEYS] = {"list", "set", "sorted", "fourth", "fifth", "sixth"};

/* ---- the model ---- */

void tree_model_init(struct tree_model *model, uint64_t seed)
{
    *model =
        (struct tree_model){.rng = {seed}, .target = 400, .overflow_percent = 2, .value_most = 200};
}

static void clear_collection(struct model_collection *collection)
{
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t j = 0; j < collection->tree[i].count; j++)
            free(collection->tree[i].at[j].key);
        free(collection->tree[i].at);
    }
    *collection = (struct model_collection){0};
}

void tree_model_free(struct tree_model *model)
{
    for (uint32_t i = 0; i < TREE_KEYS; i++)
        clear_collection(&model->collections[i]);
}

static struct model_entry *insert_entry(struct model_tree *tree, uint32_t at, const char *key,
                                        uint32_t key_len)
{
    if (tree->count == tree->capacity) {
        tree->capacity = tree->capacity ? 2 * tree->capacity : 64;
        tree->at = realloc(tree->at, tree->capacity * sizeof *tree->at);
        must(tree->at, "out of memory");
    }
    memmove(&tree->at[at + 1], &tree->at[at], (tree->count - at) * sizeof *tree->at);
    tree->count++;
    struct model_entry *entry = &tree->at[at];
    *entry = (struct model_entry){.key = malloc(key_len + 1), .key_len = key_len};
    must(entry->key, "out of memory");
    memcpy(entry->key, key, key_len);
    return entry;
}

static void remove_entry(struct model_tree *tree, uint32_t at)
{
    free(tree->at[at].key);
    tree->count--;
    memmove(&tree->at[at], &tree->at[at + 1], (tree->count - at) * sizeof *tree->at);
}

void tree_model_copy(struct tree_model *to, const struct tree_model *from)
{
    tree_model_free(to);
    for (uint32_t i = 0; i < TREE_KEYS; i++) {
        const struct model_collection *old = &from->collections[i];
        to->collections[i] = *old;
        for (uint32_t j = 0; j < 2; j++) {
            struct model_tree *tree = &to->collections[i].tree[j];
            *tree = (struct model_tree){0};
            for (uint32_t k = 0; k < old->tree[j].count; k++) {
                const struct model_entry *entry = &old->tree[j].at[k];
                struct model_entry *copy = insert_entry(tree, k, entry->key, entry->key_len);
                copy->value_seed = entry->value_seed;
                copy->value_len = entry->value_len;
            }
        }
    }
}

static int compare_keys(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

static uint32_t lower_bound(const struct model_tree *tree, const char *key, uint32_t len)
{
    uint32_t low = 0, high = tree->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (compare_keys(tree->at[middle].key, tree->at[middle].key_len, key, len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static char *make_value(uint64_t seed, uint32_t len)
{
    struct rng rng = {seed};
    char *value = malloc(len + 8);
    must(value, "out of memory");
    for (uint32_t i = 0; i < len; i += 8) {
        uint64_t word = rng_next(&rng);
        memcpy(value + i, &word, 8);
    }
    return value;
}

/* ---- digests ---- */

static uint64_t mix(uint64_t digest, uint64_t more)
{
    return (digest ^ more) * 0x9e3779b97f4a7c15ull + (digest >> 29);
}

static uint64_t mix_entry(uint64_t digest, uint64_t rank, const char *key, size_t key_len,
                          const char *value, size_t value_len)
{
    digest = mix(digest, rank);
    digest = mix(digest, format_checksum(key, key_len));
    return mix(digest, format_checksum(value, value_len));
}

static uint64_t mix_model(uint64_t digest, uint64_t rank, const struct model_entry *entry)
{
    char *value = make_value(entry->value_seed, entry->value_len);
    digest = mix_entry(digest, rank, entry->key, entry->key_len, value, entry->value_len);
    free(value);
    return digest;
}

static enum store_result mix_shown(struct store_txn *txn, uint64_t *digest, uint64_t rank,
                                   const struct store_entry *entry)
{
    const char *value;
    must(entry->value.large == (entry->value.length > FORMAT_ITEM_VALUE - ITEM_HEADS),
         "large says %d of %llu bytes", entry->value.large,
         (unsigned long long)entry->value.length);
    char key[STORE_TREE_KEY_MAX];
    memcpy(key, entry->key, entry->key_len);
    enum store_result result = store_load(txn, &entry->value, &value);
    if (result == STORE_OK)
        *digest = mix_entry(*digest, rank, key, entry->key_len, value, entry->value.length);
    return result;
}

static enum store_result mix_found(struct store_txn *txn, uint64_t *digest,
                                   struct store_cursor *cursor)
{
    struct store_entry entry;
    enum store_result result = store_tree_get(cursor, &entry);
    if (result == STORE_OK)
        return mix_shown(txn, digest, cursor->rank, &entry);
    if (result == STORE_ABSENT) {
        *digest = mix(*digest, 77);
        return STORE_OK;
    }
    return result;
}

#define REKEY_BYTES 8u

/* Another key for an entry: shorter or longer. Returns its length. */
static uint32_t other_key(const struct tree_op *op, const char *old, uint32_t old_len, char *key)
{
    memcpy(key, old, old_len);
    if (op->value_seed & 1 && old_len > 2 * REKEY_BYTES)
        return old_len - REKEY_BYTES;
    if (old_len + REKEY_BYTES > STORE_TREE_KEY_MAX)
        return old_len;
    memcpy(key + old_len, &op->value_seed, REKEY_BYTES);
    return old_len + REKEY_BYTES;
}

/* ---- operations on the store ---- */

/* Entries that lie together, as a walk over each of them would see them. */
static enum store_result read_some(struct store_txn *txn, struct tree_op *op,
                                   struct store_cursor *cursor, uint32_t most, uint32_t *read)
{
    struct store_entry entries[40];
    enum store_result result = store_tree_read(cursor, entries, most, read);
    if (result == STORE_ABSENT)
        op->found = mix(op->found, 77);
    if (result != STORE_OK)
        return result;
    must(*read > 0 && *read <= most, "%u entries read of %u", *read, most);
    for (uint32_t i = 0; i < *read && result == STORE_OK; i++)
        result = mix_shown(txn, &op->found, cursor->rank - *read + i, &entries[i]);
    return result;
}

static enum store_result run_walk(struct store_txn *txn, struct tree_op *op,
                                  struct store_tree *tree)
{
    struct store_cursor cursor;
    uint64_t count = store_tree_count(tree);
    enum store_result result = store_tree_seek_rank(tree, op->random % (count + 1), &cursor);
    uint32_t steps = op->value_len % 40, read = 1;
    bool back = op->value_len & 1, together = op->value_len & 2;
    for (uint32_t i = 0; i < steps && result == STORE_OK; i += read) {
        if (together && !back) {
            result = read_some(txn, op, &cursor, steps - i, &read);
            continue;
        }
        result = mix_found(txn, &op->found, &cursor);
        if (result == STORE_OK)
            result = back ? store_tree_prev(&cursor) : store_tree_next(&cursor);
    }
    return result == STORE_ABSENT ? STORE_OK : result;
}

/* A cursor that was only to find gets the rank that a search of its key tells. */
static enum store_result learn_rank(struct tree_op *op, struct store_tree *tree,
                                    struct store_cursor *cursor)
{
    struct store_cursor other;
    if (cursor->rank != STORE_RANK_UNKNOWN)
        return STORE_OK;
    enum store_result result = store_tree_seek(tree, op->entry_key, op->entry_key_len, &other);
    cursor->rank = other.rank;
    return result;
}

static enum store_result run_remove(struct store_txn *txn, struct tree_op *op,
                                    struct store_tree *tree, struct store_cursor *cursor)
{
    enum store_result result = store_tree_remove(cursor);
    if (result == STORE_OK)
        result = learn_rank(op, tree, cursor);
    return result == STORE_OK ? mix_found(txn, &op->found, cursor) : result;
}

/* Whether the entry at a rank, if there is one, leaves this key its place. */
static enum store_result is_beside(struct store_tree *tree, uint64_t rank, bool before,
                                   const char *key, uint32_t len, bool *fits)
{
    struct store_cursor cursor;
    struct store_entry entry;
    if (rank >= store_tree_count(tree))
        return STORE_OK;
    enum store_result result = store_tree_seek_rank(tree, rank, &cursor);
    if (result == STORE_OK)
        result = store_tree_get(&cursor, &entry);
    if (result != STORE_OK)
        return result;
    int order = compare_keys(entry.key, entry.key_len, key, len);
    *fits = *fits && (before ? order <= 0 : order >= 0);
    return STORE_OK;
}

static enum store_result run_rekey(struct tree_op *op, struct store_tree *tree,
                                   struct store_cursor *cursor)
{
    struct store_entry entry;
    char key[STORE_TREE_KEY_MAX];
    bool fits = true;
    enum store_result result = store_tree_get(cursor, &entry);
    if (result != STORE_OK)
        return result;
    uint32_t len = other_key(op, entry.key, entry.key_len, key);
    result = is_beside(tree, cursor->rank - 1, true, key, len, &fits);
    if (result == STORE_OK)
        result = is_beside(tree, cursor->rank + 1, false, key, len, &fits);
    return result == STORE_OK && fits ? store_tree_rekey(cursor, key, len) : result;
}

static enum store_result run_at(struct store_txn *txn, struct tree_op *op, struct store_tree *tree)
{
    struct store_cursor cursor;
    struct store_entry entry;
    uint64_t count = store_tree_count(tree);
    if (count == 0 && op->kind != OP_INSERT_AT)
        return STORE_OK;
    enum store_result result =
        store_tree_seek_rank(tree, op->random % (count + (op->kind == OP_INSERT_AT)), &cursor);
    if (result != STORE_OK)
        return result;
    if (op->kind == OP_INSERT_AT)
        result = store_tree_insert(&cursor, "", 0, op->value, op->value_len);
    else if (op->kind == OP_REMOVE_AT)
        return run_remove(txn, op, tree, &cursor);
    else if (op->kind == OP_REPLACE_AT)
        result = store_tree_replace(&cursor, op->value, op->value_len);
    else if (op->kind == OP_REKEY_AT)
        result = run_rekey(op, tree, &cursor);
    else {
        char key[STORE_TREE_KEY_MAX];
        result = store_tree_get(&cursor, &entry);
        if (result != STORE_OK)
            return result;
        memcpy(key, entry.key, entry.key_len);
        result = store_tree_insert(&cursor, key, entry.key_len, op->value, op->value_len);
    }
    return result == STORE_OK ? mix_found(txn, &op->found, &cursor) : result;
}

/* The same place, reached in ways that leave the cursor in another leaf. */
static enum store_result wander(struct tree_op *op, struct store_cursor *cursor)
{
    struct store_entry entry;
    enum store_result result = STORE_OK;
    if (op->random & 1) {
        result = store_tree_prev(cursor);
        if (result == STORE_OK)
            result = store_tree_next(cursor);
    } else if (op->random & 2) {
        result = store_tree_get(cursor, &entry);
    }
    return result == STORE_ABSENT ? STORE_OK : result;
}

static enum store_result run_key(struct store_txn *txn, struct tree_op *op, struct store_tree *tree)
{
    struct store_cursor cursor, ranked;
    struct store_entry entry;
    enum store_result result = store_tree_seek(tree, op->entry_key, op->entry_key_len, &ranked);
    if (result == STORE_OK)
        result = store_tree_find(tree, op->entry_key, op->entry_key_len, &cursor);
    if (result != STORE_OK)
        return result;
    op->found = mix(op->found, ranked.rank);
    if (op->random & 4)
        cursor = ranked;
    if (op->kind == OP_INSERT) {
        result = wander(op, &cursor);
        if (result == STORE_OK)
            result = store_tree_insert(&cursor, op->entry_key, op->entry_key_len, op->value,
                                       op->value_len);
        if (result == STORE_OK)
            result = learn_rank(op, tree, &cursor);
        return result == STORE_OK ? mix_found(txn, &op->found, &cursor) : result;
    }
    result = store_tree_get(&cursor, &entry);
    if (result == STORE_ABSENT)
        return STORE_OK;
    if (result == STORE_OK &&
        compare_keys(entry.key, entry.key_len, op->entry_key, op->entry_key_len) == 0)
        return run_remove(txn, op, tree, &cursor);
    return result;
}

static enum store_result run_tree_op(struct store_txn *txn, struct tree_op *op,
                                     const struct store_key *key, const struct store_item *item)
{
    struct store_tree *tree;
    enum store_result result = store_tree_open(txn, key, item, op->which % item->trees, &tree);
    if (result != STORE_OK)
        return result;
    op->found = mix(op->found, store_tree_count(tree));
    if (op->kind == OP_WALK)
        return run_walk(txn, op, tree);
    if (op->kind == OP_INSERT || op->kind == OP_REMOVE_KEY)
        return run_key(txn, op, tree);
    return run_at(txn, op, tree);
}

/* A wake time needs a write of the item in the same run. */
static enum store_result run_wake(struct store_txn *txn, const struct tree_op *op,
                                  const struct store_key *key, const struct store_item *item)
{
    enum store_result result = store_tree_set_type(txn, key, item, item->type);
    if (result == STORE_OK)
        store_set_wake(txn, key, op->random % 3 ? (int64_t)1 << 44 | op->random : STORE_NO_EXPIRY);
    return result;
}

static enum store_result run_op(struct tree_batch *batch, struct store_txn *txn, struct tree_op *op)
{
    const struct store_key *key = &batch->keys[op->key];
    struct store_item item;
    op->found = 0;
    if (op->kind == OP_CREATE)
        return store_tree_create(txn, key, (uint8_t)(1 + op->key), 1 + op->key % 2,
                                 STORE_NO_EXPIRY);
    if (op->kind == OP_DELETE)
        return store_delete(txn, key);
    if (op->kind == OP_STRING)
        return store_put(txn, key, 0, "text", 4, STORE_NO_EXPIRY);
    enum store_result result = store_get(txn, key, &item);
    if (result == STORE_ABSENT || (result == STORE_OK && item.trees == 0))
        return STORE_OK;
    if (result != STORE_OK)
        return result;
    op->found = mix(mix(item.type, item.trees), (uint64_t)(item.expire_ms ^ item.wake_ms));
    must(!item.bytes && item.length == 0, "trees have no bytes");
    if (op->kind == OP_RENAME)
        return store_rename(txn, key, &item, &batch->keys[op->other]);
    if (op->kind == OP_SET_TYPE)
        return store_tree_set_type(txn, key, &item, (uint8_t)(1 + op->random % 200));
    if (op->kind == OP_EXPIRE)
        return store_set_expiry(txn, key, &item, (int64_t)1 << 45 | op->random);
    if (op->kind == OP_WAKE)
        return run_wake(txn, op, key, &item);
    if (op->kind == OP_ADD_TREE)
        return item.trees == STORE_TREES ? STORE_OK : store_tree_add(txn, key, &item);
    return run_tree_op(txn, op, key, &item);
}

static enum store_result run(struct store_txn *txn, struct store_request *request)
{
    struct tree_batch *batch = (struct tree_batch *)request;
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < batch->count && result == STORE_OK; i++)
        result = run_op(batch, txn, &batch->ops[i]);
    return result;
}

static void done(struct store_request *request, enum store_result result)
{
    struct tree_batch *batch = (struct tree_batch *)request;
    batch->finished = true;
    batch->result = result;
}

/* ---- batches ---- */

static void choose_key(struct tree_model *model, struct tree_op *op)
{
    struct rng *rng = &model->rng;
    uint32_t kind = rng_below(rng, 20);
    uint32_t length = kind == 0 ? STORE_TREE_KEY_MAX - rng_below(rng, 3) : 4 + rng_below(rng, 24);
    memset(op->entry_key, 'x', length);
    uint32_t number = rng_below(rng, 3 * model->target);
    char text[16];
    snprintf(text, sizeof text, "%06u", number);
    memcpy(op->entry_key, text, 4);
    if (length > 40)
        memcpy(op->entry_key + length - 4, text, 4);
    op->entry_key_len = length;
}

static enum tree_op_kind choose_kind(struct tree_model *model, const struct model_collection *c,
                                     uint32_t which)
{
    struct rng *rng = &model->rng;
    uint32_t count = c->trees ? c->tree[which % c->trees].count : 0;
    if (c->trees == 0)
        return rng_chance(rng, 80) ? OP_CREATE : OP_WALK;
    if (rng_below(rng, 300) == 0)
        return (enum tree_op_kind)rng_below(rng, OP_INSERT);
    if (rng_chance(rng, 15))
        return OP_WALK;
    if (rng_chance(rng, 10))
        return OP_REPLACE_AT;
    if (rng_chance(rng, 10))
        return OP_REKEY_AT;
    bool grows = rng_below(rng, 2 * model->target) > count;
    if (grows)
        return OP_INSERT;
    return rng_chance(rng, 50) ? OP_REMOVE_KEY : OP_REMOVE_AT;
}

static void fill_op(struct tree_model *model, struct tree_op *op)
{
    struct rng *rng = &model->rng;
    op->key = rng_below(rng, TREE_KEYS);
    op->other = (op->key + 2) % TREE_KEYS; /* of the same number of trees */
    op->which = rng_below(rng, 2);
    op->kind = choose_kind(model, &model->collections[op->key], op->which);
    /* The first tree of each two keys is a list. */
    bool is_list = op->key % 2 == 0;
    if (op->kind == OP_INSERT && is_list)
        op->kind = OP_INSERT_AT;
    else if (op->kind == OP_INSERT && rng_chance(rng, 20))
        op->kind = OP_INSERT_TWIN;
    if (op->kind == OP_REMOVE_KEY && is_list)
        op->kind = OP_REMOVE_AT;
    op->random = (uint32_t)rng_next(rng);
    if (rng_chance(rng, 40)) /* the ends */
        op->random = rng_chance(rng, 50) ? 0 : model->collections[op->key].tree[0].count;
    choose_key(model, op);
    op->value_len = rng_below(rng, 10) ? rng_below(rng, 40) : rng_below(rng, model->value_most);
    if (rng_chance(rng, model->overflow_percent))
        op->value_len =
            rng_chance(rng, 80) ? 900 + rng_below(rng, 3000) : 4500 + rng_below(rng, 300000);
    op->value_seed = rng_next(rng);
    op->value = make_value(op->value_seed, op->value_len);
}

struct tree_batch *tree_batch_new(struct tree_model *model)
{
    struct tree_batch *batch = calloc(1, sizeof *batch);
    must(batch, "out of memory");
    batch->count = 1 + rng_below(&model->rng, rng_chance(&model->rng, 20) ? TREE_OPS : 2);
    for (uint32_t i = 0; i < batch->count; i++)
        fill_op(model, &batch->ops[i]);
    batch->request = (struct store_request){
        .run = run, .done = done, .keys = batch->keys, .key_count = TREE_KEYS, .now_ms = 1};
    return batch;
}

void tree_batch_free(struct tree_batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++)
        free(batch->ops[i].value);
    free(batch);
}

void tree_batch_start(struct store_worker *worker, struct tree_batch *batch)
{
    for (uint32_t i = 0; i < TREE_KEYS; i++)
        store_key(worker->store, &batch->keys[i], 0, names[i], strlen(names[i]), STORE_EXCLUSIVE);
    enum store_result result = store_execute(worker, &batch->request);
    if (result != STORE_WAIT)
        done(&batch->request, result);
}

bool tree_batch_finished(const struct tree_batch *batch)
{
    return batch->finished;
}

enum store_result tree_batch_result(const struct tree_batch *batch)
{
    return batch->result;
}

uint64_t tree_batch_shown(const struct tree_batch *batch)
{
    return batch->request.shown;
}

/* ---- the same on the model ---- */

static uint64_t mix_at(uint64_t digest, const struct model_tree *tree, uint32_t at)
{
    return at < tree->count ? mix_model(digest, at, &tree->at[at]) : mix(digest, 77);
}

static uint64_t apply_walk(const struct tree_op *op, const struct model_tree *tree, uint64_t digest)
{
    uint32_t at = op->random % (tree->count + 1);
    bool back = op->value_len & 1;
    for (uint32_t i = 0; i < op->value_len % 40; i++) {
        digest = mix_at(digest, tree, at);
        if (back ? at == 0 : at == tree->count)
            break;
        at = back ? at - 1 : at + 1;
    }
    return digest;
}

static void set_value(struct model_entry *entry, const struct tree_op *op)
{
    entry->value_seed = op->value_seed;
    entry->value_len = op->value_len;
}

static void apply_rekey(const struct tree_op *op, struct model_tree *tree, uint32_t at)
{
    char key[STORE_TREE_KEY_MAX];
    struct model_entry *entry = &tree->at[at];
    uint32_t len = other_key(op, entry->key, entry->key_len, key);
    if ((at > 0 && compare_keys(entry[-1].key, entry[-1].key_len, key, len) > 0) ||
        (at + 1 < tree->count && compare_keys(entry[1].key, entry[1].key_len, key, len) < 0))
        return;
    entry->key = realloc(entry->key, len + 1);
    must(entry->key, "out of memory");
    memcpy(entry->key, key, len);
    entry->key_len = len;
}

static uint64_t apply_tree_op(const struct tree_op *op, struct model_tree *tree, uint64_t digest)
{
    bool by_key = op->kind == OP_INSERT || op->kind == OP_REMOVE_KEY;
    if (op->kind == OP_WALK)
        return apply_walk(op, tree, digest);
    if (tree->count == 0 && !by_key && op->kind != OP_INSERT_AT)
        return digest;
    uint32_t at = by_key ? lower_bound(tree, op->entry_key, op->entry_key_len)
                         : op->random % (tree->count + (op->kind == OP_INSERT_AT));
    if (by_key)
        digest = mix(digest, at);
    if (op->kind == OP_INSERT) {
        set_value(insert_entry(tree, at, op->entry_key, op->entry_key_len), op);
    } else if (op->kind == OP_INSERT_AT) {
        set_value(insert_entry(tree, at, "", 0), op);
    } else if (op->kind == OP_INSERT_TWIN) {
        set_value(insert_entry(tree, at, tree->at[at].key, tree->at[at].key_len), op);
    } else if (op->kind == OP_REPLACE_AT) {
        set_value(&tree->at[at], op);
    } else if (op->kind == OP_REKEY_AT) {
        apply_rekey(op, tree, at);
    } else {
        if (op->kind == OP_REMOVE_KEY &&
            (at == tree->count || compare_keys(tree->at[at].key, tree->at[at].key_len,
                                               op->entry_key, op->entry_key_len) != 0))
            return digest;
        remove_entry(tree, at);
    }
    return mix_at(digest, tree, at);
}

static uint64_t apply_op(struct tree_model *model, const struct tree_op *op)
{
    struct model_collection *c = &model->collections[op->key];
    if (op->kind == OP_CREATE || op->kind == OP_DELETE || op->kind == OP_STRING) {
        clear_collection(c);
        if (op->kind == OP_CREATE)
            *c = (struct model_collection){.type = (uint8_t)(1 + op->key),
                                           .trees = (uint8_t)(1 + op->key % 2),
                                           .expire_ms = STORE_NO_EXPIRY,
                                           .wake_ms = STORE_NO_EXPIRY};
        return 0;
    }
    if (c->trees == 0)
        return 0;
    uint64_t digest = mix(mix(c->type, c->trees), (uint64_t)(c->expire_ms ^ c->wake_ms));
    if (op->kind == OP_RENAME) {
        clear_collection(&model->collections[op->other]);
        model->collections[op->other] = *c;
        *c = (struct model_collection){0};
    } else if (op->kind == OP_SET_TYPE) {
        c->type = (uint8_t)(1 + op->random % 200);
    } else if (op->kind == OP_EXPIRE) {
        c->expire_ms = (int64_t)1 << 45 | op->random;
    } else if (op->kind == OP_WAKE) {
        c->wake_ms = op->random % 3 ? (int64_t)1 << 44 | op->random : STORE_NO_EXPIRY;
    } else if (op->kind == OP_ADD_TREE) {
        c->trees = STORE_TREES;
    } else {
        struct model_tree *tree = &c->tree[op->which % c->trees];
        digest = apply_tree_op(op, tree, mix(digest, tree->count));
    }
    return digest;
}

void tree_batch_apply(struct tree_model *model, struct tree_batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct tree_op *op = &batch->ops[i];
        uint64_t expected = apply_op(model, op);
        must(op->found == expected, "operation %u of kind %d on %s finds something else", i,
             (int)op->kind, names[op->key]);
    }
}

/* ---- everything ---- */

struct walk {
    struct store_request request; /* first */
    struct store_key key;
    const struct model_collection *expected;
    const char *name;
    uint32_t which;
    uint64_t rank;
    bool finished;
    enum store_result result;
};

#define WALK_STEP 200u

static void check_entry(const struct walk *walk, const struct store_entry *entry, const char *value)
{
    const struct model_entry *expected = &walk->expected->tree[walk->which].at[walk->rank];
    char *bytes = make_value(expected->value_seed, expected->value_len);
    must(entry->key_len == expected->key_len &&
             memcmp(entry->key, expected->key, entry->key_len) == 0,
         "%s, tree %u: another key at rank %llu", walk->name, walk->which,
         (unsigned long long)walk->rank);
    must(entry->value.length == expected->value_len &&
             memcmp(value, bytes, expected->value_len) == 0,
         "%s, tree %u: another value at rank %llu", walk->name, walk->which,
         (unsigned long long)walk->rank);
    free(bytes);
}

static enum store_result walk_tree(struct store_txn *txn, struct walk *walk,
                                   const struct store_item *item)
{
    struct store_tree *tree;
    struct store_cursor cursor;
    struct store_entry entry;
    enum store_result result = store_tree_open(txn, &walk->key, item, walk->which, &tree);
    if (result != STORE_OK)
        return result;
    must(store_tree_count(tree) == walk->expected->tree[walk->which].count,
         "%s, tree %u has %llu entries, not %u", walk->name, walk->which,
         (unsigned long long)store_tree_count(tree), walk->expected->tree[walk->which].count);
    result = store_tree_seek_rank(tree, walk->rank, &cursor);
    for (uint32_t i = 0; result == STORE_OK; i++) {
        const char *value;
        result = store_tree_get(&cursor, &entry);
        if (result == STORE_OK)
            result = store_load(txn, &entry.value, &value);
        if (result != STORE_OK)
            break;
        check_entry(walk, &entry, value);
        result = store_tree_next(&cursor);
        if (result == STORE_OK)
            walk->rank++;
        if (i == WALK_STEP)
            return store_step(txn);
    }
    if (result != STORE_ABSENT)
        return result;
    must(cursor.rank == store_tree_count(tree), "the end comes too early");
    walk->rank = 0;
    return ++walk->which < item->trees ? store_step(txn) : STORE_OK;
}

static enum store_result walk_run(struct store_txn *txn, struct store_request *request)
{
    struct walk *walk = (struct walk *)request;
    struct store_item item;
    enum store_result result = store_get(txn, &walk->key, &item);
    bool has_trees = result == STORE_OK && item.trees > 0;
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    must(has_trees == (walk->expected->trees > 0), "%s: there or not", walk->name);
    if (!has_trees)
        return STORE_OK;
    must(item.trees == walk->expected->trees && item.type == walk->expected->type &&
             item.expire_ms == walk->expected->expire_ms && item.wake_ms == walk->expected->wake_ms,
         "%s is of type %u", walk->name, item.type);
    return walk_tree(txn, walk, &item);
}

static void walk_done(struct store_request *request, enum store_result result)
{
    struct walk *walk = (struct walk *)request;
    walk->finished = true;
    walk->result = result;
}

void tree_model_compare(struct tree_model *model, struct rig *rig)
{
    for (uint32_t i = 0; i < TREE_KEYS; i++) {
        struct walk walk = {.expected = &model->collections[i], .name = names[i]};
        store_key(rig->store, &walk.key, 0, names[i], strlen(names[i]), STORE_SHARED);
        walk.request = (struct store_request){
            .run = walk_run, .done = walk_done, .keys = &walk.key, .key_count = 1, .now_ms = 1};
        enum store_result result = store_execute(rig->workers[0], &walk.request);
        if (result != STORE_WAIT)
            walk_done(&walk.request, result);
        while (!walk.finished)
            rig_round(rig);
        must(walk.result == STORE_OK, "%s: the walk ends with %d: %s", names[i], (int)walk.result,
             rig->last_warning);
    }
}
