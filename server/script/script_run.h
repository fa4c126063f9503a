/*
 * Compiling and running scripts.
 */
#ifndef VELLUM_SCRIPT_RUN_H
#define VELLUM_SCRIPT_RUN_H

#include "server/core/command.h"
#include "server/script/script.h"

struct script_state;
struct worker;

/* The worker's, made where there is none or it is from before SCRIPT FLUSH. NULL: out of memory. */
struct script_state *script_state_get(struct worker *worker);

/* Answers with what is wrong with it, or says nothing and returns true. */
bool script_compile(struct script_state *state, struct script *script, struct resp_writer *reply);

/* Runs it for a call, whose nest is settled: its arguments from `key_at` on are the keys, from
 * `arg_at` on the other ones. */
STORE_MUST_CHECK enum store_result script_run(struct script_state *state, struct call *call,
                                              struct script *script, bool is_readonly,
                                              size_t key_at, size_t arg_at);

#endif
