/*
 * Small collections: a sequence of entries, packed into the bytes of one item and rewritten whole.
 * What the entries mean is each type's own: members, or fields and values in turn.
 *
 * Part of the data format. An entry:
 *
 *     OFFSET  SIZE    DESCRIPTION
 *     0       V       its length N: seven bits a byte, the lowest first, 0x80 set on all but the
 * last V       N       its bytes V+N     V       the length again, mirrored: read backwards it is
 * the same
 *
 * so that the sequence can be walked from either end; V is 1 below 128, 2 below 16384. Entries
 * follow each other without gaps and fill the item.
 *
 * Invariant: every struct packed has been found whole by packed_open, or was built here; from then
 * on no length is doubted.
 */
#ifndef VELLUM_PACKED_H
#define VELLUM_PACKED_H

#include "protocol/resp.h"
#include "storage/store.h"

#define PACKED_MAX SIZES_PACKED /* bytes; what would be longer becomes trees */

struct packed {
    const char *bytes;
    uint32_t len;   /* of the bytes */
    uint32_t count; /* entries */
    char *own;      /* the same bytes, where they may be changed: see packed_own */
};

/* An entry, and the places before and behind it. All zero: stands before the first entry. */
struct packed_entry {
    struct resp_slice slice;
    uint32_t at, end;
};

/* False: the bytes are no such sequence, which is STORE_DAMAGED. */
STORE_MUST_CHECK bool packed_open(struct packed *packed, const char *bytes, uint64_t len);

/* The entry behind this one, or before it: false, and nothing changed, when there is none. */
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

/* ---- building ---- */

struct packed packed_empty(void);

/* Moves the sequence into memory of the transaction, in which it may be changed; does nothing when
 * it is there already. False: no memory. */
STORE_MUST_CHECK bool packed_own(struct packed *packed, struct store_txn *txn);

/* Puts `count` entries in the place of those between `at` and `end`, places of an own sequence:
 * inserts where the two are the same, removes where count is 0. What is put must not lie in the
 * sequence. False, and nothing changed: it would be longer than PACKED_MAX. */
STORE_MUST_CHECK bool packed_splice(struct packed *packed, uint32_t at, uint32_t end,
                                    const struct resp_slice *entries, uint32_t count);

/* Takes out what is between two places. */
void packed_cut(struct packed *packed, uint32_t at, uint32_t end);

/* Bytes that an entry of this length takes. */
size_t packed_size(size_t len);

/* ---- lengths by themselves, as other formats have them too ---- */

#define PACKED_LENGTH_MAX 5

/* Returns how many bytes the length takes, 0: there is none in `left` bytes. */
uint32_t packed_read_length(const char *from, uint64_t left, uint32_t *len);
uint32_t packed_write_length(char *to, uint32_t len);

#endif
