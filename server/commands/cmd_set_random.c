/*
 * SPOP and SRANDMEMBER. The picks depend only on the call's seed, so that reruns agree.
 */
#include "server/commands/commands.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#include "server/types/members_reply.h"
#include "server/types/set.h"
#include "server/pubsub/notify.h"
#include "server/core/call.h"

enum store_result cmd_srandmember(struct call *call)
{
    struct members set;
    int64_t count = 0;
    if (call->argc > 3) {
        call_syntax_error(call);
        return STORE_OK;
    }
    if (call->argc == 3 && !call_int64_between(call, call->argv[2], -LONG_MAX, LONG_MAX, &count))
        return STORE_OK;
    enum store_result result = set_find(call, call->keys, &set);
    if (result != STORE_OK)
        return result;
    if (call->argc == 2)
        return members_reply_one(call, &set);
    return members_reply_some(call, &set, count, PART_NAMES, false, resp_array);
}

/* ---- SPOP ---- */

/* Repeats the random picks made for the reply. */
static enum store_result pop_one(struct call *call, struct members *set)
{
    struct rng rng = rng_new(call->random_seed);
    enum store_result result = members_reply_one(call, set);
    if (result != STORE_OK || !set->exists)
        return result;
    result = members_remove_at(call, set, rng_below(&rng, members_count(set)));
    return result == STORE_OK ? members_write(call, set, NOTIFY_SET, "spop") : result;
}

static int by_rank(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* The ranks of the picked members, ascending, for this run. */
static const uint64_t *picked_ranks(struct call *call, const struct collector *collector)
{
    if (collector->order.places == NULL)
        return collector->ranks;
    uint64_t *ranks = store_alloc(call->txn, collector->count * sizeof *ranks);
    if (ranks == NULL)
        return NULL;
    for (uint64_t i = 0; i < collector->count; i++) {
        assert(collector->ranks[i] < collector->order.count);
        ranks[i] = collector->order.places[collector->ranks[i]].rank;
    }
    qsort(ranks, collector->count, sizeof *ranks, by_rank);
    return ranks;
}

/* From the last on, because a removal keeps the ranks before it. */
static enum store_result remove_picked(struct call *call, struct members *set,
                                       const struct collector *collector)
{
    const uint64_t *ranks = picked_ranks(call, collector);
    enum store_result result = ranks != NULL ? STORE_OK : STORE_NO_MEMORY;
    for (uint64_t i = collector->count; i-- > 0 && result == STORE_OK;) {
        result = members_remove_at(call, set, ranks[i]);
        if (result == STORE_OK)
            result = members_yield(call, set, i);
    }
    return result == STORE_OK ? members_write(call, set, NOTIFY_SET, "spop") : result;
}

static enum store_result delete_all(struct call *call, const struct members *set)
{
    call_notify(call, NOTIFY_SET, "spop", set->key);
    call_notify(call, NOTIFY_GENERIC, "del", set->key);
    call->hits++; /* as in Redis, which shows the whole set by a read */
    return store_delete(call->txn, set->key);
}

static enum store_result pop_some(struct call *call, struct members *set, int64_t count)
{
    enum store_result result = members_reply_some(call, set, count, PART_NAMES, false, resp_set);
    const struct collector *collector = call->progress;
    if (result != STORE_OK || collector->count == 0)
        return result;
    return collector->ranks != NULL ? remove_picked(call, set, collector) : delete_all(call, set);
}

enum store_result cmd_spop(struct call *call)
{
    struct members set;
    int64_t count = 0;
    if (call->argc > 3) {
        call_syntax_error(call);
        return STORE_OK;
    }
    if (call->argc == 3 &&
        (!resp_read_int64(call->argv[2].data, call->argv[2].len, &count) || count < 0)) {
        resp_error(call->reply, "ERR value is out of range, must be positive");
        return STORE_OK;
    }
    enum store_result result = set_find(call, call->keys, &set);
    if (result != STORE_OK)
        return result;
    return call->argc == 2 ? pop_one(call, &set) : pop_some(call, &set, count);
}
