/*
 * Prefetch hints: which entries a command will read in the trees of its key, as far as its
 * arguments show.
 */
#ifndef VELLUM_PREFETCH_HINTS_H
#define VELLUM_PREFETCH_HINTS_H

#include "server/exec/read_ahead.h"

prefetch_hints_fn prefetch_hints_of;
prefetch_hints_fn prefetch_hints_of_field; /* of a hash */

#endif
