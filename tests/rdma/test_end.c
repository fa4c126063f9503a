/*
 * The end of a channel that the server closes: its last replies, and END after them.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/rdma/raw.h"

#define VALUES 10
#define VALUE_BYTES 1290 /* so many replies take all four buffers of the server, but not more */
#define REPLY_BYTES (VALUES * (7 + VALUE_BYTES + 2) + 5)

/* What the server has sent. */
struct heard {
    enum rdma_frame_type type; /* of the last frame; 0: none came in time */
    uint32_t bytes, frames;    /* of DATA; of all types */
};

static void tell(struct raw *raw, uint32_t *slot, enum rdma_frame_type type, uint32_t credits,
                 const char *text)
{
    char message[RDMA_HEADER_BYTES + 256];
    size_t len = strlen(text);
    struct rdma_frame frame = {.type = type, .credits = credits, .length = (uint32_t)len};
    if (raw->ours.mode == RDMA_MODE_WRITE) {
        uint32_t word = WORD(type, credits, (uint32_t)len);
        raw_write_frame(raw, *slot % raw->theirs.credits, word, text, len);
        *slot += len > 0;
        return;
    }
    rdma_frame_write(message, &frame);
    memcpy(message + RDMA_HEADER_BYTES, text, len);
    raw_post(raw, message, RDMA_HEADER_BYTES + len, IBV_WR_SEND, 0, 0);
}

static struct rdma_frame frame_of(const struct raw *raw, const struct ibv_wc *completion)
{
    struct rdma_frame frame;
    if (raw->ours.mode == RDMA_MODE_WRITE)
        assert_true(rdma_word_read(&frame, be32toh(completion->imm_data)));
    else
        assert_true(
            rdma_frame_read(&frame, raw_received(raw, completion->wr_id), completion->byte_len));
    return frame;
}

/* Takes the next frame, if one comes within the time. */
static void take(struct raw *raw, struct heard *heard, int limit_ms)
{
    struct ibv_wc completion;
    heard->type = 0;
    for (int i = 0; i < limit_ms;) {
        if (ibv_poll_cq(raw->cq, 1, &completion) == 0) {
            pause_ms(1);
            i++;
            continue;
        }
        assert_int_equal(completion.status, IBV_WC_SUCCESS);
        if ((completion.opcode & IBV_WC_RECV) == 0)
            continue;
        struct rdma_frame frame = frame_of(raw, &completion);
        heard->type = frame.type;
        heard->bytes += frame.type == RDMA_FRAME_DATA ? frame.length : 0;
        heard->frames++;
        return;
    }
}

/* A channel whose client has so many receives. */
static void open_channel(struct raw *raw, enum rdma_mode mode, uint32_t credits)
{
    raw_open_device(raw, mode);
    raw->ours.credits = credits;
    raw_post_receives(raw, (int)credits);
    redisReply *reply = raw_ask(raw, NULL, NULL);
    raw_take_answer(raw, reply);
    freeReplyObject(reply);
    raw_begin(raw);
}

/* ---- the last replies ---- */

static void replies_fill_the_buffers(enum rdma_mode mode)
{
    static char value[VALUE_BYTES];
    struct raw raw;
    struct heard heard = {.bytes = 0};
    char commands[16 * VALUES] = "";
    uint32_t slot = 0;
    redisContext *tcp = dial();
    freeReplyObject(redisCommand(tcp, "SET end %b", value, sizeof value));
    for (int i = 0; i < VALUES; i++)
        strcat(commands, "GET end\r\n");
    strcat(commands, "QUIT\r\n");
    open_channel(&raw, mode, RECEIVES);
    tell(&raw, &slot, RDMA_FRAME_DATA, 0, commands);
    do
        take(&raw, &heard, 10000);
    while (heard.type == RDMA_FRAME_DATA || heard.type == RDMA_FRAME_CREDIT);
    assert_int_equal(heard.type, RDMA_FRAME_END);
    assert_int_equal(heard.bytes, REPLY_BYTES);
    raw_assert_closed(&raw);
    raw_free(&raw);
    await_figure(tcp, "rdma_channels", 0);
    freeReplyObject(redisCommand(tcp, "DEL end"));
    redisFree(tcp);
}

static void replies_that_fill_the_buffers(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++)
        for (int mode = 0; mode < RDMA_MODE_COUNT; mode++)
            replies_fill_the_buffers((enum rdma_mode)mode);
}

/* ---- without credits ---- */

/* The client has used up what the server may send, the last credit for a CREDIT, and returns none;
 * then it is killed. */
static long long kill_without_credits(struct raw *raw, enum rdma_mode mode, uint32_t *slot,
                                      redisContext *tcp)
{
    struct heard heard = {.bytes = 0};
    open_channel(raw, mode, 4);
    for (int i = 0; i < 8; i++) {
        tell(raw, slot, RDMA_FRAME_DATA, 0, "PING\r\n");
        pause_ms(50);
    }
    while (heard.frames < 4) {
        take(raw, &heard, 5000);
        assert_int_not_equal(heard.type, 0);
    }
    assert_int_equal(heard.type, RDMA_FRAME_CREDIT);
    freeReplyObject(redisCommand(tcp, "CLIENT KILL TYPE normal SKIPME yes"));
    pause_ms(200);
    assert_int_equal(figure(tcp, "rdma_channels"), 1);
    return figure(tcp, "rdma_breaches");
}

static void a_late_credit(void **state)
{
    (void)state;
    redisContext *tcp = dial();
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++) {
        struct raw raw;
        struct heard heard = {.bytes = 0};
        uint32_t slot = 0;
        long long breaches = kill_without_credits(&raw, (enum rdma_mode)mode, &slot, tcp);
        raw_post_receives(&raw, 1);
        tell(&raw, &slot, RDMA_FRAME_CREDIT, 1, "");
        take(&raw, &heard, 5000);
        assert_int_equal(heard.type, RDMA_FRAME_END);
        raw_assert_closed(&raw);
        assert_int_equal(figure(tcp, "rdma_breaches"), breaches);
        raw_free(&raw);
        await_figure(tcp, "rdma_channels", 0);
    }
    redisFree(tcp);
}

static void no_credit(void **state)
{
    (void)state;
    struct raw raw;
    uint32_t slot = 0;
    redisContext *tcp = dial();
    kill_without_credits(&raw, RDMA_MODE_SEND, &slot, tcp);
    for (int i = 0; i < 16 && figure(tcp, "rdma_channels") > 0; i++)
        pause_ms(1000);
    assert_int_equal(figure(tcp, "rdma_channels"), 0);
    raw_assert_closed(&raw);
    raw_free(&raw);
    redisFree(tcp);
}

static void no_client(void **state)
{
    (void)state;
    struct raw raw;
    uint32_t slot = 0;
    redisContext *tcp = dial();
    kill_without_credits(&raw, RDMA_MODE_SEND, &slot, tcp);
    raw_free(&raw);
    await_figure(tcp, "rdma_channels", 0);
    redisFree(tcp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_that_fill_the_buffers),
        cmocka_unit_test(a_late_credit),
        cmocka_unit_test(no_credit),
        cmocka_unit_test(no_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
