/*
 * The nodes of trees within a transaction, from the first change to the commit.
 *
 * Invariants
 * 1. A node is changed only in a private copy of the transaction, or by a plan that is equivalent
 *    to one; reads of the same run see the change. The commit applies to the frame either the
 *    plans or, if there are too many of them or other changes, the differences between frame and
 *    copy, and records the same in the journal: as a PATCH for an existing node, as a PUT for a
 *    fresh one.
 * 2. The slot of a fresh node belongs to the transaction until the commit; tree_discard releases
 *    it.
 * 3. Only the owner's key leads to a node, so the lock on that key protects all of them. The lock
 *    of their partition, which need not be the owner's after a RENAME, is held as well
 *    (tree_owner.c).
 */
#include "storage/tree/tree_edit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/checks.h"
#include "storage/journal/record.h"
#include "storage/value/slot_alloc.h"
#include "storage/txn/load.h"
#include "storage/txn/wait.h"

#define TABLE_LEAST 64u
#define HEADER_BYTES 16u /* checksum, database and version, which change with each commit */
#define PLANS_MOST 256u  /* bytes of plans: above it, a comparison journals less */
#define RANGE_GAP 8u     /* a range continues over so many equal bytes */
#define READ_AHEAD 32u   /* leaves of a walk that are read at once */
#define LINE 64u         /* cache line of the CPU */
#define PREFETCHED 7u    /* lines of a node where a search starts */

/* A node that the transaction changes, creates or frees. Small changes are kept as plans, so
 * that the node need not be compared with its page. Most nodes get only one, and are not copied
 * either. */
struct tree_edit {
    struct tree_edit *next, *next_in_bucket;
    struct collection *collection;
    struct format_node *copy; /* NULL: there is only the plan */
    char *plans;              /* room for several plans; or NULL */
    uint32_t page;
    bool is_fresh; /* its slot is reserved by this transaction */
    bool is_freed;
    bool is_idle;    /* nothing of it is to be committed */
    bool is_planned; /* `patch` holds the plans, and they are all there is to write */
    /* found by tree_prepare, again in each attempt */
    uint32_t frame;
    /* the differences from the page apart from its header, as ranges of a PATCH: the plans, or
     * the result of a comparison */
    uint32_t patch_length;
    const char *patch;
};

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

/* Allocates an edit with so many extra bytes after it. */
static struct tree_edit *add_edit(struct store_tree *tree, uint32_t page, uint32_t more)
{
    struct tree_txn *trees = &tree->txn->trees;
    assert(!storage_checks_enabled() || !find_edit(tree->txn, tree->collection->roots->home, page));
    struct tree_edit *edit = store_alloc(tree->txn, sizeof *edit + more);
    if (!edit || !make_room(trees))
        return NULL;
    *edit = (struct tree_edit){.next = trees->edits, .collection = tree->collection, .page = page};
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
    env_log(&store->env, STORE_LOG_WARNING,
            "Damaged collection: page %u of partition %u is not the node it should be", page,
            tree->collection->roots->home);
    atomic_fetch_add_explicit(&store->damaged, 1, memory_order_relaxed);
    return STORE_DAMAGED;
}

void tree_prefetch(const struct store_tree *tree, uint32_t page)
{
    const struct page_file *file = tree_page_file(tree->txn, tree->collection);
    uint32_t frame = page < file->segment_count * SEGMENT_PAGES ? file->table[page] : 0;
    if (!frame)
        return;
    const char *memory = arena_memory(file->arena, frame);
    __builtin_prefetch(arena_frame(file->arena, frame));
    for (uint32_t line = 0; line < PREFETCHED; line++)
        __builtin_prefetch(memory + line * LINE);
}

/* Not in blocking I/O mode: it would wait for each of these pages with a pin on it, and in the
 * end pin more of them than there are frames. */
void tree_read_ahead(const struct store_tree *tree, const struct format_node *node, uint32_t place)
{
    if (tree->txn->blocking_io)
        return;
    struct page_file *file = tree_page_file(tree->txn, tree->collection);
    uint32_t pages = file->segment_count * SEGMENT_PAGES;
    uint32_t most = atomic_load_explicit(&file->arena->limit, memory_order_relaxed) / 32;
    uint32_t end = place + (most < READ_AHEAD ? most : READ_AHEAD);
    uint32_t first = inner_page(node, place);
    if (first >= pages || file->table[first])
        return;
    uint32_t ahead[READ_AHEAD], count = 0; /* a prefetch may evict the node */
    for (uint32_t i = place; i < end && i < node->count; i++)
        if (inner_page(node, i) < pages)
            ahead[count++] = inner_page(node, i);
    for (uint32_t i = 0; i < count; i++)
        load_prefetch(tree->txn->worker, file, ahead[i]);
}

static enum store_result fetch_page(struct store_tree *tree, uint32_t page, uint32_t level,
                                    const struct format_node **node)
{
    struct store_txn *txn = tree->txn;
    struct page_file *file = tree_page_file(txn, tree->collection);
    assert(level < STORE_TREE_HEIGHT_MAX && request_holds(txn, file->id));
    if (page >= file->segment_count * SEGMENT_PAGES || page_file_class_of(file, page) != TREE_CLASS)
        return damaged(tree, page, NULL);
    uint32_t frame;
    enum store_result result = load_page(txn, file, page, &frame);
    if (result != STORE_OK)
        return result;
    const struct format_node *found = (const void *)arena_memory(file->arena, frame);
    if (found->item.database != FORMAT_HIDDEN || !(found->item.flags & FORMAT_NODE) ||
        found->collection != tree->collection->roots->collection || found->level != level ||
        found->count == 0)
        return damaged(tree, page, found);
    *node = found;
    tree->seen[level].node = found;
    tree->seen[level].page = page;
    tree->seen[level].leavings = txn->leavings;
    return STORE_OK;
}

/* A copy of the node, with the existing plan applied. */
static enum store_result copy_node(struct store_tree *tree, uint32_t page, uint32_t level,
                                   const struct tree_edit *edit, struct format_node **copy)
{
    const struct format_node *found;
    enum store_result result = fetch_page(tree, page, level, &found);
    if (result != STORE_OK)
        return result;
    *copy = store_alloc(tree->txn, PAGE_SIZE);
    if (!*copy)
        return STORE_NO_MEMORY;
    memcpy(*copy, found, PAGE_SIZE);
    if (edit)
        node_patch(*copy, edit->patch, edit->patch_length);
    return STORE_OK;
}

/* From here on the edit has a copy, also if only a read needs it. */
static enum store_result make_copy(struct store_tree *tree, struct tree_edit *edit, uint32_t level)
{
    struct format_node *copy;
    enum store_result result = copy_node(tree, edit->page, level, edit, &copy);
    if (result != STORE_OK)
        return result;
    edit->copy = copy;
    tree->txn->trees.buffers++;
    return STORE_OK;
}

static bool is_seen(const struct store_tree *tree, uint32_t page, uint32_t level)
{
    return tree->seen[level].page == page && tree->seen[level].leavings == tree->txn->leavings &&
           !tree->txn->blocking_io;
}

enum store_result tree_fetch(struct store_tree *tree, uint32_t page, uint32_t level,
                             const struct format_node **node)
{
    struct tree_edit *edit = find_edit(tree->txn, tree->collection->roots->home, page);
    if (!edit && is_seen(tree, page, level)) {
        *node = tree->seen[level].node;
        return STORE_OK;
    }
    if (!edit)
        return fetch_page(tree, page, level, node);
    if (edit->is_freed) /* two parents name it */
        return damaged(tree, page, NULL);
    enum store_result result = edit->copy ? STORE_OK : make_copy(tree, edit, level);
    *node = edit->copy;
    return result == STORE_OK && edit->copy->level != level ? damaged(tree, page, NULL) : result;
}

/* ---- changing ---- */

enum store_result tree_change(struct store_tree *tree, uint32_t page, uint32_t level,
                              struct format_node **node)
{
    struct tree_edit *edit = find_edit(tree->txn, tree->collection->roots->home, page);
    enum store_result result = STORE_OK;
    if (!edit) {
        result = copy_node(tree, page, level, NULL, node);
        if (result == STORE_OK && !(edit = add_edit(tree, page, 0)))
            result = STORE_NO_MEMORY;
        if (result == STORE_OK)
            edit->copy = *node;
        return result;
    }
    if (edit->is_freed) /* two parents name it */
        return damaged(tree, page, NULL);
    if (!edit->copy)
        result = make_copy(tree, edit, level);
    edit->is_planned = false;
    *node = edit->copy;
    return result;
}

/* Adds a plan for a node that has a copy. */
static void add_plan(struct store_txn *txn, struct tree_edit *edit, const char *bytes,
                     uint32_t length)
{
    assert(edit->copy);
    node_patch(edit->copy, bytes, length);
    if (edit->is_planned && edit->patch_length + length > PLANS_MOST)
        edit->is_planned = false;
    if (!edit->is_planned)
        return;
    if (!edit->plans && (edit->plans = store_alloc(txn, PLANS_MOST)))
        edit->patch = memcpy(edit->plans, edit->patch, edit->patch_length);
    edit->is_planned = edit->plans;
    if (!edit->is_planned)
        return;
    memcpy(edit->plans + edit->patch_length, bytes, length);
    edit->patch_length += length;
}

static enum store_result first_plan(struct store_tree *tree, uint32_t page, const char *bytes,
                                    uint32_t length)
{
    struct tree_edit *edit = add_edit(tree, page, length);
    if (!edit)
        return STORE_NO_MEMORY;
    edit->patch = memcpy(edit + 1, bytes, length);
    edit->patch_length = length;
    edit->is_planned = true;
    return STORE_OK;
}

enum store_result tree_apply(struct store_tree *tree, uint32_t page, const struct node_plan *plan)
{
    struct tree_edit *edit = find_edit(tree->txn, tree->collection->roots->home, page);
    if (!edit)
        return first_plan(tree, page, plan->bytes, plan->length);
    add_plan(tree->txn, edit, plan->bytes, plan->length); /* it was fetched, and has a copy */
    return STORE_OK;
}

enum store_result tree_add_count(struct store_tree *tree, uint32_t page, uint32_t level,
                                 uint32_t place, int32_t change)
{
    const struct format_node *node;
    struct tree_edit *edit = find_edit(tree->txn, tree->collection->roots->home, page);
    enum store_result result = tree_fetch(tree, page, level, &node);
    if (result != STORE_OK)
        return result;
    char plan[NODE_COUNT_PATCH];
    inner_patch_count(node, place, change, plan);
    if (!edit)
        return first_plan(tree, page, plan, sizeof plan);
    add_plan(tree->txn, edit, plan, sizeof plan);
    return STORE_OK;
}

enum store_result tree_new_node(struct store_tree *tree, uint32_t level, struct format_node **node,
                                uint32_t *page)
{
    struct page_file *file = tree_page_file(tree->txn, tree->collection);
    uint32_t slot;
    enum store_result result = commit_take_slot(tree->txn, file, TREE_CLASS, page, &slot);
    if (result != STORE_OK)
        return result;
    /* A page that this transaction has freed stays reserved until its commit: what it has changed
     * is only free if the page file was told so wrongly. */
    if (find_edit(tree->txn, tree->collection->roots->home, *page))
        return damaged(tree, *page, NULL);
    struct format_node *copy = store_alloc(tree->txn, PAGE_SIZE);
    struct tree_edit *edit = copy ? add_edit(tree, *page, 0) : NULL;
    if (!edit) {
        page_file_give_slot(file, *page, slot);
        return STORE_NO_MEMORY;
    }
    edit->copy = copy;
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

/* ---- releasing ---- */

static void give_back(struct store_txn *txn, struct tree_edit *edit)
{
    if (edit->is_fresh && !edit->is_idle)
        page_file_give_slot(tree_page_file(txn, edit->collection), edit->page, 0);
    edit->is_idle = true;
}

void tree_discard(struct store_txn *txn)
{
    for (struct tree_edit *edit = txn->trees.edits; edit; edit = edit->next)
        give_back(txn, edit);
    tree_forget(txn);
}

void tree_take_back(struct store_txn *txn, const struct tree_edit *edits)
{
    struct tree_txn *trees = &txn->trees;
    while (trees->edits != edits) {
        struct tree_edit *edit = trees->edits;
        struct tree_edit **at = bucket_of(trees, edit->collection->roots->home, edit->page);
        assert(!edit->frame && trees->edit_count > 0);
        while (*at != edit)
            at = &(*at)->next_in_bucket;
        *at = edit->next_in_bucket;
        give_back(txn, edit);
        trees->edits = edit->next;
        trees->edit_count--;
    }
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

/* The differences found so far. */
struct comparison {
    const char *fresh;
    uint32_t length, range_at; /* where the last range starts in `ranges` */
    uint32_t end;              /* of that range in the page */
    char ranges[PAGE_SIZE];    /* if it grows longer, the whole page is written instead */
};

static void add_range(struct comparison *found, uint32_t offset, uint32_t end)
{
    struct format_range range = {(uint16_t)offset, 0};
    uint32_t begin = offset;
    if (found->length > sizeof found->ranges)
        return;
    if (found->length && offset <= found->end + RANGE_GAP) {
        memcpy(&range, found->ranges + found->range_at, sizeof range);
        begin = found->end;
    } else {
        found->range_at = found->length;
        found->length += (uint32_t)sizeof range;
    }
    if (found->length + end - begin <= sizeof found->ranges) {
        range.length = (uint16_t)(end - range.offset);
        memcpy(found->ranges + found->range_at, &range, sizeof range);
        memcpy(found->ranges + found->length, found->fresh + begin, end - begin);
    }
    found->length += end - begin;
    found->end = end;
}

/* The differences within a line. */
static void compare_line(struct comparison *found, const char *old, uint32_t line)
{
    for (uint32_t at = line; at < line + LINE; at += 8) {
        uint64_t before, after;
        memcpy(&before, old + at, 8);
        memcpy(&after, found->fresh + at, 8);
        if (before == after || at < HEADER_BYTES)
            continue;
        uint64_t differs = before ^ after;
        uint32_t first = (uint32_t)__builtin_ctzll(differs) / 8;
        uint32_t last = 7 - (uint32_t)__builtin_clzll(differs) / 8;
        add_range(found, at + first, at + last + 1);
    }
}

/* The differences between the copy and the page. */
static bool compare(struct store_txn *txn, struct tree_edit *edit, const char *old)
{
    struct comparison found;
    found.fresh = (const char *)edit->copy;
    found.length = found.range_at = found.end = 0;
    for (uint32_t line = 0; line < PAGE_SIZE; line += LINE)
        if (memcmp(old + line, found.fresh + line, LINE) != 0)
            compare_line(&found, old, line);
    edit->patch_length = found.length;
    if (found.length > sizeof found.ranges)
        return true;
    char *patch = store_alloc(txn, found.length);
    edit->patch = patch ? memcpy(patch, found.ranges, found.length) : NULL;
    return patch;
}

static enum store_result prepare_edit(struct store_txn *txn, struct tree_edit *edit)
{
    struct page_file *file = tree_page_file(txn, edit->collection);
    assert(!edit->frame && request_holds(txn, file->id));
    uint32_t frame;
    if (!edit->is_fresh && page_file_slot_is_free(file, edit->page, 0))
        return damaged(&edit->collection->trees[0], edit->page, NULL);
    enum store_result result = edit->is_fresh ? commit_slot_frame(txn, file, edit->page, 0, &frame)
                                              : load_page(txn, file, edit->page, &frame);
    if (result == STORE_OK)
        result = commit_hold(txn, file, &frame);
    if (result != STORE_OK)
        return result;
    edit->frame = frame;
    if (edit->is_fresh || edit->is_freed || edit->is_planned)
        return STORE_OK;
    return compare(txn, edit, arena_memory(file->arena, frame)) ? STORE_OK : STORE_NO_MEMORY;
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
            page_file_unref(tree_page_file(txn, edit->collection), edit->frame);
        edit->frame = 0;
    }
}

static uint32_t patch_length(const struct tree_edit *edit)
{
    return (uint32_t)sizeof(struct format_range) + HEADER_BYTES + edit->patch_length;
}

static bool is_patch(const struct tree_edit *edit)
{
    return !edit->is_fresh && !edit->is_freed && patch_length(edit) < PAGE_SIZE;
}

static uint32_t body_length(const struct tree_edit *edit)
{
    return edit->is_freed ? 0 : is_patch(edit) ? patch_length(edit) : PAGE_SIZE;
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

/* Returns how much the page's checksum changes, as the next two do. */
static uint32_t overwrite_word(char *page, uint32_t word, uint64_t after)
{
    char *at = page + (size_t)word * FORMAT_WORD;
    uint64_t before;
    memcpy(&before, at, sizeof before);
    memcpy(at, &after, sizeof after);
    return format_word_checksum(after, word) - format_word_checksum(before, word);
}

/* A number within one of the page's words, such as a count. */
static uint32_t overwrite_number(char *page, uint32_t offset, const void *bytes)
{
    uint32_t word = offset / FORMAT_WORD;
    uint64_t after;
    memcpy(&after, page + (size_t)word * FORMAT_WORD, sizeof after);
    memcpy((char *)&after + offset % FORMAT_WORD, bytes, sizeof(uint32_t));
    return overwrite_word(page, word, after);
}

static uint32_t overwrite(char *page, uint32_t offset, uint32_t length, const void *bytes)
{
    if (length == sizeof(uint32_t) && offset % FORMAT_WORD <= FORMAT_WORD - sizeof(uint32_t))
        return overwrite_number(page, offset, bytes);
    uint32_t before = format_words_checksum(page, offset, length);
    memcpy(page + offset, bytes, length);
    return format_words_checksum(page, offset, length) - before;
}

/* Applies the changes to the page, updates its checksum and adds them to the record. */
static void patch_page(const struct tree_edit *edit, char *page, char *at, uint64_t commit,
                       uint32_t mix)
{
    struct format_item *item = (struct format_item *)page;
    const struct format_range header = {0, HEADER_BYTES};
    const uint32_t version = offsetof(struct format_item, version) / FORMAT_WORD;
    uint32_t sum = (item->checksum ^ mix) + overwrite_word(page, version, commit);
    const char *from = edit->patch, *end = from + edit->patch_length;
    while (from < end) {
        struct format_range range;
        memcpy(&range, from, sizeof range);
        assert(range.offset + range.length <= PAGE_SIZE);
        sum += overwrite(page, range.offset, range.length, from + sizeof range);
        from += sizeof range + range.length;
    }
    item->checksum = sum ^ mix;
    memcpy(at, &header, sizeof header);
    memcpy(at + sizeof header, page, HEADER_BYTES);
    memcpy(at + sizeof header + HEADER_BYTES, edit->patch, edit->patch_length);
}

static void put_page(const struct tree_edit *edit, char *page, char *at, uint64_t commit,
                     uint32_t mix)
{
    edit->copy->item.version = commit;
    edit->copy->item.checksum = format_node_checksum(edit->copy) ^ mix;
    memcpy(at, edit->copy, PAGE_SIZE);
    memcpy(page, edit->copy, PAGE_SIZE);
}

static char *put_and_apply(struct store_txn *txn, struct tree_edit *edit, char *at, uint64_t commit)
{
    struct page_file *file = tree_page_file(txn, edit->collection);
    assert(edit->frame);
    char *page = arena_memory(file->arena, edit->frame);
    uint32_t length = body_length(edit);
    uint32_t mix = format_place_mix(txn->store->superblock.latest.seed, file->id, edit->page, 0);
    enum format_op kind = edit->is_freed   ? FORMAT_ERASE
                          : is_patch(edit) ? FORMAT_PATCH
                                           : FORMAT_PUT;
    at = commit_add_operation(at, kind, file->id, edit->page, 0, length);
    if (length % 8)
        memset(at + commit_padded(length) - 8, 0, 8);
    if (edit->is_freed) {
        memset(page, 0, sizeof(struct format_item));
        page_file_give_slot(file, edit->page, 0);
    } else if (kind == FORMAT_PATCH) {
        patch_page(edit, page, at, commit, mix);
    } else {
        put_page(edit, page, at, commit, mix);
    }
    page_file_mark_dirty(file, edit->frame, commit);
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
