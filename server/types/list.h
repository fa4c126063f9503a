/*
 * Lists in the store: a packed item of elements, or, if the list is too long for that, a tree with
 * one entry per element, all with empty keys.
 *
 * Callers pass up every result except STORE_OK.
 */
#ifndef VELLUM_LIST_H
#define VELLUM_LIST_H

#include "server/core/command.h"
#include "server/types/packed.h"
#include "storage/collections.h"

struct list {
    struct call *call;
    const struct store_key *key;
    bool exists;          /* in the store; a new one does not until it is saved */
    uint8_t type;         /* with the flag bits */
    int64_t expire_ms;    /* or STORE_NO_EXPIRY */
    struct packed packed; /* while there is no tree */
    struct store_tree *tree;
    uint8_t tree_type; /* the type as stored in the tree's item */
};

/* A position before an element, or at the end. A change made through another position invalidates
 * it. */
struct list_place {
    uint64_t index;
    uint32_t at; /* in the packed sequence */
    struct store_cursor cursor;
};

/* An absent list is empty. STORE_ANSWERED: the key has another type. */
STORE_MUST_CHECK enum store_result list_find(struct call *call, const struct store_key *key,
                                             struct list *list);
/* The same for an item already found, which must be a list. */
STORE_MUST_CHECK enum store_result list_open(struct call *call, const struct store_key *key,
                                             const struct store_item *item, struct list *list);
/* A new list, which replaces any value at the key. */
struct list list_new(struct call *call, const struct store_key *key, int64_t expire_ms);

uint64_t list_count(const struct list *list);
static inline bool list_is_large(const struct list *list)
{
    return list->tree != NULL;
}

/* `index` is at most the count. */
STORE_MUST_CHECK enum store_result list_seek(struct list *list, uint64_t index,
                                             struct list_place *place);
/* The element at a position other than the end. Its bytes are valid until the next call on the
 * list. */
STORE_MUST_CHECK enum store_result list_get(struct list *list, struct list_place *place,
                                            struct store_item *element);
/* Returns the elements from the position on and advances it past them: as many as are contiguous,
 * at least one and at most `most`. */
STORE_MUST_CHECK enum store_result list_read(struct list *list, struct list_place *place,
                                             struct store_entry *elements, uint32_t most,
                                             uint32_t *count);
/* Its bytes are valid until the request is finished. */
STORE_MUST_CHECK enum store_result list_copy(struct list *list, const struct store_item *element,
                                             struct resp_slice *copy);
/* Moves forward from a position other than the end, or back from one other than the first. */
STORE_MUST_CHECK enum store_result list_next(struct list *list, struct list_place *place);
STORE_MUST_CHECK enum store_result list_prev(struct list *list, struct list_place *place);

/* ---- changes; they take effect by list_save ---- */

/* Inserts before the position, which then refers to the new element. `value` must live until the
 * request is finished. */
STORE_MUST_CHECK enum store_result list_insert(struct list *list, struct list_place *place,
                                               struct resp_slice value);
STORE_MUST_CHECK enum store_result list_replace(struct list *list, struct list_place *place,
                                                struct resp_slice value);
/* Removes `count` elements from the position on. It then refers to the element after them. */
STORE_MUST_CHECK enum store_result list_remove(struct list *list, struct list_place *place,
                                               uint64_t count);
/* Removes all but `count` elements from `index` on. */
STORE_MUST_CHECK enum store_result list_keep(struct list *list, uint64_t index, uint64_t count);

/* Called once, at the end of a run that has changed the list. Deletes the key of an empty list. */
STORE_MUST_CHECK enum store_result list_save(struct list *list);
/* See members_yield(). */
STORE_MUST_CHECK enum store_result list_yield(struct list *list, uint64_t i);

#endif
