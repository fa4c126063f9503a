/*
 * Clients that answer no READ take all buffers for pulled bytes: others wait for one, the worker
 * does nothing meanwhile, and the wait is short.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/rdma/raw.h"

#define SILENT 8 /* twice the server's buffers */
#define PULLS 7
#define PULLED_BYTES 65536 /* of each PULL: two parts */
#define SOON_S 20
#define TRIALS 5

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* What the server has used of the processor. */
static double used_s(redisContext *tcp)
{
    double used = 0;
    redisReply *reply = redisCommand(tcp, "INFO cpu");
    assert_non_null(reply);
    const char *at[] = {strstr(reply->str, "used_cpu_user:"), strstr(reply->str, "used_cpu_sys:")};
    for (int i = 0; i < 2; i++) {
        assert_non_null(at[i]);
        used += atof(strchr(at[i], ':') + 1);
    }
    freeReplyObject(reply);
    return used;
}

static void pull(struct raw *raw, const void *address, size_t len)
{
    char message[RDMA_HEADER_BYTES + RDMA_REFERENCE_BYTES];
    struct rdma_frame frame = {.type = RDMA_FRAME_PULL, .length = RDMA_REFERENCE_BYTES};
    struct rdma_reference reference = {
        .address = (uintptr_t)address, .length = len, .rkey = raw->mr->rkey};
    rdma_frame_write(message, &frame);
    rdma_reference_write(message + RDMA_HEADER_BYTES, &reference);
    raw_post(raw, message, sizeof message, IBV_WR_SEND, 0, 0);
}

static void await_sent(struct raw *raw, int count)
{
    struct ibv_wc completion;
    for (int i = 0; i < 5000 && count > 0;) {
        if (ibv_poll_cq(raw->cq, 1, &completion) == 1) {
            count -= (completion.opcode & IBV_WC_RECV) == 0;
            continue;
        }
        pause_ms(1);
        i++;
    }
    assert_int_equal(count, 0);
}

/* In the middle of what it has sent the client falls silent. */
static void fall_silent(struct raw *raw)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    raw_connect(raw, 4);
    char *lines = raw_received(raw, RECEIVES) - PULLED_BYTES;
    memset(lines, '\n', PULLED_BYTES);
    for (int i = 0; i < PULLS; i++)
        pull(raw, lines, PULLED_BYTES);
    await_sent(raw, 1);
    assert_int_equal(ibv_modify_qp(raw->qp, &reset, IBV_QP_STATE), 0);
}

static bool has_answer(struct raw *raw)
{
    struct ibv_wc completion;
    while (ibv_poll_cq(raw->cq, 1, &completion) == 1) {
        assert_int_equal(completion.status, IBV_WC_SUCCESS);
        if ((completion.opcode & IBV_WC_RECV) == 0 ||
            raw_received(raw, completion.wr_id)[0] != RDMA_FRAME_DATA)
            continue;
        assert_memory_equal(raw_received(raw, completion.wr_id) + RDMA_HEADER_BYTES, "+PONG", 5);
        return true;
    }
    return false;
}

/* How long a client waits for what it has sent by reference; of that, what the server works. */
static double wait_s(redisContext *tcp, double *works_s)
{
    struct raw raw;
    raw_connect(&raw, RECEIVES);
    char *ping = raw_received(&raw, RECEIVES - 1);
    memcpy(ping, "PING\r\n", 6);
    double began = now_s(), used = used_s(tcp);
    pull(&raw, ping, 6);
    while (!has_answer(&raw)) {
        assert_true(now_s() - began < SOON_S);
        pause_ms(20);
    }
    *works_s = used_s(tcp) - used;
    double waited = now_s() - began;
    raw_free(&raw);
    return waited;
}

static void others_wait_quietly(void **state)
{
    (void)state;
    static struct raw silent[SILENT];
    redisContext *tcp = dial();
    double waited = 0, works = 0;
    for (int trial = 0; trial < TRIALS && waited < 0.5; trial++) {
        for (int i = 0; i < SILENT; i++)
            fall_silent(&silent[i]);
        waited = wait_s(tcp, &works);
        for (int i = 0; i < SILENT; i++)
            raw_free(&silent[i]);
        await_figure(tcp, "rdma_channels", 0);
    }
    if (waited < 0.5)
        fail_msg("they took no buffers");
    if (works > waited / 2)
        fail_msg("in %f s the server worked for %f s", waited, works);
    redisFree(tcp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(others_wait_quietly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
