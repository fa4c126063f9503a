/*
 * Whether this build runs expensive checks: the xxx_check() functions, which walk a structure and
 * assert the invariants at the head of its file. The builds with random waits (WAIT=1) and the
 * sanitizer builds do; in all others this is a constant that removes the calls.
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
