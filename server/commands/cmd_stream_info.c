/*
 * XINFO.
 */
#include "server/commands/cmd_stream_reply.h"

#include "server/commands/commands.h"
#include "server/config/config.h"
#include "server/core/call.h"
#include "server/core/server.h"
#include "server/exec/long_run.h"
#include "server/types/stream_lag.h"

#define FULL_COUNT 10

/* STORE_ANSWERED: the key does not exist. */
static enum store_result find_stream(struct call *call, struct stream *stream)
{
    enum store_result result = stream_find(call, call->keys, stream);
    if (result == STORE_OK && stream->exists)
        return stream_load_head(stream);
    if (result == STORE_OK)
        resp_error(call->reply, "ERR no such key");
    return result == STORE_OK ? STORE_ANSWERED : result;
}

static void put_name(struct resp_writer *out, const char *field, struct resp_slice name)
{
    resp_bulk_string(out, field);
    resp_bulk(out, name.data, name.len);
}

static void put_number(struct resp_writer *out, const char *field, int64_t number)
{
    resp_bulk_string(out, field);
    resp_integer(out, number);
}

static void put_id(struct resp_writer *out, const char *field, struct stream_id id)
{
    resp_bulk_string(out, field);
    stream_id_reply(out, id);
}

/* A number, or null. */
static void put_known(struct resp_writer *out, const char *field, bool known, uint64_t number)
{
    resp_bulk_string(out, field);
    if (known)
        resp_integer(out, (int64_t)number);
    else
        resp_null(out);
}

/* ---- groups ---- */

static void put_progress(struct resp_writer *out, const struct stream_group *group, uint64_t lag,
                         bool known)
{
    put_id(out, "last-delivered-id", group->last);
    put_known(out, "entries-read", group->read != STREAM_READ_UNKNOWN, group->read);
    put_known(out, "lag", known, lag);
}

static enum store_result put_group(struct resp_writer *out, const struct stream_group *group)
{
    uint64_t consumers, pending, lag;
    bool known;
    enum store_result result = stream_consumer_count(group, &consumers);
    if (result == STORE_OK)
        result = stream_pending_count(group, NULL, STREAM_ID_MIN, &pending);
    if (result == STORE_OK)
        result = stream_group_lag(group, &lag, &known);
    if (result != STORE_OK)
        return result;
    resp_map(out, 6);
    put_name(out, "name", group->name);
    put_number(out, "consumers", (int64_t)consumers);
    put_number(out, "pending", (int64_t)pending);
    put_progress(out, group, lag, known);
    return STORE_OK;
}

enum store_result cmd_xinfo_groups(struct call *call)
{
    struct stream stream;
    struct stream_group group;
    uint64_t count;
    enum store_result result = find_stream(call, &stream);
    if (result == STORE_OK)
        result = stream_group_count(&stream, &count);
    if (result != STORE_OK)
        return result;
    resp_array(call->reply, count);
    for (uint64_t i = 0; i < count && result == STORE_OK; i++) {
        result = stream_group_at(&stream, i, &group);
        if (result == STORE_OK)
            result = put_group(call->reply, &group);
        if (result == STORE_OK)
            result = call_yield_at(call, i);
    }
    return result;
}

/* ---- consumers ---- */

static enum store_result put_consumer(struct call *call, const struct stream_consumer *consumer)
{
    uint64_t pending;
    int64_t idle_ms = call->now_ms - consumer->seen_ms;
    int64_t inactive_ms = call->now_ms - consumer->active_ms;
    enum store_result result =
        stream_pending_count(consumer->group, consumer, STREAM_ID_MIN, &pending);
    if (result != STORE_OK)
        return result;
    if (consumer->active_ms == STREAM_NEVER)
        inactive_ms = -1;
    else if (inactive_ms < 0)
        inactive_ms = 0;
    resp_map(call->reply, 4);
    put_name(call->reply, "name", consumer->name);
    put_number(call->reply, "pending", (int64_t)pending);
    put_number(call->reply, "idle", idle_ms < 0 ? 0 : idle_ms);
    put_number(call->reply, "inactive", inactive_ms);
    return STORE_OK;
}

enum store_result cmd_xinfo_consumers(struct call *call)
{
    struct stream stream;
    struct stream_group group;
    struct stream_consumer consumer;
    struct resp_slice name = call->argv[3];
    uint64_t count;
    bool found;
    enum store_result result = find_stream(call, &stream);
    if (result == STORE_OK)
        result = stream_group_find(&stream, name, &group, &found);
    if (result == STORE_OK && !found) {
        resp_errorf(call->reply, "NOGROUP No such consumer group '%.*s' for key name '%.*s'",
                    (int)name.len, name.data, (int)call->keys->len, call->keys->data);
        return STORE_OK;
    }
    if (result == STORE_OK)
        result = stream_consumer_count(&group, &count);
    if (result != STORE_OK)
        return result;
    resp_array(call->reply, count);
    for (uint64_t i = 0; i < count && result == STORE_OK; i++) {
        result = stream_consumer_at(&group, i, &consumer);
        if (result == STORE_OK)
            result = put_consumer(call, &consumer);
        if (result == STORE_OK)
            result = call_yield_at(call, i);
    }
    return result;
}

/* ---- XINFO STREAM ---- */

/* As many as Redis has nodes, if all are full. */
static uint64_t count_nodes(struct stream *stream)
{
    uint64_t count = stream_count(stream);
    uint64_t most =
        (uint64_t)config_number(&stream->call->server->config, CONFIG_STREAM_NODE_MAX_ENTRIES);
    return most == 0 ? count > 0 : count / most + (count % most > 0);
}

static enum store_result put_stream_head(struct stream *stream, uint32_t fields)
{
    struct resp_writer *out = stream->call->reply;
    struct stream_id first;
    uint64_t nodes = count_nodes(stream);
    enum store_result result = stream_first_entry(stream, &first);
    if (result != STORE_OK)
        return result;
    resp_map(out, fields);
    put_number(out, "length", (int64_t)stream_count(stream));
    put_number(out, "radix-tree-keys", (int64_t)nodes);
    put_number(out, "radix-tree-nodes", (int64_t)nodes + 1);
    put_id(out, "last-generated-id", stream->head.last);
    put_id(out, "max-deleted-entry-id", stream->head.max_deleted);
    put_number(out, "entries-added", (int64_t)stream->head.added);
    put_id(out, "recorded-first-entry-id", first);
    return STORE_OK;
}

static enum store_result put_end(struct stream *stream, const char *field, uint64_t rank)
{
    struct steps steps = {.call = stream->call, .out = stream->call->reply};
    struct store_cursor cursor;
    struct stream_entry entry;
    resp_bulk_string(steps.out, field);
    if (stream_count(stream) == 0) {
        resp_null(steps.out);
        return STORE_OK;
    }
    enum store_result result = store_tree_seek_rank(stream->entries, rank, &cursor);
    if (result == STORE_OK)
        result = stream_get(&cursor, &entry);
    return result == STORE_OK ? stream_put_entry(&steps, &entry) : result;
}

static enum store_result put_short(struct stream *stream)
{
    uint64_t groups;
    enum store_result result = stream_group_count(stream, &groups);
    if (result == STORE_OK)
        result = put_stream_head(stream, 10);
    if (result != STORE_OK)
        return result;
    put_number(stream->call->reply, "groups", (int64_t)groups);
    result = put_end(stream, "first-entry", 0);
    return result == STORE_OK ? put_end(stream, "last-entry", stream_count(stream) - 1) : result;
}

/* ---- XINFO STREAM FULL ---- */

/* The first pending entries, of the group or of one consumer. */
static enum store_result put_pending(const struct stream_group *group,
                                     const struct stream_consumer *consumer, uint64_t most)
{
    struct resp_writer *out = group->stream->call->reply;
    struct stream_id id = STREAM_ID_MIN;
    struct stream_pending pending;
    struct resp_slice name;
    uint64_t count;
    enum store_result result = stream_pending_count(group, consumer, id, &count);
    if (result != STORE_OK)
        return result;
    put_number(out, "pel-count", (int64_t)count);
    if (most > 0 && most < count)
        count = most;
    resp_bulk_string(out, "pending");
    resp_array(out, count);
    for (uint64_t i = 0; i < count && result == STORE_OK; i++) {
        result = stream_pending_seek(group, consumer, id, &pending);
        if (result == STORE_OK && consumer == NULL)
            result = stream_consumer_name(group, pending.consumer, &name);
        if (result != STORE_OK)
            break;
        resp_array(out, consumer == NULL ? 4 : 3);
        stream_id_reply(out, pending.id);
        if (consumer == NULL)
            resp_bulk(out, name.data, name.len);
        resp_integer(out, pending.delivered_ms);
        resp_integer(out, (int64_t)pending.count);
        id = pending.id;
        if (!stream_id_increment(&id) && i + 1 < count)
            return STORE_DAMAGED;
        result = call_yield_at(group->stream->call, i);
    }
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

static enum store_result put_full_consumers(const struct stream_group *group, uint64_t most)
{
    struct resp_writer *out = group->stream->call->reply;
    struct stream_consumer consumer;
    uint64_t count;
    enum store_result result = stream_consumer_count(group, &count);
    if (result != STORE_OK)
        return result;
    resp_bulk_string(out, "consumers");
    resp_array(out, count);
    for (uint64_t i = 0; i < count && result == STORE_OK; i++) {
        result = stream_consumer_at(group, i, &consumer);
        if (result != STORE_OK)
            break;
        resp_map(out, 5);
        put_name(out, "name", consumer.name);
        put_number(out, "seen-time", consumer.seen_ms);
        put_number(out, "active-time", consumer.active_ms);
        result = put_pending(group, &consumer, most);
    }
    return result;
}

static enum store_result put_full_group(const struct stream_group *group, uint64_t most)
{
    struct resp_writer *out = group->stream->call->reply;
    uint64_t lag;
    bool known;
    enum store_result result = stream_group_lag(group, &lag, &known);
    if (result != STORE_OK)
        return result;
    resp_map(out, 7);
    put_name(out, "name", group->name);
    put_progress(out, group, lag, known);
    result = put_pending(group, NULL, most);
    return result == STORE_OK ? put_full_consumers(group, most) : result;
}

static enum store_result put_first_entries(struct stream *stream, uint64_t most)
{
    struct steps steps = {.call = stream->call, .out = stream->call->reply};
    struct stream_entries entries = {.stream = stream, .count = stream_count(stream)};
    steps.done = &steps.done_here;
    if (most > 0 && most < entries.count)
        entries.count = most;
    resp_bulk_string(steps.out, "entries");
    if (entries.count > 0)
        return stream_put_entries(&steps, &entries, 0);
    resp_array(steps.out, 0);
    return STORE_OK;
}

static enum store_result put_full(struct stream *stream, uint64_t most)
{
    struct stream_group group;
    uint64_t count;
    enum store_result result = stream_group_count(stream, &count);
    if (result == STORE_OK)
        result = put_stream_head(stream, 9);
    if (result == STORE_OK)
        result = put_first_entries(stream, most);
    if (result != STORE_OK)
        return result;
    resp_bulk_string(stream->call->reply, "groups");
    resp_array(stream->call->reply, count);
    for (uint64_t i = 0; i < count && result == STORE_OK; i++) {
        result = stream_group_at(stream, i, &group);
        if (result == STORE_OK)
            result = put_full_group(&group, most);
    }
    return result;
}

enum store_result cmd_xinfo_stream(struct call *call)
{
    struct stream stream;
    int64_t count = FULL_COUNT;
    bool is_full = call->argc > 3;
    enum store_result result = find_stream(call, &stream);
    if (result != STORE_OK)
        return result;
    if (is_full && ((call->argc != 4 && call->argc != 6) || !slice_is(call->argv[3], "full") ||
                    (call->argc == 6 && !slice_is(call->argv[4], "count")))) {
        call_wrong_subcommand(call);
        return STORE_OK;
    }
    if (call->argc == 6 && !call_int64(call, call->argv[5], &count))
        return STORE_OK;
    if (count < 0)
        count = FULL_COUNT;
    return is_full ? put_full(&stream, (uint64_t)count) : put_short(&stream);
}

enum store_result cmd_xinfo_help(struct call *call)
{
    static const char *const lines[] = {"CONSUMERS <key> <groupname>",
                                        "    Show consumers of <groupname>.",
                                        "GROUPS <key>",
                                        "    Show the stream consumer groups.",
                                        "STREAM <key> [FULL [COUNT <count>]",
                                        "    Show information about the stream.",
                                        NULL};
    call_help(call, lines);
    return STORE_OK;
}
