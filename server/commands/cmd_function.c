/*
 * FUNCTION, FCALL and FCALL_RO.
 *
 * All libraries are one item of the store's own database, so that they are as durable as data, and
 * every call sees those of its moment. FCALL reads that item in its transaction; a worker compiles
 * the code again only if the item's version is another one.
 */
#include "server/commands/commands.h"

#include <stdlib.h>
#include <string.h>

#include "server/core/call.h"
#include "server/core/server.h"
#include "server/exec/nested.h"
#include "server/exec/request.h"
#include "server/script/script.h"
#include "server/script/script_busy.h"
#include "server/script/script_function.h"
#include "server/script/script_run.h"

static void libraries_key(const struct call *call, struct store_key *key, enum store_mode mode)
{
    store_key(call->server->store, key, STORE_META_DB, "functions", 9, mode);
}

static enum store_result read_libraries(struct call *call, const struct store_key *key,
                                        struct libraries *libraries)
{
    struct store_item item;
    *libraries = (struct libraries){.bytes = "", .version = 1};
    enum store_result result = store_get(call->txn, key, &item);
    if (result == STORE_ABSENT)
        return STORE_OK;
    if (result == STORE_OK)
        result = store_load(call->txn, &item, &libraries->bytes);
    if (result != STORE_OK)
        return result;
    libraries->len = item.length;
    libraries->version = item.version;
    return STORE_OK;
}

/* ---- FCALL ---- */

/* State kept over the runs of a call. */
static void function_free(void *arg)
{
    script_release(arg);
}

/* Stands for the function where a script is expected; its SHA-1 is the function's name. */
static bool prepare(struct call *call)
{
    struct nested_calls *nested_calls = call->nested_calls;
    if (nested_calls == NULL) {
        nested_calls = nested_calls_new();
        if (nested_calls == NULL)
            return false;
        nested_calls_settle(nested_calls, call);
    }
    struct script *script = calloc(1, sizeof *script + 1);
    if (script == NULL)
        return false;
    struct resp_slice name = call->argv[1];
    script->holders = 1;
    memcpy(script->sha, name.data, name.len < SHA1_HEX_LEN ? name.len : SHA1_HEX_LEN);
    call->progress = script;
    call->progress_free = function_free;
    return true;
}

bool fcall_declare(struct call *call)
{
    struct request *request = request_of_call(call);
    if (!request_reserve_keys(request, call->argc + 1) || !prepare(call))
        return false;
    bool is_readonly = (call->command->flags & CMD_READONLY) != 0;
    uint32_t count = call_table_keys(call->server->store, call->command, call->argc, call->argv,
                                     call->session->db, request_known_key(request, call->command),
                                     request->keys);
    for (uint32_t i = 0; i < count && !is_readonly; i++)
        request->keys[i].mode = STORE_EXCLUSIVE;
    libraries_key(call, &request->keys[count], STORE_SHARED);
    call->keys = request->store.keys = request->keys;
    call->key_count = count;
    request->store.key_count = count + 1;
    return true;
}

bool fcall_may_write(struct call *call)
{
    return (call->command->flags & CMD_READONLY) == 0;
}

static const char *read_key_count(const struct call *call, size_t *count)
{
    int64_t number;
    if (!resp_read_int64(call->argv[2].data, call->argv[2].len, &number))
        return "ERR Bad number of keys provided";
    if (number > (int64_t)call->argc - 3)
        return "ERR Number of keys can't be greater than number of args";
    if (number < 0)
        return "ERR Number of keys can't be negative";
    *count = (size_t)number;
    return NULL;
}

enum store_result cmd_fcall(struct call *call)
{
    struct request *request = request_of_call(call);
    if (call->outer != NULL && request->store.scope != STORE_SCOPE_ALL) {
        request->wants_all = true; /* EXEC has not declared the libraries */
        return STORE_INVALID;
    }
    if (call->progress == NULL) { /* inside EXEC: not yet declared */
        if (!prepare(call))
            return STORE_NO_MEMORY;
        nested_calls_begin(call);
    }
    size_t key_count;
    const char *problem = read_key_count(call, &key_count);
    if (problem != NULL) {
        resp_error(call->reply, problem);
        return STORE_OK;
    }
    struct store_key key;
    struct libraries libraries;
    libraries_key(call, &key, STORE_SHARED);
    enum store_result result = read_libraries(call, &key, &libraries);
    if (result != STORE_OK)
        return result;
    struct script_state *state = script_state_get(call->worker);
    if (state == NULL)
        return STORE_NO_MEMORY;
    bool is_readonly = (call->command->flags & CMD_READONLY) != 0;
    result = script_run(state, call, call->progress, &libraries, is_readonly, 3, 3 + key_count);
    if (result == STORE_OK)
        nested_calls_end(call->nested_calls);
    return result;
}

/* ---- FUNCTION ---- */

/* Copies the libraries except for that of this name. */
static bool copy_others(const struct libraries *from, struct resp_slice name, char *to, size_t *len)
{
    struct resp_slice code, other;
    char problem[160];
    bool is_found = false;
    *len = 0;
    for (size_t at = 0, begin = 0; libraries_next(from, &at, &code); begin = at) {
        bool is_it = library_name(code, &other, problem) == NULL && other.len == name.len &&
                     memcmp(other.data, name.data, name.len) == 0;
        is_found = is_found || is_it;
        if (is_it)
            continue;
        memcpy(to + *len, from->bytes + begin, at - begin);
        *len += at - begin;
    }
    return is_found;
}

static enum store_result add_library(struct call *call, struct resp_slice code,
                                     struct resp_slice name, bool replaces)
{
    struct store_key key;
    struct libraries libraries;
    libraries_key(call, &key, STORE_EXCLUSIVE);
    enum store_result result = read_libraries(call, &key, &libraries);
    if (result != STORE_OK)
        return result;
    char *bytes = store_alloc(call->txn, libraries.len + LIBRARY_HEAD + code.len);
    struct script_state *state = script_state_get(call->worker);
    if (bytes == NULL || state == NULL)
        return STORE_NO_MEMORY;
    size_t len;
    if (copy_others(&libraries, name, bytes, &len) && !replaces) {
        resp_errorf(call->reply, "ERR Library '%.*s' already exists", (int)name.len, name.data);
        return STORE_OK;
    }
    uint32_t code_len = (uint32_t)code.len;
    memcpy(bytes + len, &code_len, sizeof code_len);
    memcpy(bytes + len + LIBRARY_HEAD, code.data, code.len);
    len += LIBRARY_HEAD + code.len;
    struct libraries fresh = {.bytes = bytes, .len = len};
    if (!script_try_libraries(state, &fresh, call->reply))
        return STORE_OK;
    result = store_put(call->txn, &key, 0, bytes, len, STORE_NO_EXPIRY);
    if (result == STORE_OK)
        resp_bulk(call->reply, name.data, name.len);
    return result;
}

enum store_result cmd_function_load(struct call *call)
{
    bool replaces = call->argc == 4 && slice_is(call->argv[2], "replace");
    if (call->argc > 3 && !replaces) {
        resp_errorf(call->reply, "ERR Unknown option given: %.*s",
                    (int)(call->argv[2].len < 100 ? call->argv[2].len : 100), call->argv[2].data);
        return STORE_OK;
    }
    struct resp_slice code = call->argv[call->argc - 1], name;
    char problem[160];
    const char *error = library_name(code, &name, problem);
    if (error == NULL)
        return add_library(call, code, name, replaces);
    resp_error(call->reply, error);
    return STORE_OK;
}

enum store_result cmd_function_delete(struct call *call)
{
    struct store_key key;
    struct libraries libraries;
    libraries_key(call, &key, STORE_EXCLUSIVE);
    enum store_result result = read_libraries(call, &key, &libraries);
    if (result != STORE_OK)
        return result;
    char *bytes = store_alloc(call->txn, libraries.len + 1);
    size_t len;
    if (bytes == NULL)
        return STORE_NO_MEMORY;
    if (!copy_others(&libraries, call->argv[2], bytes, &len)) {
        resp_error(call->reply, "ERR Library not found");
        return STORE_OK;
    }
    result = store_put(call->txn, &key, 0, bytes, len, STORE_NO_EXPIRY);
    if (result == STORE_OK)
        resp_ok(call->reply);
    return result;
}

enum store_result cmd_function_flush(struct call *call)
{
    bool is_good =
        call->argc == 2 ||
        (call->argc == 3 && (slice_is(call->argv[2], "async") || slice_is(call->argv[2], "sync")));
    if (!is_good) {
        resp_error(call->reply, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
        return STORE_OK;
    }
    struct store_key key;
    libraries_key(call, &key, STORE_EXCLUSIVE);
    enum store_result result = store_put(call->txn, &key, 0, "", 0, STORE_NO_EXPIRY);
    if (result == STORE_OK)
        resp_ok(call->reply);
    return result;
}
