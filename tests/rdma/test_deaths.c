/*
 * Clients that are killed at every stage of getting a channel and of using one: nothing of them
 * stays, and a neighbour is served meanwhile.
 */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/rdma/raw.h"

#define VALUE 200000

enum stage {
    DIALLED,
    HALF_A_QUESTION,
    ASKED,
    ANSWERED,
    CONNECTED,
    FIRST_FRAME,
    HALF_A_COMMAND,
    COMMANDS,
    OUT_OF_CREDITS,
    PULLED,
    PULLED_AND_READ,
    GRANTED,
    WRITTEN_TO,
    LEAVING,
    STAGES,
};

/* ---- the client, in a process of its own ---- */

static void tell(struct raw *raw, uint32_t *slot, enum rdma_frame_type type, const void *bytes,
                 size_t len)
{
    char message[RDMA_HEADER_BYTES + 256];
    struct rdma_frame frame = {.type = type, .length = (uint32_t)len};
    if (raw->ours.mode == RDMA_MODE_WRITE) {
        raw_write_frame(raw, *slot % raw->theirs.credits, WORD(type, 0, (uint32_t)len), bytes, len);
        *slot += len > 0;
        return;
    }
    rdma_frame_write(message, &frame);
    memcpy(message + RDMA_HEADER_BYTES, bytes, len);
    raw_post(raw, message, RDMA_HEADER_BYTES + len, IBV_WR_SEND, 0, 0);
}

static void refer(struct raw *raw, uint32_t *slot, enum rdma_frame_type type)
{
    char payload[RDMA_REFERENCE_BYTES];
    struct rdma_reference reference = {
        .address = (uintptr_t)raw->memory, .length = VALUE, .rkey = raw->mr->rkey};
    rdma_reference_write(payload, &reference);
    tell(raw, slot, type, payload, sizeof payload);
}

static void use_channel(struct raw *raw, enum stage stage)
{
    static const char set[] = "*3\r\n$3\r\nSET\r\n$4\r\ndead\r\n$200000\r\n";
    uint32_t slot = 0;
    if (stage >= FIRST_FRAME)
        tell(raw, &slot, RDMA_FRAME_CREDIT, "", 0);
    if (stage == HALF_A_COMMAND)
        tell(raw, &slot, RDMA_FRAME_DATA, "*2\r\n$3\r\nGET\r\n$10", 17);
    for (int i = 0; stage == COMMANDS && i < 3; i++)
        tell(raw, &slot, RDMA_FRAME_DATA, "INCR dead:count\r\n", 17);
    for (int i = 0; stage == OUT_OF_CREDITS && i < 6; i++)
        tell(raw, &slot, RDMA_FRAME_DATA, "GET victim\r\n", 12);
    if (stage == PULLED || stage == PULLED_AND_READ) {
        tell(raw, &slot, RDMA_FRAME_DATA, set, sizeof set - 1);
        refer(raw, &slot, RDMA_FRAME_PULL);
    }
    if (stage == GRANTED || stage == WRITTEN_TO)
        refer(raw, &slot, RDMA_FRAME_GRANT);
    if (stage == WRITTEN_TO)
        tell(raw, &slot, RDMA_FRAME_DATA, "GET victim\r\n", 12);
    if (stage == LEAVING)
        tell(raw, &slot, RDMA_FRAME_DATA, "QUIT\r\n", 6);
    if (stage == PULLED_AND_READ || stage == WRITTEN_TO)
        usleep(3000);
}

static void live_and_die(enum stage stage, enum rdma_mode mode)
{
    struct raw raw;
    alarm(10); /* another signal: noticed */
    raw_open_device(&raw, mode);
    raw_post_receives(&raw, RECEIVES);
    if (stage == HALF_A_QUESTION) {
        ssize_t sent = write(raw.tcp->fd, "*18\r\n$4\r\nRDMA\r\n$7\r\nCONN", 23);
        (void)sent; /* whatever became of it */
    } else if (stage == ASKED) {
        raw_send_question(&raw, NULL, NULL);
    } else if (stage > ASKED) {
        redisReply *answer = raw_ask(&raw, NULL, NULL);
        raw_take_answer(&raw, answer);
        if (stage >= CONNECTED)
            raw_begin(&raw);
        use_channel(&raw, stage);
    }
    raise(SIGKILL);
}

static void kill_at(enum stage stage, enum rdma_mode mode)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        live_and_die(stage, mode);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("the client could not come as far as stage %d", stage);
}

/* ---- the server's own figures ---- */

static long long server_process(redisContext *tcp)
{
    return figure(tcp, "process_id");
}

/* Bytes of the server's that the kernel keeps in memory for devices. */
static long long pinned_by_kernel(redisContext *tcp)
{
    char path[64], line[256];
    long long kilobytes = -1;
    snprintf(path, sizeof path, "/proc/%lld/status", server_process(tcp));
    FILE *status = fopen(path, "r");
    assert_non_null(status);
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmPin: %lld", &kilobytes) == 1)
            break;
    fclose(status);
    assert_true(kilobytes >= 0);
    return kilobytes * 1024;
}

static int open_files(redisContext *tcp)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%lld/fd", server_process(tcp));
    DIR *directory = opendir(path);
    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

/* ---- the case ---- */

static void is_served(struct vellum *neighbour)
{
    redisReply *reply = vellum_command(neighbour, "GET victim");
    if (reply == NULL)
        fail_msg("the neighbour: %s", vellum_error(neighbour));
    assert_int_equal(reply->len, VALUE);
    freeReplyObject(reply);
}

/* What the server keeps for the cache is all it has pinned when no client is left. */
static void nothing_is_left(redisContext *tcp, int files)
{
    await_figure(tcp, "rdma_channels", 0);
    await_figure(tcp, "rdma_pinned_bytes", 0);
    await_figure(tcp, "rdma_held_bytes", 0);
    await_figure(tcp, "connected_clients", 1);
    assert_int_equal(pinned_by_kernel(tcp), figure(tcp, "rdma_registered_bytes"));
    assert_int_equal(open_files(tcp), files);
}

static void killed_at_every_stage(enum rdma_mode mode)
{
    static char value[VALUE];
    redisContext *tcp = dial();
    freeReplyObject(redisCommand(tcp, "SET victim %b", value, sizeof value));
    await_figure(tcp, "rdma_channels", 0);
    int files = open_files(tcp);
    struct vellum *neighbour = connect_neighbour(mode);
    long long pinned = figure(tcp, "rdma_pinned_bytes");
    for (int stage = 0; stage < STAGES; stage++) {
        kill_at((enum stage)stage, mode);
        is_served(neighbour);
    }
    await_figure(tcp, "rdma_channels", 1);
    await_figure(tcp, "rdma_pinned_bytes", pinned);
    is_served(neighbour);
    vellum_free(neighbour);
    nothing_is_left(tcp, files);
    redisFree(tcp);
}

static void killed_in_mode_send(void **state)
{
    (void)state;
    killed_at_every_stage(RDMA_MODE_SEND);
}

static void killed_in_mode_write(void **state)
{
    (void)state;
    killed_at_every_stage(RDMA_MODE_WRITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_in_mode_send),
        cmocka_unit_test(killed_in_mode_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
