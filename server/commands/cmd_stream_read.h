/* The arguments of commands that read streams. */
#ifndef VELLUM_CMD_STREAM_READ_H
#define VELLUM_CMD_STREAM_READ_H

#include "server/core/command.h"
#include "server/types/stream_id.h"

/* A bound of an interval, without its `(` if it has one. "-" and "+" are the ends. False: the call
 * was answered. */
bool stream_read_bound(struct call *call, struct resp_slice arg, bool is_last,
                       struct stream_id *id);

/* The arguments of XREAD and XREADGROUP. False: the call was answered. */
struct stream_reading {
    bool blocks;
    int64_t timeout_ms;
    int64_t count; /* 0: all */
    uint32_t streams;
    size_t ids_at;                     /* in the arguments */
    struct resp_slice group, consumer; /* XREADGROUP; without data: not given */
    bool no_ack;
};
bool stream_read_arguments(struct call *call, bool is_group, struct stream_reading *reading);

#endif
