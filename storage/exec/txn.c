/*
 * The inside of a transaction: what a run function calls. Changes are buffered as writes, one per
 * key, and seen by the transaction's own reads; nothing leaves it before commit.c applies them.
 *
 * Invariants
 * 1. One write per (place, key): a later change of the same key replaces or extends it. A place is
 *    what a logical database was when the key was written: see databases.c.
 * 2. Everything a write refers to is the request's arguments or the transaction's own memory: a
 *    frame may be gone by the time of the commit, so that bytes in one are copied.
 */
#include "storage/tree/tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/value/long_key.h"
#include "storage/exec/upload.h"
#include "storage/cache/use.h"
#include "storage/txn/txn_memory.h"

#define COPY_SHARE 4u /* of memory: what a run may have copied in place */
#define COPY_LEAST (4u << 20)
#define KEPT_ENTRIES 1024u /* longer arrays are not kept for the next transaction */
#define WRITES_SEARCHED 8u /* a longer list gets a table */

/* ---- life ---- */

/* What few transactions need is given back, or each of those kept would come to hold as much as the
 * largest command there has been. */
static void trim(struct store_txn *txn)
{
    if (txn->write_capacity > KEPT_ENTRIES) {
        free(txn->writes);
        free(txn->write_table);
        txn->writes = NULL;
        txn->write_table = NULL;
        txn->write_capacity = txn->write_table_room = 0;
        txn_memory_note(txn);
    }
    if (txn->pin_capacity > KEPT_ENTRIES) {
        free(txn->pins);
        txn->pins = NULL;
        txn->pin_capacity = 0;
    }
    if (txn->claim_capacity > KEPT_ENTRIES) {
        free(txn->claims);
        txn->claims = NULL;
        txn->claim_capacity = 0;
    }
    if (txn->trees.table_size > KEPT_ENTRIES) {
        free(txn->trees.table);
        txn->trees.table = NULL;
        txn->trees.table_size = 0;
    }
}

void txn_begin(struct store_txn *txn, struct store_request *request)
{
    txn->request = request;
    txn->phase = TXN_RUN;
    txn->failure = STORE_OK;
    txn->shown = 0;
    txn->cause = STORE_BY_REQUEST;
    txn->leaves_no_trace = false;
    txn->used_page = 0;
    txn->room_since_ms = 0;
    request->shown = 0;
    request->worker = txn->worker;
    request->parked = txn;
}

void txn_discard(struct store_txn *txn)
{
    commit_abandon(txn);
    tree_discard(txn);
    while (txn->streams) {
        struct store_stream *stream = txn->streams;
        store_stream_close(stream);
    }
    txn->write_count = 0;
    txn->write_table_size = 0;
    txn->staged_count = 0;
    txn->arrangement.changed = false;
    txn->shown = 0;
    txn->cause = STORE_BY_REQUEST;
    txn_memory_release(txn);
}

void txn_reset(struct store_txn *txn)
{
    while (txn->streams)
        stream_leave(txn->streams);
    txn->write_count = 0;
    txn->write_table_size = 0;
    txn->staged_count = 0;
    txn->arrangement.changed = false;
    txn_memory_release(txn);
    extent_drop_loads(txn);
    if (txn->pin_count)
        load_release_pins(txn);
    tree_forget(txn);
    trim(txn);
    txn->more[0] = txn->more[1] = 0;
    txn->again = txn->stepped = txn->rests = false;
    txn->life++;
    txn->parked = txn->in_place = txn->out_of_memory = txn->holds_barrier = false;
    txn->refuses = false;
    txn->reruns = 0;
    txn->frame_waits = 0;
    txn->failed_space = NULL;
    txn->stage_error = 0;
    txn->next = txn->worker->free_txns;
    txn->worker->free_txns = txn;
}

void txn_free(struct store_txn *txn)
{
    txn_memory_release(txn);
    free(txn->blocks);
    free(txn->writes);
    free(txn->write_table);
    store_note_memory(txn->store, -txn->noted_bytes);
    free(txn->trees.table);
    free(txn->pins);
    free(txn->claims);
    free(txn);
}

int64_t store_now(const struct store_txn *txn)
{
    return txn->request->now_ms;
}

/* ---- looking up ---- */

enum store_result txn_find(struct store_txn *txn, const struct store_key *key, uint32_t database,
                           struct found *found)
{
    struct store *store = txn->store;
    struct partition *partition = engine_partition(store, key->slot);
    uint32_t tag = engine_tag(key->hash, database);
    const struct index *index = &partition->index;
    bool damaged = false;
    found->item = NULL;
    for (uint32_t at = index_find(index, key->slot, tag); at != INDEX_NONE;
         at = index_next(index, key->slot, at)) {
        uint64_t entry = index_get(index, key->slot, at);
        found->page = index_page(entry);
        found->slot = index_item_slot(entry);
        enum store_result result = load_page(txn, &partition->space, found->page, &found->frame);
        if (result != STORE_OK)
            return result;
        uint32_t size = format_class_size(space_class_of(&partition->space, found->page));
        const char *memory = arena_memory(&store->arena, found->frame);
        const struct format_item *item = (const void *)(memory + found->slot * size);
        damaged |= item->database == FORMAT_DAMAGED;
        if (item->database == database && long_key_is_of(store, item, key)) {
            found->item = item;
            return STORE_OK;
        }
    }
    return damaged ? STORE_DAMAGED : STORE_OK;
}

static bool same_key(const struct store_key *a, const struct store_key *b)
{
    return a->hash == b->hash && a->db == b->db && a->len == b->len &&
           memcmp(a->data, b->data, a->len) == 0;
}

static bool is_of(const struct write *write, const struct store_key *key, uint32_t place)
{
    return write->key.hash == key->hash && write->place == place && write->key.len == key->len &&
           memcmp(write->key.data, key->data, key->len) == 0;
}

static uint32_t *table_cell(const struct store_txn *txn, const struct store_key *key,
                            uint32_t place)
{
    uint32_t mask = txn->write_table_size - 1;
    uint32_t at = (uint32_t)(key->hash + place) & mask;
    while (txn->write_table[at] && !is_of(&txn->writes[txn->write_table[at] - 1], key, place))
        at = (at + 1) & mask;
    return &txn->write_table[at];
}

struct write *txn_find_write(struct store_txn *txn, const struct store_key *key)
{
    uint32_t place = databases_place(txn, key->db);
    if (txn->write_table_size) {
        uint32_t number = *table_cell(txn, key, place);
        return number ? &txn->writes[number - 1] : NULL;
    }
    for (uint32_t i = 0; i < txn->write_count; i++)
        if (is_of(&txn->writes[i], key, place))
            return &txn->writes[i];
    return NULL;
}

static bool expired(const struct store_txn *txn, int64_t expire_ms)
{
    return expire_ms != STORE_NO_EXPIRY && expire_ms < txn->request->now_ms;
}

const struct store_item *txn_describe_write(const struct store_txn *txn, const struct write *write,
                                            struct store_item *item)
{
    if (write->kind == WRITE_DELETE || expired(txn, write->expire_ms))
        return NULL;
    *item = (struct store_item){.bytes = write->large ? NULL : write->bytes,
                                .length = write->large ? write->large->length : write->len,
                                .expire_ms = write->expire_ms,
                                .type = write->type,
                                .large = write->large != NULL,
                                .origin = write->large};
    if (write->trees) {
        item->trees = ((const struct format_trees *)write->bytes)->count;
        item->bytes = NULL;
        item->length = 0;
        item->origin = write->trees;
    }
    return item;
}

void txn_describe(const struct format_item *found, struct store_item *item)
{
    *item = (struct store_item){.bytes = format_payload(found),
                                .length = found->payload_len,
                                .expire_ms = format_expiry(found),
                                .version = found->version,
                                .type = found->type,
                                .large = (found->flags & FORMAT_LARGE) != 0,
                                .origin = found};
    if (item->large) {
        memcpy(&item->length, item->bytes, sizeof item->length);
        item->bytes = NULL;
    }
    if (found->flags & FORMAT_TREES) {
        item->trees = (uint8_t)item->bytes[offsetof(struct format_trees, count)];
        item->bytes = NULL;
        item->length = 0;
    }
}

/* A script may read any number of keys in one run. */
static bool is_too_much(struct store_txn *txn, uint32_t length)
{
    uint64_t most =
        atomic_load_explicit(&txn->store->memory_bytes, memory_order_relaxed) / COPY_SHARE;
    txn->copied_bytes += length;
    return txn->copied_bytes > most && txn->copied_bytes > COPY_LEAST;
}

static enum store_result item_from_disk(struct store_txn *txn, const struct format_item *found,
                                        struct store_item *item)
{
    if (txn->in_place) { /* the next look-up may evict the page */
        uint32_t length = format_head_length(found) + found->key_len + found->payload_len;
        struct format_item *copy = is_too_much(txn, length) ? NULL : store_alloc(txn, length);
        if (!copy)
            return STORE_NO_MEMORY;
        found = memcpy(copy, found, length);
    }
    txn_describe(found, item);
    return STORE_OK;
}

static void show(struct store_txn *txn, uint64_t commit)
{
    if (commit > txn->shown)
        txn->shown = commit;
}

enum store_result store_get(struct store_txn *txn, const struct store_key *key,
                            struct store_item *item)
{
    if (txn->write_count) {
        const struct write *write = txn_find_write(txn, key);
        if (write)
            return txn_describe_write(txn, write, item) ? STORE_OK : STORE_ABSENT;
    }
    uint32_t database = databases_committed(txn, databases_place(txn, key->db));
    if (!database)
        return STORE_ABSENT;
    struct found found;
    enum store_result result = txn_find(txn, key, database, &found);
    if (result != STORE_OK)
        return result;
    if (!found.item) {
        show(txn, engine_partition(txn->store, key->slot)->last_removal);
        return STORE_ABSENT;
    }
    int64_t expiry = format_expiry(found.item);
    show(txn, found.item->version);
    show(txn, txn->store->databases_commit); /* an older item may be shown by a swap */
    if (expired(txn, expiry)) {
        expire_note(txn->worker, key->slot, engine_tag(key->hash, database));
        return STORE_ABSENT;
    }
    if (use_kind(txn->store) != USE_IGNORED && !txn->leaves_no_trace)
        use_touch(txn, &engine_partition(txn->store, key->slot)->space, found.page, found.slot);
    return item_from_disk(txn, found.item, item);
}

/* ---- use ---- */

void store_count_use(struct store_txn *txn, bool counts)
{
    txn->leaves_no_trace = !counts;
}

enum store_result store_get_use(struct store_txn *txn, const struct store_key *key,
                                struct store_use *use)
{
    struct store *store = txn->store;
    const struct space *space = &engine_partition(store, key->slot)->space;
    uint32_t database = databases_committed(txn, databases_place(txn, key->db));
    int64_t now_ms = txn->request->now_ms;
    struct found found = {0};
    *use = (struct store_use){.idle_ms = 0};
    enum store_result result = database ? txn_find(txn, key, database, &found) : STORE_ABSENT;
    if (result != STORE_OK || !found.item)
        return result == STORE_OK ? STORE_ABSENT : result;
    if (use_kind(store) == USE_IGNORED)
        use_want(store, USE_TIME);
    if (use_kind(store) == USE_FREQUENCY)
        use->frequency = use_frequency(store, space, found.page, found.slot, now_ms);
    else
        use->idle_ms = use_idle_ms(store, space, found.page, found.slot, now_ms);
    return STORE_OK;
}

void store_set_use(struct store_txn *txn, const struct store_key *key, const struct store_use *use)
{
    struct write *write = txn_find_write(txn, key);
    int64_t now_ms = txn->request->now_ms;
    if (write && use_kind(txn->store) == USE_TIME)
        write->use = use_by_idle(txn->store, now_ms, use->idle_ms);
    else if (write && use_kind(txn->store) == USE_FREQUENCY)
        write->use = use_by_frequency(now_ms, use->frequency);
}

/* ---- large values ---- */

struct format_root *txn_copy_root(struct store_txn *txn, const struct store_item *item)
{
    const struct format_item *found = item->origin;
    struct format_root *root = store_alloc(txn, found->payload_len);
    return root ? memcpy(root, format_payload(found), found->payload_len) : NULL;
}

static enum store_result read_own(struct store_txn *txn, const struct large_write *large,
                                  uint64_t offset, size_t len, char *to)
{
    memset(to, 0, len);
    if (large->base && offset < large->base->length) {
        uint64_t left = large->base->length - offset;
        enum store_result result =
            extent_read(txn, large->base, offset, left < len ? left : len, to);
        if (result != STORE_OK)
            return result;
    }
    patches_overlay(large->patches, offset, len, to);
    return STORE_OK;
}

enum store_result store_read(struct store_txn *txn, const struct store_item *item, uint64_t offset,
                             size_t len, char *to)
{
    assert(offset <= item->length && len <= item->length - offset);
    if (!item->large) {
        memcpy(to, item->bytes + offset, len);
        return STORE_OK;
    }
    if (item->version == 0)
        return read_own(txn, item->origin, offset, len, to);
    const struct format_root *root = txn_copy_root(txn, item);
    return root ? extent_read(txn, root, offset, len, to) : STORE_NO_MEMORY;
}

enum store_result store_load(struct store_txn *txn, const struct store_item *item,
                             const char **bytes)
{
    return store_load_within(txn, item, UINT64_MAX, bytes);
}

enum store_result store_load_within(struct store_txn *txn, const struct store_item *item,
                                    uint64_t most, const char **bytes)
{
    if (!item->large) {
        *bytes = item->bytes;
        return STORE_OK;
    }
    if (item->version != 0)
        return extent_load(txn, item, most, bytes);
    char *memory = txn->block_bytes + item->length > most ? NULL : store_alloc(txn, item->length);
    *bytes = memory;
    return memory ? store_read(txn, item, 0, item->length, memory) : STORE_NO_MEMORY;
}

/* ---- changing ---- */

static bool grow_writes(struct store_txn *txn)
{
    uint32_t capacity = txn->write_capacity ? 2 * txn->write_capacity : 8;
    struct write *grown = realloc(txn->writes, capacity * sizeof *grown);
    if (!grown)
        return false;
    txn->writes = grown;
    txn->write_capacity = capacity;
    txn_memory_note(txn);
    return true;
}

static bool build_table(struct store_txn *txn)
{
    uint32_t size = WRITE_CELLS * txn->write_capacity;
    if (size > txn->write_table_room) {
        uint32_t *table = realloc(txn->write_table, size * sizeof *table);
        if (!table)
            return false;
        txn->write_table = table;
        txn->write_table_room = size;
    }
    memset(txn->write_table, 0, size * sizeof *txn->write_table);
    txn->write_table_size = size;
    for (uint32_t i = 0; i < txn->write_count; i++)
        *table_cell(txn, &txn->writes[i].key, txn->writes[i].place) = i + 1;
    return true;
}

/* What a write refers to may have been read from a page, which need not be there any more when the
 * commit comes: then it gets a copy. False: out of memory. */
static bool outlives_pages(struct store_txn *txn, const char **bytes, size_t len)
{
    if (!arena_has(&txn->store->arena, *bytes))
        return true;
    char *copy = store_alloc(txn, len);
    if (copy)
        *bytes = memcpy(copy, *bytes, len);
    return copy;
}

/* The key's write, made anew: what it said before is forgotten. */
static struct write *new_write(struct store_txn *txn, const struct store_key *key,
                               enum write_kind kind)
{
    struct write *write = txn->write_count ? txn_find_write(txn, key) : NULL;
    uint32_t place = databases_place(txn, key->db);
    if (!write) {
        bool grows = txn->write_count == txn->write_capacity;
        if (grows && !grow_writes(txn))
            return NULL;
        bool table_due = txn->write_count == WRITES_SEARCHED || (grows && txn->write_table_size);
        if (table_due && !build_table(txn))
            return NULL;
        write = &txn->writes[txn->write_count++];
        if (txn->write_table_size)
            *table_cell(txn, key, place) = txn->write_count;
    }
    *write =
        (struct write){.key = *key, .place = place, .kind = kind, .expire_ms = STORE_NO_EXPIRY};
    return outlives_pages(txn, &write->key.data, key->len) ? write : NULL;
}

static bool fits(const struct store_key *key, uint64_t len, int64_t expire_ms)
{
    uint64_t head = sizeof(struct format_item) + (expire_ms == STORE_NO_EXPIRY ? 0 : 8);
    return head + long_key_in_item(key) + len <= FORMAT_ITEM_MAX;
}

static enum store_result put_small(struct store_txn *txn, const struct store_key *key, uint8_t type,
                                   const char *bytes, size_t len, int64_t expire_ms)
{
    struct write *write = outlives_pages(txn, &bytes, len) ? new_write(txn, key, WRITE_PUT) : NULL;
    if (!write)
        return STORE_NO_MEMORY;
    write->type = type;
    write->bytes = bytes;
    write->len = (uint32_t)len;
    write->expire_ms = expire_ms;
    return STORE_OK;
}

static bool add_patch(struct store_txn *txn, struct large_write *large, uint64_t offset,
                      const char *bytes, size_t len)
{
    if (!outlives_pages(txn, &bytes, len) || !patches_lay(txn, &large->patches, offset, bytes, len))
        return false;
    if (offset + len > large->length)
        large->length = offset + len;
    return true;
}

static struct large_write *put_large(struct store_txn *txn, const struct store_key *key,
                                     uint8_t type, int64_t expire_ms)
{
    struct large_write *large = store_alloc(txn, sizeof *large);
    struct write *write = large ? new_write(txn, key, WRITE_PUT) : NULL;
    if (!write)
        return NULL;
    *large = (struct large_write){0};
    write->type = type;
    write->expire_ms = expire_ms;
    write->large = large;
    return large;
}

/* A large write that begins as what `item` is, for a new name, a new expiry or patches. */
static struct large_write *put_again(struct store_txn *txn, const struct store_key *key,
                                     const struct store_item *item, int64_t expire_ms)
{
    struct large_write from = {0};
    if (item->version == 0) {
        from = *(const struct large_write *)item->origin;
    } else {
        from.base = txn_copy_root(txn, item);
        from.length = item->length;
        if (!from.base)
            return NULL;
    }
    struct large_write *large = put_large(txn, key, item->type, expire_ms);
    if (large)
        *large = from;
    return large;
}

enum store_result store_put(struct store_txn *txn, const struct store_key *key, uint8_t type,
                            const char *bytes, size_t len, int64_t expire_ms)
{
    if (key->len > STORE_KEY_MAX || len > STORE_VALUE_MAX)
        return STORE_TOO_LARGE;
    if (fits(key, len, expire_ms))
        return put_small(txn, key, type, bytes, len, expire_ms);
    struct large_write *large = put_large(txn, key, type, expire_ms);
    return large && add_patch(txn, large, 0, bytes, len) ? STORE_OK : STORE_NO_MEMORY;
}

enum store_result store_put_upload(struct store_txn *txn, const struct store_key *key, uint8_t type,
                                   struct store_upload *upload, int64_t expire_ms)
{
    const struct format_root *root;
    enum store_result result = upload_root(upload, &root);
    if (result != STORE_OK)
        return result;
    if (key->len > STORE_KEY_MAX)
        return STORE_TOO_LARGE;
    struct large_write *large = put_large(txn, key, type, expire_ms);
    if (!large)
        return STORE_NO_MEMORY;
    large->base = root;
    large->length = root->length;
    large->upload = upload;
    return STORE_OK;
}

static enum store_result patch_small(struct store_txn *txn, const struct store_key *key,
                                     const struct store_item *item, uint64_t length,
                                     uint64_t offset, const char *bytes, size_t len)
{
    char *memory = store_alloc(txn, length + 1);
    if (!memory)
        return STORE_NO_MEMORY;
    memcpy(memory, item->bytes, item->length);
    memset(memory + item->length, 0, length - item->length);
    memcpy(memory + offset, bytes, len);
    return put_small(txn, key, item->type, memory, length, item->expire_ms);
}

enum store_result store_patch(struct store_txn *txn, const struct store_key *key,
                              const struct store_item *item, uint64_t offset, const char *bytes,
                              size_t len)
{
    if (offset > STORE_VALUE_MAX || len > STORE_VALUE_MAX - offset)
        return STORE_TOO_LARGE;
    uint64_t length = offset + len > item->length ? offset + len : item->length;
    if (!item->large && fits(key, length, item->expire_ms))
        return patch_small(txn, key, item, length, offset, bytes, len);
    struct large_write *large;
    if (item->large) {
        large = put_again(txn, key, item, item->expire_ms);
    } else {
        char *old = store_alloc(txn, item->length + 1);
        uint64_t old_len = item->length;
        if (!old)
            return STORE_NO_MEMORY;
        memcpy(old, item->bytes, old_len);
        large = put_large(txn, key, item->type, item->expire_ms);
        if (large && !add_patch(txn, large, 0, old, old_len))
            large = NULL;
    }
    return large && add_patch(txn, large, offset, bytes, len) ? STORE_OK : STORE_NO_MEMORY;
}

enum store_result txn_put_trees(struct store_txn *txn, const struct store_key *key,
                                struct collection *collection, uint8_t type, int64_t expire_ms)
{
    const char *roots = (const char *)collection->roots;
    enum store_result result = put_small(txn, key, type, roots, collection->length, expire_ms);
    if (result != STORE_OK)
        return result;
    txn_find_write(txn, key)->trees = collection;
    collection->key = *key;
    collection->is_written = true;
    return STORE_OK;
}

/* The item again, under `key` and with this expiry. */
static enum store_result put_same(struct store_txn *txn, const struct store_key *key,
                                  const struct store_item *item, int64_t expire_ms)
{
    if (item->trees) {
        struct collection *collection;
        enum store_result result = tree_find(txn, key, item, &collection);
        return result == STORE_OK ? txn_put_trees(txn, key, collection, item->type, expire_ms)
                                  : result;
    }
    if (item->large)
        return put_again(txn, key, item, expire_ms) ? STORE_OK : STORE_NO_MEMORY;
    char *bytes = store_alloc(txn, item->length + 1);
    if (!bytes)
        return STORE_NO_MEMORY;
    memcpy(bytes, item->bytes, item->length);
    return store_put(txn, key, item->type, bytes, item->length, expire_ms);
}

enum store_result store_set_expiry(struct store_txn *txn, const struct store_key *key,
                                   const struct store_item *item, int64_t expire_ms)
{
    return put_same(txn, key, item, expire_ms);
}

enum store_result store_delete(struct store_txn *txn, const struct store_key *key)
{
    return new_write(txn, key, WRITE_DELETE) ? STORE_OK : STORE_NO_MEMORY;
}

enum store_result store_rename(struct store_txn *txn, const struct store_key *from,
                               const struct store_item *item, const struct store_key *to)
{
    if (same_key(from, to))
        return STORE_OK;
    if (to->len > STORE_KEY_MAX)
        return STORE_TOO_LARGE;
    enum store_result result = put_same(txn, to, item, item->expire_ms);
    return result == STORE_OK ? store_delete(txn, from) : result;
}
