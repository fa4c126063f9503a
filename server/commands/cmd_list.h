/*
 * What the commands on lists share, the blocking ones included.
 */
#ifndef VELLUM_CMD_LIST_H
#define VELLUM_CMD_LIST_H

#include "server/types/list.h"

enum list_end { LIST_HEAD, LIST_TAIL };

/* LEFT or RIGHT; anything else is answered, false. */
bool list_read_end(struct call *call, struct resp_slice arg, enum list_end *end);
/* numkeys key ... LEFT|RIGHT [COUNT n], from argument `at` on; false: wrong, and answered. */
bool list_read_mpop(struct call *call, size_t at, enum list_end *end, int64_t *count);

/* Tells of a change ("new", `event`, "del") and saves it. */
STORE_MUST_CHECK enum store_result list_changed(struct list *list, const char *event);

/* Take elements out of a list that is not empty; the reply is the one element, or [key, [element
 * ...]] of up to `count`. */
STORE_MUST_CHECK enum store_result list_pop_one(struct list *list, enum list_end end);
STORE_MUST_CHECK enum store_result list_pop_many(struct list *list, enum list_end end,
                                                 int64_t count);

/* From the first key to the second, and replies the element. Not *moved: the first is empty. */
STORE_MUST_CHECK enum store_result list_move(struct call *call, enum list_end from,
                                             enum list_end to, bool *moved);

#endif
