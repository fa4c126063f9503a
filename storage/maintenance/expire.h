/* Active expiry. Private to storage/. */
#ifndef VELLUM_STORE_EXPIRE_H
#define VELLUM_STORE_EXPIRE_H

#include "storage/txn/engine.h"

void expire_step(struct store_worker *worker); /* names some of the keys that are due */
void expire_noted(struct store_worker *worker);

#endif
