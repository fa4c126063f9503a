/* Lists that tables write as one text: words with a space between each two. NULL is an empty one.
 */
#ifndef VELLUM_WORD_LIST_H
#define VELLUM_WORD_LIST_H

#include "protocol/resp.h"

/* Takes the first word off the text; false: there is none. */
bool words_next(const char **text, struct resp_slice *word);
size_t words_count(const char *text);
bool words_contain(const char *text, const char *word);

#endif
