/*
 * A command as the load generator sends it, made once from words: what changes from one sending to
 * the next are numbers of a fixed width, written into the same bytes.
 *
 *     HSET hash:%k field:%m %v
 *
 * %k and %m are numbers of KEY_DIGITS digits (keys.h), whose meaning is the caller's; %v is a
 * value.
 */
#ifndef VELLUM_BENCH_PATTERN_H
#define VELLUM_BENCH_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_PLACES_MAX 64

struct pattern {
    char *bytes; /* the whole request; malloc */
    size_t len;
    uint32_t place_count;
    struct {
        size_t at;
        char kind; /* 'k' or 'm' */
    } places[PATTERN_PLACES_MAX];
};

/* False: out of memory, no words, or too many numbers. */
bool pattern_make(struct pattern *pattern, const char *words, uint32_t value_len);

#endif
