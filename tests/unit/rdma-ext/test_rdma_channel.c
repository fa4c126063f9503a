/*
 * A channel as its connection's transport: on a queue pair whose requests complete when the test
 * says, beside a TCP connection that the test plays.
 */
#include "rdma-ext/channel.h"
#include "rdma-ext/completion_loop.h"
#include "rdma-ext/failure.h"
#include "rdma-ext/page_registration.h"

#include "rdma-ext/jobs.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FRAME 4096
#define WINDOW 8

/* ---- in place of the rest ---- */

static struct {
    int sends, ended;
    bool is_end; /* the last frame was END */
    struct rdma_job *submitted;
} the;

/* Mode write: by the immediate word. */
static bool is_end_frame(const struct ibv_send_wr *request)
{
    if (request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        return be32toh(request->imm_data) >> 28 == RDMA_FRAME_END;
    return *(const char *)(uintptr_t)request->sg_list[0].addr == RDMA_FRAME_END;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
    (void)qp;
    (void)bad;
    for (; request != NULL; request = request->next) {
        the.sends++;
        the.is_end = is_end_frame(request);
    }
    return 0;
}

static struct ibv_context context = {.ops.post_send = post_send};
static struct ibv_qp qp = {.context = &context};
static struct rdma_service service;
static struct rdma_worker worker = {.service = &service};

void rdma_note_ready(struct rdma_channel *channel)
{
    channel->is_ready = true;
}

void rdma_note_touched(struct rdma_channel *channel)
{
    channel->is_touched = true;
}

static const char *received;

const char *rdma_received_frame(const struct rdma_worker *of, uint32_t buffer)
{
    (void)of;
    (void)buffer;
    return received;
}

void rdma_end_channel(struct rdma_channel *channel)
{
    assert_false(channel->is_gone);
    channel->is_gone = true;
    channel->transport = NULL;
    if (channel->tcp != NULL)
        channel->tcp->ops->close(channel->tcp);
    channel->tcp = NULL;
    the.ended++;
}

void rdma_break_off(struct rdma_channel *channel)
{
    rdma_channel_break(channel);
}

void rdma_submit(struct rdma_service *of, struct rdma_job *job)
{
    (void)of;
    the.submitted = job;
}

void rdma_job_await_end(struct rdma_service *of, struct rdma_job *job)
{
    (void)of;
    (void)job;
}

void rdma_key_ended(struct rdma_worker *of, uint32_t key)
{
    (void)of;
    (void)key;
}

bool rdma_pages_key(struct rdma_worker *of, const void *address, size_t len, uint32_t *lkey)
{
    (void)of;
    (void)address;
    (void)len;
    (void)lkey;
    return false;
}

/* ---- TCP ---- */

static struct {
    struct transport base;
    ssize_t next; /* what a read returns */
    unsigned wanted;
    bool has_ended, is_closed;
} tcp;

static ssize_t tcp_read(struct transport *transport, void *to, size_t size)
{
    (void)transport;
    if (tcp.next > 0)
        memset(to, 'x', size < (size_t)tcp.next ? size : (size_t)tcp.next);
    return tcp.next;
}

static bool tcp_has_ended(struct transport *transport)
{
    (void)transport;
    return tcp.has_ended;
}

static void tcp_want(struct transport *transport, unsigned ready)
{
    (void)transport;
    tcp.wanted = ready;
}

static void tcp_close(struct transport *transport)
{
    (void)transport;
    assert_false(tcp.is_closed);
    tcp.is_closed = true;
}

static const struct transport_ops tcp_ops = {
    .read = tcp_read, .has_ended = tcp_has_ended, .want = tcp_want, .close = tcp_close};

/* ---- a channel ---- */

static char buffers[4][FRAME];
static int reposted;

static void post_receive(struct rdma_link *link, uint32_t buffer)
{
    (void)link;
    (void)buffer;
    reposted++;
}

static struct rdma_channel *make(enum rdma_mode mode, uint32_t max_inline)
{
    struct rdma_end theirs = {.mode = mode, .frame_bytes = FRAME, .credits = WINDOW};
    struct rdma_channel *channel = calloc(1, sizeof *channel);
    assert_non_null(channel);
    channel->worker = &worker;
    channel->link =
        (struct rdma_link){.buffers = buffers[0],
                           .buffer_bytes = FRAME,
                           .buffer_count = 4,
                           .takes = RDMA_TAKES(RDMA_FRAME_DATA) | RDMA_TAKES(RDMA_FRAME_CREDIT),
                           .ring = buffers[0],
                           .slot_bytes = FRAME,
                           .post_receive = post_receive};
    rdma_link_begin(&channel->link, &qp, max_inline, WINDOW, &theirs);
    channel->qp = &qp;
    return channel;
}

/* The client returns so many credits. */
static void return_credits(struct rdma_channel *channel, uint32_t credits)
{
    static char message[RDMA_HEADER_BYTES];
    const struct rdma_frame frame = {.type = RDMA_FRAME_CREDIT, .credits = credits};
    struct ibv_wc completion = {.opcode = IBV_WC_RECV, .byte_len = sizeof message};
    rdma_frame_write(message, &frame);
    received = message;
    if (channel->link.mode == RDMA_MODE_WRITE) {
        completion.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
        completion.imm_data = htobe32(rdma_word_write(&frame));
    }
    rdma_channel_received(channel, &completion);
}

static struct transport *open_channel(struct rdma_channel *channel)
{
    struct transport *transport = rdma_channel_wrap(channel, &tcp.base);
    return_credits(channel, 0);
    assert_string_equal(transport->kind, "rdma");
    return transport;
}

/* What is written last fills the four buffers; then the connection is closed. */
static void close_behind(struct transport *transport, size_t len)
{
    static char bytes[4 * FRAME];
    const struct iovec vector = {.iov_base = bytes, .iov_len = len};
    assert_int_equal(transport->ops->write(transport, &vector, 1), len);
    assert_int_equal(the.sends, 4);
    transport->ops->close(transport);
}

/* All that was sent has arrived. */
static void arrives(struct rdma_channel *channel)
{
    rdma_link_sent(&channel->link, channel->link.posted - 1);
    rdma_channel_finish(channel);
}

static void is_over(struct rdma_channel *channel)
{
    assert_int_equal(the.ended, 1);
    assert_true(tcp.is_closed);
    free(channel);
}

static int set_up(void **state)
{
    (void)state;
    memset(&the, 0, sizeof the);
    memset(&tcp, 0, sizeof tcp);
    tcp.next = TRANSPORT_AGAIN;
    tcp.base = (struct transport){.ops = &tcp_ops, .kind = "tcp"};
    return 0;
}

/* ---- cases ---- */

/* A client that asks for channels and goes on by TCP, again and again, takes no more memory. */
static void a_dropped_channel_leaves_one_wrapper(void **state)
{
    (void)state;
    char byte;
    struct rdma_stats stats;
    struct transport *first = NULL, *transport = &tcp.base;
    tcp.next = 1;
    for (int i = 0; i < 3; i++) {
        struct rdma_channel *channel = make(RDMA_MODE_SEND, RDMA_LINK_INLINE);
        transport = rdma_channel_wrap(channel, transport);
        first = i == 0 ? transport : first;
        assert_ptr_equal(transport, first);
        assert_ptr_equal(channel->transport, transport);
        assert_true(rdma_channel_stats(transport, &stats));
        assert_int_equal(transport->ops->read(transport, &byte, 1), 1);
        assert_false(rdma_channel_stats(transport, &stats));
        assert_int_equal(the.ended, i + 1);
        assert_string_equal(transport->kind, "tcp");
        free(channel);
    }
    transport->ops->close(transport);
    assert_true(tcp.is_closed);
}

/* As long as TCP carries the bytes, a client that waits is missed when its TCP has ended. */
static void the_end_of_tcp_is_seen(void **state)
{
    (void)state;
    struct rdma_channel *channel = make(RDMA_MODE_SEND, RDMA_LINK_INLINE);
    struct transport *transport = rdma_channel_wrap(channel, &tcp.base);
    assert_false(transport->ops->has_ended(transport));
    tcp.has_ended = true;
    assert_true(transport->ops->has_ended(transport)); /* pending */
    return_credits(channel, 0);
    assert_false(transport->ops->has_ended(transport)); /* it has not been read yet */
    tcp.next = TRANSPORT_CLOSED;
    tcp.base.ready(tcp.base.arg, TRANSPORT_READABLE);
    assert_true(transport->ops->has_ended(transport));
    transport->ops->close(transport);
    is_over(channel);
}

static void the_end_of_tcp_is_seen_after_a_channel(void **state)
{
    (void)state;
    char byte;
    struct rdma_channel *channel = make(RDMA_MODE_SEND, RDMA_LINK_INLINE);
    struct transport *transport = rdma_channel_wrap(channel, &tcp.base);
    tcp.next = 1;
    assert_int_equal(transport->ops->read(transport, &byte, 1), 1);
    assert_false(transport->ops->has_ended(transport));
    tcp.has_ended = true;
    assert_true(transport->ops->has_ended(transport));
    transport->ops->close(transport);
    is_over(channel);
}

/* It is called back when it has a buffer, and not in each round. */
static void what_awaits_a_buffer_is_not_readable(void **state)
{
    (void)state;
    static char message[RDMA_HEADER_BYTES + 1];
    const struct rdma_frame frame = {.type = RDMA_FRAME_DATA, .length = 1};
    struct rdma_channel *channel = make(RDMA_MODE_SEND, RDMA_LINK_INLINE);
    struct transport *transport = open_channel(channel);
    rdma_frame_write(message, &frame);
    assert_true(rdma_link_received(&channel->link, message, sizeof message, 0));
    assert_true((rdma_channel_readiness(channel) & TRANSPORT_READABLE) != 0);
    channel->awaits_stage = true;
    assert_true((rdma_channel_readiness(channel) & TRANSPORT_READABLE) == 0);
    channel->is_ready = false;
    transport->ops->want(transport, TRANSPORT_READABLE);
    assert_false(channel->is_ready);
    transport->ops->close(transport);
    arrives(channel);
    is_over(channel);
}

static void end_is_sent_behind(enum rdma_mode mode, size_t len)
{
    struct rdma_channel *channel = make(mode, RDMA_LINK_INLINE);
    close_behind(open_channel(channel), len);
    assert_int_equal(the.sends, 5);
    assert_true(the.is_end);
    assert_int_equal(the.ended, 0);
    assert_false(tcp.is_closed);
    arrives(channel);
    is_over(channel);
}

static void end_needs_no_buffer(void **state)
{
    end_is_sent_behind(RDMA_MODE_SEND, 3 * (FRAME - RDMA_HEADER_BYTES) + 249);
    set_up(state);
    end_is_sent_behind(RDMA_MODE_SEND, 4 * (FRAME - RDMA_HEADER_BYTES));
    set_up(state);
    end_is_sent_behind(RDMA_MODE_WRITE, 3 * FRAME + 257);
    set_up(state);
    end_is_sent_behind(RDMA_MODE_WRITE, 4 * FRAME);
}

/* The device takes nothing inline. */
static void end_awaits_a_buffer(void **state)
{
    (void)state;
    struct rdma_channel *channel = make(RDMA_MODE_SEND, 0);
    close_behind(open_channel(channel), 4 * (FRAME - RDMA_HEADER_BYTES));
    assert_int_equal(the.sends, 4);
    assert_int_equal(the.ended, 0);
    arrives(channel);
    assert_int_equal(the.sends, 5);
    assert_true(the.is_end);
    assert_int_equal(the.ended, 0);
    arrives(channel);
    is_over(channel);
}

/* The last credit went with a CREDIT. */
static struct rdma_channel *close_without_credits(enum rdma_mode mode)
{
    struct rdma_channel *channel = make(mode, RDMA_LINK_INLINE);
    struct transport *transport = open_channel(channel);
    channel->link.flow.credits = 0;
    transport->ops->close(transport);
    assert_int_equal(the.sends, 0);
    assert_int_equal(the.ended, 0);
    assert_ptr_equal(the.submitted, &channel->deadline);
    return channel;
}

static void end_awaits_a_credit(void **state)
{
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++) {
        struct rdma_channel *channel = close_without_credits((enum rdma_mode)mode);
        return_credits(channel, 0);
        assert_int_equal(the.sends, 0);
        return_credits(channel, 1);
        assert_true(the.is_end);
        assert_int_equal(the.ended, 0);
        rdma_on_overdue(NULL, &channel->overdue); /* which it is not */
        assert_int_equal(the.ended, 0);
        arrives(channel);
        is_over(channel);
        set_up(state);
    }
}

static void end_does_not_wait_for_ever(void **state)
{
    (void)state;
    struct rdma_channel *channel = close_without_credits(RDMA_MODE_SEND);
    rdma_on_overdue(NULL, &channel->overdue);
    assert_int_equal(the.sends, 0);
    is_over(channel);
}

static void end_is_not_sent_to_one_that_has_gone(void **state)
{
    (void)state;
    struct rdma_channel *channel = close_without_credits(RDMA_MODE_SEND);
    assert_int_equal(tcp.wanted, TRANSPORT_READABLE);
    tcp.next = TRANSPORT_CLOSED;
    tcp.base.ready(tcp.base.arg, TRANSPORT_READABLE);
    assert_int_equal(the.sends, 0);
    is_over(channel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_dropped_channel_leaves_one_wrapper, set_up),
        cmocka_unit_test_setup(the_end_of_tcp_is_seen, set_up),
        cmocka_unit_test_setup(the_end_of_tcp_is_seen_after_a_channel, set_up),
        cmocka_unit_test_setup(what_awaits_a_buffer_is_not_readable, set_up),
        cmocka_unit_test_setup(end_needs_no_buffer, set_up),
        cmocka_unit_test_setup(end_awaits_a_buffer, set_up),
        cmocka_unit_test_setup(end_awaits_a_credit, set_up),
        cmocka_unit_test_setup(end_does_not_wait_for_ever, set_up),
        cmocka_unit_test_setup(end_is_not_sent_to_one_that_has_gone, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
