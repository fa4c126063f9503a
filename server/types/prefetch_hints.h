/*
 * What a command is going to look at in the trees of its key, as far as its arguments tell.
 */
#ifndef VELLUM_PREFETCH_HINTS_H
#define VELLUM_PREFETCH_HINTS_H

#include "server/exec/read_ahead.h"

prefetch_hints_fn prefetch_hints_of;

#endif
