/*
 * Fibers: functions on stacks of their own, which may be left in the middle and entered again. For
 * runs that take long (long_run.h).
 *
 * Threads: a fiber belongs to the thread that has made it.
 */
#ifndef VELLUM_FIBER_H
#define VELLUM_FIBER_H

#include <stdbool.h>
#include <stdint.h>

struct fiber;

/* A thread's fibers; all zero at first. */
#define FIBER_SPARES 4
struct fiber_pool {
    struct fiber *spares[FIBER_SPARES]; /* to be used again */
    uint32_t spare_count;
    uint32_t used_count;
};

struct fiber *fiber_new(struct fiber_pool *pool); /* NULL: out of memory */
/* Whatever its function was about to do. */
void fiber_free(struct fiber_pool *pool, struct fiber *fiber);
void fiber_pool_free(struct fiber_pool *pool); /* nothing is used any more */

/* Until the function returns: true, it has ended; or leaves: false. The function of a fiber that
 * has begun is not asked for again. */
bool fiber_enter(struct fiber *fiber, void (*function)(void *arg), void *arg);
/* From inside of it, back to whoever has entered it. */
void fiber_leave(struct fiber *fiber);

#endif
