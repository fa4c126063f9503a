/*
 * The library `cmsgpack`.
 */
#ifndef VELLUM_SCRIPT_CMSGPACK_H
#define VELLUM_SCRIPT_CMSGPACK_H

#include <lua.h>

void script_open_cmsgpack(lua_State *lua); /* leaves it on the stack */

#endif
