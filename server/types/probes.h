/*
 * What a command is going to look at in the trees of its key, as far as its arguments tell.
 */
#ifndef VELLUM_PROBES_H
#define VELLUM_PROBES_H

#include "server/exec/look_ahead.h"

probes_fn probes_of;

#endif
