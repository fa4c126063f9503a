/*
 * Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH.
 */
#include "server/commands/commands.h"

#include <assert.h>

#include "server/exec/long_run.h"
#include "server/exec/multi.h"
#include "server/exec/nested.h"
#include "server/core/server.h"
#include "server/exec/watch.h"
#include "server/core/call.h"

#define LOOK_EVERY 8 /* commands */

/* ---- MULTI, DISCARD ---- */

enum store_result cmd_multi(struct call *call)
{
    struct session *session = call->session;
    if (session->multi != NULL) {
        resp_error(call->reply, "ERR MULTI calls can not be nested");
        return STORE_OK;
    }
    session->multi = nested_calls_new();
    if (session->multi == NULL)
        return STORE_NO_MEMORY;
    resp_ok(call->reply);
    return STORE_OK;
}

enum store_result cmd_discard(struct call *call)
{
    if (call->session->multi == NULL) {
        resp_error(call->reply, "ERR DISCARD without MULTI");
        return STORE_OK;
    }
    multi_end(call->session);
    resp_ok(call->reply);
    return STORE_OK;
}

/* ---- EXEC ---- */

/* A SELECT in the queue applies to the commands after it. */
static void follow_select(const struct call *call, uint32_t *db)
{
    int64_t number;
    if (call->command->role == ROLE_SELECT &&
        resp_read_int64(call->argv[1].data, call->argv[1].len, &number) && number >= 0 &&
        number < STORE_DB_COUNT)
        *db = (uint32_t)number;
}

/* Declares the keys of all queued commands and the watched ones. */
static bool declare_queue(struct request *request, struct nested_calls *nested_calls)
{
    struct store_request *store = &request->store;
    size_t most = watch_count(nested_calls->watch);
    struct nested *nested;
    TAILQ_FOREACH (nested, &nested_calls->list, link)
        most += call_most_keys(nested->call.command, nested->call.argc);
    if (!request_reserve_keys(request, most))
        return false;
    uint32_t count = watch_count(nested_calls->watch), db = request->call.session->db;
    watch_keys(nested_calls->watch, request->keys);
    TAILQ_FOREACH (nested, &nested_calls->list, link) {
        struct call *call = &nested->call;
        const struct command *command = call->command;
        call->keys = &request->keys[count];
        call->key_count = call_table_keys(call->server->store, command, call->argc, call->argv, db,
                                          NULL, &request->keys[count]);
        count += call->key_count;
        follow_select(call, &db);
        bool is_local = (command->flags & (CMD_LOCAL | CMD_ALL_WORKERS)) != 0;
        if (!is_local && (command_scope(command) != STORE_SCOPE_KEYS || command->declare != NULL))
            store->scope = STORE_SCOPE_ALL;
    }
    assert(count <= most); /* the room that was reserved */
    store->keys = request->keys;
    store->key_count = count;
    return true;
}

bool exec_declare(struct call *call)
{
    struct request *request = request_of_call(call);
    struct session *session = call->session;
    struct nested_calls *nested_calls = session->multi;
    call->keys = request->store.keys = NULL;
    call->key_count = request->store.key_count = 0;
    if (nested_calls == NULL)
        return true;
    nested_calls->watch = session->watch;
    session->watch = NULL;
    session->multi = NULL;
    multi_note_memory(session);
    nested_calls_settle(nested_calls, call);
    return nested_calls->is_aborted || declare_queue(request, nested_calls);
}

/* Whether EXEC may run the queue. If not, it has replied. */
static enum store_result may_run(struct call *call, bool *may)
{
    struct nested_calls *nested_calls = call->nested_calls;
    bool has_changed = false;
    *may = false;
    if (nested_calls == NULL) {
        resp_error(call->reply, "ERR EXEC without MULTI");
        return STORE_OK;
    }
    if (nested_calls->is_aborted) {
        resp_error(call->reply, "EXECABORT Transaction discarded because of previous errors.");
        return STORE_OK;
    }
    if (nested_calls->watch != NULL && !nested_calls->is_checked) {
        enum store_result result = watch_check(nested_calls->watch, call->txn, &has_changed);
        if (result != STORE_OK)
            return result;
    }
    if (has_changed)
        resp_null_array(call->reply);
    *may = nested_calls->is_checked = !has_changed;
    return STORE_OK;
}

/* A read may use much memory of the transaction, and a queue may contain thousands of reads. That
 * memory is released as soon as the read has replied. */
static enum store_result run_next(struct nested *nested, struct call *exec)
{
    const uint32_t flags = nested->call.command->flags;
    bool is_read = (flags & CMD_READONLY) != 0 && (flags & CMD_CACHES_RESULT) == 0;
    struct store_mark mark;
    store_mark(exec->txn, &mark);
    enum store_result result = nested_run(nested, exec->reply);
    if (result == STORE_OK && is_read)
        (void)store_forget(exec->txn, &mark);
    return result;
}

enum store_result cmd_exec(struct call *call)
{
    bool may;
    enum store_result result = may_run(call, &may);
    if (result != STORE_OK || !may)
        return result;
    struct nested_calls *nested_calls = call->nested_calls;
    resp_array(call->reply, nested_calls->count);
    struct nested *nested;
    uint64_t place = 0;
    TAILQ_FOREACH (nested, &nested_calls->list, link) {
        if (++place % LOOK_EVERY == 0)
            result = call_yield(call);
        if (result != STORE_OK)
            return result;
        if (nested_is_local(nested)) {
            nested_defer(nested);
            continue;
        }
        result = run_next(nested, call);
        if (result != STORE_OK)
            return result;
    }
    assert(place == nested_calls->count); /* as many replies as the array's head says */
    return STORE_OK;
}

/* ---- WATCH, UNWATCH ---- */

bool watch_declare(struct call *call)
{
    struct session *session = call->session;
    struct request *request = request_of_call(call);
    uint32_t count = 0;
    if (session->multi == NULL) {
        if (session->watch == NULL)
            session->watch = watch_new(call->server->watches);
        multi_note_memory(session);
        if (session->watch == NULL || !request_reserve_keys(request, call->argc + 1))
            return false;
        count = call_table_keys(call->server->store, call->command, call->argc, call->argv,
                                session->db, NULL, request->keys);
    }
    call->keys = request->store.keys = request->keys;
    call->key_count = request->store.key_count = count;
    return true;
}

static bool watch_all(struct call *call, const struct store_item *items, const bool *exists)
{
    struct watch *watch = call->session->watch;
    bool is_good = true;
    for (uint32_t i = 0; i < call->key_count && is_good && !watch_is_dirty(watch); i++)
        is_good = watch_add(watch, &call->keys[i], exists[i] ? &items[i] : NULL);
    multi_note_memory(call->session);
    return is_good;
}

enum store_result cmd_watch(struct call *call)
{
    if (call->session->multi != NULL) {
        resp_error(call->reply, "ERR WATCH inside MULTI is not allowed");
        return STORE_OK;
    }
    if (call->outer != NULL) { /* only DEBUG SET-DISABLE-DENY-SCRIPTS lets a script get here */
        resp_error(call->reply, "ERR This Redis command is not allowed from script");
        return STORE_OK;
    }
    struct store_item *items = store_alloc(call->txn, call->key_count * sizeof *items);
    bool *exists = store_alloc(call->txn, call->key_count * sizeof *exists);
    if (items == NULL || exists == NULL)
        return STORE_NO_MEMORY;
    for (uint32_t i = 0; i < call->key_count; i++) {
        enum store_result result = call_yield_at(call, i);
        if (result == STORE_OK)
            result = store_get(call->txn, &call->keys[i], &items[i]);
        if (result != STORE_OK && result != STORE_ABSENT)
            return result;
        exists[i] = result == STORE_OK;
    }
    if (!watch_all(call, items, exists))
        return STORE_NO_MEMORY;
    resp_ok(call->reply);
    return STORE_OK;
}

/* Within EXEC there is nothing to unwatch: EXEC has taken over the watched keys. */
enum store_result cmd_unwatch(struct call *call)
{
    watch_free(call->session->watch);
    call->session->watch = NULL;
    multi_note_memory(call->session);
    resp_ok(call->reply);
    return STORE_OK;
}
