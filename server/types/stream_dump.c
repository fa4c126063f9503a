/*
 * Three parts, by collector->source: the nodes are counted, since their count comes first; they are
 * put; the groups are put. collector->at is in entries of the stream; in a group, how much of a
 * list was put: its head, then its pending entries.
 */
#include "server/types/stream_dump.h"

#include <assert.h>

#include "server/types/rdb_stream_write.h"
#include "server/types/rdb_write.h"
#include "server/types/stream_group.h"

enum { PART_COUNT, PART_ENTRIES, PART_GROUPS };

#define LIST_WORK 8              /* to find a group or a consumer, in entries */
#define WORK_BYTES 512           /* of a node, that count as an entry */
#define BUFFER_KEPT (256 * 1024) /* a longer one is freed after the node */

struct dumping {
    struct call *call;
    struct collector *collector;
    struct stream *stream;
};

/* Bytes of `out` that will not change. */
static enum store_result put_is_done(struct collector *collector, size_t before)
{
    rdb_add_to_checksum(&collector->checksum, &collector->out, before);
    return collector->out.failed ? STORE_NO_MEMORY : STORE_OK;
}

static enum store_result step_after(const struct dumping *dumping, uint64_t entries)
{
    return collector_step_fills(dumping->collector, entries)
               ? collector_step(dumping->call, dumping->collector)
               : STORE_OK;
}

/* ---- entries ---- */

/* Counts the nodes from collector->at on, which is always where one begins. */
static enum store_result count_nodes(const struct dumping *dumping)
{
    struct collector *collector = dumping->collector;
    uint64_t count = stream_count(dumping->stream);
    struct rdb_node_size size = {.entries = 0};
    struct store_cursor cursor;
    struct stream_entry entry;
    enum store_result result =
        store_tree_seek_rank(dumping->stream->entries, collector->at, &cursor);
    while (result == STORE_OK && collector->at + size.entries < count) {
        result = stream_get(&cursor, &entry);
        if (result != STORE_OK)
            break;
        if (rdb_node_takes(&size, entry.fields.length)) {
            result = store_tree_next(&cursor);
            continue;
        }
        uint64_t entries = size.entries;
        collector->count++;
        collector->at += entries;
        size = (struct rdb_node_size){.entries = 0};
        result = step_after(dumping, entries);
    }
    collector->count += result == STORE_OK && size.entries > 0;
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

/* The entry's fields and values: in memory of this run. */
static enum store_result read_fields(const struct dumping *dumping,
                                     const struct stream_entry *entry, struct resp_slice **slices,
                                     uint64_t *count)
{
    struct stream_fields fields;
    struct collector *collector = dumping->collector;
    /* the value, and the node */
    if (entry->fields.large && !collector_has_room(collector, 2 * entry->fields.length))
        return STORE_NO_MEMORY;
    enum store_result result = stream_fields_read(dumping->call, &entry->fields, &fields);
    if (result != STORE_OK)
        return result;
    if (!stream_fields_count(fields, count))
        return STORE_DAMAGED;
    *slices = store_alloc(dumping->call->txn, (*count + 1) * sizeof **slices);
    if (*slices == NULL)
        return STORE_NO_MEMORY;
    for (uint64_t i = 0; i < *count; i++)
        (*slices)[i] = stream_fields_next(&fields);
    return STORE_OK;
}

static enum store_result add_entry(const struct dumping *dumping, const struct stream_entry *entry,
                                   struct rdb_node *node)
{
    struct resp_slice *slices;
    uint64_t count;
    enum store_result result = read_fields(dumping, entry, &slices, &count);
    if (result != STORE_OK)
        return result;
    if (node->entries == 0)
        rdb_node_begin(node, &dumping->collector->reordered, entry->id, slices, count);
    rdb_node_add(node, entry->id, slices, count);
    return STORE_OK;
}

static enum store_result put_node(const struct dumping *dumping, struct rdb_node *node)
{
    struct collector *collector = dumping->collector;
    size_t before = collector->out.len;
    rdb_node_put(node, &collector->out);
    collector->at += node->entries;
    return put_is_done(collector, before);
}

/* The node that begins at the cursor, which is moved behind it. */
static enum store_result dump_node(const struct dumping *dumping, struct store_cursor *cursor)
{
    struct collector *collector = dumping->collector;
    uint64_t count = stream_count(dumping->stream);
    struct rdb_node_size size = {.entries = 0};
    struct rdb_node node = {.entries = 0};
    struct stream_entry entry;
    enum store_result result = STORE_OK;
    resp_truncate(&collector->reordered, 0);
    while (collector->at + node.entries < count) {
        result = stream_get(cursor, &entry);
        if (result != STORE_OK || !rdb_node_takes(&size, entry.fields.length))
            break;
        result = add_entry(dumping, &entry, &node);
        if (result == STORE_OK)
            result = store_tree_next(cursor);
        if (result != STORE_OK)
            break;
    }
    return result == STORE_OK ? put_node(dumping, &node) : result;
}

/* What a node has cost, in entries: it is compressed. */
static uint64_t node_work(const struct collector *collector, uint64_t entries)
{
    return entries + collector->reordered.len / WORK_BYTES;
}

static void free_long_buffer(struct resp_writer *buffer)
{
    uint8_t version = buffer->version;
    if (buffer->capacity <= BUFFER_KEPT)
        return;
    resp_writer_free(buffer);
    resp_writer_init(buffer, version);
}

static enum store_result dump_nodes(const struct dumping *dumping)
{
    struct collector *collector = dumping->collector;
    struct store_cursor cursor;
    enum store_result result =
        store_tree_seek_rank(dumping->stream->entries, collector->at, &cursor);
    while (result == STORE_OK && collector->at < stream_count(dumping->stream)) {
        uint64_t before = collector->at;
        result = dump_node(dumping, &cursor);
        uint64_t work = node_work(collector, collector->at - before);
        free_long_buffer(&collector->reordered);
        if (result == STORE_OK)
            result = step_after(dumping, work);
    }
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

/* ---- groups ---- */

static enum store_result dump_head(const struct dumping *dumping)
{
    struct collector *collector = dumping->collector;
    struct stream *stream = dumping->stream;
    size_t before = collector->out.len;
    struct rdb_stream head = {.length = stream_count(stream)};
    struct store_cursor cursor;
    struct stream_entry entry;
    enum store_result result = stream_load_head(stream);
    if (result == STORE_OK)
        result = stream_group_count(stream, &head.group_count);
    if (result == STORE_OK && head.length > 0) {
        result = store_tree_seek_rank(stream->entries, 0, &cursor);
        if (result == STORE_OK)
            result = stream_get(&cursor, &entry);
        if (result == STORE_OK)
            head.first = entry.id;
    }
    if (result != STORE_OK)
        return result == STORE_ABSENT ? STORE_DAMAGED : result;
    head.last = stream->head.last;
    head.max_deleted = stream->head.max_deleted;
    head.added = stream->head.added;
    rdb_put_stream_head(&collector->out, &head);
    return put_is_done(collector, before);
}

/* What precedes the pending entries of a group, or of a consumer. */
static enum store_result dump_list_head(const struct dumping *dumping,
                                        const struct stream_group *group,
                                        const struct stream_consumer *consumer)
{
    struct collector *collector = dumping->collector;
    size_t before = collector->out.len;
    uint64_t count;
    if (collector->at > 0)
        return STORE_OK;
    enum store_result result = stream_pending_count(group, consumer, STREAM_ID_MIN, &count);
    if (result != STORE_OK)
        return result;
    if (consumer == NULL)
        rdb_put_group(&collector->out, &(struct rdb_stream_group){.name = group->name,
                                                                  .last = group->last,
                                                                  .read = group->read,
                                                                  .pending_count = count});
    else
        rdb_put_consumer(&collector->out,
                         &(struct rdb_stream_consumer){.name = consumer->name,
                                                       .seen_ms = consumer->seen_ms,
                                                       .id_count = count});
    collector->at++;
    collector->in_group.has_more = count > 0;
    collector->in_group.ms = collector->in_group.seq = 0;
    return put_is_done(collector, before);
}

static enum store_result dump_pending(const struct dumping *dumping,
                                      const struct stream_group *group,
                                      const struct stream_consumer *consumer)
{
    struct collector *collector = dumping->collector;
    struct stream_id next = {collector->in_group.ms, collector->in_group.seq};
    struct stream_pending pending;
    size_t before = collector->out.len;
    enum store_result result = stream_pending_seek(group, consumer, next, &pending);
    if (result == STORE_ABSENT) {
        collector->in_group.has_more = false;
        return STORE_OK;
    }
    if (result != STORE_OK)
        return result;
    if (consumer != NULL)
        rdb_put_raw_id(&collector->out, pending.id);
    else
        rdb_put_pending(&collector->out,
                        &(struct rdb_stream_pending){.id = pending.id,
                                                     .delivered_ms = pending.delivered_ms,
                                                     .count = pending.count});
    next = pending.id;
    collector->in_group.has_more = stream_id_increment(&next);
    collector->in_group.ms = next.ms;
    collector->in_group.seq = next.seq;
    collector->at++;
    return put_is_done(collector, before);
}

/* A list from collector->at on; then the next one begins. */
static enum store_result dump_list(const struct dumping *dumping, const struct stream_group *group,
                                   const struct stream_consumer *consumer)
{
    struct collector *collector = dumping->collector;
    enum store_result result = dump_list_head(dumping, group, consumer);
    while (result == STORE_OK && collector->in_group.has_more) {
        result = dump_pending(dumping, group, consumer);
        if (result == STORE_OK)
            result = step_after(dumping, 1);
    }
    return result;
}

static enum store_result dump_consumers(const struct dumping *dumping,
                                        const struct stream_group *group)
{
    struct collector *collector = dumping->collector;
    uint64_t count;
    enum store_result result = stream_consumer_count(group, &count);
    while (result == STORE_OK && collector->in_group.list <= count) {
        struct stream_consumer consumer;
        result = stream_consumer_at(group, collector->in_group.list - 1, &consumer);
        if (result == STORE_OK)
            result = dump_list(dumping, group, &consumer);
        if (result != STORE_OK)
            break;
        collector->in_group.list++;
        collector->at = 0;
        result = step_after(dumping, LIST_WORK);
    }
    return result;
}

/* The group's own list, which ends with the count of its consumers. */
static enum store_result dump_own_list(const struct dumping *dumping,
                                       const struct stream_group *group)
{
    struct collector *collector = dumping->collector;
    uint64_t count;
    enum store_result result = stream_consumer_count(group, &count);
    if (result == STORE_OK)
        result = dump_list(dumping, group, NULL);
    if (result != STORE_OK)
        return result;
    size_t before = collector->out.len;
    rdb_put_length(&collector->out, count);
    collector->in_group.list++;
    collector->at = 0;
    return put_is_done(collector, before);
}

static enum store_result dump_groups(const struct dumping *dumping)
{
    struct collector *collector = dumping->collector;
    uint64_t count;
    enum store_result result = stream_group_count(dumping->stream, &count);
    while (result == STORE_OK && collector->in_group.group < count) {
        struct stream_group group;
        result = stream_group_at(dumping->stream, collector->in_group.group, &group);
        if (result == STORE_OK && collector->in_group.list == 0)
            result = dump_own_list(dumping, &group);
        if (result == STORE_OK)
            result = dump_consumers(dumping, &group);
        if (result != STORE_OK)
            break;
        collector->in_group.group++;
        collector->in_group.list = 0;
        result = step_after(dumping, LIST_WORK);
    }
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

/* ---- all of it ---- */

static enum store_result dump_part(const struct dumping *dumping)
{
    struct collector *collector = dumping->collector;
    enum store_result result;
    switch (collector->source) {
    case PART_COUNT:
        result = count_nodes(dumping);
        if (result != STORE_OK)
            return result;
        rdb_put_stream(&collector->out, collector->count);
        return put_is_done(collector, 0);
    case PART_ENTRIES:
        result = dump_nodes(dumping);
        return result == STORE_OK ? dump_head(dumping) : result;
    default:
        return dump_groups(dumping);
    }
}

enum store_result stream_dump(struct call *call, const struct store_item *item,
                              struct collector *collector)
{
    struct stream stream;
    struct dumping dumping = {call, collector, &stream};
    enum store_result result = stream_open(call, call->keys, item, &stream);
    while (result == STORE_OK && collector->source <= PART_GROUPS) {
        result = dump_part(&dumping);
        if (result == STORE_OK)
            collector_next_source(collector);
    }
    return result;
}
