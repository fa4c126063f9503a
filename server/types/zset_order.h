/*
 * The order of a sorted set's elements, the encoding of scores, and ranges: see zset.h.
 */
#ifndef VELLUM_ZSET_ORDER_H
#define VELLUM_ZSET_ORDER_H

#include "server/types/zset.h"
#include "storage/collections.h"

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

/* ---- ranges: each is `count` elements from rank `first` on ---- */

struct zset_bound {
    double score;
    bool exclusive;
};
struct zset_score_range {
    struct zset_bound min, max;
};

struct zset_lex_bound {
    enum { LEX_LEAST, LEX_MEMBER, LEX_MOST } kind;
    bool exclusive;
    struct resp_slice member;
};
struct zset_lex_range {
    struct zset_lex_bound min, max;
};

STORE_MUST_CHECK enum store_result zset_score_range(struct zset *zset,
                                                    const struct zset_score_range *range,
                                                    uint64_t *first, uint64_t *count);
/* Requires equal scores; otherwise the range is unspecified. */
STORE_MUST_CHECK enum store_result zset_lex_range(struct zset *zset,
                                                  const struct zset_lex_range *range,
                                                  uint64_t *first, uint64_t *count);

#endif
