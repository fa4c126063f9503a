/* Lists that tables write as one text: words with a space between each two. NULL is an empty one.
 */
#ifndef VELLUM_WORD_LIST_H
#define VELLUM_WORD_LIST_H

#include "protocol/resp.h"

/* Takes the first word off the text; false: there is none. */
bool word_list_next(const char **text, struct resp_slice *word);
size_t word_list_count(const char *text);
bool word_list_contain(const char *text, const char *word);

#endif
