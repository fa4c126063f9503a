/*
 * Functions in a worker's Lua state: the libraries that are loaded in it.
 *
 * Each worker's state loads the libraries when it meets a value of them that it has not loaded yet
 * (script_library.h), so that workers need not tell each other. Only libraries whose id has changed
 * are loaded again.
 *
 * Local variables of a library outlive a call, as in Redis, in each worker by itself. But what a
 * run has written to them must not outlive a run that is discarded, because it had to wait or could
 * not be committed. So a library whose variables have changed is loaded anew when such a run is
 * noticed (struct unsettled in core/worker.h), which loses all that they held.
 */
#ifndef VELLUM_SCRIPT_FUNCTION_H
#define VELLUM_SCRIPT_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

#include "protocol/resp.h"

struct call;
struct effects;
struct libraries;
struct library;
struct script_state;
struct worker;

/* What a call of a function needs beyond that of a script. */
struct function_call {
    const struct libraries *libraries;
    const char *problem; /* the error of its arguments, if the function exists; or NULL */
};

/* Runs the code of a library in order to find out what it registers, outside of a run: adds the
 * functions to `functions`, and their number to `library`. False: an error reply was written. */
bool script_try_library(struct script_state *state, struct call *call, struct library *library,
                        struct resp_writer *functions);

/* The stamp of the libraries that are loaded and may be used in this call; 0: none. Whether they
 * are those of the store at this moment. */
uint64_t script_known_stamp(const struct script_state *state, struct call *call);
bool script_knows_libraries(const struct script_state *state, struct call *call);

/* If there are none any more, what is loaded of them need take no memory. Needs none. */
void script_forget_libraries(struct script_state *state);

/* Pushes the function that the running call names. False: an error reply was written. */
bool script_push_function(lua_State *lua, struct script_state *state,
                          const struct function_call *function);
/* After a run: notes whether variables of its library have changed. Needs no memory. */
void script_note_variables(struct script_state *state);

/* A guess, before the libraries have been read: whether the function writes, as of their last
 * commit, and whether it has needed undeclared keys on this worker. */
struct function_hint {
    bool is_readonly, wants_all;
};
struct function_hint script_function_hint(const struct worker *worker, struct resp_slice name);
/* The running function needs undeclared keys. */
void script_note_wants_all(struct script_state *state);

#endif
