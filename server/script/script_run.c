/*
 * Compiles and runs scripts in the worker's Lua state; worker's thread only.
 *
 * Invariants:
 * 1. Lua is entered only by protected calls. Any error that it raises, out of memory included, is
 *    returned. All memory that an error could leak belongs to the state.
 * 2. The globals are sealed, except for KEYS and ARGV, which each run sets anew.
 */
#include "server/script/script_run.h"

#include <assert.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "server/core/commandstats.h"
#include "server/core/server.h"
#include "server/core/session.h"
#include "server/core/worker.h"
#include "server/exec/nested.h"
#include "server/script/script_base.h"
#include "server/script/script_bit.h"
#include "server/script/script_busy.h"
#include "server/script/script_cjson.h"
#include "server/script/script_cmsgpack.h"
#include "server/script/script_error.h"
#include "server/script/script_function.h"
#include "server/script/script_redis.h"
#include "server/script/script_register.h"
#include "server/script/script_reply.h"
#include "server/script/script_seal.h"
#include "server/script/script_state.h"
#include "server/script/script_struct.h"

#define COMPILED_MAX 1000 /* when exceeded, all are dropped */
#define FULL_COLLECT_SHARE 4
#define SMALL_BYTES ((size_t)1 << 20) /* kept where others may need the memory */
#define KEPT_SHARE 2 /* fraction of the runs' memory that all workers together keep */

/* Objects that a run takes from Lua's registry by number, so that it allocates no strings or
 * closures for them. */
enum kept {
    KEPT_FUNCTIONS = 1, /* compiled functions, by the scripts' numbers */
    KEPT_GLOBALS,       /* the table behind the sealed one */
    KEPT_KEYS,          /* names of globals */
    KEPT_ARGV,
    KEPT_ERR, /* a field's name */
    KEPT_RUN, /* C functions */
    KEPT_HANDLER
};

static int run_protected(lua_State *lua);
static int describe_error(lua_State *lua);

/* ---- making the state ---- */

/* Seals each library table, so that the table behind `_G` contains only sealed ones. */
static void seal_libraries(lua_State *lua)
{
    static const char *const names[] = {"string", "table",  "math",     "coroutine", "redis",
                                        "bit",    "struct", "cmsgpack", "cjson",     NULL};
    for (const char *const *name = names; *name != NULL; name++) {
        lua_getfield(lua, -1, *name);
        script_seal(lua);
        lua_setfield(lua, -2, *name);
    }
    /* Strings find their methods through this table, and getmetatable() returns it. */
    lua_pushliteral(lua, "");
    lua_getmetatable(lua, -1);
    lua_getfield(lua, -3, "string");
    lua_setfield(lua, -2, "__index");
    lua_newtable(lua);
    lua_getfield(lua, -4, "string");
    lua_setfield(lua, -2, "__index");
    script_seal(lua);
    lua_setfield(lua, -2, "__metatable");
    lua_pop(lua, 2);
}

/* Stores the value on top in the registry and pops it. */
static void keep(lua_State *lua, enum kept as)
{
    lua_rawseti(lua, LUA_REGISTRYINDEX, as);
}

static void push_kept(lua_State *lua, enum kept what)
{
    lua_rawgeti(lua, LUA_REGISTRYINDEX, what);
}

static void seal_globals(lua_State *lua)
{
    lua_pushvalue(lua, LUA_GLOBALSINDEX);
    seal_libraries(lua);
    lua_pushvalue(lua, -1);
    keep(lua, KEPT_GLOBALS);
    script_refuse_unknown(lua);
    int behind = lua_gettop(lua);
    lua_pushvalue(lua, behind);
    script_seal(lua);
    lua_pushvalue(lua, -1);
    lua_setfield(lua, behind, "_G");
    lua_replace(lua, LUA_GLOBALSINDEX);
    lua_pop(lua, 1);
    script_open_loading(lua);
}

static int open_state(lua_State *lua)
{
    static const struct {
        const char *name;
        void (*open)(lua_State *lua);
    } libraries[] = {{"redis", script_open_redis},
                     {"bit", script_open_bit},
                     {"struct", script_open_struct},
                     {"cmsgpack", script_open_cmsgpack},
                     {"cjson", script_open_cjson}};
    lua_newtable(lua);
    keep(lua, KEPT_FUNCTIONS);
    lua_pushliteral(lua, "KEYS");
    keep(lua, KEPT_KEYS);
    lua_pushliteral(lua, "ARGV");
    keep(lua, KEPT_ARGV);
    lua_pushliteral(lua, "err");
    keep(lua, KEPT_ERR);
    lua_pushcfunction(lua, run_protected);
    keep(lua, KEPT_RUN);
    lua_pushcfunction(lua, describe_error);
    keep(lua, KEPT_HANDLER);
    script_open_base(lua);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        libraries[i].open(lua);
        lua_setglobal(lua, libraries[i].name);
    }
    seal_globals(lua);
    return 0;
}

static void hook(lua_State *lua, lua_Debug *where)
{
    (void)where;
    const struct script_state *state = script_state_of(lua);
    if (lua_gethookcount(lua) != state->hook_instructions) /* coroutines have own hooks */
        script_set_hook(lua, state);
    script_check_interrupt(lua);
}

static struct script_state *open_new_state(struct worker *worker)
{
    struct script_state *state = script_state_new(worker);
    if (state == NULL)
        return NULL;
    state->hook = hook;
    if (lua_cpcall(state->lua, open_state, NULL) == 0)
        return state;
    script_state_free(state);
    return NULL;
}

struct script_state *script_state_get(struct worker *worker)
{
    struct script_state *state = worker->scripts;
    if (state != NULL && state->flushes == scripts_flushes(worker->server->scripts))
        return state;
    script_state_free(state);
    worker->scripts = open_new_state(worker);
    return worker->scripts;
}

/* ---- functions ---- */

/* Pushes the script's function (true) or an error message (false). */
static bool push_function(lua_State *lua, struct script_state *state, const struct script *script)
{
    push_kept(lua, KEPT_FUNCTIONS);
    lua_pushnumber(lua, (lua_Number)script->number);
    lua_rawget(lua, -2);
    if (!lua_isnil(lua, -1))
        return true;
    lua_pop(lua, 1);
    if (state->compiled >= COMPILED_MAX) {
        lua_pop(lua, 1);
        lua_newtable(lua);
        lua_pushvalue(lua, -1);
        keep(lua, KEPT_FUNCTIONS);
        state->compiled = 0;
    }
    if (!script_load(lua, script->text + script->code_at, script->len - script->code_at,
                     "@user_script"))
        return false;
    lua_pushnumber(lua, (lua_Number)script->number);
    lua_pushvalue(lua, -2);
    lua_rawset(lua, -4);
    state->compiled++;
    return true;
}

/* Answers with the error of compiling. Scripts that will never compile are not kept. */
static void refuse_script(lua_State *lua, struct script_state *state, struct script *script,
                          struct resp_writer *reply)
{
    const char *text = lua_tostring(lua, -1);
    if (text != NULL && strcmp(text, "not enough memory") == 0) { /* the text of LUA_ERRMEM */
        resp_error(reply, "OOM command not allowed when used memory > 'maxmemory'.");
        return;
    }
    resp_errorf(reply, "ERR Error compiling script (new function): %s",
                text != NULL ? text : "unknown");
    scripts_forget(state->worker->server->scripts, script);
}

struct compilation {
    struct script_state *state;
    struct script *script;
    struct resp_writer *reply;
    bool is_good;
};

static int compile(lua_State *lua)
{
    struct compilation *compilation = lua_touserdata(lua, 1);
    compilation->is_good = push_function(lua, compilation->state, compilation->script);
    if (!compilation->is_good)
        refuse_script(lua, compilation->state, compilation->script, compilation->reply);
    return 0;
}

/* ---- a run ---- */

struct run {
    struct script_state *state;
    size_t key_at, arg_at;
    const struct function_call *function; /* NULL: a script */
};

/* Converts an error to a table with its text and position. */
static int describe_error(lua_State *lua)
{
    struct script_state *state = script_state_of(lua);
    lua_Debug where;
    lua_settop(lua, 1);
    if (state->is_over && state->result != STORE_OK)
        return 1;
    if (script_is_sealed(lua, 1)) { /* must not be written to */
        lua_newtable(lua);
        lua_replace(lua, 1);
        lua_settop(lua, 1);
    }
    if (!lua_istable(lua, 1)) {
        lua_newtable(lua);
        lua_pushliteral(lua, "ERR ");
        if (lua_isstring(lua, 1))
            lua_pushvalue(lua, 1);
        else if (lua_isboolean(lua, 1))
            lua_pushstring(lua, lua_toboolean(lua, 1) ? "true" : "false");
        else
            lua_pushstring(lua, luaL_typename(lua, 1));
        lua_concat(lua, 2);
        lua_setfield(lua, -2, "err");
    }
    if (!lua_getstack(lua, 1, &where) || lua_getinfo(lua, "Sl", &where) == 0)
        return 1;
    if (*where.what == 'C' && (!lua_getstack(lua, 2, &where) || !lua_getinfo(lua, "Sl", &where)))
        return 1;
    lua_pushliteral(lua, "source");
    lua_pushstring(lua, where.source);
    lua_rawset(lua, -3);
    lua_pushliteral(lua, "line");
    lua_pushinteger(lua, where.currentline);
    lua_rawset(lua, -3);
    return 1;
}

static const char *raw_field(lua_State *lua, const char *name)
{
    lua_pushstring(lua, name);
    lua_rawget(lua, -2);
    const char *text = lua_isstring(lua, -1) ? lua_tostring(lua, -1) : NULL;
    lua_insert(lua, -2); /* stays on the stack, below the table */
    return text;
}

/* An error not caused by the script: out of memory, or a reply that cannot be written. Called
 * outside of protected calls, so it must not allocate in Lua: no names pushed, no numbers
 * converted. */
static void write_failure(lua_State *lua, struct call *call)
{
    bool is_table = lua_istable(lua, -1);
    if (is_table) {
        push_kept(lua, KEPT_ERR);
        lua_rawget(lua, -2);
    }
    const char *text = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : NULL;
    if (is_table && text != NULL)
        resp_error(call->reply, text);
    else
        resp_errorf(call->reply, "ERR %s", text != NULL ? text : "unknown error");
}

/* Replies with the error on top of the stack. */
static void write_error(lua_State *lua, struct call *call, const struct script *script)
{
    if (!lua_istable(lua, -1)) {
        if (script_state_of(lua)->is_over) /* Lua had no memory for the error itself */
            resp_errorf(call->reply, "ERR " SCRIPT_KILLED_TEXT " script: %s", script_name(script));
        else
            write_failure(lua, call);
        return;
    }
    const char *text = raw_field(lua, "err"), *source = raw_field(lua, "source");
    const char *line = raw_field(lua, "line");
    if (text == NULL)
        text = "ERR unknown error";
    if (source != NULL && line != NULL)
        resp_errorf(call->reply, "%s script: %s, on %s:%s.", text, script_name(script), source,
                    line);
    else
        resp_errorf(call->reply, "%s script: %s", text, script_name(script));
}

/* Pushes a new table of the arguments [from, to). */
static void push_arguments(lua_State *lua, const struct call *call, size_t from, size_t to)
{
    assert(from <= to && to <= call->argc);
    lua_createtable(lua, (int)(to - from), 0);
    for (size_t i = from; i < to; i++) {
        lua_pushlstring(lua, call->argv[i].data, call->argv[i].len);
        lua_rawseti(lua, -2, (int)(i - from) + 1);
    }
}

/* Sets a global to a new table of arguments. */
static void set_arguments(lua_State *lua, const struct call *call, enum kept name, size_t from,
                          size_t to)
{
    push_kept(lua, name);
    push_arguments(lua, call, from, to);
    lua_rawset(lua, -3);
}

/* Functions get their arguments as such. */
static void remove_arguments(lua_State *lua)
{
    push_kept(lua, KEPT_GLOBALS);
    for (enum kept name = KEPT_KEYS; name <= KEPT_ARGV; name++) {
        push_kept(lua, name);
        lua_pushnil(lua);
        lua_rawset(lua, -3);
    }
    lua_pop(lua, 1);
}

/* Whether the error on top was counted already, with the command that raised it. */
static bool is_counted(lua_State *lua)
{
    if (!lua_istable(lua, -1))
        return false;
    lua_pushliteral(lua, SCRIPT_COUNTED);
    lua_rawget(lua, -2);
    bool is = lua_toboolean(lua, -1);
    lua_pop(lua, 1);
    return is;
}

/* Pushes what is to be called, with its arguments. Returns their number, or -1 after an error. */
static int push_called(lua_State *lua, const struct run *run)
{
    struct script_state *state = run->state;
    struct call *call = state->call;
    if (run->function != NULL) {
        if (!script_push_function(lua, state, run->function))
            return -1;
        remove_arguments(lua);
        push_arguments(lua, call, run->key_at, run->arg_at);
        push_arguments(lua, call, run->arg_at, call->argc);
        return 2;
    }
    if (!push_function(lua, state, state->script)) {
        if (!state->is_over)
            refuse_script(lua, state, state->script, call->reply);
        else if (state->result == STORE_OK) /* killed while it was compiled */
            write_error(lua, call, state->script);
        return -1;
    }
    push_kept(lua, KEPT_GLOBALS);
    set_arguments(lua, call, KEPT_KEYS, run->key_at, run->arg_at);
    set_arguments(lua, call, KEPT_ARGV, run->arg_at, call->argc);
    lua_pop(lua, 1);
    state->has_arguments = true;
    return 0;
}

static int run_protected(lua_State *lua)
{
    struct run *run = lua_touserdata(lua, 1);
    struct script_state *state = run->state;
    struct call *call = state->call;
    assert(call != NULL && state == script_state_of(lua));
    push_kept(lua, KEPT_HANDLER);
    int handler = lua_gettop(lua);
    state->is_hooked = true; /* text and arguments may be large blocks */
    script_set_hook(lua, state);
    int argument_count = push_called(lua, run);
    if (argument_count < 0)
        return 0;
    bool is_well = lua_pcall(lua, argument_count, 1, handler) == 0;
    call->nested_calls->error_is_counted = is_counted(lua);
    if (is_well)
        script_write_reply(lua, call, call->session->resp_version);
    else if (!state->is_over || state->result == STORE_OK)
        write_error(lua, call, state->script);
    return 0;
}

/* Replaces what set_arguments() set. Called outside of protected calls: an entry that exists takes
 * a value without memory, and `false` keeps it. */
static void drop_arguments(struct script_state *state)
{
    if (!state->has_arguments)
        return;
    push_kept(state->lua, KEPT_GLOBALS);
    for (enum kept name = KEPT_KEYS; name <= KEPT_ARGV; name++) {
        push_kept(state->lua, name);
        lua_pushboolean(state->lua, false);
        lua_rawset(state->lua, -3);
    }
    lua_settop(state->lua, 0);
    state->has_arguments = false;
}

static int collect(lua_State *lua)
{
    lua_gc(lua, LUA_GCCOLLECT, 0);
    return 0;
}

static int forget_functions(lua_State *lua)
{
    lua_newtable(lua);
    keep(lua, KEPT_FUNCTIONS);
    script_state_of(lua)->compiled = 0;
    return collect(lua);
}

/* Frees memory by `way`, which itself may need some. */
static void make_smaller(struct script_state *state, lua_CFunction way)
{
    assert(!state->is_unbounded);
    state->is_unbounded = true;
    if (lua_cpcall(state->lua, way, NULL) != 0)
        lua_settop(state->lua, 0);
    state->is_unbounded = false;
}

void script_keep_small(struct script_state *state)
{
    size_t most = script_memory_max(state);
    const struct server *server = state->worker->server;
    size_t own = most / KEPT_SHARE / server->worker_count;
    if (state->bytes > SMALL_BYTES && !store_has_memory(server->store, most / KEPT_SHARE))
        own = SMALL_BYTES;
    if (state->bytes > most / FULL_COLLECT_SHARE || state->bytes > own)
        make_smaller(state, collect);
    if (state->bytes > own && state->compiled > 0)
        make_smaller(state, forget_functions);
}

bool script_compile(struct script_state *state, struct script *script, struct resp_writer *reply)
{
    assert(state->call == NULL && lua_gettop(state->lua) == 0);
    struct compilation compilation = {.state = state, .script = script, .reply = reply};
    if (lua_cpcall(state->lua, compile, &compilation) != 0) {
        refuse_script(state->lua, state, script, reply);
        compilation.is_good = false;
    }
    lua_settop(state->lua, 0);
    script_keep_small(state);
    script_settle_memory(state);
    return compilation.is_good;
}

const char *script_read_key_count(const struct call *call, const char *bad, size_t *count)
{
    int64_t number;
    *count = 0;
    if (!resp_read_int64(call->argv[2].data, call->argv[2].len, &number))
        return bad;
    if (number > (int64_t)call->argc - 3)
        return "ERR Number of keys can't be greater than number of args";
    if (number < 0)
        return "ERR Number of keys can't be negative";
    *count = (size_t)number;
    return NULL;
}

bool script_may_begin(const struct call *call, uint32_t flags, bool is_readonly)
{
    const char *problem = NULL;
    if ((flags & SCRIPT_NO_WRITES) == 0 && is_readonly)
        problem = "ERR Can not execute a script with write flag using *_ro command.";
    else if ((flags & (SCRIPT_NO_WRITES | SCRIPT_ALLOW_OOM)) == 0 &&
             store_is_over_memory(call->server->store))
        problem = "OOM allow-oom flag is not set on the script, can not run it when used memory > "
                  "'maxmemory'";
    if (problem != NULL)
        resp_error(call->reply, problem);
    return problem == NULL;
}

static void begin(struct script_state *state, struct call *call, struct script *script)
{
    assert(state->call == NULL && state->script == NULL && !state->is_hooked);
    assert(lua_gettop(state->lua) == 0);
    state->call = call;
    state->script = script;
    state->is_over = state->has_written = false;
    state->result = STORE_OK;
    state->logged = 0;
    state->hook_instructions = SCRIPT_HOOK_INSTRUCTIONS;
    state->tick_weight = 1;
    state->ticks = 0;
    atomic_store_explicit(&state->worker->script.is_killed, false, memory_order_relaxed);
    atomic_store_explicit(&state->worker->script.has_written, false, memory_order_relaxed);
    script_begin_cjson(&state->json);
    memcpy(state->random, &call->random_seed, sizeof state->random);
    if (call->nested_calls->began_nsec == 0)
        call->nested_calls->began_nsec = commandstats_clock();
    state->began_nsec = call->nested_calls->began_nsec;
    state->pause_nsec = 0;
}

/* A run that was killed and has to wait must not be run again. */
static void heed_late_kill(struct script_state *state, size_t start)
{
    bool is_killed = atomic_load_explicit(&state->worker->script.is_killed, memory_order_relaxed);
    if (!state->is_over || state->result != STORE_WAIT || !is_killed || state->has_written)
        return;
    struct resp_writer *reply = state->call->reply;
    state->result = STORE_OK;
    resp_truncate(reply, start);
    resp_errorf(reply, "ERR " SCRIPT_KILLED_TEXT " script: %s", script_name(state->script));
}

enum store_result script_run(struct script_state *state, struct call *call, struct script *script,
                             const struct function_call *function, bool is_readonly, size_t key_at,
                             size_t arg_at)
{
    assert(key_at <= arg_at && arg_at <= call->argc);
    struct session *session = call->session;
    struct run run = {.state = state, .key_at = key_at, .arg_at = arg_at, .function = function};
    uint32_t db = session->db;
    size_t start = call->reply->len;
    if (function == NULL)
        script_forget_libraries(state);
    begin(state, call, script);
    state->is_readonly = is_readonly;
    state->is_over_memory = store_is_over_memory(call->server->store);
    state->allows_oom = (script->flags & SCRIPT_ALLOW_OOM) != 0;
    state->client_version = session->resp_version;
    session->resp_version = 2;
    push_kept(state->lua, KEPT_RUN);
    lua_pushlightuserdata(state->lua, &run);
    if (lua_pcall(state->lua, 1, 0, 0) != 0) {
        resp_truncate(call->reply, start);
        if (!state->is_over || state->result == STORE_OK)
            write_failure(state->lua, call);
    }
    lua_settop(state->lua, 0);
    state->is_hooked = false;
    script_note_variables(state);
    heed_late_kill(state, start);
    drop_arguments(state);
    script_keep_small(state);
    script_settle_memory(state);
    session->db = db;
    session->resp_version = state->client_version;
    script_end_busy(state);
    state->call = NULL;
    state->script = NULL;
    return state->is_over ? state->result : STORE_OK;
}
