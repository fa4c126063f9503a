#include "server/exec/steps.h"
#include "server/exec/request_reply.h"

enum store_result steps_begin(struct steps *steps, struct call *call, bool many)
{
    *steps = (struct steps){.call = call, .fresh = call->progress == NULL};
    steps->done = &steps->done_here;
    steps->out = call->reply;
    if (!many)
        return STORE_OK;
    steps->gather = gather_get(call);
    if (steps->gather == NULL)
        return STORE_NO_MEMORY;
    steps->gather->is_reply = true;
    steps->done = &steps->gather->at;
    steps->out = &steps->gather->out;
    return STORE_OK;
}

enum store_result steps_count(struct steps *steps)
{
    (*steps->done)++;
    if (steps->gather == NULL || !gather_step_is_full(steps->gather))
        return STORE_OK;
    return steps->out->failed ? STORE_NO_MEMORY : gather_step(steps->call, steps->gather);
}

enum store_result steps_put_item(struct steps *steps, const struct store_item *item)
{
    if (steps->gather == NULL)
        return call_reply_item(steps->call, item);
    size_t before = steps->out->len;
    enum store_result result = gather_item(steps->call, steps->gather, item, 0);
    if (result != STORE_OK)
        resp_truncate(steps->out, before); /* the element comes again */
    return result;
}

enum store_result steps_finish(struct steps *steps)
{
    return steps->gather == NULL ? STORE_OK : gather_reply(steps->call, steps->gather);
}
