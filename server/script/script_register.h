/*
 * What the code of a library finds while it is loaded: of all globals only `redis`, and in that
 * only what registers functions, and the log.
 */
#ifndef VELLUM_SCRIPT_REGISTER_H
#define VELLUM_SCRIPT_REGISTER_H

#include <stdbool.h>

#include <lua.h>

/* Makes those globals. `_G` is sealed already. */
void script_open_loading(lua_State *lua);
/* Replaces the globals by them, and back; needs no memory. */
void script_use_loading(lua_State *lua, bool is_loading);

/* A registered function is a table of: */
enum registered { REGISTERED_NAME = 1, REGISTERED_CALLBACK, REGISTERED_FLAGS, REGISTERED_TEXT };

/* Pushes an empty table, in which functions are registered from now on: by their numbers, and by
 * their names. */
void script_begin_registering(lua_State *lua);
/* Nothing but that table holds them from now on. Needs no memory. */
void script_end_registering(lua_State *lua);

#endif
