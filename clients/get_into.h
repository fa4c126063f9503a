/*
 * GET into the application's memory, as the rest of libvellum sees it.
 */
#ifndef VELLUM_GET_INTO_H
#define VELLUM_GET_INTO_H

#include "clients/connection.h"

/* While memory is granted, its reply is received by vellum_into_receive, which feeds the reader
 * with the reply for the application. REDIS_ERR: nothing more will arrive. */
bool vellum_into_is_granted(const struct vellum *vellum);
int vellum_into_receive(struct vellum *vellum);
/* Whether all replies before that of the first one have been taken; and begins its grant. False:
 * not now. */
bool vellum_into_is_due(const struct vellum *vellum);
bool vellum_into_begin(struct vellum *vellum);
/* Counts a reply that is taken (or NULL), copies a value to its memory, and returns the reply
 * for the application. */
redisReply *vellum_answered(struct vellum *vellum, redisReply *reply);
void vellum_into_forget(struct vellum *vellum);

#endif
