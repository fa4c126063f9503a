/*
 * What belongs to a connection (login, database, transactions, subscriptions, monitors, being
 * paused, killed and limited): by a channel of either mode as by TCP.
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

#define LARGE 50000

/* A client over a channel, and one over TCP that acts on it. */
struct both {
    struct vellum *channel;
    redisContext *tcp;
};

static redisReply *take(struct vellum *channel)
{
    redisReply *reply;
    if (vellum_get_reply(channel, &reply) != REDIS_OK)
        fail_msg("%s", vellum_error(channel));
    return reply;
}

/* The text of a reply, or its first words; an integer as text. */
static void is_text(redisReply *reply, const char *wanted)
{
    char number[32];
    assert_non_null(reply);
    snprintf(number, sizeof number, "%lld", reply->integer);
    const char *text = reply->type == REDIS_REPLY_INTEGER ? number : reply->str;
    if (text == NULL || strncmp(text, wanted, strlen(wanted)) != 0)
        fail_msg("'%s' instead of '%s'", text != NULL ? text : "", wanted);
    freeReplyObject(reply);
}

/* An array's elements, which are texts or integers. */
static void is_array(redisReply *reply, size_t count, const char *const *wanted)
{
    char number[32];
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    assert_int_equal(reply->elements, count);
    for (size_t i = 0; i < count; i++) {
        const redisReply *element = reply->element[i];
        snprintf(number, sizeof number, "%lld", element->integer);
        assert_string_equal(element->type == REDIS_REPLY_INTEGER ? number : element->str,
                            wanted[i]);
    }
    freeReplyObject(reply);
}

static void is_said(struct vellum *channel, const char *command, const char *wanted)
{
    assert_int_equal(vellum_append(channel, command), REDIS_OK);
    is_text(take(channel), wanted);
}

static void by_each_mode(void (*test)(struct both *both))
{
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++) {
        struct both both = {.channel = connect_neighbour((enum rdma_mode)mode), .tcp = dial()};
        test(&both);
        vellum_free(both.channel);
        await_figure(both.tcp, "rdma_channels", 0);
        redisFree(both.tcp);
    }
}

/* ---- cases ---- */

static void try_transactions(struct both *both)
{
    is_said(both->channel, "SELECT 3", "OK");
    is_said(both->channel, "MULTI", "OK");
    is_said(both->channel, "SET session 5", "QUEUED");
    is_said(both->channel, "INCR session", "QUEUED");
    vellum_append(both->channel, "EXEC");
    is_array(take(both->channel), 2, (const char *const[]){"OK", "6"});
    is_said(both->channel, "WATCH session", "OK");
    is_text(redisCommand(both->tcp, "EXISTS session"), "0");
    is_text(redisCommand(both->tcp, "SELECT 3"), "OK");
    is_text(redisCommand(both->tcp, "INCR session"), "7");
    is_said(both->channel, "MULTI", "OK");
    is_said(both->channel, "DEL session", "QUEUED");
    redisReply *reply = vellum_command(both->channel, "EXEC");
    assert_int_equal(reply->type, REDIS_REPLY_NIL);
    freeReplyObject(reply);
    is_said(both->channel, "RESET", "RESET");
    is_said(both->channel, "EXISTS session", "0"); /* in the first database */
    is_text(redisCommand(both->tcp, "DEL session"), "1");
}

static void databases_and_transactions(void **state)
{
    (void)state;
    by_each_mode(try_transactions);
}

static void try_login(struct both *both)
{
    is_text(redisCommand(both->tcp, "CONFIG SET requirepass secret"), "OK");
    is_said(both->channel, "PING", "PONG"); /* it was there before */
    is_said(both->channel, "AUTH wrong", "WRONGPASS ");
    is_said(both->channel, "AUTH secret", "OK");
    vellum_append(both->channel, "HELLO 2 AUTH default secret");
    redisReply *reply = take(both->channel);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    freeReplyObject(reply);
    is_said(both->channel, "HELLO 2 AUTH default wrong", "WRONGPASS ");
    struct vellum_options options = {.host = getenv("VELLUM_HOST"),
                                     .port = atoi(getenv("VELLUM_PORT")),
                                     .rdma = VELLUM_RDMA_ONLY,
                                     .timeout_ms = 10000,
                                     .password = "secret"};
    struct vellum *late = vellum_connect(&options);
    is_said(late, "PING", "PONG");
    vellum_free(late);
    options.password = NULL; /* to be told later, by TCP */
    options.rdma = VELLUM_RDMA_IF_OFFERED;
    late = vellum_connect(&options);
    assert_null(vellum_error(late));
    assert_string_equal(vellum_transport(late), "tcp");
    assert_non_null(strstr(vellum_reason(late), "NOAUTH"));
    is_said(late, "AUTH secret", "OK");
    is_said(late, "PING", "PONG");
    vellum_free(late);
    options.password = "wrong";
    late = vellum_connect(&options);
    assert_non_null(strstr(vellum_error(late), "WRONGPASS"));
    vellum_free(late);
    is_text(redisCommand(both->tcp, "CONFIG SET requirepass %s", ""), "OK");
}

static void passwords(void **state)
{
    (void)state;
    by_each_mode(try_login);
}

static void try_messages(struct both *both)
{
    vellum_append(both->channel, "SUBSCRIBE session");
    is_array(take(both->channel), 3, (const char *const[]){"subscribe", "session", "1"});
    is_text(redisCommand(both->tcp, "PUBLISH session news"), "1");
    is_array(take(both->channel), 3, (const char *const[]){"message", "session", "news"});
    is_said(both->channel, "GET x", "ERR Can't execute 'get'");
    is_said(both->channel, "RESET", "RESET");
    is_text(redisCommand(both->tcp, "PUBLISH session news"), "0");
    is_said(both->channel, "MONITOR", "OK");
    is_text(redisCommand(both->tcp, "ECHO seen"), "seen");
    redisReply *reply = take(both->channel);
    assert_non_null(strstr(reply->str, "\"ECHO\" \"seen\""));
    freeReplyObject(reply);
    is_said(both->channel, "RESET", "RESET");
    is_said(both->channel, "PING", "PONG");
}

static void subscriptions_and_monitors(void **state)
{
    (void)state;
    by_each_mode(try_messages);
}

static void try_lists(struct both *both)
{
    is_said(both->channel, "CLIENT SETNAME of-channel", "OK");
    is_said(both->channel, "CLIENT NO-EVICT ON", "OK");
    redisReply *reply = redisCommand(both->tcp, "CLIENT LIST");
    const char *line = strstr(reply->str, "name=of-channel");
    assert_non_null(line);
    assert_non_null(strstr(line, " flags=e "));
    assert_non_null(strstr(line, " transport=rdma\n"));
    freeReplyObject(reply);
    reply = vellum_command(both->channel, "CLIENT ID");
    is_text(redisCommand(both->tcp, "CLIENT KILL ID %lld", reply->integer), "1");
    freeReplyObject(reply);
    assert_null(vellum_command(both->channel, "PING"));
}

static void lists_and_kills(void **state)
{
    (void)state;
    by_each_mode(try_lists);
}

/* A subscriber that reads nothing is closed at its limit; what has left before is not much. */
static void try_limits(struct both *both)
{
    static char large[LARGE];
    is_text(
        redisCommand(both->tcp, "CONFIG SET client-output-buffer-limit %s", "pubsub 1000000 0 0"),
        "OK");
    vellum_append(both->channel, "SUBSCRIBE session");
    is_array(take(both->channel), 3, (const char *const[]){"subscribe", "session", "1"});
    int heard = 0;
    for (int i = 0; i < 60; i++) {
        redisReply *reply = redisCommand(both->tcp, "PUBLISH session %b", large, sizeof large);
        heard += reply->integer == 1;
        freeReplyObject(reply);
    }
    assert_in_range(heard, 1000000 / LARGE, 40);
    await_figure(both->tcp, "rdma_channels", 0);
    is_text(redisCommand(both->tcp, "CONFIG SET client-output-buffer-limit %s",
                         "pubsub 33554432 8388608 60"),
            "OK");
}

static void output_limits(void **state)
{
    (void)state;
    by_each_mode(try_limits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(databases_and_transactions),
        cmocka_unit_test(passwords),
        cmocka_unit_test(subscriptions_and_monitors),
        cmocka_unit_test(lists_and_kills),
        cmocka_unit_test(output_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
