/*
 * XREADGROUP: entries that no consumer of the group has got yet (`>`), which become pending; or
 * again those that are pending for the consumer.
 *
 * The reply is made first, in steps if it is long; then all changes, in the last run.
 */
#include "server/commands/cmd_stream.h"

#include <stdlib.h>
#include <string.h>

#include "server/commands/cmd_stream_group.h"
#include "server/commands/cmd_stream_read.h"
#include "server/commands/cmd_stream_reply.h"
#include "server/commands/commands.h"
#include "server/core/call.h"
#include "server/exec/blocked.h"
#include "server/exec/keyspace.h"
#include "server/exec/long_run.h"
#include "server/core/server.h"
#include "server/types/stream_lag.h"
#include "storage/base/keyed_hash.h"

/* What one stream gives. */
struct source {
    struct stream stream;
    struct stream_group group;
    bool is_history;
    struct stream_id after;      /* is_history */
    struct stream_entries fresh; /* otherwise */
    uint64_t pending;            /* is_history: entries to be replied with */
    struct stream_consumer consumer;
    bool has_consumer; /* before this command */
};

struct taking {
    struct stream_reading reading;
    struct source *sources;
    uint32_t streams; /* that give something */
    uint64_t total;   /* entries */
};

/* ---- what there is ---- */

static enum store_result find_source(struct call *call, const struct stream_reading *reading,
                                     uint32_t i, struct source *source)
{
    bool found = false;
    struct resp_slice id = call->argv[reading->ids_at + i];
    *source = (struct source){.is_history = !slice_is(id, ">")};
    enum store_result result = stream_find(call, &call->keys[i], &source->stream);
    if (result == STORE_OK)
        result = stream_group_find(&source->stream, reading->group, &source->group, &found);
    if (result != STORE_OK)
        return result;
    if (!found) {
        resp_errorf(call->reply,
                    "NOGROUP No such key '%.*s' or consumer group '%.*s' in XREADGROUP with GROUP "
                    "option",
                    (int)call->keys[i].len, call->keys[i].data, (int)reading->group.len,
                    reading->group.data);
        return STORE_ANSWERED;
    }
    if (slice_is(id, "$")) {
        resp_error(call->reply,
                   "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the "
                   "history of this consumer by specifying a proper ID, or use the > ID to get new "
                   "messages. The $ ID would just return an empty result set.");
        return STORE_ANSWERED;
    }
    if (source->is_history && !stream_read_id(call, id, 0, &source->after))
        return STORE_ANSWERED;
    return STORE_OK;
}

static uint64_t at_most(uint64_t count, int64_t most)
{
    return most > 0 && (uint64_t)most < count ? (uint64_t)most : count;
}

/* The consumer's pending entries after an ID. */
static enum store_result look_back(struct source *source, int64_t most)
{
    struct stream_id first = source->after;
    if (!source->has_consumer || !stream_id_increment(&first))
        return STORE_OK;
    enum store_result result =
        stream_pending_count(&source->group, &source->consumer, first, &source->pending);
    source->pending = at_most(source->pending, most);
    source->after = first;
    return result;
}

static enum store_result look_ahead(struct source *source, const struct store_key *key,
                                    int64_t most)
{
    struct stream_id first = source->group.last;
    source->fresh = (struct stream_entries){.stream = &source->stream, .name = key};
    if (!stream_id_increment(&first))
        return STORE_OK;
    enum store_result result = stream_range(&source->stream, first, STREAM_ID_MAX,
                                            &source->fresh.rank, &source->fresh.count);
    source->fresh.count = at_most(source->fresh.count, most);
    return result;
}

static enum store_result look(struct call *call, struct taking *taking, uint32_t i)
{
    const struct stream_reading *reading = &taking->reading;
    struct source *source = &taking->sources[i];
    call_count_lookup(call, &call->keys[i], STORE_OK);
    enum store_result result = stream_consumer_find(&source->group, reading->consumer,
                                                    &source->consumer, &source->has_consumer);
    if (result == STORE_OK)
        result = source->is_history ? look_back(source, reading->count)
                                    : look_ahead(source, &call->keys[i], reading->count);
    taking->streams += source->is_history || source->fresh.count > 0;
    taking->total += source->is_history ? source->pending : source->fresh.count;
    return result;
}

/* ---- the reply ---- */

static void put_history_head(struct steps *steps, const struct source *source)
{
    const struct store_key *key = source->stream.key;
    if (steps->out->version < 3)
        resp_array(steps->out, 2);
    resp_bulk(steps->out, key->data, key->len);
    resp_array(steps->out, source->pending);
}

/* A pending entry may have been deleted: then its fields are null. */
static enum store_result put_pending(struct steps *steps, struct source *source,
                                     const struct stream_pending *pending)
{
    bool found;
    enum store_result result = stream_put_entry_of(steps, &source->stream, pending->id, &found);
    if (result != STORE_OK || found)
        return result;
    resp_array(steps->out, 2);
    stream_id_reply(steps->out, pending->id);
    resp_null_array(steps->out);
    return STORE_OK;
}

/* Calls `visit` for the consumer's pending entries that are replied with, from number `from` on. */
typedef enum store_result pending_visit(void *arg, struct source *source, uint64_t i,
                                        struct stream_pending *pending);
static enum store_result each_pending(struct source *source, uint64_t from, pending_visit *visit,
                                      void *arg)
{
    struct stream_pending pending;
    enum store_result result =
        stream_pending_nth(&source->group, &source->consumer, source->after, from, &pending);
    for (uint64_t i = from; i < source->pending && result == STORE_OK; i++) {
        struct stream_id next = pending.id;
        result = visit(arg, source, i, &pending);
        if (result == STORE_OK && i + 1 == source->pending)
            return STORE_OK;
        if (result == STORE_OK && !stream_id_increment(&next))
            return STORE_DAMAGED;
        if (result == STORE_OK)
            result = stream_pending_seek(&source->group, &source->consumer, next, &pending);
    }
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

static enum store_result reply_pending(void *arg, struct source *source, uint64_t i,
                                       struct stream_pending *pending)
{
    struct steps *steps = arg;
    size_t start = steps->out->len;
    if (i == 0)
        put_history_head(steps, source);
    enum store_result result = put_pending(steps, source, pending);
    if (result == STORE_OK)
        return steps_count(steps);
    resp_truncate(steps->out, start);
    return result;
}

/* `before`: entries of this stream that are in the output already. */
static enum store_result reply_source(struct steps *steps, struct source *source, uint64_t before)
{
    if (!source->is_history)
        return before < source->fresh.count ? stream_put_entries(steps, &source->fresh, before)
                                            : STORE_OK;
    if (source->pending > 0)
        return before < source->pending ? each_pending(source, before, reply_pending, steps)
                                        : STORE_OK;
    put_history_head(steps, source);
    return STORE_OK;
}

/* A stream with an empty history has no entry that would tell whether it is in the output already:
 * such a reply is not made in steps. */
static bool has_empty_history(const struct taking *taking)
{
    for (uint32_t i = 0; i < taking->reading.streams; i++)
        if (taking->sources[i].is_history && taking->sources[i].pending == 0)
            return true;
    return false;
}

static enum store_result reply_all(struct call *call, struct taking *taking)
{
    struct steps steps;
    uint64_t passed = 0;
    bool is_many = steps_are_many(taking->total) && !has_empty_history(taking);
    enum store_result result = steps_begin(&steps, call, is_many);
    if (result == STORE_OK && steps.fresh)
        stream_put_streams(&steps, taking->streams);
    for (uint32_t i = 0; i < taking->reading.streams && result == STORE_OK; i++) {
        struct source *source = &taking->sources[i];
        result = reply_source(&steps, source, *steps.done - passed);
        passed += source->is_history ? source->pending : source->fresh.count;
    }
    return result == STORE_OK ? steps_finish(&steps) : result;
}

/* ---- the changes ---- */

static enum store_result note_again(void *arg, struct source *source, uint64_t i,
                                    struct stream_pending *pending)
{
    struct call *call = arg;
    struct store_cursor cursor;
    struct stream_entry entry;
    bool found;
    enum store_result result =
        stream_find_entry(&source->stream, pending->id, &cursor, &entry, &found);
    if (result != STORE_OK || !found)
        return result;
    pending->delivered_ms = call->now_ms;
    pending->count++;
    result = stream_pending_put(&source->group, pending);
    return result == STORE_OK ? call_yield_at(call, i) : result;
}

static enum store_result note_fresh(struct call *call, struct source *source, bool no_ack)
{
    struct store_cursor cursor;
    struct stream_entry entry;
    enum store_result result =
        store_tree_seek_rank(source->stream.entries, source->fresh.rank, &cursor);
    for (uint64_t i = 0; i < source->fresh.count && result == STORE_OK; i++) {
        result = stream_get(&cursor, &entry);
        if (result == STORE_OK)
            result = stream_group_note_read(&source->group, entry.id);
        struct stream_pending pending = {entry.id, source->consumer.number, call->now_ms, 1};
        if (result == STORE_OK && !no_ack)
            result = stream_pending_put(&source->group, &pending);
        if (result == STORE_OK)
            result = call_yield_at(call, i);
        if (result == STORE_OK && i + 1 < source->fresh.count)
            result = store_tree_next(&cursor);
    }
    return result == STORE_OK       ? stream_group_save(&source->group)
           : result == STORE_ABSENT ? STORE_DAMAGED
                                    : result;
}

static enum store_result change_source(struct call *call, const struct taking *taking,
                                       struct source *source)
{
    const struct stream_reading *reading = &taking->reading;
    enum store_result result = stream_load_head(&source->stream);
    if (result == STORE_OK)
        result = stream_see_consumer(&source->group, reading->consumer, &source->consumer);
    if (result != STORE_OK)
        return result;
    if (source->is_history)
        return source->pending > 0 ? each_pending(source, 0, note_again, call) : STORE_OK;
    if (source->fresh.count == 0)
        return STORE_OK;
    if (!reading->no_ack) {
        source->consumer.active_ms = call->now_ms;
        result = stream_consumer_save(&source->consumer);
    }
    return result == STORE_OK ? note_fresh(call, source, reading->no_ack) : result;
}

static enum store_result change_all(struct call *call, struct taking *taking)
{
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < taking->reading.streams && result == STORE_OK; i++)
        result = change_source(call, taking, &taking->sources[i]);
    return result;
}

/* ---- one stream named twice ---- */

static int compare_hashes(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* *found: two keys may be the same. */
static enum store_result find_twins(struct call *call, uint32_t count, bool *found)
{
    *found = false;
    if (count < 2)
        return STORE_OK;
    uint64_t *hashes = store_alloc(call->txn, count * sizeof *hashes);
    if (hashes == NULL)
        return STORE_NO_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        hashes[i] = call->keys[i].hash;
    qsort(hashes, count, sizeof *hashes, compare_hashes);
    for (uint32_t i = 1; i < count; i++)
        *found = *found || hashes[i] == hashes[i - 1];
    return STORE_OK;
}

/* Puts the head before the streams that were written from `start` on. */
static bool put_head_before(struct call *call, struct steps *steps, size_t start, uint32_t streams)
{
    size_t len = call->reply->len - start;
    char *copy = store_alloc(call->txn, len + 1);
    if (copy == NULL)
        return false;
    memcpy(copy, call->reply->data + start, len);
    resp_truncate(call->reply, start);
    stream_put_streams(steps, streams);
    resp_raw(call->reply, copy, len);
    return true;
}

/* What is read from a stream is not new to those that follow: one after the other, in one run. */
static enum store_result take_in_turn(struct call *call, struct taking *taking)
{
    struct steps steps;
    size_t start = call->reply->len;
    enum store_result result = steps_begin(&steps, call, false);
    for (uint32_t i = 0; i < taking->reading.streams && result == STORE_OK; i++) {
        struct source *source = &taking->sources[i];
        bool found;
        result = stream_group_find(&source->stream, taking->reading.group, &source->group, &found);
        if (result == STORE_OK)
            result = look(call, taking, i);
        if (result == STORE_OK)
            result = reply_source(&steps, source, 0);
        if (result == STORE_OK)
            result = change_source(call, taking, source);
    }
    if (result != STORE_OK || taking->streams == 0)
        return result;
    return put_head_before(call, &steps, start, taking->streams) ? STORE_OK : STORE_NO_MEMORY;
}

/* ---- the command ---- */

static enum store_result wait_for_more(struct call *call, const struct stream_reading *reading)
{
    struct store_secret secret = store_secret(call->server->store);
    const struct block_wish wish = {
        .audience = store_keyed_hash(secret.words, reading->group.data, reading->group.len) | 1,
        .even_if_gone = true};
    return call_block_for_streams(call, reading->streams, reading->timeout_ms, &wish);
}

static enum store_result take(struct call *call, struct taking *taking)
{
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < taking->reading.streams && result == STORE_OK; i++)
        result = look(call, taking, i);
    if (result == STORE_OK && taking->streams > 0)
        result = reply_all(call, taking);
    return result == STORE_OK ? change_all(call, taking) : result;
}

enum store_result cmd_xreadgroup(struct call *call)
{
    struct taking taking = {.total = 0};
    bool has_twins;
    if (!stream_read_arguments(call, true, &taking.reading))
        return STORE_OK;
    taking.sources = store_alloc(call->txn, taking.reading.streams * sizeof *taking.sources);
    if (taking.sources == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = find_twins(call, taking.reading.streams, &has_twins);
    for (uint32_t i = 0; i < taking.reading.streams && result == STORE_OK; i++)
        result = find_source(call, &taking.reading, i, &taking.sources[i]);
    stream_only_takes(call);
    if (result == STORE_OK)
        result = has_twins ? take_in_turn(call, &taking) : take(call, &taking);
    if (result != STORE_OK || taking.streams > 0)
        return result;
    resp_null_array(call->reply);
    return taking.reading.blocks ? wait_for_more(call, &taking.reading) : STORE_OK;
}
