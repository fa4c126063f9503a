/*
 * Results that are collected as pairs, to be replied or stored.
 */
#ifndef VELLUM_CMD_ZSET_ALGEBRA_H
#define VELLUM_CMD_ZSET_ALGEBRA_H

#include "server/exec/collector.h"
#include "server/types/zset.h"

STORE_MUST_CHECK enum store_result zset_collect_pair(struct collector *collector,
                                                     const struct zset_pair *pair);
/* For pairs to be stored; called before each further collection: see collector_build(). */
STORE_MUST_CHECK enum store_result zset_build(struct call *call, struct collector *collector,
                                              const struct store_key *to);
/* Stores all pairs, whose members are distinct, as a sorted set at the key and replies with their
 * number. Without pairs the key is deleted. */
STORE_MUST_CHECK enum store_result zset_store(struct call *call, struct collector *collector,
                                              const struct store_key *to, const char *event);

#endif
