/*
 * What the drivers put in the place of a connection's: no reply leaves before its command has
 * ended, and what is long is not put aside.
 */
#include "server/exec/reply_spill.h"
#include "server/exec/long_run.h"
#include "server/exec/reply_stream.h"
#include "server/exec/request_reply.h"
#include "tests/model/model_private.h"

enum store_result reply_spill_step(struct call *call, struct reply_spill *spill,
                                   struct resp_writer *said)
{
    (void)spill, (void)said;
    return store_step(call->txn);
}

enum store_result reply_spill_reply(struct call *call, struct reply_spill *spill,
                                    struct resp_writer *said)
{
    (void)spill;
    resp_raw(call->reply, said->data, said->len);
    return said->failed ? STORE_NO_MEMORY : STORE_OK;
}

void reply_spill_free(struct reply_spill *spill)
{
    (void)spill;
}

enum store_result call_step(struct call *call, struct resp_writer *said)
{
    (void)said;
    return store_step(call->txn);
}

/* As a run that has looked for the first time. */
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

enum store_result call_pass_on(struct call *call, struct resp_writer *said,
                               const struct store_item *item, uint64_t offset)
{
    (void)call, (void)said, (void)item, (void)offset;
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
