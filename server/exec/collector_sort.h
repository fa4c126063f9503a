/*
 * Sorts the entries that a collector holds in `out`, by their positions, while others have their
 * turns.
 */
#ifndef VELLUM_COLLECTOR_SORT_H
#define VELLUM_COLLECTOR_SORT_H

#include "server/exec/collector.h"

/* How a command's entries are made. */
struct collector_entries {
    /* The position behind the entry at `at`. */
    size_t (*next)(const struct collector *collector, size_t at);
    /* Negative: the entry at `a` comes first. No two are equal. */
    int (*compare)(const struct collector *collector, size_t a, size_t b);
};

/* Afterwards collector->ranks are the positions of the entries in order. Call it again in later
 * runs. */
STORE_MUST_CHECK enum store_result collector_sort(struct call *call, struct collector *collector,
                                                  const struct collector_entries *entries);
/* Forgets that order: the entries may change. */
void collector_sort_end(struct collector *collector);

#endif
