#include "server/types/members_reply.h"

#include "server/types/member_tree.h"
#include "server/types/members_expiry.h"

/* What show() writes of each member, and to which reply. */
struct showing {
    struct collector *collector; /* its `count` is that of elements: 2 if both parts are shown */
    enum members_part part;
    bool in_pairs;                    /* each name and value as an array of two */
    const struct scan_filter *filter; /* NULL: any name */
    struct call *call;                /* this and the next: to read long values; or NULL */
    struct members *members;
};

static enum store_result show_value(const struct showing *showing, struct resp_slice value)
{
    struct collector *collector = showing->collector;
    const struct member *unread = showing->members == NULL ? NULL : showing->members->unread;
    if (unread != NULL)
        return collector_item(showing->call, collector, &unread->item, unread->value_at);
    resp_bulk(&collector->out, value.data, value.len);
    return STORE_OK;
}

/* A member_visit; `arg` is a struct showing. */
static enum store_result show(void *arg, struct resp_slice name, struct resp_slice value)
{
    const struct showing *showing = arg;
    struct resp_writer *out = &showing->collector->out;
    size_t before = out->len;
    enum store_result result = STORE_OK;
    if (showing->filter != NULL && !scan_matches(showing->filter, name))
        return STORE_OK;
    if (showing->in_pairs)
        resp_array(out, 2);
    if ((showing->part & PART_NAMES) != 0)
        resp_bulk(out, name.data, name.len);
    if ((showing->part & PART_VALUES) != 0)
        result = show_value(showing, value);
    if (result != STORE_OK) {
        resp_truncate(out, before);
        return result;
    }
    showing->collector->count += showing->part == PART_BOTH ? 2 : 1;
    return out->failed ? STORE_NO_MEMORY : STORE_OK;
}

/* The head is written first, so that elements can be sent before all of them have been found. */
static struct collector *begin(struct call *call, members_head *head, uint64_t count)
{
    struct collector *collector = collector_get(call);
    if (collector != NULL && collector->at == 0 && collector->out.len == 0)
        head(&collector->out, count);
    return collector;
}

enum store_result members_reply_all(struct call *call, struct members *members,
                                    enum members_part part, members_head *head)
{
    struct showing showing = {.part = part, .call = call, .members = members};
    showing.collector = begin(call, head, members_shown(members));
    if (showing.collector == NULL)
        return STORE_NO_MEMORY;
    showing.collector->is_reply = true;
    members->leaves = LEAVES_LONG_VALUES;
    enum store_result result =
        members_each(call, members, showing.collector, part != PART_NAMES, show, &showing);
    return result == STORE_OK ? collector_reply(call, showing.collector) : result;
}

enum store_result members_reply_some(struct call *call, struct members *members, int64_t count,
                                     enum members_part part, bool in_pairs, members_head *head)
{
    struct showing showing = {.part = part, .in_pairs = in_pairs, .call = call, .members = members};
    uint64_t each = part == PART_BOTH && !in_pairs ? 2 : 1;
    showing.collector = begin(call, head, each * members_pick_count(members, count));
    if (showing.collector == NULL)
        return STORE_NO_MEMORY;
    showing.collector->is_reply = members_pick_ends(count);
    members->leaves = LEAVES_LONG_VALUES;
    enum store_result result =
        members_pick(call, members, showing.collector, count, part != PART_NAMES, show, &showing);
    return result == STORE_OK ? collector_reply(call, showing.collector) : result;
}

enum store_result members_reply_one(struct call *call, struct members *members)
{
    struct resp_slice name;
    struct rng rng = rng_new(call->random_seed);
    if (members_shown(members) == 0) {
        resp_null(call->reply);
        return STORE_OK;
    }
    uint64_t rank = rng_below(&rng, members_count(members));
    enum store_result result = members_skip_due(call, members, &rank);
    if (result == STORE_OK)
        result = members_at(call, members, rank, &name, NULL);
    if (result == STORE_OK)
        resp_bulk(call->reply, name.data, name.len);
    return result;
}

enum store_result members_reply_scan(struct call *call, enum item_type type)
{
    struct members members;
    struct scan_filter filter = {.count = 1};
    uint64_t cursor;
    if (!scan_read_cursor(call, call->argv[2], &cursor))
        return STORE_OK;
    enum store_result result = members_find(call, call->keys, type, &members);
    if (result != STORE_OK)
        return result;
    /* Redis parses the options only if the key exists. */
    if (members.exists && !scan_read_options(call, 3, false, &filter))
        return STORE_OK;
    struct showing showing = {.collector = collector_get(call),
                              .part = type == TYPE_HASH ? PART_BOTH : PART_NAMES,
                              .filter = &filter,
                              .call = call,
                              .members = &members};
    if (showing.collector == NULL)
        return STORE_NO_MEMORY;
    showing.collector->is_tail = true;
    members.leaves = LEAVES_ALL_VALUES; /* most may not match */
    result = scan_prepare(call, &filter);
    if (result == STORE_OK)
        result =
            members_scan(call, &members, showing.collector, &cursor, filter.count, show, &showing);
    if (result != STORE_OK)
        return result;
    scan_reply_cursor(call, cursor);
    resp_array(call->reply, showing.collector->count);
    return collector_reply(call, showing.collector);
}
