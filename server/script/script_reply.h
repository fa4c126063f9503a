/*
 * Conversion of replies to Lua values and back.
 */
#ifndef VELLUM_SCRIPT_REPLY_H
#define VELLUM_SCRIPT_REPLY_H

#include <stdint.h>

#include <lua.h>

struct call;
struct resp_writer;

/* Pushes the reply in state->reply as a Lua value. */
void script_push_reply(lua_State *lua, const struct resp_writer *reply);
/* Writes the value on top of the stack as the script's reply. */
void script_write_reply(lua_State *lua, struct call *call, uint8_t script_resp);

#endif
