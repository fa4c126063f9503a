/*
 * The engine's public interface, continued: collections too large for one item.
 *
 * A value may be up to STORE_TREES counted B+-trees instead of bytes: collections too large for one
 * item. A tree is a sequence of entries with rising keys; equal keys are allowed, in an order that
 * the caller chooses, and with empty keys it is a list. It counts the entries before each one, so
 * that finding a rank takes as many pages as the tree is high. Nodes are pages of the partition
 * where the collection was made. They belong to the collection, not to its name: renaming takes one
 * record, and dropping it (deletion, overwrite, expiry, flush) returns at once; its pages are freed
 * in the background.
 */
#ifndef VELLUM_COLLECTIONS_H
#define VELLUM_COLLECTIONS_H

#include "storage/store.h"

#define STORE_TREES 2
#define STORE_TREE_KEY_MAX SIZES_TREE_KEY /* longest key of an entry; values: STORE_VALUE_MAX */

struct store_tree; /* one tree of one key, while the run function runs */

/* A position in a tree: before the entry `rank`, or at the end. All fields but rank are private to
 * the engine. Any change of the tree invalidates all other cursors on it. */
#define STORE_TREE_HEIGHT_MAX 12
#define STORE_RANK_UNKNOWN UINT64_MAX
struct store_cursor {
    struct store_tree *tree;
    uint64_t rank;
    uint32_t depth;
    uint32_t pages[STORE_TREE_HEIGHT_MAX];
    uint16_t places[STORE_TREE_HEIGHT_MAX];
};

/* An entry as found; its bytes are valid until the next call with a cursor of the same tree. */
struct store_entry {
    const char *key;
    uint32_t key_len;
    struct store_item value; /* if large: as with other items, store_read, store_load, readers */
};

/* A hint: an entry of a key's trees that is going to be looked up. */
#define STORE_HINT_BYTES 8 /* the first bytes of a key */
#define STORE_HINT_LAST STORE_TREES
struct store_prefetch_hint {
    const struct store_key *key;
    uint8_t tree; /* or STORE_HINT_LAST */
    bool by_rank; /* from the start of the tree, or with from_end from its end; else by `bytes` */
    bool from_end;
    uint32_t rank;
    char bytes[STORE_HINT_BYTES];
    /* NULL, or changes the hint to one for the entry that `entry` leads to. False: none. */
    bool (*follow)(const struct store *store, const struct store_entry *entry,
                   struct store_prefetch_hint *hint);
};

/* Fetches the paths to these entries, as far as they are in memory, into the processor's cache. */
void store_prefetch_trees(struct store_worker *worker, const struct store_prefetch_hint *hints,
                          uint32_t count);

/* Gives the key a new value of `count` empty trees. */
STORE_MUST_CHECK enum store_result store_tree_create(struct store_txn *txn,
                                                     const struct store_key *key, uint8_t type,
                                                     uint32_t count, int64_t expire_ms);
/* Tree number `which` of an item that has item->trees > which. Its changes are part of the
 * transaction; one (key, which) gives the same tree throughout a run. */
STORE_MUST_CHECK enum store_result store_tree_open(struct store_txn *txn,
                                                   const struct store_key *key,
                                                   const struct store_item *item, uint32_t which,
                                                   struct store_tree **tree);
/* Gives an item with trees one more, which is empty: at most STORE_TREES. */
STORE_MUST_CHECK enum store_result
store_tree_add(struct store_txn *txn, const struct store_key *key, const struct store_item *item);
/* Changes the type byte of a key that has trees. */
STORE_MUST_CHECK enum store_result store_tree_set_type(struct store_txn *txn,
                                                       const struct store_key *key,
                                                       const struct store_item *item, uint8_t type);
uint64_t store_tree_count(const struct store_tree *tree); /* entries */

/* All of these return STORE_OK, STORE_WAIT, STORE_DAMAGED, STORE_IO, STORE_NO_MEMORY; changes also
 * STORE_FULL and STORE_TOO_LARGE. */

/* Moves to the first entry whose key is not less than this one (bytes compared as unsigned, a
 * prefix before longer keys), or to the end. */
STORE_MUST_CHECK enum store_result store_tree_seek(struct store_tree *tree, const char *key,
                                                   size_t len, struct store_cursor *cursor);
/* The same without the rank, and faster: `rank` may be STORE_RANK_UNKNOWN. */
STORE_MUST_CHECK enum store_result store_tree_find(struct store_tree *tree, const char *key,
                                                   size_t len, struct store_cursor *cursor);
/* Moves to entry `rank`, at most store_tree_count. */
STORE_MUST_CHECK enum store_result store_tree_seek_rank(struct store_tree *tree, uint64_t rank,
                                                        struct store_cursor *cursor);
/* STORE_ABSENT at the end. */
STORE_MUST_CHECK enum store_result store_tree_get(struct store_cursor *cursor,
                                                  struct store_entry *entry);
/* Returns adjacent entries from the cursor on, at least one and at most `most`, and moves past
 * them. Their bytes are valid until the next call on the tree. STORE_ABSENT at the end. */
STORE_MUST_CHECK enum store_result store_tree_read(struct store_cursor *cursor,
                                                   struct store_entry *entries, uint32_t most,
                                                   uint32_t *count);
/* One entry forward or back: STORE_ABSENT, without moving, at the end or at the first entry. */
STORE_MUST_CHECK enum store_result store_tree_next(struct store_cursor *cursor);
STORE_MUST_CHECK enum store_result store_tree_prev(struct store_cursor *cursor);
/* Inserts an entry before the cursor, which then points to it; the keys must stay in order. `value`
 * must live until the request is finished, the key need not. */
STORE_MUST_CHECK enum store_result store_tree_insert(struct store_cursor *cursor, const char *key,
                                                     size_t key_len, const char *value,
                                                     size_t value_len);
/* Replaces the value of the entry at the cursor. */
STORE_MUST_CHECK enum store_result store_tree_replace(struct store_cursor *cursor,
                                                      const char *value, size_t value_len);
/* Another key for the entry at the cursor; its value is not read. The keys must stay in order. */
STORE_MUST_CHECK enum store_result store_tree_rekey(struct store_cursor *cursor, const char *key,
                                                    size_t key_len);
/* Removes the entry at the cursor, which then points to the following one. */
STORE_MUST_CHECK enum store_result store_tree_remove(struct store_cursor *cursor);

/* ---- bulk load ---- */

/*
 * Bulk load: a collection that is made before a key names it, in steps that are committed one by
 * one, so that it may be larger than memory. It persists across the runs of its request. If no key
 * gets it, it is purged in the background; after a crash nothing of it remains.
 */
struct store_bulk_load;

/* In a run: begins one of `count` trees, in the partition of `key`, which the request holds. */
STORE_MUST_CHECK enum store_result store_bulk_load_begin(struct store_txn *txn,
                                                         const struct store_key *key,
                                                         uint32_t count,
                                                         struct store_bulk_load **bulk_load);
/* Tree number `which` as the steps so far have made it, for changes by this run. */
STORE_MUST_CHECK enum store_result store_bulk_load_tree(struct store_txn *txn,
                                                        struct store_bulk_load *bulk_load,
                                                        uint32_t which, struct store_tree **tree);
/* As store_step, but the run's changes of the bulk load are committed before the next run. If the
 * run does not return with this, or the commit fails, they are discarded like all others. */
STORE_MUST_CHECK enum store_result store_bulk_load_step(struct store_txn *txn,
                                                        struct store_bulk_load *bulk_load);
uint64_t store_bulk_load_steps(const struct store_bulk_load *bulk_load); /* steps committed */
/* Makes the bulk load, as it is after its last step, the value of the key. */
STORE_MUST_CHECK enum store_result store_put_bulk_load(struct store_txn *txn,
                                                       const struct store_key *key, uint8_t type,
                                                       struct store_bulk_load *bulk_load,
                                                       int64_t expire_ms);
/* Not in a run: the bulk load is not used any more. */
void store_bulk_load_end(struct store_bulk_load *bulk_load);

#endif
