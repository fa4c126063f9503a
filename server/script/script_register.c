#include "server/script/script_register.h"

#include <assert.h>
#include <lauxlib.h>
#include <string.h>
#include <strings.h>

#include "server/script/script.h"
#include "server/script/script_error.h"
#include "server/script/script_library.h"
#include "server/script/script_seal.h"
#include "server/script/script_state.h"

/* The addresses are keys of Lua's registry: for the globals while loading, the usual ones, the name
 * of the metatable's field that refers to them, and the table of what is registered. */
static const char loading_key, usual_key, index_key, registered_key;

/* ---- arguments of register_function ---- */

/* Reads the flags from the list on top. */
static uint32_t read_flags(lua_State *lua)
{
    uint32_t flags = 0;
    for (int i = 1;; i++) {
        lua_rawgeti(lua, -1, i);
        bool is_end = lua_isnil(lua, -1);
        const char *text = lua_isstring(lua, -1) ? lua_tostring(lua, -1) : NULL;
        uint32_t flag = text != NULL ? script_flag(text) : 0;
        lua_pop(lua, 1);
        if (is_end)
            return flags;
        if (flag == 0)
            script_raise(lua, "unknown flag given");
        flags |= flag;
    }
}

static void need(lua_State *lua, bool is_good, const char *text)
{
    if (!is_good)
        script_raise(lua, "%s", text);
}

/* Takes the named argument on top, and pops it. `to`: the index of the registered function. */
static void take_named(lua_State *lua, const char *name, int to)
{
    if (strcasecmp(name, "function_name") == 0) {
        need(lua, lua_isstring(lua, -1),
             "function_name argument given to redis.register_function must be a string");
        lua_tostring(lua, -1);
        lua_rawseti(lua, to, REGISTERED_NAME);
    } else if (strcasecmp(name, "description") == 0) {
        need(lua, lua_isstring(lua, -1),
             "description argument given to redis.register_function must be a string");
        lua_tostring(lua, -1);
        lua_rawseti(lua, to, REGISTERED_TEXT);
    } else if (strcasecmp(name, "callback") == 0) {
        need(lua, lua_isfunction(lua, -1),
             "callback argument given to redis.register_function must be a function");
        lua_rawseti(lua, to, REGISTERED_CALLBACK);
    } else if (strcasecmp(name, "flags") == 0) {
        need(lua, lua_istable(lua, -1),
             "flags argument to redis.register_function must be a table representing function "
             "flags");
        lua_pushinteger(lua, (lua_Integer)read_flags(lua));
        lua_rawseti(lua, to, REGISTERED_FLAGS);
        lua_pop(lua, 1);
    } else {
        script_raise(lua, "unknown argument given to redis.register_function");
    }
}

static bool has_part(lua_State *lua, int index, enum registered part)
{
    lua_rawgeti(lua, index, part);
    bool has = !lua_isnil(lua, -1);
    lua_pop(lua, 1);
    return has;
}

static void take_table(lua_State *lua, int to)
{
    need(lua, lua_istable(lua, 1),
         "calling redis.register_function with a single argument is only applicable to Lua table "
         "(representing named arguments).");
    lua_pushnil(lua);
    while (lua_next(lua, 1) != 0) {
        bool is_named = lua_type(lua, -2) == LUA_TSTRING;
        need(lua, is_named || lua_isnumber(lua, -2),
             "named argument key given to redis.register_function is not a string");
        take_named(lua, is_named ? lua_tostring(lua, -2) : "", to);
    }
    need(lua, has_part(lua, to, REGISTERED_NAME),
         "redis.register_function must get a function name argument");
    need(lua, has_part(lua, to, REGISTERED_CALLBACK),
         "redis.register_function must get a callback argument");
}

static void take_positional(lua_State *lua, int to)
{
    need(lua, lua_isstring(lua, 1), "first argument to redis.register_function must be a string");
    need(lua, lua_isfunction(lua, 2),
         "second argument to redis.register_function must be a function");
    lua_tostring(lua, 1);
    lua_pushvalue(lua, 1);
    lua_rawseti(lua, to, REGISTERED_NAME);
    lua_pushvalue(lua, 2);
    lua_rawseti(lua, to, REGISTERED_CALLBACK);
}

/* Adds the function on top to those that are registered. */
static void add_function(lua_State *lua)
{
    int function = lua_gettop(lua);
    struct resp_slice name;
    lua_rawgeti(lua, function, REGISTERED_NAME);
    name.data = lua_tolstring(lua, -1, &name.len);
    if (!library_name_is_good(name))
        script_raise(lua, LIBRARY_BAD_NAME);
    script_push_kept(lua, &registered_key);
    lua_pushvalue(lua, -2);
    lua_rawget(lua, -2);
    if (!lua_isnil(lua, -1))
        script_raise(lua, "Function already exists in the library");
    lua_pop(lua, 1);
    lua_pushvalue(lua, function);
    lua_rawseti(lua, -2, (int)lua_objlen(lua, -2) + 1);
    lua_pushvalue(lua, -2);
    lua_pushvalue(lua, function);
    lua_rawset(lua, -3);
}

static int register_function(lua_State *lua)
{
    int count = lua_gettop(lua);
    if (!script_state_of(lua)->registers)
        return script_raise(lua,
                            "redis.register_function can only be called on FUNCTION LOAD command");
    if (count < 1 || count > 2)
        return script_raise(lua, "wrong number of arguments to redis.register_function");
    lua_createtable(lua, 4, 0);
    if (count == 1)
        take_table(lua, 2);
    else
        take_positional(lua, 3);
    add_function(lua);
    return 0;
}

void script_begin_registering(lua_State *lua)
{
    lua_newtable(lua);
    lua_pushvalue(lua, -1);
    script_keep(lua, &registered_key);
}

void script_end_registering(lua_State *lua)
{
    lua_pushnil(lua);
    script_keep(lua, &registered_key);
}

/* ---- globals ---- */

void script_open_loading(lua_State *lua)
{
    static const char *const shared[] = {
        "log",         "LOG_DEBUG",     "LOG_VERBOSE",       "LOG_NOTICE",
        "LOG_WARNING", "REDIS_VERSION", "REDIS_VERSION_NUM", NULL};
    lua_newtable(lua);
    lua_newtable(lua);
    lua_getglobal(lua, "redis");
    for (const char *const *name = shared; *name != NULL; name++) {
        lua_getfield(lua, -1, *name);
        lua_setfield(lua, -3, *name);
    }
    lua_pop(lua, 1);
    lua_pushcfunction(lua, register_function);
    lua_setfield(lua, -2, "register_function");
    script_refuse_unknown(lua);
    script_seal(lua);
    lua_setfield(lua, -2, "redis");
    script_refuse_unknown(lua);
    script_keep(lua, &loading_key);
    lua_getmetatable(lua, LUA_GLOBALSINDEX);
    lua_getfield(lua, -1, "__index");
    script_keep(lua, &usual_key);
    lua_pop(lua, 1);
    lua_pushliteral(lua, "__index");
    script_keep(lua, &index_key);
}

void script_use_loading(lua_State *lua, bool is_loading)
{
    int has_one = lua_getmetatable(lua, LUA_GLOBALSINDEX);
    assert(has_one);
    (void)has_one;
    script_push_kept(lua, &index_key);
    script_push_kept(lua, is_loading ? &loading_key : &usual_key);
    lua_rawset(lua, -3);
    lua_pop(lua, 1);
}
