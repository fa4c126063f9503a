/*
 * VELLUM.RANGE, an extension: the keys of the database between two others, in the order of their
 * bytes, with their values if wanted. It needs a data directory with ordered keys.
 *
 * The collector keeps the walk and what it has found; like that of KEYS, a long result goes to the
 * device until its length is known.
 */
#include "server/commands/commands.h"

#include "server/core/call.h"
#include "server/core/server.h"
#include "server/core/session.h"
#include "server/exec/collector.h"
#include "storage/ordered.h"

#define LOADED_SHARE 4 /* of memory, for large values that are loaded at the same time */

struct query {
    struct store_range_bound low, high;
    bool is_empty; /* from + on, or up to - */
    bool is_reverse, with_values;
    int64_t offset, limit; /* limit negative: none */
};

/* ---- the arguments ---- */

/* As those of ZRANGE BYLEX. `none`: the sign of no bound at this end. */
static bool read_bound(struct resp_slice arg, char none, struct store_range_bound *bound,
                       bool *is_empty)
{
    char first = arg.len > 0 ? arg.data[0] : '\0';
    if (first == '+' || first == '-') {
        *is_empty |= first != none;
        return arg.len == 1;
    }
    bound->is_excluded = first == '(';
    bound->bytes = arg.data + 1;
    bound->len = (uint32_t)arg.len - 1;
    return (first == '(' || first == '[') && arg.len - 1 <= STORE_KEY_MAX;
}

/* Parses one option and its arguments; *i is moved to the last of them. */
static bool read_option(struct call *call, struct query *query, size_t *i)
{
    struct resp_slice arg = call->argv[*i];
    if (slice_is(arg, "limit") && call->argc - *i > 2) {
        *i += 2;
        return call_int64(call, call->argv[*i - 1], &query->offset) &&
               call_int64(call, call->argv[*i], &query->limit);
    }
    if (slice_is(arg, "rev"))
        query->is_reverse = true;
    else if (slice_is(arg, "withvalues"))
        query->with_values = true;
    else
        return call_syntax_error(call);
    return true;
}

/* False: replied with an error. */
static bool read_query(struct call *call, struct query *query)
{
    *query = (struct query){.limit = -1};
    for (size_t i = 3; i < call->argc; i++)
        if (!read_option(call, query, &i))
            return false;
    struct resp_slice low = call->argv[query->is_reverse ? 2 : 1];
    struct resp_slice high = call->argv[query->is_reverse ? 1 : 2];
    if (!read_bound(low, '-', &query->low, &query->is_empty) ||
        !read_bound(high, '+', &query->high, &query->is_empty)) {
        resp_error(call->reply, "ERR min or max not valid string range item");
        return false;
    }
    query->is_empty |= query->offset < 0 || query->limit == 0;
    return true;
}

/* ---- the walk ---- */

static bool is_string(uint8_t type)
{
    return (type & ITEM_TYPE_MASK) == TYPE_STRING;
}

static bool begin(struct call *call, struct collector *collector, const struct query *query)
{
    uint64_t memory = atomic_load_explicit(&call->server->memory_bound, memory_order_relaxed);
    struct store_range_options options = {
        .db = call->session->db,
        .low = query->low,
        .high = query->high,
        .is_reverse = query->is_reverse,
        .skip = (uint64_t)query->offset,
        .most = query->limit < 0 ? UINT64_MAX : (uint64_t)query->limit,
        .wants_value = query->with_values ? is_string : NULL,
        .loaded_most = memory / LOADED_SHARE,
    };
    collector->range = store_range_new(call->server->store, &options);
    return collector->range != NULL;
}

/* In RESP3 a key and its value are an array of their own, as with ZRANGE's WITHSCORES. */
static bool add(struct collector *collector, const struct query *query,
                const struct store_range_entry *entry)
{
    struct resp_writer *out = &collector->out;
    if (!collector_has_room(collector, entry->key_len + entry->value_len))
        return false;
    if (query->with_values && out->version >= 3)
        resp_array(out, 2);
    resp_bulk(out, entry->key, entry->key_len);
    if (query->with_values && entry->value != NULL)
        resp_bulk(out, entry->value, entry->value_len);
    else if (query->with_values)
        resp_null(out);
    collector->count++;
    return !out->failed;
}

static enum store_result walk_on(struct call *call, struct collector *collector,
                                 const struct query *query)
{
    while (query->limit < 0 || collector->count < (uint64_t)query->limit) {
        struct store_range_entry entry;
        enum store_result result = store_range_next(call->txn, collector->range, &entry);
        if (result != STORE_OK)
            return result == STORE_ABSENT ? STORE_OK : result;
        if (!add(collector, query, &entry))
            return STORE_NO_MEMORY;
        if (collector_step_is_full(collector))
            return collector_step(call, collector);
    }
    return STORE_OK;
}

enum store_result cmd_vellum_range(struct call *call)
{
    struct query query;
    if (!read_query(call, &query))
        return STORE_OK;
    if (!store_is_ordered(call->server->store)) {
        resp_error(call->reply, "ERR the data directory keeps no order of its keys: it has to be "
                                "created with `ordered-keys yes`");
        return STORE_OK;
    }
    struct collector *collector = collector_get(call);
    if (collector == NULL)
        return STORE_NO_MEMORY;
    collector->is_tail = true;
    if (collector->range == NULL && !begin(call, collector, &query))
        return STORE_NO_MEMORY;
    /* Once it is over, a rerun must not walk on: it would find the end again. */
    enum store_result result = STORE_OK;
    if (!query.is_empty && !collector->is_over)
        result = walk_on(call, collector, &query);
    if (result != STORE_OK)
        return result;
    collector->is_over = true;
    bool is_flat = query.with_values && call->reply->version < 3;
    resp_array(call->reply, is_flat ? 2 * collector->count : collector->count);
    return collector_reply(call, collector);
}
