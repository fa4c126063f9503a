/* Active expiry. Private to storage/. */
#ifndef VELLUM_STORE_EXPIRE_H
#define VELLUM_STORE_EXPIRE_H

#include "storage/txn/engine.h"

void expire_tick(struct store_worker *worker); /* ten times a second: steps may begin */
void expire_step(struct store_worker *worker); /* names some of the due keys, goes on with others */
void expire_noted(struct store_worker *worker);

#endif
