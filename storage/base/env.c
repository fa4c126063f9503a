/*
 * The log, the clocks and the store's one fatal failure, which ends all writing.
 */
#include "storage/base/env.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void env_log(const struct env *env, enum store_log_level level, const char *format, ...)
{
    char line[STORE_MESSAGE_MAX];
    va_list arguments;
    if (!env->log)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    env->log(env->log_arg, level, line);
}

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

int64_t env_clock_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC_COARSE);
}

int64_t env_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The system clock was set back. If time stood still until the clock has caught up, nothing
 * would expire meanwhile. So time continues from the latest value seen, a little slower, so
 * that the system clock does catch up. */
static int64_t go_on_slowly(struct env *env)
{
    int64_t here = env_clock_ms(), moved = atomic_load(&env->clock_moved_ms);
    int64_t step = (here - moved) / 8 * 7;
    if (step <= 0 || !atomic_compare_exchange_strong(&env->clock_moved_ms, &moved, here))
        return atomic_load(&env->clock_ms);
    return atomic_fetch_add(&env->clock_ms, step) + step;
}

int64_t env_now_ms(struct env *env)
{
    int64_t now = clock_ms(CLOCK_REALTIME);
    int64_t latest = atomic_load_explicit(&env->clock_ms, memory_order_relaxed);
    if (now == latest)
        return now;
    while (now > latest) /* the failed exchange reads `latest` again */
        if (atomic_compare_exchange_weak(&env->clock_ms, &latest, now)) {
            atomic_store(&env->clock_moved_ms, env_clock_ms());
            return now;
        }
    return go_on_slowly(env);
}

void env_set_clock(struct env *env, int64_t latest_ms)
{
    atomic_store(&env->clock_moved_ms, env_clock_ms());
    atomic_store(&env->clock_ms, latest_ms);
}

void env_fail(struct env *env, const char *doing, int error)
{
    atomic_fetch_add(&env->write_errors, 1);
    if (atomic_exchange(&env->failed, true))
        return;
    env_log(env, STORE_LOG_WARNING,
            "An error occurred while %s: %s. Nothing more is written or acknowledged; reads "
            "continue. Repair the device and start again",
            doing, strerror(error));
    if (env->on_failure)
        env->on_failure(env->arg);
}
