/*
 * A server that uses all devices there are: rxe_a at VELLUM_HOST and rxe_b at VELLUM_PEER, which
 * are each other's peers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/rdma/raw.h"

#define LARGE 100000

static char first[64], second[64]; /* addresses */

/* What connects from now on does so to this device's address. */
static void use(const char *address)
{
    setenv("VELLUM_HOST", address, 1);
    setenv("VELLUM_PEER", strcmp(address, first) == 0 ? second : first, 1);
}

/* A value of a map, which has it. */
static const redisReply *value_of(const redisReply *map, const char *name)
{
    for (size_t i = 0; i + 1 < map->elements; i += 2)
        if (strcmp(map->element[i]->str, name) == 0)
            return map->element[i + 1];
    fail_msg("%s is not told", name);
    return NULL;
}

static void is_told(redisReply *whole, const char *name, const char *wanted)
{
    assert_non_null(whole);
    assert_string_equal(value_of(whole, name)->str, wanted);
    freeReplyObject(whole);
}

/* How many channels the device has by RDMA INFO; -1: it is not in use. */
static long long channels_of(redisContext *tcp, const char *name)
{
    long long channels = -1;
    redisReply *whole = redisCommand(tcp, "RDMA INFO");
    const redisReply *devices = value_of(whole, "devices");
    for (size_t i = 0; i < devices->elements; i++)
        if (strcmp(value_of(devices->element[i], "device")->str, name) == 0)
            channels = value_of(devices->element[i], "channels")->integer;
    freeReplyObject(whole);
    return channels;
}

static void await_channels(redisContext *tcp, const char *name, long long wanted)
{
    for (int i = 0; i < 300 && channels_of(tcp, name) != wanted; i++)
        pause_ms(100);
    assert_int_equal(channels_of(tcp, name), wanted);
}

/* By reference both ways, when both devices have the pages. */
static void exchange(struct vellum *from, struct vellum *to)
{
    static char value[LARGE];
    memset(value, 'v', sizeof value);
    freeReplyObject(vellum_command(from, "SET devices %b", value, sizeof value));
    redisReply *reply = vellum_command(to, "GET devices");
    assert_non_null(reply);
    assert_int_equal(reply->len, sizeof value);
    assert_memory_equal(reply->str, value, sizeof value);
    freeReplyObject(reply);
}

/* ---- cases ---- */

static void each_serves_its_own_address(void **state)
{
    (void)state;
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++) {
        use(second);
        struct vellum *by_second = connect_neighbour((enum rdma_mode)mode);
        use(first);
        struct vellum *by_first = connect_neighbour((enum rdma_mode)mode);
        redisContext *tcp = dial();
        exchange(by_first, by_second);
        exchange(by_second, by_first);
        is_told(vellum_command(by_first, "RDMA INFO"), "device", "rxe_a");
        is_told(vellum_command(by_second, "RDMA INFO"), "device", "rxe_b");
        assert_int_equal(channels_of(tcp, "rxe_a"), 1);
        assert_int_equal(channels_of(tcp, "rxe_b"), 1);
        assert_int_equal(figure(tcp, "rdma_channels"), 2);
        assert_true(figure(tcp, "rdma_devices") >= 2);
        vellum_free(by_first);
        vellum_free(by_second);
        await_figure(tcp, "rdma_channels", 0);
        await_channels(tcp, "rxe_a", 0);
        await_channels(tcp, "rxe_b", 0);
        redisFree(tcp);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_serves_its_own_address),
    };
    snprintf(first, sizeof first, "%s", getenv("VELLUM_HOST"));
    snprintf(second, sizeof second, "%s", getenv("VELLUM_PEER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
