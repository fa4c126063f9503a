/*
 * DUMP.
 */
#include "server/commands/commands.h"

#include "server/core/call.h"
#include "server/exec/collector.h"
#include "server/exec/keyspace.h"
#include "server/exec/request_reply.h"
#include "server/types/list.h"
#include "server/types/members.h"
#include "server/types/rdb_write.h"
#include "server/types/stream_dump.h"
#include "server/types/string_walk.h"
#include "server/types/zset_order.h"

/* Indexed by enum rdb_kind, which has the same numbers as the item types. */
_Static_assert(RDB_STRING == (int)TYPE_STRING && RDB_LIST == (int)TYPE_LIST &&
                   RDB_SET == (int)TYPE_SET && RDB_ZSET == (int)TYPE_ZSET &&
                   RDB_HASH == (int)TYPE_HASH && RDB_STREAM == (int)TYPE_STREAM,
               "one numbering");

#define LONG_STRING (1024 * 1024) /* not compressed, and sent from where it is stored */
#define LONG_PIECE (128 * 1024)   /* of a long string, read at a time */

struct dumping {
    struct collector *collector;
    enum item_type type;
    const struct members *timed; /* a hash of which fields expire; or NULL */
};

/* Does nothing after the first time. */
static void put_head(struct collector *collector, enum rdb_kind kind, uint64_t count)
{
    if (collector->at > 0 || collector->out.len > 0)
        return;
    rdb_put_head(&collector->out, kind, count);
    if (kind == RDB_STRING)
        rdb_put_length(&collector->out, count);
    rdb_add_to_checksum(&collector->checksum, &collector->out, 0);
}

static void put_timed_head(struct collector *collector, const struct members *hash)
{
    if (collector->at > 0 || collector->out.len > 0)
        return;
    rdb_put_timed_head(&collector->out, hash->wake_ms, members_shown(hash));
    rdb_add_to_checksum(&collector->checksum, &collector->out, 0);
}

static enum store_result dump_member(void *arg, struct resp_slice name, struct resp_slice value)
{
    const struct dumping *dumping = arg;
    struct resp_writer *out = &dumping->collector->out;
    size_t before = out->len;
    double score;
    if (dumping->type == TYPE_ZSET && !zset_score_parse(value, &score))
        return STORE_DAMAGED;
    if (dumping->timed != NULL)
        rdb_put_expiry(out, dumping->timed->wake_ms, dumping->timed->visited_ms);
    rdb_put_string(out, name);
    if (dumping->type == TYPE_HASH)
        rdb_put_string(out, value);
    else if (dumping->type == TYPE_ZSET)
        rdb_put_score(out, score);
    rdb_add_to_checksum(&dumping->collector->checksum, out, before);
    return out->failed ? STORE_NO_MEMORY : STORE_OK;
}

static enum store_result dump_members(struct call *call, const struct store_item *item,
                                      struct collector *collector)
{
    struct members members;
    struct zset zset;
    struct dumping dumping = {collector, item_type(item), NULL};
    enum store_result result = STORE_OK;
    if (dumping.type == TYPE_ZSET) {
        result = zset_open(call, call->keys, item, &zset);
        if (result == STORE_OK)
            members = zset_members(&zset);
    } else {
        result = members_open(call, call->keys, item, &members);
    }
    if (result != STORE_OK)
        return result;
    if (item->wake_ms != STORE_NO_EXPIRY)
        dumping.timed = &members;
    if (members_shown(&members) == 0) { /* all fields have expired */
        resp_null(call->reply);
        return STORE_ANSWERED;
    }
    if (dumping.timed != NULL)
        put_timed_head(collector, &members);
    else
        put_head(collector, (enum rdb_kind)dumping.type, members_shown(&members));
    return members_each(call, &members, collector, dumping.type != TYPE_SET, dump_member, &dumping);
}

static enum store_result dump_list(struct call *call, const struct store_item *item,
                                   struct collector *collector)
{
    struct list list;
    struct list_place place;
    struct store_item element;
    const char *bytes;
    enum store_result result = list_open(call, call->keys, item, &list);
    if (result != STORE_OK)
        return result;
    put_head(collector, RDB_LIST, list_count(&list));
    result = list_seek(&list, collector->at, &place);
    while (result == STORE_OK && collector->at < list_count(&list)) {
        result = list_get(&list, &place, &element);
        bytes = element.bytes;
        if (result == STORE_OK && element.large)
            result = string_view(call, &element, 0, element.length, &bytes);
        if (result != STORE_OK)
            break;
        size_t before = collector->out.len;
        rdb_put_string(&collector->out, (struct resp_slice){bytes, element.length});
        rdb_add_to_checksum(&collector->checksum, &collector->out, before);
        collector->at++;
        if (collector_step_is_full(collector))
            return collector_step(call, collector);
        result = list_next(&list, &place);
    }
    return result;
}

static enum store_result dump_string(struct call *call, const struct store_item *item,
                                     struct collector *collector)
{
    const char *bytes;
    if (!collector_has_room(collector, item->length))
        return STORE_NO_MEMORY;
    enum store_result result = string_view(call, item, 0, item->length, &bytes);
    if (result != STORE_OK)
        return result;
    rdb_put_head(&collector->out, RDB_STRING, 1);
    rdb_put_string(&collector->out, (struct resp_slice){bytes, item->length});
    rdb_add_to_checksum(&collector->checksum, &collector->out, 0);
    return STORE_OK;
}

/* Computes the checksum of the whole string. collector->out contains the head and has room for a
 * piece. */
static enum store_result sum_up(struct call *call, const struct store_item *item,
                                struct collector *collector)
{
    struct resp_writer *out = &collector->out;
    enum store_result result = STORE_OK;
    put_head(collector, RDB_STRING, item->length);
    while (collector->at < item->length && result == STORE_OK) {
        uint64_t left = item->length - collector->at;
        size_t len = left < LONG_PIECE ? (size_t)left : LONG_PIECE;
        char *room = resp_reserve(out, len);
        result =
            room == NULL ? STORE_NO_MEMORY : store_read(call->txn, item, collector->at, len, room);
        if (result != STORE_OK)
            return result;
        collector->checksum = rdb_checksum(collector->checksum, (struct resp_slice){room, len});
        collector->at += len;
        result = collector_step(call, collector);
    }
    return result;
}

/* Reads the string twice: first to compute the checksum, then to send the bytes, which go straight
 * from the store to the client. */
static enum store_result dump_long_string(struct call *call, const struct store_item *item,
                                          struct collector *collector)
{
    const struct resp_writer *out = &collector->out;
    char footer[RDB_FOOTER_BYTES];
    enum store_result result = sum_up(call, item, collector);
    if (result != STORE_OK)
        return result;
    resp_bulk_header(call->reply, out->len + item->length + sizeof footer);
    resp_raw(call->reply, out->data, out->len);
    result = call_reply_bytes(call, item);
    rdb_footer(collector->checksum, RDB_VERSION_WRITTEN, footer);
    resp_raw(call->reply, footer, sizeof footer);
    resp_raw(call->reply, "\r\n", 2);
    return result;
}

/* Replies with the collected payload and its footer. */
static enum store_result reply_payload(struct call *call, struct collector *collector,
                                       uint32_t version)
{
    struct resp_writer *out = &collector->out;
    if (!collector->is_over) {
        char footer[RDB_FOOTER_BYTES];
        collector->is_over = true;
        collector->count = collector->spill.bytes + out->len + sizeof footer;
        rdb_footer(collector->checksum, version, footer);
        resp_raw(out, footer, sizeof footer);
        resp_raw(out, "\r\n", 2);
    }
    resp_bulk_header(call->reply, collector->count);
    return collector_reply(call, collector);
}

enum store_result cmd_dump(struct call *call)
{
    struct store_item item;
    enum store_result result = call_find(call, call->keys, &item);
    if (result == STORE_ABSENT) {
        resp_null(call->reply);
        return STORE_OK;
    }
    struct collector *collector = result == STORE_OK ? collector_get(call) : NULL;
    if (collector == NULL)
        return result == STORE_OK ? STORE_NO_MEMORY : result;
    if (item_type(&item) == TYPE_STRING && item.length >= LONG_STRING)
        return dump_long_string(call, &item, collector);
    collector->is_tail = true;
    if (collector->is_over)
        result = STORE_OK;
    else if (item_type(&item) == TYPE_STRING)
        result = dump_string(call, &item, collector);
    else if (item_type(&item) == TYPE_LIST)
        result = dump_list(call, &item, collector);
    else if (item_type(&item) == TYPE_STREAM)
        result = stream_dump(call, &item, collector);
    else
        result = dump_members(call, &item, collector);
    bool is_timed = item.wake_ms != STORE_NO_EXPIRY;
    uint32_t version = is_timed ? RDB_VERSION_TIMED : RDB_VERSION_WRITTEN;
    return result == STORE_OK ? reply_payload(call, collector, version) : result;
}
