/*
 * Arguments common to LMPOP, ZMPOP and their blocking forms.
 */
#ifndef VELLUM_MULTI_POP_H
#define VELLUM_MULTI_POP_H

#include "server/core/command.h"

/* Parses numkeys key ... <one of two words> [COUNT n] from argument `at` on. *word: which of the
 * two. False: replied with an error. */
bool multi_pop_read(struct call *call, size_t at, const char *const words[2], size_t *word,
                    int64_t *count);

#endif
