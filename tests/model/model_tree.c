/*
 * Large collections of the model store: each tree is a sorted array of its entries.
 *
 * Invariants:
 * 1. The trees of a value in the store never change: the first change of a transaction copies them
 *    into a value of its own (the entries themselves are counted and shared).
 * 2. A store_tree shows the newest value its transaction knows; `changes` counts what was done to
 *    it, and a cursor from before a change is refused.
 * 3. What an entry was shown as is gone with the next call on its tree: callers that keep bytes
 *    too long find others there.
 */
#include "tests/model/model_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct leaf {
    _Atomic uint32_t refs;
    uint32_t key_len;
    struct value *value;
    char key[];
};

struct branch {
    uint64_t count, capacity;
    struct leaf **leaves;
};

struct store_tree {
    struct store_tree *next; /* of the transaction's */
    struct store_txn *txn;
    const struct store_key *key;
    struct value *value; /* holds no reference: a table, `held` or the building does */
    struct store_bulk_load *bulk_load; /* instead of a key */
    uint32_t which, changes;
    char *shown;
    size_t shown_size;
};

/* ---- leaves and branches ---- */

static struct leaf *leaf_new(const char *key, size_t key_len, const char *value, size_t len)
{
    struct leaf *leaf = model_alloc(sizeof(*leaf) + key_len);
    leaf->refs = 1;
    leaf->key_len = (uint32_t)key_len;
    if (key_len > 0)
        memcpy(leaf->key, key, key_len);
    leaf->value = value_new(len);
    if (len > 0)
        memcpy(leaf->value->bytes, value, len);
    return leaf;
}

static void leaf_unref(struct leaf *leaf)
{
    if (atomic_fetch_sub(&leaf->refs, 1) == 1) {
        value_unref(leaf->value);
        free(leaf);
    }
}

static struct branch *branch_copy(const struct branch *from)
{
    struct branch *branch = model_alloc(sizeof(*branch));
    branch->count = branch->capacity = from->count;
    branch->leaves = model_alloc((from->count + 1) * sizeof(*branch->leaves));
    for (uint64_t i = 0; i < from->count; i++) {
        branch->leaves[i] = from->leaves[i];
        atomic_fetch_add(&branch->leaves[i]->refs, 1);
    }
    return branch;
}

void trees_free(struct value *value)
{
    for (uint32_t i = 0; i < value->tree_count; i++) {
        struct branch *branch = value->trees[i];
        for (uint64_t j = 0; j < branch->count; j++)
            leaf_unref(branch->leaves[j]);
        free(branch->leaves);
        free(branch);
    }
}

static int compare(const struct leaf *leaf, const char *key, size_t len)
{
    size_t common = leaf->key_len < len ? leaf->key_len : len;
    int order = common == 0 ? 0 : memcmp(leaf->key, key, common);
    if (order != 0)
        return order;
    return leaf->key_len < len ? -1 : leaf->key_len > len;
}

/* ---- opening ---- */

static struct value *empty_trees(uint32_t count)
{
    struct value *value = value_new(0);
    value->tree_count = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++)
        value->trees[i] = model_alloc(sizeof(struct branch));
    return value;
}

enum store_result store_tree_create(struct store_txn *txn, const struct store_key *key,
                                    uint8_t type, uint32_t count, int64_t expire_ms)
{
    check_declared(txn, key, STORE_EXCLUSIVE);
    assert(count > 0 && count <= STORE_TREES);
    if (key->len > STORE_KEY_MAX)
        return STORE_TOO_LARGE;
    txn_write(txn, key, type, empty_trees(count), expire_ms);
    return STORE_OK;
}

enum store_result store_tree_open(struct store_txn *txn, const struct store_key *key,
                                  const struct store_item *item, uint32_t which,
                                  struct store_tree **tree)
{
    check_declared(txn, key, STORE_SHARED);
    assert(which < item->trees);
    if (must_wait(txn))
        return STORE_WAIT;
    for (*tree = txn->trees; *tree != NULL; *tree = (*tree)->next)
        if ((*tree)->value == item->origin && (*tree)->which == which && !(*tree)->bulk_load &&
            same_key((*tree)->key, key))
            return STORE_OK;
    *tree = model_alloc(sizeof(**tree));
    **tree = (struct store_tree){.next = txn->trees,
                                 .txn = txn,
                                 .key = key,
                                 .value = (struct value *)item->origin,
                                 .which = which};
    txn->trees = *tree;
    return STORE_OK;
}

enum store_result store_tree_set_type(struct store_txn *txn, const struct store_key *key,
                                      const struct store_item *item, uint8_t type)
{
    check_declared(txn, key, STORE_EXCLUSIVE);
    assert(item->trees > 0);
    const struct entry *entry = txn_find(txn, key);
    assert(entry != NULL && entry->value == item->origin);
    int64_t wake_ms = entry->wake_ms;
    txn_write(txn, key, type, value_ref(entry->value), entry->expire_ms);
    store_set_wake(txn, key, wake_ms);
    return STORE_OK;
}

static void unshow(struct store_tree *tree)
{
    if (tree->shown != NULL)
        memset(tree->shown, 0xdd, tree->shown_size);
    free(tree->shown);
    tree->shown = NULL;
}

void txn_forget_trees(struct store_txn *txn)
{
    for (struct store_tree *tree; (tree = txn->trees) != NULL;) {
        txn->trees = tree->next;
        unshow(tree);
        free(tree);
    }
}

static struct branch *branch_of(const struct store_tree *tree)
{
    return tree->value->trees[tree->which];
}

static struct value *copy_trees(const struct value *old)
{
    struct value *value = value_new(0);
    value->tree_count = old->tree_count;
    for (uint32_t i = 0; i < old->tree_count; i++)
        value->trees[i] = branch_copy(old->trees[i]);
    return value;
}

/* Gives the key this value instead of `old`, also to the trees opened. */
static void replace_value(struct store_txn *txn, const struct store_key *key,
                          const struct value *old, struct value *value)
{
    const struct entry *entry = txn_find(txn, key);
    assert(entry != NULL && entry->value == old);
    txn_rewrite(txn, key, entry, value, entry->expire_ms);
    for (struct store_tree *other = txn->trees; other != NULL; other = other->next)
        if (other->value == old && !other->bulk_load && same_key(other->key, key))
            other->value = value;
}

enum store_result store_tree_add(struct store_txn *txn, const struct store_key *key,
                                 const struct store_item *item)
{
    check_declared(txn, key, STORE_EXCLUSIVE);
    if (must_wait(txn))
        return STORE_WAIT;
    struct value *value = copy_trees(item->origin);
    assert(item->trees > 0 && value->tree_count < STORE_TREES);
    value->trees[value->tree_count++] = model_alloc(sizeof(struct branch));
    replace_value(txn, key, item->origin, value);
    return STORE_OK;
}

/* The branch where it may be changed (invariant 1). */
static struct branch *own_branch(struct store_tree *tree)
{
    struct store_txn *txn = tree->txn;
    if (tree->bulk_load != NULL)
        return branch_of(tree);
    check_declared(txn, tree->key, STORE_EXCLUSIVE);
    struct value *old = tree->value;
    const struct entry *entry = txn_find(txn, tree->key);
    assert(entry != NULL && entry->value == old);
    if (old->refs == 1 && table_find(&txn->written[tree->key->db], tree->key) == entry)
        return branch_of(tree);
    replace_value(txn, tree->key, old, copy_trees(old));
    return branch_of(tree);
}

uint64_t store_tree_count(const struct store_tree *tree)
{
    return branch_of(tree)->count;
}

/* ---- cursors; `depth` holds the tree's `changes` ---- */

static void set_cursor(struct store_tree *tree, uint64_t rank, struct store_cursor *cursor)
{
    *cursor = (struct store_cursor){.tree = tree, .rank = rank, .depth = tree->changes};
}

/* False: has to wait. */
static bool touch(struct store_tree *tree)
{
    unshow(tree);
    return !must_wait(tree->txn);
}

static bool touch_cursor(const struct store_cursor *cursor)
{
    assert(cursor->depth == cursor->tree->changes);
    assert(cursor->rank <= store_tree_count(cursor->tree));
    return touch(cursor->tree);
}

enum store_result store_tree_seek(struct store_tree *tree, const char *key, size_t len,
                                  struct store_cursor *cursor)
{
    if (!touch(tree))
        return STORE_WAIT;
    const struct branch *branch = branch_of(tree);
    uint64_t low = 0, high = branch->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (compare(branch->leaves[middle], key, len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    set_cursor(tree, low, cursor);
    return STORE_OK;
}

enum store_result store_tree_find(struct store_tree *tree, const char *key, size_t len,
                                  struct store_cursor *cursor)
{
    return store_tree_seek(tree, key, len, cursor);
}

enum store_result store_tree_seek_rank(struct store_tree *tree, uint64_t rank,
                                       struct store_cursor *cursor)
{
    assert(rank <= store_tree_count(tree));
    if (!touch(tree))
        return STORE_WAIT;
    set_cursor(tree, rank, cursor);
    return STORE_OK;
}

enum store_result store_tree_get(struct store_cursor *cursor, struct store_entry *entry)
{
    struct store_tree *tree = cursor->tree;
    if (!touch_cursor(cursor))
        return STORE_WAIT;
    if (cursor->rank == store_tree_count(tree))
        return STORE_ABSENT;
    const struct leaf *leaf = branch_of(tree)->leaves[cursor->rank];
    struct value *value = leaf->value;
    bool large = value->len > MODEL_LARGE_FROM;
    tree->shown_size = leaf->key_len + (large ? 0 : value->len) + 1;
    tree->shown = model_alloc(tree->shown_size);
    memcpy(tree->shown, leaf->key, leaf->key_len);
    if (!large)
        memcpy(tree->shown + leaf->key_len, value->bytes, value->len);
    *entry = (struct store_entry){.key = tree->shown,
                                  .key_len = leaf->key_len,
                                  .value = {.bytes = large ? NULL : tree->shown + leaf->key_len,
                                            .length = value->len,
                                            .expire_ms = STORE_NO_EXPIRY,
                                            .large = large,
                                            .origin = value}};
    return STORE_OK;
}

enum store_result store_tree_next(struct store_cursor *cursor)
{
    if (!touch_cursor(cursor))
        return STORE_WAIT;
    if (cursor->rank == store_tree_count(cursor->tree))
        return STORE_ABSENT;
    cursor->rank++;
    return STORE_OK;
}

enum store_result store_tree_read(struct store_cursor *cursor, struct store_entry *entries,
                                  uint32_t most, uint32_t *count)
{
    enum store_result result = store_tree_get(cursor, entries);
    assert(most > 0);
    *count = 1;
    if (result == STORE_OK)
        cursor->rank++;
    return result;
}

enum store_result store_tree_prev(struct store_cursor *cursor)
{
    if (!touch_cursor(cursor))
        return STORE_WAIT;
    if (cursor->rank == 0)
        return STORE_ABSENT;
    cursor->rank--;
    return STORE_OK;
}

/* ---- changes ---- */

static void changed(struct store_cursor *cursor)
{
    cursor->depth = ++cursor->tree->changes;
}

enum store_result store_tree_insert(struct store_cursor *cursor, const char *key, size_t key_len,
                                    const char *value, size_t value_len)
{
    if (!touch_cursor(cursor))
        return STORE_WAIT;
    if (key_len > STORE_TREE_KEY_MAX || value_len > STORE_VALUE_MAX)
        return STORE_TOO_LARGE;
    struct branch *branch = own_branch(cursor->tree);
    uint64_t rank = cursor->rank;
    assert(rank == 0 || compare(branch->leaves[rank - 1], key, key_len) <= 0);
    assert(rank == branch->count || compare(branch->leaves[rank], key, key_len) >= 0);
    if (branch->count == branch->capacity) {
        branch->capacity = branch->capacity * 2 + 16;
        branch->leaves = realloc(branch->leaves, branch->capacity * sizeof(*branch->leaves));
        if (branch->leaves == NULL)
            abort();
    }
    memmove(branch->leaves + rank + 1, branch->leaves + rank,
            (branch->count - rank) * sizeof(*branch->leaves));
    branch->leaves[rank] = leaf_new(key, key_len, value, value_len);
    branch->count++;
    changed(cursor);
    return STORE_OK;
}

enum store_result store_tree_replace(struct store_cursor *cursor, const char *value,
                                     size_t value_len)
{
    if (!touch_cursor(cursor))
        return STORE_WAIT;
    if (value_len > STORE_VALUE_MAX)
        return STORE_TOO_LARGE;
    struct branch *branch = own_branch(cursor->tree);
    assert(cursor->rank < branch->count);
    struct leaf *old = branch->leaves[cursor->rank];
    branch->leaves[cursor->rank] = leaf_new(old->key, old->key_len, value, value_len);
    leaf_unref(old);
    changed(cursor);
    return STORE_OK;
}

enum store_result store_tree_rekey(struct store_cursor *cursor, const char *key, size_t key_len)
{
    if (!touch_cursor(cursor))
        return STORE_WAIT;
    if (key_len > STORE_TREE_KEY_MAX)
        return STORE_TOO_LARGE;
    struct branch *branch = own_branch(cursor->tree);
    uint64_t rank = cursor->rank;
    assert(rank < branch->count);
    struct leaf *old = branch->leaves[rank];
    assert(rank == 0 || compare(branch->leaves[rank - 1], key, key_len) <= 0);
    assert(rank + 1 == branch->count || compare(branch->leaves[rank + 1], key, key_len) >= 0);
    branch->leaves[rank] = leaf_new(key, key_len, old->value->bytes, old->value->len);
    leaf_unref(old);
    changed(cursor);
    return STORE_OK;
}

enum store_result store_tree_remove(struct store_cursor *cursor)
{
    if (!touch_cursor(cursor))
        return STORE_WAIT;
    struct branch *branch = own_branch(cursor->tree);
    uint64_t rank = cursor->rank;
    assert(rank < branch->count);
    leaf_unref(branch->leaves[rank]);
    branch->count--;
    memmove(branch->leaves + rank, branch->leaves + rank + 1,
            (branch->count - rank) * sizeof(*branch->leaves));
    changed(cursor);
    return STORE_OK;
}

/* ---- collections that are being made ---- */

struct store_bulk_load {
    struct value *value; /* as the last step has left it */
    struct value *run;   /* as the run has made it that changes it, or did last */
    uint64_t steps;
};

enum store_result store_bulk_load_begin(struct store_txn *txn, const struct store_key *key,
                                        uint32_t count, struct store_bulk_load **bulk_load)
{
    check_declared(txn, key, STORE_EXCLUSIVE);
    assert(count > 0 && count <= STORE_TREES);
    *bulk_load = model_alloc(sizeof(**bulk_load));
    (*bulk_load)->value = empty_trees(count);
    return STORE_OK;
}

uint64_t store_bulk_load_steps(const struct store_bulk_load *bulk_load)
{
    return bulk_load->steps;
}

/* Whether this run changes it. */
static bool is_open(const struct store_txn *txn, const struct store_bulk_load *bulk_load)
{
    const struct store_tree *tree = txn->trees;
    while (tree != NULL && tree->bulk_load != bulk_load)
        tree = tree->next;
    return tree != NULL;
}

enum store_result store_bulk_load_tree(struct store_txn *txn, struct store_bulk_load *bulk_load,
                                       uint32_t which, struct store_tree **tree)
{
    assert(which < bulk_load->value->tree_count);
    if (must_wait(txn))
        return STORE_WAIT;
    for (*tree = txn->trees; *tree != NULL; *tree = (*tree)->next)
        if ((*tree)->bulk_load == bulk_load && (*tree)->which == which)
            return STORE_OK;
    if (!is_open(txn, bulk_load)) {
        if (bulk_load->run != NULL)
            value_unref(bulk_load->run);
        bulk_load->run = copy_trees(bulk_load->value);
    }
    *tree = model_alloc(sizeof(**tree));
    **tree = (struct store_tree){.next = txn->trees,
                                 .txn = txn,
                                 .value = bulk_load->run,
                                 .bulk_load = bulk_load,
                                 .which = which};
    txn->trees = *tree;
    return STORE_OK;
}

enum store_result store_bulk_load_step(struct store_txn *txn, struct store_bulk_load *bulk_load)
{
    if (is_open(txn, bulk_load)) {
        value_unref(bulk_load->value);
        bulk_load->value = value_ref(bulk_load->run);
    }
    bulk_load->steps++;
    return store_step(txn);
}

enum store_result store_put_bulk_load(struct store_txn *txn, const struct store_key *key,
                                      uint8_t type, struct store_bulk_load *bulk_load,
                                      int64_t expire_ms)
{
    check_declared(txn, key, STORE_EXCLUSIVE);
    if (key->len > STORE_KEY_MAX)
        return STORE_TOO_LARGE;
    txn_write(txn, key, type, value_ref(bulk_load->value), expire_ms);
    return STORE_OK;
}

void store_bulk_load_end(struct store_bulk_load *bulk_load)
{
    value_unref(bulk_load->value);
    if (bulk_load->run != NULL)
        value_unref(bulk_load->run);
    free(bulk_load);
}
