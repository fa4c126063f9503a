/*
 * Commands by an RDMA channel of mode VELLUM_MODE, against the server that tests/rdma/in-guest has
 * started.
 */
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "clients/vellum.h"

#define LIMIT_MS 20000

static struct vellum_options options_of(enum vellum_rdma rdma)
{
    return (struct vellum_options){
        .host = getenv("VELLUM_HOST"),
        .port = atoi(getenv("VELLUM_PORT")),
        .rdma = rdma,
        .mode = strcmp(getenv("VELLUM_MODE"), "write") == 0 ? VELLUM_RDMA_WRITE : VELLUM_RDMA_SEND,
        .timeout_ms = LIMIT_MS};
}

static struct vellum *connect_by(enum vellum_rdma rdma)
{
    struct vellum_options options = options_of(rdma);
    struct vellum *vellum = vellum_connect(&options);
    assert_non_null(vellum);
    if (vellum_error(vellum) != NULL)
        fail_msg("%s", vellum_error(vellum));
    return vellum;
}

static struct vellum *connect_rdma(void)
{
    struct vellum *vellum = connect_by(VELLUM_RDMA_ONLY);
    assert_string_equal(vellum_transport(vellum), "rdma");
    return vellum;
}

static redisReply *good(struct vellum *vellum, redisReply *reply)
{
    if (reply == NULL)
        fail_msg("%s", vellum_error(vellum));
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s", reply->str);
    return reply;
}

#define OK(vellum, ...) freeReplyObject(good(vellum, vellum_command(vellum, __VA_ARGS__)))

/* A figure of INFO. */
static long long figure(struct vellum *vellum, const char *name)
{
    redisReply *reply = good(vellum, vellum_command(vellum, "INFO everything"));
    const char *at = strstr(reply->str, name);
    assert_non_null(at);
    long long value = atoll(at + strlen(name) + 1);
    freeReplyObject(reply);
    return value;
}

static void pause_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Until a figure is what it should be; teardown takes a moment. */
static void await_figure(struct vellum *vellum, const char *name, long long wanted)
{
    long long is = -1;
    for (int i = 0; i < 100 && (is = figure(vellum, name)) != wanted; i++)
        pause_ms(50);
    assert_int_equal(is, wanted);
}

static char *pattern(size_t len, unsigned seed)
{
    char *bytes = malloc(len + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++) {
        seed = seed * 1103515245 + 12345;
        bytes[i] = (char)(seed >> 16);
    }
    return bytes;
}

/* ---- cases ---- */

static void says_what_it_is(void **state)
{
    (void)state;
    struct vellum *vellum = connect_rdma();
    redisReply *reply = good(vellum, vellum_command(vellum, "PING"));
    assert_string_equal(reply->str, "PONG");
    freeReplyObject(reply);
    reply = good(vellum, vellum_command(vellum, "CLIENT INFO"));
    assert_non_null(strstr(reply->str, "transport=rdma"));
    freeReplyObject(reply);
    reply = good(vellum, vellum_command(vellum, "RDMA LIST"));
    assert_int_equal(reply->elements, 1);
    assert_string_equal(reply->element[0]->element[4]->str, "mode");
    assert_string_equal(reply->element[0]->element[5]->str, getenv("VELLUM_MODE"));
    freeReplyObject(reply);
    reply = vellum_command(vellum, "RDMA CONNECT 1 send");
    assert_string_equal(reply->str, "ERR RDMA: attribute GID is missing");
    freeReplyObject(reply);
    assert_int_equal(figure(vellum, "rdma_channels"), 1);
    vellum_free(vellum);
}

static void values_of_all_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,     1,      63,     64,     65,      200,    236,  250,
                                   4000,  4073,   4080,   4088,   4089,    4096,   8191, 16000,
                                   65536, 100000, 131072, 300000, 1000000, 1048576};
    struct vellum *vellum = connect_rdma();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *bytes = pattern(sizes[i], (unsigned)i);
        OK(vellum, "SET size:%d %b", (int)i, bytes, sizes[i]);
        redisReply *reply = good(vellum, vellum_command(vellum, "GET size:%d", (int)i));
        assert_int_equal(reply->len, sizes[i]);
        assert_memory_equal(reply->str, bytes, sizes[i]);
        freeReplyObject(reply);
        free(bytes);
    }
    vellum_free(vellum);
}

static void pipelines_of_any_depth(void **state)
{
    (void)state;
    struct vellum *vellum = connect_rdma();
    redisReply *reply;
    char *bytes = pattern(30000, 7);
    OK(vellum, "SET large %b", bytes, (size_t)30000);
    for (int i = 0; i < 20000; i++)
        assert_int_equal(vellum_append(vellum, "ECHO %d", i), REDIS_OK);
    for (int i = 0; i < 20000; i++) {
        assert_int_equal(vellum_get_reply(vellum, &reply), REDIS_OK);
        assert_int_equal(atoi(reply->str), i);
        freeReplyObject(reply);
    }
    for (int i = 0; i < 100; i++) {
        vellum_append(vellum, "SET large:%d %b", i, bytes, (size_t)30000);
        vellum_append(vellum, "GET large");
    }
    for (int i = 0; i < 200; i++) {
        assert_int_equal(vellum_get_reply(vellum, &reply), REDIS_OK);
        if (i % 2 == 1) {
            assert_int_equal(reply->len, 30000);
            assert_memory_equal(reply->str, bytes, 30000);
        }
        freeReplyObject(reply);
    }
    free(bytes);
    vellum_free(vellum);
}

/* The server reads values out of our memory; several clients at once share where they come to. */
static void values_by_reference(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 100, 4096, 32768, 32769, 100000, 1000000};
    struct vellum *clients[6];
    const size_t size = 1100000;
    char *bytes = pattern(size, 99);
    for (int i = 0; i < 6; i++)
        clients[i] = connect_rdma();
    long long frames = figure(clients[0], "rdma_bytes_in");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct vellum *vellum = clients[i % 6];
        struct vellum_memory *memory = vellum_register(vellum, bytes, size);
        assert_non_null(memory);
        freeReplyObject(
            good(vellum, vellum_set_from(vellum, "ref", 3, memory, i * 1000, sizes[i])));
        redisReply *reply = good(vellum, vellum_command(vellum, "GET ref"));
        assert_int_equal(reply->len, sizes[i]);
        assert_memory_equal(reply->str, bytes + i * 1000, sizes[i]);
        freeReplyObject(reply);
        vellum_unregister(memory);
    }
    assert_true(figure(clients[0], "rdma_bytes_in") - frames < 5000); /* they were not sent */
    for (int i = 0; i < 6; i++)
        vellum_free(clients[i]);
    free(bytes);
}

#define MANY 200
#define IDLE 100

/* Bytes that the server has copied in calls of some length; 0 where that is not counted. */
static uint64_t copies(void)
{
    uint64_t total = 0;
    const char *path = getenv("VELLUM_COPIES");
    FILE *file = path != NULL ? fopen(path, "r") : NULL;
    if (file != NULL) {
        assert_int_equal(fread(&total, sizeof total, 1, file), 1);
        fclose(file);
    }
    return total;
}

static long long get_into(struct vellum *vellum, const char *key, struct vellum_memory *memory,
                          size_t offset, size_t size)
{
    redisReply *reply =
        good(vellum, vellum_get_into(vellum, key, strlen(key), memory, offset, size));
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    long long length = reply->integer;
    freeReplyObject(reply);
    return length;
}

/* The pages that a key's value is in are registered by and by, as they are first asked for. */
static void await_placing(struct vellum *vellum, struct vellum *tcp, const char *key,
                          struct vellum_memory *memory, size_t size)
{
    for (int i = 0; i < 100; i++) {
        long long before = figure(tcp, "rdma_placed_bytes");
        assert_int_equal(get_into(vellum, key, memory, 0, size), size);
        if (figure(tcp, "rdma_placed_bytes") - before == (long long)size)
            return;
        pause_ms(50);
    }
    fail_msg("%s is still sent", key);
}

/* The server writes values into our memory from where it has them, and copies nothing. */
static void values_into_our_memory(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,     1,      100,    3000,    4096,   4097,
                                   65536, 131072, 131073, 1000000, 4 << 20};
    const size_t size = 5 << 20;
    struct vellum *vellum = connect_rdma(), *tcp = connect_by(VELLUM_RDMA_NEVER);
    char *to = calloc(1, size), key[16];
    struct vellum_memory *memory = vellum_register(vellum, to, size);
    assert_non_null(memory);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *bytes = pattern(sizes[i], (unsigned)i + 50);
        snprintf(key, sizeof key, "into:%zu", i);
        OK(tcp, "SET %s %b", key, bytes, sizes[i]);
        if (sizes[i] >= 4096)
            await_placing(vellum, tcp, key, memory, size > sizes[i] ? sizes[i] : size);
        uint64_t copied = 1;
        for (int j = 0; j < 10 && copied > 0; j++) { /* the store may have its own to copy */
            memset(to, 'x', size);
            long long told = figure(tcp, "rdma_copied_bytes");
            copied = copies();
            assert_int_equal(get_into(vellum, key, memory, 1000, sizes[i]), sizes[i]);
            copied = sizes[i] >= 4096 ? copies() - copied : 0;
            if (sizes[i] >= 4096)
                assert_in_range(figure(tcp, "rdma_copied_bytes") - told, 0, 200);
            assert_memory_equal(to + 1000, bytes, sizes[i]);
            assert_int_equal(to[999], 'x');
            assert_int_equal(to[1000 + sizes[i]], 'x');
        }
        assert_int_equal(copied, 0);
        free(bytes);
    }
    vellum_unregister(memory);
    free(to);
    vellum_free(vellum);
    vellum_free(tcp);
}

static void set_from(struct vellum *vellum, const char *key, struct vellum_memory *memory,
                     size_t size)
{
    freeReplyObject(good(vellum, vellum_set_from(vellum, key, strlen(key), memory, 0, size)));
}

/* The server reads long values into the pages that go to the device, and copies nothing. */
static void values_into_the_pages(void **state)
{
    (void)state;
    static const size_t sizes[] = {4096,  5000,   16384,   65535,  65536,
                                   70001, 131072, 1000000, 4 << 20};
    struct vellum *vellum = connect_rdma(), *tcp = connect_by(VELLUM_RDMA_NEVER);
    char *bytes = pattern(4 << 20, 5);
    struct vellum_memory *memory = vellum_register(vellum, bytes, 4 << 20);
    assert_non_null(memory);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t copied = 1;
        long long told = 0, pulled = 0;
        for (int j = 0; j < 20 && copied > 0; j++) { /* pages may still have to be registered */
            told = figure(tcp, "rdma_copied_bytes");
            pulled = figure(tcp, "rdma_pulled_bytes");
            copied = copies();
            set_from(vellum, "pages", memory, sizes[i]);
            copied = copies() - copied;
            told = figure(tcp, "rdma_copied_bytes") - told;
            pulled = figure(tcp, "rdma_pulled_bytes") - pulled;
            if (pulled < (long long)sizes[i])
                copied = 1;
        }
        assert_int_equal(copied, 0);
        assert_int_equal(pulled, sizes[i]);
        assert_in_range(told, 0, 200);
        redisReply *reply = good(tcp, vellum_command(tcp, "GET pages"));
        assert_int_equal(reply->len, sizes[i]);
        assert_memory_equal(reply->str, bytes, sizes[i]);
        freeReplyObject(reply);
    }
    vellum_unregister(memory);
    free(bytes);
    vellum_free(vellum);
    vellum_free(tcp);
}

static long long microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* How long a round trip takes, and 1 MB by reference: the best of some. */
static void time_both(struct vellum *vellum, struct vellum_memory *memory, long long best_us[2])
{
    for (int i = 0; i < 5; i++) {
        long long began_us = microseconds();
        OK(vellum, "PING");
        long long sent_us = microseconds();
        set_from(vellum, "far", memory, 1 << 20);
        long long spent_us[] = {sent_us - began_us, microseconds() - sent_us};
        for (int j = 0; j < 2; j++)
            if (i == 0 || spent_us[j] < best_us[j])
                best_us[j] = spent_us[j];
    }
}

/* Where a round trip takes long, many READs are under way in each. */
static void reads_in_flight(void **state)
{
    (void)state;
    if (getenv("VELLUM_CABLE") == NULL)
        skip();
    struct vellum *vellum = connect_rdma(), *tcp = connect_by(VELLUM_RDMA_NEVER);
    char *bytes = pattern(1 << 20, 6);
    struct vellum_memory *memory = vellum_register(vellum, bytes, 1 << 20);
    long long pulled = -1, best_us[2];
    for (int i = 0; i < 50 && pulled != 1 << 20; i++) { /* until the pages are registered */
        pulled = figure(tcp, "rdma_pulled_bytes");
        set_from(vellum, "far", memory, 1 << 20);
        pulled = figure(tcp, "rdma_pulled_bytes") - pulled;
    }
    assert_int_equal(system("tc qdisc add dev vb root netem delay 30ms limit 10000"), 0);
    time_both(vellum, memory, best_us);
    assert_int_equal(system("tc qdisc del dev vb root"), 0);
    assert_in_range(best_us[0], 30000, 60000);
    assert_in_range(best_us[1] / best_us[0], 1, 20); /* one at a time: 32 */
    vellum_unregister(memory);
    free(bytes);
    vellum_free(vellum);
    vellum_free(tcp);
}

/* A grant is for one reply, and for a value that fits. */
static void what_is_not_placed(void **state)
{
    (void)state;
    struct vellum *vellum = connect_rdma(), *tcp = connect_by(VELLUM_RDMA_NEVER);
    static char to[300000];
    char *bytes = pattern(200000, 9);
    OK(tcp, "SET long %b", bytes, (size_t)200000);
    OK(tcp, "SET short abc");
    OK(tcp, "DEL none list");
    OK(tcp, "RPUSH list a");
    struct vellum_memory *memory = vellum_register(vellum, to, sizeof to);
    assert_non_null(memory);
    await_placing(vellum, tcp, "long", memory, 200000);
    for (int i = 0; i < 5; i++) {
        long long placed = figure(tcp, "rdma_placed_bytes");
        redisReply *reply = vellum_get_into(vellum,
                                            i == 1   ? "none"
                                            : i == 2 ? "list"
                                                     : "long",
                                            4, memory, 0, i == 3 ? 0 : 199999);
        assert_non_null(reply);
        static const int types[] = {REDIS_REPLY_STRING, REDIS_REPLY_NIL, REDIS_REPLY_ERROR,
                                    REDIS_REPLY_STRING, REDIS_REPLY_STRING};
        assert_int_equal(reply->type, types[i]);
        if (types[i] == REDIS_REPLY_STRING)
            assert_memory_equal(reply->str, bytes, 200000);
        freeReplyObject(reply);
        assert_int_equal(get_into(vellum, "short", memory, 0, sizeof to), 3);
        assert_memory_equal(to, "abc", 3);
        reply = good(vellum, vellum_command(vellum, "GET long")); /* the grant is over */
        assert_memory_equal(reply->str, bytes, 200000);
        assert_memory_equal(to, "abc", 3);
        freeReplyObject(reply);
        assert_int_equal(figure(tcp, "rdma_placed_bytes"), placed);
    }
    assert_null(vellum_get_into(vellum, "long", 4, memory, sizeof to, 1));
    vellum_unregister(memory);
    free(bytes);
    vellum_free(vellum);
    vellum_free(tcp);
}

static void never_ending(int ready, size_t size, bool sets)
{
    struct vellum_options options = options_of(VELLUM_RDMA_ONLY);
    struct vellum *vellum = vellum_connect(&options);
    char *to = malloc(size);
    struct vellum_memory *memory = vellum_register(vellum, to, size);
    while (memory != NULL) {
        redisReply *reply = sets ? vellum_set_from(vellum, "filled", 6, memory, 0, size)
                                 : vellum_get_into(vellum, "victim", 6, memory, 0, size);
        if (reply == NULL || write(ready, "x", 1) != 1)
            break;
        freeReplyObject(reply);
    }
    _exit(1);
}

/* Pages that are being written to a client that dies, or filled from its memory, are kept until the
 * device has let go of them. */
static void killed_while_pages_are_used(void **state)
{
    (void)state;
    const size_t size = 1 << 20;
    struct vellum *tcp = connect_by(VELLUM_RDMA_NEVER);
    char *bytes = pattern(size, 77), byte;
    OK(tcp, "SET victim %b", bytes, size);
    for (int i = 0; i < 6; i++) {
        int ready[2], status;
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            never_ending(ready[1], size, i % 2 == 1);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        pause_ms(20 + i * 3);
        kill(child, SIGKILL);
        OK(tcp, "SET victim %b", bytes, size); /* the pages get other contents */
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        close(ready[0]);
        close(ready[1]);
    }
    await_figure(tcp, "rdma_channels", 0);
    await_figure(tcp, "rdma_pinned_bytes", 0);
    await_figure(tcp, "rdma_held_bytes", 0);
    redisReply *reply = good(tcp, vellum_command(tcp, "GET victim"));
    assert_memory_equal(reply->str, bytes, size);
    freeReplyObject(reply);
    vellum_free(tcp);
    free(bytes);
}

static void cut_and_mend(const char *cut, const char *mend)
{
    const size_t size = 1 << 20;
    struct vellum_options beside = options_of(VELLUM_RDMA_NEVER);
    beside.host = "127.0.0.1";
    struct vellum *tcp = vellum_connect(&beside);
    assert_null(vellum_error(tcp));
    char *bytes = pattern(size, 78), byte;
    pid_t children[4];
    int ready[2];
    OK(tcp, "SET victim %b", bytes, size);
    assert_int_equal(pipe(ready), 0);
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            never_ending(ready[1], size, i % 2 == 1);
    }
    for (int i = 0; i < 12; i++)
        assert_int_equal(read(ready[0], &byte, 1), 1);
    long long broken = figure(tcp, "rdma_channels_broken");
    assert_int_equal(system(cut), 0);
    for (int i = 0; i < 100 && figure(tcp, "rdma_channels_broken") == broken; i++)
        pause_ms(50); /* it takes the server two seconds to be sure */
    assert_true(figure(tcp, "rdma_channels_broken") > broken);
    redisReply *reply = good(tcp, vellum_command(tcp, "GET victim")); /* others are served */
    assert_memory_equal(reply->str, bytes, size);
    freeReplyObject(reply);
    for (int i = 0; i < 4; i++) {
        int status;
        kill(children[i], SIGKILL);
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    }
    assert_int_equal(system(mend), 0);
    await_figure(tcp, "rdma_channels", 0);
    await_figure(tcp, "rdma_pinned_bytes", 0);
    await_figure(tcp, "rdma_held_bytes", 0);
    vellum_free(connect_rdma());
    close(ready[0]);
    close(ready[1]);
    vellum_free(tcp);
    free(bytes);
}

/* A cable that is cut while values go both ways, and mended: nothing of it stays. */
static void cut_cable(void **state)
{
    (void)state;
    if (getenv("VELLUM_CABLE") == NULL)
        skip();
    cut_and_mend("tc qdisc add dev vb root netem loss 100%", "tc qdisc del dev vb root");
}

/* The same by the devices' own end. */
static void link_down(void **state)
{
    (void)state;
    if (getenv("VELLUM_CABLE") == NULL)
        skip();
    cut_and_mend("ip link set vb down",
                 "ip link set vb up && ip route replace 10.9.0.1 dev vb src 10.9.0.2 table 21 &&"
                 " for i in $(seq 100); do grep -q ACTIVE /sys/class/infiniband/rxe_b/ports/1/state"
                 " && grep -q ACTIVE /sys/class/infiniband/rxe_a/ports/1/state && exit 0;"
                 " sleep 0.1; done; exit 1");
}

/* 64 MB there and back. */
static void the_longest_values(void **state)
{
    (void)state;
    const size_t size = 64 << 20;
    struct vellum *vellum = connect_rdma();
    char *bytes = pattern(size, 64), *to = calloc(1, size);
    struct vellum_memory *memory = vellum_register(vellum, bytes, size),
                         *place = vellum_register(vellum, to, size);
    assert_non_null(memory);
    assert_non_null(place);
    set_from(vellum, "longest", memory, size);
    assert_int_equal(get_into(vellum, "longest", place, 0, size), size);
    assert_memory_equal(to, bytes, size);
    OK(vellum, "DEL longest");
    vellum_unregister(memory);
    vellum_unregister(place);
    vellum_free(vellum);
    free(bytes);
    free(to);
}

static void many_channels(void **state)
{
    (void)state;
    struct vellum *many[MANY], *tcp = connect_by(VELLUM_RDMA_NEVER);
    redisReply *reply;
    for (int i = 0; i < MANY; i++)
        many[i] = connect_rdma();
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < MANY; i++) {
            vellum_append(many[i], "SET many:%d %d", i, i * round);
            vellum_append(many[i], "GET many:%d", (i + 7) % MANY);
            assert_int_equal(vellum_flush(many[i]), REDIS_OK);
        }
        for (int i = 0; i < 2 * MANY; i++) {
            assert_int_equal(vellum_get_reply(many[i / 2], &reply), REDIS_OK);
            assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
            freeReplyObject(reply);
        }
    }
    assert_int_equal(figure(tcp, "rdma_channels"), MANY);
    assert_true(figure(tcp, "rdma_pinned_bytes") <= (MANY + 8) * 64 * 1024);
    for (int i = 0; i < MANY; i++)
        vellum_free(many[i]);
    await_figure(tcp, "rdma_channels", 0);
    await_figure(tcp, "rdma_pinned_bytes", 0);
    vellum_free(tcp);
}

/* Processor time that a process has taken, in hundredths of seconds. */
static long ticks_of(long pid)
{
    char path[64], text[1024] = "";
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_true(got > 0);
    assert_int_equal(sscanf(strrchr(text, ')'),
                            ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
                            "%lu %lu",
                            &user, &system),
                     2);
    return (long)(user + system);
}

/* Idle channels cost no processor time. The store may have something to finish at first. */
static void idle_is_free(void **state)
{
    (void)state;
    struct vellum *many[IDLE], *tcp = connect_by(VELLUM_RDMA_NEVER);
    for (int i = 0; i < IDLE; i++) {
        many[i] = connect_rdma();
        OK(many[i], "PING");
    }
    redisReply *reply = good(tcp, vellum_command(tcp, "INFO server"));
    long pid = atol(strstr(reply->str, "process_id:") + 11);
    freeReplyObject(reply);
    long taken = LONG_MAX;
    for (int i = 0; i < 4 && taken > 4; i++) {
        long before = ticks_of(pid);
        pause_ms(2000);
        taken = ticks_of(pid) - before;
    }
    assert_true(taken <= 4); /* of 200; the second's tick included */
    for (int i = 0; i < IDLE; i++)
        vellum_free(many[i]);
    vellum_free(tcp);
}

static void killed_clients_leave_nothing(void **state)
{
    (void)state;
    struct vellum *tcp = connect_by(VELLUM_RDMA_NEVER), *neighbour = connect_rdma();
    char *bytes = pattern(100000, 3);
    OK(tcp, "SET victim %b", bytes, (size_t)100000);
    for (int i = 0; i < 12; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct vellum_options options = options_of(VELLUM_RDMA_ONLY);
            struct vellum *vellum = vellum_connect(&options);
            if (vellum_error(vellum) != NULL)
                _exit(1);
            for (int j = 0; j < 50; j++) {
                vellum_append(vellum, "GET victim");
                vellum_append(vellum, "SET victim:%d %b", j, bytes, (size_t)(i * 8000));
            }
            alarm(1);
            redisReply *reply;
            for (int j = 0; j < i * 3; j++)
                if (vellum_get_reply(vellum, &reply) == REDIS_OK)
                    freeReplyObject(reply);
            raise(SIGKILL);
        }
        OK(neighbour, "PING");
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        OK(neighbour, "PING");
    }
    await_figure(tcp, "rdma_channels", 1);
    redisReply *reply = good(neighbour, vellum_command(neighbour, "GET victim"));
    assert_memory_equal(reply->str, bytes, 100000);
    freeReplyObject(reply);
    vellum_free(neighbour);
    await_figure(tcp, "rdma_channels", 0);
    await_figure(tcp, "rdma_pinned_bytes", 0);
    await_figure(tcp, "connected_clients", 1);
    vellum_free(tcp);
    free(bytes);
}

static void closed_by_command(void **state)
{
    (void)state;
    struct vellum *tcp = connect_by(VELLUM_RDMA_NEVER), *one = connect_rdma(),
                  *other = connect_rdma();
    redisReply *reply = good(one, vellum_command(one, "CLIENT ID"));
    OK(tcp, "RDMA CLOSE %lld", reply->integer);
    freeReplyObject(reply);
    assert_null(vellum_command(one, "PING"));
    assert_non_null(vellum_error(one));
    reply = good(other, vellum_command(other, "CLIENT ID"));
    OK(other, "RDMA CLOSE %lld", reply->integer); /* its own: after the answer */
    freeReplyObject(reply);
    assert_null(vellum_command(other, "PING"));
    reply = vellum_command(tcp, "RDMA CLOSE 1000000");
    assert_string_equal(reply->str, "ERR No such channel");
    freeReplyObject(reply);
    vellum_free(one);
    vellum_free(other);
    await_figure(tcp, "rdma_channels", 0);
    vellum_free(tcp);
}

/* RESET takes the login away, where there is a password, and then the channel. */
static void strangers_keep_no_channel(void **state)
{
    (void)state;
    struct vellum *tcp = connect_by(VELLUM_RDMA_NEVER), *vellum = connect_rdma();
    OK(vellum, "RESET");
    OK(vellum, "PING");
    OK(tcp, "CONFIG SET requirepass secret");
    OK(vellum, "PING"); /* as on TCP: it was here before */
    redisReply *reply = good(vellum, vellum_command(vellum, "RESET"));
    assert_string_equal(reply->str, "RESET");
    freeReplyObject(reply);
    assert_null(vellum_command(vellum, "PING"));
    OK(tcp, "CONFIG SET requirepass %s", "");
    await_figure(tcp, "rdma_channels", 0);
    vellum_free(vellum);
    vellum_free(tcp);
}

static void falls_back_and_says_so(void **state)
{
    (void)state;
    struct vellum_options options = options_of(VELLUM_RDMA_IF_OFFERED);
    options.device = "no_such_device";
    struct vellum *vellum = vellum_connect(&options);
    assert_null(vellum_error(vellum));
    assert_string_equal(vellum_transport(vellum), "tcp");
    assert_string_not_equal(vellum_reason(vellum), "");
    OK(vellum, "PING");
    vellum_free(vellum);
    options.rdma = VELLUM_RDMA_ONLY;
    vellum = vellum_connect(&options);
    assert_non_null(vellum_error(vellum));
    vellum_free(vellum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_it_is),
        cmocka_unit_test(values_of_all_sizes),
        cmocka_unit_test(pipelines_of_any_depth),
        cmocka_unit_test(values_by_reference),
        cmocka_unit_test(values_into_our_memory),
        cmocka_unit_test(values_into_the_pages),
        cmocka_unit_test(reads_in_flight),
        cmocka_unit_test(what_is_not_placed),
        cmocka_unit_test(killed_while_pages_are_used),
        cmocka_unit_test(cut_cable),
        cmocka_unit_test(link_down),
        cmocka_unit_test(the_longest_values),
        cmocka_unit_test(many_channels),
        cmocka_unit_test(idle_is_free),
        cmocka_unit_test(killed_clients_leave_nothing),
        cmocka_unit_test(closed_by_command),
        cmocka_unit_test(strangers_keep_no_channel),
        cmocka_unit_test(falls_back_and_says_so),
    };
    if (getenv("VELLUM_CASES") != NULL) /* a pattern: only these */
        cmocka_set_test_filter(getenv("VELLUM_CASES"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
