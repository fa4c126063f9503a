/*
 * The superblock: the identity of this directory, and where redo begins. Two copies are written in
 * turn and durably, so that a torn write leaves the other one; the valid copy with the higher
 * sequence number counts.
 */
#include "storage/journal/superblock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "storage/journal/journal.h"

static uint64_t checksum_of(const struct format_superblock *super)
{
    return format_checksum(super, offsetof(struct format_superblock, checksum));
}

int superblock_write(struct superblock *block)
{
    struct format_superblock *super = &block->latest;
    assert(super->magic == FORMAT_SUPERBLOCK_MAGIC);
    assert(super->tail_commit > 0 && super->tail_position < super->journal_bytes);
    /* From the first write on, an older server refuses it. */
    super->version = FORMAT_STAMP | (super->version & FORMAT_ORDERED);
    super->sequence++;
    super->checksum = checksum_of(super);
    memset(block->page, 0, PAGE_SIZE);
    memcpy(block->page, super, sizeof *super);
    return disk_write(block->queue, block->file, block->page, PAGE_SIZE,
                      super->sequence % 2 * PAGE_SIZE, true);
}

/* ---- a new directory ---- */

static enum store_result creation_failed(const char *name, int error, char *message)
{
    snprintf(message, STORE_MESSAGE_MAX, "Cannot create %s in the data directory: %s", name,
             strerror(error));
    return error == ENOSPC ? STORE_FULL : STORE_IO;
}

static enum store_result create_file(struct superblock *block, const char *name, uint64_t size,
                                     char *message)
{
    struct disk_file *file;
    int error = block->disk->ops->open(block->disk, name, true, &file);
    if (error == EEXIST) /* left by a creation that failed before the superblock was written */
        error = block->disk->ops->open(block->disk, name, false, &file);
    if (!error) {
        error = block->disk->ops->extend(file, size);
        block->disk->ops->close(file);
    }
    return error ? creation_failed(name, error, message) : STORE_OK;
}

static bool fill_random(void *to, size_t len)
{
    return getrandom(to, len, 0) == (ssize_t)len;
}

/* The superblock file is created last: while it is missing or blank, the directory counts as
 * new. */
enum store_result superblock_create(struct superblock *block, const struct store_options *options,
                                    char *message)
{
    uint32_t partitions = options->partition_count;
    bool ordered = options->ordered_keys == STORE_ORDERED_YES;
    uint64_t journal = (options->journal_bytes + SEGMENT_BYTES - 1) / SEGMENT_BYTES * SEGMENT_BYTES;
    if (partitions == 0 || partitions > FORMAT_PARTITION_MAX || partitions & (partitions - 1)) {
        snprintf(message, STORE_MESSAGE_MAX, "partitions must be a power of two up to %u",
                 FORMAT_PARTITION_MAX);
        return STORE_INVALID;
    }
    if (journal < JOURNAL_MIN_BYTES || journal > JOURNAL_MAX_BYTES) {
        snprintf(message, STORE_MESSAGE_MAX, "journal-size must be from %u MB to %llu MB",
                 JOURNAL_MIN_BYTES >> 20, JOURNAL_MAX_BYTES >> 20);
        return STORE_INVALID;
    }
    enum store_result result = create_file(block, "journal", journal, message);
    for (uint32_t i = 0; i < partitions && result == STORE_OK; i++) {
        char name[16];
        snprintf(name, sizeof name, "slabs-%02x", i);
        result = create_file(block, name, SEGMENT_BYTES, message);
    }
    if (result == STORE_OK)
        result = create_file(block, "extents", SEGMENT_BYTES, message);
    if (result != STORE_OK)
        return result;
    struct format_superblock *super = &block->latest;
    *super = (struct format_superblock){.magic = FORMAT_SUPERBLOCK_MAGIC,
                                        .version = FORMAT_STAMP | (ordered ? FORMAT_ORDERED : 0),
                                        .partition_count = partitions,
                                        .journal_bytes = journal,
                                        .tail_commit = 1,
                                        .clean = 1};
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++)
        super->databases.ids[db] = db + 1;
    super->databases.next_id = STORE_DB_COUNT + 1;
    if (!fill_random(super->store_id, sizeof super->store_id) ||
        !fill_random(&super->seed, sizeof super->seed))
        return creation_failed("superblock", errno, message);
    format_make_secret(super, &block->secret);
    int error = block->disk->ops->sync_directory(block->disk);
    if (!error && !block->file)
        error = block->disk->ops->open(block->disk, "superblock", true, &block->file);
    if (!error)
        error = block->disk->ops->extend(block->file, 2 * PAGE_SIZE);
    if (!error)
        error = superblock_write(block);
    if (!error)
        error = block->disk->ops->sync_directory(block->disk);
    return error ? creation_failed("superblock", error, message) : STORE_OK;
}

/* ---- an existing one ---- */

static bool is_known(uint32_t version)
{
    version &= ~FORMAT_ORDERED;
    return version >= FORMAT_STAMP_OLDEST && version <= FORMAT_STAMP;
}

/* Later than any real time: keys would expire by it. */
#define CLOCK_MOST_MS (1ull << 48)
/* More commits or starts than possible: numbers would wrap to 0. */
#define COMMITS_MOST (1ull << 62)
#define EPOCHS_MOST (1ull << 24) /* ids of collections begin with the epoch (tree_owner.c) */

/* Whether the fields that other code relies on are plausible. Unknown versions may have others. */
static bool is_sound(const struct format_superblock *super)
{
    uint32_t partitions = super->partition_count;
    return !is_known(super->version) ||
           (partitions > 0 && partitions <= FORMAT_PARTITION_MAX &&
            (partitions & (partitions - 1)) == 0 && super->journal_bytes >= JOURNAL_MIN_BYTES &&
            super->journal_bytes <= JOURNAL_MAX_BYTES &&
            super->journal_bytes % SEGMENT_BYTES == 0 &&
            super->tail_position < super->journal_bytes && super->tail_position % PAGE_SIZE == 0 &&
            super->clock_ms < CLOCK_MOST_MS && super->tail_commit < COMMITS_MOST &&
            super->tail_sequence < COMMITS_MOST && super->sequence < COMMITS_MOST &&
            super->epoch < EPOCHS_MOST && format_databases_are_sound(&super->databases));
}

static bool is_valid(const struct format_superblock *copy)
{
    return copy->magic == FORMAT_SUPERBLOCK_MAGIC && copy->checksum == checksum_of(copy) &&
           is_sound(copy);
}

static bool better(const struct format_superblock *candidate, const struct format_superblock *best)
{
    return is_valid(candidate) && (best->magic == 0 || candidate->sequence > best->sequence);
}

/* A copy is one sector, so that a crash leaves it old or new. Blank: not written yet, which it is
 * only while the other one is the first that was written. */
static bool is_damaged(const struct format_superblock *copy, const struct format_superblock *other)
{
    static const struct format_superblock blank;
    bool may_be_blank = is_valid(other) && other->sequence == 1;
    return !is_valid(copy) && !(may_be_blank && memcmp(copy, &blank, sizeof blank) == 0);
}

static bool are_in_turn(const struct format_superblock *a, const struct format_superblock *b)
{
    return is_valid(a) && is_valid(b) &&
           (a->sequence + 1 == b->sequence || b->sequence + 1 == a->sequence);
}

static enum store_result judge(const struct format_superblock *found, uint64_t magic,
                               uint32_t version, char *message)
{
    if (magic != FORMAT_SUPERBLOCK_MAGIC && found->magic == 0) {
        snprintf(message, STORE_MESSAGE_MAX,
                 "The file `superblock` is not Vellum's: choose another directory with --dir");
        return STORE_FOREIGN;
    }
    if (found->magic == 0 && is_known(version)) {
        snprintf(message, STORE_MESSAGE_MAX,
                 "Both copies of the superblock are damaged: restore the directory from a backup");
        return STORE_CORRUPT;
    }
    if (found->magic == 0 || !is_known(found->version)) {
        snprintf(message, STORE_MESSAGE_MAX,
                 "The data directory has format version %u; this server knows versions %u to %u",
                 found->magic ? found->version : version, FORMAT_STAMP_OLDEST, FORMAT_STAMP);
        return STORE_VERSION;
    }
    return STORE_OK;
}

/* Whether nothing was ever written to the file, or it does not exist. */
static bool file_is_blank(struct superblock *block, const char *name)
{
    struct disk_file *file;
    int error = block->disk->ops->open(block->disk, name, false, &file);
    if (error)
        return error == ENOENT;
    char *page = disk_alloc(PAGE_SIZE);
    bool blank = block->disk->ops->size(file) < PAGE_SIZE ||
                 (page && disk_read(block->queue, file, page, PAGE_SIZE, 0) == 0 &&
                  disk_is_blank(page, PAGE_SIZE));
    free(page);
    block->disk->ops->close(file);
    return blank;
}

/* A file with data, which the creation of the directory does not leave, or NULL. The journal may
 * be lost together with the superblock: so the others are looked at, too. */
static const char *find_used(struct superblock *block, char name[16])
{
    static const char *const names[] = {"journal", "extents"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!file_is_blank(block, names[i]))
            return names[i];
    for (uint32_t i = 0; i < FORMAT_PARTITION_MAX; i++) {
        snprintf(name, 16, "slabs-%02x", i);
        if (!file_is_blank(block, name))
            return name;
    }
    return NULL;
}

enum store_result superblock_missing(struct superblock *block, char *message)
{
    char name[16];
    const char *used = find_used(block, name);
    if (!used)
        return STORE_ABSENT;
    snprintf(message, STORE_MESSAGE_MAX,
             "The file `superblock` is missing, blank or cut short, but `%s` next to it is in use: "
             "nothing was changed. Restore the directory from a backup",
             used);
    return STORE_CORRUPT;
}

/* Reads both copies, or as much of the file as exists. STORE_ABSENT: it must be created. */
static enum store_result read_copies(struct superblock *block, char *pages, char *message)
{
    uint64_t size = block->disk->ops->size(block->file);
    uint64_t length = size < 2 * PAGE_SIZE ? size / PAGE_SIZE * PAGE_SIZE : 2 * PAGE_SIZE;
    memset(pages, 0, 2 * PAGE_SIZE);
    int error = length ? disk_read(block->queue, block->file, pages, length, 0) : 0;
    if (error) {
        snprintf(message, STORE_MESSAGE_MAX, "Cannot read the superblock: %s", strerror(error));
        return STORE_IO;
    }
    bool blank = size % PAGE_SIZE == 0 && disk_is_blank(pages, 2 * PAGE_SIZE);
    if (length == 2 * PAGE_SIZE && !blank)
        return STORE_OK;
    enum store_result result = superblock_missing(block, message);
    if (result != STORE_ABSENT || blank)
        return result;
    snprintf(message, STORE_MESSAGE_MAX,
             "The file `superblock` is not Vellum's: choose another directory with --dir");
    return STORE_FOREIGN;
}

enum store_result superblock_read(struct superblock *block, char *message)
{
    char *pages = disk_alloc(2 * PAGE_SIZE);
    if (!pages) {
        snprintf(message, STORE_MESSAGE_MAX, "Out of memory");
        return STORE_NO_MEMORY;
    }
    enum store_result result = read_copies(block, pages, message);
    if (result != STORE_OK) {
        free(pages);
        return result;
    }
    struct format_superblock copies[2], best = {0};
    memcpy(&copies[0], pages, sizeof copies[0]);
    memcpy(&copies[1], pages + PAGE_SIZE, sizeof copies[1]);
    free(pages);
    for (int i = 0; i < 2; i++)
        if (better(&copies[i], &best))
            best = copies[i];
    bool ours = copies[0].magic == FORMAT_SUPERBLOCK_MAGIC;
    result = judge(&best, copies[!ours].magic, copies[!ours].version, message);
    if (result == STORE_OK) {
        block->is_damaged =
            is_damaged(&copies[0], &copies[1]) || is_damaged(&copies[1], &copies[0]);
        block->is_in_turn = are_in_turn(&copies[0], &copies[1]);
        if (block->is_damaged)
            env_log(block->env, STORE_LOG_WARNING,
                    "A copy of the superblock is damaged: the other one is used");
        if (memcmp(best.store_id, block->latest.store_id, sizeof best.store_id) != 0)
            /* Only once: a reload must not change it under its readers. */
            format_make_secret(&best, &block->secret);
        block->latest = best;
        env_set_clock(block->env, (int64_t)best.clock_ms);
    }
    return result;
}
