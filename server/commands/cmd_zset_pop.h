/*
 * Taking elements from an end of a sorted set, the blocking commands included.
 */
#ifndef VELLUM_CMD_ZSET_POP_H
#define VELLUM_CMD_ZSET_POP_H

#include "server/types/zset.h"

enum zset_end { ZSET_MIN, ZSET_MAX };

/* numkeys key ... MIN|MAX [COUNT n], from argument `at` on; false: wrong, and answered. */
bool zset_read_mpop(struct call *call, size_t at, enum zset_end *end, int64_t *count);

/* Take elements out of one that is not empty; the reply is [key, [[member, score] ...]], of one
 * [key, member, score]. */
STORE_MUST_CHECK enum store_result zset_pop_many(struct zset *zset, enum zset_end end,
                                                 int64_t count);
STORE_MUST_CHECK enum store_result zset_pop_one(struct zset *zset, enum zset_end end);

#endif
