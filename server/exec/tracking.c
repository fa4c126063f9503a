/*
 * The registry of clients in tracking mode, with the tracking table and the table of prefixes.
 *
 * Invariants:
 * 1. A key is noted in a run function, under the lock of its partition, before the run reads it,
 *    and the observer has been registered before: no change of the value that the run finds
 *    escapes. A run that is repeated notes its keys again.
 * 2. While any client tracks, the registry observes the store.
 * 3. `all` and the prefixes with their members are locked by `members`. A member is added and
 *    removed on its client's thread, which alone reads the client's own list.
 *
 * Locks: `listening` is taken before the store's locks. The others are leaves below these, in the
 * order: `members`, a shard's of the table, a tracker's.
 */
#include "server/exec/tracking.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/exec/nested.h"
#include "server/exec/prefix_table.h"
#include "server/exec/request.h"
#include "server/exec/tracking_table.h"
#include "server/net/conn.h"

#define EVICT_AT_ONCE 2           /* keys over the limit, for each command that adds some */
#define EVICT_PER_SECOND 20000    /* the same, for each worker */
#define FREE_PER_SECOND 100000    /* keys of a cleared table */
#define ACCOUNT_STEP (256 * 1024) /* bytes: smaller changes are not reported to the store */
#define SHORT_EVICT_MOST 4096     /* keys, when memory is short */
#define PREFIX_COST 192           /* bytes, about: its entry, its client's, and the arguments' */
#define TABLE_SHARE 4             /* the table may take maxmemory divided by this */

struct tracking {
    struct server *server;
    tracking_run *run;         /* of clients' requests */
    pthread_mutex_t listening; /* guards is_listening */
    bool is_listening;
    _Atomic uint32_t clients;
    struct tracking_table *table;
    _Atomic uint64_t draws;      /* random numbers drawn */
    _Atomic uint64_t told_bytes; /* of the table's memory, as reported to the store */
    pthread_rwlock_t members;
    LIST_HEAD(, tracker) all;
    struct prefix_table *prefixes;
};

/* ---- observing the store ---- */

static void note_prefixes(struct tracking *tracking, const struct store_key *key,
                          const struct tracker *except, struct worker *self)
{
    if (prefix_table_is_empty(tracking->prefixes))
        return;
    pthread_rwlock_rdlock(&tracking->members);
    prefix_table_note(tracking->prefixes, key, except, self);
    pthread_rwlock_unlock(&tracking->members);
}

static void note_all(struct tracking *tracking, struct worker *self)
{
    struct tracker *tracker;
    tracking_table_clear(tracking->table);
    pthread_rwlock_rdlock(&tracking->members);
    LIST_FOREACH (tracker, &tracking->all, of_all)
        tracker_note_all(tracker, self);
    pthread_rwlock_unlock(&tracking->members);
}

/* The request of a client that makes the change; NULL: the store itself does. */
static struct request *author_of(const struct tracking *tracking, const struct store_change *change)
{
    bool is_client = change->request != NULL && change->request->run == tracking->run;
    return is_client ? (struct request *)change->request : NULL;
}

/* Of the author, if it is not to be told of its own changes; NULL: it is. */
static const struct tracker *exception_of(const struct store_change *change,
                                          const struct request *author)
{
    bool is_own = change->cause == STORE_BY_REQUEST || change->cause == STORE_BY_TAKER;
    const struct tracker *tracker = author != NULL ? author->conn->session.tracker : NULL;
    if (!is_own || tracker == NULL || (tracker_options(tracker) & TRACKER_NOLOOP) == 0)
        return NULL;
    return tracker;
}

static void note(void *arg, const struct store_change *change)
{
    struct tracking *tracking = arg;
    const struct request *author = author_of(tracking, change);
    struct worker *self = author != NULL ? author->conn->worker : NULL;
    if (change->kind != STORE_CHANGE_KEY) {
        note_all(tracking, self);
        return;
    }
    const struct tracker *except = exception_of(change, author);
    note_prefixes(tracking, change->key, except, self);
    tracking_table_take(tracking->table, change->key, except, self);
}

/* ---- life cycle ---- */

struct tracking *tracking_new(struct server *server, tracking_run *run)
{
    struct tracking *tracking = calloc(1, sizeof *tracking);
    if (tracking == NULL)
        return NULL;
    tracking->server = server;
    tracking->run = run;
    tracking->table = tracking_table_new();
    tracking->prefixes = prefix_table_new();
    if (tracking->table == NULL || tracking->prefixes == NULL) {
        tracking_table_free(tracking->table);
        prefix_table_free(tracking->prefixes);
        free(tracking);
        return NULL;
    }
    pthread_mutex_init(&tracking->listening, NULL);
    pthread_rwlock_init(&tracking->members, NULL);
    return tracking;
}

static void stop_listening(struct tracking *tracking)
{
    if (atomic_load_explicit(&tracking->clients, memory_order_relaxed) > 0)
        return;
    pthread_mutex_lock(&tracking->listening);
    bool is_used = atomic_load_explicit(&tracking->clients, memory_order_relaxed) > 0;
    if (tracking->is_listening && !is_used) {
        store_unobserve(tracking->server->store, note, tracking);
        tracking->is_listening = false;
        tracking_table_clear(tracking->table);
    }
    pthread_mutex_unlock(&tracking->listening);
}

void tracking_free(struct tracking *tracking)
{
    if (tracking == NULL)
        return;
    assert(atomic_load(&tracking->clients) == 0);
    stop_listening(tracking);
    prefix_table_free(tracking->prefixes);
    tracking_table_free(tracking->table);
    pthread_mutex_destroy(&tracking->listening);
    pthread_rwlock_destroy(&tracking->members);
    free(tracking);
}

/* ---- prefixes ---- */

/* Of its mode and its prefixes. */
static void note_memory(struct conn *conn)
{
    const struct tracker *tracker = conn->session.tracker;
    conn->session.tracking_bytes = sizeof *tracker + tracker->prefix_bytes;
}

bool tracking_add_prefixes(struct conn *conn, const struct resp_slice *names, uint32_t count)
{
    struct tracking *tracking = conn->worker->server->tracking;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += names[i].len + PREFIX_COST;
    if (bytes > ACCOUNT_STEP && !store_has_memory(tracking->server->store, bytes))
        return false;
    pthread_rwlock_wrlock(&tracking->members);
    bool are_added = prefix_table_add(tracking->prefixes, conn->session.tracker, names, count);
    pthread_rwlock_unlock(&tracking->members);
    note_memory(conn);
    return are_added;
}

/* ---- the mode of a client ---- */

/* False: the store has too many observers. */
static bool listen_for(struct tracking *tracking)
{
    pthread_mutex_lock(&tracking->listening);
    if (!tracking->is_listening)
        tracking->is_listening = store_observe(tracking->server->store, note, tracking) == STORE_OK;
    bool is_listening = tracking->is_listening;
    if (is_listening)
        atomic_fetch_add_explicit(&tracking->clients, 1, memory_order_relaxed);
    pthread_mutex_unlock(&tracking->listening);
    return is_listening;
}

static bool turn_on(struct conn *conn)
{
    struct tracking *tracking = conn->worker->server->tracking;
    struct tracker *tracker = tracker_new(conn);
    if (tracker == NULL)
        return false;
    if (!listen_for(tracking)) {
        tracker_end(tracker);
        return false;
    }
    pthread_rwlock_wrlock(&tracking->members);
    LIST_INSERT_HEAD(&tracking->all, tracker, of_all);
    pthread_rwlock_unlock(&tracking->members);
    conn->session.tracker = tracker;
    note_memory(conn);
    return true;
}

bool tracking_begin(struct conn *conn, uint32_t options, struct tracking_target *target)
{
    if (conn->session.tracker == NULL && !turn_on(conn))
        return false;
    struct tracker *tracker = conn->session.tracker;
    tracking_target_release(tracker->target);
    tracker->target = target;
    if (target != NULL)
        atomic_fetch_add(&target->holders, 1);
    tracker->is_broken = false;
    atomic_store(&tracker->options, options);
    return true;
}

void tracking_end(struct conn *conn)
{
    struct tracking *tracking = conn->worker->server->tracking;
    struct tracker *tracker = conn->session.tracker;
    conn->session.caching = false;
    if (tracker == NULL)
        return;
    pthread_rwlock_wrlock(&tracking->members);
    prefix_table_drop(tracking->prefixes, tracker);
    LIST_REMOVE(tracker, of_all);
    pthread_rwlock_unlock(&tracking->members);
    conn->session.tracker = NULL;
    conn->session.tracking_bytes = conn->session.invalidation_bytes = 0;
    tracker_end(tracker);
    atomic_fetch_sub_explicit(&tracking->clients, 1, memory_order_relaxed);
}

void tracking_leave(struct conn *conn)
{
    tracking_end(conn);
    tracking_target_leave(conn);
}

/* ---- memory ---- */

static uint64_t most_keys(const struct server *server)
{
    return (uint64_t)config_number(&server->config, CONFIG_TRACKING_TABLE_MAX_KEYS);
}

static bool evict(struct tracking *tracking, struct worker *self)
{
    uint64_t random = atomic_fetch_add_explicit(&tracking->draws, 1, memory_order_relaxed);
    random *= 0x9e3779b97f4a7c15;
    return tracking_table_evict(tracking->table, random ^ random >> 32, self);
}

static bool is_over_limit(const struct tracking *tracking)
{
    const struct server *server = tracking->server;
    uint64_t limit = most_keys(server);
    uint64_t memory = atomic_load_explicit(&server->memory_bound, memory_order_relaxed);
    return (limit != 0 && tracking_table_keys(tracking->table) > limit) ||
           tracking_table_bytes(tracking->table) > memory / TABLE_SHARE;
}

static void evict_over_limit(struct tracking *tracking, struct worker *self, uint32_t most)
{
    while (most-- > 0 && is_over_limit(tracking) && evict(tracking, self))
        continue;
}

/* Keys that clients may have in their caches give way to anything else. */
static void give_way_if_short(struct tracking *tracking, struct worker *self)
{
    if (tracking_table_keys(tracking->table) == 0 ||
        store_has_memory(tracking->server->store, ACCOUNT_STEP))
        return;
    uint64_t bytes = tracking_table_bytes(tracking->table);
    for (uint32_t i = 0; i < SHORT_EVICT_MOST; i++)
        if (tracking_table_bytes(tracking->table) + 2 * (uint64_t)ACCOUNT_STEP < bytes ||
            !evict(tracking, self))
            return;
}

static void account(struct tracking *tracking, struct worker *worker)
{
    uint64_t told = atomic_load_explicit(&tracking->told_bytes, memory_order_relaxed);
    uint64_t bytes = tracking_table_bytes(tracking->table);
    int64_t change = (int64_t)(bytes - told);
    if ((change < ACCOUNT_STEP && change > -ACCOUNT_STEP) ||
        !atomic_compare_exchange_strong(&tracking->told_bytes, &told, bytes))
        return;
    store_note_memory(tracking->server->store, change);
    if (change > 0)
        give_way_if_short(tracking, worker);
}

/* ---- reads ---- */

static bool is_read(const struct command *command)
{
    return (command->flags & (CMD_READONLY | CMD_NESTS)) == CMD_READONLY;
}

static bool wants_reads(const struct tracker *tracker, bool caching)
{
    uint32_t options = tracker_options(tracker);
    if ((options & TRACKER_BCAST) != 0)
        return false;
    return caching ? (options & TRACKER_OPTOUT) == 0 : (options & TRACKER_OPTIN) == 0;
}

/* False: out of memory. */
static bool note_key(struct call *call, const struct store_key *key)
{
    struct request *request = request_of_call(call);
    const struct nested_calls *nested_calls = request->call.nested_calls;
    if (nested_calls != NULL && written_has(&nested_calls->written, key)) {
        invalidation_add(&request->reread, key, 0);
        return true;
    }
    return tracking_table_add(call->server->tracking->table, key, call->session->tracker);
}

static void note_reread_key(void *arg, const struct store_key *key)
{
    struct request *request = arg;
    struct tracker *tracker = request->call.session->tracker;
    if (!tracking_table_add(request->call.server->tracking->table, key, tracker))
        tracker_note(tracker, key, 0, request->conn->worker);
}

void tracking_note_reread(struct request *request)
{
    struct tracker *tracker = request->call.session->tracker;
    if (tracker != NULL && request->reread.all) /* memory had run out */
        tracker_note_all(tracker, request->conn->worker);
    if (tracker != NULL)
        invalidation_each(&request->reread, note_reread_key, request);
    invalidation_clear(&request->reread);
}

bool tracking_note_keys(struct call *call)
{
    struct tracker *tracker = call->session->tracker;
    struct tracking *tracking = call->server->tracking;
    if (!is_read(call->command) || !wants_reads(tracker, request_of_call(call)->caches) ||
        store_is_prefetch_run(call->txn))
        return true;
    for (uint32_t i = 0; i < call->key_count; i++)
        if (!note_key(call, &call->keys[i]))
            return false;
    evict_over_limit(tracking, call->worker, call->key_count + EVICT_AT_ONCE);
    account(tracking, call->worker);
    return true;
}

void tracking_prefetch(struct tracking *tracking, const struct store_key *keys, uint32_t count)
{
    tracking_table_prefetch(tracking->table, keys, count);
}

/* As in Redis, CLIENT and its subcommands do not count. */
void tracking_forget_caching(struct request *request)
{
    struct session *session = request->call.session;
    bool is_client = request->named != NULL && request->named->role == ROLE_CLIENT;
    if (session->multi == NULL && !is_client)
        session->caching = false;
}

/* ---- upkeep and figures ---- */

void tracking_follow(struct tracking *tracking)
{
    evict_over_limit(tracking, NULL, EVICT_PER_SECOND);
}

void tracking_rest(struct worker *worker)
{
    struct tracking *tracking = worker->server->tracking;
    stop_listening(tracking);
    evict_over_limit(tracking, worker, EVICT_PER_SECOND);
    tracking_table_rest(tracking->table, FREE_PER_SECOND);
    account(tracking, worker);
    give_way_if_short(tracking, worker);
}

uint64_t tracking_clients(const struct tracking *tracking)
{
    return atomic_load_explicit(&tracking->clients, memory_order_relaxed);
}

uint64_t tracking_keys(const struct tracking *tracking)
{
    return tracking_table_keys(tracking->table);
}

uint64_t tracking_items(const struct tracking *tracking)
{
    return tracking_table_items(tracking->table);
}

uint64_t tracking_prefixes(const struct tracking *tracking)
{
    return prefix_table_count(tracking->prefixes);
}
