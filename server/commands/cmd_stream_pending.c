/*
 * Pending entries: XPENDING, XCLAIM, XAUTOCLAIM.
 */
#include "server/commands/cmd_stream.h"

#include <limits.h>

#include "server/commands/cmd_stream_group.h"
#include "server/commands/cmd_stream_read.h"
#include "server/commands/cmd_stream_reply.h"
#include "server/commands/commands.h"
#include "server/core/call.h"
#include "server/exec/keyspace.h"
#include "server/exec/long_run.h"

/* ---- XPENDING with a range ---- */

struct listing {
    const struct stream_group *group;
    const struct stream_consumer *consumer; /* NULL: all */
    struct stream_id first, last;
    int64_t min_idle_ms, now_ms;
    uint64_t count; /* at most */
};

typedef enum store_result listing_visit(void *arg, const struct stream_pending *pending);

/* Visits those entries, without the first `skipped` of them; *visited: how many there are. */
static enum store_result each_listed(const struct listing *listing, uint64_t skipped,
                                     listing_visit *visit, void *arg, uint64_t *visited)
{
    struct stream_id id = listing->first;
    struct stream_pending pending;
    *visited = 0;
    for (uint64_t i = 0; *visited < listing->count; i++) {
        enum store_result result =
            stream_pending_seek(listing->group, listing->consumer, id, &pending);
        if (result == STORE_ABSENT ||
            (result == STORE_OK && stream_id_compare(pending.id, listing->last) > 0))
            return STORE_OK;
        id = pending.id;
        bool is_listed =
            result == STORE_OK && (listing->min_idle_ms == 0 ||
                                   listing->now_ms - pending.delivered_ms >= listing->min_idle_ms);
        if (is_listed && (*visited)++ >= skipped)
            result = visit(arg, &pending);
        if (result == STORE_OK)
            result = call_yield_at(listing->group->stream->call, i);
        if (result != STORE_OK)
            return result;
        if (!stream_id_increment(&id))
            return STORE_OK;
    }
    return STORE_OK;
}

static enum store_result count_only(void *arg, const struct stream_pending *pending)
{
    (void)arg;
    (void)pending;
    return STORE_OK;
}

struct listed_reply {
    const struct listing *listing;
    struct steps *steps;
};

static enum store_result reply_listed(void *arg, const struct stream_pending *pending)
{
    const struct listed_reply *reply = arg;
    struct resp_writer *out = reply->steps->out;
    struct resp_slice name;
    int64_t idle_ms = reply->listing->now_ms - pending->delivered_ms;
    enum store_result result =
        stream_consumer_name(reply->listing->group, pending->consumer, &name);
    if (result != STORE_OK)
        return result;
    resp_array(out, 4);
    stream_id_reply(out, pending->id);
    resp_bulk(out, name.data, name.len);
    resp_integer(out, idle_ms < 0 ? 0 : idle_ms);
    resp_integer(out, (int64_t)pending->count);
    return steps_count(reply->steps);
}

static enum store_result reply_listing(struct call *call, struct listing *listing)
{
    struct steps steps;
    uint64_t count;
    enum store_result result = each_listed(listing, 0, count_only, NULL, &count);
    if (result == STORE_OK)
        result = steps_begin(&steps, call, steps_are_many(count));
    if (result == STORE_OK && steps.fresh)
        resp_array(steps.out, count);
    struct listed_reply reply = {listing, &steps};
    if (result == STORE_OK)
        result = each_listed(listing, *steps.done, reply_listed, &reply, &count);
    return result == STORE_OK ? steps_finish(&steps) : result;
}

/* Of the arguments of XPENDING; `consumer` has no data if none is named. */
struct pending_range {
    struct stream_id first, last;
    int64_t count, min_idle_ms;
    struct resp_slice consumer;
};

static bool read_range(struct call *call, struct pending_range *range)
{
    size_t at = 3;
    *range = (struct pending_range){.count = 0};
    if (slice_is(call->argv[3], "idle")) {
        if (!call_int64(call, call->argv[4], &range->min_idle_ms))
            return false;
        if (call->argc < 8)
            return call_syntax_error(call);
        at = 5;
    }
    if (!call_int64(call, call->argv[at + 2], &range->count) ||
        !stream_read_bound(call, call->argv[at], false, &range->first) ||
        !stream_read_bound(call, call->argv[at + 1], true, &range->last))
        return false;
    if (range->count < 0)
        range->count = 0;
    if (at + 3 < call->argc)
        range->consumer = call->argv[at + 3];
    return true;
}

static enum store_result list_range(struct call *call, const struct stream_group *group,
                                    const struct pending_range *range)
{
    struct stream_consumer consumer;
    bool found = true;
    enum store_result result = STORE_OK;
    if (range->consumer.data != NULL)
        result = stream_consumer_find(group, range->consumer, &consumer, &found);
    if (result != STORE_OK)
        return result;
    if (!found) {
        resp_array(call->reply, 0);
        return STORE_OK;
    }
    struct listing listing = {.group = group,
                              .consumer = range->consumer.data != NULL ? &consumer : NULL,
                              .first = range->first,
                              .last = range->last,
                              .min_idle_ms = range->min_idle_ms,
                              .now_ms = call->now_ms,
                              .count = (uint64_t)range->count};
    return reply_listing(call, &listing);
}

/* ---- XPENDING alone ---- */

/* Calls with the consumers that have pending entries. */
static enum store_result each_holder(const struct stream_group *group, struct resp_writer *out,
                                     uint64_t *holders)
{
    uint64_t consumers, pending;
    enum store_result result = stream_consumer_count(group, &consumers);
    *holders = 0;
    for (uint64_t i = 0; i < consumers && result == STORE_OK; i++) {
        struct stream_consumer consumer;
        result = stream_consumer_at(group, i, &consumer);
        if (result == STORE_OK)
            result = stream_pending_count(group, &consumer, STREAM_ID_MIN, &pending);
        if (result == STORE_OK)
            result = call_yield_at(group->stream->call, i);
        if (result != STORE_OK || pending == 0)
            continue;
        ++*holders;
        if (out == NULL)
            continue;
        resp_array(out, 2);
        resp_bulk(out, consumer.name.data, consumer.name.len);
        resp_bulk_integer(out, (int64_t)pending);
    }
    return result;
}

static enum store_result summarize(struct call *call, const struct stream_group *group)
{
    struct stream_pending first, last;
    uint64_t count, holders;
    enum store_result result = stream_pending_count(group, NULL, STREAM_ID_MIN, &count);
    if (result == STORE_OK && count == 0) {
        resp_array(call->reply, 4);
        resp_integer(call->reply, 0);
        resp_null(call->reply);
        resp_null(call->reply);
        resp_null_array(call->reply);
        return STORE_OK;
    }
    if (result == STORE_OK)
        result = stream_pending_seek(group, NULL, STREAM_ID_MIN, &first);
    if (result == STORE_OK)
        result = stream_pending_last(group, &last);
    if (result == STORE_OK)
        result = each_holder(group, NULL, &holders);
    if (result != STORE_OK)
        return result;
    resp_array(call->reply, 4);
    resp_integer(call->reply, (int64_t)count);
    stream_id_reply(call->reply, first.id);
    stream_id_reply(call->reply, last.id);
    resp_array(call->reply, holders);
    return each_holder(group, call->reply, &holders);
}

enum store_result cmd_xpending(struct call *call)
{
    struct stream stream;
    struct stream_group group;
    struct pending_range range;
    bool is_summary = call->argc == 3;
    if (!is_summary && (call->argc < 6 || call->argc > 9)) {
        call_syntax_error(call);
        return STORE_OK;
    }
    if (!is_summary && !read_range(call, &range))
        return STORE_OK;
    enum store_result result = stream_find_group(call, &stream, call->argv[2], &group);
    if (result != STORE_OK)
        return result;
    return is_summary ? summarize(call, &group) : list_range(call, &group, &range);
}

/* ---- claiming ---- */

struct claim {
    struct call *call;
    struct stream stream;
    struct stream_group group;
    struct stream_consumer consumer;
    int64_t min_idle_ms;
    int64_t delivered_ms; /* what is recorded as the time of delivery */
    int64_t retry_count;  /* -1: one more than before */
    bool forces, only_ids;
    struct stream_id *claimed, *deleted; /* collected for the reply */
    uint64_t claimed_count, deleted_count;
};

static bool read_min_idle(struct call *call, const char *error, int64_t *min_idle_ms)
{
    struct resp_slice arg = call->argv[4];
    if (!resp_read_int64(arg.data, arg.len, min_idle_ms)) {
        resp_error(call->reply, error);
        return false;
    }
    if (*min_idle_ms < 0)
        *min_idle_ms = 0;
    return true;
}

static bool reserve(struct claim *claim, uint64_t most)
{
    struct store_txn *txn = claim->call->txn;
    claim->claimed = store_alloc(txn, (most + 1) * sizeof *claim->claimed);
    claim->deleted = store_alloc(txn, (most + 1) * sizeof *claim->deleted);
    return claim->claimed != NULL && claim->deleted != NULL;
}

static enum store_result give(struct claim *claim, struct stream_pending *pending)
{
    pending->consumer = claim->consumer.number;
    pending->delivered_ms = claim->delivered_ms;
    if (claim->retry_count >= 0)
        pending->count = (uint64_t)claim->retry_count;
    else if (!claim->only_ids)
        pending->count++;
    claim->claimed[claim->claimed_count++] = pending->id;
    return stream_pending_put(&claim->group, pending);
}

/* An entry that was deleted is not pending any more. */
static enum store_result claim_one(struct claim *claim, struct stream_id id)
{
    struct stream_pending pending = {.id = id, .count = 1};
    struct store_cursor cursor;
    struct stream_entry entry;
    bool exists, is_pending;
    enum store_result result = stream_pending_get(&claim->group, id, &pending, &is_pending);
    if (result == STORE_OK)
        result = stream_find_entry(&claim->stream, id, &cursor, &entry, &exists);
    if (result != STORE_OK || (!exists && !is_pending))
        return result;
    if (!exists) {
        claim->deleted[claim->deleted_count++] = id;
        return stream_pending_remove(&claim->group, &pending);
    }
    if (!is_pending && !claim->forces)
        return STORE_OK;
    if (!is_pending)
        pending = (struct stream_pending){.id = id, .count = 1};
    else if (claim->min_idle_ms > 0 &&
             claim->call->now_ms - pending.delivered_ms < claim->min_idle_ms)
        return STORE_OK;
    return give(claim, &pending);
}

/* The array of claimed entries. */
static enum store_result reply_claimed(struct claim *claim)
{
    struct steps steps = {.call = claim->call, .out = claim->call->reply};
    enum store_result result = STORE_OK;
    resp_array(steps.out, claim->claimed_count);
    for (uint64_t i = 0; i < claim->claimed_count && result == STORE_OK; i++) {
        bool found;
        if (claim->only_ids)
            stream_id_reply(steps.out, claim->claimed[i]);
        else
            result = stream_put_entry_of(&steps, &claim->stream, claim->claimed[i], &found);
        if (result == STORE_OK)
            result = call_yield_at(claim->call, i);
    }
    return result;
}

static enum store_result end_claim(struct claim *claim)
{
    stream_only_takes(claim->call);
    if (claim->claimed_count == 0)
        return STORE_OK;
    claim->consumer.active_ms = claim->call->now_ms;
    return stream_consumer_save(&claim->consumer);
}

/* ---- XCLAIM ---- */

struct claim_options {
    size_t ids_end; /* the IDs are the arguments from 5 up to this one */
    struct stream_id last;
};

static bool read_claim_number(struct call *call, struct resp_slice arg, const char *option,
                              int64_t *number)
{
    if (resp_read_int64(arg.data, arg.len, number))
        return true;
    resp_errorf(call->reply, "ERR Invalid %s option argument for XCLAIM", option);
    return false;
}

/* *delivered_ms: -1: not given. */
static bool read_claim_option(struct claim *claim, size_t *i, struct claim_options *options,
                              int64_t *delivered_ms)
{
    struct call *call = claim->call;
    struct resp_slice arg = call->argv[*i];
    bool has_more = *i + 1 < call->argc;
    if (slice_is(arg, "force")) {
        claim->forces = true;
    } else if (slice_is(arg, "justid")) {
        claim->only_ids = true;
    } else if (slice_is(arg, "idle") && has_more) {
        int64_t idle_ms;
        if (!read_claim_number(call, call->argv[++*i], "IDLE", &idle_ms))
            return false;
        *delivered_ms = (int64_t)((uint64_t)call->now_ms - (uint64_t)idle_ms);
    } else if (slice_is(arg, "time") && has_more) {
        return read_claim_number(call, call->argv[++*i], "TIME", delivered_ms);
    } else if (slice_is(arg, "retrycount") && has_more) {
        return read_claim_number(call, call->argv[++*i], "RETRYCOUNT", &claim->retry_count);
    } else if (slice_is(arg, "lastid") && has_more) {
        return stream_read_id(call, call->argv[++*i], 0, &options->last);
    } else {
        resp_errorf(call->reply, "ERR Unrecognized XCLAIM option '%.*s'", (int)arg.len, arg.data);
        return false;
    }
    return true;
}

static bool read_claim(struct claim *claim, struct claim_options *options)
{
    struct call *call = claim->call;
    struct stream_id id;
    int64_t delivered_ms = -1;
    size_t i = 5;
    if (!read_min_idle(call, "ERR Invalid min-idle-time argument for XCLAIM", &claim->min_idle_ms))
        return false;
    while (i < call->argc && stream_id_parse(call->argv[i], 0, &id) == STREAM_ID_WHOLE)
        i++;
    *options = (struct claim_options){.ids_end = i};
    for (; i < call->argc; i++)
        if (!read_claim_option(claim, &i, options, &delivered_ms))
            return false;
    bool is_sane = delivered_ms >= 0 && delivered_ms <= call->now_ms;
    claim->delivered_ms = is_sane ? delivered_ms : call->now_ms;
    return true;
}

static enum store_result claim_all(struct claim *claim, const struct claim_options *options)
{
    struct call *call = claim->call;
    enum store_result result = STORE_OK;
    for (size_t i = 5; i < options->ids_end && result == STORE_OK; i++) {
        struct stream_id id;
        if (stream_id_parse(call->argv[i], 0, &id) == STREAM_ID_WHOLE)
            result = claim_one(claim, id);
        if (result == STORE_OK)
            result = call_yield_at(call, i);
    }
    if (result == STORE_OK)
        result = reply_claimed(claim);
    return result == STORE_OK ? end_claim(claim) : result;
}

enum store_result cmd_xclaim(struct call *call)
{
    struct claim claim = {.call = call, .retry_count = -1};
    struct claim_options options;
    enum store_result result = stream_find_group(call, &claim.stream, call->argv[2], &claim.group);
    if (result != STORE_OK)
        return result;
    if (!read_claim(&claim, &options))
        return STORE_OK;
    if (!reserve(&claim, call->argc))
        return STORE_NO_MEMORY;
    if (stream_id_compare(options.last, claim.group.last) > 0) {
        claim.group.last = options.last;
        result = stream_group_save(&claim.group);
    }
    if (result == STORE_OK)
        result = stream_see_consumer(&claim.group, call->argv[3], &claim.consumer);
    return result == STORE_OK ? claim_all(&claim, &options) : result;
}

/* ---- XAUTOCLAIM ---- */

#define ATTEMPTS 10 /* entries looked at, for each that may be claimed */
#define COUNT_DEFAULT 100

static bool read_autoclaim(struct claim *claim, struct stream_id *from, int64_t *count)
{
    struct call *call = claim->call;
    *count = COUNT_DEFAULT;
    if (!read_min_idle(call, "ERR Invalid min-idle-time argument for XAUTOCLAIM",
                       &claim->min_idle_ms) ||
        !stream_read_bound(call, call->argv[5], false, from))
        return false;
    for (size_t i = 6; i < call->argc; i++) {
        if (slice_is(call->argv[i], "justid")) {
            claim->only_ids = true;
        } else if (slice_is(call->argv[i], "count") && i + 1 < call->argc) {
            struct resp_slice arg = call->argv[++i];
            if (!resp_read_int64(arg.data, arg.len, count) || *count < 1 ||
                *count > LONG_MAX / (int64_t)sizeof(struct stream_id)) {
                resp_error(call->reply, "ERR COUNT must be > 0");
                return false;
            }
        } else {
            return call_syntax_error(call);
        }
    }
    return true;
}

/* *next: where the next XAUTOCLAIM is to go on; zeros: at the start. */
static enum store_result claim_idle(struct claim *claim, struct stream_id from, uint64_t count,
                                    struct stream_id *next)
{
    struct stream_pending pending;
    enum store_result result = STORE_OK;
    bool has_next = true;
    for (uint64_t i = 0; i / ATTEMPTS < count; i++) {
        if (claim->claimed_count + claim->deleted_count == count)
            break;
        result = stream_pending_seek(&claim->group, NULL, from, &pending);
        if (result != STORE_OK)
            break;
        from = pending.id;
        has_next = stream_id_increment(&from);
        result = claim_one(claim, pending.id);
        if (result == STORE_OK)
            result = call_yield_at(claim->call, i);
        if (result != STORE_OK || !has_next)
            break;
    }
    *next = STREAM_ID_MIN;
    if (result == STORE_OK && has_next)
        result = stream_pending_seek(&claim->group, NULL, from, &pending);
    else if (result == STORE_OK)
        result = STORE_ABSENT;
    if (result == STORE_OK)
        *next = pending.id;
    return result == STORE_ABSENT ? STORE_OK : result;
}

static enum store_result autoclaim(struct claim *claim, struct stream_id from, uint64_t count)
{
    struct call *call = claim->call;
    struct stream_id next;
    uint64_t pending;
    enum store_result result = stream_pending_count(&claim->group, NULL, STREAM_ID_MIN, &pending);
    if (result != STORE_OK)
        return result;
    if (!reserve(claim, count < pending ? count : pending))
        return STORE_NO_MEMORY;
    result = stream_see_consumer(&claim->group, call->argv[3], &claim->consumer);
    if (result == STORE_OK)
        result = claim_idle(claim, from, count, &next);
    if (result != STORE_OK)
        return result;
    resp_array(call->reply, 3);
    stream_id_reply(call->reply, next);
    result = reply_claimed(claim);
    if (result != STORE_OK)
        return result;
    resp_array(call->reply, claim->deleted_count);
    for (uint64_t i = 0; i < claim->deleted_count; i++)
        stream_id_reply(call->reply, claim->deleted[i]);
    return end_claim(claim);
}

/* Redis looks the key up before it reads the arguments. */
static enum store_result only_look_up(struct call *call)
{
    struct store_item item;
    enum store_result result = store_get(call->txn, call->keys, &item);
    if (result == STORE_OK || result == STORE_ABSENT)
        call_count_lookup(call, call->keys, result);
    return result == STORE_ABSENT ? STORE_OK : result;
}

enum store_result cmd_xautoclaim(struct call *call)
{
    struct claim claim = {.call = call, .retry_count = -1, .delivered_ms = call->now_ms};
    struct stream_id from;
    int64_t count;
    if (!read_autoclaim(&claim, &from, &count))
        return only_look_up(call);
    enum store_result result = stream_find_group(call, &claim.stream, call->argv[2], &claim.group);
    return result == STORE_OK ? autoclaim(&claim, from, (uint64_t)count) : result;
}
