/*
 * Copying a large collection to another key, whatever its type: its entries are gathered in steps,
 * and where they are many, written in steps, too, to a building that the transaction then puts.
 */
#ifndef VELLUM_COPY_TREES_H
#define VELLUM_COPY_TREES_H

#include "server/core/command.h"

/* The collection found at `from` as the value of `to`, over what is there. */
STORE_MUST_CHECK enum store_result copy_trees(struct call *call, const struct store_key *from,
                                              const struct store_item *item,
                                              const struct store_key *to);

#endif
