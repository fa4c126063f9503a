/*
 * Bytes that a transaction writes over a large value: a skip list of parts that do not overlap, in
 * the order of their offsets. So look-ups and insertions stay fast even with very many parts.
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
    struct patch *next[]; /* next part of each level; the lowest level has all parts */
};

struct patches;

/* Overwrites what is there. NULL is an empty set, and is replaced. False: out of memory. */
bool patches_lay(struct store_txn *txn, struct patches **patches, uint64_t offset,
                 const char *bytes, uint64_t len);

/* The first part that ends after `offset`, or NULL. */
const struct patch *patches_behind(const struct patches *patches, uint64_t offset);
/* The end of the last part that begins before `offset`; 0: no such part. */
uint64_t patches_end_before(const struct patches *patches, uint64_t offset);
/* Whether the parts cover [offset, offset + len) completely. */
bool patches_cover(const struct patches *patches, uint64_t offset, uint64_t len);
/* Copies the patched bytes of [offset, offset + len) into `to`. */
void patches_overlay(const struct patches *patches, uint64_t offset, uint64_t len, char *to);

#endif
