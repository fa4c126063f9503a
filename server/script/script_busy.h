/*
 * Long-running scripts. A script regularly checks for interrupts. It then briefly releases the
 * store's locks, but not its key locks. After busy-reply-threshold its worker also serves its
 * other connections from there: commands that are CMD_ALLOW_BUSY run, all others get BUSY. On
 * other workers only commands that need the script's keys, or visit every worker, get BUSY.
 */
#ifndef VELLUM_SCRIPT_BUSY_H
#define VELLUM_SCRIPT_BUSY_H

#include <stdbool.h>

#include <lua.h>

struct call;
struct script_state;
struct worker;

#define SCRIPT_KILLED_TEXT "Script killed by user with SCRIPT KILL..."

/* SCRIPT KILL and FUNCTION KILL: ends scripts, or functions, that have run longer than
 * busy-reply-threshold and have written nothing. */
void script_kill(struct call *call, bool is_function);
/* The run is over. */
void script_end_busy(struct script_state *state);

/* hooks->look_from_script: like script_check_interrupt(), but does not end the script, because it
 * is inside a command. */
void script_look_from_command(struct worker *worker);

/* To be called regularly by long operations inside a script. May raise the error that ends the run.
 */
void script_check_interrupt(lua_State *lua);
/* The same for loops: checks once in some thousand calls, and more often if the script has blocks
 * so large that one iteration may take long. */
void script_check_clock(lua_State *lua);

#endif
