/*
 * Glob patterns as in KEYS and SCAN: * ? [a-z] [^a-z], and \ to escape the next character.
 */
#ifndef VELLUM_GLOB_H
#define VELLUM_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes at most pattern_len * text_len steps for any pattern, without recursion. A class counts as
 * many steps as it has characters. */
bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len,
                bool ignore_case);

/* ---- one pattern for many texts ---- */

/* A class of many characters: those it matches, so that it counts as a few steps. */
struct glob_class {
    size_t at, end; /* in the pattern */
    uint64_t bits[4];
};

struct glob {
    const char *pattern;
    size_t len;
    bool ignore_case;
    const struct glob_class *classes; /* the long ones, in order; they need not all be there */
    size_t class_count;
};

/* Finds the pattern's long classes: the first `room` of them are put down. Returns their number. */
size_t glob_find_classes(const struct glob *glob, struct glob_class *classes, size_t room);
bool glob_matches(const struct glob *glob, const char *text, size_t text_len);

#endif
