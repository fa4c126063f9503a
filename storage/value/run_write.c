#include "storage/value/run_write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"
#include "storage/base/checks.h"
#include "storage/value/slot_alloc.h"
#include "storage/txn/load.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Memory apart from the cache is for whole runs up to one share of all memory, for a few pages of
 * each run up to another share, and beyond that for one page: so uploads that stall halfway hold
 * little, however many they are. */
#define WHOLE_SHARE 32u
#define FEW_SHARE 8u
#define FEW_PAGES 4u

static uint32_t pages_for(uint32_t bytes)
{
    return (bytes + PAGE_SIZE - 1) / PAGE_SIZE;
}

void run_give_back(struct page_file *file, const struct format_extent *run)
{
    assert(lock_is_held(&file->lock));
    for (uint32_t i = 0; i < pages_for(run->length); i++)
        page_file_drop(file, run->page + i);
    page_file_give_slot(file, run->page, 0);
}

bool extent_list_room(struct extent_list *list)
{
    return array_reserve(&list->at, &list->capacity, list->count + 1, sizeof *list->at);
}

/* ---- beginning ---- */

/* extents.lock is held, here and in the functions that follow. */
static enum store_result take_run(struct store_txn *txn, struct run_write *write)
{
    struct page_file *file = &txn->store->extents;
    uint32_t size_class = format_run_class_for(write->length), slot;
    assert(lock_is_held(&file->lock));
    enum store_result result = commit_take_slot(txn, file, size_class, &write->page, &slot);
    if (result != STORE_OK)
        return result;
    for (uint32_t i = 0; i < write->count; i++)
        page_file_drop(file, write->page + i);
    return STORE_OK;
}

static void release_frames(struct run_write *write, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        page_file_unref(&write->store->extents, write->frames[i]);
}

static bool take_frames(struct run_write *write, bool urgent)
{
    struct page_file *file = &write->store->extents;
    for (uint32_t i = 0; i < write->count; i++) {
        uint32_t number = page_file_add_frame(file, write->page + i, urgent);
        if (!number) {
            release_frames(write, i);
            while (i-- > 0)
                page_file_drop(file, write->page + i);
            return false;
        }
        page_file_ref(file, number);
        arena_frame(file->arena, number)->state = FRAME_VALID;
        arena_frame(file->arena, number)->checked = true;
        write->frames[i] = number;
        write->vectors[i] = (struct iovec){arena_memory(file->arena, number), PAGE_SIZE};
    }
    return true;
}

static void count_apart(struct store *store, int64_t bytes)
{
    int64_t before = atomic_fetch_add_explicit(&store->apart_bytes, bytes, memory_order_relaxed);
    assert(before + bytes >= 0);
    (void)before;
    store_note_memory(store, bytes);
}

static int64_t apart_bytes(const struct run_write *write)
{
    return (int64_t)write->window * PAGE_SIZE;
}

static void end_part(struct run_write *write)
{
    assert(write->begin < write->length);
    uint32_t left = write->length - write->begin, most = write->window * PAGE_SIZE;
    write->end = write->begin + (left < most ? left : most);
}

static uint32_t window(const struct run_write *write)
{
    int64_t memory = (int64_t)atomic_load(&write->store->memory_bytes);
    int64_t taken = atomic_load(&write->store->apart_bytes);
    uint32_t most = taken < memory / WHOLE_SHARE ? write->count
                    : taken < memory / FEW_SHARE ? FEW_PAGES
                                                 : 1;
    return write->count < most ? write->count : most;
}

static void point_at_apart(struct run_write *write)
{
    for (uint32_t i = 0; i < write->window; i++)
        write->vectors[i] = (struct iovec){write->apart + i * PAGE_SIZE, PAGE_SIZE};
}

static bool take_apart(struct run_write *write)
{
    write->window = window(write);
    bool is_whole = write->window == write->count;
    write->sum = is_whole ? NULL : XXH3_createState();
    write->apart = is_whole || write->sum ? disk_alloc((uint64_t)apart_bytes(write)) : NULL;
    if (!write->apart) {
        XXH3_freeState(write->sum);
        return false;
    }
    if (write->sum)
        XXH3_64bits_reset(write->sum);
    point_at_apart(write);
    count_apart(write->store, apart_bytes(write));
    end_part(write);
    return true;
}

static enum store_result take_memory(struct store_txn *txn, struct run_write *write,
                                     enum run_write_frames frames)
{
    bool is_apart = frames == RUN_WRITE_APART;
    if (!is_apart && take_frames(write, frames == RUN_WRITE_URGENT))
        return STORE_OK;
    if (is_apart || frames == RUN_WRITE_MAY_BE_APART)
        return take_apart(write) ? STORE_OK : STORE_NO_MEMORY;
    return load_no_frame(txn);
}

enum store_result run_write_begin(struct store_txn *txn, uint32_t length,
                                  enum run_write_frames frames, struct extent_list *runs,
                                  struct run_write **result)
{
    struct page_file *file = &txn->store->extents;
    assert(length > 0 && length <= FORMAT_EXTENT_BYTES && runs->count < runs->capacity);
    struct run_write *write = malloc(sizeof *write);
    if (!write)
        return STORE_NO_MEMORY;
    write->store = txn->store;
    write->length = length;
    write->count = pages_for(length);
    write->begin = 0;
    write->end = length;
    write->window = write->count;
    write->apart = NULL;
    write->sum = NULL;
    pthread_mutex_lock(&file->lock);
    enum store_result taken = take_run(txn, write);
    if (taken == STORE_OK && (taken = take_memory(txn, write, frames)) != STORE_OK)
        page_file_give_slot(file, write->page, 0);
    if (taken == STORE_OK)
        runs->at[runs->count++] = (struct format_extent){write->page, length, 0};
    pthread_mutex_unlock(&file->lock);
    if (taken == STORE_OK)
        *result = write;
    else
        free(write);
    return taken;
}

/* ---- writing ---- */

static void sum_up(const struct run_write *write, XXH3_state_t *sum)
{
    for (uint32_t i = 0, left = write->end - write->begin; left > 0; i++) {
        uint32_t len = left < PAGE_SIZE ? left : PAGE_SIZE;
        XXH3_64bits_update(sum, write->vectors[i].iov_base, len);
        left -= len;
    }
}

/* Of all bytes filled in so far. */
static uint64_t checksum_of(const struct run_write *write)
{
    XXH3_state_t state, *sum = write->sum ? write->sum : &state;
    if (!write->sum)
        XXH3_64bits_reset(sum);
    sum_up(write, sum);
    return XXH3_64bits_digest(sum);
}

void run_write_start(struct run_write *write, struct store_worker *worker,
                     void (*done)(struct disk_op *op), void *arg, struct format_extent *extent)
{
    uint32_t count = pages_for(write->end - write->begin);
    assert(count > 0 && count <= write->window && write->end <= write->length);
    uint32_t rest = count * PAGE_SIZE - (write->end - write->begin);
    char *last = write->vectors[count - 1].iov_base;
    memset(last + PAGE_SIZE - rest, 0, rest);
    *extent = (struct format_extent){write->page, write->length, checksum_of(write)};
    write->op = (struct disk_op){.kind = DISK_WRITE,
                                 .durable = true,
                                 .file = write->store->extents.file,
                                 .vectors = write->vectors,
                                 .vector_count = (int)count,
                                 .offset = (uint64_t)write->page * PAGE_SIZE + write->begin,
                                 .done = done,
                                 .arg = arg};
    disk_queue_op(worker->queue, &write->op);
}

struct run_write *run_write_of(struct disk_op *op)
{
    return (struct run_write *)((char *)op - offsetof(struct run_write, op));
}

/* ---- the end ---- */

void run_write_drop(struct run_write *write)
{
    struct store *store = write->store;
    if (!write->apart) {
        pthread_mutex_lock(&store->extents.lock);
        release_frames(write, write->count);
        pthread_mutex_unlock(&store->extents.lock);
    } else {
        count_apart(store, -apart_bytes(write));
        XXH3_freeState(write->sum);
        free(write->apart);
    }
    free(write);
}

static bool is_durable(struct run_write *write)
{
    struct store *store = write->store;
    int error = write->op.error;
    if (error)
        env_fail(&store->env, "writing a large value", error);
    atomic_fetch_add_explicit(&store->pages_written, write->op.vector_count, memory_order_relaxed);
    return error == 0;
}

bool run_write_end(struct run_write *write)
{
    assert(run_write_is_last(write));
    bool durable = is_durable(write);
    run_write_drop(write);
    return durable;
}

bool run_write_next(struct run_write *write)
{
    assert(!run_write_is_last(write));
    bool durable = is_durable(write);
    write->begin = write->end;
    if (write->apart)
        point_at_apart(write); /* a short write has advanced them */
    end_part(write);
    return durable;
}
