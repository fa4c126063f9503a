/*
 * Bytes that a transaction lays over a large value: a skip list of parts that do not overlap, in
 * the order of their offsets. So each look at them, and each that is laid over others, takes about
 * as long whether they are few or very many.
 */
#ifndef VELLUM_STORE_PATCHES_H
#define VELLUM_STORE_PATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store_txn;

struct patch {
    uint64_t offset, len;
    const char *bytes;
    uint32_t levels;
    struct patch *next[]; /* of each level; the lowest has all */
};

struct patches;

/* Over what is there. NULL is none, and is replaced. False: out of memory. */
bool patches_lay(struct store_txn *txn, struct patches **patches, uint64_t offset,
                 const char *bytes, uint64_t len);

/* The first that ends behind `offset`, or NULL. */
const struct patch *patches_behind(const struct patches *patches, uint64_t offset);
/* Where the last ends that begins before `offset`; 0: none does. */
uint64_t patches_end_before(const struct patches *patches, uint64_t offset);
/* Whether they leave nothing of [offset, offset + len). */
bool patches_cover(const struct patches *patches, uint64_t offset, uint64_t len);
/* What they say of [offset, offset + len), into `to`. */
void patches_overlay(const struct patches *patches, uint64_t offset, uint64_t len, char *to);

#endif
