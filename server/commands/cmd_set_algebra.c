/*
 * SINTER, SUNION, SDIFF, their STORE forms, and SINTERCARD.
 *
 * All walk some of the sets member by member and look each member up in others: the smallest set
 * in all others (SINTER), the first in all others (SDIFF), each in those before it (SUNION; of many
 * sets, in those that may have it by an index of all members: source_index.h). Large sets are all
 * ordered by the same hash, so these look-ups access their pages in order, too.
 * Results are collected in steps. A result to be stored is written when it is complete, or, if it
 * is long, to a bulk load meanwhile.
 *
 * Like Redis, SUNION of sets of integers replies in the order of the numbers if there are few
 * enough to be such a set, too.
 */
#include "server/commands/commands.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "server/exec/collector.h"
#include "server/exec/long_run.h"
#include "server/types/member_tree.h"
#include "server/types/set.h"
#include "server/exec/keyspace.h"
#include "server/pubsub/notify.h"
#include "server/core/call.h"

#define SORTED_MAX 65536 /* members of all sources; more are never sorted */

enum operation { INTERSECTION, UNION, DIFFERENCE };

struct algebra {
    struct call *call;
    enum operation operation;
    struct members *sets; /* intersections: ascending by size */
    uint32_t count;
    uint64_t limit;             /* SINTERCARD: stop at this count */
    bool is_stored, is_counted; /* collects members to store, or nothing; else a reply */
    bool is_sorted;             /* collects members to sort, then a reply */
    bool has_missing;
    bool are_kept; /* packed sets were copied, so that others may have their turns */
    struct collector *collector;
};

/* ---- membership of the result ---- */

/* Whether set `index` has a member found in set collector->source, which stays valid. */
static enum store_result other_has(struct algebra *algebra, uint32_t index, struct resp_slice name,
                                   bool *found)
{
    const struct members *source = &algebra->sets[algebra->collector->source];
    struct members *other = &algebra->sets[index];
    assert(index < algebra->count && index != algebra->collector->source);
    *found = true;
    if (call_same_name(source->key, other->key)) /* the lookup would invalidate `name` */
        return STORE_OK;
    return set_has(algebra->call, other, name, found);
}

/* Others have their turns between many look-ups of one member, if *name outlives that. */
static bool may_yield(const struct algebra *algebra, struct resp_slice *name)
{
    const struct members *source = &algebra->sets[algebra->collector->source];
    if (!algebra->are_kept || algebra->count <= YIELD_EVERY)
        return false;
    if (source->tree == NULL)
        return true;
    char *copy = store_alloc(algebra->call->txn, name->len + 1);
    if (copy == NULL)
        return false;
    *name = (struct resp_slice){memcpy(copy, name->data, name->len), name->len};
    return true;
}

/* Looks the member up in the sets from `begin` to `end`, as long as it is `wanted` in each. */
static enum store_result look_up(struct algebra *algebra, struct resp_slice *name, uint32_t begin,
                                 uint32_t end, bool wanted, bool *yes)
{
    bool yields = may_yield(algebra, name);
    enum store_result result = STORE_OK;
    *yes = true;
    for (uint32_t i = begin; i < end && *yes && result == STORE_OK; i++) {
        bool found;
        result = other_has(algebra, i, *name, &found);
        *yes = result != STORE_OK || found == wanted;
        if (result == STORE_OK && yields)
            result = call_yield_at(algebra->call, i);
    }
    return result;
}

/* Whether none of the earlier sets that may have the member has it. */
static enum store_result is_first(struct algebra *algebra, struct resp_slice name, bool *yes)
{
    const struct collector *collector = algebra->collector;
    struct source_walk walk =
        source_walk_begin(collector->sources, member_hash(algebra->call, name));
    *yes = true;
    for (uint32_t i; *yes && (i = source_walk_next(&walk)) < collector->source;) {
        bool found;
        enum store_result result = other_has(algebra, i, name, &found);
        if (result != STORE_OK)
            return result;
        *yes = !found;
    }
    return STORE_OK;
}

/* *name may be moved to where it remains valid. */
static enum store_result belongs(struct algebra *algebra, struct resp_slice *name, bool *yes)
{
    uint32_t source = algebra->collector->source;
    bool wanted = algebra->operation == INTERSECTION;
    if (algebra->operation != UNION)
        return look_up(algebra, name, source + 1, algebra->count, wanted, yes);
    if (algebra->collector->sources != NULL)
        return is_first(algebra, *name, yes);
    return look_up(algebra, name, 0, source, false, yes);
}

static enum store_result visit(void *arg, struct resp_slice name, struct resp_slice value)
{
    struct algebra *algebra = arg;
    struct collector *collector = algebra->collector;
    bool yes;
    (void)value;
    if (algebra->is_counted && collector->count == algebra->limit)
        return STORE_ABSENT;
    enum store_result result = belongs(algebra, &name, &yes);
    if (result != STORE_OK || !yes)
        return result;
    collector->count++;
    if (algebra->is_stored || algebra->is_sorted) {
        uint64_t len = name.len;
        resp_raw(&collector->out, (const char *)&len, sizeof len);
        resp_raw(&collector->out, name.data, name.len);
    } else if (!algebra->is_counted) {
        resp_bulk(&collector->out, name.data, name.len);
    }
    return collector->out.failed ? STORE_NO_MEMORY : STORE_OK;
}

static enum store_result walk(struct algebra *algebra)
{
    struct collector *collector = algebra->collector;
    uint32_t sources = algebra->operation == UNION ? algebra->count : 1;
    if (algebra->has_missing && algebra->operation == INTERSECTION)
        return STORE_OK;
    while (collector->source < sources) {
        enum store_result result = members_each(algebra->call, &algebra->sets[collector->source],
                                                collector, false, visit, algebra);
        if (result != STORE_OK)
            return result;
        collector_next_source(collector);
        if (algebra->are_kept && collector->source < sources)
            result = members_between_sources(algebra->call, collector, algebra->count);
        if (result != STORE_OK)
            return result;
    }
    return STORE_OK;
}

/* ---- the sets ---- */

static int by_size(const void *a, const void *b)
{
    const struct members *x = a, *y = b;
    uint64_t n = members_count(x), m = members_count(y);
    if (n != m)
        return n < m ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key; /* reruns must use the same order */
}

/* Whether the union is by number, if it is not too large. */
static bool is_of_integers(const struct algebra *algebra)
{
    uint64_t members = 0;
    for (uint32_t i = 0; i < algebra->count; i++) {
        const struct members *set = &algebra->sets[i];
        if (set->exists && (set->type & ITEM_INTEGERS) == 0)
            return false;
        members += members_count(set);
    }
    return members <= SORTED_MAX;
}

static enum store_result keep(struct algebra *algebra, uint32_t i)
{
    return members_keep(algebra->call, &algebra->sets[i]);
}

/* Finds the sets at the keys from `first` on. */
static enum store_result find_sets(struct algebra *algebra, uint32_t first)
{
    struct call *call = algebra->call;
    assert(call->key_count > first); /* by arity, or by the argument numkeys */
    algebra->count = call->key_count - first;
    algebra->sets = store_alloc(call->txn, algebra->count * sizeof *algebra->sets);
    if (algebra->sets == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = STORE_OK;
    bool has_tree = false, are_many = algebra->count > FEW_SOURCES;
    for (uint32_t i = 0; i < algebra->count && result == STORE_OK; i++) {
        result = set_find(call, &call->keys[first + i], &algebra->sets[i]);
        if (result == STORE_OK && are_many)
            result = keep(algebra, i);
        if (result == STORE_OK && are_many)
            result = call_yield_at(call, i);
        if (result != STORE_OK)
            return result;
        algebra->has_missing |= !algebra->sets[i].exists;
        has_tree = has_tree || algebra->sets[i].tree != NULL;
    }
    for (uint32_t i = 0; has_tree && !are_many && i < algebra->count && result == STORE_OK; i++)
        result = keep(algebra, i);
    algebra->are_kept = has_tree || are_many;
    if (result != STORE_OK)
        return result;
    if (algebra->operation == INTERSECTION)
        qsort(algebra->sets, algebra->count, sizeof *algebra->sets, by_size);
    algebra->is_sorted =
        algebra->operation == UNION && !algebra->is_stored && is_of_integers(algebra);
    return STORE_OK;
}

/* Iterates over the collected members. */
static struct resp_slice next_collected(const struct collector *collector, size_t *at)
{
    uint64_t len;
    memcpy(&len, collector->out.data + *at, sizeof len);
    struct resp_slice member = {collector->out.data + *at + sizeof len, len};
    *at += sizeof len + len;
    assert(*at <= collector->out.len);
    return member;
}

static enum store_result add_collected(struct call *call, const struct collector *collector,
                                       struct members *set)
{
    enum store_result result = STORE_OK;
    for (size_t at = 0; at < collector->out.len && result == STORE_OK;) {
        bool added;
        struct resp_slice member = next_collected(collector, &at);
        if (members_count(set) == 0)
            set_expect(call, set, member, 1);
        result = set_add(call, set, member, &added);
    }
    return result;
}

/* Adds the collected members to the bulk load. */
static enum store_result fill(struct call *call, struct collector *collector)
{
    struct members set;
    members_new(&set, call->keys, TYPE_SET);
    if (collector->build.type != 0)
        set.type = collector->build.type;
    enum store_result result =
        store_bulk_load_tree(call->txn, collector->build.bulk_load, 0, &set.tree);
    if (result == STORE_OK)
        result = add_collected(call, collector, &set);
    collector->build.filled_type = set.type;
    return result;
}

/* Collects the result. */
static enum store_result compute(struct algebra *algebra, uint32_t first)
{
    struct call *call = algebra->call;
    enum store_result result = find_sets(algebra, first);
    if (result != STORE_OK)
        return result;
    struct collector *collector = algebra->collector = collector_get(call);
    if (collector == NULL)
        return STORE_NO_MEMORY;
    collector->is_tail = !algebra->is_stored && !algebra->is_sorted;
    if (algebra->operation == UNION && algebra->count > FEW_SOURCES)
        result =
            members_index(call, collector, algebra->sets, sizeof *algebra->sets, algebra->count);
    if (result == STORE_OK && algebra->is_stored)
        result = collector_build(call, collector, call->keys, 1, false, fill);
    if (result == STORE_OK)
        result = walk(algebra);
    if (result == STORE_OK && algebra->is_stored)
        result = collector_build(call, collector, call->keys, 1, true, fill);
    return result;
}

/* ---- replying ---- */

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static enum store_result reply_sorted(struct call *call, const struct collector *collector)
{
    int64_t *numbers = store_alloc(call->txn, (collector->count + 1) * sizeof *numbers);
    if (numbers == NULL)
        return STORE_NO_MEMORY;
    size_t at = 0;
    for (uint64_t i = 0; i < collector->count; i++) {
        struct resp_slice member = next_collected(collector, &at);
        if (!resp_read_int64(member.data, member.len, &numbers[i]))
            return STORE_DAMAGED;
    }
    assert(at == collector->out.len); /* no part of it was sent, or added to a bulk load */
    if (set_may_be_integers(call, collector->count))
        qsort(numbers, collector->count, sizeof *numbers, by_number);
    for (uint64_t i = 0; i < collector->count; i++)
        resp_bulk_integer(call->reply, numbers[i]);
    return STORE_OK;
}

static enum store_result reply(struct call *call, enum operation operation)
{
    struct algebra algebra = {.call = call, .operation = operation};
    enum store_result result = compute(&algebra, 0);
    if (result != STORE_OK)
        return result;
    resp_set(call->reply, algebra.collector->count);
    return algebra.is_sorted ? reply_sorted(call, algebra.collector)
                             : collector_reply(call, algebra.collector);
}

enum store_result cmd_sinter(struct call *call)
{
    return reply(call, INTERSECTION);
}

enum store_result cmd_sunion(struct call *call)
{
    return reply(call, UNION);
}

enum store_result cmd_sdiff(struct call *call)
{
    return reply(call, DIFFERENCE);
}

static bool card_options(struct call *call, uint64_t *limit)
{
    int64_t keys, number;
    *limit = UINT64_MAX;
    if (!resp_read_int64(call->argv[1].data, call->argv[1].len, &keys) || keys < 1) {
        resp_error(call->reply, "ERR numkeys should be greater than 0");
        return false;
    }
    if ((uint64_t)keys > call->argc - 2) {
        resp_error(call->reply, "ERR Number of keys can't be greater than number of args");
        return false;
    }
    for (size_t i = 2 + (size_t)keys; i < call->argc; i += 2) {
        if (!slice_is(call->argv[i], "limit") || i + 1 == call->argc)
            return call_syntax_error(call);
        struct resp_slice value = call->argv[i + 1];
        if (!resp_read_int64(value.data, value.len, &number) || number < 0) {
            resp_error(call->reply, "ERR LIMIT can't be negative");
            return false;
        }
        *limit = number == 0 ? UINT64_MAX : (uint64_t)number;
    }
    return true;
}

enum store_result cmd_sintercard(struct call *call)
{
    struct algebra algebra = {.call = call, .operation = INTERSECTION, .is_counted = true};
    if (!card_options(call, &algebra.limit))
        return STORE_OK;
    enum store_result result = compute(&algebra, 0);
    if (result == STORE_OK)
        resp_integer(call->reply, (int64_t)algebra.collector->count);
    return result;
}

/* ---- storing ---- */

static enum store_result put_built(struct call *call, const struct collector *collector,
                                   struct members *set)
{
    struct store_item item;
    enum store_result result = collector_put_built(call, collector, &item);
    if (result == STORE_OK)
        result = members_open(call, call->keys, &item, set);
    set->is_changed = true;
    return result;
}

static enum store_result write_result(struct call *call, const struct collector *collector,
                                      const char *event)
{
    struct members set;
    struct store_item old;
    enum store_result result = store_get(call->txn, call->keys, &old);
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    bool exists = result == STORE_OK;
    members_new(&set, call->keys, TYPE_SET);
    result = collector->build.bulk_load != NULL ? put_built(call, collector, &set)
                                                : add_collected(call, collector, &set);
    set.exists = exists;
    return result == STORE_OK ? members_write(call, &set, NOTIFY_SET, event) : result;
}

static enum store_result store(struct call *call, enum operation operation, const char *event)
{
    struct algebra algebra = {.call = call, .operation = operation, .is_stored = true};
    enum store_result result = compute(&algebra, 1);
    if (result != STORE_OK)
        return result;
    const struct collector *collector = algebra.collector;
    result = collector->count == 0 ? call_delete(call, call->keys)
                                   : write_result(call, collector, event);
    resp_integer(call->reply, (int64_t)collector->count);
    return result;
}

enum store_result cmd_sinterstore(struct call *call)
{
    return store(call, INTERSECTION, "sinterstore");
}

enum store_result cmd_sunionstore(struct call *call)
{
    return store(call, UNION, "sunionstore");
}

enum store_result cmd_sdiffstore(struct call *call)
{
    return store(call, DIFFERENCE, "sdiffstore");
}
