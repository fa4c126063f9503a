#include "storage/base/number_list.h"

#include <stdlib.h>

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

bool number_list_append(struct number_list *list, uint64_t number)
{
    if (list->count > 0 && list->at[list->count - 1] == number)
        return true;
    if (!array_reserve(&list->at, &list->capacity, list->count + 1, sizeof *list->at))
        return false;
    list->at[list->count++] = number;
    return true;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void number_list_sort(struct number_list *list)
{
    uint64_t kept = 0;
    if (list->count > 0)
        qsort(list->at, list->count, sizeof *list->at, by_number);
    for (uint64_t i = 0; i < list->count; i++)
        if (kept == 0 || list->at[kept - 1] != list->at[i])
            list->at[kept++] = list->at[i];
    list->count = kept;
}

void number_list_clear(struct number_list *list)
{
    free(list->at);
    *list = (struct number_list){0};
}
