/*
 * Small collections: a sequence of entries, packed into one item and rewritten as a whole. The
 * meaning of the entries depends on the type: members, or fields and values in turn.
 *
 * Part of the data format. An entry:
 *
 *     OFFSET  SIZE    DESCRIPTION
 *     0       V       its length N: seven bits per byte, the lowest first, 0x80 set on all but
 *                     the last
 *     V       N       its bytes
 *     V+N     V       the length again, mirrored: it reads the same backwards
 *
 * so that the sequence can be walked from either end. V is 1 below 128, 2 below 16384. Entries
 * follow each other without gaps and fill the item.
 *
 * Invariant: every struct packed was either validated by packed_open() or built here. Lengths are
 * not checked again after that.
 */
#ifndef VELLUM_PACKED_H
#define VELLUM_PACKED_H

#include "protocol/resp.h"
#include "server/exec/long_run.h"
#include "storage/store.h"

#define PACKED_MAX SIZES_PACKED /* bytes; larger collections become trees */

struct packed {
    const char *bytes;
    uint32_t len;   /* of the bytes */
    uint32_t count; /* entries */
    char *own;      /* the same bytes, if they are writable: see packed_own() */
    bool is_kept;   /* the bytes are the transaction's own memory: see packed_keep() */
};

/* An entry, and the positions before and after it. All zero: before the first entry. */
struct packed_entry {
    struct resp_slice slice;
    uint32_t at, end;
};

/* False: the bytes are malformed, which callers report as STORE_DAMAGED. */
STORE_MUST_CHECK bool packed_open(struct packed *packed, const char *bytes, uint64_t len);

/* Moves to the next or the previous entry. False, and nothing changed: there is none. */
bool packed_next(const struct packed *packed, struct packed_entry *entry);
bool packed_prev(const struct packed *packed, struct packed_entry *entry);
static inline struct packed_entry packed_end(const struct packed *packed)
{
    return (struct packed_entry){.at = packed->len, .end = packed->len};
}

/* Entry number `index`, which must be below the count. */
struct packed_entry packed_at(const struct packed *packed, uint32_t index);

/* The first entry with these bytes among entries 0, step, 2 * step ...; the count must be a
 * multiple of `step`. */
bool packed_find(const struct packed *packed, struct resp_slice bytes, uint32_t step,
                 struct packed_entry *entry);

/* Copies the sequence to memory of the transaction, unless it is there already: the page it is in
 * may be gone after a wait. False: out of memory. */
STORE_MUST_CHECK bool packed_keep(struct packed *packed, struct store_txn *txn);

/* Called for each `i` from 0 on in a loop over many entries or arguments; lets other requests run.
 * Entries read before are invalid afterwards, positions stay valid. */
STORE_MUST_CHECK static inline enum store_result packed_yield(struct call *call,
                                                              struct packed *packed, uint64_t i)
{
    if (i % YIELD_EVERY != YIELD_EVERY - 1)
        return STORE_OK;
    return packed_keep(packed, call->txn) ? call_yield(call) : STORE_NO_MEMORY;
}

/* ---- building ---- */

struct packed packed_empty(void);

/* Copies the sequence to writable memory of the transaction, unless it is there already. False: out
 * of memory. */
STORE_MUST_CHECK bool packed_own(struct packed *packed, struct store_txn *txn);

/* Replaces the entries between the positions `at` and `end` of an own sequence by `count` others:
 * inserts if the positions are equal, removes if count is 0. The new bytes must not lie in the
 * sequence. False, and nothing changed: the result would exceed PACKED_MAX. */
STORE_MUST_CHECK bool packed_splice(struct packed *packed, uint32_t at, uint32_t end,
                                    const struct resp_slice *entries, uint32_t count);

/* Removes the entries between two positions. */
void packed_cut(struct packed *packed, uint32_t at, uint32_t end);

/* Bytes that an entry of this length occupies. */
size_t packed_size(size_t len);

/* ---- lengths, as other formats use them too ---- */

#define PACKED_LENGTH_MAX 5

/* Returns the size of the length in bytes, 0 if the `left` bytes contain none. */
uint32_t packed_read_length(const char *from, uint64_t left, uint32_t *len);
uint32_t packed_write_length(char *to, uint32_t len);

#endif
