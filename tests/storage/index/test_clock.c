/* The machine's clock is set forth and back: CLOCK_REALTIME is wrapped by the linker. What has
 * expired stays so, what has yet to expire does, and what goes by the monotonic clock takes no
 * notice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdatomic.h>
#include <time.h>

#include <cmocka.h>

#include "storage/txn/engine.h"
#include "tests/storage/fault_disk.h"

#define HOUR_MS 3600000ll

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

/* The wrapped call has no other way to know. */
static _Atomic int64_t shift_hours;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = __real_clock_gettime(clock, now);
    if (clock == CLOCK_REALTIME)
        now->tv_sec += atomic_load(&shift_hours) * 3600;
    return result;
}

static int64_t true_ms(clockid_t clock)
{
    struct timespec now;
    __real_clock_gettime(clock, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

static struct medium *begin(struct rig *rig)
{
    struct medium *medium = medium_new(1);
    atomic_store(&shift_hours, 0);
    rig_defaults(rig);
    rig->options.sync = STORE_SYNC_EVERYSEC;
    rig_open_on(rig, medium);
    return medium;
}

static void end(struct rig *rig, struct medium *medium)
{
    rig_end(rig, medium);
}

/* Everything acknowledged is durable, and the machine comes back with its clock at the shift. */
static void cut_and_open(struct rig *rig, struct medium *medium, int64_t hours)
{
    rig_sync(rig, atomic_load_explicit(&rig->store->journal.appended, memory_order_acquire));
    medium_cut_now(medium);
    must(rig_close(rig) != STORE_OK, "closing without power");
    atomic_store(&shift_hours, hours);
    rig_open_on(rig, medium);
}

static void put_for(struct rig *rig, const char *key, int64_t ms)
{
    put_until(rig, key, "value", store_clock_ms(rig->store) + ms);
}

/* Those that are there or have expired, but are not deleted yet. */
static uint64_t keys(struct rig *rig)
{
    return store_db_stats(rig->store, 0).keys;
}

static void await_keys(struct rig *rig, uint64_t count, const char *why)
{
    for (uint32_t i = 0; i < 1000 && keys(rig) != count; i++)
        rig_run(rig, 10);
    must(keys(rig) == count, "%s: %llu keys", why, (unsigned long long)keys(rig));
}

static void what_has_expired_stays_away(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = begin(&rig);
    must(do_set(&rig, "lasting", "value") == STORE_OK, "set");
    put_for(&rig, "mortal", HOUR_MS / 2);
    put_for(&rig, "later", 3 * HOUR_MS);
    atomic_store(&shift_hours, 1);
    await_keys(&rig, 2, "an hour later");
    atomic_store(&shift_hours, -5);
    rig_run(&rig, 50);
    must(has_value(&rig, "mortal", NULL) && has_value(&rig, "later", "value"), "set back");
    cut_and_open(&rig, medium, -9);
    must(has_value(&rig, "mortal", NULL) && has_value(&rig, "lasting", "value"), "after a cut");
    must(keys(&rig) == 2, "%llu keys after a cut", (unsigned long long)keys(&rig));
    rig_close_well(&rig);
    atomic_store(&shift_hours, -20);
    rig_open_on(&rig, medium);
    must(has_value(&rig, "mortal", NULL) && has_value(&rig, "later", "value"), "after a stop");
    end(&rig, medium);
}

/* Somewhat slower, until the machine's clock has caught up. */
static void time_goes_on_when_it_is_set_back(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = begin(&rig);
    atomic_store(&shift_hours, 7);
    int64_t ahead = store_clock_ms(rig.store);
    atomic_store(&shift_hours, 0);
    put_for(&rig, "mortal", 300);
    int64_t began = true_ms(CLOCK_MONOTONIC);
    rig_run(&rig, 400);
    int64_t passed = store_clock_ms(rig.store) - ahead, real = true_ms(CLOCK_MONOTONIC) - began;
    must(passed > real / 2 && passed <= real + 100, "in %lld ms %lld have passed", (long long)real,
         (long long)passed);
    await_keys(&rig, 0, "what is to expire while the clock is behind");
    atomic_store(&shift_hours, 8);
    must(store_clock_ms(rig.store) >= ahead + HOUR_MS, "the clock is right again");
    end(&rig, medium);
}

static void expect_hours(struct rig *rig, int64_t since_ms, int64_t hours)
{
    int64_t passed = store_clock_ms(rig->store) - since_ms;
    must(passed >= hours * HOUR_MS && passed < (hours + 1) * HOUR_MS,
         "%lld hours and %lld ms have passed", (long long)(passed / HOUR_MS),
         (long long)(passed % HOUR_MS));
}

/* It is as late as at the last start, though there was no checkpoint since, or as at a stop. */
static void starts_and_stops_keep_the_time(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = begin(&rig);
    put_for(&rig, "mortal", HOUR_MS);
    int64_t before = store_clock_ms(rig.store);
    cut_and_open(&rig, medium, 24);
    await_keys(&rig, 0, "a day later");
    cut_and_open(&rig, medium, 0);
    expect_hours(&rig, before, 24);
    atomic_store(&shift_hours, 48);
    rig_close_well(&rig);
    atomic_store(&shift_hours, 0);
    rig_open_on(&rig, medium);
    expect_hours(&rig, before, 48);
    end(&rig, medium);
}

static void a_second_stays_a_second(void **state)
{
    (void)state;
    static const int64_t hours[] = {-3, 3, -300000};
    struct rig rig;
    struct medium *medium = begin(&rig);
    for (uint32_t i = 0; i < 3; i++) {
        put_until(&rig, "key", "value", STORE_NO_EXPIRY);
        uint64_t commit = atomic_load(&rig.store->journal.appended);
        int64_t began = true_ms(CLOCK_MONOTONIC);
        atomic_store(&shift_hours, hours[i]);
        while (store_durable(rig.store) < commit && true_ms(CLOCK_MONOTONIC) < began + 5000)
            rig_run(&rig, 10);
        int64_t took = true_ms(CLOCK_MONOTONIC) - began;
        must(took > 300 && took < 2700, "durable after %lld ms", (long long)took);
    }
    end(&rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_expired_stays_away),
        cmocka_unit_test(time_goes_on_when_it_is_set_back),
        cmocka_unit_test(starts_and_stops_keep_the_time),
        cmocka_unit_test(a_second_stays_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
