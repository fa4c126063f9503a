#include "server/exec/collector.h"

#include <assert.h>
#include <stdlib.h>

#include "server/net/client_memory.h"
#include "server/core/server.h"
#include "server/exec/reply_stream.h"

#define FEW_BYTES (64 * 1024)    /* are always to be had */
#define NOTE_STEP (256 * 1024)   /* of what the store need not know at once */
#define BUILD_BYTES (256 * 1024) /* with less a collection is made at once */
#define SPREAD_BYTES (32 * 1024) /* a step, where each entry may change a page of its own */

/* It is about to become so much. */
static void tell_store(struct gathered *gathered, uint64_t bytes)
{
    int64_t change = (int64_t)(bytes - gathered->noted);
    if (change < NOTE_STEP && change > -NOTE_STEP && bytes > 0)
        return;
    gathered->noted = bytes;
    if (change != 0)
        store_note_memory(gathered->server->store, change);
}

bool gathered_set(struct gathered *gathered, uint64_t bytes)
{
    struct server *server = gathered->server;
    uint64_t more = bytes - gathered->bytes;
    uint64_t all = atomic_fetch_add_explicit(&server->gathered_bytes, more, memory_order_relaxed);
    uint64_t memory = atomic_load_explicit(&server->memory_bound, memory_order_relaxed);
    gathered->bytes = bytes;
    bool may_be = bytes <= FEW_BYTES || all + more <= memory / GATHERED_SHARE;
    if (may_be)
        tell_store(gathered, bytes);
    return may_be;
}

static size_t step_bytes(const struct gather *gather)
{
    if (gather->is_nested)
        return GATHER_NESTED_BYTES;
    return client_memory_is_much(gather->gathered.server) ? GATHER_SHORT_BYTES : GATHER_STEP_BYTES;
}

void gather_begin_step(struct gather *gather)
{
    gather->entries_left = gather->is_nested ? GATHER_NESTED_ENTRIES : GATHER_STEP_ENTRIES;
    gather->step_end = gather->out.len + step_bytes(gather);
}

void gather_next_source(struct gather *gather)
{
    gather->source++;
    gather->at = 0;
    free(gather->order.places);
    gather->order = (struct gather_order){.places = NULL};
}

static void gather_free(void *progress)
{
    struct gather *gather = progress;
    gathered_set(&gather->gathered, 0);
    resp_writer_free(&gather->out);
    resp_writer_free(&gather->said);
    aside_free(&gather->aside);
    free(gather->ranks);
    free(gather->order.places);
    if (gather->build.building != NULL)
        store_building_end(gather->build.building);
    free(gather);
}

/* What the last run has planted is committed by now. */
static void note_steps(struct gather *gather)
{
    struct build *build = &gather->build;
    if (build->building == NULL || store_building_steps(build->building) == build->steps)
        return;
    build->steps = store_building_steps(build->building);
    build->type = build->planted_type;
    resp_truncate(&gather->out, 0);
    gather_begin_step(gather);
}

struct gather *gather_get(struct call *call)
{
    struct gather *gather = call->progress;
    if (gather == NULL) {
        gather = calloc(1, sizeof *gather);
        if (gather == NULL)
            return NULL;
        gather->gathered.server = call->server;
        resp_writer_init(&gather->out, call->reply->version);
        resp_writer_init(&gather->said, call->reply->version);
        gather->dice = dice_new(call->random_seed);
        gather->is_nested = call->outer != NULL;
        gather_begin_step(gather);
        call->progress = gather;
        call->progress_free = gather_free;
    }
    assert(call->progress_free == gather_free);
    if ((gather->is_reply || gather->is_tail) && call_is_in_vain(call))
        return NULL;
    note_steps(gather);
    uint64_t bytes = gather->out.capacity + gather->said.capacity + gather->rank_bytes +
                     gather->order.capacity * sizeof *gather->order.places;
    return gathered_set(&gather->gathered, bytes) ? gather : NULL;
}

enum store_result gather_step(struct call *call, struct gather *gather)
{
    enum store_result result;
    if (!gather->is_nested)
        store_drop_loaded(call->txn);
    if (gather->is_reply)
        result = call_step(call, &gather->out);
    else if (gather->is_tail)
        result = aside_step(call, &gather->aside, &gather->out);
    else
        result = store_step(call->txn);
    gather_begin_step(gather);
    /* Whether it is too much is asked by the next run; that may be late. */
    (void)gathered_set(&gather->gathered, gather->out.capacity);
    return result;
}

bool gather_has_room(struct gather *gather, uint64_t bytes)
{
    struct resp_writer *out = &gather->out;
    return bytes <= FEW_BYTES || out->capacity - out->len >= bytes ||
           gathered_set(&gather->gathered, out->capacity + bytes);
}

static enum store_result read_item(struct call *call, struct gather *gather,
                                   const struct store_item *item, uint64_t offset)
{
    struct resp_writer *out = &gather->out;
    size_t len = item->length - offset;
    if (!gather_has_room(gather, len))
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

enum store_result gather_item(struct call *call, struct gather *gather,
                              const struct store_item *item, uint64_t offset)
{
    struct resp_writer *out = &gather->out;
    if (!item->large) {
        resp_bulk(out, item->bytes + offset, item->length - offset);
        return STORE_OK;
    }
    if (!gather->is_reply || item->length - offset < GATHER_STEP_BYTES)
        return read_item(call, gather, item, offset);
    enum store_result result = call_pass_on(call, out, item, offset);
    if (result == STORE_ABSENT)
        return read_item(call, gather, item, offset);
    gather->step_end = 0; /* a long one is a step of its own */
    return result;
}

enum store_result gather_reply(struct call *call, struct gather *gather)
{
    /* What commands inside others have gathered stays until the last of them has run. */
    if (gather->is_nested && !gathered_set(&gather->gathered, gather->out.capacity))
        return STORE_NO_MEMORY;
    return aside_reply(call, &gather->aside, &gather->out);
}

enum store_result gather_build(struct call *call, struct gather *gather, const struct store_key *to,
                               uint32_t trees, bool at_end, gather_planter *plant)
{
    struct build *build = &gather->build;
    bool is_begun = build->building != NULL;
    /* of two trees one is in another order than the work */
    size_t enough = is_begun && trees > 1 ? SPREAD_BYTES : BUILD_BYTES;
    bool is_due = at_end && is_begun ? gather->out.len > 0 : !at_end && gather->out.len >= enough;
    if (gather->out.failed)
        return STORE_NO_MEMORY;
    call->progress_lasts = at_end && build->building != NULL;
    if (!is_due)
        return STORE_OK;
    call->progress_lasts = false;
    enum store_result result = STORE_OK;
    build->trees = trees;
    if (build->building == NULL)
        result = store_building_begin(call->txn, to, trees, &build->building);
    if (result == STORE_OK)
        result = plant(call, gather);
    return result == STORE_OK ? store_building_step(call->txn, build->building) : result;
}

enum store_result gather_put_built(struct call *call, const struct gather *gather,
                                   struct store_item *item)
{
    const struct build *build = &gather->build;
    enum store_result result =
        store_put_building(call->txn, call->keys, build->type, build->building, STORE_NO_EXPIRY);
    return result == STORE_OK ? store_get(call->txn, call->keys, item) : result;
}
