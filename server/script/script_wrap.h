/*
 * Wrappers around Lua's own functions.
 */
#ifndef VELLUM_SCRIPT_WRAP_H
#define VELLUM_SCRIPT_WRAP_H

#include <lua.h>

/* Replaces `name` in the table on top by `wrapper`, a closure over the original function. The
 * wrapper calls it with its own arguments. */
void script_wrap(lua_State *lua, const char *name, lua_CFunction wrapper);
int script_call_wrapped(lua_State *lua);

#endif
