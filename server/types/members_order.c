#include "server/types/members_order.h"

#include <stdlib.h>

#include "server/types/member_tree.h"

static int compare(const void *a, const void *b)
{
    const struct collector_place *x = a, *y = b;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static bool begin(struct collector_order *order, uint64_t count)
{
    if (order->places != NULL)
        return true;
    order->places = calloc(count + 1, sizeof *order->places);
    order->capacity = order->places == NULL ? 0 : count;
    return order->places != NULL;
}

static void note(struct collector_order *order, const struct members *members,
                 const struct member *member)
{
    struct collector_place place = {.sequence = member->sequence, .rank = order->count};
    if (members->width == 1 && member->sequence == 0 &&
        !resp_read_int64(member->name.data, member->name.len, &place.number))
        place.number = INT64_MAX;
    order->places[order->count++] = place;
}

enum store_result members_arrange(struct call *call, struct members *members,
                                  struct collector_order *order, uint64_t most)
{
    struct store_cursor cursor;
    struct member member;
    if (order->is_sorted)
        return STORE_OK;
    if (!begin(order, members_count(members)))
        return STORE_NO_MEMORY;
    enum store_result result = store_tree_seek_rank(members->tree, order->count, &cursor);
    for (; most > 0 && order->count < order->capacity && result == STORE_OK; most--) {
        result = member_read(call, &cursor, &member);
        if (result != STORE_OK)
            return result == STORE_ABSENT ? STORE_DAMAGED : result;
        note(order, members, &member);
        result = store_tree_next(&cursor);
    }
    order->is_sorted = result == STORE_OK && order->count == order->capacity;
    if (order->is_sorted)
        qsort(order->places, order->count, sizeof *order->places, compare);
    return result;
}
