/*
 * Collections against a plain model: arrays of entries. A batch of random operations is one
 * transaction; what it found is compared with what the model finds, when it has committed.
 */
#ifndef VELLUM_TEST_STORAGE_TREE_MODEL_H
#define VELLUM_TEST_STORAGE_TREE_MODEL_H

#include "tests/storage/harness.h"

#define TREE_KEYS 6u
#define TREE_OPS 12u

struct model_entry {
    char *key;
    uint32_t key_len;
    uint64_t value_seed;
    uint32_t value_len;
};

struct model_tree {
    struct model_entry *at;
    uint32_t count, capacity;
};

struct model_collection {
    uint8_t type; /* 0: absent */
    uint8_t trees;
    int64_t expire_ms, wake_ms;
    struct model_tree tree[2];
};

struct tree_model {
    struct rng rng;
    struct model_collection collections[TREE_KEYS];
    uint32_t target; /* how many entries a tree tends to have */
    uint32_t overflow_percent, value_most;
};

void tree_model_init(struct tree_model *model, uint64_t seed);
void tree_model_free(struct tree_model *model);
void tree_model_copy(struct tree_model *to, const struct tree_model *from); /* but its rng */

/* A batch of operations, one transaction. */
struct tree_batch;
struct tree_batch *tree_batch_new(struct tree_model *model);
void tree_batch_free(struct tree_batch *batch);
void tree_batch_start(struct store_worker *worker, struct tree_batch *batch);
bool tree_batch_finished(const struct tree_batch *batch);
enum store_result tree_batch_result(const struct tree_batch *batch);
uint64_t tree_batch_shown(const struct tree_batch *batch);
/* Does the same to the model, and compares what was found on the way. */
void tree_batch_apply(struct tree_model *model, struct tree_batch *batch);

/* Walks over everything, in steps, and compares. */
void tree_model_compare(struct tree_model *model, struct rig *rig);

#endif
