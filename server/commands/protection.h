/*
 * What configuration allows to no client, to all, or to those of the same machine.
 */
#ifndef VELLUM_PROTECTION_H
#define VELLUM_PROTECTION_H

#include <stdbool.h>

#include "server/config/config.h"
#include "server/core/call.h"

/* `id`: a directive whose number is an enum config_protection. */
bool protection_allows(const struct call *call, enum config_id id);

#endif
