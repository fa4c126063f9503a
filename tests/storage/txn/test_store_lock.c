/* The order of the store lock: requests with keys and requests on the whole store in turns, however
 * many of either kind are queued. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/storage/fault_disk.h"
#include "tests/storage/harness.h"

#define ROUNDS_MAX 10000u

struct queue_test {
    struct rig rig;
    char order[32]; /* the names of the finished requests */
};

struct job {
    struct store_request request; /* first */
    struct queue_test *test;
    struct store_key key;
    char name;
    bool is_held; /* its runs are suspended */
    bool is_suspended;
};

static enum store_result run_job(struct store_txn *txn, struct store_request *request)
{
    struct job *job = (struct job *)request;
    struct store_item item;
    job->is_suspended = job->is_held;
    if (job->is_held)
        return store_suspend(txn);
    if (request->key_count == 0)
        return STORE_OK;
    enum store_result result = store_get(txn, &job->key, &item);
    return result == STORE_ABSENT ? STORE_OK : result;
}

static void job_done(struct store_request *request, enum store_result result)
{
    struct job *job = (struct job *)request;
    must(result == STORE_OK, "request %c fails with %d", job->name, result);
    strncat(job->test->order, &job->name, 1);
}

/* A small letter: with a key of its own. A capital: on the whole store. */
static void begin(struct queue_test *test, struct job *job, char name, bool is_held)
{
    bool is_alone = name < 'a';
    *job = (struct job){.test = test, .name = name, .is_held = is_held};
    store_key(test->rig.store, &job->key, 0, &job->name, 1, STORE_EXCLUSIVE);
    job->request = (struct store_request){.run = run_job,
                                          .done = job_done,
                                          .keys = &job->key,
                                          .key_count = is_alone ? 0 : 1,
                                          .scope = is_alone ? STORE_SCOPE_ALL : STORE_SCOPE_KEYS,
                                          .now_ms = 1000};
    enum store_result result = store_execute(test->rig.workers[0], &job->request);
    if (result != STORE_WAIT)
        job_done(&job->request, result);
}

static void resume(struct job *job)
{
    must(job->is_suspended, "request %c is not suspended", job->name);
    job->is_held = false;
    store_resume(&job->request);
}

static void rounds_until(struct queue_test *test, const char *order)
{
    for (uint32_t i = 0; strlen(test->order) < strlen(order); i++) {
        must(i < ROUNDS_MAX, "only '%s' are finished of '%s'", test->order, order);
        rig_round(&test->rig);
    }
    must(strcmp(test->order, order) == 0, "the order is '%s' instead of '%s'", test->order, order);
}

static void both_kinds_take_turns(void **state)
{
    (void)state;
    struct queue_test test = {0};
    struct medium *medium = medium_new(rng_seed("store lock"));
    struct job all[3], with_key[3];
    rig_defaults(&test.rig);
    rig_open_on(&test.rig, medium);
    begin(&test, &all[0], 'A', true);
    begin(&test, &all[1], 'B', false);
    begin(&test, &with_key[0], 'a', false);
    begin(&test, &all[2], 'C', false);
    begin(&test, &with_key[1], 'b', true);
    rounds_until(&test, "");
    resume(&all[0]);
    rounds_until(&test, "Aa");              /* and b runs: it does not wait for B and C */
    begin(&test, &with_key[2], 'c', false); /* it must not delay B, which waits for b */
    for (uint32_t i = 0; i < 10; i++)
        rig_round(&test.rig);
    rounds_until(&test, "Aa");
    resume(&with_key[1]);
    rounds_until(&test, "AabBcC");
    rig_end(&test.rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_kinds_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
