/*
 * What a command is going to look at in the trees of its key, as far as its arguments tell.
 */
#ifndef VELLUM_PROBES_H
#define VELLUM_PROBES_H

#include "server/exec/look_ahead.h"

#define PROBES_MOST 2 /* of one command */

/* How many there are. `before`: so many commands may take elements from the ends first. */
uint32_t probes_of(const struct store *store, const struct ahead *ahead, uint32_t before,
                   struct store_probe probes[PROBES_MOST]);

#endif
