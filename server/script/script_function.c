#include "server/script/script_function.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "server/core/call.h"
#include "server/core/commandstats.h"
#include "server/script/script_base.h"
#include "server/script/script_error.h"
#include "server/script/script_state.h"

#define LOAD_NSEC 500000000ull /* as in Redis: longer code is refused */

/* The address is the key of Lua's registry for the table of functions, by their names. */
static const char functions_key;

/* ---- the value ---- */

bool libraries_next(const struct libraries *libraries, size_t *at, struct resp_slice *code)
{
    uint32_t len;
    if (libraries->len - *at < LIBRARY_HEAD)
        return false;
    memcpy(&len, libraries->bytes + *at, sizeof len);
    *at += LIBRARY_HEAD;
    if (len > libraries->len - *at)
        return false;
    *code = (struct resp_slice){libraries->bytes + *at, len};
    *at += len;
    return true;
}

static bool is_name(struct resp_slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '_')
            return false;
    }
    return name.len > 0;
}

static const char *read_option(struct resp_slice word, struct resp_slice *name, char *problem)
{
    if (word.len < 5 || memcmp(word.data, "name=", 5) != 0) {
        snprintf(problem, 160, "ERR Invalid metadata value given: %.*s",
                 (int)(word.len < 100 ? word.len : 100), word.data);
        return problem;
    }
    if (name->data != NULL)
        return "ERR Invalid metadata value, name argument was given multiple times";
    *name = (struct resp_slice){word.data + 5, word.len - 5};
    return NULL;
}

const char *library_name(struct resp_slice code, struct resp_slice *name, char problem[160])
{
    const char *end = code.len > 0 ? memchr(code.data, '\n', code.len) : NULL;
    *name = (struct resp_slice){NULL, 0};
    if (code.len < 2 || memcmp(code.data, "#!", 2) != 0)
        return "ERR Missing library metadata";
    if (end == NULL)
        return "ERR Invalid library metadata";
    const char *at = code.data + 2;
    for (bool is_engine = true; at < end; is_engine = false) {
        const char *from = at;
        while (at < end && *at != ' ')
            at++;
        struct resp_slice word = {from, (size_t)(at - from)};
        at += at < end;
        const char *error = NULL;
        if (is_engine && !slice_is(word, "lua")) {
            snprintf(problem, 160, "ERR Engine '%.*s' not found",
                     (int)(word.len < 100 ? word.len : 100), word.data);
            return problem;
        }
        if (!is_engine && word.len > 0)
            error = read_option(word, name, problem);
        if (error != NULL)
            return error;
    }
    if (name->data == NULL)
        return "ERR Library name was not given";
    return is_name(*name) ? NULL
                          : "ERR Library names can only contain letters, numbers, or "
                            "underscores(_) and must be at least one character long";
}

/* ---- registration ---- */

static uint32_t read_flags(lua_State *lua, int index)
{
    static const struct {
        const char *name;
        uint32_t flag;
    } names[] = {{"no-writes", SCRIPT_NO_WRITES},
                 {"allow-oom", SCRIPT_ALLOW_OOM},
                 {"allow-stale", SCRIPT_ALLOW_STALE},
                 {"no-cluster", SCRIPT_NO_CLUSTER},
                 {"allow-cross-slot-keys", SCRIPT_ALLOW_CROSS_SLOT}};
    uint32_t flags = 0;
    for (int i = 1;; i++) {
        lua_rawgeti(lua, index, i);
        const char *text = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : NULL;
        bool is_end = lua_isnil(lua, -1);
        lua_pop(lua, 1);
        if (is_end)
            return flags;
        size_t at = 0;
        while (text != NULL && at < 5 && strcmp(names[at].name, text) != 0)
            at++;
        if (text == NULL || at == 5)
            script_raise(lua, "unknown flag given");
        flags |= names[at].flag;
    }
}

/* Leaves name, callback and flags as values 1 to 3. */
static void take_table(lua_State *lua)
{
    lua_pushnil(lua);
    lua_pushnil(lua);
    lua_pushinteger(lua, 0);
    lua_pushnil(lua);
    while (lua_next(lua, 1) != 0) {
        const char *key = lua_type(lua, -2) == LUA_TSTRING ? lua_tostring(lua, -2) : NULL;
        if (key == NULL)
            script_raise(lua,
                         "named argument key given to redis.register_function is not a string");
        if (strcmp(key, "function_name") == 0 && lua_type(lua, -1) == LUA_TSTRING)
            lua_replace(lua, 2);
        else if (strcmp(key, "callback") == 0 && lua_type(lua, -1) == LUA_TFUNCTION)
            lua_replace(lua, 3);
        else if (strcmp(key, "flags") == 0 && lua_type(lua, -1) == LUA_TTABLE) {
            lua_pushinteger(lua, (lua_Integer)read_flags(lua, lua_gettop(lua)));
            lua_replace(lua, 4);
            lua_pop(lua, 1);
        } else if (strcmp(key, "description") == 0 && lua_type(lua, -1) == LUA_TSTRING)
            lua_pop(lua, 1);
        else
            script_raise(lua,
                         "unknown argument given to redis.register_function, or of a wrong type");
    }
    lua_remove(lua, 1);
    if (lua_isnil(lua, 1))
        script_raise(lua, "redis.register_function must get a function name argument");
    if (lua_isnil(lua, 2))
        script_raise(lua, "redis.register_function must get a callback argument");
}

static int register_function(lua_State *lua)
{
    int count = lua_gettop(lua);
    if (!script_state_of(lua)->registers)
        return script_raise(lua,
                            "redis.register_function can only be called on FUNCTION LOAD command");
    if (count < 1 || count > 2)
        return script_raise(lua, "wrong number of arguments to redis.register_function");
    if (count == 1 && lua_type(lua, 1) != LUA_TTABLE)
        return script_raise(lua, "calling redis.register_function with a single argument is only "
                                 "applicable to Lua table (representing named arguments).");
    if (count == 1)
        take_table(lua);
    else
        lua_pushinteger(lua, 0);
    if (lua_type(lua, 1) != LUA_TSTRING)
        return script_raise(lua, "first argument to redis.register_function must be a string");
    if (lua_type(lua, 2) != LUA_TFUNCTION)
        return script_raise(lua, "second argument to redis.register_function must be a function");
    struct resp_slice name;
    name.data = lua_tolstring(lua, 1, &name.len);
    if (!is_name(name))
        return script_raise(lua, "Library names can only contain letters, numbers, or "
                                 "underscores(_) and must be at least one character long");
    lua_pushlightuserdata(lua, (void *)&functions_key);
    lua_rawget(lua, LUA_REGISTRYINDEX);
    lua_pushvalue(lua, 1);
    lua_rawget(lua, -2);
    if (!lua_isnil(lua, -1))
        return script_raise(lua, "Function already exists in the library");
    lua_pop(lua, 1);
    lua_pushvalue(lua, 1);
    lua_createtable(lua, 2, 0);
    lua_pushvalue(lua, 2);
    lua_rawseti(lua, -2, 1);
    lua_pushvalue(lua, 3);
    lua_rawseti(lua, -2, 2);
    lua_rawset(lua, -3);
    return 0;
}

void script_push_register(lua_State *lua)
{
    lua_pushcfunction(lua, register_function);
}

/* ---- loading ---- */

/* True, or an error message on top of the stack. */
static bool load_libraries(lua_State *lua, const struct libraries *libraries)
{
    struct resp_slice code;
    lua_pushlightuserdata(lua, (void *)&functions_key);
    lua_newtable(lua);
    lua_rawset(lua, LUA_REGISTRYINDEX);
    for (size_t at = 0; libraries_next(libraries, &at, &code);) {
        const char *line = memchr(code.data, '\n', code.len);
        size_t skipped = (size_t)(line - code.data);
        if (!script_load(lua, line, code.len - skipped, "@user_function") ||
            lua_pcall(lua, 0, 0, 0) != 0)
            return false;
    }
    return true;
}

static bool load(lua_State *lua, struct script_state *state, const struct libraries *libraries)
{
    state->has_libraries = false;
    state->registers = true;
    state->register_until = commandstats_clock() + LOAD_NSEC;
    bool is_well = load_libraries(lua, libraries);
    state->registers = false;
    state->has_libraries = is_well && libraries->version != 0;
    state->libraries_version = libraries->version;
    return is_well;
}

struct trial {
    struct script_state *state;
    const struct libraries *libraries;
    struct resp_writer *reply;
    bool is_good;
};

static void write_problem(lua_State *lua, struct resp_writer *reply)
{
    if (lua_istable(lua, -1))
        lua_getfield(lua, -1, "err");
    const char *text = lua_tostring(lua, -1);
    if (text != NULL && strncmp(text, "ERR ", 4) == 0)
        text += 4;
    resp_errorf(reply, "ERR Error registering functions: %s", text != NULL ? text : "unknown");
}

static int try_protected(lua_State *lua)
{
    struct trial *trial = lua_touserdata(lua, 1);
    trial->state->hook_instructions = SCRIPT_HOOK_INSTRUCTIONS;
    script_set_hook(lua, trial->state);
    trial->is_good = load(lua, trial->state, trial->libraries);
    if (!trial->is_good)
        write_problem(lua, trial->reply);
    return 0;
}

bool script_try_libraries(struct script_state *state, const struct libraries *libraries,
                          struct resp_writer *reply)
{
    struct trial trial = {.state = state, .libraries = libraries, .reply = reply};
    if (lua_cpcall(state->lua, try_protected, &trial) != 0) {
        trial.is_good = false;
        resp_error(reply, "OOM command not allowed when used memory > 'maxmemory'.");
    }
    state->registers = state->has_libraries = false;
    lua_settop(state->lua, 0);
    script_settle_memory(state);
    return trial.is_good;
}

bool script_push_function(lua_State *lua, struct script_state *state,
                          const struct libraries *libraries)
{
    struct call *call = state->call;
    bool is_current = state->has_libraries && state->libraries_version == libraries->version;
    if (!is_current && !load(lua, state, libraries)) {
        write_problem(lua, call->reply);
        return false;
    }
    lua_pushlightuserdata(lua, (void *)&functions_key);
    lua_rawget(lua, LUA_REGISTRYINDEX);
    lua_pushlstring(lua, call->argv[1].data, call->argv[1].len);
    lua_rawget(lua, -2);
    if (!lua_istable(lua, -1)) {
        resp_error(call->reply, "ERR Function not found");
        return false;
    }
    lua_rawgeti(lua, -1, 2);
    bool writes = ((uint32_t)lua_tointeger(lua, -1) & SCRIPT_NO_WRITES) == 0;
    lua_pop(lua, 1);
    if (writes && state->is_readonly) {
        resp_error(call->reply, "ERR Can not execute a script with write flag using *_ro command.");
        return false;
    }
    state->is_readonly = !writes;
    lua_rawgeti(lua, -1, 1);
    return true;
}
