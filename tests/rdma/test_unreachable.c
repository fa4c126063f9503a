/*
 * Clients that give an unreachable address: the kernel takes a second to find out for each, and no
 * other client waits for that. They have the addresses 10.9.0.60 and up.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/rdma/raw.h"

#define DEAD 40
#define SOON_S 15 /* one after the other they take DEAD seconds */

static struct raw device;
static redisContext *dead[DEAD];

static long now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static int begin(void **state)
{
    (void)state;
    redisContext *tcp = dial();
    freeReplyObject(redisCommand(tcp, "CONFIG SET rdma-check-peer no"));
    redisFree(tcp);
    return 0;
}

/* One queue pair speaks for all. */
static void ask_for_the_dead(bool at_one_address)
{
    char gid[40];
    raw_open_device(&device, RDMA_MODE_SEND);
    redisContext *own = device.tcp;
    for (int i = 0; i < DEAD; i++) {
        dead[i] = device.tcp = dial();
        snprintf(gid, sizeof gid, "00000000000000000000ffff0a0900%02x",
                 at_one_address ? 60 : 60 + i);
        raw_send_question(&device, "GID", gid);
    }
    device.tcp = own;
}

static void is_made_soon(void)
{
    long began = now_s();
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++) {
        struct vellum *channel = connect_neighbour((enum rdma_mode)mode);
        redisReply *reply = vellum_command(channel, "PING");
        assert_non_null(reply);
        freeReplyObject(reply);
        vellum_free(channel);
    }
    assert_true(now_s() - began < SOON_S);
}

static void all_are_refused_soon(void)
{
    long began = now_s();
    for (int i = 0; i < DEAD; i++) {
        void *answer = NULL;
        assert_int_equal(redisGetReply(dead[i], &answer), REDIS_OK);
        assert_non_null(strstr(((redisReply *)answer)->str, "the other end cannot be reached: "));
        freeReplyObject(answer);
        redisFree(dead[i]);
    }
    assert_true(now_s() - began < SOON_S);
    await_figure(device.tcp, "rdma_channels", 0);
    await_figure(device.tcp, "rdma_pinned_bytes", 0);
    raw_free(&device);
}

static void others_do_not_wait(void **state)
{
    (void)state;
    for (int at_one_address = 0; at_one_address <= 1; at_one_address++) {
        ask_for_the_dead(at_one_address);
        is_made_soon();
        all_are_refused_soon();
    }
}

/* A client that has closed its connection is forgotten. */
static void nobody_waits_for_the_closed(void **state)
{
    (void)state;
    for (int at_one_address = 0; at_one_address <= 1; at_one_address++) {
        long began = now_s();
        ask_for_the_dead(at_one_address);
        for (int i = 0; i < DEAD; i++)
            redisFree(dead[i]);
        while (figure(device.tcp, "rdma_channels") > 0 && now_s() - began < SOON_S)
            pause_ms(50);
        await_figure(device.tcp, "rdma_channels", 0);
        is_made_soon();
        raw_free(&device);
    }
}

static bool has_ended(void)
{
    char line[512];
    bool has_ended = false;
    FILE *log = fopen(getenv("VELLUM_LOG"), "r");
    assert_non_null(log);
    while (!has_ended && fgets(line, sizeof line, log) != NULL)
        has_ended = strstr(line, "Vellum has ended") != NULL;
    fclose(log);
    return has_ended;
}

/* The last case. */
static void the_server_ends(void **state)
{
    (void)state;
    ask_for_the_dead(false);
    for (int i = 0; i < 100 && figure(device.tcp, "rdma_channels") < DEAD; i++)
        pause_ms(10);
    long began = now_s();
    assert_int_equal(kill(atoi(getenv("VELLUM_PID")), SIGTERM), 0);
    while (!has_ended() && now_s() - began < 2 * DEAD)
        pause_ms(100);
    assert_true(now_s() - began < SOON_S);
    raw_free(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(others_do_not_wait, begin),
        cmocka_unit_test_setup(nobody_waits_for_the_closed, begin),
        cmocka_unit_test_setup(the_server_ends, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
