#include "server/types/zset_order.h"

#include <string.h>

#define SIGN (UINT64_C(1) << 63)

double zset_score_read(const char bytes[ZSET_SCORE_BYTES])
{
    uint64_t bits;
    double score;
    memcpy(&bits, bytes, sizeof(bits));
    bits = __builtin_bswap64(bits);
    bits = (bits & SIGN) != 0 ? bits ^ SIGN : ~bits;
    memcpy(&score, &bits, sizeof(score));
    return score;
}

static uint64_t sortable(double score)
{
    uint64_t bits;
    if (score == 0)
        score = 0; /* not -0 */
    memcpy(&bits, &score, sizeof(bits));
    return (bits & SIGN) != 0 ? ~bits : bits ^ SIGN;
}

void zset_score_write(char bytes[ZSET_SCORE_BYTES], double score)
{
    uint64_t bits = __builtin_bswap64(sortable(score));
    memcpy(bytes, &bits, sizeof(bits));
}

int zset_compare_members(struct resp_slice a, struct resp_slice b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    if (order != 0)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

int zset_compare(const struct zset_pair *a, const struct zset_pair *b)
{
    if (a->score != b->score)
        return a->score < b->score ? -1 : 1;
    return zset_compare_members(a->member, b->member);
}

struct zset_order_key zset_order_key(const struct zset_pair *pair)
{
    struct zset_order_key key;
    size_t len = pair->member.len < ZSET_PREFIX_MAX ? pair->member.len : ZSET_PREFIX_MAX;
    zset_score_write(key.bytes, pair->score);
    if (len > 0)
        memcpy(key.bytes + ZSET_SCORE_BYTES, pair->member.data, len);
    key.len = ZSET_SCORE_BYTES + len;
    return key;
}

/* ---- ranges ---- */

/* The number of elements with a score below the bound, or equal to it if `with_equal`. */
static enum store_result rank_of_score(struct zset *zset, double score, bool with_equal,
                                       uint64_t *rank)
{
    char key[ZSET_SCORE_BYTES];
    struct zset_place place;
    struct zset_element element;
    if (zset->order != NULL) {
        uint64_t bits = __builtin_bswap64(sortable(score) + with_equal);
        memcpy(key, &bits, sizeof(bits));
        enum store_result result = store_tree_seek(zset->order, key, sizeof(key), &place.cursor);
        *rank = place.cursor.rank;
        return result;
    }
    enum store_result result = zset_seek(zset, 0, &place);
    while (result == STORE_OK && place.rank < zset_count(zset)) {
        result = zset_get(zset, &place, &element);
        if (result != STORE_OK || element.score > score || (element.score == score && !with_equal))
            break;
        result = zset_next(zset, &place);
    }
    *rank = place.rank;
    return result;
}

enum store_result zset_score_range(struct zset *zset, const struct zset_score_range *range,
                                   uint64_t *first, uint64_t *count)
{
    uint64_t end = 0;
    enum store_result result = rank_of_score(zset, range->min.score, range->min.exclusive, first);
    if (result == STORE_OK)
        result = rank_of_score(zset, range->max.score, !range->max.exclusive, &end);
    *count = end > *first ? end - *first : 0;
    return result;
}

static bool above_min(const struct zset_lex_bound *min, struct resp_slice member)
{
    if (min->kind != LEX_MEMBER)
        return min->kind == LEX_LEAST;
    int order = zset_compare_members(member, min->member);
    return min->exclusive ? order > 0 : order >= 0;
}

static bool below_max(const struct zset_lex_bound *max, struct resp_slice member)
{
    if (max->kind != LEX_MEMBER)
        return max->kind == LEX_MOST;
    int order = zset_compare_members(member, max->member);
    return max->exclusive ? order < 0 : order <= 0;
}

/* Compares one by one, so it finds a sensible position even if scores differ. */
static enum store_result walk_lex_range(struct zset *zset, const struct zset_lex_range *range,
                                        uint64_t *first, uint64_t *count)
{
    struct zset_place place;
    struct zset_element element;
    struct resp_slice name;
    bool inside = false;
    *count = 0;
    enum store_result result = zset_seek(zset, 0, &place);
    for (; result == STORE_OK && place.rank < zset_count(zset); result = zset_next(zset, &place)) {
        result = zset_get(zset, &place, &element);
        if (result == STORE_OK)
            result = zset_name(zset, &element, &name);
        if (result != STORE_OK)
            return result;
        inside = inside || above_min(&range->min, name);
        if (inside && !below_max(&range->max, name))
            break;
        *count += inside;
        *first = inside ? place.rank + 1 - *count : 0;
    }
    return result;
}

/* The number of elements before a bound, including those equal to it if `with_equal`. */
static enum store_result rank_of_lex(struct zset *zset, double score,
                                     const struct zset_lex_bound *bound, bool with_equal,
                                     uint64_t *rank)
{
    *rank = bound->kind == LEX_LEAST ? 0 : zset_count(zset);
    if (bound->kind != LEX_MEMBER)
        return STORE_OK;
    double found_score;
    bool found = false;
    struct zset_pair pair = {bound->member, score};
    enum store_result result = zset_rank(zset, &pair, rank);
    if (result == STORE_OK && with_equal)
        result = zset_score(zset, bound->member, &found_score, &found);
    *rank += found && found_score == score;
    return result;
}

enum store_result zset_lex_range(struct zset *zset, const struct zset_lex_range *range,
                                 uint64_t *first, uint64_t *count)
{
    struct zset_place place;
    struct zset_element element;
    uint64_t end = 0;
    *first = *count = 0;
    if (zset_count(zset) == 0)
        return STORE_OK;
    if (zset->order == NULL)
        return walk_lex_range(zset, range, first, count);
    enum store_result result = zset_seek(zset, 0, &place);
    if (result == STORE_OK)
        result = zset_get(zset, &place, &element);
    if (result == STORE_OK)
        result = rank_of_lex(zset, element.score, &range->min, range->min.exclusive, first);
    if (result == STORE_OK)
        result = rank_of_lex(zset, element.score, &range->max, !range->max.exclusive, &end);
    *count = end > *first ? end - *first : 0;
    return result;
}
