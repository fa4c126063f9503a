/*
 * Invariants:
 * 1. Between list_find() and list_save() a packed list changes only in the transaction's memory.
 *    Entries of a tree change in the store at once.
 * 2. A packed list that no longer fits becomes a tree and stays one. The form is chosen anew only
 *    if the whole list is rewritten (list_keep).
 */
#include "server/types/list.h"

#include <assert.h>
#include <string.h>

#include "server/core/server.h"
#include "server/types/copy_trees.h"
#include "server/types/string_walk.h"
#include "server/exec/keyspace.h"

/* ---- finding ---- */

struct list list_new(struct call *call, const struct store_key *key, int64_t expire_ms)
{
    return (struct list){.call = call,
                         .key = key,
                         .type = TYPE_LIST,
                         .expire_ms = expire_ms,
                         .packed = packed_empty()};
}

static enum store_result open_tree(struct list *list, const struct store_item *item)
{
    list->tree_type = item->type;
    return store_tree_open(list->call->txn, list->key, item, 0, &list->tree);
}

enum store_result list_open(struct call *call, const struct store_key *key,
                            const struct store_item *item, struct list *list)
{
    *list = list_new(call, key, item->expire_ms);
    list->exists = true;
    list->type = item->type;
    if (item->trees > 0)
        return open_tree(list, item);
    return !item->large && packed_open(&list->packed, item->bytes, item->length) ? STORE_OK
                                                                                 : STORE_DAMAGED;
}

enum store_result list_find(struct call *call, const struct store_key *key, struct list *list)
{
    struct store_item item;
    *list = list_new(call, key, STORE_NO_EXPIRY);
    enum store_result result = call_get(call, key, TYPE_LIST, &item);
    if (result == STORE_ABSENT)
        return STORE_OK;
    return result != STORE_OK ? result : list_open(call, key, &item, list);
}

uint64_t list_count(const struct list *list)
{
    return list->tree != NULL ? store_tree_count(list->tree) : list->packed.count;
}

/* ---- positions ---- */

enum store_result list_seek(struct list *list, uint64_t index, struct list_place *place)
{
    assert(index <= list_count(list));
    place->index = index;
    if (list->tree != NULL)
        return store_tree_seek_rank(list->tree, index, &place->cursor);
    bool is_end = index == list->packed.count;
    place->at = is_end ? list->packed.len : packed_at(&list->packed, (uint32_t)index).at;
    return STORE_OK;
}

static struct packed_entry entry_at(const struct list *list, const struct list_place *place)
{
    struct packed_entry entry = {.end = place->at};
    bool found = packed_next(&list->packed, &entry);
    assert(found);
    (void)found;
    return entry;
}

enum store_result list_get(struct list *list, struct list_place *place, struct store_item *element)
{
    assert(place->index < list_count(list));
    if (list->tree != NULL) {
        struct store_entry entry;
        enum store_result result = store_tree_get(&place->cursor, &entry);
        *element = entry.value;
        return result;
    }
    struct resp_slice slice = entry_at(list, place).slice;
    *element = (struct store_item){.bytes = slice.data, .length = slice.len};
    return STORE_OK;
}

enum store_result list_read(struct list *list, struct list_place *place,
                            struct store_entry *elements, uint32_t most, uint32_t *count)
{
    assert(place->index < list_count(list));
    if (list->tree != NULL) {
        enum store_result result = store_tree_read(&place->cursor, elements, most, count);
        place->index += result == STORE_OK ? *count : 0;
        return result;
    }
    struct packed_entry entry = {.end = place->at};
    for (*count = 0; *count < most && packed_next(&list->packed, &entry); ++*count)
        elements[*count].value =
            (struct store_item){.bytes = entry.slice.data, .length = entry.slice.len};
    place->at = entry.end;
    place->index += *count;
    return STORE_OK;
}

enum store_result list_next(struct list *list, struct list_place *place)
{
    assert(place->index < list_count(list));
    place->index++;
    if (list->tree != NULL)
        return store_tree_next(&place->cursor);
    place->at = entry_at(list, place).end;
    return STORE_OK;
}

enum store_result list_prev(struct list *list, struct list_place *place)
{
    assert(place->index > 0);
    place->index--;
    if (list->tree != NULL)
        return store_tree_prev(&place->cursor);
    struct packed_entry entry = {.at = place->at};
    bool found = packed_prev(&list->packed, &entry);
    assert(found);
    (void)found;
    place->at = entry.at;
    return STORE_OK;
}

/* ---- changes ---- */

/* Converts the packed form to a tree. */
static enum store_result grow(struct list *list)
{
    struct store_item item;
    struct store_cursor cursor;
    struct store_txn *txn = list->call->txn;
    if (!packed_own(&list->packed, txn))
        return STORE_NO_MEMORY;
    enum store_result result = store_tree_create(txn, list->key, list->type, 1, list->expire_ms);
    if (result == STORE_OK)
        result = store_get(txn, list->key, &item);
    if (result == STORE_OK)
        result = open_tree(list, &item);
    if (result == STORE_OK)
        result = store_tree_seek_rank(list->tree, 0, &cursor);
    struct packed_entry entry = {.at = 0};
    while (result == STORE_OK && packed_next(&list->packed, &entry)) {
        result = store_tree_insert(&cursor, "", 0, entry.slice.data, entry.slice.len);
        if (result == STORE_OK)
            result = store_tree_next(&cursor);
    }
    return result;
}

/* Replaces `removed` (0 or 1) elements by `value`. */
static enum store_result splice(struct list *list, struct list_place *place, uint32_t removed,
                                struct resp_slice value)
{
    if (list->tree == NULL) {
        if (!packed_own(&list->packed, list->call->txn))
            return STORE_NO_MEMORY;
        uint32_t end = removed > 0 ? entry_at(list, place).end : place->at;
        if (packed_splice(&list->packed, place->at, end, &value, 1))
            return STORE_OK;
        enum store_result result = grow(list);
        if (result == STORE_OK)
            result = list_seek(list, place->index, place);
        if (result != STORE_OK)
            return result;
    }
    if (removed > 0)
        return store_tree_replace(&place->cursor, value.data, value.len);
    return store_tree_insert(&place->cursor, "", 0, value.data, value.len);
}

enum store_result list_insert(struct list *list, struct list_place *place, struct resp_slice value)
{
    return splice(list, place, 0, value);
}

enum store_result list_replace(struct list *list, struct list_place *place, struct resp_slice value)
{
    assert(place->index < list_count(list));
    return splice(list, place, 1, value);
}

enum store_result list_remove(struct list *list, struct list_place *place, uint64_t count)
{
    assert(count <= list_count(list) - place->index);
    enum store_result result = STORE_OK;
    if (list->tree != NULL) {
        for (; count > 0 && result == STORE_OK; count--) {
            result = store_tree_remove(&place->cursor);
            if (result == STORE_OK)
                result = list_yield(list, count);
        }
        return result;
    }
    if (!packed_own(&list->packed, list->call->txn))
        return STORE_NO_MEMORY;
    struct packed_entry entry = {.end = place->at};
    for (; count > 0; count--)
        packed_next(&list->packed, &entry);
    packed_cut(&list->packed, place->at, entry.end);
    return STORE_OK;
}

enum store_result list_copy(struct list *list, const struct store_item *element,
                            struct resp_slice *copy)
{
    copy->len = element->length;
    if (element->large)
        return string_view(list->call, element, 0, copy->len, &copy->data);
    char *bytes = store_alloc(list->call->txn, element->length + 1);
    if (bytes == NULL)
        return STORE_NO_MEMORY;
    memcpy(bytes, element->bytes, element->length);
    copy->data = bytes;
    return STORE_OK;
}

/* Copies the remaining elements to a list that replaces this one, in steps: together they may not
 * fit into memory. */
static enum store_result copy_kept(struct list *list, uint64_t index, uint64_t count)
{
    struct store_item item;
    enum store_result result = copy_trees_keep(list->call, list->key, index, count, &item);
    return result == STORE_OK ? open_tree(list, &item) : result;
}

/* Copies the remaining elements to a list that replaces this one. */
static enum store_result write_anew(struct list *list, uint64_t index, uint64_t count)
{
    struct resp_slice *kept = store_alloc(list->call->txn, (count + 1) * sizeof(*kept));
    struct store_item element;
    struct list_place place;
    if (kept == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = list_seek(list, index, &place);
    for (uint64_t i = 0; i < count && result == STORE_OK; i++) {
        result = list_get(list, &place, &element);
        if (result == STORE_OK)
            result = list_copy(list, &element, &kept[i]);
        if (result == STORE_OK)
            result = list_next(list, &place);
        if (result == STORE_OK)
            result = list_yield(list, i);
    }
    struct list fresh = list_new(list->call, list->key, list->expire_ms);
    fresh.exists = true;
    fresh.type = list->type;
    if (result == STORE_OK)
        result = list_seek(&fresh, 0, &place);
    for (uint64_t i = 0; i < count && result == STORE_OK; i++) {
        result = list_insert(&fresh, &place, kept[i]);
        if (result == STORE_OK)
            result = list_next(&fresh, &place);
        if (result == STORE_OK)
            result = list_yield(&fresh, i);
    }
    *list = fresh;
    return result;
}

enum store_result list_keep(struct list *list, uint64_t index, uint64_t count)
{
    uint64_t total = list_count(list);
    assert(index <= total && count <= total - index);
    if (list->tree != NULL && count < total - count) /* less work than removing the others */
        return count > COPY_TREES_MANY ? copy_kept(list, index, count)
                                       : write_anew(list, index, count);
    struct list_place place;
    enum store_result result = list_seek(list, index + count, &place);
    if (result == STORE_OK)
        result = list_remove(list, &place, total - index - count);
    if (result == STORE_OK)
        result = list_seek(list, 0, &place);
    if (result == STORE_OK)
        result = list_remove(list, &place, index);
    return result;
}

/* ---- saving ---- */

#define LISTPACK_FRAME 7 /* overhead of Redis's listpack besides its entries */
#define LISTPACK_ENTRY_MIN 2
#define LISTPACK_SAFE 8192 /* the byte limit if the number of entries is limited */

/* list-max-listpack-size as bytes and elements. */
static void compact_limits(const struct list *list, uint64_t *bytes, uint64_t *count)
{
    static const uint64_t sizes[] = {4096, 8192, 16384, 32768, 65536};
    int64_t limit = config_number(&list->call->server->config, CONFIG_LIST_MAX_LISTPACK_SIZE);
    *bytes = LISTPACK_SAFE;
    *count = UINT64_MAX;
    if (limit < 0)
        *bytes = sizes[limit < -5 ? 4 : -limit - 1];
    else
        *count = limit == 0 ? 1 : (uint64_t)limit;
}

/* Size of an element in Redis's listpack. */
static uint64_t listpack_size(const struct store_item *element)
{
    static const struct {
        int64_t bound;
        uint64_t size;
    } integers[] = {{1 << 12, 2}, {1 << 15, 3}, {1 << 23, 4}, {INT64_C(1) << 31, 5}};
    uint64_t size = element->length + (element->length < 64 ? 1 : element->length < 4096 ? 2 : 5);
    int64_t number;
    if (!element->large && resp_read_int64(element->bytes, element->length, &number)) {
        size = 9;
        for (size_t i = 4; i-- > 0;)
            if (number >= -integers[i].bound && number < integers[i].bound)
                size = integers[i].size;
        if (number >= 0 && number < 128)
            size = 1;
    }
    return size + (size < 128 ? 1 : size < 16384 ? 2 : size < 2097152 ? 3 : 4);
}

/* The size that Redis's listpack would have, or any value above `bound`. */
static enum store_result weigh(struct list *list, uint64_t bound, uint64_t *bytes)
{
    struct list_place place;
    struct store_item element;
    uint64_t count = list_count(list);
    *bytes = LISTPACK_FRAME + count * LISTPACK_ENTRY_MIN;
    if (*bytes > bound)
        return STORE_OK;
    *bytes = LISTPACK_FRAME;
    enum store_result result = list_seek(list, 0, &place);
    while (result == STORE_OK && place.index < count && *bytes <= bound) {
        result = list_get(list, &place, &element);
        if (result != STORE_OK)
            return result;
        *bytes += listpack_size(&element);
        result = list_next(list, &place);
    }
    return result;
}

/* Records the encoding that Redis would use: `quicklist` above its limits, `listpack` again below
 * half of them. */
static enum store_result choose_form(struct list *list)
{
    uint64_t max_bytes, max_count, bytes, count = list_count(list);
    bool is_big = (list->type & ITEM_BIG) != 0;
    compact_limits(list, &max_bytes, &max_count);
    if (is_big) {
        max_bytes /= 2;
        max_count = max_count == UINT64_MAX ? max_count : max_count / 2;
    }
    if (is_big && count > max_count)
        return STORE_OK;
    enum store_result result = weigh(list, max_bytes, &bytes);
    list->type &= (uint8_t)~ITEM_BIG;
    if (bytes > max_bytes || count > max_count)
        list->type |= ITEM_BIG;
    return result;
}

enum store_result list_yield(struct list *list, uint64_t i)
{
    return packed_yield(list->call, &list->packed, i);
}

enum store_result list_save(struct list *list)
{
    struct store_txn *txn = list->call->txn;
    if (list_count(list) == 0)
        return store_delete(txn, list->key);
    enum store_result result = choose_form(list);
    if (result != STORE_OK)
        return result;
    if (list->tree == NULL)
        return store_put(txn, list->key, list->type, list->packed.bytes, list->packed.len,
                         list->expire_ms);
    if (list->type == list->tree_type)
        return STORE_OK;
    struct store_item item;
    result = store_get(txn, list->key, &item);
    if (result == STORE_OK)
        result = store_tree_set_type(txn, list->key, &item, list->type);
    list->tree_type = list->type;
    return result;
}
