/*
 * Entries of streams in replies.
 */
#include "server/commands/cmd_stream_reply.h"

#include "server/exec/long_run.h"

static void put_head(struct resp_writer *out, const struct stream_entries *entries)
{
    if (entries->name != NULL && out->version < 3)
        resp_array(out, 2);
    if (entries->name != NULL)
        resp_bulk(out, entries->name->data, entries->name->len);
    resp_array(out, entries->count);
}

void stream_put_streams(struct steps *steps, uint32_t streams)
{
    if (steps->out->version < 3)
        resp_array(steps->out, streams);
    else
        resp_map(steps->out, streams);
}

enum store_result stream_put_entry(struct steps *steps, const struct stream_entry *entry)
{
    struct resp_writer *out = steps->out;
    struct stream_fields fields;
    uint64_t count;
    if (steps->collector != NULL && !collector_has_room(steps->collector, entry->fields.length))
        return STORE_NO_MEMORY;
    enum store_result result = stream_fields_read(steps->call, &entry->fields, &fields);
    if (result != STORE_OK)
        return result;
    if (!stream_fields_count(fields, &count))
        return STORE_DAMAGED;
    resp_array(out, 2);
    stream_id_reply(out, entry->id);
    resp_array(out, count);
    for (uint64_t i = 0; i < count; i++) {
        struct resp_slice slice = stream_fields_next(&fields);
        resp_bulk(out, slice.data, slice.len);
    }
    return out->failed ? STORE_NO_MEMORY : STORE_OK;
}

enum store_result stream_put_entry_of(struct steps *steps, struct stream *stream,
                                      struct stream_id id, bool *found)
{
    struct store_cursor cursor;
    struct stream_entry entry;
    enum store_result result = stream_find_entry(stream, id, &cursor, &entry, found);
    return result == STORE_OK && *found ? stream_put_entry(steps, &entry) : result;
}

enum store_result stream_put_entries(struct steps *steps, const struct stream_entries *entries,
                                     uint64_t before)
{
    struct store_cursor cursor;
    struct stream_entry entry;
    enum store_result result = store_tree_seek_rank(
        entries->stream->entries,
        entries->backwards ? entries->rank - before : entries->rank + before, &cursor);
    for (uint64_t i = before; i < entries->count && result == STORE_OK; i++) {
        size_t start = steps->out->len;
        result = stream_get(&cursor, &entry);
        if (result == STORE_OK && i == 0)
            put_head(steps->out, entries);
        if (result == STORE_OK)
            result = stream_put_entry(steps, &entry);
        if (result != STORE_OK) {
            resp_truncate(steps->out, start); /* the entry is repeated */
            break;
        }
        result = steps_count(steps);
        if (result == STORE_OK && steps->collector == NULL)
            result = call_yield_at(steps->call, i);
        if (result == STORE_OK && i + 1 < entries->count)
            result = entries->backwards ? store_tree_prev(&cursor) : store_tree_next(&cursor);
    }
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}
