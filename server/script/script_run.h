/*
 * Compiling and running scripts.
 */
#ifndef VELLUM_SCRIPT_RUN_H
#define VELLUM_SCRIPT_RUN_H

#include "server/core/command.h"
#include "server/script/script.h"

struct script_state;
struct function_call;
struct worker;

/* The worker's state. It is created if there is none, or if it is older than the last SCRIPT FLUSH.
 * NULL: out of memory. */
struct script_state *script_state_get(struct worker *worker);

/* True: the script compiles. False: an error reply was written, and the script forgotten unless
 * only memory was missing. */
bool script_compile(struct script_state *state, struct script *script, struct resp_writer *reply);

/* Parses the number of keys, argument 2. Returns NULL, or the error: `bad` if it is no number. */
const char *script_read_key_count(const struct call *call, const char *bad, size_t *count);

/* Whether code with these flags may run now, for a command that may write or not. False: an error
 * reply was written. */
bool script_may_begin(const struct call *call, uint32_t flags, bool is_readonly);

/* Runs the script for a call whose nested calls are settled. Its arguments from `key_at` on are the
 * keys, those from `arg_at` on the others. With `function` it calls the function that argument 1
 * names, and `script` stands for it. */
STORE_MUST_CHECK enum store_result script_run(struct script_state *state, struct call *call,
                                              struct script *script,
                                              const struct function_call *function,
                                              bool is_readonly, size_t key_at, size_t arg_at);

/* To be called between runs, so that compiled scripts do not take memory that the next run needs.
 */
void script_keep_small(struct script_state *state);

#endif
