/*
 * Lua's basic functions as scripts see them: Lua's own where they are safe, and our versions of
 * those that would otherwise bypass a sealed table, catch the error that ends a run, load
 * bytecode, or never end.
 */
#include "server/script/script_base.h"

#include <ctype.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

#include "server/script/script_busy.h"
#include "server/script/script_pattern.h"
#include "server/script/script_seal.h"
#include "server/script/script_state.h"
#include "server/script/script_table.h"
#include "server/script/script_wrap.h"

/* ---- errors ---- */

/* Returns from a protected call. The error that ends the run is raised again. */
static int give_results(lua_State *lua, int status)
{
    if (status != 0 && script_state_of(lua)->is_over)
        return lua_error(lua);
    lua_pushboolean(lua, status == 0);
    lua_insert(lua, 1);
    return lua_gettop(lua);
}

/* As in Redis, an error table is replaced by its text. */
static int base_pcall(lua_State *lua)
{
    luaL_checkany(lua, 1);
    int status = lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0);
    if (status != 0 && lua_istable(lua, -1)) {
        lua_pushliteral(lua, "err");
        lua_rawget(lua, -2);
        lua_remove(lua, lua_isstring(lua, -1) ? -2 : -1);
    }
    return give_results(lua, status);
}

/* Calls the script's own error handler, except for the error that ends the run. Lua runs the
 * handler without the hook if the hook has raised the error, so nothing could end the handler. */
static int handle_error(lua_State *lua)
{
    if (script_state_of(lua)->is_over)
        return 1;
    lua_settop(lua, 1);
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, 1, 1);
    return 1;
}

static int base_xpcall(lua_State *lua)
{
    luaL_checkany(lua, 2);
    lua_settop(lua, 2);
    if (lua_isfunction(lua, 2)) /* otherwise Lua reports the error */
        lua_pushcclosure(lua, handle_error, 1);
    lua_insert(lua, 1); /* the handler goes below the function */
    int status = lua_pcall(lua, 0, LUA_MULTRET, 1);
    lua_remove(lua, 1);
    return give_results(lua, status);
}

static int base_resume(lua_State *lua)
{
    int count = script_call_wrapped(lua);
    if (script_state_of(lua)->is_over)
        return lua_error(lua); /* on top: the reason why it ended */
    return count;
}

/* ---- tables ---- */

static int base_getmetatable(lua_State *lua)
{
    luaL_checkany(lua, 1);
    if (script_is_sealed(lua, 1) || !lua_getmetatable(lua, 1)) {
        lua_pushnil(lua);
        return 1;
    }
    luaL_getmetafield(lua, 1, "__metatable");
    return 1;
}

static int base_next(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    lua_settop(lua, 2);
    if (script_is_sealed(lua, 1))
        lua_replace(lua, 1);
    if (lua_next(lua, 1))
        return 2;
    lua_pushnil(lua);
    return 1;
}

static int base_pairs(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_pushvalue(lua, 1);
    lua_pushnil(lua);
    return 3;
}

static int base_rawget(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_checkany(lua, 2);
    lua_settop(lua, 2);
    if (script_is_sealed(lua, 1))
        lua_replace(lua, 1);
    lua_rawget(lua, 1);
    return 1;
}

/* For functions that modify their first argument. */
static int base_change(lua_State *lua)
{
    if (script_is_sealed(lua, 1))
        return script_refuse_change(lua);
    return script_call_wrapped(lua);
}

static int base_unpack(lua_State *lua)
{
    lua_Number first = luaL_optnumber(lua, 2, 1);
    lua_Number last =
        lua_isnoneornil(lua, 3) ? (lua_Number)lua_objlen(lua, 1) : luaL_checknumber(lua, 3);
    if (!(last - first < 1000000) || first < INT32_MIN || last > INT32_MAX)
        return luaL_error(lua, "too many results to unpack");
    return script_call_wrapped(lua);
}

/* ---- code ---- */

struct text {
    const char *at;
    size_t left;
    bool is_in_run;
};

#define TEXT_PIECE (64 * 1024)

static const char *read_text(lua_State *lua, void *arg, size_t *len)
{
    struct text *text = arg;
    const char *piece = text->at;
    if (text->is_in_run)
        script_check_interrupt(lua);
    *len = text->left < TEXT_PIECE ? text->left : TEXT_PIECE;
    text->at += *len;
    text->left -= *len;
    return *len == 0 ? NULL : piece;
}

/* The collector is stopped meanwhile, because the compiler does not anchor every object that it
 * creates. */
bool script_load(lua_State *lua, const char *text, size_t len, const char *name)
{
    if (len > 0 && text[0] == LUA_SIGNATURE[0]) {
        lua_pushliteral(lua, "bytecode is not loaded");
        return false;
    }
    lua_gc(lua, LUA_GCSTOP, 0);
    struct text source = {text, len, script_state_of(lua)->is_hooked};
    int status = lua_load(lua, read_text, &source, name);
    lua_gc(lua, LUA_GCRESTART, 0);
    return status == 0;
}

static int load_text(lua_State *lua, const char *text, size_t len, const char *name)
{
    if (script_load(lua, text, len, name))
        return 1;
    if (script_state_of(lua)->is_over)
        return lua_error(lua);
    lua_pushnil(lua);
    lua_insert(lua, -2);
    return 2;
}

static int base_loadstring(lua_State *lua)
{
    size_t len;
    const char *text = luaL_checklstring(lua, 1, &len);
    return load_text(lua, text, len, luaL_optstring(lua, 2, text));
}

static int base_load(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TFUNCTION);
    const char *name = luaL_optstring(lua, 2, "=(load)");
    lua_settop(lua, 2);
    lua_pushliteral(lua, "");
    for (;;) {
        script_check_interrupt(lua); /* the reader may be a C function */
        lua_pushvalue(lua, 1);
        if (lua_pcall(lua, 0, 1, 0) != 0) {
            if (script_state_of(lua)->is_over)
                return lua_error(lua);
            lua_pushnil(lua);
            lua_insert(lua, -2);
            return 2;
        }
        if (lua_isnil(lua, -1) || (lua_isstring(lua, -1) && lua_objlen(lua, -1) == 0))
            break;
        if (!lua_isstring(lua, -1))
            return luaL_error(lua, "reader function must return a string");
        lua_concat(lua, 2);
    }
    size_t len;
    const char *text = lua_tolstring(lua, 3, &len);
    return load_text(lua, text, len, name);
}

/* ---- strings, numbers, memory ---- */

#define LONG_TEXT (64 * 1024)

#define REPEATED_AT_ONCE (1024 * 1024)
#define CHANGED_AT_ONCE (256 * 1024)

/* Repeats `len` bytes up to `whole` bytes. */
static void push_repeated(lua_State *lua, const char *text, size_t len, size_t whole)
{
    char *all = lua_newuserdata(lua, whole);
    memcpy(all, text, len);
    for (size_t have = len; have < whole;) {
        size_t more = have < whole - have ? have : whole - have;
        if (more > REPEATED_AT_ONCE)
            more = REPEATED_AT_ONCE;
        script_check_interrupt(lua);
        memcpy(all + have, all, more);
        have += more;
    }
    script_check_interrupt(lua);
    lua_pushlstring(lua, all, whole);
}

static int string_rep(lua_State *lua)
{
    size_t len;
    const char *text = luaL_checklstring(lua, 1, &len);
    lua_Number count = luaL_checknumber(lua, 2);
    if (len == 0 || !(count >= 1)) {
        lua_pushliteral(lua, "");
        return 1;
    }
    if ((lua_Number)len * count > (lua_Number)script_memory_max(script_state_of(lua)))
        return luaL_error(lua, "not enough memory");
    if ((lua_Number)len * count < LONG_TEXT)
        return script_call_wrapped(lua);
    push_repeated(lua, text, len, len * (size_t)count);
    return 1;
}

/* For functions that process whole strings byte by byte. */
static int string_walk(lua_State *lua)
{
    size_t len = 0;
    for (int i = lua_gettop(lua); i > 0; i--)
        if (lua_type(lua, i) == LUA_TSTRING)
            len += lua_objlen(lua, i);
    if (len > LONG_TEXT)
        script_check_interrupt(lua);
    return script_call_wrapped(lua);
}

/* `change` writes each piece to its place among the `len` bytes of the result. */
static int change_in_pieces(lua_State *lua, void (*change)(char *to, const char *text, size_t at,
                                                           size_t piece, size_t len))
{
    size_t len;
    const char *text = luaL_checklstring(lua, 1, &len);
    if (len < LONG_TEXT)
        return script_call_wrapped(lua);
    char *all = lua_newuserdata(lua, len);
    for (size_t at = 0; at < len; at += CHANGED_AT_ONCE) {
        size_t left = len - at;
        script_check_interrupt(lua);
        change(all, text, at, left < CHANGED_AT_ONCE ? left : CHANGED_AT_ONCE, len);
    }
    script_check_interrupt(lua);
    lua_pushlstring(lua, all, len);
    return 1;
}

static void to_upper(char *to, const char *text, size_t at, size_t piece, size_t len)
{
    (void)len;
    for (size_t end = at + piece; at < end; at++)
        to[at] = (char)toupper((unsigned char)text[at]);
}

static void to_lower(char *to, const char *text, size_t at, size_t piece, size_t len)
{
    (void)len;
    for (size_t end = at + piece; at < end; at++)
        to[at] = (char)tolower((unsigned char)text[at]);
}

static void to_reverse(char *to, const char *text, size_t at, size_t piece, size_t len)
{
    for (size_t end = at + piece; at < end; at++)
        to[len - 1 - at] = text[at];
}

static int string_upper(lua_State *lua)
{
    return change_in_pieces(lua, to_upper);
}

static int string_lower(lua_State *lua)
{
    return change_in_pieces(lua, to_lower);
}

static int string_reverse(lua_State *lua)
{
    return change_in_pieces(lua, to_reverse);
}

#define RANDOM_MAX 2147483647.0

/* The sequence of POSIX lrand48(), which Redis's scripts get. */
static int math_random(lua_State *lua)
{
    uint16_t *seed = script_state_of(lua)->random;
    lua_Number share = (lua_Number)(nrand48(seed) % (long)RANDOM_MAX) / RANDOM_MAX, low = 1, high;
    switch (lua_gettop(lua)) {
    case 0:
        lua_pushnumber(lua, share);
        return 1;
    case 1:
        high = luaL_checknumber(lua, 1);
        luaL_argcheck(lua, high >= 1, 1, "interval is empty");
        break;
    case 2:
        low = (lua_Number)luaL_checkinteger(lua, 1);
        high = (lua_Number)luaL_checkinteger(lua, 2);
        luaL_argcheck(lua, low <= high, 2, "interval is empty");
        break;
    default:
        return luaL_error(lua, "wrong number of arguments");
    }
    lua_pushnumber(lua, __builtin_floor(share * (__builtin_floor(high) - low + 1)) + low);
    return 1;
}

static int math_randomseed(lua_State *lua)
{
    uint16_t *seed = script_state_of(lua)->random;
    uint32_t value = (uint32_t)luaL_checkinteger(lua, 1);
    seed[0] = 0x330e;
    seed[1] = (uint16_t)value;
    seed[2] = (uint16_t)(value >> 16);
    return 0;
}

#define COLLECTED_AT_ONCE (8 * 1024) /* kilobytes */
#define COLLECT_STEP 1024

/* Collects all garbage, in steps if there is much. Runs two cycles, because the first may have been
 * in progress already. */
static void collect(lua_State *lua)
{
    if (lua_gc(lua, LUA_GCCOUNT, 0) < COLLECTED_AT_ONCE) {
        lua_gc(lua, LUA_GCCOLLECT, 0);
        return;
    }
    for (int round = 0; round < 2; round++)
        while (lua_gc(lua, LUA_GCSTEP, COLLECT_STEP) == 0)
            script_check_interrupt(lua);
}

/* The collector's settings belong to the state and cannot be changed by a script. */
static int base_collectgarbage(lua_State *lua)
{
    static const char *const options[] = {"collect", "count",    "step",       "stop",
                                          "restart", "setpause", "setstepmul", NULL};
    switch (luaL_checkoption(lua, 1, "collect", options)) {
    case 0:
        collect(lua);
        lua_pushnumber(lua, 0);
        return 1;
    case 1:
        lua_pushnumber(lua, lua_gc(lua, LUA_GCCOUNT, 0) + lua_gc(lua, LUA_GCCOUNTB, 0) / 1024.0);
        return 1;
    case 2:
        lua_pushboolean(lua, lua_gc(lua, LUA_GCSTEP, (int)luaL_optinteger(lua, 2, 0) & 0xffff));
        return 1;
    default:
        lua_pushnumber(lua, 0);
        return 1;
    }
}

/* ---- putting it together ---- */

static void open_library(lua_State *lua, const char *name, lua_CFunction open)
{
    lua_pushcfunction(lua, open);
    lua_pushstring(lua, name);
    lua_call(lua, 1, 0);
}

static void drop(lua_State *lua, const char *const *names)
{
    for (; *names != NULL; names++) {
        lua_pushnil(lua);
        lua_setfield(lua, -2, *names);
    }
}

static void open_tables(lua_State *lua)
{
    lua_getglobal(lua, "table");
    script_open_tables(lua);
    lua_pop(lua, 1);
}

static void open_strings(lua_State *lua)
{
    lua_getglobal(lua, "string");
    script_wrap(lua, "rep", string_rep);
    script_wrap(lua, "upper", string_upper);
    script_wrap(lua, "lower", string_lower);
    script_wrap(lua, "reverse", string_reverse);
    script_wrap(lua, "format", string_walk);
    script_open_patterns(lua);
    lua_pop(lua, 1);
}

static void open_math(lua_State *lua)
{
    static const luaL_Reg ours[] = {
        {"random", math_random}, {"randomseed", math_randomseed}, {NULL, NULL}};
    lua_getglobal(lua, "math");
    luaL_register(lua, NULL, ours);
    lua_pop(lua, 1);
}

static void open_coroutines(lua_State *lua)
{
    lua_getglobal(lua, "coroutine");
    script_wrap(lua, "resume", base_resume);
    lua_pop(lua, 1);
}

void script_open_base(lua_State *lua)
{
    static const char *const absent[] = {"dofile",  "loadfile", "print",    "require", "module",
                                         "getfenv", "setfenv",  "newproxy", NULL};
    static const luaL_Reg ours[] = {{"pcall", base_pcall},
                                    {"xpcall", base_xpcall},
                                    {"getmetatable", base_getmetatable},
                                    {"next", base_next},
                                    {"rawget", base_rawget},
                                    {"load", base_load},
                                    {"loadstring", base_loadstring},
                                    {"collectgarbage", base_collectgarbage},
                                    {NULL, NULL}};
    open_library(lua, "", luaopen_base);
    open_library(lua, LUA_TABLIBNAME, luaopen_table);
    open_library(lua, LUA_STRLIBNAME, luaopen_string);
    open_library(lua, LUA_MATHLIBNAME, luaopen_math);
    open_tables(lua);
    open_strings(lua);
    open_math(lua);
    open_coroutines(lua);
    lua_pushvalue(lua, LUA_GLOBALSINDEX);
    drop(lua, absent);
    luaL_register(lua, NULL, ours);
    script_wrap(lua, "setmetatable", base_change);
    script_wrap(lua, "rawset", base_change);
    script_wrap(lua, "unpack", base_unpack);
    lua_getfield(lua, -1, "next");
    lua_pushcclosure(lua, base_pairs, 1);
    lua_setfield(lua, -2, "pairs");
    lua_pop(lua, 1);
}
