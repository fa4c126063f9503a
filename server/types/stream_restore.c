#include "server/types/stream_restore.h"

#include <assert.h>

#include "server/exec/long_run.h"
#include "server/types/stream_group.h"

#define STEP_BYTES (256 * 1024) /* smaller streams are written at once */
#define ENTRY_BYTES 64          /* of an entry besides its fields; entries only append */
#define NUMBER_TEXT 24

/* What counts for each change of the state: each may be in pages of its own, and all those must fit
 * in the cache. */
#define SPREAD_BYTES 512

_Static_assert(RDB_STREAM_UNKNOWN == STREAM_READ_UNKNOWN, "one number");

/* A run that adds to a stream until it has spent its bytes. */
struct filling {
    struct call *call;
    const struct rdb_stream *source;
    struct stream stream;
    struct stream_restore_place *place;
    uint64_t left; /* bytes */
    uint64_t work; /* calls of spend */
    enum store_result yielded;
    struct stream_group group;
    struct stream_consumer consumer;
};

static enum store_result spend(struct filling *filling, uint64_t bytes)
{
    filling->left -= bytes < filling->left ? bytes : filling->left;
    return call_yield_at(filling->call, filling->work++);
}

/* For a group or a consumer, which was looked for: among all names that begin alike, if it is long.
 */
static enum store_result spend_on_name(struct filling *filling, struct resp_slice name)
{
    enum store_result result = spend(filling, 2 * SPREAD_BYTES + name.len);
    return result == STORE_OK ? call_yield(filling->call) : result;
}

/* ---- entries ---- */

static bool to_slice(struct call *call, const struct rdb_element *element, struct resp_slice *slice)
{
    *slice = (struct resp_slice){element->bytes, element->len};
    if (!element->is_number)
        return true;
    char *text = store_alloc(call->txn, NUMBER_TEXT);
    if (text == NULL)
        return false;
    *slice = (struct resp_slice){text, resp_print_int64(text, element->number)};
    return true;
}

static enum store_result append(struct filling *filling, struct rdb_stream_entry *entry)
{
    struct call *call = filling->call;
    struct resp_slice *slices = store_alloc(call->txn, 2 * entry->count * sizeof *slices);
    struct rdb_element field, value;
    enum store_result result = slices == NULL ? STORE_NO_MEMORY : STORE_OK;
    for (uint64_t i = 0; i < entry->count && result == STORE_OK; i++) {
        rdb_stream_next_field(entry, &field, &value);
        if (!to_slice(call, &field, &slices[2 * i]) || !to_slice(call, &value, &slices[2 * i + 1]))
            return STORE_NO_MEMORY;
        result = call_yield_at(call, i);
    }
    if (result == STORE_OK)
        result = stream_append(&filling->stream, entry->id, slices, 2 * entry->count);
    return result == STORE_OK ? spend(filling, entry->bytes + ENTRY_BYTES) : result;
}

static bool go_on(void *arg, size_t count)
{
    struct filling *filling = arg;
    filling->yielded = call_yield_at(filling->call, count - 1);
    return filling->yielded == STORE_OK;
}

static enum store_result next_entry(struct filling *filling, struct rdb_stream_entry *entry,
                                    bool *found)
{
    struct rdb_caller caller = {.go_on = go_on, .arg = filling};
    size_t elements = 0;
    switch (rdb_stream_next(&filling->place->walk, &caller, &elements, entry, found)) {
    case RDB_OK:
        return STORE_OK;
    case RDB_STOPPED:
        return filling->yielded;
    default:
        assert(!"the entries have been checked");
        return STORE_DAMAGED;
    }
}

static enum store_result fill_entries(struct filling *filling)
{
    struct stream_restore_place *place = filling->place;
    struct rdb_stream_entry entry;
    enum store_result result = STORE_OK;
    if (!place->has_begun)
        place->walk = rdb_stream_begin(filling->source);
    place->has_begun = true;
    while (result == STORE_OK && filling->left > 0 && !place->has_entries) {
        bool found;
        result = next_entry(filling, &entry, &found);
        place->has_entries = result == STORE_OK && !found;
        if (result == STORE_OK && found)
            result = entry.is_deleted ? spend(filling, 0) : append(filling, &entry);
    }
    return result;
}

/* ---- groups ---- */

/* The current group: it is made, or found. */
static enum store_result open_group(struct filling *filling, const struct rdb_stream_group *source)
{
    struct stream_restore_place *place = filling->place;
    struct stream_group *group = &filling->group;
    if (place->has_group) {
        bool found;
        enum store_result result = stream_group_find(&filling->stream, source->name, group, &found);
        return result == STORE_OK && !found ? STORE_DAMAGED : result;
    }
    place->has_group = true;
    group->last = source->last;
    group->read = source->read;
    enum store_result result = stream_group_create(&filling->stream, source->name, group);
    return result == STORE_OK ? spend_on_name(filling, source->name) : result;
}

static enum store_result open_consumer(struct filling *filling,
                                       const struct rdb_stream_consumer *source)
{
    struct stream_restore_place *place = filling->place;
    struct stream_consumer *consumer = &filling->consumer;
    if (place->has_consumer) {
        bool found;
        enum store_result result =
            stream_consumer_find(&filling->group, source->name, consumer, &found);
        return result == STORE_OK && !found ? STORE_DAMAGED : result;
    }
    place->has_consumer = true;
    consumer->seen_ms = source->seen_ms;
    consumer->active_ms = source->active_ms;
    enum store_result result = stream_consumer_create(&filling->group, source->name, consumer);
    return result == STORE_OK ? spend_on_name(filling, source->name) : result;
}

static enum store_result fill_pending(struct filling *filling, const struct rdb_stream_group *group,
                                      const struct rdb_stream_consumer *consumer)
{
    struct stream_restore_place *place = filling->place;
    enum store_result result = STORE_OK;
    while (result == STORE_OK && filling->left > 0 && place->pending < consumer->id_count) {
        const char *id = consumer->ids + place->pending++ * STREAM_ID_BYTES;
        const struct rdb_stream_pending *source =
            rdb_stream_find_pending(group, stream_id_read(id));
        assert(source != NULL);
        struct stream_pending pending = {.id = source->id,
                                         .consumer = filling->consumer.number,
                                         .delivered_ms = source->delivered_ms,
                                         .count = source->count};
        result = stream_pending_put(&filling->group, &pending);
        if (result == STORE_OK)
            result = spend(filling, SPREAD_BYTES);
    }
    return result;
}

static enum store_result fill_consumers(struct filling *filling,
                                        const struct rdb_stream_group *group)
{
    struct stream_restore_place *place = filling->place;
    enum store_result result = STORE_OK;
    while (result == STORE_OK && filling->left > 0 && place->consumer < group->consumer_count) {
        const struct rdb_stream_consumer *consumer = &group->consumers[place->consumer];
        result = open_consumer(filling, consumer);
        if (result == STORE_OK)
            result = fill_pending(filling, group, consumer);
        if (result == STORE_OK && place->pending == consumer->id_count) {
            place->consumer++;
            place->pending = 0;
            place->has_consumer = false;
        }
    }
    return result;
}

static enum store_result fill_groups(struct filling *filling)
{
    struct stream_restore_place *place = filling->place;
    const struct rdb_stream *source = filling->source;
    enum store_result result = STORE_OK;
    while (result == STORE_OK && filling->left > 0 && place->group < source->group_count) {
        const struct rdb_stream_group *group = &source->groups[place->group];
        result = open_group(filling, group);
        if (result == STORE_OK)
            result = fill_consumers(filling, group);
        if (result == STORE_OK && place->consumer == group->consumer_count) {
            place->group++;
            place->consumer = 0;
            place->has_group = false;
        }
    }
    return result;
}

/* ---- all of it ---- */

static enum store_result fill_head(struct filling *filling)
{
    const struct rdb_stream *source = filling->source;
    struct stream *stream = &filling->stream;
    enum store_result result = stream_load_head(stream);
    stream->head = (struct stream_head){source->last, source->max_deleted, source->added};
    return result == STORE_OK ? stream_save(stream) : result;
}

/* Adds what is at the place on, and moves it. */
static enum store_result fill(struct filling *filling)
{
    struct stream_restore_place *place = filling->place;
    enum store_result result = stream_load_head(&filling->stream);
    if (result == STORE_OK)
        result = fill_entries(filling);
    if (result == STORE_OK)
        result = fill_groups(filling);
    if (result != STORE_OK || filling->left == 0)
        return result;
    place->is_over = true;
    return fill_head(filling);
}

bool stream_restore_is_large(const struct rdb_stream *source)
{
    uint64_t bytes = source->bytes + source->length * ENTRY_BYTES;
    for (uint64_t i = 0; i < source->group_count && bytes < STEP_BYTES; i++) {
        const struct rdb_stream_group *group = &source->groups[i];
        bytes += (1 + group->consumer_count + group->pending_count) * SPREAD_BYTES;
    }
    return bytes >= STEP_BYTES;
}

enum store_result stream_restore_at_once(struct call *call, const struct store_key *key,
                                         const struct rdb_stream *source)
{
    struct stream_restore_place place = {.has_begun = false};
    struct filling filling = {.call = call, .source = source, .place = &place, .left = UINT64_MAX};
    filling.stream = (struct stream){.call = call, .key = key};
    enum store_result result = stream_create(&filling.stream);
    return result == STORE_OK ? fill(&filling) : result;
}

/* ---- steps ---- */

/* If the previous run's step has been committed, continues after it. */
static void note_steps(struct stream_restore *restore)
{
    if (store_bulk_load_steps(restore->bulk_load) == restore->steps)
        return;
    restore->steps = store_bulk_load_steps(restore->bulk_load);
    restore->at = restore->filled_to;
}

enum store_result stream_restore_go_on(struct call *call, struct stream_restore *restore,
                                       const struct store_key *key, const struct rdb_stream *source)
{
    enum store_result result = STORE_OK;
    struct filling filling = {
        .call = call, .source = source, .place = &restore->filled_to, .left = STEP_BYTES};
    struct stream *stream = &filling.stream;
    if (restore->bulk_load == NULL)
        result = store_bulk_load_begin(call->txn, key, STREAM_TREES, &restore->bulk_load);
    if (result != STORE_OK)
        return result;
    note_steps(restore);
    call->progress_lasts = restore->at.is_over;
    if (call->progress_lasts)
        return STORE_OK;
    restore->filled_to = restore->at;
    *stream = (struct stream){.call = call, .key = key, .exists = true};
    result = store_bulk_load_tree(call->txn, restore->bulk_load, STREAM_ENTRIES, &stream->entries);
    if (result == STORE_OK)
        result = store_bulk_load_tree(call->txn, restore->bulk_load, STREAM_STATE, &stream->state);
    if (result == STORE_OK)
        result = fill(&filling);
    return result == STORE_OK ? store_bulk_load_step(call->txn, restore->bulk_load) : result;
}

enum store_result stream_restore_put(struct call *call, const struct stream_restore *restore,
                                     const struct store_key *key)
{
    return store_put_bulk_load(call->txn, key, TYPE_STREAM, restore->bulk_load, STORE_NO_EXPIRY);
}

void stream_restore_free(struct stream_restore *restore)
{
    if (restore->bulk_load != NULL)
        store_bulk_load_end(restore->bulk_load);
    restore->bulk_load = NULL;
}
