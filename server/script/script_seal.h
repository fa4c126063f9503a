/*
 * Sealed tables: what cannot be changed by scripts.
 */
#ifndef VELLUM_SCRIPT_SEAL_H
#define VELLUM_SCRIPT_SEAL_H

#include <stdbool.h>

#include <lua.h>

/* The table on top of the stack is replaced by one that shows what is in it and cannot be changed.
 * What libraries are given may be one of those. */
void script_seal(lua_State *lua);
bool script_is_sealed(lua_State *lua, int index); /* pushes what is behind it, if so */
/* Raises the error of what would change a sealed table. */
int script_refuse_change(lua_State *lua);

#endif
