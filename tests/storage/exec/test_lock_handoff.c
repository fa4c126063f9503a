/*
 * Waiters for keys (storage/exec/lock_handoff.c) among other requests on the same keys, on several
 * workers whose rounds come in turn: a waiter gets an element before any other request does, no
 * request waits for ever, and no token is lost. Tokens are counted in the values of a few places;
 * a taker waits for one, and moves it to another place or keeps it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/storage/fault_disk.h"

#define PLACES 4u
#define ACTORS 24u
#define FILLERS 400u
#define ROUNDS_MAX 3000u /* in which everything that may end has ended */

enum kind { TAKE, MOVE_WHEN_THERE, PUSH, STEAL, MOVE, MOVE_ALONE, KINDS };

struct actor {
    struct store_request request; /* first: the engine hands it back */
    struct test *test;
    struct store_worker *worker;
    struct actor *next; /* of those that wait for its first place, in their order */
    enum kind kind;
    uint32_t places[2];
    struct store_key keys[2];
    bool is_busy, waits, is_handed_off, blocks;
    int64_t kept;         /* by the last run: tokens that have come out of the places */
    bool steals_from_any; /* the last run has taken a token that a waiter is registered for */
};

struct place {
    struct store_key key;
    char name[16];
    struct actor *waiting, *handed;
    bool is_ready;
};

struct test {
    struct rig rig;
    struct rng rng;
    struct place places[PLACES];
    struct actor actors[ACTORS];
    int64_t outside; /* tokens, those before the first push being 0 */
    uint32_t busy, served, waited;
};

/* ---- waiters: as in the server's registry, without its locks ---- */

static void hand_on(struct place *place, struct store_worker *from)
{
    struct actor *actor = place->handed ? NULL : place->waiting;
    if (!place->is_ready || !actor)
        return;
    place->handed = actor;
    actor->is_handed_off = true;
    store_hand_off(&actor->request, &place->key, from);
}

static void on_change(void *arg, const struct store_change *change)
{
    struct test *test = arg;
    for (uint32_t i = 0; i < PLACES; i++) {
        struct place *place = &test->places[i];
        if (change->key->len != place->key.len ||
            memcmp(change->key->data, place->key.data, place->key.len) != 0)
            continue;
        place->is_ready = change->fresh != NULL;
        hand_on(place, change->worker);
    }
}

static void leave_queue(struct place *place, const struct actor *actor)
{
    struct actor **at = &place->waiting;
    while (*at && *at != actor)
        at = &(*at)->next;
    if (*at)
        *at = actor->next;
}

static void on_leave(struct store_request *request, enum store_result result)
{
    struct actor *actor = (struct actor *)request;
    struct place *place = &actor->test->places[actor->places[0]];
    if (!actor->waits)
        return;
    if (place->handed == actor)
        place->handed = NULL;
    if (result != STORE_OK || !actor->blocks) {
        leave_queue(place, actor);
        actor->waits = false;
    }
    hand_on(place, actor->worker);
}

static enum store_result wait_for_token(struct store_txn *txn, struct actor *actor)
{
    struct place *place = &actor->test->places[actor->places[0]];
    struct actor **at = &place->waiting;
    enum store_result result = store_wait_register(txn);
    if (result != STORE_OK)
        return result;
    while (*at && *at != actor)
        at = &(*at)->next;
    if (!*at) {
        actor->next = NULL;
        *at = actor;
    }
    place->is_ready = false;
    actor->waits = actor->blocks = true;
    actor->is_handed_off = false;
    return STORE_OK;
}

/* ---- what they do ---- */

static enum store_result count_tokens(struct store_txn *txn, const struct store_key *key,
                                      int64_t *count)
{
    struct store_item item;
    *count = 0;
    enum store_result result = store_get(txn, key, &item);
    if (result == STORE_OK)
        memcpy(count, item.bytes, sizeof *count);
    return result == STORE_ABSENT ? STORE_OK : result;
}

static enum store_result add_token(struct store_txn *txn, const struct store_key *key, int64_t more)
{
    int64_t count, *fresh = store_alloc(txn, sizeof *fresh);
    enum store_result result = count_tokens(txn, key, &count);
    if (result != STORE_OK || !fresh)
        return fresh ? result : STORE_NO_MEMORY;
    *fresh = count + more;
    if (*fresh == 0)
        return store_delete(txn, key);
    return store_put(txn, key, 0, (const char *)fresh, sizeof *fresh, STORE_NO_EXPIRY);
}

static enum store_result run(struct store_txn *txn, struct store_request *request)
{
    struct actor *actor = (struct actor *)request;
    struct place *place = &actor->test->places[actor->places[0]];
    bool waits = actor->kind == TAKE || actor->kind == MOVE_WHEN_THERE;
    bool moves = actor->kind >= MOVE || actor->kind == MOVE_WHEN_THERE;
    int64_t there;
    actor->blocks = actor->steals_from_any = false;
    actor->kept = actor->kind == PUSH ? -1 : 0;
    if (actor->kind == PUSH)
        return add_token(txn, &actor->keys[0], 1);
    enum store_result result = count_tokens(txn, &actor->keys[0], &there);
    if (result != STORE_OK)
        return result;
    if (there == 0)
        return waits ? wait_for_token(txn, actor) : STORE_OK;
    actor->steals_from_any = place->waiting && place->handed != actor;
    actor->kept = !moves;
    result = add_token(txn, &actor->keys[0], -1);
    return result == STORE_OK && moves ? add_token(txn, &actor->keys[1], 1) : result;
}

static void on_done(struct store_request *request, enum store_result result)
{
    struct actor *actor = (struct actor *)request;
    struct test *test = actor->test;
    must(result == STORE_OK, "a request fails with %d", result);
    must(!actor->steals_from_any, "a token is taken from those who wait for it");
    if (actor->blocks) {
        test->waited++;
        return;
    }
    test->served += actor->kind <= MOVE_WHEN_THERE;
    test->outside += actor->kept;
    actor->is_busy = false;
    test->busy--;
}

static void begin(struct test *test, struct actor *actor, enum kind kind)
{
    struct rng *rng = &test->rng;
    bool alone = kind == MOVE_ALONE;
    actor->kind = kind;
    actor->worker = test->rig.workers[rng_below(rng, test->rig.worker_count)];
    actor->places[0] = rng_below(rng, PLACES);
    actor->places[1] = (actor->places[0] + 1 + rng_below(rng, PLACES - 1)) % PLACES;
    actor->keys[0] = test->places[actor->places[0]].key;
    actor->keys[1] = test->places[actor->places[1]].key;
    bool is_long = kind >= MOVE || kind == MOVE_WHEN_THERE;
    actor->request = (struct store_request){.run = run,
                                            .done = on_done,
                                            .leave = on_leave,
                                            .keys = actor->keys,
                                            .key_count = alone ? 0 : 1 + is_long,
                                            .scope = alone ? STORE_SCOPE_ALL : STORE_SCOPE_KEYS};
    actor->is_busy = true;
    actor->is_handed_off = false;
    test->busy++;
    enum store_result result = store_execute(actor->worker, &actor->request);
    if (result != STORE_WAIT)
        on_done(&actor->request, result);
    store_run_handoffs(actor->worker);
}

/* Pages of the places go, and have to be read again. */
static void fill(struct test *test)
{
    char name[32];
    snprintf(name, sizeof name, "filler:%u", rng_below(&test->rng, FILLERS));
    must(do_put(&test->rig, name, blob_random(&test->rng, 3000)) == STORE_OK, "a filler");
}

static enum kind pick_kind(struct rng *rng)
{
    static const enum kind often[] = {
        TAKE, MOVE_WHEN_THERE, MOVE_WHEN_THERE, PUSH, PUSH, STEAL, MOVE, MOVE};
    return rng_chance(rng, 4) ? MOVE_ALONE : often[rng_below(rng, sizeof often / sizeof *often)];
}

static void act(struct test *test, uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++) {
        struct actor *actor = &test->actors[rng_below(&test->rng, ACTORS)];
        if (!actor->is_busy)
            begin(test, actor, pick_kind(&test->rng));
        else if (actor->waits && !actor->is_handed_off && rng_chance(&test->rng, 10)) {
            leave_queue(&test->places[actor->places[0]], actor);
            store_wait_cancel(&actor->request);
            actor->waits = actor->is_busy = false;
            test->busy--;
        }
        if (rng_chance(&test->rng, 30))
            rig_round(&test->rig);
        if (rng_chance(&test->rng, 5))
            fill(test);
    }
}

static uint32_t idle_waiters(const struct test *test)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ACTORS; i++)
        count += test->actors[i].is_busy && test->actors[i].waits && !test->actors[i].is_handed_off;
    return count;
}

/* No new requests: all end, except waiters for which no token is left. */
static void let_end(struct test *test)
{
    for (uint32_t i = 0; test->busy > idle_waiters(test); i++) {
        must(i < ROUNDS_MAX, "%u requests wait for ever", test->busy - idle_waiters(test));
        rig_round(&test->rig);
    }
    int64_t tokens = 0;
    for (uint32_t i = 0; i < PLACES; i++) {
        enum store_result result;
        struct blob *value = do_get(&test->rig, test->places[i].name, &result);
        int64_t count = 0;
        if (value)
            memcpy(&count, value->bytes, sizeof count);
        blob_unref(value);
        tokens += count;
        must(count == 0 || !test->places[i].waiting, "somebody waits beside a token");
    }
    must(tokens + test->outside == 0, "a token is lost or doubled");
}

static void who_waits_is_next(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("hand-off");
    struct medium *medium = medium_new(seed);
    struct test *test = calloc(1, sizeof *test);
    test->rng.state = seed;
    rig_defaults(&test->rig);
    test->rig.options.worker_count = 3;
    rig_open_on(&test->rig, medium);
    for (uint32_t i = 0; i < PLACES; i++) {
        struct place *place = &test->places[i];
        int len = snprintf(place->name, sizeof place->name, "place:%u", i);
        store_key(test->rig.store, &place->key, 0, place->name, (size_t)len, STORE_EXCLUSIVE);
    }
    for (uint32_t i = 0; i < ACTORS; i++)
        test->actors[i].test = test;
    must(store_observe(test->rig.store, on_change, test) == STORE_OK, "an observer");
    for (uint32_t i = 0; i < 40; i++) {
        act(test, 250);
        let_end(test);
    }
    must(test->served > 100 && test->waited > 100, "hardly anybody has waited");
    for (uint32_t i = 0; i < ACTORS; i++)
        if (test->actors[i].is_busy)
            store_wait_cancel(&test->actors[i].request);
    store_unobserve(test->rig.store, on_change, test);
    rig_end(&test->rig, medium);
    free(test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_is_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
