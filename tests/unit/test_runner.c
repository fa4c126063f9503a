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
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../server/blocked.h"
#include "../../server/conn.h"
#include "../../server/runner.h"
#include "../../server/client_memory.h"
#include "../../server/server.h"
#include "../../server/transport.h"
#include "../../server/watch.h"
#include "../../server/worker.h"
#include "../model/model_store.h"

/* ---- a transport of memory ---- */

struct bytes {
    char *data;
    size_t len, capacity;
};

static void add_bytes(struct bytes *bytes, const void *data, size_t len)
{
    if (bytes->len + len > bytes->capacity) {
        bytes->capacity = 2 * (bytes->len + len);
        bytes->data = realloc(bytes->data, bytes->capacity);
        assert_non_null(bytes->data);
    }
    memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;
}

/* The far end of a connection: what it sends and what it has received. The fixture's, because it
 * has to outlive the transport also when a test fails. */
struct peer {
    struct transport *transport; /* NULL: the server has closed it */
    struct bytes sent, received;
    size_t taken;    /* of `sent`, by the server */
    size_t cut;      /* the server may take bytes before this position of `sent` */
    size_t may_read; /* how much more the client reads */
    bool has_ended;  /* nothing comes after `sent` */
    unsigned wanted;
};

struct fake {
    struct transport base;
    struct peer *peer;
};

static struct peer *peer_of(struct transport *transport)
{
    return ((struct fake *)transport)->peer;
}

static ssize_t fake_read(struct transport *transport, void *to, size_t size)
{
    struct peer *peer = peer_of(transport);
    size_t there = peer->cut - peer->taken;
    if (there == 0)
        return peer->has_ended && peer->taken == peer->sent.len ? TRANSPORT_CLOSED
                                                                : TRANSPORT_AGAIN;
    size_t count = there < size ? there : size;
    memcpy(to, peer->sent.data + peer->taken, count);
    peer->taken += count;
    return (ssize_t)count;
}

static ssize_t fake_write(struct transport *transport, const struct iovec *vectors, int count)
{
    struct peer *peer = peer_of(transport);
    size_t before = peer->received.len;
    for (int i = 0; i < count && peer->may_read > 0; i++) {
        size_t len = vectors[i].iov_len < peer->may_read ? vectors[i].iov_len : peer->may_read;
        add_bytes(&peer->received, vectors[i].iov_base, len);
        peer->may_read -= len;
    }
    return peer->received.len > before ? (ssize_t)(peer->received.len - before) : TRANSPORT_AGAIN;
}

static void fake_want(struct transport *transport, unsigned ready)
{
    peer_of(transport)->wanted = ready;
}

static void fake_close(struct transport *transport)
{
    peer_of(transport)->transport = NULL;
    free(transport);
}

static const struct transport_ops fake_ops = {
    .read = fake_read, .write = fake_write, .want = fake_want, .close = fake_close, .wakes = true};

/* ---- a server of one worker, whose rounds the test calls ---- */

#define PEERS_MAX 2

struct fixture {
    struct server server;
    struct worker *worker;
    struct peer peers[PEERS_MAX];
    int peer_count;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct server *server = &fixture->server;
    char message[STORE_MESSAGE_MAX];
    assert_true(config_init(&server->config));
    atomic_store(&server->config.numbers[CONFIG_LOGLEVEL], CONFIG_LOG_WARNING + 1);
    log_init(&server->log, &server->config);
    assert_null(command_index_build(&server->commands, NULL, 0));
    struct store_options options = {.directory = "unused",
                                    .partition_count = 1,
                                    .worker_count = 1,
                                    .memory_bytes = 64 << 20,
                                    .journal_bytes = 64 << 20,
                                    .sync = STORE_SYNC_EVERYSEC};
    assert_int_equal(store_open(&options, &server->store, message), STORE_OK);
    model_store_set_waits(server->store, 1, 0);
    server->watches = watch_registry_new(server->store);
    assert_non_null(server->watches);
    server->worker_count = 1;
    client_memory_set_bounds(server);
    server->workers = &fixture->worker;
    server->blocked = blocked_new(server->store);
    assert_non_null(server->blocked);
    server->pubsub = pubsub_new(1);
    assert_non_null(server->pubsub);
    server->stop_fd = eventfd(0, EFD_NONBLOCK);
    atomic_store(&server->workers_busy, 1);
    assert_true(worker_make(server, 0, message));
    *state = fixture;
    return 0;
}

static void turn(struct fixture *fixture)
{
    worker_round(fixture->worker, false);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    struct server *server = &fixture->server;
    for (struct conn *conn = fixture->worker->conns; conn != NULL; conn = conn->next)
        conn_kill(conn);
    for (int i = 0; i < 1000 && (fixture->worker->running > 0 || i < 3); i++)
        turn(fixture);
    assert_int_equal(fixture->worker->running, 0);
    assert_int_equal(atomic_load(&server->connected_clients), 0);
    for (int i = 0; i < fixture->peer_count; i++) {
        free(fixture->peers[i].sent.data);
        free(fixture->peers[i].received.data);
    }
    worker_free(fixture->worker);
    watch_registry_free(server->watches);
    pubsub_free(server->pubsub);
    blocked_free(server->blocked);
    assert_int_equal(store_close(server->store), STORE_OK);
    close(server->stop_fd);
    config_free(&server->config);
    free(fixture);
    return 0;
}

static struct peer *connect_peer(struct fixture *fixture)
{
    struct fake *fake = calloc(1, sizeof *fake);
    assert_true(fixture->peer_count < PEERS_MAX);
    struct peer *peer = &fixture->peers[fixture->peer_count++];
    *peer = (struct peer){.transport = &fake->base, .may_read = SIZE_MAX};
    fake->base.ops = &fake_ops;
    fake->base.fd = -1;
    fake->peer = peer;
    atomic_fetch_add(&fixture->server.connected_clients, 1);
    atomic_fetch_add(&fixture->worker->connection_count, 1);
    conn_open(fixture->worker, &fake->base);
    return peer;
}

static struct conn *conn_of(const struct peer *peer)
{
    return peer->transport->arg;
}

/* Tells the server what its transport is ready for, if it wants to know. */
static void poke(struct peer *peer)
{
    struct transport *transport = peer->transport;
    bool is_readable = transport != NULL && (peer->wanted & TRANSPORT_READABLE) != 0 &&
                       (peer->taken < peer->cut || peer->has_ended);
    if (is_readable)
        transport->ready(transport->arg, TRANSPORT_READABLE);
    transport = peer->transport;
    if (transport != NULL && (peer->wanted & TRANSPORT_WRITABLE) != 0 && peer->may_read > 0)
        transport->ready(transport->arg, TRANSPORT_WRITABLE);
}

static void send_text(struct peer *peer, const char *text)
{
    add_bytes(&peer->sent, text, strlen(text));
    peer->cut = peer->sent.len;
}

static void run(struct fixture *fixture, struct peer *peer, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        poke(peer);
        turn(fixture);
    }
}

static void assert_received(struct peer *peer, const char *text)
{
    add_bytes(&peer->received, "", 1);
    peer->received.len--;
    assert_string_equal(peer->received.data, text);
    peer->received.len = 0;
}

static void wait_always(struct fixture *fixture)
{
    model_store_set_waits(fixture->server.store, 7, 1000);
}

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

static bool is_answered(const struct peer *peer)
{
    const struct conn *conn = conn_of(peer);
    return peer->taken == peer->sent.len && conn->request_count == 0 && conn->input == NULL &&
           conn->output == NULL;
}

/* Sends everything, cut anywhere, for a client that reads by fits and starts. */
static void play(struct fixture *fixture, struct peer *peer)
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

/* Nor does it that long values go to their place while they arrive: with a monitor they do not. */
static void test_waits_change_nothing(void **state)
{
    char *value = malloc(30001);
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct bytes stream = {0}, expected = {0};
        seed_state = seed;
        for (int i = 0; i < 600; i++)
            add_random_command(&stream, value, 30000);
        for (uint32_t waits = 0; waits <= 1000; waits += 250) {
            restart(state);
            struct fixture *fixture = *state;
            struct peer *peer = connect_peer(fixture);
            add_bytes(&peer->sent, stream.data, stream.len);
            model_store_set_waits(fixture->server.store, seed, waits);
            if (waits == 0)
                atomic_store(&fixture->server.monitor_count, 1);
            play(fixture, peer);
            assert_true((atomic_load(&fixture->worker->counters.uploads) > 0) == (waits > 0));
            if (waits == 0)
                add_bytes(&expected, peer->received.data, peer->received.len);
            if (peer->received.len != expected.len ||
                memcmp(peer->received.data, expected.data, expected.len) != 0)
                fail_msg("seed %llu, waits %u", (unsigned long long)seed, waits);
        }
        assert_true(expected.len > 100000);
        free(stream.data);
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
    send_text(peer, "GET a\r\nGET b\r\nMGET c d\r\nSET a 1\r\nGET e\r\n");
    poke(peer);
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
    send_text(peer, "INCR a\r\nGET b\r\nPING\r\n");
    poke(peer);
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
    send_text(peer, "HGET h a\r\nHSET h a 1\r\nHSET h b 2\r\nHGET h a\r\nHSET i c 3\r\n"
                    "HGET h b\r\nSELECT 1\r\nHGET h b\r\n");
    poke(peer);
    assert_int_equal(conn_of(peer)->running, 4); /* up to the other key */
    assert_int_equal(conn_of(peer)->request_count, 8);
    run(fixture, peer, 50);
    assert_received(peer, "$-1\r\n:1\r\n:1\r\n$1\r\n1\r\n:1\r\n$1\r\n2\r\n+OK\r\n$-1\r\n");
    send_text(peer, "SELECT 0\r\n");
    run(fixture, peer, 50);
    assert_received(peer, "+OK\r\n");
    send_text(other, "BLPOP l 0\r\n");
    run(fixture, other, 50);
    send_text(peer, "LPUSH l a\r\nLPUSH l b\r\nLPUSH l c\r\n");
    poke(peer);
    assert_int_equal(conn_of(peer)->running, 3);
    run(fixture, peer, 50);
    assert_received(peer, ":1\r\n:1\r\n:2\r\n"); /* who was blocked is served in between */
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

/* ---- limits ---- */

static void test_commands_in_flight_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    struct peer *peer = connect_peer(fixture);
    wait_always(fixture);
    for (int i = 0; i < 3000; i++)
        send_text(peer, "GET a\r\n");
    poke(peer);
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
    size_t taken = peer->taken;
    assert_true(conn_output_memory(conn_of(peer)) < 2 * CONN_OUTPUT_BOUND);
    assert_true(taken < 100000);
    run(fixture, peer, 100);
    assert_int_equal(peer->taken, taken);
    peer->may_read = SIZE_MAX;
    run(fixture, peer, 1000);
    assert_int_equal(peer->received.len, 5 + 20000 * (size_t)(7 + 3000 + 2));
    free(value);
}

#define ELEMENTS 12000
#define ELEMENT_BYTES (6 + 100 + 2) /* in a reply */
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
    run(fixture, other, 200);
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
    send_text(peer, "SUBSCRIBE a\r\n");
    poke(peer);
    assert_int_equal(peer->received.len, 0);
    send_text(other, "PUBLISH a b\r\nPING\r\n");
    poke(other);
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

/* Nobody comes between the command that wakes a client and what it was woken for. */
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

static void test_always_waits_for_the_journal(void **state)
{
    struct fixture *fixture = *state;
    atomic_store(&fixture->server.config.numbers[CONFIG_APPENDFSYNC], STORE_SYNC_ALWAYS);
    struct peer *peer = connect_peer(fixture);
    struct peer *other = connect_peer(fixture);
    model_store_set_waits(fixture->server.store, 1, 1); /* durable later, in store_poll */
    send_text(peer, "SET a 1\r\n");
    send_text(other, "GET a\r\nPING\r\n");
    poke(peer);
    assert_int_equal(peer->received.len, 0);
    poke(other); /* sees what is not durable yet: must not tell */
    assert_int_equal(other->received.len, 0);
    run(fixture, peer, 3);
    assert_received(peer, "+OK\r\n");
    assert_received(other, "$1\r\n1\r\n+PONG\r\n");
}

/* A reply that has to wait stands behind one that only the slow client holds up. */
static void test_always_waits_behind_a_slow_client(void **state)
{
    struct fixture *fixture = *state;
    atomic_store(&fixture->server.config.numbers[CONFIG_APPENDFSYNC], STORE_SYNC_ALWAYS);
    struct peer *peer = connect_peer(fixture);
    model_store_set_waits(fixture->server.store, 1, 1);
    peer->may_read = 0;
    send_text(peer, "PING\r\n");
    poke(peer);
    send_text(peer, "SET a 1\r\n");
    poke(peer);
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
    atomic_store(&fixture->server.config.numbers[CONFIG_APPENDFSYNC], STORE_SYNC_ALWAYS);
    struct peer *peer = connect_peer(fixture);
    model_store_set_waits(fixture->server.store, 1, 1);
    peer->may_read = 0;
    send_text(peer, "PING\r\n");
    poke(peer);
    send_text(peer, "SET a 1\r\n");
    poke(peer);
    send_text(peer, "PING\r\n");
    poke(peer);
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
    send_text(peer, "GET a\r\nMGET a b\r\nSET a 1\r\n*3\r\n$3\r\nSET\r\n$1\r\n");
    poke(peer);
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
