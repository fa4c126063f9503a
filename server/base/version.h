/*
 * The version of Vellum, and the version of Redis that it is compatible with.
 */
#ifndef VELLUM_VERSION_H
#define VELLUM_VERSION_H

#define VELLUM_VERSION "0.1.0"
#define VELLUM_REDIS_VERSION "7.2.4" /* the version we are compatible with: clients check it */
#define VELLUM_REDIS_VERSION_NUM 0x00070204

#endif
