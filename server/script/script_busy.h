/*
 * A script that runs for long. It looks up now and then: lets go of the store's locks for a moment,
 * though not of its keys; and beyond busy-reply-threshold its worker serves its other connections
 * from there, with commands that are CMD_ALLOW_BUSY, and BUSY for all others. On other workers only
 * those get it that need the script's keys, or visit every worker.
 */
#ifndef VELLUM_SCRIPT_BUSY_H
#define VELLUM_SCRIPT_BUSY_H

#include <stdbool.h>

#include <lua.h>

struct call;
struct worker;

#define SCRIPT_KILLED_TEXT "Script killed by user with SCRIPT KILL."

/* SCRIPT KILL: ends the scripts that run beyond busy-reply-threshold and have written nothing. */
void script_kill(struct call *call);

/* hooks->look_from_script: as script_check_interrupt, but without ending the script, which is
 * inside a command. */
void script_look_from_command(struct worker *worker);

/* To be called now and then by what may take long inside a script; may raise the error that ends
 * the run. */
void script_check_interrupt(lua_State *lua);
/* The same for loops: does so once in some thousand calls, and more often where there are blocks so
 * large that one step may take long. */
void script_check_clock(lua_State *lua);

#endif
