/*
 * How much of a stream a group has read, by the rules of Redis: its counter counts while nothing
 * behind the group's last ID was deleted; otherwise it is known only for the ends of the stream.
 * The stream's head must be loaded.
 */
#ifndef VELLUM_STREAM_LAG_H
#define VELLUM_STREAM_LAG_H

#include "server/types/stream_group.h"

/* The entry with this ID is delivered: moves group->last and ->read, as Redis does. */
STORE_MUST_CHECK enum store_result stream_group_note_read(struct stream_group *group,
                                                          struct stream_id id);
/* How many entries are not delivered yet. *known: false: Redis could not tell either. */
STORE_MUST_CHECK enum store_result stream_group_lag(const struct stream_group *group, uint64_t *lag,
                                                    bool *known);

#endif
