/*
 * Commands that wait for keys, over two workers whose rounds the test orders: what happens between
 * the push that hands a key to a client and the run of its command.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/exec/blocked.h"
#include "server/exec/request.h"
#include "server/loop/worker_loop.h"
#include "tests/unit/fixture.h"

#define ROUNDS 40 /* the model leaves half of what is ready for another time */

#define POPPED(key, value) "*2\r\n$1\r\n" key "\r\n$1\r\n" value "\r\n"
#define UNBLOCKED "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"

static int set_up_two(void **state)
{
    return set_up_workers(state, 2);
}

static void say(struct fixture *fixture, struct peer *peer, const char *text, uint32_t worker)
{
    send_text(peer, text);
    poke(peer);
    for (int i = 0; i < ROUNDS; i++)
        worker_round(fixture->workers[worker], false);
}

/* One that waits on the second worker. */
static struct peer *wait_there(struct fixture *fixture, const char *command)
{
    struct peer *peer = connect_peer_to(fixture, 1);
    say(fixture, peer, command, 1);
    assert_non_null(conn_of(peer)->waiter);
    assert_received(peer, "");
    return peer;
}

static void assert_nobody_waits(struct fixture *fixture)
{
    assert_int_equal(blocked_clients(fixture->server.blocked), 0);
    assert_int_equal(blocked_keys(fixture->server.blocked), 0);
}

static void test_the_key_is_kept_for_the_waiter_it_was_handed_to(void **state)
{
    struct fixture *fixture = *state;
    struct peer *maker = connect_peer(fixture), *thief = connect_peer(fixture);
    struct peer *first = wait_there(fixture, "BLPOP k 0\r\n");
    struct peer *second = wait_there(fixture, "BLPOP k 0\r\n");
    say(fixture, maker, "RPUSH k a b c\r\n", 0);
    assert_received(maker, ":3\r\n");
    say(fixture, thief, "LPOP k\r\n", 0);
    assert_received(thief, ""); /* although its worker has had all the time */
    turn_all(fixture, ROUNDS);
    assert_received(first, POPPED("k", "a"));
    assert_received(second, POPPED("k", "b"));
    assert_received(thief, "$1\r\nc\r\n");
    assert_nobody_waits(fixture);
}

static void test_a_handed_off_waiter_is_served_unless_its_client_is_gone(void **state)
{
    struct fixture *fixture = *state;
    struct peer *maker = connect_peer(fixture);
    struct peer *unblocked = wait_there(fixture, "BLPOP k 0\r\n");
    struct peer *gone = wait_there(fixture, "BLPOP k 0\r\n");
    say(fixture, maker, "RPUSH k a\r\n", 0);
    blocked_end(conn_of(unblocked), BLOCKED_ERROR);
    turn_all(fixture, ROUNDS);
    assert_received(unblocked, POPPED("k", "a"));
    say(fixture, maker, "RPUSH k b\r\n", 0);
    conn_kill(conn_of(gone));
    turn_all(fixture, ROUNDS);
    assert_null(gone->transport);
    say(fixture, maker, "EXISTS k\r\n", 0);
    assert_received(maker, ":1\r\n:1\r\n:1\r\n"); /* it is left for others */
    assert_nobody_waits(fixture);
}

static void add_sorted_set(struct fixture *fixture, struct peer *peer, int count)
{
    char text[32];
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, i % 1000 == 0 ? "\r\nZADD big %d m%d" : " %d m%d", i, i);
        send_text(peer, text);
    }
    while (peer->taken < peer->sent.len)
        say(fixture, peer, "\r\n", 0);
    while (peer->received.len < (sizeof ":1000\r\n" - 1) * (size_t)count / 1000)
        turn_all(fixture, 1);
    peer->received.len = 0;
}

static void test_a_long_pop_ends_when_its_client_is_gone(void **state)
{
    struct fixture *fixture = *state;
    struct peer *maker = connect_peer(fixture);
    add_sorted_set(fixture, maker, 40000);
    struct peer *gone = wait_there(fixture, "BZMPOP 0 1 k MIN COUNT 20000\r\n");
    const struct request *request = STAILQ_FIRST(&conn_of(gone)->requests);
    say(fixture, maker, "RENAME big k\r\n", 0);
    while (request->fiber == NULL) { /* then it has removed some, and others have their turn */
        assert_non_null(STAILQ_FIRST(&conn_of(gone)->requests));
        turn_all(fixture, 1);
    }
    conn_kill(conn_of(gone));
    for (int i = 0; gone->transport != NULL; i++) { /* how many depends on the machine */
        assert_in_range(i, 0, 100000);
        turn_all(fixture, 1);
    }
    say(fixture, maker, "ZCARD k\r\n", 0);
    turn_all(fixture, ROUNDS);
    assert_received(maker, "+OK\r\n:40000\r\n");
    assert_nobody_waits(fixture);
}

/* What has expired when it comes to look: it waits on, or ends as it was told to meanwhile. */
static void test_a_waiter_that_is_handed_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct peer *maker = connect_peer(fixture);
    struct peer *first = wait_there(fixture, "BLPOP k 0\r\n");
    for (int i = 0; i < 2; i++) {
        say(fixture, maker, "MULTI\r\nRPUSH k a\r\nPEXPIRE k 1\r\nEXEC\r\n", 0);
        usleep(3000);
        if (i == 1)
            blocked_end(conn_of(first), BLOCKED_ERROR);
        turn_all(fixture, ROUNDS);
        assert_received(first, i == 0 ? "" : UNBLOCKED);
    }
    struct peer *second = wait_there(fixture, "BLPOP k 0\r\n");
    say(fixture, maker, "RPUSH k b\r\n", 0);
    turn_all(fixture, ROUNDS);
    assert_received(second, POPPED("k", "b"));
    assert_nobody_waits(fixture);
}

static void test_what_one_does_not_take_goes_to_the_next(void **state)
{
    struct fixture *fixture = *state;
    struct peer *maker = connect_peer(fixture), *thief = connect_peer(fixture);
    struct peer *wrong = wait_there(fixture, "BLMOVE k s LEFT LEFT 0\r\n");
    struct peer *second = wait_there(fixture, "BLPOP k 0\r\n");
    say(fixture, maker, "SET s 1\r\nRPUSH k a\r\n", 0);
    say(fixture, thief, "LPOP k\r\n", 0);
    turn_all(fixture, ROUNDS);
    assert_received(wrong,
                    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    assert_received(second, POPPED("k", "a"));
    assert_received(thief, "$-1\r\n");
    assert_nobody_waits(fixture);
}

/* A swap of databases may bring either type: waiters for both types look, one after the other. */
static void test_a_swap_is_for_who_can_use_it(void **state)
{
    struct fixture *fixture = *state;
    struct peer *maker = connect_peer(fixture);
    struct peer *ordered = wait_there(fixture, "BZPOPMIN k 0\r\n");
    struct peer *listed = wait_there(fixture, "BLPOP k 0\r\n");
    say(fixture, maker, "SELECT 1\r\nRPUSH k a b\r\nSWAPDB 0 1\r\n", 0);
    turn_all(fixture, ROUNDS);
    assert_received(listed, POPPED("k", "a"));
    assert_received(ordered, "");
    say(fixture, maker, "SELECT 0\r\nDEL k\r\nZADD k 1 m\r\n", 0);
    turn_all(fixture, ROUNDS);
    assert_received(ordered, "*3\r\n$1\r\nk\r\n$1\r\nm\r\n$1\r\n1\r\n");
    assert_nobody_waits(fixture);
}

/* A client that was handed one key holds up no waiter at its other keys, and what it leaves there
 * is handed on when it has been served. */
static void test_two_keys_ready_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct peer *maker = connect_peer(fixture);
    struct peer *both = wait_there(fixture, "BLPOP k l 0\r\n");
    struct peer *other = wait_there(fixture, "BLPOP l 0\r\n");
    say(fixture, maker, "RPUSH k a\r\nRPUSH l b\r\n", 0);
    turn_all(fixture, ROUNDS);
    assert_received(both, POPPED("k", "a"));
    assert_received(other, POPPED("l", "b"));
    both = wait_there(fixture, "BLPOP k l 0\r\n");
    say(fixture, maker, "RPUSH k a\r\nRPUSH l b\r\n", 0); /* only `both` waits for l */
    say(fixture, other, "BLPOP l 0\r\n", 1);
    turn_all(fixture, ROUNDS);
    assert_received(both, POPPED("k", "a"));
    assert_received(other, POPPED("l", "b"));
    assert_nobody_waits(fixture);
}

static void test_the_end_of_a_wait(void **state)
{
    struct fixture *fixture = *state;
    struct peer *maker = connect_peer(fixture);
    struct peer *timed = wait_there(fixture, "BLPOP k 0.02\r\n");
    struct peer *gone = wait_there(fixture, "BRPOP k 0\r\n");
    struct peer *third = wait_there(fixture, "BLPOP k 0\r\n");
    conn_kill(conn_of(gone));
    usleep(30000);
    turn_all(fixture, 3);
    assert_received(timed, "*-1\r\n");
    say(fixture, maker, "RPUSH k a\r\n", 0);
    turn_all(fixture, ROUNDS);
    assert_received(third, POPPED("k", "a"));
    assert_nobody_waits(fixture);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_two, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_key_is_kept_for_the_waiter_it_was_handed_to),
        TEST(test_a_handed_off_waiter_is_served_unless_its_client_is_gone),
        TEST(test_a_long_pop_ends_when_its_client_is_gone),
        TEST(test_a_waiter_that_is_handed_nothing),
        TEST(test_what_one_does_not_take_goes_to_the_next),
        TEST(test_a_swap_is_for_who_can_use_it),
        TEST(test_two_keys_ready_at_once),
        TEST(test_the_end_of_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
