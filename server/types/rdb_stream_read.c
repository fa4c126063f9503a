/*
 * Invariant: rdb_read_stream has walked over all entries, so that a later walk finds them sound.
 */
#include "server/types/rdb_stream_read.h"

#include <assert.h>
#include <string.h>

enum { DELETED = 1, SAME_FIELDS = 2 };

#define NEVER (-1)
#define NUMBER_TEXT 20                       /* bytes of the longest number as text */
#define NODE_BYTES (1 + STREAM_ID_BYTES + 1) /* the least that is there for each, ... */
#define PENDING_BYTES                                                                              \
    (STREAM_ID_BYTES + 8 + 1) /* ... so that a count cannot ask for more memory                    \
                               */
#define GROUP_BYTES (1 + 2 + 1 + 1)
#define CONSUMER_BYTES (1 + 8 + 1)

static bool rises(struct stream_id *last, struct stream_id id)
{
    bool is_higher = stream_id_compare(id, *last) > 0;
    *last = id;
    return is_higher;
}

static enum rdb_result pause(const struct rdb_caller *caller, size_t *elements)
{
    ++*elements;
    return caller->go_on == NULL || caller->go_on(caller->arg, *elements) ? RDB_OK : RDB_STOPPED;
}

/* ---- entries ---- */

static bool next_number(struct rdb_listpack *listpack, int64_t *number)
{
    struct rdb_element element;
    bool is_good = rdb_listpack_next(listpack, &element) && element.is_number;
    *number = is_good ? element.number : 0;
    return is_good;
}

static bool next_count(struct rdb_listpack *listpack, uint64_t *count)
{
    int64_t number;
    bool is_good = next_number(listpack, &number) && number >= 0;
    *count = (uint64_t)number;
    return is_good;
}

/* Adds their lengths to *bytes. */
static enum rdb_result skip(struct rdb_listpack *listpack, uint64_t count,
                            const struct rdb_caller *caller, size_t *elements, uint64_t *bytes)
{
    struct rdb_element element;
    enum rdb_result result = RDB_OK;
    for (uint64_t i = 0; i < count && result == RDB_OK; i++) {
        if (!rdb_listpack_next(listpack, &element))
            return RDB_BAD;
        *bytes += element.is_number ? NUMBER_TEXT : element.len;
        result = pause(caller, elements);
    }
    return result;
}

/* The master entry. */
static enum rdb_result begin_node(struct rdb_stream_walk *walk, const struct rdb_caller *caller,
                                  size_t *elements)
{
    const struct rdb_stream_node *node = &walk->stream->nodes[walk->node++];
    struct rdb_listpack *rest = &walk->rest;
    int64_t end;
    if (stream_id_compare(node->master, walk->last) <= 0 ||
        !rdb_listpack_open(node->listpack, rest) || !next_count(rest, &walk->live) ||
        !next_count(rest, &walk->deleted) || !next_count(rest, &walk->field_count))
        return RDB_BAD;
    walk->master = node->master;
    walk->fields = *rest;
    walk->field_bytes = 0;
    enum rdb_result result = skip(rest, walk->field_count, caller, elements, &walk->field_bytes);
    if (result != RDB_OK)
        return result;
    return next_number(rest, &end) && end == 0 ? RDB_OK : RDB_BAD;
}

/* The numbers before an entry's fields. *before: how many elements there are besides the values. */
static bool read_entry_head(struct rdb_stream_walk *walk, struct rdb_stream_entry *entry,
                            uint64_t *before)
{
    struct rdb_listpack *rest = &walk->rest;
    int64_t flags, ms, seq;
    if (!next_number(rest, &flags) || !next_number(rest, &ms) || !next_number(rest, &seq) ||
        (flags & ~(DELETED | SAME_FIELDS)) != 0)
        return false;
    entry->is_deleted = (flags & DELETED) != 0;
    entry->has_same_fields = (flags & SAME_FIELDS) != 0;
    /* Differences may be negative. */
    entry->id =
        (struct stream_id){walk->master.ms + (uint64_t)ms, walk->master.seq + (uint64_t)seq};
    entry->count = walk->field_count;
    *before = 3;
    if (!entry->has_same_fields) {
        if (!next_count(rest, &entry->count) || entry->count > (uint64_t)(rest->end - rest->at))
            return false;
        *before += 1 + entry->count;
    }
    uint64_t *left = entry->is_deleted ? &walk->deleted : &walk->live;
    return stream_id_compare(entry->id, walk->master) >= 0 && rises(&walk->last, entry->id) &&
           entry->count > 0 && (*left)-- > 0;
}

static enum rdb_result next_entry(struct rdb_stream_walk *walk, const struct rdb_caller *caller,
                                  size_t *elements, struct rdb_stream_entry *entry)
{
    struct rdb_listpack *rest = &walk->rest;
    uint64_t before, stated;
    if (!read_entry_head(walk, entry, &before))
        return RDB_BAD;
    entry->fields = entry->has_same_fields ? walk->fields : *rest;
    entry->values = *rest;
    uint64_t width = entry->has_same_fields ? 1 : 2;
    entry->bytes = entry->has_same_fields ? walk->field_bytes : 0;
    enum rdb_result result = skip(rest, entry->count * width, caller, elements, &entry->bytes);
    if (result != RDB_OK)
        return result;
    return next_count(rest, &stated) && stated == before + entry->count ? pause(caller, elements)
                                                                        : RDB_BAD;
}

struct rdb_stream_walk rdb_stream_begin(const struct rdb_stream *stream)
{
    return (struct rdb_stream_walk){.stream = stream};
}

enum rdb_result rdb_stream_next(struct rdb_stream_walk *walk, const struct rdb_caller *caller,
                                size_t *elements, struct rdb_stream_entry *entry, bool *found)
{
    enum rdb_result result = RDB_OK;
    while (walk->rest.at == walk->rest.end && result == RDB_OK) {
        bool is_whole = walk->live == 0 && walk->deleted == 0 &&
                        (walk->node == 0 || rdb_listpack_ends(&walk->rest));
        *found = false;
        if (!is_whole || walk->node == walk->stream->node_count)
            return is_whole ? RDB_OK : RDB_BAD;
        result = begin_node(walk, caller, elements);
    }
    *found = result == RDB_OK;
    return result == RDB_OK ? next_entry(walk, caller, elements, entry) : result;
}

void rdb_stream_next_field(struct rdb_stream_entry *entry, struct rdb_element *field,
                           struct rdb_element *value)
{
    struct rdb_listpack *values = entry->has_same_fields ? &entry->values : &entry->fields;
    bool is_good = rdb_listpack_next(&entry->fields, field) && rdb_listpack_next(values, value);
    assert(is_good);
    (void)is_good;
}

/* ---- numbers and arrays ---- */

/* A count that Redis keeps in a signed number. */
static bool read_count(struct rdb_reader *reader, uint64_t *count)
{
    return rdb_read_length(reader, count) && *count <= INT64_MAX;
}

static bool read_id(struct rdb_reader *reader, struct stream_id *id)
{
    return rdb_read_length(reader, &id->ms) && rdb_read_length(reader, &id->seq);
}

static bool read_time(struct rdb_reader *reader, int64_t least, int64_t *ms)
{
    const uint8_t *bytes;
    if (!rdb_take(reader, 8, &bytes))
        return false;
    *ms = rdb_signed(bytes, 8);
    return *ms >= least;
}

/* The count of things of at least `least` bytes each, and memory for as many structs. */
static enum rdb_result read_array(struct rdb_reader *reader, uint64_t least, size_t size,
                                  uint64_t *count, void **array)
{
    *array = NULL;
    if (!rdb_read_length(reader, count) || *count > (uint64_t)(reader->end - reader->at) / least)
        return RDB_BAD;
    if (*count == 0)
        return RDB_OK;
    *array = reader->caller.alloc(reader->caller.arg, *count * size);
    return *array == NULL ? RDB_NO_MEMORY : RDB_OK;
}

/* Whether names are in their order, and no one twice. */
static bool name_rises(struct resp_slice before, struct resp_slice name)
{
    size_t len = before.len < name.len ? before.len : name.len;
    int order = len == 0 ? 0 : memcmp(before.data, name.data, len);
    return order < 0 || (order == 0 && before.len < name.len);
}

/* ---- nodes ---- */

static enum rdb_result read_node(struct rdb_reader *reader, struct rdb_stream_node *node)
{
    struct resp_slice id;
    enum rdb_result result = rdb_read_string(reader, &id);
    if (result == RDB_OK && id.len != STREAM_ID_BYTES)
        return RDB_BAD;
    if (result == RDB_OK)
        result = rdb_read_string(reader, &node->listpack);
    if (result == RDB_OK)
        node->master = stream_id_read(id.data);
    return result;
}

static enum rdb_result read_nodes(struct rdb_reader *reader, struct rdb_stream *stream,
                                  size_t *elements)
{
    void *nodes;
    enum rdb_result result =
        read_array(reader, NODE_BYTES, sizeof *stream->nodes, &stream->node_count, &nodes);
    stream->nodes = nodes;
    for (uint64_t i = 0; i < stream->node_count && result == RDB_OK; i++) {
        result = read_node(reader, &stream->nodes[i]);
        if (result == RDB_OK)
            result = pause(&reader->caller, elements);
    }
    return result;
}

/* What stands between nodes and groups. The first ID is known from the entries. */
static bool read_head(struct rdb_reader *reader, enum rdb_stream_type type,
                      struct rdb_stream *stream)
{
    struct stream_id first;
    if (!read_count(reader, &stream->length) || !read_id(reader, &stream->last))
        return false;
    stream->added = stream->length;
    if (type == RDB_STREAM_5)
        return true;
    return read_id(reader, &first) && read_id(reader, &stream->max_deleted) &&
           read_count(reader, &stream->added) && stream->added >= stream->length &&
           stream_id_compare(stream->max_deleted, stream->last) <= 0;
}

static enum rdb_result check_entries(const struct rdb_caller *caller, struct rdb_stream *stream,
                                     size_t *elements)
{
    struct rdb_stream_walk walk = rdb_stream_begin(stream);
    struct rdb_stream_entry entry;
    uint64_t length = 0;
    bool found;
    enum rdb_result result = rdb_stream_next(&walk, caller, elements, &entry, &found);
    while (result == RDB_OK && found) {
        if (!entry.is_deleted && length++ == 0)
            stream->first = entry.id;
        stream->bytes += entry.is_deleted ? 0 : entry.bytes;
        result = rdb_stream_next(&walk, caller, elements, &entry, &found);
    }
    if (result != RDB_OK)
        return result;
    return length == stream->length && stream_id_compare(walk.last, stream->last) <= 0 ? RDB_OK
                                                                                       : RDB_BAD;
}

/* ---- groups ---- */

/* How many entries a group has read, by its last ID: Redis's estimate for the older form, in which
 * no entry is known to be deleted. */
static uint64_t estimate_read(const struct rdb_stream *stream, struct stream_id last)
{
    int order = stream_id_compare(last, stream->last);
    if (stream->added == 0)
        return 0;
    if (order == 0)
        return stream->added;
    if (order > 0)
        return RDB_STREAM_UNKNOWN;
    order = stream_id_compare(last, stream->first);
    return order > 0 ? RDB_STREAM_UNKNOWN : order == 0 ? 1 : 0;
}

static enum rdb_result read_pending(struct rdb_reader *reader, struct rdb_stream_group *group,
                                    size_t *elements)
{
    struct stream_id last = STREAM_ID_MIN;
    void *array;
    enum rdb_result result =
        read_array(reader, PENDING_BYTES, sizeof *group->pending, &group->pending_count, &array);
    group->pending = array;
    for (uint64_t i = 0; i < group->pending_count && result == RDB_OK; i++) {
        struct rdb_stream_pending *pending = &group->pending[i];
        const uint8_t *id;
        pending->consumer = UINT64_MAX;
        if (!rdb_take(reader, STREAM_ID_BYTES, &id) ||
            !read_time(reader, 0, &pending->delivered_ms) || !read_count(reader, &pending->count))
            return RDB_BAD;
        pending->id = stream_id_read((const char *)id);
        result = rises(&last, pending->id) ? pause(&reader->caller, elements) : RDB_BAD;
    }
    return result;
}

struct rdb_stream_pending *rdb_stream_find_pending(const struct rdb_stream_group *group,
                                                   struct stream_id id)
{
    uint64_t low = 0, high = group->pending_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (stream_id_compare(group->pending[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_found =
        low < group->pending_count && stream_id_compare(group->pending[low].id, id) == 0;
    return is_found ? &group->pending[low] : NULL;
}

/* The pending entries of consumer number `index` become its own. */
static enum rdb_result claim(struct rdb_reader *reader, const struct rdb_stream_group *group,
                             uint64_t index, size_t *elements)
{
    struct rdb_stream_consumer *consumer = &group->consumers[index];
    struct stream_id last = STREAM_ID_MIN;
    const uint8_t *ids;
    enum rdb_result result = RDB_OK;
    if (!rdb_read_length(reader, &consumer->id_count) ||
        consumer->id_count > group->pending_count ||
        !rdb_take(reader, consumer->id_count * STREAM_ID_BYTES, &ids))
        return RDB_BAD;
    consumer->ids = (const char *)ids;
    for (uint64_t i = 0; i < consumer->id_count && result == RDB_OK; i++) {
        struct stream_id id = stream_id_read(consumer->ids + i * STREAM_ID_BYTES);
        struct rdb_stream_pending *pending = rdb_stream_find_pending(group, id);
        if (!rises(&last, id) || pending == NULL || pending->consumer != UINT64_MAX)
            return RDB_BAD;
        pending->consumer = index;
        result = pause(&reader->caller, elements);
    }
    return result;
}

static enum rdb_result read_consumer(struct rdb_reader *reader, enum rdb_stream_type type,
                                     const struct rdb_stream_group *group, uint64_t index,
                                     size_t *elements)
{
    struct rdb_stream_consumer *consumer = &group->consumers[index];
    enum rdb_result result = rdb_read_string(reader, &consumer->name);
    if (result != RDB_OK)
        return result;
    if (index > 0 && !name_rises(consumer[-1].name, consumer->name))
        return RDB_BAD;
    if (!read_time(reader, 0, &consumer->seen_ms))
        return RDB_BAD;
    consumer->active_ms = consumer->seen_ms; /* as Redis takes it */
    if (type == RDB_STREAM_7_2 && !read_time(reader, NEVER, &consumer->active_ms))
        return RDB_BAD;
    result = pause(&reader->caller, elements);
    return result == RDB_OK ? claim(reader, group, index, elements) : result;
}

static enum rdb_result read_consumers(struct rdb_reader *reader, enum rdb_stream_type type,
                                      struct rdb_stream_group *group, size_t *elements)
{
    void *array;
    uint64_t claimed = 0;
    enum rdb_result result = read_array(reader, CONSUMER_BYTES, sizeof *group->consumers,
                                        &group->consumer_count, &array);
    group->consumers = array;
    for (uint64_t i = 0; i < group->consumer_count && result == RDB_OK; i++) {
        result = read_consumer(reader, type, group, i, elements);
        if (result == RDB_OK)
            claimed += group->consumers[i].id_count;
    }
    return result == RDB_OK && claimed != group->pending_count ? RDB_BAD : result;
}

static enum rdb_result read_group(struct rdb_reader *reader, enum rdb_stream_type type,
                                  const struct rdb_stream *stream, struct rdb_stream_group *group,
                                  size_t *elements)
{
    enum rdb_result result = rdb_read_string(reader, &group->name);
    if (result != RDB_OK)
        return result;
    if (!read_id(reader, &group->last))
        return RDB_BAD;
    group->read = estimate_read(stream, group->last);
    if (type != RDB_STREAM_5 && (!rdb_read_length(reader, &group->read) ||
                                 (group->read > INT64_MAX && group->read != RDB_STREAM_UNKNOWN)))
        return RDB_BAD;
    result = read_pending(reader, group, elements);
    return result == RDB_OK ? read_consumers(reader, type, group, elements) : result;
}

static enum rdb_result read_groups(struct rdb_reader *reader, enum rdb_stream_type type,
                                   struct rdb_stream *stream, size_t *elements)
{
    void *groups;
    enum rdb_result result =
        read_array(reader, GROUP_BYTES, sizeof *stream->groups, &stream->group_count, &groups);
    stream->groups = groups;
    for (uint64_t i = 0; i < stream->group_count && result == RDB_OK; i++) {
        struct rdb_stream_group *group = &stream->groups[i];
        result = read_group(reader, type, stream, group, elements);
        if (result == RDB_OK && i > 0 && !name_rises(group[-1].name, group->name))
            return RDB_BAD;
        if (result == RDB_OK)
            result = pause(&reader->caller, elements);
    }
    return result;
}

enum rdb_result rdb_read_stream(struct rdb_reader *reader, enum rdb_stream_type type)
{
    size_t elements = 0;
    struct rdb_stream *stream = reader->caller.alloc(reader->caller.arg, sizeof *stream);
    if (stream == NULL)
        return RDB_NO_MEMORY;
    *stream = (struct rdb_stream){.length = 0};
    reader->value->stream = stream;
    enum rdb_result result = read_nodes(reader, stream, &elements);
    if (result == RDB_OK && !read_head(reader, type, stream))
        return RDB_BAD;
    if (result == RDB_OK)
        result = check_entries(&reader->caller, stream, &elements);
    return result == RDB_OK ? read_groups(reader, type, stream, &elements) : result;
}
