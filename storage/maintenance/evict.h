/* Eviction. Private to storage/. */
#ifndef VELLUM_STORE_EVICT_H
#define VELLUM_STORE_EVICT_H

#include "storage/txn/engine.h"

void evict_step(struct store_worker *worker); /* makes some of the requested room */

#endif
