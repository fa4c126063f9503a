/*
 * XGROUP, XACK, and what the commands on consumer groups share.
 */
#include "server/commands/cmd_stream_group.h"

#include "server/commands/cmd_stream.h"
#include "server/commands/cmd_stream_read.h"
#include "server/commands/commands.h"
#include "server/core/call.h"
#include "server/exec/keyspace.h"
#include "server/exec/long_run.h"
#include "server/pubsub/notify.h"

/* ---- shared ---- */

void stream_only_takes(struct call *call)
{
    if (call->outer == NULL)
        store_set_cause(call->txn, STORE_BY_TAKER);
}

/* XACK, XCLAIM and XAUTOCLAIM write, but Redis counts their look-ups as those of readers. */
static void count_lookup(const struct stream *stream, enum store_result result)
{
    struct call *call = stream->call;
    bool is_there = stream->exists || result == STORE_ANSWERED; /* of another type */
    bool is_done = result == STORE_OK || result == STORE_ANSWERED;
    if (is_done && (call->command->flags & CMD_WRITE) != 0)
        call_count_lookup(call, stream->key, is_there ? STORE_OK : STORE_ABSENT);
}

enum store_result stream_find_group(struct call *call, struct stream *stream,
                                    struct resp_slice name, struct stream_group *group)
{
    bool found = false;
    enum store_result result = stream_find(call, call->keys, stream);
    count_lookup(stream, result);
    if (result == STORE_OK)
        result = stream_group_find(stream, name, group, &found);
    if (result != STORE_OK || found)
        return result;
    resp_errorf(call->reply, "NOGROUP No such key '%.*s' or consumer group '%.*s'",
                (int)call->keys->len, call->keys->data, (int)name.len, name.data);
    return STORE_ANSWERED;
}

static enum store_result create_consumer(const struct stream_group *group, struct resp_slice name,
                                         struct stream_consumer *consumer)
{
    struct call *call = group->stream->call;
    consumer->seen_ms = call->now_ms;
    consumer->active_ms = STREAM_NEVER;
    call_notify(call, NOTIFY_STREAM, "xgroup-createconsumer", group->stream->key);
    return stream_consumer_create(group, name, consumer);
}

enum store_result stream_see_consumer(const struct stream_group *group, struct resp_slice name,
                                      struct stream_consumer *consumer)
{
    bool found;
    enum store_result result = stream_group_purge(group->stream);
    if (result == STORE_OK)
        result = stream_consumer_find(group, name, consumer, &found);
    if (result == STORE_OK && !found)
        return create_consumer(group, name, consumer);
    if (result != STORE_OK || consumer->seen_ms == group->stream->call->now_ms)
        return result;
    consumer->seen_ms = group->stream->call->now_ms;
    return stream_consumer_save(consumer);
}

/* ---- XGROUP ---- */

struct group_options {
    bool makes_stream;
    uint64_t read; /* or STREAM_READ_UNKNOWN */
};

static bool read_entries_read(struct call *call, struct resp_slice arg, uint64_t *read)
{
    int64_t number;
    if (!call_int64(call, arg, &number))
        return false;
    *read = number == -1 ? STREAM_READ_UNKNOWN : (uint64_t)number;
    if (number >= -1)
        return true;
    resp_error(call->reply, "ERR value for ENTRIESREAD must be positive or -1");
    return false;
}

static bool read_options(struct call *call, bool may_make, struct group_options *options)
{
    *options = (struct group_options){.read = STREAM_READ_UNKNOWN};
    for (size_t i = 5; i < call->argc; i++) {
        if (may_make && slice_is(call->argv[i], "mkstream")) {
            options->makes_stream = true;
        } else if (slice_is(call->argv[i], "entriesread") && i + 1 < call->argc) {
            if (!read_entries_read(call, call->argv[++i], &options->read))
                return false;
        } else {
            return call_wrong_subcommand(call);
        }
    }
    return call->argc <= (may_make ? 8 : 7) || call_wrong_subcommand(call);
}

/* STORE_ANSWERED: the stream does not exist. */
static enum store_result find_stream(struct call *call, bool may_be_absent, struct stream *stream)
{
    enum store_result result = stream_find(call, call->keys, stream);
    if (result != STORE_OK || stream->exists || may_be_absent)
        return result;
    resp_error(call->reply, "ERR The XGROUP subcommand requires the key to exist. Note that for "
                            "CREATE you may want to use the MKSTREAM option to create an empty "
                            "stream automatically.");
    return STORE_ANSWERED;
}

/* STORE_ANSWERED: the stream or the group does not exist. */
static enum store_result find_existing(struct call *call, struct stream *stream,
                                       struct stream_group *group)
{
    bool found = false;
    struct resp_slice name = call->argv[3];
    enum store_result result = find_stream(call, false, stream);
    if (result == STORE_OK)
        result = stream_group_find(stream, name, group, &found);
    if (result != STORE_OK || found)
        return result;
    resp_errorf(call->reply, "NOGROUP No such consumer group '%.*s' for key name '%.*s'",
                (int)name.len, name.data, (int)call->keys->len, call->keys->data);
    return STORE_ANSWERED;
}

/* The ID behind which a group begins to read. XGROUP SETID accepts `-` and `+`, as in Redis. */
static bool read_start(struct call *call, const struct stream *stream, bool accepts_ends,
                       struct stream_id *id)
{
    struct resp_slice arg = call->argv[4];
    if (slice_is(arg, "$")) {
        *id = stream->head.last;
        return true;
    }
    if (accepts_ends && (slice_is(arg, "-") || slice_is(arg, "+")))
        return stream_read_bound(call, arg, false, id);
    return stream_read_id(call, arg, 0, id);
}

static enum store_result create_group(struct stream *stream, struct stream_group *group)
{
    struct call *call = stream->call;
    enum store_result result = STORE_OK;
    if (!stream->exists) {
        call_notify(call, NOTIFY_NEW, "new", stream->key);
        result = stream_create(stream);
    } else {
        result = stream_group_purge(stream);
    }
    if (result == STORE_OK)
        result = stream_group_create(stream, call->argv[3], group);
    if (result != STORE_OK)
        return result;
    resp_ok(call->reply);
    call_notify(call, NOTIFY_STREAM, "xgroup-create", stream->key);
    return STORE_OK;
}

enum store_result cmd_xgroup_create(struct call *call)
{
    struct group_options options;
    struct stream stream;
    struct stream_group group;
    struct stream_id last;
    bool found;
    if (!read_options(call, true, &options))
        return STORE_OK;
    enum store_result result = find_stream(call, options.makes_stream, &stream);
    if (result == STORE_OK)
        result = stream_load_head(&stream);
    if (result != STORE_OK)
        return result;
    if (!read_start(call, &stream, false, &last))
        return STORE_OK;
    result = stream_group_find(&stream, call->argv[3], &group, &found);
    if (result == STORE_OK && found) {
        resp_error(call->reply, "BUSYGROUP Consumer Group name already exists");
        return STORE_OK;
    }
    if (result != STORE_OK)
        return result;
    stream_only_takes(call);
    group = (struct stream_group){.last = last, .read = options.read};
    return create_group(&stream, &group);
}

enum store_result cmd_xgroup_setid(struct call *call)
{
    struct group_options options;
    struct stream stream;
    struct stream_group group;
    if (!read_options(call, false, &options))
        return STORE_OK;
    enum store_result result = find_existing(call, &stream, &group);
    if (result == STORE_OK)
        result = stream_load_head(&stream);
    if (result != STORE_OK)
        return result;
    if (!read_start(call, &stream, true, &group.last))
        return STORE_OK;
    group.read = options.read;
    stream_only_takes(call); /* as in Redis, consumers wait for the next entry */
    resp_ok(call->reply);
    call_notify(call, NOTIFY_STREAM, "xgroup-setid", stream.key);
    return stream_group_save(&group);
}

enum store_result cmd_xgroup_destroy(struct call *call)
{
    struct stream stream;
    struct stream_group group;
    bool found = false;
    enum store_result result = find_stream(call, false, &stream);
    if (result == STORE_OK)
        result = stream_group_find(&stream, call->argv[3], &group, &found);
    if (result == STORE_OK && found)
        result = stream_group_destroy(&group);
    if (result != STORE_OK)
        return result;
    resp_integer(call->reply, found);
    if (found)
        call_notify(call, NOTIFY_STREAM, "xgroup-destroy", stream.key);
    return STORE_OK;
}

enum store_result cmd_xgroup_createconsumer(struct call *call)
{
    struct stream stream;
    struct stream_group group;
    struct stream_consumer consumer;
    bool found;
    enum store_result result = find_existing(call, &stream, &group);
    if (result == STORE_OK)
        result = stream_consumer_find(&group, call->argv[4], &consumer, &found);
    if (result != STORE_OK)
        return result;
    stream_only_takes(call);
    resp_integer(call->reply, !found);
    return found ? STORE_OK : create_consumer(&group, call->argv[4], &consumer);
}

enum store_result cmd_xgroup_delconsumer(struct call *call)
{
    struct stream stream;
    struct stream_group group;
    struct stream_consumer consumer;
    uint64_t pending = 0;
    bool found;
    enum store_result result = find_existing(call, &stream, &group);
    if (result == STORE_OK)
        result = stream_consumer_find(&group, call->argv[4], &consumer, &found);
    if (result == STORE_OK && found)
        result = stream_consumer_remove(&consumer, &pending);
    if (result != STORE_OK)
        return result;
    stream_only_takes(call);
    resp_integer(call->reply, (int64_t)pending);
    if (found)
        call_notify(call, NOTIFY_STREAM, "xgroup-delconsumer", stream.key);
    return STORE_OK;
}

enum store_result cmd_xgroup_help(struct call *call)
{
    static const char *const lines[] = {
        "CREATE <key> <groupname> <id|$> [option]",
        "    Create a new consumer group. Options are:",
        "    * MKSTREAM",
        "      Create the empty stream if it does not exist.",
        "    * ENTRIESREAD entries_read",
        "      Set the group's entries_read counter (internal use).",
        "CREATECONSUMER <key> <groupname> <consumer>",
        "    Create a new consumer in the specified group.",
        "DELCONSUMER <key> <groupname> <consumer>",
        "    Remove the specified consumer.",
        "DESTROY <key> <groupname>",
        "    Remove the specified group.",
        "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
        "    Set the current group ID and entries_read counter.",
        NULL};
    call_help(call, lines);
    return STORE_OK;
}

/* ---- XACK ---- */

enum store_result cmd_xack(struct call *call)
{
    struct stream stream;
    struct stream_group group;
    struct stream_pending pending;
    struct stream_id id;
    bool found = false;
    int64_t count = 0;
    enum store_result result = stream_find(call, call->keys, &stream);
    count_lookup(&stream, result);
    if (result == STORE_OK)
        result = stream_group_find(&stream, call->argv[2], &group, &found);
    if (result != STORE_OK)
        return result;
    for (size_t i = 3; found && i < call->argc; i++)
        if (!stream_read_id(call, call->argv[i], 0, &id))
            return STORE_OK;
    bool has_group = found;
    for (size_t i = 3; has_group && i < call->argc; i++) {
        if (stream_id_parse(call->argv[i], 0, &id) != STREAM_ID_WHOLE)
            continue;
        result = stream_pending_get(&group, id, &pending, &found);
        if (result == STORE_OK && found)
            result = stream_pending_remove(&group, &pending);
        if (result == STORE_OK)
            result = call_yield_at(call, i);
        if (result != STORE_OK)
            return result;
        count += found;
    }
    stream_only_takes(call);
    resp_integer(call->reply, count);
    return STORE_OK;
}
