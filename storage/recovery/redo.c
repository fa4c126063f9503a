/*
 * Reads the journal at startup: group by group from the tail, as long as each continues the one
 * before.
 *
 * Where no group continues it, either the history ends, or a group is damaged and everything
 * after it would be lost silently. The two can be told apart. A group is started only when all
 * groups but those in flight with it are durable, and an epoch begins only when the superblock
 * says so. So a crash leaves no later group than one that was in flight with the missing one, and
 * none of a later epoch. If there is one, data was durable and is no longer, and the store
 * refuses to open.
 */
#include "storage/recovery/redo.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"
#include "storage/value/long_record.h"

/* A group of the journal, or a long record, that the log's operations lie in. */
struct group_memory {
    struct group_memory *next;
    char *bytes;
};

static bool add_redo(struct redo_log *log, const struct format_operation *operation)
{
    if (!array_reserve(&log->redo, &log->redo_capacity, log->redo_count + 1, sizeof *log->redo))
        return false;
    log->redo[log->redo_count] = (struct redo){.page = operation->page,
                                               .file = operation->file,
                                               .slot = operation->slot,
                                               .operation = operation,
                                               .order = log->order};
    log->redo_count++;
    return true;
}

static uint32_t number_of(const struct store *store, uint32_t file)
{
    assert(file == FORMAT_EXTENT_FILE || file < store->partition_count);
    return file == FORMAT_EXTENT_FILE ? store->partition_count : file;
}

bool redo_assigns(const struct store *store, const struct redo_log *log,
                  const struct page_file *file, uint32_t segment)
{
    const uint64_t *assigned = log->assigned[number_of(store, file->id)];
    return assigned && assigned[segment] > 0;
}

static bool note_assigned(const struct store *store, struct redo_log *log, struct page_file *file,
                          const struct format_operation *operation)
{
    uint64_t **assigned = &log->assigned[number_of(store, file->id)];
    uint32_t segment = operation->page / SEGMENT_PAGES;
    assert(segment < file->segment_count);
    if (!*assigned && !(*assigned = calloc(file->segment_count, sizeof **assigned)))
        return false;
    (*assigned)[segment] = log->order;
    file->segment_class[segment] = operation->slot;
    return true;
}

static struct page_file *page_file_of(struct store *store, uint32_t id)
{
    if (id == FORMAT_EXTENT_FILE)
        return &store->extents;
    return id < store->partition_count ? &store->partitions[id].file : NULL;
}

/* Whether the operation is valid for such a page file. Slots and their sizes are checked by the
 * scan, which knows the segments' classes. */
static bool is_sound(const struct page_file *file, const struct format_operation *operation)
{
    bool is_slab = file->id != FORMAT_EXTENT_FILE;
    if (operation->page >= file->segment_count * SEGMENT_PAGES)
        return false;
    switch (operation->kind) {
    case FORMAT_ASSIGN:
        return operation->slot == 0 || page_file_class_exists(file, operation->slot);
    case FORMAT_PUT:
        return is_slab && operation->page % SEGMENT_PAGES != 0 &&
               operation->length >= sizeof(struct format_item);
    case FORMAT_ERASE:
    case FORMAT_PATCH:
        return is_slab && operation->page % SEGMENT_PAGES != 0;
    default:
        return false;
    }
}

static enum store_result apply_databases(struct store *store,
                                         const struct format_operation *operation)
{
    struct format_databases databases;
    if (operation->length != sizeof databases)
        return STORE_CORRUPT;
    memcpy(&databases, operation + 1, sizeof databases);
    if (!format_databases_are_sound(&databases))
        return STORE_CORRUPT;
    store->databases = databases;
    return STORE_OK;
}

static enum store_result apply_operation(struct store *store, struct redo_log *log,
                                         const struct format_operation *operation)
{
    if (operation->kind == FORMAT_DATABASES)
        return apply_databases(store, operation);
    struct page_file *file = page_file_of(store, operation->file);
    if (!file || !is_sound(file, operation))
        return STORE_CORRUPT;
    log->order++;
    bool done = operation->kind == FORMAT_ASSIGN ? note_assigned(store, log, file, operation)
                                                 : add_redo(log, operation);
    return done ? STORE_OK : STORE_NO_MEMORY;
}

static enum store_result apply_operations(struct store *store, struct redo_log *log, const char *at,
                                          const char *end)
{
    while (at < end) {
        const struct format_operation *operation = (const void *)at;
        uint32_t padded = sizeof *operation;
        if (end - at >= (ptrdiff_t)sizeof *operation)
            padded += (operation->length + 7u) & ~7u;
        if (end - at < (ptrdiff_t)padded)
            return STORE_CORRUPT;
        enum store_result result = apply_operation(store, log, operation);
        if (result != STORE_OK)
            return result;
        at += padded;
    }
    return STORE_OK;
}

/* Memory that the log refers to is freed together with it. */
static bool keep_memory(struct redo_log *log, char *bytes)
{
    struct group_memory *memory = malloc(sizeof *memory);
    if (!memory) {
        free(bytes);
        return false;
    }
    *memory = (struct group_memory){log->groups, bytes};
    log->groups = memory;
    return true;
}

static enum store_result apply_record(struct store *store, struct redo_log *log, const char *at)
{
    const struct format_record *record = (const void *)at;
    const struct format_operation *first = (const void *)(record + 1);
    if (record->length < sizeof *record + sizeof *first || first->kind != FORMAT_LONG_RECORD)
        return apply_operations(store, log, (const char *)first, at + record->length);
    char *bytes;
    uint64_t length;
    enum store_result result = long_record_read(store, record, &bytes, &length);
    if (bytes && !keep_memory(log, bytes))
        return STORE_NO_MEMORY;
    return result == STORE_OK ? apply_operations(store, log, bytes, bytes + length) : result;
}

/* Whether the length is possible, and within the ring. */
static bool fits(const struct store *store, const struct format_group *group, uint64_t position)
{
    uint64_t size = store->superblock.latest.journal_bytes, length = journal_padded(group->length);
    return length <= size - position && length <= journal_group_most(size);
}

static bool follows(const struct store *store, const struct redo_log *log,
                    const struct format_group *group)
{
    return group->magic == FORMAT_GROUP_MAGIC && group->seed == store->superblock.latest.seed &&
           group->epoch == store->superblock.latest.epoch && group->sequence == log->sequence &&
           group->previous == log->previous && group->first_commit == log->commit &&
           group->length >= sizeof *group && fits(store, group, log->position);
}

/* The group at the log's position, if it is the next one; otherwise STORE_ABSENT. */
static enum store_result read_group(struct store *store, struct redo_log *log,
                                    struct format_group **group)
{
    char head[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
    struct disk_queue *queue = store->maintenance_queue;
    if (disk_read(queue, store->journal.file, head, PAGE_SIZE, log->position) != 0)
        return STORE_IO;
    struct format_group *header = (struct format_group *)head;
    if (!follows(store, log, header))
        return STORE_ABSENT;
    uint64_t length = journal_padded(header->length);
    char *bytes = disk_alloc(length);
    if (!bytes || !keep_memory(log, bytes))
        return STORE_NO_MEMORY;
    if (disk_read(queue, store->journal.file, bytes, length, log->position) != 0)
        return STORE_IO;
    *group = (struct format_group *)bytes;
    uint64_t sum = journal_group_checksum(*group, bytes + sizeof **group);
    return sum == (*group)->checksum && memcmp(*group, header, sizeof *header) == 0 ? STORE_OK
                                                                                    : STORE_ABSENT;
}

static enum store_result apply_group(struct store *store, struct redo_log *log,
                                     const struct format_group *group)
{
    const char *at = (const char *)(group + 1), *end = (const char *)group + group->length;
    for (uint32_t i = 0; i < group->record_count; i++) {
        const struct format_record *record = (const void *)at;
        if (end - at < (ptrdiff_t)sizeof *record || record->length < sizeof *record ||
            record->length % 8 != 0 || record->length > end - at)
            return STORE_CORRUPT;
        enum store_result result = apply_record(store, log, at);
        if (result != STORE_OK)
            return result;
        at += record->length;
    }
    log->sequence++;
    log->previous = group->checksum;
    log->commit += group->record_count;
    log->commits += group->record_count;
    log->position += journal_padded(group->length);
    if (log->position == store->superblock.latest.journal_bytes)
        log->position = 0;
    return STORE_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct redo *x = a, *y = b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->page != y->page)
        return x->page < y->page ? -1 : 1;
    if (x->slot != y->slot)
        return x->slot < y->slot ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static bool same_place(const struct redo *a, const struct redo *b)
{
    return a->file == b->file && a->page == b->page && a->slot == b->slot;
}

/* Drops operations on a segment from before it was emptied: they are of an old class. */
static void leave_out_emptied(const struct store *store, struct redo_log *log)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < log->redo_count; i++) {
        const struct redo *redo = &log->redo[i];
        const uint64_t *assigned = log->assigned[number_of(store, redo->file)];
        if (!assigned || redo->order > assigned[redo->page / SEGMENT_PAGES])
            log->redo[kept++] = *redo;
    }
    log->redo_count = kept;
}

/* Sorts by place, and keeps for each place the last operation that replaces all of it and the
 * patches after it. */
static void settle(const struct store *store, struct redo_log *log)
{
    assert(log->order >= log->redo_count);
    uint64_t kept = 0, begin = 0; /* start of the current place in the kept part */
    leave_out_emptied(store, log);
    if (log->redo_count)
        qsort(log->redo, log->redo_count, sizeof *log->redo, by_place);
    for (uint64_t i = 0; i < log->redo_count; i++) {
        if (i > 0 && !same_place(&log->redo[i - 1], &log->redo[i]))
            begin = kept;
        if (log->redo[i].operation->kind != FORMAT_PATCH)
            kept = begin;
        assert(begin <= kept && kept <= i);
        log->redo[kept++] = log->redo[i];
    }
    log->redo_count = kept;
}

/* The next group; at the start of the ring if it did not fit at the end. STORE_ABSENT: the
 * history ends. */
static enum store_result next_group(struct store *store, struct redo_log *log,
                                    struct format_group **group)
{
    uint64_t position = log->position;
    enum store_result result = read_group(store, log, group);
    if (result != STORE_ABSENT || position == 0)
        return result;
    log->position = 0;
    result = read_group(store, log, group);
    if (result == STORE_ABSENT)
        log->position = position;
    return result;
}

/* ---- groups after the end ---- */

/* Whether this header proves that more was durable than the history has. Of groups that were in
 * flight together, a power cut may leave only the later one; that is no proof. */
static bool is_later(const struct store *store, const struct redo_log *log,
                     const struct format_group *group)
{
    return group->magic == FORMAT_GROUP_MAGIC && group->seed == store->superblock.latest.seed &&
           (group->epoch > store->superblock.latest.epoch ||
            (group->epoch == store->superblock.latest.epoch && group->sequence > log->sequence &&
             group->durable_commit >= log->commit));
}

static bool is_whole(struct store *store, const struct format_group *header, uint64_t position)
{
    uint64_t length = journal_padded(header->length);
    if (header->length < sizeof *header || !fits(store, header, position))
        return false;
    char *bytes = disk_alloc(length);
    bool whole = bytes && disk_read(store->maintenance_queue, store->journal.file, bytes, length,
                                    position) == 0;
    const struct format_group *group = (const struct format_group *)bytes;
    whole = whole && memcmp(group, header, sizeof *header) == 0 &&
            journal_group_checksum(group, bytes + sizeof *group) == group->checksum;
    free(bytes);
    return whole;
}

/* Searches [from, to), in pieces that fit in memory. STORE_ABSENT: nothing was found. */
static enum store_result look_for_later(struct store *store, const struct redo_log *log,
                                        uint64_t from, uint64_t to, struct format_group *found)
{
    char *piece = disk_alloc(SEGMENT_BYTES);
    enum store_result result = piece ? STORE_ABSENT : STORE_NO_MEMORY;
    while (result == STORE_ABSENT && from < to) {
        uint64_t length = to - from < SEGMENT_BYTES ? to - from : SEGMENT_BYTES;
        if (disk_read(store->maintenance_queue, store->journal.file, piece, length, from) != 0)
            result = STORE_IO;
        for (uint64_t at = 0; at < length && result == STORE_ABSENT; at += PAGE_SIZE) {
            memcpy(found, piece + at, sizeof *found);
            if (is_later(store, log, found) && is_whole(store, found, from + at))
                result = STORE_OK;
        }
        from += length;
    }
    free(piece);
    return result;
}

/* A group that cannot have been in flight together with a damaged one begins at most the length
 * of JOURNAL_FLIGHTS groups further on, or that far from the start of the ring, where there may
 * also be a group of a later epoch. */
static enum store_result look_behind(struct store *store, const struct redo_log *log, char *message)
{
    struct format_group found;
    uint64_t size = store->superblock.latest.journal_bytes,
             reach = JOURNAL_FLIGHTS * journal_group_most(size) + PAGE_SIZE;
    uint64_t to = size - log->position < reach ? size : log->position + reach;
    enum store_result result = look_for_later(store, log, log->position, to, &found);
    if (result == STORE_ABSENT)
        result =
            look_for_later(store, log, 0, reach < log->position ? reach : log->position, &found);
    if (result != STORE_OK)
        return result == STORE_ABSENT ? STORE_OK : result;
    snprintf(message, STORE_MESSAGE_MAX,
             "The journal is damaged at byte %llu: commits from %llu on were durable and cannot be "
             "read any more, though later ones are there (%llu). Nothing was changed. Restore the "
             "directory from a backup",
             (unsigned long long)log->position, (unsigned long long)log->commit,
             (unsigned long long)found.first_commit);
    return STORE_CORRUPT;
}

/* ---- the journal's identity ---- */

/* A whole group of another store: the file, or the superblock, was copied from another
 * directory. Read as our own, it would look empty. */
static enum store_result check_owner_at(struct store *store, uint64_t position, char *message)
{
    char head[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
    const struct format_group *header = (const struct format_group *)head;
    if (disk_read(store->maintenance_queue, store->journal.file, head, PAGE_SIZE, position) != 0)
        return STORE_OK; /* the code that needs this data reports the error */
    if (header->magic != FORMAT_GROUP_MAGIC || header->seed == store->superblock.latest.seed ||
        !is_whole(store, header, position))
        return STORE_OK;
    snprintf(message, STORE_MESSAGE_MAX,
             "The journal and the superblock are not of the same data directory. Nothing was "
             "changed. Put back the file that was exchanged, or restore the directory from a "
             "backup");
    return STORE_FOREIGN;
}

static enum store_result check_owner(struct store *store, char *message)
{
    enum store_result result = check_owner_at(store, 0, message);
    return result == STORE_OK
               ? check_owner_at(store, store->superblock.latest.tail_position, message)
               : result;
}

enum store_result redo_read(struct store *store, struct redo_log *log, char *message)
{
    assert(log->redo_count == 0 && log->commits == 0);
    enum store_result owned = check_owner(store, message);
    if (owned != STORE_OK)
        return owned;
    log->position = store->superblock.latest.tail_position;
    log->sequence = store->superblock.latest.tail_sequence;
    log->previous = store->superblock.latest.tail_previous;
    log->commit = store->superblock.latest.tail_commit;
    store->databases = store->superblock.latest.databases;
    for (;;) {
        struct format_group *group;
        enum store_result result = next_group(store, log, &group);
        if (result == STORE_ABSENT)
            break;
        if (result == STORE_OK)
            result = apply_group(store, log, group);
        if (result != STORE_OK)
            return result;
    }
    settle(store, log);
    /* Without the other copy, a start may have followed that this one knows nothing of. */
    bool orderly = store->superblock.latest.clean && !store->superblock.is_damaged &&
                   store->superblock.is_in_turn;
    return orderly ? STORE_OK : look_behind(store, log, message);
}

void redo_free(struct redo_log *log)
{
    while (log->groups) {
        struct group_memory *group = log->groups;
        log->groups = group->next;
        free(group->bytes);
        free(group);
    }
    free(log->redo);
    for (uint32_t i = 0; i <= FORMAT_PARTITION_MAX; i++)
        free(log->assigned[i]);
}

const struct redo *redo_first(const struct redo_log *log, uint32_t file, uint32_t page)
{
    uint64_t low = 0, high = log->redo_count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        const struct redo *redo = &log->redo[middle];
        if (redo->file < file || (redo->file == file && redo->page < page))
            low = middle + 1;
        else
            high = middle;
    }
    return &log->redo[low];
}
