#include "server/exec/long_run.h"

#include <assert.h>

#include "server/core/call.h"
#include "server/core/commandstats.h"
#include "server/exec/blocked.h"
#include "server/exec/nested.h"
#include "server/exec/reply_stream.h"
#include "server/exec/request_reply.h"
#include "server/exec/batch.h"
#include "server/exec/runner_reply.h"
#include "server/exec/tracking.h"
#include "server/net/conn_output.h"

/* TURN_NSEC: time slice of a run. FIRST_NSEC: of the first run, whose work is then discarded. */
#ifdef VELLUM_WAIT
#define TURN_NSEC 20000
#define FIRST_NSEC 0
#else
#define TURN_NSEC 1000000
#define FIRST_NSEC (2 * TURN_NSEC)
#endif
#define FIBERS_MAX 64 /* per worker; further long runs are repeated until one is free */

static bool is_in_script(const struct call *call)
{
    for (call = call->outer; call != NULL; call = call->outer)
        if (call->command->role != ROLE_EXEC)
            return true;
    return false;
}

static enum store_result begin_anew(struct request *request)
{
    request->is_long = true;
    return store_step(request->call.txn);
}

enum store_result call_yield(struct call *call)
{
    struct request *request = request_of_call(call);
    struct worker *worker = call->worker;
    if (!call_may_reply(call))
        return STORE_NO_MEMORY;
    uint64_t now = commandstats_clock();
    if (request->looked_ns == 0)
        request->looked_ns = now;
    if (now - request->looked_ns < (request->is_on_fiber ? TURN_NSEC : FIRST_NSEC))
        return STORE_OK;
    if (is_in_script(call)) {
        worker->hooks->look_from_script(worker);
    } else if (request->is_on_fiber) {
        assert(request->fiber != NULL);
        request->is_on_fiber = false;
        fiber_leave(request->fiber);
    } else if (!request->is_long) {
        return begin_anew(request);
    }
    request->looked_ns = commandstats_clock();
    return STORE_OK;
}

static void run_command(void *arg)
{
    struct request *request = arg;
    request->run_result = call_run(&request->call);
}

/* A request with a fiber is queued, so the fiber's stack counts as its connection's memory. */
static void count_stack(struct request *request, uint64_t bytes)
{
    uint64_t more = bytes - request->stack_bytes;
    if (more == 0)
        return;
    request->stack_bytes = bytes;
    request->bytes += more;
    request->conn->request_bytes += more;
    conn_mark_ready(request->conn);
}

void long_run_free(struct request *request)
{
    fiber_free(&request->call.worker->fibers, request->fiber);
    request->fiber = NULL;
    count_stack(request, 0);
}

/* ---- a run ---- */

/* The previous run was suspended, and the transaction has not started another attempt since. */
static bool goes_on(const struct request *request)
{
    return request->fiber != NULL && request->attempt == store_attempt(request->call.txn);
}

/* The client is gone since the request began. Its writes are done nevertheless, unless their memory
 * is needed; but a blocking command must not take an element that nobody will receive. */
static bool is_in_vain(const struct request *request)
{
    if (request->state != REQUEST_RUNNING)
        return false;
    return request->conn->is_evicted ||
           ((request->is_read || request->may_block) && !reply_stream_is_heard(request->conn));
}

/* Discards all that an earlier run may have done. */
static enum store_result begin(struct request *request)
{
    struct call *call = &request->call;
    long_run_drop(request);
    request_uncount_reply(request);
    call->hits = call->misses = 0;
    resp_truncate(call->reply, request->reply_start);
    request->reader_count = 0;
    if (effects_any(&request->effects))
        effects_drop(&request->effects);
    if (request->may_block)
        blocked_look(request);
    if (!call_counts_access(call))
        store_count_access(call->txn, false);
    if (is_in_vain(request))
        return STORE_CANCELLED;
    if (reply_stream_holds_back(request))
        return reply_stream_suspend(request);
    if (call->nested_calls != NULL)
        nested_calls_begin(call);
    request->caches = request->caches_first;
    if (!invalidation_is_empty(&request->reread))
        invalidation_clear(&request->reread);
    return tracking_note_read(call) ? STORE_OK : STORE_NO_MEMORY;
}

/* Its writes so far are discarded if nobody will receive the reply. */
static enum store_result resume(const struct request *request)
{
    return is_in_vain(request) ? STORE_CANCELLED : STORE_OK;
}

static enum store_result run_on_fiber(struct request *request)
{
    struct call *call = &request->call;
    struct fiber_pool *fibers = &call->worker->fibers;
    assert(!request->is_on_fiber);
    if (request->fiber == NULL && fibers->used_count >= FIBERS_MAX)
        return store_step(call->txn);
    if (request->fiber == NULL)
        request->fiber = fiber_new(fibers);
    if (request->fiber == NULL)
        return call_run(call);
    request->is_on_fiber = true;
    if (!fiber_enter(request->fiber, run_command, request)) {
        request->attempt = store_attempt(call->txn);
        count_stack(request, fiber_measure(fibers, request->fiber));
        return store_yield(call->txn);
    }
    request->is_on_fiber = false;
    long_run_drop(request);
    return request->run_result;
}

/* The first run is timed by its caller, if it is sampled. */
static void add_time(struct request *request, uint64_t began_ns)
{
    const struct call *call = &request->call;
    commandstats_add_time(call->worker, call->command, commandstats_clock() - began_ns);
}

static enum store_result run_timed_turn(struct request *request)
{
    struct call *call = &request->call;
    request->looked_ns = 0;
    if (request->state != REQUEST_RUNNING || store_is_prefetch_run(call->txn))
        return call_run(call);
    uint64_t began_ns = commandstats_clock();
    enum store_result result = request->is_long ? run_on_fiber(request) : call_run(call);
    add_time(request, began_ns);
    return result;
}

_Static_assert(offsetof(struct request, store) == 0, "a store_request is its request");

bool long_run_is_wanted(const struct store_request *store_request)
{
    return reply_stream_is_heard(((const struct request *)store_request)->conn);
}

enum store_result long_run_in_store(struct store_txn *txn, struct store_request *store_request)
{
    struct request *request = (struct request *)store_request;
    struct call *call = &request->call;
    call->txn = txn;
    enum store_result result = goes_on(request) ? resume(request) : begin(request);
    if (result != STORE_OK)
        return result;
    result = batch_end(call, run_timed_turn(request));
    if (store_is_prefetch_run(txn))
        call_drop_progress(call);
    if (!goes_on(request))
        request_uncount_reply(request);
    if (result == STORE_WAIT && !goes_on(request))
        request_drop_reply(request);
    return result;
}
