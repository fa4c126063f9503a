/*
 * Invariants:
 * 1. The packed sequence and the tree in order are sorted. Both trees have the same members.
 * 2. Between zset_find() and zset_save() a packed sorted set changes only in the transaction's
 *    memory. Trees change in the store at once.
 * 3. A packed sorted set that no longer fits becomes a pair of trees and stays so. The form is
 *    chosen anew only if it is rewritten as a whole.
 */
#include "server/types/zset.h"

#include <assert.h>
#include <string.h>

#include "server/types/member_tree.h"
#include "server/core/server.h"
#include "server/types/zset_order.h"
#include "server/types/string_walk.h"
#include "server/exec/keyspace.h"

/* ---- finding ---- */

struct zset zset_new(struct call *call, const struct store_key *key, int64_t expire_ms)
{
    return (struct zset){.call = call,
                         .key = key,
                         .type = TYPE_ZSET,
                         .expire_ms = expire_ms,
                         .packed = packed_empty()};
}

static enum store_result open_trees(struct zset *zset, const struct store_item *item)
{
    if (item->trees != 2)
        return STORE_DAMAGED;
    zset->tree_type = item->type;
    enum store_result result = store_tree_open(zset->call->txn, zset->key, item, 0, &zset->order);
    if (result == STORE_OK)
        result = store_tree_open(zset->call->txn, zset->key, item, 1, &zset->by_member);
    return result;
}

enum store_result zset_open(struct call *call, const struct store_key *key,
                            const struct store_item *item, struct zset *zset)
{
    *zset = zset_new(call, key, item->expire_ms);
    zset->exists = true;
    zset->type = item->type;
    if (item->trees > 0)
        return open_trees(zset, item);
    bool is_whole = !item->large && packed_open(&zset->packed, item->bytes, item->length) &&
                    zset->packed.count % 2 == 0;
    return is_whole ? STORE_OK : STORE_DAMAGED;
}

enum store_result zset_find(struct call *call, const struct store_key *key, struct zset *zset)
{
    struct store_item item;
    *zset = zset_new(call, key, STORE_NO_EXPIRY);
    enum store_result result = call_get(call, key, TYPE_ZSET, &item);
    if (result == STORE_ABSENT)
        return STORE_OK;
    return result != STORE_OK ? result : zset_open(call, key, &item, zset);
}

uint64_t zset_count(const struct zset *zset)
{
    return zset->order != NULL ? store_tree_count(zset->order) : zset->packed.count / 2;
}

struct members zset_members(const struct zset *zset)
{
    return (struct members){.key = zset->key,
                            .width = 2,
                            .type = zset->type,
                            .exists = zset->exists,
                            .packed = zset->packed,
                            .tree = zset->by_member};
}

bool zset_score_parse(struct resp_slice bytes, double *score)
{
    if (bytes.len != ZSET_SCORE_BYTES)
        return false;
    *score = zset_score_read(bytes.data);
    return true;
}

static bool packed_pair(const struct zset *zset, uint32_t at, struct zset_pair *pair, uint32_t *end)
{
    struct packed_entry entry = {.end = at};
    if (!packed_next(&zset->packed, &entry))
        return false;
    pair->member = entry.slice;
    if (!packed_next(&zset->packed, &entry) || !zset_score_parse(entry.slice, &pair->score))
        return false;
    *end = entry.end;
    return true;
}

enum store_result zset_score(struct zset *zset, struct resp_slice member, double *score,
                             bool *found)
{
    struct zset_pair pair;
    if (zset->order == NULL) {
        struct packed_entry entry;
        uint32_t end;
        *found = packed_find(&zset->packed, member, 2, &entry);
        if (*found && !packed_pair(zset, entry.at, &pair, &end))
            return STORE_DAMAGED;
        *score = *found ? pair.score : 0;
        return STORE_OK;
    }
    struct store_cursor cursor;
    struct member entry;
    struct resp_slice bytes;
    enum store_result result =
        member_find(zset->call, zset->by_member, member, &cursor, &entry, found);
    if (result != STORE_OK || !*found)
        return result;
    result = member_value(zset->call, &entry, &bytes);
    return result == STORE_OK && !zset_score_parse(bytes, score) ? STORE_DAMAGED : result;
}

/* ---- walking ---- */

enum store_result zset_seek(struct zset *zset, uint64_t rank, struct zset_place *place)
{
    assert(rank <= zset_count(zset));
    place->rank = rank;
    if (zset->order != NULL)
        return store_tree_seek_rank(zset->order, rank, &place->cursor);
    bool is_end = 2 * rank == zset->packed.count;
    place->at = is_end ? zset->packed.len : packed_at(&zset->packed, (uint32_t)(2 * rank)).at;
    return STORE_OK;
}

static enum store_result read_entry(const struct store_entry *entry, struct zset_element *element)
{
    if (entry->key_len < ZSET_SCORE_BYTES)
        return STORE_DAMAGED;
    element->score = zset_score_read(entry->key);
    element->member = entry->value;
    if (entry->value.length == 0)
        element->member = (struct store_item){.bytes = entry->key + ZSET_SCORE_BYTES,
                                              .length = entry->key_len - ZSET_SCORE_BYTES};
    return STORE_OK;
}

enum store_result zset_get(struct zset *zset, struct zset_place *place,
                           struct zset_element *element)
{
    assert(place->rank < zset_count(zset));
    if (zset->order != NULL) {
        struct store_entry entry;
        enum store_result result = store_tree_get(&place->cursor, &entry);
        return result == STORE_OK ? read_entry(&entry, element) : result;
    }
    struct zset_pair pair;
    uint32_t end;
    if (!packed_pair(zset, place->at, &pair, &end))
        return STORE_DAMAGED;
    element->score = pair.score;
    element->member = (struct store_item){.bytes = pair.member.data, .length = pair.member.len};
    return STORE_OK;
}

enum store_result zset_next(struct zset *zset, struct zset_place *place)
{
    assert(place->rank < zset_count(zset));
    place->rank++;
    if (zset->order != NULL)
        return store_tree_next(&place->cursor);
    struct packed_entry entry = {.end = place->at};
    packed_next(&zset->packed, &entry);
    packed_next(&zset->packed, &entry);
    place->at = entry.end;
    return STORE_OK;
}

enum store_result zset_prev(struct zset *zset, struct zset_place *place)
{
    assert(place->rank > 0);
    place->rank--;
    if (zset->order != NULL)
        return store_tree_prev(&place->cursor);
    struct packed_entry entry = {.at = place->at};
    packed_prev(&zset->packed, &entry);
    packed_prev(&zset->packed, &entry);
    place->at = entry.at;
    return STORE_OK;
}

enum store_result zset_name(struct zset *zset, const struct zset_element *element,
                            struct resp_slice *name)
{
    *name = (struct resp_slice){element->member.bytes, element->member.length};
    return element->member.large
               ? string_view(zset->call, &element->member, 0, name->len, &name->data)
               : STORE_OK;
}

/* ---- positions in order ---- */

/* Seeks the first element not before this pair. */
static enum store_result seek_packed(const struct zset *zset, const struct zset_pair *pair,
                                     struct zset_place *place)
{
    struct zset_pair other;
    struct packed_entry entry = packed_end(&zset->packed);
    uint32_t end;
    place->rank = zset->packed.count / 2;
    place->at = zset->packed.len;
    /* Searches from the end: bulk inserts arrive in order. */
    while (packed_prev(&zset->packed, &entry) && packed_prev(&zset->packed, &entry)) {
        if (!packed_pair(zset, entry.at, &other, &end))
            return STORE_DAMAGED;
        if (zset_compare(&other, pair) < 0)
            break;
        place->rank--;
        place->at = entry.at;
    }
    return STORE_OK;
}

/* Seeks the first element not before this pair. `ranked`: sets the cursor's rank. */
static enum store_result seek_order(struct zset *zset, const struct zset_pair *pair, bool ranked,
                                    struct store_cursor *cursor)
{
    struct zset_order_key key = zset_order_key(pair);
    enum store_result result = ranked ? store_tree_seek(zset->order, key.bytes, key.len, cursor)
                                      : store_tree_find(zset->order, key.bytes, key.len, cursor);
    /* Only a member that fills its key can have neighbours with an equal key. */
    while (result == STORE_OK && key.len == STORE_TREE_KEY_MAX) {
        struct store_entry entry;
        struct zset_element element;
        struct zset_pair other;
        result = store_tree_get(cursor, &entry);
        if (result == STORE_ABSENT)
            return STORE_OK;
        if (result == STORE_OK)
            result = read_entry(&entry, &element);
        if (result == STORE_OK)
            result = zset_name(zset, &element, &other.member);
        if (result != STORE_OK)
            return result;
        other.score = element.score;
        if (zset_compare(&other, pair) >= 0)
            return STORE_OK;
        result = store_tree_next(cursor);
    }
    return result;
}

enum store_result zset_seek_pair(struct zset *zset, const struct zset_pair *pair,
                                 struct zset_place *place)
{
    if (zset->order == NULL)
        return seek_packed(zset, pair, place);
    enum store_result result = seek_order(zset, pair, true, &place->cursor);
    place->rank = place->cursor.rank;
    return result;
}

enum store_result zset_rank(struct zset *zset, const struct zset_pair *pair, uint64_t *rank)
{
    struct zset_place place;
    enum store_result result = zset_seek_pair(zset, pair, &place);
    *rank = place.rank;
    return result;
}

/* ---- changes ---- */

static uint64_t config_limit(const struct zset *zset, enum config_id id)
{
    return (uint64_t)config_number(&zset->call->server->config, id);
}

void zset_expect(struct zset *zset, uint64_t count, size_t first_len)
{
    if (count > config_limit(zset, CONFIG_ZSET_MAX_LISTPACK_ENTRIES) ||
        (!zset->exists && first_len > config_limit(zset, CONFIG_ZSET_MAX_LISTPACK_VALUE)))
        zset->type |= ITEM_BIG;
}

static enum store_result add_to_trees(struct zset *zset, const struct zset_pair *pair)
{
    struct store_cursor cursor;
    struct member entry;
    bool found;
    char score[ZSET_SCORE_BYTES];
    struct zset_order_key key = zset_order_key(pair);
    bool is_whole = pair->member.len <= ZSET_PREFIX_MAX;
    enum store_result result = seek_order(zset, pair, false, &cursor);
    if (result == STORE_OK)
        result = store_tree_insert(&cursor, key.bytes, key.len, pair->member.data,
                                   is_whole ? 0 : pair->member.len);
    if (result == STORE_OK)
        result = member_find(zset->call, zset->by_member, pair->member, &cursor, &entry, &found);
    if (result != STORE_OK)
        return result;
    if (found)
        return STORE_DAMAGED;
    zset_score_write(score, pair->score);
    return member_insert(zset->call, &cursor, &entry, pair->member,
                         (struct resp_slice){score, sizeof(score)}, 0);
}

/* Converts the packed form to trees. */
static enum store_result grow(struct zset *zset)
{
    struct store_item item;
    struct store_txn *txn = zset->call->txn;
    struct zset_pair pair;
    if (!packed_own(&zset->packed, txn))
        return STORE_NO_MEMORY;
    enum store_result result = store_tree_create(txn, zset->key, zset->type, 2, zset->expire_ms);
    if (result == STORE_OK)
        result = store_get(txn, zset->key, &item);
    if (result == STORE_OK)
        result = open_trees(zset, &item);
    for (uint32_t at = 0; result == STORE_OK && at < zset->packed.len;)
        result = packed_pair(zset, at, &pair, &at) ? add_to_trees(zset, &pair) : STORE_DAMAGED;
    return result;
}

static enum store_result add_packed(struct zset *zset, const struct zset_pair *pair, bool *fits)
{
    struct zset_place place;
    char score[ZSET_SCORE_BYTES];
    enum store_result result = seek_packed(zset, pair, &place);
    if (result != STORE_OK)
        return result;
    if (!packed_own(&zset->packed, zset->call->txn))
        return STORE_NO_MEMORY;
    zset_score_write(score, pair->score);
    struct resp_slice entries[] = {pair->member, {score, sizeof(score)}};
    *fits = packed_splice(&zset->packed, place.at, place.at, entries, 2);
    return STORE_OK;
}

enum store_result zset_add(struct zset *zset, const struct zset_pair *pair)
{
    bool fits = false;
    enum store_result result = STORE_OK;
    if (zset_count(zset) >= config_limit(zset, CONFIG_ZSET_MAX_LISTPACK_ENTRIES) ||
        pair->member.len > config_limit(zset, CONFIG_ZSET_MAX_LISTPACK_VALUE))
        zset->type |= ITEM_BIG;
    if (zset->order == NULL) {
        result = add_packed(zset, pair, &fits);
        if (result == STORE_OK && !fits)
            result = grow(zset);
    }
    return result == STORE_OK && !fits ? add_to_trees(zset, pair) : result;
}

/* Removes the pair from the packed sequence, or from the tree in order alone. */
static enum store_result take_out(struct zset *zset, const struct zset_pair *pair)
{
    struct zset_place place;
    struct zset_pair found;
    uint32_t end;
    if (zset->order != NULL) {
        enum store_result result = seek_order(zset, pair, false, &place.cursor);
        return result == STORE_OK ? store_tree_remove(&place.cursor) : result;
    }
    enum store_result result = seek_packed(zset, pair, &place);
    if (result != STORE_OK)
        return result;
    if (!packed_own(&zset->packed, zset->call->txn))
        return STORE_NO_MEMORY;
    if (!packed_pair(zset, place.at, &found, &end))
        return STORE_DAMAGED;
    packed_cut(&zset->packed, place.at, end);
    return STORE_OK;
}

enum store_result zset_move(struct zset *zset, const struct zset_pair *pair, double score)
{
    struct store_cursor cursor;
    struct member entry;
    char bytes[ZSET_SCORE_BYTES];
    bool found, fits = true;
    struct zset_pair moved = {pair->member, score};
    enum store_result result = take_out(zset, pair);
    if (result != STORE_OK)
        return result;
    if (zset->order == NULL) {
        result = add_packed(zset, &moved, &fits);
        assert(fits); /* the size does not change */
        return result;
    }
    struct zset_order_key key = zset_order_key(&moved);
    bool is_whole = pair->member.len <= ZSET_PREFIX_MAX;
    result = seek_order(zset, &moved, false, &cursor);
    if (result == STORE_OK)
        result = store_tree_insert(&cursor, key.bytes, key.len, pair->member.data,
                                   is_whole ? 0 : pair->member.len);
    if (result == STORE_OK)
        result = member_find(zset->call, zset->by_member, pair->member, &cursor, &entry, &found);
    if (result == STORE_OK && !found)
        return STORE_DAMAGED;
    zset_score_write(bytes, score);
    return result == STORE_OK ? member_replace(zset->call, &cursor, pair->member,
                                               (struct resp_slice){bytes, sizeof(bytes)})
                              : result;
}

static enum store_result remove_by_member(struct zset *zset, struct resp_slice name)
{
    struct store_cursor cursor;
    struct member entry;
    bool found;
    enum store_result result =
        member_find(zset->call, zset->by_member, name, &cursor, &entry, &found);
    if (result == STORE_OK && !found)
        return STORE_DAMAGED;
    return result == STORE_OK ? store_tree_remove(&cursor) : result;
}

enum store_result zset_remove(struct zset *zset, const struct zset_pair *pair)
{
    enum store_result result = take_out(zset, pair);
    if (result == STORE_OK && zset->order != NULL)
        result = remove_by_member(zset, pair->member);
    return result;
}

/* ---- bulk operations ---- */

enum store_result zset_yield(struct zset *zset, uint64_t i)
{
    return packed_yield(zset->call, &zset->packed, i);
}

/* Copies the elements with ranks [first, end) to `pairs`. Their members are valid until the request
 * is finished. */
static enum store_result copy_range(struct zset *zset, uint64_t first, uint64_t end,
                                    struct zset_pair *pairs)
{
    struct zset_place place;
    struct zset_element element;
    enum store_result result = zset_seek(zset, first, &place);
    for (; result == STORE_OK && place.rank < end; pairs++) {
        result = zset_get(zset, &place, &element);
        if (result == STORE_OK)
            result = zset_name(zset, &element, &pairs->member);
        if (result != STORE_OK)
            return result;
        pairs->score = element.score;
        if (!element.member.large) {
            char *copy = store_alloc(zset->call->txn, element.member.length + 1);
            if (copy == NULL)
                return STORE_NO_MEMORY;
            memcpy(copy, element.member.bytes, element.member.length);
            pairs->member.data = copy;
        }
        result = zset_yield(zset, place.rank);
        if (result == STORE_OK)
            result = zset_next(zset, &place);
    }
    return result;
}

/* Copies all but a range to a sorted set that replaces this one. This is less work than removing
 * the range if that is more than half of the elements. */
static enum store_result write_anew(struct zset *zset, uint64_t first, uint64_t count)
{
    uint64_t total = zset_count(zset), kept = total - count;
    struct zset_pair *pairs = store_alloc(zset->call->txn, (kept + 1) * sizeof(*pairs));
    if (pairs == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = copy_range(zset, 0, first, pairs);
    if (result == STORE_OK)
        result = copy_range(zset, first + count, total, pairs + first);
    struct zset fresh = zset_new(zset->call, zset->key, zset->expire_ms);
    fresh.exists = zset->exists;
    fresh.type = zset->type;
    for (uint64_t i = 0; i < kept && result == STORE_OK; i++) {
        result = zset_add(&fresh, &pairs[i]);
        if (result == STORE_OK)
            result = zset_yield(&fresh, i);
    }
    *zset = fresh;
    return result;
}

static enum store_result cut_packed(struct zset *zset, struct zset_place *place, uint64_t count)
{
    uint32_t begin = place->at;
    enum store_result result = STORE_OK;
    if (!packed_own(&zset->packed, zset->call->txn))
        return STORE_NO_MEMORY;
    for (; count > 0 && result == STORE_OK; count--)
        result = zset_next(zset, place);
    packed_cut(&zset->packed, begin, place->at);
    return result;
}

enum store_result zset_remove_at(struct zset *zset, struct zset_place *place,
                                 const struct zset_element *element)
{
    struct resp_slice name;
    if (zset->order == NULL)
        return cut_packed(zset, place, 1);
    enum store_result result = zset_name(zset, element, &name);
    if (result == STORE_OK)
        result = remove_by_member(zset, name);
    return result == STORE_OK ? store_tree_remove(&place->cursor) : result;
}

enum store_result zset_remove_range(struct zset *zset, uint64_t first, uint64_t count)
{
    struct zset_place place;
    struct zset_element element;
    uint64_t total = zset_count(zset);
    assert(first <= total && count <= total - first);
    if (zset->order != NULL && total - count < count)
        return write_anew(zset, first, count);
    enum store_result result = zset_seek(zset, first, &place);
    if (result == STORE_OK && zset->order == NULL)
        return cut_packed(zset, &place, count);
    for (; count > 0 && result == STORE_OK; count--) {
        result = zset_get(zset, &place, &element);
        if (result == STORE_OK)
            result = zset_remove_at(zset, &place, &element);
        if (result == STORE_OK)
            result = zset_yield(zset, count);
    }
    return result;
}

enum store_result zset_save(struct zset *zset)
{
    struct store_txn *txn = zset->call->txn;
    if (zset_count(zset) == 0)
        return store_delete(txn, zset->key);
    if (zset->order == NULL)
        return store_put(txn, zset->key, zset->type, zset->packed.bytes, zset->packed.len,
                         zset->expire_ms);
    if (zset->type == zset->tree_type)
        return STORE_OK;
    struct store_item item;
    enum store_result result = store_get(txn, zset->key, &item);
    if (result == STORE_OK)
        result = store_tree_set_type(txn, zset->key, &item, zset->type);
    zset->tree_type = zset->type;
    return result;
}
