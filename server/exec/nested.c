/*
 * Commands inside a command.
 *
 * Invariants:
 * 1. A run begins in the session's state of the first one: commands that change it in their turn
 *    (SELECT, HELLO) do so in every run.
 * 2. Deferred commands stand in the list in the order of their gaps.
 * 3. Of a script's commands the list has those that the next run has to know something about, in
 *    the order of their places; of the others there are tallies, which begin anew with each run.
 */
#include "server/exec/nested.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"
#include "server/core/commandstats.h"
#include "server/exec/monitor.h"
#include "server/exec/request_reply.h"
#include "server/exec/request.h"
#include "server/exec/runner_reply.h"
#include "server/core/session.h"
#include "server/exec/slowlog.h"
#include "server/exec/upload.h"
#include "server/exec/watch.h"
#include "server/core/call.h"

#define FEW_KEYS 8
#define SLOW_BYTES_MAX (256 * 1024) /* of a script's commands that stay for SLOWLOG */
#define KEPT_SHORT (64 * 1024)
#define HOLD_MIN (16 * 1024) /* shorter arguments are copied: a held block may be much longer */

struct nest *nest_new(void)
{
    struct nest *nest = calloc(1, sizeof *nest);
    if (nest != NULL)
        resp_writer_init(&nest->reply, 2);
    return nest;
}

static void nested_free(struct nested *nested)
{
    struct call *call = &nested->call;
    call_drop_progress(call);
    if (nested->gathered.bytes > 0)
        gathered_set(&nested->gathered, 0);
    free(nested->kept);
    nest_free(call->nest);
    upload_free(call->upload);
    block_release(nested->block);
    free(nested->args);
    free(nested);
}

static void drop_args(struct nest *nest)
{
    for (struct nested_args *args; (args = nest->args) != NULL;) {
        nest->args = args->next;
        nest->bytes -= args->bytes;
        free(args);
    }
}

void nest_free(struct nest *nest)
{
    if (nest == NULL)
        return;
    for (struct nested *nested; (nested = nest->first) != NULL;) {
        nest->first = nested->next;
        nested_free(nested);
    }
    drop_args(nest);
    free(nest->tallies);
    watch_free(nest->watch);
    resp_writer_free(&nest->reply);
    free(nest);
}

static size_t length_of(size_t argc, const struct resp_slice *argv)
{
    size_t bytes = 0;
    for (size_t i = 0; i < argc; i++)
        bytes += argv[i].len;
    return bytes;
}

/* The bytes come behind the slices. */
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

static void insert_behind(struct nest *nest, struct nested *before, struct nested *nested)
{
    struct nested **at = before == NULL ? &nest->first : &before->next;
    nested->next = *at;
    *at = nested;
    if (nest->last == before)
        nest->last = nested;
    nest->count++;
    nest->bytes += nested->bytes;
}

struct nested *nest_add(struct nest *nest, const struct command *command, size_t argc,
                        const struct resp_slice *argv, struct block *block)
{
    size_t head = sizeof(struct nested) + argc * sizeof *argv, bytes = length_of(argc, argv);
    bool is_held = block != NULL && bytes >= HOLD_MIN;
    struct nested *nested = malloc(head + (is_held ? 0 : bytes));
    if (nested == NULL)
        return NULL;
    *nested = (struct nested){
        .call = {.command = command, .argc = argc, .argv = nested->argv, .keys = NULL}};
    if (is_held) {
        nested->block = block_hold(block);
        memcpy(nested->argv, argv, argc * sizeof *argv);
    } else {
        copy_arguments(nested->argv, argc, argv);
    }
    nested->bytes = head + bytes;
    insert_behind(nest, nest->last, nested);
    return nested;
}

void nest_take_upload(struct nest *nest, struct nested *nested, struct call *from)
{
    nested->call.upload = from->upload;
    from->upload = NULL;
    if (nested->call.upload == NULL)
        return;
    nested->bytes += nested->call.upload->length;
    nest->bytes += nested->call.upload->length;
}

static void settle(struct nested *nested, struct call *outer)
{
    struct call *call = &nested->call;
    struct nest *nest = outer->nest;
    call->outer = outer;
    call->server = outer->server;
    call->worker = outer->worker;
    call->session = outer->session;
    call->effects = outer->effects;
    call->now_ms = outer->now_ms;
    nest->random = nest->random * 6364136223846793005u + 1442695040888963407u;
    call->random_seed = nest->random;
}

void nest_settle(struct nest *nest, struct call *outer)
{
    nest->random = outer->random_seed;
    outer->nest = nest;
    for (struct nested *nested = nest->first; nested != NULL; nested = nested->next)
        settle(nested, outer);
    nest->next_deferred = nest->first;
}

/* ---- within the transaction ---- */

void nest_begin(struct call *outer)
{
    struct nest *nest = outer->nest;
    struct session *session = outer->session;
    if (!nest->has_begun) {
        nest->has_begun = true;
        nest->db = session->db;
        nest->resp_version = session->resp_version;
    }
    session->db = nest->db;
    session->resp_version = outer->reply->version = nest->resp_version;
    nest->passed = nest->before = NULL;
    nest->place = 0;
    nest->tally_count = 0;
    nest->slow_bytes = 0;
    nest->error_is_counted = nest->defers = false;
    drop_args(nest); /* of a run whose writes are forgotten */
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

/* Forgets all that stands behind `last`; NULL: everything. */
static void cut_behind(struct nest *nest, struct nested *last)
{
    struct nested **at = last == NULL ? &nest->first : &last->next;
    for (struct nested *nested; (nested = *at) != NULL; nest->count--) {
        *at = nested->next;
        nest->bytes -= nested->bytes;
        nested_free(nested);
    }
    nest->last = last;
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

struct nested *nest_call(struct call *outer, const struct command *command, size_t argc,
                         const struct resp_slice *argv)
{
    struct nest *nest = outer->nest;
    struct nested *next = nest->passed == NULL ? nest->first : nest->passed->next;
    uint64_t place = nest->place++;
    if (next != NULL && next->place == place && !is_same_call(&next->call, command, argc, argv)) {
        cut_behind(nest, nest->passed); /* the script is not the same in every run */
        next = NULL;
    }
    if (next == NULL || next->place != place) {
        next = new_apart(command, argc, argv);
        if (next == NULL)
            return NULL;
        next->place = place;
        insert_behind(nest, nest->passed, next);
        nest->random = outer->random_seed + place; /* the same in every run */
        settle(next, outer);
    }
    nest->before = nest->passed;
    nest->passed = next;
    return next;
}

/* ---- forgetting ---- */

/* Of the same command, and with the same error ("-CODE ...", or empty); NULL: out of memory. */
static struct nest_tally *tally_of(struct nest *nest, const struct command *command,
                                   const char *reply, bool is_refused)
{
    char error[sizeof nest->tallies->error] = "";
    size_t len = strcspn(reply, " \r\n");
    memcpy(error, reply, len < sizeof error ? len : sizeof error - 1);
    for (uint32_t i = 0; i < nest->tally_count; i++)
        if (nest->tallies[i].command == command && nest->tallies[i].is_refused == is_refused &&
            strcmp(nest->tallies[i].error, error) == 0)
            return &nest->tallies[i];
    if (!array_reserve(&nest->tallies, &nest->tally_capacity, nest->tally_count + 1,
                       sizeof *nest->tallies))
        return NULL;
    struct nest_tally *tally = &nest->tallies[nest->tally_count++];
    *tally = (struct nest_tally){.command = command, .is_refused = is_refused};
    memcpy(tally->error, error, sizeof error);
    return tally;
}

void nest_refuse(struct nest *nest, const struct command *command, const char *error)
{
    struct nest_tally *tally = tally_of(nest, command, error, true);
    if (tally != NULL) /* else INFO does not tell of it */
        tally->calls++;
}

/* What SLOWLOG is to show stays until the end, up to a bound. */
static bool stays_for_slowlog(struct nest *nest, const struct nested *nested)
{
    if (nested->slow_from == 0 || !slowlog_is_slow(nested->call.server, nested->took_ns) ||
        nest->slow_bytes + nested->bytes > SLOW_BYTES_MAX)
        return false;
    nest->slow_bytes += nested->bytes;
    return true;
}

void nest_forget(struct nest *nest, bool refers)
{
    struct nested *nested = nest->passed;
    const struct call *call = &nested->call;
    bool is_known = call->progress != NULL || nested->kept != NULL || nested->failure != STORE_OK ||
                    stays_for_slowlog(nest, nested);
    struct nest_tally *tally =
        is_known ? NULL : tally_of(nest, call->command, nested->error, false);
    if (tally == NULL)
        return;
    tally->calls++;
    tally->nsec += nested->nsec;
    tally->hits += call->hits;
    tally->misses += call->misses;
    *(nest->before == NULL ? &nest->first : &nest->before->next) = nested->next;
    if (nest->last == nested)
        nest->last = nest->before;
    nest->count--;
    nest->passed = nest->before;
    nest->bytes -= nested->bytes;
    if (refers) {
        nested->args->next = nest->args;
        nest->args = nested->args;
        nest->bytes += nest->args->bytes;
        nested->args = NULL;
    }
    nested_free(nested);
}

static bool is_declared(const struct store_request *request, const struct store_key *key)
{
    for (uint32_t i = 0; i < request->key_count; i++) {
        const struct store_key *declared = &request->keys[i];
        if (declared->hash == key->hash && declared->db == key->db && declared->len == key->len &&
            declared->mode >= key->mode && memcmp(declared->data, key->data, key->len) == 0)
            return true;
    }
    return false;
}

/* Most commands begin with the key that the outer one does: it is not hashed again. */
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

/* The transaction keeps them, but not the room for more. */
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
    bool is_good = command_scope(call->command) == STORE_SCOPE_KEYS;
    for (uint32_t i = 0; i < call->key_count && is_good; i++)
        is_good = is_declared(&request->store, &call->keys[i]);
    if (is_good)
        return STORE_OK;
    request->wants_all = true;
    return STORE_INVALID;
}

/* The time for SLOWLOG: it goes on over the runs until the command ends, and not again when a later
 * one has to wait. */
static void begin_time(struct nested *nested)
{
    struct call *outer = nested->call.outer;
    if (nested->slow_from != 0)
        return;
    bool is_first = outer->command->role == ROLE_EXEC && !outer->nest->wait_is_counted;
    nested->slow_from = is_first ? request_of_call(outer)->began_ns : slowlog_clock(outer->server);
    outer->nest->wait_is_counted = true;
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
    store_count_use(call->txn, call_counts_use(call));
    uint64_t began = weight > 0 ? commandstats_clock() : 0;
    enum store_result result = call_run(call);
    nested->nsec = weight > 0 ? weight * (commandstats_clock() - began) : 0;
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

/* What the other commands have nothing to do with. */
static bool is_own_failure(enum store_result result)
{
    return result == STORE_DAMAGED || result == STORE_IO || result == STORE_TOO_LARGE;
}

/* The command itself, or what an earlier run has found out about it. */
static enum store_result run_or_repeat(struct nested *nested)
{
    struct call *call = &nested->call;
    if (nested->failure != STORE_OK) {
        reply_failure(call, nested->failure);
        return STORE_OK;
    }
    if (nested->kept != NULL) {
        resp_raw(call->reply, nested->kept, nested->kept_len);
        return STORE_OK;
    }
    if (nested->is_ended && !call->progress_lasts) /* what it had collected then is no beginning */
        call_drop_progress(call);
    nested->is_ended = false;
    if (call->nest != NULL)
        nest_begin(call);
    enum store_result result = run_timed(nested);
    if (!is_own_failure(result))
        return result;
    nested->failure = result; /* what it has written must not stay: run again, without it */
    return STORE_WAIT;
}

/* Of short ones a script may have very many: they count as its commands do. */
static bool count_kept(struct nested *nested)
{
    struct nest *nest = nested->call.outer->nest;
    if (nested->kept_len <= KEPT_SHORT) {
        nested->bytes += nested->kept_len;
        nest->bytes += nested->kept_len;
        return true;
    }
    nested->gathered.server = nested->call.server;
    return gathered_set(&nested->gathered, nested->kept_len);
}

/* A walk in steps is not to begin anew because a later command has to wait. False: all that is kept
 * for such commands has become too much. */
static bool keep_reply(struct nested *nested, size_t start, uint32_t stream_count)
{
    struct call *call = &nested->call;
    bool is_read = (call->command->flags & CMD_READONLY) != 0;
    if (call->progress == NULL || !is_read || nested->kept != NULL ||
        request_of_call(call)->stream_count != stream_count)
        return true;
    size_t len = call->reply->len - start;
    nested->kept = len > 0 ? malloc(len) : NULL;
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
    uint32_t stream_count = request_of_call(call)->stream_count;
    call->reply = reply;
    call->txn = call->outer->txn;
    call->hits = call->misses = 0;
    nested->is_deferred = false;
    nested->has_run = true;
    enum store_result result = run_or_repeat(nested);
    if (result != STORE_OK)
        return result;
    nested->is_ended = true;
    end_time(nested);
    if (!keep_reply(nested, start, stream_count))
        return STORE_NO_MEMORY;
    note_error(nested, reply->data + start, reply->len - start);
    if (monitor_any(call->server))
        monitor_feed(call);
    return STORE_OK;
}

void nested_defer(struct nested *nested)
{
    struct call *outer = nested->call.outer;
    nested->is_deferred = nested->has_run = outer->nest->defers = true;
    nested->gap = outer->reply->len - request_of_call(outer)->reply_start;
}

/* ---- after the transaction ---- */

struct call *nest_next_deferred(struct nest *nest)
{
    struct nested *nested = nest->defers ? nest->next_deferred : NULL;
    while (nested != NULL && !nested->is_deferred)
        nested = nested->next;
    if (nested == NULL)
        return NULL;
    nest->next_deferred = nested->next;
    struct call *call = &nested->call;
    resp_truncate(&nest->reply, 0);
    nest->reply.version = call->session->resp_version;
    call->reply = &nest->reply;
    call->txn = NULL;
    begin_time(nested);
    return call;
}

void nest_finish_deferred(struct call *call, enum store_result result)
{
    struct nested *nested = (struct nested *)((char *)call - offsetof(struct nested, call));
    struct nest *nest = call->outer->nest;
    struct resp_writer *reply = &nest->reply;
    if (result != STORE_OK) {
        resp_truncate(reply, 0);
        reply_failure(call, result);
    }
    end_time(nested);
    note_error(nested, reply->data, reply->len);
    if (monitor_any(call->server))
        monitor_feed(call);
    request_insert(request_of_call(call), nested->gap + nest->shift, reply);
    nest->shift += reply->len;
}

static void account_tally(const struct nest_tally *tally, struct worker *worker)
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

void nest_account(const struct nest *nest, struct worker *worker)
{
    for (uint32_t i = 0; i < nest->tally_count; i++)
        account_tally(&nest->tallies[i], worker);
    for (const struct nested *nested = nest->first; nested != NULL; nested = nested->next) {
        const struct call *call = &nested->call;
        if (!nested->has_run)
            continue;
        commandstats_add_calls(worker, call->command, 1);
        if (nested->nsec != 0)
            commandstats_add_time(worker, call->command, nested->nsec);
        commandstats_add_lookups(worker, call->hits, call->misses);
        if (nested->error[0] != '\0')
            commandstats_add_error(worker, call->command, nested->error, strlen(nested->error),
                                   false);
    }
}
