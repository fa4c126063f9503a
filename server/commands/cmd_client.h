/*
 * Shared by HELLO and CLIENT: the names that clients give themselves.
 */
#ifndef VELLUM_CMD_CLIENT_H
#define VELLUM_CMD_CLIENT_H

#include <stdbool.h>

#include "protocol/resp.h"
#include "server/core/session.h"

/* Printable characters without spaces, so that CLIENT LIST's lines can be parsed. */
bool client_name_good(struct resp_slice name);

/* Replaces a malloc'ed text; an empty one becomes NULL. False: out of memory. */
bool client_set_text(struct session *session, char **text, struct resp_slice value);

#endif
