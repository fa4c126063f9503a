/*
 * Walks over the keys of a database: KEYS, SCAN, RANDOMKEY.
 *
 * A walk may be longer than what is in memory, so it goes in steps, and call->progress keeps what
 * they have collected: a rerun goes on with the step that had to wait. Invariant: between steps
 * `found` holds exactly the matching keys of the walk up to `cursor`.
 */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "glob.h"
#include "server.h"
#include "session.h"

#define STEP_ENTRIES 128      /* pages that one step may need at once */
#define RANDOM_CANDIDATES 8   /* RANDOMKEY picks among so many neighbours */
#define SCAN_DEFAULT_COUNT 10 /* as Redis's SCAN */

struct walk {
    uint64_t cursor;
    uint64_t budget;          /* index entries still to be looked at */
    uint64_t count;           /* keys in `found`; for RANDOMKEY: keys it was picked from */
    uint64_t random;          /* RANDOMKEY: state of its dice, never 0 */
    bool around;              /* RANDOMKEY: has gone on from the database's beginning */
    struct resp_writer found; /* the keys, as bulk strings */
};

struct filter {
    bool any_key, any_type;
    struct resp_slice pattern, type;
};

struct visit {
    struct walk *walk;
    const struct filter *filter;
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
    walk->random = call->random_seed | 1;
    resp_writer_init(&walk->found, call->reply->version);
    call->progress = walk;
    call->progress_free = walk_free;
    return walk;
}

static void visit_key(void *arg, const char *key, uint32_t key_len, const struct store_item *item)
{
    const struct visit *visit = arg;
    const struct filter *filter = visit->filter;
    if (!filter->any_key &&
        !glob_match(filter->pattern.data, filter->pattern.len, key, key_len, false))
        return;
    if (!filter->any_type && !slice_is(filter->type, call_type_name(item->type)))
        return;
    resp_bulk(&visit->walk->found, key, key_len);
    visit->walk->count++;
}

/* Steps until the end of the database or of the budget. A step that has to wait has visited
 * nothing, so the walk stands where the next run is to go on. */
static enum store_result walk_on(struct call *call, struct walk *walk, const struct filter *filter)
{
    struct visit visit = {.walk = walk, .filter = filter};
    do {
        uint32_t limit = walk->budget < STEP_ENTRIES ? (uint32_t)walk->budget : STEP_ENTRIES;
        enum store_result result =
            store_scan(call->txn, call->session->db, &walk->cursor, limit, visit_key, &visit);
        if (result != STORE_OK)
            return result;
        if (walk->found.failed)
            return STORE_NO_MEMORY;
        walk->budget -= limit;
    } while (walk->cursor != 0 && walk->budget > 0);
    return STORE_OK;
}

static void reply_found(struct call *call, const struct walk *walk)
{
    resp_array(call->reply, walk->count);
    resp_raw(call->reply, walk->found.data, walk->found.len);
}

/* ---- KEYS and SCAN ---- */

static bool is_star(struct resp_slice pattern)
{
    return pattern.len == 1 && pattern.data[0] == '*';
}

enum store_result cmd_keys(struct call *call)
{
    struct filter filter = {
        .any_key = is_star(call->argv[1]), .any_type = true, .pattern = call->argv[1]};
    struct walk *walk = walk_get(call, 0, UINT64_MAX);
    if (walk == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = walk_on(call, walk, &filter);
    if (result == STORE_OK)
        reply_found(call, walk);
    return result;
}

/* As liberal as Redis: a sign is taken, a negative number wraps, nothing at all is 0. */
static bool read_cursor(struct call *call, struct resp_slice arg, uint64_t *cursor)
{
    bool is_signed = arg.len > 1 && (arg.data[0] == '-' || arg.data[0] == '+');
    bool valid = true;
    *cursor = 0;
    for (size_t i = is_signed; valid && i < arg.len; i++) {
        uint64_t digit = (uint64_t)(unsigned char)arg.data[i] - '0';
        valid = digit <= 9 && *cursor <= (UINT64_MAX - digit) / 10;
        *cursor = *cursor * 10 + digit;
    }
    if (is_signed && arg.data[0] == '-')
        *cursor = 0 - *cursor;
    if (!valid)
        resp_error(call->reply, "ERR invalid cursor");
    return valid;
}

static bool scan_options(struct call *call, struct filter *filter, uint64_t *count)
{
    for (size_t i = 2; i < call->argc; i += 2) {
        int64_t number;
        if (i + 1 == call->argc)
            return call_syntax_error(call);
        struct resp_slice value = call->argv[i + 1];
        if (slice_is(call->argv[i], "count")) {
            if (!call_int64(call, value, &number))
                return false;
            if (number < 1)
                return call_syntax_error(call);
            *count = (uint64_t)number;
        } else if (slice_is(call->argv[i], "match")) {
            filter->pattern = value;
            filter->any_key = is_star(value);
        } else if (slice_is(call->argv[i], "type")) {
            filter->type = value;
            filter->any_type = false;
        } else {
            return call_syntax_error(call);
        }
    }
    return true;
}

enum store_result cmd_scan(struct call *call)
{
    uint64_t cursor, count = SCAN_DEFAULT_COUNT;
    struct filter filter = {.any_key = true, .any_type = true};
    if (!read_cursor(call, call->argv[1], &cursor) || !scan_options(call, &filter, &count))
        return STORE_OK;
    struct walk *walk = walk_get(call, cursor, count);
    if (walk == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = walk_on(call, walk, &filter);
    if (result != STORE_OK)
        return result;
    char text[24];
    size_t len = (size_t)snprintf(text, sizeof(text), "%" PRIu64, walk->cursor);
    resp_array(call->reply, 2);
    resp_bulk(call->reply, text, len);
    reply_found(call, walk);
    return STORE_OK;
}

/* ---- RANDOMKEY ---- */

static uint64_t roll(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Keeps each of the keys seen so far with the same probability. */
static void pick_key(void *arg, const char *key, uint32_t key_len, const struct store_item *item)
{
    struct walk *walk = arg;
    (void)item;
    if (roll(&walk->random) % ++walk->count != 0)
        return;
    resp_truncate(&walk->found, 0);
    resp_bulk(&walk->found, key, key_len);
}

/* A few keys from a random place on, the walk going on at the beginning if it meets the end; so a
 * key that follows a wide gap is not much more likely than the others. */
enum store_result cmd_randomkey(struct call *call)
{
    const struct store *store = call->server->store;
    uint32_t db = call->session->db;
    bool few = store_db_stats(store, db).keys <= RANDOM_CANDIDATES;
    struct walk *walk = walk_get(call, few ? 0 : store_scan_at(store, db, call->random_seed), 0);
    if (walk == NULL)
        return STORE_NO_MEMORY;
    while (walk->count < RANDOM_CANDIDATES) {
        walk->around |= walk->cursor == 0;
        enum store_result result =
            store_scan(call->txn, db, &walk->cursor, RANDOM_CANDIDATES, pick_key, walk);
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
