/* Items of flushed databases, where others live on. Private to storage/. */
#ifndef VELLUM_STORE_SWEEP_H
#define VELLUM_STORE_SWEEP_H

#include "storage/txn/engine.h"

bool sweep_step(struct store *store); /* the maintenance thread's; false: nothing is left to do */

#endif
