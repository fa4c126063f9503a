/*
 * `table` as scripts see it. Lua's hook counts only Lua instructions. A C function that loops for
 * long, or calls only other C functions, would run without checking the clock and SCRIPT KILL.
 * Such functions are reimplemented here with interrupt checks. Replies and errors are those of Lua
 * 5.1.
 */
#include "server/script/script_table.h"

#include <assert.h>
#include <lauxlib.h>
#include <stdint.h>

#include "server/script/script_busy.h"
#include "server/script/script_seal.h"
#include "server/script/script_state.h"
#include "server/script/script_wrap.h"

#define FEW_ELEMENTS 2048 /* need no interrupt checks */
#define PIECE 8192

static void refuse_if_sealed(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    if (script_is_sealed(lua, 1))
        script_refuse_change(lua);
}

/* ---- insert, remove ---- */

/* t[to] = t[from]. */
static void move_element(lua_State *lua, int64_t from, int64_t to)
{
    if (to % PIECE == 0)
        script_check_interrupt(lua);
    lua_rawgeti(lua, 1, (int)from);
    lua_rawseti(lua, 1, (int)to);
}

static int table_insert(lua_State *lua)
{
    refuse_if_sealed(lua);
    int count = lua_gettop(lua);
    int64_t end = (int64_t)lua_objlen(lua, 1) + 1, at = end;
    if (count == 3)
        at = (int)luaL_checkinteger(lua, 2);
    else if (count != 2)
        return luaL_error(lua, "wrong number of arguments to 'insert'");
    for (int64_t i = end; i > at; i--)
        move_element(lua, i - 1, i);
    lua_rawseti(lua, 1, (int)at);
    return 0;
}

static int table_remove(lua_State *lua)
{
    refuse_if_sealed(lua);
    int64_t end = (int64_t)lua_objlen(lua, 1);
    int64_t at = (int)luaL_optinteger(lua, 2, (lua_Integer)end);
    if (at < 1 || at > end)
        return 0;
    lua_rawgeti(lua, 1, (int)at);
    for (; at < end; at++)
        move_element(lua, at + 1, at);
    lua_pushnil(lua);
    lua_rawseti(lua, 1, (int)end);
    return 1;
}

/* ---- sort ---- */

/* The default order of a sort. */
static int less(lua_State *lua)
{
    script_check_clock(lua);
    lua_pushboolean(lua, lua_lessthan(lua, 1, 2));
    return 1;
}

/* A comparison that is a C function, which the hook cannot interrupt. */
static int compare_by_c(lua_State *lua)
{
    script_check_clock(lua);
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, lua_gettop(lua) - 1, 1);
    return 1;
}

static int table_sort(lua_State *lua)
{
    refuse_if_sealed(lua);
    const struct script_state *state = script_state_of(lua);
    lua_settop(lua, 2);
    if (lua_iscfunction(lua, 2)) {
        lua_pushcclosure(lua, compare_by_c, 1);
    } else if (lua_isnil(lua, 2) &&
               (lua_objlen(lua, 1) > FEW_ELEMENTS || script_has_large_blocks(state))) {
        lua_pushcfunction(lua, less);
        lua_replace(lua, 2);
    }
    return script_call_wrapped(lua);
}

/* ---- concat ---- */

/* Concatenates elements [first, last] of the table at `table` by the wrapped function. */
static void concat_piece(lua_State *lua, int table, int first, int last)
{
    assert(first <= last);
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_pushvalue(lua, table);
    lua_pushvalue(lua, 2);
    lua_pushinteger(lua, first);
    lua_pushinteger(lua, last);
    lua_call(lua, 4, 1);
}

static int table_concat(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_optstring(lua, 2, "");
    int first = (int)luaL_optinteger(lua, 3, 1);
    int last = (int)(lua_isnoneornil(lua, 4) ? (lua_Integer)lua_objlen(lua, 1)
                                             : luaL_checkinteger(lua, 4));
    if ((int64_t)last - first < 2 * PIECE)
        return script_call_wrapped(lua);
    lua_settop(lua, 2);
    lua_newtable(lua);
    int pieces = 0;
    for (int64_t at = first; at <= last; at += PIECE) {
        int64_t end = at + PIECE - 1;
        script_check_interrupt(lua);
        concat_piece(lua, 1, (int)at, (int)(end < last ? end : last));
        lua_rawseti(lua, 3, ++pieces);
    }
    concat_piece(lua, 3, 1, pieces);
    return 1;
}

/* ---- foreach, foreachi ---- */

/* Calls the function at 2 with the two values on top, and pops them. True: its result is not nil
 * and was left on the stack. */
static bool ends_walk(lua_State *lua)
{
    script_check_clock(lua);
    lua_pushvalue(lua, 2);
    lua_pushvalue(lua, -3);
    lua_pushvalue(lua, -3);
    lua_call(lua, 2, 1);
    if (!lua_isnil(lua, -1))
        return true;
    lua_pop(lua, 2); /* lua_next() needs the key */
    return false;
}

static int table_foreach(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_checktype(lua, 2, LUA_TFUNCTION);
    lua_settop(lua, 2);
    if (script_is_sealed(lua, 1))
        lua_replace(lua, 1);
    for (lua_pushnil(lua); lua_next(lua, 1) != 0;)
        if (ends_walk(lua))
            return 1;
    return 0;
}

static int table_foreachi(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_checktype(lua, 2, LUA_TFUNCTION);
    lua_settop(lua, 2);
    int64_t last = (int64_t)lua_objlen(lua, 1);
    for (int64_t i = 1; i <= last; i++) {
        lua_pushinteger(lua, (lua_Integer)i);
        lua_rawgeti(lua, 1, (int)i);
        if (ends_walk(lua))
            return 1;
        lua_pop(lua, 1);
    }
    return 0;
}

/* ---- the rest ---- */

static int table_maxn(lua_State *lua)
{
    if (script_is_sealed(lua, 1))
        lua_replace(lua, 1);
    return script_call_wrapped(lua);
}

void script_open_tables(lua_State *lua)
{
    static const luaL_Reg ours[] = {{"insert", table_insert},
                                    {"remove", table_remove},
                                    {"foreach", table_foreach},
                                    {"foreachi", table_foreachi},
                                    {NULL, NULL}};
    luaL_register(lua, NULL, ours);
    script_wrap(lua, "sort", table_sort);
    script_wrap(lua, "concat", table_concat);
    script_wrap(lua, "maxn", table_maxn);
}
