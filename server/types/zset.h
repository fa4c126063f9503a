/*
 * What a sorted set is in the store: a packed item of members and scores in turn, in order; or,
 * when it has become too long for that, two trees, one in order and one by member.
 *
 * Order is by score, equal scores by the members' bytes. -0 is kept as 0.
 *
 * Part of the data format. A score is 8 bytes that sort as the doubles do: the bits of the double,
 * the highest byte first, all of them inverted if it is negative, else the sign alone. An entry of
 * the tree in order:
 *
 *     key      the score, then the first bytes of the member, ZSET_PREFIX_MAX at most; entries of
 *              equal keys stand in the order of their members
 *     value    nothing where the key has the whole member; else the whole member
 *
 * and of the one by member, which is a member tree (member_tree.h): what belongs to a member is its
 * score.
 *
 * Results other than STORE_OK are to be passed up.
 */
#ifndef VELLUM_ZSET_H
#define VELLUM_ZSET_H

#include "server/core/command.h"
#include "server/types/members.h"
#include "server/types/packed.h"

#define ZSET_SCORE_BYTES 8
#define ZSET_PREFIX_MAX (STORE_TREE_KEY_MAX - ZSET_SCORE_BYTES)

struct zset {
    struct call *call;
    const struct store_key *key;
    bool exists;                          /* in the store; a new one does not until it is saved */
    uint8_t type;                         /* with the bits beside it */
    int64_t expire_ms;                    /* or STORE_NO_EXPIRY */
    struct packed packed;                 /* while there are no trees */
    struct store_tree *order, *by_member; /* both or none */
    uint8_t tree_type;                    /* what the trees' item says of the type */
};

/* A place before an element, or at the end. Changes make it invalid. */
struct zset_place {
    uint64_t rank;
    uint32_t at; /* in the packed sequence */
    struct store_cursor cursor;
};

/* Its bytes hold until the next call with a place of the same sorted set, or a change. */
struct zset_element {
    struct store_item member;
    double score;
};

struct zset_pair {
    struct resp_slice member;
    double score;
};

/* ---- finding ---- */

/* An absent one is empty. STORE_ANSWERED: another type is there. */
STORE_MUST_CHECK enum store_result zset_find(struct call *call, const struct store_key *key,
                                             struct zset *zset);
/* The same with the item found already, which is a sorted set. */
STORE_MUST_CHECK enum store_result zset_open(struct call *call, const struct store_key *key,
                                             const struct store_item *item, struct zset *zset);
/* One to come, in place of whatever is at the key. */
struct zset zset_new(struct call *call, const struct store_key *key, int64_t expire_ms);

uint64_t zset_count(const struct zset *zset);
static inline bool zset_is_large(const struct zset *zset)
{
    return zset->order != NULL;
}

STORE_MUST_CHECK enum store_result zset_score(struct zset *zset, struct resp_slice member,
                                              double *score, bool *found);
/* Of a member that is there with this score. */
STORE_MUST_CHECK enum store_result zset_rank(struct zset *zset, const struct zset_pair *pair,
                                             uint64_t *rank);

/* The same as members with values, which are the scores' bytes, in no order: to be read only. */
struct members zset_members(const struct zset *zset);
bool zset_score_parse(struct resp_slice bytes, double *score); /* false: it is none */

/* ---- walking ---- */

/* `rank`: at most the count. */
STORE_MUST_CHECK enum store_result zset_seek(struct zset *zset, uint64_t rank,
                                             struct zset_place *place);
/* At a place that is not the end. */
STORE_MUST_CHECK enum store_result zset_get(struct zset *zset, struct zset_place *place,
                                            struct zset_element *element);
/* From a place that is not the end; to one before a place that is not the first. */
STORE_MUST_CHECK enum store_result zset_next(struct zset *zset, struct zset_place *place);
STORE_MUST_CHECK enum store_result zset_prev(struct zset *zset, struct zset_place *place);
/* The member in one piece. */
STORE_MUST_CHECK enum store_result zset_name(struct zset *zset, const struct zset_element *element,
                                             struct resp_slice *name);

/* ---- ranges: what lies in one is `count` elements from rank `first` on ---- */

struct zset_bound {
    double score;
    bool exclusive;
};
struct zset_score_range {
    struct zset_bound min, max;
};

struct zset_lex_bound {
    enum { LEX_LEAST, LEX_MEMBER, LEX_MOST } kind;
    bool exclusive;
    struct resp_slice member;
};
struct zset_lex_range {
    struct zset_lex_bound min, max;
};

STORE_MUST_CHECK enum store_result zset_score_range(struct zset *zset,
                                                    const struct zset_score_range *range,
                                                    uint64_t *first, uint64_t *count);
/* Of one in which all scores are the same; else some range. */
STORE_MUST_CHECK enum store_result zset_lex_range(struct zset *zset,
                                                  const struct zset_lex_range *range,
                                                  uint64_t *first, uint64_t *count);

/* ---- changes; they take effect by zset_save ---- */

/* Before `count` members are added, the first of which is so long: what Redis makes larger for so
 * many at once, is so. */
void zset_expect(struct zset *zset, uint64_t count, size_t first_len);

/* Members must live until the request is finished. One that is not there; one that is there with
 * this score gets another; one that is there goes. */
STORE_MUST_CHECK enum store_result zset_add(struct zset *zset, const struct zset_pair *pair);
STORE_MUST_CHECK enum store_result zset_move(struct zset *zset, const struct zset_pair *pair,
                                             double score);
STORE_MUST_CHECK enum store_result zset_remove(struct zset *zset, const struct zset_pair *pair);
/* The element that zset_get has shown at the place. */
STORE_MUST_CHECK enum store_result zset_remove_at(struct zset *zset, struct zset_place *place,
                                                  const struct zset_element *element);
STORE_MUST_CHECK enum store_result zset_remove_range(struct zset *zset, uint64_t first,
                                                     uint64_t count);

/* Once, at the end of a run that has changed it. An empty one is deleted. */
STORE_MUST_CHECK enum store_result zset_save(struct zset *zset);
/* As members_yield. */
STORE_MUST_CHECK enum store_result zset_yield(const struct zset *zset, uint64_t i);

#endif
