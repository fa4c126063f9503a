/*
 * Common to the commands on lists, including the blocking ones.
 */
#ifndef VELLUM_CMD_LIST_H
#define VELLUM_CMD_LIST_H

#include "server/types/list.h"

enum list_end { LIST_HEAD, LIST_TAIL };

/* Parses LEFT or RIGHT. False: replied with an error. */
bool list_read_end(struct call *call, struct resp_slice arg, enum list_end *end);
/* Parses numkeys key ... LEFT|RIGHT [COUNT n] from argument `at` on. False: replied with an error.
 */
bool list_read_mpop(struct call *call, size_t at, enum list_end *end, int64_t *count);

/* Sends the notifications for a change ("new", `event`, "del") and saves the list. */
STORE_MUST_CHECK enum store_result list_changed(struct list *list, const char *event);

/* Pop elements from a non-empty list. The reply is the single element, or [key, [element ...]] with
 * up to `count` elements. */
STORE_MUST_CHECK enum store_result list_pop_one(struct list *list, enum list_end end);
STORE_MUST_CHECK enum store_result list_pop_many(struct list *list, enum list_end end,
                                                 int64_t count);

/* Moves an element from the first key to the second and replies with it. Not *moved: the first list
 * is empty. */
STORE_MUST_CHECK enum store_result list_move(struct call *call, enum list_end from,
                                             enum list_end to, bool *moved);

#endif
