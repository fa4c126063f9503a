/*
 * Invariant: each pending entry has its two keys, one of the group and one of a consumer that the
 * group has; and each consumer has its name under its number.
 */
#include "server/types/stream_group.h"

#include <assert.h>
#include <string.h>

#include "server/core/server.h"
#include "server/exec/long_run.h"
#include "server/types/string_walk.h"

enum kind {
    KIND_GROUP = 1,
    KIND_CONSUMER = 2,
    KIND_PENDING = 3,
    KIND_OF_CONSUMER = 4,
    KIND_NAME = 5,
    KIND_GRAVE = 6
};

/* What a group has besides its own entry. */
static const enum kind parts[] = {KIND_CONSUMER, KIND_PENDING, KIND_OF_CONSUMER, KIND_NAME};
#define PARTS (sizeof parts / sizeof parts[0])

#if SIZES_ARE_TINY
#define DESTROYED_AT_ONCE 8u
#define PURGED_AT_ONCE 4u
#else
#define DESTROYED_AT_ONCE 1000u
#define PURGED_AT_ONCE 64u
#endif

#define NUMBER BIG_ENDIAN_BYTES
#define GROUP_BYTES (NUMBER + STREAM_ID_BYTES + NUMBER)
#define CONSUMER_BYTES (3 * NUMBER)
#define PENDING_BYTES (3 * NUMBER)

_Static_assert(1 + 2 * NUMBER + STREAM_ID_BYTES <= STORE_TREE_KEY_MAX, "keys fit");

/* ---- keys ---- */

struct state_key {
    char bytes[STORE_TREE_KEY_MAX];
    size_t len;
};

static void add_number(struct state_key *key, uint64_t number)
{
    assert(key->len + NUMBER <= sizeof key->bytes);
    big_endian_write(key->bytes + key->len, number);
    key->len += NUMBER;
}

static void add_id(struct state_key *key, struct stream_id id)
{
    add_number(key, id.ms);
    add_number(key, id.seq);
}

static struct state_key key_of(enum kind kind)
{
    return (struct state_key){.bytes = {(char)kind}, .len = 1};
}

static struct state_key key_in(enum kind kind, const struct stream_group *group)
{
    struct state_key key = key_of(kind);
    add_number(&key, group->number);
    return key;
}

/* What all pending entries of the group, or of one consumer, begin with. */
static struct state_key pending_key(const struct stream_group *group, const uint64_t *consumer)
{
    struct state_key key = key_in(consumer == NULL ? KIND_PENDING : KIND_OF_CONSUMER, group);
    if (consumer != NULL)
        add_number(&key, *consumer);
    return key;
}

static bool begins_with(const struct store_entry *entry, const struct state_key *key)
{
    return entry->key_len >= key->len && memcmp(entry->key, key->bytes, key->len) == 0;
}

static bool is_same(const struct store_entry *entry, const struct state_key *key)
{
    return entry->key_len == key->len && begins_with(entry, key);
}

/* ---- entries of the state ---- */

/* *found: an entry has the key; the cursor is at it, or where it would be. */
static enum store_result find(struct stream *stream, const struct state_key *key,
                              struct store_cursor *cursor, struct store_entry *entry, bool *found)
{
    *found = false;
    enum store_result result = store_tree_find(stream->state, key->bytes, key->len, cursor);
    if (result == STORE_OK)
        result = store_tree_get(cursor, entry);
    if (result == STORE_ABSENT)
        return STORE_OK;
    *found = result == STORE_OK && is_same(entry, key);
    return result;
}

/* A copy that lives as long as the request. NULL: no memory. */
static char *keep(struct stream *stream, const char *bytes, size_t len)
{
    char *copy = store_alloc(stream->call->txn, len + 1);
    if (copy != NULL && len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

static enum store_result insert(struct stream *stream, struct store_cursor *cursor,
                                const struct state_key *key, const char *value, size_t len)
{
    const char *copy = keep(stream, value, len);
    return copy == NULL ? STORE_NO_MEMORY
                        : store_tree_insert(cursor, key->bytes, key->len, copy, len);
}

static enum store_result replace(struct stream *stream, struct store_cursor *cursor,
                                 const char *value, size_t len)
{
    const char *copy = keep(stream, value, len);
    return copy == NULL ? STORE_NO_MEMORY : store_tree_replace(cursor, copy, len);
}

/* Ranks of the entries that begin with the key: from *first on, *count. */
static enum store_result range_of(struct stream *stream, struct state_key key, uint64_t *first,
                                  uint64_t *count)
{
    struct store_cursor cursor;
    enum store_result result = store_tree_seek(stream->state, key.bytes, key.len, &cursor);
    *first = cursor.rank;
    size_t last = key.len;
    while (last > 0 && (unsigned char)key.bytes[last - 1] == 0xff)
        last--;
    assert(last > 0); /* the kind is no 0xff */
    key.bytes[last - 1]++;
    if (result == STORE_OK)
        result = store_tree_seek(stream->state, key.bytes, last, &cursor);
    if (result == STORE_OK && cursor.rank < *first)
        return STORE_DAMAGED;
    *count = cursor.rank - *first;
    return result;
}

/* Removes the first entries that begin with the key, in steps: at most *most, which it subtracts.
 */
static enum store_result remove_some(struct stream *stream, const struct state_key *key,
                                     uint64_t *most)
{
    struct store_cursor cursor;
    uint64_t first, count;
    enum store_result result = range_of(stream, *key, &first, &count);
    if (count > *most)
        count = *most;
    *most -= count;
    if (result == STORE_OK)
        result = store_tree_seek_rank(stream->state, first, &cursor);
    for (uint64_t i = 0; i < count && result == STORE_OK; i++) {
        result = store_tree_remove(&cursor);
        if (result == STORE_OK)
            result = call_yield_at(stream->call, i);
    }
    return result;
}

static enum store_result remove_range(struct stream *stream, const struct state_key *key)
{
    uint64_t most = UINT64_MAX;
    return remove_some(stream, key, &most);
}

/* ---- entries with names ---- */

/* An entry whose key ends with a name. */
struct named {
    struct store_cursor cursor;
    bool found;
    struct resp_slice name; /* valid until the next call on the stream */
    const char *value;      /* of `size` bytes; likewise */
};

static struct state_key named_key(struct state_key prefix, struct resp_slice name)
{
    size_t len = name.len < STREAM_NAME_MOST ? name.len : STREAM_NAME_MOST;
    if (len > 0)
        memcpy(prefix.bytes + prefix.len, name.data, len);
    prefix.len += len;
    return prefix;
}

static enum store_result read_named(struct stream *stream, const struct store_entry *entry,
                                    size_t prefix_len, size_t size, struct named *named)
{
    const char *bytes = entry->value.bytes;
    enum store_result result = STORE_OK;
    if (entry->value.length < size || entry->key_len < prefix_len)
        return STORE_DAMAGED;
    named->name = (struct resp_slice){entry->key + prefix_len, entry->key_len - prefix_len};
    if (entry->value.large)
        result = string_view(stream->call, &entry->value, 0, entry->value.length, &bytes);
    named->value = bytes;
    if (result == STORE_OK && entry->value.length > size)
        named->name = (struct resp_slice){bytes + size, entry->value.length - size};
    return result;
}

static int compare(struct resp_slice a, struct resp_slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len == 0 ? 0 : memcmp(a.data, b.data, len);
    return order != 0 ? order : a.len < b.len ? -1 : a.len > b.len;
}

static enum store_result find_named(struct stream *stream, const struct state_key *prefix,
                                    struct resp_slice name, size_t size, struct named *named)
{
    struct state_key key = named_key(*prefix, name);
    struct store_entry entry;
    bool found;
    enum store_result result = find(stream, &key, &named->cursor, &entry, &found);
    named->found = false;
    for (uint64_t i = 0; result == STORE_OK && found; i++) {
        result = read_named(stream, &entry, prefix->len, size, named);
        int order = result == STORE_OK ? compare(named->name, name) : 0;
        named->found = result == STORE_OK && order == 0;
        if (result != STORE_OK || order >= 0)
            return result;
        result = store_tree_next(&named->cursor);
        if (result == STORE_OK)
            result = call_yield_at(stream->call, i); /* many long names may begin alike */
        if (result == STORE_OK)
            result = store_tree_get(&named->cursor, &entry);
        found = result == STORE_OK && is_same(&entry, &key);
    }
    return result == STORE_ABSENT ? STORE_OK : result;
}

/* Inserts or replaces it. `value` has `size` bytes. */
static enum store_result put_named(struct stream *stream, const struct state_key *prefix,
                                   struct resp_slice name, const char *value, size_t size)
{
    struct named named;
    bool is_long = name.len > STREAM_NAME_MOST;
    size_t len = size + (is_long ? name.len : 0);
    enum store_result result = find_named(stream, prefix, name, size, &named);
    if (result != STORE_OK)
        return result;
    char *bytes = store_alloc(stream->call->txn, len);
    if (bytes == NULL)
        return STORE_NO_MEMORY;
    memcpy(bytes, value, size);
    if (is_long)
        memcpy(bytes + size, name.data, name.len);
    if (named.found)
        return store_tree_replace(&named.cursor, bytes, len);
    struct state_key key = named_key(*prefix, name);
    return store_tree_insert(&named.cursor, key.bytes, key.len, bytes, len);
}

static enum store_result remove_named(struct stream *stream, const struct state_key *prefix,
                                      struct resp_slice name, size_t size)
{
    struct named named;
    enum store_result result = find_named(stream, prefix, name, size, &named);
    return result == STORE_OK && named.found ? store_tree_remove(&named.cursor) : result;
}

/* Number `i` of those with the prefix; its name is copied. */
static enum store_result named_at(struct stream *stream, const struct state_key *prefix, uint64_t i,
                                  size_t size, struct named *named)
{
    struct store_entry entry;
    uint64_t first, count;
    enum store_result result = range_of(stream, *prefix, &first, &count);
    if (result == STORE_OK && i >= count)
        return STORE_ABSENT;
    if (result == STORE_OK)
        result = store_tree_seek_rank(stream->state, first + i, &named->cursor);
    if (result == STORE_OK)
        result = store_tree_get(&named->cursor, &entry);
    if (result == STORE_OK)
        result = read_named(stream, &entry, prefix->len, size, named);
    if (result != STORE_OK)
        return result;
    named->name.data = keep(stream, named->name.data, named->name.len);
    return named->name.data == NULL ? STORE_NO_MEMORY : STORE_OK;
}

/* ---- groups ---- */

static void read_group(struct stream *stream, const struct named *named, struct stream_group *group)
{
    *group =
        (struct stream_group){.stream = stream,
                              .name = named->name,
                              .number = big_endian_read(named->value),
                              .last = stream_id_read(named->value + NUMBER),
                              .read = big_endian_read(named->value + NUMBER + STREAM_ID_BYTES)};
}

enum store_result stream_group_find(struct stream *stream, struct resp_slice name,
                                    struct stream_group *group, bool *found)
{
    struct named named = {.found = false};
    struct state_key prefix = key_of(KIND_GROUP);
    enum store_result result = STORE_OK;
    if (stream->exists)
        result = find_named(stream, &prefix, name, GROUP_BYTES, &named);
    *found = result == STORE_OK && named.found;
    if (*found)
        read_group(stream, &named, group);
    group->name = name;
    return result;
}

enum store_result stream_group_save(const struct stream_group *group)
{
    char value[GROUP_BYTES];
    struct state_key prefix = key_of(KIND_GROUP);
    big_endian_write(value, group->number);
    stream_id_write(value + NUMBER, group->last);
    big_endian_write(value + NUMBER + STREAM_ID_BYTES, group->read);
    return put_named(group->stream, &prefix, group->name, value, sizeof value);
}

enum store_result stream_group_create(struct stream *stream, struct resp_slice name,
                                      struct stream_group *group)
{
    group->stream = stream;
    group->name = name;
    group->number = store_next_sequence(stream->call->server->store);
    return stream_group_save(group);
}

/* Of all its parts together. */
static enum store_result count_parts(const struct stream_group *group, uint64_t *total)
{
    enum store_result result = STORE_OK;
    *total = 0;
    for (size_t i = 0; i < PARTS && result == STORE_OK; i++) {
        uint64_t first, count;
        result = range_of(group->stream, key_in(parts[i], group), &first, &count);
        *total += count;
    }
    return result;
}

static enum store_result remove_parts(const struct stream_group *group, uint64_t *most)
{
    enum store_result result = STORE_OK;
    for (size_t i = 0; i < PARTS && result == STORE_OK; i++) {
        struct state_key key = key_in(parts[i], group);
        result = remove_some(group->stream, &key, most);
    }
    return result;
}

static enum store_result add_grave(const struct stream_group *group)
{
    struct store_cursor cursor;
    struct store_entry entry;
    struct state_key key = key_in(KIND_GRAVE, group);
    bool found;
    enum store_result result = find(group->stream, &key, &cursor, &entry, &found);
    return result == STORE_OK ? insert(group->stream, &cursor, &key, "", 0) : result;
}

enum store_result stream_group_destroy(const struct stream_group *group)
{
    struct state_key prefix = key_of(KIND_GROUP);
    uint64_t total;
    enum store_result result = remove_named(group->stream, &prefix, group->name, GROUP_BYTES);
    if (result == STORE_OK)
        result = count_parts(group, &total);
    if (result != STORE_OK)
        return result;
    return total > DESTROYED_AT_ONCE ? add_grave(group) : remove_parts(group, &total);
}

enum store_result stream_group_purge(struct stream *stream)
{
    struct store_cursor cursor;
    struct store_entry entry;
    struct state_key key = key_of(KIND_GRAVE);
    uint64_t most = PURGED_AT_ONCE;
    bool found;
    entry.key_len = 0; /* where there is no entry */
    enum store_result result = find(stream, &key, &cursor, &entry, &found);
    if (result != STORE_OK || !begins_with(&entry, &key))
        return result;
    if (entry.key_len != 1 + NUMBER)
        return STORE_DAMAGED;
    struct stream_group group = {.stream = stream, .number = big_endian_read(entry.key + 1)};
    result = remove_parts(&group, &most);
    if (result != STORE_OK || most == 0)
        return result;
    key = key_in(KIND_GRAVE, &group);
    return remove_range(stream, &key);
}

enum store_result stream_group_count(struct stream *stream, uint64_t *count)
{
    uint64_t first;
    return range_of(stream, key_of(KIND_GROUP), &first, count);
}

enum store_result stream_group_at(struct stream *stream, uint64_t i, struct stream_group *group)
{
    struct named named;
    struct state_key prefix = key_of(KIND_GROUP);
    enum store_result result = named_at(stream, &prefix, i, GROUP_BYTES, &named);
    if (result == STORE_OK)
        read_group(stream, &named, group);
    return result;
}

/* ---- consumers ---- */

static void read_consumer(const struct stream_group *group, const struct named *named,
                          struct stream_consumer *consumer)
{
    *consumer =
        (struct stream_consumer){.group = group,
                                 .name = named->name,
                                 .number = big_endian_read(named->value),
                                 .seen_ms = (int64_t)big_endian_read(named->value + NUMBER),
                                 .active_ms = (int64_t)big_endian_read(named->value + 2 * NUMBER)};
}

enum store_result stream_consumer_find(const struct stream_group *group, struct resp_slice name,
                                       struct stream_consumer *consumer, bool *found)
{
    struct named named;
    struct state_key prefix = key_in(KIND_CONSUMER, group);
    enum store_result result = find_named(group->stream, &prefix, name, CONSUMER_BYTES, &named);
    *found = result == STORE_OK && named.found;
    if (*found)
        read_consumer(group, &named, consumer);
    consumer->name = name;
    return result;
}

enum store_result stream_consumer_save(const struct stream_consumer *consumer)
{
    char value[CONSUMER_BYTES];
    struct state_key prefix = key_in(KIND_CONSUMER, consumer->group);
    big_endian_write(value, consumer->number);
    big_endian_write(value + NUMBER, (uint64_t)consumer->seen_ms);
    big_endian_write(value + 2 * NUMBER, (uint64_t)consumer->active_ms);
    return put_named(consumer->group->stream, &prefix, consumer->name, value, sizeof value);
}

static enum store_result put_name(const struct stream_consumer *consumer)
{
    struct stream *stream = consumer->group->stream;
    struct store_cursor cursor;
    struct store_entry entry;
    struct state_key key = key_in(KIND_NAME, consumer->group);
    bool found;
    add_number(&key, consumer->number);
    enum store_result result = find(stream, &key, &cursor, &entry, &found);
    if (result == STORE_OK && found)
        return STORE_DAMAGED;
    return result == STORE_OK
               ? insert(stream, &cursor, &key, consumer->name.data, consumer->name.len)
               : result;
}

enum store_result stream_consumer_create(const struct stream_group *group, struct resp_slice name,
                                         struct stream_consumer *consumer)
{
    consumer->group = group;
    consumer->name = name;
    consumer->number = store_next_sequence(group->stream->call->server->store);
    enum store_result result = stream_consumer_save(consumer);
    return result == STORE_OK ? put_name(consumer) : result;
}

enum store_result stream_consumer_name(const struct stream_group *group, uint64_t number,
                                       struct resp_slice *name)
{
    struct store_cursor cursor;
    struct store_entry entry;
    struct state_key key = key_in(KIND_NAME, group);
    bool found;
    add_number(&key, number);
    enum store_result result = find(group->stream, &key, &cursor, &entry, &found);
    if (result == STORE_OK && !found)
        return STORE_DAMAGED;
    *name = (struct resp_slice){entry.value.bytes, entry.value.length};
    if (result == STORE_OK && entry.value.large)
        result = string_view(group->stream->call, &entry.value, 0, name->len, &name->data);
    return result;
}

/* Removes one of the consumer's pending entries from the list of the group. */
static enum store_result remove_from_group(const struct stream_group *group, struct stream_id id)
{
    struct store_cursor cursor;
    struct store_entry entry;
    struct state_key key = pending_key(group, NULL);
    bool found;
    add_id(&key, id);
    enum store_result result = find(group->stream, &key, &cursor, &entry, &found);
    if (result == STORE_OK && !found)
        return STORE_DAMAGED;
    return result == STORE_OK ? store_tree_remove(&cursor) : result;
}

enum store_result stream_consumer_remove(const struct stream_consumer *consumer, uint64_t *pending)
{
    const struct stream_group *group = consumer->group;
    struct stream *stream = group->stream;
    struct state_key prefix = pending_key(group, &consumer->number);
    struct store_entry entry;
    struct store_cursor cursor;
    uint64_t first;
    enum store_result result = range_of(stream, prefix, &first, pending);
    for (uint64_t i = 0; i < *pending && result == STORE_OK; i++) {
        result = store_tree_seek_rank(stream->state, first + i, &cursor);
        if (result == STORE_OK)
            result = store_tree_get(&cursor, &entry);
        if (result == STORE_OK && entry.key_len != prefix.len + STREAM_ID_BYTES)
            result = STORE_DAMAGED;
        if (result == STORE_OK)
            result = remove_from_group(group, stream_id_read(entry.key + prefix.len));
        first--; /* the group's entries are before the consumer's */
        if (result == STORE_OK)
            result = call_yield_at(stream->call, i);
    }
    if (result == STORE_OK)
        result = remove_range(stream, &prefix);
    struct state_key names = key_in(KIND_CONSUMER, group), name = key_in(KIND_NAME, group);
    add_number(&name, consumer->number);
    if (result == STORE_OK)
        result = remove_named(stream, &names, consumer->name, CONSUMER_BYTES);
    return result == STORE_OK ? remove_range(stream, &name) : result;
}

enum store_result stream_consumer_count(const struct stream_group *group, uint64_t *count)
{
    uint64_t first;
    return range_of(group->stream, key_in(KIND_CONSUMER, group), &first, count);
}

enum store_result stream_consumer_at(const struct stream_group *group, uint64_t i,
                                     struct stream_consumer *consumer)
{
    struct named named;
    struct state_key prefix = key_in(KIND_CONSUMER, group);
    enum store_result result = named_at(group->stream, &prefix, i, CONSUMER_BYTES, &named);
    if (result == STORE_OK)
        read_consumer(group, &named, consumer);
    return result;
}

/* ---- pending entries ---- */

/* Ranks of the pending entries from this ID on. */
static enum store_result pending_range(const struct stream_group *group, const uint64_t *consumer,
                                       struct stream_id from, uint64_t *first, uint64_t *count)
{
    struct store_cursor cursor;
    struct state_key prefix = pending_key(group, consumer), key = prefix;
    uint64_t begin;
    enum store_result result = range_of(group->stream, prefix, &begin, count);
    *first = begin;
    if (result != STORE_OK || *count == 0 || stream_id_is_zero(from))
        return result;
    add_id(&key, from);
    result = store_tree_seek(group->stream->state, key.bytes, key.len, &cursor);
    if (result == STORE_OK && (cursor.rank < begin || cursor.rank - begin > *count))
        return STORE_DAMAGED;
    *first = cursor.rank;
    *count -= cursor.rank - begin;
    return result;
}

enum store_result stream_pending_count(const struct stream_group *group,
                                       const struct stream_consumer *consumer,
                                       struct stream_id from, uint64_t *count)
{
    uint64_t first;
    return pending_range(group, consumer == NULL ? NULL : &consumer->number, from, &first, count);
}

static enum store_result read_pending(const struct store_entry *entry,
                                      struct stream_pending *pending)
{
    const size_t prefix_len = 1 + NUMBER;
    if (entry->value.large || entry->value.length != PENDING_BYTES ||
        entry->key_len != prefix_len + STREAM_ID_BYTES)
        return STORE_DAMAGED;
    *pending = (struct stream_pending){.id = stream_id_read(entry->key + prefix_len),
                                       .consumer = big_endian_read(entry->value.bytes),
                                       .delivered_ms =
                                           (int64_t)big_endian_read(entry->value.bytes + NUMBER),
                                       .count = big_endian_read(entry->value.bytes + 2 * NUMBER)};
    return STORE_OK;
}

enum store_result stream_pending_last(const struct stream_group *group,
                                      struct stream_pending *pending)
{
    struct store_cursor cursor;
    struct store_entry entry;
    uint64_t first, count;
    enum store_result result = pending_range(group, NULL, STREAM_ID_MIN, &first, &count);
    if (result == STORE_OK && count == 0)
        return STORE_ABSENT;
    if (result == STORE_OK)
        result = store_tree_seek_rank(group->stream->state, first + count - 1, &cursor);
    if (result == STORE_OK)
        result = store_tree_get(&cursor, &entry);
    return result == STORE_OK ? read_pending(&entry, pending) : result;
}

/* The first entry from this one on that begins with the prefix; or STORE_ABSENT. */
static enum store_result seek(const struct stream_group *group, const uint64_t *consumer,
                              struct stream_id id, struct store_cursor *cursor,
                              struct store_entry *entry)
{
    struct state_key prefix = pending_key(group, consumer), key = prefix;
    bool found;
    add_id(&key, id);
    entry->key_len = 0; /* where there is no entry */
    enum store_result result = find(group->stream, &key, cursor, entry, &found);
    if (result != STORE_OK)
        return result;
    return begins_with(entry, &prefix) ? STORE_OK : STORE_ABSENT;
}

enum store_result stream_pending_get(const struct stream_group *group, struct stream_id id,
                                     struct stream_pending *pending, bool *found)
{
    struct store_cursor cursor;
    struct store_entry entry;
    enum store_result result = seek(group, NULL, id, &cursor, &entry);
    *found = false;
    if (result == STORE_OK)
        result = read_pending(&entry, pending);
    *found = result == STORE_OK && stream_id_compare(pending->id, id) == 0;
    return result == STORE_ABSENT ? STORE_OK : result;
}

/* The pending entry of a group's or a consumer's list. */
static enum store_result read_listed(const struct stream_group *group,
                                     const struct stream_consumer *consumer,
                                     const struct store_entry *entry,
                                     struct stream_pending *pending)
{
    const size_t prefix_len = 1 + 2 * NUMBER;
    bool found;
    if (consumer == NULL)
        return read_pending(entry, pending);
    if (entry->key_len != prefix_len + STREAM_ID_BYTES)
        return STORE_DAMAGED;
    enum store_result result =
        stream_pending_get(group, stream_id_read(entry->key + prefix_len), pending, &found);
    bool is_sound = found && pending->consumer == consumer->number;
    return result == STORE_OK && !is_sound ? STORE_DAMAGED : result;
}

enum store_result stream_pending_seek(const struct stream_group *group,
                                      const struct stream_consumer *consumer, struct stream_id id,
                                      struct stream_pending *pending)
{
    struct store_cursor cursor;
    struct store_entry entry;
    enum store_result result =
        seek(group, consumer == NULL ? NULL : &consumer->number, id, &cursor, &entry);
    return result == STORE_OK ? read_listed(group, consumer, &entry, pending) : result;
}

enum store_result stream_pending_nth(const struct stream_group *group,
                                     const struct stream_consumer *consumer, struct stream_id from,
                                     uint64_t n, struct stream_pending *pending)
{
    struct store_cursor cursor;
    struct store_entry entry;
    uint64_t first, count;
    enum store_result result =
        pending_range(group, consumer == NULL ? NULL : &consumer->number, from, &first, &count);
    if (result == STORE_OK && n >= count)
        return STORE_ABSENT;
    if (result == STORE_OK)
        result = store_tree_seek_rank(group->stream->state, first + n, &cursor);
    if (result == STORE_OK)
        result = store_tree_get(&cursor, &entry);
    return result == STORE_OK ? read_listed(group, consumer, &entry, pending) : result;
}

/* Adds the entry to a consumer's list, or removes it. */
static enum store_result list_for_consumer(const struct stream_group *group, uint64_t consumer,
                                           struct stream_id id, bool adds)
{
    struct store_cursor cursor;
    struct store_entry entry;
    struct state_key key = pending_key(group, &consumer);
    bool found;
    add_id(&key, id);
    enum store_result result = find(group->stream, &key, &cursor, &entry, &found);
    if (result == STORE_OK && found == adds)
        return STORE_DAMAGED;
    if (result != STORE_OK)
        return result;
    return adds ? insert(group->stream, &cursor, &key, "", 0) : store_tree_remove(&cursor);
}

enum store_result stream_pending_put(const struct stream_group *group,
                                     const struct stream_pending *pending)
{
    struct store_cursor cursor;
    struct store_entry entry;
    struct stream_pending before;
    struct state_key key = pending_key(group, NULL);
    char value[PENDING_BYTES];
    bool found;
    add_id(&key, pending->id);
    big_endian_write(value, pending->consumer);
    big_endian_write(value + NUMBER, (uint64_t)pending->delivered_ms);
    big_endian_write(value + 2 * NUMBER, pending->count);
    enum store_result result = find(group->stream, &key, &cursor, &entry, &found);
    if (result == STORE_OK && found)
        result = read_pending(&entry, &before);
    if (result == STORE_OK)
        result = found ? replace(group->stream, &cursor, value, sizeof value)
                       : insert(group->stream, &cursor, &key, value, sizeof value);
    if (result != STORE_OK || (found && before.consumer == pending->consumer))
        return result;
    if (found)
        result = list_for_consumer(group, before.consumer, pending->id, false);
    return result == STORE_OK ? list_for_consumer(group, pending->consumer, pending->id, true)
                              : result;
}

enum store_result stream_pending_remove(const struct stream_group *group,
                                        const struct stream_pending *pending)
{
    enum store_result result = remove_from_group(group, pending->id);
    return result == STORE_OK ? list_for_consumer(group, pending->consumer, pending->id, false)
                              : result;
}
