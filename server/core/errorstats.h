/*
 * INFO errorstats: error replies by their code ("ERR", "WRONGTYPE"), counted by each worker for
 * itself.
 *
 * Threads: only the owning worker writes. A code is complete before `used` includes it and never
 * changes again, so other threads may read without a lock.
 */
#ifndef VELLUM_ERRORSTATS_H
#define VELLUM_ERRORSTATS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define ERRORSTATS_CODES 32 /* further codes are not counted: there are far fewer */
#define ERRORSTATS_CODE_MAX 24

struct errorstats {
    _Atomic uint32_t used;
    char codes[ERRORSTATS_CODES][ERRORSTATS_CODE_MAX];
    _Atomic uint64_t counts[ERRORSTATS_CODES];
};

/* Counts an error reply, "-CODE text...". */
void errorstats_count(struct errorstats *stats, const char *reply, size_t len);
void errorstats_clear(struct errorstats *stats);

/* Adds the counts of `from` to a sum that belongs to the caller. */
void errorstats_add(struct errorstats *sum, const struct errorstats *from);

#endif
