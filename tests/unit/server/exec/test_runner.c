/*
 * Connections and the runner below the socket: a transport of memory, and the model store, calm and
 * making reads wait. What a client sees must not depend on waits, on how its bytes are cut, nor on
 * how fast it reads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/exec/pause.h"
#include "server/exec/runner.h"
#include "server/net/client_memory.h"
#include "tests/model/model_store.h"
#include "tests/unit/fixture.h"

/* ---- random streams ---- */

#define LONGEST (3 * STORE_UPLOAD_MIN)

static uint64_t seed_state;

static uint32_t pick(uint32_t below)
{
    seed_state = seed_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed_state >> 33) % below;
}

static void add_command(struct bytes *out, int argc, const char *const argv[])
{
    char head[32];
    add_bytes(out, head, (size_t)snprintf(head, sizeof head, "*%d\r\n", argc));
    for (int i = 0; i < argc; i++) {
        add_bytes(out, head, (size_t)snprintf(head, sizeof head, "$%zu\r\n", strlen(argv[i])));
        add_bytes(out, argv[i], strlen(argv[i]));
        add_bytes(out, "\r\n", 2);
    }
}

/* A value that goes to its place while it arrives, in several ways; or that does not. */
static void add_long_command(struct bytes *out, const char *key)
{
    static char value[LONGEST + 1];
    size_t len = LONGEST - 1 - pick(LONGEST / 2);
    uint32_t shift = pick(26);
    for (size_t i = 0; i < len; i++)
        value[i] = (char)('a' + (i * 7 + i / 256 + shift) % 26);
    value[len] = '\0';
    const char *const ways[][5] = {{"SET", key, value},
                                   {"set", key, value, "GET"},
                                   {"SET", key, value, "NX"},
                                   {"SET", key, value, "no option"},
                                   {"SETNX", key, value},
                                   {"SETEX", key, "1000", value},
                                   {"psetex", key, "nonsense", value},
                                   {"GETSET", key, value},
                                   {"GETSET", key, value, "too many"},
                                   {"APPEND", key, value}};
    const char *const *way = ways[pick(sizeof ways / sizeof *ways)];
    int argc = 3;
    while (argc < 5 && way[argc] != NULL)
        argc++;
    add_command(out, argc, way);
}

/* Values of more than 4096 bytes are large to the model: they are streamed. */
static void add_random_command(struct bytes *out, char *value, size_t value_max)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f"};
    const char *key = keys[pick(6)], *other = keys[pick(6)];
    size_t len = pick(4) == 0 ? pick((uint32_t)value_max) : pick(40);
    memset(value, 'a' + (int)pick(26), len);
    value[len] = '\0';
    switch (pick(20)) {
    case 0:
    case 1:
        add_command(out, 3, (const char *[]){"SET", key, value});
        break;
    case 2:
        add_command(out, 3, (const char *[]){"APPEND", key, value});
        break;
    case 3:
        add_command(out, 2, (const char *[]){"DEL", key});
        break;
    case 4:
        add_command(out, 4, (const char *[]){"MGET", key, other, key});
        break;
    case 5:
        add_command(out, 2, (const char *[]){"INCR", key});
        break;
    case 6:
        add_command(out, 2, (const char *[]){"ECHO", value});
        break;
    case 7:
        add_command(out, 2, (const char *[]){"SELECT", pick(2) == 0 ? "0" : "1"});
        break;
    case 8:
        add_command(out, 1, (const char *[]){pick(2) == 0 ? "GET" : "nonsense"});
        break;
    case 9:
    case 10:
        add_command(out, 1, (const char *[]){"MULTI"});
        break;
    case 11:
    case 12:
        add_command(out, 1, (const char *[]){"EXEC"});
        break;
    case 13:
        add_command(out, 3, (const char *[]){"WATCH", key, other});
        break;
    case 14:
        add_command(out, 2, (const char *[]){pick(4) == 0 ? "KEYS" : "EXISTS", "*"});
        break;
    case 15:
        add_command(out, 2, (const char *[]){"CLIENT", "GETNAME"});
        add_command(out, 3, (const char *[]){"CLIENT", "SETNAME", key});
        break;
    case 16:
        if (pick(4) == 0)
            add_long_command(out, key);
        break;
    default:
        add_command(out, 2, (const char *[]){"GET", key});
    }
}

/* Sends the text, and gives the connection a turn to read it. */
static void deliver(struct peer *peer, const char *text)
{
    send_text(peer, text);
    poke(peer);
}

static bool is_answered(const struct peer *peer)
{
    const struct conn *conn = conn_of(peer);
    return peer->taken == peer->sent.len && conn->request_count == 0 && conn->input == NULL &&
           STAILQ_EMPTY(&conn->output);
}

static void pause_or_go_on(struct fixture *fixture)
{
    if (pick(2) == 0) {
        pause_begin(&fixture->server, pick(2) == 0 ? PAUSE_ALL : PAUSE_WRITES, INT64_MAX);
        return;
    }
    pause_end(&fixture->server);
    pause_resume(fixture->worker);
}

/* Sends everything, cut anywhere, for a client that reads at irregular times. */
static void play(struct fixture *fixture, struct peer *peer, bool with_pauses)
{
    peer->may_read = 0;
    for (int rounds = 0; peer->transport != NULL; rounds++) {
        assert_true(rounds < 1000000);
        if (peer->cut < peer->sent.len && pick(2) == 0) {
            size_t step = pick(3) == 0 ? 1 + pick(20) : 1 + pick(60000);
            size_t left = peer->sent.len - peer->cut;
            peer->cut += step < left ? step : left;
        }
        if (pick(3) == 0)
            peer->may_read = pick(50000);
        if (with_pauses && pick(4) == 0)
            pause_or_go_on(fixture);
        peer->has_ended = is_answered(peer);
        poke(peer);
        turn(fixture);
    }
}

static void restart(void **state)
{
    tear_down(state);
    set_up(state);
}

/* Nor do pauses, nor does it that long values go to their place while they arrive: with a monitor
 * they do not. */
static void test_waits_change_nothing(void **state)
{
    char *value = malloc(30001);
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct bytes reader = {0}, expected = {0};
        seed_state = seed;
        for (int i = 0; i < 600; i++)
            add_random_command(&reader, value, 30000);
        for (uint32_t waits = 0; waits <= 1000; waits += 250) {
            restart(state);
            struct fixture *fixture = *state;
            struct peer *peer = connect_peer(fixture);
            add_bytes(&peer->sent, reader.data, reader.len);
            model_store_set_waits(fixture->server.store, seed, waits);
            if (waits == 0)
                atomic_store(&fixture->server.monitor_count, 1);
            play(fixture, peer, waits == 500);
            assert_true((atomic_load(&fixture->worker->counters.uploads) > 0) == (waits > 0));
            if (waits == 0)
                add_bytes(&expected, peer->received.data, peer->received.len);
            if (peer->received.len != expected.len ||
                memcmp(peer->received.data, expected.data, expected.len) != 0)
                fail_msg("seed %llu, waits %u", (unsigned long long)seed, waits);
        }
        assert_true(expected.len > 100000);
        free(reader.data);
        free(expected.data);
    }
    free(value);
}

/* ---- order ---- */

static void test_replies_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture);
    send_text(peer, "SET a 1\r\nSET b 2\r\n");
    run(fixture, peer, 2);
    assert_received(peer, "+OK\r\n+OK\r\n");
    wait_always(fixture);
    send_text(peer, "GET a\r\nPING\r\nGET nokey\r\nnonsense\r\nMGET b a\r\nSET a 3\r\nGET a\r\n"
                    "SELECT 1\r\nGET a\r\nECHO x\r\n");
    run(fixture, peer, 50);
    assert_received(peer, "$1\r\n1\r\n+PONG\r\n$-1\r\n-ERR unknown command 'nonsense', with args "
                          "beginning with: \r\n*2\r\n$1\r\n2\r\n$1\r\n1\r\n+OK\r\n$1\r\n3\r\n"
                          "+OK\r\n$-1\r\n$1\r\nx\r\n");
}

/* The parser keeps the words of such a line itself, until the next one. */
static void test_quoted_words_outlive_their_line(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture);
    wait_always(fixture);
    send_text(peer,
              "SET \"a\" \"1\"\r\nSET \"b\" \"2\"\r\nGET \"a\"\r\nGET \"b\"\r\nPING \"c\"\r\n");
    run(fixture, peer, 50);
    assert_received(peer, "+OK\r\n+OK\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\nc\r\n");
}

static void test_reads_run_side_by_side(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture);
    wait_always(fixture);
    deliver(peer, "GET a\r\nGET b\r\nMGET c d\r\nSET a 1\r\nGET e\r\n");
    assert_int_equal(conn_of(peer)->running, 3); /* not the write, nor the read behind it */
    assert_int_equal(conn_of(peer)->request_count, 5);
    run(fixture, peer, 50);
    assert_received(peer, "$-1\r\n$-1\r\n*2\r\n$-1\r\n$-1\r\n+OK\r\n$-1\r\n");
}

static void test_nothing_starts_beside_a_write(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture);
    wait_always(fixture);
    deliver(peer, "INCR a\r\nGET b\r\nPING\r\n");
    assert_int_equal(conn_of(peer)->running, 1);
    assert_int_equal(conn_of(peer)->request_count, 3);
    run(fixture, peer, 50);
    assert_received(peer, ":1\r\n$-1\r\n+PONG\r\n");
}

/* Commands on one key need not wait for each other: the store keeps their order. */
static void test_one_key_is_a_line(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture), *other = connect_peer(fixture);
    wait_always(fixture);
    deliver(peer, "HGET h a\r\nHSET h a 1\r\nHSET h b 2\r\nHGET h a\r\nHSET i c 3\r\n"
                  "HGET h b\r\nSELECT 1\r\nHGET h b\r\n");
    assert_int_equal(conn_of(peer)->running, 4); /* up to the other key */
    assert_int_equal(conn_of(peer)->request_count, 8);
    run(fixture, peer, 50);
    assert_received(peer, "$-1\r\n:1\r\n:1\r\n$1\r\n1\r\n:1\r\n$1\r\n2\r\n+OK\r\n$-1\r\n");
    send_text(peer, "SELECT 0\r\n");
    run(fixture, peer, 50);
    assert_received(peer, "+OK\r\n");
    send_text(other, "BLPOP l 0\r\n");
    run(fixture, other, 50);
    deliver(peer, "LPUSH l a\r\nLPUSH l b\r\nLPUSH l c\r\n");
    assert_int_equal(conn_of(peer)->running, 3);
    run(fixture, peer, 50);
    assert_received(peer, ":1\r\n:1\r\n:2\r\n"); /* the blocked client is served in between */
    assert_received(other, "*2\r\n$1\r\nl\r\n$1\r\na\r\n");
}

static void test_refusal_waits_its_turn(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture);
    wait_always(fixture);
    send_text(peer, "GET a\r\nGET b\r\n*1\r\n!\r\nPING\r\n");
    run(fixture, peer, 50);
    assert_received(peer, "$-1\r\n$-1\r\n-ERR Protocol error: expected '$', got '!'\r\n");
    assert_null(peer->transport);
}

static void test_quit_behind_waits(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture);
    wait_always(fixture);
    send_text(peer, "GET a\r\nQUIT\r\nSET a 1\r\nPING\r\n");
    run(fixture, peer, 50);
    assert_received(peer, "$-1\r\n+OK\r\n");
    assert_null(peer->transport);
    peer = connect_peer(fixture);
    send_text(peer, "GET a\r\n");
    run(fixture, peer, 50);
    assert_received(peer, "$-1\r\n"); /* what stood behind QUIT was not done */
}

static void test_silence(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture);
    wait_always(fixture);
    send_text(peer, "CLIENT REPLY SKIP\r\nGET a\r\nSET a 1\r\nCLIENT REPLY OFF\r\nGET a\r\n"
                    "SET a 2\r\nGET\r\nCLIENT REPLY ON\r\nGET a\r\n");
    run(fixture, peer, 100);
    assert_received(peer, "+OK\r\n+OK\r\n$1\r\n2\r\n");
}

/* ---- pauses ---- */

/* What stands behind it is neither taken nor read. */
static void test_a_pause_holds_one_command_back(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture);
    pause_begin(&fixture->server, PAUSE_WRITES, INT64_MAX);
    deliver(peer, "GET a\r\nSET a\r\nSET a 1\r\nGET a\r\nINCR a\r\n");
    turn_all(fixture, 3);
    assert_int_equal(conn_of(peer)->request_count, 1);
    assert_int_equal(conn_of(peer)->running, 0);
    assert_int_equal(peer->wanted & TRANSPORT_READABLE, 0);
    assert_int_equal(atomic_load(&fixture->server.paused_clients), 1);
    assert_received(peer, "$-1\r\n-ERR wrong number of arguments for 'set' command\r\n");
    pause_end(&fixture->server);
    pause_resume(fixture->worker);
    run(fixture, peer, 3);
    assert_received(peer, "+OK\r\n$1\r\n1\r\n:2\r\n");
    assert_int_equal(atomic_load(&fixture->server.paused_clients), 0);
}

static void test_the_longer_pause_and_the_stricter_one_win(void **state)
{
    struct fixture *fixture = *state;
    struct server *server = &fixture->server;
    int64_t left_ms, now_ms = store_clock_ms(server->store);
    assert_int_equal(pause_now(server, &left_ms), PAUSE_NOTHING);
    pause_begin(server, PAUSE_WRITES, now_ms + 100000);
    pause_begin(server, PAUSE_WRITES, now_ms + 50000);
    assert_int_equal(pause_now(server, &left_ms), PAUSE_WRITES);
    assert_true(left_ms > 50000 && left_ms <= 100000);
    pause_begin(server, PAUSE_ALL, 0);
    pause_begin(server, PAUSE_WRITES, INT64_MAX);
    assert_int_equal(pause_now(server, &left_ms), PAUSE_ALL);
    assert_true(left_ms > INT64_MAX / 8);
    pause_end(server);
    pause_begin(server, PAUSE_ALL, 1); /* long past */
    assert_int_equal(pause_now(server, &left_ms), PAUSE_NOTHING);
    assert_int_equal(atomic_load(&server->pause), 0);
}

/* ---- limits ---- */

static void test_commands_in_flight_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture);
    wait_always(fixture);
    for (int i = 0; i < 3000; i++)
        deliver(peer, "GET a\r\n");
    assert_int_equal(conn_of(peer)->request_count, RUNNER_IN_FLIGHT_MAX);
    assert_int_equal(peer->wanted & TRANSPORT_READABLE, 0);
    run(fixture, peer, 500);
    assert_int_equal(peer->received.len, 3000 * strlen("$-1\r\n"));
    assert_int_not_equal(peer->wanted & TRANSPORT_READABLE, 0);
}

static void test_unread_replies_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    char *value = malloc(3001);
    struct peer *peer = connect_peer(fixture);
    memset(value, 'v', 3000);
    value[3000] = '\0';
    add_command(&peer->sent, 3, (const char *[]){"SET", "a", value});
    for (int i = 0; i < 20000; i++)
        add_command(&peer->sent, 2, (const char *[]){"GET", "a"});
    peer->cut = peer->sent.len;
    peer->may_read = 5;
    run(fixture, peer, 100);
    assert_true(conn_output_memory(conn_of(peer)) < 2 * CONN_OUTPUT_BOUND);
    assert_int_equal(peer->taken, peer->sent.len);
    assert_true(atomic_load(&fixture->server.spooled_bytes) > peer->sent.len / 2);
    assert_true(conn_total_memory(conn_of(peer)) < 3 * CONN_OUTPUT_BOUND);
    peer->may_read = SIZE_MAX;
    run(fixture, peer, 1000);
    assert_int_equal(peer->received.len, 5 + 20000 * (size_t)(7 + 3000 + 2));
    assert_int_equal(atomic_load(&fixture->server.spooled_bytes), 0);
    assert_null(conn_of(peer)->spool);
    free(value);
}

#define ELEMENTS 12000
#define ELEMENT_BYTES (6 + 100 + 2) /* in a reply */

/* Until the last of its replies is this one: where reads wait, commands take many rounds. */
static void run_until(struct fixture *fixture, struct peer *peer, const char *last)
{
    size_t len = strlen(last);
    for (int i = 0; i < 100000; i++) {
        run(fixture, peer, 1);
        if (peer->received.len >= len &&
            memcmp(peer->received.data + peer->received.len - len, last, len) == 0)
            return;
    }
    fail_msg("no %s", last);
}

/* What a client that does not read has asked for waits for it, until another waits for the key. */
static void test_a_long_reply_waits_for_its_client(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture), *other = connect_peer(fixture);
    char element[101] = "";
    size_t whole = strlen("*12000\r\n") + ELEMENTS * ELEMENT_BYTES;
    memset(element, 'e', 100);
    for (int i = 0; i < ELEMENTS; i += 2)
        add_command(&other->sent, 4, (const char *[]){"RPUSH", "list", element, element});
    other->cut = other->sent.len;
    run_until(fixture, other, "\n:12000\r\n");
    other->received.len = 0;
    model_store_set_waits(fixture->server.store, 7, 300);
    peer->may_read = 0;
    send_text(peer, "LRANGE list 0 -1\r\nPING\r\n");
    run(fixture, peer, 500);
    send_text(other, "LLEN list\r\n");
    run(fixture, other, 20);
    assert_received(other, ":12000\r\n"); /* readers share it */
    peer->may_read = whole / 2;
    run(fixture, peer, 500);
    assert_int_equal(peer->received.len, whole / 2);
    assert_true(conn_output_memory(conn_of(peer)) < 512 * 1024);
    send_text(other, "RPUSH list last\r\n");
    run(fixture, other, 20);
    assert_received(other, "");
    for (int i = 0; i < 2000 && other->received.len == 0; i++) {
        usleep(1000);
        run(fixture, other, 1);
    }
    assert_received(other, ":12001\r\n");
    peer->may_read = SIZE_MAX;
    run(fixture, peer, 20);
    assert_int_equal(peer->received.len, whole + strlen("+PONG\r\n"));
}

static void test_strangers_get_little_room(void **state)
{
    struct fixture *fixture = *state;
    atomic_store(&fixture->server.config.has_password, true);
    struct peer *peer = connect_peer(fixture);
    for (int i = 0; i < 5000; i++)
        send_text(peer, "GET a\r\n");
    peer->may_read = 0;
    run(fixture, peer, 10);
    assert_in_range(conn_output_memory(conn_of(peer)), CONN_STRANGER_OUTPUT_BOUND,
                    2 * CONN_STRANGER_OUTPUT_BOUND);
    peer->may_read = SIZE_MAX;
    run(fixture, peer, 200);
    assert_int_equal(peer->received.len, 5000 * strlen("-NOAUTH Authentication required.\r\n"));
}

/* Until then they keep their place before all that comes later. */
static void test_replies_of_a_round_leave_together(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture), *other = connect_peer(fixture);
    deliver(peer, "SUBSCRIBE a\r\n");
    assert_int_equal(peer->received.len, 0);
    deliver(other, "PUBLISH a b\r\nPING\r\n");
    assert_int_equal(other->received.len, 0);
    turn(fixture);
    assert_received(peer, "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
                          "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n");
    assert_received(other, ":1\r\n+PONG\r\n");
    send_text(other, "PING\r\n"); /* the transport takes part of it */
    other->may_read = 3;
    run(fixture, other, 3);
    assert_received(other, "+PO");
    other->may_read = SIZE_MAX;
    run(fixture, other, 1);
    assert_received(other, "NG\r\n");
    send_text(other, "PING\r\n"); /* it closes in the same round */
    poke(other);
    other->has_ended = true;
    poke(other);
    assert_null(other->transport);
    assert_received(other, "+PONG\r\n");
}

static void test_idle_holds_no_buffers(void **state)
{
    struct fixture *fixture = *state;
    char *value = malloc(1000001);
    struct peer *peer = connect_peer(fixture);
    memset(value, 'v', 1000000);
    value[1000000] = '\0';
    add_command(&peer->sent, 3, (const char *[]){"SET", "a", value});
    add_command(&peer->sent, 2, (const char *[]){"GET", "a"});
    for (peer->cut = 0; peer->cut < peer->sent.len; run(fixture, peer, 1)) {
        peer->cut += 7001;
        if (peer->cut > peer->sent.len)
            peer->cut = peer->sent.len;
        assert_true(conn_query_bytes(conn_of(peer)) + conn_query_free(conn_of(peer)) < 1100000);
    }
    run(fixture, peer, 20);
    assert_int_equal(peer->received.len, 5 + 10 + 1000000 + 2);
    assert_int_equal(conn_total_memory(conn_of(peer)), sizeof(struct conn));
    free(value);
}

/* ---- blocking ---- */

/* No other command runs between the one that wakes a client and the woken one. */
static void test_who_was_woken_is_served_first(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture), *other = connect_peer(fixture);
    send_text(peer, "BLPOP l 0\r\n");
    run(fixture, peer, 3);
    send_text(other, "RPUSH l a\r\nLPOP l\r\nRPUSH l b\r\nLLEN l\r\n");
    run(fixture, other, 3);
    assert_received(peer, "*2\r\n$1\r\nl\r\n$1\r\na\r\n");
    assert_received(other, ":1\r\n$-1\r\n:1\r\n:1\r\n");
    send_text(peer, "BLMOVE from to LEFT LEFT 0\r\n");
    run(fixture, peer, 3);
    send_text(other, "MULTI\r\nRPUSH from c d\r\nLRANGE from 0 -1\r\nEXEC\r\nDEL from to\r\n");
    run(fixture, other, 3);
    assert_received(peer, "$1\r\nc\r\n");
    assert_received(other, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:2\r\n*2\r\n$1\r\nc\r\n"
                           "$1\r\nd\r\n:2\r\n");
}

/* ---- durability, and the end ---- */

/* Replies wait for the journal, and what they show becomes durable in a later store_poll(). */
static void make_durable_later(struct fixture *fixture)
{
    atomic_store(&fixture->server.config.numbers[CONFIG_APPENDFSYNC], STORE_SYNC_ALWAYS);
    model_store_set_waits(fixture->server.store, 1, 1);
}

static void test_always_waits_for_the_journal(void **state)
{
    struct fixture *fixture = *state;
    make_durable_later(fixture);
    struct peer *peer = connect_peer(fixture);
    struct peer *other = connect_peer(fixture);
    send_text(peer, "SET a 1\r\n");
    send_text(other, "GET a\r\nPING\r\n");
    poke(peer);
    assert_int_equal(peer->received.len, 0);
    poke(other); /* its reply shows a commit that is not durable yet */
    assert_int_equal(other->received.len, 0);
    run(fixture, peer, 3);
    assert_received(peer, "+OK\r\n");
    assert_received(other, "$1\r\n1\r\n+PONG\r\n");
}

/* A reply that has to wait stands behind one that only the slow client holds up. */
static void test_always_waits_behind_a_slow_client(void **state)
{
    struct fixture *fixture = *state;
    make_durable_later(fixture);
    struct peer *peer = connect_peer(fixture);
    peer->may_read = 0;
    deliver(peer, "PING\r\n");
    deliver(peer, "SET a 1\r\n");
    peer->may_read = SIZE_MAX;
    poke(peer);
    assert_received(peer, "");
    run(fixture, peer, 3);
    assert_received(peer, "+PONG\r\n+OK\r\n");
}

/* Nor does a reply that shows nothing take it along. */
static void test_always_waits_before_what_need_not(void **state)
{
    struct fixture *fixture = *state;
    make_durable_later(fixture);
    struct peer *peer = connect_peer(fixture);
    peer->may_read = 0;
    deliver(peer, "PING\r\n");
    deliver(peer, "SET a 1\r\n");
    deliver(peer, "PING\r\n");
    peer->may_read = SIZE_MAX;
    poke(peer);
    assert_received(peer, "");
    run(fixture, peer, 3);
    assert_received(peer, "+PONG\r\n+OK\r\n+PONG\r\n");
}

static void test_killed_in_the_middle(void **state)
{
    struct fixture *fixture = *state;
    struct peer *other = connect_peer(fixture);
    struct peer *peer = connect_peer(fixture);
    wait_always(fixture);
    deliver(peer, "GET a\r\nMGET a b\r\nSET a 1\r\n*3\r\n$3\r\nSET\r\n$1\r\n");
    conn_kill(conn_of(peer));
    run(fixture, peer, 1);
    assert_null(peer->transport);
    assert_int_equal(atomic_load(&fixture->server.connected_clients), 1);
    send_text(other, "GET a\r\n");
    run(fixture, other, 50);
    assert_received(other, "$-1\r\n");
}

/* However long the value takes, and whatever becomes of it: it is dropped once. */
static void test_killed_in_a_long_value(void **state)
{
    struct fixture *fixture = *state;
    char value[LONGEST];
    memset(value, 'v', sizeof value);
    for (uint32_t waits = 0; waits <= 1000; waits += 500) {
        for (size_t sent = 0; sent <= sizeof value; sent += sizeof value / 4) {
            restart(state);
            fixture = *state;
            model_store_set_waits(fixture->server.store, 3, waits);
            struct peer *peer = connect_peer(fixture);
            send_text(peer, "MULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$196608\r\n");
            add_bytes(&peer->sent, value, sent);
            peer->cut = peer->sent.len;
            run(fixture, peer, waits == 500 ? 1 : 10);
            conn_kill(conn_of(peer));
            run(fixture, peer, 3);
            assert_null(peer->transport);
        }
    }
}

/* The next command is not even read while values of earlier ones are on their way. */
static void test_long_values_on_their_way_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture);
    char value[STORE_UPLOAD_MIN + 2];
    memset(value, 'v', sizeof value);
    memcpy(value + STORE_UPLOAD_MIN, "\r\n", 2);
    for (int i = 0; i < 10; i++) { /* without a round in which the store gets on */
        model_store_set_waits(fixture->server.store, 7, 0);
        send_text(peer, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$65536\r\n");
        add_bytes(&peer->sent, value, sizeof value - 3);
        peer->cut = peer->sent.len;
        poke(peer);
        poke(peer);
        wait_always(fixture); /* for the value to be durable */
        add_bytes(&peer->sent, value + sizeof value - 3, 3);
        peer->cut = peer->sent.len;
        poke(peer);
    }
    assert_int_equal(conn_of(peer)->request_count, RUNNER_UPLOADS_MAX);
    assert_true(peer->taken < (RUNNER_UPLOADS_MAX + 1) * sizeof value);
    run(fixture, peer, 300);
    assert_int_equal(peer->received.len, 10 * 5);
    assert_int_equal(atomic_load(&fixture->worker->counters.uploads), 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_waits_change_nothing),
        TEST(test_killed_in_a_long_value),
        TEST(test_long_values_on_their_way_are_bounded),
        TEST(test_replies_in_order),
        TEST(test_quoted_words_outlive_their_line),
        TEST(test_reads_run_side_by_side),
        TEST(test_nothing_starts_beside_a_write),
        TEST(test_one_key_is_a_line),
        TEST(test_refusal_waits_its_turn),
        TEST(test_quit_behind_waits),
        TEST(test_silence),
        TEST(test_a_pause_holds_one_command_back),
        TEST(test_the_longer_pause_and_the_stricter_one_win),
        TEST(test_commands_in_flight_are_bounded),
        TEST(test_unread_replies_are_bounded),
        TEST(test_a_long_reply_waits_for_its_client),
        TEST(test_strangers_get_little_room),
        TEST(test_replies_of_a_round_leave_together),
        TEST(test_idle_holds_no_buffers),
        TEST(test_who_was_woken_is_served_first),
        TEST(test_always_waits_for_the_journal),
        TEST(test_always_waits_behind_a_slow_client),
        TEST(test_always_waits_before_what_need_not),
        TEST(test_killed_in_the_middle),
    };
    return cmocka_run_group_tests_name("runner", tests, NULL, NULL);
}
