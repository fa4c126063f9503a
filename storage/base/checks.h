/*
 * Whether this build runs expensive checks: the xxx_check() functions, which walk a structure and
 * assert the invariants at the head of its file. The builds with random waits (WAIT=1) and the
 * sanitizer builds do; in all others this is a constant that removes the calls.
 */
#ifndef VELLUM_STORE_CHECKS_H
#define VELLUM_STORE_CHECKS_H

#include <pthread.h>
#include <stdbool.h>

static inline bool storage_checks_enabled(void)
{
#if defined(VELLUM_WAIT) || defined(VELLUM_SANITIZED)
    return true;
#else
    return false;
#endif
}

/* For asserts of functions that rely on their callers' lock: whether some thread holds it. Only
 * builds with expensive checks look. */
static inline bool lock_is_held(const pthread_mutex_t *lock)
{
    if (!storage_checks_enabled() || pthread_mutex_trylock((pthread_mutex_t *)lock) != 0)
        return true;
    pthread_mutex_unlock((pthread_mutex_t *)lock);
    return false;
}

#endif
