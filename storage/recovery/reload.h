/* Reload. Private to storage/. */
#ifndef VELLUM_STORE_RELOAD_H
#define VELLUM_STORE_RELOAD_H

#include "storage/txn/engine.h"

void engine_forget(struct store *store); /* discards all state that recovery restores */

#endif
