/*
 * Word lists: one string with single spaces between the words, as tables contain them. NULL is the
 * empty list.
 */
#ifndef VELLUM_WORD_LIST_H
#define VELLUM_WORD_LIST_H

#include "protocol/resp.h"

/* Removes the first word from the text. False: the list is empty. */
bool word_list_next(const char **text, struct resp_slice *word);
size_t word_list_count(const char *text);
bool word_list_contain(const char *text, const char *word);

#endif
