/*
 * Trees of members: the large form of sets and hashes, and what finds a sorted set's members.
 *
 * Part of the data format. An entry's key:
 *
 *     OFFSET  SIZE    DESCRIPTION
 *     0       8       the member's hash, keyed with the store's secret, the highest byte first
 *     8       8       its sequence number (store_next_sequence), likewise; or nothing
 *
 * Members of one hash are neighbours. Sequence numbers say in which order members were added; where
 * that does not matter they are left out. Sorted sets have none. An entry's value:
 *
 *     OFFSET  SIZE    DESCRIPTION
 *     0       V       length N of the member, as in packed.h
 *     V       N       member
 *     V+N     .       what belongs to it: a hash's value, a sorted set's score
 */
#ifndef VELLUM_MEMBER_TREE_H
#define VELLUM_MEMBER_TREE_H

#include "server/core/command.h"

#define MEMBER_LONG (64 * 1024)

/* A member as found: valid until the next call on its tree. */
struct member {
    struct resp_slice name;
    uint64_t hash;
    uint64_t sequence;  /* 0: none */
    bool has_namesakes; /* member_find did not find it, but others of its hash */
    uint64_t value_len;
    uint64_t value_at; /* in the entry's value */
    struct store_item item;
};

/* All of these: STORE_OK, or what is to be passed up. */

uint64_t member_hash(const struct call *call, struct resp_slice name);

/* What the key of a member's entry begins with. */
#define MEMBER_KEY_BYTES 8
void member_key(const struct store *store, struct resp_slice name, char key[MEMBER_KEY_BYTES]);

/* To the first member whose hash is not less, or to the end; the cursor's rank is told. */
STORE_MUST_CHECK enum store_result member_seek(struct store_tree *tree, uint64_t hash,
                                               struct store_cursor *cursor);
/* The member at the cursor; STORE_ABSENT at the end. */
STORE_MUST_CHECK enum store_result member_read(struct call *call, struct store_cursor *cursor,
                                               struct member *member);
/* What belongs to it, in one piece. */
STORE_MUST_CHECK enum store_result member_value(struct call *call, const struct member *member,
                                                struct resp_slice *value);

/* Whether that is so long that it had better not be read in one piece. */
static inline bool member_is_long(const struct member *member)
{
    return member->item.large && member->value_len >= MEMBER_LONG;
}

/* *found: the cursor stands on it. Else it stands where the member is to be inserted, and
 * member->hash is set. */
STORE_MUST_CHECK enum store_result member_find(struct call *call, struct store_tree *tree,
                                               struct resp_slice name, struct store_cursor *cursor,
                                               struct member *member, bool *found);
/* After a member_find of the same name that did not find it, or did; `value` is copied. A sequence
 * number, if it is not 0, is the highest in the tree. */
STORE_MUST_CHECK enum store_result member_insert(struct call *call, struct store_cursor *cursor,
                                                 const struct member *sought,
                                                 struct resp_slice name, struct resp_slice value,
                                                 uint64_t sequence);
STORE_MUST_CHECK enum store_result member_replace(struct call *call, struct store_cursor *cursor,
                                                  struct resp_slice name, struct resp_slice value);

#endif
