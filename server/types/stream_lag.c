#include "server/types/stream_lag.h"

/* Whether an entry from this ID on was deleted by XDEL. `first`: the first entry. */
static bool has_gap_behind(const struct stream *stream, struct stream_id first, struct stream_id id)
{
    struct stream_id deleted = stream->head.max_deleted;
    return stream_count(stream) > 0 && !stream_id_is_zero(deleted) &&
           stream_id_compare(first, deleted) <= 0 && stream_id_compare(id, deleted) <= 0;
}

/* How many entries were ever added up to this ID, or STREAM_READ_UNKNOWN. */
static uint64_t count_up_to(const struct stream *stream, struct stream_id first,
                            struct stream_id id)
{
    const struct stream_head *head = &stream->head;
    int to_last = stream_id_compare(id, head->last), to_first = stream_id_compare(id, first);
    uint64_t count = stream_count(stream);
    if (head->added == 0 || (count == 0 && to_last <= 0) || to_last == 0)
        return head->added;
    bool has_gap =
        !stream_id_is_zero(head->max_deleted) && stream_id_compare(head->max_deleted, first) >= 0;
    if (to_last > 0 || has_gap || to_first > 0)
        return STREAM_READ_UNKNOWN;
    return head->added - count + (to_first == 0);
}

enum store_result stream_group_note_read(struct stream_group *group, struct stream_id id)
{
    struct stream_id first;
    if (stream_id_compare(id, group->last) <= 0)
        return STORE_OK;
    enum store_result result = stream_first_entry(group->stream, &first);
    if (result != STORE_OK)
        return result;
    if (group->read != STREAM_READ_UNKNOWN && !has_gap_behind(group->stream, first, id))
        group->read++;
    else if (group->stream->head.added > 0)
        group->read = count_up_to(group->stream, first, id);
    group->last = id;
    return STORE_OK;
}

enum store_result stream_group_lag(const struct stream_group *group, uint64_t *lag, bool *known)
{
    const struct stream *stream = group->stream;
    struct stream_id first;
    enum store_result result = stream_first_entry(group->stream, &first);
    if (result != STORE_OK)
        return result;
    uint64_t read = group->read;
    if (stream->head.added == 0)
        read = 0;
    else if (read == STREAM_READ_UNKNOWN || has_gap_behind(stream, first, group->last))
        read = count_up_to(stream, first, group->last);
    *known = read != STREAM_READ_UNKNOWN;
    *lag = *known ? stream->head.added - read : 0;
    return STORE_OK;
}
