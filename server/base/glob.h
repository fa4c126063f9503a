/*
 * Glob patterns as KEYS, SCAN and others take them: * ? [a-z] [^a-z] and \ before a character that
 * stands for itself.
 */
#ifndef VELLUM_GLOB_H
#define VELLUM_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Time at most pattern_len * text_len, whatever the pattern; no recursion. */
bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len,
                bool ignore_case);

#endif
