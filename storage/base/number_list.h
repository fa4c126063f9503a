/*
 * A sorted list of distinct numbers. Private to storage/.
 */
#ifndef VELLUM_STORE_NUMBER_LIST_H
#define VELLUM_STORE_NUMBER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct number_list {
    uint64_t *at;
    uint64_t count;
    size_t capacity;
};

/* False: no memory. Where many are added, in any order, number_list_sort follows before the next
 * look-up; adding them in ascending order needs no sorting. */
bool number_list_append(struct number_list *list, uint64_t number);
void number_list_sort(struct number_list *list);
bool number_list_has(const struct number_list *list, uint64_t number);
void number_list_clear(struct number_list *list);

#endif
