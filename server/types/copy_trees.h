/*
 * Copies a large collection of any type, or a part of it. Its entries are collected in steps. If
 * there are many, they are also written in steps, to a bulk load that the transaction then stores
 * at the key.
 */
#ifndef VELLUM_COPY_TREES_H
#define VELLUM_COPY_TREES_H

#include "server/core/command.h"

/* Entries whose pages may be more than one transaction should change. */
#ifdef VELLUM_TINY
#define COPY_TREES_MANY 16u
#else
#define COPY_TREES_MANY 4096u
#endif

/* Copies the collection found at `from` to `to`, replacing any value there. */
STORE_MUST_CHECK enum store_result copy_trees(struct call *call, const struct store_key *from,
                                              const struct store_item *item,
                                              const struct store_key *to);

/* Removes all entries of its first tree but the `count` ones from `first` on: these are copied,
 * together with the other trees, to a collection that replaces it. *item: the new one. For where
 * the entries to be removed are the majority: neither these nor the others need fit into memory. */
STORE_MUST_CHECK enum store_result copy_trees_keep(struct call *call, const struct store_key *key,
                                                   uint64_t first, uint64_t count,
                                                   struct store_item *item);

#endif
