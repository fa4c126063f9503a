/*
 * Who gets the buffers for pulled bytes: of channels whose READs complete when the test says.
 */
#include "rdma-ext/channel.h"
#include "rdma-ext/completion_loop.h"
#include "rdma-ext/stages.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define FRAME 4096
#define WINDOW 8
#define CHANNELS (STAGES + 3)
#define PART 100

/* ---- in place of the rest ---- */

static struct {
    int reads, notes;
    struct rdma_job *job;
    struct worker_message *message;
    struct rdma_channel *broken;
} the;

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
    (void)qp;
    (void)bad;
    the.reads += request->opcode == IBV_WR_RDMA_READ;
    return 0;
}

static struct ibv_context context = {.ops.post_send = post_send};
static struct ibv_qp qp = {.context = &context};
static char staging[STAGES * STAGE_BYTES], buffers[4][FRAME];
static struct ibv_mr region = {.addr = staging};
static struct rdma_service service;
static struct rdma_worker worker;
static struct rdma_channel channels[CHANNELS];

static void note_ready(struct rdma_channel *channel)
{
    channel->is_ready = true;
    the.notes++;
}

static void break_off(struct rdma_channel *channel)
{
    channel->is_broken = true;
    the.broken = channel;
}

void rdma_submit(struct rdma_service *of, struct rdma_job *job)
{
    assert_null(the.job);
    the.job = job;
    job->run(of, job);
}

void rdma_delay(struct rdma_service *of, struct rdma_job *job, uint64_t ns)
{
    (void)of;
    assert_in_range(ns, 1000000000, 2000000000);
    assert_ptr_equal(the.job, job);
}

void worker_post(struct worker *to, struct worker_message *message)
{
    (void)to;
    the.message = message;
}

static void post_receive(struct rdma_link *link, uint32_t buffer)
{
    (void)link;
    (void)buffer;
}

/* ---- what is done ---- */

/* The client asks that so many bytes be pulled. */
static void ask(struct rdma_channel *channel)
{
    static char messages[CHANNELS][RDMA_HEADER_BYTES + RDMA_REFERENCE_BYTES];
    char *message = messages[channel - channels];
    const struct rdma_frame frame = {.type = RDMA_FRAME_PULL, .length = RDMA_REFERENCE_BYTES};
    const struct rdma_reference reference = {.address = 4096, .length = PART, .rkey = 1};
    rdma_frame_write(message, &frame);
    rdma_reference_write(message + RDMA_HEADER_BYTES, &reference);
    assert_true(rdma_link_received(&channel->link, message, sizeof messages[0], 0));
}

static int set_up(void **state)
{
    (void)state;
    const struct rdma_end theirs = {
        .mode = RDMA_MODE_SEND, .frame_bytes = FRAME, .credits = WINDOW};
    memset(&the, 0, sizeof the);
    memset(channels, 0, sizeof channels);
    worker = (struct rdma_worker){.service = &service, .engine.staging = &region};
    rdma_stages_begin(&worker, note_ready, break_off);
    for (int i = 0; i < CHANNELS; i++) {
        channels[i].worker = &worker;
        channels[i].link = (struct rdma_link){.buffers = buffers[0],
                                              .buffer_bytes = FRAME,
                                              .buffer_count = 4,
                                              .takes = RDMA_TAKES(RDMA_FRAME_PULL),
                                              .max_pieces = 1,
                                              .max_held = FRAME,
                                              .borrow = rdma_stage_borrow,
                                              .give_back = rdma_stage_give_back,
                                              .post_receive = post_receive};
        rdma_link_begin(&channels[i].link, &qp, RDMA_LINK_INLINE, WINDOW, &theirs);
        ask(&channels[i]);
    }
    return 0;
}

/* Its turn, in which it reads. Returns the number of bytes. */
static size_t turn(int i)
{
    char bytes[PART];
    channels[i].is_ready = false;
    return rdma_link_read(&channels[i].link, bytes, sizeof bytes);
}

static void all_read(void)
{
    for (int i = 0; i < CHANNELS; i++)
        assert_int_equal(turn(i), 0);
    for (int i = 0; i < CHANNELS; i++)
        channels[i].is_ready = false; /* that they had a turn more changes nothing */
    assert_int_equal(the.reads, STAGES);
    the.notes = 0;
}

static void completes(int i)
{
    rdma_link_sent(&channels[i].link, channels[i].link.posted - 1);
    note_ready(&channels[i]);
}

static void time_passes(void)
{
    struct rdma_job *job = the.job;
    assert_non_null(job);
    the.job = NULL;
    the.message = NULL;
    job->run(&service, job);
    the.message->visit(NULL, the.message);
}

/* ---- cases ---- */

static void who_waits_is_called_when_it_has_one(void **state)
{
    (void)state;
    all_read();
    for (int i = 0; i < 3; i++) {
        rdma_stages_hand_out(&worker);
        assert_int_equal(the.notes, 0);
    }
    for (int i = 0; i < CHANNELS; i++)
        assert_int_equal(channels[i].awaits_stage, i >= STAGES);
    for (int i = STAGES; i < CHANNELS; i++) {
        completes(i - STAGES);
        assert_int_equal(turn(i - STAGES), PART);
        rdma_stages_hand_out(&worker);
        for (int j = STAGES; j < CHANNELS; j++)
            assert_int_equal(channels[j].is_ready, j == i); /* in their order */
        assert_int_equal(turn(i), 0);
        assert_int_equal(the.reads, i + 1);
    }
}

/* Those that came first are served before one that comes when a stage is free. */
static void who_waits_is_not_overtaken(void **state)
{
    (void)state;
    all_read();
    completes(0);
    assert_int_equal(turn(0), PART);
    ask(&channels[0]);
    assert_int_equal(turn(0), 0);
    assert_true(channels[0].awaits_stage);
    assert_true(rdma_has_stage(&channels[STAGES]));
}

static void who_does_not_read_makes_room(void **state)
{
    (void)state;
    all_read();
    completes(1);
    rdma_stages_hand_out(&worker);
    assert_true(rdma_has_stage(&channels[1])); /* its turn comes first */
    channels[1].is_ready = false;
    rdma_stages_hand_out(&worker);
    assert_false(rdma_has_stage(&channels[1]));
    assert_true(rdma_has_stage(&channels[STAGES]));
}

static void who_has_ended_is_passed_over(void **state)
{
    (void)state;
    all_read();
    channels[STAGES].is_ending = true;
    rdma_stage_wait_no_more(&channels[STAGES + 1]);
    completes(0);
    assert_int_equal(turn(0), PART);
    rdma_stages_hand_out(&worker);
    assert_true(rdma_has_stage(&channels[STAGES + 2]));
    assert_true(TAILQ_EMPTY(&worker.stages.waiting));
}

/* Of READs that are not answered one is given up after the other, as long as somebody waits. */
static void what_takes_too_long_is_broken_off(void **state)
{
    (void)state;
    all_read();
    time_passes();
    completes(0);
    assert_int_equal(turn(0), PART); /* one client answers */
    rdma_stages_hand_out(&worker);
    assert_int_equal(turn(STAGES), 0);
    time_passes();
    assert_null(the.broken);
    time_passes();
    assert_ptr_equal(the.broken, &channels[1]);
    time_passes();
    assert_ptr_equal(the.broken, &channels[2]);
    for (int i = STAGES + 1; i < CHANNELS; i++)
        rdma_stage_wait_no_more(&channels[i]);
    the.broken = NULL;
    time_passes();
    assert_null(the.broken);
    assert_null(the.job); /* nobody waits */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(who_waits_is_called_when_it_has_one, set_up),
        cmocka_unit_test_setup(who_waits_is_not_overtaken, set_up),
        cmocka_unit_test_setup(who_does_not_read_makes_room, set_up),
        cmocka_unit_test_setup(who_has_ended_is_passed_over, set_up),
        cmocka_unit_test_setup(what_takes_too_long_is_broken_off, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
