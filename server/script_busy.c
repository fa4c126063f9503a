#include "script_busy.h"

#include "commandstats.h"
#include "config.h"
#include "script_state.h"
#include "server.h"
#include "worker.h"

#define NSEC_PER_MS 1000000

void script_look_up(lua_State *lua)
{
    struct script_state *state = script_state_of(lua);
    struct server *server = state->worker->server;
    if (state->is_over)
        lua_error(lua);
    if (atomic_load_explicit(&server->stopping, memory_order_relaxed))
        script_leave(lua, STORE_REFUSED); /* half of its writes must not stay */
    if (atomic_load_explicit(&state->worker->script.is_killed, memory_order_relaxed)) {
        state->is_over = true;
        script_raise(lua, "Script killed by user with SCRIPT KILL.");
    }
    uint64_t threshold_ms = (uint64_t)config_number(&server->config, CONFIG_BUSY_REPLY_THRESHOLD);
    uint64_t now = commandstats_clock();
    if (now - state->began_nsec >= threshold_ms * NSEC_PER_MS)
        atomic_store_explicit(&state->worker->script.is_busy, true, memory_order_relaxed);
    atomic_store_explicit(&state->worker->script.has_written, state->has_written,
                          memory_order_relaxed);
}

void script_kill(struct call *call)
{
    struct server *server = call->server;
    bool is_any = false, is_writing = false;
    for (uint32_t i = 0; i < server->worker_count; i++) {
        struct script_shown *script = &server->workers[i]->script;
        if (!atomic_load_explicit(&script->is_busy, memory_order_relaxed))
            continue;
        is_any = true;
        if (atomic_load_explicit(&script->has_written, memory_order_relaxed))
            is_writing = true;
        else
            atomic_store_explicit(&script->is_killed, true, memory_order_relaxed);
    }
    if (is_writing)
        resp_error(call->reply,
                   "UNKILLABLE Sorry the script already executed write commands against the "
                   "dataset. You can either wait the script termination or kill the server in a "
                   "hard way using the SHUTDOWN NOSAVE command.");
    else if (is_any)
        resp_ok(call->reply);
    else
        resp_error(call->reply, "NOTBUSY No scripts in execution right now.");
}
