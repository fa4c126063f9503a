/*
 * Messages between two workers whose rounds the test orders.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/fixture.h"

#define COUNT 60000u
#define ROUNDS 200
#define COMMAND "PUBLISH n m\r\n"
#define ANSWER ":1\r\n"
#define CONFIRMED "*3\r\n$9\r\nsubscribe\r\n$1\r\nn\r\n:1\r\n"
#define MESSAGE "*3\r\n$7\r\nmessage\r\n$1\r\nn\r\n$1\r\nm\r\n"

static int set_up_two(void **state)
{
    return set_up_workers(state, 2);
}

static size_t answers(const struct peer *peer)
{
    return peer->received.len / strlen(ANSWER);
}

/* While the subscriber's worker is busy, pending messages are bounded: only the publisher waits.
 * Nothing is lost. */
static void test_who_publishes_faster_than_is_delivered_waits(void **state)
{
    struct fixture *fixture = *state;
    struct peer *publisher = connect_peer(fixture), *other = connect_peer(fixture);
    struct peer *subscriber = connect_peer_to(fixture, 1);
    atomic_store(&fixture->server.client_soft_limit, 4u << 20);
    send_text(subscriber, "SUBSCRIBE n\r\n");
    poke(subscriber);
    turn_all(fixture, 3);
    assert_received(subscriber, CONFIRMED);
    for (uint32_t i = 0; i < COUNT; i++)
        add_bytes(&publisher->sent, COMMAND, strlen(COMMAND));
    publisher->cut = publisher->sent.len;
    run(fixture, publisher, ROUNDS);
    size_t before = answers(publisher);
    assert_in_range(before, 1000, COUNT / 2);
    run(fixture, publisher, ROUNDS);
    assert_int_equal(answers(publisher), before);
    send_text(other, "PING\r\n");
    run(fixture, other, 1);
    assert_received(other, "+PONG\r\n");
    for (int i = 0; i < 50 * ROUNDS && answers(publisher) < COUNT; i++) {
        poke(publisher);
        turn_all(fixture, 1);
        poke(subscriber);
    }
    for (int i = 0; i < 50 * ROUNDS && subscriber->received.len < COUNT * strlen(MESSAGE); i++) {
        turn_all(fixture, 1);
        poke(subscriber);
    }
    assert_int_equal(answers(publisher), COUNT);
    assert_int_equal(subscriber->received.len, COUNT * strlen(MESSAGE));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_two, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_who_publishes_faster_than_is_delivered_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
