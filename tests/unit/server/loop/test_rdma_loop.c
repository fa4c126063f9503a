/*
 * When a worker polls, looks around and sleeps: on a device that has what the test says.
 */
#include "server/loop/rdma_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "server/core/server.h"

#define SPIN_US 50000 /* more than a busy machine keeps a thread waiting */
#define WAITS 6       /* more than it takes to learn from them */

struct rdma_poll_group {
    int pipe[2];
    bool has_come; /* the next poll finds it */
    bool is_armed;
    bool is_ending;
    uint32_t polls;
};

static struct rdma_poll_group device;

static struct rdma_poll_group *attach(struct rdma_devices *devices, struct worker *worker)
{
    (void)devices;
    (void)worker;
    return &device;
}

static int descriptor(const struct rdma_poll_group *worker)
{
    return worker->pipe[0];
}

static bool poll_device(struct rdma_poll_group *worker)
{
    bool has_come = worker->has_come;
    worker->has_come = false;
    worker->is_armed = worker->is_armed && !has_come;
    worker->polls++;
    return has_come;
}

static bool arm(struct rdma_poll_group *worker)
{
    bool was_armed = worker->is_armed;
    worker->is_armed = true;
    return was_armed;
}

static bool has_ended(const struct rdma_poll_group *worker)
{
    return !worker->is_ending;
}

static const struct rdma_ops ops = {.attach = attach,
                                    .descriptor = descriptor,
                                    .poll = poll_device,
                                    .sleep = arm,
                                    .has_ended = has_ended};

static struct server *server;
static struct worker worker;

static int set_up(void **state)
{
    (void)state;
    server = calloc(1, sizeof *server);
    device = (struct rdma_poll_group){.polls = 0};
    assert_int_equal(pipe(device.pipe), 0);
    assert_true(config_init(&server->config));
    atomic_store(&server->config.numbers[CONFIG_RDMA_SPIN_US], SPIN_US);
    server->rdma_ops = &ops;
    server->rdma = (struct rdma_devices *)&device;
    worker = (struct worker){.server = server, .base = event_base_new()};
    assert_true(rdma_loop_make(&worker));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rdma_loop_free(&worker);
    event_base_free(worker.base);
    config_free(&server->config);
    free(server);
    close(device.pipe[0]);
    close(device.pipe[1]);
    return 0;
}

static enum rdma_turn turn(void)
{
    return rdma_loop_turn(worker.rdma);
}

static void comes(void)
{
    device.has_come = true;
    enum rdma_turn what = turn();
    assert_true(what == RDMA_TURN_SKIP || what == RDMA_TURN_LOOK);
}

/* Until it may block. Returns how often it has looked around before. */
static uint32_t fall_asleep(void)
{
    uint32_t looks = 0;
    for (;;) {
        enum rdma_turn what = turn();
        if (what == RDMA_TURN_SLEEP)
            return looks;
        assert_true(what == RDMA_TURN_IDLE || what == RDMA_TURN_SKIP);
        looks += what == RDMA_TURN_IDLE;
    }
}

static void wait_long(void)
{
    usleep(SPIN_US + SPIN_US / 10);
}

static void test_sleeps_at_once_where_nothing_has_come(void **state)
{
    (void)state;
    assert_int_equal(fall_asleep(), 0);
    assert_true(device.is_armed);
    assert_int_equal(turn(), RDMA_TURN_SLEEP);
    assert_true(device.polls <= 4);
}

static void test_others_have_turns_while_much_comes(void **state)
{
    (void)state;
    uint32_t looks = 0;
    for (int i = 0; i < 80; i++) {
        device.has_come = true;
        looks += turn() == RDMA_TURN_LOOK;
    }
    assert_int_equal(looks, 10);
}

static void test_spins_for_as_long_as_it_is_told(void **state)
{
    (void)state;
    comes();
    struct timespec began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    assert_true(fall_asleep() > 0);
    clock_gettime(CLOCK_MONOTONIC, &now);
    long took_us = (now.tv_sec - began.tv_sec) * 1000000 + (now.tv_nsec - began.tv_nsec) / 1000;
    assert_true(took_us >= SPIN_US);
}

static void test_spins_no_more_where_all_waits_are_long(void **state)
{
    (void)state;
    for (int i = 0; i < WAITS; i++) {
        comes();
        fall_asleep();
        wait_long();
    }
    comes();
    uint32_t polls = device.polls;
    assert_int_equal(fall_asleep(), 0);
    assert_true(device.polls - polls < 1000);
    comes(); /* soon: so the next may come soon, too */
    assert_true(fall_asleep() > 0);
}

static void test_some_long_waits_change_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < WAITS; i++) {
        comes();
        if (i % 3 == 2) {
            assert_int_equal(turn(), RDMA_TURN_IDLE);
            comes();
        }
        assert_true(fall_asleep() > 0);
    }
}

/* For some time, but not for ever. */
static void test_waits_for_the_last_replies(void **state)
{
    (void)state;
    struct timespec began, now;
    assert_true(rdma_loop_has_ended(&worker));
    device.is_ending = true;
    clock_gettime(CLOCK_MONOTONIC, &began);
    assert_false(rdma_loop_has_ended(&worker));
    device.is_ending = false;
    assert_true(rdma_loop_has_ended(&worker));
    device.is_ending = true;
    while (!rdma_loop_has_ended(&worker))
        usleep(10000);
    clock_gettime(CLOCK_MONOTONIC, &now);
    assert_in_range(now.tv_sec - began.tv_sec, 1, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sleeps_at_once_where_nothing_has_come, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_others_have_turns_while_much_comes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_spins_for_as_long_as_it_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_spins_no_more_where_all_waits_are_long, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_some_long_waits_change_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_waits_for_the_last_replies, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
