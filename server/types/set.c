#include "server/types/set.h"

#include "server/core/server.h"

static int64_t limit(const struct call *call, enum config_id id)
{
    return config_number(&call->server->config, id);
}

static bool is_integers(const struct members *set)
{
    return (set->type & ITEM_INTEGERS) != 0;
}

static bool is_listpack(const struct members *set)
{
    return (set->type & (ITEM_INTEGERS | ITEM_BIG)) == 0;
}

static void become(struct members *set, uint8_t form)
{
    set->type = (uint8_t)(TYPE_SET | form);
}

bool set_may_be_integers(const struct call *call, uint64_t count)
{
    return count <= (uint64_t)limit(call, CONFIG_SET_MAX_INTSET_ENTRIES);
}

void set_expect(struct call *call, struct members *set, struct resp_slice first, size_t count)
{
    int64_t number;
    if (members_count(set) == 0 && resp_read_int64(first.data, first.len, &number) &&
        (int64_t)count <= limit(call, CONFIG_SET_MAX_INTSET_ENTRIES))
        become(set, ITEM_INTEGERS);
    enum config_id most =
        is_integers(set) ? CONFIG_SET_MAX_INTSET_ENTRIES : CONFIG_SET_MAX_LISTPACK_ENTRIES;
    if ((int64_t)count > limit(call, most))
        become(set, ITEM_BIG);
}

/* The length of the longest member, as text, of a set of integers: the smallest or the largest one.
 * In a tree they would have to be searched for, so the greatest possible length is assumed. */
static size_t longest_integer(const struct members *set)
{
    struct packed_entry first = {.at = 0}, last = packed_end(&set->packed);
    if (set->tree != NULL)
        return sizeof "-9223372036854775808" - 1;
    if (!packed_next(&set->packed, &first) || !packed_prev(&set->packed, &last))
        return 0;
    return first.slice.len > last.slice.len ? first.slice.len : last.slice.len;
}

/* The encoding that Redis gives a set of `count` members when another one is added. `longest`: the
 * length of the longest integer, if it is a set of integers. */
static void grow_form(struct call *call, struct members *set, struct resp_slice member,
                      bool is_integer, int64_t count, size_t longest)
{
    int64_t length = limit(call, CONFIG_SET_MAX_LISTPACK_VALUE);
    if (is_integers(set) && is_integer) {
        if (count + 1 > limit(call, CONFIG_SET_MAX_INTSET_ENTRIES))
            become(set, ITEM_BIG);
    } else if (is_integers(set) || is_listpack(set)) {
        bool fits = count < limit(call, CONFIG_SET_MAX_LISTPACK_ENTRIES) &&
                    (int64_t)member.len <= length && (int64_t)longest <= length;
        become(set, fits ? 0 : ITEM_BIG);
    }
}

/* The position of a number in a packed set of integers. *found: it is present. */
static enum store_result integer_place(const struct members *set, int64_t number, uint32_t *place,
                                       bool *found)
{
    struct packed_entry entry = packed_end(&set->packed);
    *found = false;
    for (*place = entry.at; packed_prev(&set->packed, &entry); *place = entry.at) {
        int64_t other;
        if (!resp_read_int64(entry.slice.data, entry.slice.len, &other))
            return STORE_DAMAGED;
        *found = other == number;
        if (other <= number)
            break;
    }
    return STORE_OK;
}

static enum store_result add_sorted(struct call *call, struct members *set, int64_t number,
                                    struct resp_slice member, bool *added)
{
    uint32_t place;
    bool found;
    enum store_result result = integer_place(set, number, &place, &found);
    *added = result == STORE_OK && !found;
    return *added ? members_insert(call, set, place, member) : result;
}

enum store_result set_add(struct call *call, struct members *set, struct resp_slice member,
                          bool *added)
{
    int64_t number, count = (int64_t)members_count(set);
    bool is_integer = resp_read_int64(member.data, member.len, &number);
    bool is_first_other = is_integers(set) && !is_integer;
    enum store_result result;
    /* The first non-integer is certainly new. It changes the form before it is added, because only
     * members of a listpack get sequence numbers. */
    if (is_first_other)
        grow_form(call, set, member, is_integer, count, longest_integer(set));
    if (is_integers(set) && is_integer && set->tree == NULL)
        result = add_sorted(call, set, number, member, added);
    else
        result = members_put(call, set, member, (struct resp_slice){"", 0}, added);
    if (result == STORE_OK && *added && !is_first_other)
        grow_form(call, set, member, is_integer, count, 0);
    return result;
}
