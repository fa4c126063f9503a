/*
 * Scans over the keys of a database: KEYS, SCAN, RANDOMKEY.
 *
 * A scan may cover more than fits in memory, so it proceeds in steps, and call->progress keeps the
 * keys collected so far. A rerun continues with the step that had to wait. Invariant: between
 * steps the collected keys are exactly the matching ones before collector->at.
 */
#include "server/commands/commands.h"

#include <assert.h>

#include "server/exec/collector.h"
#include "server/exec/long_run.h"
#include "server/types/scan_args.h"
#include "server/core/session.h"
#include "server/core/call.h"

#define STEP_ENTRIES 128    /* pages that one step may need at once */
#define RANDOM_CANDIDATES 8 /* RANDOMKEY picks among this many neighbours */

struct visit {
    struct collector *collector;
    const struct scan_filter *filter;
};

/* The request's scan, begun at `cursor` in the first run. NULL: out of memory. */
static struct collector *walk_get(struct call *call, uint64_t cursor)
{
    bool is_first = call->progress == NULL;
    struct collector *collector = collector_get(call);
    if (collector != NULL && is_first)
        collector->at = cursor;
    return collector;
}

static void visit_key(void *arg, const char *key, uint32_t key_len, const struct store_item *item)
{
    const struct visit *visit = arg;
    const struct scan_filter *filter = visit->filter;
    if (!scan_matches(filter, (struct resp_slice){key, key_len}))
        return;
    visit->collector->looked_up += !filter->any_type;
    if (!filter->any_type && !slice_is(filter->type, call_type_name(item->type)))
        return;
    resp_bulk(&visit->collector->out, key, key_len);
    visit->collector->count++;
}

/* Others have their turns after so many entries. */
static enum store_result end_step(struct call *call, struct collector *collector, uint32_t entries)
{
    if (collector->is_nested)
        return collector_yield(call, collector);
    return collector_step_fills(collector, entries) ? collector_step(call, collector) : STORE_OK;
}

/* Runs steps until the end of the database, or until a number of index entries was visited, which
 * call->cursor counts. A step that has to wait has visited nothing, so the scan's position is where
 * the next run must continue. */
static enum store_result walk_on(struct call *call, struct collector *collector, uint64_t budget,
                                 const struct scan_filter *filter)
{
    struct visit visit = {.collector = collector, .filter = filter};
    while (!collector->is_over) {
        uint64_t rest = budget - call->cursor;
        uint32_t step = rest < STEP_ENTRIES ? (uint32_t)rest : STEP_ENTRIES, left = step;
        enum store_result result =
            store_scan(call->txn, call->session->db, &collector->at, &left, visit_key, &visit);
        if (result != STORE_OK)
            return result;
        if (collector->out.failed)
            return STORE_NO_MEMORY;
        assert(left <= step && call->cursor <= budget);
        call->cursor += step - left;
        collector->is_over = collector->at == 0 || call->cursor == budget;
        if (!collector->is_over)
            result = end_step(call, collector, step - left);
        if (result != STORE_OK)
            return result;
    }
    return STORE_OK;
}

/* ---- KEYS and SCAN ---- */

enum store_result cmd_keys(struct call *call)
{
    struct scan_filter filter = scan_filter(call->argv[1]);
    struct collector *collector = walk_get(call, 0);
    if (collector == NULL)
        return STORE_NO_MEMORY;
    collector->is_tail = true;
    enum store_result result = scan_prepare(call, &filter);
    if (result == STORE_OK)
        result = walk_on(call, collector, UINT64_MAX, &filter);
    if (result != STORE_OK)
        return result;
    resp_array(call->reply, collector->count);
    return collector_reply(call, collector);
}

enum store_result cmd_scan(struct call *call)
{
    uint64_t cursor;
    struct scan_filter filter;
    if (!scan_read_cursor(call, call->argv[1], &cursor) ||
        !scan_read_options(call, 2, true, &filter))
        return STORE_OK;
    struct collector *collector = walk_get(call, cursor);
    if (collector == NULL)
        return STORE_NO_MEMORY;
    collector->is_tail = true;
    enum store_result result = scan_prepare(call, &filter);
    if (result == STORE_OK)
        result = walk_on(call, collector, filter.count, &filter);
    if (result != STORE_OK)
        return result;
    call->hits += (uint32_t)collector->looked_up; /* as in Redis */
    scan_reply_cursor(call, collector->at);
    resp_array(call->reply, collector->count);
    return collector_reply(call, collector);
}

/* ---- RANDOMKEY ---- */

/* Reservoir sampling: each key seen so far is kept with the same probability. */
static void pick_key(void *arg, const char *key, uint32_t key_len, const struct store_item *item)
{
    struct collector *collector = arg;
    (void)item;
    if (rng_below(&collector->rng, ++collector->count) != 0)
        return;
    resp_truncate(&collector->out, 0);
    resp_bulk(&collector->out, key, key_len);
}

/* From a random position on, wrapping around at the end, until there are so many candidates. The
 * walk is long if other databases have many more keys. */
static enum store_result find_candidates(struct call *call, struct collector *collector,
                                         uint64_t wanted)
{
    while (collector->count < wanted) {
        uint32_t step = call->cursor == 0 ? RANDOM_CANDIDATES : STEP_ENTRIES, left = step;
        collector->is_over |= collector->at == 0; /* after wrapping around it ends at the end */
        enum store_result result =
            store_scan(call->txn, call->session->db, &collector->at, &left, pick_key, collector);
        if (result != STORE_OK)
            return result;
        call->cursor += step - left;
        if (collector->at == 0 && collector->is_over)
            return STORE_OK;
        result = end_step(call, collector, step - left);
        if (result != STORE_OK)
            return result;
    }
    return STORE_OK;
}

/* Picks among a few neighbours, so that a key after a wide gap is not much more likely than the
 * others. */
enum store_result cmd_randomkey(struct call *call)
{
    uint32_t db = call->session->db;
    struct store_db_stats stats;
    enum store_result counted = store_txn_db_stats(call->txn, db, &stats);
    if (counted != STORE_OK)
        return counted;
    uint64_t wanted = stats.keys < RANDOM_CANDIDATES ? stats.keys : RANDOM_CANDIDATES;
    uint64_t start = wanted == stats.keys ? 0 : store_scan_at(call->txn, db, call->random_seed);
    struct collector *collector = walk_get(call, start);
    if (collector == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = find_candidates(call, collector, wanted);
    if (result != STORE_OK)
        return result;
    if (collector->out.failed)
        return STORE_NO_MEMORY;
    if (collector->count > 0)
        return collector_reply(call, collector);
    resp_null(call->reply);
    return STORE_OK;
}
