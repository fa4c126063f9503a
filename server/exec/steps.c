#include "server/exec/steps.h"
#include "server/exec/request_reply.h"

enum store_result steps_begin(struct steps *steps, struct call *call, bool many)
{
    *steps = (struct steps){.call = call, .fresh = call->progress == NULL};
    steps->done = &steps->done_here;
    steps->out = call->reply;
    if (!many)
        return STORE_OK;
    steps->collector = collector_get(call);
    if (steps->collector == NULL)
        return STORE_NO_MEMORY;
    steps->collector->is_reply = true;
    steps->done = &steps->collector->at;
    steps->out = &steps->collector->out;
    return STORE_OK;
}

enum store_result steps_count(struct steps *steps)
{
    (*steps->done)++;
    if (steps->collector == NULL || !collector_step_is_full(steps->collector))
        return STORE_OK;
    return steps->out->failed ? STORE_NO_MEMORY : collector_step(steps->call, steps->collector);
}

enum store_result steps_put_item(struct steps *steps, const struct store_item *item)
{
    if (steps->collector == NULL)
        return call_reply_item(steps->call, item);
    size_t before = steps->out->len;
    enum store_result result = collector_item(steps->call, steps->collector, item, 0);
    if (result != STORE_OK)
        resp_truncate(steps->out, before); /* the element is repeated */
    return result;
}

enum store_result steps_finish(struct steps *steps)
{
    return steps->collector == NULL ? STORE_OK : collector_reply(steps->call, steps->collector);
}
