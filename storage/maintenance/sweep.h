/* Removes items of flushed databases, while other databases have keys. Private to storage/. */
#ifndef VELLUM_STORE_SWEEP_H
#define VELLUM_STORE_SWEEP_H

#include "storage/txn/engine.h"

bool sweep_step(struct store *store); /* for the maintenance thread; false: nothing is left to do */

#endif
