#include "storage/base/number_list.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"

/* The position of the first number that is not less. */
static uint64_t seek(const struct number_list *list, uint64_t number)
{
    uint64_t low = 0, high = list->count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (list->at[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool number_list_has(const struct number_list *list, uint64_t number)
{
    uint64_t place = seek(list, number);
    return place < list->count && list->at[place] == number;
}

bool number_list_add(struct number_list *list, uint64_t number)
{
    if (number_list_has(list, number))
        return true;
    if (!array_reserve(&list->at, &list->capacity, list->count + 1, sizeof *list->at))
        return false;
    uint64_t place = seek(list, number);
    memmove(&list->at[place + 1], &list->at[place], (list->count - place) * sizeof *list->at);
    list->at[place] = number;
    list->count++;
    return true;
}

void number_list_clear(struct number_list *list)
{
    free(list->at);
    *list = (struct number_list){0};
}
