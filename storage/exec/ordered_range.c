/*
 * Walks over a database's keys in order (ordered.h): a merge of the partitions' trees of keys.
 *
 * Each partition has a lane: a batch of keys read from its tree in one step under its lock, and
 * where the next batch begins. A batch has the names and, where wanted, the values; what may be
 * long (a key in extents, a large value) is read when its turn in the merge comes, so at most one
 * of them is in memory.
 *
 * Invariants
 * 1. A lane's batch changes only as a whole: a step that has to wait has added nothing.
 * 2. All names in a lane's batch, in the order of the walk, come before its position or are at it,
 *    and those of the tree that follow are not in the batch.
 * 3. Between two calls no lock is held, and nothing refers to a page.
 */
#include "storage/ordered.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/txn/databases.h"
#include "storage/txn/load.h"
#include "storage/txn/txn_memory.h"
#include "storage/txn/wait.h"
#include "storage/tree/key_tree.h"
#include "storage/value/extent.h"
#include "storage/value/long_key.h"

#define BATCH_LEAST 2u
#define BATCH_MOST 64u
#define LANES_BYTES (512u << 10) /* of all batches together; but one entry of each may be more */
#define LANE_LEAST 4096u
#define STEP_NAMES 1024u /* read before others have their turn */
#define RERUNS_MOST 12u  /* without progress: then it blocks, as with other trees */

/* A key in a batch; then the name as in the tree, the rest of a cut one, and the value. */
struct queued {
    uint32_t len;       /* of all that follows */
    uint32_t key_len;   /* of the key, as far as it is here */
    uint32_t value_len; /* likewise */
    uint16_t order_len; /* of the name as in the tree */
    uint16_t slot;
    uint64_t hash;
    bool is_late;   /* its key or value is read when its turn comes */
    bool has_value; /* which is here */
};

struct lane {
    char *bytes; /* the batch */
    size_t used, capacity, at;
    char position[STORE_TREE_KEY_MAX]; /* the last name read */
    uint32_t position_len;
    bool is_begun, is_over;
};

struct bound {
    char *bytes; /* NULL: none */
    uint32_t len;
    bool is_excluded;
};

struct store_range {
    struct store *store;
    struct store_range_options options;
    struct bound low, high;
    uint32_t database;  /* id; 0: not begun */
    uint32_t batch;     /* names per step */
    uint32_t names;     /* read since others had their turn */
    uint32_t reruns;    /* since it has made progress */
    uint64_t bytes;     /* of all lanes */
    struct lane *shown; /* whose first entry was returned by the last call; or NULL */
    struct lane lanes[];
};

/* A name read from the tree, in the memory of the step. */
struct name {
    const char *order;
    uint32_t len, slot;
    uint64_t hash;
    bool is_cut;
};

/* ---- bounds ---- */

static bool copy_bound(struct bound *to, const struct store_range_bound *from)
{
    to->is_excluded = from->is_excluded;
    to->len = from->len;
    if (!from->bytes)
        return true;
    to->bytes = malloc(from->len + 1u);
    if (to->bytes)
        memcpy(to->bytes, from->bytes, from->len);
    return to->bytes;
}

static bool is_below(const struct bound *low, const char *key, uint32_t len)
{
    int order = low->bytes ? node_compare(key, len, low->bytes, low->len) : 1;
    return order < 0 || (order == 0 && low->is_excluded);
}

static bool is_above(const struct bound *high, const char *key, uint32_t len)
{
    int order = high->bytes ? node_compare(key, len, high->bytes, high->len) : -1;
    return order > 0 || (order == 0 && high->is_excluded);
}

static bool is_within(const struct store_range *range, const char *key, uint32_t len)
{
    return !is_below(&range->low, key, len) && !is_above(&range->high, key, len);
}

/* Whether all names from this one on, in the order of the walk, are beyond the end of the range.
 * The keys of a cut name begin with what is left of it, and only that is in order. */
static bool is_beyond(const struct store_range *range, const char *name, uint32_t len)
{
    const struct bound *end = range->options.is_reverse ? &range->low : &range->high;
    if (!end->bytes)
        return false;
    if (!key_tree_is_cut(len))
        return range->options.is_reverse ? is_below(end, name, len) : is_above(end, name, len);
    uint32_t end_len = end->len < FORMAT_NAME_WHOLE ? end->len : FORMAT_NAME_WHOLE;
    int order = node_compare(name, FORMAT_NAME_WHOLE, end->bytes, end_len);
    return range->options.is_reverse ? order < 0 : order > 0;
}

/* ---- a step: the cursor ---- */

/* To the first name after these bytes. */
static enum store_result seek_after(struct store_txn *txn, struct store_tree *tree,
                                    const char *bytes, uint32_t len, struct store_cursor *cursor)
{
    char *next = store_alloc(txn, len + 1u); /* no other string comes between */
    if (!next)
        return STORE_NO_MEMORY;
    memcpy(next, bytes, len);
    next[len] = 0;
    return store_tree_find(tree, next, len + 1u, cursor);
}

/* To the place of the bound where the walk begins: the keys at it, if it is not excluded, and all
 * that are cut to the same name as a long bound, come in the walk. */
static enum store_result seek_bound(struct store_txn *txn, const struct store_range *range,
                                    struct store_tree *tree, struct store_cursor *cursor)
{
    bool is_reverse = range->options.is_reverse;
    const struct bound *bound = is_reverse ? &range->high : &range->low;
    char last[STORE_TREE_KEY_MAX + 1];
    if (!key_tree_is_cut(bound->len))
        return is_reverse != bound->is_excluded
                   ? seek_after(txn, tree, bound->bytes, bound->len, cursor)
                   : store_tree_find(tree, bound->bytes, bound->len, cursor);
    memcpy(last, bound->bytes, FORMAT_NAME_WHOLE);
    memset(last + FORMAT_NAME_WHOLE, 0xff, sizeof last - FORMAT_NAME_WHOLE);
    return store_tree_find(tree, last, is_reverse ? sizeof last : FORMAT_NAME_WHOLE, cursor);
}

/* To where the next batch begins: forwards at its first name, backwards after it. */
static enum store_result seek(struct store_txn *txn, const struct store_range *range,
                              const struct lane *lane, struct store_tree *tree,
                              struct store_cursor *cursor)
{
    bool is_reverse = range->options.is_reverse;
    if (lane->is_begun && is_reverse)
        return store_tree_find(tree, lane->position, lane->position_len, cursor);
    if (lane->is_begun)
        return seek_after(txn, tree, lane->position, lane->position_len, cursor);
    if (is_reverse ? range->high.bytes : range->low.bytes)
        return seek_bound(txn, range, tree, cursor);
    return store_tree_seek_rank(tree, is_reverse ? store_tree_count(tree) : 0, cursor);
}

static enum store_result keep_name(struct store_txn *txn, const struct store_entry *entry,
                                   struct name *name)
{
    bool good = !entry->value.large && key_tree_slot(entry->key, entry->key_len, entry->value.bytes,
                                                     entry->value.length, &name->slot);
    char *copy = good ? store_alloc(txn, entry->key_len) : NULL;
    if (!copy)
        return good ? STORE_NO_MEMORY : STORE_DAMAGED;
    name->order = memcpy(copy, entry->key, entry->key_len);
    name->len = entry->key_len;
    name->hash = key_tree_hash(txn->store, name->order, name->len);
    name->is_cut = key_tree_is_cut(name->len);
    return STORE_OK;
}

/* Reads up to `most` names. *is_over: the range ends with them. */
static enum store_result read_names(struct store_txn *txn, const struct store_range *range,
                                    struct store_cursor *cursor, struct name *names, uint32_t most,
                                    uint32_t *count, bool *is_over)
{
    enum store_result result = STORE_OK;
    for (*count = 0; *count < most && !*is_over; ++*count) {
        struct store_entry entry;
        if (range->options.is_reverse)
            result = store_tree_prev(cursor);
        if (result == STORE_OK)
            result = store_tree_get(cursor, &entry);
        *is_over = result == STORE_ABSENT ||
                   (result == STORE_OK && is_beyond(range, entry.key, entry.key_len));
        if (*is_over)
            return STORE_OK;
        if (result == STORE_OK)
            result = keep_name(txn, &entry, &names[*count]);
        if (result == STORE_OK && !range->options.is_reverse)
            result = store_tree_next(cursor);
        if (result != STORE_OK)
            return result;
    }
    return STORE_OK;
}

/* ---- a step: the items ---- */

static bool is_of(const struct store_range *range, const struct name *name,
                  const struct format_item *item)
{
    if (item->database != range->database || item->flags & FORMAT_KEY_TREE)
        return false;
    if (!name->is_cut)
        return !(item->flags & FORMAT_LONG_KEY) && item->key_len == name->len &&
               memcmp(format_key(item), name->order, name->len) == 0;
    if (format_key_hash(&range->store->superblock.secret, item) != name->hash)
        return false;
    return item->flags & FORMAT_LONG_KEY ||
           (item->key_len > FORMAT_NAME_WHOLE &&
            memcmp(format_key(item), name->order, FORMAT_NAME_WHOLE) == 0);
}

/* Whether the index tells all that is wanted of the key. */
static bool needs_item(const struct store_range *range, const struct name *name, uint64_t entry)
{
    return range->options.wants_value || name->is_cut || index_flags(entry) & INDEX_EXPIRES ||
           atomic_load_explicit(&range->store->damaged, memory_order_relaxed) > 0;
}

/* Finds the item of a name. *item NULL: there is none, or it has expired. *is_known: it is there,
 * and need not be read. The partition's lock is held. */
static enum store_result find_item(struct store_txn *txn, const struct store_range *range,
                                   const struct name *name, const struct format_item **item,
                                   bool *is_known)
{
    struct partition *partition = engine_partition(txn->store, name->slot);
    const struct index *index = &partition->index;
    uint32_t at = index_find(index, name->slot, engine_tag(name->hash, range->database));
    *item = NULL;
    *is_known = at != INDEX_NONE;
    for (uint32_t i = at; i != INDEX_NONE && *is_known; i = index_next(index, name->slot, i))
        *is_known = !needs_item(range, name, index_get(index, name->slot, i));
    for (; at != INDEX_NONE && !*is_known; at = index_next(index, name->slot, at)) {
        uint64_t entry = index_get(index, name->slot, at);
        uint32_t frame, page = index_page(entry);
        enum store_result result = load_page(txn, &partition->file, page, &frame);
        if (result != STORE_OK)
            return result;
        uint32_t size = format_class_size(page_file_class_of(&partition->file, page));
        const struct format_item *found =
            (const void *)(arena_memory(&txn->store->cache.arena, frame) +
                           index_item_slot(entry) * size);
        if (!is_of(range, name, found))
            continue;
        int64_t expiry = format_expiry(found);
        *item = expiry == STORE_NO_EXPIRY || expiry >= txn->request->now_ms ? found : NULL;
        return STORE_OK;
    }
    return STORE_OK;
}

static bool wants_value(const struct store_range *range, const struct format_item *item)
{
    return item && range->options.wants_value && !(item->flags & FORMAT_TREES) &&
           range->options.wants_value(item->type);
}

static void *put(char *to, const void *bytes, size_t len)
{
    if (len > 0)
        memcpy(to, bytes, len);
    return to + len;
}

/* Appends a key to the batch; its item is NULL if the name says all. */
static enum store_result append(struct store_range *range, struct lane *lane,
                                const struct name *name, const struct format_item *item)
{
    bool is_long = item && item->flags & FORMAT_LONG_KEY;
    bool is_large = wants_value(range, item) && item->flags & FORMAT_LARGE;
    const char *key = name->is_cut && !is_long ? format_key(item) : name->order;
    uint32_t key_len = name->is_cut && !is_long ? item->key_len : name->len;
    if (!is_long && !is_within(range, key, key_len))
        return STORE_OK;
    struct queued queued = {.key_len = key_len,
                            .order_len = (uint16_t)name->len,
                            .slot = (uint16_t)name->slot,
                            .hash = name->hash,
                            .is_late = is_long || is_large,
                            .has_value = wants_value(range, item) && !is_long && !is_large};
    uint32_t rest = name->is_cut && !is_long ? key_len : 0;
    queued.value_len = queued.has_value ? item->payload_len : 0;
    queued.len = name->len + rest + queued.value_len;
    size_t needed = lane->used + sizeof queued + queued.len, capacity = 2 * needed;
    if (needed > lane->capacity) {
        char *grown = realloc(lane->bytes, capacity);
        if (!grown)
            return STORE_NO_MEMORY;
        range->bytes += capacity - lane->capacity;
        lane->bytes = grown;
        lane->capacity = capacity;
    }
    char *to = put(lane->bytes + lane->used, &queued, sizeof queued);
    to = put(to, name->order, name->len);
    to = put(to, key, rest);
    put(to, queued.has_value ? format_payload(item) : NULL, queued.value_len);
    lane->used = needed;
    return STORE_OK;
}

static size_t lane_most(const struct store_range *range)
{
    size_t share = LANES_BYTES / range->store->partition_count;
    return share > LANE_LEAST ? share : LANE_LEAST;
}

/* Appends the keys of the names; *count: as many as there is room for. Requests all pages before it
 * waits for any. */
static enum store_result append_names(struct store_txn *txn, struct store_range *range,
                                      struct lane *lane, const struct name *names, uint32_t *count)
{
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < *count; i++) {
        const struct format_item *item;
        bool is_known;
        enum store_result found = find_item(txn, range, &names[i], &item, &is_known);
        if (found == STORE_WAIT)
            result = STORE_WAIT;
        else if (found != STORE_OK)
            return found;
        if (txn->starved)
            return STORE_WAIT;
        if (result == STORE_OK && (item || is_known))
            found = append(range, lane, &names[i], item);
        if (found == STORE_NO_MEMORY)
            return found;
        if (lane->used >= lane_most(range))
            *count = i + 1;
    }
    return result;
}

/* ---- a step ---- */

static enum store_result read_batch(struct store_txn *txn, struct store_range *range,
                                    struct lane *lane)
{
    uint32_t partition = (uint32_t)(lane - range->lanes), count;
    struct store_tree *tree;
    struct store_cursor cursor;
    bool is_over = false;
    enum store_result result = key_tree_open(txn, partition, range->database, &tree);
    if (result != STORE_OK || !tree) {
        lane->is_over = result == STORE_OK;
        return result;
    }
    struct name *names = store_alloc(txn, range->batch * sizeof *names);
    if (!names)
        return STORE_NO_MEMORY;
    result = seek(txn, range, lane, tree, &cursor);
    if (result == STORE_OK)
        result = read_names(txn, range, &cursor, names, range->batch, &count, &is_over);
    if (result != STORE_OK)
        return result;
    uint32_t taken = count;
    result = append_names(txn, range, lane, names, &taken);
    if (result != STORE_OK)
        return result;
    lane->is_over = is_over && taken == count;
    lane->is_begun |= taken > 0;
    range->names += taken + 1;
    if (taken > 0) {
        lane->position_len = names[taken - 1].len;
        memcpy(lane->position, names[taken - 1].order, names[taken - 1].len);
    }
    return STORE_OK;
}

/* The database keeps its id, whatever name a SWAPDB gives it; after a flush it has no keys. */
static bool find_database(struct store_range *range)
{
    if (!range->database)
        range->database = range->store->databases.ids[range->options.db];
    return !databases_is_dead(range->store, range->database);
}

/* Takes a partition's lock for one step. */
static bool enter(struct store_txn *txn, uint32_t partition)
{
    bool was_held = request_holds(txn, partition);
    if (!was_held) {
        pthread_mutex_lock(&txn->store->partitions[partition].file.lock);
        txn->locked[partition / 64] |= 1ull << (partition % 64);
    }
    return was_held;
}

static void leave(struct store_txn *txn, uint32_t partition, bool was_held)
{
    if (was_held)
        return;
    txn->locked[partition / 64] &= ~(1ull << (partition % 64));
    pthread_mutex_unlock(&txn->store->partitions[partition].file.lock);
}

/* Reads the lane's next batch. Its tree, memory and collection end with the step: the next one sees
 * others. */
static enum store_result refill(struct store_txn *txn, struct store_range *range, struct lane *lane)
{
    uint32_t partition = (uint32_t)(lane - range->lanes);
    struct collection *collections = txn->trees.collections;
    uint32_t buffers = txn->trees.buffers;
    struct memory_block *of_run = txn_memory_swap(txn, NULL);
    enum store_result result = STORE_OK;
    lane->used = lane->at = 0;
    bool was_held = enter(txn, partition);
    if (find_database(range))
        result = read_batch(txn, range, lane);
    else
        lane->is_over = true;
    leave(txn, partition, was_held);
    if (result != STORE_OK)
        lane->used = 0;
    txn->trees.collections = collections;
    txn->trees.buffers = buffers;
    txn_memory_free(txn, txn_memory_swap(txn, of_run));
    return result;
}

/* Reads batches until each lane has a key or is over. While one waits, the others request their
 * pages. */
static enum store_result fill(struct store_txn *txn, struct store_range *range)
{
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < range->store->partition_count; i++) {
        struct lane *lane = &range->lanes[i];
        while (lane->at == lane->used && !lane->is_over) {
            if (range->names >= STEP_NAMES) {
                range->names = 0;
                return result == STORE_OK ? store_step(txn) : result;
            }
            enum store_result filled = refill(txn, range, lane);
            if (filled != STORE_OK && filled != STORE_WAIT)
                return filled;
            if (filled == STORE_WAIT)
                result = STORE_WAIT;
            if (txn->starved)
                return STORE_WAIT;
            if (filled == STORE_WAIT)
                break;
            range->reruns = 0;
        }
    }
    return result;
}

/* ---- the merge ---- */

static struct queued first_of(const struct lane *lane)
{
    struct queued queued;
    assert(lane->at < lane->used);
    memcpy(&queued, lane->bytes + lane->at, sizeof queued);
    return queued;
}

/* Whether the lane's first key comes before the other's, in the order of the walk. */
static bool comes_before(const struct store_range *range, const struct lane *lane,
                         const struct lane *other)
{
    int order =
        node_compare(lane->bytes + lane->at + sizeof(struct queued), first_of(lane).order_len,
                     other->bytes + other->at + sizeof(struct queued), first_of(other).order_len);
    return range->options.is_reverse ? order > 0 : order < 0;
}

static struct lane *first_lane(struct store_range *range)
{
    struct lane *first = NULL;
    for (uint32_t i = 0; i < range->store->partition_count; i++) {
        struct lane *lane = &range->lanes[i];
        if (lane->at < lane->used && (!first || comes_before(range, lane, first)))
            first = lane;
    }
    return first;
}

static void drop_first(struct lane *lane)
{
    lane->at += sizeof(struct queued) + first_of(lane).len;
    assert(lane->at <= lane->used);
}

static void show(const struct lane *lane, struct store_range_entry *entry)
{
    struct queued queued = first_of(lane);
    const char *order = lane->bytes + lane->at + sizeof queued;
    const char *key = key_tree_is_cut(queued.order_len) ? order + queued.order_len : order;
    *entry = (struct store_range_entry){.key = key, .key_len = queued.key_len};
    if (queued.has_value) {
        entry->value = order + queued.len - queued.value_len;
        entry->value_len = queued.value_len;
    }
}

/* ---- what is read when its turn comes ---- */

static enum store_result load_value(struct store_txn *txn, const struct store_range *range,
                                    const struct format_item *item, struct store_range_entry *entry)
{
    struct store_item shown;
    txn_describe(item, &shown);
    entry->value = shown.bytes;
    entry->value_len = shown.length;
    return shown.large ? extent_load(txn, &shown, range->options.loaded_most, &entry->value)
                       : STORE_OK;
}

/* STORE_ABSENT: the key is gone meanwhile, or not in the range. */
static enum store_result load_late(struct store_txn *txn, const struct store_range *range,
                                   const struct lane *lane, struct store_range_entry *entry)
{
    struct queued queued = first_of(lane);
    const struct name name = {.order = lane->bytes + lane->at + sizeof queued,
                              .len = queued.order_len,
                              .slot = queued.slot,
                              .hash = queued.hash,
                              .is_cut = key_tree_is_cut(queued.order_len)};
    const struct format_item *found;
    bool is_known;
    if (databases_is_dead(range->store, range->database))
        return STORE_ABSENT;
    enum store_result result = find_item(txn, range, &name, &found, &is_known);
    if (result != STORE_OK || !found)
        return result == STORE_OK ? STORE_ABSENT : result;
    uint32_t length = format_head_length(found) + found->key_len + found->payload_len;
    struct format_item *item = store_alloc(txn, length); /* its page may be evicted */
    if (!item)
        return STORE_NO_MEMORY;
    memcpy(item, found, length);
    result = long_key_get(txn, item, &entry->key, &entry->key_len);
    if (result == STORE_OK && !is_within(range, entry->key, entry->key_len))
        return STORE_ABSENT;
    if (result == STORE_OK && range->options.skip == 0 && wants_value(range, item))
        result = load_value(txn, range, item, entry);
    return result == STORE_DAMAGED ? STORE_ABSENT : result;
}

static enum store_result load_late_locked(struct store_txn *txn, const struct store_range *range,
                                          const struct lane *lane, struct store_range_entry *entry)
{
    uint32_t partition = (uint32_t)(lane - range->lanes);
    bool was_held = enter(txn, partition);
    enum store_result result = load_late(txn, range, lane, entry);
    leave(txn, partition, was_held);
    return result;
}

/* ---- the interface ---- */

static enum store_result next(struct store_txn *txn, struct store_range *range,
                              struct store_range_entry *entry)
{
    for (;;) {
        enum store_result result = fill(txn, range);
        struct lane *lane = result == STORE_OK ? first_lane(range) : NULL;
        if (!lane)
            return result == STORE_OK ? STORE_ABSENT : result;
        show(lane, entry);
        if (first_of(lane).is_late)
            result = load_late_locked(txn, range, lane, entry);
        if (result != STORE_OK && result != STORE_ABSENT)
            return result;
        range->reruns = 0;
        if (result == STORE_OK && range->options.skip == 0) {
            range->shown = lane;
            return STORE_OK;
        }
        range->options.skip -= result == STORE_OK;
        drop_first(lane);
    }
}

enum store_result store_range_next(struct store_txn *txn, struct store_range *range,
                                   struct store_range_entry *entry)
{
    assert(txn->request->scope == STORE_SCOPE_NONE && txn->write_count == 0);
    if (range->shown) {
        extent_drop_keys(txn);
        store_drop_loaded(txn);
        drop_first(range->shown);
        range->shown = NULL;
    }
    txn->starved = false;
    enum store_result result = next(txn, range, entry);
    txn->shown = atomic_load_explicit(&txn->store->journal.appended, memory_order_acquire);
    if (result == STORE_WAIT && range->reruns++ < RERUNS_MOST)
        txn->reruns = 0;
    return result;
}

bool store_is_ordered(const struct store *store)
{
    return store->is_ordered;
}

/* About as many names per lane as the caller wants, where they are evenly spread. */
static uint32_t batch_of(const struct store *store, const struct store_range_options *options)
{
    uint64_t wanted = options->most + options->skip;
    if (wanted < options->most)
        wanted = UINT64_MAX;
    uint64_t batch = wanted / store->partition_count + BATCH_LEAST;
    return batch < BATCH_MOST ? (uint32_t)batch : BATCH_MOST;
}

struct store_range *store_range_new(struct store *store, const struct store_range_options *options)
{
    uint64_t bytes = sizeof(struct store_range) + store->partition_count * sizeof(struct lane);
    struct store_range *range = calloc(1, bytes);
    assert(store->is_ordered);
    if (!range)
        return NULL;
    range->store = store;
    range->options = *options;
    range->batch = batch_of(store, options);
    range->bytes = bytes;
    if (copy_bound(&range->low, &options->low) && copy_bound(&range->high, &options->high))
        return range;
    store_range_free(range);
    return NULL;
}

uint64_t store_range_bytes(const struct store_range *range)
{
    return range->bytes;
}

void store_range_free(struct store_range *range)
{
    for (uint32_t i = 0; i < range->store->partition_count; i++)
        free(range->lanes[i].bytes);
    free(range->low.bytes);
    free(range->high.bytes);
    free(range);
}
