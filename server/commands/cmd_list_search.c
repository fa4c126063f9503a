/*
 * Commands that search lists by value. Long lists are searched in steps. Changes are made only
 * after the search is complete.
 */
#include "server/commands/commands.h"

#include <assert.h>
#include <string.h>

#include "server/commands/cmd_list.h"
#include "server/exec/collector.h"
#include "server/core/call.h"

#define PIECE_ENTRIES 32 /* a piece of a long element, as part of a step */

struct search {
    struct list *list;
    struct resp_slice value;
    bool backwards;
    uint64_t visit_max; /* number of elements to examine */
    uint64_t skip;      /* number of matches to skip */
    uint64_t wanted;    /* number of further matches wanted; 0: all */
    bool is_replied;    /* the positions are collected as what follows the reply's head */
    char *room;         /* of this run, for a piece of a long element; NULL: none yet */
};

static bool has_bytes(const struct store_piece *piece, const char *bytes, size_t len)
{
    if (piece->bytes != NULL)
        return memcmp(piece->bytes, bytes, len) == 0;
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

/* Compares a long element of the value's length piece by piece. A later run continues with the
 * first piece that is not compared yet. */
static enum store_result compare_pieces(struct search *search, struct collector *collector,
                                        const struct store_item *element, bool *equal)
{
    struct call *call = search->list->call;
    if (search->room == NULL)
        search->room = store_alloc(call->txn, STORE_READER_PIECE);
    if (search->room == NULL)
        return STORE_NO_MEMORY;
    while (*equal && collector->compared < search->value.len) {
        struct store_piece piece;
        uint64_t at = collector->compared, left = search->value.len - at;
        if (collector_step_fills(collector, PIECE_ENTRIES))
            return collector_step(call, collector);
        enum store_result result = store_read_piece(call->txn, element, at, search->room, &piece);
        if (result != STORE_OK)
            return result;
        if (piece.length < left)
            left = piece.length;
        *equal = has_bytes(&piece, search->value.data + at, left);
        collector->compared += left;
    }
    collector->compared = 0;
    return STORE_OK;
}

/* Whether an element is the value. */
static enum store_result is_equal(struct search *search, struct collector *collector,
                                  const struct store_item *element, bool *equal)
{
    struct resp_slice value = search->value;
    *equal = element->length == value.len;
    if (!*equal || value.len == 0)
        return STORE_OK;
    if (element->large)
        return compare_pieces(search, collector, element, equal);
    *equal = memcmp(element->bytes, value.data, value.len) == 0;
    return STORE_OK;
}

static void keep(const struct search *search, struct collector *collector, uint64_t index)
{
    if (search->is_replied)
        resp_integer(&collector->out, (int64_t)index);
    else
        resp_raw(&collector->out, (const char *)&index, sizeof(index));
}

/* Compares and counts the element that `place` passes. */
static enum store_result visit(struct search *search, struct collector *collector,
                               struct list_place *place)
{
    struct store_item element;
    bool equal;
    enum store_result result = search->backwards ? list_prev(search->list, place) : STORE_OK;
    if (result == STORE_OK)
        result = list_get(search->list, place, &element);
    if (result == STORE_OK)
        result = is_equal(search, collector, &element, &equal);
    uint64_t index = place->index;
    if (result == STORE_OK && !search->backwards)
        result = list_next(search->list, place);
    if (result != STORE_OK)
        return result;
    if (equal && ++collector->count > search->skip)
        keep(search, collector, index);
    collector->at++;
    if (collector->out.failed)
        return STORE_NO_MEMORY;
    bool pauses = list_is_large(search->list) && collector_step_is_full(collector);
    return pauses ? collector_step(search->list->call, collector) : STORE_OK;
}

/* Collects the positions of the matches. */
static enum store_result run_search(struct search *search, struct collector **collected)
{
    struct list_place place;
    struct list *list = search->list;
    struct collector *collector = *collected = collector_get(list->call);
    if (collector == NULL)
        return STORE_NO_MEMORY;
    collector->is_tail = search->is_replied;
    uint64_t total = list_count(list), at = collector->at;
    uint64_t end = search->visit_max < total ? search->visit_max : total;
    uint64_t enough = search->wanted > 0 ? search->skip + search->wanted : UINT64_MAX;
    enum store_result result = list_seek(list, search->backwards ? total - at : at, &place);
    while (result == STORE_OK && collector->at < end && collector->count < enough)
        result = visit(search, collector, &place);
    return result;
}

static uint64_t kept_count(const struct collector *collector)
{
    return collector->out.len / sizeof(uint64_t);
}

static uint64_t kept_index(const struct collector *collector, uint64_t i)
{
    uint64_t index;
    assert(i < kept_count(collector));
    memcpy(&index, collector->out.data + i * sizeof(index), sizeof(index));
    return index;
}

/* ---- LINSERT ---- */

enum store_result cmd_linsert(struct call *call)
{
    struct list list;
    struct list_place place;
    struct collector *collector;
    bool after = slice_is(call->argv[2], "after");
    if (!after && !slice_is(call->argv[2], "before")) {
        call_syntax_error(call);
        return STORE_OK;
    }
    enum store_result result = list_find(call, call->keys, &list);
    if (result != STORE_OK)
        return result;
    if (!list.exists) {
        resp_integer(call->reply, 0);
        return STORE_OK;
    }
    struct search search = {
        .list = &list, .value = call->argv[3], .visit_max = UINT64_MAX, .wanted = 1};
    result = run_search(&search, &collector);
    if (result != STORE_OK)
        return result;
    if (kept_count(collector) == 0) {
        resp_integer(call->reply, -1);
        return STORE_OK;
    }
    result = list_seek(&list, kept_index(collector, 0) + after, &place);
    if (result == STORE_OK)
        result = list_insert(&list, &place, call->argv[4]);
    if (result != STORE_OK)
        return result;
    resp_integer(call->reply, (int64_t)list_count(&list));
    return list_changed(&list, "linsert");
}

/* ---- LREM ---- */

/* Removes the matches, the last ones first, so that earlier positions stay valid. */
static enum store_result remove_kept(struct list *list, const struct collector *collector,
                                     bool rising)
{
    struct list_place place;
    enum store_result result = STORE_OK;
    uint64_t count = kept_count(collector);
    for (uint64_t i = 0; i < count && result == STORE_OK; i++) {
        result = list_seek(list, kept_index(collector, rising ? count - 1 - i : i), &place);
        if (result == STORE_OK)
            result = list_remove(list, &place, 1);
        if (result == STORE_OK)
            result = list_yield(list, i);
    }
    return result;
}

enum store_result cmd_lrem(struct call *call)
{
    struct list list;
    struct collector *collector;
    int64_t count;
    if (!call_int64(call, call->argv[2], &count))
        return STORE_OK;
    enum store_result result = list_find(call, call->keys, &list);
    if (result != STORE_OK)
        return result;
    if (!list.exists) {
        resp_integer(call->reply, 0);
        return STORE_OK;
    }
    struct search search = {.list = &list,
                            .value = call->argv[3],
                            .backwards = count < 0,
                            .visit_max = UINT64_MAX,
                            .wanted = count < 0 ? 0 - (uint64_t)count : (uint64_t)count};
    result = run_search(&search, &collector);
    if (result == STORE_OK)
        result = remove_kept(&list, collector, !search.backwards);
    if (result != STORE_OK)
        return result;
    uint64_t removed = kept_count(collector);
    resp_integer(call->reply, (int64_t)removed);
    return removed > 0 ? list_changed(&list, "lrem") : STORE_OK;
}

/* ---- LPOS ---- */

struct lpos {
    int64_t rank, count, max_len; /* count -1: a single position instead of an array */
};

static bool lpos_options(struct call *call, struct lpos *lpos)
{
    *lpos = (struct lpos){.rank = 1, .count = -1};
    for (size_t i = 3; i < call->argc; i += 2) {
        if (i + 1 == call->argc)
            return call_syntax_error(call);
        struct resp_slice value = call->argv[i + 1];
        if (slice_is(call->argv[i], "rank")) {
            if (!call_int64_between(call, value, -INT64_MAX, INT64_MAX, &lpos->rank))
                return false;
            if (lpos->rank == 0) {
                resp_error(call->reply,
                           "ERR RANK can't be zero: use 1 to start from the first match, 2 from "
                           "the second ... or use negative to start from the end of the list");
                return false;
            }
        } else if (slice_is(call->argv[i], "count")) {
            if (!call_int64_from(call, value, 0, "ERR COUNT can't be negative", &lpos->count))
                return false;
        } else if (slice_is(call->argv[i], "maxlen")) {
            if (!call_int64_from(call, value, 0, "ERR MAXLEN can't be negative", &lpos->max_len))
                return false;
        } else {
            return call_syntax_error(call);
        }
    }
    return true;
}

enum store_result cmd_lpos(struct call *call)
{
    struct list list;
    struct collector *collector;
    struct lpos lpos;
    if (!lpos_options(call, &lpos))
        return STORE_OK;
    enum store_result result = list_find(call, call->keys, &list);
    if (result != STORE_OK)
        return result;
    struct search search = {.list = &list,
                            .value = call->argv[2],
                            .backwards = lpos.rank<0, .visit_max = lpos.max_len> 0
                                             ? (uint64_t)lpos.max_len
                                             : UINT64_MAX,
                            .wanted = lpos.count < 0 ? 1 : (uint64_t)lpos.count,
                            .skip = (uint64_t)(lpos.rank < 0 ? -lpos.rank : lpos.rank) - 1,
                            .is_replied = true};
    result = run_search(&search, &collector);
    if (result != STORE_OK)
        return result;
    uint64_t found = collector->count > search.skip ? collector->count - search.skip : 0;
    if (lpos.count >= 0)
        resp_array(call->reply, found);
    else if (found == 0)
        resp_null(call->reply);
    return collector_reply(call, collector);
}
