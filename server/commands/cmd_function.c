/*
 * FUNCTION, FCALL and FCALL_RO.
 *
 * All libraries are one item of the store's own database, so that they are as durable as data, and
 * every call sees those of its moment. FCALL reads that item in its transaction if its worker has
 * not loaded it (script_function.c), under a shared lock of its key; those that change it hold the
 * exclusive one. What is loaded is known to be the item of the moment by its stamp.
 */
#include "server/commands/commands.h"

#include <string.h>

#include "server/base/glob.h"
#include "server/commands/function_value.h"
#include "server/core/call.h"
#include "server/core/commandstats.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/exec/monitor.h"
#include "server/exec/nested.h"
#include "server/exec/request.h"
#include "server/exec/runner_reply.h"
#include "server/script/script.h"
#include "server/script/script_busy.h"
#include "server/script/script_function.h"
#include "server/script/script_run.h"

#define NSEC_PER_MS 1000000

/* ---- FCALL ---- */

/* State kept over the runs of a call. */
static void function_free(void *arg)
{
    script_release(arg);
}

static bool prepare(struct call *call)
{
    struct nested_calls *nested_calls = call->nested_calls;
    if (nested_calls == NULL) {
        nested_calls = nested_calls_new();
        if (nested_calls == NULL)
            return false;
        nested_calls_settle(nested_calls, call);
    }
    call->progress = script_of_function(call->argv[1]);
    call->progress_free = function_free;
    return call->progress != NULL;
}

static bool is_readonly(const struct call *call)
{
    return (call->command->flags & CMD_READONLY) != 0;
}

/* A function that turns out to write although its keys are shared runs again with all keys. */
bool fcall_declare(struct call *call)
{
    struct request *request = request_of_call(call);
    if (!request_reserve_keys(request, call->argc + 1) || !prepare(call))
        return false;
    struct function_hint hint = script_function_hint(call->worker, call->argv[1]);
    uint32_t count = call_table_keys(call->server->store, call->command, call->argc, call->argv,
                                     call->session->db, request_known_key(request, call->command),
                                     request->keys);
    for (uint32_t i = 0; i < count && !is_readonly(call) && !hint.is_readonly; i++)
        request->keys[i].mode = STORE_EXCLUSIVE;
    function_value_key(call, &request->keys[count], STORE_SHARED);
    call->keys = request->store.keys = request->keys;
    call->key_count = count;
    const struct script_state *state = call->worker->scripts;
    bool is_known = state != NULL && script_knows_libraries(state, call);
    request->store.key_count = is_known ? count : count + 1;
    if (hint.wants_all)
        request->store.scope = STORE_SCOPE_ALL;
    return true;
}

bool fcall_may_write(struct call *call)
{
    return !is_readonly(call) && !script_function_hint(call->worker, call->argv[1]).is_readonly;
}

/* What the worker has loaded need not be read again: its key would be locked by all calls. */
static enum store_result find_libraries(struct call *call, const struct script_state *state,
                                        struct libraries *libraries)
{
    struct request *request = request_of_call(call);
    bool is_declared = request->store.scope == STORE_SCOPE_ALL ||
                       request->store.key_count > request->call.key_count;
    request->library_commit = 0;
    if (is_declared)
        return function_value_read(call, script_known_stamp(state, call), libraries);
    if (!script_knows_libraries(state, call)) {
        request->wants_libraries = true;
        return STORE_INVALID;
    }
    *libraries = (struct libraries){.stamp = script_known_stamp(state, call)};
    request->library_commit =
        atomic_load_explicit(&call->server->library_commit, memory_order_relaxed);
    return STORE_OK;
}

enum store_result cmd_fcall(struct call *call)
{
    size_t key_count;
    struct libraries libraries;
    struct function_call function = {
        &libraries, script_read_key_count(call, "ERR Bad number of keys provided", &key_count)};
    if (call->progress == NULL) { /* inside EXEC: not yet declared */
        if (!prepare(call))
            return STORE_NO_MEMORY;
        nested_calls_begin(call);
    }
    monitor_feed_script(call);
    struct script_state *state = script_state_get(call->worker);
    if (state == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = find_libraries(call, state, &libraries);
    if (result == STORE_OK)
        result =
            script_run(state, call, call->progress, &function, is_readonly(call), 3, 3 + key_count);
    if (result == STORE_OK)
        nested_calls_end(call->nested_calls);
    return result;
}

/* ---- changes ---- */

static bool declare(struct call *call, enum store_mode mode)
{
    struct request *request = request_of_call(call);
    if (!request_reserve_keys(request, 1))
        return false;
    function_value_key(call, request->keys, mode);
    call->keys = request->store.keys = request->keys;
    call->key_count = 0;
    request->store.key_count = 1;
    return true;
}

bool function_declare_read(struct call *call)
{
    return declare(call, STORE_SHARED);
}

bool function_declare_write(struct call *call)
{
    return declare(call, STORE_EXCLUSIVE);
}

enum store_result cmd_function_load(struct call *call)
{
    struct resp_slice name;
    size_t last = call->argc - 1;
    for (size_t i = 2; i < last; i++) {
        if (slice_is(call->argv[i], "replace"))
            continue;
        resp_errorf(call->reply, "ERR Unknown option given: %.*s", (int)call->argv[i].len,
                    call->argv[i].data);
        return STORE_OK;
    }
    enum store_result result = function_value_add(
        call, &call->argv[last], 1, last > 2 ? FUNCTION_RELOAD : FUNCTION_LOAD, &name);
    if (result == STORE_OK && name.data != NULL)
        resp_bulk(call->reply, name.data, name.len);
    return result;
}

enum store_result cmd_function_delete(struct call *call)
{
    struct libraries libraries;
    struct library library;
    enum store_result result = function_value_read(call, 0, &libraries);
    if (result != STORE_OK)
        return result;
    if (!libraries_find(&libraries, call->argv[2], &library)) {
        resp_error(call->reply, "ERR Library not found");
        return STORE_OK;
    }
    result = function_value_remove(call, &libraries, call->argv[2]);
    if (result == STORE_OK)
        resp_ok(call->reply);
    return result;
}

enum store_result cmd_function_flush(struct call *call)
{
    if (call->argc > 3) {
        call_wrong_subcommand(call);
        return STORE_OK;
    }
    if (call->argc == 3 && !slice_is(call->argv[2], "async") && !slice_is(call->argv[2], "sync")) {
        resp_error(call->reply, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
        return STORE_OK;
    }
    enum store_result result = function_value_clear(call);
    if (result == STORE_OK)
        resp_ok(call->reply);
    return result;
}

/* ---- LIST ---- */

struct listing {
    bool with_code, has_pattern;
    struct resp_slice pattern;
};

static bool read_listing(struct call *call, struct listing *listing)
{
    *listing = (struct listing){.with_code = false};
    for (size_t i = 2; i < call->argc; i++) {
        struct resp_slice word = call->argv[i];
        if (!listing->with_code && slice_is(word, "withcode")) {
            listing->with_code = true;
        } else if (listing->has_pattern || !slice_is(word, "libraryname")) {
            resp_errorf(call->reply, "ERR Unknown argument %.*s", (int)word.len, word.data);
            return false;
        } else if (i + 1 == call->argc) {
            resp_error(call->reply, "ERR library name argument was not given");
            return false;
        } else {
            listing->has_pattern = true;
            listing->pattern = call->argv[++i];
        }
    }
    return true;
}

static bool is_listed(const struct listing *listing, const struct library *library)
{
    return !listing->has_pattern || glob_match(listing->pattern.data, listing->pattern.len,
                                               library->name.data, library->name.len, true);
}

static void list_flags(struct resp_writer *to, uint32_t flags)
{
    const struct script_flag_name *flag;
    uint64_t count = 0;
    for (flag = script_flag_names; flag->name != NULL; flag++)
        count += (flags & flag->flag) != 0;
    resp_set(to, count);
    for (flag = script_flag_names; flag->name != NULL; flag++)
        if ((flags & flag->flag) != 0)
            resp_status(to, flag->name);
}

static void list_library(struct resp_writer *to, const struct library *library, bool with_code)
{
    struct library_function function;
    resp_map(to, with_code ? 4 : 3);
    resp_bulk_string(to, "library_name");
    resp_bulk(to, library->name.data, library->name.len);
    resp_bulk_string(to, "engine");
    resp_bulk_string(to, "LUA");
    resp_bulk_string(to, "functions");
    resp_array(to, library->function_count);
    for (size_t at = 0; library_next_function(library, &at, &function);) {
        resp_map(to, 3);
        resp_bulk_string(to, "name");
        resp_bulk(to, function.name.data, function.name.len);
        resp_bulk_string(to, "description");
        if (function.description.data != NULL)
            resp_bulk(to, function.description.data, function.description.len);
        else
            resp_null(to);
        resp_bulk_string(to, "flags");
        list_flags(to, function.flags);
    }
    if (!with_code)
        return;
    resp_bulk_string(to, "library_code");
    resp_bulk(to, library->code.data, library->code.len);
}

enum store_result cmd_function_list(struct call *call)
{
    struct listing listing;
    struct libraries libraries;
    struct library library;
    uint64_t count = 0;
    if (!read_listing(call, &listing))
        return STORE_OK;
    enum store_result result = function_value_read(call, 0, &libraries);
    if (result != STORE_OK)
        return result;
    for (size_t at = 0; libraries_next(&libraries, &at, &library);)
        count += is_listed(&listing, &library);
    resp_array(call->reply, count);
    for (size_t at = 0; libraries_next(&libraries, &at, &library);)
        if (is_listed(&listing, &library))
            list_library(call->reply, &library, listing.with_code);
    return STORE_OK;
}

/* ---- STATS, KILL, HELP ---- */

/* Shows the function that is busy on the worker. False: there is none. */
static bool show_running(struct resp_writer *to, struct worker *worker)
{
    struct script_shown *script = &worker->script;
    pthread_mutex_lock(&script->lock);
    const struct call *call = script->call;
    bool is_any = call != NULL;
    if (is_any) {
        resp_map(to, 3);
        resp_bulk_string(to, "name");
        resp_bulk_string(to, script->name);
        resp_bulk_string(to, "command");
        resp_array(to, call->argc);
        for (size_t i = 0; i < call->argc; i++)
            resp_bulk(to, call->argv[i].data, call->argv[i].len);
        resp_bulk_string(to, "duration_ms");
        resp_integer(to, (int64_t)((commandstats_clock() - script->began_nsec) / NSEC_PER_MS));
    }
    pthread_mutex_unlock(&script->lock);
    return is_any;
}

static void show_any_running(struct resp_writer *to, const struct server *server)
{
    for (uint32_t i = 0; i < server->worker_count; i++)
        if (show_running(to, server->workers[i]))
            return;
    resp_null(to);
}

enum store_result cmd_function_stats(struct call *call)
{
    struct server *server = call->server;
    if (worker_any_busy_is(server, false) && !worker_any_busy_is(server, true)) {
        resp_error(call->reply, SCRIPT_BUSY_TEXT);
        return STORE_OK;
    }
    resp_map(call->reply, 2);
    resp_bulk_string(call->reply, "running_script");
    show_any_running(call->reply, server);
    resp_bulk_string(call->reply, "engines");
    resp_map(call->reply, 1);
    resp_bulk_string(call->reply, "LUA");
    resp_map(call->reply, 2);
    resp_bulk_string(call->reply, "libraries_count");
    resp_integer(call->reply, (int64_t)atomic_load(&server->library_count));
    resp_bulk_string(call->reply, "functions_count");
    resp_integer(call->reply, (int64_t)atomic_load(&server->function_count));
    return STORE_OK;
}

enum store_result cmd_function_kill(struct call *call)
{
    script_kill(call, true);
    return STORE_OK;
}

enum store_result cmd_function_help(struct call *call)
{
    static const char *const lines[] = {
        "DELETE <library>",
        "    Delete a library with its functions.",
        "DUMP",
        "    Return all libraries in one payload, for RESTORE.",
        "FLUSH [ASYNC|SYNC]",
        "    Delete all libraries.",
        "KILL",
        "    End the function that runs, if it has written nothing yet.",
        "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
        "    Show the libraries and their functions.",
        "LOAD [REPLACE] <code>",
        "    Load a library.",
        "RESTORE <payload> [APPEND|FLUSH|REPLACE]",
        "    Load the libraries of a payload, besides those that are there (APPEND, the default),",
        "    in place of those of the same names (REPLACE), or of all (FLUSH).",
        "STATS",
        "    Show the function that runs, and how many libraries and functions there are.",
        NULL};
    call_help(call, lines);
    return STORE_OK;
}
