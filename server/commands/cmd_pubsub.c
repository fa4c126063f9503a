/*
 * Publish and subscribe, and MONITOR. A message is an effect of PUBLISH and is sent when its run
 * commits. Subscribing changes the session at once, so it is done outside of transactions
 * (CMD_LOCAL).
 */
#include "server/commands/commands.h"

#include <stdlib.h>
#include <string.h>

#include "server/net/conn.h"
#include "server/pubsub/effects.h"
#include "server/base/glob.h"
#include "server/pubsub/pubsub.h"
#include "server/core/server.h"
#include "server/core/session.h"

/* ---- subscribing ---- */

/* Channels and patterns are counted together, as in Redis. */
static int64_t subscription_count(const struct call *call, enum pubsub_kind kind)
{
    const uint32_t *count = call->session->pubsub.count;
    return kind == PUBSUB_SHARD ? count[PUBSUB_SHARD]
                                : (int64_t)count[PUBSUB_CHANNEL] + count[PUBSUB_PATTERN];
}

static enum store_result subscribe(struct call *call, enum pubsub_kind kind, const char *word)
{
    for (size_t i = 1; i < call->argc; i++) {
        if (!pubsub_subscribe(call->session->conn, kind, call->argv[i]))
            return STORE_NO_MEMORY;
        resp_push(call->reply, 3);
        resp_bulk_string(call->reply, word);
        resp_bulk(call->reply, call->argv[i].data, call->argv[i].len);
        resp_integer(call->reply, subscription_count(call, kind));
    }
    return STORE_OK;
}

static void leave_one(struct call *call, enum pubsub_kind kind, const char *word,
                      struct resp_slice name)
{
    resp_push(call->reply, 3);
    resp_bulk_string(call->reply, word);
    resp_bulk(call->reply, name.data, name.len);
    pubsub_unsubscribe(call->session->conn, kind, name);
    resp_integer(call->reply, subscription_count(call, kind));
}

static enum store_result unsubscribe(struct call *call, enum pubsub_kind kind, const char *word)
{
    struct resp_slice name;
    for (size_t i = 1; i < call->argc; i++)
        leave_one(call, kind, word, call->argv[i]);
    if (call->argc > 1)
        return STORE_OK;
    if (call->session->pubsub.count[kind] == 0) {
        resp_push(call->reply, 3);
        resp_bulk_string(call->reply, word);
        resp_null(call->reply);
        resp_integer(call->reply, subscription_count(call, kind));
    }
    while (pubsub_any(call->session->conn, kind, &name))
        leave_one(call, kind, word, name);
    return STORE_OK;
}

enum store_result cmd_subscribe(struct call *call)
{
    return subscribe(call, PUBSUB_CHANNEL, "subscribe");
}

enum store_result cmd_psubscribe(struct call *call)
{
    return subscribe(call, PUBSUB_PATTERN, "psubscribe");
}

enum store_result cmd_ssubscribe(struct call *call)
{
    return subscribe(call, PUBSUB_SHARD, "ssubscribe");
}

enum store_result cmd_unsubscribe(struct call *call)
{
    return unsubscribe(call, PUBSUB_CHANNEL, "unsubscribe");
}

enum store_result cmd_punsubscribe(struct call *call)
{
    return unsubscribe(call, PUBSUB_PATTERN, "punsubscribe");
}

enum store_result cmd_sunsubscribe(struct call *call)
{
    return unsubscribe(call, PUBSUB_SHARD, "sunsubscribe");
}

enum store_result cmd_monitor(struct call *call)
{
    if (!pubsub_subscribe(call->session->conn, PUBSUB_MONITOR, (struct resp_slice){"", 0}))
        return STORE_NO_MEMORY;
    resp_ok(call->reply);
    return STORE_OK;
}

/* ---- publishing ---- */

static enum store_result publish(struct call *call, enum pubsub_kind kind)
{
    struct resp_slice channel = call->argv[1];
    uint64_t receivers = pubsub_receivers(call->server->pubsub, kind, channel);
    if (receivers > 0) {
        struct publication *message = publication_new(call->server, kind, channel, call->argv[2]);
        if (message == NULL)
            return STORE_NO_MEMORY;
        effects_add(call->effects, message);
    }
    resp_integer(call->reply, (int64_t)receivers);
    return STORE_OK;
}

enum store_result cmd_publish(struct call *call)
{
    return publish(call, PUBSUB_CHANNEL);
}

enum store_result cmd_spublish(struct call *call)
{
    return publish(call, PUBSUB_SHARD);
}

/* ---- PUBSUB ---- */

struct listing {
    const struct resp_slice *pattern; /* NULL: all */
    struct resp_writer names;
    uint64_t count;
};

static void list_name(void *arg, struct resp_slice name)
{
    struct listing *listing = arg;
    const struct resp_slice *pattern = listing->pattern;
    if (pattern != NULL && !glob_match(pattern->data, pattern->len, name.data, name.len, false))
        return;
    resp_bulk(&listing->names, name.data, name.len);
    listing->count++;
}

static enum store_result list_channels(struct call *call, enum pubsub_kind kind)
{
    struct listing listing = {.pattern = call->argc == 3 ? &call->argv[2] : NULL};
    if (call->argc > 3) {
        call_wrong_subcommand(call);
        return STORE_OK;
    }
    resp_writer_init(&listing.names, call->reply->version);
    pubsub_each(call->server->pubsub, kind, list_name, &listing);
    resp_array(call->reply, listing.count);
    resp_raw(call->reply, listing.names.data, listing.names.len);
    bool is_whole = !listing.names.failed;
    resp_writer_free(&listing.names);
    return is_whole ? STORE_OK : STORE_NO_MEMORY;
}

static enum store_result count_subscribers(struct call *call, enum pubsub_kind kind)
{
    resp_array(call->reply, 2 * (call->argc - 2));
    for (size_t i = 2; i < call->argc; i++) {
        uint64_t count = pubsub_subscribers(call->server->pubsub, kind, call->argv[i]);
        resp_bulk(call->reply, call->argv[i].data, call->argv[i].len);
        resp_integer(call->reply, (int64_t)count);
    }
    return STORE_OK;
}

enum store_result cmd_pubsub_channels(struct call *call)
{
    return list_channels(call, PUBSUB_CHANNEL);
}

enum store_result cmd_pubsub_shardchannels(struct call *call)
{
    return list_channels(call, PUBSUB_SHARD);
}

enum store_result cmd_pubsub_numsub(struct call *call)
{
    return count_subscribers(call, PUBSUB_CHANNEL);
}

enum store_result cmd_pubsub_shardnumsub(struct call *call)
{
    return count_subscribers(call, PUBSUB_SHARD);
}

enum store_result cmd_pubsub_numpat(struct call *call)
{
    resp_integer(call->reply, (int64_t)pubsub_topics(call->server->pubsub, PUBSUB_PATTERN));
    return STORE_OK;
}

enum store_result cmd_pubsub_help(struct call *call)
{
    static const char *const lines[] = {
        "CHANNELS [<pattern>]",
        "    List the channels that have subscribers (and match the pattern).",
        "NUMPAT",
        "    Count the patterns that are subscribed to.",
        "NUMSUB [<channel> ...]",
        "    Count the subscribers of channels, those by patterns left out.",
        "SHARDCHANNELS [<pattern>]",
        "    List the shard channels that have subscribers (and match the pattern).",
        "SHARDNUMSUB [<shardchannel> ...]",
        "    Count the subscribers of shard channels.",
        NULL,
    };
    call_help(call, lines);
    return STORE_OK;
}
