/*
 * Lua's patterns: string.find, match, gmatch and gsub. Lua's own go down the stack with the pattern
 * and may take longer than anybody waits; here both are bounded, and the end is an error.
 */
#ifndef VELLUM_SCRIPT_PATTERN_H
#define VELLUM_SCRIPT_PATTERN_H

#include <lua.h>

void script_open_patterns(lua_State *lua); /* into the table on top */

#endif
