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

/* False: no memory. */
bool number_list_add(struct number_list *list, uint64_t number);
bool number_list_has(const struct number_list *list, uint64_t number);
void number_list_clear(struct number_list *list);

#endif
