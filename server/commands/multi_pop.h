/*
 * The arguments that LMPOP, ZMPOP and their blocking forms have in common.
 */
#ifndef VELLUM_MULTI_POP_H
#define VELLUM_MULTI_POP_H

#include "server/core/command.h"

/* numkeys key ... <one of two words> [COUNT n], from argument `at` on: *word is which of the two.
 * False: wrong, and answered. */
bool multi_pop_read(struct call *call, size_t at, const char *const words[2], size_t *word,
                    int64_t *count);

#endif
