/*
 * Ranges of sorted sets, by rank, score or member: counted, read, stored, removed. Every kind of
 * range is first converted to one of ranks.
 */
#include "server/commands/commands.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/commands/cmd_zset.h"
#include "server/commands/cmd_zset_algebra.h"
#include "server/core/call.h"
#include "server/types/zset_order.h"

/* ---- ranges as clients give them ---- */

enum range_kind { BY_RANK, BY_SCORE, BY_LEX };

struct range {
    enum range_kind kind;
    int64_t from, to; /* BY_RANK */
    struct zset_score_range scores;
    struct zset_lex_range lex;
};

/* Like strtod() up to the first zero byte: accepts leading blanks and an empty text. */
static bool read_score_bound(struct resp_slice arg, struct zset_bound *bound)
{
    char text[RESP_NUMBER_MAX], *end;
    bound->exclusive = arg.len > 0 && arg.data[0] == '(';
    size_t len = arg.len - bound->exclusive;
    if (len >= sizeof(text))
        return false;
    if (len > 0)
        memcpy(text, arg.data + bound->exclusive, len);
    text[len] = '\0';
    bound->score = strtod(text, &end);
    return *end == '\0' && !isnan(bound->score);
}

static bool read_lex_bound(struct resp_slice arg, struct zset_lex_bound *bound)
{
    char first = arg.len > 0 ? arg.data[0] : '\0';
    if (first == '+' || first == '-') {
        bound->kind = first == '+' ? LEX_MOST : LEX_LEAST;
        return arg.len == 1;
    }
    bound->kind = LEX_MEMBER;
    bound->exclusive = first == '(';
    bound->member = (struct resp_slice){arg.data + 1, arg.len - 1};
    return first == '(' || first == '[';
}

/* False: replied with an error. */
static bool read_range(struct call *call, enum range_kind kind, struct resp_slice min,
                       struct resp_slice max, struct range *range)
{
    *range = (struct range){.kind = kind};
    if (kind == BY_RANK)
        return call_int64(call, min, &range->from) && call_int64(call, max, &range->to);
    if (kind == BY_SCORE) {
        if (read_score_bound(min, &range->scores.min) && read_score_bound(max, &range->scores.max))
            return true;
        resp_error(call->reply, "ERR min or max is not a float");
        return false;
    }
    if (read_lex_bound(min, &range->lex.min) && read_lex_bound(max, &range->lex.max))
        return true;
    resp_error(call->reply, "ERR min or max not valid string range item");
    return false;
}

/* A range by rank may count from the last element; the caller resolves that. */
static enum store_result find_range(struct zset *zset, const struct range *range, uint64_t *first,
                                    uint64_t *count)
{
    if (range->kind == BY_SCORE)
        return zset_score_range(zset, &range->scores, first, count);
    if (range->kind == BY_LEX)
        return zset_lex_range(zset, &range->lex, first, count);
    rank_range(range->from, range->to, zset_count(zset), first, count);
    return STORE_OK;
}

/* ---- ZCOUNT, ZLEXCOUNT ---- */

static enum store_result count_range(struct call *call, enum range_kind kind)
{
    struct zset zset;
    struct range range;
    uint64_t first, count;
    if (!read_range(call, kind, call->argv[2], call->argv[3], &range))
        return STORE_OK;
    enum store_result result = zset_find(call, call->keys, &zset);
    if (result == STORE_OK)
        result = find_range(&zset, &range, &first, &count);
    if (result == STORE_OK)
        resp_integer(call->reply, (int64_t)count);
    return result;
}

enum store_result cmd_zcount(struct call *call)
{
    return count_range(call, BY_SCORE);
}

enum store_result cmd_zlexcount(struct call *call)
{
    return count_range(call, BY_LEX);
}

/* ---- ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX ---- */

static enum store_result remove_range(struct call *call, enum range_kind kind, const char *event)
{
    struct zset zset;
    struct range range;
    uint64_t first, count;
    if (!read_range(call, kind, call->argv[2], call->argv[3], &range))
        return STORE_OK;
    enum store_result result = zset_find(call, call->keys, &zset);
    if (result != STORE_OK)
        return result;
    result = find_range(&zset, &range, &first, &count);
    if (result == STORE_OK && count > 0)
        result = zset_remove_range(&zset, first, count);
    if (result != STORE_OK)
        return result;
    resp_integer(call->reply, (int64_t)count);
    return count > 0 ? zset_changed(&zset, event) : STORE_OK;
}

enum store_result cmd_zremrangebyrank(struct call *call)
{
    return remove_range(call, BY_RANK, "zremrangebyrank");
}

enum store_result cmd_zremrangebyscore(struct call *call)
{
    return remove_range(call, BY_SCORE, "zremrangebyscore");
}

enum store_result cmd_zremrangebylex(struct call *call)
{
    return remove_range(call, BY_LEX, "zremrangebylex");
}

/* ---- ZRANGE and its older forms ---- */

struct query {
    size_t at; /* position of the first bound */
    enum range_kind kind;
    bool may_choose; /* ZRANGE: options give kind and direction */
    bool backwards, with_scores, is_stored;
    int64_t offset, limit;
    struct range range;
};

/* Parses one option and its arguments; *i is moved to the last of them. */
static bool read_option(struct call *call, struct query *query, size_t *i, bool *by_option)
{
    struct resp_slice arg = call->argv[*i];
    if (!query->is_stored && slice_is(arg, "withscores")) {
        query->with_scores = true;
    } else if (slice_is(arg, "limit") && call->argc - *i > 2) {
        *i += 2;
        return call_int64(call, call->argv[*i - 1], &query->offset) &&
               call_int64(call, call->argv[*i], &query->limit);
    } else if (query->may_choose && !query->backwards && slice_is(arg, "rev")) {
        query->backwards = true;
    } else if (query->may_choose && !*by_option && slice_is(arg, "bylex")) {
        query->kind = BY_LEX;
        *by_option = true;
    } else if (query->may_choose && !*by_option && slice_is(arg, "byscore")) {
        query->kind = BY_SCORE;
        *by_option = true;
    } else {
        return call_syntax_error(call);
    }
    return true;
}

static bool read_query(struct call *call, struct query *query)
{
    bool by_option = false;
    query->limit = -1;
    for (size_t i = query->at + 2; i < call->argc; i++)
        if (!read_option(call, query, &i, &by_option))
            return false;
    if (query->limit != -1 && query->kind == BY_RANK) {
        resp_error(call->reply, "ERR syntax error, LIMIT is only supported in combination with "
                                "either BYSCORE or BYLEX");
        return false;
    }
    if (query->with_scores && query->kind == BY_LEX) {
        resp_error(call->reply,
                   "ERR syntax error, WITHSCORES not supported in combination with BYLEX");
        return false;
    }
    bool swapped = query->backwards && query->kind != BY_RANK;
    return read_range(call, query->kind, call->argv[query->at + swapped],
                      call->argv[query->at + !swapped], &query->range);
}

/* *first: the rank to start at; if reversed, the one after it. */
static enum store_result run_query(struct zset *zset, const struct query *query, uint64_t *first,
                                   uint64_t *count)
{
    enum store_result result = find_range(zset, &query->range, first, count);
    if (result != STORE_OK)
        return result;
    if (query->backwards)
        *first = query->kind == BY_RANK ? zset_count(zset) - *first : *first + *count;
    if (query->kind == BY_RANK)
        return STORE_OK;
    bool is_beyond = query->offset < 0 || (uint64_t)query->offset >= *count;
    uint64_t skipped = is_beyond ? *count : (uint64_t)query->offset;
    *first = query->backwards ? *first - skipped : *first + skipped;
    *count -= skipped;
    if (query->limit >= 0 && (uint64_t)query->limit < *count)
        *count = (uint64_t)query->limit;
    assert(!query->backwards || *count <= *first); /* the walk goes down from *first */
    return STORE_OK;
}

static enum store_result reply_query(struct call *call, struct query query)
{
    struct zset zset;
    struct steps steps;
    uint64_t first, count;
    query.at = 2;
    if (!read_query(call, &query))
        return STORE_OK;
    enum store_result result = zset_find(call, call->keys, &zset);
    if (result != STORE_OK)
        return result;
    enum zset_form form = zset_form(call, query.with_scores);
    result = run_query(&zset, &query, &first, &count);
    if (result == STORE_OK)
        result = steps_begin(&steps, call, zset_is_large(&zset) && steps_are_many(count));
    if (result == STORE_OK && steps.fresh)
        zset_put_head(steps.out, count, form);
    return result == STORE_OK ? zset_reply_range(&steps, &zset, first, count, query.backwards, form)
                              : result;
}

enum store_result cmd_zrange(struct call *call)
{
    return reply_query(call, (struct query){.kind = BY_RANK, .may_choose = true});
}

enum store_result cmd_zrevrange(struct call *call)
{
    return reply_query(call, (struct query){.kind = BY_RANK, .backwards = true});
}

enum store_result cmd_zrangebyscore(struct call *call)
{
    return reply_query(call, (struct query){.kind = BY_SCORE});
}

enum store_result cmd_zrevrangebyscore(struct call *call)
{
    return reply_query(call, (struct query){.kind = BY_SCORE, .backwards = true});
}

enum store_result cmd_zrangebylex(struct call *call)
{
    return reply_query(call, (struct query){.kind = BY_LEX});
}

enum store_result cmd_zrevrangebylex(struct call *call)
{
    return reply_query(call, (struct query){.kind = BY_LEX, .backwards = true});
}

/* ---- ZRANGESTORE ---- */

/* Collects elements [first, first + count), in ascending order whatever the query's direction. */
static enum store_result collector_range(struct zset *zset, struct collector *collector,
                                         uint64_t first, uint64_t count)
{
    struct zset_place place;
    struct zset_element element;
    struct zset_pair pair;
    enum store_result result = zset_seek(zset, first + collector->at, &place);
    while (result == STORE_OK && collector->at < count) {
        result = zset_get(zset, &place, &element);
        if (result == STORE_OK)
            result = zset_name(zset, &element, &pair.member);
        if (result != STORE_OK)
            return result;
        pair.score = element.score;
        result = zset_collect_pair(collector, &pair);
        collector->at++;
        if (result == STORE_OK && zset_is_large(zset) && collector_step_is_full(collector))
            return collector_step(zset->call, collector);
        if (result == STORE_OK)
            result = zset_next(zset, &place);
    }
    return result;
}

enum store_result cmd_zrangestore(struct call *call)
{
    struct query query = {.at = 3, .kind = BY_RANK, .may_choose = true, .is_stored = true};
    struct zset zset;
    uint64_t first, count;
    assert(call->key_count == 2); /* by arity */
    if (!read_query(call, &query))
        return STORE_OK;
    enum store_result result = zset_find(call, &call->keys[1], &zset);
    if (result != STORE_OK)
        return result;
    struct collector *collector = collector_get(call);
    if (collector == NULL)
        return STORE_NO_MEMORY;
    result = zset_build(call, collector, call->keys);
    if (result == STORE_OK)
        result = run_query(&zset, &query, &first, &count);
    if (result == STORE_OK)
        result = collector_range(&zset, collector, query.backwards ? first - count : first, count);
    return result == STORE_OK ? zset_store(call, collector, call->keys, "zrangestore") : result;
}
