/*
 * Lua's own functions within ours.
 */
#ifndef VELLUM_SCRIPT_WRAP_H
#define VELLUM_SCRIPT_WRAP_H

#include <lua.h>

/* The table on top: `name` of it becomes `wrapper` around what it was, which the wrapper calls with
 * the arguments that it was given itself. */
void script_wrap(lua_State *lua, const char *name, lua_CFunction wrapper);
int script_call_wrapped(lua_State *lua);

#endif
