/*
 * The account of what commands collect before they can reply: each result counts for its command
 * and in the sum of all, which is bounded, and reported to the store, so that it evicts page frames
 * to make room. Any thread; each `struct collected` belongs to one.
 */
#ifndef VELLUM_COLLECTED_H
#define VELLUM_COLLECTED_H

#include <stdbool.h>
#include <stdint.h>

#define COLLECTED_FEW (64 * 1024) /* bytes of one result that are always allowed */

struct server;

struct collected {
    struct server *server;
    uint64_t bytes; /* counted so far */
    uint64_t noted; /* of them, reported to the store */
};

/* Sets the number of bytes counted. False: too many, the command must fail. */
bool collected_set(struct collected *collected, uint64_t bytes);

#endif
