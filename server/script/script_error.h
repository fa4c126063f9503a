/*
 * Raising errors in scripts, and ending a run.
 */
#ifndef VELLUM_SCRIPT_ERROR_H
#define VELLUM_SCRIPT_ERROR_H

#include <stddef.h>

#include <lua.h>

#include "storage/store.h"

#define SCRIPT_COUNTED "ignore_error_stats_update" /* a field of error tables, as in Redis */

/* Raises {err = "ERR " .. text}; never returns. */
int script_raise(lua_State *lua, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Raises {err = text} for an error reply's text; adds a code if it has none. */
void script_push_error(lua_State *lua, const char *text, size_t len);

/* Ends the run; never returns. */
int script_unwind(lua_State *lua, enum store_result result);

#endif
