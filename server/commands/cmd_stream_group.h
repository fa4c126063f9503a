/* What the commands on consumer groups share. */
#ifndef VELLUM_CMD_STREAM_GROUP_H
#define VELLUM_CMD_STREAM_GROUP_H

#include "server/types/stream_group.h"

/* The transaction takes from streams and adds nothing: who waits for them need not look. */
void stream_only_takes(struct call *call);

/* The stream at the first key, and its group; STORE_ANSWERED: one of them does not exist, or the
 * key has another type. */
STORE_MUST_CHECK enum store_result stream_find_group(struct call *call, struct stream *stream,
                                                     struct resp_slice name,
                                                     struct stream_group *group);
/* The consumer, which is made if it does not exist; it is seen now. */
STORE_MUST_CHECK enum store_result stream_see_consumer(const struct stream_group *group,
                                                       struct resp_slice name,
                                                       struct stream_consumer *consumer);

#endif
