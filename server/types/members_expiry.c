#include "server/types/members_expiry.h"

#include <assert.h>
#include <string.h>

#include "server/types/big_endian.h"
#include "storage/base/checks.h"

#define TIME_BYTES 8
#define ORDER_BYTES (TIME_BYTES + 8) /* with the hash */
#define TIMED_WIDTH 3                /* packed entries per member */

/* ---- the packed form ---- */

int64_t members_packed_expiry(const struct members *members, struct packed_entry entry)
{
    if (members->width < TIMED_WIDTH)
        return STORE_NO_EXPIRY;
    packed_next(&members->packed, &entry);
    packed_next(&members->packed, &entry);
    return entry.slice.len == 0 ? STORE_NO_EXPIRY : (int64_t)big_endian_read(entry.slice.data);
}

static void note_time(struct members *members, int64_t expire_ms)
{
    if (expire_ms != STORE_NO_EXPIRY &&
        (members->wake_ms == STORE_NO_EXPIRY || expire_ms < members->wake_ms))
        members->wake_ms = expire_ms;
}

/* Finds the earliest expiry, and counts the expired members. */
static enum store_result look_through_packed(struct members *members)
{
    const struct packed *packed = &members->packed;
    struct packed_entry entry = {.at = 0};
    members->wake_ms = STORE_NO_EXPIRY;
    members->due = 0;
    while (packed_next(packed, &entry)) {
        struct packed_entry name = entry;
        packed_next(packed, &entry);
        packed_next(packed, &entry);
        if (entry.slice.len != 0 && entry.slice.len != TIME_BYTES)
            return STORE_DAMAGED;
        int64_t expire_ms = members_packed_expiry(members, name);
        note_time(members, expire_ms);
        members->due += members_is_due(members, expire_ms);
    }
    return STORE_OK;
}

/* Gives each member a third entry. *fits: false, and nothing changed: they are too long. */
static enum store_result widen(struct call *call, struct members *members, bool *fits)
{
    struct packed wide = packed_empty();
    struct packed_entry entry = {.at = 0};
    if (!packed_own(&wide, call->txn))
        return STORE_NO_MEMORY;
    for (*fits = true; *fits && packed_next(&members->packed, &entry);) {
        struct resp_slice entries[TIMED_WIDTH] = {entry.slice, {"", 0}, {"", 0}};
        packed_next(&members->packed, &entry);
        entries[1] = entry.slice;
        *fits = packed_splice(&wide, wide.len, wide.len, entries, TIMED_WIDTH);
    }
    if (!*fits)
        return STORE_OK;
    members->packed = wide;
    members->width = TIMED_WIDTH;
    members->type |= ITEM_TIMED;
    return STORE_OK;
}

static enum store_result set_packed(struct call *call, struct members *members,
                                    struct resp_slice name, int64_t expire_ms, bool *fits)
{
    struct packed_entry entry;
    char time[TIME_BYTES];
    struct resp_slice slice = {time, expire_ms == STORE_NO_EXPIRY ? 0 : TIME_BYTES};
    *fits = true;
    if (members->width < TIMED_WIDTH) {
        enum store_result result = widen(call, members, fits);
        if (result != STORE_OK || !*fits)
            return result;
    }
    if (!packed_own(&members->packed, call->txn))
        return STORE_NO_MEMORY;
    bool found = packed_find(&members->packed, name, members->width, &entry);
    assert(found);
    (void)found;
    packed_next(&members->packed, &entry);
    packed_next(&members->packed, &entry);
    big_endian_write(time, (uint64_t)expire_ms);
    *fits = packed_splice(&members->packed, entry.at, entry.end, &slice, 1);
    return STORE_OK;
}

/* ---- the second tree ---- */

static void order_key(char key[ORDER_BYTES], int64_t expire_ms, uint64_t hash)
{
    big_endian_write(key, (uint64_t)expire_ms);
    big_endian_write(key + TIME_BYTES, hash);
}

static enum store_result order_read(struct store_cursor *cursor, int64_t *expire_ms, uint64_t *hash)
{
    struct store_entry entry;
    enum store_result result = store_tree_get(cursor, &entry);
    if (result != STORE_OK)
        return result;
    if (entry.key_len != ORDER_BYTES)
        return STORE_DAMAGED;
    *expire_ms = (int64_t)big_endian_read(entry.key);
    *hash = big_endian_read(entry.key + TIME_BYTES);
    return *expire_ms < 0 ? STORE_DAMAGED : STORE_OK;
}

static enum store_result order_add(struct members *members, int64_t expire_ms, uint64_t hash)
{
    char key[ORDER_BYTES];
    struct store_cursor cursor;
    order_key(key, expire_ms, hash);
    note_time(members, expire_ms);
    enum store_result result = store_tree_find(members->order, key, sizeof key, &cursor);
    return result == STORE_OK ? store_tree_insert(&cursor, key, sizeof key, "", 0) : result;
}

enum store_result members_forget_expiry(struct members *members, const struct member *member)
{
    char key[ORDER_BYTES];
    struct store_cursor cursor;
    int64_t expire_ms;
    uint64_t hash;
    if (member->expire_ms == STORE_NO_EXPIRY)
        return STORE_OK;
    if (members->order == NULL)
        return STORE_DAMAGED;
    order_key(key, member->expire_ms, member->hash);
    enum store_result result = store_tree_find(members->order, key, sizeof key, &cursor);
    if (result == STORE_OK)
        result = order_read(&cursor, &expire_ms, &hash);
    if (result == STORE_ABSENT ||
        (result == STORE_OK && (expire_ms != member->expire_ms || hash != member->hash)))
        return STORE_DAMAGED;
    members->is_earliest_gone |= member->expire_ms == members->wake_ms;
    members->due -= members_is_due(members, member->expire_ms);
    return result == STORE_OK ? store_tree_remove(&cursor) : result;
}

/* Counts the expired members of a tree. */
static enum store_result count_due(struct members *members)
{
    char key[TIME_BYTES];
    struct store_cursor cursor;
    if (!members_is_due(members, members->wake_ms))
        return STORE_OK;
    big_endian_write(key, (uint64_t)members->now_ms);
    enum store_result result = store_tree_seek(members->order, key, sizeof key, &cursor);
    members->due = cursor.rank;
    return result == STORE_OK && members->due == 0 ? STORE_DAMAGED : result; /* invariant 2 */
}

enum store_result members_open_expiry(struct call *call, struct members *members)
{
    members->now_ms = store_now(call->txn);
    members->wake_ms = members->item.wake_ms;
    if (members->tree == NULL)
        return look_through_packed(members);
    enum store_result result =
        store_tree_open(call->txn, members->key, &members->item, 1, &members->order);
    return result == STORE_OK ? count_due(members) : result;
}

enum store_result members_find_earliest(struct members *members)
{
    struct store_cursor cursor;
    uint64_t hash;
    if (members->tree == NULL)
        return look_through_packed(members);
    if (members->order == NULL || (!members->is_earliest_gone && !storage_checks_enabled()))
        return STORE_OK;
    int64_t known_ms = members->wake_ms;
    members->wake_ms = STORE_NO_EXPIRY;
    if (store_tree_count(members->order) == 0)
        return STORE_OK;
    enum store_result result = store_tree_seek_rank(members->order, 0, &cursor);
    if (result == STORE_OK)
        result = order_read(&cursor, &members->wake_ms, &hash);
    assert(result != STORE_OK || members->is_earliest_gone || members->wake_ms == known_ms);
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

enum store_result members_drop_expiry(struct call *call, struct members *members,
                                      struct store_cursor *cursor, const struct member *member)
{
    enum store_result result = members_forget_expiry(members, member);
    return result == STORE_OK ? member_set_expiry(call, cursor, member, STORE_NO_EXPIRY) : result;
}

/* Adds the second tree. */
static enum store_result begin_order(struct call *call, struct members *members)
{
    struct store_item item;
    enum store_result result = store_get(call->txn, members->key, &item);
    if (result == STORE_OK)
        result = store_tree_add(call->txn, members->key, &item);
    if (result == STORE_OK)
        result = store_get(call->txn, members->key, &item);
    if (result == STORE_OK)
        result = store_tree_open(call->txn, members->key, &item, 1, &members->order);
    members->type |= ITEM_TIMED;
    return result;
}

static enum store_result set_in_tree(struct call *call, struct members *members,
                                     struct resp_slice name, int64_t expire_ms)
{
    struct store_cursor cursor;
    struct member member;
    bool found;
    enum store_result result = STORE_OK;
    if (members->order == NULL)
        result = begin_order(call, members);
    if (result == STORE_OK)
        result = member_find(call, members->tree, name, &cursor, &member, &found);
    if (result != STORE_OK)
        return result;
    assert(found);
    result = members_forget_expiry(members, &member);
    if (result == STORE_OK)
        result = member_set_expiry(call, &cursor, &member, expire_ms);
    return result == STORE_OK && expire_ms != STORE_NO_EXPIRY
               ? order_add(members, expire_ms, member.hash)
               : result;
}

/* ---- single members ---- */

enum store_result members_get_expiry(struct call *call, struct members *members,
                                     struct resp_slice name, int64_t *expire_ms, bool *found)
{
    enum store_result result = STORE_OK;
    *expire_ms = STORE_NO_EXPIRY;
    if (members->tree == NULL) {
        struct packed_entry entry;
        *found = packed_find(&members->packed, name, members->width, &entry);
        if (*found)
            *expire_ms = members_packed_expiry(members, entry);
    } else {
        struct store_cursor cursor;
        struct member member = {.expire_ms = STORE_NO_EXPIRY};
        result = member_find(call, members->tree, name, &cursor, &member, found);
        if (*found)
            *expire_ms = member.expire_ms;
    }
    *found = *found && !members_is_due(members, *expire_ms);
    return result;
}

enum store_result members_set_expiry(struct call *call, struct members *members,
                                     struct resp_slice name, int64_t expire_ms)
{
    bool fits = false;
    enum store_result result = STORE_OK;
    if (expire_ms == STORE_NO_EXPIRY && (members->type & ITEM_TIMED) == 0)
        return STORE_OK;
    members->is_changed = true;
    if (members->tree == NULL) {
        result = set_packed(call, members, name, expire_ms, &fits);
        if (result == STORE_OK && !fits)
            result = members_outgrow(call, members);
    }
    return result == STORE_OK && !fits ? set_in_tree(call, members, name, expire_ms) : result;
}

/* ---- members that have expired ---- */

static enum store_result skip_in_tree(struct call *call, struct members *members, uint64_t *rank)
{
    struct store_cursor cursor;
    struct member member;
    uint64_t count = members_count(members);
    enum store_result result = store_tree_seek_rank(members->tree, *rank, &cursor);
    for (uint64_t i = 0; result == STORE_OK; i++) {
        result = member_read(call, &cursor, &member);
        if (result != STORE_OK || !members_is_due(members, member.expire_ms))
            break;
        if (i == count)
            return STORE_DAMAGED;
        result = members_yield(call, members, i);
        *rank = (*rank + 1) % count;
        if (result == STORE_OK)
            result = *rank > 0 ? store_tree_next(&cursor)
                               : store_tree_seek_rank(members->tree, 0, &cursor);
    }
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

enum store_result members_skip_due(struct call *call, struct members *members, uint64_t *rank)
{
    assert(members->due < members_count(members));
    if (members->due == 0)
        return STORE_OK;
    if (members->tree != NULL)
        return skip_in_tree(call, members, rank);
    while (members_is_due(
        members, members_packed_expiry(
                     members, packed_at(&members->packed, (uint32_t)*rank * members->width))))
        *rank = (*rank + 1) % members_count(members);
    return STORE_OK;
}

static enum store_result remove_packed_due(struct call *call, struct members *members,
                                           uint32_t *removed)
{
    struct packed_entry entry = {.at = 0};
    if (!packed_own(&members->packed, call->txn))
        return STORE_NO_MEMORY;
    while (packed_next(&members->packed, &entry)) {
        uint32_t at = entry.at;
        bool is_due = members_is_due(members, members_packed_expiry(members, entry));
        packed_next(&members->packed, &entry);
        packed_next(&members->packed, &entry);
        if (!is_due)
            continue;
        packed_cut(&members->packed, at, entry.end);
        entry = (struct packed_entry){.at = at, .end = at};
        ++*removed;
    }
    return STORE_OK;
}

/* The first in the order of expiry. *is_due: it had expired, and was removed. */
static enum store_result remove_first(struct members *members, bool *is_due)
{
    struct store_cursor cursor;
    int64_t expire_ms;
    uint64_t hash;
    enum store_result result = store_tree_seek_rank(members->order, 0, &cursor);
    if (result == STORE_OK)
        result = order_read(&cursor, &expire_ms, &hash);
    *is_due = result == STORE_OK && members_is_due(members, expire_ms);
    if (!*is_due)
        return result == STORE_ABSENT ? STORE_OK : result;
    result = store_tree_remove(&cursor);
    if (result == STORE_OK)
        result = member_find_timed(members->tree, hash, expire_ms, &cursor);
    return result == STORE_OK ? store_tree_remove(&cursor) : result;
}

enum store_result members_remove_due(struct call *call, struct members *members, uint32_t most,
                                     uint32_t *removed)
{
    enum store_result result = STORE_OK;
    *removed = 0;
    if (members->due == 0)
        return STORE_OK;
    members->is_changed = members->is_earliest_gone = true;
    if (members->tree == NULL)
        return remove_packed_due(call, members, removed);
    for (bool is_due = true; is_due && *removed < most && result == STORE_OK; *removed += is_due)
        result = remove_first(members, &is_due);
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}
