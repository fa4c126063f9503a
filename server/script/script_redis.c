/*
 * `redis`: the library by which a script calls the server.
 */
#include "server/script/script_redis.h"

#include <assert.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"
#include "server/pubsub/effects.h"
#include "server/exec/nested.h"
#include "server/exec/request.h"
#include "server/script/script_busy.h"
#include "server/script/script_error.h"
#include "server/script/script_function.h"
#include "server/script/script_reply.h"
#include "server/script/script_state.h"
#include "server/script/script_value.h"
#include "server/core/session.h"

#define KEPT_REPLY_MAX (1024 * 1024)
#define LONG_TEXT (64 * 1024)
#define LOG_LINES_MAX 10000 /* per run: log lines are buffered in memory until it ends */

/* ---- call, pcall ---- */

/* Converts the arguments for a command. False: one is neither a string nor a number. */
static bool take_args(lua_State *lua, struct script_state *state, size_t count)
{
    if (!array_reserve(&state->args, &state->arg_capacity, count, sizeof *state->args))
        luaL_error(lua, "not enough memory");
    for (size_t i = 0; i < count; i++) {
        int index = (int)i + 1;
        if (lua_type(lua, index) == LUA_TNUMBER) { /* Lua's own conversion has 14 digits */
            char text[32];
            snprintf(text, sizeof text, "%.17g", lua_tonumber(lua, index));
            lua_pushstring(lua, text);
            lua_replace(lua, index);
        }
        if (lua_type(lua, index) != LUA_TSTRING)
            return false;
        state->args[i].data = lua_tolstring(lua, index, &state->args[i].len);
    }
    return true;
}

/* The command that the arguments name, or NULL. */
static const struct command *find_command(const struct call *outer, size_t argc,
                                          const struct resp_slice *argv)
{
    const struct command *command = command_find(&outer->server->commands, argv[0]);
    if (command != NULL && command_is_container(command) && argc > 1)
        command = command_find_sub(command, argv[1]);
    return command;
}

/* Once it has written, a script can no longer be stopped. */
static bool is_out_of_memory(const struct script_state *state, const struct command *command)
{
    return state->is_over_memory && (command->flags & CMD_DENYOOM) != 0 && !state->allows_oom &&
           !state->has_written;
}

static const char *why_not(struct script_state *state, const struct command *command, size_t argc)
{
    if (command == NULL)
        return "ERR Unknown Redis command called from script";
    if (!command_arity_ok(command, argc) || command->run == NULL)
        return "ERR Wrong number of args calling Redis command from script";
    const uint32_t flags = command->flags;
    bool is_local =
        (flags & (CMD_LOCAL | CMD_ALL_WORKERS)) != 0 && (flags & CMD_LOCAL_IDEMPOTENT) == 0;
    bool is_denied =
        (flags & CMD_NOSCRIPT) != 0 &&
        ((flags & (CMD_NESTS | CMD_BLOCKING | CMD_NO_MULTI)) != 0 ||
         !atomic_load_explicit(&state->call->server->scripts_may_all, memory_order_relaxed));
    if (is_denied || is_local)
        return "ERR This Redis command is not allowed from script";
    if (state->is_readonly && command_has_effect(command))
        return "ERR Write commands are not allowed from read-only scripts.";
    if (is_out_of_memory(state, command))
        return "OOM command not allowed when used memory > 'maxmemory'.";
    return NULL;
}

/* The hook counts instructions; the time of commands is not in them. */
static void look_up_behind(lua_State *lua, const struct command *command)
{
    if ((command->flags & CMD_FAST) == 0 || script_state_of(lua)->reply.len > LONG_TEXT)
        script_check_interrupt(lua);
    else
        script_check_clock(lua);
}

/* Runs the command; its reply is left in state->reply. Returns NULL, or the reason why it was not
 * run. */
static const char *run_command(lua_State *lua, size_t argc)
{
    struct script_state *state = script_state_of(lua);
    struct call *outer = state->call;
    assert(outer != NULL && !state->is_over && argc <= state->arg_capacity);
    const struct command *command = find_command(outer, argc, state->args);
    const char *problem = why_not(state, command, argc);
    if (problem != NULL) {
        nested_calls_refuse(outer->nested_calls, command, *problem == 'O' ? "-OOM" : "-ERR");
        return problem;
    }
    if ((command->flags & CMD_READONLY) == 0 || command_has_effect(command))
        outer->nested_calls->has_effects = true;
    struct store_mark mark;
    store_mark(outer->txn, &mark);
    struct nested *nested = script_note_commands(state, outer)
                                ? nested_calls_call(outer, command, argc, state->args)
                                : NULL;
    enum store_result result = nested == NULL ? STORE_NO_MEMORY : nested_declare(nested);
    if (result == STORE_INVALID) {
        atomic_store_explicit(&state->script->wants_all, true, memory_order_relaxed);
        script_note_wants_all(state);
    }
    resp_truncate(&state->reply, 0);
    state->reply.version = outer->session->resp_version;
    if (result == STORE_OK)
        result = nested_run(nested, &state->reply);
    if (result == STORE_OK && state->reply.failed)
        result = STORE_NO_MEMORY;
    if (result != STORE_OK)
        script_unwind(lua, result);
    nested_calls_forget(outer->nested_calls,
                        command_has_effect(command) || !store_forget(outer->txn, &mark));
    store_make_room(outer->txn);
    if ((command->flags & CMD_WRITE) != 0)
        state->has_written = true;
    look_up_behind(lua, command);
    return NULL;
}

/* An error reply was counted with its command already. */
static void mark_counted(lua_State *lua)
{
    lua_pushboolean(lua, true);
    lua_setfield(lua, -2, SCRIPT_COUNTED);
}

static void push_problem(lua_State *lua, const char *problem)
{
    lua_createtable(lua, 0, 2);
    lua_pushstring(lua, problem);
    lua_setfield(lua, -2, "err");
}

static int call_command(lua_State *lua, bool raises)
{
    struct script_state *state = script_state_of(lua);
    size_t argc = (size_t)lua_gettop(lua);
    if (state->registers)
        return script_raise(lua, "redis.call can not be called on FUNCTION LOAD");
    if (state->is_over)
        return script_unwind(lua, state->result);
    const char *problem = "ERR Please specify at least one argument for this redis lib call";
    bool is_taken = argc > 0 && take_args(lua, state, argc);
    if (is_taken)
        problem = run_command(lua, argc);
    else if (argc > 0)
        problem = "ERR Lua redis lib command arguments must be strings or integers";
    lua_settop(lua, 0); /* there may be so many that the stack is nearly full */
    if (problem != NULL)
        push_problem(lua, problem);
    else
        script_push_reply(lua, &state->reply);
    bool is_error = problem != NULL || state->reply.data[0] == '-';
    if (is_error && is_taken)
        mark_counted(lua);
    if (state->reply.capacity > KEPT_REPLY_MAX)
        resp_writer_free(&state->reply);
    return raises && is_error ? lua_error(lua) : 1;
}

static int redis_call(lua_State *lua)
{
    return call_command(lua, true);
}

static int redis_pcall(lua_State *lua)
{
    return call_command(lua, false);
}

/* ---- replies ---- */

static int redis_status_reply(lua_State *lua)
{
    if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
        push_problem(lua, "ERR wrong number or type of arguments");
        return 1;
    }
    lua_createtable(lua, 0, 1);
    lua_pushvalue(lua, 1);
    lua_setfield(lua, -2, "ok");
    return 1;
}

static int redis_error_reply(lua_State *lua)
{
    if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
        push_problem(lua, "ERR wrong number or type of arguments");
        return 1;
    }
    size_t len;
    const char *text = lua_tolstring(lua, 1, &len);
    script_push_error(lua, text, len);
    return 1;
}

static int redis_setresp(lua_State *lua)
{
    if (lua_gettop(lua) != 1)
        return script_raise(lua, "redis.setresp() requires one argument.");
    lua_Number version = lua_tonumber(lua, 1);
    if (version != 2 && version != 3)
        return script_raise(lua, "RESP version must be 2 or 3.");
    if (script_state_of(lua)->registers)
        return script_raise(lua, "redis.setresp can not be called on FUNCTION LOAD");
    script_state_of(lua)->call->session->resp_version = (uint8_t)version;
    return 0;
}

/* ---- the rest ---- */

static int redis_sha1hex(lua_State *lua)
{
    char hex[SHA1_HEX_LEN + 1];
    if (lua_gettop(lua) != 1)
        return script_raise(lua, "wrong number of arguments");
    size_t len = 0;
    const char *text = lua_tolstring(lua, 1, &len);
    if (len > LONG_TEXT)
        script_check_interrupt(lua);
    sha1_hex(text, len, hex);
    lua_pushstring(lua, hex);
    return 1;
}

static int redis_log(lua_State *lua)
{
    struct script_state *state = script_state_of(lua);
    int count = lua_gettop(lua);
    if (count < 2)
        return script_raise(lua, "redis.log() requires two arguments or more.");
    if (!lua_isnumber(lua, 1))
        return script_raise(lua, "First argument must be a number (log level).");
    lua_Number level = lua_tonumber(lua, 1);
    if (!(level >= CONFIG_LOG_DEBUG && level <= CONFIG_LOG_WARNING))
        return script_raise(lua, "Invalid debug level.");
    struct effects *effects = state->registers ? state->load_effects : state->call->effects;
    if (effects == NULL)
        return 0;
    if (++state->logged > LOG_LINES_MAX)
        return script_raise(lua, "too many lines for the log");
    struct resp_writer *line = script_scratch(lua);
    for (int i = 2; i <= count; i++) {
        size_t len = 0;
        const char *text = lua_tolstring(lua, i, &len);
        if (text == NULL)
            continue;
        if (line->len > 0)
            resp_raw(line, " ", 1);
        resp_raw(line, text, len < LOG_LINE_MAX ? len : LOG_LINE_MAX);
    }
    if (!state->registers)
        state->call->nested_calls->has_effects = true;
    if (!effects_log(effects, (enum config_loglevel)level,
                     (struct resp_slice){line->data, line->len}))
        return luaL_error(lua, "not enough memory");
    return 0;
}

/* There are neither replicas nor a separate log that a write could bypass. */
static int redis_set_repl(lua_State *lua)
{
    if (lua_gettop(lua) != 1)
        return script_raise(lua, "redis.set_repl() requires two arguments.");
    int64_t flags = script_to_int64(lua_tonumber(lua, 1));
    if ((flags & ~3) != 0)
        return script_raise(lua, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL "
                                 "or REPL_NONE.");
    return 0;
}

static int redis_replicate_commands(lua_State *lua)
{
    lua_pushboolean(lua, true);
    return 1;
}

/* There is no debugger. */
static int redis_breakpoint(lua_State *lua)
{
    lua_pushboolean(lua, false);
    return 1;
}

static int redis_debug(lua_State *lua)
{
    (void)lua;
    return 0;
}

/* There are no ACLs: everything is permitted. */
static int redis_acl_check_cmd(lua_State *lua)
{
    struct script_state *state = script_state_of(lua);
    int argc = lua_gettop(lua);
    if (state->registers)
        return script_raise(lua, "redis.acl_check_cmd can not be called on FUNCTION LOAD");
    if (argc == 0)
        return script_raise(lua, "Please specify at least one argument for this redis lib call");
    if (!take_args(lua, state, (size_t)argc))
        return script_raise(lua, "Lua redis lib command arguments must be strings or integers");
    const struct command *command = command_find(&state->call->server->commands, state->args[0]);
    if (command != NULL && command_is_container(command) && argc > 1)
        command = command_find_sub(command, state->args[1]);
    if (command == NULL)
        return script_raise(lua, "Invalid command passed to redis.acl_check_cmd()");
    lua_pushboolean(lua, true);
    return 1;
}

void script_open_redis(lua_State *lua)
{
    static const luaL_Reg functions[] = {{"call", redis_call},
                                         {"pcall", redis_pcall},
                                         {"status_reply", redis_status_reply},
                                         {"error_reply", redis_error_reply},
                                         {"setresp", redis_setresp},
                                         {"sha1hex", redis_sha1hex},
                                         {"log", redis_log},
                                         {"set_repl", redis_set_repl},
                                         {"replicate_commands", redis_replicate_commands},
                                         {"breakpoint", redis_breakpoint},
                                         {"debug", redis_debug},
                                         {"acl_check_cmd", redis_acl_check_cmd},
                                         {NULL, NULL}};
    static const struct {
        const char *name;
        int number;
    } numbers[] = {{"LOG_DEBUG", CONFIG_LOG_DEBUG},
                   {"LOG_VERBOSE", CONFIG_LOG_VERBOSE},
                   {"LOG_NOTICE", CONFIG_LOG_NOTICE},
                   {"LOG_WARNING", CONFIG_LOG_WARNING},
                   {"REPL_NONE", 0},
                   {"REPL_AOF", 1},
                   {"REPL_SLAVE", 2},
                   {"REPL_REPLICA", 2},
                   {"REPL_ALL", 3},
                   {"REDIS_VERSION_NUM", VELLUM_REDIS_VERSION_NUM}};
    lua_newtable(lua);
    luaL_register(lua, NULL, functions);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lua_pushinteger(lua, numbers[i].number);
        lua_setfield(lua, -2, numbers[i].name);
    }
    lua_pushliteral(lua, VELLUM_REDIS_VERSION);
    lua_setfield(lua, -2, "REDIS_VERSION");
}
