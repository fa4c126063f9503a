/*
 * A stream as an RDB value, in the steps of a collector.
 */
#ifndef VELLUM_STREAM_DUMP_H
#define VELLUM_STREAM_DUMP_H

#include "server/exec/collector.h"

/* STORE_OK: collector->out ends with the value, and collector->checksum is that of all of it. */
STORE_MUST_CHECK enum store_result stream_dump(struct call *call, const struct store_item *item,
                                               struct collector *collector);

#endif
