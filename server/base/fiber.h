/*
 * Fibers: functions that run on stacks of their own and can be suspended halfway and resumed. Used
 * by long runs (long_run.h).
 *
 * Threads: a fiber belongs to the thread that created it.
 */
#ifndef VELLUM_FIBER_H
#define VELLUM_FIBER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct fiber;

/* One thread's fibers. Initialize with zeros. */
#define FIBER_SPARES 4
struct fiber_pool {
    struct fiber *spares[FIBER_SPARES]; /* for reuse */
    uint32_t spare_count;
    uint32_t used_count;
    _Atomic uint64_t bytes; /* of all stacks, as measured last; read by other threads, too */
};

struct fiber *fiber_new(struct fiber_pool *pool); /* NULL: out of memory */
/* Allowed at any point of its function; the rest of the function does not run. */
void fiber_free(struct fiber_pool *pool, struct fiber *fiber);
/* Counts in the pool, and returns, the memory that the fiber's stack takes. */
uint64_t fiber_measure(struct fiber_pool *pool, struct fiber *fiber);
void fiber_pool_free(struct fiber_pool *pool); /* no fiber may be in use */

/* Starts or resumes the fiber. Returns true when its function has returned, false when it called
 * fiber_leave(). `function` and `arg` are ignored once the fiber has started. */
bool fiber_enter(struct fiber *fiber, void (*function)(void *arg), void *arg);
/* Suspends the running fiber and returns to the caller of fiber_enter(). */
void fiber_leave(struct fiber *fiber);

#endif
