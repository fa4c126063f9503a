/*
 * Invariants:
 * 1. server->pause is 0, or the end of the pause in ms, times MODES, plus the mode: one word, so
 *    that a command needs one look. An end that has passed counts as none; who finds it sets 0.
 * 2. A connection with `is_paused` is on its worker's list and counted in paused_clients; its first
 *    parked request has been refused by pause_look since the list was last emptied.
 * 3. While the list is not empty the worker's timer is armed, for no later than the end of the
 *    pause: a pause may be extended, but only pause_end, after which the list is emptied, shortens
 *    it.
 */
#include "server/exec/pause.h"

#include <assert.h>
#include <stdatomic.h>

#include <event2/event.h>

#include "server/core/server.h"
#include "server/exec/executor.h"
#include "server/exec/nested.h"
#include "server/net/conn.h"
#include "storage/base/queue.h"

#define MODES 4
#define END_MOST (INT64_MAX / MODES)
#define TIMER_MOST_MS (24 * 3600 * 1000) /* then it looks again */

/* ---- the state ---- */

static enum pause_mode mode_of(uint64_t pause)
{
    return (enum pause_mode)(pause % MODES);
}

static int64_t end_of(uint64_t pause)
{
    return (int64_t)(pause / MODES);
}

static uint64_t current(struct server *server)
{
    uint64_t pause = atomic_load(&server->pause);
    int64_t now_ms = store_clock_ms(server->store);
    while (pause != 0 && end_of(pause) < now_ms)
        if (atomic_compare_exchange_weak(&server->pause, &pause, 0))
            return 0;
    return pause;
}

/* Of several threads that do this at a time, the last one tells the last state. */
static void tell_store(struct server *server)
{
    uint64_t told, pause = atomic_load(&server->pause);
    do {
        told = pause;
        store_hold_still(server->store, end_of(told));
        pause = atomic_load(&server->pause);
    } while (pause != told);
}

void pause_begin(struct server *server, enum pause_mode mode, int64_t end_ms)
{
    uint64_t before, fresh;
    assert(mode != PAUSE_NOTHING && end_ms >= 0);
    do {
        before = current(server);
        int64_t end = end_ms > end_of(before) ? end_ms : end_of(before);
        enum pause_mode stricter = mode > mode_of(before) ? mode : mode_of(before);
        fresh = (uint64_t)(end < END_MOST ? end : END_MOST) * MODES + stricter;
    } while (!atomic_compare_exchange_weak(&server->pause, &before, fresh));
    tell_store(server);
}

void pause_end(struct server *server)
{
    atomic_store(&server->pause, 0);
    tell_store(server);
}

enum pause_mode pause_now(struct server *server, int64_t *left_ms)
{
    uint64_t pause = current(server);
    int64_t left = end_of(pause) - store_clock_ms(server->store);
    *left_ms = pause != 0 && left > 0 ? left : 0;
    return mode_of(pause);
}

/* ---- connections ---- */

/* False: no memory for the timer. */
static bool arm(struct worker *worker, int64_t end_ms)
{
    if (event_pending(worker->pause_timer, EV_TIMEOUT, NULL))
        return true;
    int64_t left_ms = end_ms - store_clock_ms(worker->server->store) + 1;
    if (left_ms < 1)
        left_ms = 1;
    if (left_ms > TIMER_MOST_MS)
        left_ms = TIMER_MOST_MS;
    const struct timeval left = {.tv_sec = left_ms / 1000, .tv_usec = left_ms % 1000 * 1000};
    return event_add(worker->pause_timer, &left) == 0;
}

void pause_leave(struct conn *conn)
{
    if (!conn->is_paused)
        return;
    conn->is_paused = false;
    LIST_REMOVE(conn, of_paused);
    atomic_fetch_sub(&conn->worker->server->paused_clients, 1);
}

void pause_resume(struct worker *worker)
{
    event_del(worker->pause_timer);
    for (struct conn *conn; (conn = LIST_FIRST(&worker->paused)) != NULL;) {
        pause_leave(conn);
        conn_mark_ready(conn); /* the newest first: turns are given in the opposite order */
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct worker *worker = arg;
    uint64_t pause = current(worker->server);
    if (pause == 0 || !arm(worker, end_of(pause)))
        pause_resume(worker); /* who must still wait is paused again */
}

bool pause_open(struct worker *worker)
{
    LIST_INIT(&worker->paused);
    worker->pause_timer = event_new(worker->base, -1, 0, on_timer, worker);
    return worker->pause_timer != NULL;
}

void pause_close(struct worker *worker)
{
    assert(LIST_EMPTY(&worker->paused));
    if (worker->pause_timer != NULL)
        event_free(worker->pause_timer);
}

/* ---- commands ---- */

static bool may_write(struct call *call);

/* EXEC is as strict as the strictest of its commands. */
static bool any_may_write(const struct call *exec)
{
    const struct nested_calls *queued = exec->session->multi;
    const struct nested *each;
    if (queued == NULL)
        return false;
    TAILQ_FOREACH (each, &queued->list, link) {
        struct call call = {.server = exec->server,
                            .worker = exec->worker,
                            .command = each->call.command,
                            .argc = each->call.argc,
                            .argv = each->call.argv};
        if (may_write(&call))
            return true;
    }
    return false;
}

static bool may_write(struct call *call)
{
    const struct command *command = call->command;
    if (command->role == ROLE_EXEC)
        return any_may_write(call);
    return command->may_write != NULL ? command->may_write(call) : command_has_effect(command);
}

static void hold(struct conn *conn, int64_t end_ms)
{
    assert(!conn->is_paused);
    conn->is_paused = true;
    LIST_INSERT_HEAD(&conn->worker->paused, conn, of_paused);
    atomic_fetch_add(&conn->worker->server->paused_clients, 1);
    if (!arm(conn->worker, end_ms))
        conn_kill(conn);
}

bool pause_look(struct request *request)
{
    struct call *call = &request->call;
    uint64_t pause = current(call->server);
    if (pause == 0)
        return false;
    call->reply = &request->reply;
    call->worker = request->conn->worker;
    call->command = executor_look(request);
    if (call->command == NULL || (mode_of(pause) == PAUSE_WRITES && !may_write(call)))
        return false;
    call->session->last_command = call->command->name;
    hold(request->conn, end_of(pause));
    return true;
}
