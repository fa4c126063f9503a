/*
 * RESTORE: the payload is read whole, and checked, before anything is written.
 */
#include "server/commands/commands.h"

#include <assert.h>
#include <stdlib.h>

#include "server/core/call.h"
#include "server/core/collected.h"
#include "server/exec/keyspace.h"
#include "server/exec/long_run.h"
#include "server/pubsub/notify.h"
#include "server/types/bulk_store.h"
#include "server/types/hash.h"
#include "server/types/members_expiry.h"
#include "server/types/list.h"
#include "server/types/rdb_read.h"
#include "server/types/rdb_write.h"
#include "server/types/set.h"
#include "server/types/stream_restore.h"
#include "server/types/zset_order.h"

#define SUMMED_AT_ONCE (64 * 1024)
#define LONG_PAYLOAD (64 * 1024) /* the result may be too large for one run */

/* Kept over the runs of a call: the contents of a long payload, which is parsed once, and the part
 * of the value built so far. */
struct restoring {
    struct chunk *chunks; /* memory that `value` points into */
    uint64_t bytes;
    struct collected collected;
    bool is_read;
    bool is_checked; /* no duplicate members */
    struct rdb_value value;
    struct bulk_store bulk_store;
    struct stream_restore stream_restore;
};

struct chunk {
    struct chunk *next;
    _Alignas(16) char bytes[];
};

#define NEW_FREQUENCY 5 /* of a key without given access data, as of any new key */

struct restore {
    bool replaces, is_absolute;
    int64_t ttl;
    bool is_idle, is_frequent; /* IDLETIME or FREQ was given: see `use` */
    struct store_access use;
};

static bool number_option(struct call *call, size_t at, int64_t most, const char *error,
                          int64_t *number)
{
    if (!call_int64(call, call->argv[at], number))
        return false;
    if (*number >= 0 && *number <= most)
        return true;
    resp_error(call->reply, error);
    return false;
}

static bool use_option(struct call *call, size_t at, struct restore *restore)
{
    int64_t number;
    if (slice_is(call->argv[at - 1], "freq")) {
        restore->is_frequent = true;
        if (!number_option(call, at, 255, "ERR Invalid FREQ value, must be >= 0 and <= 255",
                           &number))
            return false;
        restore->use.frequency = (uint32_t)number;
        return true;
    }
    restore->is_idle = true;
    if (!number_option(call, at, INT64_MAX, "ERR Invalid IDLETIME value, must be >= 0", &number))
        return false;
    restore->use.idle_ms = number > INT64_MAX / 1000 ? INT64_MAX : number * 1000;
    return true;
}

static bool restore_options(struct call *call, struct restore *restore)
{
    for (size_t i = 4; i < call->argc; i++) {
        bool has_more = i + 1 < call->argc;
        if (slice_is(call->argv[i], "replace")) {
            restore->replaces = true;
        } else if (slice_is(call->argv[i], "absttl")) {
            restore->is_absolute = true;
        } else if (has_more && ((slice_is(call->argv[i], "idletime") && !restore->is_frequent) ||
                                (slice_is(call->argv[i], "freq") && !restore->is_idle))) {
            if (!use_option(call, ++i, restore))
                return false;
        } else {
            return call_syntax_error(call);
        }
    }
    return true;
}

/* Merges the sorted ranges names[begin, middle) and names[middle, end) into `to`. */
static enum store_result merge(struct call *call, const struct resp_slice *names, size_t begin,
                               size_t middle, size_t end, struct resp_slice *to)
{
    size_t left = begin, right = middle;
    enum store_result result = STORE_OK;
    assert(begin <= middle && middle <= end);
    for (size_t at = begin; at < end && result == STORE_OK; at++) {
        bool is_left =
            right == end || (left < middle && zset_compare_members(names[left], names[right]) <= 0);
        to[at] = names[is_left ? left++ : right++];
        result = call_yield_at(call, at);
    }
    assert(result != STORE_OK || (left == middle && right == end));
    return result;
}

/* Merge sort in steps, between which other requests run. `spare` has the same size as the names.
 * *sorted is set to the one of the two that holds the result. */
static enum store_result sort_names(struct call *call, struct resp_slice *names,
                                    struct resp_slice *spare, size_t count,
                                    struct resp_slice **sorted)
{
    enum store_result result = STORE_OK;
    *sorted = names;
    for (size_t width = 1; width < count && result == STORE_OK; width *= 2) {
        struct resp_slice *to = *sorted == names ? spare : names;
        for (size_t at = 0; at < count && result == STORE_OK; at += 2 * width) {
            size_t left = count - at;
            result = merge(call, *sorted, at, at + (left < width ? left : width),
                           at + (left < 2 * width ? left : 2 * width), to);
        }
        *sorted = to;
    }
    return result;
}

/* Whether a member occurs twice. This must be known before anything is written. */
static enum store_result find_twins(struct call *call, const struct rdb_value *value, bool *found)
{
    size_t width = value->kind == RDB_HASH ? 2 : 1, count = value->count / width;
    struct resp_slice *names = store_alloc(call->txn, 2 * count * sizeof *names), *sorted;
    *found = false;
    assert(value->count % width == 0); /* rdb_read_value has refused other hashes */
    if (names == NULL)
        return STORE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        names[i] = value->slices[i * width];
    enum store_result result = sort_names(call, names, names + count, count, &sorted);
    for (size_t i = 1; i < count && !*found && result == STORE_OK; i++) {
        *found = zset_compare_members(sorted[i - 1], sorted[i]) == 0;
        result = call_yield_at(call, i);
    }
    return result;
}

static void drop_chunks(struct restoring *restoring)
{
    while (restoring->chunks != NULL) {
        struct chunk *next = restoring->chunks->next;
        free(restoring->chunks);
        restoring->chunks = next;
    }
    restoring->bytes = 0;
    collected_set(&restoring->collected, 0);
}

static void restoring_free(void *progress)
{
    struct restoring *restoring = progress;
    drop_chunks(restoring);
    bulk_store_free(&restoring->bulk_store);
    stream_restore_free(&restoring->stream_restore);
    free(restoring);
}

/* Entries of a stream may share the names of their fields: it may be large in any case. */
static bool may_be_large(struct resp_slice payload)
{
    return payload.len >= LONG_PAYLOAD || rdb_is_stream(payload);
}

/* The call's state. True with NULL: none is needed, because everything is done in one run. Inside
 * other commands the arguments may be at other addresses in the next run. */
static bool restoring_get(struct call *call, struct restoring **restoring)
{
    *restoring = call->progress;
    if (*restoring != NULL || call->outer != NULL || !may_be_large(call->argv[3]))
        return true;
    *restoring = calloc(1, sizeof **restoring);
    if (*restoring == NULL)
        return false;
    (*restoring)->collected.server = call->server;
    call->progress = *restoring;
    call->progress_free = restoring_free;
    return true;
}

/* The caller of rdb_read_value. */
struct parsing {
    struct call *call;
    struct restoring *restoring; /* or NULL */
    enum store_result yielded;
};

static void *alloc(void *arg, size_t size)
{
    struct parsing *parsing = arg;
    return store_alloc(parsing->call->txn, size);
}

static void *alloc_lasting(void *arg, size_t size)
{
    struct parsing *parsing = arg;
    struct restoring *restoring = parsing->restoring;
    struct chunk *chunk = NULL;
    if (collected_set(&restoring->collected, restoring->bytes + size))
        chunk = malloc(sizeof *chunk + size);
    if (chunk == NULL)
        return NULL;
    restoring->bytes += size;
    chunk->next = restoring->chunks;
    restoring->chunks = chunk;
    return chunk->bytes;
}

/* The checksum is computed in pieces, between which other requests run. */
static enum store_result check_footer(struct call *call, struct resp_slice payload)
{
    enum store_result result = STORE_OK;
    uint64_t sum = 0;
    bool is_good = rdb_version_is_good(payload);
    bool is_believed = atomic_load_explicit(&call->server->skips_checksums, memory_order_relaxed);
    size_t end = !is_good || is_believed ? 0 : payload.len - 8;
    for (size_t at = 0; at < end && result == STORE_OK; at += SUMMED_AT_ONCE) {
        size_t left = end - at, len = left < SUMMED_AT_ONCE ? left : SUMMED_AT_ONCE;
        sum = rdb_checksum(sum, (struct resp_slice){payload.data + at, len});
        result = call_yield(call);
    }
    if (result != STORE_OK)
        return result;
    if (is_good && (is_believed || rdb_checksum_is_good(payload, sum)))
        return STORE_OK;
    resp_error(call->reply, "ERR DUMP payload version or checksum are wrong");
    return STORE_ANSWERED;
}

static bool go_on(void *arg, size_t count)
{
    struct parsing *parsing = arg;
    parsing->yielded = call_yield_at(parsing->call, count - 1);
    return parsing->yielded == STORE_OK;
}

static enum store_result refuse_format(struct call *call)
{
    resp_error(call->reply, "ERR Bad data format");
    return STORE_ANSWERED;
}

/* Parses the payload. The result may be shared by several runs; a run that ends in the middle
 * begins again. */
static enum store_result parse(struct call *call, struct restoring *restoring,
                               struct rdb_value *value)
{
    struct resp_slice payload = call->argv[3];
    struct parsing parsing = {call, restoring, STORE_OK};
    struct rdb_caller caller = {restoring != NULL ? alloc_lasting : alloc, go_on, &parsing};
    if (restoring != NULL && restoring->is_read) {
        *value = restoring->value;
        return STORE_OK;
    }
    if (restoring != NULL)
        drop_chunks(restoring);
    payload.len -= RDB_FOOTER_BYTES;
    enum rdb_result read = rdb_read_value(payload, caller, value);
    if (read == RDB_OK && restoring != NULL) {
        restoring->value = *value;
        restoring->is_read = true;
    }
    switch (read) {
    case RDB_BAD:
        return refuse_format(call);
    case RDB_NO_MEMORY:
        return STORE_NO_MEMORY;
    case RDB_STOPPED:
        return parsing.yielded;
    default:
        return STORE_OK;
    }
}

static bool has_members(const struct rdb_value *value)
{
    return value->kind == RDB_SET || value->kind == RDB_ZSET || value->kind == RDB_HASH;
}

static enum store_result read_payload(struct call *call, struct restoring *restoring,
                                      struct rdb_value *value)
{
    bool is_read = restoring != NULL && restoring->is_read, has_twins = false;
    enum store_result result = is_read ? STORE_OK : check_footer(call, call->argv[3]);
    if (result != STORE_OK)
        return result;
    result = parse(call, restoring, value);
    bool is_checked = restoring != NULL && restoring->is_checked;
    if (result == STORE_OK && !is_checked && has_members(value))
        result = find_twins(call, value, &has_twins);
    if (has_twins)
        return refuse_format(call);
    if (result == STORE_OK && restoring != NULL)
        restoring->is_checked = true;
    return result;
}

static void tell(struct call *call)
{
    call_notify(call, NOTIFY_NEW, "new", call->keys);
    call_notify(call, NOTIFY_GENERIC, "restore", call->keys);
}

static enum store_result make_list(struct call *call, const struct rdb_value *value)
{
    struct list list = list_new(call, call->keys, STORE_NO_EXPIRY);
    struct list_place place;
    enum store_result result = list_seek(&list, 0, &place);
    for (size_t i = 0; i < value->count && result == STORE_OK; i++) {
        result = list_insert(&list, &place, value->slices[i]);
        if (result == STORE_OK)
            result = list_next(&list, &place);
        if (result == STORE_OK)
            result = list_yield(&list, i);
    }
    return result == STORE_OK ? list_save(&list) : result;
}

static enum store_result make_zset(struct call *call, const struct rdb_value *value)
{
    struct zset zset = zset_new(call, call->keys, STORE_NO_EXPIRY);
    enum store_result result = STORE_OK;
    zset_expect(&zset, value->count, value->slices[0].len);
    for (size_t i = 0; i < value->count && result == STORE_OK; i++) {
        struct zset_pair pair = {value->slices[i], value->scores[i]};
        result = zset_add(&zset, &pair);
        if (result == STORE_OK)
            result = zset_yield(&zset, i);
    }
    return result == STORE_OK ? zset_save(&zset) : result;
}

static enum store_result make_members(struct call *call, const struct rdb_value *value)
{
    struct members members;
    enum store_result result = STORE_OK;
    bool is_hash = value->kind == RDB_HASH, added = true;
    members_new(&members, call->keys, is_hash ? TYPE_HASH : TYPE_SET);
    if (is_hash)
        hash_expect(call, &members, value->slices, value->count);
    else
        set_expect(call, &members, value->slices[0], value->count);
    for (size_t i = 0; i < value->count && result == STORE_OK; i += 1 + is_hash) {
        const struct resp_slice *slice = &value->slices[i];
        result = is_hash ? hash_set(call, &members, slice[0], slice[1], &added)
                         : set_add(call, &members, slice[0], &added);
        assert(result != STORE_OK || added);
        if (result == STORE_OK && value->expiries != NULL &&
            value->expiries[i / 2] != RDB_NO_EXPIRY)
            result = members_set_expiry(call, &members, slice[0], value->expiries[i / 2]);
        if (result == STORE_OK)
            result = members_yield(call, &members, i >> is_hash);
    }
    return result == STORE_OK ? members_write(call, &members, NOTIFY_GENERIC, "restore") : result;
}

static enum store_result make_large(struct call *call, struct bulk_store *bulk_store,
                                    const struct bulk_store_parts *parts)
{
    enum store_result result = bulk_store_go_on(call, bulk_store, call->keys, parts);
    if (result != STORE_OK)
        return result;
    tell(call);
    return bulk_store_put(call, bulk_store, call->keys, parts);
}

static enum store_result make_stream(struct call *call, struct restoring *restoring,
                                     const struct rdb_stream *source)
{
    struct stream_restore *large = NULL;
    enum store_result result = STORE_OK;
    if (restoring != NULL && stream_restore_is_large(source))
        large = &restoring->stream_restore;
    if (large != NULL)
        result = stream_restore_go_on(call, large, call->keys, source);
    if (result != STORE_OK)
        return result;
    tell(call);
    return large != NULL ? stream_restore_put(call, large, call->keys)
                         : stream_restore_at_once(call, call->keys, source);
}

static enum store_result make(struct call *call, struct restoring *restoring,
                              const struct rdb_value *value)
{
    struct bulk_store_parts parts = {.type = (enum item_type)value->kind,
                                     .slices = value->slices,
                                     .scores = value->scores,
                                     .expiries = value->expiries,
                                     .count = value->count};
    if (value->kind == RDB_STREAM)
        return make_stream(call, restoring, value->stream);
    if (restoring != NULL && value->kind != RDB_STRING && bulk_store_is_large(&parts))
        return make_large(call, &restoring->bulk_store, &parts);
    if (value->kind == RDB_SET || value->kind == RDB_HASH)
        return make_members(call, value);
    tell(call);
    if (value->kind == RDB_LIST)
        return make_list(call, value);
    if (value->kind == RDB_ZSET)
        return make_zset(call, value);
    return store_put(call->txn, call->keys, TYPE_STRING, value->slices[0].data,
                     value->slices[0].len, STORE_NO_EXPIRY);
}

static enum store_result expire(struct call *call, int64_t expire_ms)
{
    struct store_item item;
    enum store_result result = store_get(call->txn, call->keys, &item);
    return result == STORE_OK ? store_set_expiry(call->txn, call->keys, &item, expire_ms) : result;
}

static enum store_result restore_begin(struct call *call, struct restore *restore, bool *exists)
{
    struct store_item item;
    if (!restore_options(call, restore))
        return STORE_ANSWERED;
    enum store_result result = store_get(call->txn, call->keys, &item);
    *exists = result == STORE_OK;
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    if (*exists && !restore->replaces) {
        resp_error(call->reply, "BUSYKEY Target key name already exists.");
        return STORE_ANSWERED;
    }
    if (!call_int64(call, call->argv[2], &restore->ttl))
        return STORE_ANSWERED;
    if (restore->ttl >= 0)
        return STORE_OK;
    resp_error(call->reply, "ERR Invalid TTL value, must be >= 0");
    return STORE_ANSWERED;
}

enum store_result cmd_restore(struct call *call)
{
    struct restore restore = {.use = {.frequency = NEW_FREQUENCY}};
    struct restoring *restoring;
    struct rdb_value value;
    bool exists;
    enum store_result result = restore_begin(call, &restore, &exists);
    if (result != STORE_OK)
        return result;
    if (!restoring_get(call, &restoring))
        return STORE_NO_MEMORY;
    result = read_payload(call, restoring, &value);
    if (result != STORE_OK)
        return result;
    int64_t ttl = restore.ttl;
    if (ttl > 0 && !restore.is_absolute)
        ttl = ttl > INT64_MAX - call->now_ms ? INT64_MAX : ttl + call->now_ms;
    resp_ok(call->reply);
    if (ttl > 0 && ttl <= call->now_ms) /* it has expired already */
        return exists ? call_delete(call, call->keys) : STORE_OK;
    result = make(call, restoring, &value);
    if (result == STORE_OK && ttl > 0)
        result = expire(call, ttl);
    if (result == STORE_OK && (restore.is_idle || restore.is_frequent))
        store_set_access(call->txn, call->keys, &restore.use);
    return result;
}
