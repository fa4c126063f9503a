/*
 * Lua's basic functions as scripts see them.
 */
#ifndef VELLUM_SCRIPT_BASE_H
#define VELLUM_SCRIPT_BASE_H

#include <stdbool.h>
#include <stddef.h>

#include <lua.h>

void script_open_base(lua_State *lua); /* into the globals */

/* Pushes the function that the text is, or what is wrong with it: whether it is the function. Only
 * text is loaded: Lua trusts bytecode. */
bool script_load(lua_State *lua, const char *text, size_t len, const char *name);

#endif
