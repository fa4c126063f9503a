#include "server/types/sort_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/core/server.h"
#include "server/core/session.h"
#include "server/exec/long_run.h"
#include "server/pubsub/notify.h"

#define MISSES_TOLD_MOST 4096u /* notifications of one command are sent in one piece */
#define BLOCK_SIZE (64 * 1024)
#define FIRST_RUN 1024        /* elements sorted at once */
#define MOVES_PER_ELEMENT 64u /* per step of sorting, which reads no keys */

struct sort_block {
    struct sort_block *next;
    size_t used, size;
    char bytes[];
};

static void table_free(void *progress)
{
    struct sort_table *table = progress;
    while (table->blocks != NULL) {
        struct sort_block *next = table->blocks->next;
        free(table->blocks);
        table->blocks = next;
    }
    collected_set(&table->collected, 0);
    resp_writer_free(&table->out);
    resp_writer_free(&table->lookups.keys);
    reply_spill_free(&table->spill);
    bulk_store_free(&table->bulk_store);
    free(table->order.places);
    free(table->elements);
    free(table->spare);
    free(table->values);
    free(table);
}

static struct sort_table *table_new(struct call *call)
{
    struct sort_table *table = calloc(1, sizeof *table);
    if (table == NULL)
        return NULL;
    table->collected.server = call->server;
    resp_writer_init(&table->out, call->reply->version);
    resp_writer_init(&table->lookups.keys, call->reply->version);
    call->progress = table;
    call->progress_free = table_free;
    return table;
}

/* That grow on their own. */
static uint64_t writer_bytes(const struct sort_table *table)
{
    return table->out.capacity + table->lookups.keys.capacity;
}

struct sort_table *sort_table_get(struct call *call)
{
    struct sort_table *table = call->progress != NULL ? call->progress : table_new(call);
    if (table == NULL)
        return NULL;
    assert(call->progress_free == table_free);
    bool is_nested = call->outer != NULL;
    table->left = is_nested ? COLLECT_NESTED_ENTRIES : COLLECT_STEP_ENTRIES;
    table->read = 0;
    table->step_end = table->out.len + (is_nested ? COLLECT_NESTED_BYTES : COLLECT_STEP_BYTES);
    uint64_t places = table->order.capacity * sizeof *table->order.places;
    return collected_set(&table->collected, table->bytes + places + writer_bytes(table)) ? table
                                                                                         : NULL;
}

enum store_result sort_table_step(struct call *call, struct sort_table *table)
{
    return reply_spill_step(call, &table->spill, &table->out);
}

enum store_result sort_table_reserve(struct sort_table *table, uint64_t count)
{
    if (count > SIZE_MAX / sizeof *table->elements - 1)
        return STORE_NO_MEMORY;
    size_t size = (count + 1) * sizeof *table->elements;
    table->bytes += 2 * size;
    if (!collected_set(&table->collected, table->bytes))
        return STORE_NO_MEMORY;
    table->elements = malloc(size);
    table->spare = malloc(size);
    table->capacity = count;
    table->is_reserved = true;
    return table->elements != NULL && table->spare != NULL ? STORE_OK : STORE_NO_MEMORY;
}

enum store_result sort_table_reserve_values(struct sort_table *table, uint64_t count)
{
    if (table->values != NULL)
        return STORE_OK;
    if (count > SIZE_MAX / sizeof *table->values - 1)
        return STORE_NO_MEMORY;
    size_t size = (count + 1) * sizeof *table->values;
    table->bytes += size;
    if (!collected_set(&table->collected, table->bytes))
        return STORE_NO_MEMORY;
    table->values = malloc(size);
    return table->values != NULL ? STORE_OK : STORE_NO_MEMORY;
}

static char *allocate(struct sort_table *table, size_t size)
{
    struct sort_block *block = table->blocks;
    table->read += size;
    if (block == NULL || block->size - block->used < size) {
        size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        if (!collected_set(&table->collected, table->bytes + room + writer_bytes(table)))
            return NULL;
        block = malloc(sizeof *block + room);
        if (block == NULL)
            return NULL;
        *block = (struct sort_block){.next = table->blocks, .size = room};
        table->blocks = block;
        table->bytes += sizeof *block + room;
    }
    char *bytes = block->bytes + block->used;
    block->used += size;
    return bytes;
}

enum store_result sort_table_copy(struct sort_table *table, struct resp_slice from,
                                  struct resp_slice *to)
{
    *to = from;
    if (from.data == NULL)
        return STORE_OK;
    char *bytes = allocate(table, from.len + 1); /* an empty slice needs a pointer, too */
    if (bytes == NULL)
        return STORE_NO_MEMORY;
    memcpy(bytes, from.data, from.len);
    to->data = bytes;
    return STORE_OK;
}

/* ---- look-ups ---- */

enum store_result sort_table_count_lookup(struct call *call, struct sort_table *table,
                                          uint64_t number, const struct store_key *key, bool found)
{
    struct sort_lookups *lookups = &table->lookups;
    uint64_t len = key->len;
    if (number < lookups->counted)
        return STORE_OK;
    lookups->counted = number + 1;
    lookups->hits += found;
    lookups->misses += !found;
    if (found || lookups->misses > MISSES_TOLD_MOST || !call_notifies(call, NOTIFY_KEY_MISS))
        return STORE_OK;
    resp_raw(&lookups->keys, (const char *)&len, sizeof len);
    resp_raw(&lookups->keys, key->data, len);
    table->read += len;
    return lookups->keys.failed ? STORE_NO_MEMORY : STORE_OK;
}

enum store_result sort_table_tell_lookups(struct call *call, const struct sort_table *table)
{
    const struct resp_writer *keys = &table->lookups.keys;
    enum store_result result = STORE_OK;
    call->hits += (uint32_t)table->lookups.hits;
    call->misses += (uint32_t)table->lookups.misses;
    for (uint64_t at = 0, i = 0, len; at < keys->len && result == STORE_OK; at += len, i++) {
        struct store_key key;
        memcpy(&len, keys->data + at, sizeof len);
        at += sizeof len;
        store_key(call->server->store, &key, call->session->db, keys->data + at, (uint32_t)len,
                  STORE_SHARED);
        call_notify(call, NOTIFY_KEY_MISS, "keymiss", &key);
        result = call_yield_at(call, i);
    }
    return result;
}

/* ---- sorting ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Continues merging each pair of runs into one run in `spare`, up to `end`, which lies in the
 * current pair. */
static void merge(struct sort_table *table, uint64_t end, sort_compare *compare, void *arg)
{
    const struct sort_element *from = table->elements;
    uint64_t pair = table->merged - table->merged % (2 * table->width);
    if (table->merged == pair)
        table->taken = pair;
    uint64_t a = table->taken, a_end = least(pair + table->width, table->count);
    uint64_t b = a_end + (table->merged - a), b_end = least(a_end + table->width, table->count);
    for (; table->merged < end; table->merged++) {
        bool is_a = a < a_end && (b == b_end || compare(&from[a], &from[b], arg) <= 0);
        table->spare[table->merged] = is_a ? from[a++] : from[b++];
    }
    table->taken = a;
}

static uint64_t pair_end(const struct sort_table *table)
{
    uint64_t both = 2 * table->width;
    return least(table->merged - table->merged % both + both, table->count);
}

/* Sorts the initial runs in place. */
static void sort_first(struct sort_table *table, sort_compare *compare, void *arg)
{
    uint64_t end = least(table->merged + FIRST_RUN, table->count);
    qsort_r(table->elements + table->merged, end - table->merged, sizeof *table->elements, compare,
            arg);
    table->merged = end;
}

static void next_width(struct sort_table *table)
{
    bool is_first = table->width == 0;
    table->width = is_first ? FIRST_RUN : 2 * table->width;
    table->merged = 0;
    if (is_first)
        return;
    struct sort_element *sorted = table->spare;
    table->spare = table->elements;
    table->elements = sorted;
}

bool sort_table_sort(struct sort_table *table, sort_compare *compare, void *arg)
{
    uint64_t moves = table->left * MOVES_PER_ELEMENT;
    while (table->width < table->count) {
        uint64_t before = table->merged;
        if (table->width == 0)
            sort_first(table, compare, arg);
        else
            merge(table, least(pair_end(table), before + moves), compare, arg);
        moves -= least(table->merged - before, moves);
        if (table->merged == table->count)
            next_width(table);
        if (moves == 0 && table->width < table->count)
            return false;
    }
    return true;
}
