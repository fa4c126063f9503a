/* What this room does for lower ones. Private to storage/. */
#ifndef VELLUM_STORE_EXEC_HOOKS_H
#define VELLUM_STORE_EXEC_HOOKS_H

#include "storage/txn/engine.h"

extern const struct hooks exec_hooks;

#endif
