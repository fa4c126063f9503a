/*
 * A link on a queue pair that refuses requests.
 */
#include "rdma-ext/link.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define FRAME 4096

static struct {
    enum ibv_wr_opcode refused;
    int sends; /* frames that were taken */
} device;

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
    (void)qp;
    *bad = request;
    if (request->opcode == device.refused)
        return ENOMEM;
    for (; request != NULL; request = request->next)
        device.sends += request->opcode == IBV_WR_SEND;
    return 0;
}

static void post_receive(struct rdma_link *link, uint32_t buffer)
{
    (void)link;
    (void)buffer;
}

static struct ibv_context context = {.ops.post_send = post_send};
static struct ibv_qp qp = {.context = &context};
static char buffers[4][FRAME];

static void begin(struct rdma_link *link)
{
    struct rdma_end theirs = {.mode = RDMA_MODE_SEND, .frame_bytes = FRAME, .credits = 8};
    *link = (struct rdma_link){.buffers = buffers[0],
                               .buffer_bytes = FRAME,
                               .buffer_count = 4,
                               .max_pieces = 1,
                               .max_held = FRAME,
                               .grant = {.address = 1, .length = FRAME},
                               .post_receive = post_receive};
    rdma_link_begin(link, &qp, RDMA_LINK_INLINE, 8, &theirs);
    device.sends = 0;
}

static size_t place(struct rdma_link *link)
{
    struct ibv_sge piece = {.length = 100};
    return rdma_link_place(link, &piece, 1, 0, 100);
}

static void what_is_placed_is_told(void **state)
{
    (void)state;
    struct rdma_link link;
    begin(&link);
    device.refused = IBV_WR_RDMA_READ;
    assert_int_equal(place(&link), 100);
    assert_int_equal(device.sends, 1);
}

/* A client that is told takes what its memory holds for the value. */
static void what_was_not_placed_is_not_told(void **state)
{
    (void)state;
    struct rdma_link link;
    begin(&link);
    device.refused = IBV_WR_RDMA_WRITE;
    place(&link);
    assert_int_equal(link.post_error, ENOMEM);
    assert_true(link.is_placing); /* part of it may be on its way */
    assert_int_equal(device.sends, 0);
}

static void refuse_reference(uint64_t address, char flags)
{
    struct rdma_link link;
    const struct rdma_frame frame = {.type = RDMA_FRAME_PULL, .length = RDMA_REFERENCE_BYTES};
    const struct rdma_reference reference = {.address = address, .length = 100, .rkey = 1};
    char message[RDMA_HEADER_BYTES + RDMA_REFERENCE_BYTES], bytes[FRAME];
    begin(&link);
    link.takes = RDMA_TAKES(RDMA_FRAME_PULL);
    rdma_frame_write(message, &frame);
    rdma_reference_write(message + RDMA_HEADER_BYTES, &reference);
    message[sizeof message - 1] = flags;
    assert_true(rdma_link_received(&link, message, sizeof message, 0));
    for (int i = 0; i < 3; i++) {
        assert_false(rdma_link_can_pull(&link));
        assert_int_equal(rdma_link_read(&link, bytes, sizeof bytes), 0);
        assert_true(link.has_failed);
        assert_false(link.pull.is_under_way);
    }
}

/* However often the link is asked, nothing is read from there. */
static void references_that_are_refused(void **state)
{
    (void)state;
    refuse_reference(UINT64_MAX - 5, 0);
    refuse_reference(4096, 2); /* a flag that does not exist */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_placed_is_told),
        cmocka_unit_test(what_was_not_placed_is_not_told),
        cmocka_unit_test(references_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
