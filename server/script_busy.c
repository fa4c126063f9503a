#include "script_busy.h"

#include "script_state.h"
#include "server.h"
#include "worker.h"

void script_look_up(lua_State *lua)
{
    struct script_state *state = script_state_of(lua);
    if (state->is_over)
        lua_error(lua);
    if (atomic_load_explicit(&state->worker->server->stopping, memory_order_relaxed)) {
        state->is_over = true; /* what it has written goes with its transaction */
        script_raise(lua, "The server is being stopped.");
    }
}
