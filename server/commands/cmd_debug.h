/*
 * What the parts of DEBUG share.
 */
#ifndef VELLUM_CMD_DEBUG_H
#define VELLUM_CMD_DEBUG_H

#include "server/core/command.h"

/* enable-debug-command allows it; false: refused, and answered. */
bool debug_is_allowed(struct call *call);

#endif
