/*
 * GEOSEARCH, GEOSEARCHSTORE, and the older GEORADIUS and GEORADIUSBYMEMBER.
 *
 * A search walks some ranges of scores (geo.h) and collects the members inside the shape, in steps.
 * Results in no order are written as the reply, or the pairs to be stored, at once. Results to be
 * sorted are collected as entries; whenever they have become many, those that COUNT does not want
 * are dropped. Equal distances keep the order of the walk.
 */
#include "server/commands/cmd_geo.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/commands/cmd_zset_algebra.h"
#include "server/commands/commands.h"
#include "server/core/call.h"
#include "server/exec/collector_sort.h"
#include "server/exec/keyspace.h"
#include "server/exec/long_run.h"

#define PRUNE_BYTES (256 * 1024) /* from here on entries that COUNT does not want are dropped */

enum order { UNSORTED, NEAREST_FIRST, FARTHEST_FIRST };

struct search {
    struct call *call;
    struct zset zset;
    bool is_old; /* GEORADIUS and the like */
    bool has_center, has_member, has_radius;
    struct geo_shape shape;
    bool with_distance, with_hash, with_point;
    enum order order;
    int64_t count; /* 0: all */
    bool takes_any;
    const struct store_key *to; /* NULL: the result is the reply */
    bool stores_distance;
    struct collector *collector;
};

/* ---- arguments ---- */

static enum store_result answered_if_not(bool good)
{
    return good ? STORE_OK : STORE_ANSWERED;
}

static bool read_radius(struct search *search, size_t at)
{
    struct call *call = search->call;
    struct geo_shape *shape = &search->shape;
    if (!call_double(call, call->argv[at], "ERR need numeric radius", &shape->radius))
        return false;
    if (shape->radius < 0) {
        resp_error(call->reply, "ERR radius cannot be negative");
        return false;
    }
    search->has_radius = true;
    return geo_read_unit(call, call->argv[at + 1], &shape->unit);
}

static bool read_box(struct search *search, size_t at)
{
    struct call *call = search->call;
    struct geo_shape *shape = &search->shape;
    if (!call_double(call, call->argv[at], "ERR need numeric width", &shape->width) ||
        !call_double(call, call->argv[at + 1], "ERR need numeric height", &shape->height))
        return false;
    if (shape->width < 0 || shape->height < 0) {
        resp_error(call->reply, "ERR height or width cannot be negative");
        return false;
    }
    shape->is_box = true;
    return geo_read_unit(call, call->argv[at + 2], &shape->unit);
}

static enum store_result find_member(struct search *search, struct resp_slice member)
{
    double score;
    bool found;
    search->has_member = true;
    if (!search->zset.exists)
        return STORE_OK;
    enum store_result result = zset_score(&search->zset, member, &score, &found);
    if (result != STORE_OK)
        return result;
    if (!found) {
        resp_error(search->call->reply, "ERR could not decode requested zset member");
        return STORE_ANSWERED;
    }
    search->shape.center = geo_point_of(score);
    return STORE_OK;
}

static bool read_count(struct search *search, struct resp_slice arg)
{
    if (!call_int64(search->call, arg, &search->count))
        return false;
    if (search->count > 0)
        return true;
    resp_error(search->call->reply, "ERR COUNT must be > 0");
    return false;
}

/* An option without arguments. */
static bool read_word(struct search *search, struct resp_slice arg)
{
    if (slice_is(arg, "withdist"))
        search->with_distance = true;
    else if (slice_is(arg, "withhash"))
        search->with_hash = true;
    else if (slice_is(arg, "withcoord"))
        search->with_point = true;
    else if (slice_is(arg, "any"))
        search->takes_any = true;
    else if (slice_is(arg, "asc"))
        search->order = NEAREST_FIRST;
    else if (slice_is(arg, "desc"))
        search->order = FARTHEST_FIRST;
    else if (!search->is_old && search->to != NULL && slice_is(arg, "storedist"))
        search->stores_distance = true;
    else
        return false;
    return true;
}

/* Of GEORADIUS: where to store the result. The last of these options counts. */
static bool read_destination(struct search *search, struct resp_slice arg)
{
    const struct call *call = search->call;
    bool is_distance = slice_is(arg, "storedist");
    if ((call->command->flags & CMD_STORE_OPTION) == 0 || !(is_distance || slice_is(arg, "store")))
        return false;
    assert(call->key_count == 2);
    search->to = &call->keys[1];
    search->stores_distance = is_distance;
    return true;
}

/* Parses the option at *i and moves *i to its last argument. */
static enum store_result read_option(struct search *search, size_t *i)
{
    struct call *call = search->call;
    struct resp_slice arg = call->argv[*i];
    size_t at = *i + 1, left = call->argc - at;
    bool is_new = !search->is_old;
    if (read_word(search, arg))
        return STORE_OK;
    *i += 1;
    if (left >= 1 && slice_is(arg, "count"))
        return answered_if_not(read_count(search, call->argv[at]));
    if (left >= 1 && search->is_old && read_destination(search, arg))
        return STORE_OK;
    if (left >= 1 && is_new && !search->has_center && slice_is(arg, "frommember"))
        return find_member(search, call->argv[at]);
    *i += 1;
    if (left >= 2 && is_new && !search->has_member && slice_is(arg, "fromlonlat")) {
        search->has_center = true;
        return answered_if_not(geo_read_point(call, &call->argv[at], &search->shape.center));
    }
    if (left >= 2 && is_new && !search->shape.is_box && slice_is(arg, "byradius"))
        return answered_if_not(read_radius(search, at));
    *i += 1;
    if (left >= 3 && is_new && !search->has_radius && slice_is(arg, "bybox"))
        return answered_if_not(read_box(search, at));
    return answered_if_not(call_syntax_error(call));
}

static bool options_fit(const struct search *search)
{
    struct resp_writer *reply = search->call->reply;
    struct resp_slice name = search->call->argv[0];
    int len = (int)name.len;
    if (search->to != NULL && (search->with_distance || search->with_hash || search->with_point))
        resp_errorf(reply, "ERR %s is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
                    search->is_old ? "STORE option in GEORADIUS" : "GEOSEARCHSTORE");
    else if (!search->is_old && !search->has_member && !search->has_center)
        resp_errorf(reply, "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for %.*s",
                    len, name.data);
    else if (!search->is_old && !search->has_radius && !search->shape.is_box)
        resp_errorf(reply, "ERR exactly one of BYRADIUS and BYBOX can be specified for %.*s", len,
                    name.data);
    else if (search->takes_any && search->count == 0)
        resp_error(reply, "ERR the ANY argument requires COUNT argument");
    else
        return true;
    return false;
}

static enum store_result read_options(struct search *search, size_t at)
{
    enum store_result result = STORE_OK;
    for (size_t i = at; i < search->call->argc && result == STORE_OK; i++)
        result = read_option(search, &i);
    if (result == STORE_OK)
        result = answered_if_not(options_fit(search));
    if (search->count > 0 && search->order == UNSORTED && !search->takes_any)
        search->order = NEAREST_FIRST;
    if (search->to != NULL && (search->count == 0 || search->takes_any))
        search->order = UNSORTED; /* all of the results are stored, in the order of their scores */
    return result;
}

/* ---- entries: what is to be sorted ---- */

struct entry_head {
    double place; /* the distance; negative if the farthest are first */
    double score;
    uint64_t len; /* of the member, which follows */
};

struct entry {
    struct entry_head head;
    struct resp_slice member;
};

static struct entry entry_at(const struct resp_writer *entries, size_t at)
{
    struct entry entry;
    assert(at + sizeof entry.head <= entries->len);
    memcpy(&entry.head, entries->data + at, sizeof entry.head);
    entry.member = (struct resp_slice){entries->data + at + sizeof entry.head, entry.head.len};
    assert(at + sizeof entry.head + entry.member.len <= entries->len);
    return entry;
}

static size_t next_entry(const struct collector *collector, size_t at)
{
    struct entry entry = entry_at(&collector->out, at);
    return at + sizeof entry.head + entry.member.len;
}

static double place_at(const struct collector *collector, size_t at)
{
    double place;
    memcpy(&place, collector->out.data + at + offsetof(struct entry_head, place), sizeof place);
    return isnan(place) ? -INFINITY : place;
}

static int by_place(const struct collector *collector, size_t a, size_t b)
{
    double x = place_at(collector, a), y = place_at(collector, b);
    if (x != y)
        return x < y ? -1 : 1;
    return a < b ? -1 : a > b;
}

static enum store_result sort(struct search *search)
{
    static const struct collector_entries entries = {next_entry, by_place};
    return collector_sort(search->call, search->collector, &entries);
}

/* COUNT does not want more; 0: it wants all. */
static uint64_t wanted_entries(const struct search *search)
{
    return search->order == UNSORTED || search->takes_any ? 0 : (uint64_t)search->count;
}

static bool prune_is_due(const struct search *search)
{
    const struct collector *collector = search->collector;
    uint64_t wanted = wanted_entries(search);
    return wanted > 0 && collector->count / 2 >= wanted && collector->out.len >= PRUNE_BYTES;
}

/* Copies the wanted entries, in order, to `reordered`. */
static enum store_result copy_wanted(struct search *search, uint64_t wanted)
{
    struct collector *collector = search->collector;
    enum store_result result = STORE_OK;
    while (collector->chosen < wanted && result == STORE_OK) {
        size_t at = collector->ranks[collector->chosen++];
        resp_raw(&collector->reordered, collector->out.data + at, next_entry(collector, at) - at);
        if (collector->reordered.failed)
            return STORE_NO_MEMORY;
        if (collector->chosen % YIELD_EVERY == 0)
            result = collector_yield(search->call, collector);
    }
    return result;
}

/* Drops the entries that COUNT does not want. The others are in order then, so that equal distances
 * still are in the order of the walk. */
static enum store_result prune(struct search *search)
{
    struct collector *collector = search->collector;
    uint64_t wanted = wanted_entries(search);
    enum store_result result = sort(search);
    if (result == STORE_OK)
        result = copy_wanted(search, wanted);
    if (result != STORE_OK)
        return result;
    collector->farthest = place_at(collector, collector->ranks[wanted - 1]);
    collector_sort_end(collector);
    struct resp_writer kept = collector->reordered;
    collector->reordered = collector->out;
    collector->out = kept;
    resp_truncate(&collector->reordered, 0);
    collector->count = wanted;
    collector->chosen = 0;
    collector_begin_step(collector);
    return STORE_OK;
}

static enum store_result collect_entry(struct search *search, const struct zset_pair *pair,
                                       double distance)
{
    struct collector *collector = search->collector;
    struct resp_writer *out = &collector->out;
    double place = search->order == FARTHEST_FIRST ? -distance : distance;
    struct entry_head head = {place, pair->score, pair->member.len};
    if (!collector_has_room(collector, sizeof head + head.len))
        return STORE_NO_MEMORY;
    resp_raw(out, (const char *)&head, sizeof head);
    resp_raw(out, pair->member.data, pair->member.len);
    collector->count++;
    return out->failed ? STORE_NO_MEMORY : STORE_OK;
}

/* ---- results ---- */

static void begin_result(const struct search *search, struct resp_writer *out)
{
    unsigned more = search->with_distance + search->with_hash + search->with_point;
    if (more > 0)
        resp_array(out, 1 + more);
}

static void end_result(const struct search *search, struct resp_writer *out, double distance,
                       double score)
{
    if (search->with_distance)
        geo_put_distance(out, distance / search->shape.unit);
    if (search->with_hash)
        resp_integer(out, (int64_t)score);
    if (search->with_point)
        geo_put_point(out, geo_point_of(score));
}

static enum store_result put_result(struct search *search, const struct zset_element *element,
                                    double distance)
{
    struct collector *collector = search->collector;
    size_t before = collector->out.len;
    begin_result(search, &collector->out);
    enum store_result result = collector_item(search->call, collector, &element->member, 0);
    if (result != STORE_OK) {
        resp_truncate(&collector->out, before);
        return result;
    }
    end_result(search, &collector->out, distance, element->score);
    collector->count++;
    return collector->out.failed ? STORE_NO_MEMORY : STORE_OK;
}

static enum store_result collect_pair(struct search *search, const struct zset_pair *pair,
                                      double distance)
{
    struct zset_pair stored = *pair;
    if (search->stores_distance)
        stored.score = distance / search->shape.unit;
    return zset_collect_pair(search->collector, &stored);
}

/* ---- the walk ---- */

static enum store_result visit(struct search *search, const struct zset_element *element)
{
    struct collector *collector = search->collector;
    struct zset_pair pair = {.score = element->score};
    double distance;
    if (!geo_is_inside(&search->shape, geo_point_of(element->score), &distance))
        return STORE_OK;
    if (search->order == UNSORTED && search->to == NULL)
        return put_result(search, element, distance);
    double place = search->order == FARTHEST_FIRST ? -distance : distance;
    if (search->order != UNSORTED && place >= collector->farthest)
        return STORE_OK;
    enum store_result result = zset_name(&search->zset, element, &pair.member);
    if (result != STORE_OK)
        return result;
    return search->order == UNSORTED ? collect_pair(search, &pair, distance)
                                     : collect_entry(search, &pair, distance);
}

/* Visits the elements of a range, from the collector's position in it on. */
static enum store_result walk_range(struct search *search, const struct geo_range *range)
{
    struct zset *zset = &search->zset;
    struct collector *collector = search->collector;
    uint64_t most = search->takes_any ? (uint64_t)search->count : UINT64_MAX;
    struct zset_pair first = {.member = {"", 0}, .score = range->min};
    struct zset_place place;
    struct zset_element element;
    enum store_result result = zset_seek_pair(zset, &first, &place);
    if (result == STORE_OK && collector->at > 0)
        result = zset_seek(zset, place.rank + collector->at, &place);
    while (result == STORE_OK && place.rank < zset_count(zset) && collector->count < most) {
        result = prune_is_due(search) ? prune(search) : STORE_OK;
        if (result == STORE_OK)
            result = zset_get(zset, &place, &element);
        if (result == STORE_OK && element.score >= range->max)
            break;
        if (result == STORE_OK)
            result = visit(search, &element);
        if (result != STORE_OK)
            return result;
        collector->at++;
        if (zset_is_large(zset) && collector_step_is_full(collector))
            return collector_step(search->call, collector);
        result = zset_next(zset, &place);
    }
    return result;
}

static enum store_result walk(struct search *search)
{
    struct collector *collector = search->collector;
    struct geo_range ranges[GEO_RANGES_MAX];
    size_t count = geo_ranges(&search->shape, ranges);
    while (collector->source < count) {
        enum store_result result = walk_range(search, &ranges[collector->source]);
        if (result != STORE_OK)
            return result;
        collector_next_source(collector);
    }
    return STORE_OK;
}

/* ---- replying and storing ---- */

static uint64_t count_wanted(const struct search *search, uint64_t found)
{
    uint64_t count = (uint64_t)search->count;
    return count > 0 && count < found ? count : found;
}

static enum store_result reply_unsorted(struct search *search)
{
    resp_array(search->call->reply, search->collector->count);
    return collector_reply(search->call, search->collector);
}

/* Continues from collector->at, which the walk has left at 0. */
static enum store_result reply_sorted(struct search *search)
{
    struct call *call = search->call;
    struct collector *collector = search->collector;
    struct resp_writer *out = &collector->reordered;
    uint64_t count = count_wanted(search, collector->count);
    enum store_result result = sort(search);
    for (size_t begun = out->len; result == STORE_OK && collector->at < count;) {
        struct entry entry = entry_at(&collector->out, collector->ranks[collector->at++]);
        begin_result(search, out);
        resp_bulk(out, entry.member.data, entry.member.len);
        end_result(search, out, fabs(entry.head.place), entry.head.score);
        if (out->len - begun >= COLLECT_STEP_BYTES && !collector->is_nested)
            return reply_spill_step(call, &collector->spill, out);
        if (collector->at % YIELD_EVERY == 0)
            result = collector_yield(call, collector);
    }
    if (result != STORE_OK)
        return result;
    resp_array(call->reply, count);
    return reply_spill_reply(call, &collector->spill, out);
}

/* The sorted entries give way to the pairs that are stored. */
static void begin_storing(struct search *search)
{
    struct collector *collector = search->collector;
    struct resp_writer empty = collector->reordered;
    collector->chosen = count_wanted(search, collector->count);
    collector->reordered = collector->out;
    collector->out = empty;
    collector->count = 0;
    collector_begin_step(collector);
}

static enum store_result collect_chosen(struct search *search)
{
    struct call *call = search->call;
    struct collector *collector = search->collector;
    enum store_result result = zset_build(call, collector, search->to);
    while (result == STORE_OK && collector->at < collector->chosen) {
        size_t at = collector->ranks[collector->at];
        struct entry entry = entry_at(&collector->reordered, at);
        struct zset_pair pair = {entry.member, entry.head.score};
        result = collect_pair(search, &pair, fabs(entry.head.place));
        collector->at++;
        if (result == STORE_OK && collector_step_is_full(collector))
            return collector_step(call, collector);
    }
    return result;
}

static enum store_result store_sorted(struct search *search)
{
    struct collector *collector = search->collector;
    enum store_result result = STORE_OK;
    if (collector->chosen == 0 && collector->count > 0) {
        result = sort(search);
        if (result == STORE_OK)
            begin_storing(search);
    }
    return result == STORE_OK ? collect_chosen(search) : result;
}

static enum store_result run(struct search *search)
{
    struct call *call = search->call;
    bool is_first = call->progress == NULL, is_sorted = search->order != UNSORTED;
    enum store_result result = STORE_OK;
    search->collector = collector_get(call);
    if (search->collector == NULL)
        return STORE_NO_MEMORY;
    search->collector->is_tail = search->to == NULL && !is_sorted;
    if (is_first)
        search->collector->farthest = INFINITY;
    if (search->to != NULL && !is_sorted)
        result = zset_build(call, search->collector, search->to);
    if (result == STORE_OK)
        result = walk(search);
    if (result == STORE_OK && search->to == NULL)
        return is_sorted ? reply_sorted(search) : reply_unsorted(search);
    if (result == STORE_OK && is_sorted)
        result = store_sorted(search);
    return result == STORE_OK ? zset_store(call, search->collector, search->to,
                                           search->is_old ? "georadiusstore" : "geosearchstore")
                              : result;
}

static enum store_result find_nothing(const struct search *search)
{
    if (search->to == NULL) {
        resp_array(search->call->reply, 0);
        return STORE_OK;
    }
    resp_integer(search->call->reply, 0);
    return call_delete(search->call, search->to);
}

static enum store_result run_with_options(struct search *search, size_t at)
{
    enum store_result result = read_options(search, at);
    if (result != STORE_OK)
        return result;
    return search->zset.exists ? run(search) : find_nothing(search);
}

/* ---- the commands ---- */

enum store_result cmd_geosearch(struct call *call)
{
    struct search search = {.call = call};
    enum store_result result = zset_find(call, call->keys, &search.zset);
    return result == STORE_OK ? run_with_options(&search, 2) : result;
}

enum store_result cmd_geosearchstore(struct call *call)
{
    assert(call->key_count == 2); /* by arity */
    struct search search = {.call = call, .to = call->keys};
    enum store_result result = zset_find(call, &call->keys[1], &search.zset);
    return result == STORE_OK ? run_with_options(&search, 3) : result;
}

enum store_result cmd_georadius(struct call *call)
{
    struct search search = {.call = call, .is_old = true};
    enum store_result result = zset_find(call, call->keys, &search.zset);
    if (result != STORE_OK)
        return result;
    if (!geo_read_point(call, &call->argv[2], &search.shape.center) || !read_radius(&search, 4))
        return STORE_ANSWERED;
    return run_with_options(&search, 6);
}

enum store_result cmd_georadius_ro(struct call *call)
{
    return cmd_georadius(call);
}

enum store_result cmd_georadiusbymember(struct call *call)
{
    struct search search = {.call = call, .is_old = true};
    enum store_result result = zset_find(call, call->keys, &search.zset);
    if (result == STORE_OK)
        result = find_member(&search, call->argv[2]);
    if (result != STORE_OK)
        return result;
    /* As in Redis, of an absent key the radius is not read. */
    if (search.zset.exists && !read_radius(&search, 3))
        return STORE_ANSWERED;
    return run_with_options(&search, 5);
}

enum store_result cmd_georadiusbymember_ro(struct call *call)
{
    return cmd_georadiusbymember(call);
}
