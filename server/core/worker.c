/*
 * A worker's clocks, the hand-offs of keys to its requests, and whether a script is busy.
 */
#include "server/core/worker.h"

#include <time.h>

int64_t worker_now(struct worker *worker)
{
    if (worker->now_ms == 0)
        worker->now_ms = store_clock_ms(worker->server->store);
    return worker->now_ms;
}

void worker_visit_woken(struct worker *worker)
{
    if (worker->apart == NULL)
        store_run_handoffs(worker->store);
}

uint64_t worker_busy_usec(const struct worker *worker)
{
    struct timespec time;
    clockid_t clock = atomic_load_explicit(&worker->processor_clock, memory_order_acquire);
    if (clock == 0 || clock_gettime(clock, &time) != 0)
        return 0;
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

bool worker_any_busy_is(const struct server *server, bool is_function)
{
    for (uint32_t i = 0; i < server->worker_count; i++) {
        const struct script_shown *script = &server->workers[i]->script;
        if (atomic_load_explicit(&script->is_busy, memory_order_acquire) &&
            atomic_load_explicit(&script->is_function, memory_order_relaxed) == is_function)
            return true;
    }
    return false;
}

bool worker_any_script_is_busy(const struct server *server)
{
    return worker_any_busy_is(server, false) || worker_any_busy_is(server, true);
}
