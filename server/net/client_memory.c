#include "server/net/client_memory.h"

#include <assert.h>

#include "server/net/conn.h"
#include "server/net/conn_output.h"
#include "server/config/log.h"

#define TELL_STEP (1 << 20) /* smaller changes are not reported to the store at once */
#define COMFORT_SHARE 8
#define WAY_SHARE 2 /* times the reported growth: there may have been more in the meantime */
#define LIMIT_SHARE 4
#define UNSENT_SHARE 2 /* of the limit */
#define HOLD_MOST_MS 500

static void tell(struct server *server, int64_t unreported)
{
    store_note_memory(server->store, unreported);
    if (unreported > 0) /* the maintenance thread may be too late */
        store_give_way(server->store, WAY_SHARE * (uint64_t)unreported);
}

static void count(struct worker *worker, int64_t change)
{
    uint64_t bytes = atomic_load_explicit(&worker->client_bytes, memory_order_relaxed);
    bytes += (uint64_t)change;
    assert((int64_t)bytes >= 0); /* the sum of counted_bytes of the worker's connections */
    atomic_store_explicit(&worker->client_bytes, bytes, memory_order_relaxed);
    int64_t unreported = (int64_t)bytes - worker->client_bytes_reported;
    if (unreported < TELL_STEP && unreported > -TELL_STEP)
        return;
    worker->client_bytes_reported = (int64_t)bytes;
    tell(worker->server, unreported);
}

static uint64_t unsent_most(const struct server *server)
{
    return atomic_load_explicit(&server->client_limit, memory_order_relaxed) / UNSENT_SHARE /
           server->worker_count;
}

/* Unsent pushes to subscribers have a limit of their own, and may stay for long. */
static void count_unsent(struct conn *conn, uint64_t now)
{
    struct worker *worker = conn->worker;
    if (pubsub_is_subscriber(&conn->session.pubsub))
        now = 0;
    assert(conn->counted_unsent <= worker->unsent_bytes);
    worker->unsent_bytes += now - conn->counted_unsent;
    conn->counted_unsent = now;
    if (worker->hold != CLIENTS_GO_ON || worker->unsent_bytes <= unsent_most(worker->server))
        return;
    worker->hold = CLIENTS_ARE_HELD;
    worker->held_since_ms = worker_now(worker);
}

/* Earlier shared blocks stay while requests refer to bytes in them. They belong to no client: to
 * close some would not free them. */
static void count_input(struct worker *worker)
{
    uint64_t now = worker->input_bytes - (worker->input != NULL ? worker->input->capacity : 0);
    int64_t unreported = (int64_t)(now - worker->counted_input_bytes);
    if (unreported < TELL_STEP && unreported > -TELL_STEP)
        return;
    worker->counted_input_bytes = now;
    tell(worker->server, unreported);
}

static void count_leaving(struct conn *conn, uint64_t now)
{
    if (now == conn->counted_leaving)
        return;
    assert(conn->counted_leaving <= conn->worker->leaving_bytes);
    conn->worker->leaving_bytes += now - conn->counted_leaving;
    conn->counted_leaving = now;
}

bool client_memory_note(struct conn *conn)
{
    uint64_t now = conn_total_memory(conn) - conn->shared_bytes;
    count_input(conn->worker);
    if (now == conn->counted_bytes)
        return false;
    count(conn->worker, (int64_t)(now - conn->counted_bytes));
    conn->counted_bytes = now;
    count_unsent(conn, conn_output_memory(conn) - conn->shared_bytes);
    return true;
}

void client_memory_note_leaving(struct conn *conn)
{
    assert(conn->kill || conn->transport == NULL);
    client_memory_note(conn);
    count_leaving(conn, conn->counted_bytes);
}

void client_memory_note_published(struct server *server, int64_t more)
{
    atomic_fetch_add(&server->published_bytes, (uint64_t)more);
    int64_t unreported = atomic_fetch_add(&server->published_untold, more) + more;
    if (unreported >= TELL_STEP || unreported <= -TELL_STEP)
        tell(server, atomic_exchange(&server->published_untold, 0));
}

/* By how much the worker's clients, with `more` bytes, exceed its share; 0 if all clients together
 * keep to the limit. */
static uint64_t excess(const struct worker *worker, uint64_t more)
{
    const struct server *server = worker->server;
    uint64_t limit = atomic_load_explicit(&server->client_limit, memory_order_relaxed);
    uint64_t share = limit / server->worker_count;
    uint64_t bytes = atomic_load_explicit(&worker->client_bytes, memory_order_relaxed) + more;
    if (bytes + worker->shared_bytes <= share)
        return 0; /* the usual case, without the sums over all workers */
    uint64_t published = atomic_load(&server->published_bytes);
    bytes += published < worker->shared_bytes ? published : worker->shared_bytes;
    uint64_t total = client_memory_total(server) + more;
    if (bytes <= share || total <= limit)
        return 0;
    return bytes - share < total - limit ? bytes - share : total - limit;
}

/* Deferred clients try again. */
static void resume(struct worker *worker)
{
    struct conn *conn;
    uint64_t over = excess(worker, worker->awaited_bytes);
    if (over > 0 && over <= worker->leaving_bytes)
        return;
    worker->awaited_bytes = 0;
    LIST_FOREACH (conn, &worker->conns, of_worker) {
        if (!conn->awaits_memory)
            continue;
        conn->awaits_memory = false;
        conn_mark_ready(conn);
    }
}

void client_memory_forget(struct conn *conn)
{
    count(conn->worker, -(int64_t)conn->counted_bytes);
    conn->counted_bytes = 0;
    count_leaving(conn, 0);
    count_unsent(conn, 0);
    if (conn->worker->awaited_bytes > 0)
        resume(conn->worker);
}

/* Slow readers throttle all others once, until the unsent output is half of its bound, or for
 * HOLD_MOST_MS. */
void client_memory_let_go(struct worker *worker)
{
    struct conn *conn;
    enum client_hold was = worker->hold;
    if (worker->awaited_bytes > 0)
        resume(worker);
    if (was == CLIENTS_GO_ON)
        return;
    if (worker->unsent_bytes <= unsent_most(worker->server) / 2)
        worker->hold = CLIENTS_GO_ON;
    else if (worker_now(worker) - worker->held_since_ms > HOLD_MOST_MS)
        worker->hold = CLIENTS_ARE_TOO_SLOW;
    if (was != CLIENTS_ARE_HELD || worker->hold == was)
        return;
    LIST_FOREACH (conn, &worker->conns, of_worker)
        conn_mark_ready(conn);
}

static uint64_t held_bytes(const struct conn *conn)
{
    return conn->counted_bytes + conn->shared_bytes;
}

static struct conn *largest(const struct worker *worker)
{
    struct conn *conn;
    struct conn *found = NULL;
    LIST_FOREACH (conn, &worker->conns, of_worker)
        if (!conn->kill && !conn->session.no_evict &&
            (found == NULL || held_bytes(conn) > held_bytes(found)))
            found = conn;
    return found;
}

/* Its unsent output is freed at once: many clients may have to be closed in a round. */
static void close_largest(struct conn *conn)
{
    conn->is_evicted = true;
    conn_kill(conn);
    if (!conn->has_corked)
        conn_output_free(conn);
    client_memory_note_leaving(conn);
}

/* The client to be closed next; NULL: none. Memory of clients that are being closed will soon be
 * free. */
static struct conn *next_to_close(const struct worker *worker)
{
    uint64_t over = excess(worker, 0);
    if (over == 0 || over <= worker->leaving_bytes)
        return NULL;
    struct conn *conn = largest(worker);
    return conn != NULL && held_bytes(conn) > 0 ? conn : NULL;
}

bool client_memory_defers(struct conn *conn, uint64_t more)
{
    struct worker *worker = conn->worker;
    uint64_t over = excess(worker, more);
    if (over == 0 || over > worker->leaving_bytes)
        return false;
    conn->awaits_memory = true;
    if (worker->awaited_bytes == 0 || more < worker->awaited_bytes)
        worker->awaited_bytes = more;
    return true;
}

bool client_memory_allows(struct conn *conn, uint64_t bytes)
{
    struct worker *worker = conn->worker;
    uint64_t limit = atomic_load_explicit(&worker->server->client_limit, memory_order_relaxed);
    if (bytes <= limit || conn->session.no_evict)
        return true;
    log_line(&worker->server->log, CONFIG_LOG_NOTICE,
             "Client %s closed: its command alone exceeds the limit of client buffers, %llu bytes",
             conn_peer_name(conn), (unsigned long long)bytes);
    counter_add(&worker->counters.evicted_clients, 1);
    return false;
}

void client_memory_keep_bound(struct worker *worker)
{
    for (struct conn *conn; (conn = next_to_close(worker)) != NULL;) {
        log_line(&worker->server->log, CONFIG_LOG_NOTICE,
                 "Client %s closed: client buffers exceed their limit, and it has the largest, "
                 "%llu bytes",
                 conn_peer_name(conn), (unsigned long long)held_bytes(conn));
        counter_add(&worker->counters.evicted_clients, 1);
        close_largest(conn);
    }
}

void client_memory_set_bounds(struct server *server)
{
    const struct config *config = &server->config;
    uint64_t memory = server_memory((uint64_t)config_number(config, CONFIG_MAXMEMORY));
    int64_t given = config_number(config, CONFIG_MAXMEMORY_CLIENTS);
    uint64_t limit = given < 0   ? memory / 100 * (uint64_t)-given
                     : given > 0 ? (uint64_t)given
                                 : memory / LIMIT_SHARE;
    uint64_t soft_limit = memory / COMFORT_SHARE < limit ? memory / COMFORT_SHARE : limit;
    atomic_store(&server->memory_bound, memory);
    atomic_store(&server->client_limit, limit);
    atomic_store(&server->client_soft_limit, soft_limit / server->worker_count);
}

uint64_t client_memory_total(const struct server *server)
{
    uint64_t sum = atomic_load(&server->published_bytes);
    for (uint32_t i = 0; i < server->worker_count; i++)
        sum += atomic_load_explicit(&server->workers[i]->client_bytes, memory_order_relaxed);
    return sum;
}
