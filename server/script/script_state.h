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

#include <lua.h>

#include "server/core/command.h"
#include "server/script/script.h"
#include "server/script/script_cjson.h"

struct worker;

/* The most that the states of all workers may hold together, with what the commands of their runs
 * have until those end, and their replies; and besides that what a library writes: a share of
 * memory, but no more than SCRIPT_MEMORY_MAX. */
#define SCRIPT_MEMORY_SHARE 2
#define SCRIPT_MEMORY_MAX (256u * 1024 * 1024)

#define SCRIPT_HOOK_INSTRUCTIONS 2000 /* between two looks up */

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
    lua_Hook hook;            /* looks up */
    bool is_hooked;           /* it is in Lua */
    int hook_instructions;    /* between two looks up */
    uint32_t
        tick_weight; /* of each script_check_clock: 1, or more as there are fewer instructions */
    uint32_t ticks;  /* of script_check_clock, by weight */
    uint64_t began_nsec;
    uint64_t pause_nsec; /* when to look at the clock again, at the earliest */
    uint16_t random[3];
    uint32_t logged; /* lines */
    struct script_json json;
};

/* Without libraries and hook (script_run.c). NULL: out of memory. */
struct script_state *script_state_new(struct worker *worker);
void script_state_free(struct script_state *state); /* or NULL */
/* Has the hook called after `hook_instructions`. */
void script_set_hook(lua_State *lua, const struct script_state *state);

size_t script_memory_max(const struct script_state *state);
/* So much is kept now for the run's commands; false: it is too much for another one. */
bool script_note_commands(struct script_state *state, const struct call *outer);
/* The reply is going to be so long; false: it is too much. */
bool script_note_reply(struct script_state *state, size_t bytes);
/* After a run or a compilation: what is not held any more is for others. */
void script_settle_memory(struct script_state *state);

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

/* An empty buffer for a library to write into, which is not to call anything that may do the same;
 * and its bytes as a string. The bound is for the library to look at while it writes. */
struct resp_writer *script_scratch(lua_State *lua);
void script_check_scratch(lua_State *lua); /* raises an error if it is too large */
void script_push_scratch(lua_State *lua);

#endif
