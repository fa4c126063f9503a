/*
 * Lua's basic functions as scripts see them.
 */
#ifndef VELLUM_SCRIPT_BASE_H
#define VELLUM_SCRIPT_BASE_H

#include <stdbool.h>
#include <stddef.h>

#include <lua.h>

void script_open_base(lua_State *lua); /* adds them to the globals */

/* Compiles the text and pushes the function (true) or an error message (false). Only source text is
 * accepted, because Lua does not validate bytecode. */
bool script_load(lua_State *lua, const char *text, size_t len, const char *name);

#endif
