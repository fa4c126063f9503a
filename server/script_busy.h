/*
 * A script that runs for long: its worker cannot do anything else, but looks up from it now and
 * then.
 */
#ifndef VELLUM_SCRIPT_BUSY_H
#define VELLUM_SCRIPT_BUSY_H

#include <lua.h>

struct call;

/* SCRIPT KILL: ends the scripts that run beyond busy-reply-threshold and have written nothing. */
void script_kill(struct call *call);

/* To be called now and then by what may take long inside a script; may raise the error that ends
 * the run. */
void script_look_up(lua_State *lua);

#endif
