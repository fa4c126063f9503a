/* Entries of streams in replies. */
#ifndef VELLUM_CMD_STREAM_REPLY_H
#define VELLUM_CMD_STREAM_REPLY_H

#include "server/exec/steps.h"
#include "server/types/stream.h"

/* Entries of a stream that are replied with; `name`: the first is preceded by the stream's name. */
struct stream_entries {
    struct stream *stream;
    uint64_t rank, count; /* of the first one */
    bool backwards;
    const struct store_key *name;
};

/* Callers pass up every result except STORE_OK. */

/* An entry: its ID, and its fields and values. */
STORE_MUST_CHECK enum store_result stream_put_entry(struct steps *steps,
                                                    const struct stream_entry *entry);
/* The entry with this ID, or nothing if the stream does not have it. */
STORE_MUST_CHECK enum store_result stream_put_entry_of(struct steps *steps, struct stream *stream,
                                                       struct stream_id id, bool *found);
/* The entries, of which `before` are in the output already. */
STORE_MUST_CHECK enum store_result
stream_put_entries(struct steps *steps, const struct stream_entries *entries, uint64_t before);
/* How many streams follow, each with its entries. */
void stream_put_streams(struct steps *steps, uint32_t streams);

#endif
