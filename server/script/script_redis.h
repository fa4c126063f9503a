/*
 * `redis`: the library by which a script calls the server.
 */
#ifndef VELLUM_SCRIPT_REDIS_H
#define VELLUM_SCRIPT_REDIS_H

#include <lua.h>

void script_open_redis(lua_State *lua); /* leaves the library on the stack */

#endif
