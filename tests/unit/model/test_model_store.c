/* The model store keeps the promises of storage/store.h, on which tests of others rely. */
#include "tests/model/model_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "tests/unit/seed.h"
#include "storage/collections.h"

#define NOW INT64_C(1000000)

struct bench {
    struct store *store;
    struct store_worker *workers[3];
};

static int setup(void **state)
{
    char message[STORE_MESSAGE_MAX];
    struct bench *bench = calloc(1, sizeof(*bench));
    struct store_options options = {.partition_count = 4, .worker_count = 3};
    assert_int_equal(store_open(&options, &bench->store, message), STORE_OK);
    model_store_set_waits(bench->store, 0, 0); /* some builds wait from the start */
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(store_attach(bench->store, i, &bench->workers[i], message), STORE_OK);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    for (uint32_t i = 0; i < 3; i++)
        store_detach(bench->workers[i]);
    assert_int_equal(store_close(bench->store), STORE_OK);
    free(bench);
    return 0;
}

/* A request whose body is a function of the test. */
struct job {
    struct store_request request;
    struct store_key keys[4];
    enum store_result (*body)(struct store_txn *txn, struct job *job);
    bool done;
    enum store_result result;
    int number, *log, *logged; /* appends `number` to the log when it has run */
    const char *text;
};

static enum store_result job_run(struct store_txn *txn, struct store_request *request)
{
    struct job *job = (struct job *)request;
    return job->body(txn, job);
}

static void job_done(struct store_request *request, enum store_result result)
{
    struct job *job = (struct job *)request;
    job->done = true;
    job->result = result;
}

static void add_key(struct job *job, uint32_t db, const char *name, enum store_mode mode)
{
    store_key(NULL, &job->keys[job->request.key_count++], db, name, strlen(name), mode);
}

static void start(struct store_worker *worker, struct job *job)
{
    job->request.run = job_run;
    job->request.done = job_done;
    job->request.keys = job->keys;
    if (job->request.now_ms == 0)
        job->request.now_ms = NOW;
    enum store_result result = store_execute(worker, &job->request);
    if (result != STORE_WAIT)
        job_done(&job->request, result);
}

static enum store_result finish(struct store_worker *worker, struct job *job)
{
    start(worker, job);
    for (int i = 0; !job->done && i < 100000; i++)
        store_poll(worker);
    assert_true(job->done);
    return job->result;
}

static enum store_result body_put(struct store_txn *txn, struct job *job)
{
    return store_put(txn, &job->keys[0], 0, job->text, strlen(job->text), STORE_NO_EXPIRY);
}

static void put(struct bench *bench, uint32_t db, const char *key, const char *text)
{
    struct job job = {.body = body_put, .text = text};
    add_key(&job, db, key, STORE_EXCLUSIVE);
    assert_int_equal(finish(bench->workers[0], &job), STORE_OK);
}

/* The text stands behind the value, zero-terminated, by the test's own habit of putting texts. */
static enum store_result body_compare(struct store_txn *txn, struct job *job)
{
    struct store_item item;
    enum store_result result = store_get(txn, &job->keys[0], &item);
    if (result != STORE_OK)
        return result;
    bool same = item.length == strlen(job->text) && memcmp(item.bytes, job->text, item.length) == 0;
    return same ? STORE_OK : STORE_DAMAGED;
}

/* What a key holds; NULL: it must be absent. */
static void assert_holds(struct bench *bench, uint32_t db, const char *key, const char *text)
{
    struct job job = {.body = body_compare, .text = text != NULL ? text : ""};
    add_key(&job, db, key, STORE_SHARED);
    enum store_result wanted = text != NULL ? STORE_OK : STORE_ABSENT;
    assert_int_equal(finish(bench->workers[0], &job), wanted);
}

/* ---- transactions ---- */

static enum store_result body_write_much_then_fail(struct store_txn *txn, struct job *job)
{
    struct store_item item;
    assert_int_equal(store_put(txn, &job->keys[0], 0, "new", 3, STORE_NO_EXPIRY), STORE_OK);
    assert_int_equal(store_delete(txn, &job->keys[1]), STORE_OK);
    assert_int_equal(store_get(txn, &job->keys[0], &item), STORE_OK);
    assert_memory_equal(item.bytes, "new", 3);
    assert_int_equal(item.version, 0);
    assert_int_equal(store_get(txn, &job->keys[1], &item), STORE_ABSENT);
    return STORE_FULL;
}

static void a_failed_request_leaves_no_trace(void **state)
{
    struct bench *bench = *state;
    put(bench, 0, "a", "old");
    put(bench, 0, "b", "there");
    uint64_t durable = store_durable(bench->store);
    struct job job = {.body = body_write_much_then_fail};
    add_key(&job, 0, "a", STORE_EXCLUSIVE);
    add_key(&job, 0, "b", STORE_EXCLUSIVE);
    assert_int_equal(finish(bench->workers[0], &job), STORE_FULL);
    assert_holds(bench, 0, "a", "old");
    assert_holds(bench, 0, "b", "there");
    assert_int_equal(store_durable(bench->store), durable);
}

static enum store_result body_edit(struct store_txn *txn, struct job *job)
{
    struct store_item item;
    assert_int_equal(store_get(txn, &job->keys[0], &item), STORE_OK);
    assert_int_equal(store_patch(txn, &job->keys[0], &item, 5, "xy", 2), STORE_OK);
    assert_int_equal(store_get(txn, &job->keys[0], &item), STORE_OK);
    assert_int_equal(item.length, 7);
    assert_memory_equal(item.bytes, "abc\0\0xy", 7);
    assert_int_equal(store_set_expiry(txn, &job->keys[0], &item, NOW + 10), STORE_OK);
    assert_int_equal(store_get(txn, &job->keys[0], &item), STORE_OK);
    return store_rename(txn, &job->keys[0], &item, &job->keys[1]);
}

static enum store_result body_check_edit(struct store_txn *txn, struct job *job)
{
    struct store_item item;
    char part[3];
    enum store_result result = store_get(txn, &job->keys[0], &item);
    if (result != STORE_OK)
        return result;
    assert_int_equal(item.expire_ms, NOW + 10);
    assert_true(item.version > 0);
    assert_int_equal(store_read(txn, &item, 4, 3, part), STORE_OK);
    assert_memory_equal(part, "\0xy", 3);
    return STORE_OK;
}

static void edits_of_one_request_build_on_each_other(void **state)
{
    struct bench *bench = *state;
    put(bench, 0, "a", "abc");
    put(bench, 1, "b", "covered");
    struct job job = {.body = body_edit};
    add_key(&job, 0, "a", STORE_EXCLUSIVE);
    add_key(&job, 1, "b", STORE_EXCLUSIVE);
    assert_int_equal(finish(bench->workers[0], &job), STORE_OK);
    assert_holds(bench, 0, "a", NULL);
    struct job check = {.body = body_check_edit, .request.now_ms = NOW + 10};
    add_key(&check, 1, "b", STORE_SHARED);
    assert_int_equal(finish(bench->workers[0], &check), STORE_OK);
    assert_int_equal(store_db_stats(bench->store, 1).expires, 1);
    struct job late = {.body = body_check_edit, .request.now_ms = NOW + 11};
    add_key(&late, 1, "b", STORE_SHARED);
    assert_int_equal(finish(bench->workers[0], &late), STORE_ABSENT);
    assert_int_equal(store_db_stats(bench->store, 1).keys, 0);
}

static enum store_result body_swap_and_flush(struct store_txn *txn, struct job *job)
{
    struct store_key key;
    (void)job;
    store_key(NULL, &key, 0, "early", 5, STORE_EXCLUSIVE);
    assert_int_equal(store_put(txn, &key, 0, "1", 1, STORE_NO_EXPIRY), STORE_OK);
    store_flush_db(txn, 1);
    store_swap_db(txn, 0, 1);
    store_key(NULL, &key, 0, "late", 4, STORE_EXCLUSIVE);
    return store_put(txn, &key, 0, "2", 1, STORE_NO_EXPIRY);
}

static void flushes_and_swaps_take_their_place_among_writes(void **state)
{
    struct bench *bench = *state;
    put(bench, 0, "zero", "0");
    put(bench, 1, "one", "1");
    put(bench, STORE_META_DB, "one", "kept");
    struct job job = {.body = body_swap_and_flush, .request.scope = STORE_SCOPE_ALL};
    assert_int_equal(finish(bench->workers[0], &job), STORE_OK);
    assert_holds(bench, 1, "zero", "0");
    assert_holds(bench, 1, "early", "1");
    assert_holds(bench, 0, "late", "2");
    assert_holds(bench, 0, "one", NULL);
    assert_holds(bench, STORE_META_DB, "one", "kept");
    assert_int_equal(store_db_stats(bench->store, 0).keys, 1);
    assert_int_equal(store_db_stats(bench->store, 1).keys, 2);
}

/* ---- order ---- */

static enum store_result body_log(struct store_txn *txn, struct job *job)
{
    struct store_item item;
    for (uint32_t i = 0; i < job->request.key_count; i++)
        if (store_get(txn, &job->keys[i], &item) == STORE_WAIT)
            return STORE_WAIT;
    job->log[(*job->logged)++] = job->number;
    return STORE_OK;
}

/* Of requests that share a key for writing none overtakes another; of the rest some do. */
static void requests_on_a_key_keep_their_order(void **state)
{
    enum { JOBS = 300 };
    struct bench *bench = *state;
    static const char *const names[] = {"a", "b", "c", "d"};
    struct job *jobs = calloc(JOBS, sizeof(*jobs));
    int log[JOBS], logged = 0, overtakes = 0, place[JOBS];
    model_store_set_waits(bench->store, 42, 500);
    srand((unsigned)seed_for("order"));
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.body = body_log, .number = i, .log = log, .logged = &logged};
        add_key(&jobs[i], 0, names[rand() % 4], (enum store_mode)(rand() % 2));
        add_key(&jobs[i], 0, names[rand() % 4], (enum store_mode)(rand() % 2));
        start(bench->workers[i % 3], &jobs[i]);
    }
    for (int i = 0; logged < JOBS && i < 100000; i++)
        store_poll(bench->workers[i % 3]);
    assert_int_equal(logged, JOBS);
    for (int i = 0; i < JOBS; i++)
        place[log[i]] = i;
    for (int i = 0; i < JOBS; i++)
        for (int j = 0; j < i; j++) {
            bool conflict = false;
            for (int k = 0; k < 4; k++) {
                const struct store_key *a = &jobs[i].keys[k / 2], *b = &jobs[j].keys[k % 2];
                conflict |= strcmp(a->data, b->data) == 0 && (a->mode || b->mode);
            }
            overtakes += place[i] < place[j];
            assert_true(!conflict || place[j] < place[i]);
        }
    assert_true(overtakes > 0);
    for (int i = 0; i < 3; i++)
        store_poll(bench->workers[i]);
    free(jobs);
}

static enum store_result body_increment(struct store_txn *txn, struct job *job)
{
    struct store_item item;
    uint32_t *count = store_alloc(txn, sizeof(*count));
    enum store_result result = store_get(txn, &job->keys[0], &item);
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    *count = 0;
    if (result == STORE_OK)
        memcpy(count, item.bytes, sizeof(*count));
    ++*count;
    return store_put(txn, &job->keys[0], 0, (const char *)count, sizeof(*count), STORE_NO_EXPIRY);
}

enum { INCREMENTS = 500 };

static void *increment_often(void *arg)
{
    struct store_worker *worker = arg;
    for (int i = 0; i < INCREMENTS; i++) {
        struct job job = {.body = body_increment};
        add_key(&job, 0, "count", STORE_EXCLUSIVE);
        start(worker, &job);
        while (!job.done) {
            store_poll(worker);
            sched_yield();
        }
        if (job.result != STORE_OK)
            return worker;
    }
    return NULL;
}

static enum store_result body_total(struct store_txn *txn, struct job *job)
{
    struct store_item item;
    enum store_result result = store_get(txn, &job->keys[0], &item);
    if (result == STORE_OK)
        memcpy(&job->number, item.bytes, sizeof(uint32_t));
    return result;
}

static void workers_on_threads_lose_no_update(void **state)
{
    struct bench *bench = *state;
    pthread_t threads[3];
    model_store_set_waits(bench->store, 5, 300);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, increment_often, bench->workers[i]), 0);
    for (int i = 0; i < 3; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    struct job job = {.body = body_total};
    add_key(&job, 0, "count", STORE_SHARED);
    assert_int_equal(finish(bench->workers[0], &job), STORE_OK);
    assert_int_equal(job.number, 3 * INCREMENTS);
}

/* ---- large values ---- */

enum { LARGE = 300001 };

static char large_byte(size_t i)
{
    return (char)(i * 7 / 3);
}

static enum store_result body_put_large(struct store_txn *txn, struct job *job)
{
    char *bytes = store_alloc(txn, LARGE);
    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = large_byte(i);
    return store_put(txn, &job->keys[0], 0, bytes, LARGE, STORE_NO_EXPIRY);
}

static enum store_result body_open_stream(struct store_txn *txn, struct job *job)
{
    struct store_item item;
    struct store_reader *reader;
    enum store_result result = store_get(txn, &job->keys[0], &item);
    if (result != STORE_OK)
        return result;
    assert_true(item.large);
    assert_null(item.bytes);
    result = store_reader_open(txn, &item, 0, &reader);
    job->text = (const char *)reader;
    char last;
    return result == STORE_OK ? store_read(txn, &item, LARGE - 1, 1, &last) : result;
}

static void set_flag(void *arg)
{
    *(bool *)arg = true;
}

static void a_reader_shows_the_version_it_was_opened_on(void **state)
{
    struct bench *bench = *state;
    model_store_set_waits(bench->store, 3, 850);
    struct job write = {.body = body_put_large}, read = {.body = body_open_stream};
    add_key(&write, 0, "large", STORE_EXCLUSIVE);
    add_key(&read, 0, "large", STORE_SHARED);
    assert_int_equal(finish(bench->workers[0], &write), STORE_OK);
    assert_int_equal(finish(bench->workers[0], &read), STORE_OK);
    put(bench, 0, "large", "overwritten");

    struct store_reader *reader = (struct store_reader *)read.text;
    const struct iovec *vectors;
    bool ready = true;
    size_t at = 0;
    int count, waits = 0;
    store_reader_on_ready(reader, set_flag, &ready);
    for (enum store_result result;
         (result = store_reader_next(reader, &vectors, &count)) != STORE_ABSENT;) {
        if (result == STORE_WAIT) {
            ready = false;
            store_poll(bench->workers[0]);
            assert_true(ready);
            waits++;
            continue;
        }
        assert_int_equal(result, STORE_OK);
        for (int i = 0; i < count; i++)
            for (size_t j = 0; j < vectors[i].iov_len; j++)
                assert_int_equal(((const char *)vectors[i].iov_base)[j], large_byte(at++));
    }
    assert_int_equal(at, LARGE);
    assert_true(waits > 0);
    store_reader_close(reader);
}

/* ---- slots ---- */

static void slots_are_those_of_redis_cluster(void **state)
{
    (void)state;
    assert_int_equal(store_hash_slot("123456789", 9), 12739);
    assert_int_equal(store_hash_slot("foo", 3), 12182);
    assert_int_equal(store_hash_slot("{user1000}.following", 20), store_hash_slot("user1000", 8));
    assert_int_equal(store_hash_slot("foo{}{bar}", 10), 8363);
    assert_int_equal(store_hash_slot("foo{{bar}}zap", 13), store_hash_slot("{bar", 4));
    assert_int_equal(store_hash_slot("", 0), 0);
}

/* ---- trees ---- */

static const char *const tree_keys[] = {"b", "d", "a", "b", "e", "", "c"};
#define TREE_KEYS (sizeof tree_keys / sizeof tree_keys[0])

static enum store_result body_grow_tree(struct store_txn *txn, struct job *job)
{
    struct store_item item;
    struct store_tree *tree;
    struct store_cursor cursor;
    enum store_result result =
        store_tree_create(txn, &job->keys[0], 2, STORE_TREES, STORE_NO_EXPIRY);
    if (result == STORE_OK)
        result = store_get(txn, &job->keys[0], &item);
    if (result == STORE_OK)
        result = store_tree_open(txn, &job->keys[0], &item, 1, &tree);
    for (size_t i = 0; i < TREE_KEYS && result == STORE_OK; i++) {
        result = store_tree_seek(tree, tree_keys[i], strlen(tree_keys[i]), &cursor);
        if (result == STORE_OK)
            result = store_tree_insert(&cursor, tree_keys[i], strlen(tree_keys[i]), "value", i % 6);
    }
    return result;
}

/* Reads all keys into job->text's place, a step after each. */
static enum store_result body_read_tree(struct store_txn *txn, struct job *job)
{
    struct store_item item;
    struct store_tree *tree;
    struct store_cursor cursor;
    struct store_entry entry;
    enum store_result result = store_get(txn, &job->keys[0], &item);
    if (result == STORE_OK)
        result = store_tree_open(txn, &job->keys[0], &item, 1, &tree);
    if (result == STORE_OK)
        result = store_tree_seek_rank(tree, (uint64_t)job->number, &cursor);
    if (result == STORE_OK)
        result = store_tree_get(&cursor, &entry);
    if (result == STORE_ABSENT)
        return job->number == (int)store_tree_count(tree) ? STORE_OK : STORE_INVALID;
    if (result != STORE_OK)
        return result;
    job->log[job->number++] = entry.key_len == 0 ? 0 : entry.key[0];
    return store_step(txn);
}

static enum store_result body_cut_tree(struct store_txn *txn, struct job *job)
{
    struct store_item item;
    struct store_tree *tree;
    struct store_cursor cursor;
    enum store_result result = store_get(txn, &job->keys[0], &item);
    if (result == STORE_OK)
        result = store_tree_open(txn, &job->keys[0], &item, 1, &tree);
    if (result == STORE_OK)
        result = store_tree_seek(tree, "b", 1, &cursor);
    if (result == STORE_OK)
        result = store_tree_remove(&cursor);
    if (result == STORE_OK)
        result = store_tree_replace(&cursor, "other", 5);
    return result == STORE_OK && job->number != 0 ? STORE_INVALID : result;
}

static void read_tree(struct bench *bench, const char *expected)
{
    int log[TREE_KEYS + 1];
    struct job job = {.body = body_read_tree, .log = log};
    add_key(&job, 0, "tree", STORE_SHARED);
    assert_int_equal(finish(bench->workers[0], &job), STORE_OK);
    assert_int_equal(job.number, strlen(expected));
    for (int i = 0; i < job.number; i++)
        assert_int_equal(log[i], expected[i] == '-' ? 0 : expected[i]);
}

static void trees_are_sorted_and_change_with_their_transaction(void **state)
{
    struct bench *bench = *state;
    model_store_set_waits(bench->store, 3, 500);
    struct job grow = {.body = body_grow_tree}, cut = {.body = body_cut_tree};
    add_key(&grow, 0, "tree", STORE_EXCLUSIVE);
    assert_int_equal(finish(bench->workers[0], &grow), STORE_OK);
    read_tree(bench, "-abbcde");
    cut.number = 1; /* fails after its changes */
    add_key(&cut, 0, "tree", STORE_EXCLUSIVE);
    assert_int_equal(finish(bench->workers[0], &cut), STORE_INVALID);
    read_tree(bench, "-abbcde");
    cut.number = cut.done = 0;
    assert_int_equal(finish(bench->workers[0], &cut), STORE_OK);
    read_tree(bench, "-abcde");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_failed_request_leaves_no_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(edits_of_one_request_build_on_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(flushes_and_swaps_take_their_place_among_writes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(requests_on_a_key_keep_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(workers_on_threads_lose_no_update, setup, teardown),
        cmocka_unit_test_setup_teardown(a_reader_shows_the_version_it_was_opened_on, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(trees_are_sorted_and_change_with_their_transaction, setup,
                                        teardown),
        cmocka_unit_test(slots_are_those_of_redis_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
