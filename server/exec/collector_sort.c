#include "server/exec/collector_sort.h"

#include <assert.h>
#include <stdlib.h>

#include "server/exec/long_run.h"

#define SORTED_RUN 1024 /* entries sorted at once */

struct sorting {
    struct call *call;
    struct collector *collector;
    const struct collector_entries *entries;
};

static int by_place(const void *a, const void *b, void *arg)
{
    const struct sorting *sorting = arg;
    return sorting->entries->compare(sorting->collector, *(const uint64_t *)a,
                                     *(const uint64_t *)b);
}

static enum store_result allocate(struct sorting *sorting)
{
    struct collector *collector = sorting->collector;
    size_t bytes = (collector->count + 1) * sizeof(*collector->ranks);
    if (collector->ranks != NULL)
        return STORE_OK;
    collector->rank_bytes = 2 * bytes;
    enum store_result result = collector_yield(sorting->call, collector);
    if (result != STORE_OK)
        return result;
    collector->spare = malloc(bytes);
    collector->ranks = collector->spare != NULL ? malloc(bytes) : NULL;
    return collector->ranks != NULL ? STORE_OK : STORE_NO_MEMORY;
}

static enum store_result note_places(struct sorting *sorting)
{
    struct collector *collector = sorting->collector;
    enum store_result result = allocate(sorting);
    size_t at = 0;
    for (uint64_t i = 0; i < collector->count && result == STORE_OK; i++) {
        collector->ranks[i] = at;
        at = sorting->entries->next(collector, at);
        result = call_yield_at(sorting->call, i);
    }
    return result;
}

static enum store_result sort_runs(struct sorting *sorting)
{
    struct collector *collector = sorting->collector;
    enum store_result result = STORE_OK;
    for (uint64_t at = 0; at < collector->count && result == STORE_OK; at += SORTED_RUN) {
        uint64_t left = collector->count - at;
        qsort_r(collector->ranks + at, left < SORTED_RUN ? left : SORTED_RUN,
                sizeof(*collector->ranks), by_place, sorting);
        result = call_yield(sorting->call);
    }
    return result;
}

/* Merges each two runs into one in `spare`. `ranks` keep what they are until that is done, since
 * the pass may begin anew. */
static enum store_result merge_runs(struct sorting *sorting)
{
    struct collector *collector = sorting->collector;
    const uint64_t *from = collector->ranks;
    uint64_t width = collector->width, count = collector->count, a = 0, b = 0, b_end = 0;
    enum store_result result = STORE_OK;
    for (uint64_t at = 0, a_end = 0; at < count && result == STORE_OK; at++) {
        if (at == b_end) {
            a = at;
            b = a_end = count - a < width ? count : a + width;
            b_end = count - b < width ? count : b + width;
        }
        bool is_a = a < a_end && (b == b_end || by_place(&from[a], &from[b], sorting) <= 0);
        collector->spare[at] = is_a ? from[a++] : from[b++];
        result = call_yield_at(sorting->call, at);
    }
    return result;
}

enum store_result collector_sort(struct call *call, struct collector *collector,
                                 const struct collector_entries *entries)
{
    struct sorting sorting = {call, collector, entries};
    enum store_result result = STORE_OK;
    if (collector->width == 0) {
        result = note_places(&sorting);
        if (result == STORE_OK)
            result = sort_runs(&sorting);
        if (result == STORE_OK)
            collector->width = SORTED_RUN;
    }
    while (result == STORE_OK && collector->width < collector->count) {
        result = merge_runs(&sorting);
        if (result != STORE_OK)
            return result;
        uint64_t *merged = collector->spare;
        collector->spare = collector->ranks;
        collector->ranks = merged;
        collector->width *= 2;
    }
    return result;
}

void collector_sort_end(struct collector *collector)
{
    free(collector->ranks);
    free(collector->spare);
    collector->ranks = collector->spare = NULL;
    collector->rank_bytes = 0;
    collector->width = 0;
}
