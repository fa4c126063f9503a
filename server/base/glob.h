/*
 * Glob patterns as in KEYS and SCAN: * ? [a-z] [^a-z], and \ to escape the next character.
 */
#ifndef VELLUM_GLOB_H
#define VELLUM_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Takes at most pattern_len * text_len steps for any pattern, without recursion. */
bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len,
                bool ignore_case);

#endif
