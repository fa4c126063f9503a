#include "server/exec/collector.h"

#include <assert.h>
#include <stdlib.h>

#include "server/net/client_memory.h"
#include "server/core/server.h"
#include "server/exec/long_run.h"
#include "server/exec/reply_stream.h"
#include "storage/collections.h"

#define BUILD_BYTES (256 * 1024) /* smaller collections are stored in one run */
#define SPREAD_BYTES (32 * 1024) /* per step, if each entry may change a page of its own */

/* All memory that it holds, as far as it is known beforehand. */
static uint64_t held_bytes(const struct collector *collector)
{
    return collector->out.capacity + collector->reordered.capacity + collector->rank_bytes +
           collector->source_bytes + collector->order.capacity * sizeof *collector->order.places +
           (collector->range != NULL ? store_range_bytes(collector->range) : 0);
}

static size_t step_bytes(const struct collector *collector)
{
    if (collector->is_nested)
        return COLLECT_NESTED_BYTES;
    return client_memory_is_much(collector->collected.server) ? COLLECT_SHORT_BYTES
                                                              : COLLECT_STEP_BYTES;
}

void collector_begin_step(struct collector *collector)
{
    collector->entries_left = collector->is_nested ? COLLECT_NESTED_ENTRIES : COLLECT_STEP_ENTRIES;
    collector->step_end = collector->out.len + step_bytes(collector);
}

enum store_result collector_pick(struct call *call, struct collector *collector, uint64_t size,
                                 int64_t count, rank_visit *visit, void *arg)
{
    uint64_t picks = count < 0 ? -(uint64_t)count : (uint64_t)count;
    if (count > 0 && collector->ranks == NULL) {
        assert(picks < size);
        collector->rank_bytes = picks * sizeof *collector->ranks;
        if (!collected_set(&collector->collected, held_bytes(collector)))
            return STORE_NO_MEMORY;
        collector->ranks = rng_choose(&collector->rng, size, picks);
        if (collector->ranks == NULL)
            return STORE_NO_MEMORY;
    }
    while (collector->at < picks) {
        struct rng rng = collector->rng;
        uint64_t rank = count > 0 ? collector->ranks[collector->at] : rng_below(&rng, size);
        enum store_result result = visit(arg, rank);
        if (result != STORE_OK)
            return result;
        collector->rng = rng;
        if (++collector->at < picks && collector_step_is_full(collector))
            return collector_step(call, collector);
    }
    return STORE_OK;
}

void collector_next_source(struct collector *collector)
{
    collector->source++;
    collector->at = 0;
    free(collector->order.places);
    collector->order = (struct collector_order){.places = NULL};
}

bool collector_new_index(struct collector *collector, uint64_t members)
{
    uint64_t bytes = source_index_bytes(members);
    assert(collector->sources == NULL);
    if (bytes == 0)
        return false;
    collector->source_bytes = bytes;
    if (collected_set(&collector->collected, held_bytes(collector)))
        collector->sources = source_index_new(members);
    if (collector->sources != NULL)
        return true;
    collector->source_bytes = 0;
    (void)collected_set(&collector->collected, held_bytes(collector));
    return false;
}

static void collector_free(void *progress)
{
    struct collector *collector = progress;
    collected_set(&collector->collected, 0);
    resp_writer_free(&collector->out);
    resp_writer_free(&collector->reordered);
    reply_spill_free(&collector->spill);
    free(collector->ranks);
    free(collector->spare);
    free(collector->order.places);
    source_index_free(collector->sources);
    if (collector->range != NULL)
        store_range_free(collector->range);
    if (collector->build.bulk_load != NULL)
        store_bulk_load_end(collector->build.bulk_load);
    free(collector);
}

/* The entries of the last run's fill are committed by now. */
static void note_steps(struct collector *collector)
{
    struct build *build = &collector->build;
    if (build->bulk_load == NULL || store_bulk_load_steps(build->bulk_load) == build->steps)
        return;
    build->steps = store_bulk_load_steps(build->bulk_load);
    build->type = build->filled_type;
    resp_truncate(&collector->out, 0);
    collector_begin_step(collector);
}

struct collector *collector_get(struct call *call)
{
    struct collector *collector = call->progress;
    if (collector == NULL) {
        collector = calloc(1, sizeof *collector);
        if (collector == NULL)
            return NULL;
        collector->collected.server = call->server;
        resp_writer_init(&collector->out, call->reply->version);
        resp_writer_init(&collector->reordered, call->reply->version);
        collector->rng = rng_new(call->random_seed);
        collector->is_nested = call->outer != NULL;
        collector_begin_step(collector);
        call->progress = collector;
        call->progress_free = collector_free;
    }
    assert(call->progress_free == collector_free);
    if ((collector->is_reply || collector->is_tail) && call_is_in_vain(call))
        return NULL;
    note_steps(collector);
    return collected_set(&collector->collected, held_bytes(collector)) ? collector : NULL;
}

enum store_result collector_step(struct call *call, struct collector *collector)
{
    enum store_result result;
    if (!collector->is_nested)
        store_drop_loaded(call->txn);
    /* What has grown takes the place of frames, which the run's locks keep from all others. */
    (void)collected_set(&collector->collected, held_bytes(collector));
    store_make_room(call->txn);
    if (collector->is_reply)
        result = call_step(call, &collector->out);
    else if (collector->is_tail)
        result = reply_spill_step(call, &collector->spill, &collector->out);
    else
        result = store_step(call->txn);
    collector_begin_step(collector);
    /* Whether this is too much is checked by the next run, which is early enough. */
    (void)collected_set(&collector->collected, held_bytes(collector));
    return result;
}

enum store_result collector_yield(struct call *call, struct collector *collector)
{
    bool may_go_on = collected_set(&collector->collected, held_bytes(collector));
    return may_go_on ? call_yield(call) : STORE_NO_MEMORY;
}

bool collector_has_room(struct collector *collector, uint64_t bytes)
{
    struct resp_writer *out = &collector->out;
    assert(out->len <= out->capacity);
    return bytes <= COLLECTED_FEW || out->capacity - out->len >= bytes ||
           collected_set(&collector->collected, held_bytes(collector) + bytes);
}

static enum store_result read_item(struct call *call, struct collector *collector,
                                   const struct store_item *item, uint64_t offset)
{
    struct resp_writer *out = &collector->out;
    size_t len = item->length - offset;
    if (!collector_has_room(collector, len))
        return STORE_NO_MEMORY;
    resp_bulk_header(out, len);
    char *to = resp_reserve(out, len + 2);
    if (to == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = store_read(call->txn, item, offset, len, to);
    if (result != STORE_OK)
        return result;
    out->len += len;
    resp_raw(out, "\r\n", 2);
    return STORE_OK;
}

enum store_result collector_item(struct call *call, struct collector *collector,
                                 const struct store_item *item, uint64_t offset)
{
    struct resp_writer *out = &collector->out;
    assert(offset <= item->length);
    if (!item->large) {
        resp_bulk(out, item->bytes + offset, item->length - offset);
        return STORE_OK;
    }
    if (!collector->is_reply || item->length - offset < COLLECT_STEP_BYTES)
        return read_item(call, collector, item, offset);
    enum store_result result = call_pass_on(call, out, item, offset);
    if (result == STORE_ABSENT)
        return read_item(call, collector, item, offset);
    collector->step_end = 0; /* a long value is a step of its own */
    return result;
}

enum store_result collector_reply(struct call *call, struct collector *collector)
{
    /* The results of nested commands are kept until the last of them has run. */
    uint64_t copied = held_bytes(collector) + collector->out.len;
    if (collector->is_nested) {
        if (!collected_set(&collector->collected, copied))
            return STORE_NO_MEMORY;
        if ((call->command->flags & CMD_READONLY) != 0) /* it needs no item any more */
            store_make_room(call->txn);
    }
    return reply_spill_reply(call, &collector->spill, &collector->out);
}

enum store_result collector_build(struct call *call, struct collector *collector,
                                  const struct store_key *to, uint32_t trees, bool at_end,
                                  collector_planter *fill)
{
    struct build *build = &collector->build;
    bool is_begun = build->bulk_load != NULL;
    /* of two trees, one has an order other than that of the collected entries */
    size_t enough = is_begun && trees > 1 ? SPREAD_BYTES : BUILD_BYTES;
    bool is_due =
        at_end && is_begun ? collector->out.len > 0 : !at_end && collector->out.len >= enough;
    if (collector->out.failed)
        return STORE_NO_MEMORY;
    build->to = to;
    call->progress_lasts = at_end && build->bulk_load != NULL;
    if (!is_due)
        return STORE_OK;
    call->progress_lasts = false;
    enum store_result result = STORE_OK;
    build->trees = trees;
    if (build->bulk_load == NULL)
        result = store_bulk_load_begin(call->txn, to, trees, &build->bulk_load);
    if (result == STORE_OK)
        result = fill(call, collector);
    return result == STORE_OK ? store_bulk_load_step(call->txn, build->bulk_load) : result;
}

enum store_result collector_put_built(struct call *call, const struct collector *collector,
                                      struct store_item *item)
{
    const struct build *build = &collector->build;
    assert(build->bulk_load != NULL);
    enum store_result result =
        store_put_bulk_load(call->txn, build->to, build->type, build->bulk_load, STORE_NO_EXPIRY);
    return result == STORE_OK ? store_get(call->txn, build->to, item) : result;
}
