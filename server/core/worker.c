/*
 * A worker's thread and loop. The outer loop is ours: libevent tells which descriptors are ready,
 * everything else of a round happens in worker_round.
 *
 *     running -> draining (the server stops: nothing new starts) -> settled (nothing of ours runs,
 *     every worker's is waited for, because a tour may still come by) -> ended
 *
 * Invariants:
 * 1. Between rounds worker->attention is empty, all replies that may leave have, as far as clients
 *    take them, and everything submitted to the store has been handed to the kernel.
 * 2. The thread blocks only when its inbox is empty or its eventfd readable.
 * 3. A worker leaves its loop only when server->workers_busy is 0.
 */
#include "server/core/worker.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "server/base/block.h"
#include "server/exec/blocked.h"
#include "server/net/client_memory.h"
#include "server/net/conn.h"
#include "server/config/log.h"
#include "server/exec/outflow.h"
#include "server/loop/rdma_loop.h"
#include "server/exec/request.h"
#include "server/script/script_state.h"
#include "server/net/transport.h"
#include "server/exec/watch.h"

#define PUSH_SHARE 4 /* of what is comfortable: so much is pushed before connections have turns */
#define WAKE_CHAIN_MAX 16 /* visits to the inbox in one round */

struct worker_private {
    _Atomic(struct worker_message *) inbox;  /* newest first */
    struct worker_message *held, *last_held; /* taken out of it, but not visited, oldest first */
    int wake_fd;
    int second_fd; /* while a timer is pending, libevent reads its clock twice a round */
    struct event *woken, *store_ready, *second, *pulse;
    uint64_t durable_seen; /* as of the last look at worker->undurable */
    bool is_ticking;       /* the timer of `second_fd` is armed */
    bool is_settled;       /* counted out of server->workers_busy */
};

int64_t worker_now(struct worker *worker)
{
    if (worker->now_ms == 0)
        worker->now_ms = store_clock_ms(worker->server->store);
    return worker->now_ms;
}

static void free_parser(struct resp_parser *parser)
{
    if (parser != NULL)
        resp_parser_free(parser);
    free(parser);
}

/* ---- the inbox ---- */

void worker_wake(struct worker *worker)
{
    uint64_t one = 1;
    ssize_t written = write(worker->private->wake_fd, &one, sizeof one);
    assert(written == sizeof one || errno == EAGAIN);
}

/* Whether it was empty before. */
static bool push_message(struct worker *to, struct worker_message *message)
{
    _Atomic(struct worker_message *) *inbox = &to->private->inbox;
    struct worker_message *head = atomic_load_explicit(inbox, memory_order_relaxed);
    do
        message->next = head;
    while (!atomic_compare_exchange_weak_explicit(inbox, &head, message, memory_order_release,
                                                  memory_order_relaxed));
    return head == NULL;
}

void worker_post(struct worker *to, struct worker_message *message)
{
    if (push_message(to, message)) /* else the one who posted before has woken it */
        worker_wake(to);
}

static bool inbox_is_empty(const struct worker *worker)
{
    return atomic_load_explicit(&worker->private->inbox, memory_order_relaxed) == NULL;
}

static bool has_messages(const struct worker *worker)
{
    return worker->private->held != NULL || !inbox_is_empty(worker);
}

/* Behind those that are held already. */
static void take_inbox(struct worker *worker)
{
    struct worker_private *private = worker->private;
    struct worker_message *newest =
        atomic_exchange_explicit(&private->inbox, NULL, memory_order_acquire);
    struct worker_message *oldest = NULL, *last = newest;
    while (newest != NULL) {
        struct worker_message *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    if (oldest == NULL)
        return;
    *(private->held == NULL ? &private->held : &private->last_held->next) = oldest;
    private->last_held = last;
}

/* Those held and those that have come since, in order. */
static struct worker_message *take_all(struct worker *worker)
{
    struct worker_private *private = worker->private;
    take_inbox(worker);
    struct worker_message *first = private->held;
    private->held = private->last_held = NULL;
    return first;
}

/* Before those that are held. */
static void put_back(struct worker *worker, struct worker_message *first)
{
    struct worker_private *private = worker->private;
    struct worker_message *last = first;
    while (last->next != NULL)
        last = last->next;
    last->next = private->held;
    if (private->held == NULL)
    private->last_held = last;
    private->held = first;
}

/* Messages for so many subscribers may have come that their connections have to have turns in
 * between, in which they send, and count what they hold: then some are left. */
static void visit_inbox(struct worker *worker)
{
    uint64_t most =
        atomic_load_explicit(&worker->server->client_comfort, memory_order_relaxed) / PUSH_SHARE;
    struct worker_message *next = take_all(worker);
    worker->pushed_bytes = 0;
    for (struct worker_message *message; (message = next) != NULL;) {
        next = message->next;
        message->visit(worker, message);
        if (next != NULL && worker->pushed_bytes > most) {
            put_back(worker, next);
            return;
        }
    }
}

static void empty_inbox(struct worker *worker)
{
    do
        visit_inbox(worker);
    while (worker->private->held != NULL);
}

/* Holds the others, in their order. */
static void visit_urgent(struct worker *worker)
{
    struct worker_private *private = worker->private;
    struct worker_message *next = take_all(worker);
    for (struct worker_message *message; (message = next) != NULL;) {
        next = message->next;
        if (message->is_urgent) {
            message->visit(worker, message);
            continue;
        }
        message->next = NULL;
        *(private->held == NULL ? &private->held : &private->last_held->next) = message;
        private->last_held = message;
    }
    if (private->held != NULL)
        worker_wake(worker);
}

void worker_visit_woken(struct worker *worker)
{
    if (!worker->is_aside)
        store_answer_summons(worker->store);
}

static void on_woken(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    uint64_t count;
    ssize_t got = read((int)fd, &count, sizeof count);
    (void)got; /* the inbox tells what there is */
    visit_inbox(arg);
}

void worker_post_self(struct worker *self, struct worker_message *message)
{
    push_message(self, message);
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
    (void)what;
    struct worker *worker = arg;
    uint64_t expirations;
    if (read(fd, &expirations, sizeof expirations) != sizeof expirations)
        return;
    for (struct conn *conn = worker->conns; conn != NULL; conn = conn->next)
        conn_tick(conn);
    watch_registry_rest(worker->server->watches);
    blocked_rest(worker->server->blocked);
}

/* The seconds tick only for connections: a worker without any sleeps. */
static void keep_ticking(struct worker *worker)
{
    struct worker_private *private = worker->private;
    bool is_wanted = worker->conns != NULL;
    if (is_wanted == private->is_ticking)
        return;
    const struct timespec second = {.tv_sec = is_wanted ? 1 : 0};
    const struct itimerspec timer = {.it_interval = second, .it_value = second};
    if (timerfd_settime(private->second_fd, 0, &timer, NULL) == 0)
    private->is_ticking = is_wanted;
}

static void on_pulse(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    outflow_pulse(arg);
}

static void keep_pulsing(struct worker *worker)
{
    const struct timeval pulse = {.tv_usec = OUTFLOW_PULSE_MS * 1000};
    struct event *event = worker->private->pulse;
    if (worker->resting != NULL && !event_pending(event, EV_TIMEOUT, NULL))
        event_add(event, &pulse);
}

/* Connections whose replies or commands wait for the journal, when it has moved or never will. */
static void look_at_undurable(struct worker *worker)
{
    if (worker->undurable == NULL && worker->awaiting == NULL)
        return;
    uint64_t durable = store_durable(worker->server->store);
    if (durable == worker->private->durable_seen && !store_has_failed(worker->server->store))
        return;
    worker->private->durable_seen = durable;
    struct conn *next = worker->undurable;
    worker->undurable = NULL;
    for (struct conn *conn; (conn = next) != NULL;) {
        next = conn->undurable_next;
        conn->is_undurable = false;
        conn_attend(conn);
    }
    blocked_note_durable(worker);
}

/* `apart`: whose turn is to come later; or NULL. */
static void give_turns_but(struct worker *worker, struct conn *apart)
{
    bool is_owed = false;
    for (struct conn *conn; (conn = worker->attention) != NULL;) {
        worker->attention = conn->attention_next;
        conn->wants_attention = false;
        if (conn == apart)
            is_owed = true;
        else
            conn_turn(conn);
    }
    if (is_owed)
        conn_attend(apart);
}

static void give_turns(struct worker *worker)
{
    give_turns_but(worker, NULL);
}

/* Whom sending has found closed, or full, needs a turn, too. */
static void send_replies(struct worker *worker, struct conn *apart)
{
    while (worker->late_count > 0) {
        conn_output_send_late(worker);
        give_turns_but(worker, apart);
    }
}

/* ---- from inside a command that runs for long ---- */

/* What its connections take turns with; the one apart is in the middle of its own. */
struct shared {
    struct resp_parser *parser, scout;
    struct block *input;
    struct resp_writer output;
    uint32_t output_replies;
};

static void set_shared_apart(struct worker *worker, struct shared *shared)
{
    *shared = (struct shared){.parser = worker->parser,
                              .scout = worker->scout,
                              .input = worker->input,
                              .output = worker->output,
                              .output_replies = worker->output_replies};
    worker->parser = NULL;
    worker->input = NULL;
    worker->output_replies = 0;
    resp_parser_init(&worker->scout, shared->scout.limits);
    resp_writer_init(&worker->output, 2);
}

static void put_shared_back(struct worker *worker, const struct shared *shared)
{
    assert(worker->output.len == 0);
    free_parser(worker->parser);
    resp_parser_free(&worker->scout);
    block_release(worker->input);
    resp_writer_free(&worker->output);
    worker->parser = shared->parser;
    worker->scout = shared->scout;
    worker->input = shared->input;
    worker->output = shared->output;
    worker->output_replies = shared->output_replies;
}

/* Sockets are asked directly: libevent's loop is not to be entered twice. */
static void serve_sockets(struct worker *worker, const struct conn *apart)
{
    uint32_t room = atomic_load_explicit(&worker->connection_count, memory_order_relaxed);
    struct pollfd *sockets = calloc(room + 1, sizeof *sockets);
    struct conn **conns = calloc(room + 1, sizeof *conns);
    nfds_t count = 0;
    if (sockets == NULL || conns == NULL)
        goto out;
    for (struct conn *conn = worker->conns; conn != NULL && count < room; conn = conn->next) {
        unsigned wanted = conn_wants(conn);
        if (conn == apart || wanted == 0 || conn_fd(conn) < 0)
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

void worker_serve_aside(struct worker *worker, struct conn *apart)
{
    struct shared shared;
    conn_output_send_late(worker);
    set_shared_apart(worker, &shared);
    worker->is_aside = true;
    worker->now_ms = 0;
    visit_urgent(worker);
    serve_sockets(worker, apart);
    look_at_undurable(worker);
    give_turns_but(worker, apart);
    send_replies(worker, apart);
    worker->is_aside = false;
    put_shared_back(worker, &shared);
}

/* The server stops: connections with nothing in progress are closed, and when none is left, the
 * worker tells so, once. */
static void drain(struct worker *worker)
{
    for (struct conn *conn = worker->conns; conn != NULL; conn = conn->next) {
        conn_give_up_channel(conn);
        if (conn_settled(conn))
            conn_kill(conn);
    }
    give_turns(worker);
    if (worker->private->is_settled || worker->running > 0 || worker->conns != NULL)
        return;
    worker->private->is_settled = true;
    struct server *server = worker->server;
    if (atomic_fetch_sub(&server->workers_busy, 1) > 1)
        return;
    for (uint32_t i = 0; i < server->worker_count; i++)
        worker_wake(server->workers[i]);
}

void worker_round(struct worker *worker, bool may_block)
{
    counter_add(&worker->counters.cycles, 1);
    enum rdma_turn turn = worker->rdma != NULL ? rdma_loop_turn(worker->rdma) : RDMA_TURN_SLEEP;
    bool blocks = may_block && turn == RDMA_TURN_SLEEP;
    if (blocks)
        worker->now_ms = 0;
    if (turn !=
        RDMA_TURN_SKIP) /* once also without blocking: else it stays while anybody is ready */
        event_base_loop(worker->base, EVLOOP_ONCE | (blocks ? 0 : EVLOOP_NONBLOCK));
    look_at_undurable(worker);
    pubsub_hear_again(worker);
    client_memory_let_go(worker);
    give_turns(worker);
    client_memory_keep_bound(worker);
    give_turns(worker);
    /* What it has posted to itself, above all: clients that wake each other, before a command is
     * read that was sent when the first of them had been woken. */
    for (int i = 0; i < WAKE_CHAIN_MAX && has_messages(worker); i++) {
        visit_inbox(worker);
        give_turns(worker);
    }
    if (has_messages(worker))
        worker_wake(worker);
    send_replies(worker, NULL);
    store_submit(worker->store);
    if (atomic_load_explicit(&worker->server->stopping, memory_order_acquire))
        drain(worker);
    keep_ticking(worker);
    keep_pulsing(worker);
    worker->now_ms = 0;
    if (turn != RDMA_TURN_SLEEP) /* the command that is polled for need not look at the clock */
        worker_now(worker);
}

uint64_t worker_busy_usec(const struct worker *worker)
{
    struct timespec time;
    clockid_t clock = atomic_load_explicit(&worker->processor_clock, memory_order_acquire);
    if (clock == 0 || clock_gettime(clock, &time) != 0)
        return 0;
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
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

/* ---- life ---- */

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
    struct worker_private *private = worker->private;
    worker->base = new_base();
    if (worker->base == NULL || private->wake_fd < 0 || private->second_fd < 0)
        return false;
    const short readable = EV_READ | EV_PERSIST;
    private->woken = event_new(worker->base, private->wake_fd, readable, on_woken, worker);
    private->store_ready =
        event_new(worker->base, store_worker_fd(worker->store), readable, on_store_ready, worker);
    private->second = event_new(worker->base, private->second_fd, readable, on_second, worker);
    private->pulse = event_new(worker->base, -1, 0, on_pulse, worker);
    return private->woken != NULL && private->store_ready != NULL && private->second != NULL &&
           private->pulse != NULL && event_add(private->woken, NULL) == 0 &&
           event_add(private->store_ready, NULL) == 0 && event_add(private->second, NULL) == 0;
}

void worker_visit_rest(struct worker *worker)
{
    empty_inbox(worker);
}

void worker_free(struct worker *worker)
{
    struct worker_private *private = worker->private;
    rdma_loop_free(worker);
    if (private != NULL) {
        empty_inbox(worker);
        struct event *events[] = {private->woken, private->store_ready, private->second,
                                  private->pulse};
        for (size_t i = 0; i < sizeof events / sizeof *events; i++)
            if (events[i] != NULL)
                event_free(events[i]);
        if (private->wake_fd >= 0)
            close(private->wake_fd);
        if (private->second_fd >= 0)
            close(private->second_fd);
    }
    if (worker->base != NULL)
        event_base_free(worker->base);
    if (worker->store != NULL)
        store_detach(worker->store);
    if (worker->parser != NULL)
        free_parser(worker->parser);
    while (worker->spare_parser_count > 0)
        free_parser(worker->spare_parsers[--worker->spare_parser_count]);
    request_free_spares(worker);
    script_state_free(worker->scripts);
    block_release(worker->input);
    resp_writer_free(&worker->output);
    resp_parser_free(&worker->scout);
    free(worker->command_counters);
    free(worker->late_bytes);
    free(worker->private);
    free(worker);
}

static struct worker *new_worker(struct server *server, uint32_t index)
{
    struct worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        return NULL;
    worker->server = server;
    worker->index = index;
    resp_writer_init(&worker->output, 2);
    resp_parser_init(&worker->scout,
                     (struct resp_limits){.bulk_max = STORE_VALUE_MAX, .count_max = INT32_MAX});
    worker->command_counters = calloc(command_count, sizeof *worker->command_counters);
    worker->late_bytes = malloc(WORKER_LATE_BYTES);
    worker->private = calloc(1, sizeof *worker->private);
    if (worker->private != NULL) {
        worker->private->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        worker->private->second_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    }
    if (getrandom(&worker->random_state, sizeof worker->random_state, 0) < 0 ||
        worker->random_state == 0)
        worker->random_state = 0x9e3779b97f4a7c15 + index; /* any but 0 */
    if (worker->command_counters != NULL && worker->late_bytes != NULL && worker->private != NULL)
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
