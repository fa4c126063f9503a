/* Snapshots and observers under random writers: a snapshot is the store as it was when it began,
 * exactly; what an observer is told, replayed into a plain model, is what the store holds. With a
 * cache of 256 pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/storage/workload.h"

#define AMPLE (64u << 20)

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

static uint32_t limit_of(const char *name, uint32_t otherwise)
{
    const char *given = getenv(name);
    return given ? (uint32_t)atoi(given) : otherwise;
}

/* ---- a snapshot compared with an oracle as it is read ---- */

struct shot {
    struct store_snapshot *snapshot;
    struct oracle *expected;
    int64_t now_ms;
    bool seen[ORACLE_DBS][ORACLE_KEYS];
    const struct store_snapshot_item *item; /* whose stream is being read */
    const struct blob *value;
    uint64_t offset;
    uint32_t ready;
};

static void count_ready(void *arg)
{
    ((struct shot *)arg)->ready++;
}

static void shot_begin(struct shot *shot, struct rig *rig, uint32_t worker,
                       const struct oracle *now, uint64_t memory_bytes)
{
    *shot = (struct shot){.now_ms = wall_ms()};
    shot->expected = calloc(1, sizeof *shot->expected);
    must(shot->expected, "out of memory");
    oracle_copy(shot->expected, now);
    struct store_snapshot_options options = {
        .memory_bytes = memory_bytes, .now_ms = shot->now_ms, .ready = count_ready, .arg = shot};
    must(store_snapshot_begin(rig->workers[worker], &options, &shot->snapshot) == STORE_OK,
         "a snapshot cannot begin");
}

static void shot_end(struct shot *shot)
{
    store_snapshot_end(shot->snapshot);
    oracle_clear(shot->expected);
    free(shot->expected);
}

static void compare_item(struct shot *shot, const struct store_snapshot_item *item)
{
    uint32_t id = oracle_id(item->key, item->key_len);
    must(item->db < ORACLE_DBS && id < ORACLE_KEYS, "a snapshot shows a key that never was");
    const struct oracle_entry *entry = &shot->expected->entries[item->db][id];
    must(oracle_lives(entry, shot->now_ms), "a snapshot shows db %u key %u, which was not there",
         item->db, id);
    must(!shot->seen[item->db][id], "a snapshot shows db %u key %u twice", item->db, id);
    must(item->version <= store_snapshot_commit(shot->snapshot), "a version of later");
    must(item->type == entry->type && item->expire_ms == entry->expire_ms &&
             item->length == entry->blob->len,
         "a snapshot shows db %u key %u with another type, expiry or length", item->db, id);
    shot->seen[item->db][id] = true;
    shot->value = entry->blob;
    if (item->reader) {
        shot->item = item;
        shot->offset = 0;
    } else {
        must(memcmp(item->bytes, entry->blob->bytes, item->length) == 0,
             "a snapshot shows db %u key %u with another value", item->db, id);
    }
}

/* Returns false when the stream has to wait. */
static bool compare_piece(struct shot *shot)
{
    const struct iovec *vectors;
    int count;
    enum store_result result = store_reader_next(shot->item->reader, &vectors, &count);
    if (result == STORE_WAIT)
        return false;
    if (result == STORE_ABSENT) {
        must(shot->offset == shot->item->length, "a large value ends early");
        shot->item = NULL;
        return true;
    }
    must(result == STORE_OK, "a large value fails with %d", result);
    for (int i = 0; i < count; i++) {
        must(shot->offset + vectors[i].iov_len <= shot->value->len &&
                 memcmp(vectors[i].iov_base, shot->value->bytes + shot->offset,
                        vectors[i].iov_len) == 0,
             "a large value of %llu bytes is another at %llu", (unsigned long long)shot->value->len,
             (unsigned long long)shot->offset);
        shot->offset += vectors[i].iov_len;
    }
    return true;
}

static void check_complete(const struct shot *shot)
{
    for (uint32_t db = 0; db < ORACLE_DBS; db++)
        for (uint32_t id = 0; id < ORACLE_KEYS; id++)
            must(shot->seen[db][id] ||
                     !oracle_lives(&shot->expected->entries[db][id], shot->now_ms),
                 "a snapshot omits db %u key %u", db, id);
}

/* STORE_OK: got on; STORE_WAIT; STORE_ABSENT: it was complete. */
static enum store_result shot_step(struct shot *shot)
{
    if (shot->item)
        return compare_piece(shot) ? STORE_OK : STORE_WAIT;
    const struct store_snapshot_item *item;
    enum store_result result = store_snapshot_next(shot->snapshot, &item);
    if (result == STORE_OK)
        compare_item(shot, item);
    if (result == STORE_ABSENT)
        check_complete(shot);
    return result;
}

static void shot_finish(struct shot *shot, struct rig *rig)
{
    enum store_result result;
    while ((result = shot_step(shot)) != STORE_ABSENT) {
        must(result == STORE_OK || result == STORE_WAIT, "a snapshot fails with %d", result);
        if (result == STORE_WAIT)
            rig_round(rig);
    }
}

/* ---- an observer's model ---- */

struct told {
    bool there, large;
    uint8_t type;
    int64_t expire_ms;
    uint64_t version, length;
    struct blob *bytes; /* of a small value */
};

struct replay {
    struct told keys[ORACLE_DBS][ORACLE_KEYS];
    uint64_t last_commit, expired, changes;
};

static void forget(struct told *told)
{
    blob_unref(told->bytes);
    *told = (struct told){0};
}

static void compare_told(const struct told *told, const struct store_item *item)
{
    must(told->there == (item != NULL), "an observer is told another old item");
    if (!item)
        return;
    must(told->version == item->version && told->type == item->type &&
             told->expire_ms == item->expire_ms && told->length == item->length &&
             told->large == item->large &&
             (item->large || memcmp(told->bytes->bytes, item->bytes, item->length) == 0),
         "the old item is not what the key was last changed to");
}

static void replay_key(struct replay *replay, const struct store_change *change)
{
    uint32_t id = oracle_id(change->key->data, change->key->len);
    must(id < ORACLE_KEYS && change->key->db < ORACLE_DBS, "a change of a key that never was");
    struct told *told = &replay->keys[change->key->db][id];
    const struct store_item *fresh = change->fresh;
    compare_told(told, change->old);
    if (change->cause == STORE_BY_EXPIRY) {
        replay->expired++;
        must(!fresh && told->expire_ms != STORE_NO_EXPIRY && told->expire_ms <= wall_ms(),
             "key %u expires before its time", id);
    }
    forget(told);
    if (!fresh)
        return;
    must(fresh->version == change->commit, "a version is its commit's number");
    *told = (struct told){true,           fresh->large,  fresh->type, fresh->expire_ms,
                          fresh->version, fresh->length, NULL};
    if (!fresh->large) {
        told->bytes = blob_new(fresh->length);
        memcpy(told->bytes->bytes, fresh->bytes, fresh->length);
    }
}

static void replay_swap(struct replay *replay, uint32_t dbs)
{
    struct told was[ORACLE_KEYS];
    uint32_t a = (uint32_t)__builtin_ctz(dbs), b = (uint32_t)__builtin_ctz(dbs & (dbs - 1));
    memcpy(was, replay->keys[a], sizeof was);
    memcpy(replay->keys[a], replay->keys[b], sizeof was);
    memcpy(replay->keys[b], was, sizeof was);
}

static void replay_flush(struct replay *replay, uint32_t dbs)
{
    for (uint32_t db = 0; db < ORACLE_DBS; db++)
        for (uint32_t id = 0; id < ORACLE_KEYS; id++)
            if (dbs >> db & 1)
                forget(&replay->keys[db][id]);
}

static void replay_change(void *arg, const struct store_change *change)
{
    struct replay *replay = arg;
    replay->changes++;
    must(change->commit >= replay->last_commit, "a change out of order");
    replay->last_commit = change->commit;
    if (change->kind == STORE_CHANGE_SWAP)
        replay_swap(replay, change->dbs);
    else if (change->kind == STORE_CHANGE_FLUSH)
        replay_flush(replay, change->dbs);
    else
        replay_key(replay, change);
}

static void replay_compare_step(const struct replay *replay, const struct call *call,
                                const struct step *step)
{
    const struct call_key *key = &call->keys[step->key];
    const struct told *told = &replay->keys[key->db][key->id];
    bool lives = told->there &&
                 (told->expire_ms == STORE_NO_EXPIRY || told->expire_ms >= call->request.now_ms);
    must(step->found == lives, "db %u key %u is not as observed", key->db, key->id);
    if (!lives)
        return;
    must(step->item.version == told->version && step->item.type == told->type &&
             step->item.expire_ms == told->expire_ms && step->item.length == told->length,
         "db %u key %u has another version, type, expiry or length than observed", key->db,
         key->id);
    must(told->large || memcmp(step->value->bytes, told->bytes->bytes, told->length) == 0,
         "db %u key %u has another value than observed", key->db, key->id);
}

static void replay_compare(const struct replay *replay, struct rig *rig)
{
    for (uint32_t i = 0; i < ORACLE_DBS * ORACLE_KEYS; i++) {
        struct call *call = call_new();
        call_step(call, STEP_GET, oracle_key(call, i / ORACLE_KEYS, i % ORACLE_KEYS));
        call_start(rig->workers[0], call);
        call_wait(rig, call);
        must(call->result == STORE_OK, "reading key %u: %d", i, call->result);
        replay_compare_step(replay, call, &call->steps[0]);
        call_free(call);
    }
}

/* ---- random writers between the steps of snapshots ---- */

/* Whole databases go and change places more often than the workload has them do. */
static void change_databases(struct workload *load)
{
    struct call *call = call_new();
    uint32_t kind = rng_below(&load->rng, 3), db = rng_below(&load->rng, ORACLE_DBS);
    call->exclusive = true;
    struct step *step = call_step(call,
                                  kind == 0   ? STEP_FLUSH_ALL
                                  : kind == 1 ? STEP_FLUSH_DB
                                              : STEP_SWAP_DB,
                                  db);
    step->other = (db + 1) % ORACLE_DBS;
    workload_start(load, call);
}

/* Now writers are quick, now the snapshot is; and some are ended before they are complete. */
static void one_snapshot(struct rig *rig, struct workload *load)
{
    struct shot shot;
    shot_begin(&shot, rig, rng_below(&load->rng, rig->worker_count), load->now, AMPLE);
    uint32_t writes = rng_below(&load->rng, 100), give_up = rng_below(&load->rng, 8);
    uint32_t alone = rng_below(&load->rng, 3), steps = 0;
    enum store_result result = STORE_OK;
    while (result != STORE_ABSENT && (give_up || steps < 300)) {
        if (rng_chance(&load->rng, writes))
            workload_step(load);
        if (rng_below(&load->rng, 200) < alone)
            change_databases(load);
        result = shot_step(&shot);
        must(result == STORE_OK || result == STORE_WAIT || result == STORE_ABSENT,
             "a snapshot fails with %d", result);
        steps++;
        if (result == STORE_WAIT)
            rig_round(rig);
    }
    shot_end(&shot);
}

static void snapshots_session(struct rig *rig, struct workload *load, struct replay *replay)
{
    rig->options.worker_count = 1 + rng_below(&load->rng, 3);
    must(rig_open(rig, NULL) == STORE_OK, "open: %s", rig->message);
    must(store_observe(rig->store, replay_change, replay) == STORE_OK, "no room");
    replay->last_commit = 0;
    uint64_t expired = replay->expired;
    uint32_t snapshots = limit_of("VELLUM_SNAPSHOTS", 8);
    for (uint32_t i = 0; i < snapshots; i++) {
        for (uint32_t j = 0; j < 150; j++)
            workload_step(load);
        one_snapshot(rig, load);
    }
    workload_drain(load);
    oracle_compare(load->now, rig);
    replay_compare(replay, rig);
    store_unobserve(rig->store, replay_change, replay);
    struct store_stats stats;
    store_stats(rig->store, &stats);
    must(stats.damaged_items == 0 && stats.read_errors == 0, "damage: %s", rig->last_warning);
    must(replay->expired - expired <= stats.expired_keys, "more expiries observed than counted");
    rig_close_well(rig);
    workload_settle(load);
}

static void a_snapshot_is_one_point_in_time(void **state)
{
    (void)state;
    struct rig rig;
    struct workload load;
    char directory[256];
    uint64_t seed = rng_seed("snapshots");
    struct replay *replay = calloc(1, sizeof *replay);
    must(replay, "out of memory");
    scratch_make(directory);
    rig_defaults(&rig);
    rig.options.directory = directory;
    workload_init(&load, &rig, seed);
    for (uint32_t i = 0; i < limit_of("VELLUM_SESSIONS", 3); i++)
        snapshots_session(&rig, &load, replay);
    must(replay->expired > 0, "nothing has expired under the observer");
    replay_flush(replay, ~0u);
    free(replay);
    workload_free(&load);
    scratch_remove(directory);
}

/* ---- what a flush leaves comes back once the snapshot has ended ---- */

static void flush_everything(struct rig *rig)
{
    struct call *call = call_new();
    call->exclusive = true;
    call_step(call, STEP_FLUSH_ALL, 0);
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    must(call->result == STORE_OK, "a flush fails with %d", call->result);
    call_free(call);
}

static uint64_t live_slots(struct rig *rig)
{
    struct store_stats stats;
    store_stats(rig->store, &stats);
    return stats.live_slots;
}

static void fill(struct rig *rig, struct oracle *oracle, struct rng *rng)
{
    for (uint32_t id = 0; id < ORACLE_KEYS; id++) {
        struct call *call = call_new();
        uint64_t len = id < 8 ? 300000 : rng_below(rng, 2000);
        call_step(call, STEP_PUT, oracle_key(call, 0, id))->blob = blob_random(rng, len);
        call_start(rig->workers[0], call);
        call_wait(rig, call);
        must(call->result == STORE_OK, "put fails with %d", call->result);
        oracle_apply(oracle, call, false);
        call_free(call);
    }
}

/* A filled store, and a snapshot of it to be taken. */
struct scene {
    struct rng rng;
    struct medium *medium;
    struct oracle *oracle;
    struct rig rig;
    struct shot shot;
};

static struct scene *scene_new(const char *seed)
{
    struct scene *scene = calloc(1, sizeof *scene);
    must(scene && (scene->oracle = calloc(1, sizeof *scene->oracle)), "no memory");
    scene->rng.state = rng_seed(seed);
    scene->medium = medium_new(scene->rng.state);
    rig_defaults(&scene->rig);
    rig_open_on(&scene->rig, scene->medium);
    fill(&scene->rig, scene->oracle, &scene->rng);
    return scene;
}

static void scene_free(struct scene *scene)
{
    rig_close_well(&scene->rig);
    oracle_clear(scene->oracle);
    free(scene->oracle);
    medium_free(scene->medium);
    free(scene);
}

static void a_flush_does_not_reach_a_snapshot(void **state)
{
    (void)state;
    struct scene *scene = scene_new("flush");
    shot_begin(&scene->shot, &scene->rig, 0, scene->oracle, AMPLE);
    for (uint32_t i = 0; i < 50; i++)
        if (shot_step(&scene->shot) == STORE_WAIT)
            rig_round(&scene->rig);
    flush_everything(&scene->rig);
    oracle_clear(scene->oracle);
    fill(&scene->rig, scene->oracle, &scene->rng); /* over what was given up, if it could be had */
    rig_run(&scene->rig, 50);
    shot_finish(&scene->shot, &scene->rig);
    must(live_slots(&scene->rig) > ORACLE_KEYS, "flushed items went before the snapshot's end");
    shot_end(&scene->shot);
    for (uint32_t i = 0; live_slots(&scene->rig) != ORACLE_KEYS; i++) {
        must(i < 1000, "%llu slots are in use", (unsigned long long)live_slots(&scene->rig));
        rig_run(&scene->rig, 10);
    }
    oracle_compare(scene->oracle, &scene->rig);
    scene_free(scene);
}

/* ---- large values that were overwritten long before they are read ---- */

static void runs_are_not_used_again_too_early(void **state)
{
    (void)state;
    struct scene *scene = scene_new("runs");
    shot_begin(&scene->shot, &scene->rig, 0, scene->oracle, AMPLE);
    for (uint32_t i = 0; i < 3; i++) {
        fill(&scene->rig, scene->oracle, &scene->rng);
        rig_run(&scene->rig, 30); /* the maintenance thread frees what it may */
    }
    shot_finish(&scene->shot, &scene->rig);
    shot_end(&scene->shot);
    scene_free(scene);
}

/* ---- memory and observers are limited ---- */

static void a_snapshot_left_behind_says_so(void **state)
{
    (void)state;
    struct scene *scene = scene_new("limit");
    shot_begin(&scene->shot, &scene->rig, 0, scene->oracle, 50000);
    fill(&scene->rig, scene->oracle, &scene->rng); /* no writer fails or waits for the snapshot */
    must(shot_step(&scene->shot) == STORE_TOO_LARGE, "a snapshot that lacks items does not say so");
    must(shot_step(&scene->shot) == STORE_TOO_LARGE, "it forgets that it has failed");
    shot_end(&scene->shot);
    oracle_compare(scene->oracle, &scene->rig);
    scene_free(scene);
}

static void a_snapshot_that_cannot_be_read_says_so(void **state)
{
    (void)state;
    struct scene *scene = scene_new("unreadable");
    enum store_result result = STORE_OK;
    rig_reopen(&scene->rig, scene->medium);
    shot_begin(&scene->shot, &scene->rig, 0, scene->oracle, AMPLE);
    medium_fail(scene->medium, FAULT_READ, "slabs", 5, EIO, false);
    while (result == STORE_OK || result == STORE_WAIT) {
        result = shot_step(&scene->shot);
        if (result == STORE_WAIT)
            rig_round(&scene->rig);
    }
    must(result == STORE_IO, "a snapshot ends with %d where a page cannot be read", result);
    must(shot_step(&scene->shot) == STORE_IO, "it forgets that it has failed");
    must(scene->shot.ready > 0, "nobody was told to go on");
    shot_end(&scene->shot);
    scene_free(scene);
}

static void count_change(void *arg, const struct store_change *change)
{
    (void)change;
    ++*(uint32_t *)arg;
}

static void observers_come_and_go(void **state)
{
    (void)state;
    struct medium *medium = medium_new(rng_seed("observers"));
    struct rig rig;
    uint32_t counts[STORE_OBSERVER_MAX] = {0}, one_more = 0;
    rig_defaults(&rig);
    rig_open_on(&rig, medium);
    for (uint32_t i = 0; i < STORE_OBSERVER_MAX; i++)
        must(store_observe(rig.store, count_change, &counts[i]) == STORE_OK, "no room");
    must(store_observe(rig.store, count_change, &one_more) == STORE_INVALID, "too many");
    must(do_set(&rig, "key", "value") == STORE_OK, "set");
    store_unobserve(rig.store, count_change, &counts[2]);
    must(do_set(&rig, "key", "other") == STORE_OK, "set");
    must(do_delete(&rig, "absent") == STORE_OK, "delete"); /* changes nothing */
    for (uint32_t i = 0; i < STORE_OBSERVER_MAX; i++)
        must(counts[i] == (i == 2 ? 1 : 2), "observer %u was told %u changes", i, counts[i]);
    rig_end(&rig, medium);
}

/* ---- writers on other threads ---- */

#define THREAD_KEYS 120u
#define THREAD_SNAPSHOTS 12u

/* What became of a key: 0 bytes, it went. */
struct event {
    uint64_t commit, length;
};

struct history {
    struct event *events;
    uint32_t count, room;
};

struct recorder {
    pthread_mutex_t lock;
    struct history keys[THREAD_KEYS];
};

struct writer {
    struct rig *rig;
    struct store_worker *worker;
    struct rng rng;
    _Atomic bool *stop;
    _Atomic uint32_t *at_work;
    pthread_t thread;
};

static void record(struct history *history, uint64_t commit, uint64_t length)
{
    if (history->count == history->room) {
        history->room = history->room ? 2 * history->room : 64;
        history->events = realloc(history->events, history->room * sizeof *history->events);
        must(history->events, "out of memory");
    }
    must(history->count == 0 || history->events[history->count - 1].commit <= commit,
         "changes of a key out of order");
    history->events[history->count++] = (struct event){commit, length};
}

static void record_change(void *arg, const struct store_change *change)
{
    struct recorder *recorder = arg;
    pthread_mutex_lock(&recorder->lock);
    for (uint32_t id = 0; change->kind == STORE_CHANGE_FLUSH && id < THREAD_KEYS; id++)
        record(&recorder->keys[id], change->commit, 0);
    if (change->kind == STORE_CHANGE_KEY)
        record(&recorder->keys[oracle_id(change->key->data, change->key->len)], change->commit,
               change->fresh ? change->fresh->length : 0);
    pthread_mutex_unlock(&recorder->lock);
}

/* A value tells its own bytes: they all follow from the first eight. */
static struct blob *telling_value(struct rng *rng, uint64_t len)
{
    struct rng own = {rng_next(rng)};
    uint64_t seed = own.state;
    struct blob *blob = blob_random(&own, len);
    memcpy(blob->bytes, &seed, sizeof seed);
    return blob;
}

static void check_telling(const char *bytes, uint64_t len)
{
    struct rng own;
    memcpy(&own.state, bytes, sizeof own.state);
    struct blob *expected = blob_random(&own, len);
    must(memcmp(expected->bytes + 8, bytes + 8, len - 8) == 0, "a value is of two writes");
    blob_unref(expected);
}

static void write_something(struct writer *writer)
{
    struct call *call = call_new();
    struct rng *rng = &writer->rng;
    if (rng_below(rng, 500) == 0) {
        call->exclusive = true;
        call_step(call, STEP_FLUSH_ALL, 0);
    }
    for (uint32_t i = 0; !call->exclusive && i < 1 + rng_below(rng, 4); i++) {
        uint32_t id = rng_below(rng, THREAD_KEYS), key = oracle_key(call, 0, id);
        if (rng_chance(rng, 15))
            call_step(call, STEP_DELETE, key);
        else
            call_step(call, STEP_PUT, key)->blob = telling_value(
                rng, id < 4 ? 100000 + rng_below(rng, 200000) : 8 + rng_below(rng, 3000));
    }
    call_start(writer->worker, call);
    call_wait_on(writer->worker, call);
    must(call->result == STORE_OK, "a call fails with %d", call->result);
    call_free(call);
}

static void serve(struct store_worker *worker)
{
    store_submit(worker);
    store_poll(worker);
    usleep(100);
}

static void *write_on(void *arg)
{
    struct writer *writer = arg;
    while (!atomic_load(writer->stop))
        write_something(writer);
    atomic_fetch_sub(writer->at_work, 1);
    while (atomic_load(writer->at_work) > 0) /* others may wait for what this worker began */
        serve(writer->worker);
    return NULL;
}

static void read_large(struct store_worker *worker, const struct store_snapshot_item *item)
{
    const struct iovec *vectors;
    struct blob *value = blob_new(item->length);
    uint64_t offset = 0;
    int count;
    enum store_result result;
    while ((result = store_reader_next(item->reader, &vectors, &count)) != STORE_ABSENT) {
        must(result == STORE_OK || result == STORE_WAIT, "a large value fails with %d", result);
        if (result == STORE_WAIT)
            serve(worker);
        for (int i = 0; result == STORE_OK && i < count; i++) {
            memcpy(value->bytes + offset, vectors[i].iov_base, vectors[i].iov_len);
            offset += vectors[i].iov_len;
        }
    }
    must(offset == item->length, "a large value ends early");
    check_telling(value->bytes, value->len);
    blob_unref(value);
}

/* Versions and lengths found, by key; version 0: none. */
static void read_snapshot(struct store_worker *worker, struct store_snapshot *snapshot,
                          struct event found[THREAD_KEYS])
{
    const struct store_snapshot_item *item;
    enum store_result result;
    memset(found, 0, THREAD_KEYS * sizeof *found);
    while ((result = store_snapshot_next(snapshot, &item)) != STORE_ABSENT) {
        must(result == STORE_OK || result == STORE_WAIT, "a snapshot fails with %d", result);
        if (result == STORE_WAIT) {
            serve(worker);
            continue;
        }
        uint32_t id = oracle_id(item->key, item->key_len);
        must(id < THREAD_KEYS && found[id].commit == 0, "key %u twice or never was", id);
        found[id] = (struct event){item->version, item->length};
        if (item->reader)
            read_large(worker, item);
        else
            check_telling(item->bytes, item->length);
    }
}

static void compare_history(struct recorder *recorder, uint64_t commit,
                            const struct event found[THREAD_KEYS])
{
    pthread_mutex_lock(&recorder->lock);
    for (uint32_t id = 0; id < THREAD_KEYS; id++) {
        const struct history *history = &recorder->keys[id];
        struct event expected = {0};
        for (uint32_t i = 0; i < history->count && history->events[i].commit <= commit; i++)
            expected = history->events[i];
        if (expected.length == 0)
            expected.commit = 0;
        must(found[id].commit == expected.commit && found[id].length == expected.length,
             "key %u at commit %llu: version %llu instead of %llu", id, (unsigned long long)commit,
             (unsigned long long)found[id].commit, (unsigned long long)expected.commit);
    }
    pthread_mutex_unlock(&recorder->lock);
}

static void take_snapshots(struct rig *rig, struct recorder *recorder)
{
    uint32_t count = limit_of("VELLUM_SNAPSHOTS", THREAD_SNAPSHOTS);
    for (uint32_t i = 0; i < count; i++) {
        struct store_snapshot_options options = {.memory_bytes = AMPLE, .now_ms = wall_ms()};
        struct store_snapshot *snapshot;
        struct event found[THREAD_KEYS];
        must(store_snapshot_begin(rig->workers[0], &options, &snapshot) == STORE_OK, "begin");
        read_snapshot(rig->workers[0], snapshot, found);
        compare_history(recorder, store_snapshot_commit(snapshot), found);
        store_snapshot_end(snapshot);
        for (uint32_t round = 0; round < 50; round++)
            serve(rig->workers[0]);
    }
}

static void a_snapshot_is_whole_under_other_threads(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("threads");
    struct medium *medium = medium_new(seed);
    struct recorder recorder = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct writer writers[2];
    _Atomic bool stop = false;
    _Atomic uint32_t at_work = 2;
    struct rig rig;
    rig_defaults(&rig);
    rig.options.worker_count = 3;
    rig_open_on(&rig, medium);
    must(store_observe(rig.store, record_change, &recorder) == STORE_OK, "no room");
    for (uint32_t i = 0; i < 2; i++) {
        writers[i] = (struct writer){&rig, rig.workers[i + 1], {seed + i}, &stop, &at_work, 0};
        must(pthread_create(&writers[i].thread, NULL, write_on, &writers[i]) == 0, "no thread");
    }
    take_snapshots(&rig, &recorder);
    atomic_store(&stop, true);
    while (atomic_load(&at_work) > 0)
        serve(rig.workers[0]);
    for (uint32_t i = 0; i < 2; i++)
        pthread_join(writers[i].thread, NULL);
    rig_close_well(&rig);
    for (uint32_t id = 0; id < THREAD_KEYS; id++)
        free(recorder.keys[id].events);
    medium_free(medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_is_one_point_in_time),
        cmocka_unit_test(a_flush_does_not_reach_a_snapshot),
        cmocka_unit_test(runs_are_not_used_again_too_early),
        cmocka_unit_test(a_snapshot_left_behind_says_so),
        cmocka_unit_test(a_snapshot_that_cannot_be_read_says_so),
        cmocka_unit_test(observers_come_and_go),
        cmocka_unit_test(a_snapshot_is_whole_under_other_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
