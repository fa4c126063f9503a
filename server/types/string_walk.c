#include "server/types/string_walk.h"

#include <assert.h>
#include <stdlib.h>

#include "server/core/server.h"

/* Parts of large values up to this length are copied; for longer ones the whole value is loaded. */
#define VIEW_COPY_MAX (64 * 1024)
#define LOADED_SHARE 4 /* of memory, for loaded values */

enum store_result string_view(struct call *call, const struct store_item *item, uint64_t offset,
                              size_t len, const char **bytes)
{
    assert(offset <= item->length && len <= item->length - offset);
    if (!item->large) {
        *bytes = item->bytes + offset;
        return STORE_OK;
    }
    if (len > VIEW_COPY_MAX) {
        uint64_t memory = atomic_load_explicit(&call->server->memory_bound, memory_order_relaxed);
        enum store_result result = store_load_within(call->txn, item, memory / LOADED_SHARE, bytes);
        if (result == STORE_OK)
            *bytes += offset;
        return result;
    }
    char *copy = store_alloc(call->txn, len > 0 ? len : 1);
    if (copy == NULL)
        return STORE_NO_MEMORY;
    *bytes = copy;
    return store_read(call->txn, item, offset, len, copy);
}

static struct string_walk *kept_walk(struct call *call, const struct store_item *item,
                                     uint64_t from, uint64_t len)
{
    struct string_walk *walk = call->progress;
    if (walk == NULL) {
        walk = malloc(sizeof *walk);
        if (walk == NULL)
            return NULL;
        *walk = (struct string_walk){.at = from, .end = from + len};
        call->progress = walk;
        call->progress_free = free;
    }
    if (walk->end > item->length) /* an earlier write in the same transaction has failed */
        walk->end = walk->at = item->length;
    walk->work = 0;
    walk->room = store_alloc(call->txn, STORE_READER_PIECE);
    return walk->room == NULL ? NULL : walk;
}

struct string_walk *string_walk(struct call *call, const struct store_item *item, uint64_t from,
                                uint64_t len, struct string_walk *here)
{
    if (item->large && len > STRING_SHORT)
        return kept_walk(call, item, from, len);
    *here = (struct string_walk){.at = from, .end = from + len};
    return here;
}

enum store_result string_walk_next(struct call *call, struct string_walk *walk,
                                   const struct store_item *item, struct store_piece *piece)
{
    uint64_t left = walk->end - walk->at;
    enum store_result result;
    if (left == 0)
        return STORE_ABSENT;
    if (walk->room == NULL) {
        piece->length = left;
        result = string_view(call, item, walk->at, left, &piece->bytes);
    } else if (string_step_is_full(call, walk->work)) {
        return store_step(call->txn);
    } else {
        result = store_read_piece(call->txn, item, walk->at, walk->room, piece);
    }
    if (result != STORE_OK)
        return result;
    if (piece->length > left)
        piece->length = left;
    walk->at += piece->length;
    walk->work += string_work_of(piece);
    return STORE_OK;
}
