/*
 * Walks over the keys of a database: KEYS, SCAN, RANDOMKEY.
 *
 * A walk may be longer than what is in memory, so it goes in steps, and call->progress keeps what
 * they have collected: a rerun goes on with the step that had to wait. Invariant: between steps
 * what was gathered is exactly the matching keys of the walk up to gather->at.
 */
#include "server/commands/commands.h"

#include "server/exec/collector.h"
#include "server/types/scan_args.h"
#include "server/core/session.h"
#include "server/core/call.h"

#define STEP_ENTRIES 128    /* pages that one step may need at once */
#define RANDOM_CANDIDATES 8 /* RANDOMKEY picks among so many neighbours */

struct visit {
    struct gather *gather;
    const struct scan_filter *filter;
};

/* The walk of this request, begun at `cursor` in the first run; NULL: no memory. */
static struct gather *walk_get(struct call *call, uint64_t cursor)
{
    bool is_first = call->progress == NULL;
    struct gather *gather = gather_get(call);
    if (gather != NULL && is_first)
        gather->at = cursor;
    return gather;
}

static void visit_key(void *arg, const char *key, uint32_t key_len, const struct store_item *item)
{
    const struct visit *visit = arg;
    const struct scan_filter *filter = visit->filter;
    if (!scan_matches(filter, (struct resp_slice){key, key_len}))
        return;
    if (!filter->any_type && !slice_is(filter->type, call_type_name(item->type)))
        return;
    resp_bulk(&visit->gather->out, key, key_len);
    visit->gather->count++;
}

/* Steps until the end of the database, or until so many index entries were looked at: call->cursor
 * counts them. A step that has to wait has visited nothing, so the walk stands where the next run
 * is to go on. */
static enum store_result walk_on(struct call *call, struct gather *gather, uint64_t budget,
                                 const struct scan_filter *filter)
{
    struct visit visit = {.gather = gather, .filter = filter};
    while (!gather->is_over) {
        uint64_t rest = budget - call->cursor;
        uint32_t step = rest < STEP_ENTRIES ? (uint32_t)rest : STEP_ENTRIES, left = step;
        enum store_result result =
            store_scan(call->txn, call->session->db, &gather->at, &left, visit_key, &visit);
        if (result != STORE_OK)
            return result;
        if (gather->out.failed)
            return STORE_NO_MEMORY;
        call->cursor += step - left;
        gather->is_over = gather->at == 0 || call->cursor == budget;
        if (!gather->is_over && !gather->is_nested && gather_step_fills(gather, step - left))
            return gather_step(call, gather);
    }
    return STORE_OK;
}

/* ---- KEYS and SCAN ---- */

enum store_result cmd_keys(struct call *call)
{
    struct scan_filter filter = scan_filter(call->argv[1]);
    struct gather *gather = walk_get(call, 0);
    if (gather == NULL)
        return STORE_NO_MEMORY;
    gather->is_tail = true;
    enum store_result result = walk_on(call, gather, UINT64_MAX, &filter);
    if (result != STORE_OK)
        return result;
    resp_array(call->reply, gather->count);
    return gather_reply(call, gather);
}

enum store_result cmd_scan(struct call *call)
{
    uint64_t cursor;
    struct scan_filter filter;
    if (!scan_read_cursor(call, call->argv[1], &cursor) ||
        !scan_read_options(call, 2, true, &filter))
        return STORE_OK;
    struct gather *gather = walk_get(call, cursor);
    if (gather == NULL)
        return STORE_NO_MEMORY;
    gather->is_tail = true;
    enum store_result result = walk_on(call, gather, filter.count, &filter);
    if (result != STORE_OK)
        return result;
    scan_reply_cursor(call, gather->at);
    resp_array(call->reply, gather->count);
    return gather_reply(call, gather);
}

/* ---- RANDOMKEY ---- */

/* Keeps each of the keys seen so far with the same probability. */
static void pick_key(void *arg, const char *key, uint32_t key_len, const struct store_item *item)
{
    struct gather *gather = arg;
    (void)item;
    if (dice_below(&gather->dice, ++gather->count) != 0)
        return;
    resp_truncate(&gather->out, 0);
    resp_bulk(&gather->out, key, key_len);
}

/* A few keys from a random place on, the walk going on at the beginning if it meets the end; so a
 * key that follows a wide gap is not much more likely than the others. */
enum store_result cmd_randomkey(struct call *call)
{
    uint32_t db = call->session->db;
    struct store_db_stats stats;
    enum store_result counted = store_txn_db_stats(call->txn, db, &stats);
    if (counted != STORE_OK)
        return counted;
    bool few = stats.keys <= RANDOM_CANDIDATES;
    uint64_t start = few ? 0 : store_scan_at(call->txn, db, call->random_seed);
    struct gather *gather = walk_get(call, start);
    if (gather == NULL)
        return STORE_NO_MEMORY;
    while (gather->count < RANDOM_CANDIDATES) {
        uint32_t budget = RANDOM_CANDIDATES;
        gather->is_over |= gather->at == 0; /* it goes on to the end, and no further */
        enum store_result result =
            store_scan(call->txn, db, &gather->at, &budget, pick_key, gather);
        if (result != STORE_OK)
            return result;
        if (gather->at == 0 && gather->is_over)
            break;
    }
    if (gather->out.failed)
        return STORE_NO_MEMORY;
    if (gather->count > 0)
        return gather_reply(call, gather);
    resp_null(call->reply);
    return STORE_OK;
}
