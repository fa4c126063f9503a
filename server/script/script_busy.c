#include "server/script/script_busy.h"

#include <assert.h>
#include <time.h>

#include "server/core/commandstats.h"
#include "server/core/round_clock.h"
#include "server/config/config.h"
#include "server/config/log.h"
#include "server/exec/runner_reply.h"
#include "server/script/script_error.h"
#include "server/script/script_state.h"
#include "server/core/server.h"
#include "server/core/session.h"
#include "server/core/worker.h"

#define NSEC_PER_MS 1000000
#define LONG_RUN_NSEC (20 * NSEC_PER_MS) /* from then on it pauses */
#define PAUSE_EVERY_NSEC (10 * NSEC_PER_MS)
#define TICKS_BETWEEN_LOOKS 4096
#define PAUSE_NSEC 50000 /* gives lock waiters time to get the lock */

static void note_busy(struct script_state *state, uint64_t ran_nsec)
{
    struct worker *worker = state->worker;
    struct script_shown *shown = &worker->script;
    if (atomic_load_explicit(&shown->is_busy, memory_order_relaxed))
        return;
    bool is_function = state->script->is_function;
    pthread_mutex_lock(&shown->lock);
    shown->call = is_function ? state->call : NULL;
    shown->name = script_name(state->script);
    shown->began_nsec = state->began_nsec;
    pthread_mutex_unlock(&shown->lock);
    atomic_store_explicit(&shown->is_function, is_function, memory_order_relaxed);
    atomic_store_explicit(&shown->is_busy, true, memory_order_release);
    log_line(&worker->server->log, CONFIG_LOG_WARNING,
             "A %s has been running for %llu ms; %s KILL ends it. Its %s: %s.",
             is_function ? "function" : "script", (unsigned long long)(ran_nsec / NSEC_PER_MS),
             is_function ? "FUNCTION" : "SCRIPT", is_function ? "name" : "SHA-1",
             script_name(state->script));
}

void script_end_busy(struct script_state *state)
{
    struct script_shown *shown = &state->worker->script;
    if (!atomic_load_explicit(&shown->is_busy, memory_order_relaxed))
        return;
    pthread_mutex_lock(&shown->lock);
    shown->call = NULL;
    pthread_mutex_unlock(&shown->lock);
    atomic_store_explicit(&shown->is_busy, false, memory_order_relaxed);
}

/* The client's messages come in its own version of the protocol. */
static void run_nested_round(struct script_state *state)
{
    struct worker *worker = state->worker;
    struct session *session = state->call->session;
    uint8_t version = session->resp_version;
    session->resp_version = state->client_version;
    worker->hooks->run_nested_round(worker, session->conn);
    session->resp_version = version;
}

/* Lets other requests run. The script keeps its key locks. */
static void pause_run(struct script_state *state)
{
    struct worker *worker = state->worker;
    struct call *call = state->call;
    bool is_busy = atomic_load_explicit(&worker->script.is_busy, memory_order_relaxed);
    if (!store_pause(call->txn, is_busy))
        return;
    if (is_busy)
        run_nested_round(state);
    if (worker->server->worker_count > 1) {
        const struct timespec pause = {.tv_nsec = PAUSE_NSEC};
        nanosleep(&pause, NULL);
    }
    store_go_on(call->txn);
}

static void look_at_clock(struct script_state *state)
{
    assert(state->call != NULL && state->script != NULL); /* a run */
    struct worker *worker = state->worker;
    uint64_t now = commandstats_clock();
    if (now < state->pause_nsec)
        return;
    uint64_t threshold_ms =
        (uint64_t)config_number(&worker->server->config, CONFIG_BUSY_REPLY_THRESHOLD);
    atomic_store_explicit(&worker->script.has_written, state->has_written, memory_order_relaxed);
    if (now - state->began_nsec >= threshold_ms * NSEC_PER_MS)
        note_busy(state, now - state->began_nsec);
    if (now - state->began_nsec >= LONG_RUN_NSEC ||
        atomic_load_explicit(&worker->script.is_busy, memory_order_relaxed))
        pause_run(state);
    state->pause_nsec = commandstats_clock() + PAUSE_EVERY_NSEC;
}

void script_check_clock(lua_State *lua)
{
    struct script_state *state = script_state_of(lua);
    state->ticks += state->tick_weight;
    if (state->ticks < TICKS_BETWEEN_LOOKS)
        return;
    state->ticks = 0;
    script_check_interrupt(lua);
}

static void raise_end(lua_State *lua, enum store_result result)
{
    assert(script_state_of(lua)->is_over);
    if (result != STORE_OK)
        script_unwind(lua, result);
    script_raise(lua, SCRIPT_KILLED_TEXT);
}

void script_check_interrupt(lua_State *lua)
{
    struct script_state *state = script_state_of(lua);
    if (state->registers) {
        if (commandstats_clock() > state->register_until)
            script_raise(lua, "FUNCTION LOAD timeout");
        return; /* a bounded time, and it writes nothing */
    }
    if (state->is_over)
        raise_end(lua, state->result);
    look_at_clock(state);
    round_clock_look_up(state->worker);
    if (atomic_load_explicit(&state->worker->server->stopping, memory_order_relaxed))
        script_unwind(lua, STORE_REFUSED); /* so that its writes are rolled back */
    /* A script that writes while it is being killed from another worker is not interrupted. */
    if (atomic_load_explicit(&state->worker->script.is_killed, memory_order_relaxed) &&
        !state->has_written) {
        state->is_over = true;
        raise_end(lua, STORE_OK);
    }
}

void script_look_from_command(struct worker *worker)
{
    if (worker->scripts == NULL || worker->scripts->call == NULL)
        return;
    look_at_clock(worker->scripts);
    round_clock_look_up(worker);
}

void script_kill(struct call *call, bool is_function)
{
    struct server *server = call->server;
    bool is_any = false, is_writing = false, is_other_writing = false;
    for (uint32_t i = 0; i < server->worker_count; i++) {
        struct script_shown *script = &server->workers[i]->script;
        if (!atomic_load_explicit(&script->is_busy, memory_order_acquire))
            continue;
        bool has_written = atomic_load_explicit(&script->has_written, memory_order_relaxed);
        if (atomic_load_explicit(&script->is_function, memory_order_relaxed) != is_function) {
            is_other_writing |= has_written;
            continue;
        }
        is_any = true;
        if (has_written)
            is_writing = true;
        else
            atomic_store_explicit(&script->is_killed, true, memory_order_relaxed);
    }
    if (is_writing || (!is_any && is_other_writing)) /* Redis looks at the kind last */
        resp_error(call->reply,
                   "UNKILLABLE Sorry the script already executed write commands against the "
                   "dataset. You can either wait the script termination or kill the server in a "
                   "hard way using the SHUTDOWN NOSAVE command.");
    else if (is_any)
        resp_ok(call->reply);
    else if (worker_any_busy_is(server, !is_function))
        resp_error(call->reply, is_function ? SCRIPT_BUSY_TEXT : FUNCTION_BUSY_TEXT);
    else
        resp_error(call->reply, "NOTBUSY No scripts in execution right now.");
}
