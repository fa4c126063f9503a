/*
 * A worker's Lua: one state, in which all its scripts run, one after the other.
 *
 * A run leaves no trace in the state, since a script runs again from the top whenever it meets a
 * page that is not in memory: what it could change is sealed (script_seal.c), random numbers begin
 * anew, and its calls' effects are the transaction's or the request's.
 *
 * A run that is over before its end (it has to wait, it was killed) leaves by a Lua error that
 * nothing in Lua can catch: see `is_over` and script_base.c.
 *
 * Threads: a state belongs to its worker's thread.
 */
#ifndef VELLUM_SCRIPT_STATE_H
#define VELLUM_SCRIPT_STATE_H

#include <lauxlib.h>
#include <lua.h>

#include "server/core/command.h"
#include "server/script/script.h"
#include "server/script/script_libs.h"

struct worker;

/* The most that the states of all workers may hold together, with what the commands of their runs
 * have until those end, and their replies; and besides that what a library writes: a share of
 * memory, but no more than SCRIPT_MEMORY_MAX. */
#define SCRIPT_MEMORY_SHARE 2
#define SCRIPT_MEMORY_MAX (256u * 1024 * 1024)

#define SCRIPT_COUNTED "ignore_error_stats_update" /* a field of errors, as in Redis */

struct script_state {
    lua_State *lua;
    struct worker *worker;
    size_t bytes;               /* what Lua has allocated */
    size_t command_bytes;       /* what the run's commands have, in the store as well */
    size_t reply_bytes;         /* of the script's reply, while it is written */
    int64_t noted_bytes;        /* of Lua, commands and reply, as the store was told */
    size_t granted;             /* what all of them may have; see script_memory_max */
    bool is_unbounded;          /* for a moment */
    uint64_t flushes;           /* of the registry, when the state was made */
    uint32_t compiled;          /* functions kept */
    struct resp_writer reply;   /* of a command that a script runs */
    struct resp_writer scratch; /* what libraries write into */
    struct resp_slice *args;    /* of a command that a script runs */
    size_t arg_capacity;

    /* the run */
    struct call *call; /* NULL: none */
    struct script *script;
    bool is_readonly;
    bool has_written;
    bool is_over;             /* nothing of it counts, `result` tells why */
    enum store_result result; /* STORE_OK: it was killed */
    bool is_hooked;           /* it is in Lua */
    int hook_instructions;    /* between two looks up */
    uint32_t tick_weight;     /* of each script_tick: 1, or more as there are fewer instructions */
    uint32_t ticks;           /* of script_tick, by weight */
    uint64_t began_nsec;
    uint64_t pause_nsec; /* when to look at the clock again, at the earliest */
    uint16_t random[3];
    uint32_t logged; /* lines */
    struct script_json json;
};

/* The worker's, made where there is none or it is from before SCRIPT FLUSH. NULL: out of memory. */
struct script_state *script_state_get(struct worker *worker);
void script_state_free(struct script_state *state); /* or NULL */

size_t script_memory_max(const struct script_state *state);
/* So much is kept now for the run's commands; false: it is too much for another one. */
bool script_note_commands(struct script_state *state, const struct call *outer);
/* The reply is going to be so long; false: it is too much. */
bool script_note_reply(struct script_state *state, size_t bytes);

static inline struct script_state *script_state_of(lua_State *lua)
{
    void *state;
    lua_getallocf(lua, &state);
    return state;
}

/* Whether one instruction of the run's may take longer than is usual. */
static inline bool script_has_large_blocks(const struct script_state *state)
{
    return state->tick_weight > 1;
}

/* Answers with what is wrong with it, or says nothing and returns true. */
bool script_compile(struct script_state *state, struct script *script, struct resp_writer *reply);

/* Runs it for a call, whose nest is settled: its arguments from `key_at` on are the keys, from
 * `arg_at` on the other ones. */
STORE_MUST_CHECK enum store_result script_run(struct script_state *state, struct call *call,
                                              struct script *script, bool is_readonly,
                                              size_t key_at, size_t arg_at);

/* ---- the libraries: each leaves its table on the stack, or fills the one that is there ---- */

void script_open_base(lua_State *lua);   /* into the globals */
void script_open_redis(lua_State *lua);  /* `redis` */
void script_open_tables(lua_State *lua); /* into the table `table` on top */

/* ---- what libraries share ---- */

/* Raises {err = "ERR " .. text}; never returns. */
int script_raise(lua_State *lua, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* {err = text}, as an error reply gives; a code is put before what has none. */
void script_push_error(lua_State *lua, const char *text, size_t len);

/* Sealed tables: the table on top of the stack is replaced by one that shows what is in it and
 * cannot be changed. What libraries are given may be one of those. */
void script_seal(lua_State *lua);
bool script_is_sealed(lua_State *lua, int index); /* pushes what is behind it, if so */

/* The table on top: `name` of it becomes `wrapper` around what it was, which the wrapper calls with
 * the arguments that it was given itself. */
void script_wrap(lua_State *lua, const char *name, lua_CFunction wrapper);
int script_call_wrapped(lua_State *lua);
/* Raises the error of what would change a sealed table. */
int script_refuse_change(lua_State *lua);

/* Pushes the function that the text is, or what is wrong with it: whether it is the function. Only
 * text is loaded: Lua trusts bytecode. */
bool script_load(lua_State *lua, const char *text, size_t len, const char *name);

/* Ends the run; never returns. */
int script_leave(lua_State *lua, enum store_result result);

/* An empty buffer for a library to write into, which is not to call anything that may do the same;
 * and its bytes as a string. The bound is for the library to look at while it writes. */
struct resp_writer *script_scratch(lua_State *lua);
void script_check_scratch(lua_State *lua); /* raises an error if it is too large */
void script_push_scratch(lua_State *lua);

/* ---- replies: script_reply.c ---- */

/* The reply in state->reply as a Lua value. */
void script_push_reply(lua_State *lua, const struct resp_writer *reply);
/* The value on top of the stack as the script's reply. */
void script_write_reply(lua_State *lua, struct call *call, uint8_t script_resp);

#endif
