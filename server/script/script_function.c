/*
 * Functions in a worker's Lua state.
 *
 * Lua's registry has one table of the loaded libraries, by their places and by their names. A
 * library is a block of Lua's memory (struct loaded_library), whose environment is a table of its
 * functions' callbacks, by their numbers, and at 0 a list of its variables as they were after the
 * load: a function, the number of the upvalue, its value, and so on. A second block is the index of
 * all functions by their names; it lives as long as the table.
 *
 * Invariant: state->functions is either NULL or the index of the libraries in the table.
 */
#include "server/script/script_function.h"

#include <assert.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "server/core/call.h"
#include "server/core/commandstats.h"
#include "server/core/function_names.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/exec/nested.h"
#include "server/exec/request.h"
#include "server/script/script_base.h"
#include "server/script/script_error.h"
#include "server/script/script_library.h"
#include "server/script/script_register.h"
#include "server/script/script_run.h"
#include "server/script/script_seal.h"
#include "server/script/script_state.h"

#define LOAD_NSEC 500000000ull /* of FUNCTION LOAD, as in Redis: longer code is refused */
#define INDEX_LEAST 8

struct loaded_function {
    struct loaded_library *library;
    struct resp_slice name;
    uint32_t flags;
    int number; /* in its library, from 1 on */
    bool wants_all;
};

struct loaded_library {
    uint64_t id; /* 0: to be loaded anew */
    int place;   /* in the table of libraries, from 1 on */
    uint32_t count;
    bool has_tables;  /* among its variables: they may change unseen */
    bool has_changed; /* a variable, since the load */
    struct loaded_function functions[];
};

struct function_index {
    uint32_t mask;
    struct loaded_function *slots[];
};

/* Keys of Lua's registry: the table of the libraries, and the index. */
static const char libraries_key, index_key;

/* ---- variables ---- */

/* Adds an upvalue, on top of the stack, to the list of variables. */
static void add_variable(lua_State *lua, int list, int function, int number)
{
    int at = (int)lua_objlen(lua, list);
    lua_pushvalue(lua, function);
    lua_rawseti(lua, list, at + 1);
    lua_pushinteger(lua, number);
    lua_rawseti(lua, list, at + 2);
    if (lua_isnil(lua, -1)) /* a hole would end the list */
        lua_pushvalue(lua, list);
    else
        lua_pushvalue(lua, -1);
    lua_rawseti(lua, list, at + 3);
}

/* Whether a value of this kind, on top of the stack, may change while it is the same value. */
static bool is_mutable(lua_State *lua)
{
    switch (lua_type(lua, -1)) {
    case LUA_TTABLE:
        if (!script_is_sealed(lua, lua_gettop(lua)))
            return true;
        lua_pop(lua, 1);
        return false;
    case LUA_TTHREAD:
    case LUA_TUSERDATA:
        return true;
    default:
        return false;
    }
}

/* Lists the upvalues of the functions in the list `callbacks`, and of all functions among them.
 * Pushes the list. */
static bool push_variables(lua_State *lua, int callbacks)
{
    bool has_mutable = false;
    lua_newtable(lua); /* the variables */
    lua_newtable(lua); /* the functions, by number and as keys */
    int list = lua_gettop(lua) - 1, functions = list + 1, count = 0;
    for (int i = 1; i <= (int)lua_objlen(lua, callbacks); i++) {
        lua_rawgeti(lua, callbacks, i);
        lua_rawseti(lua, functions, ++count);
    }
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(lua, functions, i);
        int function = lua_gettop(lua);
        for (int number = 1; lua_getupvalue(lua, function, number) != NULL; number++) {
            has_mutable = is_mutable(lua) || has_mutable;
            add_variable(lua, list, function, number);
            bool is_new = false;
            if (lua_isfunction(lua, -1)) {
                lua_pushvalue(lua, -1);
                lua_rawget(lua, functions);
                is_new = lua_isnil(lua, -1);
                lua_pop(lua, 1);
            }
            if (is_new) {
                lua_pushvalue(lua, -1);
                lua_pushboolean(lua, true);
                lua_rawset(lua, functions);
                lua_pushvalue(lua, -1);
                lua_rawseti(lua, functions, ++count);
            }
            lua_settop(lua, function);
        }
        lua_settop(lua, functions);
    }
    lua_settop(lua, list);
    return has_mutable;
}

/* Whether the upvalue is another one than in the list, at `at`. */
static bool has_variable_changed(lua_State *lua, int list, int at)
{
    int top = lua_gettop(lua);
    lua_rawgeti(lua, list, at);
    lua_rawgeti(lua, list, at + 1);
    int number = (int)lua_tointeger(lua, -1);
    const char *name = lua_getupvalue(lua, top + 1, number);
    assert(name != NULL);
    (void)name;
    lua_rawgeti(lua, list, at + 2);
    bool was_nil = lua_rawequal(lua, -1, list);
    bool is_same = was_nil ? lua_isnil(lua, -2) : lua_rawequal(lua, -1, -2);
    lua_settop(lua, top);
    return !is_same;
}

/* Pushes a library's environment. */
static void push_environment(lua_State *lua, const struct loaded_library *library)
{
    script_push_kept(lua, &libraries_key);
    lua_rawgeti(lua, -1, library->place);
    assert(lua_touserdata(lua, -1) == library);
    lua_getfenv(lua, -1);
    lua_replace(lua, -3);
    lua_pop(lua, 1);
}

static bool have_variables_changed(lua_State *lua, const struct loaded_library *library)
{
    int top = lua_gettop(lua);
    bool have = library->has_tables || library->has_changed;
    if (have)
        return true;
    push_environment(lua, library);
    lua_rawgeti(lua, -1, 0);
    int list = lua_gettop(lua), len = (int)lua_objlen(lua, list);
    for (int at = 1; at < len && !have; at += 3)
        have = has_variable_changed(lua, list, at);
    lua_settop(lua, top);
    return have;
}

void script_note_variables(struct script_state *state)
{
    struct loaded_library *library = state->function != NULL ? state->function->library : NULL;
    state->function = NULL;
    if (library == NULL || !have_variables_changed(state->lua, library))
        return;
    library->has_changed = true;
    state->call->nested_calls->has_effects = true; /* EXEC has to repeat it */
    state->worker->unsettled = (struct unsettled){.request = request_of_call(state->call),
                                                  .attempt = store_attempt(state->call->txn)};
}

/* Whether the variables may show what a discarded run has written, or one of another request that
 * may yet be discarded. */
static bool are_variables_void(const struct worker *worker, struct call *call)
{
    const struct unsettled *unsettled = &worker->unsettled;
    if (unsettled->request == NULL)
        return unsettled->is_lost;
    return unsettled->is_lost || unsettled->request != request_of_call(call) ||
           unsettled->attempt != store_attempt(call->txn);
}

/* Needs no memory. */
static void forget_changed(lua_State *lua, struct script_state *state)
{
    state->worker->unsettled = (struct unsettled){.request = NULL};
    state->functions = NULL;
    script_push_kept(lua, &libraries_key);
    for (int i = 1, count = lua_istable(lua, -1) ? (int)lua_objlen(lua, -1) : 0; i <= count; i++) {
        lua_rawgeti(lua, -1, i);
        struct loaded_library *library = lua_touserdata(lua, -1);
        if (library->has_changed)
            library->id = 0;
        lua_pop(lua, 1);
    }
    lua_pop(lua, 1);
}

static uint64_t stamp_now(struct server *server)
{
    return atomic_load_explicit(&server->library_stamp, memory_order_acquire);
}

uint64_t script_known_stamp(const struct script_state *state, struct call *call)
{
    bool is_known = state->functions != NULL && !are_variables_void(state->worker, call);
    return is_known ? state->functions_stamp : 0;
}

bool script_knows_libraries(const struct script_state *state, struct call *call)
{
    if (state->functions == NULL || are_variables_void(state->worker, call))
        return false;
    return state->functions_stamp == stamp_now(call->server);
}

/* ---- loading ---- */

/* Runs the code, and pushes the table of what it registers. Raises an error if it fails. */
static void run_code(lua_State *lua, struct script_state *state, const struct library *library)
{
    const char *begin = memchr(library->code.data, '\n', library->code.len);
    size_t skipped = begin != NULL ? (size_t)(begin - library->code.data) : 0;
    if (!script_load(lua, library->code.data + skipped, library->code.len - skipped,
                     "@user_function")) {
        lua_pushfstring(lua, "Error compiling function: %s", lua_tostring(lua, -1));
        lua_error(lua);
    }
    script_begin_registering(lua);
    lua_insert(lua, -2);
    state->registers = true;
    script_use_loading(lua, true);
    int status = lua_pcall(lua, 0, 0, 0);
    script_use_loading(lua, false);
    script_end_registering(lua);
    state->registers = false;
    if (status == 0)
        return;
    if (lua_istable(lua, -1)) {
        lua_pushliteral(lua, "err");
        lua_rawget(lua, -2);
    } else {
        lua_pushfstring(lua, "ERR %s", lua_tostring(lua, -1));
    }
    lua_pushfstring(lua, "Error registering functions: %s",
                    lua_isstring(lua, -1) ? lua_tostring(lua, -1) : "ERR unknown");
    lua_error(lua);
}

/* Of the function on top. */
static struct resp_slice registered_text(lua_State *lua, enum registered part)
{
    struct resp_slice text = {NULL, 0};
    lua_rawgeti(lua, -1, part);
    if (!lua_isnil(lua, -1))
        text.data = lua_tolstring(lua, -1, &text.len);
    lua_pop(lua, 1); /* the table holds it */
    return text;
}

static uint32_t registered_flags(lua_State *lua)
{
    lua_rawgeti(lua, -1, REGISTERED_FLAGS);
    uint32_t flags = (uint32_t)lua_tointeger(lua, -1);
    lua_pop(lua, 1);
    return flags;
}

/* Replaces the table of what was registered by the library. */
static void make_library(lua_State *lua, uint64_t id)
{
    int registered = lua_gettop(lua), count = (int)lua_objlen(lua, registered);
    struct loaded_library *library;
    size_t size = sizeof *library + (size_t)count * sizeof *library->functions;
    library = lua_newuserdata(lua, size);
    *library = (struct loaded_library){.id = id, .count = (uint32_t)count};
    lua_createtable(lua, count, 1);
    int callbacks = lua_gettop(lua);
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(lua, registered, i);
        library->functions[i - 1] =
            (struct loaded_function){.library = library,
                                     .name = registered_text(lua, REGISTERED_NAME),
                                     .flags = registered_flags(lua),
                                     .number = i};
        lua_rawgeti(lua, -1, REGISTERED_CALLBACK);
        lua_rawseti(lua, callbacks, i);
        lua_pop(lua, 1);
    }
    library->has_tables = push_variables(lua, callbacks);
    lua_rawseti(lua, callbacks, 0);
    lua_pushliteral(lua, "registered"); /* its strings are the functions' names */
    lua_pushvalue(lua, registered);
    lua_rawset(lua, callbacks);
    lua_setfenv(lua, -2);
    lua_replace(lua, registered);
}

static void make_index(lua_State *lua, struct script_state *state, int libraries, uint32_t total)
{
    uint32_t slot_count = INDEX_LEAST;
    while (slot_count < 2 * total)
        slot_count *= 2;
    struct function_index *index;
    size_t size = slot_count * sizeof *index->slots;
    index = lua_newuserdata(lua, sizeof *index + size);
    index->mask = slot_count - 1;
    memset(index->slots, 0, size);
    for (int i = 1; i <= (int)lua_objlen(lua, libraries); i++) {
        lua_rawgeti(lua, libraries, i);
        struct loaded_library *library = lua_touserdata(lua, -1);
        for (uint32_t j = 0; j < library->count; j++) {
            uint32_t at = function_name_hash(library->functions[j].name) & index->mask;
            while (index->slots[at] != NULL)
                at = (at + 1) & index->mask;
            index->slots[at] = &library->functions[j];
        }
        lua_pop(lua, 1);
    }
    script_keep(lua, &index_key);
    state->functions = index;
}

/* Pushes the library of this name in the table `old`, if it is the same. */
static bool push_same(lua_State *lua, int old, const struct library *library)
{
    if (!lua_istable(lua, old))
        return false;
    lua_pushlstring(lua, library->name.data, library->name.len);
    lua_rawget(lua, old);
    const struct loaded_library *loaded = lua_touserdata(lua, -1);
    if (loaded != NULL && loaded->id == library->id)
        return true;
    lua_pop(lua, 1);
    return false;
}

/* Loads what is not loaded yet. Raises an error if that fails. */
static void load_all(lua_State *lua, struct script_state *state, const struct libraries *libraries)
{
    struct library library;
    uint32_t total = 0;
    int count = 0;
    state->functions = NULL;
    state->register_until = UINT64_MAX;
    script_push_kept(lua, &libraries_key);
    lua_newtable(lua);
    int fresh = lua_gettop(lua), old = fresh - 1;
    for (size_t at = 0; libraries_next(libraries, &at, &library);) {
        if (!push_same(lua, old, &library)) {
            run_code(lua, state, &library);
            make_library(lua, library.id);
        }
        struct loaded_library *loaded = lua_touserdata(lua, -1);
        loaded->place = ++count;
        total += loaded->count;
        lua_pushlstring(lua, library.name.data, library.name.len);
        lua_pushvalue(lua, -2);
        lua_rawset(lua, fresh);
        lua_rawseti(lua, fresh, count);
    }
    make_index(lua, state, fresh, total);
    script_keep(lua, &libraries_key);
    lua_pop(lua, 1);
    state->functions_stamp = libraries->stamp;
}

void script_forget_libraries(struct script_state *state)
{
    if (state->functions == NULL || stamp_now(state->worker->server) != 0)
        return;
    state->functions = NULL;
    lua_pushnil(state->lua);
    script_keep(state->lua, &libraries_key);
    lua_pushnil(state->lua);
    script_keep(state->lua, &index_key);
    lua_gc(state->lua, LUA_GCCOLLECT, 0);
}

/* ---- FUNCTION LOAD ---- */

struct trial {
    struct script_state *state;
    struct library *library;
    struct resp_writer *functions;
};

static int try_protected(lua_State *lua)
{
    const struct trial *trial = lua_touserdata(lua, 1);
    script_set_hook(lua, trial->state);
    run_code(lua, trial->state, trial->library);
    int registered = lua_gettop(lua);
    uint32_t count = (uint32_t)lua_objlen(lua, registered);
    for (uint32_t i = 1; i <= count; i++) {
        lua_rawgeti(lua, registered, (int)i);
        struct library_function function = {.name = registered_text(lua, REGISTERED_NAME),
                                            .description = registered_text(lua, REGISTERED_TEXT),
                                            .flags = registered_flags(lua)};
        library_add_function(trial->functions, &function);
        lua_pop(lua, 1);
    }
    trial->library->function_count = count;
    return 0;
}

bool script_try_library(struct script_state *state, struct call *call, struct library *library,
                        struct resp_writer *functions)
{
    assert(state->call == NULL && lua_gettop(state->lua) == 0);
    struct trial trial = {.state = state, .library = library, .functions = functions};
    state->is_over = false;
    state->hook_instructions = SCRIPT_HOOK_INSTRUCTIONS;
    state->register_until = commandstats_clock() + LOAD_NSEC;
    state->load_effects = call->effects;
    library->function_count = 0;
    int status = lua_cpcall(state->lua, try_protected, &trial);
    state->load_effects = NULL;
    const char *text = status != 0 && lua_type(state->lua, -1) == LUA_TSTRING
                           ? lua_tostring(state->lua, -1)
                           : "unknown error";
    if (status == LUA_ERRMEM || functions->failed)
        resp_error(call->reply, "OOM command not allowed when used memory > 'maxmemory'.");
    else if (status != 0)
        resp_errorf(call->reply, "ERR %s", text);
    else if (library->function_count == 0)
        resp_error(call->reply, "ERR No functions registered");
    bool is_good = status == 0 && !functions->failed && library->function_count > 0;
    lua_settop(state->lua, 0);
    script_keep_small(state);
    script_settle_memory(state);
    return is_good;
}

/* ---- FCALL ---- */

static struct loaded_function *find(const struct function_index *index, struct resp_slice name)
{
    for (uint32_t at = function_name_hash(name) & index->mask; index->slots[at] != NULL;
         at = (at + 1) & index->mask)
        if (function_name_same(index->slots[at]->name, name))
            return index->slots[at];
    return NULL;
}

struct function_hint script_function_hint(const struct worker *worker, struct resp_slice name)
{
    const struct script_state *state = worker->scripts;
    const struct loaded_function *function =
        state != NULL && state->functions != NULL ? find(state->functions, name) : NULL;
    struct function_hint hint = {.wants_all = function != NULL && function->wants_all};
    if (function != NULL && state->functions_stamp == stamp_now(worker->server))
        hint.is_readonly = (function->flags & SCRIPT_NO_WRITES) != 0;
    else
        hint.is_readonly = readonly_names_has(worker->server->readonly_names, name);
    return hint;
}

void script_note_wants_all(struct script_state *state)
{
    if (state->function != NULL)
        state->function->wants_all = true;
}

/* Whether a call that has declared its keys as if the function did not write has to declare them
 * again. */
static bool are_keys_shared(const struct call *call)
{
    return call->key_count > 0 && call->keys[0].mode == STORE_SHARED && call->outer == NULL &&
           (call->command->flags & CMD_READONLY) == 0;
}

/* Whether the function may be called, as far as its flags tell. False: an error reply was
 * written, or the run is over. */
static bool may_call(lua_State *lua, struct script_state *state,
                     const struct loaded_function *function)
{
    struct call *call = state->call;
    bool writes = (function->flags & SCRIPT_NO_WRITES) == 0;
    if (!script_may_begin(call, function->flags, state->is_readonly))
        return false;
    state->is_readonly = !writes;
    state->allows_oom = (function->flags & SCRIPT_ALLOW_OOM) != 0;
    struct request *request = request_of_call(call);
    if (writes && are_keys_shared(call) && request->store.scope != STORE_SCOPE_ALL) {
        request->wants_all = true;
        script_unwind(lua, STORE_INVALID);
    }
    return true;
}

bool script_push_function(lua_State *lua, struct script_state *state,
                          const struct function_call *of_call)
{
    struct call *call = state->call;
    const struct libraries *libraries = of_call->libraries;
    if (are_variables_void(state->worker, call))
        forget_changed(lua, state);
    if (state->functions == NULL || state->functions_stamp != libraries->stamp)
        load_all(lua, state, libraries);
    struct loaded_function *function = find(state->functions, call->argv[1]);
    if (function == NULL) {
        resp_error(call->reply, "ERR Function not found");
        return false;
    }
    if (of_call->problem != NULL) {
        resp_error(call->reply, of_call->problem);
        return false;
    }
    if (!may_call(lua, state, function))
        return false;
    push_environment(lua, function->library);
    lua_rawgeti(lua, -1, function->number);
    lua_remove(lua, -2);
    state->function = function;
    memcpy(state->script->text, function->name.data, function->name.len); /* in its own case */
    return true;
}
