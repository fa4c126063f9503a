/*
 * ZUNION, ZINTER, ZDIFF, their STORE forms, and ZINTERCARD: over sorted sets, and over sets, whose
 * members have the score 1.
 *
 * As in cmd_set_algebra.c, some sources are walked member by member and each member is looked up
 * in others: the smallest source in all others (ZINTER), the first in all others (ZDIFF), each in
 * all others (ZUNION; of many sources, in those that may have it by an index of all members), where
 * a member belongs to the first source that has it. Walks and look-ups
 * follow the order of the members' hashes. Results are collected in steps and sorted at the end;
 * to be stored, they may go to a bulk load as there.
 */
#include "server/commands/cmd_zset_algebra.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/commands/commands.h"
#include "server/commands/cmd_zset.h"
#include "server/types/member_tree.h"
#include "server/types/set.h"
#include "server/types/zset_order.h"
#include "server/exec/collector_sort.h"
#include "server/exec/keyspace.h"
#include "server/exec/long_run.h"
#include "server/core/call.h"

enum operation { INTERSECTION, UNION, DIFFERENCE };
enum aggregate { AGGREGATE_SUM, AGGREGATE_MIN, AGGREGATE_MAX };

struct source {
    struct members members;
    double weight;
    bool is_set;
    uint32_t position; /* among the keys */
};

struct algebra {
    struct call *call;
    enum operation operation;
    enum aggregate aggregate;
    size_t count_at; /* position of the argument numkeys */
    bool is_stored, is_counted, with_scores;
    uint64_t limit; /* ZINTERCARD: stop at this count */
    uint32_t count;
    struct source *sources; /* ascending by size, except for differences */
    bool are_kept;          /* packed ones were copied, so that others may have their turns */
    struct collector *collector;
};

/* ---- collected pairs: score, length, member ---- */

struct collected_head {
    double score;
    uint64_t len;
};

enum store_result zset_collect_pair(struct collector *collector, const struct zset_pair *pair)
{
    struct collected_head head = {pair->score, pair->member.len};
    resp_raw(&collector->out, (const char *)&head, sizeof(head));
    resp_raw(&collector->out, pair->member.data, pair->member.len);
    collector->count++;
    return collector->out.failed ? STORE_NO_MEMORY : STORE_OK;
}

/* Reads the pair at *at and advances past it. */
static struct zset_pair next_collected(const struct collector *collector, size_t *at)
{
    struct collected_head head;
    memcpy(&head, collector->out.data + *at, sizeof(head));
    struct zset_pair pair = {{collector->out.data + *at + sizeof(head), head.len}, head.score};
    *at += sizeof(head) + head.len;
    assert(*at <= collector->out.len);
    return pair;
}

/* All pairs, if none of them is in a bulk load. */
static enum store_result collected_pairs(struct call *call, const struct collector *collector,
                                         struct zset_pair **pairs)
{
    size_t at = 0;
    *pairs = store_alloc(call->txn, (collector->count + 1) * sizeof(**pairs));
    if (*pairs == NULL)
        return STORE_NO_MEMORY;
    for (uint64_t i = 0; i < collector->count; i++)
        (*pairs)[i] = next_collected(collector, &at);
    assert(at == collector->out.len);
    return STORE_OK;
}

static int by_order(const void *a, const void *b)
{
    return zset_compare(a, b);
}

/* ---- storing them ---- */

/* Adds the collected pairs to the bulk load. */
static enum store_result fill(struct call *call, struct collector *collector)
{
    struct zset zset = zset_new(call, collector->build.to, STORE_NO_EXPIRY);
    if (collector->build.type != 0)
        zset.type = collector->build.type;
    enum store_result result =
        store_bulk_load_tree(call->txn, collector->build.bulk_load, 0, &zset.order);
    if (result == STORE_OK)
        result = store_bulk_load_tree(call->txn, collector->build.bulk_load, 1, &zset.by_member);
    for (size_t at = 0; at < collector->out.len && result == STORE_OK;) {
        struct zset_pair pair = next_collected(collector, &at);
        result = zset_add(&zset, &pair);
    }
    collector->build.filled_type = zset.type;
    return result;
}

enum store_result zset_build(struct call *call, struct collector *collector,
                             const struct store_key *to)
{
    return collector_build(call, collector, to, 2, false, fill);
}

static enum store_result put_built(struct call *call, const struct collector *collector,
                                   struct zset *zset)
{
    struct store_item item;
    enum store_result result = collector_put_built(call, collector, &item);
    return result == STORE_OK ? zset_open(call, zset->key, &item, zset) : result;
}

static enum store_result add_collected(struct call *call, const struct collector *collector,
                                       struct zset *zset)
{
    struct zset_pair *pairs;
    enum store_result result = collected_pairs(call, collector, &pairs);
    if (result == STORE_OK)
        qsort(pairs, collector->count, sizeof(*pairs), by_order);
    for (uint64_t i = 0; i < collector->count && result == STORE_OK; i++)
        result = zset_add(zset, &pairs[i]);
    return result;
}

enum store_result zset_store(struct call *call, struct collector *collector,
                             const struct store_key *to, const char *event)
{
    struct store_item item;
    struct zset zset = zset_new(call, to, STORE_NO_EXPIRY);
    enum store_result result = collector_build(call, collector, to, 2, true, fill);
    if (result != STORE_OK)
        return result;
    resp_integer(call->reply, (int64_t)collector->count);
    if (collector->count == 0)
        return call_delete(call, to);
    result = store_get(call->txn, to, &item);
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    bool exists = result == STORE_OK;
    result = collector->build.bulk_load != NULL ? put_built(call, collector, &zset)
                                                : add_collected(call, collector, &zset);
    zset.exists = exists;
    return result == STORE_OK ? zset_changed(&zset, event) : result;
}

/* ---- membership of the result ---- */

static enum store_result weighted(const struct source *source, struct resp_slice value,
                                  double *score)
{
    *score = 1;
    if (!source->is_set && !zset_score_parse(value, score))
        return STORE_DAMAGED;
    *score *= source->weight;
    return STORE_OK;
}

/* Results of 0 * infinity, or of adding opposite infinities. */
static double zero_if_nan(double score)
{
    return isnan(score) ? 0 : score;
}

/* As in Redis: in an intersection the weighted score of a later source may be nan, which SUM turns
 * into 0 and the others ignore. In a union it becomes 0 by itself. */
static double combine(const struct algebra *algebra, double a, double b)
{
    if (algebra->operation == UNION)
        b = zero_if_nan(b);
    if (algebra->aggregate == AGGREGATE_SUM)
        return zero_if_nan(a + b);
    bool is_better = algebra->aggregate == AGGREGATE_MIN ? b < a : b > a;
    return is_better ? b : a;
}

/* The score in source `index` of a member found in source collector->source with `value`. */
static enum store_result look_up(struct algebra *algebra, uint32_t index, struct resp_slice name,
                                 struct resp_slice value, double *score, bool *found)
{
    const struct source *walked = &algebra->sources[algebra->collector->source];
    struct source *other = &algebra->sources[index];
    assert(index < algebra->count && index != algebra->collector->source);
    *found = true;
    if (call_same_name(walked->members.key, other->members.key)) /* name would be lost */
        return weighted(other, value, score);
    enum store_result result = members_get(algebra->call, &other->members, name, &value, found);
    return result == STORE_OK && *found ? weighted(other, value, score) : result;
}

/* Others have their turns between many look-ups of one member, if its name and value outlive that.
 */
static bool may_yield(const struct algebra *algebra, struct resp_slice *name,
                      struct resp_slice *value)
{
    const struct source *walked = &algebra->sources[algebra->collector->source];
    if (!algebra->are_kept || algebra->count <= YIELD_EVERY)
        return false;
    if (walked->members.tree == NULL)
        return true;
    char *copy = store_alloc(algebra->call->txn, name->len + value->len + 1);
    if (copy == NULL)
        return false;
    *name = (struct resp_slice){memcpy(copy, name->data, name->len), name->len};
    *value = (struct resp_slice){memcpy(copy + name->len, value->data, value->len), value->len};
    return true;
}

/* The sources that may have the member. */
static struct source_walk candidates(const struct algebra *algebra, struct resp_slice name)
{
    const struct source_index *index = algebra->collector->sources;
    return source_walk_begin(index, index == NULL ? 0 : member_hash(algebra->call, name));
}

/* *yes: the pair's member, found in the current source with `value`, belongs to the result, and the
 * pair's score combines all sources. The member may be moved to where it remains valid. */
static enum store_result judge(struct algebra *algebra, struct resp_slice value,
                               struct zset_pair *pair, bool *yes)
{
    uint32_t walked = algebra->collector->source;
    struct source_walk walk = candidates(algebra, pair->member);
    bool yields = may_yield(algebra, &pair->member, &value);
    enum store_result result = weighted(&algebra->sources[walked], value, &pair->score);
    pair->score = zero_if_nan(pair->score);
    *yes = true;
    for (uint32_t i;
         *yes && result == STORE_OK && (i = source_walk_next(&walk)) < algebra->count;) {
        double other;
        bool found;
        if (i == walked)
            continue;
        result = look_up(algebra, i, pair->member, value, &other, &found);
        if (result != STORE_OK)
            return result;
        if (algebra->operation == DIFFERENCE)
            *yes = !found;
        else if (algebra->operation == UNION)
            *yes = !found || i > walked;
        else
            *yes = found;
        if (found && algebra->operation != DIFFERENCE)
            pair->score = combine(algebra, pair->score, other);
        if (yields)
            result = call_yield_at(algebra->call, i);
    }
    return result;
}

static enum store_result visit(void *arg, struct resp_slice name, struct resp_slice value)
{
    struct algebra *algebra = arg;
    struct zset_pair pair = {.member = name};
    bool yes;
    if (algebra->is_counted && algebra->collector->count == algebra->limit)
        return STORE_ABSENT;
    enum store_result result = judge(algebra, value, &pair, &yes);
    if (result != STORE_OK || !yes)
        return result;
    if (!algebra->is_counted)
        return zset_collect_pair(algebra->collector, &pair);
    algebra->collector->count++;
    return STORE_OK;
}

static enum store_result walk(struct algebra *algebra)
{
    struct collector *collector = algebra->collector;
    uint32_t walks = algebra->operation == UNION ? algebra->count : 1;
    while (collector->source < walks) {
        struct source *source = &algebra->sources[collector->source];
        enum store_result result = members_each(algebra->call, &source->members, collector,
                                                !source->is_set, visit, algebra);
        if (result != STORE_OK)
            return result;
        collector_next_source(collector);
        if (algebra->are_kept && collector->source < walks)
            result = members_between_sources(algebra->call, collector, algebra->count);
        if (result != STORE_OK)
            return result;
    }
    return STORE_OK;
}

/* ---- the sources ---- */

static enum store_result find_source(struct call *call, const struct store_key *key,
                                     struct source *source)
{
    struct store_item item;
    struct zset zset = zset_new(call, key, STORE_NO_EXPIRY);
    enum store_result result = call_find(call, key, &item);
    source->members = zset_members(&zset);
    if (result != STORE_OK)
        return result == STORE_ABSENT ? STORE_OK : result;
    source->is_set = item_type(&item) == TYPE_SET;
    if (source->is_set)
        return members_open(call, key, &item, &source->members);
    if (item_type(&item) != TYPE_ZSET) {
        call_wrong_type(call);
        return STORE_ANSWERED;
    }
    result = zset_open(call, key, &item, &zset);
    source->members = zset_members(&zset);
    return result;
}

static int by_size(const void *a, const void *b)
{
    const struct source *x = a, *y = b;
    uint64_t n = members_count(&x->members), m = members_count(&y->members);
    if (n != m)
        return n < m ? -1 : 1;
    return x->position < y->position ? -1 : 1; /* reruns must use the same order */
}

static bool read_count(struct algebra *algebra)
{
    struct call *call = algebra->call;
    int64_t count;
    if (!call_int64(call, call->argv[algebra->count_at], &count))
        return false;
    if (count < 1) {
        resp_errorf(call->reply, "ERR at least 1 input key is needed for '%s' command",
                    call->command->name);
        return false;
    }
    if ((uint64_t)count > call->argc - algebra->count_at - 1)
        return call_syntax_error(call);
    algebra->count = (uint32_t)count;
    return true;
}

static enum store_result keep(struct algebra *algebra, uint32_t i)
{
    return members_keep(algebra->call, &algebra->sources[i].members);
}

/* Finds the sources at the keys. */
static enum store_result find_sources(struct algebra *algebra)
{
    struct call *call = algebra->call;
    const struct store_key *keys = call->keys + algebra->is_stored;
    assert(algebra->count + algebra->is_stored == call->key_count); /* all sources are locked */
    algebra->sources = store_alloc(call->txn, algebra->count * sizeof(*algebra->sources));
    if (algebra->sources == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = STORE_OK;
    bool has_tree = false, are_many = algebra->count > FEW_SOURCES;
    for (uint32_t i = 0; i < algebra->count && result == STORE_OK; i++) {
        algebra->sources[i] = (struct source){.weight = 1, .position = i};
        result = find_source(call, &keys[i], &algebra->sources[i]);
        has_tree = has_tree || algebra->sources[i].members.tree != NULL;
        if (result == STORE_OK && are_many)
            result = keep(algebra, i);
        if (result == STORE_OK && are_many)
            result = call_yield_at(call, i);
    }
    algebra->are_kept = has_tree || are_many;
    for (uint32_t i = 0; has_tree && !are_many && i < algebra->count && result == STORE_OK; i++)
        result = keep(algebra, i);
    return result;
}

/* ---- options ---- */

static bool read_weights(struct algebra *algebra, size_t at)
{
    for (uint32_t i = 0; i < algebra->count; i++) {
        struct resp_slice arg = algebra->call->argv[at + i];
        if (!resp_read_double(arg.data, arg.len, &algebra->sources[i].weight)) {
            resp_error(algebra->call->reply, "ERR weight value is not a float");
            return false;
        }
    }
    return true;
}

static bool read_aggregate(struct algebra *algebra, struct resp_slice arg)
{
    static const char *const names[] = {"sum", "min", "max"};
    for (uint32_t i = 0; i < 3; i++) {
        if (slice_is(arg, names[i])) {
            algebra->aggregate = (enum aggregate)i;
            return true;
        }
    }
    return call_syntax_error(algebra->call);
}

static bool read_limit(struct algebra *algebra, struct resp_slice arg)
{
    int64_t limit;
    if (!call_int64_from(algebra->call, arg, 0, "ERR LIMIT can't be negative", &limit))
        return false;
    algebra->limit = limit == 0 ? UINT64_MAX : (uint64_t)limit;
    return true;
}

static bool read_options(struct algebra *algebra)
{
    struct call *call = algebra->call;
    bool combines = algebra->operation != DIFFERENCE && !algebra->is_counted;
    size_t i = algebra->count_at + 1 + algebra->count;
    while (i < call->argc) {
        struct resp_slice arg = call->argv[i];
        size_t left = call->argc - i;
        if (combines && left > algebra->count && slice_is(arg, "weights")) {
            if (!read_weights(algebra, i + 1))
                return false;
            i += algebra->count + 1;
        } else if (combines && left > 1 && slice_is(arg, "aggregate")) {
            if (!read_aggregate(algebra, call->argv[i + 1]))
                return false;
            i += 2;
        } else if (!algebra->is_stored && !algebra->is_counted && slice_is(arg, "withscores")) {
            algebra->with_scores = true;
            i++;
        } else if (algebra->is_counted && left > 1 && slice_is(arg, "limit")) {
            if (!read_limit(algebra, call->argv[i + 1]))
                return false;
            i += 2;
        } else {
            return call_syntax_error(call);
        }
    }
    return true;
}

/* ---- the commands ---- */

/* Collects the result. */
static enum store_result compute(struct algebra *algebra)
{
    algebra->limit = UINT64_MAX;
    if (!read_count(algebra))
        return STORE_ANSWERED;
    enum store_result result = find_sources(algebra);
    if (result != STORE_OK)
        return result;
    if (!read_options(algebra)) /* as in Redis, after the types of the keys were checked */
        return STORE_ANSWERED;
    if (algebra->operation != DIFFERENCE)
        qsort(algebra->sources, algebra->count, sizeof(*algebra->sources), by_size);
    algebra->collector = collector_get(algebra->call);
    if (algebra->collector == NULL)
        return STORE_NO_MEMORY;
    if (algebra->operation == UNION && algebra->count > FEW_SOURCES)
        result = members_index(algebra->call, algebra->collector, &algebra->sources->members,
                               sizeof *algebra->sources, algebra->count);
    if (result == STORE_OK && algebra->is_stored)
        result = zset_build(algebra->call, algebra->collector, algebra->call->keys);
    return result == STORE_OK ? walk(algebra) : result;
}

static size_t next_place(const struct collector *collector, size_t at)
{
    next_collected(collector, &at);
    return at;
}

static int by_place(const struct collector *collector, size_t a, size_t b)
{
    struct zset_pair x = next_collected(collector, &a), y = next_collected(collector, &b);
    return zset_compare(&x, &y);
}

/* Continues from collector->at, which the walk has left at 0. */
static enum store_result reply_pairs(struct algebra *algebra)
{
    struct call *call = algebra->call;
    struct collector *collector = algebra->collector;
    struct resp_writer *out = &collector->reordered;
    enum zset_form form = zset_form(call, algebra->with_scores);
    size_t enough = COLLECT_STEP_BYTES + sizeof(uint64_t) * algebra->count; /* see members.h */
    static const struct collector_entries entries = {next_place, by_place};
    enum store_result result = collector_sort(call, collector, &entries);
    for (size_t begun = out->len; result == STORE_OK && collector->at < collector->count;) {
        size_t at = collector->ranks[collector->at++];
        struct zset_pair pair = next_collected(collector, &at);
        if (form == ZSET_PAIRS)
            resp_array(out, 2);
        resp_bulk(out, pair.member.data, pair.member.len);
        if (form != ZSET_MEMBERS)
            resp_double(out, pair.score);
        if (out->len - begun >= enough && !collector->is_nested)
            return reply_spill_step(call, &collector->spill, out);
        if (collector->at % YIELD_EVERY == 0)
            result = collector_yield(call, collector);
    }
    if (result != STORE_OK)
        return result;
    zset_put_head(call->reply, collector->count, form);
    return reply_spill_reply(call, &collector->spill, out);
}

/* `event`: of the storing form; NULL: the result is the reply. */
static enum store_result run(struct call *call, enum operation operation, const char *event)
{
    struct algebra algebra = {.call = call,
                              .operation = operation,
                              .is_stored = event != NULL,
                              .count_at = event != NULL ? 2 : 1};
    enum store_result result = compute(&algebra);
    if (result != STORE_OK)
        return result;
    return event != NULL ? zset_store(call, algebra.collector, call->keys, event)
                         : reply_pairs(&algebra);
}

enum store_result cmd_zunion(struct call *call)
{
    return run(call, UNION, NULL);
}

enum store_result cmd_zinter(struct call *call)
{
    return run(call, INTERSECTION, NULL);
}

enum store_result cmd_zdiff(struct call *call)
{
    return run(call, DIFFERENCE, NULL);
}

enum store_result cmd_zunionstore(struct call *call)
{
    return run(call, UNION, "zunionstore");
}

enum store_result cmd_zinterstore(struct call *call)
{
    return run(call, INTERSECTION, "zinterstore");
}

enum store_result cmd_zdiffstore(struct call *call)
{
    return run(call, DIFFERENCE, "zdiffstore");
}

enum store_result cmd_zintercard(struct call *call)
{
    struct algebra algebra = {
        .call = call, .operation = INTERSECTION, .is_counted = true, .count_at = 1};
    enum store_result result = compute(&algebra);
    if (result == STORE_OK)
        resp_integer(call->reply, (int64_t)algebra.collector->count);
    return result;
}
