/*
 * The registry of subscriptions: what is counted where, over two workers, and that nothing is
 * left. Delivery is tested over sockets (tests/server/test_pubsub.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/net/conn.h"
#include "server/pubsub/pubsub.h"
#include "server/core/server.h"
#include "server/net/transport.h"

#define CONNS 6

struct fixture {
    struct server server;
    struct worker workers[2];
    struct conn conns[CONNS]; /* of the two workers by turns */
    struct transport transport;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->server.pubsub = pubsub_new(2);
    assert_non_null(fixture->server.pubsub);
    for (uint32_t i = 0; i < 2; i++) {
        fixture->workers[i].server = &fixture->server;
        fixture->workers[i].index = i;
    }
    for (uint32_t i = 0; i < CONNS; i++) {
        fixture->conns[i].worker = &fixture->workers[i % 2];
        fixture->conns[i].session.id = i + 1;
        fixture->conns[i].transport = &fixture->transport; /* it is open */
    }
    *state = fixture;
    return 0;
}

/* pubsub_free asserts that no topic is left. */
static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t i = 0; i < CONNS; i++)
        pubsub_leave(&fixture->conns[i]);
    for (int kind = 0; kind < PUBSUB_KINDS; kind++)
        assert_false(pubsub_has(fixture->server.pubsub, (enum pubsub_kind)kind));
    pubsub_free(fixture->server.pubsub);
    free(fixture);
    return 0;
}

static struct resp_slice slice(const char *text)
{
    return (struct resp_slice){text, strlen(text)};
}

static void subscribing_twice_counts_once(void **state)
{
    struct fixture *fixture = *state;
    struct conn *conn = &fixture->conns[0];
    struct pubsub *pubsub = fixture->server.pubsub;
    for (int i = 0; i < 2; i++)
        assert_true(pubsub_subscribe(conn, PUBSUB_CHANNEL, slice("a")));
    assert_int_equal(conn->session.pubsub.count[PUBSUB_CHANNEL], 1);
    assert_int_equal(pubsub_subscribers(pubsub, PUBSUB_CHANNEL, slice("a")), 1);
    assert_int_equal(pubsub_subscribers(pubsub, PUBSUB_SHARD, slice("a")), 0);
    pubsub_unsubscribe(conn, PUBSUB_CHANNEL, slice("b"));
    pubsub_unsubscribe(conn, PUBSUB_SHARD, slice("a"));
    assert_int_equal(pubsub_receivers(pubsub, PUBSUB_CHANNEL, slice("a")), 1);
    pubsub_unsubscribe(conn, PUBSUB_CHANNEL, slice("a"));
    assert_int_equal(pubsub_receivers(pubsub, PUBSUB_CHANNEL, slice("a")), 0);
    assert_false(pubsub_is_subscriber(&conn->session.pubsub));
}

/* An EXEC may go on when its client has gone. */
static void a_closed_connection_subscribes_to_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct conn *conn = &fixture->conns[0];
    conn->transport = NULL;
    assert_true(pubsub_subscribe(conn, PUBSUB_CHANNEL, slice("a")));
    assert_true(pubsub_subscribe(conn, PUBSUB_PATTERN, slice("a*")));
    assert_false(pubsub_is_subscriber(&conn->session.pubsub));
    assert_int_equal(pubsub_receivers(fixture->server.pubsub, PUBSUB_CHANNEL, slice("a")), 0);
}

static void receivers_of_channels_and_patterns(void **state)
{
    struct fixture *fixture = *state;
    struct pubsub *pubsub = fixture->server.pubsub;
    for (uint32_t i = 0; i < CONNS; i++) {
        assert_true(pubsub_subscribe(&fixture->conns[i], PUBSUB_PATTERN, slice("n*")));
        if (i < 4)
            assert_true(pubsub_subscribe(&fixture->conns[i], PUBSUB_CHANNEL, slice("news")));
    }
    assert_true(pubsub_subscribe(&fixture->conns[5], PUBSUB_PATTERN, slice("*")));
    assert_int_equal(pubsub_topics(pubsub, PUBSUB_PATTERN), 2);
    assert_int_equal(pubsub_receivers(pubsub, PUBSUB_CHANNEL, slice("news")), 4 + CONNS + 1);
    assert_int_equal(pubsub_receivers(pubsub, PUBSUB_CHANNEL, slice("other")), 1);
    assert_int_equal(pubsub_receivers(pubsub, PUBSUB_SHARD, slice("news")), 0);
    for (uint32_t i = 0; i < 3; i++)
        pubsub_leave(&fixture->conns[i]);
    assert_int_equal(pubsub_receivers(pubsub, PUBSUB_CHANNEL, slice("news")), 1 + 3 + 1);
    pubsub_leave(&fixture->conns[5]);
    assert_int_equal(pubsub_topics(pubsub, PUBSUB_PATTERN), 1);
}

static void monitors_are_counted(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t i = 0; i < 2; i++)
        assert_true(pubsub_subscribe(&fixture->conns[i], PUBSUB_MONITOR, slice("")));
    assert_int_equal(atomic_load(&fixture->server.monitor_count), 2);
    assert_false(pubsub_is_subscriber(&fixture->conns[0].session.pubsub));
    assert_true(pubsub_is_bound(&fixture->conns[0].session.pubsub));
    pubsub_leave(&fixture->conns[0]);
    assert_int_equal(atomic_load(&fixture->server.monitor_count), 1);
}

#define MANY 5000

struct seen {
    uint32_t count;
    bool names[MANY];
};

static void note_name(void *arg, struct resp_slice name)
{
    struct seen *seen = arg;
    char text[16];
    snprintf(text, sizeof text, "%.*s", (int)name.len, name.data);
    unsigned long number = strtoul(text, NULL, 10);
    assert_true(number < MANY && !seen->names[number]);
    seen->names[number] = true;
    seen->count++;
}

static void tables_grow_and_every_name_is_found_once(void **state)
{
    struct fixture *fixture = *state;
    struct pubsub *pubsub = fixture->server.pubsub;
    struct seen *seen = calloc(1, sizeof *seen);
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%d", i);
        for (int j = 0; j <= i % 3; j++)
            assert_true(pubsub_subscribe(&fixture->conns[j], PUBSUB_SHARD, slice(name)));
    }
    pubsub_each(pubsub, PUBSUB_SHARD, note_name, seen);
    assert_int_equal(seen->count, MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_int_equal(pubsub_subscribers(pubsub, PUBSUB_SHARD, slice(name)), i % 3 + 1);
        pubsub_unsubscribe(&fixture->conns[0], PUBSUB_SHARD, slice(name));
    }
    assert_int_equal(pubsub_topics(pubsub, PUBSUB_SHARD), MANY - (MANY + 2) / 3);
    struct resp_slice any;
    assert_false(pubsub_any(&fixture->conns[0], PUBSUB_SHARD, &any));
    assert_true(pubsub_any(&fixture->conns[1], PUBSUB_SHARD, &any));
    free(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(subscribing_twice_counts_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_closed_connection_subscribes_to_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(receivers_of_channels_and_patterns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(monitors_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tables_grow_and_every_name_is_found_once, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
