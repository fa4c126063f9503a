/*
 * Spilled replies: output that a command produces before it can write the head of its reply (the
 * number of elements or bytes). If it is large, it is written to the device and streamed from there
 * after the head. The command thus holds neither the reply in memory nor its locks while the client
 * reads.
 *
 * Invariant: the output is the upload's whole pieces followed by the writer's bytes; the upload may
 * already have a part of the latter.
 */
#ifndef VELLUM_REPLY_SPILL_H
#define VELLUM_REPLY_SPILL_H

#include "server/core/command.h"

struct reply_spill {
    struct store_upload *upload; /* NULL: nothing is spilled */
    uint64_t bytes;              /* spilled, in whole pieces */
    size_t part;                 /* bytes of the next piece that the upload already has */
    bool is_over;                /* no room: nothing more is spilled */
};

/* store_step, for commands that write the output after the reply's head into a buffer kept across
 * the steps. If it is large, its first pieces are moved to the device. Nested commands keep all of
 * it. */
STORE_MUST_CHECK enum store_result reply_spill_step(struct call *call, struct reply_spill *spill,
                                                    struct resp_writer *out);

/* Once the head is written: appends all of the output to the reply. After STORE_WAIT, call it
 * again in the next run. */
STORE_MUST_CHECK enum store_result reply_spill_reply(struct call *call, struct reply_spill *spill,
                                                     struct resp_writer *out);

/* Called when the command's progress is freed. */
void reply_spill_free(struct reply_spill *spill);

#endif
