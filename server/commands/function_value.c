#include "server/commands/function_value.h"

#include <string.h>
#include <time.h>

#include "server/base/rng.h"
#include "server/base/sha1.h"
#include "server/core/function_names.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/pubsub/effects.h"
#include "server/script/script_function.h"
#include "server/script/script_run.h"

static const char value_name[] = "functions";

void function_value_key(const struct call *call, struct store_key *key, enum store_mode mode)
{
    store_key(call->server->store, key, STORE_META_DB, value_name, sizeof value_name - 1, mode);
}

/* ---- what is shown of it ---- */

/* Calls `visit` for each function that does not write. */
static void each_readonly(const struct libraries *libraries,
                          void (*visit)(void *arg, struct resp_slice name), void *arg)
{
    struct library library;
    struct library_function function;
    for (size_t at = 0; libraries_next(libraries, &at, &library);)
        for (size_t in = 0; library_next_function(&library, &in, &function);)
            if ((function.flags & SCRIPT_NO_WRITES) != 0)
                visit(arg, function.name);
}

struct names_size {
    uint32_t count;
    size_t bytes;
};

static void count_name(void *arg, struct resp_slice name)
{
    struct names_size *size = arg;
    size->count++;
    size->bytes += name.len;
}

static void add_name(void *arg, struct resp_slice name)
{
    name_set_add(arg, name);
}

static struct libraries_shown shown_of(const struct libraries *libraries)
{
    return (struct libraries_shown){.is_set = true,
                                    .count = libraries->count,
                                    .functions = libraries->function_count,
                                    .bytes = libraries->len,
                                    .stamp = libraries->stamp};
}

/* Of libraries that have been read whole. False: out of memory. */
static bool show_names(const struct libraries *libraries, struct libraries_shown *shown)
{
    struct names_size size = {.count = 0};
    each_readonly(libraries, count_name, &size);
    if (size.count == 0)
        return true;
    shown->readonly_names = name_set_new(size.count, size.bytes);
    if (shown->readonly_names == NULL)
        return false;
    each_readonly(libraries, add_name, shown->readonly_names);
    return true;
}

/* ---- reading ---- */

static enum store_result read_head(struct call *call, const struct store_item *item,
                                   struct libraries *libraries)
{
    char head[LIBRARIES_HEAD];
    enum store_result result = store_read(call->txn, item, 0, sizeof head, head);
    if (result == STORE_OK && !libraries_read_head(libraries, head, item->length))
        result = STORE_DAMAGED;
    libraries->bytes = NULL;
    return result;
}

enum store_result function_value_read(struct call *call, uint64_t known,
                                      struct libraries *libraries)
{
    struct store_key key;
    struct store_item item;
    const char *bytes = "";
    function_value_key(call, &key, STORE_SHARED);
    *libraries = (struct libraries){.bytes = bytes};
    enum store_result result = store_get(call->txn, &key, &item);
    if (result == STORE_ABSENT || (result == STORE_OK && item.length == 0))
        return STORE_OK;
    if (result == STORE_OK && item.large && known != 0) {
        result = read_head(call, &item, libraries);
        if (result != STORE_OK || libraries->stamp == known)
            return result;
    }
    if (result == STORE_OK)
        result = store_load(call->txn, &item, &bytes);
    if (result == STORE_OK && !libraries_read_head(libraries, bytes, item.length))
        result = STORE_DAMAGED;
    return result;
}

/* ---- writing ---- */

static bool is_in(const struct libraries *libraries, struct resp_slice name)
{
    struct library library;
    return libraries_find(libraries, name, &library);
}

static enum store_result put(struct call *call, const char *bytes, size_t len,
                             const struct libraries *libraries)
{
    struct store_key key;
    struct libraries_shown shown = shown_of(libraries);
    function_value_key(call, &key, STORE_EXCLUSIVE);
    if (!show_names(libraries, &shown))
        return STORE_NO_MEMORY;
    enum store_result result = store_put(call->txn, &key, 0, bytes, len, STORE_NO_EXPIRY);
    struct libraries_shown *dropped = result == STORE_OK ? &call->effects->libraries : &shown;
    libraries_shown_drop(dropped);
    if (result == STORE_OK)
        call->effects->libraries = shown;
    return result;
}

/* A number that differs from those of earlier changes; the same in every rerun. */
static uint64_t new_number(const struct call *call, uint64_t old, struct resp_slice code)
{
    char digits[SHA1_HEX_LEN + 1];
    uint64_t sum;
    sha1_hex(code.data, code.len, digits);
    memcpy(&sum, digits, sizeof sum);
    struct rng rng = rng_new(call->random_seed ^ sum);
    rng = rng_new(rng_roll(&rng) ^ old);
    return rng_roll(&rng) | 1;
}

enum store_result function_value_clear(struct call *call)
{
    const struct libraries none = {.bytes = ""};
    return put(call, "", 0, &none);
}

/* Stores what was composed: its memory must outlive the run. */
static enum store_result put_composed(struct call *call, const struct resp_writer *value)
{
    struct libraries libraries;
    if (value->failed || !libraries_read_head(&libraries, value->data, value->len))
        return STORE_NO_MEMORY;
    if (libraries.count == 0)
        return function_value_clear(call);
    char *bytes = store_alloc(call->txn, value->len);
    if (bytes == NULL)
        return STORE_NO_MEMORY;
    memcpy(bytes, value->data, value->len);
    return put(call, bytes, value->len, &libraries);
}

enum store_result function_value_remove(struct call *call, const struct libraries *libraries,
                                        struct resp_slice name)
{
    struct resp_writer value;
    struct library library;
    resp_writer_init(&value, 2);
    libraries_begin(&value, new_number(call, libraries->stamp, name));
    for (size_t at = 0; libraries_next(libraries, &at, &library);)
        if (library.name.len != name.len || memcmp(library.name.data, name.data, name.len) != 0)
            libraries_add(&value, &library);
    enum store_result result = put_composed(call, &value);
    resp_writer_free(&value);
    return result;
}

/* ---- loading ---- */

struct addition {
    struct call *call;
    enum function_policy policy;
    uint64_t most;              /* bytes of all libraries */
    struct libraries libraries; /* those that are stored */
    struct resp_writer fresh;   /* those that are added */
    struct resp_slice name;     /* of the last one */
};

/* All of these: false if an error reply was written. */

static bool fits(const struct addition *addition, size_t bytes)
{
    if (bytes <= addition->most)
        return true;
    resp_errorf(addition->call->reply,
                "OOM The libraries would take more than %llu bytes, an eighth of maxmemory",
                (unsigned long long)addition->most);
    return false;
}

static bool fresh_libraries(const struct addition *addition, struct libraries *libraries)
{
    return !addition->fresh.failed &&
           libraries_read_head(libraries, addition->fresh.data, addition->fresh.len);
}

static bool is_new(const struct addition *addition, struct resp_slice name)
{
    struct libraries fresh;
    bool is_known = addition->policy == FUNCTION_LOAD && is_in(&addition->libraries, name);
    if (!is_known && fresh_libraries(addition, &fresh))
        is_known = is_in(&fresh, name);
    if (is_known)
        resp_errorf(addition->call->reply, "ERR Library '%.*s' already exists", (int)name.len,
                    name.data);
    return !is_known;
}

static bool run_code(struct addition *addition, struct library *library)
{
    struct call *call = addition->call;
    struct script_state *state = script_state_get(call->worker);
    struct resp_writer functions;
    if (state == NULL) {
        resp_error(call->reply, "OOM command not allowed when used memory > 'maxmemory'.");
        return false;
    }
    resp_writer_init(&functions, 2);
    bool is_good = script_try_library(state, call, library, &functions);
    library->functions = (struct resp_slice){functions.data, functions.len};
    if (is_good)
        libraries_add(&addition->fresh, library);
    resp_writer_free(&functions);
    return is_good;
}

static bool add_code(struct addition *addition, struct resp_slice code)
{
    struct library library = {.code = code};
    if (!library_read_name(addition->call, code, &library.name) ||
        !is_new(addition, library.name) || !fits(addition, addition->fresh.len + code.len))
        return false;
    library.id = new_number(addition->call, addition->libraries.stamp, code);
    addition->name = library.name;
    return run_code(addition, &library);
}

static bool may_replace(const struct addition *addition, const struct libraries *fresh)
{
    struct library library;
    if (addition->policy != FUNCTION_APPEND)
        return true;
    for (size_t at = 0; libraries_next(fresh, &at, &library);) {
        if (!is_in(&addition->libraries, library.name))
            continue;
        resp_errorf(addition->call->reply, "ERR Library %.*s already exists", (int)library.name.len,
                    library.name.data);
        return false;
    }
    return true;
}

static bool is_count_good(const struct addition *addition, const struct libraries *libraries)
{
    if (libraries->count <= FUNCTION_LIBRARIES_MAX)
        return true;
    resp_errorf(addition->call->reply, "ERR There can be at most %d libraries",
                FUNCTION_LIBRARIES_MAX);
    return false;
}

static bool is_consistent(const struct addition *addition, const struct resp_writer *value)
{
    struct libraries libraries = {.count = 0};
    struct resp_slice name;
    int is_twice = -1;
    if (!value->failed && libraries_read_head(&libraries, value->data, value->len))
        is_twice = libraries_find_twice(&libraries, &name);
    if (is_twice < 0)
        resp_error(addition->call->reply,
                   "OOM command not allowed when used memory > 'maxmemory'.");
    else if (is_twice > 0)
        resp_errorf(addition->call->reply, "ERR Function %.*s already exists", (int)name.len,
                    name.data);
    return is_twice == 0 && fits(addition, value->len) && is_count_good(addition, &libraries);
}

/* The libraries that stay, then the new ones. */
static bool compose(const struct addition *addition, struct resp_writer *value)
{
    struct libraries fresh;
    struct library library;
    if (!fresh_libraries(addition, &fresh)) {
        resp_error(addition->call->reply,
                   "OOM command not allowed when used memory > 'maxmemory'.");
        return false;
    }
    if (!may_replace(addition, &fresh))
        return false;
    libraries_begin(value, fresh.stamp);
    if (addition->policy != FUNCTION_ALONE)
        for (size_t at = 0; libraries_next(&addition->libraries, &at, &library);)
            if (!is_in(&fresh, library.name))
                libraries_add(value, &library);
    for (size_t at = 0; libraries_next(&fresh, &at, &library);)
        libraries_add(value, &library);
    return is_consistent(addition, value);
}

static uint64_t stamp_of(const struct addition *addition, const struct resp_slice *codes,
                         size_t count)
{
    uint64_t stamp = addition->libraries.stamp + (uint64_t)addition->policy + 1;
    for (size_t i = 0; i < count; i++)
        stamp = new_number(addition->call, stamp, codes[i]);
    return stamp | 1;
}

enum store_result function_value_add(struct call *call, const struct resp_slice *codes,
                                     size_t count, enum function_policy policy,
                                     struct resp_slice *name)
{
    uint64_t memory = atomic_load_explicit(&call->server->memory_bound, memory_order_relaxed);
    struct addition addition = {
        .call = call, .policy = policy, .most = memory / FUNCTION_VALUE_SHARE};
    struct resp_writer value;
    *name = (struct resp_slice){NULL, 0};
    enum store_result result = function_value_read(call, 0, &addition.libraries);
    if (result != STORE_OK)
        return result;
    resp_writer_init(&value, 2);
    resp_writer_init(&addition.fresh, 2);
    libraries_begin(&addition.fresh, stamp_of(&addition, codes, count));
    bool is_good = is_count_good(&addition, &(struct libraries){.count = (uint32_t)count});
    for (size_t i = 0; i < count && is_good; i++)
        is_good = add_code(&addition, codes[i]);
    if (is_good && compose(&addition, &value)) {
        result = put_composed(call, &value);
        *name = count > 0 ? addition.name : (struct resp_slice){"", 0};
    }
    resp_writer_free(&value);
    resp_writer_free(&addition.fresh);
    return result;
}

/* ---- the start ---- */

struct show_request {
    struct store_request store;
    struct server *server;
    bool is_over;
};

static enum store_result show_stored(struct store_txn *txn, struct store_request *request)
{
    struct server *server = ((struct show_request *)request)->server;
    struct libraries libraries;
    struct store_item item;
    char head[LIBRARIES_HEAD];
    const char *bytes;
    enum store_result result = store_get(txn, request->keys, &item);
    if (result != STORE_OK || item.length < sizeof head)
        return result;
    result = store_read(txn, &item, 0, sizeof head, head);
    if (result != STORE_OK || !libraries_read_head(&libraries, head, item.length))
        return result;
    struct libraries_shown shown = shown_of(&libraries);
    result = store_load(txn, &item, &bytes);
    if (result == STORE_OK) {
        libraries.bytes = bytes;
        if (!show_names(&libraries, &shown)) /* then calls lock and wait more than they need */
            result = STORE_NO_MEMORY;
    }
    if (result != STORE_WAIT)
        server_show_libraries(server, &shown, 0);
    return result;
}

static void show_ended(struct store_request *request, enum store_result result)
{
    (void)result; /* who calls a function gets the error */
    ((struct show_request *)request)->is_over = true;
}

void function_value_show_stored(struct server *server, struct worker *worker)
{
    const struct timespec while_reading = {.tv_nsec = 50000};
    const struct call call = {.server = server};
    struct store_key key;
    function_value_key(&call, &key, STORE_SHARED);
    struct show_request show = {.store = {.run = show_stored,
                                          .done = show_ended,
                                          .keys = &key,
                                          .key_count = 1,
                                          .now_ms = store_clock_ms(server->store)},
                                .server = server};
    show.is_over = store_execute(worker->store, &show.store) != STORE_WAIT;
    while (!show.is_over) {
        store_submit(worker->store);
        nanosleep(&while_reading, NULL);
        store_poll(worker->store);
    }
}
