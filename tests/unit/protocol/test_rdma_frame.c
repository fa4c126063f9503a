/*
 * Frames as they travel, lies about them, and two ends that must never be stuck for credits.
 */
#include "protocol/rdma_frame.h"

#include "protocol/rdma_end.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void frames_travel(void **state)
{
    (void)state;
    char bytes[RDMA_HEADER_BYTES + 5] = {0};
    struct rdma_frame frame = {.type = RDMA_FRAME_DATA, .credits = 0x203, .length = 5}, read;
    rdma_frame_write(bytes, &frame);
    assert_memory_equal(bytes, "\x01\x00\x03\x02\x05\x00\x00\x00", RDMA_HEADER_BYTES);
    assert_true(rdma_frame_read(&read, bytes, sizeof bytes));
    assert_int_equal(read.type, RDMA_FRAME_DATA);
    assert_int_equal(read.credits, 0x203);
    assert_int_equal(read.length, 5);
}

static void lies_are_no_frames(void **state)
{
    (void)state;
    struct {
        const char *bytes;
        size_t len;
    } lies[] = {
        {"", 0},
        {"\x01\x00\x00\x00\x01\x00\x00", 7},              /* no whole header */
        {"\x01\x00\x00\x00\x00\x00\x00\x00", 8},          /* data without any */
        {"\x01\x00\x00\x00\x02\x00\x00\x00x", 9},         /* longer than what came */
        {"\x01\x00\x00\x00\x01\x00\x00\x00xy", 10},       /* shorter */
        {"\x01\x00\x00\x00\xff\xff\xff\xffx", 9},         /* wraps with the header's length */
        {"\x01\x01\x00\x00\x01\x00\x00\x00x", 9},         /* reserved */
        {"\x00\x00\x00\x00\x01\x00\x00\x00x", 9},         /* no type */
        {"\x08\x00\x00\x00\x01\x00\x00\x00x", 9},         /* another */
        {"\x07\x00\x00\x00\x01\x00\x00\x00x", 9},         /* a release with bytes */
        {"\x02\x00\x01\x00\x01\x00\x00\x00x", 9},         /* credits with bytes */
        {"\x03\x00\x00\x00\x08\x00\x00\x00xxxxxxxx", 16}, /* half a reference */
        {"\x05\x00\x00\x00\x09\x00\x00\x00xxxxxxxxx", 17},
    };
    struct rdma_frame frame;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        assert_false(rdma_frame_read(&frame, lies[i].bytes, lies[i].len));
}

static void words_travel(void **state)
{
    (void)state;
    struct rdma_frame read, frame = {.type = RDMA_FRAME_DATA, .credits = 0x203, .length = 0x10000};
    assert_int_equal(rdma_word_write(&frame), 0x14070000);
    assert_true(rdma_word_read(&read, 0x14070000));
    assert_int_equal(read.type, RDMA_FRAME_DATA);
    assert_int_equal(read.credits, 0x203);
    assert_int_equal(read.length, 0x10000);
    static const uint32_t lies[] = {0,          1,          0x10000000, 0x20000001, 0x30000017,
                                    0x60000018, 0x70000001, 0x80000000, 0xf0000001, UINT32_MAX};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        assert_false(rdma_word_read(&read, lies[i]));
}

/* Attributes as text and back; which there are depends on the mode. */
static void ends_travel(void **state)
{
    (void)state;
    struct rdma_end read = {.mode = RDMA_MODE_WRITE}, end = {.mode = RDMA_MODE_WRITE,
                                                             .gid = {1, 2, 0xab},
                                                             .lid = 5,
                                                             .qpn = 0xffffff,
                                                             .psn = 9,
                                                             .mtu = 1024,
                                                             .frame_bytes = 4096,
                                                             .credits = 8,
                                                             .ring = UINT64_MAX,
                                                             .ring_key = UINT32_MAX};
    char value[RDMA_END_TEXT_MAX];
    for (uint32_t i = 0; i < rdma_end_attributes(&end); i++) {
        assert_non_null(rdma_end_missing(&read));
        const char *name = rdma_end_print(&end, i, value);
        assert_true(rdma_end_read(&read, name, strlen(name), value, strlen(value)));
    }
    assert_null(rdma_end_missing(&read));
    end.present = read.present;
    assert_memory_equal(&read, &end, sizeof end);
    end = (struct rdma_end){.mode = RDMA_MODE_SEND, .present = 0x7f};
    assert_null(rdma_end_missing(&end));
    end.mode = RDMA_MODE_WRITE;
    assert_string_equal(rdma_end_missing(&end), "RING");
    assert_false(rdma_end_read(&end, "RKEY", 4, "4294967296", 10));
    assert_false(rdma_end_read(&end, "RING", 4, "18446744073709551616", 20));
}

static void references_stay_in_the_address_space(void **state)
{
    (void)state;
    char bytes[RDMA_REFERENCE_BYTES];
    struct rdma_reference read, good = {.address = 0x1122334455667788, .length = 9, .rkey = 77};
    rdma_reference_write(bytes, &good);
    assert_true(rdma_reference_read(&read, bytes));
    assert_int_equal(read.address, good.address);
    assert_int_equal(read.length, 9);
    assert_int_equal(read.rkey, 77);
    assert_false(read.is_window);
    good.is_window = true;
    rdma_reference_write(bytes, &good);
    assert_true(rdma_reference_read(&read, bytes));
    assert_true(read.is_window);
    bytes[20] = 3; /* a flag that does not exist */
    assert_false(rdma_reference_read(&read, bytes));
    struct rdma_reference bad[] = {{.address = 5, .length = 0},
                                   {.address = 5, .length = UINT64_MAX - 4},
                                   {.address = UINT64_MAX, .length = 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rdma_reference_write(bytes, &bad[i]);
        assert_false(rdma_reference_read(&read, bytes));
    }
}

static void places_stay_in_the_memory(void **state)
{
    (void)state;
    char bytes[RDMA_PLACE_BYTES];
    struct rdma_reference memory = {.address = 5, .length = 100};
    struct rdma_place read, good = {.offset = 90, .length = 10};
    rdma_place_write(bytes, &good);
    assert_true(rdma_place_read(&read, bytes, &memory));
    assert_int_equal(read.offset, 90);
    assert_int_equal(read.length, 10);
    struct rdma_place bad[] = {{.offset = 90, .length = 11},
                               {.offset = 101, .length = 1},
                               {.offset = 0, .length = 0},
                               {.offset = UINT64_MAX, .length = 2},
                               {.offset = 2, .length = UINT64_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rdma_place_write(bytes, &bad[i]);
        assert_false(rdma_place_read(&read, bytes, &memory));
    }
}

static void breaches_are_seen(void **state)
{
    (void)state;
    struct rdma_flow flow;
    struct rdma_frame frame = {.type = RDMA_FRAME_CREDIT};
    rdma_flow_begin(&flow, 4, 8);
    frame.credits = 1; /* none was used */
    assert_false(rdma_flow_received(&flow, &frame));
    frame.credits = 0;
    for (int i = 0; i < 4; i++)
        assert_true(rdma_flow_received(&flow, &frame));
    assert_false(rdma_flow_received(&flow, &frame)); /* the fifth of four */
    rdma_flow_reposted(&flow);
    assert_false(rdma_flow_received(&flow, &frame)); /* posted again, but not told */
    assert_int_equal(rdma_flow_send(&flow), 1);
    frame.credits = 1;
    assert_true(rdma_flow_received(&flow, &frame));
    assert_int_equal(flow.credits, 8);
}

/* One end with its frames on the way, in order. */
struct end {
    struct rdma_flow flow;
    struct rdma_frame sent[64];
    unsigned head, tail, unread; /* unread: data frames whose receives are not posted again */
    uint64_t wanted, got;        /* data frames still to be sent; received */
};

static void put(struct end *end, enum rdma_frame_type type)
{
    assert_true(end->tail - end->head < 64);
    end->sent[end->tail++ % 64] =
        (struct rdma_frame){.type = type, .credits = rdma_flow_send(&end->flow)};
}

static bool act(struct end *self, struct end *peer, int what)
{
    if (what == 0 && peer->head != peer->tail) {
        const struct rdma_frame *frame = &peer->sent[peer->head++ % 64];
        assert_true(rdma_flow_received(&self->flow, frame));
        if (frame->type == RDMA_FRAME_DATA)
            self->unread++;
        else
            rdma_flow_reposted(&self->flow);
    } else if (what == 1 && self->unread > 0) {
        self->unread--;
        self->got++;
        rdma_flow_reposted(&self->flow);
    } else if (what == 2 && self->wanted > 0 && rdma_flow_room(&self->flow) > 0) {
        self->wanted--;
        put(self, RDMA_FRAME_DATA);
    } else if (what == 3 && rdma_flow_must_tell(&self->flow)) {
        put(self, RDMA_FRAME_CREDIT);
    } else {
        return false;
    }
    return true;
}

/* Whatever the order of events: as long as something is to be sent, something can happen. */
static void nobody_is_stuck(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 300; seed++) {
        struct end ends[2] = {{.wanted = 500}, {.wanted = seed % 3 == 0 ? 0 : 500}};
        unsigned random = seed, windows[2] = {4 + seed % 13, 4 + seed % 7};
        uint64_t sum = ends[0].wanted + ends[1].wanted;
        rdma_flow_begin(&ends[0].flow, windows[0], windows[1]);
        rdma_flow_begin(&ends[1].flow, windows[1], windows[0]);
        while (ends[0].got + ends[1].got < sum) {
            bool moved = false;
            int first = (int)(random = random * 1103515245 + 12345) >> 16 & 7;
            for (int i = 0; i < 8 && !moved; i++)
                moved =
                    act(&ends[(first + i) & 1], &ends[(first + i + 1) & 1], ((first + i) >> 1) & 3);
            assert_true(moved);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_travel),
        cmocka_unit_test(lies_are_no_frames),
        cmocka_unit_test(words_travel),
        cmocka_unit_test(ends_travel),
        cmocka_unit_test(references_stay_in_the_address_space),
        cmocka_unit_test(places_stay_in_the_memory),
        cmocka_unit_test(breaches_are_seen),
        cmocka_unit_test(nobody_is_stuck),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
