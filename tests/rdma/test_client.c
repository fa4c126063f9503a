/*
 * libvellum, by whatever transport VELLUM_TRANSPORT names (tcp, unix with VELLUM_SOCKET, rdma with
 * VELLUM_MODE), against the server at VELLUM_HOST and VELLUM_PORT.
 */
#include <poll.h>
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
#include <event2/event.h>

#include "clients/vellum_async.h"

#define LIMIT_MS 20000

static bool by(const char *transport)
{
    return strcmp(getenv("VELLUM_TRANSPORT"), transport) == 0;
}

static struct vellum_options options_here(void)
{
    const char *mode = getenv("VELLUM_MODE");
    return (struct vellum_options){
        .host = getenv("VELLUM_HOST"),
        .port = atoi(getenv("VELLUM_PORT")),
        .path = by("unix") ? getenv("VELLUM_SOCKET") : NULL,
        .rdma = by("rdma") ? VELLUM_RDMA_ONLY : VELLUM_RDMA_NEVER,
        .mode = mode != NULL && strcmp(mode, "write") == 0 ? VELLUM_RDMA_WRITE : VELLUM_RDMA_SEND,
        .timeout_ms = LIMIT_MS};
}

static struct vellum *connect_here(void)
{
    struct vellum_options options = options_here();
    struct vellum *vellum = vellum_connect(&options);
    assert_non_null(vellum);
    if (vellum_error(vellum) != NULL)
        fail_msg("%s", vellum_error(vellum));
    assert_string_equal(vellum_transport(vellum), getenv("VELLUM_TRANSPORT"));
    return vellum;
}

/* A reply that is as wanted; integers and texts alike as text. */
static void is_reply(struct vellum *vellum, redisReply *reply, const char *wanted)
{
    char number[32];
    if (reply == NULL)
        fail_msg("%s", vellum_error(vellum));
    snprintf(number, sizeof number, "%lld", reply->integer);
    assert_string_equal(reply->type == REDIS_REPLY_INTEGER ? number : reply->str, wanted);
    freeReplyObject(reply);
}

static char *make_bytes(size_t size)
{
    char *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 31 + i / 977);
    return bytes;
}

static void is_value(struct vellum *vellum, const char *key, const char *bytes, size_t length)
{
    redisReply *reply = vellum_command(vellum, "GET %s", key);
    if (reply == NULL)
        fail_msg("%s", vellum_error(vellum));
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    assert_int_equal(reply->len, length);
    assert_memory_equal(reply->str, bytes, length);
    freeReplyObject(reply);
}

static long long id_of(struct vellum *vellum)
{
    redisReply *reply = vellum_command(vellum, "CLIENT ID");
    assert_non_null(reply);
    long long id = reply->integer;
    freeReplyObject(reply);
    return id;
}

/* A server that has waited for the next command takes that to come now, not when it began. */
static void time_passes_between_commands(void **state)
{
    (void)state;
    struct vellum *vellum = connect_here();
    for (int i = 0; i < 5; i++) {
        is_reply(vellum, vellum_command(vellum, "SET passes x PX 60"), "OK");
        is_reply(vellum, vellum_command(vellum, "PING"), "PONG");
        usleep(70000);
        is_reply(vellum, vellum_command(vellum, "EXISTS passes"), "0");
    }
    vellum_free(vellum);
}

/* ---- loops of one's own ---- */

/* Returns a reply that one of the two has got. */
static redisReply *wait_for_either(struct vellum *both[2], int *which)
{
    for (;;) {
        struct pollfd fds[4];
        bool sleeps = true;
        for (int i = 0; i < 2; i++) {
            redisReply *reply;
            struct vellum_wait wait;
            assert_int_equal(vellum_try(both[i], &reply), REDIS_OK);
            *which = i;
            if (reply != NULL)
                return reply;
            sleeps = vellum_sleep(both[i], &wait) && sleeps;
            fds[2 * i] = (struct pollfd){.fd = wait.descriptor,
                                         .events = (short)(POLLIN | (wait.writes ? POLLOUT : 0))};
            fds[2 * i + 1] = (struct pollfd){.fd = wait.channel, .events = POLLIN};
        }
        assert_int_not_equal(poll(fds, 4, sleeps ? LIMIT_MS : 0), sleeps ? 0 : -1);
    }
}

static void replies_are_taken_as_they_come(void **state)
{
    (void)state;
    struct vellum *both[2] = {connect_here(), connect_here()};
    int which;
    vellum_append(both[0], "BLPOP try:list 0");
    vellum_append(both[1], "RPUSH try:other x");
    redisReply *reply = wait_for_either(both, &which);
    assert_int_equal(which, 1); /* the other one waits */
    freeReplyObject(reply);
    vellum_append(both[1], "RPUSH try:list x");
    for (int i = 0; i < 2; i++)
        freeReplyObject(wait_for_either(both, &which));
    /* Larger than any buffer on the way, in both directions. */
    char *bytes = make_bytes(3000000);
    vellum_append(both[0], "SET try:large %b", bytes, (size_t)3000000);
    vellum_append(both[0], "GET try:large");
    is_reply(both[0], wait_for_either(both, &which), "OK");
    reply = wait_for_either(both, &which);
    assert_int_equal(reply->len, 3000000);
    assert_memory_equal(reply->str, bytes, 3000000);
    freeReplyObject(reply);
    free(bytes);
    is_reply(both[0], vellum_command(both[0], "DEL try:other"), "1");
    vellum_free(both[0]);
    vellum_free(both[1]);
}

static void an_end_is_noticed(void **state)
{
    (void)state;
    struct vellum *both[2] = {connect_here(), connect_here()};
    redisReply *reply = NULL;
    int status = REDIS_OK;
    long long id = id_of(both[0]);
    struct vellum_wait wait;
    vellum_sleep(both[0], &wait);
    is_reply(both[1], vellum_command(both[1], "CLIENT KILL ID %lld", id), "1");
    for (int i = 0; i < 200 && status == REDIS_OK; i++) {
        struct pollfd fds[] = {{.fd = wait.descriptor, .events = POLLIN},
                               {.fd = wait.channel, .events = POLLIN}};
        poll(fds, 2, 50);
        status = vellum_try(both[0], &reply);
        assert_null(reply);
        if (status == REDIS_OK)
            vellum_sleep(both[0], &wait);
    }
    assert_int_equal(status, REDIS_ERR);
    assert_non_null(vellum_error(both[0]));
    vellum_free(both[0]);
    vellum_free(both[1]);
}

/* ---- values by reference ---- */

static void references_in_pipelines(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 100, 5000, 0, 70000, 300000};
    struct vellum *vellum = connect_here();
    const size_t size = 400000, count = sizeof sizes / sizeof *sizes;
    char *bytes = make_bytes(size);
    redisReply *reply;
    struct vellum_memory *memory = vellum_register(vellum, bytes, size);
    assert_non_null(memory);
    for (size_t i = 0; i < count; i++) {
        char key[16];
        int length = snprintf(key, sizeof key, "ref:%zu", i);
        assert_int_equal(vellum_append(vellum, "ECHO before:%d", (int)i), REDIS_OK);
        assert_int_equal(
            vellum_append_set_from(vellum, key, (size_t)length, memory, i * 1000, sizes[i]),
            REDIS_OK);
    }
    for (size_t i = 0; i < 2 * count; i++) {
        assert_int_equal(vellum_get_reply(vellum, &reply), REDIS_OK);
        assert_string_equal(reply->type == REDIS_REPLY_STATUS ? reply->str : "OK", "OK");
        assert_int_equal(reply->type, i % 2 == 1 ? REDIS_REPLY_STATUS : REDIS_REPLY_STRING);
        freeReplyObject(reply);
    }
    for (size_t i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof key, "ref:%zu", i);
        is_value(vellum, key, bytes + i * 1000, sizes[i]);
    }
    assert_null(vellum_set_from(vellum, "ref", 3, memory, size, 1));
    assert_non_null(vellum_error(vellum));
    vellum_unregister(memory);
    vellum_free(vellum);
    free(bytes);
}

/* What a key holds comes into the memory, whatever stands around it in the pipeline. */
static void values_into_memory_in_pipelines(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 100, 5000, 0, 70000, 300000};
    struct vellum *vellum = connect_here();
    const size_t size = 400000, count = sizeof sizes / sizeof *sizes;
    char *bytes = make_bytes(size), *to = calloc(count + 2, size);
    struct vellum_memory *from = vellum_register(vellum, bytes, size),
                         *memory = vellum_register(vellum, to, (count + 2) * size);
    for (size_t i = 0; i < count; i++) {
        char key[16];
        int length = snprintf(key, sizeof key, "into:%zu", i);
        vellum_append_set_from(vellum, key, (size_t)length, from, i * 1000, sizes[i]);
        vellum_append_formatted(vellum, "PING\r\n*2\r\n$4\r\nECHO\r\n$2\r\n*1\r\n", 28);
        assert_int_equal(
            vellum_append_get_into(vellum, key, (size_t)length, memory, i * size, size), REDIS_OK);
        vellum_append(vellum, "STRLEN %s", key);
    }
    vellum_append_get_into(vellum, "into:3", 6, memory, 0, 0);    /* empty, and no room */
    vellum_append_get_into(vellum, "into:5", 6, memory, 0, 1000); /* too long */
    vellum_append_get_into(vellum, "into:none", 9, memory, 0, size);
    vellum_append_get_into(vellum, "into:2", 6, memory, count * size, size);
    assert_int_equal(vellum_flush(vellum), REDIS_OK); /* as far as that goes */
    redisReply *reply;
    for (size_t i = 0; i < count; i++) {
        char wanted[16];
        const char *const replies[] = {"OK", "PONG", "*1", wanted, wanted};
        snprintf(wanted, sizeof wanted, "%zu", sizes[i]);
        for (int j = 0; j < 5; j++) {
            assert_int_equal(vellum_get_reply(vellum, &reply), REDIS_OK);
            is_reply(vellum, reply, replies[j]);
        }
        assert_memory_equal(to + i * size, bytes + i * 1000, sizes[i]);
    }
    assert_int_equal(vellum_get_reply(vellum, &reply), REDIS_OK);
    is_reply(vellum, reply, "0");
    assert_int_equal(vellum_get_reply(vellum, &reply), REDIS_OK);
    assert_int_equal(reply->len, 300000);
    freeReplyObject(reply);
    assert_int_equal(vellum_get_reply(vellum, &reply), REDIS_OK);
    assert_int_equal(reply->type, REDIS_REPLY_NIL);
    freeReplyObject(reply);
    assert_int_equal(vellum_get_reply(vellum, &reply), REDIS_OK);
    is_reply(vellum, reply, "5000");
    assert_memory_equal(to + count * size, bytes + 2000, 5000);
    vellum_unregister(from);
    vellum_unregister(memory);
    vellum_free(vellum);
    free(bytes);
    free(to);
}

static void pools_of_buffers(void **state)
{
    (void)state;
    struct vellum *vellum = connect_here();
    struct vellum_pool *pool = vellum_pool_new(vellum, 5000, 3);
    assert_non_null(pool);
    char *buffers[3];
    for (int i = 0; i < 3; i++) {
        buffers[i] = vellum_pool_take(pool);
        assert_non_null(buffers[i]);
        memset(buffers[i], 'a' + i, 5000);
    }
    assert_null(vellum_pool_take(pool));
    assert_int_equal(vellum_pool_give(pool, buffers[1] + 1), REDIS_ERR);
    assert_int_equal(vellum_pool_give(pool, &pool), REDIS_ERR);
    for (int i = 0; i < 3; i++) {
        is_reply(vellum,
                 vellum_set_from(vellum, "pool", 4, vellum_pool_memory(pool),
                                 vellum_pool_offset(pool, buffers[i]), 5000),
                 "OK");
        is_value(vellum, "pool", buffers[i], 5000);
    }
    assert_int_equal(vellum_pool_give(pool, buffers[1]), REDIS_OK);
    assert_int_equal(vellum_pool_give(pool, buffers[1]), REDIS_ERR); /* twice */
    assert_ptr_equal(vellum_pool_take(pool), buffers[1]);
    assert_null(vellum_pool_new(vellum, SIZE_MAX / 4, 8));
    vellum_pool_free(pool);
    vellum_free(vellum);
}

static void connected_again(void **state)
{
    (void)state;
    struct vellum *vellum = connect_here(), *other = connect_here();
    struct vellum_pool *pool = vellum_pool_new(vellum, 100000, 2);
    char *buffer = vellum_pool_take(pool);
    memset(buffer, 'r', 100000);
    for (int i = 0; i < 3; i++) {
        is_reply(other, vellum_command(other, "CLIENT KILL ID %lld", id_of(vellum)), "1");
        while (vellum_error(vellum) == NULL) {
            redisReply *reply = vellum_command(vellum, "PING");
            if (reply != NULL)
                freeReplyObject(reply);
        }
        assert_null(vellum_command(vellum, "PING"));
        assert_int_equal(vellum_reconnect(vellum), REDIS_OK);
        assert_null(vellum_error(vellum));
        assert_string_equal(vellum_transport(vellum), getenv("VELLUM_TRANSPORT"));
        is_reply(vellum,
                 vellum_set_from(vellum, "again", 5, vellum_pool_memory(pool),
                                 vellum_pool_offset(pool, buffer), 100000),
                 "OK");
        is_value(vellum, "again", buffer, 100000);
    }
    vellum_pool_free(pool);
    vellum_free(vellum);
    vellum_free(other);
}

/* ---- processes ---- */

static bool is_listed(struct vellum *vellum, long long id)
{
    redisReply *reply = vellum_command(vellum, "CLIENT LIST ID %lld", id);
    assert_non_null(reply);
    bool is = reply->len > 0;
    freeReplyObject(reply);
    return is;
}

/* A process that was forked meanwhile, or a program that was started, keeps no connection open. (A
 * fork alone may go on to use one by TCP.) */
static void a_process_keeps_no_connection(void **state)
{
    (void)state;
    struct vellum *other = connect_here();
    for (int execs = by("rdma") ? 0 : 1; execs < 2; execs++) {
        struct vellum *vellum = connect_here();
        long long id = id_of(vellum);
        assert_true(is_listed(other, id));
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            if (execs)
                execlp("sleep", "sleep", "30", (char *)NULL);
            for (;;)
                pause();
        }
        usleep(300000); /* until it has started */
        vellum_free(vellum);
        for (int i = 0; i < 100 && is_listed(other, id); i++)
            usleep(20000);
        bool is_kept = is_listed(other, id);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        assert_false(is_kept);
    }
    vellum_free(other);
}

/* ---- the asynchronous form ---- */

struct watcher {
    struct event_base *base;
    struct vellum_async *async;
    struct vellum *other; /* by it, things are done to the asynchronous one */
    struct vellum_memory *memory;
    char *bytes;
    int connected, refused, lost, ended, replies, missing, messages;
    long long last;
};

static struct event_base *base_with_limit(void)
{
    struct event_base *base = event_base_new();
    assert_non_null(base);
    alarm(LIMIT_MS / 1000); /* a timer of the base's own would keep its loop running */
    return base;
}

static void on_connected(struct vellum_async *async, int status, void *data)
{
    struct watcher *watcher = data;
    watcher->connected += status == REDIS_OK;
    watcher->refused += status != REDIS_OK;
    assert_true((vellum_async_error(async) == NULL) == (status == REDIS_OK));
}

static void on_disconnected(struct vellum_async *async, int status, void *data)
{
    struct watcher *watcher = data;
    watcher->ended += status == REDIS_OK;
    watcher->lost += status != REDIS_OK;
    assert_true(status == REDIS_OK || vellum_async_error(async) != NULL);
}

static struct vellum_async *start(struct watcher *watcher, struct vellum_async_events events)
{
    struct vellum_options options = options_here();
    events.connected = events.connected != NULL ? events.connected : on_connected;
    events.disconnected = events.disconnected != NULL ? events.disconnected : on_disconnected;
    watcher->base = base_with_limit();
    struct vellum_async *async = vellum_async_connect(watcher->base, &options, &events, watcher);
    assert_non_null(async);
    return async;
}

/* Until nothing is left to wait for. */
static void run(struct watcher *watcher)
{
    event_base_dispatch(watcher->base);
    alarm(0);
    event_base_free(watcher->base);
}

static void on_count(struct vellum_async *async, redisReply *reply, void *data)
{
    struct watcher *watcher = data;
    assert_non_null(reply);
    assert_int_equal(reply->integer, watcher->last + 1);
    watcher->last = reply->integer;
    watcher->replies++;
    if (watcher->replies == 1)
        assert_string_equal(vellum_async_transport(async), getenv("VELLUM_TRANSPORT"));
}

static void replies_come_in_order_before_the_end(void **state)
{
    (void)state;
    struct watcher watcher = {.last = 0};
    struct vellum_async *async = start(&watcher, (struct vellum_async_events){.reconnect_ms = 0});
    assert_int_equal(vellum_async_command(async, NULL, NULL, "DEL async:count"), REDIS_OK);
    for (int i = 0; i < 3000; i++)
        assert_int_equal(vellum_async_command(async, on_count, &watcher, "INCR async:count"),
                         REDIS_OK);
    vellum_async_disconnect(async);
    assert_int_equal(vellum_async_command(async, on_count, &watcher, "PING"), REDIS_ERR);
    run(&watcher);
    assert_int_equal(watcher.replies, 3000);
    assert_int_equal(watcher.connected, 1);
    assert_int_equal(watcher.ended, 1);
    assert_int_equal(watcher.lost + watcher.refused, 0);
}

static void on_large(struct vellum_async *async, redisReply *reply, void *data)
{
    struct watcher *watcher = data;
    assert_int_equal(reply->len, 200000);
    assert_memory_equal(reply->str, watcher->bytes, 200000);
    watcher->replies++;
    if (watcher->replies < 5)
        vellum_async_command(async, on_large, data, "GET async:large");
    else
        vellum_async_disconnect(async);
}

static void on_end_unregister(struct vellum_async *async, int status, void *data)
{
    on_disconnected(async, status, data);
    vellum_unregister(((struct watcher *)data)->memory);
}

static void on_open_set(struct vellum_async *async, int status, void *data)
{
    struct watcher *watcher = data;
    on_connected(async, status, data);
    watcher->memory = vellum_register(vellum_async_connection(async), watcher->bytes, 200000);
    assert_non_null(watcher->memory);
    assert_int_equal(
        vellum_async_set_from(async, NULL, NULL, "async:large", 11, watcher->memory, 0, 200000),
        REDIS_OK);
    vellum_async_command(async, on_large, data, "GET async:large");
}

static void callbacks_give_commands(void **state)
{
    (void)state;
    struct watcher watcher = {.bytes = make_bytes(200000)};
    start(&watcher, (struct vellum_async_events){.connected = on_open_set,
                                                 .disconnected = on_end_unregister});
    run(&watcher);
    assert_int_equal(watcher.replies, 5);
    assert_int_equal(watcher.ended, 1);
    free(watcher.bytes);
}

static void on_into(struct vellum_async *async, redisReply *reply, void *data)
{
    struct watcher *watcher = data;
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    assert_int_equal(reply->integer, watcher->replies % 2 == 0 ? 100000 : 70000);
    if (++watcher->replies == 6)
        vellum_async_disconnect(async);
}

/* Two values, there and back, several times in turn. */
static void on_open_into(struct vellum_async *async, int status, void *data)
{
    struct watcher *watcher = data;
    on_connected(async, status, data);
    watcher->memory = vellum_register(vellum_async_connection(async), watcher->bytes, 400000);
    assert_non_null(watcher->memory);
    vellum_async_set_from(async, NULL, NULL, "async:0", 7, watcher->memory, 0, 100000);
    vellum_async_set_from(async, NULL, NULL, "async:1", 7, watcher->memory, 100000, 70000);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(vellum_async_get_into(async, on_into, data,
                                               i % 2 == 0 ? "async:0" : "async:1", 7,
                                               watcher->memory, 200000 + i % 2 * 100000, 100000),
                         REDIS_OK);
}

static void values_into_memory_by_callback(void **state)
{
    (void)state;
    struct watcher watcher = {.bytes = make_bytes(400000)};
    memset(watcher.bytes + 200000, 0, 200000);
    start(&watcher, (struct vellum_async_events){.connected = on_open_into,
                                                 .disconnected = on_end_unregister});
    run(&watcher);
    assert_int_equal(watcher.replies, 6);
    assert_memory_equal(watcher.bytes, watcher.bytes + 200000, 170000);
    free(watcher.bytes);
}

static void on_message(struct vellum_async *async, redisReply *reply, void *data)
{
    struct watcher *watcher = data;
    assert_string_equal(reply->element[0]->str, "message");
    if (++watcher->messages == 6)
        vellum_async_free(async);
}

static void on_subscribed(struct vellum_async *async, redisReply *reply, void *data)
{
    struct watcher *watcher = data;
    (void)async;
    assert_string_equal(reply->element[0]->str, "subscribe");
    if (++watcher->replies == 2)
        for (int i = 0; i < 6; i++)
            is_reply(watcher->other, vellum_command(watcher->other, "PUBLISH async:%d text", i % 2),
                     "1");
}

static void messages_of_subscriptions(void **state)
{
    (void)state;
    struct watcher watcher = {.other = connect_here()};
    struct vellum_async *async =
        start(&watcher, (struct vellum_async_events){.message = on_message});
    vellum_async_command(async, on_subscribed, &watcher, "SUBSCRIBE async:0 async:1");
    run(&watcher);
    assert_int_equal(watcher.messages, 6);
    assert_int_equal(watcher.ended, 1);
    vellum_free(watcher.other);
}

static void on_nothing(struct vellum_async *async, redisReply *reply, void *data)
{
    struct watcher *watcher = data;
    watcher->missing += reply == NULL;
    /* This waits for the next connection. */
    if (watcher->missing == 1 && reply == NULL)
        assert_int_equal(vellum_async_command(async, on_nothing, data, "PING"), REDIS_OK);
    if (reply != NULL && reply->type == REDIS_REPLY_STATUS) {
        watcher->replies++;
        vellum_async_disconnect(async);
    }
}

static void on_id(struct vellum_async *async, redisReply *reply, void *data)
{
    struct watcher *watcher = data;
    vellum_async_command(async, on_nothing, data, "BLPOP async:empty 0");
    is_reply(watcher->other, vellum_command(watcher->other, "CLIENT KILL ID %lld", reply->integer),
             "1");
}

static void lost_and_made_again(void **state)
{
    (void)state;
    struct watcher watcher = {.other = connect_here()};
    struct vellum_async *async = start(&watcher, (struct vellum_async_events){.reconnect_ms = 20});
    vellum_async_command(async, on_id, &watcher, "CLIENT ID");
    run(&watcher);
    assert_int_equal(watcher.missing, 1);
    assert_int_equal(watcher.replies, 1);
    assert_int_equal(watcher.connected, 2);
    assert_int_equal(watcher.lost, 1);
    assert_int_equal(watcher.ended, 1);
    vellum_free(watcher.other);
}

static void lost_for_good(void **state)
{
    (void)state;
    struct watcher watcher = {.other = connect_here(), .missing = 1};
    struct vellum_async *async = start(&watcher, (struct vellum_async_events){.reconnect_ms = 0});
    vellum_async_command(async, on_id, &watcher, "CLIENT ID");
    run(&watcher);
    assert_int_equal(watcher.missing, 2);
    assert_int_equal(watcher.lost, 1);
    assert_int_equal(watcher.ended, 0);
    vellum_free(watcher.other);
}

static void on_absent(struct vellum_async *async, redisReply *reply, void *data)
{
    (void)async;
    ((struct watcher *)data)->missing += reply == NULL;
}

static void nobody_there(void **state)
{
    (void)state;
    struct watcher watcher = {.base = base_with_limit()};
    struct vellum_options options = options_here();
    struct vellum_async_events events = {.connected = on_connected,
                                         .disconnected = on_disconnected};
    options.port = 1;
    options.path = options.path != NULL ? "/nonexistent/socket" : NULL;
    struct vellum_async *async = vellum_async_connect(watcher.base, &options, &events, &watcher);
    vellum_async_command(async, on_absent, &watcher, "PING");
    run(&watcher);
    assert_int_equal(watcher.refused, 1);
    assert_int_equal(watcher.missing, 1);
    assert_int_equal(watcher.connected + watcher.lost + watcher.ended, 0);
}

static void on_first(struct vellum_async *async, redisReply *reply, void *data)
{
    struct watcher *watcher = data;
    watcher->replies += reply != NULL;
    watcher->missing += reply == NULL;
    if (watcher->replies == 1 && reply != NULL)
        vellum_async_free(async);
}

static void freed_in_a_callback(void **state)
{
    (void)state;
    struct watcher watcher = {.replies = 0};
    struct vellum_async *async = start(&watcher, (struct vellum_async_events){.reconnect_ms = 10});
    for (int i = 0; i < 10; i++)
        vellum_async_command(async, on_first, &watcher, "PING");
    run(&watcher);
    assert_int_equal(watcher.replies, 1);
    assert_int_equal(watcher.missing, 9);
    assert_int_equal(watcher.ended, 1);
    /* And one that has never come to the loop. */
    watcher = (struct watcher){.replies = 0};
    async = start(&watcher, (struct vellum_async_events){.reconnect_ms = 10});
    vellum_async_command(async, on_first, &watcher, "PING");
    vellum_async_free(async);
    run(&watcher);
    assert_int_equal(watcher.missing, 1);
    assert_int_equal(watcher.ended, 1);
}

static void a_wrong_password_is_told(void **state)
{
    (void)state;
    struct watcher watcher = {.base = base_with_limit()};
    struct vellum_options options = options_here();
    struct vellum_async_events events = {.connected = on_connected};
    options.user = "nobody";
    options.password = "wrong";
    assert_non_null(vellum_async_connect(watcher.base, &options, &events, &watcher));
    run(&watcher);
    assert_int_equal(watcher.refused, 1);
}

static long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A reply that does not come in time ends the connection; in another one there is time for it. */
static void replies_that_are_late(void **state)
{
    (void)state;
    struct watcher watcher = {.base = base_with_limit()};
    struct vellum_options options = options_here();
    struct vellum_async_events events = {.connected = on_connected,
                                         .disconnected = on_disconnected};
    options.timeout_ms = 500;
    struct vellum_async *async = vellum_async_connect(watcher.base, &options, &events, &watcher);
    long long began = now_ms();
    for (int i = 0; i < 4; i++) /* each has its own time */
        vellum_async_command(async, NULL, NULL, "BLPOP async:empty 0.2");
    vellum_async_command(async, on_absent, &watcher, "BLPOP async:empty 0");
    run(&watcher);
    assert_int_equal(watcher.connected, 1);
    assert_int_equal(watcher.missing, 1);
    assert_int_equal(watcher.lost, 1);
    assert_in_range(now_ms() - began, 1200, 5000);
}

static void on_open_misuse(struct vellum_async *async, int status, void *data)
{
    struct watcher *watcher = data;
    on_connected(async, status, data);
    if (watcher->connected == 2) {
        vellum_unregister(watcher->memory);
        vellum_async_disconnect(async);
        return;
    }
    watcher->memory = vellum_register(vellum_async_connection(async), watcher->bytes, 100);
    assert_non_null(watcher->memory);
    vellum_async_command(async, on_absent, data, "BLPOP async:empty 0");
}

static void misuse(evutil_socket_t fd, short what, void *arg)
{
    struct watcher *watcher = arg;
    (void)fd;
    (void)what;
    assert_int_equal(
        vellum_async_set_from(watcher->async, on_absent, arg, "key", 3, watcher->memory, 50, 51),
        REDIS_ERR);
}

/* A command that cannot be given ends the connection, which is made again. */
static void an_error_of_a_command_is_noticed(void **state)
{
    (void)state;
    const struct timeval later = {.tv_usec = 300000};
    struct watcher watcher = {.bytes = make_bytes(100)};
    watcher.async = start(&watcher, (struct vellum_async_events){.connected = on_open_misuse,
                                                                 .disconnected = on_disconnected,
                                                                 .reconnect_ms = 100});
    long long began = now_ms();
    while (watcher.memory == NULL)
        event_base_loop(watcher.base, EVLOOP_ONCE);
    event_base_once(watcher.base, -1, EV_TIMEOUT, misuse, &watcher, &later);
    run(&watcher);
    assert_int_equal(watcher.connected, 2);
    assert_int_equal(watcher.lost, 1);
    assert_int_equal(watcher.ended, 1);
    assert_int_equal(watcher.missing, 1);
    assert_in_range(now_ms() - began, 400, 10000);
    free(watcher.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_passes_between_commands),
        cmocka_unit_test(replies_are_taken_as_they_come),
        cmocka_unit_test(an_end_is_noticed),
        cmocka_unit_test(references_in_pipelines),
        cmocka_unit_test(values_into_memory_in_pipelines),
        cmocka_unit_test(pools_of_buffers),
        cmocka_unit_test(connected_again),
        cmocka_unit_test(a_process_keeps_no_connection),
        cmocka_unit_test(replies_come_in_order_before_the_end),
        cmocka_unit_test(callbacks_give_commands),
        cmocka_unit_test(values_into_memory_by_callback),
        cmocka_unit_test(messages_of_subscriptions),
        cmocka_unit_test(lost_and_made_again),
        cmocka_unit_test(lost_for_good),
        cmocka_unit_test(nobody_there),
        cmocka_unit_test(freed_in_a_callback),
        cmocka_unit_test(a_wrong_password_is_told),
        cmocka_unit_test(replies_that_are_late),
        cmocka_unit_test(an_error_of_a_command_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
