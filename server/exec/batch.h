/*
 * Batches: pipelined commands that have all arrived and are alike (same command, same key, same
 * number of arguments). A function that changes a large collection may continue with the next one
 * of them (call_next_in_batch): one transaction, one key look-up, one tree descent, one journal
 * record.
 *
 * A batch must look to clients like its commands run one by one: replies, notifications and MONITOR
 * lines keep their order, and statistics count each command. A batch therefore continues only where
 * no other request could run in between and no command can fail: no request blocks on a key that
 * has elements, and a run that must wait or that fails is repeated with the first command alone.
 *
 * Invariants:
 * 1. A batch begins with a command that writes directly to its connection's output. Either the
 *    whole batch is executed then, or its first command alone; so a request that has been queued
 *    never batches.
 * 2. The arguments of its commands are contiguous. Between runs, the call's arguments are those of
 *    the first command; batch_taken counts the others, which are held too if the commit has to
 *    wait.
 * 3. A run that has batched further commands and does not succeed is repeated without them.
 */
#ifndef VELLUM_BATCH_H
#define VELLUM_BATCH_H

#include "server/exec/read_ahead.h"
#include "server/exec/request.h"

/* After each run: maps the run's result to the one to return. */
STORE_MUST_CHECK enum store_result batch_end(struct call *call, enum store_result result);

/* The commands offered for the batch will be executed one by one. */
static inline void batch_drop(struct call *call)
{
    call->batch = NULL;
    call->batch_left = 0;
}

/* The number of commands that the request stands for. */
static inline uint32_t batch_length(const struct call *call)
{
    return 1 + call->batch_taken;
}

/*
 * Continues with the connection's next command if it has arrived and is the same command for the
 * same key with as many arguments: its arguments replace call->argv, and its reply is appended
 * after this command's. Only for a function that has done all of its command's work, on a key that
 * no request can be blocked on, and that knows the next command finds there what it needs. False:
 * there is none.
 */
bool call_next_in_batch(struct call *call);

#endif
