/*
 * Reading streams: XRANGE, XREVRANGE, XREAD.
 */
#include "server/commands/cmd_stream_read.h"

#include <assert.h>

#include "server/commands/cmd_stream.h"
#include "server/commands/cmd_stream_reply.h"
#include "server/commands/commands.h"
#include "server/core/call.h"
#include "server/exec/blocked.h"
#include "server/exec/keyspace.h"
#include "server/exec/steps.h"

/* ---- XRANGE, XREVRANGE ---- */

struct interval {
    struct stream_id first, last;
    int64_t count; /* -1: all */
};

bool stream_read_bound(struct call *call, struct resp_slice arg, bool is_last, struct stream_id *id)
{
    bool is_exclusive = arg.len > 1 && arg.data[0] == '(';
    if (slice_is(arg, "-") || slice_is(arg, "+")) {
        *id = slice_is(arg, "-") ? STREAM_ID_MIN : STREAM_ID_MAX;
        return true;
    }
    if (is_exclusive)
        arg = (struct resp_slice){arg.data + 1, arg.len - 1};
    if (!stream_read_id(call, arg, is_last ? UINT64_MAX : 0, id))
        return false;
    if (!is_exclusive || (is_last ? stream_id_decrement(id) : stream_id_increment(id)))
        return true;
    resp_error(call->reply, is_last ? "ERR invalid end ID for the interval"
                                    : "ERR invalid start ID for the interval");
    return false;
}

static bool read_interval(struct call *call, bool backwards, struct interval *interval)
{
    interval->count = -1;
    if (!stream_read_bound(call, call->argv[2 + backwards], false, &interval->first) ||
        !stream_read_bound(call, call->argv[3 - backwards], true, &interval->last))
        return false;
    for (size_t i = 4; i < call->argc; i += 2) {
        if (i + 1 == call->argc || !slice_is(call->argv[i], "count"))
            return call_syntax_error(call);
        if (!call_int64(call, call->argv[i + 1], &interval->count))
            return false;
        if (interval->count < 0)
            interval->count = 0;
    }
    return true;
}

static enum store_result reply_range(struct call *call, bool backwards)
{
    struct interval interval;
    struct stream stream;
    struct steps steps;
    if (!read_interval(call, backwards, &interval))
        return STORE_OK;
    enum store_result result = stream_find(call, call->keys, &stream);
    if (result != STORE_OK)
        return result;
    struct stream_entries entries = {.stream = &stream, .backwards = backwards};
    if (stream.exists && interval.count == 0) {
        resp_null_array(call->reply);
        return STORE_OK;
    }
    result = stream_range(&stream, interval.first, interval.last, &entries.rank, &entries.count);
    if (result != STORE_OK)
        return result;
    if (backwards && entries.count > 0)
        entries.rank += entries.count - 1;
    if (interval.count > 0 && (uint64_t)interval.count < entries.count)
        entries.count = (uint64_t)interval.count;
    if (entries.count == 0) {
        resp_array(call->reply, 0);
        return STORE_OK;
    }
    result = steps_begin(&steps, call, steps_are_many(entries.count));
    if (result == STORE_OK)
        result = stream_put_entries(&steps, &entries, *steps.done);
    return result == STORE_OK ? steps_finish(&steps) : result;
}

enum store_result cmd_xrange(struct call *call)
{
    return reply_range(call, false);
}

enum store_result cmd_xrevrange(struct call *call)
{
    return reply_range(call, true);
}

/* ---- the arguments of XREAD and XREADGROUP ---- */

static bool refuse(struct call *call, const char *error)
{
    resp_error(call->reply, error);
    return false;
}

static bool read_block(struct call *call, struct resp_slice arg, struct stream_reading *reading)
{
    reading->blocks = true;
    if (call->outer == NULL || call->outer->command->role == ROLE_EXEC)
        return call_timeout_ms(call, arg, &reading->timeout_ms);
    resp_errorf(call->reply, "ERR %.*s command is not allowed with BLOCK option from scripts",
                (int)call->argv[0].len, call->argv[0].data);
    return false;
}

static bool read_count(struct call *call, struct resp_slice arg, struct stream_reading *reading)
{
    if (!call_int64(call, arg, &reading->count))
        return false;
    if (reading->count < 0)
        reading->count = 0;
    return true;
}

/* Reads one option; *i is moved to its last argument. */
static bool read_option(struct call *call, bool is_group, size_t *i, struct stream_reading *reading)
{
    size_t left = call->argc - *i - 1;
    struct resp_slice arg = call->argv[*i];
    if (left > 0 && slice_is(arg, "block"))
        return read_block(call, call->argv[++*i], reading);
    if (left > 0 && slice_is(arg, "count"))
        return read_count(call, call->argv[++*i], reading);
    if (left > 1 && slice_is(arg, "group")) {
        reading->group = call->argv[++*i];
        reading->consumer = call->argv[++*i];
        return is_group || refuse(call, "ERR The GROUP option is only supported by XREADGROUP. You "
                                        "called XREAD instead.");
    }
    if (slice_is(arg, "noack")) {
        reading->no_ack = true;
        return is_group || refuse(call, "ERR The NOACK option is only supported by XREADGROUP. You "
                                        "called XREAD instead.");
    }
    return call_syntax_error(call);
}

bool stream_read_arguments(struct call *call, bool is_group, struct stream_reading *reading)
{
    size_t i = 1;
    *reading = (struct stream_reading){.count = 0};
    for (; i < call->argc; i++) {
        if (i + 1 < call->argc && slice_is(call->argv[i], "streams"))
            break;
        if (!read_option(call, is_group, &i, reading))
            return false;
    }
    if (i == call->argc)
        return call_syntax_error(call);
    size_t left = call->argc - i - 1;
    if (left % 2 != 0) {
        resp_errorf(call->reply,
                    "ERR Unbalanced '%s' list of streams: for each stream key an %s must be "
                    "specified.",
                    call->command->name, is_group ? "ID or '>'" : "ID, '+', or '$'");
        return false;
    }
    if (is_group && reading->group.data == NULL)
        return refuse(call, "ERR Missing GROUP option for XREADGROUP");
    reading->streams = (uint32_t)(left / 2);
    reading->ids_at = i + 1 + left / 2;
    assert(reading->streams == call->key_count);
    return true;
}

/* ---- XREAD ---- */

struct sought {
    struct stream_reading reading;
    struct stream_id *after; /* these three for each stream */
    struct stream *found;
    struct stream_entries *entries;
};

/* From which ID on one stream is read. False: the call was answered. */
static bool read_after(struct call *call, struct resp_slice arg, struct stream *stream,
                       struct stream_id *after)
{
    if (slice_is(arg, "$")) {
        *after = stream->head.last;
        return true;
    }
    if (slice_is(arg, ">"))
        return refuse(call, "ERR The > ID can be specified only when calling XREADGROUP using the "
                            "GROUP <group> <consumer> option.");
    return stream_read_id(call, arg, 0, after);
}

/* `+`: the last entry. */
static enum store_result before_last(struct stream *stream, struct stream_id *after)
{
    *after = STREAM_ID_MIN;
    enum store_result result = stream_last_entry(stream, after);
    if (result == STORE_OK && !stream_id_decrement(after))
        return STORE_DAMAGED; /* no entry has the ID 0-0 */
    return result == STORE_ABSENT ? STORE_OK : result;
}

/* Looks up all streams and IDs. STORE_ANSWERED: with an error. */
static enum store_result find_streams(struct call *call, struct sought *sought)
{
    const struct stream_id *kept = call_kept(call);
    for (uint32_t i = 0; i < sought->reading.streams; i++) {
        struct resp_slice arg = call->argv[sought->reading.ids_at + i];
        enum store_result result = stream_find(call, &call->keys[i], &sought->found[i]);
        if (result == STORE_OK)
            result = stream_load_head(&sought->found[i]);
        if (result == STORE_OK && kept == NULL && slice_is(arg, "+"))
            result = before_last(&sought->found[i], &sought->after[i]);
        else if (result == STORE_OK && kept == NULL &&
                 !read_after(call, arg, &sought->found[i], &sought->after[i]))
            return STORE_ANSWERED;
        if (result != STORE_OK)
            return result;
        if (kept != NULL)
            sought->after[i] = kept[i];
    }
    return STORE_OK;
}

/* The entries to be replied with, for which Redis looks the keys up once more; *streams: how many
 * streams have some, *total: all of them. */
static enum store_result find_entries(struct call *call, struct sought *sought, uint32_t *streams,
                                      uint64_t *total)
{
    *streams = 0;
    *total = 0;
    for (uint32_t i = 0; i < sought->reading.streams; i++) {
        struct stream_id first = sought->after[i];
        struct stream_entries *entries = &sought->entries[i];
        *entries = (struct stream_entries){.stream = &sought->found[i], .name = &call->keys[i]};
        call_count_lookup(call, entries->name, entries->stream->exists ? STORE_OK : STORE_ABSENT);
        if (!stream_id_increment(&first))
            continue;
        enum store_result result =
            stream_range(entries->stream, first, STREAM_ID_MAX, &entries->rank, &entries->count);
        if (result != STORE_OK)
            return result;
        if (sought->reading.count > 0 && (uint64_t)sought->reading.count < entries->count)
            entries->count = (uint64_t)sought->reading.count;
        *streams += entries->count > 0;
        *total += entries->count;
    }
    return STORE_OK;
}

static enum store_result reply_streams(struct call *call, const struct sought *sought,
                                       uint32_t streams, uint64_t total)
{
    struct steps steps;
    uint64_t passed = 0;
    enum store_result result = steps_begin(&steps, call, steps_are_many(total));
    if (result == STORE_OK && steps.fresh)
        stream_put_streams(&steps, streams);
    for (uint32_t i = 0; i < sought->reading.streams && result == STORE_OK; i++) {
        const struct stream_entries *entries = &sought->entries[i];
        uint64_t before = *steps.done - passed;
        if (before < entries->count)
            result = stream_put_entries(&steps, entries, before);
        passed += entries->count;
    }
    return result == STORE_OK ? steps_finish(&steps) : result;
}

static bool reserve(struct call *call, struct sought *sought)
{
    size_t count = sought->reading.streams;
    sought->after = store_alloc(call->txn, count * sizeof *sought->after);
    sought->found = store_alloc(call->txn, count * sizeof *sought->found);
    sought->entries = store_alloc(call->txn, count * sizeof *sought->entries);
    return sought->after != NULL && sought->found != NULL && sought->entries != NULL;
}

enum store_result cmd_xread(struct call *call)
{
    struct sought sought;
    uint32_t streams;
    uint64_t total;
    if (!stream_read_arguments(call, false, &sought.reading))
        return STORE_OK;
    if (!reserve(call, &sought))
        return STORE_NO_MEMORY;
    enum store_result result = find_streams(call, &sought);
    if (result == STORE_OK)
        result = find_entries(call, &sought, &streams, &total);
    if (result != STORE_OK)
        return result;
    if (streams > 0)
        return reply_streams(call, &sought, streams, total);
    resp_null_array(call->reply);
    if (!sought.reading.blocks)
        return STORE_OK;
    const struct block_wish wish = {.kept = sought.after,
                                    .kept_len = sought.reading.streams * sizeof *sought.after};
    return call_block_for_streams(call, sought.reading.streams, sought.reading.timeout_ms, &wish);
}
