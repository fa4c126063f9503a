#include "tests/rdma/raw.h"

#include <arpa/inet.h>
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

#define EXCHANGED 100000

void pause_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

redisContext *dial(void)
{
    redisContext *tcp = redisConnect(getenv("VELLUM_HOST"), atoi(getenv("VELLUM_PORT")));
    assert_non_null(tcp);
    assert_int_equal(tcp->err, 0);
    struct timeval limit = {.tv_sec = 10};
    redisSetTimeout(tcp, limit);
    return tcp;
}

struct vellum *connect_neighbour(enum rdma_mode mode)
{
    struct vellum_options options = {.host = getenv("VELLUM_HOST"),
                                     .port = atoi(getenv("VELLUM_PORT")),
                                     .rdma = VELLUM_RDMA_ONLY,
                                     .mode = mode == RDMA_MODE_WRITE ? VELLUM_RDMA_WRITE
                                                                     : VELLUM_RDMA_SEND,
                                     .timeout_ms = 20000};
    struct vellum *neighbour = vellum_connect(&options);
    assert_non_null(neighbour);
    assert_null(vellum_error(neighbour));
    return neighbour;
}

void exchange(struct vellum *from, struct vellum *to)
{
    static char value[EXCHANGED];
    memset(value, 'v', sizeof value);
    freeReplyObject(vellum_command(from, "SET exchanged %b", value, sizeof value));
    redisReply *reply = vellum_command(to, "GET exchanged");
    assert_non_null(reply);
    assert_int_equal(reply->len, sizeof value);
    assert_memory_equal(reply->str, value, sizeof value);
    freeReplyObject(reply);
}

char *raw_received(const struct raw *raw, uint64_t number)
{
    return raw->memory + MEMORY / 2 + number * FRAME;
}

static void make_queue_pair(struct raw *raw)
{
    struct ibv_qp_init_attr attributes = {
        .cap = {.max_send_wr = 128, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1}};
    raw->cq = ibv_create_cq(raw->device.context, 256, NULL, NULL, 0);
    assert_non_null(raw->cq);
    attributes.send_cq = attributes.recv_cq = raw->cq;
    raw->qp =
        rdma_qp_make(&raw->device, &attributes, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    assert_non_null(raw->qp);
    raw->memory = calloc(1, MEMORY);
    raw->mr = ibv_reg_mr(raw->device.pd, raw->memory, MEMORY,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    assert_non_null(raw->mr);
    rdma_qp_describe(&raw->device, raw->qp, 77, &raw->ours);
    raw->ours.frame_bytes = FRAME;
    raw->ours.credits = RECEIVES;
    raw->ours.ring = (uintptr_t)raw_received(raw, 0);
    raw->ours.ring_key = raw->mr->rkey;
}

void raw_post_receives(struct raw *raw, int count)
{
    for (int i = 0; i < count; i++) {
        struct ibv_sge piece = {.addr = (uintptr_t)raw_received(raw, (uint64_t)i),
                                .length = FRAME,
                                .lkey = raw->mr->lkey};
        struct ibv_recv_wr *bad, request = {.wr_id = (uint64_t)i, .sg_list = &piece, .num_sge = 1};
        assert_int_equal(ibv_post_recv(raw->qp, &request, &bad), 0);
    }
}

void raw_send_question(struct raw *raw, const char *name, const char *value)
{
    char values[RDMA_END_ATTRIBUTES][RDMA_END_TEXT_MAX];
    const char *words[4 + 2 * RDMA_END_ATTRIBUTES] = {"RDMA", "CONNECT", "1",
                                                      rdma_mode_name(raw->ours.mode)};
    int count = 4, done = 0;
    for (uint32_t i = 0; i < rdma_end_attributes(&raw->ours); i++) {
        words[count] = rdma_end_print(&raw->ours, i, values[i]);
        words[count + 1] = name != NULL && strcmp(words[count], name) == 0 ? value : values[i];
        count += 2;
    }
    assert_int_equal(redisAppendCommandArgv(raw->tcp, count, words, NULL), REDIS_OK);
    while (!done)
        assert_int_equal(redisBufferWrite(raw->tcp, &done), REDIS_OK);
}

redisReply *raw_ask(struct raw *raw, const char *name, const char *value)
{
    void *reply = NULL;
    raw_send_question(raw, name, value);
    assert_int_equal(redisGetReply(raw->tcp, &reply), REDIS_OK);
    return reply;
}

void raw_gid_of(const char *ip, uint8_t gid[16])
{
    const uint8_t mapped[16] = {[10] = 0xff, 0xff};
    memcpy(gid, mapped, sizeof mapped);
    if (strchr(ip, ':') != NULL)
        assert_int_equal(inet_pton(AF_INET6, ip, gid), 1);
    else
        assert_int_equal(inet_pton(AF_INET, ip, gid + 12), 1);
}

void raw_open_end(struct raw *raw, enum rdma_mode mode, const char *ip)
{
    char message[RDMA_MESSAGE_MAX];
    uint8_t address[16];
    raw_gid_of(ip, address);
    struct rdma_choice choice = {.gid_index = -1, .address = address};
    *raw = (struct raw){.ours.mode = mode, .theirs.mode = mode};
    assert_true(rdma_device_open(&raw->device, &choice, message));
    make_queue_pair(raw);
}

void raw_open_device(struct raw *raw, enum rdma_mode mode)
{
    raw_open_end(raw, mode, getenv("VELLUM_PEER"));
    raw->tcp = dial();
}

void raw_take_answer(struct raw *raw, const redisReply *answer)
{
    assert_int_equal(answer->type, REDIS_REPLY_ARRAY);
    for (size_t i = 0; i + 1 < answer->elements; i += 2) {
        const redisReply *name = answer->element[i], *value = answer->element[i + 1];
        if (value->type == REDIS_REPLY_STRING)
            assert_true(rdma_end_read(&raw->theirs, name->str, name->len, value->str, value->len));
    }
}

void raw_begin(struct raw *raw)
{
    assert_int_equal(
        rdma_qp_connect(&raw->device, raw->qp, &raw->ours, &raw->theirs, RDMA_USUAL_RNR_TIMER), 0);
}

void raw_connect_by(struct raw *raw, enum rdma_mode mode, int receives)
{
    raw_open_device(raw, mode);
    raw_post_receives(raw, receives);
    redisReply *reply = raw_ask(raw, NULL, NULL);
    raw_take_answer(raw, reply);
    freeReplyObject(reply);
    raw_begin(raw);
}

void raw_connect(struct raw *raw, int receives)
{
    raw_connect_by(raw, RDMA_MODE_SEND, receives);
}

void raw_free(struct raw *raw)
{
    if (raw->tcp != NULL)
        redisFree(raw->tcp);
    ibv_destroy_qp(raw->qp);
    ibv_destroy_cq(raw->cq);
    ibv_dereg_mr(raw->mr);
    free(raw->memory);
    rdma_device_close(&raw->device);
}

void raw_post_word(struct raw *raw, const void *message, size_t len, enum ibv_wr_opcode opcode,
                   uint64_t remote, uint32_t rkey, uint32_t word)
{
    char *memory = raw->memory + raw->posted++ % 8 * 16384;
    memcpy(memory, message, len);
    struct ibv_sge piece = {
        .addr = (uintptr_t)memory, .length = (uint32_t)len, .lkey = raw->mr->lkey};
    struct ibv_send_wr *bad, request = {.sg_list = &piece,
                                        .num_sge = 1,
                                        .opcode = opcode,
                                        .imm_data = htobe32(word),
                                        .send_flags = IBV_SEND_SIGNALED};
    request.wr.rdma.remote_addr = remote;
    request.wr.rdma.rkey = rkey;
    assert_int_equal(ibv_post_send(raw->qp, &request, &bad), 0);
}

void raw_post(struct raw *raw, const void *message, size_t len, enum ibv_wr_opcode opcode,
              uint64_t remote, uint32_t rkey)
{
    raw_post_word(raw, message, len, opcode, remote, rkey, UINT32_MAX);
}

void raw_write_frame(struct raw *raw, uint32_t slot, uint32_t word, const void *bytes, size_t len)
{
    raw_post_word(raw, bytes, len, IBV_WR_RDMA_WRITE_WITH_IMM,
                  raw->theirs.ring + slot * raw->theirs.frame_bytes, raw->theirs.ring_key, word);
}

void raw_send_frame(struct raw *raw, int type, int reserved, uint32_t credits, uint32_t length,
                    size_t payload)
{
    static char message[8 + 8192];
    message[0] = (char)type;
    message[1] = (char)reserved;
    message[2] = (char)credits;
    message[3] = (char)(credits >> 8);
    memcpy(message + 4, &length, 4);
    memset(message + 8, '\n', sizeof message - 8);
    raw_post(raw, message, 8 + payload, IBV_WR_SEND, 0, 0);
}

void raw_assert_closed(struct raw *raw)
{
    char byte;
    ssize_t got = read(raw->tcp->fd, &byte, 1);
    if (got != 0 && (got > 0 || errno != ECONNRESET))
        fail_msg("not closed: %zd, %s", got, strerror(errno));
}

long long figure(redisContext *tcp, const char *name)
{
    redisReply *reply = redisCommand(tcp, "INFO everything");
    assert_non_null(reply);
    const char *at = strstr(reply->str, name);
    assert_non_null(at);
    long long value = atoll(at + strlen(name) + 1);
    freeReplyObject(reply);
    return value;
}

void await_figure(redisContext *tcp, const char *name, long long wanted)
{
    for (int i = 0; i < 100 && figure(tcp, name) != wanted; i++)
        pause_ms(50);
    assert_int_equal(figure(tcp, name), wanted);
}
