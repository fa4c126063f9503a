/* The distributions of commands' times: what a bucket loses, and how they are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/core/latency.h"
#include "tests/unit/fixture.h"

static const struct command *some_command(const struct fixture *fixture)
{
    const struct resp_slice name = {"get", 3};
    return command_find(&fixture->server.commands, name);
}

static void sum_up(struct fixture *fixture, struct times_sum *sum)
{
    const struct command *command = some_command(fixture);
    assert_true(command_times_sum(&fixture->server,
                                  (size_t)(command - fixture->server.commands.table), sum));
}

/* A time is found again, up to a 32nd longer; and it counts below the next power of two. */
static void test_a_bucket_is_narrow(void **state)
{
    struct fixture *fixture = *state;
    struct times_sum sum;
    for (uint64_t nsec = 1; nsec < 1ull << TIMES_BITS; nsec += 1 + nsec / 7) {
        command_times_add(fixture->worker, some_command(fixture), nsec, 3);
        sum_up(fixture, &sum);
        uint64_t found = times_percentile(&sum, 50);
        uint32_t bits = 64 - (uint32_t)__builtin_clzll(nsec);
        assert_true(found >= nsec && found - nsec <= nsec / 32);
        assert_int_equal(sum.total, 3);
        if (bits > TIMES_STEPS_BITS) {
            assert_int_equal(times_below(&sum, bits), 3);
            assert_int_equal(times_below(&sum, bits - 1), 0);
        }
        command_times_clear(fixture->worker);
        assert_false(command_times_sum(
            &fixture->server, (size_t)(some_command(fixture) - fixture->server.commands.table),
            &sum));
    }
}

static void test_percentiles(void **state)
{
    struct fixture *fixture = *state;
    struct times_sum sum;
    for (uint64_t i = 0; i < 1000; i++)
        command_times_add(fixture->workers[i % FIXTURE_WORKERS], some_command(fixture),
                          i < 990 ? 20 : UINT64_MAX, 1);
    sum_up(fixture, &sum);
    assert_int_equal(sum.total, 1000);
    assert_int_equal(times_percentile(&sum, 0), 20);
    assert_int_equal(times_percentile(&sum, 99), 20);
    assert_int_equal(times_percentile(&sum, 99.1), (1ull << TIMES_BITS) - 1);
    assert_int_equal(times_percentile(&sum, 100), (1ull << TIMES_BITS) - 1);
    assert_int_equal(times_below(&sum, TIMES_BITS), 1000);
}

static int set_up_two(void **state)
{
    return set_up_workers(state, FIXTURE_WORKERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_bucket_is_narrow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_percentiles, set_up_two, tear_down),
    };
    return cmocka_run_group_tests_name("latency", tests, NULL, NULL);
}
