#include "tests/unit/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/core/round_clock.h"
#include "server/exec/blocked.h"
#include "server/net/client_memory.h"
#include "server/core/latency.h"
#include "server/core/function_names.h"
#include "server/exec/long_run.h"
#include "server/exec/slowlog.h"
#include "server/exec/tracking.h"
#include "server/exec/watch.h"
#include "server/commands/commands.h"
#include "server/loop/conn_turn.h"
#include "server/loop/worker_loop.h"
#include "server/pubsub/pubsub.h"

/* ---- a transport of memory ---- */

void add_bytes(struct bytes *bytes, const void *data, size_t len)
{
    if (bytes->len + len > bytes->capacity) {
        bytes->capacity = 2 * (bytes->len + len);
        bytes->data = realloc(bytes->data, bytes->capacity);
        assert_non_null(bytes->data);
    }
    memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;
}

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

/* ---- the server ---- */

struct fixture *fixture_new(struct store *store, uint32_t workers)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    struct server *server = &fixture->server;
    char message[STORE_MESSAGE_MAX];
    server->store = store;
    assert_true(config_init(&server->config));
    atomic_store(&server->config.numbers[CONFIG_LOGLEVEL], CONFIG_LOG_WARNING + 1);
    log_init(&server->log, &server->config);
    assert_null(command_index_build(&server->commands, command_table, NULL, 0));
    server->watches = watch_registry_new(server->store);
    assert_non_null(server->watches);
    server->worker_count = workers;
    client_memory_set_bounds(server);
    server->workers = fixture->workers;
    server->blocked = blocked_new(server->store);
    assert_non_null(server->blocked);
    server->pubsub = pubsub_new(workers);
    server->slowlog = slowlog_new();
    assert_non_null(server->slowlog);
    slowlog_follow(server);
    server->tracking = tracking_new(server, long_run_in_store);
    assert_non_null(server->tracking);
    server->latency = latency_new();
    assert_non_null(server->latency);
    server->readonly_names = readonly_names_new();
    assert_non_null(server->readonly_names);
    assert_non_null(server->pubsub);
    server->stop_fd = eventfd(0, EFD_NONBLOCK);
    atomic_store(&server->workers_busy, workers);
    for (uint32_t i = 0; i < workers; i++)
        assert_true(worker_make(server, i, message));
    fixture->worker = fixture->workers[0];
    return fixture;
}

void turn(struct fixture *fixture)
{
    worker_round(fixture->worker, false);
}

void turn_all(struct fixture *fixture, int rounds)
{
    for (int i = 0; i < rounds; i++)
        for (uint32_t j = 0; j < fixture->server.worker_count; j++)
            worker_round(fixture->workers[j], false);
}

static uint32_t running(const struct fixture *fixture)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < fixture->server.worker_count; i++)
        sum += fixture->workers[i]->running;
    return sum;
}

enum store_result fixture_free(struct fixture *fixture)
{
    struct server *server = &fixture->server;
    struct conn *conn;
    for (uint32_t i = 0; i < server->worker_count; i++)
        LIST_FOREACH (conn, &fixture->workers[i]->conns, of_worker)
            conn_kill(conn);
    for (int i = 0; i < 1000 && (running(fixture) > 0 || i < 3); i++)
        turn_all(fixture, 1);
    assert_int_equal(running(fixture), 0);
    assert_int_equal(atomic_load(&server->connected_clients), 0);
    for (int i = 0; i < fixture->peer_count; i++) {
        free(fixture->peers[i].sent.data);
        free(fixture->peers[i].received.data);
    }
    for (uint32_t i = 0; i < server->worker_count; i++)
        worker_free(fixture->workers[i]);
    tracking_free(server->tracking);
    watch_registry_free(server->watches);
    pubsub_free(server->pubsub);
    slowlog_free(server->slowlog);
    readonly_names_free(server->readonly_names);
    latency_free(server->latency);
    blocked_free(server->blocked);
    enum store_result result = store_close(server->store);
    close(server->stop_fd);
    config_free(&server->config);
    free(fixture);
    return result;
}

int tear_down(void **state)
{
    assert_int_equal(fixture_free(*state), STORE_OK);
    return 0;
}

struct peer *connect_peer(struct fixture *fixture)
{
    return connect_peer_to(fixture, 0);
}

struct peer *connect_peer_to(struct fixture *fixture, uint32_t index)
{
    struct worker *worker = fixture->workers[index];
    struct fake *fake = calloc(1, sizeof *fake);
    assert_true(fixture->peer_count < FIXTURE_PEERS);
    struct peer *peer = &fixture->peers[fixture->peer_count++];
    *peer = (struct peer){.transport = &fake->base, .may_read = SIZE_MAX};
    fake->base.ops = &fake_ops;
    fake->base.fd = -1;
    fake->peer = peer;
    atomic_fetch_add(&fixture->server.connected_clients, 1);
    atomic_fetch_add(&worker->connection_count, 1);
    conn_open(worker, &fake->base);
    return peer;
}

struct conn *conn_of(const struct peer *peer)
{
    return peer->transport->arg;
}

/* On a busy machine all calls between two turns may take longer than a round may. */
void poke(struct peer *peer)
{
    struct transport *transport = peer->transport;
    if (transport != NULL)
        round_clock_restart(conn_of(peer)->worker);
    bool is_readable = transport != NULL && (peer->wanted & TRANSPORT_READABLE) != 0 &&
                       (peer->taken < peer->cut || peer->has_ended);
    if (is_readable)
        transport->ready(transport->arg, TRANSPORT_READABLE);
    transport = peer->transport;
    if (transport != NULL && (peer->wanted & TRANSPORT_WRITABLE) != 0 && peer->may_read > 0)
        transport->ready(transport->arg, TRANSPORT_WRITABLE);
}

void send_text(struct peer *peer, const char *text)
{
    add_bytes(&peer->sent, text, strlen(text));
    peer->cut = peer->sent.len;
}

void run(struct fixture *fixture, struct peer *peer, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        poke(peer);
        turn(fixture);
    }
}

void assert_received(struct peer *peer, const char *text)
{
    add_bytes(&peer->received, "", 1);
    peer->received.len--;
    assert_string_equal(peer->received.data, text);
    peer->received.len = 0;
}
