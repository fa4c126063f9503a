/*
 * What a list is in the store: a packed item of its elements, or, when it has become too long for
 * that, a tree of one entry per element, all with empty keys.
 *
 * Results other than STORE_OK are to be passed up.
 */
#ifndef VELLUM_LIST_H
#define VELLUM_LIST_H

#include "server/core/command.h"
#include "server/types/packed.h"

struct list {
    struct call *call;
    const struct store_key *key;
    bool exists;          /* in the store; a new one does not until it is saved */
    uint8_t type;         /* with the bits beside it */
    int64_t expire_ms;    /* or STORE_NO_EXPIRY */
    struct packed packed; /* while there is no tree */
    struct store_tree *tree;
    uint8_t tree_type; /* what the tree's item says of the type */
};

/* A place before an element, or at the end. A change through another place makes it invalid. */
struct list_place {
    uint64_t index;
    uint32_t at; /* in the packed sequence */
    struct store_cursor cursor;
};

/* An absent list is empty. STORE_ANSWERED: another type is there. */
STORE_MUST_CHECK enum store_result list_find(struct call *call, const struct store_key *key,
                                             struct list *list);
/* A list to come, in place of whatever is at the key. */
struct list list_new(struct call *call, const struct store_key *key, int64_t expire_ms);

uint64_t list_count(const struct list *list);
static inline bool list_is_large(const struct list *list)
{
    return list->tree != NULL;
}

/* `index`: at most the count. */
STORE_MUST_CHECK enum store_result list_seek(struct list *list, uint64_t index,
                                             struct list_place *place);
/* The element at a place that is not the end; its bytes hold until the next call on the list. */
STORE_MUST_CHECK enum store_result list_get(struct list *list, struct list_place *place,
                                            struct store_item *element);
/* The elements from the place on, and moves behind them: as many as lie together, at least one and
 * at most `most`. */
STORE_MUST_CHECK enum store_result list_read(struct list *list, struct list_place *place,
                                             struct store_entry *elements, uint32_t most,
                                             uint32_t *count);
/* Its bytes until the request is finished. */
STORE_MUST_CHECK enum store_result list_copy(struct list *list, const struct store_item *element,
                                             struct resp_slice *copy);
/* From a place that is not the end; to one before a place that is not the first. */
STORE_MUST_CHECK enum store_result list_next(struct list *list, struct list_place *place);
STORE_MUST_CHECK enum store_result list_prev(struct list *list, struct list_place *place);

/* ---- changes; they take effect by list_save ---- */

/* Before the place, which then stands on it. `value` must live until the request is finished. */
STORE_MUST_CHECK enum store_result list_insert(struct list *list, struct list_place *place,
                                               struct resp_slice value);
STORE_MUST_CHECK enum store_result list_replace(struct list *list, struct list_place *place,
                                                struct resp_slice value);
/* `count` elements from the place on; it then stands on what followed. */
STORE_MUST_CHECK enum store_result list_remove(struct list *list, struct list_place *place,
                                               uint64_t count);
/* All but `count` elements from `index` on. */
STORE_MUST_CHECK enum store_result list_keep(struct list *list, uint64_t index, uint64_t count);

/* Once, at the end of a run that has changed the list. An empty one is deleted. */
STORE_MUST_CHECK enum store_result list_save(struct list *list);
/* As members_yield. */
STORE_MUST_CHECK enum store_result list_yield(const struct list *list, uint64_t i);

#endif
