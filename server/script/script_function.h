/*
 * Libraries of functions: FUNCTION LOAD's code, and what it registers.
 *
 * The libraries of a store are one value: for each, the length of its code (4 bytes) and the code.
 * Each worker's state loads them when it meets a version that it has not loaded yet, so that no
 * messages between workers are needed.
 */
#ifndef VELLUM_SCRIPT_FUNCTION_H
#define VELLUM_SCRIPT_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

#include "protocol/resp.h"

struct script_state;

struct libraries {
    const char *bytes;
    size_t len;
    uint64_t version; /* 0: of a transaction that has not committed yet; never kept */
};

#define LIBRARY_HEAD ((size_t)4)

/* The library at *at, which it advances. False: the end. */
bool libraries_next(const struct libraries *libraries, size_t *at, struct resp_slice *code);
/* The name in the first line. Returns NULL, or the error. */
const char *library_name(struct resp_slice code, struct resp_slice *name, char problem[160]);

/* Runs the code of all libraries, outside of a run. False: an error reply was written. */
bool script_try_libraries(struct script_state *state, const struct libraries *libraries,
                          struct resp_writer *reply);
/* Pushes the function that the running call names. False: an error reply was written. */
bool script_push_function(lua_State *lua, struct script_state *state,
                          const struct libraries *libraries);
void script_push_register(lua_State *lua); /* pushes redis.register_function */

#endif
