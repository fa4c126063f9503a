/*
 * Replies that are put aside: what a command says before it can say how its reply begins (how many
 * elements, how many bytes) goes to the disk where it is much, and leaves from there, behind what
 * it begins with. Neither the reply nor the locks of the command wait in memory for the client.
 *
 * Invariant: what was said is the upload's whole pieces, and behind them the writer's bytes, of
 * which the upload may have a part already.
 */
#ifndef VELLUM_REPLY_SPILL_H
#define VELLUM_REPLY_SPILL_H

#include "server/core/command.h"

struct reply_spill {
    struct store_upload *upload; /* NULL: nothing is aside */
    uint64_t bytes;              /* that are, in whole pieces */
    size_t part;                 /* bytes of the next one */
    bool is_over;                /* no more goes there: no room */
};

/* store_step, for commands that say what belongs behind the head of their reply into a buffer kept
 * over the steps; if there is much of it, its first pieces are gone afterwards. Commands inside
 * others keep all of it. */
STORE_MUST_CHECK enum store_result reply_spill_step(struct call *call, struct reply_spill *spill,
                                                    struct resp_writer *said);

/* When the head is written: puts all that was said behind it. To be tried again with the next run
 * after STORE_WAIT. */
STORE_MUST_CHECK enum store_result reply_spill_reply(struct call *call, struct reply_spill *spill,
                                                     struct resp_writer *said);

/* With the command's progress. */
void reply_spill_free(struct reply_spill *spill);

#endif
