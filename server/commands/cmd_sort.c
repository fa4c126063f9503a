/*
 * SORT and SORT_RO. A BY or GET pattern reads keys that are not declared; the command then runs
 * with the exclusive lock on the store.
 *
 * Elements are read, weighed, sorted in memory and output in steps: see sort_table.h.
 */
#include "server/commands/commands.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/types/hash.h"
#include "server/types/list.h"
#include "server/types/members_order.h"
#include "server/exec/request.h"
#include "server/types/set.h"
#include "server/core/session.h"
#include "server/types/sort_table.h"
#include "server/types/string_walk.h"
#include "server/types/zset_order.h"
#include "server/exec/keyspace.h"
#include "server/pubsub/notify.h"
#include "server/core/call.h"

struct sort {
    struct call *call;
    struct sort_table *table;
    bool descending, by_bytes, is_unsorted;
    int64_t offset, limit; /* limit < 0: no end */
    struct resp_slice by;  /* data == NULL: by the elements themselves */
    size_t *gets;          /* arguments that contain a GET pattern */
    size_t get_count;
    const struct store_key *to; /* or NULL */
};

/* ---- arguments ---- */

static bool has_star(struct resp_slice pattern)
{
    return pattern.len > 0 && memchr(pattern.data, '*', pattern.len) != NULL;
}

static bool read_options(struct call *call, struct sort *sort)
{
    bool may_store = (call->command->flags & CMD_WRITE) != 0;
    for (size_t i = 2; i < call->argc; i++) {
        size_t left = call->argc - i - 1;
        struct resp_slice option = call->argv[i];
        if (slice_is(option, "asc") || slice_is(option, "desc")) {
            sort->descending = slice_is(option, "desc");
        } else if (slice_is(option, "alpha")) {
            sort->by_bytes = true;
        } else if (slice_is(option, "limit") && left >= 2) {
            if (!call_int64(call, call->argv[i + 1], &sort->offset) ||
                !call_int64(call, call->argv[i + 2], &sort->limit))
                return false;
            i += 2;
        } else if (slice_is(option, "store") && left >= 1 && may_store) {
            sort->to = &call->keys[call->key_count - 1];
            i++;
        } else if (slice_is(option, "by") && left >= 1) {
            sort->by = call->argv[++i];
            sort->is_unsorted |= !has_star(sort->by); /* a later pattern does not undo it */
        } else if (slice_is(option, "get") && left >= 1) {
            sort->gets[sort->get_count++] = ++i;
        } else {
            return call_syntax_error(call);
        }
    }
    return true;
}

/* ---- patterns ---- */

/* The key, and the field of a hash, that a pattern yields for an element. Its name counts as bytes
 * read: the step that ends with them frees it. */
static bool expand(struct sort *sort, struct resp_slice pattern, struct resp_slice element,
                   struct store_key *key, struct resp_slice *field)
{
    struct call *call = sort->call;
    const char *star = memchr(pattern.data, '*', pattern.len);
    assert(star != NULL);
    size_t before = (size_t)(star - pattern.data), end = pattern.len;
    *field = (struct resp_slice){NULL, 0};
    const char *arrow = memmem(star + 1, pattern.len - before - 1, "->", 2);
    if (arrow != NULL && (size_t)(arrow - pattern.data) + 2 < pattern.len) {
        end = (size_t)(arrow - pattern.data);
        *field = (struct resp_slice){arrow + 2, pattern.len - end - 2};
    }
    size_t after = end - before - 1, len = before + element.len + after;
    char *name = store_alloc(call->txn, len + 1);
    if (name == NULL)
        return false;
    sort->table->read += len;
    memcpy(name, pattern.data, before);
    memcpy(name + before, element.data, element.len);
    memcpy(name + before + element.len, star + 1, after);
    store_key(call->server->store, key, call->session->db, name, len, STORE_SHARED);
    return true;
}

static enum store_result copy_slice(struct call *call, struct resp_slice from,
                                    struct resp_slice *to)
{
    char *bytes = store_alloc(call->txn, from.len + 1);
    if (bytes == NULL)
        return STORE_NO_MEMORY;
    memcpy(bytes, from.data, from.len);
    *to = (struct resp_slice){bytes, from.len};
    return STORE_OK;
}

/* The value that a pattern yields for an element; value->data == NULL: none. `number` of the
 * look-up: see sort_table.h. */
static enum store_result look_up(struct sort *sort, struct resp_slice pattern, uint64_t number,
                                 struct resp_slice element, struct resp_slice *value)
{
    struct call *call = sort->call;
    struct resp_slice field;
    struct store_item item;
    struct members hash;
    bool found;
    *value = (struct resp_slice){NULL, 0};
    if (pattern.len == 1 && pattern.data[0] == '#') {
        *value = element;
        return STORE_OK;
    }
    if (!has_star(pattern))
        return STORE_OK;
    struct store_key *key = store_alloc(call->txn, sizeof *key);
    if (key == NULL || !expand(sort, pattern, element, key, &field))
        return STORE_NO_MEMORY;
    enum store_result result = store_get(call->txn, key, &item);
    bool is_there = result == STORE_OK;
    if (is_there || result == STORE_ABSENT)
        result = sort_table_count_lookup(call, sort->table, number, key, is_there);
    if (result != STORE_OK || !is_there)
        return result;
    if (item_type(&item) != (field.data != NULL ? TYPE_HASH : TYPE_STRING))
        return STORE_OK;
    if (field.data == NULL) {
        value->len = item.length;
        sort->table->read += item.length;
        return string_view(call, &item, 0, item.length, &value->data);
    }
    result = members_open(call, key, &item, &hash);
    if (result == STORE_OK)
        result = members_get(call, &hash, field, value, &found);
    if (result == STORE_OK && found)
        return copy_slice(call, *value, value);
    *value = (struct resp_slice){NULL, 0};
    return result;
}

/* ---- reading the elements ---- */

static void range(const struct sort *sort, uint64_t count, uint64_t *first, uint64_t *end)
{
    uint64_t offset = sort->offset < 0 ? 0 : (uint64_t)sort->offset;
    *first = offset < count ? offset : count;
    *end = count;
    if (sort->limit >= 0 && (uint64_t)sort->limit < count - *first)
        *end = *first + (uint64_t)sort->limit;
    assert(*first <= *end && *end <= count);
}

/* Whether the unsorted result is in reverse order. A set has no order. */
static bool is_mirrored(const struct sort *sort, enum item_type type)
{
    return sort->is_unsorted && sort->descending && type != TYPE_SET;
}

/* Reserves memory for all `count` elements, or only for those in the range if they are not sorted.
 */
static enum store_result reserve(const struct sort *sort, enum item_type type, uint64_t count)
{
    uint64_t first = 0, end = count;
    if (sort->table->is_reserved)
        return STORE_OK;
    if (sort->is_unsorted)
        range(sort, count, &first, &end);
    sort->table->from = is_mirrored(sort, type) ? count - end : first;
    return sort_table_reserve(sort->table, end - first);
}

/* The data loaded for an element has been copied. In a script other commands may still refer to
 * theirs. */
static void drop_loaded(const struct sort *sort)
{
    if (sort->call->outer == NULL)
        store_drop_loaded(sort->call->txn);
}

/* Adds the next element, whose bytes may become invalid. */
static enum store_result keep(struct sort *sort, struct resp_slice name)
{
    struct sort_table *table = sort->table;
    assert(table->count < table->capacity);
    struct sort_element *element = &table->elements[table->count];
    *element = (struct sort_element){0};
    enum store_result result = sort_table_copy(table, name, &element->name);
    if (result != STORE_OK)
        return result;
    table->count++;
    drop_loaded(sort);
    return sort_table_step_is_full(table) ? sort_table_step(sort->call, table) : STORE_OK;
}

static enum store_result read_list(struct sort *sort, const struct store_item *item)
{
    struct sort_table *table = sort->table;
    struct list list;
    struct list_place place;
    struct store_item element;
    struct resp_slice name;
    enum store_result result = list_open(sort->call, sort->call->keys, item, &list);
    if (result == STORE_OK)
        result = reserve(sort, TYPE_LIST, list_count(&list));
    if (result == STORE_OK)
        result = list_seek(&list, table->from + table->count, &place);
    while (result == STORE_OK && table->count < table->capacity) {
        result = list_get(&list, &place, &element);
        if (result == STORE_OK)
            result = list_copy(&list, &element, &name);
        if (result == STORE_OK)
            result = keep(sort, name);
        if (result == STORE_OK)
            result = list_next(&list, &place);
    }
    return result;
}

/* Determines the display order, if members are output in that order. */
static enum store_result arrange_set(struct sort *sort, struct members *set)
{
    struct sort_table *table = sort->table;
    if (!sort->is_unsorted || !members_are_reordered(set))
        return STORE_OK;
    enum store_result result = members_arrange(sort->call, set, &table->order, table->left);
    bool is_step = result == STORE_OK && !table->order.is_sorted;
    return is_step ? sort_table_step(sort->call, table) : result;
}

/* The rank of the next member to read. */
static uint64_t next_rank(const struct sort_table *table)
{
    uint64_t place = table->from + table->count;
    assert(!table->order.is_sorted || place < table->order.count);
    return table->order.is_sorted ? table->order.places[place].rank : place;
}

static enum store_result read_set(struct sort *sort, const struct store_item *item)
{
    struct sort_table *table = sort->table;
    struct members set;
    struct resp_slice name;
    enum store_result result = members_open(sort->call, sort->call->keys, item, &set);
    if (result == STORE_OK)
        result = reserve(sort, TYPE_SET, members_count(&set));
    if (result == STORE_OK)
        result = arrange_set(sort, &set);
    while (result == STORE_OK && table->count < table->capacity) {
        result = members_at(sort->call, &set, next_rank(table), &name, NULL);
        if (result == STORE_OK)
            result = keep(sort, name);
    }
    return result;
}

static enum store_result read_zset(struct sort *sort, const struct store_item *item)
{
    struct sort_table *table = sort->table;
    struct zset zset;
    struct zset_place place;
    struct zset_element element;
    struct resp_slice name;
    enum store_result result = zset_open(sort->call, sort->call->keys, item, &zset);
    if (result == STORE_OK)
        result = reserve(sort, TYPE_ZSET, zset_count(&zset));
    if (result == STORE_OK)
        result = zset_seek(&zset, table->from + table->count, &place);
    while (result == STORE_OK && table->count < table->capacity) {
        result = zset_get(&zset, &place, &element);
        if (result == STORE_OK)
            result = zset_name(&zset, &element, &name);
        if (result == STORE_OK)
            result = keep(sort, name);
        if (result == STORE_OK)
            result = zset_next(&zset, &place);
    }
    return result;
}

static bool is_in_script(const struct call *call)
{
    const struct call *outer = call->outer;
    return outer != NULL && outer->command->role != ROLE_EXEC;
}

/* *type is unchanged if the key is absent. */
static enum store_result read_all(struct sort *sort, enum item_type *type)
{
    struct call *call = sort->call;
    struct store_item item;
    enum store_result result = call_find(call, call->keys, &item);
    if (result != STORE_OK)
        return result == STORE_ABSENT ? STORE_OK : result;
    *type = item_type(&item);
    if (sort->is_unsorted && *type == TYPE_SET && (sort->to != NULL || is_in_script(call))) {
        sort->is_unsorted = false; /* stored results need a deterministic order */
        sort->by_bytes = true;
        sort->by = (struct resp_slice){NULL, 0};
    }
    if (*type == TYPE_LIST)
        return read_list(sort, &item);
    if (*type == TYPE_SET)
        return read_set(sort, &item);
    if (*type == TYPE_ZSET)
        return read_zset(sort, &item);
    call_wrong_type(call);
    return STORE_ANSWERED;
}

/* ---- sorting ---- */

static int by_name(const struct sort_element *a, const struct sort_element *b)
{
    return zset_compare_members(a->name, b->name);
}

static int compare(const void *x, const void *y, void *arg)
{
    const struct sort *sort = arg;
    const struct sort_element *a = x, *b = y;
    int order = 0;
    if (!sort->by_bytes)
        order = a->number < b->number ? -1 : a->number > b->number;
    else if (a->weight.data != NULL && b->weight.data != NULL)
        order = zset_compare_members(a->weight, b->weight);
    else
        order = (a->weight.data != NULL) - (b->weight.data != NULL);
    if (order == 0)
        order = by_name(a, b); /* equal weights: the same order in every run */
    return sort->descending ? -order : order;
}

/* Called once. */
static void reverse(struct sort_table *table)
{
    if (table->width == UINT64_MAX)
        return;
    table->width = UINT64_MAX;
    for (uint64_t i = 0; i < table->count / 2; i++) {
        struct sort_element kept = table->elements[i];
        table->elements[i] = table->elements[table->count - 1 - i];
        table->elements[table->count - 1 - i] = kept;
    }
}

/* Like strtod(), up to a zero byte or the end, as in Redis; an empty text is 0. Numbers beyond the
 * range of a double are refused. */
static bool read_weight(struct call *call, struct resp_slice text, double *number)
{
    char room[128], *copy = room, *end;
    size_t len = strnlen(text.data, text.len);
    if (len >= sizeof room)
        copy = store_alloc(call->txn, len + 1);
    if (copy == NULL)
        return false;
    memcpy(copy, text.data, len);
    copy[len] = '\0';
    errno = 0;
    *number = strtod(copy, &end);
    return *end == '\0' && errno != ERANGE && !isnan(*number);
}

static enum store_result weigh(struct sort *sort, struct sort_element *element)
{
    struct call *call = sort->call;
    struct resp_slice weight = element->name;
    if (sort->by.data != NULL) {
        uint64_t number = (uint64_t)(element - sort->table->elements);
        enum store_result result = look_up(sort, sort->by, number, element->name, &weight);
        if (result != STORE_OK)
            return result;
    }
    if (sort->by_bytes && sort->by.data != NULL)
        return sort_table_copy(sort->table, weight, &element->weight);
    if (sort->by.data == NULL)
        element->weight = weight;
    if (!sort->by_bytes && weight.data != NULL && !read_weight(call, weight, &element->number))
        sort->table->has_bad_weight = true;
    return STORE_OK;
}

static enum store_result weigh_all(struct sort *sort)
{
    struct sort_table *table = sort->table;
    while (table->weighed < table->count) {
        enum store_result result = weigh(sort, &table->elements[table->weighed]);
        if (result != STORE_OK)
            return result;
        table->weighed++;
        drop_loaded(sort);
        if (sort_table_step_is_full(table))
            return sort_table_step(sort->call, table);
    }
    return STORE_OK;
}

/* As in Redis, all weights are looked up before one that is no number is refused. */
static enum store_result refuse_weight(struct sort *sort)
{
    enum store_result result = sort_table_tell_lookups(sort->call, sort->table);
    if (result != STORE_OK)
        return result;
    resp_error(sort->call->reply, "ERR One or more scores can't be converted into double");
    return STORE_ANSWERED;
}

/* Sorts the elements. STORE_ANSWERED: a weight is not a number. */
static enum store_result arrange(struct sort *sort, enum item_type type)
{
    if (sort->is_unsorted) {
        if (is_mirrored(sort, type))
            reverse(sort->table);
        return STORE_OK;
    }
    enum store_result result = weigh_all(sort);
    if (result == STORE_OK && sort->table->has_bad_weight)
        return refuse_weight(sort);
    if (result != STORE_OK)
        return result;
    return sort_table_sort(sort->table, compare, sort) ? STORE_OK
                                                       : sort_table_step(sort->call, sort->table);
}

/* ---- results ---- */

/* Outputs the next value, of the element or of a GET pattern, to the reply or to the result that is
 * stored. */
static enum store_result give(struct sort *sort, struct resp_slice element, size_t which)
{
    struct sort_table *table = sort->table;
    struct resp_slice value = element;
    if (sort->get_count > 0) {
        uint64_t number = table->count + table->given; /* after all weights */
        enum store_result result =
            look_up(sort, sort->call->argv[sort->gets[which]], number, element, &value);
        if (result != STORE_OK)
            return result;
    }
    if (sort->to != NULL) {
        struct resp_slice *kept = &table->values[table->given];
        bool is_kept = value.data == element.data; /* as for an element */
        *kept = value.data == NULL ? (struct resp_slice){"", 0} : value;
        return is_kept ? STORE_OK : sort_table_copy(table, *kept, kept);
    }
    if (value.data != NULL)
        resp_bulk(&table->out, value.data, value.len);
    else
        resp_null(&table->out);
    return table->out.failed ? STORE_NO_MEMORY : STORE_OK;
}

static enum store_result write_list(struct sort *sort, uint64_t count)
{
    const struct resp_slice *values = sort->table->values;
    struct list list = list_new(sort->call, sort->to, STORE_NO_EXPIRY);
    struct list_place place;
    enum store_result result = list_seek(&list, 0, &place);
    for (uint64_t i = 0; i < count && result == STORE_OK; i++) {
        result = list_insert(&list, &place, values[i]);
        if (result == STORE_OK)
            result = list_next(&list, &place);
    }
    return result == STORE_OK ? list_save(&list) : result;
}

static enum store_result store_results(struct sort *sort, uint64_t count)
{
    struct call *call = sort->call;
    struct bulk_store *bulk_store = &sort->table->bulk_store;
    struct bulk_store_parts parts = {
        .type = TYPE_LIST, .slices = sort->table->values, .count = count};
    bool is_large = bulk_store_is_large(&parts);
    enum store_result result = STORE_OK;
    resp_integer(call->reply, (int64_t)count);
    if (count == 0)
        return call_delete(call, sort->to);
    if (is_large)
        result = bulk_store_go_on(call, bulk_store, sort->to, &parts);
    if (result == STORE_OK)
        result = call_notify_if_new(call, sort->to);
    call_notify(call, NOTIFY_LIST, "sortstore", sort->to);
    if (result != STORE_OK)
        return result;
    return is_large ? bulk_store_put(call, bulk_store, sort->to, &parts) : write_list(sort, count);
}

static enum store_result give_all(struct sort *sort)
{
    struct sort_table *table = sort->table;
    struct call *call = sort->call;
    size_t width = sort->get_count > 0 ? sort->get_count : 1;
    uint64_t first = 0, end = table->count;
    enum store_result result = STORE_OK;
    if (!sort->is_unsorted)
        range(sort, table->count, &first, &end);
    if (sort->to != NULL)
        result = sort_table_reserve_values(table, (end - first) * width);
    while (result == STORE_OK && table->given < (end - first) * width) {
        struct resp_slice element = table->elements[first + table->given / width].name;
        result = give(sort, element, table->given % width);
        if (result != STORE_OK)
            return result;
        table->given++;
        drop_loaded(sort);
        if (sort_table_step_is_full(table))
            return sort_table_step(call, table);
    }
    if (result == STORE_OK)
        result = sort_table_tell_lookups(call, table);
    if (result != STORE_OK)
        return result;
    if (sort->to != NULL) /* all reads come before the first write */
        return store_results(sort, (end - first) * width);
    resp_array(call->reply, (end - first) * width);
    return reply_spill_reply(call, &table->spill, &table->out);
}

/* ---- the command ---- */

/* Keys named by a pattern cannot be declared in advance. */
static bool needs_all(const struct sort *sort)
{
    bool needs = !sort->is_unsorted && has_star(sort->by);
    for (size_t i = 0; i < sort->get_count; i++)
        needs |= has_star(sort->call->argv[sort->gets[i]]);
    return needs;
}

enum store_result cmd_sort(struct call *call)
{
    struct sort sort = {.call = call, .limit = -1};
    enum item_type type = TYPE_LIST;
    struct request *request = request_of_call(call);
    sort.gets = store_alloc(call->txn, call->argc * sizeof *sort.gets);
    if (sort.gets == NULL)
        return STORE_NO_MEMORY;
    if (!read_options(call, &sort))
        return STORE_OK;
    if (request->store.scope != STORE_SCOPE_ALL && needs_all(&sort)) {
        request->wants_all = true;
        return STORE_INVALID;
    }
    sort.table = sort_table_get(call);
    enum store_result result = sort.table == NULL ? STORE_NO_MEMORY : read_all(&sort, &type);
    if (result == STORE_OK)
        result = arrange(&sort, type);
    return result != STORE_OK ? result : give_all(&sort);
}

enum store_result cmd_sort_ro(struct call *call)
{
    return cmd_sort(call);
}
