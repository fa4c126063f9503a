/*
 * Sorted sets: single members and their scores. Ranges are in cmd_zset_range.c.
 */
#include "server/commands/cmd_zset.h"

#include <math.h>

#include "server/commands/commands.h"
#include "server/pubsub/notify.h"
#include "server/core/call.h"

/* ---- shared by the sorted-set commands ---- */

enum store_result zset_changed(struct zset *zset, const char *event)
{
    if (!zset->exists)
        call_notify(zset->call, NOTIFY_NEW, "new", zset->key);
    call_notify(zset->call, NOTIFY_ZSET, event, zset->key);
    if (zset_count(zset) == 0)
        call_notify(zset->call, NOTIFY_GENERIC, "del", zset->key);
    return zset_save(zset);
}

enum zset_form zset_form(const struct call *call, bool with_scores)
{
    if (!with_scores)
        return ZSET_MEMBERS;
    return call->reply->version >= 3 ? ZSET_PAIRS : ZSET_FLAT;
}

void zset_put_head(struct resp_writer *out, uint64_t count, enum zset_form form)
{
    resp_array(out, form == ZSET_FLAT ? 2 * count : count);
}

enum store_result zset_put_element(struct steps *steps, const struct zset_element *element,
                                   enum zset_form form)
{
    size_t before = steps->out->len;
    if (form == ZSET_PAIRS)
        resp_array(steps->out, 2);
    enum store_result result = steps_put_item(steps, &element->member);
    if (result != STORE_OK)
        resp_truncate(steps->out, before);
    else if (form != ZSET_MEMBERS)
        resp_double(steps->out, element->score);
    return result;
}

enum store_result zset_reply_range(struct steps *steps, struct zset *zset, uint64_t first,
                                   uint64_t count, bool backwards, enum zset_form form)
{
    struct zset_place place;
    struct zset_element element;
    enum store_result result =
        zset_seek(zset, backwards ? first - *steps->done : first + *steps->done, &place);
    while (result == STORE_OK && *steps->done < count) {
        if (backwards)
            result = zset_prev(zset, &place);
        if (result == STORE_OK)
            result = zset_get(zset, &place, &element);
        if (result == STORE_OK)
            result = zset_put_element(steps, &element, form);
        if (result == STORE_OK)
            result = steps_count(steps);
        if (result == STORE_OK && !backwards && *steps->done < count)
            result = zset_next(zset, &place);
    }
    return result == STORE_OK ? steps_finish(steps) : result;
}

/* ---- ZADD, ZINCRBY ---- */

unsigned zset_add_option(struct resp_slice arg)
{
    static const struct {
        const char *word;
        unsigned option;
    } words[] = {{"nx", ZSET_ADD_NX}, {"xx", ZSET_ADD_XX}, {"gt", ZSET_ADD_GT},
                 {"lt", ZSET_ADD_LT}, {"ch", ZSET_ADD_CH}, {"incr", ZSET_ADD_INCR}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (slice_is(arg, words[i].word))
            return words[i].option;
    return 0;
}

/* Parses the options; *at is the position of the first score. */
static bool read_add_options(struct call *call, unsigned *options, size_t *at)
{
    unsigned option;
    for (*at = 2; *at < call->argc && (option = zset_add_option(call->argv[*at])) != 0; ++*at)
        *options |= option;
    size_t left = call->argc - *at;
    bool nx = (*options & ZSET_ADD_NX) != 0, gt = (*options & ZSET_ADD_GT) != 0,
         lt = (*options & ZSET_ADD_LT) != 0;
    if (left == 0 || left % 2 != 0)
        return call_syntax_error(call);
    if (nx && (*options & ZSET_ADD_XX) != 0)
        resp_error(call->reply, "ERR XX and NX options at the same time are not compatible");
    else if ((gt && nx) || (lt && nx) || (gt && lt))
        resp_error(call->reply,
                   "ERR GT, LT, and/or NX options at the same time are not compatible");
    else if ((*options & ZSET_ADD_INCR) != 0 && left > 2)
        resp_error(call->reply, "ERR INCR option supports a single increment-element pair");
    else
        return true;
    return false;
}

static enum store_result change_score(struct zset_adding *adding, struct zset_pair *pair,
                                      double score)
{
    unsigned options = adding->options;
    if ((options & ZSET_ADD_NX) != 0)
        return STORE_OK;
    if ((options & ZSET_ADD_INCR) != 0)
        score += pair->score;
    adding->is_nan = isnan(score);
    if (adding->is_nan || ((options & ZSET_ADD_GT) != 0 && score <= pair->score) ||
        ((options & ZSET_ADD_LT) != 0 && score >= pair->score))
        return STORE_OK;
    adding->is_done = true;
    adding->score = score;
    if (score == pair->score)
        return STORE_OK;
    adding->updated++;
    return zset_move(&adding->zset, pair, score);
}

enum store_result zset_add_one(struct zset_adding *adding, struct resp_slice member, double score)
{
    bool found;
    struct zset_pair pair = {member, score};
    enum store_result result = zset_score(&adding->zset, member, &pair.score, &found);
    if (result != STORE_OK)
        return result;
    if (found)
        return change_score(adding, &pair, score);
    if ((adding->options & ZSET_ADD_XX) != 0)
        return STORE_OK;
    pair.score = score;
    adding->added++;
    adding->is_done = true;
    adding->score = score;
    return zset_add(&adding->zset, &pair);
}

enum store_result zset_reply_added(struct call *call, struct zset_adding *adding)
{
    bool is_increment = (adding->options & ZSET_ADD_INCR) != 0;
    bool with_updated = (adding->options & ZSET_ADD_CH) != 0;
    if (adding->is_nan)
        resp_error(call->reply, "ERR resulting score is not a number (NaN)");
    else if (!is_increment)
        resp_integer(call->reply, (int64_t)(adding->added + (with_updated ? adding->updated : 0)));
    else if (adding->is_done)
        resp_double(call->reply, adding->score);
    else
        resp_null(call->reply);
    if (adding->added + adding->updated == 0)
        return STORE_OK;
    return zset_changed(&adding->zset, is_increment ? "zincr" : "zadd");
}

/* STORE_ANSWERED: one of the scores from argument `at` on is not a number. */
static enum store_result check_scores(struct call *call, size_t at)
{
    enum store_result result = STORE_OK;
    double score;
    for (size_t i = at; i < call->argc && result == STORE_OK; i += 2) {
        if (!call_double(call, call->argv[i], NULL, &score))
            return STORE_ANSWERED;
        result = call_yield_at(call, i / 2);
    }
    return result;
}

static enum store_result add(struct call *call, unsigned options)
{
    struct zset_adding adding = {.options = options};
    size_t at;
    double score;
    if (!read_add_options(call, &adding.options, &at))
        return STORE_OK;
    enum store_result result = check_scores(call, at);
    if (result == STORE_OK)
        result = zset_find(call, call->keys, &adding.zset);
    if (result != STORE_OK)
        return result;
    zset_expect(&adding.zset, (call->argc - at) / 2, call->argv[at + 1].len);
    for (size_t i = at; i < call->argc && result == STORE_OK; i += 2) {
        resp_read_double(call->argv[i].data, call->argv[i].len, &score);
        result = zset_add_one(&adding, call->argv[i + 1], score);
        if (result == STORE_OK)
            result = zset_yield(&adding.zset, i / 2);
    }
    return result == STORE_OK ? zset_reply_added(call, &adding) : result;
}

enum store_result cmd_zadd(struct call *call)
{
    return add(call, 0);
}

enum store_result cmd_zincrby(struct call *call)
{
    return add(call, ZSET_ADD_INCR);
}

/* ---- ZREM ---- */

enum store_result cmd_zrem(struct call *call)
{
    struct zset zset;
    int64_t removed = 0;
    enum store_result result = zset_find(call, call->keys, &zset);
    if (result != STORE_OK)
        return result;
    for (size_t i = 2; i < call->argc && zset_count(&zset) > 0; i++) {
        bool found;
        struct zset_pair pair = {.member = call->argv[i]};
        result = zset_score(&zset, pair.member, &pair.score, &found);
        if (result == STORE_OK && found)
            result = zset_remove(&zset, &pair);
        if (result == STORE_OK)
            result = zset_yield(&zset, i);
        if (result != STORE_OK)
            return result;
        removed += found;
    }
    resp_integer(call->reply, removed);
    return removed > 0 ? zset_changed(&zset, "zrem") : STORE_OK;
}

/* ---- looking up ---- */

enum store_result cmd_zcard(struct call *call)
{
    struct zset zset;
    enum store_result result = zset_find(call, call->keys, &zset);
    if (result == STORE_OK)
        resp_integer(call->reply, (int64_t)zset_count(&zset));
    return result;
}

static enum store_result reply_score(struct call *call, struct zset *zset, struct resp_slice member)
{
    double score;
    bool found;
    enum store_result result = zset_score(zset, member, &score, &found);
    if (result == STORE_OK && found)
        resp_double(call->reply, score);
    else if (result == STORE_OK)
        resp_null(call->reply);
    return result;
}

enum store_result cmd_zscore(struct call *call)
{
    struct zset zset;
    enum store_result result = zset_find(call, call->keys, &zset);
    return result == STORE_OK ? reply_score(call, &zset, call->argv[2]) : result;
}

enum store_result cmd_zmscore(struct call *call)
{
    struct zset zset;
    enum store_result result = zset_find(call, call->keys, &zset);
    if (result != STORE_OK)
        return result;
    resp_array(call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc && result == STORE_OK; i++) {
        result = reply_score(call, &zset, call->argv[i]);
        if (result == STORE_OK)
            result = zset_yield(&zset, i);
    }
    return result;
}

static enum store_result reply_rank(struct call *call, bool backwards)
{
    struct zset zset;
    struct zset_pair pair = {.member = call->argv[2]};
    uint64_t rank;
    bool found, with_score = call->argc == 4;
    if (call->argc > 4) {
        resp_errorf(call->reply, "ERR wrong number of arguments for '%s' command",
                    call->command->name);
        return STORE_OK;
    }
    if (with_score && !slice_is(call->argv[3], "withscore")) {
        call_syntax_error(call);
        return STORE_OK;
    }
    enum store_result result = zset_find(call, call->keys, &zset);
    if (result != STORE_OK)
        return result;
    result = zset_score(&zset, pair.member, &pair.score, &found);
    if (result == STORE_OK && found)
        result = zset_rank(&zset, &pair, &rank);
    if (result != STORE_OK)
        return result;
    if (!found && with_score) {
        resp_null_array(call->reply);
        return STORE_OK;
    }
    if (!found) {
        resp_null(call->reply);
        return STORE_OK;
    }
    if (with_score)
        resp_array(call->reply, 2);
    resp_integer(call->reply, (int64_t)(backwards ? zset_count(&zset) - 1 - rank : rank));
    if (with_score)
        resp_double(call->reply, pair.score);
    return STORE_OK;
}

enum store_result cmd_zrank(struct call *call)
{
    return reply_rank(call, false);
}

enum store_result cmd_zrevrank(struct call *call)
{
    return reply_rank(call, true);
}
