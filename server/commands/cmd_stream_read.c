/*
 * Reading streams: XRANGE, XREVRANGE, XREAD.
 */
#include "server/commands/cmd_stream.h"

#include <assert.h>

#include "server/commands/commands.h"
#include "server/core/call.h"
#include "server/exec/blocked.h"
#include "server/exec/keyspace.h"
#include "server/exec/steps.h"

/* ---- replies ---- */

/* Entries of a stream that are replied with; `name`: the first is preceded by the stream's name. */
struct entries {
    struct stream *stream;
    uint64_t rank, count; /* of the first one */
    bool backwards;
    const struct store_key *name;
};

static void put_head(struct resp_writer *out, const struct entries *entries)
{
    if (entries->name != NULL && out->version < 3)
        resp_array(out, 2);
    if (entries->name != NULL)
        resp_bulk(out, entries->name->data, entries->name->len);
    resp_array(out, entries->count);
}

static enum store_result put_entry(struct steps *steps, const struct stream_entry *entry)
{
    struct resp_writer *out = steps->out;
    struct stream_fields fields;
    uint64_t count;
    if (steps->collector != NULL && !collector_has_room(steps->collector, entry->fields.length))
        return STORE_NO_MEMORY;
    enum store_result result = stream_fields_read(steps->call, &entry->fields, &fields);
    if (result != STORE_OK)
        return result;
    if (!stream_fields_count(fields, &count))
        return STORE_DAMAGED;
    resp_array(out, 2);
    stream_id_reply(out, entry->id);
    resp_array(out, count);
    for (uint64_t i = 0; i < count; i++) {
        struct resp_slice slice = stream_fields_next(&fields);
        resp_bulk(out, slice.data, slice.len);
    }
    return out->failed ? STORE_NO_MEMORY : STORE_OK;
}

/* Writes the entries, of which `before` are in the output already. */
static enum store_result reply_entries(struct steps *steps, const struct entries *entries,
                                       uint64_t before)
{
    struct store_cursor cursor;
    struct stream_entry entry;
    enum store_result result = store_tree_seek_rank(
        entries->stream->entries,
        entries->backwards ? entries->rank - before : entries->rank + before, &cursor);
    for (uint64_t i = before; i < entries->count && result == STORE_OK; i++) {
        size_t start = steps->out->len;
        result = stream_get(&cursor, &entry);
        if (result == STORE_OK && i == 0)
            put_head(steps->out, entries);
        if (result == STORE_OK)
            result = put_entry(steps, &entry);
        if (result != STORE_OK) {
            resp_truncate(steps->out, start); /* the entry is repeated */
            return result;
        }
        result = steps_count(steps);
        if (result == STORE_OK && i + 1 < entries->count)
            result = entries->backwards ? store_tree_prev(&cursor) : store_tree_next(&cursor);
    }
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

/* ---- XRANGE, XREVRANGE ---- */

struct interval {
    struct stream_id first, last;
    int64_t count; /* -1: all */
};

/* A bound, without its `(` if it has one. "-" and "+" are the ends, unless it is exclusive. */
static bool read_bound(struct call *call, struct resp_slice arg, bool is_last, struct stream_id *id)
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
    if (!read_bound(call, call->argv[2 + backwards], false, &interval->first) ||
        !read_bound(call, call->argv[3 - backwards], true, &interval->last))
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
    struct entries entries = {.stream = &stream, .backwards = backwards};
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
        result = reply_entries(&steps, &entries, *steps.done);
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

/* ---- XREAD ---- */

struct reading {
    bool blocks;
    int64_t timeout_ms;
    int64_t count; /* 0: all */
    uint32_t streams;
    size_t ids_at; /* in the arguments */
    struct stream_id *after;
    struct stream *found;
    struct entries *entries;
};

static bool refuse(struct call *call, const char *error)
{
    resp_error(call->reply, error);
    return false;
}

static bool refuse_in_script(struct call *call)
{
    resp_errorf(call->reply, "ERR %.*s command is not allowed with BLOCK option from scripts",
                (int)call->argv[0].len, call->argv[0].data);
    return false;
}

/* Reads one option; *i is moved to its last argument. */
static bool read_option(struct call *call, size_t *i, struct reading *reading)
{
    bool has_more = *i + 1 < call->argc;
    struct resp_slice arg = call->argv[*i];
    if (has_more && slice_is(arg, "block")) {
        reading->blocks = true;
        if (call->outer != NULL && call->outer->command->role != ROLE_EXEC)
            return refuse_in_script(call);
        return call_milliseconds(call, call->argv[++*i], &reading->timeout_ms);
    }
    if (has_more && slice_is(arg, "count")) {
        if (!call_int64(call, call->argv[++*i], &reading->count))
            return false;
        if (reading->count < 0)
            reading->count = 0;
        return true;
    }
    if (call->argc - *i > 2 && slice_is(arg, "group"))
        return refuse(call, "ERR The GROUP option is only supported by XREADGROUP. You called "
                            "XREAD instead.");
    if (slice_is(arg, "noack"))
        return refuse(call, "ERR The NOACK option is only supported by XREADGROUP. You called "
                            "XREAD instead.");
    return call_syntax_error(call);
}

static bool read_options(struct call *call, struct reading *reading)
{
    size_t i = 1;
    for (; i < call->argc; i++) {
        if (i + 1 < call->argc && slice_is(call->argv[i], "streams"))
            break;
        if (!read_option(call, &i, reading))
            return false;
    }
    if (i == call->argc)
        return call_syntax_error(call);
    size_t left = call->argc - i - 1;
    if (left % 2 != 0)
        return refuse(call, "ERR Unbalanced 'xread' list of streams: for each stream key an ID, "
                            "'+', or '$' must be specified.");
    reading->streams = (uint32_t)(left / 2);
    reading->ids_at = i + 1 + left / 2;
    assert(reading->streams == call->key_count);
    return true;
}

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
static enum store_result find_streams(struct call *call, struct reading *reading)
{
    const struct stream_id *kept = call_kept(call);
    for (uint32_t i = 0; i < reading->streams; i++) {
        struct resp_slice arg = call->argv[reading->ids_at + i];
        enum store_result result = stream_find(call, &call->keys[i], &reading->found[i]);
        if (result == STORE_OK)
            result = stream_load_head(&reading->found[i]);
        if (result == STORE_OK && kept == NULL && slice_is(arg, "+"))
            result = before_last(&reading->found[i], &reading->after[i]);
        else if (result == STORE_OK && kept == NULL &&
                 !read_after(call, arg, &reading->found[i], &reading->after[i]))
            return STORE_ANSWERED;
        if (result != STORE_OK)
            return result;
        if (kept != NULL)
            reading->after[i] = kept[i];
    }
    return STORE_OK;
}

/* The entries to be replied with, for which Redis looks the keys up once more; *streams: how many
 * streams have some, *total: all of them. */
static enum store_result find_entries(struct call *call, struct reading *reading, uint32_t *streams,
                                      uint64_t *total)
{
    *streams = 0;
    *total = 0;
    for (uint32_t i = 0; i < reading->streams; i++) {
        struct stream_id first = reading->after[i];
        struct entries *entries = &reading->entries[i];
        *entries = (struct entries){.stream = &reading->found[i], .name = &call->keys[i]};
        call_count_lookup(call, entries->name, entries->stream->exists ? STORE_OK : STORE_ABSENT);
        if (!stream_id_increment(&first))
            continue;
        enum store_result result =
            stream_range(entries->stream, first, STREAM_ID_MAX, &entries->rank, &entries->count);
        if (result != STORE_OK)
            return result;
        if (reading->count > 0 && (uint64_t)reading->count < entries->count)
            entries->count = (uint64_t)reading->count;
        *streams += entries->count > 0;
        *total += entries->count;
    }
    return STORE_OK;
}

static enum store_result reply_streams(struct call *call, const struct reading *reading,
                                       uint32_t streams, uint64_t total)
{
    struct steps steps;
    uint64_t passed = 0;
    enum store_result result = steps_begin(&steps, call, steps_are_many(total));
    if (result == STORE_OK && steps.fresh && call->reply->version < 3)
        resp_array(steps.out, streams);
    else if (result == STORE_OK && steps.fresh)
        resp_map(steps.out, streams);
    for (uint32_t i = 0; i < reading->streams && result == STORE_OK; i++) {
        const struct entries *entries = &reading->entries[i];
        uint64_t before = *steps.done - passed;
        if (before < entries->count)
            result = reply_entries(&steps, entries, before);
        passed += entries->count;
    }
    return result == STORE_OK ? steps_finish(&steps) : result;
}

static bool reserve(struct call *call, struct reading *reading)
{
    size_t count = reading->streams;
    reading->after = store_alloc(call->txn, count * sizeof *reading->after);
    reading->found = store_alloc(call->txn, count * sizeof *reading->found);
    reading->entries = store_alloc(call->txn, count * sizeof *reading->entries);
    return reading->after != NULL && reading->found != NULL && reading->entries != NULL;
}

enum store_result cmd_xread(struct call *call)
{
    struct reading reading = {.count = 0};
    uint32_t streams;
    uint64_t total;
    if (!read_options(call, &reading))
        return STORE_OK;
    if (!reserve(call, &reading))
        return STORE_NO_MEMORY;
    enum store_result result = find_streams(call, &reading);
    if (result == STORE_OK)
        result = find_entries(call, &reading, &streams, &total);
    if (result != STORE_OK)
        return result;
    if (streams > 0)
        return reply_streams(call, &reading, streams, total);
    resp_null_array(call->reply);
    if (!reading.blocks)
        return STORE_OK;
    return call_block_keeping(call, reading.streams, TYPE_STREAM, reading.timeout_ms, reading.after,
                              reading.streams * sizeof *reading.after);
}
