/* Full files: which keys are evicted, which events are reported, which writes are refused; room
 * that is missing only for a moment; and measuring the memory in use. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "storage/base/env.h"
#include "storage/maintenance/evict.h"
#include "storage/txn/room_wanted.h"
#include "tests/storage/fault_disk.h"
#include "tests/storage/harness.h"

#define MB (1u << 20)
#define HOT 50u
#define NARROW 100u
#define WIDE 400u
#define HEADROOM (12 * MB) /* for the files: the journal has 8 MB */

struct account {
    _Atomic uint64_t evicted, lasting; /* of them: without expiry */
};

static void on_change(void *arg, const struct store_change *change)
{
    struct account *account = arg;
    if (change->kind != STORE_CHANGE_KEY || change->cause != STORE_BY_EVICTION)
        return;
    must(change->old && !change->fresh, "an eviction is a deletion");
    atomic_fetch_add(&account->evicted, 1);
    if (change->old->expire_ms == STORE_NO_EXPIRY)
        atomic_fetch_add(&account->lasting, 1);
}

/* Of a rig with its defaults, or other options. */
static void open_with(struct rig *rig, struct medium **medium, enum store_evict evicts,
                      bool only_expiring, struct account *account)
{
    *medium = medium_new(1);
    rig->options.memory_bytes = 8 * MB;
    rig->options.max_store_bytes = HEADROOM + 8 * MB;
    rig_open_on(rig, *medium);
    struct store_policy policy = {.evicts = evicts,
                                  .only_expiring = only_expiring,
                                  .samples = 5,
                                  .lfu_log_factor = 10,
                                  .lfu_decay_minutes = 1};
    store_set_policy(rig->store, &policy);
    *account = (struct account){0};
    must(store_observe(rig->store, on_change, account) == STORE_OK, "observe");
}

static void start(struct rig *rig, struct medium **medium, enum store_evict evicts,
                  bool only_expiring, struct account *account)
{
    rig_defaults(rig);
    open_with(rig, medium, evicts, only_expiring, account);
}

static void finish(struct rig *rig, struct medium *medium, struct account *account)
{
    struct store_stats stats;
    store_stats(rig->store, &stats);
    must(stats.evicted_keys == atomic_load(&account->evicted), "%llu evicted, %llu told",
         (unsigned long long)stats.evicted_keys, (unsigned long long)account->evicted);
    must(stats.store_bytes <= rig->options.max_store_bytes, "maxstore: %llu bytes",
         (unsigned long long)stats.store_bytes);
    store_unobserve(rig->store, on_change, account);
    rig_end(rig, medium);
}

/* `expire_in_ms` 0: for ever. */
static enum store_result put(struct rig *rig, const char *kind, uint32_t i, uint64_t len,
                             int64_t expire_in_ms)
{
    char name[32];
    struct rng rng = {i + 1};
    struct call *call = call_new();
    snprintf(name, sizeof name, "%s:%u", kind, i);
    uint32_t key = call_key(call, 0, 0, name, (uint32_t)strlen(name));
    struct step *step = call_step(call, STEP_PUT, key);
    step->blob = blob_random(&rng, len);
    step->expire_ms = expire_in_ms ? store_clock_ms(rig->store) + expire_in_ms : STORE_NO_EXPIRY;
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    enum store_result result = call->result;
    call_free(call);
    return result;
}

static uint32_t still_there(struct rig *rig, const char *kind, uint32_t count)
{
    uint32_t there = 0;
    for (uint32_t i = 0; i < count; i++) {
        char name[32];
        enum store_result result;
        snprintf(name, sizeof name, "%s:%u", kind, i);
        blob_unref(do_get(rig, name, &result));
        must(result == STORE_OK || result == STORE_ABSENT, "get: %d", result);
        there += result == STORE_OK;
    }
    return there;
}

/* Goes on writing; every so often the hot keys are read. */
static void flood(struct rig *rig, uint32_t count, uint64_t len, int64_t expire_in_ms)
{
    for (uint32_t i = 0; i < count; i++) {
        enum store_result result = put(rig, "flood", i, len, expire_in_ms);
        must(result == STORE_OK, "put %u: %d", i, result);
        if (i % 500 == 0) {
            still_there(rig, "hot", HOT);
            rig_run(rig, 20); /* so that times differ */
        }
    }
}

static void what_is_used_stays(void **state)
{
    (void)state;
    enum store_evict policies[] = {STORE_EVICT_LRU, STORE_EVICT_LFU};
    for (int i = 0; i < 2; i++) {
        struct account account;
        struct medium *medium;
        struct rig rig;
        start(&rig, &medium, policies[i], false, &account);
        for (uint32_t j = 0; j < HOT; j++)
            must(put(&rig, "hot", j, 900, 0) == STORE_OK, "put");
        flood(&rig, 20000, 900, 0);
        must(account.evicted > 8000, "%llu evicted", (unsigned long long)account.evicted);
        uint32_t left = still_there(&rig, "hot", HOT);
        must(left >= HOT - 1, "of the hot keys %u are left", left);
        finish(&rig, medium, &account);
    }
}

static void only_what_expires_goes(void **state)
{
    (void)state;
    enum store_evict policies[] = {STORE_EVICT_LRU, STORE_EVICT_RANDOM, STORE_EVICT_TTL};
    for (int i = 0; i < 3; i++) {
        struct account account;
        struct medium *medium;
        struct rig rig;
        start(&rig, &medium, policies[i], true, &account);
        for (uint32_t j = 0; j < 1000; j++)
            must(put(&rig, "lasting", j, 900, 0) == STORE_OK, "put");
        for (uint32_t j = 0; j < 1000; j++)
            must(put(&rig, "late", j, 900, 1 << 30) == STORE_OK, "put");
        flood(&rig, 12000, 900, 1000000);
        must(account.evicted > 1000 && account.lasting == 0, "%llu evicted, %llu without expiry",
             (unsigned long long)account.evicted, (unsigned long long)account.lasting);
        must(still_there(&rig, "lasting", 1000) == 1000, "keys without expiry have gone");
        uint32_t late = still_there(&rig, "late", 1000);
        must(policies[i] != STORE_EVICT_TTL || late >= 995, "%u of what is due late", late);
        finish(&rig, medium, &account);
    }
}

static void nothing_may_go(void **state)
{
    (void)state;
    for (int only_expiring = 0; only_expiring < 2; only_expiring++) {
        struct account account;
        struct medium *medium;
        struct rig rig;
        start(&rig, &medium, only_expiring ? STORE_EVICT_LRU : STORE_EVICT_NOTHING, only_expiring,
              &account);
        enum store_result result = STORE_OK;
        uint32_t count = 0;
        for (; result == STORE_OK && count < 50000; count++)
            result = put(&rig, "flood", count, 900, 0);
        must(result == STORE_FULL && account.evicted == 0, "a full store gives %d", result);
        must(still_there(&rig, "flood", count - 1) == count - 1, "reads do not go on");
        for (uint32_t i = 0; i < count / 2; i++) {
            char name[32];
            snprintf(name, sizeof name, "flood:%u", i);
            must(do_delete(&rig, name) == STORE_OK, "deletes do not go on");
        }
        for (uint32_t i = 0; i < count / 4; i++)
            must(put(&rig, "again", i, 900, 0) == STORE_OK, "still full");
        store_set_max_store(rig.store, rig.options.max_store_bytes *= 2);
        rig_run(&rig, 300);
        for (uint32_t i = 0; i < count; i++)
            must(put(&rig, "more", i, 900, 0) == STORE_OK, "still full, of %u", i);
        finish(&rig, medium, &account);
    }
}

/* Until there is no room for more. */
static uint32_t fill_up(struct rig *rig, uint32_t from)
{
    uint32_t count = from;
    while (count < from + 50000 && put(rig, "lasting", count, 900, 0) == STORE_OK)
        count++;
    return count;
}

/* What takes the last slot has others evicted ahead, of which there are none; several such searches
 * find out that there are none. */
static void take_last_slot(struct rig *rig, uint32_t i)
{
    char name[32];
    snprintf(name, sizeof name, "lasting:%u", i);
    must(do_delete(rig, name) == STORE_OK, "delete");
    rig_run(rig, 20);
    must(put(rig, "lasting", i, 900, 0) == STORE_OK, "there is a slot for it");
    rig_run(rig, 20);
}

/* The search that found nothing was before there was something, and for an earlier write. */
static void what_may_go_since_then_goes(void **state)
{
    (void)state;
    struct account account;
    struct medium *medium;
    struct rig rig;
    rig_defaults(&rig);
    rig.options.partition_count = 1;
    open_with(&rig, &medium, STORE_EVICT_LRU, true, &account);
    uint32_t count = fill_up(&rig, 0);
    for (uint32_t searches = 1; searches < 8; searches++) {
        for (uint32_t i = 0; i < searches; i++)
            take_last_slot(&rig, i);
        for (uint32_t i = 100 * searches; i < 100 * searches + 50; i++)
            must(put(&rig, "lasting", i, 900, 1 << 30) == STORE_OK, "an expiry");
        must(put(&rig, "new", searches, 900, 0) == STORE_OK,
             "refused after %u searches, though keys may go", searches);
        count = fill_up(&rig, count);
    }
    must(account.evicted > 0 && account.lasting == 0, "%llu evicted, %llu without expiry",
         (unsigned long long)account.evicted, (unsigned long long)account.lasting);
    finish(&rig, medium, &account);
}

#define MANY 30000u /* more entries than one step looks at, and less than two do */

/* A key at the beginning of the index. */
static void put_early(struct rig *rig, uint32_t *at, uint64_t len)
{
    char name[32];
    struct store_key key;
    do {
        int length = snprintf(name, sizeof name, "early:%u", ++*at);
        store_key(rig->store, &key, 0, name, (uint32_t)length, STORE_SHARED);
    } while (key.slot >= 16);
    must(put(rig, "early", *at, len, 1 << 30) == STORE_OK, "put");
}

/* Steps for two classes take turns: each sees all entries all the same. */
static void every_class_has_a_hand(void **state)
{
    (void)state;
    struct account account;
    struct medium *medium;
    struct rig rig;
    uint32_t early = 0;
    rig_defaults(&rig);
    rig.options.partition_count = 1;
    open_with(&rig, &medium, STORE_EVICT_LRU, true, &account);
    for (uint32_t i = 0; i < MANY; i++)
        must(put(&rig, "small", i, 10, 0) == STORE_OK, "put");
    for (uint32_t i = 0; i < 5; i++)
        put_early(&rig, &early, 900);
    struct partition *partition = &rig.store->partitions[0];
    for (uint32_t i = 0; i < 10; i++) {
        pthread_mutex_lock(&partition->file.lock);
        partition->eviction.wanted =
            room_bit(format_class_for(300)) | room_bit(format_class_for(1000));
        pthread_mutex_unlock(&partition->file.lock);
        evict_step(rig.workers[0]);
        rig_run(&rig, 5);
    }
    must(account.evicted > 0 && account.lasting == 0, "nothing was found to evict");
    finish(&rig, medium, &account);
}

static void search(struct rig *rig, uint64_t classes)
{
    struct partition *partition = &rig->store->partitions[0];
    pthread_mutex_lock(&partition->file.lock);
    partition->eviction.wanted = classes;
    pthread_mutex_unlock(&partition->file.lock);
    evict_step(rig->workers[0]);
    rig_run(rig, 5);
}

/* A search without candidates was given up halfway, because its room was not needed any more. */
static void a_search_begins_with_the_wait(void **state)
{
    (void)state;
    for (uint32_t before = 7; before <= 10; before++) { /* the first ends after 5 */
        struct account account;
        struct medium *medium;
        struct rig rig;
        uint32_t early = 0, size_class = format_class_for(1000);
        rig_defaults(&rig);
        rig.options.partition_count = 1;
        open_with(&rig, &medium, STORE_EVICT_LRU, true, &account);
        for (uint32_t i = 0; i < MANY; i++)
            must(put(&rig, "small", i, 10, 0) == STORE_OK, "put");
        for (uint32_t i = 0; i < before; i++)
            search(&rig, room_bit(size_class));
        for (uint32_t i = 0; i < 5; i++)
            put_early(&rig, &early, 900);
        int64_t since = env_clock_ms();
        rig_run(&rig, 20); /* so that times differ */
        for (uint32_t i = 0; i < 8 && account.evicted == 0; i++) {
            search(&rig, room_bit(size_class));
            must(account.evicted > 0 ||
                     rig.store->partitions[0].eviction.barren_ms[room_number(size_class)] <= since,
                 "given up after %u searches, though keys may go", before);
        }
        must(account.evicted > 0, "nothing was found to evict");
        finish(&rig, medium, &account);
    }
}

/* The keys that may go are all in one of several partitions. */
static void memory_is_not_refused_while_a_key_may_go(void **state)
{
    (void)state;
    struct account account;
    struct medium *medium;
    struct rig rig;
    uint32_t early = 0;
    start(&rig, &medium, STORE_EVICT_LRU, true, &account);
    for (uint32_t i = 0; i < 500; i++)
        must(put(&rig, "lasting", i, 10, 0) == STORE_OK, "put");
    for (uint32_t i = 0; i < 40; i++)
        put_early(&rig, &early, 10);
    uint32_t steps = 0;
    for (; steps < 500 && account.evicted < 40; steps++) {
        atomic_store(&rig.store->over_memory, true);
        evict_step(rig.workers[0]);
        must(!store_is_over_memory(rig.store), "refused after %u steps and %llu evictions", steps,
             (unsigned long long)account.evicted);
        rig_run(&rig, 5);
    }
    must(account.evicted == 40 && account.lasting == 0, "%llu evicted, %llu without expiry",
         (unsigned long long)account.evicted, (unsigned long long)account.lasting);
    bool is_refused = false;
    for (uint32_t i = 0; i < 10 && !is_refused; i++) {
        atomic_store(&rig.store->over_memory, true);
        evict_step(rig.workers[0]);
        is_refused = atomic_load(&rig.store->eviction_exhausted);
    }
    must(is_refused, "no key may go, and writes are not refused");
    finish(&rig, medium, &account);
}

static void memory_is_not_gained_while_the_store_holds_still(void **state)
{
    (void)state;
    struct account account;
    struct medium *medium;
    struct rig rig;
    uint32_t early = 0;
    start(&rig, &medium, STORE_EVICT_LRU, true, &account);
    for (uint32_t i = 0; i < 40; i++)
        put_early(&rig, &early, 10);
    store_hold_still(rig.store, store_clock_ms(rig.store) + 3600000);
    for (uint32_t i = 0; i < 20; i++) {
        atomic_store(&rig.store->over_memory, true);
        evict_step(rig.workers[0]);
        rig_run(&rig, 5);
    }
    must(account.evicted == 0, "%llu evicted", (unsigned long long)account.evicted);
    store_hold_still(rig.store, store_clock_ms(rig.store) - 1);
    for (uint32_t i = 0; i < 20 && account.evicted == 0; i++) {
        atomic_store(&rig.store->over_memory, true);
        evict_step(rig.workers[0]);
        rig_run(&rig, 5);
    }
    must(account.evicted > 0, "none is evicted afterwards");
    must(store_take_slowest_ns(rig.store, STORE_WORK_EVICTION) > 0 &&
             store_take_slowest_ns(rig.store, STORE_WORK_EVICTION) == 0,
         "a step was not timed, or twice");
    must(store_take_slowest_ns(rig.store, STORE_WORK_JOURNAL) > 0, "no group was timed");
    finish(&rig, medium, &account);
}

/* A large value is refused after two rounds over the keys, and not when patience ends: a request
 * that waits for room is counted as throttled every few milliseconds. */
static void large_values_are_refused_at_once(void **state)
{
    (void)state;
    struct account account;
    struct medium *medium;
    struct rig rig;
    struct store_stats before, after;
    start(&rig, &medium, STORE_EVICT_LRU, true, &account);
    store_set_max_store(rig.store, rig.options.max_store_bytes = 40 * MB);
    uint32_t count = 0;
    enum store_result result;
    while ((result = put(&rig, "large", count, 100000, 0)) == STORE_OK)
        count++;
    must(result == STORE_FULL && count > 10, "%u fit, then %d", count, result);
    rig_run(&rig, 300);
    store_stats(rig.store, &before);
    for (uint32_t i = 0; i < 5; i++)
        must(put(&rig, "more", i, 100000, 0) == STORE_FULL, "it fits");
    store_stats(rig.store, &after);
    uint64_t waits = after.throttled_commits - before.throttled_commits;
    printf("%llu waits\n", (unsigned long long)waits);
    must(waits < 5 * 30, "%llu waits", (unsigned long long)waits);
    must(put(&rig, "large", 0, 100000, 1) == STORE_FULL, "it fits"); /* nor does an overwrite */
    must(still_there(&rig, "large", count) == count && account.evicted == 0, "some have gone");
    finish(&rig, medium, &account);
}

static void large_values_go_for_large_ones(void **state)
{
    (void)state;
    struct account account;
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium, STORE_EVICT_LRU, false, &account);
    store_set_max_store(rig.store, rig.options.max_store_bytes = 40 * MB);
    for (uint32_t i = 0; i < 100; i++)
        must(put(&rig, "small", i, 50, 0) == STORE_OK, "put");
    for (uint32_t i = 0; i < 300; i++) {
        enum store_result result = put(&rig, "large", i, 100000 + i % 7 * 10000, 0);
        must(result == STORE_OK, "put %u: %d", i, result);
    }
    must(account.evicted > 100, "%llu evicted", (unsigned long long)account.evicted);
    must(still_there(&rig, "small", 100) == 100, "small ones have gone for nothing");
    finish(&rig, medium, &account);
}

/* The old value's runs are free as soon as the new one is durable: that is waited for. */
/* Values whose runs would be of no use are the oldest, and stay so: they are not asked for ever. */
static void those_in_the_way_are_passed_over(void **state)
{
    (void)state;
    struct account account;
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium, STORE_EVICT_LRU, false, &account);
    store_set_max_store(rig.store, rig.options.max_store_bytes += 16 * MB);
    for (uint32_t i = 0; i < NARROW; i++)
        must(put(&rig, "narrow", i, 8000, 0) == STORE_OK, "put");
    rig_run(&rig, 300);
    for (uint32_t i = 0; i < WIDE; i++) {
        enum store_result result = put(&rig, "wide", i, 100000, 0);
        must(result == STORE_OK, "put %u: %d", i, result);
    }
    must(account.evicted > WIDE / 3, "%llu evicted", (unsigned long long)account.evicted);
    must(still_there(&rig, "narrow", NARROW) == NARROW, "others have gone");
    finish(&rig, medium, &account);
}

static void what_was_given_up_is_waited_for(void **state)
{
    (void)state;
    struct account account;
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium, STORE_EVICT_NOTHING, false, &account);
    uint32_t count = 0;
    store_set_max_store(rig.store, rig.options.max_store_bytes = 40 * MB);
    while (put(&rig, "large", count, 120000, 0) == STORE_OK)
        count++;
    must(count > 10, "%u fit", count);
    must(do_delete(&rig, "large:0") == STORE_OK, "delete");
    store_set_sync(rig.store, STORE_SYNC_EVERYSEC);
    for (uint32_t i = 0; i < 20; i++)
        must(put(&rig, "large", 1 + i % 8, 120000, 0) == STORE_OK, "overwriting ends at %u", i);
    finish(&rig, medium, &account);
}

struct question {
    struct store_request request;
    struct store_key key;
    struct store_access use;
    bool is_done;
};

static enum store_result ask(struct store_txn *txn, struct store_request *request)
{
    struct question *question = (struct question *)request;
    return store_get_access(txn, &question->key, &question->use);
}

static void asked(struct store_request *request, enum store_result result)
{
    must(result == STORE_OK, "use: %d", result);
    ((struct question *)request)->is_done = true;
}

static struct store_access use_of(struct rig *rig, const char *name)
{
    struct question question = {.is_done = false};
    store_key(rig->store, &question.key, 0, name, strlen(name), STORE_SHARED);
    question.request = (struct store_request){.run = ask,
                                              .done = asked,
                                              .keys = &question.key,
                                              .key_count = 1,
                                              .now_ms = store_clock_ms(rig->store)};
    enum store_result result = store_execute(rig->workers[0], &question.request);
    if (result != STORE_WAIT)
        asked(&question.request, result);
    while (!question.is_done)
        rig_round(rig);
    return question.use;
}

static void use_is_remembered(void **state)
{
    (void)state;
    struct account account;
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium, STORE_EVICT_LRU, false, &account);
    must(do_set(&rig, "a", "1") == STORE_OK && do_set(&rig, "b", "1") == STORE_OK, "set");
    rig_run(&rig, 300);
    must(has_value(&rig, "b", "1"), "get");
    int64_t used = use_of(&rig, "b").idle_ms, unused = use_of(&rig, "a").idle_ms;
    must(unused >= used + 280, "idle %lld, %lld ms", (long long)unused, (long long)used);
    struct store_policy policy = {STORE_EVICT_LFU, false, 5, 10, 1};
    store_set_policy(rig.store, &policy);
    for (int i = 0; i < 100; i++)
        must(has_value(&rig, "b", "1"), "get");
    uint32_t few = use_of(&rig, "a").frequency, many = use_of(&rig, "b").frequency;
    must(few == 5 && many >= 8 && many <= 11, "frequencies %u and %u", few, many);
    finish(&rig, medium, &account);
}

struct process {
    pthread_t asker;
    _Atomic uint32_t asked; /* by it */
    _Atomic bool is_unknown;
};

/* 4 MB, and what the test has reported. */
static uint64_t tell_process_bytes(void *arg, uint64_t frame_bytes, int64_t noted, bool is_short)
{
    (void)frame_bytes, (void)is_short;
    struct process *process = arg;
    if (pthread_equal(pthread_self(), process->asker))
        atomic_fetch_add(&process->asked, 1);
    uint64_t size = 4 * MB + (noted > 0 ? (uint64_t)noted : 0);
    return atomic_load(&process->is_unknown) ? 0 : size;
}

static struct medium *open_measured(struct rig *rig, struct process *process, uint64_t bytes)
{
    struct medium *medium = medium_new(1);
    rig_defaults(rig);
    rig->options.memory_bytes = bytes;
    rig->options.process_bytes = tell_process_bytes;
    rig->options.process_arg = process;
    rig_open_on(rig, medium);
    return medium;
}

/* The maintenance thread may stand before a lock that a long transaction holds. */
static void who_grows_measures_in_the_maintenance_threads_place(void **state)
{
    (void)state;
    struct process process = {.asker = pthread_self()};
    struct rig rig;
    struct medium *medium = open_measured(&rig, &process, 8 * MB);
    uint32_t before = atomic_load(&process.asked), rounds = 0;
    for (; rounds < 100 && atomic_load(&process.asked) == before; rounds++) {
        usleep(45 * 1000);
        store_note_memory(rig.store, 1000);
    }
    must(rounds < 100, "nobody measured");
    store_note_memory(rig.store, (int64_t)rounds * -1000);
    rig_end(&rig, medium);
}

/* A server out of descriptors cannot ask the system for its size. */
static void a_failed_measurement_leaves_the_last_one(void **state)
{
    (void)state;
    struct process process = {.asker = pthread_self()};
    struct rig rig;
    struct medium *medium = open_measured(&rig, &process, 16 * MB);
    usleep(45 * 1000);
    store_note_memory(rig.store, 9 * MB);
    atomic_store(&process.is_unknown, true);
    for (int i = 0; i < 20; i++) {
        usleep(45 * 1000);
        store_note_memory(rig.store, 1000);
        must(!store_has_memory(rig.store, 6 * MB), "memory in use is granted");
    }
    store_note_memory(rig.store, -(int64_t)(9 * MB + 20 * 1000));
    rig_end(&rig, medium);
}

static enum store_result take_three_megabytes(struct store_txn *txn, struct store_request *request)
{
    (void)request;
    bool is_taken = true;
    for (uint32_t i = 0; is_taken && i < 48; i++)
        is_taken = store_alloc(txn, 64 * 1024) != NULL;
    return is_taken ? STORE_OK : STORE_NO_MEMORY;
}

static enum store_result run_taker(struct rig *rig)
{
    struct store_request request = {.run = take_three_megabytes, .scope = STORE_SCOPE_NONE};
    return store_execute(rig->workers[0], &request); /* it waits for nothing */
}

/* 4 MB of 16 are taken, and an eighth is for those that take without asking. */
static void a_question_for_memory_is_answered_by_what_there_is(void **state)
{
    (void)state;
    struct process process = {.asker = pthread_self()};
    struct rig rig;
    struct medium *medium = medium_new(1);
    rig_defaults(&rig);
    rig.options.memory_bytes = 16 * MB;
    rig.options.process_bytes = tell_process_bytes;
    rig.options.process_arg = &process;
    rig_open_on(&rig, medium);
    store_note_memory(rig.store, 0);
    must(store_has_memory(rig.store, 8 * MB), "8 of 10 MB are refused");
    must(!store_has_memory(rig.store, 11 * MB), "11 of 10 MB are granted");
    must(run_taker(&rig) == STORE_OK, "3 of 10 MB are refused to a transaction");
    store_note_memory(rig.store, 8 * MB);
    must(run_taker(&rig) == STORE_NO_MEMORY, "3 of 2 MB are granted to a transaction");
    store_note_memory(rig.store, -(int64_t)(8 * MB));
    for (int64_t now = env_clock_ms(); env_clock_ms() < now + 2;)
        usleep(1000); /* until it is measured again */
    must(run_taker(&rig) == STORE_OK, "3 of 10 MB are refused afterwards");
    store_set_memory(rig.store, 512 * MB);
    must(store_has_memory(rig.store, 495 * MB), "of a large memory more is kept back than helps");
    must(!store_has_memory(rig.store, 505 * MB), "nothing of it is kept back");
    rig_end(&rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_used_stays),
        cmocka_unit_test(only_what_expires_goes),
        cmocka_unit_test(nothing_may_go),
        cmocka_unit_test(what_may_go_since_then_goes),
        cmocka_unit_test(every_class_has_a_hand),
        cmocka_unit_test(a_search_begins_with_the_wait),
        cmocka_unit_test(memory_is_not_refused_while_a_key_may_go),
        cmocka_unit_test(memory_is_not_gained_while_the_store_holds_still),
        cmocka_unit_test(large_values_are_refused_at_once),
        cmocka_unit_test(large_values_go_for_large_ones),
        cmocka_unit_test(those_in_the_way_are_passed_over),
        cmocka_unit_test(what_was_given_up_is_waited_for),
        cmocka_unit_test(use_is_remembered),
        cmocka_unit_test(who_grows_measures_in_the_maintenance_threads_place),
        cmocka_unit_test(a_failed_measurement_leaves_the_last_one),
        cmocka_unit_test(a_question_for_memory_is_answered_by_what_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
