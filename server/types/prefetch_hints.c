#include "server/types/prefetch_hints.h"

#include <string.h>

#include "server/types/member_tree.h"
#include "server/types/zset_order.h"

_Static_assert(MEMBER_KEY_BYTES == STORE_HINT_BYTES && ZSET_SCORE_BYTES == STORE_HINT_BYTES,
               "what a probe looks for is how a key begins");

/* From a member of a sorted set to its score's position in the tree in order. */
static bool lead_to_order(const struct store *store, const struct store_entry *entry,
                          struct store_prefetch_hint *hint)
{
    (void)store;
    const struct store_item *value = &entry->value;
    if (value->length < ZSET_SCORE_BYTES)
        return false;
    hint->tree = 0;
    memcpy(hint->bytes, value->bytes + value->length - ZSET_SCORE_BYTES, ZSET_SCORE_BYTES);
    return true;
}

/* From the tree in order to the tree by member. */
static bool lead_to_member(const struct store *store, const struct store_entry *entry,
                           struct store_prefetch_hint *hint)
{
    if (entry->key_len < ZSET_SCORE_BYTES)
        return false;
    struct resp_slice name = {entry->key + ZSET_SCORE_BYTES, entry->key_len - ZSET_SCORE_BYTES};
    if (entry->value.length > 0)
        name = (struct resp_slice){entry->value.bytes, entry->value.length};
    hint->tree = STORE_HINT_LAST;
    hint->by_rank = false;
    member_key(store, name, hint->bytes);
    return true;
}

uint32_t prefetch_hints_of(const struct store *store, const struct ahead *ahead, uint32_t before,
                           struct store_prefetch_hint prefetch_hints[PROBES_MOST])
{
    const struct command *command = ahead->command;
    size_t member_at = (size_t)command->member_at, score_at = (size_t)command->score_at;
    uint32_t count = 0;
    double score;
    if (command->takes_first || command->takes_last) {
        prefetch_hints[0] = (struct store_prefetch_hint){.key = ahead->key,
                                                         .by_rank = true,
                                                         .from_end = command->takes_last,
                                                         .rank = before,
                                                         .follow = lead_to_member};
        return 1;
    }
    if (member_at == 0 || member_at >= ahead->count)
        return 0;
    if (score_at != 0) {
        struct resp_slice arg = ahead->args[score_at];
        if (!resp_read_double(arg.data, arg.len, &score)) /* an option: positions are shifted */
            return 0;
        prefetch_hints[count] = (struct store_prefetch_hint){.key = ahead->key};
        zset_score_write(prefetch_hints[count++].bytes, score);
    }
    prefetch_hints[count] =
        (struct store_prefetch_hint){.key = ahead->key,
                                     .tree = STORE_HINT_LAST,
                                     .follow = command->follows_score ? lead_to_order : NULL};
    member_key(store, ahead->args[member_at], prefetch_hints[count++].bytes);
    return count;
}

/* A hash of which fields expire has them in the first of two trees. */
uint32_t prefetch_hints_of_field(const struct store *store, const struct ahead *ahead,
                                 uint32_t before,
                                 struct store_prefetch_hint prefetch_hints[PROBES_MOST])
{
    size_t member_at = (size_t)ahead->command->member_at;
    (void)before;
    if (member_at >= ahead->count)
        return 0;
    prefetch_hints[0] = (struct store_prefetch_hint){.key = ahead->key};
    member_key(store, ahead->args[member_at], prefetch_hints[0].bytes);
    return 1;
}
