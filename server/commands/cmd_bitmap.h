/*
 * What the commands on bitmaps share.
 */
#ifndef VELLUM_CMD_BITMAP_H
#define VELLUM_CMD_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/command.h"

/* Reads the position of a bit; "#n", where field_bits is not 0, is that of the n-th field of so
 * many bits. Answers with the error and returns false when it is none, or beyond the longest
 * string. */
bool bitmap_offset(struct call *call, struct resp_slice arg, unsigned field_bits, uint64_t *offset);

#endif
