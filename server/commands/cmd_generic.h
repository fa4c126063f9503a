/*
 * What OBJECT and DEBUG OBJECT say of a value.
 */
#ifndef VELLUM_CMD_GENERIC_H
#define VELLUM_CMD_GENERIC_H

#include <stdint.h>

struct server;
struct store_item;

/* The name of the encoding in which Redis would keep the value. */
const char *object_encoding(const struct store_item *item);
int32_t object_references(struct server *server, const struct store_item *item);

#endif
