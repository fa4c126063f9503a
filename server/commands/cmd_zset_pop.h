/*
 * Pops from an end of a sorted set, including the blocking commands.
 */
#ifndef VELLUM_CMD_ZSET_POP_H
#define VELLUM_CMD_ZSET_POP_H

#include "server/types/zset.h"

enum zset_end { ZSET_MIN, ZSET_MAX };

/* Parses numkeys key ... MIN|MAX [COUNT n] from argument `at` on. False: replied with an error. */
bool zset_read_mpop(struct call *call, size_t at, enum zset_end *end, int64_t *count);

/* Pop elements from a non-empty sorted set. The reply is [key, [[member, score] ...]], for a single
 * element [key, member, score]. */
STORE_MUST_CHECK enum store_result zset_pop_many(struct zset *zset, enum zset_end end,
                                                 int64_t count);
STORE_MUST_CHECK enum store_result zset_pop_one(struct zset *zset, enum zset_end end);

#endif
