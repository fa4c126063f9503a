/*
 * A device that refuses calls, and tells of failures (fail_queues.c, preloaded into the server):
 * the channels concerned end, the log says so, TCP and the data go on, and so do new channels.
 */
#include <fcntl.h>
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

#define PATIENCE 300        /* tenths of a second */
#define LINES_APART_MS 1100 /* those about one channel are logged once a second at most */

static void make_trouble(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", getenv("VELLUM_TROUBLE"), name);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static bool is_trouble(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", getenv("VELLUM_TROUBLE"), name);
    return access(path, F_OK) == 0;
}

static void end_trouble(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", getenv("VELLUM_TROUBLE"), name);
    unlink(path);
}

static int count_logged(const char *text)
{
    char line[512];
    int count = 0;
    FILE *log = fopen(getenv("VELLUM_LOG"), "r");
    assert_non_null(log);
    while (fgets(line, sizeof line, log) != NULL)
        count += strstr(line, text) != NULL;
    fclose(log);
    return count;
}

static void await_logged(const char *text, int more_than)
{
    int patience = PATIENCE;
    while (count_logged(text) <= more_than && patience-- > 0)
        pause_ms(100);
    if (patience < 0)
        fail_msg("not logged: %s", text);
}

static void is_served_by_tcp(redisContext *tcp, const char *value)
{
    redisReply *reply = redisCommand(tcp, "GET kept");
    assert_non_null(reply);
    assert_string_equal(reply->str, value);
    freeReplyObject(reply);
}

static bool try_channel(enum rdma_mode mode)
{
    struct vellum_options options = {.host = getenv("VELLUM_HOST"),
                                     .port = atoi(getenv("VELLUM_PORT")),
                                     .rdma = VELLUM_RDMA_ONLY,
                                     .mode = mode == RDMA_MODE_WRITE ? VELLUM_RDMA_WRITE
                                                                     : VELLUM_RDMA_SEND,
                                     .timeout_ms = 5000};
    struct vellum *channel = vellum_connect(&options);
    redisReply *reply = vellum_error(channel) == NULL ? vellum_command(channel, "PING") : NULL;
    bool is_good = reply != NULL && strcmp(reply->str, "PONG") == 0;
    if (reply != NULL)
        freeReplyObject(reply);
    vellum_free(channel);
    return is_good;
}

/* As soon as what has failed is gone. */
static void await_channel(enum rdma_mode mode)
{
    int patience = 10;
    while (!try_channel(mode) && patience-- > 0)
        pause_ms(100);
    assert_true(patience >= 0);
}

static struct vellum *begin(redisContext *tcp, enum rdma_mode mode)
{
    freeReplyObject(redisCommand(tcp, "SET kept %s", "what TCP has set"));
    struct vellum *channel = connect_neighbour(mode);
    redisReply *reply = vellum_command(channel, "PING");
    assert_non_null(reply);
    freeReplyObject(reply);
    return channel;
}

/* ---- calls ---- */

/* Some commands are answered before the server makes the call that is refused. */
static void await_end(struct vellum *channel)
{
    redisReply *reply;
    int patience = 100;
    while ((reply = vellum_command(channel, "PING")) != NULL && patience-- > 0) {
        freeReplyObject(reply);
        pause_ms(50);
    }
    assert_null(reply);
}

static void refuse_call(const char *call, const char *logged, enum rdma_mode mode)
{
    pause_ms(LINES_APART_MS);
    redisContext *tcp = dial();
    struct vellum *channel = begin(tcp, mode), *other = begin(tcp, mode);
    long long failures = figure(tcp, "rdma_device_failures"),
              broken = figure(tcp, "rdma_channels_broken");
    int lines = count_logged(logged);
    make_trouble(call);
    await_end(channel);
    await_end(other);
    is_served_by_tcp(tcp, "what TCP has set");
    await_logged(logged, lines);
    assert_true(figure(tcp, "rdma_device_failures") > failures);
    assert_true(figure(tcp, "rdma_channels_broken") >= broken + 2);
    await_figure(tcp, "rdma_channels", 0);
    end_trouble(call);
    await_figure(tcp, "rdma_pinned_bytes", 0);
    await_channel(mode);
    vellum_free(channel);
    vellum_free(other);
    redisFree(tcp);
}

static void completions_cannot_be_polled(void **state)
{
    (void)state;
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++)
        refuse_call("poll", "ibv_poll_cq has failed", (enum rdma_mode)mode);
}

static void completions_cannot_be_waited_for(void **state)
{
    (void)state;
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++)
        refuse_call("arm", "ibv_req_notify_cq has failed", (enum rdma_mode)mode);
}

static void receives_cannot_be_posted(void **state)
{
    (void)state;
    refuse_call("receive-shared", "ibv_post_srq_recv has failed", RDMA_MODE_SEND);
    refuse_call("receive", "a work request has failed", RDMA_MODE_WRITE);
}

static void sends_cannot_be_posted(void **state)
{
    (void)state;
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++)
        refuse_call("send", "a work request has failed", (enum rdma_mode)mode);
}

/* The connection of a channel that has not been used is served by TCP as before. */
static void pending_channels_give_way(void **state)
{
    (void)state;
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++) {
        struct raw raw;
        redisContext *tcp = dial();
        struct vellum *channel = begin(tcp, (enum rdma_mode)mode);
        raw_open_device(&raw, (enum rdma_mode)mode);
        raw_post_receives(&raw, RECEIVES);
        redisReply *answer = raw_ask(&raw, NULL, NULL);
        raw_take_answer(&raw, answer);
        freeReplyObject(answer);
        make_trouble("poll");
        await_figure(tcp, "rdma_channels", 0);
        end_trouble("poll");
        is_served_by_tcp(raw.tcp, "what TCP has set");
        raw_free(&raw);
        vellum_free(channel);
        redisFree(tcp);
    }
}

/* ---- events ---- */

static void await_taken(const char *event)
{
    int patience = PATIENCE;
    while (is_trouble(event) && patience-- > 0)
        pause_ms(100);
    assert_true(patience >= 0);
}

static void end_by_event(const char *event, const char *logged, enum rdma_mode mode)
{
    redisContext *tcp = dial();
    struct vellum *channel = begin(tcp, mode);
    int lines = count_logged(logged);
    make_trouble(event);
    await_figure(tcp, "rdma_channels", 0); /* the client has not asked for anything */
    await_logged(logged, lines);
    is_served_by_tcp(tcp, "what TCP has set");
    await_channel(mode);
    vellum_free(channel);
    redisFree(tcp);
}

static void queues_fail(void **state)
{
    (void)state;
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++) {
        end_by_event("cq-err", "a completion queue has failed", (enum rdma_mode)mode);
        end_by_event("srq-err", "a shared receive queue has failed", (enum rdma_mode)mode);
        end_by_event("lid", "has another LID", (enum rdma_mode)mode);
    }
}

static void queue_pairs_fail(void **state)
{
    (void)state;
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++) {
        pause_ms(LINES_APART_MS);
        end_by_event("qp-fatal", "a queue pair has failed", (enum rdma_mode)mode);
        pause_ms(LINES_APART_MS);
        end_by_event("last-wqe", "a queue pair has failed", (enum rdma_mode)mode);
    }
}

static void others_change_nothing(void **state)
{
    (void)state;
    static const char *const events[] = {"comm-est", "srq-limit", "sq-drained", "port-err",
                                         "port-active"};
    redisContext *tcp = dial();
    struct vellum *channel = begin(tcp, RDMA_MODE_SEND);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        make_trouble(events[i]);
        await_taken(events[i]);
    }
    await_logged("is down", 0);
    await_logged("is active", 0);
    redisReply *reply = vellum_command(channel, "GET kept");
    assert_non_null(reply);
    assert_string_equal(reply->str, "what TCP has set");
    freeReplyObject(reply);
    vellum_free(channel);
    redisFree(tcp);
}

/* The port is queried by a thread for which no request waits. */
static void figures_do_not_wait(void **state)
{
    (void)state;
    struct timespec began, ended;
    redisContext *tcp = dial();
    make_trouble("look");
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (int i = 0; i < 40; i++) {
        figure(tcp, "rdma_port_active");
        freeReplyObject(redisCommand(tcp, "RDMA INFO"));
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    end_trouble("look");
    assert_true(ended.tv_sec - began.tv_sec < 30);
    redisFree(tcp);
}

/* The last case: nothing is offered any more. */
static void the_device_fails(void **state)
{
    (void)state;
    struct raw raw;
    redisContext *tcp = dial();
    struct vellum *channel = begin(tcp, RDMA_MODE_SEND), *other = begin(tcp, RDMA_MODE_WRITE);
    make_trouble("device-fatal");
    await_figure(tcp, "rdma_channels", 0);
    await_logged("its channels are ended, and no more are made", 0);
    raw_open_device(&raw, RDMA_MODE_SEND);
    redisReply *answer = raw_ask(&raw, NULL, NULL);
    assert_string_equal(answer->str, "ERR RDMA: the device has failed, or has gone");
    freeReplyObject(answer);
    is_served_by_tcp(raw.tcp, "what TCP has set");
    assert_int_equal(figure(tcp, "rdma_port_active"), 0);
    raw_free(&raw);
    vellum_free(channel);
    vellum_free(other);
    redisFree(tcp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(completions_cannot_be_polled),
        cmocka_unit_test(completions_cannot_be_waited_for),
        cmocka_unit_test(receives_cannot_be_posted),
        cmocka_unit_test(sends_cannot_be_posted),
        cmocka_unit_test(pending_channels_give_way),
        cmocka_unit_test(queues_fail),
        cmocka_unit_test(queue_pairs_fail),
        cmocka_unit_test(others_change_nothing),
        cmocka_unit_test(figures_do_not_wait),
        cmocka_unit_test(the_device_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
