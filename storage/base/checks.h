/*
 * Whether this build verifies what costs more than a comparison: the xxx_check() functions, which
 * walk over a structure and assert the invariants at the head of its file. So do the builds that
 * wait at random (WAIT=1) and the sanitizers'; for all others it is a constant that removes the
 * call.
 */
#ifndef VELLUM_STORE_CHECKS_H
#define VELLUM_STORE_CHECKS_H

#include <stdbool.h>

static inline bool storage_checks_enabled(void)
{
#if defined(VELLUM_WAIT) || defined(VELLUM_SANITIZED)
    return true;
#else
    return false;
#endif
}

#endif
