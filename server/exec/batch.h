/*
 * Rows: commands of one pipeline that are alike - one command, one key, as many arguments - and
 * have all arrived. A function that changes a large collection may go on with the next of them
 * (call_next_in_batch): one transaction, one look-up of the key, one descent's pages, one record.
 *
 * What is to be seen of a row could be seen of its commands one by one: their replies, what they
 * notify and MONITOR shows, in their order; figures count each. So a row goes on only where nobody
 * may come between and nothing go wrong: who waits for a key waits for none that has elements; a
 * run that has to wait, or fails, is run again with its first command alone.
 *
 * Invariants:
 * 1. A row begins with a command that runs where its connection's output is gathered. It is all
 *    taken then, or its first command alone; so no run but the first makes one.
 * 2. Their arguments stand one behind the other. Between runs the call's are the first command's;
 *    batch_taken counts the others, which are held with it if the commit has to wait.
 * 3. A run that has taken others and does not succeed is run again without them.
 */
#ifndef VELLUM_BATCH_H
#define VELLUM_BATCH_H

#include "server/exec/read_ahead.h"
#include "server/exec/request.h"

/* After each run: what it is to return. */
STORE_MUST_CHECK enum store_result batch_end(struct call *call, enum store_result result);

/* The commands offered are going to be taken for themselves. */
static inline void batch_drop(struct call *call)
{
    call->batch = NULL;
    call->batch_left = 0;
}

/* Commands that the request stands for. */
static inline uint32_t batch_length(const struct call *call)
{
    return 1 + call->batch_taken;
}

/*
 * Goes on with the connection's next command, if that has arrived and is the same one for the same
 * key, with as many arguments: they take the place of call->argv, and its reply is written behind
 * this one's. For a function that has done all for its command, at a key for which nobody can be
 * waiting, and knows that the next one will find what it needs there. False: there is none.
 */
bool call_next_in_batch(struct call *call);

#endif
