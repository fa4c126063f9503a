#include "server/types/member_tree.h"

#include <string.h>

#include "storage/base/keyed_hash.h"
#include "server/types/big_endian.h"
#include "server/types/packed.h"
#include "server/types/string_walk.h"
#include "server/core/server.h"

#define HASH_BYTES MEMBER_KEY_BYTES
#define KEY_BYTES (HASH_BYTES + 8) /* with a sequence number */

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

enum store_result member_read(struct call *call, struct store_cursor *cursor, struct member *member)
{
    struct store_entry entry;
    struct resp_slice head;
    uint32_t len;
    enum store_result result = store_tree_get(cursor, &entry);
    if (result != STORE_OK)
        return result;
    if (entry.key_len != HASH_BYTES && entry.key_len != KEY_BYTES)
        return STORE_DAMAGED;
    member->hash = big_endian_read(entry.key);
    member->sequence = entry.key_len == KEY_BYTES ? big_endian_read(entry.key + HASH_BYTES) : 0;
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
