#include "server/types/member_tree.h"

#include <string.h>

#include "storage/base/keyed_hash.h"
#include "server/types/big_endian.h"
#include "server/types/packed.h"
#include "server/types/string_walk.h"
#include "server/core/server.h"

#define HASH_BYTES MEMBER_KEY_BYTES
#define KEY_BYTES (HASH_BYTES + 8)  /* with a sequence number */
#define TIMED_BYTES (KEY_BYTES + 8) /* and an expiry */

static uint64_t hash_of(const struct store *store, struct resp_slice name)
{
    struct store_secret secret = store_secret(store);
    return store_keyed_hash(secret.words, name.data, name.len);
}

uint64_t member_hash(const struct call *call, struct resp_slice name)
{
    return hash_of(call->server->store, name);
}

void member_key(const struct store *store, struct resp_slice name, char key[MEMBER_KEY_BYTES])
{
    big_endian_write(key, hash_of(store, name));
}

enum store_result member_seek(struct store_tree *tree, uint64_t hash, struct store_cursor *cursor)
{
    char key[HASH_BYTES];
    big_endian_write(key, hash);
    return store_tree_seek(tree, key, sizeof key, cursor);
}

/* ---- reading ---- */

/* The bytes of an entry's value, from an offset on, in one piece. */
static enum store_result view(struct call *call, const struct store_item *item, uint64_t offset,
                              uint64_t len, struct resp_slice *slice)
{
    if (len > item->length || offset > item->length - len)
        return STORE_DAMAGED;
    slice->len = len;
    if (!item->large) {
        slice->data = item->bytes + offset;
        return STORE_OK;
    }
    if (len >= MEMBER_LONG) /* shorter parts of large values are copied */
        return string_view(call, item, offset, len, &slice->data);
    char *copy = store_alloc(call->txn, len + 1);
    slice->data = copy;
    return copy == NULL ? STORE_NO_MEMORY : store_read(call->txn, item, offset, len, copy);
}

/* False: it is malformed. */
static bool read_key(const struct store_entry *entry, struct member *member)
{
    uint32_t len = entry->key_len;
    if (len != HASH_BYTES && len != KEY_BYTES && len != TIMED_BYTES)
        return false;
    member->hash = big_endian_read(entry->key);
    member->sequence = len > HASH_BYTES ? big_endian_read(entry->key + HASH_BYTES) : 0;
    member->expire_ms =
        len > KEY_BYTES ? (int64_t)big_endian_read(entry->key + KEY_BYTES) : STORE_NO_EXPIRY;
    return member->expire_ms >= STORE_NO_EXPIRY;
}

enum store_result member_read(struct call *call, struct store_cursor *cursor, struct member *member)
{
    struct store_entry entry;
    struct resp_slice head;
    uint32_t len;
    enum store_result result = store_tree_get(cursor, &entry);
    if (result != STORE_OK)
        return result;
    if (!read_key(&entry, member))
        return STORE_DAMAGED;
    member->item = entry.value;
    uint64_t head_len =
        entry.value.length < PACKED_LENGTH_MAX ? entry.value.length : PACKED_LENGTH_MAX;
    result = view(call, &entry.value, 0, head_len, &head);
    if (result != STORE_OK)
        return result;
    uint32_t size = packed_read_length(head.data, head.len, &len);
    if (size == 0 || len > entry.value.length - size)
        return STORE_DAMAGED;
    member->value_at = (uint64_t)size + len;
    member->value_len = entry.value.length - member->value_at;
    return view(call, &entry.value, size, len, &member->name);
}

enum store_result member_value(struct call *call, const struct member *member,
                               struct resp_slice *value)
{
    return view(call, &member->item, member->value_at, member->value_len, value);
}

static bool same(struct resp_slice a, struct resp_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

enum store_result member_find(struct call *call, struct store_tree *tree, struct resp_slice name,
                              struct store_cursor *cursor, struct member *member, bool *found)
{
    uint64_t hash = member_hash(call, name);
    char key[HASH_BYTES];
    big_endian_write(key, hash);
    *found = false;
    enum store_result result = store_tree_find(tree, key, sizeof key, cursor);
    bool has_namesakes = false;
    while (result == STORE_OK) {
        result = member_read(call, cursor, member);
        if (result != STORE_OK || member->hash != hash)
            break;
        *found = same(member->name, name);
        if (*found)
            return result;
        has_namesakes = true;
        result = store_tree_next(cursor);
    }
    member->hash = hash;
    member->has_namesakes = has_namesakes;
    return result == STORE_ABSENT ? STORE_OK : result;
}

/* ---- writing ---- */

static enum store_result encode(struct call *call, struct resp_slice name, struct resp_slice value,
                                struct resp_slice *entry)
{
    if (name.len > STORE_VALUE_MAX || value.len > STORE_VALUE_MAX)
        return STORE_TOO_LARGE;
    char *bytes = store_alloc(call->txn, PACKED_LENGTH_MAX + name.len + value.len);
    if (bytes == NULL)
        return STORE_NO_MEMORY;
    char *to = bytes + packed_write_length(bytes, (uint32_t)name.len);
    if (name.len > 0)
        memcpy(to, name.data, name.len);
    to += name.len;
    if (value.len > 0)
        memcpy(to, value.data, value.len);
    *entry = (struct resp_slice){bytes, (size_t)(to - bytes) + value.len};
    return STORE_OK;
}

enum store_result member_insert(struct call *call, struct store_cursor *cursor,
                                const struct member *sought, struct resp_slice name,
                                struct resp_slice value, uint64_t sequence)
{
    char key[KEY_BYTES];
    struct resp_slice entry;
    enum store_result result = encode(call, name, value, &entry);
    big_endian_write(key, sought->hash);
    big_endian_write(key + HASH_BYTES, sequence);
    /* Members of equal hash: those without a sequence number come first. */
    if (result == STORE_OK && sequence == 0 && sought->has_namesakes)
        result = store_tree_find(cursor->tree, key, HASH_BYTES, cursor);
    return result == STORE_OK
               ? store_tree_insert(cursor, key, sequence == 0 ? HASH_BYTES : KEY_BYTES, entry.data,
                                   entry.len)
               : result;
}

enum store_result member_replace(struct call *call, struct store_cursor *cursor,
                                 struct resp_slice name, struct resp_slice value)
{
    struct resp_slice entry;
    enum store_result result = encode(call, name, value, &entry);
    return result == STORE_OK ? store_tree_replace(cursor, entry.data, entry.len) : result;
}

/* ---- expiry ---- */

static uint32_t make_key(char key[TIMED_BYTES], const struct member *member, int64_t expire_ms)
{
    big_endian_write(key, member->hash);
    if (member->sequence == 0 && expire_ms == STORE_NO_EXPIRY)
        return HASH_BYTES;
    big_endian_write(key + HASH_BYTES, member->sequence);
    if (expire_ms == STORE_NO_EXPIRY)
        return KEY_BYTES;
    big_endian_write(key + KEY_BYTES, (uint64_t)expire_ms);
    return TIMED_BYTES;
}

/* Whether no other member has this hash. Reads no members, whose values may be elsewhere. */
static enum store_result is_alone(struct store_tree *tree, uint64_t hash, bool *alone)
{
    struct store_cursor first, behind;
    enum store_result result = member_seek(tree, hash, &first);
    if (result == STORE_OK && hash != UINT64_MAX)
        result = member_seek(tree, hash + 1, &behind);
    if (result != STORE_OK)
        return result;
    uint64_t end = hash == UINT64_MAX ? store_tree_count(tree) : behind.rank;
    *alone = end - first.rank == 1;
    return STORE_OK;
}

/* Members with one hash are in the order of their whole keys, so this one may have to move. */
static enum store_result move(struct call *call, struct store_cursor *cursor, const char *key,
                              uint32_t len)
{
    struct member member;
    struct resp_slice value, entry;
    enum store_result result = member_read(call, cursor, &member);
    if (result == STORE_OK)
        result = member_value(call, &member, &value);
    if (result == STORE_OK)
        result = encode(call, member.name, value, &entry);
    if (result == STORE_OK)
        result = store_tree_remove(cursor);
    if (result == STORE_OK)
        result = store_tree_find(cursor->tree, key, len, cursor);
    return result == STORE_OK ? store_tree_insert(cursor, key, len, entry.data, entry.len) : result;
}

enum store_result member_set_expiry(struct call *call, struct store_cursor *cursor,
                                    const struct member *member, int64_t expire_ms)
{
    char key[TIMED_BYTES];
    uint32_t len = make_key(key, member, expire_ms);
    bool alone = false;
    enum store_result result = is_alone(cursor->tree, member->hash, &alone);
    if (result != STORE_OK)
        return result;
    return alone ? store_tree_rekey(cursor, key, len) : move(call, cursor, key, len);
}

enum store_result member_find_timed(struct store_tree *tree, uint64_t hash, int64_t expire_ms,
                                    struct store_cursor *cursor)
{
    struct member member;
    struct store_entry entry;
    enum store_result result = member_seek(tree, hash, cursor);
    for (; result == STORE_OK; result = store_tree_next(cursor)) {
        result = store_tree_get(cursor, &entry);
        if (result != STORE_OK)
            break;
        if (!read_key(&entry, &member))
            return STORE_DAMAGED;
        if (member.hash != hash)
            return STORE_ABSENT;
        if (member.expire_ms == expire_ms)
            return STORE_OK;
    }
    return result;
}
