#include "gather.h"

#include <assert.h>
#include <stdlib.h>

static void gather_free(void *progress)
{
    struct gather *gather = progress;
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
        resp_writer_init(&gather->out, call->reply->version);
        gather->dice = dice_new(call->random_seed);
        call->progress = gather;
        call->progress_free = gather_free;
    }
    assert(call->progress_free == gather_free);
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
