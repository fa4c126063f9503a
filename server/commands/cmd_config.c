/*
 * CONFIG: shows and changes directives. A CONFIG SET of several directives is validated as a whole
 * before anything changes.
 */
#include "server/commands/commands.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#include "server/net/client_memory.h"
#include "server/config/config_directive.h"
#include "server/config/config_file.h"
#include "server/config/config_rewrite.h"
#include "server/config/log.h"
#include "server/base/glob.h"
#include "server/commands/info.h"
#include "server/commands/protection.h"
#include "server/pubsub/keyspace_events.h"
#include "server/core/commandstats.h"
#include "server/core/process.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/core/call.h"
#include "server/core/latency.h"
#include "server/exec/tracking.h"
#include "server/exec/slowlog.h"

/* ---- GET ---- */

static bool is_pattern(struct resp_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (strchr("*?[", text.data[i]) != NULL && text.data[i] != '\0')
            return true;
    return false;
}

/* The name as it is to be shown: as it was asked for, unless it was by a pattern. False: it was not
 * asked for. */
static bool find_shown(const struct call *call, const char *name, struct resp_slice *shown)
{
    bool is_matched = false;
    *shown = (struct resp_slice){name, name != NULL ? strlen(name) : 0};
    for (size_t i = 2; name != NULL && i < call->argc; i++) {
        struct resp_slice asked = call->argv[i];
        if (is_pattern(asked)) {
            is_matched = is_matched || glob_match(asked.data, asked.len, name, shown->len, true);
        } else if (asked.len == shown->len && strncasecmp(asked.data, name, asked.len) == 0) {
            *shown = asked;
            return true;
        }
    }
    return is_matched;
}

enum store_result cmd_config_get(struct call *call)
{
    struct config *config = &call->server->config;
    uint64_t count = 0;
    struct resp_slice shown;
    for (size_t row = 0; row < directive_count; row++)
        count += (uint64_t)find_shown(call, directive_table[row].name, &shown) +
                 (uint64_t)find_shown(call, directive_table[row].alias, &shown);
    resp_map(call->reply, count);
    for (size_t row = 0; row < directive_count && count > 0; row++) {
        const char *names[] = {directive_table[row].name, directive_table[row].alias};
        for (size_t i = 0; i < 2; i++) {
            if (!find_shown(call, names[i], &shown))
                continue;
            char *value = config_show(config, row);
            if (value == NULL)
                return STORE_NO_MEMORY;
            resp_bulk(call->reply, shown.data, shown.len);
            resp_bulk_string(call->reply, value);
            free(value);
        }
    }
    return STORE_OK;
}

/* ---- SET ---- */

struct change {
    size_t row;
    struct config_value value;
};

static bool refuse(struct call *call, struct resp_slice name, const char *why)
{
    resp_errorf(call->reply, "ERR CONFIG SET failed (possibly related to argument '%.*s') - %s",
                name.len < 128 ? (int)name.len : 128, name.data, why);
    return false;
}

static bool find_row(struct call *call, struct resp_slice name, size_t *row)
{
    char text[64];
    *row = directive_count;
    if (name.len < sizeof text && memchr(name.data, '\0', name.len) == NULL) {
        memcpy(text, name.data, name.len);
        text[name.len] = '\0';
        *row = directive_find(text);
    }
    if (*row < directive_count)
        return true;
    resp_errorf(call->reply, "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
                name.len < INT_MAX ? (int)name.len : INT_MAX, name.data);
    return false;
}

static bool is_repeated(const struct call *call, size_t at)
{
    for (size_t i = 2; i < at; i += 2)
        if (call->argv[i].len == call->argv[at].len &&
            strncasecmp(call->argv[i].data, call->argv[at].data, call->argv[at].len) == 0)
            return true;
    return false;
}

/* The first invalid name ends it, as in Redis: since directives do not repeat, it is not far. */
static bool find_rows(struct call *call, struct change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct resp_slice name = call->argv[2 + i * 2];
        if (!find_row(call, name, &changes[i].row))
            return false;
        uint8_t flags = directive_table[changes[i].row].flags;
        if ((flags & DIRECTIVE_FIXED) != 0)
            return refuse(call, name, "can't set immutable config");
        if ((flags & DIRECTIVE_PROTECTED) != 0 &&
            !protection_allows(call, CONFIG_ENABLE_PROTECTED_CONFIGS))
            return refuse(call, name, "can't set protected config");
        if (is_repeated(call, 2 + i * 2))
            return refuse(call, name, "duplicate parameter");
    }
    return true;
}

/* More clients need more file descriptors, which the system may refuse. */
static bool allow_clients(const struct config *config, int64_t clients,
                          char error[DIRECTIVE_ERROR_MAX])
{
    struct rlimit limit;
    rlim_t own = process_own_descriptors(config), wanted = (rlim_t)clients + own;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return true;
    struct rlimit raised = {.rlim_cur = wanted,
                            .rlim_max = limit.rlim_max > wanted ? limit.rlim_max : wanted};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
        return true;
    snprintf(error, DIRECTIVE_ERROR_MAX,
             "The operating system is not able to handle the specified number of clients, try "
             "with %lld",
             (long long)limit.rlim_max - (long long)own);
    return false;
}

static bool has_value(struct config *config, const struct change *change)
{
    char *now = config_show(config, change->row);
    bool same = change->value.text == NULL
                    ? config_number(config, (enum config_id)change->row) == change->value.number
                    : now != NULL && strcmp(now, change->value.text) == 0;
    free(now);
    return same;
}

static bool is_kept(struct config *config, const struct change *change,
                    char error[DIRECTIVE_ERROR_MAX])
{
    bool same = has_value(config, change);
    if (!same)
        snprintf(error, DIRECTIVE_ERROR_MAX, "can't set immutable config");
    return same;
}

static bool parse_change(struct call *call, size_t at, struct change *change)
{
    char error[DIRECTIVE_ERROR_MAX];
    struct resp_slice given = call->argv[at + 1];
    if (memchr(given.data, '\0', given.len) != NULL)
        return refuse(call, call->argv[at], "argument contains a zero byte");
    char *text = strndup(given.data, given.len);
    if (text == NULL)
        return refuse(call, call->argv[at], "out of memory");
    bool good =
        directive_parse(&call->server->config, change->row, 1, &text, &change->value, error);
    free(text);
    if (good && (directive_table[change->row].flags & DIRECTIVE_KEPT) != 0)
        good = is_kept(&call->server->config, change, error);
    if (good && change->row == CONFIG_MAXCLIENTS)
        good = allow_clients(&call->server->config, change->value.number, error);
    return good || refuse(call, call->argv[at], error);
}

/* Notifies the parts that do not read their number from the configuration at each access. */
static void make_effective(struct server *server, size_t row)
{
    const struct config *config = &server->config;
    switch (row) {
    case CONFIG_APPENDFSYNC:
        store_set_sync(server->store, (enum store_sync)config_number(config, CONFIG_APPENDFSYNC));
        break;
    case CONFIG_MAXMEMORY:
        store_set_memory(server->store,
                         server_memory((uint64_t)config_number(config, CONFIG_MAXMEMORY)));
        client_memory_set_bounds(server);
        break;
    case CONFIG_MAXMEMORY_CLIENTS:
        client_memory_set_bounds(server);
        break;
    case CONFIG_MAXSTORE:
        store_set_max_store(server->store, (uint64_t)config_number(config, CONFIG_MAXSTORE));
        break;
    case CONFIG_MAXMEMORY_POLICY:
    case CONFIG_MAXMEMORY_SAMPLES:
    case CONFIG_LFU_LOG_FACTOR:
    case CONFIG_LFU_DECAY_TIME:
        server_set_policy(server);
        break;
    case CONFIG_SLOWLOG_LOG_SLOWER_THAN:
    case CONFIG_LATENCY_MONITOR_THRESHOLD:
        slowlog_follow(server);
        break;
    case CONFIG_TRACKING_TABLE_MAX_KEYS:
        tracking_follow(server->tracking);
        break;
    case CONFIG_NOTIFY_KEYSPACE_EVENTS:
        keyspace_events_follow(server->keyspace_events);
        break;
    default:
        break;
    }
}

/* ---- changes that the system may refuse: tried before any value changes ---- */

static const struct change *change_of(const struct change *changes, size_t count, size_t row)
{
    for (size_t i = 0; i < count; i++)
        if (changes[i].row == row)
            return &changes[i];
    return NULL;
}

/* A directive's number or text after the change. */
static int64_t coming_number(const struct config *config, const struct change *changes,
                             size_t count, enum config_id id)
{
    const struct change *change = change_of(changes, count, id);
    return change != NULL ? change->value.number : config_number(config, id);
}

static void coming_text(struct config *config, const struct change *changes, size_t count,
                        enum config_id id, char *to, size_t size)
{
    const struct change *change = change_of(changes, count, id);
    if (change != NULL)
        snprintf(to, size, "%s", change->value.text);
    else
        config_text(config, id, to, size);
}

static bool adjust_oom_score(struct call *call, const struct change *changes, size_t count)
{
    struct config *config = &call->server->config;
    char values[64];
    int64_t mode = coming_number(config, changes, count, CONFIG_OOM_SCORE_ADJ);
    coming_text(config, changes, count, CONFIG_OOM_SCORE_ADJ_VALUES, values, sizeof values);
    return process_adjust_oom_score(call->server, mode, values);
}

/* The position of the first of two directives among the changes; `count` if neither is there. */
static size_t first_of(const struct change *changes, size_t count, size_t one, size_t other)
{
    size_t at = 0;
    while (at < count && changes[at].row != one && changes[at].row != other)
        at++;
    return at;
}

static bool try_oom_score(struct call *call, const struct change *changes, size_t count)
{
    size_t at = first_of(changes, count, CONFIG_OOM_SCORE_ADJ, CONFIG_OOM_SCORE_ADJ_VALUES);
    return at == count || adjust_oom_score(call, changes, count) ||
           refuse(call, call->argv[2 + at * 2],
                  "Failed to apply new oom_score_adj configuration, check server logs.");
}

static bool try_listener(struct call *call, const struct change *changes, size_t count)
{
    struct config *config = &call->server->config;
    char addresses[4096], before[4096];
    size_t at = first_of(changes, count, CONFIG_PORT, CONFIG_BIND);
    int64_t port = coming_number(config, changes, count, CONFIG_PORT);
    coming_text(config, changes, count, CONFIG_BIND, addresses, sizeof addresses);
    config_text(config, CONFIG_BIND, before, sizeof before);
    if (port == config_number(config, CONFIG_PORT) && strcmp(addresses, before) == 0)
        return true;
    return call->worker->hooks->move_listener(call->server->listener, (int)port, addresses) ||
           refuse(call, call->argv[2 + at * 2],
                  changes[at].row == CONFIG_PORT
                      ? "Unable to listen on this port. Check server logs."
                      : "Failed to bind to specified addresses.");
}

static bool try_overflow(struct call *call, const struct change *changes, size_t count)
{
    if (!try_oom_score(call, changes, count))
        return false;
    if (try_listener(call, changes, count))
        return true;
    (void)adjust_oom_score(call, NULL, 0); /* restores the old value */
    return false;
}

/* As at the start, once for each directive; tools that set all of them again change nothing. */
static void warn_if_ignored(struct server *server, const struct change *change)
{
    if (has_value(&server->config, change))
        return;
    const char *text = config_note_ignored(&server->config, change->row);
    if (text != NULL && text[0] != '\0')
        log_line(&server->log, CONFIG_LOG_WARNING, "%s", text);
}

static bool change_all(struct call *call, struct change *changes, size_t count)
{
    bool good = find_rows(call, changes, count);
    for (size_t i = 0; i < count && good; i++)
        good = parse_change(call, 2 + i * 2, &changes[i]);
    good = good && try_overflow(call, changes, count);
    for (size_t i = 0; i < count && good; i++) {
        warn_if_ignored(call->server, &changes[i]);
        config_take(&call->server->config, changes[i].row, &changes[i].value);
        make_effective(call->server, changes[i].row);
    }
    return good;
}

enum store_result cmd_config_set(struct call *call)
{
    if (call->argc % 2 != 0) {
        call_syntax_error(call);
        return STORE_OK;
    }
    size_t count = (call->argc - 2) / 2;
    struct change *changes = calloc(count, sizeof *changes);
    if (changes == NULL)
        return STORE_NO_MEMORY;
    pthread_mutex_lock(&call->server->config.changing);
    bool good = change_all(call, changes, count);
    pthread_mutex_unlock(&call->server->config.changing);
    if (good)
        resp_ok(call->reply);
    for (size_t i = 0; i < count; i++)
        free(changes[i].value.text);
    free(changes);
    return STORE_OK;
}

/* ---- the rest ---- */

enum store_result cmd_config_rewrite(struct call *call)
{
    char error[DIRECTIVE_ERROR_MAX];
    if (call->server->config.file == NULL)
        resp_error(call->reply, "ERR The server is running without a config file");
    else if (config_rewrite(&call->server->config, error))
        resp_ok(call->reply);
    else
        resp_errorf(call->reply, "ERR Rewriting config file: %s", error);
    return STORE_OK;
}

static void clear_counters(_Atomic uint64_t *counters, size_t count)
{
    for (size_t i = 0; i < count; i++)
        atomic_store_explicit(&counters[i], 0, memory_order_relaxed);
}

/* Broadcast to all workers, because only a worker itself writes its counters. */
enum store_result cmd_config_resetstat(struct call *call)
{
    struct worker *worker = call->worker;
    _Static_assert(sizeof worker->counters % sizeof(uint64_t) == 0 &&
                       sizeof worker->command_counters[0] % sizeof(uint64_t) == 0,
                   "both consist of counters alone");
    clear_counters((_Atomic uint64_t *)&worker->counters,
                   sizeof worker->counters / sizeof(uint64_t));
    clear_counters((_Atomic uint64_t *)worker->command_counters,
                   call->server->commands.count * sizeof worker->command_counters[0] /
                       sizeof(uint64_t));
    errorstats_clear(&worker->errors);
    command_times_clear(worker);
    if (!call->broadcast_last)
        return STORE_OK;
    clear_counters(&call->server->total_connections, 1);
    clear_counters(&call->server->rejected_connections, 1);
    info_forget_loop_time(call->server);
    store_reset_counters(call->server->store);
    resp_ok(call->reply);
    return STORE_OK;
}

enum store_result cmd_config_help(struct call *call)
{
    static const char *const lines[] = {
        "GET <pattern> [<pattern> ...]",
        "    Show the directives that match a pattern.",
        "RESETSTAT",
        "    Set INFO's counters to zero.",
        "REWRITE",
        "    Write the directives as they are now into the configuration file.",
        "SET <directive> <value> [<directive> <value> ...]",
        "    Change directives, all or none.",
        NULL,
    };
    call_help(call, lines);
    return STORE_OK;
}
