/*
 * Results that are gathered as pairs, to be replied or stored.
 */
#ifndef VELLUM_CMD_ZSET_ALGEBRA_H
#define VELLUM_CMD_ZSET_ALGEBRA_H

#include "server/exec/collector.h"
#include "server/types/zset.h"

STORE_MUST_CHECK enum store_result zset_collect_pair(struct collector *collector,
                                                     const struct zset_pair *pair);
/* Of pairs to be stored, before going on to gather: see collector_build. */
STORE_MUST_CHECK enum store_result zset_build(struct call *call, struct collector *collector);
/* Makes a sorted set of all of them at the first key, and replies how many they are; they are
 * different. None: the key is deleted. */
STORE_MUST_CHECK enum store_result zset_store(struct call *call, struct collector *collector,
                                              const char *event);

#endif
