/* Several threads, each with a worker, on the same keys: every transaction is seen whole or not at
 * all, and none is lost. On the disk in memory, with so small a cache that everybody waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/storage/fault_disk.h"

#define THREADS 3u
#define GROUP 6u /* keys that are always written together */
#define COUNTERS 4u
#define MOVERS 8u /* values that are renamed around twice as many names */
#define FILLERS 2000u

struct thread {
    struct rig *rig;
    struct store_worker *worker;
    struct rng rng;
    uint32_t rounds;
    _Atomic uint32_t *at_work; /* threads */
    uint64_t increments[COUNTERS];
    pthread_t id;
};

static uint32_t name_key(struct call *call, const char *kind, uint32_t number)
{
    char name[64];
    int len = snprintf(name, sizeof name, "%s:%u", kind, number);
    return call_key(call, 0, number, name, (uint32_t)len);
}

static void run(struct thread *thread, struct call *call)
{
    call_start(thread->worker, call);
    call_wait_on(thread->worker, call);
    must(call->result == STORE_OK, "a call fails with %d", call->result);
}

/* ---- a group of keys over all partitions ---- */

static void write_group(struct thread *thread)
{
    struct call *call = call_new();
    struct blob *value = blob_random(&thread->rng, 8 + rng_below(&thread->rng, 1500));
    for (uint32_t i = 0; i < GROUP; i++)
        call_step(call, STEP_PUT, name_key(call, "group", i))->blob = blob_ref(value);
    blob_unref(value);
    run(thread, call);
    call_free(call);
}

static void read_group(struct thread *thread, bool alone)
{
    struct call *call = call_new();
    call->exclusive = alone;
    for (uint32_t i = 0; i < GROUP; i++)
        call_step(call, STEP_GET, name_key(call, "group", i));
    run(thread, call);
    const struct step *first = &call->steps[0];
    for (uint32_t i = 1; i < GROUP; i++) {
        const struct step *step = &call->steps[i];
        must(step->found == first->found, "half of a group is there");
        must(!step->found ||
                 (step->value->len == first->value->len &&
                  memcmp(step->value->bytes, first->value->bytes, step->value->len) == 0),
             "a group is of two writes");
    }
    call_free(call);
}

/* ---- counters: read, then written, in one transaction, which may pause between ---- */

struct increment {
    struct store_request request;
    struct store_key key;
    char name[32];
    uint32_t pauses; /* still to be made */
    bool refuses;
    bool finished;
    enum store_result result;
};

static void pause_run(struct store_txn *txn, const struct increment *increment)
{
    for (uint32_t i = 0; i < increment->pauses; i++) {
        if (!store_pause(txn, increment->refuses))
            continue;
        usleep(i == 0 ? 0 : 50);
        store_go_on(txn);
    }
}

static enum store_result run_increment(struct store_txn *txn, struct store_request *request)
{
    struct increment *increment = (struct increment *)request;
    struct store_item item;
    uint64_t count = 0;
    enum store_result result = store_get(txn, &increment->key, &item);
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    if (result == STORE_OK)
        memcpy(&count, item.bytes, sizeof count);
    pause_run(txn, increment);
    count++;
    char *bytes = store_alloc(txn, sizeof count);
    if (!bytes)
        return STORE_NO_MEMORY;
    memcpy(bytes, &count, sizeof count);
    return store_put(txn, &increment->key, 0, bytes, sizeof count, STORE_NO_EXPIRY);
}

static void incremented(struct store_request *request, enum store_result result)
{
    struct increment *increment = (struct increment *)request;
    must(result == STORE_OK || result == STORE_BUSY, "an increment fails with %d", result);
    increment->finished = true;
    increment->result = result;
}

static void try_to_increment(struct thread *thread, struct increment *increment)
{
    bool is_alone = rng_chance(&thread->rng, 5);
    increment->pauses = rng_chance(&thread->rng, 30) ? 1 + rng_below(&thread->rng, 3) : 0;
    increment->refuses = rng_chance(&thread->rng, 50);
    increment->finished = false;
    increment->request =
        (struct store_request){.run = run_increment,
                               .done = incremented,
                               .keys = &increment->key,
                               .key_count = is_alone ? 0 : 1,
                               .scope = is_alone ? STORE_SCOPE_ALL : STORE_SCOPE_KEYS,
                               .may_be_refused = true};
    enum store_result result = store_execute(thread->worker, &increment->request);
    if (result != STORE_WAIT)
        incremented(&increment->request, result);
    do { /* also if it was refused: others may wait for what this worker has to poll */
        store_submit(thread->worker);
        store_poll(thread->worker);
    } while (!increment->finished);
    store_submit(thread->worker);
}

static void increment(struct thread *thread, uint32_t counter)
{
    struct increment increment = {0};
    int len = snprintf(increment.name, sizeof increment.name, "counter:%u", counter);
    store_key(thread->rig->store, &increment.key, 0, increment.name, (size_t)len, STORE_EXCLUSIVE);
    do
        try_to_increment(thread, &increment);
    while (increment.result == STORE_BUSY);
    thread->increments[counter]++;
}

/* ---- values that move from name to name, never two under one ---- */

static void move(struct thread *thread)
{
    uint32_t from = rng_below(&thread->rng, 2 * MOVERS), to = rng_below(&thread->rng, 2 * MOVERS);
    if (from == to)
        return;
    struct call *call = call_new();
    uint32_t a = name_key(call, "mover", from), b = name_key(call, "mover", to);
    uint32_t spare = call_key(call, 0, 0, "spare", 5);
    /* exchange them, whichever are there */
    call_step(call, STEP_DELETE, spare);
    call_step(call, STEP_RENAME, a)->other = spare;
    call_step(call, STEP_RENAME, b)->other = a;
    call_step(call, STEP_RENAME, spare)->other = b;
    run(thread, call);
    call_free(call);
}

static void count_movers(struct thread *thread)
{
    struct call *call = call_new();
    uint32_t there = 0;
    for (uint32_t i = 0; i < 2 * MOVERS; i++)
        call_step(call, STEP_GET, name_key(call, "mover", i));
    run(thread, call);
    for (uint32_t i = 0; i < 2 * MOVERS; i++)
        there += call->steps[i].found;
    must(there == MOVERS, "%u of %u renamed values are there", there, MOVERS);
    call_free(call);
}

/* ---- what fills the cache ---- */

static void filler(struct thread *thread)
{
    struct call *call = call_new();
    uint32_t key = name_key(call, "filler", rng_below(&thread->rng, FILLERS));
    if (rng_chance(&thread->rng, 50))
        call_step(call, STEP_GET, key);
    else
        call_step(call, STEP_PUT, key)->blob =
            blob_random(&thread->rng, rng_below(&thread->rng, 100) ? 1000 : 200000);
    run(thread, call);
    call_free(call);
}

static void *work(void *arg)
{
    struct thread *thread = arg;
    for (uint32_t i = 0; i < thread->rounds; i++) {
        uint32_t kind = rng_below(&thread->rng, 100);
        if (kind < 15)
            write_group(thread);
        else if (kind < 35)
            read_group(thread, kind == 34);
        else if (kind < 55)
            increment(thread, kind % COUNTERS);
        else if (kind < 65)
            move(thread);
        else if (kind < 70)
            count_movers(thread);
        else
            filler(thread);
    }
    atomic_fetch_sub(thread->at_work, 1);
    while (atomic_load(thread->at_work) > 0) { /* others may wait for what this worker began */
        store_submit(thread->worker);
        store_poll(thread->worker);
        usleep(100);
    }
    return NULL;
}

static void start_threads(struct rig *rig, struct thread *threads, uint64_t seed, uint32_t rounds)
{
    _Atomic uint32_t at_work = THREADS;
    for (uint32_t i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.rig = rig,
                                     .worker = rig->workers[i],
                                     .rng = {seed + i},
                                     .rounds = rounds,
                                     .at_work = &at_work};
        must(pthread_create(&threads[i].id, NULL, work, &threads[i]) == 0, "no thread");
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i].id, NULL);
}

static void check_counters(struct rig *rig, const struct thread *threads)
{
    for (uint32_t counter = 0; counter < COUNTERS; counter++) {
        char name[32];
        enum store_result result;
        uint64_t expected = 0, count = 0;
        for (uint32_t i = 0; i < THREADS; i++)
            expected += threads[i].increments[counter];
        snprintf(name, sizeof name, "counter:%u", counter);
        struct blob *value = do_get(rig, name, &result);
        if (value)
            memcpy(&count, value->bytes, sizeof count);
        blob_unref(value);
        must(count == expected, "a counter is %llu after %llu increments",
             (unsigned long long)count, (unsigned long long)expected);
    }
}

static void threads_see_whole_transactions(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("threads");
    struct medium *medium = medium_new(seed);
    struct thread threads[THREADS];
    struct rig rig;
    rig_defaults(&rig);
    rig.options.worker_count = THREADS;
    rig_open_on(&rig, medium);
    for (uint32_t i = 0; i < MOVERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "mover:%u", 2 * i);
        must(do_set(&rig, name, "moved") == STORE_OK, "set");
    }
    const char *rounds = getenv("VELLUM_ROUNDS");
    start_threads(&rig, threads, seed, rounds ? (uint32_t)atoi(rounds) : 5000);
    check_counters(&rig, threads);
    rig_reopen(&rig, medium);
    check_counters(&rig, threads);
    rig_end(&rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_see_whole_transactions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
