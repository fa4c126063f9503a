/*
 * The nodes of trees within a transaction, from the first change to the commit.
 *
 * Invariants
 * 1. A node is changed only in a copy that is the transaction's own; reads of the same run find it.
 *    At the commit the frame and the copy are compared, and what differs goes into the journal and
 *    into the frame: for a node that is there as a PATCH, for a fresh one as a PUT.
 * 2. The slot of a fresh node belongs to the transaction until the commit: given back by
 *    tree_discard.
 * 3. Only the owner's key leads to a node, so its claim protects them all; but the lock of their
 *    partition, which need not be the owner's after a RENAME, is held (tree_owner.c).
 */
#include "tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h"

#define TABLE_LEAST 64u
#define HEADER_BYTES 16u /* checksum, database and version, which change with each commit */
#define RANGE_GAP 8u     /* equal bytes that one range goes over */

/* ---- finding ---- */

static struct tree_edit **bucket_of(const struct tree_txn *trees, uint32_t home, uint32_t page)
{
    uint32_t hash = (page ^ home << 24) * 0x9e3779b1u;
    return &trees->table[hash >> 8 & (trees->table_size - 1)];
}

static struct tree_edit *find_edit(const struct store_txn *txn, uint32_t home, uint32_t page)
{
    if (txn->trees.edit_count == 0)
        return NULL;
    struct tree_edit *edit = *bucket_of(&txn->trees, home, page);
    while (edit && (edit->page != page || edit->collection->roots->home != home))
        edit = edit->next_in_bucket;
    return edit;
}

static void enter(struct tree_txn *trees, struct tree_edit *edit)
{
    struct tree_edit **bucket = bucket_of(trees, edit->collection->roots->home, edit->page);
    edit->next_in_bucket = *bucket;
    *bucket = edit;
}

static bool make_room(struct tree_txn *trees)
{
    if (trees->edit_count == 0 && trees->table_size)
        memset(trees->table, 0, trees->table_size * sizeof *trees->table);
    if (trees->edit_count < trees->table_size)
        return true;
    uint32_t size = trees->table_size ? 2 * trees->table_size : TABLE_LEAST;
    struct tree_edit **table = calloc(size, sizeof *table);
    if (!table)
        return false;
    free(trees->table);
    trees->table = table;
    trees->table_size = size;
    for (struct tree_edit *edit = trees->edits; edit; edit = edit->next)
        enter(trees, edit);
    return true;
}

static struct tree_edit *add_edit(struct store_tree *tree, uint32_t page)
{
    struct tree_txn *trees = &tree->txn->trees;
    struct tree_edit *edit = store_alloc(tree->txn, sizeof *edit);
    struct format_node *copy = edit ? store_alloc(tree->txn, PAGE_SIZE) : NULL;
    if (!copy || !make_room(trees))
        return NULL;
    *edit = (struct tree_edit){
        .next = trees->edits, .collection = tree->collection, .copy = copy, .page = page};
    trees->edits = edit;
    trees->edit_count++;
    enter(trees, edit);
    return edit;
}

/* ---- reading ---- */

static enum store_result damaged(struct store_tree *tree, uint32_t page,
                                 const struct format_node *node)
{
    struct store *store = tree->txn->store;
    if (node && node->item.database == FORMAT_DAMAGED) /* counted when it was read */
        return STORE_DAMAGED;
    engine_log(store, STORE_LOG_WARNING,
               "Damaged collection: page %u of partition %u is not the node it should be", page,
               tree->collection->roots->home);
    atomic_fetch_add_explicit(&store->damaged, 1, memory_order_relaxed);
    return STORE_DAMAGED;
}

enum store_result tree_fetch(struct store_tree *tree, uint32_t page, uint32_t level,
                             const struct format_node **node)
{
    struct store_txn *txn = tree->txn;
    const struct tree_edit *edit = find_edit(txn, tree->collection->roots->home, page);
    if (edit) {
        *node = edit->copy;
        return STORE_OK;
    }
    struct space *space = tree_space(txn, tree->collection);
    if (page >= space->segment_count * SEGMENT_PAGES || space_class_of(space, page) != TREE_CLASS)
        return damaged(tree, page, NULL);
    uint32_t frame;
    enum store_result result = load_page(txn, space, page, &frame);
    if (result != STORE_OK)
        return result;
    const struct format_node *found = (const void *)arena_memory(space->arena, frame);
    if (found->item.database != FORMAT_HIDDEN || !(found->item.flags & FORMAT_NODE) ||
        found->collection != tree->collection->roots->collection || found->level != level ||
        found->count == 0)
        return damaged(tree, page, found);
    *node = found;
    return STORE_OK;
}

/* ---- changing ---- */

enum store_result tree_change(struct store_tree *tree, uint32_t page, uint32_t level,
                              struct format_node **node)
{
    struct tree_edit *edit = find_edit(tree->txn, tree->collection->roots->home, page);
    if (!edit) {
        const struct format_node *found;
        enum store_result result = tree_fetch(tree, page, level, &found);
        if (result != STORE_OK)
            return result;
        edit = add_edit(tree, page);
        if (!edit)
            return STORE_NO_MEMORY;
        memcpy(edit->copy, found, PAGE_SIZE);
    }
    assert(!edit->is_freed);
    *node = edit->copy;
    return STORE_OK;
}

enum store_result tree_new_node(struct store_tree *tree, uint32_t level, struct format_node **node,
                                uint32_t *page)
{
    struct space *space = tree_space(tree->txn, tree->collection);
    uint32_t slot;
    enum store_result result = commit_take_slot(tree->txn, space, TREE_CLASS, page, &slot);
    if (result != STORE_OK)
        return result;
    /* A page that was freed by this transaction is not free before its commit. */
    struct tree_edit *edit = add_edit(tree, *page);
    if (!edit) {
        space_give_slot(space, *page, slot);
        return STORE_NO_MEMORY;
    }
    edit->is_fresh = true;
    *node = edit->copy;
    node_init(edit->copy, tree->collection->roots->collection, level);
    return STORE_OK;
}

void tree_free_node(struct store_tree *tree, uint32_t page)
{
    struct tree_edit *edit = find_edit(tree->txn, tree->collection->roots->home, page);
    assert(edit && !edit->is_freed);
    edit->is_freed = true;
}

/* ---- giving back ---- */

static void give_back(struct store_txn *txn, struct tree_edit *edit)
{
    if (edit->is_fresh && !edit->is_idle)
        space_give_slot(tree_space(txn, edit->collection), edit->page, 0);
    edit->is_idle = true;
}

void tree_discard(struct store_txn *txn)
{
    for (struct tree_edit *edit = txn->trees.edits; edit; edit = edit->next)
        give_back(txn, edit);
    tree_forget(txn);
}

void tree_forget(struct store_txn *txn)
{
    txn->trees.collections = NULL;
    txn->trees.edits = NULL;
    txn->trees.edit_count = 0;
    txn->trees.is_settled = false;
}

/* ---- committing ---- */

void tree_settle_edits(struct store_txn *txn)
{
    for (struct tree_edit *edit = txn->trees.edits; edit; edit = edit->next)
        if (edit->collection->is_given_up || (edit->is_fresh && edit->is_freed))
            give_back(txn, edit);
}

static void add_range(struct tree_edit *edit, uint32_t offset, uint32_t end)
{
    struct format_range *last = edit->range_count ? &edit->ranges[edit->range_count - 1] : NULL;
    if (last && offset <= last->offset + last->length + RANGE_GAP) {
        edit->patch_length += end - last->offset - last->length;
        last->length = (uint16_t)(end - last->offset);
        return;
    }
    edit->ranges[edit->range_count++] =
        (struct format_range){(uint16_t)offset, (uint16_t)(end - offset)};
    edit->patch_length += (uint32_t)sizeof *last + end - offset;
}

/* The words that differ within a part. */
static void compare_part(struct tree_edit *edit, const char *old, uint32_t part)
{
    const char *fresh = (const char *)edit->copy;
    for (uint32_t at = part; at < part + FORMAT_PART; at += 8) {
        uint64_t before, after;
        memcpy(&before, old + at, 8);
        memcpy(&after, fresh + at, 8);
        if (before == after || at < HEADER_BYTES)
            continue;
        uint64_t differs = before ^ after;
        uint32_t first = (uint32_t)__builtin_ctzll(differs) / 8;
        uint32_t last = 7 - (uint32_t)__builtin_clzll(differs) / 8;
        add_range(edit, at + first, at + last + 1);
    }
}

/* What of the copy differs from the page, and what that does to the checksum. */
static bool compare(struct store_txn *txn, struct tree_edit *edit, const char *old)
{
    const char *fresh = (const char *)edit->copy;
    edit->ranges = store_alloc(txn, PAGE_SIZE / RANGE_GAP * sizeof *edit->ranges);
    if (!edit->ranges)
        return false;
    edit->range_count = edit->patch_length = edit->sum = 0;
    add_range(edit, 0, HEADER_BYTES);
    for (uint32_t part = 0; part < PAGE_SIZE; part += FORMAT_PART) {
        if (memcmp(old + part, fresh + part, FORMAT_PART) == 0)
            continue;
        compare_part(edit, old, part);
        if (part > 0)
            edit->sum += format_parts_checksum(fresh, part, FORMAT_PART) -
                         format_parts_checksum(old, part, FORMAT_PART);
    }
    return true;
}

static enum store_result prepare_edit(struct store_txn *txn, struct tree_edit *edit)
{
    struct space *space = tree_space(txn, edit->collection);
    uint32_t frame;
    enum store_result result = edit->is_fresh ? commit_slot_frame(txn, space, edit->page, 0, &frame)
                                              : load_page(txn, space, edit->page, &frame);
    if (result == STORE_OK)
        result = commit_hold(txn, space, &frame);
    if (result != STORE_OK)
        return result;
    edit->frame = frame;
    if (edit->is_fresh || edit->is_freed)
        return STORE_OK;
    return compare(txn, edit, arena_memory(space->arena, frame)) ? STORE_OK : STORE_NO_MEMORY;
}

enum store_result tree_prepare(struct store_txn *txn)
{
    enum store_result result = STORE_OK;
    for (struct tree_edit *edit = txn->trees.edits; edit; edit = edit->next) {
        enum store_result prepared = edit->is_idle ? STORE_OK : prepare_edit(txn, edit);
        if (prepared == STORE_WAIT)
            result = STORE_WAIT;
        else if (prepared != STORE_OK)
            return prepared;
        if (txn->starved)
            return STORE_WAIT;
    }
    return result;
}

void tree_release(struct store_txn *txn)
{
    for (struct tree_edit *edit = txn->trees.edits; edit; edit = edit->next) {
        if (edit->frame)
            space_unref(tree_space(txn, edit->collection), edit->frame);
        edit->frame = 0;
    }
}

static bool is_patch(const struct tree_edit *edit)
{
    return !edit->is_fresh && !edit->is_freed && edit->patch_length < PAGE_SIZE;
}

static uint32_t body_length(const struct tree_edit *edit)
{
    return edit->is_freed ? 0 : is_patch(edit) ? edit->patch_length : PAGE_SIZE;
}

uint64_t tree_record_length(const struct store_txn *txn, uint32_t *op_count)
{
    uint64_t length = 0;
    for (const struct tree_edit *edit = txn->trees.edits; edit; edit = edit->next) {
        if (edit->is_idle)
            continue;
        length += sizeof(struct format_operation) + commit_padded(body_length(edit));
        ++*op_count;
    }
    return length;
}

/* The checksum of the copy, whose header is complete but for it. */
static uint32_t new_checksum(const struct store_txn *txn, const struct tree_edit *edit,
                             const struct format_node *old)
{
    const struct space *space = tree_space(txn, edit->collection);
    uint32_t mix = format_place_mix(txn->store->super.seed, space->id, edit->page, 0);
    if (edit->is_fresh)
        return format_parts_checksum(edit->copy, 0, PAGE_SIZE) ^ mix;
    uint32_t sum = (old->item.checksum ^ mix) + edit->sum;
    sum += format_parts_checksum(edit->copy, 0, FORMAT_PART) -
           format_parts_checksum(old, 0, FORMAT_PART);
    return sum ^ mix;
}

static void write_ranges(const struct tree_edit *edit, char *at)
{
    for (uint32_t i = 0; i < edit->range_count; i++) {
        struct format_range range = edit->ranges[i];
        memcpy(at, &range, sizeof range);
        memcpy(at + sizeof range, (const char *)edit->copy + range.offset, range.length);
        at += sizeof range + range.length;
    }
}

static void apply_ranges(const struct tree_edit *edit, char *page)
{
    for (uint32_t i = 0; i < edit->range_count; i++) {
        struct format_range range = edit->ranges[i];
        memcpy(page + range.offset, (const char *)edit->copy + range.offset, range.length);
    }
}

static char *put_and_apply(struct store_txn *txn, struct tree_edit *edit, char *at, uint64_t commit)
{
    struct space *space = tree_space(txn, edit->collection);
    char *page = arena_memory(space->arena, edit->frame);
    uint32_t length = body_length(edit);
    enum format_op kind = edit->is_freed   ? FORMAT_ERASE
                          : is_patch(edit) ? FORMAT_PATCH
                                           : FORMAT_PUT;
    at = commit_add_operation(at, kind, space->id, edit->page, 0, length);
    if (edit->is_freed) {
        memset(page, 0, sizeof(struct format_item));
        space_give_slot(space, edit->page, 0);
    } else {
        edit->copy->item.version = commit;
        edit->copy->item.checksum = new_checksum(txn, edit, (const struct format_node *)page);
        if (is_patch(edit)) {
            write_ranges(edit, at);
            apply_ranges(edit, page);
        } else {
            memcpy(at, edit->copy, PAGE_SIZE);
            memcpy(page, edit->copy, PAGE_SIZE);
        }
    }
    memset(at + length, 0, commit_padded(length) - length);
    space_mark_dirty(space, edit->frame, commit);
    return at + commit_padded(length);
}

char *tree_put_and_apply(struct store_txn *txn, char *at, uint64_t commit)
{
    for (struct tree_edit *edit = txn->trees.edits; edit; edit = edit->next)
        if (!edit->is_idle) {
            at = put_and_apply(txn, edit, at, commit);
            edit->is_idle = true;
        }
    return at;
}
