/*
 * Looks at the commands that follow in a pipeline, before they run: their keys are prefetched
 * together, so that the waits for memory and for the device overlap. Changes nothing but the pace.
 */
#ifndef VELLUM_LOOK_AHEAD_H
#define VELLUM_LOOK_AHEAD_H

#include <stddef.h>

#include "worker.h"

#define LOOK_AHEAD_COMMANDS 16 /* taken between two looks */

void look_ahead(struct worker *worker, const struct session *session, const char *data, size_t len);

#endif
