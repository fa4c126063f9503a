/*
 * Common to the subcommands of DEBUG.
 */
#ifndef VELLUM_CMD_DEBUG_H
#define VELLUM_CMD_DEBUG_H

#include "server/core/command.h"

/* Whether enable-debug-command permits it. If not, replies with the error. */
bool debug_is_allowed(struct call *call);

#endif
