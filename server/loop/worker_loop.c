/*
 * A worker's thread and loop. The outer loop is our own: libevent only reports ready descriptors;
 * everything else in a round happens in worker_round.
 *
 *     running -> draining (the server stops: nothing new starts)
 *             -> settled (nothing of this worker runs; it waits for the others' broadcasts)
 *             -> ended
 *
 * Invariants:
 * 1. Between rounds worker->ready_conns is empty, all replies that may be sent have been, as far as
 *    the clients take them, and everything submitted to the store has been passed to the kernel.
 * 2. The thread blocks only when its inbox is empty or its eventfd readable.
 * 3. A worker leaves its loop only when server->workers_busy is 0.
 */
#include "server/loop/worker_loop.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "server/base/input_buffer.h"
#include "server/exec/blocked.h"
#include "server/core/commandstats.h"
#include "server/core/latency.h"
#include "server/core/round_clock.h"
#include "server/net/client_memory.h"
#include "server/loop/conn_turn.h"
#include "server/config/log.h"
#include "server/exec/pause.h"
#include "server/exec/reply_stream.h"
#include "server/loop/listener.h"
#include "server/loop/rdma_loop.h"
#include "server/exec/request.h"
#include "server/script/script_busy.h"
#include "server/script/script_state.h"
#include "server/net/transport.h"
#include "server/exec/tracking.h"
#include "server/exec/watch.h"
#include "server/commands/commands.h"
#include "server/commands/info.h"
#include "server/pubsub/pubsub.h"
#include "server/net/conn_output.h"
#include "storage/base/checks.h"

#define WAKE_CHAIN_MAX 16 /* visits to the inbox in one round */
#define CHECKED_MOST 64   /* connections that conns_check() walks over */

struct worker_loop {
    int second_fd; /* timerfd: a timer of libevent's would make it read its clock twice a round */
    struct event *woken, *store_ready, *second, *pulse;
    uint64_t durable_seen; /* at the last check of worker->undurable */
    bool is_ticking;       /* the timer of `second_fd` is armed */
    bool is_ending;        /* it has no connections, and waits for the end of their channels */
    bool is_settled;       /* counted out of server->workers_busy */
};

static void free_parser(struct resp_parser *parser)
{
    if (parser != NULL)
        resp_parser_free(parser);
    free(parser);
}

static void on_woken(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    uint64_t count;
    ssize_t got = read((int)fd, &count, sizeof count);
    (void)got; /* the inbox itself has the messages */
    worker_visit_inbox(arg);
}

/* ---- rounds ---- */

static void on_store_ready(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct worker *worker = arg;
    store_poll(worker->store);
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn;
    (void)what;
    struct worker *worker = arg;
    uint64_t expirations;
    if (read(fd, &expirations, sizeof expirations) != sizeof expirations)
        return;
    LIST_FOREACH (conn, &worker->conns, of_worker)
        conn_tick(conn);
    watch_registry_rest(worker->server->watches);
    tracking_rest(worker);
    blocked_rest(worker->server->blocked);
    info_sample_rates(worker->server);
    latency_note_store(worker->server);
}

/* The timer ticks only for connections and channels that end: a worker without any sleeps. */
static void keep_ticking(struct worker *worker)
{
    struct worker_loop *loop = worker->loop;
    bool is_wanted = !LIST_EMPTY(&worker->conns) || loop->is_ending;
    if (is_wanted == loop->is_ticking)
        return;
    const struct timespec second = {.tv_sec = is_wanted ? 1 : 0};
    const struct itimerspec timer = {.it_interval = second, .it_value = second};
    if (timerfd_settime(loop->second_fd, 0, &timer, NULL) == 0)
        loop->is_ticking = is_wanted;
}

static void on_pulse(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    reply_stream_pulse(arg);
}

static void keep_pulsing(struct worker *worker)
{
    const struct timeval pulse = {.tv_usec = REPLY_STREAM_PULSE_MS * 1000};
    struct event *event = worker->loop->pulse;
    if (!LIST_EMPTY(&worker->suspended) && !event_pending(event, EV_TIMEOUT, NULL))
        event_add(event, &pulse);
}

/* Serves connections whose replies or commands wait for the journal, when it has advanced or never
 * will. */
static void look_at_undurable(struct worker *worker)
{
    if (worker->undurable == NULL && LIST_EMPTY(&worker->awaiting))
        return;
    uint64_t durable = store_durable(worker->server->store);
    if (durable == worker->loop->durable_seen && !store_has_failed(worker->server->store))
        return;
    worker->loop->durable_seen = durable;
    struct conn *next = worker->undurable;
    worker->undurable = NULL;
    for (struct conn *conn; (conn = next) != NULL;) {
        next = conn->undurable_next;
        conn->is_undurable = false;
        conn_mark_ready(conn);
    }
    blocked_note_durable(worker);
}

/* Serves connections that were put off in the previous round. */
static void take_up_again(struct worker *worker)
{
    struct conn *next = worker->put_off;
    worker->put_off = NULL;
    for (struct conn *conn; (conn = next) != NULL;) {
        next = conn->put_off_next;
        conn->is_put_off = false;
        conn_mark_ready(conn);
    }
}

/* `apart`: the connection that gets no turn now; or NULL. */
static void give_turns_but(struct worker *worker, struct conn *apart)
{
    bool is_owed = false;
    for (struct conn *conn; (conn = worker->ready_conns) != NULL;) {
        worker->ready_conns = conn->ready_next;
        conn->is_ready = false;
        if (conn == apart)
            is_owed = true;
        else
            conn_turn(conn);
    }
    if (is_owed)
        conn_mark_ready(apart);
}

static void give_turns(struct worker *worker)
{
    give_turns_but(worker, NULL);
}

/* Connections found closed or blocked while sending need a turn as well. */
static void send_replies(struct worker *worker, struct conn *apart)
{
    while (worker->corked_count > 0) {
        conn_output_uncork(worker);
        give_turns_but(worker, apart);
    }
}

/* ---- nested rounds, inside long commands ---- */

/* The state that a worker's connections share, each in its turn. It is set aside while the
 * connection `apart` is in the middle of its turn. */
struct shared {
    struct resp_parser *parser, ahead_parser;
    struct input_buffer *input;
    struct resp_writer output;
    uint32_t output_replies;
};

static void set_shared_apart(struct worker *worker, struct shared *shared)
{
    *shared = (struct shared){.parser = worker->parser,
                              .ahead_parser = worker->ahead_parser,
                              .input = worker->input,
                              .output = worker->output,
                              .output_replies = worker->output_replies};
    worker->parser = NULL;
    worker->input = NULL;
    worker->output_replies = 0;
    resp_parser_init(&worker->ahead_parser, shared->ahead_parser.limits);
    resp_writer_init(&worker->output, 2);
}

static void put_shared_back(struct worker *worker, const struct shared *shared)
{
    assert(worker->output.len == 0);
    free_parser(worker->parser);
    resp_parser_free(&worker->ahead_parser);
    input_buffer_release(worker->input);
    resp_writer_free(&worker->output);
    worker->parser = shared->parser;
    worker->ahead_parser = shared->ahead_parser;
    worker->input = shared->input;
    worker->output = shared->output;
    worker->output_replies = shared->output_replies;
}

/* Polls sockets directly: libevent's loop must not be entered recursively. */
static void serve_sockets(struct worker *worker, const struct conn *apart)
{
    uint32_t room = atomic_load_explicit(&worker->connection_count, memory_order_relaxed);
    struct pollfd *sockets = calloc(room + 1, sizeof *sockets);
    struct conn *conn, **conns = calloc(room + 1, sizeof *conns);
    nfds_t count = 0;
    if (sockets == NULL || conns == NULL)
        goto out;
    LIST_FOREACH (conn, &worker->conns, of_worker) {
        unsigned wanted = conn_wants(conn);
        if (count == room || conn == apart || wanted == 0 || conn_fd(conn) < 0)
            continue;
        conns[count] = conn;
        sockets[count++] =
            (struct pollfd){.fd = conn_fd(conn),
                            .events = (short)(((wanted & TRANSPORT_READABLE) != 0 ? POLLIN : 0) |
                                              ((wanted & TRANSPORT_WRITABLE) != 0 ? POLLOUT : 0))};
    }
    if (poll(sockets, count, 0) <= 0)
        goto out;
    for (nfds_t i = 0; i < count; i++) {
        unsigned ready = ((sockets[i].revents & POLLOUT) != 0 ? TRANSPORT_WRITABLE : 0) |
                         ((sockets[i].revents & ~POLLOUT) != 0 ? TRANSPORT_READABLE : 0);
        struct transport *transport = conns[i]->transport;
        if (ready != 0)
            transport->ready(transport->arg, ready);
    }
out:
    free(sockets);
    free(conns);
}

static void run_nested_round(struct worker *worker, struct conn *apart)
{
    struct shared shared;
    conn_output_uncork(worker);
    set_shared_apart(worker, &shared);
    worker->apart = apart;
    worker->now_ms = 0;
    worker_visit_urgent(worker);
    round_clock_restart(worker);
    serve_sockets(worker, apart);
    look_at_undurable(worker);
    take_up_again(worker);
    pubsub_hear_again(worker);
    if (client_memory_holds_back(worker))
        client_memory_let_go(worker);
    give_turns_but(worker, apart);
    send_replies(worker, apart);
    worker->apart = NULL;
    put_shared_back(worker, &shared);
}

/* The server stops: closes connections without anything in progress; when none is left, and their
 * last replies have arrived, the worker reports it, once. */
static void drain(struct worker *worker)
{
    struct conn *conn;
    LIST_FOREACH (conn, &worker->conns, of_worker) {
        conn_give_up_channel(conn);
        if (conn_settled(conn))
            conn_kill(conn);
    }
    give_turns(worker);
    if (worker->loop->is_settled || worker->running > 0 || !LIST_EMPTY(&worker->conns))
        return;
    worker->loop->is_ending = !rdma_loop_has_ended(worker);
    if (worker->loop->is_ending)
        return;
    worker->loop->is_settled = true;
    struct server *server = worker->server;
    if (atomic_fetch_sub(&server->workers_busy, 1) > 1)
        return;
    for (uint32_t i = 0; i < server->worker_count; i++)
        worker_wake(server->workers[i]);
}

/* Asserts that each list has the connections that are flagged as being on it, no others, and that
 * the open ones are counted. */
static void conns_check(const struct worker *worker)
{
    uint32_t open = 0, ready = 0, undurable = 0, put_off = 0, paused = 0;
    const struct conn *conn;
    struct conn *const *link = &LIST_FIRST(&worker->conns);
    LIST_FOREACH (conn, &worker->conns, of_worker) {
        if (++open > CHECKED_MOST)
            return;
        assert(conn->of_worker.le_prev == link && conn->worker == worker);
        assert(conn->transport != NULL);
        link = &LIST_NEXT(conn, of_worker);
        ready += conn->is_ready;
        undurable += conn->is_undurable;
        put_off += conn->is_put_off;
        paused += conn->is_paused;
    }
    assert(atomic_load_explicit(&worker->connection_count, memory_order_relaxed) >= open);
    /* Closed connections may still be on these lists. */
    for (conn = worker->ready_conns; conn != NULL; conn = conn->ready_next) {
        assert(conn->is_ready);
        ready -= conn->transport != NULL;
    }
    for (conn = worker->undurable; conn != NULL; conn = conn->undurable_next) {
        assert(conn->is_undurable);
        undurable -= conn->transport != NULL;
    }
    for (conn = worker->put_off; conn != NULL; conn = conn->put_off_next) {
        assert(conn->is_put_off);
        put_off -= conn->transport != NULL;
    }
    LIST_FOREACH (conn, &worker->paused, of_paused) {
        assert(conn->is_paused);
        paused--;
    }
    assert(ready == 0 && undurable == 0 && put_off == 0 && paused == 0);
}

void worker_round(struct worker *worker, bool may_block)
{
    counter_add(&worker->counters.cycles, 1);
    enum rdma_turn turn = worker->rdma != NULL ? rdma_loop_turn(worker->rdma) : RDMA_TURN_SLEEP;
    bool blocks = may_block && turn == RDMA_TURN_SLEEP && worker->put_off == NULL;
    if (blocks)
        worker->now_ms = 0;
    if (turn != RDMA_TURN_SKIP) /* ONCE without blocking, too: otherwise libevent loops on as long
                                   as some connection is ready */
        event_base_loop(worker->base, EVLOOP_ONCE | (blocks ? 0 : EVLOOP_NONBLOCK));
    look_at_undurable(worker);
    if (worker->put_off != NULL) /* what they have published to themselves comes first */
        worker_visit_urgent(worker);
    take_up_again(worker);
    pubsub_hear_again(worker);
    if (client_memory_holds_back(worker))
        client_memory_let_go(worker);
    give_turns(worker);
    client_memory_keep_bound(worker);
    give_turns(worker);
    /* Mainly publications that the worker has posted to itself: clients that wake each other get
     * their messages before commands that arrive later are run. */
    for (int i = 0; i < WAKE_CHAIN_MAX && worker_has_messages(worker); i++) {
        worker_visit_inbox(worker);
        give_turns(worker);
    }
    send_replies(worker, NULL); /* whose connections may have turns, and post messages */
    if (worker_has_messages(worker))
        worker_wake(worker);
    store_submit(worker->store);
    if (atomic_load_explicit(&worker->server->stopping, memory_order_acquire))
        drain(worker);
    keep_ticking(worker);
    keep_pulsing(worker);
    if (storage_checks_enabled())
        conns_check(worker);
    worker->now_ms = 0;
    round_clock_restart(worker);
    round_clock_look_up(worker);
    if (turn != RDMA_TURN_SLEEP) /* while idle: the next command need not read the clock */
        worker_now(worker);
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    clockid_t clock;
    if (pthread_getcpuclockid(pthread_self(), &clock) == 0)
        atomic_store_explicit(&worker->processor_clock, clock, memory_order_release);
    char name[16];
    snprintf(name, sizeof name, "worker-%u", worker->index);
    pthread_setname_np(pthread_self(), name);
    while (atomic_load(&worker->server->workers_busy) > 0)
        worker_round(worker, true);
    return NULL;
}

/* ---- life cycle ---- */

static struct event_base *new_base(void)
{
    struct event_config *config = event_config_new();
    if (config == NULL)
        return NULL;
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

static bool make_events(struct worker *worker)
{
    struct worker_loop *loop = worker->loop;
    worker->base = new_base();
    if (worker->base == NULL || loop->second_fd < 0)
        return false;
    const short readable = EV_READ | EV_PERSIST;
    loop->woken = event_new(worker->base, worker_inbox_fd(worker), readable, on_woken, worker);
    loop->store_ready =
        event_new(worker->base, store_worker_fd(worker->store), readable, on_store_ready, worker);
    loop->second = event_new(worker->base, loop->second_fd, readable, on_second, worker);
    loop->pulse = event_new(worker->base, -1, 0, on_pulse, worker);
    return pause_open(worker) && loop->woken != NULL && loop->store_ready != NULL &&
           loop->second != NULL && loop->pulse != NULL && event_add(loop->woken, NULL) == 0 &&
           event_add(loop->store_ready, NULL) == 0 && event_add(loop->second, NULL) == 0;
}

void worker_free(struct worker *worker)
{
    struct worker_loop *loop = worker->loop;
    rdma_loop_free(worker);
    if (worker->inbox != NULL)
        worker_visit_rest(worker);
    if (loop != NULL) {
        struct event *events[] = {loop->woken, loop->store_ready, loop->second, loop->pulse};
        for (size_t i = 0; i < sizeof events / sizeof *events; i++)
            if (events[i] != NULL)
                event_free(events[i]);
        if (loop->second_fd >= 0)
            close(loop->second_fd);
    }
    pause_close(worker);
    worker_close_inbox(worker);
    if (worker->base != NULL)
        event_base_free(worker->base);
    if (worker->store != NULL)
        store_detach(worker->store);
    if (worker->parser != NULL)
        free_parser(worker->parser);
    while (worker->spare_parser_count > 0)
        free_parser(worker->spare_parsers[--worker->spare_parser_count]);
    request_free_spares(worker);
    fiber_pool_free(&worker->fibers);
    script_state_free(worker->scripts);
    pthread_mutex_destroy(&worker->script.lock);
    input_buffer_release(worker->input);
    resp_writer_free(&worker->output);
    resp_parser_free(&worker->ahead_parser);
    command_times_free(worker);
    free(worker->command_counters);
    free(worker->corked_bytes);
    free(worker->loop);
    free(worker);
}

static const struct loop_hooks hooks = {.run_nested_round = run_nested_round,
                                        .look_from_script = script_look_from_command,
                                        .move_listener = listener_move};

static struct worker *new_worker(struct server *server, uint32_t index)
{
    struct worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        return NULL;
    worker->server = server;
    worker->index = index;
    worker->hooks = &hooks;
    pthread_mutex_init(&worker->script.lock, NULL);
    resp_writer_init(&worker->output, 2);
    resp_parser_init(&worker->ahead_parser,
                     (struct resp_limits){.bulk_max = STORE_VALUE_MAX, .count_max = INT32_MAX});
    worker->command_counters = calloc(command_count, sizeof *worker->command_counters);
    worker->command_times = calloc(command_count, sizeof *worker->command_times);
    worker->corked_bytes = malloc(WORKER_LATE_BYTES);
    bool has_inbox = worker_open_inbox(worker);
    worker->loop = calloc(1, sizeof *worker->loop);
    if (worker->loop != NULL)
        worker->loop->second_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (getrandom(&worker->random_state, sizeof worker->random_state, 0) < 0 ||
        worker->random_state == 0)
        worker->random_state = 0x9e3779b97f4a7c15 + index; /* any but 0 */
    if (worker->command_counters != NULL && worker->command_times != NULL &&
        worker->corked_bytes != NULL && has_inbox && worker->loop != NULL)
        return worker;
    worker_free(worker);
    return NULL;
}

bool worker_make(struct server *server, uint32_t index, char message[STORE_MESSAGE_MAX])
{
    snprintf(message, STORE_MESSAGE_MAX, "worker %u: out of memory or descriptors", index);
    struct worker *worker = new_worker(server, index);
    if (worker == NULL)
        return false;
    server->workers[index] = worker;
    if (store_attach(server->store, index, &worker->store, message) != STORE_OK)
        goto fail;
    if (!make_events(worker) || !rdma_loop_make(worker))
        goto fail;
    return true;
fail:
    server->workers[index] = NULL;
    worker_free(worker);
    return false;
}

bool worker_start(struct worker *worker)
{
    return pthread_create(&worker->thread, NULL, worker_main, worker) == 0;
}

void worker_join(struct worker *worker)
{
    int error = pthread_join(worker->thread, NULL);
    assert(error == 0);
    (void)error;
}
