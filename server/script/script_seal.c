/*
 * Sealed tables. Lua 5.1 has no constant tables: a sealed table is an empty one whose metatable
 * redirects reads to another. The functions that bypass metatables (script_base.c) treat sealed
 * tables specially.
 *
 * Invariant: a script can reach neither the table behind a sealed one nor its metatable.
 */
#include "server/script/script_seal.h"

#include <assert.h>
#include <lauxlib.h>

/* The address of this is the registry's key for a table that maps metatables to the tables behind.
 */
static const char seals_key;

static int refuse_assignment(lua_State *lua)
{
    return luaL_error(lua, "Attempt to modify a readonly table");
}

static void push_seals(lua_State *lua)
{
    lua_pushlightuserdata(lua, (void *)&seals_key);
    lua_rawget(lua, LUA_REGISTRYINDEX);
    if (!lua_isnil(lua, -1))
        return;
    lua_pop(lua, 1);
    lua_newtable(lua);
    lua_pushlightuserdata(lua, (void *)&seals_key);
    lua_pushvalue(lua, -2);
    lua_rawset(lua, LUA_REGISTRYINDEX);
}

void script_seal(lua_State *lua)
{
    int behind = lua_gettop(lua);
    assert(lua_istable(lua, behind));
    lua_newtable(lua);
    lua_createtable(lua, 0, 2);
    lua_pushvalue(lua, behind);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, refuse_assignment);
    lua_setfield(lua, -2, "__newindex");
    push_seals(lua);
    lua_pushvalue(lua, -2);
    lua_pushvalue(lua, behind);
    lua_rawset(lua, -3);
    lua_pop(lua, 1);
    lua_setmetatable(lua, -2);
    lua_replace(lua, behind);
    assert(lua_gettop(lua) == behind);
}

bool script_is_sealed(lua_State *lua, int index)
{
    if (lua_type(lua, index) != LUA_TTABLE || !lua_getmetatable(lua, index))
        return false;
    push_seals(lua);
    lua_insert(lua, -2);
    lua_rawget(lua, -2);
    lua_remove(lua, -2);
    if (!lua_isnil(lua, -1))
        return true;
    lua_pop(lua, 1);
    return false;
}

static int no_such_global(lua_State *lua)
{
    const char *name = luaL_optstring(lua, 2, "?");
    return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", name);
}

void script_refuse_unknown(lua_State *lua)
{
    lua_createtable(lua, 0, 1);
    lua_pushcfunction(lua, no_such_global);
    lua_setfield(lua, -2, "__index");
    lua_setmetatable(lua, -2);
}

int script_refuse_change(lua_State *lua)
{
    lua_pushliteral(lua, "Attempt to modify a readonly table");
    return lua_error(lua);
}
