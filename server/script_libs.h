/*
 * The libraries that Redis gives to scripts beside Lua's own; each leaves its table on the stack.
 */
#ifndef VELLUM_SCRIPT_LIBS_H
#define VELLUM_SCRIPT_LIBS_H

#include <lua.h>

void script_open_bit(lua_State *lua);

#endif
