/*
 * A sorted array of prefixes, each with the clients that have it.
 *
 * Invariants:
 * 1. `sorted` is in the order of prefix_compare, and has each name once.
 * 2. A prefix has at least one member. A member is in the list of its prefix, and in its client's,
 * which is in the same order.
 */
#include "server/exec/prefix_table.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "server/exec/tracker.h"

struct prefix {
    LIST_HEAD(, prefix_member) members;
    uint32_t len;
    char name[];
};

struct prefix_member {
    struct prefix *prefix;
    struct tracker *tracker;
    uint32_t group; /* of its keys in an invalidation */
    LIST_ENTRY(prefix_member) of_prefix, of_tracker;
};

struct prefix_table {
    struct prefix **sorted;
    _Atomic uint32_t count;
    uint32_t capacity;
};

/* What an addition will put in, so that it can fail as a whole. */
struct addition {
    struct prefix_member **members; /* the first `count`, in order */
    struct prefix **fresh;          /* the first `fresh_count`, in order */
    uint32_t count, fresh_count;
};

struct prefix_table *prefix_table_new(void)
{
    return calloc(1, sizeof(struct prefix_table));
}

void prefix_table_free(struct prefix_table *table)
{
    if (table == NULL)
        return;
    assert(prefix_table_is_empty(table));
    free(table->sorted);
    free(table);
}

uint32_t prefix_table_count(const struct prefix_table *table)
{
    return atomic_load_explicit(&table->count, memory_order_relaxed);
}

bool prefix_table_is_empty(const struct prefix_table *table)
{
    return prefix_table_count(table) == 0;
}

static size_t common_length(struct resp_slice a, struct resp_slice b)
{
    size_t most = a.len < b.len ? a.len : b.len, len = 0;
    while (len < most && a.data[len] == b.data[len])
        len++;
    return len;
}

int prefix_compare(struct resp_slice a, struct resp_slice b)
{
    size_t least = a.len < b.len ? a.len : b.len;
    int order = least > 0 ? memcmp(a.data, b.data, least) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static struct resp_slice name_of(const struct prefix *prefix)
{
    return (struct resp_slice){prefix->name, prefix->len};
}

/* How many are not behind the name. */
static uint32_t place_behind(const struct prefix_table *table, struct resp_slice name)
{
    uint32_t from = 0, to = prefix_table_count(table);
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (prefix_compare(name_of(table->sorted[middle]), name) <= 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static struct prefix *find(const struct prefix_table *table, struct resp_slice name)
{
    uint32_t place = place_behind(table, name);
    struct prefix *prefix = place > 0 ? table->sorted[place - 1] : NULL;
    return prefix != NULL && prefix_compare(name_of(prefix), name) == 0 ? prefix : NULL;
}

/* ---- adding ---- */

/* Finds or makes the prefix; NULL: out of memory. */
static struct prefix *get_prefix(const struct prefix_table *table, struct addition *addition,
                                 struct resp_slice name)
{
    struct prefix *prefix = find(table, name);
    if (prefix != NULL)
        return prefix;
    prefix = calloc(1, sizeof *prefix + name.len);
    if (prefix == NULL)
        return NULL;
    prefix->len = (uint32_t)name.len;
    if (name.len > 0)
        memcpy(prefix->name, name.data, name.len);
    addition->fresh[addition->fresh_count++] = prefix;
    return prefix;
}

/* False: out of memory. */
static bool add_member(const struct prefix_table *table, struct addition *addition,
                       struct resp_slice name)
{
    struct prefix_member *member = calloc(1, sizeof *member);
    if (member == NULL)
        return false;
    addition->members[addition->count++] = member;
    member->prefix = get_prefix(table, addition, name);
    return member->prefix != NULL;
}

/* Of the names, those that the client does not have. False: out of memory. */
static bool collect(const struct prefix_table *table, const struct tracker *tracker,
                    const struct resp_slice *names, uint32_t count, struct addition *addition)
{
    const struct prefix_member *own = LIST_FIRST(&tracker->prefixes);
    for (uint32_t i = 0; i < count; i++) {
        int order = -1;
        while (own != NULL && (order = prefix_compare(name_of(own->prefix), names[i])) < 0)
            own = LIST_NEXT(own, of_tracker);
        bool has_it = own != NULL && order == 0;
        if (!has_it && !add_member(table, addition, names[i]))
            return false;
    }
    return true;
}

/* False: out of memory. */
static bool make_room(struct prefix_table *table, uint32_t more)
{
    uint32_t needed = prefix_table_count(table) + more, capacity = table->capacity;
    if (needed <= table->capacity)
        return true;
    while (capacity < needed)
        capacity = capacity == 0 ? 8 : 2 * capacity;
    struct prefix **sorted = realloc(table->sorted, capacity * sizeof *sorted);
    if (sorted == NULL)
        return false;
    table->sorted = sorted;
    table->capacity = capacity;
    return true;
}

/* From the end, where there is room. */
static void merge_fresh(struct prefix_table *table, const struct addition *addition)
{
    uint32_t old = prefix_table_count(table), fresh = addition->fresh_count;
    atomic_store_explicit(&table->count, old + fresh, memory_order_relaxed);
    while (fresh > 0) {
        struct prefix *next = addition->fresh[fresh - 1];
        struct prefix *before = old > 0 ? table->sorted[old - 1] : NULL;
        if (before != NULL && prefix_compare(name_of(before), name_of(next)) > 0) {
            table->sorted[old + fresh - 1] = before;
            old--;
        } else {
            table->sorted[old + fresh - 1] = next;
            fresh--;
        }
    }
}

static uint64_t member_bytes(const struct prefix_member *member)
{
    return sizeof *member + sizeof *member->prefix + member->prefix->len;
}

/* Behind `before` in the client's list; NULL: as its first. */
static void join(struct prefix_member *member, struct tracker *tracker,
                 struct prefix_member *before)
{
    member->tracker = tracker;
    member->group = tracker->next_group++;
    LIST_INSERT_HEAD(&member->prefix->members, member, of_prefix);
    if (before == NULL)
        LIST_INSERT_HEAD(&tracker->prefixes, member, of_tracker);
    else
        LIST_INSERT_AFTER(before, member, of_tracker);
    tracker->prefix_count++;
    tracker->prefix_bytes += member_bytes(member);
}

static void join_all(const struct addition *addition, struct tracker *tracker)
{
    struct prefix_member *before = NULL, *next = LIST_FIRST(&tracker->prefixes);
    for (uint32_t i = 0; i < addition->count; i++) {
        struct prefix_member *member = addition->members[i];
        while (next != NULL && prefix_compare(name_of(next->prefix), name_of(member->prefix)) < 0) {
            before = next;
            next = LIST_NEXT(next, of_tracker);
        }
        join(member, tracker, before);
        before = member;
    }
}

static void give_up(struct addition *addition)
{
    for (uint32_t i = 0; i < addition->count; i++)
        free(addition->members[i]);
    for (uint32_t i = 0; i < addition->fresh_count; i++)
        free(addition->fresh[i]);
}

bool prefix_table_add(struct prefix_table *table, struct tracker *tracker,
                      const struct resp_slice *names, uint32_t count)
{
    struct addition addition = {.members = calloc(count, sizeof *addition.members),
                                .fresh = calloc(count, sizeof *addition.fresh)};
    bool has_memory = addition.members != NULL && addition.fresh != NULL &&
                      collect(table, tracker, names, count, &addition) &&
                      make_room(table, addition.fresh_count);
    if (has_memory) {
        merge_fresh(table, &addition);
        join_all(&addition, tracker);
    } else {
        give_up(&addition);
    }
    free(addition.members);
    free(addition.fresh);
    return has_memory;
}

/* ---- dropping ---- */

static void drop_unused(struct prefix_table *table)
{
    uint32_t kept = 0, count = prefix_table_count(table);
    for (uint32_t i = 0; i < count; i++) {
        struct prefix *prefix = table->sorted[i];
        if (LIST_EMPTY(&prefix->members))
            free(prefix);
        else
            table->sorted[kept++] = prefix;
    }
    atomic_store_explicit(&table->count, kept, memory_order_relaxed);
}

void prefix_table_drop(struct prefix_table *table, struct tracker *tracker)
{
    struct prefix_member *member;
    if (LIST_EMPTY(&tracker->prefixes))
        return;
    while ((member = LIST_FIRST(&tracker->prefixes)) != NULL) {
        LIST_REMOVE(member, of_tracker);
        LIST_REMOVE(member, of_prefix);
        free(member);
    }
    tracker->prefix_count = 0;
    tracker->prefix_bytes = 0;
    drop_unused(table);
}

/* ---- searching ---- */

static void note_members(const struct prefix *prefix, const struct store_key *key,
                         const struct tracker *except, struct worker *self)
{
    const struct prefix_member *member;
    LIST_FOREACH (member, &prefix->members, of_prefix)
        if (member->tracker != except)
            tracker_note(member->tracker, key, member->group, self);
}

/* The last one that is not behind the name is a prefix of it, or shares with it as many bytes as
 * any prefix of it that is in the table can have. */
void prefix_table_note(const struct prefix_table *table, const struct store_key *key,
                       const struct tracker *except, struct worker *self)
{
    struct resp_slice name = {key->data, key->len};
    for (uint32_t place; (place = place_behind(table, name)) > 0;) {
        const struct prefix *prefix = table->sorted[place - 1];
        name.len = common_length(name_of(prefix), name);
        if (name.len < prefix->len)
            continue;
        note_members(prefix, key, except, self);
        if (name.len == 0)
            return;
        name.len--;
    }
}

void prefix_each(const struct tracker *tracker, void (*visit)(void *arg, struct resp_slice prefix),
                 void *arg)
{
    const struct prefix_member *member;
    LIST_FOREACH (member, &tracker->prefixes, of_tracker)
        visit(arg, name_of(member->prefix));
}
