/*
 * Sorted sets in the store: a packed item of members and scores in turn, in order; or, if that
 * would be too long, two trees, one in order and one by member.
 *
 * The order is by score, then by the members' bytes. -0 is stored as 0.
 *
 * Part of the data format. A score is 8 bytes that sort as the doubles do: the bits of the double,
 * big-endian, all inverted if it is negative, otherwise only the sign bit. An entry of the tree in
 * order:
 *
 *     key      the score, then the first bytes of the member, at most ZSET_PREFIX_MAX; entries
 *              with equal keys are in the order of their members
 *     value    empty if the key holds the whole member; else the whole member
 *
 * The tree by member is a member tree (member_tree.h), whose payload is the score.
 *
 * Callers pass up every result except STORE_OK.
 */
#ifndef VELLUM_ZSET_H
#define VELLUM_ZSET_H

#include "server/core/command.h"
#include "server/types/members.h"
#include "server/types/packed.h"
#include "storage/collections.h"

#define ZSET_SCORE_BYTES 8
#define ZSET_PREFIX_MAX (STORE_TREE_KEY_MAX - ZSET_SCORE_BYTES)

struct zset {
    struct call *call;
    const struct store_key *key;
    bool exists;                          /* in the store; a new one does not until it is saved */
    uint8_t type;                         /* with the flag bits */
    int64_t expire_ms;                    /* or STORE_NO_EXPIRY */
    struct packed packed;                 /* while there are no trees */
    struct store_tree *order, *by_member; /* both or none */
    uint8_t tree_type;                    /* the type as stored in the trees' item */
};

/* A position before an element, or at the end. Changes invalidate it. */
struct zset_place {
    uint64_t rank;
    uint32_t at; /* in the packed sequence */
    struct store_cursor cursor;
};

/* Its bytes are valid until the next call with a position of the same sorted set, or a change. */
struct zset_element {
    struct store_item member;
    double score;
};

struct zset_pair {
    struct resp_slice member;
    double score;
};

/* ---- finding ---- */

/* An absent one is empty. STORE_ANSWERED: the key has another type. */
STORE_MUST_CHECK enum store_result zset_find(struct call *call, const struct store_key *key,
                                             struct zset *zset);
/* The same for an item already found, which must be a sorted set. */
STORE_MUST_CHECK enum store_result zset_open(struct call *call, const struct store_key *key,
                                             const struct store_item *item, struct zset *zset);
/* A new one, which replaces any value at the key. */
struct zset zset_new(struct call *call, const struct store_key *key, int64_t expire_ms);

uint64_t zset_count(const struct zset *zset);
static inline bool zset_is_large(const struct zset *zset)
{
    return zset->order != NULL;
}

STORE_MUST_CHECK enum store_result zset_score(struct zset *zset, struct resp_slice member,
                                              double *score, bool *found);
/* The rank of a member that is present with this score. */
STORE_MUST_CHECK enum store_result zset_rank(struct zset *zset, const struct zset_pair *pair,
                                             uint64_t *rank);

/* A read-only view as members in no particular order, whose values are the bytes of the scores. */
struct members zset_members(const struct zset *zset);
bool zset_score_parse(struct resp_slice bytes, double *score); /* false: malformed */

/* ---- walking ---- */

/* `rank` is at most the count. */
STORE_MUST_CHECK enum store_result zset_seek(struct zset *zset, uint64_t rank,
                                             struct zset_place *place);
/* The first element not before this pair, which need not be there. */
STORE_MUST_CHECK enum store_result zset_seek_pair(struct zset *zset, const struct zset_pair *pair,
                                                  struct zset_place *place);
/* At a position other than the end. */
STORE_MUST_CHECK enum store_result zset_get(struct zset *zset, struct zset_place *place,
                                            struct zset_element *element);
/* Moves forward from a position other than the end, or back from one other than the first. */
STORE_MUST_CHECK enum store_result zset_next(struct zset *zset, struct zset_place *place);
STORE_MUST_CHECK enum store_result zset_prev(struct zset *zset, struct zset_place *place);
/* The member in one piece. */
STORE_MUST_CHECK enum store_result zset_name(struct zset *zset, const struct zset_element *element,
                                             struct resp_slice *name);

/* ---- changes; they take effect by zset_save ---- */

/* Called before `count` members are added, the first of which has this length. As in Redis,
 * many members at once choose the large encoding. */
void zset_expect(struct zset *zset, uint64_t count, size_t first_len);

/* Members must live until the request is finished. zset_add: a member that is absent. zset_move:
 * one that is present with this score gets another. zset_remove: one that is present. */
STORE_MUST_CHECK enum store_result zset_add(struct zset *zset, const struct zset_pair *pair);
STORE_MUST_CHECK enum store_result zset_move(struct zset *zset, const struct zset_pair *pair,
                                             double score);
STORE_MUST_CHECK enum store_result zset_remove(struct zset *zset, const struct zset_pair *pair);
/* Removes the element that zset_get() has returned for the position. */
STORE_MUST_CHECK enum store_result zset_remove_at(struct zset *zset, struct zset_place *place,
                                                  const struct zset_element *element);
STORE_MUST_CHECK enum store_result zset_remove_range(struct zset *zset, uint64_t first,
                                                     uint64_t count);

/* Called once, at the end of a run that has changed it. Deletes the key if it is empty. */
STORE_MUST_CHECK enum store_result zset_save(struct zset *zset);
/* See members_yield(). */
STORE_MUST_CHECK enum store_result zset_yield(struct zset *zset, uint64_t i);

#endif
