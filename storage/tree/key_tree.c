/*
 * Keeps the trees of keys, within the commit that adds or removes a key.
 *
 * No key lock protects a tree of keys: requests on different keys change the same nodes. So what is
 * read and changed here is valid for one attempt of a commit only, under its partitions' locks. If
 * the attempt has to wait, its edits, collections and writes of roots are taken back, and the next
 * one makes them anew; pages that it has waited for are pinned by then.
 *
 * A root is an item with FORMAT_KEY_TREE. It is in the index under the first hash slot of its
 * partition, with a tag like a key's; no look-up of a key finds it (long_key.h).
 */
#include "storage/tree/key_tree.h"

#include <assert.h>
#include <string.h>

#include "storage/tree/tree_edit.h"
#include "storage/tree/tree_owner.h"
#include "storage/txn/databases.h"
#include "storage/txn/load.h"
#include "storage/txn/wait.h"
#include "storage/value/write_set.h"

/* A tree that the commit changes. */
struct changed_tree {
    struct changed_tree *next; /* of the same partition */
    uint32_t database;
    bool existed, is_changed;
    struct store_tree *tree;
};

/* ---- names ---- */

void key_tree_name(const char *data, uint32_t len, uint64_t hash, struct key_tree_name *name)
{
    name->len = len;
    if (!key_tree_is_cut(len)) {
        memcpy(name->bytes, data, len);
        return;
    }
    memcpy(name->bytes, data, FORMAT_NAME_WHOLE);
    for (uint32_t i = 0; i < sizeof hash; i++)
        name->bytes[FORMAT_NAME_WHOLE + i] = (char)(hash >> (8 * (sizeof hash - 1 - i)));
    name->len = STORE_TREE_KEY_MAX;
}

uint64_t key_tree_hash(const struct store *store, const char *name, uint32_t len)
{
    uint64_t hash = 0;
    if (!key_tree_is_cut(len))
        return format_hash(&store->superblock.secret, name, len);
    for (uint32_t i = FORMAT_NAME_WHOLE; i < len; i++)
        hash = hash << 8 | (unsigned char)name[i];
    return hash;
}

bool key_tree_slot(const char *name, uint32_t len, const char *value, uint64_t value_len,
                   uint32_t *slot)
{
    uint16_t stored;
    if (!key_tree_is_cut(len)) {
        *slot = store_hash_slot(name, len);
        return value_len == 0;
    }
    if (len != STORE_TREE_KEY_MAX || value_len != sizeof stored)
        return false;
    memcpy(&stored, value, sizeof stored);
    *slot = stored;
    return stored < STORE_SLOT_COUNT;
}

/* ---- roots ---- */

static uint16_t first_slot(const struct store *store, uint32_t partition)
{
    return (uint16_t)(partition << store->slot_shift);
}

static uint64_t root_hash(const struct store *store, uint16_t slot)
{
    return format_hash(&store->superblock.secret, (const char *)&slot, sizeof slot);
}

enum store_result key_tree_find(struct store_txn *txn, uint32_t partition, uint32_t database,
                                struct found *found)
{
    struct store *store = txn->store;
    struct page_file *file = &store->partitions[partition].file;
    const struct index *index = &store->partitions[partition].index;
    uint16_t slot = first_slot(store, partition);
    uint32_t tag = engine_tag(root_hash(store, slot), database);
    bool is_damaged = false;
    assert(request_holds(txn, partition));
    found->item = NULL;
    for (uint32_t at = index_find(index, slot, tag); at != INDEX_NONE;
         at = index_next(index, slot, at)) {
        uint64_t entry = index_get(index, slot, at);
        if (!(index_flags(entry) & INDEX_TREES))
            continue;
        found->page = index_page(entry);
        found->slot = index_item_slot(entry);
        enum store_result result = load_page(txn, file, found->page, &found->frame);
        if (result != STORE_OK)
            return result;
        uint32_t size = format_class_size(page_file_class_of(file, found->page));
        const struct format_item *item =
            (const void *)(arena_memory(file->arena, found->frame) + found->slot * size);
        is_damaged |= item->database == FORMAT_DAMAGED;
        if (item->database == database && item->flags & FORMAT_KEY_TREE) {
            found->item = item;
            return STORE_OK;
        }
    }
    return is_damaged ? STORE_DAMAGED : STORE_OK;
}

/* A copy of the roots, as a collection of this attempt. The commit writes its item itself. */
static struct store_tree *add_tree(struct store_txn *txn, const struct format_trees *roots,
                                   uint32_t length)
{
    struct collection *collection = tree_add_known(txn, roots, length);
    if (!collection)
        return NULL;
    collection->is_written = true;
    return &collection->trees[0];
}

enum store_result key_tree_open(struct store_txn *txn, uint32_t partition, uint32_t database,
                                struct store_tree **tree)
{
    struct found found;
    *tree = NULL;
    enum store_result result = key_tree_find(txn, partition, database, &found);
    if (result != STORE_OK || !found.item)
        return result;
    uint32_t length = found.item->payload_len;
    struct format_trees *roots = store_alloc(txn, length); /* aligned */
    if (!roots)
        return STORE_NO_MEMORY;
    memcpy(roots, format_payload(found.item), length);
    if (roots->home != partition || roots->count != 1 || tree_known(txn, roots->collection))
        return STORE_DAMAGED;
    *tree = add_tree(txn, roots, length);
    return *tree ? STORE_OK : STORE_NO_MEMORY;
}

static struct store_tree *new_tree(struct store_txn *txn, uint32_t partition)
{
    uint32_t length = (uint32_t)(sizeof(struct format_trees) + sizeof(struct format_tree));
    struct format_trees *roots = store_alloc(txn, length);
    if (!roots)
        return NULL;
    memset(roots, 0, length);
    roots->collection = tree_next_id(txn->store);
    roots->home = (uint16_t)partition;
    roots->count = 1;
    return add_tree(txn, roots, length);
}

/* ---- the commit: which trees ---- */

/* Whether the write, as prepared, adds a key (1) or removes one (-1). Of a database that the same
 * commit flushes nothing is kept, its tree neither. */
static int32_t effect(const struct store_txn *txn, const struct write *write)
{
    bool is_doomed = txn->arrangement.changed && write < txn->writes + txn->arrangement.doomed;
    if (write->key.db >= STORE_DB_COUNT || is_doomed)
        return 0;
    bool was = write->old_page != 0, is = write->kind == WRITE_PUT;
    return (int32_t)is - (int32_t)was;
}

static enum store_result tree_of(struct store_txn *txn, struct changed_tree **trees,
                                 const struct write *write, struct changed_tree **changed)
{
    uint32_t partition = (uint32_t)write->key.slot >> txn->store->slot_shift;
    struct changed_tree *known = trees[partition];
    while (known && known->database != write->database)
        known = known->next;
    *changed = known;
    if (known)
        return STORE_OK;
    struct store_tree *tree;
    enum store_result result = key_tree_open(txn, partition, write->database, &tree);
    if (result != STORE_OK)
        return result;
    bool existed = tree != NULL;
    if (!existed && !(tree = new_tree(txn, partition)))
        return STORE_NO_MEMORY;
    if (!(known = store_alloc(txn, sizeof *known)))
        return STORE_NO_MEMORY;
    *known = (struct changed_tree){trees[partition], write->database, existed, false, tree};
    trees[partition] = *changed = known;
    return STORE_OK;
}

/* Whether the entry at the cursor has this name; leaves the cursor where it is. */
static enum store_result is_there(const struct store_cursor *cursor,
                                  const struct key_tree_name *name, bool *there)
{
    struct store_cursor at = *cursor;
    struct store_entry entry;
    enum store_result result = store_tree_get(&at, &entry);
    *there = result == STORE_OK && entry.key_len == name->len &&
             memcmp(entry.key, name->bytes, name->len) == 0;
    return result == STORE_ABSENT ? STORE_OK : result;
}

static enum store_result add_name(struct store_txn *txn, struct store_cursor *cursor,
                                  const struct key_tree_name *name, uint16_t slot)
{
    bool is_cut = key_tree_is_cut(name->len);
    uint16_t *value = store_alloc(txn, sizeof *value);
    if (!value)
        return STORE_NO_MEMORY;
    *value = slot;
    return store_tree_insert(cursor, name->bytes, name->len, (const char *)value,
                             is_cut ? sizeof *value : 0);
}

/* A key whose item was lost to damage may have left its entry behind, or come back without one. */
static enum store_result change(struct store_txn *txn, struct changed_tree *changed,
                                const struct write *write, const struct key_tree_name *name)
{
    struct store_cursor cursor;
    bool adds = write->kind == WRITE_PUT, there = !adds;
    enum store_result result = store_tree_find(changed->tree, name->bytes, name->len, &cursor);
    if (result == STORE_OK && (!adds || atomic_load(&txn->store->damaged) > 0))
        result = is_there(&cursor, name, &there);
    if (result != STORE_OK || there == adds)
        return result;
    changed->is_changed = true;
    return adds ? add_name(txn, &cursor, name, write->key.slot) : store_tree_remove(&cursor);
}

/* `only_reads`: requests the pages. */
static enum store_result change_for(struct store_txn *txn, struct changed_tree **trees,
                                    const struct write *write, bool only_reads)
{
    struct changed_tree *changed;
    struct key_tree_name name;
    enum store_result result = tree_of(txn, trees, write, &changed);
    if (result != STORE_OK)
        return result;
    key_tree_name(write->key.data, write->key.len, write->key.hash, &name);
    struct store_cursor cursor;
    return only_reads ? store_tree_find(changed->tree, name.bytes, name.len, &cursor)
                      : change(txn, changed, write, &name);
}

/* A change that has to wait leaves a tree half changed, which nothing may read. So all paths are
 * read first: while one write waits for a page, the others request theirs. */
static enum store_result read_all(struct store_txn *txn, struct changed_tree **trees,
                                  uint32_t *count)
{
    enum store_result result = STORE_OK;
    *count = 0;
    for (uint32_t i = 0; i < txn->write_count; i++) {
        if (effect(txn, &txn->writes[i]) == 0)
            continue;
        ++*count;
        enum store_result read = change_for(txn, trees, &txn->writes[i], true);
        if (read == STORE_WAIT)
            result = STORE_WAIT;
        else if (read != STORE_OK)
            return read;
        if (txn->starved)
            return STORE_WAIT;
    }
    return result;
}

/* ---- the commit: roots ---- */

static enum store_result append_root(struct store_txn *txn, uint32_t partition,
                                     const struct changed_tree *changed)
{
    struct collection *collection = changed->tree->collection;
    bool stays = changed->tree->root->count > 0;
    if (!changed->is_changed || (!stays && !changed->existed))
        return STORE_OK;
    uint16_t *slot = store_alloc(txn, sizeof *slot);
    struct write *write = slot ? write_set_append(txn) : NULL;
    if (!write)
        return STORE_NO_MEMORY;
    *slot = first_slot(txn->store, partition);
    *write = (struct write){.key = {.data = (const char *)slot,
                                    .len = sizeof *slot,
                                    .slot = *slot,
                                    .db = STORE_HIDDEN_DB,
                                    .mode = STORE_EXCLUSIVE,
                                    .hash = root_hash(txn->store, *slot)},
                            .place = STORE_HIDDEN_DB,
                            .kind = stays ? WRITE_PUT : WRITE_DELETE,
                            .expire_ms = STORE_NO_EXPIRY,
                            .wake_ms = STORE_NO_EXPIRY,
                            .bytes = (const char *)collection->roots,
                            .len = collection->length,
                            .trees = collection,
                            .is_key_tree = true,
                            .database = changed->database};
    return STORE_OK;
}

static enum store_result append_roots(struct store_txn *txn, struct changed_tree **trees)
{
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < txn->store->partition_count; i++)
        for (const struct changed_tree *c = trees[i]; c && result == STORE_OK; c = c->next)
            result = append_root(txn, i, c);
    return result;
}

static bool changes_any(const struct store_txn *txn)
{
    for (uint32_t i = 0; i < txn->write_count; i++)
        if (effect(txn, &txn->writes[i]) != 0)
            return true;
    return false;
}

enum store_result key_trees_change(struct store_txn *txn)
{
    size_t size = txn->store->partition_count * sizeof(struct changed_tree *);
    uint32_t count, before = txn->write_count;
    if (!changes_any(txn))
        return STORE_OK;
    struct changed_tree **trees = store_alloc(txn, size);
    if (!trees)
        return STORE_NO_MEMORY;
    memset(trees, 0, size);
    enum store_result result = read_all(txn, trees, &count);
    for (uint32_t i = 0; i < before && result == STORE_OK; i++)
        if (effect(txn, &txn->writes[i]) != 0)
            result = change_for(txn, trees, &txn->writes[i], false);
    return result == STORE_OK ? append_roots(txn, trees) : result;
}

/* ---- taking it back ---- */

struct key_trees_mark key_trees_mark(const struct store_txn *txn)
{
    return (struct key_trees_mark){.edits = txn->trees.edits,
                                   .collections = txn->trees.collections,
                                   .buffers = txn->trees.buffers,
                                   .write_count = txn->write_count};
}

void key_trees_undo(struct store_txn *txn, const struct key_trees_mark *mark)
{
    tree_take_back(txn, mark->edits);
    txn->trees.collections = mark->collections;
    txn->trees.buffers = mark->buffers;
    txn->write_count = mark->write_count;
}

void key_trees_check(const struct store_txn *txn)
{
    const struct store *store = txn->store;
    for (uint32_t i = 0; i < txn->write_count; i++) {
        const struct write *write = &txn->writes[i];
        int db = write->is_key_tree ? databases_logical(store, write->database) : -1;
        if (db < 0 || atomic_load(&store->damaged) > 0)
            continue;
        uint32_t partition = (uint32_t)write->key.slot >> store->slot_shift;
        uint64_t keys = counter_read(&store->partitions[partition].databases[db].keys);
        assert(write->trees->trees[0].root->count == keys);
        assert((write->kind == WRITE_DELETE) == (keys == 0));
    }
}
