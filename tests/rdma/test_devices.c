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

static void await_served(const char *address, const char *name)
{
    bool is_served = false;
    use(address);
    for (int i = 0; i < 300 && !is_served; i++, pause_ms(100)) {
        redisContext *tcp = dial();
        redisReply *whole = redisCommand(tcp, "RDMA INFO");
        is_served = strcmp(value_of(whole, "device")->str, name) == 0;
        freeReplyObject(whole);
        redisFree(tcp);
    }
    assert_true(is_served);
}

static void await_command(const char *command)
{
    int patience = 300;
    while (system(command) != 0 && patience-- > 0)
        pause_ms(100);
    assert_true(patience >= 0);
}

static bool is_logged(const char *text)
{
    char line[512];
    bool is = false;
    FILE *log = fopen(getenv("VELLUM_LOG"), "r");
    assert_non_null(log);
    while (fgets(line, sizeof line, log) != NULL)
        is = is || strstr(line, text) != NULL;
    fclose(log);
    return is;
}

static void is_served_by_both(void)
{
    use(second);
    struct vellum *by_second = connect_neighbour(RDMA_MODE_WRITE);
    use(first);
    struct vellum *by_first = connect_neighbour(RDMA_MODE_SEND);
    exchange(by_first, by_second);
    is_told(vellum_command(by_second, "RDMA INFO"), "device", "rxe_b");
    vellum_free(by_first);
    vellum_free(by_second);
}

/* The kernel keeps the interface of a deleted device until every process has closed it. */
static void one_goes_and_comes_back(void **state)
{
    (void)state;
    use(first);
    redisContext *tcp = dial();
    use(second);
    struct vellum *channel = connect_neighbour(RDMA_MODE_SEND);
    exchange(channel, channel);
    long long frames = figure(tcp, "rdma_frames_in");
    assert_int_equal(channels_of(tcp, "rxe_b"), 1);
    assert_int_equal(system("rdma link del rxe_b &"), 0);
    await_channels(tcp, "rxe_b", -1);
    await_figure(tcp, "rdma_channels", 0);
    assert_null(vellum_command(channel, "PING"));
    vellum_free(channel);
    assert_true(is_logged("the device rxe_b has gone"));
    assert_true(figure(tcp, "rdma_frames_in") >= frames);
    await_served(second, "rxe_a"); /* as good as there is */
    await_command("rdma link add rxe_b type rxe netdev vb 2>/dev/null");
    await_served(second, "rxe_b");
    assert_true(is_logged("device rxe_b is in use from now on"));
    is_served_by_both();
    await_figure(tcp, "rdma_channels", 0);
    redisFree(tcp);
}

/* Not there when the server was started. */
static void one_comes(void **state)
{
    (void)state;
    use(first);
    redisContext *tcp = dial();
    assert_int_equal(system("ip link add vc type veth peer name vd && ip link set vc up && "
                            "ip link set vd up && ip address add 10.7.0.1/24 dev vc && "
                            "rdma link add rxe_c type rxe netdev vc"),
                     0);
    await_channels(tcp, "rxe_c", 0);
    assert_int_equal(system("rdma link del rxe_c &"), 0);
    await_channels(tcp, "rxe_c", -1);
    redisFree(tcp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_serves_its_own_address),
        cmocka_unit_test(one_comes),
        cmocka_unit_test(one_goes_and_comes_back),
    };
    snprintf(first, sizeof first, "%s", getenv("VELLUM_HOST"));
    snprintf(second, sizeof second, "%s", getenv("VELLUM_PEER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
