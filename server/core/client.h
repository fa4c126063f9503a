/*
 * Shared by HELLO and CLIENT: what a client may call itself.
 */
#ifndef VELLUM_CLIENT_H
#define VELLUM_CLIENT_H

#include <stdbool.h>

#include "protocol/resp.h"

/* Printable characters without spaces, so that CLIENT LIST's lines can be taken apart. */
bool client_name_good(struct resp_slice name);

/* Replaces a text from malloc; an empty one becomes NULL. False: out of memory. */
bool client_set_text(struct session *session, char **text, struct resp_slice value);

#endif
