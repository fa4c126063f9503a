#include "gather.h"

#include <assert.h>
#include <stdlib.h>

#include "server.h"

static void count(struct gather *gather, size_t bytes)
{
    atomic_fetch_add_explicit(&gather->server->gathered_bytes, bytes - gather->counted,
                              memory_order_relaxed);
    gather->counted = bytes;
}

static bool is_too_much(const struct server *server)
{
    uint64_t half = (uint64_t)config_number(&server->config, CONFIG_MAXMEMORY) / 2;
    uint64_t most = half == 0                 ? GATHER_BYTES_FREE
                    : half < GATHER_BYTES_MIN ? GATHER_BYTES_MIN
                                              : half;
    return atomic_load_explicit(&server->gathered_bytes, memory_order_relaxed) > most;
}

static void gather_free(void *progress)
{
    struct gather *gather = progress;
    count(gather, 0);
    resp_writer_free(&gather->out);
    free(gather->ranks);
    free(gather);
}

struct gather *gather_get(struct call *call)
{
    struct gather *gather = call->progress;
    if (gather == NULL) {
        gather = calloc(1, sizeof *gather);
        if (gather == NULL)
            return NULL;
        gather->server = call->server;
        resp_writer_init(&gather->out, call->reply->version);
        gather->dice = dice_new(call->random_seed);
        call->progress = gather;
        call->progress_free = gather_free;
    }
    assert(call->progress_free == gather_free);
    count(gather, gather->out.capacity);
    if (gather->out.capacity > GATHER_STEP_BYTES && is_too_much(call->server))
        return NULL;
    bool is_nested = call->outer != NULL;
    gather->entries_left = is_nested ? GATHER_NESTED_ENTRIES : GATHER_STEP_ENTRIES;
    gather->step_end = gather->out.len + (is_nested ? GATHER_NESTED_BYTES : GATHER_STEP_BYTES);
    return gather;
}

enum store_result gather_reply(struct call *call, const struct gather *gather)
{
    if (gather->out.failed)
        return STORE_NO_MEMORY;
    resp_raw(call->reply, gather->out.data, gather->out.len);
    return STORE_OK;
}
