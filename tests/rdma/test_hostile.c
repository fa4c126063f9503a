/*
 * Clients that violate protocol/RDMA.md, with verbs of their own: each is closed, and no other
 * client is affected.
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/rdma/raw.h"

static void nobody_is_left(void)
{
    redisContext *tcp = dial();
    await_figure(tcp, "rdma_channels", 0);
    redisFree(tcp);
}

static void is_unharmed(struct vellum *neighbour)
{
    for (int i = 0; i < 20; i++)
        freeReplyObject(vellum_command(neighbour, "ECHO %d", i));
    assert_null(vellum_error(neighbour));
}

/* What was posted ends, and not well. */
static void assert_refused(struct raw *raw)
{
    struct ibv_wc completion;
    int got = 0;
    for (int i = 0; i < 200 && got == 0; i++) {
        got = ibv_poll_cq(raw->cq, 1, &completion);
        pause_ms(10);
    }
    assert_int_equal(got, 1);
    assert_int_not_equal(completion.status, IBV_WC_SUCCESS);
}

/* In mode send; `last` is its last byte, a part of the flags. */
static void send_reference(struct raw *raw, enum rdma_frame_type type,
                           const struct rdma_reference *reference, int last)
{
    char message[RDMA_HEADER_BYTES + RDMA_REFERENCE_BYTES];
    struct rdma_frame frame = {.type = type, .length = RDMA_REFERENCE_BYTES};
    rdma_frame_write(message, &frame);
    rdma_reference_write(message + RDMA_HEADER_BYTES, reference);
    message[sizeof message - 1] = (char)last;
    raw_post(raw, message, sizeof message, IBV_WR_SEND, 0, 0);
}

/* ---- cases ---- */

static void lies_in_frames(void **state)
{
    (void)state;
    struct {
        int type, reserved;
        uint32_t credits, length;
        size_t payload;
    } lies[] = {
        {1, 0, 0, 0, 0},           /* DATA without bytes */
        {1, 0, 0, 100, 10},        /* longer than the message */
        {1, 0, 0, UINT32_MAX, 10}, /* beyond all bounds */
        {1, 0, 0, UINT32_MAX - 7, 0},
        {1, 0, 0, 5, 10},  /* shorter */
        {1, 1, 0, 10, 10}, /* reserved byte */
        {0, 0, 0, 10, 10}, /* types that do not exist */
        {7, 0, 0, 0, 0},   /* the server's own */
        {255, 0, 0, 10, 10},
        {1, 0, 1, 10, 10}, /* credits for nothing */
        {2, 0, 0xffff, 0, 0},
        {5, 0, 0, 16, 16}, /* the server's own */
        {5, 0, 0, 8, 8},
        {4, 0, 0, 8, 8}, /* half a grant */
        {6, 0, 0, 0, 0},
        {3, 0, 0, 8, 8},       /* half a reference */
        {1, 0, 0, 8000, 8000}, /* a message longer than the receive */
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct raw raw;
        raw_connect(&raw, RECEIVES);
        if (i % 2 == 0) /* the channel is open already, or not yet */
            raw_send_frame(&raw, 2, 0, 0, 0, 0);
        raw_send_frame(&raw, lies[i].type, lies[i].reserved, lies[i].credits, lies[i].length,
                       lies[i].payload);
        raw_assert_closed(&raw);
        raw_free(&raw);
    }
    nobody_is_left();
}

static void no_whole_header(void **state)
{
    (void)state;
    struct raw raw;
    for (size_t len = 0; len < 8; len++) {
        raw_connect(&raw, RECEIVES);
        raw_post(&raw, "\1\0\0\0\0\0\0\0", len, IBV_WR_SEND, 0, 0);
        raw_assert_closed(&raw);
        raw_free(&raw);
    }
}

#define FLOOD 80 /* more than the receives of eight channels */

/* Holds the server's one worker, which could give credits back between two frames of a flood. */
static void put_to_sleep(redisContext *tcp)
{
    int done = 0;
    assert_int_equal(redisAppendCommand(tcp, "DEBUG SLEEP 0.5"), REDIS_OK);
    while (!done)
        assert_int_equal(redisBufferWrite(tcp, &done), REDIS_OK);
    pause_ms(100);
}

static void await_waking(redisContext *tcp)
{
    redisReply *reply;
    assert_int_equal(redisGetReply(tcp, (void **)&reply), REDIS_OK);
    assert_int_equal(reply->type, REDIS_REPLY_STATUS);
    freeReplyObject(reply);
}

static void assert_is_answered(struct vellum *neighbour)
{
    redisReply *reply = NULL;
    assert_int_equal(vellum_get_reply(neighbour, &reply), REDIS_OK);
    assert_string_equal(reply->str, "PONG");
    freeReplyObject(reply);
}

/* The neighbour shares the receives that the flood uses up, and sends while there are none. */
static void more_than_its_credits(void **state)
{
    (void)state;
    struct vellum *neighbour = connect_neighbour(RDMA_MODE_SEND);
    for (int round = 0; round < 3; round++) {
        struct raw raw;
        raw_connect(&raw, RECEIVES);
        long long breaches;
        redisContext *tcp = dial();
        breaches = figure(tcp, "rdma_breaches");
        put_to_sleep(tcp);
        for (int i = 0; i < FLOOD; i++)
            raw_send_frame(&raw, 1, 0, 0, 1, 1);
        assert_int_equal(vellum_append(neighbour, "PING"), REDIS_OK);
        assert_int_equal(vellum_flush(neighbour), REDIS_OK);
        await_waking(tcp);
        assert_is_answered(neighbour);
        is_unharmed(neighbour);
        raw_assert_closed(&raw);
        assert_true(figure(tcp, "rdma_breaches") > breaches);
        raw_free(&raw);
        await_figure(tcp, "rdma_channels", 1);
        redisFree(tcp);
    }
    vellum_free(neighbour);
}

/* Seven would be for ever. Where acknowledgements are waited for as well, as by Soft-RoCE, a queue
 * pair without end is closed by that: so its attributes are looked at. */
static void assert_retries_end(const struct raw *raw)
{
    struct ibv_qp_attr attributes;
    struct ibv_qp_init_attr initial;
    assert_int_equal(ibv_query_qp(raw->qp, &attributes,
                                  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT, &initial),
                     0);
    assert_in_range(attributes.retry_cnt, 1, 6);
    assert_in_range(attributes.rnr_retry, 1, 6);
    assert_in_range(attributes.timeout, 1, 17); /* half a second; 0 is for ever */
}

/* Replies to a client that has posted no receives, as it said it had. */
static void no_receives_posted(void **state)
{
    (void)state;
    static const char ping[] = "\1\0\0\0\6\0\0\0PING\r\n";
    for (int i = 0; i < 2; i++) {
        struct raw raw;
        raw_connect_by(&raw, i == 0 ? RDMA_MODE_SEND : RDMA_MODE_WRITE, 0);
        assert_retries_end(&raw); /* the server's are set by the same function */
        if (i == 0)
            raw_post(&raw, ping, sizeof ping - 1, IBV_WR_SEND, 0, 0);
        else
            raw_write_frame(&raw, 0, WORD(1, 0, 6), ping + RDMA_HEADER_BYTES, 6);
        raw_assert_closed(&raw);
        raw_free(&raw);
    }
    nobody_is_left();
}

/* The server's memory is out of reach, whatever key is guessed. */
static void reads_and_writes_what_it_should_not(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        struct raw raw;
        raw_connect(&raw, RECEIVES);
        enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
                                        IBV_WR_RDMA_WRITE_WITH_IMM};
        raw_post(&raw, "xxxxxxxx", i == 5 ? 0 : 8, opcodes[i % 3], (uintptr_t)raw.memory,
                 raw.mr->rkey + i / 3);
        assert_refused(&raw);
        raw_free(&raw);
    }
    nobody_is_left();
}

/* References to memory that is not the client's to give, or none. */
static void lies_in_references(void **state)
{
    (void)state;
    static const struct rdma_reference lies[] = {
        {.address = 4096, .length = 100, .rkey = 12345},    {.address = 0, .length = 0, .rkey = 1},
        {.address = UINT64_MAX - 5, .length = 100},         {.address = 1, .length = UINT64_MAX},
        {.address = 4096, .length = 1ull << 40, .rkey = 7},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct raw raw;
        raw_connect(&raw, RECEIVES);
        send_reference(&raw, RDMA_FRAME_PULL, &lies[i], 0);
        raw_assert_closed(&raw);
        raw_free(&raw);
    }
    nobody_is_left();
}

#define UNREAD 6 /* more than the parts that the server holds at a time */

/* Commands by reference, of which the first waits: what was fetched of the others is not read. */
static void refer_to_unread(struct raw *raw)
{
    raw_connect(raw, RECEIVES);
    char *text = raw->memory + MEMORY / 16, *at = text;
    at += sprintf(at, "BLPOP unread:list 0\r\n");
    for (int i = 0; i < 240; i++) /* at first as many as the server takes of them, then long ones */
        at += sprintf(at, "EXISTS %0*d\r\n", i < 200 ? 1 : 2000, i);
    at += sprintf(at, "INCR unread\r\n");
    struct rdma_reference reference = {
        .address = (uintptr_t)text, .length = (uint64_t)(at - text), .rkey = raw->mr->rkey};
    send_reference(raw, RDMA_FRAME_PULL, &reference, 0);
}

/* Others' references are read meanwhile, and theirs to the end when they may go on. */
static void references_that_are_not_read(void **state)
{
    (void)state;
    struct raw unread[UNREAD];
    static char value[100] = "x";
    redisContext *tcp = dial();
    struct vellum *neighbour = connect_neighbour(RDMA_MODE_SEND);
    struct vellum_memory *memory = vellum_register(neighbour, value, sizeof value);
    assert_non_null(memory);
    freeReplyObject(redisCommand(tcp, "DEL unread"));
    for (int i = 0; i < UNREAD; i++)
        refer_to_unread(&unread[i]);
    await_figure(tcp, "blocked_clients", UNREAD);
    freeReplyObject(vellum_set_from(neighbour, "short", 5, memory, 0, sizeof value));
    assert_null(vellum_error(neighbour));
    for (int i = 0; i < UNREAD; i++)
        freeReplyObject(redisCommand(tcp, "RPUSH unread:list x"));
    redisReply *reply = NULL;
    for (int i = 0; i < 100 && (reply == NULL || strcmp(reply->str, "6") != 0); i++) {
        freeReplyObject(reply);
        reply = redisCommand(tcp, "GETRANGE unread 0 -1");
        pause_ms(50);
    }
    assert_string_equal(reply->str, "6");
    freeReplyObject(reply);
    for (int i = 0; i < UNREAD; i++)
        raw_free(&unread[i]);
    refer_to_unread(&unread[0]); /* and goes */
    await_figure(tcp, "blocked_clients", 1);
    raw_free(&unread[0]);
    await_figure(tcp, "rdma_channels", 1);
    for (int i = 0; i < UNREAD; i++)
        freeReplyObject(vellum_set_from(neighbour, "short", 5, memory, 0, sizeof value));
    assert_null(vellum_error(neighbour));
    vellum_unregister(memory);
    vellum_free(neighbour);
    await_figure(tcp, "rdma_channels", 0);
    redisFree(tcp);
}

/* A key that is said to be a window's, and is not: the server cannot end it. */
static void keys_that_cannot_be_ended(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct raw raw;
        struct rdma_reference reference = {.length = 6, .is_window = true};
        raw_connect(&raw, RECEIVES);
        memcpy(raw.memory + MEMORY / 4, "PING\r\n", 6);
        reference.address = (uintptr_t)(raw.memory + MEMORY / 4);
        reference.rkey = raw.mr->rkey;
        send_reference(&raw, RDMA_FRAME_PULL, &reference, i); /* with a flag that does not exist */
        raw_assert_closed(&raw);
        raw_free(&raw);
    }
    nobody_is_left();
}

/* Memory to be written to that is not the client's to give, or none. */
static void lies_in_grants(void **state)
{
    (void)state;
    static const struct rdma_reference lies[] = {
        {.address = 0, .length = 0, .rkey = 1},
        {.address = UINT64_MAX - 5, .length = 100},
        {.address = 1, .length = UINT64_MAX},
        {.address = 4096, .length = 1ull << 40, .rkey = 7},
        {.address = 4096, .length = 1ull << 40, .rkey = 12345},
    };
    static char value[100000];
    redisContext *tcp = dial();
    freeReplyObject(redisCommand(tcp, "SET long %b", value, sizeof value));
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct raw raw;
        raw_connect(&raw, RECEIVES);
        send_reference(&raw, RDMA_FRAME_GRANT, &lies[i], 0);
        if (i > 2) /* these are believed until they are used: or credits are all that it gets */
            raw_post(&raw, "\1\0\0\0\012\0\0\0GET long\r\n", 18, IBV_WR_SEND, 0, 0);
        if (i <= 2 || figure(tcp, "rdma_registered_bytes") > 0)
            raw_assert_closed(&raw);
        raw_free(&raw);
    }
    await_figure(tcp, "rdma_channels", 0);
    redisFree(tcp);
}

static void bad_attributes(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"GID", ""},         {"GID", "00112233445566778899aabbccddeeff"},
        {"GID", "zz"},       {"QPN", "0"},
        {"QPN", "16777216"}, {"QPN", "-1"},
        {"PSN", "99999999"}, {"MTU", "1000"},
        {"MTU", "128"},      {"FRAME", "0"},
        {"FRAME", "65537"},  {"CREDITS", "3"},
        {"CREDITS", "1025"}, {"CREDITS", ""},
        {"LID", "65536"},    {"CREDITS", "4294967300"},
    };
    struct raw raw;
    raw_open_device(&raw, RDMA_MODE_SEND);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        redisReply *reply = raw_ask(&raw, bad[i][0], bad[i][1]);
        assert_int_equal(reply->type, REDIS_REPLY_ERROR);
        freeReplyObject(reply);
    }
    redisReply *reply = raw_ask(&raw, "GID", "00000000000000000000ffff0a090001"); /* another's */
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    assert_non_null(strstr(reply->str, "rdma-check-peer"));
    freeReplyObject(reply);
    freeReplyObject(redisCommand(raw.tcp, "CONFIG SET rdma-check-peer no"));
    reply = raw_ask(&raw, "GID", "fd000008000000000000000000000001");
    assert_non_null(strstr(reply->str, "rdma-gid-index"));
    freeReplyObject(reply);
    freeReplyObject(redisCommand(raw.tcp, "CONFIG SET rdma-check-peer yes"));
    reply = redisCommand(raw.tcp, "RDMA CONNECT 2 send GID x");
    assert_non_null(strstr(reply->str, "version offered here is 1"));
    freeReplyObject(reply);
    reply = redisCommand(raw.tcp, "RDMA CONNECT 1 herd GID x");
    assert_non_null(strstr(reply->str, "modes offered here are send and write"));
    freeReplyObject(reply);
    raw.ours.mode = RDMA_MODE_WRITE;
    static const char *const bad_rings[][2] = {
        {"RING", "18446744073709551616"}, {"RING", "-1"}, {"RING", ""}, {"RKEY", "4294967296"}};
    for (size_t i = 0; i < sizeof bad_rings / sizeof *bad_rings; i++) {
        reply = raw_ask(&raw, bad_rings[i][0], bad_rings[i][1]);
        assert_int_equal(reply->type, REDIS_REPLY_ERROR);
        freeReplyObject(reply);
    }
    reply = redisCommand(raw.tcp, "PING");
    assert_string_equal(reply->str, "PONG");
    freeReplyObject(reply);
    raw_free(&raw);
}

static void not_before_auth(void **state)
{
    (void)state;
    struct raw raw;
    redisContext *tcp = dial();
    freeReplyObject(redisCommand(tcp, "CONFIG SET requirepass secret"));
    raw_open_device(&raw, RDMA_MODE_SEND);
    redisReply *reply = redisCommand(raw.tcp, "RDMA CONNECT 1 send");
    assert_non_null(strstr(reply->str, "NOAUTH"));
    freeReplyObject(reply);
    reply = raw_ask(&raw, NULL, NULL);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR); /* too long for a stranger */
    freeReplyObject(reply);
    freeReplyObject(redisCommand(tcp, "AUTH secret"));
    freeReplyObject(redisCommand(tcp, "CONFIG SET requirepass %s", ""));
    assert_int_equal(figure(tcp, "rdma_channels"), 0);
    raw_free(&raw);
    redisFree(tcp);
}

/* Goes on by TCP instead of opening the channel: the server takes the channel back. */
static void chooses_tcp(void **state)
{
    (void)state;
    struct raw raw;
    redisContext *tcp = dial();
    raw_connect(&raw, RECEIVES);
    assert_int_equal(figure(tcp, "rdma_channels"), 1);
    redisReply *reply = raw_ask(&raw, NULL, NULL);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY); /* a second one: the first was withdrawn */
    freeReplyObject(reply);
    reply = redisCommand(raw.tcp, "PING");
    assert_string_equal(reply->str, "PONG");
    freeReplyObject(reply);
    await_figure(tcp, "rdma_channels", 0);
    raw_free(&raw);
    redisFree(tcp);
}

/* ---- mode write ---- */

static void lies_in_words(void **state)
{
    (void)state;
    static const uint32_t lies[] = {
        WORD(1, 0, 0),                                      /* DATA without bytes */
        WORD(1, 0, 4097),                                   /* longer than a slot */
        WORD(1, 0, 0x1ffff), WORD(0, 0, 5),                 /* types that do not exist */
        WORD(7, 0, 0),       WORD(15, 0, 5), WORD(6, 0, 0), /* the server's own */
        WORD(2, 0, 5),                                      /* CREDIT with bytes */
        WORD(2, 1, 0),                                      /* credits for nothing */
        WORD(2, 2047, 0),    WORD(3, 0, 5),                 /* half a reference */
        WORD(3, 0, 24), /* a reference to nothing: the slot is empty */
        UINT32_MAX,
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct raw raw;
        raw_connect_by(&raw, RDMA_MODE_WRITE, RECEIVES);
        if (i % 2 == 0) /* the channel is open already, or not yet */
            raw_write_frame(&raw, 0, WORD(2, 0, 0), "", 0);
        raw_write_frame(&raw, 0, lies[i], "", 0);
        raw_assert_closed(&raw);
        raw_free(&raw);
    }
    nobody_is_left();
}

/* A window belongs to one client: no other client can write through it, and no write can go past
 * it. */
static void writes_beside_the_ring(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct raw raw, other;
        raw_connect_by(&other, RDMA_MODE_WRITE, RECEIVES);
        raw_connect_by(&raw, RDMA_MODE_WRITE, RECEIVES);
        uint64_t size = (uint64_t)raw.theirs.credits * raw.theirs.frame_bytes;
        enum ibv_wr_opcode opcode = i == 5 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE_WITH_IMM;
        uint64_t address = i == 0   ? raw.theirs.ring - 1
                           : i == 1 ? raw.theirs.ring + size - 7
                           : i == 2 ? UINT64_MAX - 3
                           : i == 3 ? other.theirs.ring
                                    : raw.theirs.ring;
        uint32_t key = i == 3   ? other.theirs.ring_key
                       : i == 4 ? raw.theirs.ring_key - 1
                                : raw.theirs.ring_key;
        raw_post_word(&raw, "PING\r\n\r\n", 8, opcode, address, key, WORD(1, 0, 8));
        assert_refused(&raw);
        raw_write_frame(&other, 0, WORD(1, 0, 6), "PING\r\n", 6); /* unharmed */
        struct ibv_wc completion;
        while (ibv_poll_cq(other.cq, 1, &completion) == 0 ||
               completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM)
            pause_ms(1);
        assert_memory_equal(other.memory + MEMORY / 2, "+PONG\r\n", 7);
        raw_free(&raw);
        raw_free(&other);
    }
    nobody_is_left();
}

static void messages_where_words_are_due(void **state)
{
    (void)state;
    struct raw raw;
    for (int i = 0; i < 2; i++) {
        raw_connect_by(&raw, RDMA_MODE_WRITE, RECEIVES);
        if (i == 0) {
            raw_write_frame(&raw, 0, WORD(2, 0, 0), "", 0);
            raw_send_frame(&raw, 2, 0, 0, 0, 0);
        } else {
            raw_post(&raw, "", 0, IBV_WR_SEND, 0, 0);
        }
        raw_assert_closed(&raw);
        raw_free(&raw);
    }
}

static void flood_with_words(bool flood)
{
    struct vellum *neighbour = connect_neighbour(RDMA_MODE_WRITE);
    redisContext *tcp = dial();
    struct raw raw;
    raw_connect_by(&raw, RDMA_MODE_WRITE, RECEIVES);
    long long frames = figure(tcp, "rdma_frames_in"), breaches = figure(tcp, "rdma_breaches");
    for (uint32_t i = 0; i < 3; i++) /* are read; their credits are not told of yet */
        raw_write_frame(&raw, i, WORD(1, 0, 1), "\n", 1);
    await_figure(tcp, "rdma_frames_in", frames + 3);
    put_to_sleep(tcp);
    for (uint32_t i = 3; i < (flood ? 60 : 11); i++) /* for 8 there are receives, not credits */
        raw_write_frame(&raw, i % 8, WORD(1, 0, 1), "\n", 1);
    await_waking(tcp);
    if (!flood)
        assert_true(figure(tcp, "rdma_breaches") > breaches);
    is_unharmed(neighbour);
    raw_assert_closed(&raw);
    raw_free(&raw);
    await_figure(tcp, "rdma_channels", 1);
    redisFree(tcp);
    vellum_free(neighbour);
}

static void more_words_than_credits(void **state)
{
    (void)state;
    flood_with_words(false);
    flood_with_words(true);
}

static void bytes_by_both_ways(void **state)
{
    (void)state;
    static const char ping[] = "\1\0\0\0\6\0\0\0PING\r\n";
    struct raw raw;
    raw_connect(&raw, RECEIVES);
    raw_post(&raw, ping, sizeof ping - 1, IBV_WR_SEND, 0, 0);
    struct ibv_wc completion;
    while (ibv_poll_cq(raw.cq, 1, &completion) == 0 || completion.opcode != IBV_WC_RECV)
        pause_ms(1);
    assert_memory_equal(raw.memory + MEMORY / 2 + 8, "+PONG\r\n", 7);
    assert_int_equal(write(raw.tcp->fd, "PING\r\n", 6), 6);
    raw_assert_closed(&raw);
    raw_free(&raw);
}

/* What lies in the ring changes while it is read: commands and references turn into others, and
 * nothing else happens. */
static void bytes_that_change(void **state)
{
    (void)state;
    static const char *const texts[] = {"PING\r\nPING\r\n", "*1\r\n$4\r\nPING",
                                        "GET a:b:c:d:", "\r\n*9\r\n$-7\r\n$$"};
    redisContext *tcp = dial();
    for (uint32_t i = 0; i < 12; i++) {
        struct raw raw;
        char payload[RDMA_REFERENCE_BYTES];
        struct rdma_reference reference = {.address = (uintptr_t)&raw, .length = 9};
        raw_connect_by(&raw, RDMA_MODE_WRITE, RECEIVES);
        rdma_reference_write(payload, &reference);
        for (uint32_t j = 0; j < 6; j++) {
            if (i % 3 == 2)
                raw_write_frame(&raw, j, WORD(3, 0, 24), payload, sizeof payload);
            else
                raw_write_frame(&raw, j, WORD(1, 0, 12), texts[(i + j) % 4], 12);
            for (uint32_t k = 0; k < 3; k++) /* without a word */
                raw_post(&raw, texts[(i + j + k) % 4], 12, IBV_WR_RDMA_WRITE,
                         raw.theirs.ring + j * raw.theirs.frame_bytes + k % 2 * 8,
                         raw.theirs.ring_key);
        }
        freeReplyObject(redisCommand(tcp, "PING"));
        assert_int_equal(tcp->err, 0);
        raw_free(&raw);
    }
    await_figure(tcp, "rdma_channels", 0);
    redisFree(tcp);
}

/* ---- unreachable addresses ---- */

#define DEAD 5
#define PINGS 300

static int by_size(const void *one, const void *other)
{
    long a = *(const long *)one, b = *(const long *)other;
    return (a > b) - (a < b);
}

static long p99_us(struct vellum *vellum)
{
    long took[PINGS];
    for (int i = 0; i < PINGS; i++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        redisReply *reply = vellum_command(vellum, "PING");
        clock_gettime(CLOCK_MONOTONIC, &to);
        assert_non_null(reply);
        freeReplyObject(reply);
        took[i] = (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
    }
    qsort(took, PINGS, sizeof *took, by_size);
    return took[PINGS * 99 / 100];
}

/* Each takes the device a second to find out: the neighbour notices nothing of it. */
static void nobody_at_the_address(void **state)
{
    (void)state;
    if (getenv("VELLUM_CABLE") == NULL)
        skip(); /* no address is known to be free */
    struct raw dead[DEAD];
    struct vellum *neighbour = connect_neighbour(RDMA_MODE_SEND);
    freeReplyObject(vellum_command(neighbour, "CONFIG SET rdma-check-peer no"));
    for (int i = 0; i < DEAD; i++) {
        raw_open_device(&dead[i], RDMA_MODE_SEND);
        raw_send_question(&dead[i], "GID", "00000000000000000000ffff0a09004d");
    }
    long p99 = p99_us(neighbour);
    if (p99 > 300000)
        fail_msg("the neighbour waits for %ld us", p99);
    for (int i = 0; i < DEAD; i++) {
        void *answer = NULL;
        assert_int_equal(redisGetReply(dead[i].tcp, &answer), REDIS_OK);
        assert_non_null(strstr(((redisReply *)answer)->str, "cannot be reached"));
        freeReplyObject(answer);
        raw_free(&dead[i]);
    }
    freeReplyObject(vellum_command(neighbour, "CONFIG SET rdma-check-peer yes"));
    vellum_free(neighbour);
}

#define VALUE 100000 /* longer than one takes at a time to send by itself */

/* Until references are read straight into pages, which are registered by and by. */
static void await_pages(redisContext *tcp)
{
    static char value[VALUE];
    struct vellum *vellum = connect_neighbour(RDMA_MODE_SEND);
    struct vellum_memory *memory = vellum_register(vellum, value, VALUE);
    assert_non_null(memory);
    long long pulled = figure(tcp, "rdma_pulled_bytes");
    for (int i = 0; i < 100 && figure(tcp, "rdma_pulled_bytes") < pulled + 3 * VALUE; i++)
        freeReplyObject(vellum_set_from(vellum, "kept", 4, memory, 0, VALUE));
    vellum_unregister(memory);
    vellum_free(vellum);
    await_figure(tcp, "rdma_channels", 0);
}

/* Half of a SET: the READs of what it refers to take as long as the cable. */
static void refer_to_value(struct raw *raw)
{
    static const char set[] = "\1\0\0\0\040\0\0\0*3\r\n$3\r\nSET\r\n$4\r\nkept\r\n$100000\r\n";
    struct rdma_reference reference = {
        .address = (uintptr_t)(raw->memory + MEMORY / 16), .length = VALUE, .rkey = raw->mr->rkey};
    raw_post(raw, set, sizeof set - 1, IBV_WR_SEND, 0, 0);
    send_reference(raw, RDMA_FRAME_PULL, &reference, 0);
}

/* Values that take pages now, while what was READ arrives. */
static void others_are_kept(redisContext *tcp)
{
    static char value[VALUE];
    memset(value, 'o', VALUE);
    for (int i = 0; i < 10; i++)
        freeReplyObject(redisCommand(tcp, "SET other:%d %b", i, value, (size_t)VALUE));
    pause_ms(1000);
    for (int i = 0; i < 10; i++) {
        redisReply *reply = redisCommand(tcp, "GET other:%d", i);
        assert_int_equal(reply->len, VALUE);
        assert_memory_equal(reply->str, value, VALUE);
        freeReplyObject(reply);
        freeReplyObject(redisCommand(tcp, "DEL other:%d", i));
    }
}

/* The job that destroys the queue pair queues behind address look-ups that time out. False: the
 * READ completed before the protocol violation, which was to overtake it. */
static bool is_caught_reading(redisContext *tcp)
{
    struct raw dead[DEAD], raw;
    raw_connect(&raw, RECEIVES);
    for (int i = 0; i < DEAD; i++)
        raw_open_device(&dead[i], RDMA_MODE_SEND);
    long long breaches = figure(tcp, "rdma_breaches");
    assert_int_equal(system("tc qdisc add dev vb root netem delay 400ms"), 0);
    for (int i = 0; i < DEAD; i++)
        raw_send_question(&dead[i], "GID", "00000000000000000000ffff0a09004d");
    refer_to_value(&raw);
    pause_ms(200);
    raw_send_frame(&raw, 9, 0, 0, 0, 0);
    for (int i = 0; i < 2000 && figure(tcp, "rdma_breaches") == breaches; i++)
        pause_ms(1);
    bool is_held = figure(tcp, "rdma_held_bytes") > 0;
    if (is_held)
        others_are_kept(tcp);
    assert_int_equal(system("tc qdisc del dev vb root"), 0);
    for (int i = 0; i < DEAD; i++)
        raw_free(&dead[i]);
    raw_free(&raw);
    await_figure(tcp, "rdma_channels", 0);
    await_figure(tcp, "rdma_held_bytes", 0);
    return is_held;
}

/* The connection is gone, but pages that READs fill must not be reused before the queue pair is
 * destroyed. */
static void pages_are_kept_for_the_device(void **state)
{
    (void)state;
    if (getenv("VELLUM_CABLE") == NULL)
        skip();
    redisContext *tcp = redisConnect("127.0.0.1", atoi(getenv("VELLUM_PORT")));
    bool is_caught = false;
    assert_int_equal(tcp->err, 0);
    await_pages(tcp);
    freeReplyObject(redisCommand(tcp, "CONFIG SET rdma-check-peer no"));
    for (int i = 0; i < 5 && !is_caught; i++)
        is_caught = is_caught_reading(tcp);
    freeReplyObject(redisCommand(tcp, "CONFIG SET rdma-check-peer yes"));
    redisFree(tcp);
    if (!is_caught)
        skip(); /* the machine is too busy for that */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_in_frames),
        cmocka_unit_test(no_whole_header),
        cmocka_unit_test(more_than_its_credits),
        cmocka_unit_test(no_receives_posted),
        cmocka_unit_test(reads_and_writes_what_it_should_not),
        cmocka_unit_test(lies_in_references),
        cmocka_unit_test(references_that_are_not_read),
        cmocka_unit_test(keys_that_cannot_be_ended),
        cmocka_unit_test(lies_in_grants),
        cmocka_unit_test(bad_attributes),
        cmocka_unit_test(not_before_auth),
        cmocka_unit_test(chooses_tcp),
        cmocka_unit_test(bytes_by_both_ways),
        cmocka_unit_test(lies_in_words),
        cmocka_unit_test(writes_beside_the_ring),
        cmocka_unit_test(messages_where_words_are_due),
        cmocka_unit_test(more_words_than_credits),
        cmocka_unit_test(bytes_that_change),
        cmocka_unit_test(nobody_at_the_address),
        cmocka_unit_test(pages_are_kept_for_the_device),
    };
    if (getenv("VELLUM_CASES") != NULL) /* a pattern: only these */
        cmocka_set_test_filter(getenv("VELLUM_CASES"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
