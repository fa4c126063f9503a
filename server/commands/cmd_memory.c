/*
 * MEMORY: the size of a key. Values are on the device, so the bytes there are reported.
 */
#include "server/commands/commands.h"

#include "server/exec/collector.h"
#include "server/core/call.h"

#define ITEM_OVERHEAD 48 /* estimate: header, slack of the slot, index entry */
#define ENTRY_OVERHEAD 6 /* estimate per tree entry: overhead and its share of the inner nodes */
#define DEFAULT_SAMPLES 5

/* Adds the size of the entry with this rank to collector->count. */
static enum store_result sample(struct store_tree *tree, uint64_t rank, struct collector *collector)
{
    struct store_cursor cursor;
    struct store_entry entry;
    enum store_result result = store_tree_seek_rank(tree, rank, &cursor);
    if (result == STORE_OK)
        result = store_tree_get(&cursor, &entry);
    if (result == STORE_OK)
        collector->count += entry.key_len + entry.value.length + ENTRY_OVERHEAD;
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

/* Estimates the size from `samples` evenly spaced entries; 0: from all. collector->count is the sum
 * for this tree. */
static enum store_result measure_tree(struct call *call, struct store_tree *tree,
                                      struct collector *collector, uint64_t samples, uint64_t *size)
{
    uint64_t count = store_tree_count(tree);
    if (samples == 0 || samples > count)
        samples = count;
    while (collector->at < samples) {
        uint64_t rank = (uint64_t)((__uint128_t)collector->at * count / samples);
        enum store_result result = sample(tree, rank, collector);
        if (result != STORE_OK)
            return result;
        collector->at++;
        if (collector_step_is_full(collector))
            return collector_step(call, collector);
    }
    *size = samples == 0 ? 0 : (uint64_t)((__uint128_t)collector->count * count / samples);
    return STORE_OK;
}

/* All trees of a collection have as many entries, or the same members, so one is measured. */
static enum store_result measure(struct call *call, const struct store_item *item, uint64_t samples,
                                 uint64_t *size)
{
    struct store_tree *tree;
    *size = item->length;
    if (item->trees == 0)
        return STORE_OK;
    struct collector *collector = collector_get(call);
    if (collector == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = store_tree_open(call->txn, call->keys, item, 0, &tree);
    if (result == STORE_OK)
        result = measure_tree(call, tree, collector, samples, size);
    *size *= item->trees;
    return result;
}

static bool usage_options(struct call *call, uint64_t *samples)
{
    int64_t number;
    *samples = DEFAULT_SAMPLES;
    for (size_t i = 3; i < call->argc; i += 2) {
        if (!slice_is(call->argv[i], "samples") || i + 1 == call->argc)
            return call_syntax_error(call);
        if (!call_int64(call, call->argv[i + 1], &number))
            return false;
        if (number < 0)
            return call_syntax_error(call);
        *samples = (uint64_t)number;
    }
    return true;
}

enum store_result cmd_memory_usage(struct call *call)
{
    struct store_item item;
    uint64_t samples, size;
    if (!usage_options(call, &samples))
        return STORE_OK;
    enum store_result result = store_get(call->txn, call->keys, &item);
    if (result == STORE_ABSENT) {
        resp_null(call->reply);
        return STORE_OK;
    }
    if (result == STORE_OK)
        result = measure(call, &item, samples, &size);
    if (result == STORE_OK)
        resp_integer(call->reply, (int64_t)(ITEM_OVERHEAD + call->keys->len + size));
    return result;
}

enum store_result cmd_memory_help(struct call *call)
{
    static const char *const lines[] = {
        "USAGE <key> [SAMPLES <count>]",
        "    The bytes that a key and its value take on the device, estimated from so many of a",
        "    large collection's elements (5; 0: all of them).",
        NULL,
    };
    call_help(call, lines);
    return STORE_OK;
}
