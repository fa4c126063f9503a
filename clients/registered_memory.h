/*
 * The memory registered with a connection.
 */
#ifndef VELLUM_REGISTERED_MEMORY_H
#define VELLUM_REGISTERED_MEMORY_H

#include "clients/connection.h"

/* Deregisters memory before a channel closes; registers it again with the next. */
void vellum_unpin_all(struct vellum *vellum);
bool vellum_pin_all(struct vellum *vellum);

/* The part of the memory that contains a value. REDIS_ERR: the memory is not this connection's. */
int vellum_span_of(struct vellum *vellum, const struct vellum_memory *memory, size_t offset,
                   size_t length, struct vellum_span *span);

#endif
