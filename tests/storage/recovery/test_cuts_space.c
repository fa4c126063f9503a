/* Space changes hands: segments from one class to another, slots by eviction, all of it by a flush.
 * The power goes at each I/O of that. What is found then is the state after some commit, all that
 * was durable included: an observer has written down what each commit did.
 *
 * What a key's value is its name says, so that the states are sets of names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "storage/format/format.h"
#include "tests/storage/fault_disk.h"

#define KINDS 2u /* lengths of values in a script */
#define KEYS 2200u
#define EVENTS 16384u
#define MOMENTS 4096u
#define STATES 40u /* of a script, unless VELLUM_SECONDS says more */
#define EVERYTHING UINT32_MAX

struct event { /* of a commit */
    uint64_t commit;
    uint32_t id; /* kind * KEYS + number, or EVERYTHING */
    bool is_there;
};

struct moment {
    struct medium *medium;
    uint64_t durable;
};

struct cuts {
    struct rng rng;
    struct rig rig;
    struct medium *medium;
    uint32_t lengths[KINDS], counts[KINDS]; /* names used so far */
    struct event events[EVENTS];
    uint32_t event_count;
    struct moment moments[MOMENTS];
    uint32_t moment_count;
};

/* ---- what is written down ---- */

static void note(struct cuts *cuts, uint64_t commit, uint32_t id, bool is_there)
{
    must(cuts->event_count < EVENTS, "the test's own limit");
    cuts->events[cuts->event_count++] = (struct event){commit, id, is_there};
}

static void on_change(void *arg, const struct store_change *change)
{
    struct cuts *cuts = arg;
    uint32_t kind, number;
    if (change->kind != STORE_CHANGE_KEY) {
        note(cuts, change->commit, EVERYTHING, false);
        return;
    }
    char name[32] = "";
    memcpy(name, change->key->data, change->key->len);
    must(sscanf(name, "%u:%u", &kind, &number) == 2, "a key that nobody has put: %s", name);
    note(cuts, change->commit, kind * KEYS + number, change->fresh != NULL);
}

static void record(void *arg, struct medium *medium)
{
    struct cuts *cuts = arg;
    must(cuts->moment_count < MOMENTS, "the test's own limit");
    cuts->moments[cuts->moment_count++] = (struct moment){medium, store_durable(cuts->rig.store)};
}

static void state_after(const struct cuts *cuts, uint64_t commit, bool state[KINDS * KEYS])
{
    memset(state, 0, KINDS * KEYS * sizeof *state);
    for (uint32_t i = 0; i < cuts->event_count && cuts->events[i].commit <= commit; i++)
        if (cuts->events[i].id == EVERYTHING)
            memset(state, 0, KINDS * KEYS * sizeof *state);
        else
            state[cuts->events[i].id] = cuts->events[i].is_there;
}

/* ---- the operations ---- */

static struct blob *value_of(const struct cuts *cuts, uint32_t kind, uint32_t number)
{
    struct rng rng = {kind * KEYS + number};
    return blob_random(&rng, cuts->lengths[kind]);
}

static uint32_t name_key(struct call *call, uint32_t kind, uint32_t number)
{
    char name[32];
    int len = snprintf(name, sizeof name, "%u:%u", kind, number);
    return call_key(call, 0, number, name, (uint32_t)len);
}

static void run(struct rig *rig, struct call *call)
{
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    must(call->result == STORE_OK, "a call ends with %d; %s", call->result, rig->last_warning);
}

static void put_some(struct cuts *cuts, struct rig *rig, uint32_t kind, uint32_t from, uint32_t to)
{
    struct call *call = call_new();
    for (uint32_t i = from; i < to; i++)
        call_step(call, STEP_PUT, name_key(call, kind, i))->blob = value_of(cuts, kind, i);
    run(rig, call);
    if (rig->options.sync == STORE_SYNC_ALWAYS && rng_chance(&cuts->rng, 70))
        rig_sync(rig, call->request.shown);
    call_free(call);
}

/* So many at once that the commits are not too many. */
static uint32_t at_once(const struct cuts *cuts, uint32_t kind)
{
    return cuts->lengths[kind] > PAGE_SIZE ? 2 : CALL_STEPS;
}

static void put_more(struct cuts *cuts, uint32_t kind)
{
    uint32_t from = cuts->counts[kind], to = from + at_once(cuts, kind);
    must(to <= KEYS, "the test's own limit");
    put_some(cuts, &cuts->rig, kind, from, to);
    cuts->counts[kind] = to;
}

static void put_all(struct cuts *cuts, uint32_t kind, uint32_t count)
{
    while (cuts->counts[kind] < count)
        put_more(cuts, kind);
}

static void delete_all(struct cuts *cuts, uint32_t kind)
{
    for (uint32_t i = 0; i < cuts->counts[kind];) {
        struct call *call = call_new();
        for (uint32_t end = i + CALL_STEPS; i < end && i < cuts->counts[kind]; i++)
            call_step(call, STEP_DELETE, name_key(call, kind, i));
        run(&cuts->rig, call);
        call_free(call);
    }
}

static void flush(struct cuts *cuts)
{
    struct call *call = call_new();
    call->exclusive = true;
    call_step(call, STEP_FLUSH_DB, 0);
    run(&cuts->rig, call);
    call_free(call);
}

static struct store_stats stats_of(const struct rig *rig)
{
    struct store_stats stats;
    store_stats(rig->store, &stats);
    return stats;
}

/* What was emptied serves the other kind. */
static void put_until_reclaimed(struct cuts *cuts, uint32_t kind, uint64_t count)
{
    while (stats_of(&cuts->rig).segments_reclaimed < count) {
        put_more(cuts, kind);
        rig_run(&cuts->rig, 2);
    }
    put_more(cuts, kind);
}

static void put_until_evicted(struct cuts *cuts, uint32_t kind, uint64_t count)
{
    while (stats_of(&cuts->rig).evicted_keys < count)
        put_more(cuts, kind);
}

static void fill_up(struct cuts *cuts, uint32_t kind)
{
    struct store_policy policy = {.evicts = STORE_EVICT_LRU, .samples = 5};
    store_set_policy(cuts->rig.store, &policy);
    store_set_max_store(cuts->rig.store, stats_of(&cuts->rig).store_bytes);
    put_until_evicted(cuts, kind, 1);
}

/* ---- what is found ---- */

static void compare_some(struct cuts *cuts, struct rig *rig, uint32_t kind, uint32_t from,
                         const bool *state)
{
    struct call *call = call_new();
    uint32_t to = from + CALL_STEPS < cuts->counts[kind] ? from + CALL_STEPS : cuts->counts[kind];
    for (uint32_t i = from; i < to; i++)
        call_step(call, STEP_GET, name_key(call, kind, i));
    run(rig, call);
    for (uint32_t i = from; i < to; i++) {
        const struct step *step = &call->steps[i - from];
        must(step->found == state[kind * KEYS + i], "%u:%u is %s", kind, i,
             step->found ? "there" : "gone");
        if (!step->found)
            continue;
        struct blob *value = value_of(cuts, kind, i);
        must(step->value->len == value->len &&
                 memcmp(step->value->bytes, value->bytes, value->len) == 0,
             "%u:%u has another value", kind, i);
        blob_unref(value);
    }
    call_free(call);
}

static void compare(struct cuts *cuts, struct rig *rig, const bool *state)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < KINDS * KEYS; i++)
        count += state[i];
    must(store_db_stats(rig->store, 0).keys == count, "%llu keys are there, not %llu",
         (unsigned long long)store_db_stats(rig->store, 0).keys, (unsigned long long)count);
    for (uint32_t kind = 0; kind < KINDS; kind++)
        for (uint32_t i = 0; i < cuts->counts[kind]; i += CALL_STEPS)
            compare_some(cuts, rig, kind, i, state);
    must(stats_of(rig).damaged_items == 0, "damage: %s", rig->last_warning);
}

/* Work goes on in the space that is free; a scan finds all of it. */
static void go_on(struct cuts *cuts, struct rig *rig, struct medium *medium, bool *state)
{
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        uint32_t count = 2 * at_once(cuts, kind);
        for (uint32_t i = 0; i < count; i += at_once(cuts, kind))
            put_some(cuts, rig, kind, i, i + at_once(cuts, kind));
        memset(state + kind * KEYS, true, count);
    }
    rig_close_well(rig);
    rig->options.scans = true;
    rig_open_on(rig, medium);
    compare(cuts, rig, state);
}

static void try_moment(struct cuts *cuts, const struct moment *moment, enum fate fate)
{
    struct rig rig;
    bool state[KINDS * KEYS];
    rig_defaults(&rig);
    rig.options.partition_count = 1;
    rig.options.memory_bytes = 8 << 20;
    struct medium *medium = medium_copy(moment->medium);
    medium_set_fate(medium, fate);
    for (uint32_t cuts_left = rng_below(&cuts->rng, 4);
         !rig_try_open(&rig, medium, cuts_left ? 1 + rng_below(&cuts->rng, 100) : 0); cuts_left--)
        ;
    uint64_t commits = stats_of(&rig).commits;
    must(commits >= moment->durable, "commit %llu was durable, but only %llu are there",
         (unsigned long long)moment->durable, (unsigned long long)commits);
    state_after(cuts, commits, state);
    compare(cuts, &rig, state);
    go_on(cuts, &rig, medium, state);
    rig_end(&rig, medium);
}

/* From a random moment on, each fate in its turn; all of them where there is time. */
static uint32_t try_moments(struct cuts *cuts)
{
    const char *seconds = getenv("VELLUM_SECONDS");
    time_t until = time(NULL) + (seconds ? 1 + atoi(seconds) / 5 : 0);
    uint32_t step = 1 + cuts->moment_count / STATES, tried = 0;
    uint32_t first = rng_below(&cuts->rng, step);
    for (uint32_t round = 0; round < step * FATES && (round == 0 || time(NULL) < until); round++)
        for (uint32_t i = (first + round) % step; i < cuts->moment_count; i += step, tried++)
            try_moment(cuts, &cuts->moments[i], (enum fate)((i / step + round / step) % FATES));
    return tried;
}

/* ---- scripts ---- */

static struct cuts *begin(const char *name, uint32_t first_length, uint32_t second_length)
{
    struct cuts *cuts = calloc(1, sizeof *cuts);
    must(cuts, "out of memory");
    cuts->rng.state = rng_seed(name);
    cuts->lengths[0] = first_length;
    cuts->lengths[1] = second_length;
    cuts->medium = medium_new(rng_next(&cuts->rng));
    rig_defaults(&cuts->rig);
    cuts->rig.options.partition_count = 1;
    if (rng_chance(&cuts->rng, 70)) /* otherwise checkpoints come in between */
        cuts->rig.options.memory_bytes = 32 << 20;
    if (rng_chance(&cuts->rng, 30))
        cuts->rig.options.sync = STORE_SYNC_EVERYSEC;
    rig_open_on(&cuts->rig, cuts->medium);
    must(store_observe(cuts->rig.store, on_change, cuts) == STORE_OK, "observe");
    return cuts;
}

/* From here on the power may go. */
static void begin_to_cut(struct cuts *cuts)
{
    medium_record(cuts->medium, record, cuts);
}

static void end(struct cuts *cuts)
{
    medium_record(cuts->medium, NULL, NULL);
    store_unobserve(cuts->rig.store, on_change, cuts);
    rig_close_well(&cuts->rig);
    uint32_t tried = try_moments(cuts);
    fprintf(stderr, "# %u of %u states\n", tried, cuts->moment_count * FATES);
    for (uint32_t i = 0; i < cuts->moment_count; i++)
        medium_free(cuts->moments[i].medium);
    medium_free(cuts->medium);
    free(cuts);
}

static void a_segment_of_slots_serves_another_class(void **state)
{
    (void)state;
    struct cuts *cuts = begin("slots", 900, 1900);
    put_all(cuts, 0, (SEGMENT_PAGES - 1) * 4); /* a segment full */
    begin_to_cut(cuts);
    delete_all(cuts, 0);
    put_until_reclaimed(cuts, 1, 1);
    end(cuts);
}

static void a_segment_of_runs_serves_another_class(void **state)
{
    (void)state;
    struct cuts *cuts = begin("runs", 30 * PAGE_SIZE, 9 * PAGE_SIZE);
    put_all(cuts, 0, 10);
    begin_to_cut(cuts);
    delete_all(cuts, 0);
    put_until_reclaimed(cuts, 1, 1);
    end(cuts);
}

/* Without a word of the journal about each item. */
static void a_segment_that_a_flush_has_emptied(void **state)
{
    (void)state;
    struct cuts *cuts = begin("flush", 900, 1900);
    put_all(cuts, 0, (SEGMENT_PAGES - 1) * 4);
    begin_to_cut(cuts);
    flush(cuts);
    put_until_reclaimed(cuts, 1, 1);
    put_all(cuts, 0, cuts->counts[0] + 2 * CALL_STEPS);
    end(cuts);
}

static void slots_by_eviction(void **state)
{
    (void)state;
    struct cuts *cuts = begin("eviction", 900, 3900);
    fill_up(cuts, 1);
    begin_to_cut(cuts);
    put_until_evicted(cuts, 1, 100);
    end(cuts);
}

static void runs_by_eviction(void **state)
{
    (void)state;
    struct cuts *cuts = begin("large eviction", 900, 30 * PAGE_SIZE);
    put_all(cuts, 0, CALL_STEPS);
    fill_up(cuts, 1);
    begin_to_cut(cuts);
    put_until_evicted(cuts, 1, 10);
    end(cuts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_segment_of_slots_serves_another_class),
        cmocka_unit_test(a_segment_of_runs_serves_another_class),
        cmocka_unit_test(a_segment_that_a_flush_has_emptied),
        cmocka_unit_test(slots_by_eviction),
        cmocka_unit_test(runs_by_eviction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
