/*
 * Sorted sets: pops from an end, random picks, ZSCAN.
 */
#include "server/commands/cmd_zset_pop.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>

#include "server/commands/cmd_zset.h"
#include "server/commands/commands.h"
#include "server/base/rng.h"
#include "server/commands/multi_pop.h"
#include "server/types/scan_args.h"
#include "server/exec/batch.h"
#include "server/exec/request_reply.h"
#include "server/core/call.h"

/* ---- ZPOPMIN, ZPOPMAX, ZMPOP ---- */

static const char *pop_event(enum zset_end end)
{
    return end == ZSET_MIN ? "zpopmin" : "zpopmax";
}

/* Its position is looked up once, for both the reply and the removal. */
static enum store_result pop_end(struct steps *steps, struct zset *zset, enum zset_end end,
                                 enum zset_form form)
{
    struct zset_place place;
    struct zset_element element;
    enum store_result result = zset_seek(zset, end == ZSET_MIN ? 0 : zset_count(zset) - 1, &place);
    if (result == STORE_OK)
        result = zset_get(zset, &place, &element);
    if (result == STORE_OK)
        result = zset_put_element(steps, &element, form);
    if (result == STORE_OK)
        result = zset_remove_at(zset, &place, &element);
    return result == STORE_OK ? zset_changed(zset, pop_event(end)) : result;
}

/* Replies with the elements and then removes them. The head of the reply was written already. */
static enum store_result pop_range(struct steps *steps, struct zset *zset, enum zset_end end,
                                   uint64_t count, enum zset_form form)
{
    uint64_t total = zset_count(zset);
    if (count == 1)
        return pop_end(steps, zset, end, form);
    enum store_result result =
        zset_reply_range(steps, zset, end == ZSET_MIN ? 0 : total, count, end == ZSET_MAX, form);
    if (result == STORE_OK)
        result = zset_remove_range(zset, end == ZSET_MIN ? 0 : total - count, count);
    return result == STORE_OK ? zset_changed(zset, pop_event(end)) : result;
}

static bool pops_many(const struct zset *zset, uint64_t count)
{
    return zset_is_large(zset) && steps_are_many(count);
}

enum store_result zset_pop_one(struct zset *zset, enum zset_end end)
{
    struct steps steps;
    assert(zset->exists);
    enum store_result result = steps_begin(&steps, zset->call, false);
    if (result != STORE_OK)
        return result;
    resp_array(steps.out, 3);
    resp_bulk(steps.out, zset->key->data, zset->key->len);
    return pop_range(&steps, zset, end, 1, ZSET_FLAT);
}

/* Pops one element, and those for the following commands of the batch while there are more. */
static enum store_result pop_on(struct call *call, struct zset *zset, enum zset_end end)
{
    struct steps steps;
    enum store_result result;
    do {
        result = steps_begin(&steps, call, false);
        if (result != STORE_OK)
            return result;
        zset_put_head(steps.out, 1, ZSET_FLAT);
        result = pop_end(&steps, zset, end, ZSET_FLAT);
    } while (result == STORE_OK && zset_is_large(zset) && zset_count(zset) > 0 &&
             call_next_in_batch(call));
    return result;
}

static enum store_result pop(struct call *call, enum zset_end end)
{
    struct zset zset;
    struct steps steps;
    int64_t count = 1;
    if (call->argc > 3) {
        call_syntax_error(call);
        return STORE_OK;
    }
    if (call->argc == 3 && !call_count(call, call->argv[2], &count))
        return STORE_OK;
    enum store_result result = zset_find(call, call->keys, &zset);
    if (result != STORE_OK)
        return result;
    uint64_t total = zset_count(&zset), most = (uint64_t)count < total ? (uint64_t)count : total;
    if (most == 0) {
        resp_array(call->reply, 0);
        return STORE_OK;
    }
    if (call->argc == 2)
        return pop_on(call, &zset, end);
    enum zset_form form = zset_form(call, true);
    result = steps_begin(&steps, call, pops_many(&zset, most));
    if (result == STORE_OK && steps.fresh)
        zset_put_head(steps.out, most, form);
    return result == STORE_OK ? pop_range(&steps, &zset, end, most, form) : result;
}

enum store_result cmd_zpopmin(struct call *call)
{
    return pop(call, ZSET_MIN);
}

enum store_result cmd_zpopmax(struct call *call)
{
    return pop(call, ZSET_MAX);
}

bool zset_read_mpop(struct call *call, size_t at, enum zset_end *end, int64_t *count)
{
    static const char *const words[] = {"min", "max"};
    size_t word;
    if (!multi_pop_read(call, at, words, &word, count))
        return false;
    *end = word == 0 ? ZSET_MIN : ZSET_MAX;
    return true;
}

enum store_result zset_pop_many(struct zset *zset, enum zset_end end, int64_t count)
{
    struct steps steps;
    assert(zset->exists);
    uint64_t total = zset_count(zset), most = (uint64_t)count < total ? (uint64_t)count : total;
    enum store_result result = steps_begin(&steps, zset->call, pops_many(zset, most));
    if (result != STORE_OK)
        return result;
    if (steps.fresh) {
        resp_array(steps.out, 2);
        resp_bulk(steps.out, zset->key->data, zset->key->len);
        zset_put_head(steps.out, most, ZSET_PAIRS);
    }
    return pop_range(&steps, zset, end, most, ZSET_PAIRS);
}

enum store_result cmd_zmpop(struct call *call)
{
    enum zset_end end;
    int64_t count;
    if (!zset_read_mpop(call, 1, &end, &count))
        return STORE_OK;
    for (uint32_t i = 0; i < call->key_count; i++) {
        struct zset zset;
        enum store_result result = zset_find(call, &call->keys[i], &zset);
        if (result != STORE_OK)
            return result;
        if (zset.exists)
            return zset_pop_many(&zset, end, count);
    }
    resp_null_array(call->reply);
    return STORE_OK;
}

/* ---- ZRANDMEMBER ---- */

static bool random_options(struct call *call, int64_t *count, bool *with_scores)
{
    if (!call_int64_between(call, call->argv[2], -LONG_MAX, LONG_MAX, count))
        return false;
    if (call->argc > 4 || (call->argc == 4 && !slice_is(call->argv[3], "withscores")))
        return call_syntax_error(call);
    *with_scores = call->argc == 4;
    if (*with_scores && (*count < -LONG_MAX / 2 || *count > LONG_MAX / 2)) {
        resp_error(call->reply, "ERR value is out of range");
        return false;
    }
    return true;
}

struct picking {
    struct zset *zset;
    struct collector *collector;
    enum zset_form form;
};

static enum store_result element_at(struct zset *zset, uint64_t rank, struct zset_pair *pair)
{
    struct zset_place place;
    struct zset_element element;
    enum store_result result = zset_seek(zset, rank, &place);
    if (result == STORE_OK)
        result = zset_get(zset, &place, &element);
    if (result == STORE_OK)
        result = zset_name(zset, &element, &pair->member);
    if (result == STORE_OK)
        pair->score = element.score;
    return result;
}

static enum store_result show_picked(void *arg, uint64_t rank)
{
    const struct picking *picking = arg;
    struct resp_writer *out = &picking->collector->out;
    struct zset_pair pair;
    enum store_result result = element_at(picking->zset, rank, &pair);
    if (result != STORE_OK)
        return result;
    if (picking->form == ZSET_PAIRS)
        resp_array(out, 2);
    resp_bulk(out, pair.member.data, pair.member.len);
    if (picking->form != ZSET_MEMBERS)
        resp_double(out, pair.score);
    return out->failed ? STORE_NO_MEMORY : STORE_OK;
}

/* As in Redis from the last element on. */
static enum store_result reply_all(struct call *call, struct zset *zset, enum zset_form form)
{
    struct steps steps;
    uint64_t count = zset_count(zset);
    enum store_result result =
        steps_begin(&steps, call, zset_is_large(zset) && steps_are_many(count));
    if (result == STORE_OK && steps.fresh)
        zset_put_head(steps.out, count, form);
    return result == STORE_OK ? zset_reply_range(&steps, zset, count, count, true, form) : result;
}

static enum store_result reply_some(struct call *call, struct zset *zset, int64_t count,
                                    enum zset_form form)
{
    struct members members = zset_members(zset);
    uint64_t picks = members_pick_count(&members, count);
    if (picks == zset_count(zset) && count >= 0)
        return reply_all(call, zset, form);
    struct picking picking = {.zset = zset, .collector = collector_get(call), .form = form};
    struct collector *collector = picking.collector;
    if (collector == NULL)
        return STORE_NO_MEMORY;
    if (collector->at == 0 && collector->out.len == 0)
        zset_put_head(&collector->out, picks, form);
    collector->is_reply = members_pick_ends(count);
    enum store_result result = STORE_OK;
    if (picks > 0)
        result = collector_pick(call, collector, zset_count(zset), count, show_picked, &picking);
    return result == STORE_OK ? collector_reply(call, collector) : result;
}

static enum store_result reply_one(struct call *call, struct zset *zset)
{
    struct zset_place place;
    struct zset_element element;
    struct rng rng = rng_new(call->random_seed);
    if (!zset->exists) {
        resp_null(call->reply);
        return STORE_OK;
    }
    enum store_result result = zset_seek(zset, rng_below(&rng, zset_count(zset)), &place);
    if (result == STORE_OK)
        result = zset_get(zset, &place, &element);
    return result == STORE_OK ? call_reply_item(call, &element.member) : result;
}

enum store_result cmd_zrandmember(struct call *call)
{
    struct zset zset;
    int64_t count = 0;
    bool with_scores = false;
    if (call->argc > 2 && !random_options(call, &count, &with_scores))
        return STORE_OK;
    enum store_result result = zset_find(call, call->keys, &zset);
    if (result != STORE_OK)
        return result;
    if (call->argc == 2)
        return reply_one(call, &zset);
    return reply_some(call, &zset, count, zset_form(call, with_scores));
}

/* ---- ZSCAN ---- */

struct scanning {
    const struct zset *zset;
    const struct scan_filter *filter;
    struct collector *collector;
};

/* The format of scores here in Redis: 17 digits once the sorted set is a skip list. */
static enum store_result show_pair(const struct scanning *scanning, const struct zset_pair *pair)
{
    struct resp_writer *out = &scanning->collector->out;
    char text[40];
    if (!scan_matches(scanning->filter, pair->member))
        return STORE_OK;
    bool is_big = (scanning->zset->type & ITEM_BIG) != 0;
    size_t len = is_big ? (size_t)snprintf(text, sizeof(text), "%.17g", pair->score)
                        : resp_print_double(text, pair->score);
    resp_bulk(out, pair->member.data, pair->member.len);
    resp_bulk(out, text, len);
    scanning->collector->count += 2;
    return out->failed ? STORE_NO_MEMORY : STORE_OK;
}

static enum store_result show_scanned(void *arg, struct resp_slice name, struct resp_slice value)
{
    struct zset_pair pair = {.member = name};
    return zset_score_parse(value, &pair.score) ? show_pair(arg, &pair) : STORE_DAMAGED;
}

/* All of them by score: what Redis would keep as a listpack. */
static enum store_result scan_whole(struct zset *zset, const struct scanning *scanning)
{
    struct collector *collector = scanning->collector;
    while (collector->at < zset_count(zset)) {
        struct zset_pair pair;
        enum store_result result = element_at(zset, collector->at, &pair);
        if (result == STORE_OK)
            result = show_pair(scanning, &pair);
        if (result != STORE_OK)
            return result;
        if (++collector->at < zset_count(zset) && collector_step_is_full(collector))
            return collector_step(zset->call, collector);
    }
    return STORE_OK;
}

/* Some of them, in the order of the tree by member. */
static enum store_result scan_part(struct zset *zset, struct scanning *scanning, uint64_t *cursor)
{
    struct members members = zset_members(zset);
    return members_scan(zset->call, &members, scanning->collector, cursor, scanning->filter->count,
                        show_scanned, scanning);
}

enum store_result cmd_zscan(struct call *call)
{
    struct zset zset;
    struct scan_filter filter = {.count = 1};
    uint64_t cursor;
    if (!scan_read_cursor(call, call->argv[2], &cursor))
        return STORE_OK;
    enum store_result result = zset_find(call, call->keys, &zset);
    if (result != STORE_OK)
        return result;
    /* Redis parses the options only if the key exists. */
    if (zset.exists && !scan_read_options(call, 3, false, &filter))
        return STORE_OK;
    struct scanning scanning = {.zset = &zset, .filter = &filter, .collector = collector_get(call)};
    if (scanning.collector == NULL)
        return STORE_NO_MEMORY;
    scanning.collector->is_tail = true;
    if ((zset.type & ITEM_BIG) == 0)
        cursor = 0;
    result = scan_prepare(call, &filter);
    if (result == STORE_OK)
        result = (zset.type & ITEM_BIG) != 0 ? scan_part(&zset, &scanning, &cursor)
                                             : scan_whole(&zset, &scanning);
    if (result != STORE_OK)
        return result;
    scan_reply_cursor(call, cursor);
    resp_array(call->reply, scanning.collector->count);
    return collector_reply(call, scanning.collector);
}
