/*
 * Member trees: the large form of sets and hashes, and the index by member of sorted sets.
 *
 * Part of the data format. An entry's key:
 *
 *     OFFSET  SIZE    DESCRIPTION
 *     0       8       the member's hash, keyed with the store's secret, big-endian
 *     8       8       its sequence number (store_next_sequence), big-endian; or absent
 *     16      8       its expiry, Unix ms, big-endian; or absent. Before it the sequence number is
 *                     always there, 0 if it has none
 *
 * Members with equal hashes are adjacent. Sequence numbers record the order in which members were
 * added; they are absent where that order does not matter, and always in sorted sets. An entry's
 * value:
 *
 *     OFFSET  SIZE    DESCRIPTION
 *     0       V       length N of the member, as in packed.h
 *     V       N       member
 *     V+N     .       the member's payload: a hash field's value, a sorted set's score
 */
#ifndef VELLUM_MEMBER_TREE_H
#define VELLUM_MEMBER_TREE_H

#include "server/core/command.h"
#include "storage/collections.h"

#define MEMBER_LONG (64 * 1024)

/* A member as found. Its slices are valid until the next call on its tree. */
struct member {
    struct resp_slice name;
    uint64_t hash;
    uint64_t sequence;  /* 0: none */
    int64_t expire_ms;  /* or STORE_NO_EXPIRY */
    bool has_namesakes; /* member_find() did not find it, but found others with its hash */
    uint64_t value_len;
    uint64_t value_at; /* within the entry's value */
    struct store_item item;
};

/* Callers pass up every result except STORE_OK. */

uint64_t member_hash(const struct call *call, struct resp_slice name);

/* The first 8 bytes of the key of a member's entry. */
#define MEMBER_KEY_BYTES 8
void member_key(const struct store *store, struct resp_slice name, char key[MEMBER_KEY_BYTES]);

/* Seeks the first member with this hash or a greater one, or the end. The cursor's rank is set. */
STORE_MUST_CHECK enum store_result member_seek(struct store_tree *tree, uint64_t hash,
                                               struct store_cursor *cursor);
/* The member at the cursor; STORE_ABSENT at the end. */
STORE_MUST_CHECK enum store_result member_read(struct call *call, struct store_cursor *cursor,
                                               struct member *member);
/* The member's payload, in one piece. */
STORE_MUST_CHECK enum store_result member_value(struct call *call, const struct member *member,
                                                struct resp_slice *value);

/* Whether the payload is too long to be read in one piece. */
static inline bool member_is_long(const struct member *member)
{
    return member->item.large && member->value_len >= MEMBER_LONG;
}

/* If *found, the cursor is at the member. Otherwise it is at the insert position, and only the hash
 * and has_namesakes of *member are set. */
STORE_MUST_CHECK enum store_result member_find(struct call *call, struct store_tree *tree,
                                               struct resp_slice name, struct store_cursor *cursor,
                                               struct member *member, bool *found);
/* Only after member_find() for the same name, which has not found it (insert) or has (replace).
 * `value` is copied. A sequence number other than 0 must be the highest in the tree. */
STORE_MUST_CHECK enum store_result member_insert(struct call *call, struct store_cursor *cursor,
                                                 const struct member *sought,
                                                 struct resp_slice name, struct resp_slice value,
                                                 uint64_t sequence);
STORE_MUST_CHECK enum store_result member_replace(struct call *call, struct store_cursor *cursor,
                                                  struct resp_slice name, struct resp_slice value);

/* Sets or removes the expiry of the member that member_find() or member_find_timed() has found, at
 * the cursor, which moves with it. Its value is not read unless another member has its hash. */
STORE_MUST_CHECK enum store_result member_set_expiry(struct call *call, struct store_cursor *cursor,
                                                     const struct member *member,
                                                     int64_t expire_ms);
/* Moves to a member with this hash and expiry; STORE_ABSENT: there is none. */
STORE_MUST_CHECK enum store_result member_find_timed(struct store_tree *tree, uint64_t hash,
                                                     int64_t expire_ms,
                                                     struct store_cursor *cursor);

#endif
