/*
 * Which Vellum this is, and which Redis it is like.
 */
#ifndef VELLUM_VERSION_H
#define VELLUM_VERSION_H

#define VELLUM_VERSION "0.1.0"
#define VELLUM_REDIS_VERSION "7.2.4" /* the Redis whose semantics we keep: clients gate on it */
#define VELLUM_REDIS_VERSION_NUM 0x00070204

#endif
