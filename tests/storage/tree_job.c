#include "tests/storage/tree_job.h"

#include <stdio.h>
#include <string.h>

static void job_done(struct store_request *request, enum store_result result)
{
    struct tree_job *job = (struct tree_job *)request;
    job->finished = true;
    job->result = result;
}

static enum store_result job_run(struct store_txn *txn, struct store_request *request)
{
    struct tree_job *job = (struct tree_job *)request;
    struct store_item item;
    struct store_tree *tree;
    enum store_result result = store_get(txn, &job->keys[0], &item);
    if (result == STORE_ABSENT) {
        result = store_tree_create(txn, &job->keys[0], 7, 1, STORE_NO_EXPIRY);
        if (result == STORE_OK)
            result = store_get(txn, &job->keys[0], &item);
    }
    if (result == STORE_OK && job->act)
        result = store_tree_open(txn, &job->keys[0], &item, 0, &tree);
    return result == STORE_OK && job->act ? job->act(txn, job, tree) : result;
}

void tree_job_start(struct rig *rig, const char *key, struct tree_job *job)
{
    struct store_request *request = &job->request;
    store_key(rig->store, &job->keys[0], 0, key, strlen(key), STORE_EXCLUSIVE);
    request->run = request->run ? request->run : job_run;
    request->done = job_done;
    request->keys = job->keys;
    request->key_count = request->key_count ? request->key_count : 1;
    request->now_ms = 1;
    job->finished = false;
    enum store_result result = store_execute(rig->workers[0], request);
    if (result != STORE_WAIT)
        job_done(request, result);
}

enum store_result tree_job_do(struct rig *rig, const char *key, struct tree_job *job)
{
    tree_job_start(rig, key, job);
    while (!job->finished)
        rig_round(rig);
    return job->result;
}

uint32_t tree_job_name(uint32_t number, char name[16])
{
    return (uint32_t)snprintf(name, 16, "%08x", number * 2654435761u);
}

enum store_result tree_job_insert(struct store_txn *txn, struct tree_job *job,
                                  struct store_tree *tree)
{
    char *value = store_alloc(txn, job->value_len + 1);
    if (!value)
        return STORE_NO_MEMORY;
    memset(value, 'v', job->value_len);
    enum store_result result = STORE_OK;
    for (uint32_t i = job->from; i < job->from + job->count && result == STORE_OK; i++) {
        char name[16];
        struct store_cursor cursor;
        uint32_t len = tree_job_name(i, name);
        result = store_tree_seek(tree, name, len, &cursor);
        if (result == STORE_OK)
            result = store_tree_insert(&cursor, name, len, value, job->value_len);
    }
    return result;
}

void tree_job_fill(struct rig *rig, const char *key, uint32_t count, uint32_t value_len)
{
    for (uint32_t i = 0; i < count; i += 10) {
        struct tree_job job = {
            .act = tree_job_insert, .from = i, .count = 10, .value_len = value_len};
        must(tree_job_do(rig, key, &job) == STORE_OK, "inserting: %d", (int)job.result);
    }
}

enum store_result tree_job_look_up(struct store_txn *txn, struct tree_job *job,
                                   struct store_tree *tree)
{
    char name[16];
    struct store_cursor cursor;
    struct store_entry entry;
    uint32_t len = tree_job_name(job->from, name);
    (void)txn;
    enum store_result result = store_tree_seek(tree, name, len, &cursor);
    if (result == STORE_OK)
        result = store_tree_get(&cursor, &entry);
    if (result == STORE_OK)
        must(entry.key_len == len && memcmp(entry.key, name, len) == 0, "entry %u is not there",
             job->from);
    job->found = cursor.depth;
    return result;
}

enum store_result tree_job_look_up_rank(struct store_txn *txn, struct tree_job *job,
                                        struct store_tree *tree)
{
    struct store_cursor cursor;
    struct store_entry entry;
    (void)txn;
    enum store_result result = store_tree_seek_rank(tree, job->from, &cursor);
    if (result == STORE_OK)
        result = store_tree_get(&cursor, &entry);
    job->found = cursor.depth;
    return result;
}

uint32_t tree_job_count_readable(struct rig *rig, const char *key, uint32_t count)
{
    uint32_t readable = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct tree_job job = {.act = tree_job_look_up, .from = i};
        enum store_result result = tree_job_do(rig, key, &job);
        must(result == STORE_OK || result == STORE_DAMAGED, "looking up: %d", (int)result);
        readable += result == STORE_OK;
    }
    return readable;
}
