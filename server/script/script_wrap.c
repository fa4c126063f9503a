#include "server/script/script_wrap.h"

#include <assert.h>

void script_wrap(lua_State *lua, const char *name, lua_CFunction wrapper)
{
    lua_getfield(lua, -1, name);
    assert(lua_iscfunction(lua, -1));
    lua_pushcclosure(lua, wrapper, 1);
    lua_setfield(lua, -2, name);
}

int script_call_wrapped(lua_State *lua)
{
    return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}
