/*
 * Copies a large collection of any type to another key. Its entries are collected in steps. If
 * there are many, they are also written in steps, to a bulk load that the transaction then stores
 * at the key.
 */
#ifndef VELLUM_COPY_TREES_H
#define VELLUM_COPY_TREES_H

#include "server/core/command.h"

/* Copies the collection found at `from` to `to`, replacing any value there. */
STORE_MUST_CHECK enum store_result copy_trees(struct call *call, const struct store_key *from,
                                              const struct store_item *item,
                                              const struct store_key *to);

#endif
