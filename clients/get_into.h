/*
 * GET into the application's memory, as the rest of libvellum sees it.
 */
#ifndef VELLUM_GET_INTO_H
#define VELLUM_GET_INTO_H

#include "clients/connection.h"

/* What was granted last gets its reply: that comes by vellum_into_receive, which feeds the reader
 * with what the application gets. REDIS_ERR: nothing will come any more. */
bool vellum_into_is_granted(const struct vellum *vellum);
int vellum_into_receive(struct vellum *vellum);
/* Whether all replies before the first one's have been taken; and its grant. False: not now. */
bool vellum_into_is_due(const struct vellum *vellum);
bool vellum_into_begin(struct vellum *vellum);
/* Counts a reply that is taken, or NULL, and puts a value where it belongs: what the application
 * gets. */
redisReply *vellum_answered(struct vellum *vellum, redisReply *reply);
void vellum_into_forget(struct vellum *vellum);

#endif
