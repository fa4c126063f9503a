/*
 * `table` as scripts see it.
 */
#ifndef VELLUM_SCRIPT_TABLE_H
#define VELLUM_SCRIPT_TABLE_H

#include <lua.h>

void script_open_tables(lua_State *lua); /* adds them to the table on top */

#endif
