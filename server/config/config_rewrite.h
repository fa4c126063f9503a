/*
 * CONFIG REWRITE.
 */
#ifndef VELLUM_CONFIG_REWRITE_H
#define VELLUM_CONFIG_REWRITE_H

#include "server/config/config_directive.h"

/* Writes the present values to config->file. On failure returns false, fills `error` and leaves the
 * file unchanged. */
bool config_rewrite(struct config *config, char error[DIRECTIVE_ERROR_MAX]);

#endif
