#include "server/script/script_error.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "server/script/script_state.h"

int script_raise(lua_State *lua, const char *format, ...)
{
    va_list args;
    lua_createtable(lua, 0, 2);
    lua_pushliteral(lua, "ERR ");
    va_start(args, format);
    lua_pushvfstring(lua, format, args);
    va_end(args);
    lua_concat(lua, 2);
    lua_setfield(lua, -2, "err");
    return lua_error(lua);
}

void script_push_error(lua_State *lua, const char *text, size_t len)
{
    bool is_marked = len > 0 && text[0] == '-';
    if (is_marked) {
        text++;
        len--;
    }
    lua_createtable(lua, 0, 1);
    if (memchr(text, ' ', len) == NULL) {
        lua_pushliteral(lua, "ERR ");
        lua_pushlstring(lua, text, len);
        lua_concat(lua, 2);
    } else {
        lua_pushlstring(lua, text, len);
    }
    lua_setfield(lua, -2, "err");
}

int script_unwind(lua_State *lua, enum store_result result)
{
    struct script_state *state = script_state_of(lua);
    assert(state->call != NULL);
    state->is_over = true;
    state->result = result;
    lua_pushliteral(lua, "the run is over");
    return lua_error(lua);
}
