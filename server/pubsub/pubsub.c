/*
 * A topic is a channel, a pattern or a shard channel with at least one subscriber. It is in one of
 * the shards of a table, and has a part for each worker: the list of that worker's subscriptions.
 *
 * Invariants:
 * 1. A topic is in its shard while its total is more than 0; the total and the parts' counts change
 *    under the shard's lock. A pattern is also in the list of patterns, under its lock.
 * 2. A part's list is accessed by its worker alone. A worker may therefore access a topic without a
 *    lock as long as it has a subscription there itself.
 * 3. Subscriptions and publications are numbered in one sequence. A publication is delivered to
 *    subscriptions with lower numbers only: those made while it is on its way do not get it.
 * 4. Each worker has a list of the patterns that have subscribers of its own.
 * 5. The bytes on their way to workers are bounded: if workers deliver less than is published, the
 *    publishing connections are not read from for a while.
 * 6. A closed connection has no subscriptions: an EXEC that still runs for it makes none.
 *
 * Locks: a shard's, then that of the patterns.
 */
#include "server/pubsub/pubsub.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "server/net/conn.h"
#include "server/net/conn_output.h"
#include "server/pubsub/effects.h"
#include "server/base/glob.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "storage/base/checks.h"

#define SHARDS 64
#define BUCKETS_MIN 16
#define UNDELIVERED_LEAST (1024 * 1024)
#define ENTRIES_MORE 64 /* overhead of malloc and of the buckets */
#define CHECKED_MOST 64 /* buckets of a table, and subscriptions, that checks walk over */

struct subscription {
    struct topic *topic;
    struct conn *conn;
    uint64_t sequence;
    LIST_ENTRY(subscription) of_topic; /* in the topic's part */
    LIST_ENTRY(subscription) of_session;
    struct subscription *bucket_next; /* in the worker's table */
};

struct topic_part {
    LIST_HEAD(, subscription) subscriptions;
    _Atomic uint32_t count;
    LIST_ENTRY(topic) link; /* in the worker's list of patterns */
};

struct topic {
    struct topic *bucket_next;
    LIST_ENTRY(topic) of_patterns; /* in the list of all patterns */
    uint64_t hash;
    uint64_t total;
    enum pubsub_kind kind;
    size_t len;
    char *name; /* stored after the parts */
    struct topic_part parts[];
};

struct shard {
    pthread_mutex_t lock;
    struct topic **buckets;
    uint32_t bucket_count, topic_count;
};

/* State of one worker: its subscriptions by connection and topic. */
struct local {
    struct subscription **buckets;
    uint32_t bucket_count, count;
    LIST_HEAD(, topic) patterns;
    _Atomic uint32_t pattern_count; /* in that list */
};

struct pubsub {
    uint32_t worker_count;
    uint64_t seed; /* of the name hash, so that clients cannot choose names that collide */
    _Atomic uint64_t sequence;
    _Atomic uint64_t
        undelivered;           /* of publications, counted once for each worker they will visit */
    _Atomic bool is_throttled; /* workers must be woken when `undelivered` has shrunk */
    _Atomic uint64_t topic_counts[PUBSUB_KINDS];
    struct shard shards[SHARDS];
    pthread_rwlock_t patterns_lock;
    LIST_HEAD(, topic) patterns;
    struct local locals[];
};

/* ---- life cycle ---- */

struct pubsub *pubsub_new(uint32_t worker_count)
{
    struct pubsub *pubsub = calloc(1, sizeof *pubsub + worker_count * sizeof(struct local));
    if (pubsub == NULL)
        return NULL;
    pubsub->worker_count = worker_count;
    if (getrandom(&pubsub->seed, sizeof pubsub->seed, 0) < 0)
        pubsub->seed = (uintptr_t)pubsub;
    for (uint32_t i = 0; i < SHARDS; i++)
        pthread_mutex_init(&pubsub->shards[i].lock, NULL);
    pthread_rwlock_init(&pubsub->patterns_lock, NULL);
    return pubsub;
}

void pubsub_free(struct pubsub *pubsub)
{
    if (pubsub == NULL)
        return;
    for (uint32_t i = 0; i < SHARDS; i++) {
        assert(pubsub->shards[i].topic_count == 0);
        pthread_mutex_destroy(&pubsub->shards[i].lock);
        free(pubsub->shards[i].buckets);
    }
    for (uint32_t i = 0; i < pubsub->worker_count; i++)
        free(pubsub->locals[i].buckets);
    pthread_rwlock_destroy(&pubsub->patterns_lock);
    free(pubsub);
}

/* ---- topics by name ---- */

static uint64_t mix(uint64_t hash)
{
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
    return hash ^ hash >> 32;
}

static uint64_t hash_name(const struct pubsub *pubsub, enum pubsub_kind kind,
                          struct resp_slice name)
{
    uint64_t hash = mix(pubsub->seed + kind);
    size_t at = 0;
    for (uint64_t word; at + sizeof word <= name.len; at += sizeof word) {
        memcpy(&word, name.data + at, sizeof word);
        hash = mix(hash ^ word);
    }
    uint64_t rest = 0;
    if (at < name.len)
        memcpy(&rest, name.data + at, name.len - at);
    return mix(hash ^ rest ^ (uint64_t)name.len << 56);
}

static struct shard *shard_of(struct pubsub *pubsub, uint64_t hash)
{
    return &pubsub->shards[hash % SHARDS];
}

static struct topic **bucket_of(const struct shard *shard, uint64_t hash)
{
    return &shard->buckets[hash / SHARDS % shard->bucket_count];
}

static struct topic *find(const struct shard *shard, uint64_t hash, enum pubsub_kind kind,
                          struct resp_slice name)
{
    if (shard->bucket_count == 0)
        return NULL;
    struct topic *topic = *bucket_of(shard, hash);
    while (topic != NULL && (topic->hash != hash || topic->kind != kind || topic->len != name.len ||
                             (name.len > 0 && memcmp(topic->name, name.data, name.len) != 0)))
        topic = topic->bucket_next;
    return topic;
}

/* False: out of memory, and the table is unchanged; an error only if it has no buckets. */
static bool grow(struct shard *shard)
{
    uint32_t old_count = shard->bucket_count;
    if (shard->topic_count < old_count)
        return true;
    struct shard grown = {.bucket_count = old_count == 0 ? BUCKETS_MIN : 2 * old_count};
    grown.buckets = calloc(grown.bucket_count, sizeof *grown.buckets);
    if (grown.buckets == NULL)
        return old_count > 0;
    for (uint32_t i = 0; i < old_count; i++) {
        struct topic *next;
        for (struct topic *topic = shard->buckets[i]; topic != NULL; topic = next) {
            next = topic->bucket_next;
            struct topic **bucket = bucket_of(&grown, topic->hash);
            topic->bucket_next = *bucket;
            *bucket = topic;
        }
    }
    free(shard->buckets);
    shard->buckets = grown.buckets;
    shard->bucket_count = grown.bucket_count;
    return true;
}

static struct topic *add_topic(struct pubsub *pubsub, struct shard *shard, uint64_t hash,
                               enum pubsub_kind kind, struct resp_slice name)
{
    size_t parts = pubsub->worker_count * sizeof(struct topic_part);
    if (!grow(shard))
        return NULL;
    struct topic *topic = calloc(1, sizeof *topic + parts + name.len);
    if (topic == NULL)
        return NULL;
    topic->hash = hash;
    topic->kind = kind;
    topic->len = name.len;
    topic->name = (char *)topic + sizeof *topic + parts;
    if (name.len > 0)
        memcpy(topic->name, name.data, name.len);
    struct topic **bucket = bucket_of(shard, hash);
    topic->bucket_next = *bucket;
    *bucket = topic;
    shard->topic_count++;
    atomic_fetch_add(&pubsub->topic_counts[kind], 1);
    if (kind != PUBSUB_PATTERN)
        return topic;
    pthread_rwlock_wrlock(&pubsub->patterns_lock);
    LIST_INSERT_HEAD(&pubsub->patterns, topic, of_patterns);
    pthread_rwlock_unlock(&pubsub->patterns_lock);
    return topic;
}

static void remove_topic(struct pubsub *pubsub, struct shard *shard, struct topic *topic)
{
    struct topic **at = bucket_of(shard, topic->hash);
    while (*at != topic)
        at = &(*at)->bucket_next;
    *at = topic->bucket_next;
    shard->topic_count--;
    atomic_fetch_sub(&pubsub->topic_counts[topic->kind], 1);
    if (topic->kind == PUBSUB_PATTERN) {
        pthread_rwlock_wrlock(&pubsub->patterns_lock);
        LIST_REMOVE(topic, of_patterns);
        pthread_rwlock_unlock(&pubsub->patterns_lock);
    }
    free(topic);
}

/* ---- a worker's subscriptions ---- */

static struct subscription **local_bucket(const struct local *local, const struct conn *conn,
                                          uint64_t topic_hash)
{
    uint64_t hash = mix(topic_hash ^ conn->session.id);
    return &local->buckets[hash % local->bucket_count];
}

static bool grow_local(struct local *local)
{
    struct local grown = {.bucket_count =
                              local->bucket_count == 0 ? BUCKETS_MIN : 2 * local->bucket_count};
    if (local->count < local->bucket_count)
        return true;
    grown.buckets = calloc(grown.bucket_count, sizeof *grown.buckets);
    if (grown.buckets == NULL)
        return local->bucket_count > 0;
    for (uint32_t i = 0; i < local->bucket_count; i++) {
        struct subscription *next;
        for (struct subscription *one = local->buckets[i]; one != NULL; one = next) {
            next = one->bucket_next;
            struct subscription **bucket = local_bucket(&grown, one->conn, one->topic->hash);
            one->bucket_next = *bucket;
            *bucket = one;
        }
    }
    free(local->buckets);
    local->buckets = grown.buckets;
    local->bucket_count = grown.bucket_count;
    return true;
}

static struct local *local_of(const struct conn *conn)
{
    const struct worker *worker = conn->worker;
    return &worker->server->pubsub->locals[worker->index];
}

static struct subscription *find_own(const struct conn *conn, enum pubsub_kind kind,
                                     struct resp_slice name, uint64_t hash)
{
    const struct local *local = local_of(conn);
    if (local->bucket_count == 0)
        return NULL;
    struct subscription *one = *local_bucket(local, conn, hash);
    while (one != NULL && (one->conn != conn || one->topic->hash != hash ||
                           one->topic->kind != kind || one->topic->len != name.len ||
                           (name.len > 0 && memcmp(one->topic->name, name.data, name.len) != 0)))
        one = one->bucket_next;
    return one;
}

/* Memory of a subscription, with its topic, which may have no other. */
static uint64_t bytes_of(const struct subscription *one)
{
    const struct pubsub *pubsub = one->conn->worker->server->pubsub;
    return sizeof *one + sizeof *one->topic + pubsub->worker_count * sizeof(struct topic_part) +
           one->topic->len + ENTRIES_MORE;
}

static void link_own(struct local *local, struct subscription *one)
{
    struct pubsub_session *session = &one->conn->session.pubsub;
    struct subscription **bucket = local_bucket(local, one->conn, one->topic->hash);
    one->bucket_next = *bucket;
    *bucket = one;
    local->count++;
    enum pubsub_kind kind = one->topic->kind;
    LIST_INSERT_HEAD(&session->subscriptions[kind], one, of_session);
    session->count[kind]++;
    session->bytes += bytes_of(one);
    if (kind == PUBSUB_MONITOR)
        atomic_fetch_add(&one->conn->worker->server->monitor_count, 1);
}

static void unlink_own(struct local *local, struct subscription *one)
{
    struct pubsub_session *session = &one->conn->session.pubsub;
    struct subscription **at = local_bucket(local, one->conn, one->topic->hash);
    while (*at != one)
        at = &(*at)->bucket_next;
    *at = one->bucket_next;
    local->count--;
    enum pubsub_kind kind = one->topic->kind;
    LIST_REMOVE(one, of_session);
    session->count[kind]--;
    session->bytes -= bytes_of(one);
    if (kind == PUBSUB_MONITOR)
        atomic_fetch_sub(&one->conn->worker->server->monitor_count, 1);
}

/* ---- invariants ---- */

/* Asserts invariant 1 of a shard; its lock is held. */
static void shard_check(const struct pubsub *pubsub, const struct shard *shard)
{
    uint32_t count = 0;
    if (shard->bucket_count > CHECKED_MOST || shard->topic_count > CHECKED_MOST)
        return;
    for (uint32_t i = 0; i < shard->bucket_count; i++) {
        const struct topic *topic = shard->buckets[i];
        for (; topic != NULL; topic = topic->bucket_next, count++) {
            uint64_t total = 0;
            for (uint32_t j = 0; j < pubsub->worker_count; j++)
                total += atomic_load(&topic->parts[j].count);
            assert(topic->total > 0 && topic->total == total);
            assert(bucket_of(shard, topic->hash) == &shard->buckets[i]);
        }
    }
    assert(count == shard->topic_count);
}

/* Asserts invariants 4 and 6 of a worker, and that its table is whole. Its thread only. */
static void local_check(const struct local *local, const struct worker *worker)
{
    uint32_t count = 0, patterns = 0, index = worker->index;
    if (local->bucket_count > CHECKED_MOST || local->count > CHECKED_MOST)
        return;
    for (uint32_t i = 0; i < local->bucket_count; i++) {
        const struct subscription *one = local->buckets[i];
        for (; one != NULL; one = one->bucket_next, count++) {
            assert(local_bucket(local, one->conn, one->topic->hash) == &local->buckets[i]);
            assert(one->conn->worker == worker && one->conn->transport != NULL);
            assert(atomic_load(&one->topic->parts[index].count) > 0);
        }
    }
    assert(local->count == count);
    const struct topic *topic;
    LIST_FOREACH (topic, &local->patterns, parts[index].link) {
        assert(topic->kind == PUBSUB_PATTERN && !LIST_EMPTY(&topic->parts[index].subscriptions));
        patterns++;
    }
    assert(atomic_load(&local->pattern_count) == patterns);
}

/* Asserts that the connection's counters agree with its lists, and the worker's. */
static void pubsub_check(const struct conn *conn)
{
    const struct pubsub_session *session = &conn->session.pubsub;
    uint64_t bytes = 0;
    local_check(local_of(conn), conn->worker);
    for (int kind = 0; kind < PUBSUB_KINDS; kind++) {
        const struct subscription *one;
        uint64_t count = 0;
        if (session->count[kind] > CHECKED_MOST)
            return;
        LIST_FOREACH (one, &session->subscriptions[kind], of_session) {
            assert(one->conn == conn && (int)one->topic->kind == kind);
            bytes += bytes_of(one);
            count++;
        }
        assert(session->count[kind] == count);
    }
    assert(session->bytes == bytes);
}

/* ---- topics of a worker ---- */

static void enter(struct local *local, struct topic_part *part, struct subscription *one,
                  uint32_t worker)
{
    struct topic *topic = one->topic;
    bool is_first = LIST_EMPTY(&part->subscriptions);
    LIST_INSERT_HEAD(&part->subscriptions, one, of_topic);
    if (!is_first || topic->kind != PUBSUB_PATTERN)
        return;
    LIST_INSERT_HEAD(&local->patterns, topic, parts[worker].link);
    atomic_fetch_add(&local->pattern_count, 1);
}

static void leave(struct local *local, struct topic_part *part, struct subscription *one,
                  uint32_t worker)
{
    LIST_REMOVE(one, of_topic);
    if (!LIST_EMPTY(&part->subscriptions) || one->topic->kind != PUBSUB_PATTERN)
        return;
    LIST_REMOVE(one->topic, parts[worker].link);
    atomic_fetch_sub(&local->pattern_count, 1);
}

bool pubsub_subscribe(struct conn *conn, enum pubsub_kind kind, struct resp_slice name)
{
    struct pubsub *pubsub = conn->worker->server->pubsub;
    struct local *local = local_of(conn);
    uint32_t worker = conn->worker->index;
    uint64_t hash = hash_name(pubsub, kind, name);
    if (conn->transport == NULL || find_own(conn, kind, name, hash) != NULL)
        return true;
    struct subscription *one = calloc(1, sizeof *one);
    if (one == NULL || !grow_local(local)) {
        free(one);
        return false;
    }
    struct shard *shard = shard_of(pubsub, hash);
    pthread_mutex_lock(&shard->lock);
    struct topic *topic = find(shard, hash, kind, name);
    if (topic == NULL)
        topic = add_topic(pubsub, shard, hash, kind, name);
    if (topic != NULL) {
        one->topic = topic;
        one->conn = conn;
        one->sequence = atomic_fetch_add(&pubsub->sequence, 1);
        enter(local, &topic->parts[worker], one, worker);
        atomic_fetch_add(&topic->parts[worker].count, 1);
        topic->total++;
    }
    if (storage_checks_enabled())
        shard_check(pubsub, shard);
    pthread_mutex_unlock(&shard->lock);
    if (topic == NULL) {
        free(one);
        return false;
    }
    link_own(local, one);
    if (storage_checks_enabled())
        pubsub_check(conn);
    return true;
}

static void drop(struct conn *conn, struct subscription *one)
{
    struct pubsub *pubsub = conn->worker->server->pubsub;
    struct topic *topic = one->topic;
    struct shard *shard = shard_of(pubsub, topic->hash);
    uint32_t worker = conn->worker->index;
    unlink_own(local_of(conn), one);
    leave(local_of(conn), &topic->parts[worker], one, worker);
    pthread_mutex_lock(&shard->lock);
    atomic_fetch_sub(&topic->parts[worker].count, 1);
    assert(topic->total > 0);
    if (--topic->total == 0)
        remove_topic(pubsub, shard, topic);
    if (storage_checks_enabled())
        shard_check(pubsub, shard);
    pthread_mutex_unlock(&shard->lock);
    free(one);
}

void pubsub_unsubscribe(struct conn *conn, enum pubsub_kind kind, struct resp_slice name)
{
    uint64_t hash = hash_name(conn->worker->server->pubsub, kind, name);
    struct subscription *one = find_own(conn, kind, name, hash);
    if (one != NULL)
        drop(conn, one);
    if (storage_checks_enabled())
        pubsub_check(conn);
}

bool pubsub_any(const struct conn *conn, enum pubsub_kind kind, struct resp_slice *name)
{
    const struct subscription *one = LIST_FIRST(&conn->session.pubsub.subscriptions[kind]);
    if (one == NULL)
        return false;
    *name = (struct resp_slice){one->topic->name, one->topic->len};
    return true;
}

void pubsub_leave(struct conn *conn)
{
    for (int kind = 0; kind < PUBSUB_KINDS; kind++)
        while (LIST_FIRST(&conn->session.pubsub.subscriptions[kind]) != NULL)
            drop(conn, LIST_FIRST(&conn->session.pubsub.subscriptions[kind]));
    if (storage_checks_enabled())
        pubsub_check(conn);
}

/* ---- delivering ---- */

#define HEAD_TEXT_MAX 64

/* The push's head before channel and message: "message", or "pmessage" and the pattern. */
static void push_to(struct conn *conn, const struct topic *topic, struct publication *publication)
{
    char text[HEAD_TEXT_MAX], type = conn->session.resp_version == 3 ? '>' : '*';
    struct resp_slice head[3] = {{.data = text}};
    int head_count = 1;
    if (topic->kind == PUBSUB_PATTERN) {
        head[0].len = (size_t)snprintf(text, sizeof text, "%c4\r\n$8\r\npmessage\r\n$%zu\r\n", type,
                                       topic->len);
        head[1] = (struct resp_slice){topic->name, topic->len};
        head[2] = (struct resp_slice){"\r\n", 2};
        head_count = 3;
    } else if (topic->kind != PUBSUB_MONITOR) {
        const char *name = topic->kind == PUBSUB_SHARD ? "smessage" : "message";
        head[0].len =
            (size_t)snprintf(text, sizeof text, "%c3\r\n$%zu\r\n%s\r\n", type, strlen(name), name);
    }
    conn_output_push(conn, head, head_count, publication);
}

static void deliver_topic(const struct topic *topic, uint32_t worker,
                          struct publication *publication)
{
    const struct subscription *one;
    LIST_FOREACH (one, &topic->parts[worker].subscriptions, of_topic)
        if (one->sequence < publication->sequence)
            push_to(one->conn, topic, publication);
}

/* As much as would exceed the clients' memory limits. */
static uint64_t undelivered_most(const struct server *server)
{
    uint64_t most = atomic_load_explicit(&server->client_soft_limit, memory_order_relaxed);
    return most > UNDELIVERED_LEAST ? most : UNDELIVERED_LEAST;
}

static uint64_t publication_size(const struct server *server, const struct publication *publication)
{
    return sizeof *publication + server->worker_count * sizeof *publication->visits +
           publication->len;
}

bool pubsub_throttles(struct worker *worker)
{
    struct pubsub *pubsub = worker->server->pubsub;
    uint64_t most = undelivered_most(worker->server);
    if (atomic_load_explicit(&pubsub->undelivered, memory_order_relaxed) <= most)
        return false;
    worker->is_throttled = true;
    atomic_store(&pubsub->is_throttled, true);
    return atomic_load(&pubsub->undelivered) > most; /* a thread that reduces it later wakes us */
}

/* Checks again after asking to be woken, to avoid a lost wake-up. */
void pubsub_hear_again(struct worker *worker)
{
    struct conn *conn;
    struct pubsub *pubsub = worker->server->pubsub;
    if (!worker->is_throttled)
        return;
    atomic_store(&pubsub->is_throttled, true);
    if (atomic_load(&pubsub->undelivered) > undelivered_most(worker->server) / 2)
        return;
    worker->is_throttled = false;
    LIST_FOREACH (conn, &worker->conns, of_worker) {
        if (conn->has_published)
            conn_mark_ready(conn);
        conn->has_published = false;
    }
}

static void note_delivered(struct server *server, uint64_t size)
{
    struct pubsub *pubsub = server->pubsub;
    uint64_t left = atomic_fetch_sub(&pubsub->undelivered, size) - size;
    if (left > undelivered_most(server) / 2 || !atomic_load(&pubsub->is_throttled) ||
        !atomic_exchange(&pubsub->is_throttled, false))
        return;
    for (uint32_t i = 0; i < server->worker_count; i++)
        worker_wake(server->workers[i]);
}

static void deliver(struct worker *worker, struct worker_message *message)
{
    struct publication *publication = ((struct publication_visit *)message)->publication;
    struct pubsub *pubsub = worker->server->pubsub;
    struct resp_slice channel = publication->channel;
    uint64_t hash = hash_name(pubsub, publication->kind, channel);
    struct shard *shard = shard_of(pubsub, hash);
    uint32_t index = worker->index;
    pthread_mutex_lock(&shard->lock);
    struct topic *topic = find(shard, hash, publication->kind, channel);
    if (topic != NULL && atomic_load(&topic->parts[index].count) == 0)
        topic = NULL;
    pthread_mutex_unlock(&shard->lock);
    if (topic != NULL)
        deliver_topic(topic, index, publication);
    if (publication->kind == PUBSUB_CHANNEL)
        LIST_FOREACH (topic, &pubsub->locals[index].patterns, parts[index].link)
            if (glob_match(topic->name, topic->len, channel.data, channel.len, false))
                deliver_topic(topic, index, publication);
    note_delivered(worker->server, publication_size(worker->server, publication));
    publication_release(publication);
}

_Static_assert(offsetof(struct publication_visit, message) == 0, "a visit is its message");

/* Marks the workers to visit; false: none. */
static bool choose_workers(struct pubsub *pubsub, struct publication *publication)
{
    bool is_channel = publication->kind == PUBSUB_CHANNEL, any = false;
    uint64_t hash = hash_name(pubsub, publication->kind, publication->channel);
    struct shard *shard = shard_of(pubsub, hash);
    pthread_mutex_lock(&shard->lock);
    const struct topic *topic = find(shard, hash, publication->kind, publication->channel);
    for (uint32_t i = 0; i < pubsub->worker_count; i++) {
        bool wants = (topic != NULL && atomic_load(&topic->parts[i].count) > 0) ||
                     (is_channel && atomic_load(&pubsub->locals[i].pattern_count) > 0);
        publication->visits[i].publication = wants ? publication : NULL;
        any = any || wants;
    }
    pthread_mutex_unlock(&shard->lock);
    return any;
}

void pubsub_publish(struct server *server, struct worker *self, struct publication *publication)
{
    struct pubsub *pubsub = server->pubsub;
    publication->sequence = atomic_fetch_add(&pubsub->sequence, 1);
    bool any = choose_workers(pubsub, publication);
    for (uint32_t i = 0; any && i < pubsub->worker_count; i++) {
        struct publication_visit *visit = &publication->visits[i];
        if (visit->publication == NULL)
            continue;
        publication_hold(publication);
        atomic_fetch_add(&pubsub->undelivered, publication_size(server, publication));
        /* Urgent, as the clients that publish are throttled until it is delivered. */
        visit->message = (struct worker_message){.visit = deliver, .is_urgent = true};
        if (server->workers[i] == self)
            worker_post_self(self, &visit->message);
        else
            worker_post(server->workers[i], &visit->message);
    }
    publication_release(publication);
}

void pubsub_send(struct worker *self, struct effects *effects, uint64_t shown)
{
    for (struct publication *one; (one = STAILQ_FIRST(&effects->messages)) != NULL;) {
        STAILQ_REMOVE_HEAD(&effects->messages, link);
        one->shown = shown;
        pubsub_publish(self->server, self, one);
    }
}

/* ---- queries ---- */

bool pubsub_has(const struct pubsub *pubsub, enum pubsub_kind kind)
{
    return atomic_load_explicit(&pubsub->topic_counts[kind], memory_order_relaxed) > 0;
}

uint64_t pubsub_topics(const struct pubsub *pubsub, enum pubsub_kind kind)
{
    return atomic_load(&pubsub->topic_counts[kind]);
}

uint64_t pubsub_subscribers(struct pubsub *pubsub, enum pubsub_kind kind, struct resp_slice name)
{
    uint64_t hash = hash_name(pubsub, kind, name);
    struct shard *shard = shard_of(pubsub, hash);
    pthread_mutex_lock(&shard->lock);
    const struct topic *topic = find(shard, hash, kind, name);
    uint64_t total = topic == NULL ? 0 : topic->total;
    pthread_mutex_unlock(&shard->lock);
    return total;
}

uint64_t pubsub_receivers(struct pubsub *pubsub, enum pubsub_kind kind, struct resp_slice channel)
{
    uint64_t total = pubsub_has(pubsub, kind) ? pubsub_subscribers(pubsub, kind, channel) : 0;
    if (kind != PUBSUB_CHANNEL || !pubsub_has(pubsub, PUBSUB_PATTERN))
        return total;
    pthread_rwlock_rdlock(&pubsub->patterns_lock);
    const struct topic *topic;
    LIST_FOREACH (topic, &pubsub->patterns, of_patterns)
        if (glob_match(topic->name, topic->len, channel.data, channel.len, false))
            for (uint32_t i = 0; i < pubsub->worker_count; i++)
                total += atomic_load_explicit(&topic->parts[i].count, memory_order_relaxed);
    pthread_rwlock_unlock(&pubsub->patterns_lock);
    return total;
}

void pubsub_each(struct pubsub *pubsub, enum pubsub_kind kind,
                 void (*visit)(void *arg, struct resp_slice name), void *arg)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &pubsub->shards[i];
        pthread_mutex_lock(&shard->lock);
        for (uint32_t j = 0; j < shard->bucket_count; j++)
            for (struct topic *topic = shard->buckets[j]; topic != NULL; topic = topic->bucket_next)
                if (topic->kind == kind)
                    visit(arg, (struct resp_slice){topic->name, topic->len});
        pthread_mutex_unlock(&shard->lock);
    }
}
