/*
 * Sealed tables: tables that scripts cannot modify.
 */
#ifndef VELLUM_SCRIPT_SEAL_H
#define VELLUM_SCRIPT_SEAL_H

#include <stdbool.h>

#include <lua.h>

/* Replaces the table on top of the stack by a read-only view of it. Arguments of library functions
 * may be sealed tables. */
void script_seal(lua_State *lua);
bool script_is_sealed(lua_State *lua, int index); /* if so, pushes the table behind it */
/* Makes the table on top of the stack raise an error for names that it does not have. */
void script_refuse_unknown(lua_State *lua);
/* Raises the error for an attempt to modify a sealed table. */
int script_refuse_change(lua_State *lua);

#endif
