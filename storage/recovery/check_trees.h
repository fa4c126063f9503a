/*
 * The check of all collections. Private to storage/.
 */
#ifndef VELLUM_STORE_CHECK_TREES_H
#define VELLUM_STORE_CHECK_TREES_H

#include "storage/recovery/check.h"

/* Walks all collections, after all slabs were read. */
void check_trees(struct check *check);

#endif
