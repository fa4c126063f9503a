#include "server/types/members.h"

#include <assert.h>
#include <string.h>

#include "server/core/server.h"
#include "server/types/member_tree.h"
#include "server/types/members_expiry.h"
#include "server/types/members_order.h"
#include "server/exec/keyspace.h"
#include "server/pubsub/notify.h"
#include "server/exec/request_reply.h"

/* ---- finding ---- */

void members_new(struct members *members, const struct store_key *key, enum item_type type)
{
    *members = (struct members){.key = key,
                                .width = type == TYPE_HASH ? 2 : 1,
                                .type = (uint8_t)type,
                                .packed = packed_empty(),
                                .item.expire_ms = STORE_NO_EXPIRY,
                                .item.wake_ms = STORE_NO_EXPIRY,
                                .wake_ms = STORE_NO_EXPIRY};
}

static bool is_timed(const struct members *members)
{
    return __builtin_expect((members->type & ITEM_TIMED) != 0, 0);
}

enum store_result members_open(struct call *call, const struct store_key *key,
                               const struct store_item *item, struct members *members)
{
    members_new(members, key, item_type(item));
    members->exists = true;
    members->item = *item;
    members->type = item->type;
    if (item->trees > 0) {
        enum store_result result = store_tree_open(call->txn, key, item, 0, &members->tree);
        return result == STORE_OK && is_timed(members) ? members_open_expiry(call, members)
                                                       : result;
    }
    members->width += (item->type & ITEM_TIMED) != 0;
    if (item->large || !packed_open(&members->packed, item->bytes, item->length) ||
        members->packed.count % members->width != 0)
        return STORE_DAMAGED;
    return is_timed(members) ? members_open_expiry(call, members) : STORE_OK;
}

enum store_result members_find(struct call *call, const struct store_key *key, enum item_type type,
                               struct members *members)
{
    struct store_item item;
    enum store_result result = call_get(call, key, type, &item);
    if (result == STORE_ABSENT) {
        members_new(members, key, type);
        return STORE_OK;
    }
    if (result != STORE_OK)
        return result;
    return members_open(call, key, &item, members);
}

uint64_t members_count(const struct members *members)
{
    return members->tree != NULL ? store_tree_count(members->tree)
                                 : members->packed.count / members->width;
}

/* The last of the entries of the packed member whose name is this one. */
static struct packed_entry last_entry(const struct members *members, struct packed_entry entry)
{
    for (uint32_t i = 1; i < members->width; i++)
        packed_next(&members->packed, &entry);
    return entry;
}

/* The payload that follows a member's name. */
static struct resp_slice packed_value(const struct members *members, struct packed_entry entry)
{
    if (members->width == 1)
        return (struct resp_slice){"", 0};
    packed_next(&members->packed, &entry);
    return entry.slice;
}

/* In the tree; a member that has expired is not found. */
static enum store_result find_shown(struct call *call, struct members *members,
                                    struct resp_slice name, struct store_cursor *cursor,
                                    struct member *member, bool *found)
{
    enum store_result result = member_find(call, members->tree, name, cursor, member, found);
    *found = *found && !members_is_due(members, member->expire_ms);
    return result;
}

enum store_result members_get(struct call *call, struct members *members, struct resp_slice name,
                              struct resp_slice *value, bool *found)
{
    if (members->tree == NULL) {
        struct packed_entry entry;
        *found = packed_find(&members->packed, name, members->width, &entry) &&
                 !members_packed_is_due(members, entry);
        if (*found && value != NULL)
            *value = packed_value(members, entry);
        return STORE_OK;
    }
    struct store_cursor cursor;
    struct member member;
    enum store_result result = find_shown(call, members, name, &cursor, &member, found);
    if (result == STORE_OK && *found && value != NULL)
        result = member_value(call, &member, value);
    return result;
}

enum store_result members_reply_value(struct call *call, struct members *members,
                                      struct resp_slice name)
{
    struct store_cursor cursor;
    struct member member;
    struct resp_slice value = {"", 0};
    bool found;
    enum store_result result;
    if (members->tree == NULL)
        result = members_get(call, members, name, &value, &found);
    else
        result = find_shown(call, members, name, &cursor, &member, &found);
    if (result != STORE_OK)
        return result;
    if (!found) {
        resp_null(call->reply);
        return STORE_OK;
    }
    if (members->tree != NULL && member_is_long(&member))
        return call_reply_part(call, &member.item, member.value_at);
    if (members->tree != NULL)
        result = member_value(call, &member, &value);
    if (result == STORE_OK)
        resp_bulk(call->reply, value.data, value.len);
    return result;
}

enum store_result members_get_length(struct call *call, struct members *members,
                                     struct resp_slice name, uint64_t *length, bool *found)
{
    if (members->tree == NULL) {
        struct resp_slice value = {"", 0};
        enum store_result result = members_get(call, members, name, &value, found);
        *length = value.len;
        return result;
    }
    struct store_cursor cursor;
    struct member member = {.value_len = 0};
    enum store_result result = find_shown(call, members, name, &cursor, &member, found);
    *length = member.value_len;
    return result;
}

/* ---- changing ---- */

/* The sequence number of a new member; 0: the order of insertion does not matter. */
static uint64_t next_sequence(const struct call *call, const struct members *members)
{
    bool is_ordered = (members->type & (ITEM_BIG | ITEM_INTEGERS)) == 0;
    return is_ordered ? store_next_sequence(call->server->store) : 0;
}

static enum store_result tree_put(struct call *call, struct members *members,
                                  struct resp_slice name, struct resp_slice value, bool *added)
{
    struct store_cursor cursor;
    struct member member;
    bool found;
    enum store_result result = member_find(call, members->tree, name, &cursor, &member, &found);
    if (result != STORE_OK)
        return result;
    bool was_due = found && members_is_due(members, member.expire_ms);
    *added = !found || was_due;
    members->is_changed |= *added;
    members->has_replaced_due |= was_due;
    if (!found)
        return member_insert(call, &cursor, &member, name, value, next_sequence(call, members));
    if (members->width == 1)
        return STORE_OK;
    members->is_changed = true;
    result = member_replace(call, &cursor, name, value);
    if (result != STORE_OK || member.expire_ms == STORE_NO_EXPIRY ||
        (members->keeps_expiry && !was_due))
        return result;
    return members_drop_expiry(call, members, &cursor, &member);
}

/* Adds a member of the packed form to the tree, with its expiry. */
static enum store_result transplant(struct call *call, struct members *members,
                                    struct packed_entry entry)
{
    bool added;
    int64_t expire_ms = members_packed_expiry(members, entry);
    enum store_result result =
        tree_put(call, members, entry.slice, packed_value(members, entry), &added);
    return result == STORE_OK && expire_ms != STORE_NO_EXPIRY
               ? members_set_expiry(call, members, entry.slice, expire_ms)
               : result;
}

enum store_result members_outgrow(struct call *call, struct members *members)
{
    struct store_item item;
    bool is_timed = (members->type & ITEM_TIMED) != 0;
    enum store_result result = store_tree_create(call->txn, members->key, members->type,
                                                 1 + is_timed, members->item.expire_ms);
    if (result == STORE_OK)
        result = store_get(call->txn, members->key, &item);
    if (result == STORE_OK)
        result = store_tree_open(call->txn, members->key, &item, 0, &members->tree);
    if (result == STORE_OK && is_timed)
        result = store_tree_open(call->txn, members->key, &item, 1, &members->order);
    struct packed_entry entry = {.at = 0};
    while (result == STORE_OK && packed_next(&members->packed, &entry)) {
        result = transplant(call, members, entry);
        entry = last_entry(members, entry);
    }
    if (result == STORE_OK) {
        uint8_t type = members->type;
        members->item = item;
        members->item.type = type;
    }
    return result;
}

/* Overwrites the value of the packed member whose name is this entry. */
static bool overwrite(struct members *members, struct packed_entry entry, struct resp_slice value,
                      bool keeps_expiry)
{
    struct resp_slice entries[2] = {value, {"", 0}};
    uint32_t at = entry.end;
    bool clears = is_timed(members) && !keeps_expiry;
    packed_next(&members->packed, &entry);
    if (clears)
        packed_next(&members->packed, &entry);
    return packed_splice(&members->packed, at, entry.end, entries, 1 + clears);
}

static enum store_result packed_put(struct call *call, struct members *members,
                                    struct resp_slice name, struct resp_slice value, bool *added,
                                    bool *fits)
{
    struct packed *packed = &members->packed;
    struct resp_slice entries[3] = {name, value, {"", 0}};
    struct packed_entry entry;
    bool found = packed_find(packed, name, members->width, &entry);
    bool is_due = found && members_packed_is_due(members, entry);
    *added = !found || is_due;
    if (found && members->width == 1)
        return STORE_OK;
    if (!packed_own(packed, call->txn))
        return STORE_NO_MEMORY;
    members->is_changed = true;
    if (!found)
        *fits = packed_splice(packed, packed->len, packed->len, entries, members->width);
    else
        *fits = overwrite(members, entry, value, members->keeps_expiry && !is_due);
    if (*fits) {
        members->has_replaced_due |= is_due;
        members->due -= is_due;
    }
    return STORE_OK;
}

enum store_result members_put(struct call *call, struct members *members, struct resp_slice name,
                              struct resp_slice value, bool *added)
{
    if (members->tree == NULL) {
        bool fits = true;
        enum store_result result = packed_put(call, members, name, value, added, &fits);
        if (result != STORE_OK || fits)
            return result;
        result = members_outgrow(call, members);
        if (result != STORE_OK)
            return result;
    }
    return tree_put(call, members, name, value, added);
}

enum store_result members_insert(struct call *call, struct members *members, uint32_t at,
                                 struct resp_slice name)
{
    bool added;
    assert(members->tree == NULL && members->width == 1);
    if (!packed_own(&members->packed, call->txn))
        return STORE_NO_MEMORY;
    members->is_changed = true;
    if (packed_splice(&members->packed, at, at, &name, 1))
        return STORE_OK;
    enum store_result result = members_outgrow(call, members);
    return result == STORE_OK ? tree_put(call, members, name, (struct resp_slice){"", 0}, &added)
                              : result;
}

/* Removes the member whose name is this entry. */
static enum store_result packed_remove(struct call *call, struct members *members,
                                       struct packed_entry entry)
{
    uint32_t at = entry.at;
    if (!packed_own(&members->packed, call->txn))
        return STORE_NO_MEMORY;
    packed_cut(&members->packed, at, last_entry(members, entry).end);
    members->is_changed = true;
    return STORE_OK;
}

enum store_result members_remove(struct call *call, struct members *members, struct resp_slice name,
                                 bool *removed)
{
    if (members->tree == NULL) {
        struct packed_entry entry;
        *removed = packed_find(&members->packed, name, members->width, &entry) &&
                   !members_packed_is_due(members, entry);
        return *removed ? packed_remove(call, members, entry) : STORE_OK;
    }
    struct store_cursor cursor;
    struct member member;
    enum store_result result = find_shown(call, members, name, &cursor, &member, removed);
    if (result != STORE_OK || !*removed)
        return result;
    members->is_changed = true;
    result = members_forget_expiry(members, &member);
    return result == STORE_OK ? store_tree_remove(&cursor) : result;
}

static enum store_result write_form(struct call *call, struct members *members)
{
    struct store_item item; /* its present state */
    enum store_result result = store_get(call->txn, members->key, &item);
    return result == STORE_OK ? store_tree_set_type(call->txn, members->key, &item, members->type)
                              : result;
}

static void tell(struct call *call, const struct members *members, enum notify_class kind,
                 const char *event)
{
    if (!members->exists)
        call_notify(call, NOTIFY_NEW, "new", members->key);
    if (members->has_replaced_due)
        call_notify(call, NOTIFY_HASH, "hexpired", members->key);
    call_notify(call, kind, event, members->key);
    if (members->second_event != NULL)
        call_notify(call, kind, members->second_event, members->key);
    if (members_count(members) == 0)
        call_notify(call, NOTIFY_GENERIC, "del", members->key);
}

enum store_result members_write(struct call *call, struct members *members, enum notify_class kind,
                                const char *event)
{
    if (members->is_changed)
        tell(call, members, kind, event);
    return members_store(call, members);
}

static enum store_result store_wake(struct call *call, struct members *members)
{
    enum store_result result = members_find_earliest(members);
    bool is_new_item = members->tree == NULL && members->wake_ms != STORE_NO_EXPIRY;
    if (result == STORE_OK && (is_new_item || members->wake_ms != members->item.wake_ms))
        store_set_wake(call->txn, members->key, members->wake_ms);
    return result;
}

enum store_result members_store(struct call *call, struct members *members)
{
    bool is_other_form = members->type != members->item.type;
    enum store_result result = STORE_OK;
    if (!members->is_changed && (!is_other_form || !members->exists))
        return STORE_OK;
    if (members_count(members) == 0)
        return store_delete(call->txn, members->key);
    if (members->tree == NULL)
        result = store_put(call->txn, members->key, members->type, members->packed.bytes,
                           members->packed.len, members->item.expire_ms);
    else if (is_other_form)
        result = write_form(call, members);
    return result == STORE_OK && is_timed(members) ? store_wake(call, members) : result;
}

enum store_result members_yield(struct call *call, struct members *members, uint64_t i)
{
    return packed_yield(call, &members->packed, i);
}

enum store_result members_keep(struct call *call, struct members *members)
{
    return packed_keep(&members->packed, call->txn) ? STORE_OK : STORE_NO_MEMORY;
}

/* ---- by rank, and all of them ---- */

static struct packed_entry packed_name_at(const struct members *members, uint64_t rank)
{
    return packed_at(&members->packed, (uint32_t)rank * members->width);
}

/* The tree's count includes this member. If it is missing, the tree is damaged. */
static enum store_result read_counted(struct call *call, struct store_cursor *cursor,
                                      struct member *member)
{
    enum store_result result = member_read(call, cursor, member);
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

static enum store_result tree_at(struct call *call, struct members *members, uint64_t rank,
                                 struct store_cursor *cursor, struct member *member)
{
    enum store_result result = store_tree_seek_rank(members->tree, rank, cursor);
    return result == STORE_OK ? read_counted(call, cursor, member) : result;
}

enum store_result members_at(struct call *call, struct members *members, uint64_t rank,
                             struct resp_slice *name, struct resp_slice *value)
{
    assert(rank < members_count(members));
    if (members->tree == NULL) {
        struct packed_entry entry = packed_name_at(members, rank);
        *name = entry.slice;
        if (value != NULL)
            *value = packed_value(members, entry);
        return STORE_OK;
    }
    struct store_cursor cursor;
    struct member member;
    enum store_result result = tree_at(call, members, rank, &cursor, &member);
    if (result != STORE_OK)
        return result;
    *name = member.name;
    return value != NULL ? member_value(call, &member, value) : STORE_OK;
}

enum store_result members_remove_at(struct call *call, struct members *members, uint64_t rank)
{
    assert(rank < members_count(members));
    if (members->tree == NULL)
        return packed_remove(call, members, packed_name_at(members, rank));
    struct store_cursor cursor;
    enum store_result result = store_tree_seek_rank(members->tree, rank, &cursor);
    assert(members->order == NULL);
    members->is_changed = true;
    return result == STORE_OK ? store_tree_remove(&cursor) : result;
}

static enum store_result each_packed(struct members *members, struct collector *collector,
                                     member_visit *visit, void *arg)
{
    if (collector->at >= members_count(members))
        return STORE_OK;
    struct packed_entry entry = packed_name_at(members, collector->at);
    do {
        if (is_timed(members))
            members->visited_ms = members_packed_expiry(members, entry);
        bool is_due = members_packed_is_due(members, entry);
        enum store_result result =
            is_due ? STORE_OK : visit(arg, entry.slice, packed_value(members, entry));
        if (result != STORE_OK)
            return result;
        collector->at++;
        entry = last_entry(members, entry);
    } while (packed_next(&members->packed, &entry));
    return STORE_OK;
}

static bool leaves(const struct members *members, const struct member *member)
{
    return members->leaves == LEAVES_ALL_VALUES ||
           (members->leaves == LEAVES_LONG_VALUES && member_is_long(member));
}

static enum store_result visit_member(struct call *call, struct members *members,
                                      const struct member *member, bool with_values,
                                      member_visit *visit, void *arg)
{
    struct resp_slice value = {"", 0};
    if (members_is_due(members, member->expire_ms))
        return STORE_OK;
    bool is_left = with_values && leaves(members, member);
    enum store_result result = STORE_OK;
    if (with_values && !is_left)
        result = member_value(call, member, &value);
    members->unread = is_left ? member : NULL;
    members->visited_ms = member->expire_ms;
    if (result == STORE_OK)
        result = visit(arg, member->name, value);
    members->unread = NULL;
    return result;
}

static enum store_result visit_at(struct call *call, struct members *members,
                                  struct store_cursor *cursor, bool with_values,
                                  member_visit *visit, void *arg)
{
    struct member member;
    enum store_result result = read_counted(call, cursor, &member);
    return result == STORE_OK ? visit_member(call, members, &member, with_values, visit, arg)
                              : result;
}

/* Visits the members up to, but not including, the one with rank `end`. */
static enum store_result each_in_tree(struct call *call, struct members *members,
                                      struct collector *collector, uint64_t end, bool with_values,
                                      member_visit *visit, void *arg)
{
    struct store_cursor cursor;
    if (collector->at >= end)
        return STORE_OK;
    enum store_result result = store_tree_seek_rank(members->tree, collector->at, &cursor);
    while (result == STORE_OK) {
        result = visit_at(call, members, &cursor, with_values, visit, arg);
        if (result != STORE_OK || ++collector->at == end)
            return result;
        if (collector_step_is_full(collector))
            return collector_step(call, collector);
        result = members_yield(call, members, collector->at);
        if (result == STORE_OK)
            result = store_tree_next(&cursor);
    }
    return result;
}

/* Finds the order, in steps. */
static enum store_result arrange(struct call *call, struct members *members,
                                 struct collector *collector)
{
    struct collector_order *order = &collector->order;
    enum store_result result = members_arrange(call, members, order, collector->entries_left);
    return result == STORE_OK && !order->is_sorted ? collector_step(call, collector) : result;
}

static enum store_result each_in_order(struct call *call, struct members *members,
                                       struct collector *collector, bool with_values,
                                       member_visit *visit, void *arg)
{
    uint64_t count = members_count(members);
    const struct collector_order *order = &collector->order;
    enum store_result result = arrange(call, members, collector);
    while (result == STORE_OK && collector->at < count) {
        struct store_cursor cursor;
        result = store_tree_seek_rank(members->tree, order->places[collector->at].rank, &cursor);
        if (result == STORE_OK)
            result = visit_at(call, members, &cursor, with_values, visit, arg);
        if (result == STORE_OK && ++collector->at < count && collector_step_is_full(collector))
            return collector_step(call, collector);
    }
    return result;
}

/* A visitor returns STORE_ABSENT when it needs no more members. */
static enum store_result enough(enum store_result result)
{
    return result == STORE_ABSENT ? STORE_OK : result;
}

enum store_result members_each(struct call *call, struct members *members,
                               struct collector *collector, bool with_values, member_visit *visit,
                               void *arg)
{
    if (members->tree == NULL)
        return enough(each_packed(members, collector, visit, arg));
    if (members_are_reordered(members))
        return enough(each_in_order(call, members, collector, with_values, visit, arg));
    return enough(
        each_in_tree(call, members, collector, members_count(members), with_values, visit, arg));
}

/* ---- the index of many sources ---- */

struct indexing {
    struct call *call;
    struct source_index *index;
    uint32_t source;
};

static enum store_result add_to_index(void *arg, struct resp_slice name, struct resp_slice value)
{
    const struct indexing *indexing = arg;
    (void)value;
    source_index_add(indexing->index, member_hash(indexing->call, name), indexing->source);
    return STORE_OK;
}

static struct members *source_at(struct members *first, size_t stride, uint32_t i)
{
    return (struct members *)((char *)first + i * stride);
}

static bool begin_index(struct collector *collector, struct members *first, size_t stride,
                        uint32_t count)
{
    uint64_t members = 0;
    for (uint32_t i = 0; i < count; i++)
        members += members_count(source_at(first, stride, i));
    return collector_new_index(collector, members);
}

enum store_result members_index(struct call *call, struct collector *collector,
                                struct members *first, size_t stride, uint32_t count)
{
    struct indexing indexing = {.call = call};
    if (collector->is_indexed)
        return STORE_OK;
    if (collector->sources == NULL && !begin_index(collector, first, stride, count)) {
        collector->is_indexed = true;
        return STORE_OK;
    }
    indexing.index = collector->sources;
    while (collector->source < count) {
        indexing.source = count - 1 - collector->source;
        enum store_result result = members_each(call, source_at(first, stride, indexing.source),
                                                collector, false, add_to_index, &indexing);
        if (result != STORE_OK)
            return result;
        collector_next_source(collector);
        result = call_yield(call);
        if (result != STORE_OK)
            return result;
    }
    collector->source = 0;
    collector->is_indexed = true;
    return STORE_OK;
}

enum store_result members_between_sources(struct call *call, struct collector *collector,
                                          uint32_t sources)
{
    if (collector->out.len >= collector->step_end + sizeof(uint64_t) * sources)
        return collector_step(call, collector);
    return call_yield(call);
}

/* ---- random members ---- */

struct picking {
    struct call *call;
    struct members *members;
    const struct collector_place *places; /* in Redis's order, or NULL */
    bool with_values;
    member_visit *visit;
    void *arg;
};

static enum store_result visit_rank(void *arg, uint64_t rank)
{
    const struct picking *picking = arg;
    struct members *members = picking->members;
    struct resp_slice name, value;
    struct store_cursor cursor;
    struct member member;
    if (picking->places != NULL)
        rank = picking->places[rank].rank;
    enum store_result result = members_skip_due(picking->call, members, &rank);
    if (result != STORE_OK)
        return result;
    if (members->tree == NULL) {
        result = members_at(picking->call, members, rank, &name, &value);
        return result == STORE_OK ? picking->visit(picking->arg, name, value) : result;
    }
    result = tree_at(picking->call, members, rank, &cursor, &member);
    return result == STORE_OK ? visit_member(picking->call, members, &member, picking->with_values,
                                             picking->visit, picking->arg)
                              : result;
}

uint64_t members_pick_count(const struct members *members, int64_t count)
{
    uint64_t size = members_shown(members);
    if (size == 0 || count < 0)
        return size == 0 ? 0 : -(uint64_t)count;
    return (uint64_t)count < size ? (uint64_t)count : size;
}

/* A sample of the members that are shown, while there are others: each in turn is picked or not, so
 * that the number is right in the end. */
struct sampling {
    struct collector *collector;
    uint64_t seed, count, shown;
    member_visit *visit;
    void *arg;
};

static enum store_result visit_sample(void *arg, struct resp_slice name, struct resp_slice value)
{
    const struct sampling *sampling = arg;
    struct collector *collector = sampling->collector;
    uint64_t wanted = sampling->count - collector->sampled;
    struct rng rng = rng_new(sampling->seed + collector->passed);
    if (wanted == 0)
        return STORE_ABSENT;
    if (rng_below(&rng, sampling->shown - collector->passed) < wanted) {
        enum store_result result = sampling->visit(sampling->arg, name, value);
        if (result != STORE_OK)
            return result;
        collector->sampled++;
    }
    collector->passed++;
    return STORE_OK;
}

enum store_result members_pick(struct call *call, struct members *members,
                               struct collector *collector, int64_t count, bool with_values,
                               member_visit *visit, void *arg)
{
    uint64_t size = members_count(members), shown = members_shown(members);
    if (shown == 0)
        return STORE_OK;
    if (count >= 0 && (uint64_t)count >= shown)
        return members_each(call, members, collector, with_values, visit, arg);
    if (count >= 0 && shown < size) {
        struct sampling sampling = {collector, call->random_seed, (uint64_t)count, shown, visit,
                                    arg};
        return members_each(call, members, collector, with_values, visit_sample, &sampling);
    }
    /* Picks with repetitions have no order. */
    if (count > 0 && members_are_reordered(members)) {
        enum store_result result = arrange(call, members, collector);
        if (result != STORE_OK)
            return result;
    }
    struct picking picking = {call, members, collector->order.places, with_values, visit, arg};
    return enough(collector_pick(call, collector, size, count, visit_rank, &picking));
}

/* ---- in parts ---- */

/* A cursor is the upper bits of a hash, few enough for clients that store it in a double. Members
 * that share those bits are returned together. */
#define CURSOR_SHIFT 11

static enum store_result cursor_rank(struct members *members, uint64_t cursor, uint64_t *rank)
{
    struct store_cursor place;
    *rank = members_count(members);
    if (cursor > UINT64_MAX >> CURSOR_SHIFT)
        return STORE_OK;
    enum store_result result = member_seek(members->tree, cursor << CURSOR_SHIFT, &place);
    *rank = place.rank;
    return result;
}

/* The cursor of the member with rank `rank`; 0 past the last one. */
static enum store_result rank_cursor(struct call *call, struct members *members, uint64_t rank,
                                     uint64_t *cursor)
{
    struct store_cursor place;
    struct member member;
    *cursor = 0;
    if (rank == members_count(members))
        return STORE_OK;
    enum store_result result = tree_at(call, members, rank, &place, &member);
    *cursor = member.hash >> CURSOR_SHIFT;
    return result;
}

/* The end of a part that begins at `start` and should have `count` members. The next part must be
 * able to begin there, so the end is at the first member of a group that shares a cursor. */
static enum store_result part_end(struct call *call, struct members *members, uint64_t start,
                                  uint64_t count, uint64_t *end, uint64_t *next)
{
    uint64_t left = members_count(members) - start;
    *end = start + (count < left ? count : left);
    enum store_result result = rank_cursor(call, members, *end, next);
    if (result != STORE_OK || *end == members_count(members))
        return result;
    result = cursor_rank(members, *next, end);
    if (result != STORE_OK || *end > start)
        return result;
    result = cursor_rank(members, *next + 1, end);
    return result == STORE_OK ? rank_cursor(call, members, *end, next) : result;
}

enum store_result members_scan(struct call *call, struct members *members,
                               struct collector *collector, uint64_t *cursor, uint64_t count,
                               member_visit *visit, void *arg)
{
    uint64_t start, end, next = 0;
    if (members->tree == NULL || (members->type & ITEM_BIG) == 0) {
        *cursor = 0;
        return members_each(call, members, collector, true, visit, arg);
    }
    enum store_result result = cursor_rank(members, *cursor, &start);
    if (result == STORE_OK)
        result = part_end(call, members, start, count, &end, &next);
    if (result != STORE_OK)
        return result;
    if (collector->at < start)
        collector->at = start;
    *cursor = next;
    return enough(each_in_tree(call, members, collector, end, true, visit, arg));
}
