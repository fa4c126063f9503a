/*
 * The library `struct`.
 */
#ifndef VELLUM_SCRIPT_STRUCT_H
#define VELLUM_SCRIPT_STRUCT_H

#include <lua.h>

void script_open_struct(lua_State *lua); /* leaves it on the stack */

#endif
