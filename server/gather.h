/*
 * What a command that works in steps has collected so far: kept in call->progress over its runs. A
 * step ends with store_step, or with any wait; what it has collected until then stays collected.
 *
 * Invariant: between runs `out` holds exactly what belongs to all that lies before the place where
 * the work is to go on.
 */
#ifndef VELLUM_GATHER_H
#define VELLUM_GATHER_H

#include "command.h"
#include "dice.h"

#define GATHER_STEP_ENTRIES 256
#define GATHER_STEP_BYTES (64 * 1024)

struct gather {
    uint64_t at;            /* where to go on, as the command counts */
    uint32_t source;        /* in which of several keys */
    uint64_t count;         /* of what was collected, as the command counts */
    bool is_done;           /* everything is collected */
    struct dice dice;       /* from the call's seed */
    uint64_t *ranks;        /* of what was chosen by it; freed with the rest */
    struct resp_writer out; /* in the protocol of the reply, or the command's own form */
    uint64_t step_entries;  /* of this run */
    size_t step_start;      /* out.len when it began */
};

/* The call's own, made in its first run; NULL: out of memory. To be called once in each run. */
struct gather *gather_get(struct call *call);

/* After each entry: whether it is time for store_step. */
static inline bool gather_step_is_full(struct gather *gather)
{
    return ++gather->step_entries >= GATHER_STEP_ENTRIES ||
           gather->out.len - gather->step_start >= GATHER_STEP_BYTES;
}

/* Writes what was collected into the reply; STORE_NO_MEMORY if there was too much of it. */
STORE_MUST_CHECK enum store_result gather_reply(struct call *call, const struct gather *gather);

#endif
