/*
 * Commands inside a command.
 *
 * Invariants:
 * 1. Each run begins with the session state of the first run: commands that change it (SELECT,
 *    HELLO) do so in every run.
 * 2. Deferred commands stand in the list in the order of their gaps.
 * 3. What a call keeps for the next run (progress, a reply) is only used if the same has been
 *    written to its keys before it.
 * 4. Of a script's commands, the list holds only those the next run must know about, in the order
 *    of their places. The others are counted in tallies, which are reset with each run.
 */
#include "server/exec/nested.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"
#include "storage/base/checks.h"
#include "server/core/commandstats.h"
#include "server/core/latency.h"
#include "server/exec/monitor.h"
#include "server/exec/request_reply.h"
#include "server/exec/request.h"
#include "server/exec/runner_reply.h"
#include "server/core/session.h"
#include "server/exec/slowlog.h"
#include "server/exec/tracking.h"
#include "server/exec/upload.h"
#include "server/exec/watch.h"
#include "server/core/call.h"

#define FEW_KEYS 8
#define SLOW_BYTES_MAX (256 * 1024) /* of a script's commands kept for SLOWLOG */
#define KEPT_SHORT (64 * 1024)
#define RESTARTS_MOST 100
#define HOLD_MIN (16 * 1024) /* shorter arguments are copied: a held block may be much larger */

/* Arguments of a command that are allocated apart from it, since they may outlive it. */
struct nested_args {
    struct nested_args *next;
    uint64_t bytes; /* of memory */
    struct resp_slice argv[];
};

/* INFO's statistics of commands that were dropped from the list or refused, one per command and
 * outcome. */
struct nested_calls_tally {
    const struct command *command;
    uint64_t calls, nsec, hits, misses;
    char error[ERRORSTATS_CODE_MAX + 2]; /* its code */
    bool is_refused;                     /* the command, which may be NULL, did not run */
};

struct nested_calls *nested_calls_new(void)
{
    struct nested_calls *nested_calls = calloc(1, sizeof *nested_calls);
    if (nested_calls == NULL)
        return NULL;
    TAILQ_INIT(&nested_calls->list);
    resp_writer_init(&nested_calls->reply, 2);
    return nested_calls;
}

static void nested_free(struct nested *nested)
{
    struct call *call = &nested->call;
    call_drop_progress(call);
    if (nested->collected.bytes > 0)
        collected_set(&nested->collected, 0);
    free(nested->kept);
    nested_calls_free(call->nested_calls);
    upload_free(call->upload);
    input_buffer_release(nested->block);
    free(nested->args);
    free(nested);
}

static void drop_args(struct nested_calls *nested_calls)
{
    for (struct nested_args *args; (args = nested_calls->args) != NULL;) {
        nested_calls->args = args->next;
        assert(nested_calls->bytes >= args->bytes);
        nested_calls->bytes -= args->bytes;
        free(args);
    }
}

void nested_calls_free(struct nested_calls *nested_calls)
{
    if (nested_calls == NULL)
        return;
    for (struct nested *nested; (nested = TAILQ_FIRST(&nested_calls->list)) != NULL;) {
        TAILQ_REMOVE(&nested_calls->list, nested, link);
        nested_free(nested);
    }
    drop_args(nested_calls);
    declared_keys_free(&nested_calls->declared_keys);
    free(nested_calls->tallies);
    watch_free(nested_calls->watch);
    resp_writer_free(&nested_calls->reply);
    free(nested_calls);
}

static size_t length_of(size_t argc, const struct resp_slice *argv)
{
    size_t bytes = 0;
    for (size_t i = 0; i < argc; i++)
        bytes += argv[i].len;
    return bytes;
}

/* The bytes follow the slices. */
static void copy_arguments(struct resp_slice *copies, size_t argc, const struct resp_slice *argv)
{
    char *to = (char *)&copies[argc];
    for (size_t i = 0; i < argc; i++) {
        if (argv[i].len > 0)
            memcpy(to, argv[i].data, argv[i].len);
        copies[i] = (struct resp_slice){.data = to, .len = argv[i].len};
        to += argv[i].len;
    }
}

static void count(struct nested_calls *nested_calls, const struct nested *nested)
{
    nested_calls->count++;
    nested_calls->bytes += nested->bytes;
}

/* The call after `before`; NULL: the first one. */
static struct nested *call_after(const struct nested_calls *nested_calls,
                                 const struct nested *before)
{
    return before == NULL ? TAILQ_FIRST(&nested_calls->list) : TAILQ_NEXT(before, link);
}

static void insert_after(struct nested_calls *nested_calls, struct nested *before,
                         struct nested *nested)
{
    if (before == NULL)
        TAILQ_INSERT_HEAD(&nested_calls->list, nested, link);
    else
        TAILQ_INSERT_AFTER(&nested_calls->list, before, nested, link);
    count(nested_calls, nested);
}

struct nested *nested_calls_add(struct nested_calls *nested_calls, const struct command *command,
                                size_t argc, const struct resp_slice *argv,
                                struct input_buffer *block)
{
    size_t head = sizeof(struct nested) + argc * sizeof *argv, bytes = length_of(argc, argv);
    bool is_held = block != NULL && bytes >= HOLD_MIN;
    struct nested *nested = malloc(head + (is_held ? 0 : bytes));
    if (nested == NULL)
        return NULL;
    *nested = (struct nested){
        .call = {.command = command, .argc = argc, .argv = nested->argv, .keys = NULL}};
    if (is_held) {
        nested->block = input_buffer_hold(block);
        memcpy(nested->argv, argv, argc * sizeof *argv);
    } else {
        copy_arguments(nested->argv, argc, argv);
    }
    nested->bytes = head + bytes;
    TAILQ_INSERT_TAIL(&nested_calls->list, nested, link);
    count(nested_calls, nested);
    return nested;
}

uint64_t nested_argument_bytes(const struct nested *nested)
{
    return length_of(nested->call.argc, nested->argv);
}

void nested_calls_take_upload(struct nested_calls *nested_calls, struct nested *nested,
                              struct call *from)
{
    nested->call.upload = from->upload;
    from->upload = NULL;
    if (nested->call.upload == NULL)
        return;
    nested->bytes += nested->call.upload->length;
    nested_calls->bytes += nested->call.upload->length;
}

static void settle(struct nested *nested, struct call *outer)
{
    struct call *call = &nested->call;
    struct nested_calls *nested_calls = outer->nested_calls;
    call->outer = outer;
    call->server = outer->server;
    call->worker = outer->worker;
    call->session = outer->session;
    call->effects = outer->effects;
    call->now_ms = outer->now_ms;
    nested_calls->random = nested_calls->random * 6364136223846793005u + 1442695040888963407u;
    call->random_seed = nested_calls->random;
}

void nested_calls_settle(struct nested_calls *nested_calls, struct call *outer)
{
    assert(outer->nested_calls == NULL);
    nested_calls->random = outer->random_seed;
    outer->nested_calls = nested_calls;
    struct nested *nested;
    TAILQ_FOREACH (nested, &nested_calls->list, link)
        settle(nested, outer);
    nested_calls->next_deferred = TAILQ_FIRST(&nested_calls->list);
}

/* ---- within the transaction ---- */

/* Asserts that the list and its counters agree, and invariant 4's order. */
static void nested_calls_check(const struct nested_calls *nested_calls)
{
    const struct nested *nested, *last = NULL;
    uint32_t calls = 0;
    uint64_t bytes = 0;
    TAILQ_FOREACH (nested, &nested_calls->list, link) {
        assert(last == NULL || nested->place == 0 || nested->place > last->place);
        calls++;
        bytes += nested->bytes;
        last = nested;
    }
    for (const struct nested_args *args = nested_calls->args; args != NULL; args = args->next)
        bytes += args->bytes;
    assert(calls == nested_calls->count && bytes == nested_calls->bytes);
}

void nested_calls_undo(const struct call *outer)
{
    const struct nested_calls *nested_calls = outer->nested_calls;
    if (nested_calls == NULL || !nested_calls->has_begun || outer->command->role != ROLE_EXEC)
        return;
    outer->session->db = nested_calls->db;
    outer->session->resp_version = nested_calls->resp_version;
}

void nested_calls_begin(struct call *outer)
{
    struct nested_calls *nested_calls = outer->nested_calls;
    struct session *session = outer->session;
    if (!nested_calls->has_begun) {
        nested_calls->has_begun = true;
        nested_calls->db = session->db;
        nested_calls->resp_version = session->resp_version;
    }
    session->db = nested_calls->db;
    session->resp_version = outer->reply->version = nested_calls->resp_version;
    nested_calls->passed = nested_calls->before = NULL;
    nested_calls->place = 0;
    if (outer->outer == NULL)
        written_clear(&nested_calls->written);
    nested_calls->tally_count = 0;
    nested_calls->slow_bytes = 0;
    nested_calls->error_is_counted = nested_calls->defers = nested_calls->has_effects = false;
    drop_args(nested_calls); /* of a run whose writes were discarded */
    if (storage_checks_enabled())
        nested_calls_check(nested_calls);
}

static bool is_same_call(const struct call *call, const struct command *command, size_t argc,
                         const struct resp_slice *argv)
{
    bool is_same = call->command == command && call->argc == argc;
    for (size_t i = 0; i < argc && is_same; i++)
        is_same = call->argv[i].len == argv[i].len &&
                  (argv[i].len == 0 || memcmp(call->argv[i].data, argv[i].data, argv[i].len) == 0);
    return is_same;
}

static void drop(struct nested_calls *nested_calls, struct nested *nested)
{
    TAILQ_REMOVE(&nested_calls->list, nested, link);
    nested_calls->count--;
    nested_calls->bytes -= nested->bytes;
    nested_calls->restarts += nested->call.progress != NULL || nested->kept != NULL;
    nested_free(nested);
}

static void drop_all(struct nested_calls *nested_calls)
{
    uint32_t restarts = nested_calls->restarts;
    for (struct nested *nested; (nested = TAILQ_FIRST(&nested_calls->list)) != NULL;)
        drop(nested_calls, nested);
    nested_calls->restarts = restarts;
}

static void drop_kept(struct nested *nested)
{
    struct nested_calls *nested_calls = nested->call.outer->nested_calls;
    if (nested->kept != NULL && nested->kept_len <= KEPT_SHORT) {
        nested->bytes -= nested->kept_len;
        nested_calls->bytes -= nested->kept_len;
    }
    if (nested->collected.bytes > 0)
        collected_set(&nested->collected, 0);
    free(nested->kept);
    nested->kept = NULL;
    nested->kept_len = 0;
}

/* What the call has found in earlier runs is dropped. */
static void begin_anew(struct nested *nested)
{
    drop_kept(nested);
    call_drop_progress(&nested->call);
    if (nested->call.nested_calls != NULL)
        drop_all(nested->call.nested_calls);
}

void nested_calls_begin_anew(struct nested_calls *nested_calls)
{
    nested_calls->is_checked = false;
    struct nested *nested;
    TAILQ_FOREACH (nested, &nested_calls->list, link) {
        begin_anew(nested);
        nested->failure = STORE_OK;
        nested->has_run = nested->is_ended = false;
    }
}

static struct nested *new_apart(const struct command *command, size_t argc,
                                const struct resp_slice *argv)
{
    size_t bytes = argc * sizeof *argv + length_of(argc, argv);
    struct nested *nested = malloc(sizeof *nested);
    struct nested_args *args = malloc(sizeof *args + bytes);
    if (nested == NULL || args == NULL) {
        free(nested);
        free(args);
        return NULL;
    }
    copy_arguments(args->argv, argc, argv);
    args->bytes = sizeof *args + bytes;
    *nested = (struct nested){.call = {.command = command, .argc = argc, .argv = args->argv},
                              .args = args,
                              .bytes = sizeof *nested + args->bytes};
    return nested;
}

struct nested *nested_calls_call(struct call *outer, const struct command *command, size_t argc,
                                 const struct resp_slice *argv)
{
    struct nested_calls *nested_calls = outer->nested_calls;
    struct nested *next = call_after(nested_calls, nested_calls->passed);
    uint64_t place = nested_calls->place++;
    if (next != NULL && next->place == place && !is_same_call(&next->call, command, argc, argv)) {
        drop(nested_calls, next); /* another call than in the previous run */
        next = NULL;
    }
    if (next == NULL || next->place != place) {
        next = new_apart(command, argc, argv);
        if (next == NULL)
            return NULL;
        next->place = place;
        insert_after(nested_calls, nested_calls->passed, next);
        nested_calls->random = outer->random_seed + place; /* the same in every run */
        settle(next, outer);
    }
    nested_calls->before = nested_calls->passed;
    nested_calls->passed = next;
    return next;
}

void nested_calls_end(struct nested_calls *nested_calls)
{
    struct nested *left = call_after(nested_calls, nested_calls->passed);
    for (; left != NULL; left = TAILQ_NEXT(left, link))
        left->has_run = false;
}

/* ---- dropping calls ---- */

/* The tally of the same command and error ("-CODE ...", or empty); NULL: out of memory. */
static struct nested_calls_tally *tally_of(struct nested_calls *nested_calls,
                                           const struct command *command, const char *reply,
                                           bool is_refused)
{
    char error[sizeof nested_calls->tallies->error] = "";
    size_t len = strcspn(reply, " \r\n");
    memcpy(error, reply, len < sizeof error ? len : sizeof error - 1);
    for (uint32_t i = 0; i < nested_calls->tally_count; i++)
        if (nested_calls->tallies[i].command == command &&
            nested_calls->tallies[i].is_refused == is_refused &&
            strcmp(nested_calls->tallies[i].error, error) == 0)
            return &nested_calls->tallies[i];
    if (!array_reserve(&nested_calls->tallies, &nested_calls->tally_capacity,
                       nested_calls->tally_count + 1, sizeof *nested_calls->tallies))
        return NULL;
    struct nested_calls_tally *tally = &nested_calls->tallies[nested_calls->tally_count++];
    *tally = (struct nested_calls_tally){.command = command, .is_refused = is_refused};
    memcpy(tally->error, error, sizeof error);
    return tally;
}

void nested_calls_refuse(struct nested_calls *nested_calls, const struct command *command,
                         const char *error)
{
    struct nested_calls_tally *tally = tally_of(nested_calls, command, error, true);
    if (tally != NULL) /* else INFO does not count it */
        tally->calls++;
}

/* Calls to be shown by SLOWLOG are kept until the end, up to a bound. */
static bool stays_for_slowlog(struct nested_calls *nested_calls, const struct nested *nested)
{
    if (nested->slow_from == 0 || !slowlog_is_slow(nested->call.server, nested->took_ns) ||
        nested_calls->slow_bytes + nested->bytes > SLOW_BYTES_MAX)
        return false;
    nested_calls->slow_bytes += nested->bytes;
    return true;
}

void nested_calls_forget(struct nested_calls *nested_calls, bool refers)
{
    struct nested *nested = nested_calls->passed;
    assert(nested != NULL && nested->has_run);
    const struct call *call = &nested->call;
    bool is_known = call->progress != NULL || nested->kept != NULL || nested->failure != STORE_OK ||
                    stays_for_slowlog(nested_calls, nested);
    struct nested_calls_tally *tally =
        is_known ? NULL : tally_of(nested_calls, call->command, nested->error, false);
    if (tally == NULL)
        return;
    tally->calls++;
    tally->nsec += nested->nsec;
    tally->hits += call->hits;
    tally->misses += call->misses;
    TAILQ_REMOVE(&nested_calls->list, nested, link);
    nested_calls->count--;
    nested_calls->passed = nested_calls->before;
    nested_calls->bytes -= nested->bytes;
    if (refers) {
        nested->args->next = nested_calls->args;
        nested_calls->args = nested->args;
        nested_calls->bytes += nested_calls->args->bytes;
        nested->args = NULL;
    }
    nested_free(nested);
}

/* Most commands use the first key of the outer command: its hash is reused. */
static const struct store_key *find_known(const struct store_request *request,
                                          const struct call *call)
{
    size_t at = command_first_key(call->command, call->argc, call->argv);
    if (at == 0 || at >= call->argc || request->key_count == 0)
        return NULL;
    const struct store_key *first = &request->keys[0];
    const struct resp_slice *name = &call->argv[at];
    return first->len == name->len && memcmp(first->data, name->data, name->len) == 0 ? first
                                                                                      : NULL;
}

/* The transaction keeps the keys, but not their spare capacity. */
static bool table_keys(struct call *call, const struct store_request *request)
{
    struct store_key few[FEW_KEYS], *keys = few;
    struct store_txn *txn = call->outer->txn;
    size_t most = call_most_keys(call->command, call->argc);
    bool is_short = most <= FEW_KEYS;
    if (!is_short)
        keys = store_alloc(txn, most * sizeof *keys);
    if (keys == NULL)
        return false;
    call->key_count = call_table_keys(call->server->store, call->command, call->argc, call->argv,
                                      call->session->db, find_known(request, call), keys);
    if (is_short) {
        keys = store_alloc(txn, call->key_count * sizeof *keys);
        if (keys != NULL)
            memcpy(keys, few, call->key_count * sizeof *few);
    }
    call->keys = keys;
    return keys != NULL;
}

enum store_result nested_declare(struct nested *nested)
{
    struct call *call = &nested->call;
    struct request *request = request_of_call(call);
    if (!table_keys(call, &request->store))
        return STORE_NO_MEMORY;
    if (request->store.scope == STORE_SCOPE_ALL)
        return STORE_OK;
    struct declared_keys *declared_keys = &request->call.nested_calls->declared_keys;
    bool is_good = command_scope(call->command) == STORE_SCOPE_KEYS;
    for (uint32_t i = 0; i < call->key_count && is_good; i++)
        is_good =
            declared_keys_include(declared_keys, call->server, &request->store, &call->keys[i]);
    if (is_good)
        return STORE_OK;
    request->wants_all = true;
    return STORE_INVALID;
}

/* The time for SLOWLOG spans all runs until the command first ends; it is not measured again when a
 * later command has to wait. */
static void begin_time(struct nested *nested)
{
    struct call *outer = nested->call.outer;
    if (nested->slow_from != 0)
        return;
    bool is_first = outer->command->role == ROLE_EXEC && !outer->nested_calls->wait_is_counted;
    nested->slow_from = is_first ? request_of_call(outer)->began_ns : slowlog_clock(outer->server);
    outer->nested_calls->wait_is_counted = true;
}

static void end_time(struct nested *nested)
{
    if (nested->slow_from == 0 || nested->is_timed)
        return;
    nested->took_ns = slowlog_since(nested->call.server, nested->slow_from);
    nested->is_timed = true;
}

static enum store_result run_timed(struct nested *nested)
{
    struct call *call = &nested->call;
    uint32_t weight = commandstats_weight(call->worker, call->command);
    begin_time(nested);
    store_count_access(call->txn, call_counts_access(call));
    uint64_t began = weight > 0 ? commandstats_clock() : 0;
    enum store_result result = call_run(call);
    nested->nsec = weight > 0 ? weight * (commandstats_clock() - began) : 0;
    nested->weight = weight;
    return result;
}

static void note_error(struct nested *nested, const char *reply, size_t len)
{
    bool is_error = len > 0 && reply[0] == '-';
    size_t kept = !is_error ? 0 : len < sizeof nested->error - 1 ? len : sizeof nested->error - 1;
    if (kept > 0)
        memcpy(nested->error, reply, kept);
    nested->error[kept] = '\0';
}

/* Failures that do not affect the other commands. */
static bool is_own_failure(enum store_result result)
{
    return result == STORE_DAMAGED || result == STORE_IO || result == STORE_TOO_LARGE;
}

static struct written *written_of(struct call *call)
{
    return &request_of_call(call)->call.nested_calls->written;
}

/* EXEC's commands are the same in each run; a script's may have other arguments. */
static void note_write(struct nested *nested)
{
    struct call *call = &nested->call;
    if (nested->failure == STORE_OK)
        written_note(written_of(call), call,
                     nested->args != NULL ? written_hash(call) : (uintptr_t)nested);
}

/* False: the runs differ again and again, so that they would never end. The call has answered. */
static bool check_path(struct nested *nested)
{
    struct call *call = &nested->call;
    struct nested_calls *nested_calls = call->outer->nested_calls;
    uint64_t path = written_path(written_of(call), call);
    bool is_other = path != nested->path && (call->progress != NULL || nested->kept != NULL);
    nested->path = path;
    if (is_other) {
        begin_anew(nested);
        nested_calls->restarts++;
    }
    if (nested_calls->restarts <= RESTARTS_MOST)
        return true;
    resp_error(call->reply, "ERR The script writes something else each time it has to run again");
    return false;
}

/* Runs the command, or repeats the outcome of an earlier run. */
static enum store_result run_or_repeat(struct nested *nested)
{
    struct call *call = &nested->call;
    if (nested->failure != STORE_OK) {
        reply_failure(call, nested->failure);
        return STORE_OK;
    }
    if (!check_path(nested))
        return STORE_OK;
    if (nested->kept != NULL) {
        resp_raw(call->reply, nested->kept, nested->kept_len);
        return STORE_OK;
    }
    if (nested->is_ended && !call->progress_lasts) /* the entries collected then are incomplete */
        call_drop_progress(call);
    nested->is_ended = false;
    if (call->nested_calls != NULL)
        nested_calls_begin(call);
    call->hits = call->misses = 0; /* the repeated reply above keeps its own */
    enum store_result result = run_timed(nested);
    if (!is_own_failure(result))
        return result;
    nested->failure = result; /* its writes must not stay: run everything again, without it */
    return STORE_WAIT;
}

/* A script may have very many short replies: they count with its commands. */
static bool count_kept(struct nested *nested)
{
    struct nested_calls *nested_calls = nested->call.outer->nested_calls;
    if (nested->kept_len <= KEPT_SHORT) {
        nested->bytes += nested->kept_len;
        nested_calls->bytes += nested->kept_len;
        return true;
    }
    nested->collected.server = nested->call.server;
    return collected_set(&nested->collected, nested->kept_len);
}

/* Whether its reply is all there is to be repeated. Monitors see a script's commands as they run.
 */
static bool only_reads(const struct call *call)
{
    const struct nested_calls *inner = call->nested_calls;
    if (inner != NULL)
        return !inner->has_effects && !monitor_any(call->server);
    return (call->command->flags & CMD_READONLY) != 0;
}

/* Keeps the reply of a stepwise walk or a script, which must not start anew each time a later
 * command has to wait. False: the replies kept have become too large. */
static bool keep_reply(struct nested *nested, size_t start, uint32_t reader_count)
{
    struct call *call = &nested->call;
    if (call->progress == NULL || !only_reads(call) || nested->kept != NULL ||
        request_of_call(call)->reader_count != reader_count)
        return true;
    assert(call->reply->len >= start);
    size_t len = call->reply->len - start;
    bool may_be_long = (call->command->flags & CMD_READONLY) != 0;
    nested->kept = len > 0 && (may_be_long || len <= KEPT_SHORT) ? malloc(len) : NULL;
    if (nested->kept == NULL)
        return true;
    nested->kept_len = len;
    memcpy(nested->kept, call->reply->data + start, len);
    call_drop_progress(call);
    return count_kept(nested);
}

enum store_result nested_run(struct nested *nested, struct resp_writer *reply)
{
    struct call *call = &nested->call;
    size_t start = reply->len;
    assert(!nested_is_local(nested));
    uint32_t reader_count = request_of_call(call)->reader_count;
    call->reply = reply;
    call->txn = call->outer->txn;
    nested->is_deferred = false;
    nested->has_run = true;
    if (!tracking_note_read(call))
        return STORE_NO_MEMORY;
    enum store_result result = run_or_repeat(nested);
    if (result != STORE_OK)
        return result;
    nested->is_ended = true;
    end_time(nested);
    if ((call->command->flags & (CMD_WRITE | CMD_CACHES_RESULT)) != 0)
        note_write(nested);
    call_count_ended(call);
    if (!keep_reply(nested, start, reader_count))
        return STORE_NO_MEMORY;
    note_error(nested, reply->data + start, reply->len - start);
    if (monitor_any(call->server))
        monitor_feed(call);
    return STORE_OK;
}

void nested_defer(struct nested *nested)
{
    struct call *outer = nested->call.outer;
    assert(outer->reply->len >= request_of_call(outer)->reply_start);
    nested->is_deferred = nested->has_run = outer->nested_calls->defers = true;
    nested->gap = outer->reply->len - request_of_call(outer)->reply_start;
}

/* ---- after the transaction ---- */

struct call *nested_calls_next_deferred(struct nested_calls *nested_calls)
{
    struct nested *nested = nested_calls->defers ? nested_calls->next_deferred : NULL;
    while (nested != NULL && !nested->is_deferred)
        nested = TAILQ_NEXT(nested, link);
    if (nested == NULL)
        return NULL;
    nested_calls->next_deferred = TAILQ_NEXT(nested, link);
    struct call *call = &nested->call;
    resp_truncate(&nested_calls->reply, 0);
    nested_calls->reply.version = call->session->resp_version;
    call->reply = &nested_calls->reply;
    call->txn = NULL;
    begin_time(nested);
    return call;
}

void nested_calls_finish_deferred(struct call *call, enum store_result result)
{
    struct nested *nested = (struct nested *)((char *)call - offsetof(struct nested, call));
    struct nested_calls *nested_calls = call->outer->nested_calls;
    struct resp_writer *reply = &nested_calls->reply;
    if (result != STORE_OK) {
        resp_truncate(reply, 0);
        reply_failure(call, result);
    }
    end_time(nested);
    note_error(nested, reply->data, reply->len);
    if (monitor_any(call->server))
        monitor_feed(call);
    request_insert(request_of_call(call), nested->gap + nested_calls->shift, reply);
    nested_calls->shift += reply->len;
}

static void account_tally(const struct nested_calls_tally *tally, struct worker *worker)
{
    if (!tally->is_refused) {
        commandstats_add_calls(worker, tally->command, tally->calls);
        commandstats_add_time(worker, tally->command, tally->nsec);
        commandstats_add_lookups(worker, tally->hits, tally->misses);
    }
    for (uint64_t i = 0; tally->error[0] != '\0' && i < tally->calls; i++)
        commandstats_add_error(worker, tally->command, tally->error, strlen(tally->error),
                               tally->is_refused);
}

static void account_nested(const struct nested *nested, struct worker *worker)
{
    const struct call *call = &nested->call;
    bool is_counted = call->nested_calls != NULL && call->nested_calls->error_is_counted;
    uint64_t before = commandstats_calls(worker, call->command);
    commandstats_add_calls(worker, call->command, 1);
    if (nested->nsec != 0)
        commandstats_add_time(worker, call->command, nested->nsec);
    if (nested->weight > 0 && call->outer->command->role == ROLE_EXEC)
        command_times_add(worker, call->command, nested->nsec / nested->weight,
                          commandstats_stands_for(before));
    commandstats_add_lookups(worker, call->hits, call->misses);
    if (nested->error[0] != '\0' && is_counted)
        commandstats_add_failure(worker, call->command);
    else if (nested->error[0] != '\0')
        commandstats_add_error(worker, call->command, nested->error, strlen(nested->error), false);
    if (call->nested_calls != NULL)
        nested_calls_account(call->nested_calls, worker);
}

void nested_calls_account(const struct nested_calls *nested_calls, struct worker *worker)
{
    for (uint32_t i = 0; i < nested_calls->tally_count; i++)
        account_tally(&nested_calls->tallies[i], worker);
    const struct nested *nested;
    TAILQ_FOREACH (nested, &nested_calls->list, link)
        if (nested->has_run)
            account_nested(nested, worker);
}
