/*
 * Walks over the keys of a database: KEYS, SCAN, RANDOMKEY.
 *
 * A walk may be longer than what is in memory, so it goes in steps, and call->progress keeps what
 * they have collected: a rerun goes on with the step that had to wait. Invariant: between steps
 * `found` holds exactly the matching keys of the walk up to `cursor`.
 */
#include "commands.h"

#include <stdlib.h>

#include "dice.h"
#include "scan_args.h"
#include "server.h"
#include "session.h"

#define STEP_ENTRIES 128    /* pages that one step may need at once */
#define RANDOM_CANDIDATES 8 /* RANDOMKEY picks among so many neighbours */

struct walk {
    uint64_t cursor;
    uint64_t budget;          /* index entries still to be looked at */
    uint64_t count;           /* keys in `found`; for RANDOMKEY: keys it was picked from */
    struct dice dice;         /* RANDOMKEY */
    bool around;              /* RANDOMKEY: has gone on from the database's beginning */
    struct resp_writer found; /* the keys, as bulk strings */
};

struct visit {
    struct walk *walk;
    const struct scan_filter *filter;
};

static void walk_free(void *progress)
{
    struct walk *walk = progress;
    resp_writer_free(&walk->found);
    free(walk);
}

/* The walk of this request, begun at `cursor` in the first run; NULL: no memory. */
static struct walk *walk_get(struct call *call, uint64_t cursor, uint64_t budget)
{
    if (call->progress != NULL)
        return call->progress;
    struct walk *walk = calloc(1, sizeof(*walk));
    if (walk == NULL)
        return NULL;
    walk->cursor = cursor;
    walk->budget = budget;
    walk->dice = dice_new(call->random_seed);
    resp_writer_init(&walk->found, call->reply->version);
    call->progress = walk;
    call->progress_free = walk_free;
    return walk;
}

static void visit_key(void *arg, const char *key, uint32_t key_len, const struct store_item *item)
{
    const struct visit *visit = arg;
    const struct scan_filter *filter = visit->filter;
    if (!scan_matches(filter, (struct resp_slice){key, key_len}))
        return;
    if (!filter->any_type && !slice_is(filter->type, call_type_name(item->type)))
        return;
    resp_bulk(&visit->walk->found, key, key_len);
    visit->walk->count++;
}

/* Steps until the end of the database or of the budget. A step that has to wait has visited
 * nothing, so the walk stands where the next run is to go on. */
static enum store_result walk_on(struct call *call, struct walk *walk,
                                 const struct scan_filter *filter)
{
    struct visit visit = {.walk = walk, .filter = filter};
    do {
        uint32_t step = walk->budget < STEP_ENTRIES ? (uint32_t)walk->budget : STEP_ENTRIES;
        uint32_t left = step;
        enum store_result result =
            store_scan(call->txn, call->session->db, &walk->cursor, &left, visit_key, &visit);
        if (result != STORE_OK)
            return result;
        if (walk->found.failed)
            return STORE_NO_MEMORY;
        walk->budget -= step - left;
    } while (walk->cursor != 0 && walk->budget > 0);
    return STORE_OK;
}

static void reply_found(struct call *call, const struct walk *walk)
{
    resp_array(call->reply, walk->count);
    resp_raw(call->reply, walk->found.data, walk->found.len);
}

/* ---- KEYS and SCAN ---- */

enum store_result cmd_keys(struct call *call)
{
    struct scan_filter filter = scan_filter(call->argv[1]);
    struct walk *walk = walk_get(call, 0, UINT64_MAX);
    if (walk == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = walk_on(call, walk, &filter);
    if (result == STORE_OK)
        reply_found(call, walk);
    return result;
}

enum store_result cmd_scan(struct call *call)
{
    uint64_t cursor;
    struct scan_filter filter;
    if (!scan_read_cursor(call, call->argv[1], &cursor) ||
        !scan_read_options(call, 2, true, &filter))
        return STORE_OK;
    struct walk *walk = walk_get(call, cursor, filter.count);
    if (walk == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = walk_on(call, walk, &filter);
    if (result != STORE_OK)
        return result;
    scan_reply_cursor(call, walk->cursor);
    reply_found(call, walk);
    return STORE_OK;
}

/* ---- RANDOMKEY ---- */

/* Keeps each of the keys seen so far with the same probability. */
static void pick_key(void *arg, const char *key, uint32_t key_len, const struct store_item *item)
{
    struct walk *walk = arg;
    (void)item;
    if (dice_below(&walk->dice, ++walk->count) != 0)
        return;
    resp_truncate(&walk->found, 0);
    resp_bulk(&walk->found, key, key_len);
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
    struct walk *walk = walk_get(call, start, 0);
    if (walk == NULL)
        return STORE_NO_MEMORY;
    while (walk->count < RANDOM_CANDIDATES) {
        uint32_t budget = RANDOM_CANDIDATES;
        walk->around |= walk->cursor == 0;
        enum store_result result =
            store_scan(call->txn, db, &walk->cursor, &budget, pick_key, walk);
        if (result != STORE_OK)
            return result;
        if (walk->cursor == 0 && walk->around)
            break;
    }
    if (walk->found.failed)
        return STORE_NO_MEMORY;
    if (walk->count == 0)
        resp_null(call->reply);
    else
        resp_raw(call->reply, walk->found.data, walk->found.len);
    return STORE_OK;
}
