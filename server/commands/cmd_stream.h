/* What the commands on streams share: IDs in arguments. */
#ifndef VELLUM_CMD_STREAM_H
#define VELLUM_CMD_STREAM_H

#include "server/types/stream.h"

/* Each answers with Redis's error and returns false if the argument is invalid. `ms` alone has the
 * sequence number `missing_seq`. */
bool stream_read_id(struct call *call, struct resp_slice arg, uint64_t missing_seq,
                    struct stream_id *id);
bool stream_bad_id(struct call *call); /* always false */

#endif
