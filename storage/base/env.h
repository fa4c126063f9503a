/*
 * The environment of every room: the log, the clocks, and whether writing has failed. Private to
 * storage/. All functions may be called by any thread.
 */
#ifndef VELLUM_STORE_ENV_H
#define VELLUM_STORE_ENV_H

#include <stdatomic.h>

#include "storage/store.h"

struct env {
    void (*log)(void *arg, enum store_log_level level, const char *line); /* or NULL */
    void *log_arg;
    void (*on_failure)(void *arg); /* called once, when the first write has failed; or NULL */
    void *arg;                     /* argument of on_failure */
    _Atomic bool failed;
    _Atomic uint64_t write_errors;
    _Atomic int64_t clock_ms;       /* the latest time seen or extrapolated */
    _Atomic int64_t clock_moved_ms; /* when it was updated, by env_clock_ms() */
};

void env_log(const struct env *env, enum store_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

int64_t env_clock_ms(void);                             /* monotonic, coarse */
int64_t env_clock_ns(void);                             /* monotonic, precise */
int64_t env_now_ms(struct env *env);                    /* since 1970; never decreases */
void env_set_clock(struct env *env, int64_t latest_ms); /* env_now_ms continues from there */

/* After this nothing is committed any more. */
void env_fail(struct env *env, const char *doing, int error);
static inline bool env_failed(const struct env *env)
{
    return atomic_load_explicit(&env->failed, memory_order_relaxed);
}

#endif
