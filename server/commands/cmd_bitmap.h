/*
 * Common to the commands on bitmaps.
 */
#ifndef VELLUM_CMD_BITMAP_H
#define VELLUM_CMD_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/command.h"

/* Parses a bit offset; if field_bits is not 0, "#n" is the offset of the n-th field of that size.
 * On an invalid offset, or one beyond the longest string, replies with the error and returns false.
 */
bool bitmap_offset(struct call *call, struct resp_slice arg, unsigned field_bits, uint64_t *offset);

#endif
