/*
 * A client that invalidates keys of the server's memory. Soft-RoCE checks only the key, not its
 * owner, so another client's ring can be closed. The offender loses its channel, and the victim is
 * notified at once.
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

/* With a frame in mode send, where no memory belongs to a receive without one. */
static void send_invalidation(struct raw *raw, uint32_t key)
{
    struct rdma_frame frame = {.type = RDMA_FRAME_CREDIT};
    struct ibv_sge piece = {
        .addr = (uintptr_t)raw->memory, .length = RDMA_HEADER_BYTES, .lkey = raw->mr->lkey};
    struct ibv_send_wr *bad, request = {.sg_list = &piece,
                                        .num_sge = raw->ours.mode == RDMA_MODE_SEND,
                                        .opcode = IBV_WR_SEND_WITH_INV,
                                        .invalidate_rkey = key,
                                        .send_flags = IBV_SEND_SIGNALED};
    rdma_frame_write(raw->memory, &frame);
    assert_int_equal(ibv_post_send(raw->qp, &request, &bad), 0);
}

static bool has_ended_well(struct raw *raw)
{
    struct ibv_wc completion;
    int got = 0;
    for (int i = 0; i < 500 && got == 0; i++) {
        got = ibv_poll_cq(raw->cq, 1, &completion);
        pause_ms(10);
    }
    assert_int_equal(got, 1);
    return completion.status == IBV_WC_SUCCESS;
}

static bool is_logged(const char *text)
{
    char line[512];
    bool is_logged = false;
    FILE *log = fopen(getenv("VELLUM_LOG"), "r");
    assert_non_null(log);
    while (!is_logged && fgets(line, sizeof line, log) != NULL)
        is_logged = strstr(line, text) != NULL;
    fclose(log);
    return is_logged;
}

static void is_served(struct vellum *channel)
{
    redisReply *reply = vellum_command(channel, "PING");
    assert_non_null(reply);
    assert_string_equal(reply->str, "PONG");
    freeReplyObject(reply);
}

static void try_to_end_ring(enum rdma_mode mode, bool victim_is_open)
{
    struct raw victim, attacker;
    struct vellum *neighbours[] = {connect_neighbour(RDMA_MODE_SEND),
                                   connect_neighbour(RDMA_MODE_WRITE)};
    redisContext *tcp = dial();
    long long breaches = figure(tcp, "rdma_breaches");
    raw_connect_by(&victim, RDMA_MODE_WRITE, RECEIVES);
    if (victim_is_open)
        raw_write_frame(&victim, 0, WORD(RDMA_FRAME_CREDIT, 0, 0), "", 0);
    raw_connect_by(&attacker, mode, RECEIVES);
    send_invalidation(&attacker, victim.theirs.ring_key);
    if (has_ended_well(&attacker)) { /* a device that checks the key's owner refuses it */
        raw_assert_closed(&attacker);
        assert_int_equal(figure(tcp, "rdma_breaches"), breaches + 1);
        assert_true(is_logged("a client has sent an invalidation"));
        assert_true(is_logged("a client's ring was closed by another"));
        if (victim_is_open)
            raw_assert_closed(&victim);
        else
            freeReplyObject(redisCommand(victim.tcp, "PING")); /* by TCP, as before */
        assert_int_equal(victim.tcp->err, 0);
    }
    is_served(neighbours[0]);
    is_served(neighbours[1]);
    raw_free(&attacker);
    raw_free(&victim);
    vellum_free(neighbours[0]);
    vellum_free(neighbours[1]);
    await_figure(tcp, "rdma_channels", 0);
    redisFree(tcp);
}

static void another_ends_a_ring(void **state)
{
    (void)state;
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++) {
        try_to_end_ring((enum rdma_mode)mode, true);
        try_to_end_ring((enum rdma_mode)mode, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_ends_a_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
