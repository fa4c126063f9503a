/* Recovery at startup. Private to storage/. */
#ifndef VELLUM_STORE_RECOVER_H
#define VELLUM_STORE_RECOVER_H

#include "storage/txn/engine.h"

STORE_MUST_CHECK enum store_result recover(struct store *store, char *message);

#endif
