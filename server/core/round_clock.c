#include "server/core/round_clock.h"

#include <time.h>

#include "server/core/commandstats.h"

bool round_clock_is_late(struct worker *worker)
{
    uint64_t now = commandstats_clock();
    worker->round_weight = 0;
    if (worker->round_began_nsec == 0)
        worker->round_began_nsec = now;
    return now - worker->round_began_nsec > ROUND_NSEC_MAX;
}

void round_clock_measure(struct worker *worker)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    uint64_t now = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
    uint64_t gap = worker->looked_up_nsec != 0 ? now - worker->looked_up_nsec : 0;
    worker->looked_up_nsec = now;
    if (gap > atomic_load_explicit(&worker->longest_gap_nsec, memory_order_relaxed))
        atomic_store_explicit(&worker->longest_gap_nsec, gap, memory_order_relaxed);
}

uint64_t round_clock_longest(struct server *server)
{
    uint64_t longest = 0;
    atomic_store_explicit(&server->measures_gaps, true, memory_order_relaxed);
    for (uint32_t i = 0; i < server->worker_count; i++) {
        uint64_t gap = atomic_exchange_explicit(&server->workers[i]->longest_gap_nsec, 0,
                                                memory_order_relaxed);
        longest = gap > longest ? gap : longest;
    }
    return longest;
}
