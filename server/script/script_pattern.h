/*
 * Lua's patterns: string.find, match, gmatch and gsub. Lua's own matcher recurses with the pattern
 * and its time is unbounded. Here both depth and time are limited, and exceeding a limit is an
 * error.
 */
#ifndef VELLUM_SCRIPT_PATTERN_H
#define VELLUM_SCRIPT_PATTERN_H

#include <lua.h>

void script_open_patterns(lua_State *lua); /* adds them to the table on top */

#endif
