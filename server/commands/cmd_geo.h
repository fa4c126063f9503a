/*
 * Common to the geo commands: arguments, and parts of replies.
 */
#ifndef VELLUM_CMD_GEO_H
#define VELLUM_CMD_GEO_H

#include "server/core/command.h"
#include "server/types/geo.h"

/* Each answers with Redis's error and returns false if the argument is invalid. */
bool geo_read_point(struct call *call, const struct resp_slice argv[2], struct geo_point *point);
bool geo_read_unit(struct call *call, struct resp_slice arg, double *metres);

/* With four digits after the point. */
void geo_put_distance(struct resp_writer *out, double distance);
/* Longitude and latitude in an array. */
void geo_put_point(struct resp_writer *out, struct geo_point point);

#endif
