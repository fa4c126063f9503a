/*
 * A channel as its connection's transport: on a queue pair whose requests complete when the test
 * says, beside a TCP connection that the test plays.
 */
#include "rdma-ext/channel.h"
#include "rdma-ext/completion_loop.h"
#include "rdma-ext/failure.h"
#include "rdma-ext/page_registration.h"

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
    uint32_t last_length;
} the;

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
    (void)qp;
    (void)bad;
    for (; request != NULL; request = request->next) {
        the.sends++;
        the.last_length = request->num_sge > 0 ? request->sg_list[0].length : 0;
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

/* One whose client has posted so many receives. */
static struct rdma_channel *make(enum rdma_mode mode, uint32_t credits)
{
    struct rdma_end theirs = {.mode = mode, .frame_bytes = FRAME, .credits = credits};
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
    rdma_link_begin(&channel->link, &qp, RDMA_LINK_INLINE, WINDOW, &theirs);
    return channel;
}

static int set_up(void **state)
{
    (void)state;
    memset(&the, 0, sizeof the);
    memset(&tcp, 0, sizeof tcp);
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
        struct rdma_channel *channel = make(RDMA_MODE_SEND, WINDOW);
        channel->qp = &qp;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_dropped_channel_leaves_one_wrapper, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
