/*
 * What the commands on lists share, the blocking ones included.
 */
#ifndef VELLUM_CMD_LIST_H
#define VELLUM_CMD_LIST_H

#include "list.h"
#include "steps.h"

enum list_end { LIST_HEAD, LIST_TAIL };

/* LEFT or RIGHT; anything else is answered, false. */
bool list_read_end(struct call *call, struct resp_slice arg, enum list_end *end);

/* Before the first element, or behind the last. */
STORE_MUST_CHECK enum store_result list_seek_end(struct list *list, enum list_end end,
                                                 struct list_place *place);

/* Tells of a change, and of the deletion it brought; list_changed saves it, too. */
void list_notify(struct list *list, const char *event);
STORE_MUST_CHECK enum store_result list_changed(struct list *list, const char *event);
const char *list_pop_event(enum list_end end);

/* Replies `count` elements, from `first` on, or backwards from the one before `first`. The head of
 * the reply is the caller's. */
STORE_MUST_CHECK enum store_result list_reply_range(struct steps *steps, struct list *list,
                                                    uint64_t first, uint64_t count, bool backwards);

/* Takes out `count` elements at an end. */
STORE_MUST_CHECK enum store_result list_take(struct list *list, enum list_end end, uint64_t count);

/* Replies the element at an end, without taking it out; until the request is finished. */
STORE_MUST_CHECK enum store_result list_copy_end(struct list *list, enum list_end end,
                                                 struct resp_slice *value);

/* Replies what is taken out of a list that is not empty; with_key: [key, [element ...]]. */
STORE_MUST_CHECK enum store_result list_pop_one(struct list *list, enum list_end end);
STORE_MUST_CHECK enum store_result list_pop_many(struct list *list, enum list_end end,
                                                 uint64_t count, bool with_key);

/* numkeys key ... LEFT|RIGHT [COUNT n], from argument `at` on; false: wrong, and answered. */
bool list_read_mpop(struct call *call, size_t at, enum list_end *end, int64_t *count);
/* Pops from the first of the keys that is not empty. Not *popped: there is none, nor a reply. */
STORE_MUST_CHECK enum store_result list_mpop(struct call *call, enum list_end end, int64_t count,
                                             bool *popped);

/* From the first key to the second, and replies the element. Not *moved: the first is empty. */
STORE_MUST_CHECK enum store_result list_move(struct call *call, enum list_end from,
                                             enum list_end to, bool *moved);

#endif
