/*
 * EVAL, EVALSHA, their read-only forms, and SCRIPT.
 *
 * A script is a command that runs others (nested.h). The transaction locks its declared keys. If
 * the script accesses another key, its effects are rolled back and it runs again with the
 * exclusive lock on the store, as do all its later calls.
 */
#include "server/commands/commands.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/exec/monitor.h"
#include "server/exec/nested.h"
#include "server/exec/request.h"
#include "server/script/script.h"
#include "server/script/script_busy.h"
#include "server/script/script_error.h"
#include "server/script/script_run.h"
#include "server/core/server.h"
#include "server/core/call.h"

/* State kept over the runs of a call. */
struct evaluation {
    struct script *script; /* NULL: there is none, see `problem` */
    const char *problem;
    char *own_problem; /* the memory of `problem`, or NULL */
    size_t key_count;
};

static void evaluation_free(void *arg)
{
    struct evaluation *evaluation = arg;
    script_release(evaluation->script);
    free(evaluation->own_problem);
    free(evaluation);
}

static bool is_readonly(const struct call *call)
{
    return (call->command->flags & CMD_READONLY) != 0;
}

static struct script *find_by_sha(struct call *call, struct resp_slice name)
{
    char sha[SHA1_HEX_LEN];
    if (name.len != sizeof sha)
        return NULL;
    for (size_t i = 0; i < sizeof sha; i++) {
        char c = name.data[i];
        sha[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return scripts_find(call->server->scripts, sha);
}

/* Accounts the memory of the scripts' texts. */
static void note_texts(struct server *server)
{
    int64_t change = scripts_take_change(server->scripts);
    if (change != 0)
        store_note_memory(server->store, change);
}

static const char *problem_text(const char *problem)
{
    return problem != NULL ? problem : "OOM command not allowed when used memory > 'maxmemory'.";
}

static struct script *add_script(struct call *call, struct resp_slice text, bool is_loaded,
                                 char **problem)
{
    struct server *server = call->server;
    uint64_t memory = atomic_load_explicit(&server->memory_bound, memory_order_relaxed);
    struct script *script =
        scripts_add(server->scripts, text, is_loaded, memory / SCRIPTS_TEXT_SHARE, problem);
    note_texts(server);
    return script;
}

static void find_script(struct call *call, struct evaluation *evaluation)
{
    if (call->command->role == ROLE_EVALSHA) {
        evaluation->script = find_by_sha(call, call->argv[1]);
        if (evaluation->script == NULL)
            evaluation->problem = "NOSCRIPT No matching script. Please use EVAL.";
        return;
    }
    evaluation->script = add_script(call, call->argv[1], false, &evaluation->own_problem);
    evaluation->problem = problem_text(evaluation->own_problem);
}

/* Called in the first run, or before it. */
static bool prepare(struct call *call)
{
    struct nested_calls *nested_calls = call->nested_calls;
    if (nested_calls == NULL) {
        nested_calls = nested_calls_new();
        if (nested_calls == NULL)
            return false;
        nested_calls_settle(nested_calls, call);
    }
    struct evaluation *evaluation = malloc(sizeof *evaluation);
    if (evaluation == NULL)
        return false;
    *evaluation = (struct evaluation){.script = NULL};
    call->progress = evaluation;
    call->progress_free = evaluation_free;
    const char *problem = script_read_key_count(call, "ERR value is not an integer or out of range",
                                                &evaluation->key_count);
    if (problem == NULL)
        find_script(call, evaluation);
    else
        evaluation->problem = problem;
    return true;
}

/* Without a first line that tells, the name of the command does. */
static bool writes_by(const struct call *call, const struct script *script)
{
    return (script->flags & SCRIPT_HAS_SHEBANG) == 0 ? !is_readonly(call)
                                                     : (script->flags & SCRIPT_NO_WRITES) == 0;
}

bool eval_declare(struct call *call)
{
    struct request *request = request_of_call(call);
    if (!request_reserve_keys(request, call->argc + 1) || !prepare(call))
        return false;
    const struct evaluation *evaluation = call->progress;
    uint32_t count = call_table_keys(call->server->store, call->command, call->argc, call->argv,
                                     call->session->db, request_known_key(request, call->command),
                                     request->keys);
    bool writes = evaluation->script != NULL ? writes_by(call, evaluation->script) : false;
    for (uint32_t i = 0; i < count && writes; i++)
        request->keys[i].mode = STORE_EXCLUSIVE;
    call->keys = request->store.keys = request->keys;
    call->key_count = request->store.key_count = count;
    if (evaluation->script != NULL &&
        atomic_load_explicit(&evaluation->script->wants_all, memory_order_relaxed))
        request->store.scope = STORE_SCOPE_ALL;
    return true;
}

bool eval_may_write(struct call *call)
{
    struct evaluation found = {.script = NULL};
    find_script(call, &found);
    free(found.own_problem);
    if (found.script == NULL)
        return !is_readonly(call);
    bool writes = writes_by(call, found.script);
    script_release(found.script);
    return writes;
}

static enum store_result evaluate(struct call *call)
{
    if (call->progress == NULL) { /* inside EXEC: not yet declared */
        if (!prepare(call))
            return STORE_NO_MEMORY;
        nested_calls_begin(call);
    }
    monitor_feed_script(call);
    const struct evaluation *evaluation = call->progress;
    struct script *script = evaluation->script;
    if (script == NULL) {
        resp_error(call->reply, evaluation->problem);
        return STORE_OK;
    }
    assert(evaluation->key_count == call->key_count); /* KEYS are the keys that are locked */
    bool writes = writes_by(call, script);
    if ((script->flags & SCRIPT_HAS_SHEBANG) != 0 &&
        !script_may_begin(call, script->flags, is_readonly(call)))
        return STORE_OK;
    struct script_state *state = script_state_get(call->worker);
    if (state == NULL)
        return STORE_NO_MEMORY;
    enum store_result result =
        script_run(state, call, script, NULL, !writes, 3, 3 + evaluation->key_count);
    if (result == STORE_OK)
        nested_calls_end(call->nested_calls);
    return result;
}

enum store_result cmd_eval(struct call *call)
{
    return evaluate(call);
}

enum store_result cmd_evalsha(struct call *call)
{
    return evaluate(call);
}

/* ---- SCRIPT ---- */

enum store_result cmd_script_load(struct call *call)
{
    char *problem;
    struct script_state *state = script_state_get(call->worker);
    if (state == NULL)
        return STORE_NO_MEMORY;
    struct script *script = add_script(call, call->argv[2], true, &problem);
    if (script == NULL) {
        resp_error(call->reply, problem_text(problem));
        free(problem);
        return STORE_OK;
    }
    if (script_compile(state, script, call->reply))
        resp_bulk_string(call->reply, script->sha);
    script_release(script);
    return STORE_OK;
}

enum store_result cmd_script_exists(struct call *call)
{
    resp_array(call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++) {
        struct script *script = find_by_sha(call, call->argv[i]);
        resp_integer(call->reply, script != NULL);
        script_release(script);
    }
    return STORE_OK;
}

enum store_result cmd_script_flush(struct call *call)
{
    bool is_good =
        call->argc == 2 ||
        (call->argc == 3 && (slice_is(call->argv[2], "async") || slice_is(call->argv[2], "sync")));
    if (!is_good) {
        resp_error(call->reply, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
        return STORE_OK;
    }
    scripts_flush(call->server->scripts);
    note_texts(call->server);
    resp_ok(call->reply);
    return STORE_OK;
}

enum store_result cmd_script_kill(struct call *call)
{
    script_kill(call, false);
    return STORE_OK;
}

enum store_result cmd_script_debug(struct call *call)
{
    if (slice_is(call->argv[2], "no"))
        resp_ok(call->reply);
    else if (slice_is(call->argv[2], "yes") || slice_is(call->argv[2], "sync"))
        resp_error(call->reply, "ERR SCRIPT DEBUG is not available: there is no debugger");
    else
        resp_error(call->reply, "ERR Use SCRIPT DEBUG YES/SYNC/NO");
    return STORE_OK;
}

enum store_result cmd_script_help(struct call *call)
{
    static const char *const lines[] = {
        "DEBUG NO",
        "    There is no debugger to switch on.",
        "EXISTS <sha1> [<sha1> ...]",
        "    Tell which scripts are in the cache.",
        "FLUSH [ASYNC|SYNC]",
        "    Empty the cache.",
        "KILL",
        "    End the script that runs, if it has written nothing yet.",
        "LOAD <script>",
        "    Put a script into the cache without running it.",
        NULL};
    call_help(call, lines);
    return STORE_OK;
}
