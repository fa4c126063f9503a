/*
 * One call on one collection, by hand: the collection is made if there is none, its tree opened,
 * and an act done on it. Entries go by number: 10 of them in a call, in no order.
 */
#ifndef VELLUM_TEST_STORAGE_TREE_JOB_H
#define VELLUM_TEST_STORAGE_TREE_JOB_H

#include "tests/storage/harness.h"
#include "storage/collections.h"

struct tree_job;
typedef enum store_result tree_act(struct store_txn *txn, struct tree_job *job,
                                   struct store_tree *tree);

struct tree_job {
    struct store_request request; /* first; its run and keys may be set to others */
    struct store_key keys[2];
    uint32_t from, count; /* entries by number */
    uint32_t value_len;
    uint64_t found; /* by the act */
    tree_act *act;  /* NULL: the collection is made only */
    bool finished;
    enum store_result result;
};

void tree_job_start(struct rig *rig, const char *key, struct tree_job *job);
/* Starts it and waits for its end. */
enum store_result tree_job_do(struct rig *rig, const char *key, struct tree_job *job);

tree_act tree_job_insert;       /* `count` entries with values of `value_len` */
tree_act tree_job_look_up;      /* entry `from`, which has to be there; finds the tree's height */
tree_act tree_job_look_up_rank; /* the same of the entry at rank `from` */

uint32_t tree_job_name(uint32_t number, char name[16]); /* an entry's key, and its length */
/* Puts entries 0 to count - 1. */
void tree_job_fill(struct rig *rig, const char *key, uint32_t count, uint32_t value_len);
/* Of these entries, those which no damage keeps from being read. */
uint32_t tree_job_count_readable(struct rig *rig, const char *key, uint32_t count);

#endif
