/*
 * The limits of a server that has small ones: of channels, of pinned memory, of the cache's pages
 * that one client holds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/rdma/raw.h"

/* ---- too many ---- */

#define MOST 24 /* the server that this case is for has room for fewer */

/* As many as the server's limits allow, and then none; each refusal leaves its client TCP. */
static void more_than_there_is_room_for(enum rdma_mode mode, const char *limit)
{
    struct raw *many = calloc(MOST, sizeof *many);
    redisContext *tcp = dial();
    int count = 0;
    assert_non_null(many);
    for (int i = 0; i < MOST; i++) {
        raw_open_device(&many[i], mode);
        redisReply *reply = raw_ask(&many[i], NULL, NULL);
        if (reply->type == REDIS_REPLY_ERROR)
            assert_non_null(strstr(reply->str, limit));
        count += reply->type == REDIS_REPLY_ARRAY;
        assert_int_equal(reply->type == REDIS_REPLY_ARRAY, count > i);
        freeReplyObject(reply);
    }
    assert_in_range(count, 8, MOST - 1);
    assert_int_equal(figure(tcp, "rdma_channels"), count);
    assert_in_range(figure(tcp, "rdma_pinned_bytes"), 1, figure(tcp, "rdma_max_pinned_bytes"));
    redisReply *reply = redisCommand(many[MOST - 1].tcp, "PING");
    assert_string_equal(reply->str, "PONG");
    freeReplyObject(reply);
    for (int i = 0; i < MOST; i++)
        raw_free(&many[i]);
    await_figure(tcp, "rdma_channels", 0);
    await_figure(tcp, "rdma_pinned_bytes", 0);
    redisFree(tcp);
    free(many);
}

static void more_channels_than_allowed(void **state)
{
    (void)state;
    more_than_there_is_room_for(RDMA_MODE_WRITE, "rdma-max-channels");
}

static void more_memory_than_allowed(void **state)
{
    (void)state;
    more_than_there_is_room_for(RDMA_MODE_SEND, "rdma-max-pinned");
}

/* ---- pages ---- */

#define VALUE 100000 /* many times what one client may hold */

/* Asks for a value to be moved by reference; the client need not do anything until the reply. */
static void begin_transfer(struct vellum *vellum, const struct vellum_memory *memory, bool sets)
{
    int begun = sets ? vellum_append_set_from(vellum, "held", 4, memory, 0, VALUE)
                     : vellum_append_get_into(vellum, "held", 4, memory, 0, VALUE);
    assert_int_equal(begun, REDIS_OK);
    assert_int_equal(vellum_flush(vellum), REDIS_OK);
}

static void end_transfer(struct vellum *vellum)
{
    redisReply *reply = NULL;
    if (vellum_get_reply(vellum, &reply) != REDIS_OK)
        fail_msg("%s", vellum_error(vellum));
    assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
}

/* Until values go straight from and to the pages, which are registered by and by. */
static void await_pages(redisContext *tcp, struct vellum *vellum,
                        const struct vellum_memory *memory, bool sets)
{
    const char *moved = sets ? "rdma_pulled_bytes" : "rdma_placed_bytes";
    long long here = 0;
    for (int i = 0; i < 100 && here < VALUE; i++) {
        long long before = figure(tcp, moved);
        begin_transfer(vellum, memory, sets);
        end_transfer(vellum);
        here = figure(tcp, moved) - before;
    }
    assert_int_equal(here, VALUE);
}

/* The most that is seen to be held while one value travels by a slow cable. */
static long long most_held(redisContext *tcp, struct vellum *vellum,
                           const struct vellum_memory *memory, bool sets)
{
    long long most = 0;
    assert_int_equal(system("tc qdisc add dev vb root netem delay 40ms"), 0);
    begin_transfer(vellum, memory, sets);
    for (int i = 0; i < 1000 && (most == 0 || figure(tcp, "rdma_held_bytes") > 0); i++) {
        long long held = figure(tcp, "rdma_held_bytes");
        most = held > most ? held : most;
        pause_ms(1);
    }
    assert_int_equal(system("tc qdisc del dev vb root"), 0);
    end_transfer(vellum);
    return most;
}

static void no_more_pages_than_allowed(void **state)
{
    (void)state;
    if (getenv("VELLUM_CABLE") == NULL)
        skip();
    static char value[VALUE];
    redisContext *tcp = redisConnect("127.0.0.1", atoi(getenv("VELLUM_PORT")));
    assert_int_equal(tcp->err, 0);
    long long limit = figure(tcp, "rdma_max_pinned_per_client");
    assert_in_range(limit, 4096, VALUE / 4);
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++) {
        struct vellum *vellum = connect_neighbour((enum rdma_mode)mode);
        struct vellum_memory *memory = vellum_register(vellum, value, VALUE);
        assert_non_null(memory);
        for (int sets = 1; sets >= 0; sets--) {
            await_pages(tcp, vellum, memory, sets);
            long long held = most_held(tcp, vellum, memory, sets);
            if (held < 1 || held > limit)
                fail_msg("%lld bytes are held by one %s", held, sets ? "SET" : "GET");
        }
        vellum_unregister(memory);
        vellum_free(vellum);
    }
    await_figure(tcp, "rdma_held_bytes", 0);
    redisFree(tcp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_channels_than_allowed),
        cmocka_unit_test(more_memory_than_allowed),
        cmocka_unit_test(no_more_pages_than_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
