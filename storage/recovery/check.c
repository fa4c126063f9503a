/*
 * Verifies a data directory without changing it: recovery runs as at a start, on a disk layer
 * that keeps its writes in memory, and then everything that a server would serve is read
 * completely.
 *
 * 1. Recovery's own checks: superblocks, the journal's chain, segment headers, the checksum and
 *    place of every item, page runs that belong to two values. It logs damage.
 * 2. This file: the slabs again. Each key exists once and in its own partition; every extent's
 *    checksum is right.
 * 3. check_trees.c: every node and every overflow value exists, the numbers match those of their
 *    collection, and each belongs to one.
 * 4. An index checkpoint that a start would load must agree with what 1 has found.
 *
 * Every fault is logged as a warning, and every warning is counted as a fault.
 */
#include "storage/recovery/check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/recovery/disk_readonly.h"
#include "storage/recovery/check_trees.h"
#include "storage/recovery/open.h"
#include "storage/maintenance/index_stream.h"
#include "storage/recovery/index_load.h"
#include "storage/value/long_key.h"
#include "storage/recovery/reload.h"
#include "storage/txn/verify.h"
#include "storage/txn/databases.h"

/* ---- large values ---- */

static void write_name(const char *bytes, uint64_t length, char name[CHECK_NAME_MOST + 1])
{
    uint32_t len = length < CHECK_NAME_MOST ? (uint32_t)length : CHECK_NAME_MOST;
    for (uint32_t i = 0; i < len; i++)
        name[i] = isprint((unsigned char)bytes[i]) ? bytes[i] : '?';
    name[len] = 0;
}

static const char *name_of(const struct check *check, const struct format_item *item,
                           char name[CHECK_NAME_MOST + 1])
{
    if (item->database == FORMAT_HIDDEN)
        return "(part of a collection)";
    if (item->flags & FORMAT_LONG_KEY)
        return check->long_key;
    write_name(format_key(item), item->key_len, name);
    return name;
}

/* Leaves the extent's bytes in check->extent; false if they are not those that were written. */
static bool extent_is_whole(struct check *check, const struct format_extent *extent)
{
    struct store *store = check->store;
    uint64_t pages = (extent->length + PAGE_SIZE - 1) / PAGE_SIZE;
    uint64_t last = (uint64_t)store->extents.segment_count * SEGMENT_PAGES;
    check->found->extents++;
    return extent->page != 0 && format_extent_is_sound(extent) && extent->page + pages <= last &&
           disk_read(store->maintenance_queue, store->extents.file, check->extent,
                     pages * PAGE_SIZE, (uint64_t)extent->page * PAGE_SIZE) == 0 &&
           format_checksum(check->extent, extent->length) == extent->checksum;
}

/* Collects the bytes of a long key; those of values are not collected. */
struct gathered {
    char *bytes;
    uint64_t length, filled;
};

static void check_extent(struct check *check, const struct format_item *item,
                         const struct format_extent *extent, struct gathered *to)
{
    char name[CHECK_NAME_MOST + 1];
    if (extent->page == 0 && format_extent_is_sound(extent))
        return;
    if (!extent_is_whole(check, extent)) {
        env_log(&check->store->env, STORE_LOG_WARNING,
                "Damaged extent at page %u of the large values: part of %s", extent->page,
                name_of(check, item, name));
    } else if (to && extent->length <= to->length - to->filled) {
        memcpy(to->bytes + to->filled, check->extent, extent->length);
        to->filled += extent->length;
    }
}

/* Checks the extents that a node names, if the node can be read. */
static void check_extents_of(struct check *check, const struct format_item *item,
                             const struct format_extent *node, struct gathered *to)
{
    struct format_extent extents[FORMAT_NODE_FANOUT];
    if (node->page == 0)
        return;
    if (node->length != FORMAT_NODE_BYTES || !extent_is_whole(check, node)) {
        check_extent(check, item, node, NULL);
        return;
    }
    memcpy(extents, check->extent, sizeof extents);
    for (uint32_t i = 0; i < FORMAT_NODE_FANOUT; i++)
        check_extent(check, item, &extents[i], to);
}

static void check_root(struct check *check, const struct format_item *item, const char *at,
                       struct gathered *to)
{
    struct format_root root;
    memcpy(&root, at, sizeof root);
    at += sizeof root;
    for (uint32_t i = 0; i < root.count; i++, at += sizeof(struct format_extent)) {
        struct format_extent extent;
        memcpy(&extent, at, sizeof extent);
        if (root.depth > 0)
            check_extents_of(check, item, &extent, to);
        else
            check_extent(check, item, &extent, to);
    }
}

/* The bytes must be those of the long key that the item names. */
static void check_long_key(struct check *check, const struct format_item *item)
{
    const struct format_secret *secret = &check->store->superblock.secret;
    struct format_long_key head;
    struct gathered key = {.length = long_key_length(item)};
    memcpy(&head, format_key(item), sizeof head);
    key.bytes = malloc(key.length + 1);
    if (!key.bytes) {
        check->result = STORE_NO_MEMORY;
        return;
    }
    strcpy(check->long_key, "(a key that cannot be read)");
    check_root(check, item, format_key_root(item), &key);
    if (key.filled == key.length) {
        write_name(key.bytes, key.length, check->long_key);
        if (head.hashes[0] != format_hash(secret, key.bytes, key.length) ||
            head.hashes[1] != format_second_hash(secret, key.bytes, key.length) ||
            head.slot != store_hash_slot(key.bytes, key.length))
            env_log(&check->store->env, STORE_LOG_WARNING,
                    "The bytes of the long key %s belong to another key", check->long_key);
    }
    free(key.bytes);
}

static void check_large(struct check *check, const struct format_item *item)
{
    check->found->large_values++;
    check_root(check, item, format_payload(item), NULL);
}

/* ---- items ---- */

static uint64_t length_of(const struct format_item *item)
{
    uint64_t length = item->payload_len;
    if (item->flags & FORMAT_LARGE)
        memcpy(&length, format_payload(item), sizeof length);
    return length;
}

static bool see_node(struct check *check, uint32_t partition, uint32_t page,
                     const struct format_item *item)
{
    struct seen_node *node = found_add(&check->nodes, sizeof *node);
    if (node)
        *node = (struct seen_node){partition, page, ((const struct format_node *)item)->collection,
                                   false};
    return node != NULL;
}

static bool see_overflow(struct check *check, const struct format_item *item)
{
    struct seen_overflow *overflow = found_add(&check->overflow, sizeof *overflow);
    struct format_overflow_key key = {0};
    if (!overflow)
        return false;
    memcpy(&key, format_key(item), item->key_len < sizeof key ? item->key_len : sizeof key);
    *overflow = (struct seen_overflow){key.collection, key.element, length_of(item), false};
    return true;
}

static struct seen_names *names_of(const struct check *check, uint32_t partition,
                                   const struct format_item *item)
{
    int db = databases_logical(check->store, item->database);
    return check->names && db >= 0 ? &check->names[partition * STORE_DB_COUNT + (uint32_t)db]
                                   : NULL;
}

static bool see_owner(struct check *check, uint32_t partition, uint32_t page, uint32_t slot,
                      const struct format_item *item)
{
    struct format_trees roots;
    struct seen_owner *owner = found_add(&check->owners, sizeof *owner);
    if (!owner)
        return false;
    memcpy(&roots, format_payload(item), sizeof roots);
    *owner = (struct seen_owner){.collection = roots.collection,
                                 .home = roots.home,
                                 .tree_count = roots.count,
                                 .partition = partition,
                                 .page = page,
                                 .slot = slot};
    if (item->flags & FORMAT_KEY_TREE) {
        owner->names = names_of(check, partition, item);
        check->key_trees++;
    }
    if (roots.count > STORE_TREES || roots.home >= check->store->partition_count ||
        item->payload_len != sizeof roots + roots.count * sizeof(struct format_tree)) {
        env_log(&check->store->env, STORE_LOG_WARNING,
                "The collection in partition %u, page %u, slot %u names no trees", partition, page,
                slot);
        owner->tree_count = 0;
        return true;
    }
    memcpy(owner->trees, format_payload(item) + sizeof roots,
           roots.count * sizeof(struct format_tree));
    return true;
}

static bool see_key(struct check *check, uint32_t partition, const struct format_item *item)
{
    char name[CHECK_NAME_MOST + 1];
    uint64_t *hash = found_add(&check->keys, sizeof *hash);
    uint32_t slot = format_key_slot(item);
    struct seen_names *names = names_of(check, partition, item);
    if (!hash)
        return false;
    uint64_t key_hash = format_key_hash(&check->store->superblock.secret, item);
    if (names)
        check_add_hash(key_hash, &names->keys, &names->key_sum);
    *hash = key_hash ^ (item->database + 1) * 0x9e3779b97f4a7c15ull;
    check->found->items++;
    if (slot >> check->store->slot_shift != partition)
        env_log(&check->store->env, STORE_LOG_WARNING,
                "%s is in partition %u, where it does not belong", name_of(check, item, name),
                partition);
    return true;
}

static bool see_item(struct check *check, uint32_t partition, uint32_t page, uint32_t slot,
                     const struct format_item *item)
{
    bool hidden = item->database == FORMAT_HIDDEN;
    if (item->flags & FORMAT_NODE)
        return see_node(check, partition, page, item);
    if (databases_is_dead(check->store, item->database))
        return true; /* it belongs to a flushed database */
    if (item->flags & FORMAT_LONG_KEY)
        check_long_key(check, item);
    if (item->flags & FORMAT_LARGE)
        check_large(check, item);
    if (item->flags & FORMAT_TREES && !see_owner(check, partition, page, slot, item))
        return false;
    if (hidden)
        return see_overflow(check, item);
    return item->flags & FORMAT_KEY_TREE || see_key(check, partition, item);
}

/* ---- slabs ---- */

static void check_segment(struct check *check, struct page_file *file, uint32_t segment,
                          const char *bytes)
{
    uint32_t size_class = file->segment_class[segment];
    uint32_t size = format_class_size(size_class), count = format_class_slots(size_class);
    for (uint32_t i = 1; i < SEGMENT_PAGES && check->result == STORE_OK; i++)
        for (uint32_t slot = 0; slot < count && check->result == STORE_OK; slot++) {
            uint32_t page = segment * SEGMENT_PAGES + i;
            const struct format_item *item =
                (const void *)(bytes + (size_t)i * PAGE_SIZE + slot * size);
            if (verify_slot(file, page, slot, item) == SLOT_ITEM &&
                !see_item(check, file->id, page, slot, item))
                check->result = STORE_NO_MEMORY;
        }
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void find_twins(struct check *check, uint32_t partition)
{
    const uint64_t *keys = check->keys.at;
    if (check->keys.count)
        qsort(check->keys.at, check->keys.count, sizeof *keys, by_number);
    for (uint64_t i = 1; i < check->keys.count; i++)
        if (keys[i] == keys[i - 1])
            env_log(&check->store->env, STORE_LOG_WARNING,
                    "Partition %u has two items of one key (hash %016llx)", partition,
                    (unsigned long long)keys[i]);
    check->keys.count = 0;
}

static void check_partition(struct check *check, struct partition *partition, char *bytes)
{
    struct page_file *file = &partition->file;
    for (uint32_t i = 0; i < file->segment_count && check->result == STORE_OK; i++) {
        if (file->segment_class[i] == 0)
            continue;
        if (disk_read(check->store->maintenance_queue, file->file, bytes, SEGMENT_BYTES,
                      (uint64_t)i * SEGMENT_BYTES) != 0)
            check->result = STORE_IO;
        else
            check_segment(check, file, i, bytes);
    }
    find_twins(check, file->id);
}

/* ---- the index checkpoint ---- */

/* A summary of a partition's tables that does not depend on their order. */
struct summary {
    uint64_t entries, entry_sum, free_sum, expiries, keys;
    uint64_t classed; /* segments that have a class */
};

static uint64_t mixed(uint64_t number)
{
    number *= 0x9e3779b97f4a7c15ull;
    return (number ^ number >> 29) * 0xbf58476d1ce4e5b9ull;
}

static bool add_entry(void *arg, uint32_t slot, uint64_t entry)
{
    struct summary *summary = arg;
    summary->entry_sum += mixed(entry + mixed(slot));
    return true;
}

static void sum_up_file(const struct page_file *file, struct summary *summary)
{
    for (uint32_t i = 0; i < file->segment_assigned; i++) {
        summary->classed += file->segment_class[i] != 0;
        summary->free_sum += mixed((uint64_t)i << 32 | (uint64_t)file->segment_class[i] << 16 |
                                   file->segment_free[i]);
    }
    for (uint32_t page = 0; page < file->segment_assigned * SEGMENT_PAGES; page++)
        summary->free_sum += mixed(file->free_slots[page] ^ mixed(page));
}

static struct summary sum_up_partition(const struct partition *partition)
{
    struct summary summary = {.entries = index_count(&partition->index),
                              .expiries = ttl_count(&partition->ttl)};
    struct index_cursor cursor = {.slot = partition->index.first_slot};
    while (index_scan(&partition->index, &cursor, UINT32_MAX, add_entry, &summary))
        ;
    sum_up_file(&partition->file, &summary);
    for (uint32_t db = 0; db <= STORE_DB_COUNT; db++)
        summary.keys += mixed(counter_read(&partition->databases[db].keys) + mixed(db)) +
                        mixed(counter_read(&partition->databases[db].expires) + mixed(db + 64));
    return summary;
}

static void sum_up_all(const struct store *store, struct summary *summaries)
{
    for (uint32_t i = 0; i < store->partition_count; i++)
        summaries[i] = sum_up_partition(&store->partitions[i]);
    summaries[store->partition_count] = (struct summary){0};
    sum_up_file(&store->extents, &summaries[store->partition_count]);
}

static bool read_head(struct store *store, struct disk_file *file, struct format_index_head *head)
{
    char *page = disk_alloc(PAGE_SIZE);
    bool is_read = page && store->disk->ops->size(file) >= PAGE_SIZE &&
                   disk_read(store->maintenance_queue, file, page, PAGE_SIZE, 0) == 0;
    if (is_read)
        memcpy(head, page + sizeof(struct format_index_block), sizeof *head);
    free(page);
    return is_read;
}

/* A shutdown without disk space for the checkpoint leaves the file empty, or as long as there
 * was space and all zeros. */
static bool was_never_begun(struct store *store, struct disk_file *file)
{
    static const struct format_index_head blank;
    struct format_index_head head;
    if (store->disk->ops->size(file) == 0)
        return true;
    return read_head(store, file, &head) && memcmp(&head, &blank, sizeof head) == 0;
}

/* Its head names another shutdown, and its first block is whole. */
static bool is_of_another_stop(struct store *store, struct disk_file *file)
{
    struct format_index_head head, again, expected = index_head(&store->stopped);
    struct index_stream stream;
    if (!read_head(store, file, &head) || memcmp(&head, &expected, sizeof head) == 0)
        return false;
    bool is_whole = index_stream_open(&stream, store, file, &head) &&
                    index_stream_get(&stream, &again, sizeof again);
    index_stream_close(&stream);
    return is_whole;
}

/* A checkpoint that no start would load. One of another shutdown, or none at all, is no fault. */
static void report_lost_index(struct store *store)
{
    struct disk_file *file;
    if (store->disk->ops->open(store->disk, "index", false, &file) != 0)
        return;
    if (!was_never_begun(store, file) && !is_of_another_stop(store, file))
        env_log(&store->env, STORE_LOG_WARNING,
                "The index checkpoint is damaged, or was not written to its end");
    store->disk->ops->close(file);
}

/* Where headers are lost, the checkpoint alone still knows of what is in their segments. */
static void report_difference(struct store *store, uint32_t number, const struct summary *found,
                              const struct summary *loaded)
{
    const char *of = number < store->partition_count ? "partition" : "large values, space";
    if (memcmp(found, loaded, sizeof *found) == 0)
        return;
    if (loaded->classed > found->classed)
        env_log(&store->env, STORE_LOG_WARNING,
                "Segments of %s %u that the index checkpoint knows of are missing: restore the "
                "directory from a backup, and do not remove the file `index`",
                of, number);
    else
        env_log(&store->env, STORE_LOG_WARNING,
                "The index checkpoint is wrong about %s %u: remove the file `index`", of, number);
}

/* Replaces what the scan has found by the content of the checkpoint. If the checkpoint leaves a
 * sweep to the next start, the two differ; that is no fault. */
static void check_index(struct check *check)
{
    struct summary found[FORMAT_PARTITION_MAX + 1], loaded[FORMAT_PARTITION_MAX + 1];
    struct store *store = check->store;
    if (!store->was_clean || atomic_load(&store->damaged) > 0)
        return;
    sum_up_all(store, found);
    engine_forget(store);
    char message[STORE_MESSAGE_MAX];
    enum store_result result = index_load(store, &store->stopped, message);
    if (result == STORE_CORRUPT)
        env_log(&store->env, STORE_LOG_WARNING, "%s", message);
    if (result == STORE_NO_MEMORY)
        check->result = result;
    if (result == STORE_ABSENT)
        report_lost_index(store);
    if (result != STORE_OK || atomic_load(&store->sweep_asked))
        return;
    sum_up_all(store, loaded);
    check->found->has_index =
        memcmp(found, loaded, (store->partition_count + 1) * sizeof *found) == 0;
    for (uint32_t i = 0; i <= store->partition_count; i++)
        report_difference(store, i, &found[i], &loaded[i]);
}

/* ---- the whole check ---- */

static void count_warning(void *arg, enum store_log_level level, const char *line)
{
    struct check *check = arg;
    check->found->faults += level == STORE_LOG_WARNING;
    check->log(check->log_arg, level, line);
}

static void check_store(struct check *check)
{
    char *bytes = disk_alloc(SEGMENT_BYTES);
    check->extent = disk_alloc(FORMAT_EXTENT_BYTES);
    check->result = bytes && check->extent ? STORE_OK : STORE_NO_MEMORY;
    uint32_t trees = check->store->partition_count * STORE_DB_COUNT;
    if (check->store->is_ordered && !(check->names = calloc(trees, sizeof *check->names)))
        check->result = STORE_NO_MEMORY;
    check->found->commits = check->store->recovered_commits;
    for (uint32_t i = 0; i < check->store->partition_count && check->result == STORE_OK; i++)
        check_partition(check, &check->store->partitions[i], bytes);
    check->found->collections = check->owners.count - check->key_trees;
    check->found->nodes = check->nodes.count;
    check->found->overflow = check->overflow.count;
    if (check->result == STORE_OK)
        check_trees(check);
    if (check->result == STORE_OK)
        check_index(check);
    free(bytes);
    free(check->extent);
    free(check->owners.at);
    free(check->nodes.at);
    free(check->overflow.at);
    free(check->keys.at);
    free(check->names);
}

enum store_result check_disk(struct disk *disk,
                             void (*log)(void *arg, enum store_log_level level, const char *line),
                             void *log_arg, struct store_check *found,
                             char message[STORE_MESSAGE_MAX])
{
    struct check check = {.found = found, .log = log, .log_arg = log_arg};
    struct store_options options = {.worker_count = 1,
                                    .sync = STORE_SYNC_NO,
                                    .scans = true,
                                    .ordered_keys = STORE_ORDERED_AS_FOUND,
                                    .log = count_warning,
                                    .log_arg = &check};
    *found = (struct store_check){0};
    enum store_result result = engine_recover_on(disk, &options, &check.store, message);
    if (result != STORE_OK)
        return result;
    check_store(&check);
    engine_destroy(check.store);
    if (check.result != STORE_OK)
        snprintf(message, STORE_MESSAGE_MAX, "The check was not completed: %s",
                 check.result == STORE_IO ? "a file cannot be read" : "out of memory");
    return check.result;
}

enum store_result store_check(const char *directory,
                              void (*log)(void *arg, enum store_log_level level, const char *line),
                              void *log_arg, struct store_check *found,
                              char message[STORE_MESSAGE_MAX])
{
    struct disk *disk;
    *found = (struct store_check){0};
    enum store_result result = disk_open_readonly(directory, &disk, message);
    return result == STORE_OK ? check_disk(disk, log, log_arg, found, message) : result;
}
