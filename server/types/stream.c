/*
 * Invariant: head.added >= stream_count(), and head.last is not less than the ID of any entry.
 */
#include "server/types/stream.h"

#include <assert.h>
#include <string.h>

#include "server/exec/keyspace.h"
#include "server/exec/long_run.h"
#include "server/types/copy_trees.h"
#include "server/types/packed.h"
#include "server/types/string_walk.h"

#define HEAD_KEY "\0" /* of one byte */
#define HEAD_BYTES (2 * STREAM_ID_BYTES + BIG_ENDIAN_BYTES)

/* ---- finding ---- */

enum store_result stream_open(struct call *call, const struct store_key *key,
                              const struct store_item *item, struct stream *stream)
{
    *stream = (struct stream){.call = call, .key = key, .exists = true};
    if (item->trees != STREAM_TREES)
        return STORE_DAMAGED;
    enum store_result result =
        store_tree_open(call->txn, key, item, STREAM_ENTRIES, &stream->entries);
    return result == STORE_OK ? store_tree_open(call->txn, key, item, STREAM_STATE, &stream->state)
                              : result;
}

enum store_result stream_find(struct call *call, const struct store_key *key, struct stream *stream)
{
    struct store_item item;
    *stream = (struct stream){.call = call, .key = key};
    enum store_result result = call_get(call, key, TYPE_STREAM, &item);
    if (result == STORE_ABSENT)
        return STORE_OK;
    return result != STORE_OK ? result : stream_open(call, key, &item, stream);
}

enum store_result stream_create(struct stream *stream)
{
    struct store_item item;
    struct stream created;
    struct store_txn *txn = stream->call->txn;
    assert(!stream->exists);
    enum store_result result =
        store_tree_create(txn, stream->key, TYPE_STREAM, STREAM_TREES, STORE_NO_EXPIRY);
    if (result == STORE_OK)
        result = store_get(txn, stream->key, &item);
    if (result == STORE_OK)
        result = stream_open(stream->call, stream->key, &item, &created);
    if (result == STORE_OK)
        *stream = created;
    return result;
}

uint64_t stream_count(const struct stream *stream)
{
    return stream->exists ? store_tree_count(stream->entries) : 0;
}

/* ---- the head ---- */

static enum store_result read_head(struct stream *stream, struct stream_head *head)
{
    struct store_cursor cursor;
    struct store_entry entry;
    *head = (struct stream_head){.added = 0};
    enum store_result result = store_tree_find(stream->state, HEAD_KEY, 1, &cursor);
    if (result == STORE_OK)
        result = store_tree_get(&cursor, &entry);
    if (result != STORE_OK || entry.key_len != 1 || entry.key[0] != HEAD_KEY[0])
        return result == STORE_ABSENT ? STORE_OK : result;
    if (entry.value.large || entry.value.length != HEAD_BYTES)
        return STORE_DAMAGED;
    head->last = stream_id_read(entry.value.bytes);
    head->max_deleted = stream_id_read(entry.value.bytes + STREAM_ID_BYTES);
    head->added = big_endian_read(entry.value.bytes + 2 * STREAM_ID_BYTES);
    return STORE_OK;
}

enum store_result stream_last_entry(struct stream *stream, struct stream_id *id)
{
    struct store_cursor cursor;
    struct stream_entry entry;
    uint64_t count = stream_count(stream);
    if (count == 0)
        return STORE_ABSENT;
    enum store_result result = store_tree_seek_rank(stream->entries, count - 1, &cursor);
    if (result == STORE_OK)
        result = stream_get(&cursor, &entry);
    if (result == STORE_OK)
        *id = entry.id;
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

enum store_result stream_first_entry(struct stream *stream, struct stream_id *id)
{
    struct store_cursor cursor;
    struct stream_entry entry = {.id = STREAM_ID_MIN};
    enum store_result result = STORE_OK;
    if (!stream->knows_first && stream_count(stream) > 0) {
        result = store_tree_seek_rank(stream->entries, 0, &cursor);
        if (result == STORE_OK)
            result = stream_get(&cursor, &entry);
    }
    if (result != STORE_OK)
        return result == STORE_ABSENT ? STORE_DAMAGED : result;
    if (!stream->knows_first)
        stream->first = entry.id;
    stream->knows_first = true;
    *id = stream->first;
    return STORE_OK;
}

enum store_result stream_load_head(struct stream *stream)
{
    struct stream_id last = STREAM_ID_MIN;
    stream->head = (struct stream_head){.added = 0};
    enum store_result result = STORE_OK;
    if (stream->exists)
        result = read_head(stream, &stream->head);
    if (result == STORE_OK)
        result = stream_last_entry(stream, &last);
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    if (stream_id_compare(last, stream->head.last) > 0)
        stream->head.last = last;
    stream->stored_count = stream_count(stream);
    stream->head.added += stream->stored_count;
    stream->stored = stream->head;
    return STORE_OK;
}

static bool is_zero(const char *bytes, size_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

/* The header as it is stored, beside a last entry with this ID. */
static void encode_head(const struct stream *stream, struct stream_id last_entry,
                        char bytes[HEAD_BYTES])
{
    const struct stream_head *head = &stream->head;
    bool is_above = stream_id_compare(head->last, last_entry) > 0;
    assert(head->added >= stream_count(stream));
    stream_id_write(bytes, is_above ? head->last : STREAM_ID_MIN);
    stream_id_write(bytes + STREAM_ID_BYTES, head->max_deleted);
    big_endian_write(bytes + 2 * STREAM_ID_BYTES, head->added - stream_count(stream));
}

/* `value` is the header's; it must live until the request is finished. */
static enum store_result put_head(struct stream *stream, const char *value)
{
    struct store_cursor cursor;
    struct store_entry entry;
    enum store_result result = store_tree_find(stream->state, HEAD_KEY, 1, &cursor);
    if (result == STORE_OK)
        result = store_tree_get(&cursor, &entry);
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    bool is_there = result == STORE_OK && entry.key_len == 1 && entry.key[0] == HEAD_KEY[0];
    if (is_there)
        return store_tree_replace(&cursor, value, HEAD_BYTES);
    if (is_zero(value, HEAD_BYTES))
        return STORE_OK;
    return store_tree_insert(&cursor, HEAD_KEY, 1, value, HEAD_BYTES);
}

/* Whether only entries were appended: then the header stays as it is, unless it has a last ID. */
static bool head_is_current(const struct stream *stream)
{
    const struct stream_head *head = &stream->head, *stored = &stream->stored;
    uint64_t appended = head->added - stored->added;
    return stream_id_compare(head->max_deleted, stored->max_deleted) == 0 &&
           stream_count(stream) == stream->stored_count + appended &&
           (appended > 0 || stream_id_compare(head->last, stored->last) == 0);
}

enum store_result stream_save(struct stream *stream)
{
    struct stream_id last = STREAM_ID_MIN;
    if (head_is_current(stream))
        return STORE_OK;
    enum store_result result = stream_last_entry(stream, &last);
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    char *bytes = store_alloc(stream->call->txn, HEAD_BYTES);
    if (bytes == NULL)
        return STORE_NO_MEMORY;
    encode_head(stream, last, bytes);
    return put_head(stream, bytes);
}

/* ---- entries ---- */

enum store_result stream_seek(struct stream *stream, struct stream_id id,
                              struct store_cursor *cursor)
{
    char key[STREAM_ID_BYTES];
    stream_id_write(key, id);
    return store_tree_seek(stream->entries, key, sizeof key, cursor);
}

enum store_result stream_get(struct store_cursor *cursor, struct stream_entry *entry)
{
    struct store_entry found;
    enum store_result result = store_tree_get(cursor, &found);
    if (result != STORE_OK)
        return result;
    if (found.key_len != STREAM_ID_BYTES)
        return STORE_DAMAGED;
    *entry = (struct stream_entry){stream_id_read(found.key), found.value};
    return STORE_OK;
}

enum store_result stream_find_entry(struct stream *stream, struct stream_id id,
                                    struct store_cursor *cursor, struct stream_entry *entry,
                                    bool *found)
{
    *found = false;
    if (stream_count(stream) == 0)
        return STORE_OK;
    enum store_result result = stream_seek(stream, id, cursor);
    if (result == STORE_OK)
        result = stream_get(cursor, entry);
    *found = result == STORE_OK && stream_id_compare(entry->id, id) == 0;
    return result == STORE_ABSENT ? STORE_OK : result;
}

enum store_result stream_range(struct stream *stream, struct stream_id first, struct stream_id last,
                               uint64_t *rank, uint64_t *count)
{
    struct store_cursor cursor;
    *rank = *count = 0;
    if (stream_count(stream) == 0 || stream_id_compare(first, last) > 0)
        return STORE_OK;
    enum store_result result = stream_seek(stream, first, &cursor);
    if (result != STORE_OK)
        return result;
    *rank = cursor.rank;
    *count = stream_count(stream) - *rank;
    if (*count == 0 || !stream_id_increment(&last))
        return STORE_OK;
    result = stream_seek(stream, last, &cursor);
    if (result == STORE_OK && cursor.rank < *rank)
        return STORE_DAMAGED;
    *count = result == STORE_OK ? cursor.rank - *rank : 0;
    return result;
}

/* ---- fields ---- */

enum store_result stream_fields_read(struct call *call, const struct store_item *item,
                                     struct stream_fields *fields)
{
    enum store_result result = STORE_OK;
    fields->at = item->bytes;
    if (item->large)
        result = string_view(call, item, 0, item->length, &fields->at);
    if (result == STORE_OK)
        fields->end = fields->at + item->length;
    return result;
}

bool stream_fields_count(struct stream_fields fields, uint64_t *count)
{
    for (*count = 0; fields.at < fields.end; ++*count) {
        uint32_t len;
        uint64_t left = (uint64_t)(fields.end - fields.at);
        uint32_t size = packed_read_length(fields.at, left, &len);
        if (size == 0 || len > left - size)
            return false;
        fields.at += size + len;
    }
    return *count % 2 == 0;
}

struct resp_slice stream_fields_next(struct stream_fields *fields)
{
    uint32_t len;
    assert(fields->at < fields->end);
    fields->at += packed_read_length(fields->at, (uint64_t)(fields->end - fields->at), &len);
    struct resp_slice slice = {fields->at, len};
    fields->at += len;
    return slice;
}

/* ---- changes ---- */

static enum store_result encode_fields(struct stream *stream, const struct resp_slice *fields,
                                       size_t count, struct resp_slice *value)
{
    uint64_t size = 0;
    for (size_t i = 0; i < count; i++) {
        if (fields[i].len > STORE_VALUE_MAX - size)
            return STORE_TOO_LARGE;
        size += fields[i].len;
    }
    char *bytes = store_alloc(stream->call->txn, size + count * PACKED_LENGTH_MAX), *to = bytes;
    if (bytes == NULL)
        return STORE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        to += packed_write_length(to, (uint32_t)fields[i].len);
        if (fields[i].len > 0)
            memcpy(to, fields[i].data, fields[i].len);
        to += fields[i].len;
    }
    *value = (struct resp_slice){bytes, (size_t)(to - bytes)};
    return STORE_OK;
}

enum store_result stream_append(struct stream *stream, struct stream_id id,
                                const struct resp_slice *fields, size_t count)
{
    struct store_cursor cursor;
    struct resp_slice value;
    char key[STREAM_ID_BYTES];
    assert(stream_id_compare(id, stream->head.last) > 0);
    stream->knows_first = false;
    stream_id_write(key, id);
    enum store_result result = encode_fields(stream, fields, count, &value);
    if (result == STORE_OK)
        result = store_tree_seek_rank(stream->entries, stream_count(stream), &cursor);
    if (result == STORE_OK)
        result = store_tree_insert(&cursor, key, sizeof key, value.data, value.len);
    stream->head.last = id;
    stream->head.added++;
    return result;
}

enum store_result stream_delete(struct stream *stream, struct stream_id id, bool *removed)
{
    struct store_cursor cursor;
    struct stream_entry entry;
    bool found;
    *removed = false;
    stream->knows_first = false;
    enum store_result result = stream_find_entry(stream, id, &cursor, &entry, &found);
    if (result != STORE_OK || !found)
        return result;
    result = store_tree_remove(&cursor);
    *removed = result == STORE_OK;
    if (*removed && stream_id_compare(id, stream->head.max_deleted) > 0)
        stream->head.max_deleted = id;
    return result;
}

/* Copies the other entries and the state to a stream that replaces this one. */
static enum store_result write_anew(struct stream *stream, uint64_t first)
{
    struct store_item item;
    struct stream fresh;
    enum store_result result =
        copy_trees_keep(stream->call, stream->key, first, stream_count(stream) - first, &item);
    if (result == STORE_OK)
        result = stream_open(stream->call, stream->key, &item, &fresh);
    if (result == STORE_OK) {
        stream->entries = fresh.entries;
        stream->state = fresh.state;
    }
    return result;
}

enum store_result stream_trim(struct stream *stream, uint64_t count)
{
    struct store_cursor cursor;
    assert(count <= stream_count(stream));
    stream->knows_first = false;
    if (count == 0)
        return STORE_OK;
    uint64_t others = stream_count(stream) - count + store_tree_count(stream->state);
    if (count > COPY_TREES_MANY && count > others)
        return write_anew(stream, count);
    enum store_result result = store_tree_seek_rank(stream->entries, 0, &cursor);
    for (uint64_t i = 0; i < count && result == STORE_OK; i++) {
        result = store_tree_remove(&cursor);
        if (result == STORE_OK)
            result = call_yield_at(stream->call, i);
    }
    return result;
}
