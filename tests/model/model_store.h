/*
 * What the model store offers besides storage/store.h: making it wait.
 */
#ifndef VELLUM_MODEL_STORE_H
#define VELLUM_MODEL_STORE_H

#include "storage/store.h"

/* From now on every read, scan and stream piece says STORE_WAIT at its first touch with this
 * probability; the same seed gives the same waits. 0: never, as after opening. */
void model_store_set_waits(struct store *store, uint64_t seed, uint32_t per_mille);

#endif
