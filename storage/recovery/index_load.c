/*
 * Loads the index checkpoint. Any inconsistency puts all of it in doubt; then everything loaded
 * is discarded, and the start falls back to a scan.
 */
#include "storage/recovery/index_load.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"
#include "storage/maintenance/index_stream.h"
#include "storage/recovery/reload.h"
#include "storage/txn/databases.h"

struct loading {
    struct store *store;
    const struct format_superblock *super; /* of the stop */
    struct index_stream stream;
    uint64_t *cells; /* of one table */
    size_t capacity;
    bool out_of_memory;
    char *message;
    bool is_cut; /* a file has lost segments: reported as an error */
};

/* ---- cells ---- */

/* No more cells than the file can contain. */
static bool get_cells(struct loading *loading, uint32_t count)
{
    if (count > loading->stream.size / sizeof(uint64_t))
        return false;
    if (!array_reserve(&loading->cells, &loading->capacity, count, sizeof *loading->cells)) {
        loading->out_of_memory = true;
        return false;
    }
    return index_stream_get(&loading->stream, loading->cells, (size_t)count * sizeof(uint64_t));
}

/* An entry must name a slot that exists and is used, and that no other entry names. The slot is
 * marked free from then on, until load_partition restores the masks. */
static bool take_named_slot(struct page_file *file, uint64_t entry)
{
    uint32_t page = index_page(entry), slot = index_item_slot(entry);
    if (page % SEGMENT_PAGES == 0 || page >= file->segment_assigned * SEGMENT_PAGES)
        return false;
    uint32_t size_class = page_file_class_of(file, page);
    if (size_class == 0 || slot >= format_class_slots(size_class) ||
        page_file_slot_is_free(file, page, slot))
        return false;
    file->free_slots[page] |= 1ull << slot;
    return true;
}

static bool load_entries(struct loading *loading, struct partition *partition, uint64_t left)
{
    struct index *index = &partition->index;
    struct format_index_cells head;
    assert(index_count(index) == 0);
    while (left > 0) {
        if (!index_stream_get(&loading->stream, &head, sizeof head) || head.count == 0 ||
            head.count > left || head.table - index->first_slot >= index->slot_count ||
            index_slot_count(index, head.table) > 0 || !get_cells(loading, head.count))
            return false;
        for (uint32_t i = 0; i < head.count; i++)
            if (!take_named_slot(&partition->file, loading->cells[i]) ||
                (i > 0 && index_tag(loading->cells[i]) < index_tag(loading->cells[i - 1])))
                return false;
        if (!index_load_slot(index, head.table, loading->cells, head.count)) {
            loading->out_of_memory = true;
            return false;
        }
        left -= head.count;
    }
    return true;
}

/* Marks the slots of the entries in the masks meanwhile; restores the masks afterwards. */
static bool load_all_entries(struct loading *loading, struct partition *partition, uint64_t count)
{
    struct page_file *file = &partition->file;
    size_t size = (size_t)file->segment_assigned * SEGMENT_PAGES * sizeof *file->free_slots;
    uint64_t *masks = malloc(size + 1);
    if (!masks) {
        loading->out_of_memory = true;
        return false;
    }
    memcpy(masks, file->free_slots, size);
    bool good = load_entries(loading, partition, count);
    memcpy(file->free_slots, masks, size);
    free(masks);
    return good;
}

static bool load_expiries(struct loading *loading, struct partition *partition, uint64_t left)
{
    struct format_index_cells head;
    while (left > 0) {
        if (!index_stream_get(&loading->stream, &head, sizeof head) || head.count == 0 ||
            head.count > left || !get_cells(loading, head.count) ||
            !ttl_can_load(&partition->ttl, head.table, loading->cells, head.count))
            return false;
        if (!ttl_load(&partition->ttl, head.table, loading->cells, head.count)) {
            loading->out_of_memory = true;
            return false;
        }
        left -= head.count;
    }
    return true;
}

/* ---- page files ---- */

/* A scan would notice nothing: nothing else refers to the lost segments. */
static void report_cut(struct loading *loading, const struct page_file *file,
                       const struct format_index_page_file *head)
{
    char name[16] = "extents";
    if (file->id != FORMAT_EXTENT_FILE)
        snprintf(name, sizeof name, "slabs-%02x", file->id);
    loading->is_cut = true;
    snprintf(loading->message, STORE_MESSAGE_MAX,
             "The file %s was cut short since the server stopped: %u of its %u MB are left, and "
             "what was in the others is missing. Nothing was changed. Restore the directory from a "
             "backup; or remove the file `index`, and the server starts with what is left",
             name, file->segment_count, head->segment_count);
}

static bool load_segments(struct loading *loading, struct page_file *file,
                          const struct format_index_page_file *head)
{
    uint64_t masks[SEGMENT_PAGES];
    uint32_t words = file->id == FORMAT_EXTENT_FILE ? FORMAT_RUN_MASKS : SEGMENT_PAGES;
    if (head->segment_assigned > file->segment_count)
        report_cut(loading, file, head);
    if (head->segment_count != file->segment_count || head->segment_assigned > file->segment_count)
        return false;
    uint8_t *classes = malloc(head->segment_assigned + 1);
    bool good = classes && index_stream_get(&loading->stream, classes, head->segment_assigned);
    loading->out_of_memory = !classes;
    file->segment_assigned = head->segment_assigned;
    for (uint32_t i = 0; i < head->segment_assigned && good; i++) {
        if (classes[i] == 0)
            continue;
        good = index_stream_get(&loading->stream, masks, words * sizeof *masks) &&
               page_file_load_segment(file, i, classes[i], masks, words);
    }
    free(classes);
    for (uint32_t i = 0; i < file->segment_count && good; i++)
        if (file->segment_class[i] == 0)
            page_file_add_blank(file, i);
    return good;
}

/* Whether the counts agree with each other and with the tables. Before a sweep the tables also have
 * what the counts no longer include. Each database that has keys has a tree of keys, if any has. */
static bool counts_are_sound(const struct format_index_page_file *head, bool is_ordered)
{
    uint64_t keys = 0, expires = 0;
    for (uint32_t db = 0; db <= STORE_DB_COUNT; db++) {
        const struct format_index_count *count = &head->databases[db];
        if (count->keys > head->entries || count->expires > count->keys ||
            count->expiries / DATABASES_EXPIRY_UNITS_MOST > count->expires)
            return false;
        keys += count->keys + (is_ordered && db < STORE_DB_COUNT && count->keys > 0);
        expires += count->expires;
    }
    if (expires > head->expiries || head->expiries - expires > head->entries)
        return false;
    return head->is_swept
               ? keys == head->entries && (uint32_t)(head->expiries - expires) == head->wakes
               : keys <= head->entries && head->wakes == 0;
}

/* Base of a table that a start has made before the stop. */
static bool base_is_sound(const struct loading *loading, int64_t base_ms)
{
    return base_ms >= -2 * TTL_UNIT_MS && base_ms <= (int64_t)loading->super->clock_ms;
}

static bool load_partition(struct loading *loading, struct partition *partition)
{
    struct format_index_page_file head;
    if (!index_stream_get(&loading->stream, &head, sizeof head) ||
        !load_segments(loading, &partition->file, &head) ||
        !counts_are_sound(&head, loading->store->is_ordered) ||
        !base_is_sound(loading, head.expiry_base_ms))
        return false;
    partition->ttl.base_ms = head.expiry_base_ms;
    for (uint32_t db = 0; db <= STORE_DB_COUNT; db++) {
        const struct format_index_count *from = &head.databases[db];
        struct database_count *to = &partition->databases[db];
        counter_set(&to->keys, from->keys);
        counter_set(&to->expires, from->expires);
        counter_set(&to->expiries, from->expiries);
        loading->store->recovered_items += db < STORE_DB_COUNT ? from->keys : 0;
    }
    if (!head.is_swept)
        atomic_store(&loading->store->sweep_asked, true);
    return load_all_entries(loading, partition, head.entries) &&
           load_expiries(loading, partition, head.expiries);
}

/* ---- the whole checkpoint ---- */

static bool load_all(struct loading *loading, const struct format_index_head *expected)
{
    struct store *store = loading->store;
    struct format_index_head head;
    struct format_index_page_file extents;
    uint64_t end;
    if (!index_stream_get(&loading->stream, &head, sizeof head) ||
        memcmp(&head, expected, sizeof head) != 0)
        return false;
    for (uint32_t i = 0; i < store->partition_count; i++)
        if (!load_partition(loading, &store->partitions[i]))
            return false;
    return index_stream_get(&loading->stream, &extents, sizeof extents) &&
           load_segments(loading, &store->extents, &extents) &&
           index_stream_get(&loading->stream, &end, sizeof end) && end == FORMAT_INDEX_END;
}

static enum store_result why_not(const struct loading *loading)
{
    if (loading->is_cut)
        return STORE_CORRUPT;
    env_log(&loading->store->env, STORE_LOG_NOTICE,
            "The index checkpoint cannot be used: the slabs are read instead");
    return loading->out_of_memory ? STORE_NO_MEMORY : STORE_ABSENT;
}

enum store_result index_load(struct store *store, const struct format_superblock *super,
                             char *message)
{
    struct format_index_head head = index_head(super);
    struct loading loading = {.store = store, .super = super, .message = message};
    struct disk_file *file;
    if (store->disk->ops->open(store->disk, "index", false, &file) != 0)
        return STORE_ABSENT;
    bool good = index_stream_open(&loading.stream, store, file, &head);
    loading.out_of_memory = !good;
    good = good && load_all(&loading, &head);
    index_stream_close(&loading.stream);
    store->disk->ops->close(file);
    free(loading.cells);
    if (good)
        return STORE_OK;
    engine_forget(store);
    return why_not(&loading);
}
