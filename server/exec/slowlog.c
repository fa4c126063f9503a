/*
 * The log of slow commands: a list, newest first. An entry is formatted as a reply when it is made;
 * only its number is added when it enters the list.
 *
 * Invariants, under the lock:
 * 1. Numbers rise by one from entry to entry and are never reused, whatever is removed.
 * 2. `count` entries are in `entries`, newest first.
 * 3. After an insertion there are at most slowlog-max-len entries, and they fit into the log's
 *    share of memory unless only the newest is left.
 * 4. `bytes` is their memory; it has been reported to the store, except for less than TELL_STEP.
 */
#include "server/exec/slowlog.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "storage/base/checks.h"
#include "server/net/conn.h"
#include "server/exec/monitor.h"
#include "server/exec/nested.h"
#include "server/exec/request.h"
#include "server/exec/batch.h"
#include "server/core/latency.h"
#include "server/core/server.h"
#include "server/exec/upload.h"

#define SHOWN_ARGUMENTS 32
#define SHOWN_BYTES 128 /* of an argument */

#define MEMORY_SHARE 16 /* of maxmemory, for all entries */
#define TELL_STEP (64 * 1024)
#define CHECKED_MOST 256 /* entries that slowlog_check() walks over */

/* For thresholds from here on (or from two ticks, if that is more) the coarse clock is precise
 * enough; it is cheap, but advances only with the kernel's ticks. */
#define COARSE_FROM_USEC 10000

struct entry {
    TAILQ_ENTRY(entry) link;
    uint64_t number;
    size_t len;
    char rest[]; /* the formatted entry, without its number */
};

struct slowlog {
    pthread_mutex_t lock;
    TAILQ_HEAD(entries, entry) entries;
    uint64_t count, next_number, bytes;
    int64_t untold; /* change of `bytes`, not yet reported */
    int64_t coarse_from_nsec;
    /* What takes less is neither slow nor late (LATENCY); negative: nothing is. */
    _Atomic int64_t least_nsec;
};

static uint64_t entry_bytes(const struct entry *entry)
{
    return sizeof *entry + entry->len;
}

static void count_bytes(struct slowlog *slowlog, int64_t change)
{
    assert(change >= 0 || slowlog->bytes >= (uint64_t)-change);
    slowlog->bytes += (uint64_t)change;
    slowlog->untold += change;
}

/* The change to be reported to the store, after the lock is released. */
static int64_t take_untold(struct slowlog *slowlog)
{
    int64_t untold = slowlog->untold;
    if (untold < TELL_STEP && untold > -TELL_STEP)
        return 0;
    slowlog->untold = 0;
    return untold;
}

static int64_t find_coarse_from(void)
{
    struct timespec tick = {0};
    clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    int64_t two_ticks = 2 * (tick.tv_sec * 1000000 + tick.tv_nsec / 1000);
    return two_ticks > COARSE_FROM_USEC ? two_ticks : COARSE_FROM_USEC;
}

struct slowlog *slowlog_new(void)
{
    struct slowlog *slowlog = calloc(1, sizeof *slowlog);
    if (slowlog != NULL && pthread_mutex_init(&slowlog->lock, NULL) != 0) {
        free(slowlog);
        return NULL;
    }
    if (slowlog == NULL)
        return NULL;
    TAILQ_INIT(&slowlog->entries);
    slowlog->coarse_from_nsec = 1000 * find_coarse_from();
    atomic_init(&slowlog->least_nsec, -1);
    return slowlog;
}

static void drop_oldest(struct slowlog *slowlog)
{
    struct entry *entry = TAILQ_LAST(&slowlog->entries, entries);
    assert(entry != NULL);
    TAILQ_REMOVE(&slowlog->entries, entry, link);
    assert(slowlog->count > 0);
    slowlog->count--;
    count_bytes(slowlog, -(int64_t)entry_bytes(entry));
    free(entry);
}

void slowlog_clear(struct slowlog *slowlog, struct store *store)
{
    pthread_mutex_lock(&slowlog->lock);
    count_bytes(slowlog, -(int64_t)slowlog->bytes);
    int64_t untold = take_untold(slowlog);
    struct entries dropped = TAILQ_HEAD_INITIALIZER(dropped);
    TAILQ_CONCAT(&dropped, &slowlog->entries, link);
    slowlog->count = 0;
    pthread_mutex_unlock(&slowlog->lock);
    for (struct entry *entry; (entry = TAILQ_FIRST(&dropped)) != NULL;) { /* without the lock */
        TAILQ_REMOVE(&dropped, entry, link);
        free(entry);
    }
    if (untold != 0 && store != NULL)
        store_note_memory(store, untold);
}

void slowlog_free(struct slowlog *slowlog)
{
    if (slowlog == NULL)
        return;
    slowlog_clear(slowlog, NULL);
    pthread_mutex_destroy(&slowlog->lock);
    free(slowlog);
}

/* ---- time ---- */

static int64_t threshold_usec(const struct server *server)
{
    return config_number(&server->config, CONFIG_SLOWLOG_LOG_SLOWER_THAN);
}

void slowlog_follow(struct server *server)
{
    int64_t slow = threshold_usec(server);
    uint64_t late_ms = latency_threshold_ms(server);
    int64_t late = late_ms < INT64_MAX / 1000000 ? (int64_t)late_ms * 1000000 : INT64_MAX;
    int64_t least = slow < INT64_MAX / 1000 ? slow * 1000 : INT64_MAX;
    if (late > 0 && (slow < 0 || late < least))
        least = late;
    atomic_store_explicit(&server->slowlog->least_nsec, least, memory_order_relaxed);
}

static int64_t least_nsec(const struct server *server)
{
    return atomic_load_explicit(&server->slowlog->least_nsec, memory_order_relaxed);
}

uint64_t slowlog_clock(const struct server *server)
{
    struct timespec now;
    int64_t least = least_nsec(server);
    if (least < 0)
        return 0;
    bool is_coarse = least >= server->slowlog->coarse_from_nsec;
    clock_gettime(is_coarse ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t slowlog_since(const struct server *server, uint64_t began)
{
    uint64_t now = began != 0 ? slowlog_clock(server) : 0;
    return now > began ? now - began : 0; /* the coarse clock lags by up to a tick */
}

bool slowlog_is_slow(const struct server *server, uint64_t nsec)
{
    int64_t threshold = threshold_usec(server);
    return threshold >= 0 && nsec / 1000 >= (uint64_t)threshold;
}

/* ---- entries ---- */

static void write_beginning(struct resp_writer *to, const char *data, size_t len, uint64_t more)
{
    char text[SHOWN_BYTES + 64];
    memcpy(text, data, len);
    len += (size_t)snprintf(text + len, sizeof text - len, "... (%llu more bytes)",
                            (unsigned long long)more);
    resp_bulk(to, text, len);
}

static void write_text(struct resp_writer *to, struct resp_slice text)
{
    if (text.len <= SHOWN_BYTES)
        resp_bulk(to, text.data, text.len);
    else
        write_beginning(to, text.data, SHOWN_BYTES, text.len - SHOWN_BYTES);
}

/* Of a long value that was uploaded while it arrived, only the length is known. */
static void write_argument(struct resp_writer *to, const struct call *call, size_t i)
{
    if (call->upload != NULL && call->upload->argument == i)
        write_beginning(to, "", 0, call->upload->length);
    else
        write_text(to, monitor_argument(call, i));
}

static void write_arguments(struct resp_writer *to, const struct call *call)
{
    size_t shown = call->argc <= SHOWN_ARGUMENTS ? call->argc : SHOWN_ARGUMENTS - 1;
    resp_array(to, call->argc <= SHOWN_ARGUMENTS ? call->argc : SHOWN_ARGUMENTS);
    for (size_t i = 0; i < shown; i++)
        write_argument(to, call, i);
    if (shown < call->argc) {
        char text[64];
        int len = snprintf(text, sizeof text, "... (%zu more arguments)", call->argc - shown);
        resp_bulk(to, text, (size_t)len);
    }
}

static struct entry *make_entry(const struct call *call, uint64_t nsec)
{
    const struct session *session = call->session;
    struct entry *entry = NULL;
    struct resp_writer rest;
    resp_writer_init(&rest, 2);
    resp_integer(&rest, (int64_t)time(NULL));
    resp_integer(&rest, (int64_t)(nsec / 1000));
    write_arguments(&rest, call);
    resp_bulk_string(&rest, conn_peer_name(session->conn));
    const char *name = session->name != NULL ? session->name : "";
    write_text(&rest, (struct resp_slice){name, strlen(name)});
    if (!rest.failed)
        entry = malloc(sizeof *entry + rest.len);
    if (entry != NULL) {
        entry->len = rest.len;
        memcpy(entry->rest, rest.data, rest.len);
    }
    resp_writer_free(&rest);
    return entry;
}

/* Asserts invariants 1 and 2, and that `bytes` is the entries' memory. */
static void slowlog_check(const struct slowlog *slowlog)
{
    uint64_t count = 0, bytes = 0, next = slowlog->next_number;
    const struct entry *entry;
    TAILQ_FOREACH (entry, &slowlog->entries, link) {
        assert(entry->number == next - 1);
        next = entry->number;
        bytes += entry_bytes(entry);
        count++;
    }
    assert(count == slowlog->count && bytes == slowlog->bytes);
}

static void add(struct server *server, struct entry *entry)
{
    struct slowlog *slowlog = server->slowlog;
    uint64_t most = (uint64_t)config_number(&server->config, CONFIG_SLOWLOG_MAX_LEN);
    uint64_t most_bytes =
        atomic_load_explicit(&server->memory_bound, memory_order_relaxed) / MEMORY_SHARE;
    pthread_mutex_lock(&slowlog->lock);
    entry->number = slowlog->next_number++;
    TAILQ_INSERT_HEAD(&slowlog->entries, entry, link);
    slowlog->count++;
    count_bytes(slowlog, (int64_t)entry_bytes(entry));
    while (slowlog->count > most || (slowlog->bytes > most_bytes && slowlog->count > 1))
        drop_oldest(slowlog);
    if (storage_checks_enabled() && slowlog->count <= CHECKED_MOST)
        slowlog_check(slowlog);
    int64_t untold = take_untold(slowlog);
    pthread_mutex_unlock(&slowlog->lock);
    if (untold != 0)
        store_note_memory(server->store, untold);
}

/* Without memory for the entry, nothing is logged. */
static void note_call(const struct call *call, uint64_t nsec)
{
    struct server *server = call->server;
    bool is_fast = (call->command->flags & CMD_FAST) != 0;
    latency_note(server, is_fast ? LATENCY_FAST_COMMAND : LATENCY_COMMAND, nsec);
    if (!slowlog_is_slow(server, nsec) || (call->command->flags & CMD_SKIP_SLOWLOG) != 0)
        return;
    struct entry *entry = make_entry(call, nsec);
    if (entry != NULL)
        add(server, entry);
}

/* The commands of a transaction, of a script, and of a script in a transaction. */
static void note_nested(const struct call *outer)
{
    if (outer->nested_calls == NULL)
        return;
    struct nested *each;
    TAILQ_FOREACH (each, &outer->nested_calls->list, link) {
        note_nested(&each->call);
        if (each->has_run && each->slow_from != 0)
            note_call(&each->call, each->took_ns);
    }
}

static void note_request(struct request *request, uint64_t nsec)
{
    struct call *call = &request->call;
    note_nested(call);
    const struct resp_slice *first = call->argv;
    uint32_t length = batch_length(call);
    for (uint32_t left = length; left > 0; left--) {
        note_call(call, nsec / length);
        call->argv += call->argc;
    }
    call->argv = first;
}

/* None of its commands was slow if the request as a whole was not. */
void slowlog_note(struct request *request)
{
    const struct server *server = request->call.server;
    if (request->began_ns == 0)
        return;
    uint64_t nsec = slowlog_since(server, request->began_ns);
    int64_t least = least_nsec(server);
    if (least >= 0 && nsec >= (uint64_t)least)
        note_request(request, nsec);
}

/* ---- reading ---- */

uint64_t slowlog_count(struct slowlog *slowlog)
{
    pthread_mutex_lock(&slowlog->lock);
    uint64_t count = slowlog->count;
    pthread_mutex_unlock(&slowlog->lock);
    return count;
}

void slowlog_show(struct slowlog *slowlog, uint64_t most, struct resp_writer *reply)
{
    pthread_mutex_lock(&slowlog->lock);
    uint64_t left = most < slowlog->count ? most : slowlog->count;
    resp_array(reply, left);
    for (const struct entry *entry = TAILQ_FIRST(&slowlog->entries); left > 0;
         entry = TAILQ_NEXT(entry, link), left--) {
        resp_array(reply, 6);
        resp_integer(reply, (int64_t)entry->number);
        resp_raw(reply, entry->rest, entry->len);
    }
    pthread_mutex_unlock(&slowlog->lock);
}
