/* Purging dropped trees. Private to storage/. */
#ifndef VELLUM_STORE_TREE_PURGE_H
#define VELLUM_STORE_TREE_PURGE_H

#include "storage/txn/engine.h"

void tree_purge(struct store_worker *worker);         /* does some of the work */
void tree_leave_dropped(struct store_worker *worker); /* when it is detached */

#endif
