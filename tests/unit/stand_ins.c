/*
 * Replaces what needs a connection or the whole server: no reply is sent before its command has
 * ended, long replies are not spilled, and no client watches keys.
 */
#include "server/exec/reply_spill.h"
#include "server/exec/long_run.h"
#include "server/exec/reply_stream.h"
#include "server/exec/request_reply.h"
#include "server/exec/watch.h"
#include "tests/model/model_private.h"

enum store_result reply_spill_step(struct call *call, struct reply_spill *spill,
                                   struct resp_writer *out)
{
    (void)spill, (void)out;
    return store_step(call->txn);
}

enum store_result reply_spill_reply(struct call *call, struct reply_spill *spill,
                                    struct resp_writer *out)
{
    (void)spill;
    resp_raw(call->reply, out->data, out->len);
    return out->failed ? STORE_NO_MEMORY : STORE_OK;
}

bool watch_registry_has(struct watch_registry *registry, const struct store_key *key)
{
    (void)registry, (void)key;
    return false;
}

void reply_spill_free(struct reply_spill *spill)
{
    (void)spill;
}

enum store_result call_step(struct call *call, struct resp_writer *out)
{
    (void)out;
    return store_step(call->txn);
}

/* As a run that has looked for the first time. */
bool call_may_reply(struct call *call)
{
    (void)call;
    return true;
}

enum store_result call_yield(struct call *call)
{
    (void)call;
    return STORE_OK;
}

bool call_is_in_vain(struct call *call)
{
    (void)call;
    return false;
}

enum store_result call_pass_on(struct call *call, struct resp_writer *out,
                               const struct store_item *item, uint64_t offset)
{
    (void)call, (void)out, (void)item, (void)offset;
    return STORE_ABSENT;
}

static void on_ready(void *request)
{
    store_resume(request);
}

enum store_result call_upload_begin(struct call *call, uint64_t length,
                                    struct store_upload **upload)
{
    return store_upload_begin(call->txn->worker, length, on_ready, call->txn->request, upload);
}
