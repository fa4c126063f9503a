#include "server/base/word_list.h"

#include <string.h>

bool word_list_next(const char **text, struct resp_slice *word)
{
    if (*text == NULL || **text == '\0')
        return false;
    *word = (struct resp_slice){.data = *text, .len = strcspn(*text, " ")};
    *text += word->len;
    *text += strspn(*text, " ");
    return true;
}

size_t word_list_count(const char *text)
{
    struct resp_slice word;
    size_t count = 0;
    while (word_list_next(&text, &word))
        count++;
    return count;
}

bool word_list_contain(const char *text, const char *word)
{
    struct resp_slice found;
    size_t len = strlen(word);
    while (word_list_next(&text, &found))
        if (found.len == len && memcmp(found.data, word, len) == 0)
            return true;
    return false;
}
