/*
 * The library `bit`.
 */
#ifndef VELLUM_SCRIPT_BIT_H
#define VELLUM_SCRIPT_BIT_H

#include <lua.h>

void script_open_bit(lua_State *lua); /* leaves it on the stack */

#endif
