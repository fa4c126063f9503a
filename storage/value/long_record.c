/*
 * Long records: the operations of a commit on slots, if they are too long for the journal's ring.
 * They are written to runs of the extents' file, and the commit's record only says where. So a
 * transaction is bounded by memory and disk only, and the ring's own bounds do not change.
 *
 *     reserved --seal--> sealed --write--> written --release--> its runs are free
 *        \--abandon--> freed
 *
 * Invariants
 * 1. A group is not sealed before the long records of its records are durable (journal.c checks
 *    long_record_unwritten): where recovery finds the record, it finds the long record.
 * 2. Its runs become free when a checkpoint after its commit is durable; until then redo may read
 *    them.
 * 3. Sealed ones are in the journal's list, in the order of their commits, under its lock. Only the
 *    thread that has the maintenance thread's queue writes them, and takes them out.
 * 4. One transaction at a time reserves one (store->long_record_owner). This bounds their memory;
 *    two that waited for each other's runs would both be refused. The owner waits for no
 *    transaction that needs a long record.
 * 5. None is reserved while those that redo would read are many: together they take at most a
 *    quarter of the frames' memory and one more.
 */
#include "storage/value/long_record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/checks.h"
#include "storage/value/run_write.h"
#include "storage/txn/wait.h"
#include "storage/value/slot_alloc.h"
#include "storage/journal/record.h"
#include "storage/txn/memory.h"

#define RUNS_IN_OPERATION 2048u /* an operation's length has 16 bits */
#define WRITES_AT_ONCE 16u

struct long_record {
    STAILQ_ENTRY(long_record) link;
    uint64_t commit;
    char *bytes; /* NULL: already written */
    uint64_t length, capacity;
    struct extent_list runs;
};

static uint64_t divided(uint64_t value, uint64_t by)
{
    return (value + by - 1) / by;
}

static uint64_t bytes_of_runs(const struct long_record *long_record)
{
    return long_record->runs.count * (uint64_t)FORMAT_EXTENT_BYTES;
}

/* ---- reserving ---- */

static void give_back(struct page_file *file, struct extent_list *runs, uint64_t keep)
{
    while (runs->count > keep)
        run_give_back(file, &runs->at[--runs->count]);
}

static enum store_result take_runs(struct store_txn *txn, struct long_record *long_record)
{
    struct page_file *file = &txn->store->extents;
    uint64_t needed = divided(long_record->length, FORMAT_EXTENT_BYTES);
    enum store_result result = STORE_OK;
    pthread_mutex_lock(&file->lock);
    give_back(file, &long_record->runs, needed);
    while (result == STORE_OK && long_record->runs.count < needed) {
        struct format_extent run = {.length = FORMAT_EXTENT_BYTES};
        uint32_t slot;
        result = extent_list_room(&long_record->runs) ? STORE_OK : STORE_NO_MEMORY;
        if (result == STORE_OK)
            result = commit_take_slot(txn, file, FORMAT_RUN_CLASS + FORMAT_EXTENT_PAGES, &run.page,
                                      &slot);
        if (result == STORE_OK)
            long_record->runs.at[long_record->runs.count++] = run;
    }
    pthread_mutex_unlock(&file->lock);
    return result;
}

static enum store_result take_memory(struct store *store, struct long_record *long_record)
{
    if (long_record->bytes && long_record->length <= long_record->capacity)
        return STORE_OK;
    free(long_record->bytes);
    long_record->capacity = journal_padded(long_record->length);
    long_record->bytes = disk_alloc(long_record->capacity);
    if (!long_record->bytes)
        return STORE_NO_MEMORY;
    memory_note_growth(store, long_record->capacity);
    return STORE_OK;
}

static uint64_t frame_bytes(struct store *store)
{
    uint64_t limit = atomic_load_explicit(&store->cache.arena.limit, memory_order_relaxed);
    return limit * PAGE_SIZE;
}

bool long_record_checkpoint_due(struct store *store)
{
    return journal_long_record_bytes(&store->journal) > frame_bytes(store) / 4;
}

/* Makes the transaction the owner. False: it must wait. */
static bool may_reserve(struct store_txn *txn)
{
    struct store *store = txn->store;
    struct journal *journal = &store->journal;
    struct store_txn *nobody = NULL;
    if (txn->long_record)
        return true;
    pthread_mutex_lock(&journal->lock);
    bool any_unwritten = journal->long_record_unwritten > 0;
    pthread_mutex_unlock(&journal->lock);
    return !any_unwritten && !long_record_checkpoint_due(store) &&
           atomic_compare_exchange_strong(&store->long_record_owner, &nobody, txn);
}

static void disown(struct store_txn *txn)
{
    assert(atomic_load(&txn->store->long_record_owner) == txn);
    txn->long_record = NULL;
    atomic_store(&txn->store->long_record_owner, NULL);
}

enum store_result long_record_reserve(struct store_txn *txn, uint64_t length)
{
    struct store *store = txn->store;
    if (length <= store->record_most) {
        if (txn->long_record)
            long_record_abandon(txn);
        return STORE_OK;
    }
    if (length > frame_bytes(store) / 2) /* the frames that the commit changes need the rest */
        return STORE_NO_MEMORY;
    if (!may_reserve(txn)) {
        maintenance_throttle(txn);
        return STORE_WAIT;
    }
    if (!txn->long_record && !(txn->long_record = calloc(1, sizeof *txn->long_record))) {
        disown(txn);
        return STORE_NO_MEMORY;
    }
    txn->long_record->length = length - sizeof(struct format_record);
    enum store_result result = take_runs(txn, txn->long_record);
    return result == STORE_OK ? take_memory(store, txn->long_record) : result;
}

static void free_long_record(struct long_record *long_record)
{
    free(long_record->bytes);
    free(long_record->runs.at);
    free(long_record);
}

void long_record_abandon(struct store_txn *txn)
{
    struct page_file *file = &txn->store->extents;
    assert(txn->long_record);
    pthread_mutex_lock(&file->lock);
    give_back(file, &txn->long_record->runs, 0);
    pthread_mutex_unlock(&file->lock);
    free_long_record(txn->long_record);
    disown(txn);
}

/* ---- the record ---- */

static uint32_t operations(const struct long_record *long_record)
{
    return (uint32_t)divided(long_record->runs.count, RUNS_IN_OPERATION);
}

uint64_t long_record_record_length(const struct long_record *long_record)
{
    return sizeof(struct format_record) +
           operations(long_record) * (uint64_t)sizeof(struct format_operation) +
           long_record->runs.count * (uint64_t)sizeof(struct format_extent);
}

char *long_record_bytes(const struct long_record *long_record)
{
    return long_record->bytes;
}

/* How many of its bytes are in run i. */
static uint64_t bytes_in(const struct long_record *long_record, uint32_t i)
{
    assert(i < long_record->runs.count);
    uint64_t left = long_record->length - (uint64_t)i * FORMAT_EXTENT_BYTES;
    return left < FORMAT_EXTENT_BYTES ? left : FORMAT_EXTENT_BYTES;
}

static char *bytes_of(const struct long_record *long_record, uint32_t i)
{
    return long_record->bytes + (uint64_t)i * FORMAT_EXTENT_BYTES;
}

static void describe(struct long_record *long_record)
{
    for (uint32_t i = 0; i < long_record->runs.count; i++) {
        struct format_extent *run = &long_record->runs.at[i];
        run->length = (uint32_t)bytes_in(long_record, i);
        run->checksum = format_checksum(bytes_of(long_record, i), run->length);
    }
    memset(long_record->bytes + long_record->length, 0,
           journal_padded(long_record->length) - long_record->length);
}

void long_record_seal(struct store_txn *txn, char *record, uint64_t commit)
{
    struct journal *journal = &txn->store->journal;
    struct long_record *long_record = txn->long_record;
    assert(lock_is_held(&journal->lock) && long_record->bytes);
    assert(long_record->runs.count == divided(long_record->length, FORMAT_EXTENT_BYTES));
    describe(long_record);
    *(struct format_record *)record = (struct format_record){
        (uint32_t)long_record_record_length(long_record), operations(long_record)};
    char *at = record + sizeof(struct format_record);
    for (uint32_t i = 0; i < long_record->runs.count; i += RUNS_IN_OPERATION) {
        uint32_t left = long_record->runs.count - i;
        uint32_t count = left < RUNS_IN_OPERATION ? left : RUNS_IN_OPERATION;
        uint32_t bytes = count * (uint32_t)sizeof(struct format_extent);
        at = commit_add_operation(at, FORMAT_LONG_RECORD, FORMAT_EXTENT_FILE, 0, 0, bytes);
        memcpy(at, &long_record->runs.at[i], bytes);
        at += bytes;
    }
    long_record->commit = commit;
    STAILQ_INSERT_TAIL(&journal->long_records, long_record, link);
    journal->long_record_unwritten++;
    journal->long_record_bytes += bytes_of_runs(long_record);
    disown(txn);
}

/* ---- writing ---- */

static void counted(struct disk_op *op)
{
    --*(uint32_t *)op->arg;
}

static int write_runs(struct store *store, const struct long_record *long_record, uint32_t first,
                      uint32_t count)
{
    struct disk_op ops[WRITES_AT_ONCE];
    struct iovec vectors[WRITES_AT_ONCE];
    uint32_t left = count;
    int error = 0;
    for (uint32_t i = 0; i < count; i++) {
        vectors[i] = (struct iovec){bytes_of(long_record, first + i),
                                    journal_padded(bytes_in(long_record, first + i))};
        ops[i] =
            (struct disk_op){.kind = DISK_WRITE,
                             .file = store->extents.file,
                             .vectors = &vectors[i],
                             .vector_count = 1,
                             .offset = (uint64_t)long_record->runs.at[first + i].page * PAGE_SIZE,
                             .done = counted,
                             .arg = &left};
        disk_queue_op(store->maintenance_queue, &ops[i]);
    }
    while (left > 0) {
        store->disk->ops->submit(store->maintenance_queue);
        store->disk->ops->reap(store->maintenance_queue, 1);
    }
    for (uint32_t i = 0; i < count; i++)
        if (ops[i].error)
            error = ops[i].error;
    return error;
}

static int write_one(struct store *store, const struct long_record *long_record)
{
    int error = 0;
    for (uint32_t i = 0; i < long_record->runs.count && !error; i += WRITES_AT_ONCE) {
        uint32_t left = long_record->runs.count - i;
        error = write_runs(store, long_record, i, left < WRITES_AT_ONCE ? left : WRITES_AT_ONCE);
    }
    return error ? error : disk_flush(store->maintenance_queue, store->extents.file);
}

static struct long_record *first_unwritten(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    struct long_record *long_record =
        journal->long_record_unwritten > 0 ? STAILQ_FIRST(&journal->long_records) : NULL;
    while (long_record && !long_record->bytes)
        long_record = STAILQ_NEXT(long_record, link);
    pthread_mutex_unlock(&journal->lock);
    return long_record;
}

static void note_written(struct journal *journal, struct long_record *long_record)
{
    pthread_mutex_lock(&journal->lock);
    char *bytes = long_record->bytes;
    assert(bytes && journal->long_record_unwritten > 0);
    long_record->bytes = NULL;
    journal->long_record_unwritten--;
    pthread_mutex_unlock(&journal->lock);
    free(bytes);
    atomic_fetch_add_explicit(&journal->bytes_written, journal_padded(long_record->length),
                              memory_order_relaxed);
}

void long_record_write(struct store *store)
{
    struct long_record *long_record;
    while (!env_failed(&store->env) && (long_record = first_unwritten(&store->journal)) != NULL) {
        int error = write_one(store, long_record);
        if (error) {
            env_fail(&store->env, "writing a long commit", error);
            return;
        }
        note_written(&store->journal, long_record);
        engine_wake_workers(store); /* the group may be written now */
    }
}

/* ---- the end ---- */

static struct long_record *take_before(struct journal *journal, uint64_t commit)
{
    pthread_mutex_lock(&journal->lock);
    struct long_record *long_record = STAILQ_FIRST(&journal->long_records);
    if (long_record && long_record->commit < commit) {
        STAILQ_REMOVE_HEAD(&journal->long_records, link);
        assert(journal->long_record_bytes >= bytes_of_runs(long_record));
        journal->long_record_bytes -= bytes_of_runs(long_record);
    } else {
        long_record = NULL;
    }
    pthread_mutex_unlock(&journal->lock);
    return long_record;
}

void long_record_release(struct store *store, uint64_t commit)
{
    struct long_record *long_record;
    pthread_mutex_lock(&store->free_lock);
    while ((long_record = take_before(&store->journal, commit)) != NULL) {
        assert(!long_record->bytes);
        pthread_mutex_lock(&store->extents.lock);
        give_back(&store->extents, &long_record->runs, 0);
        pthread_mutex_unlock(&store->extents.lock);
        free_long_record(long_record);
    }
    pthread_mutex_unlock(&store->free_lock);
}

void long_record_set_apart(struct store *store, bool apart)
{
    struct page_file *file = &store->extents;
    assert(lock_is_held(&file->lock));
    pthread_mutex_lock(&store->journal.lock);
    const struct long_record *long_record;
    STAILQ_FOREACH (long_record, &store->journal.long_records, link)
        for (uint32_t i = 0; i < long_record->runs.count; i++) {
            if (apart)
                page_file_give_slot(file, long_record->runs.at[i].page, 0);
            else
                page_file_keep_slot(file, long_record->runs.at[i].page, 0);
        }
    pthread_mutex_unlock(&store->journal.lock);
}

void long_record_forget(struct store *store)
{
    struct long_record *long_record;
    while ((long_record = take_before(&store->journal, UINT64_MAX)) != NULL)
        free_long_record(long_record);
    store->journal.long_record_unwritten = 0;
}

/* ---- recovery ---- */

/* Reads `count` runs to `to`, one after the other. */
static enum store_result read_runs(struct store *store, const struct format_extent *runs,
                                   uint32_t count, char *to)
{
    uint64_t pages = (uint64_t)store->extents.segment_count * SEGMENT_PAGES;
    for (uint32_t i = 0; i < count; i++, to += FORMAT_EXTENT_BYTES) {
        if (runs[i].page == 0 || runs[i].page + (uint64_t)FORMAT_EXTENT_PAGES > pages)
            return STORE_CORRUPT;
        if (disk_read(store->maintenance_queue, store->extents.file, to,
                      journal_padded(runs[i].length), (uint64_t)runs[i].page * PAGE_SIZE) != 0)
            return STORE_IO;
        if (format_checksum(to, runs[i].length) != runs[i].checksum)
            return STORE_CORRUPT;
    }
    return STORE_OK;
}

static const struct format_operation *next_operation(const struct format_operation *operation)
{
    return (const void *)((const char *)(operation + 1) + operation->length);
}

/* Measures all its runs, of which only the last may be shorter. False: this cannot be the record of
 * a long record: the operations fill the record, and a file names no more runs than it has. */
static bool measure(const struct store *store, const struct format_record *record, uint64_t *length)
{
    const char *at = (const char *)(record + 1), *end = (const char *)record + record->length;
    uint64_t most = (uint64_t)store->extents.segment_count * SEGMENT_BYTES;
    *length = 0;
    for (uint32_t i = 0; i < record->op_count; i++) {
        const struct format_operation *operation = (const void *)at;
        const struct format_extent *runs = (const void *)(operation + 1);
        if (end - at < (ptrdiff_t)sizeof *operation || operation->kind != FORMAT_LONG_RECORD ||
            operation->length % sizeof *runs != 0 || operation->length > end - (const char *)runs)
            return false;
        for (uint32_t j = 0; j < operation->length / sizeof *runs; j++) {
            if (*length % FORMAT_EXTENT_BYTES != 0 || !format_extent_is_sound(&runs[j]))
                return false;
            *length += runs[j].length;
        }
        at = (const char *)next_operation(operation);
    }
    return at == end && *length > 0 && *length <= most;
}

enum store_result long_record_read(struct store *store, const struct format_record *record,
                                   char **bytes, uint64_t *length)
{
    const struct format_operation *operation = (const void *)(record + 1);
    *bytes = NULL;
    if (!measure(store, record, length))
        return STORE_CORRUPT;
    if (!(*bytes = disk_alloc(divided(*length, FORMAT_EXTENT_BYTES) * FORMAT_EXTENT_BYTES)))
        return STORE_NO_MEMORY;
    enum store_result result = STORE_OK;
    char *to = *bytes;
    for (uint32_t i = 0; i < record->op_count && result == STORE_OK; i++) {
        uint32_t count = operation->length / (uint32_t)sizeof(struct format_extent);
        result = read_runs(store, (const void *)(operation + 1), count, to);
        to += (uint64_t)count * FORMAT_EXTENT_BYTES;
        operation = next_operation(operation);
    }
    return result;
}
