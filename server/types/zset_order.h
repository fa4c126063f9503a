/*
 * The order of a sorted set's elements, and the encoding of scores: see zset.h.
 */
#ifndef VELLUM_ZSET_ORDER_H
#define VELLUM_ZSET_ORDER_H

#include "server/types/zset.h"

double zset_score_read(const char bytes[ZSET_SCORE_BYTES]);
void zset_score_write(char bytes[ZSET_SCORE_BYTES], double score);

/* Negative: `a` is before `b`. */
int zset_compare(const struct zset_pair *a, const struct zset_pair *b);
int zset_compare_members(struct resp_slice a, struct resp_slice b);

/* The key of an element in the tree in order. */
struct zset_order_key {
    size_t len;
    char bytes[STORE_TREE_KEY_MAX];
};
struct zset_order_key zset_order_key(const struct zset_pair *pair);

#endif
