/* The functions of this room that lower rooms call through hooks. Private to storage/. */
#ifndef VELLUM_STORE_EXEC_HOOKS_H
#define VELLUM_STORE_EXEC_HOOKS_H

#include "storage/txn/engine.h"

extern const struct hooks exec_hooks;

#endif
