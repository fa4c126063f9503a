/*
 * A worker's Lua state, in which its scripts run one after the other.
 *
 * A run leaves no trace in the state, because a script is run again from the start whenever it
 * meets a page that is not in memory. Everything that it could modify is sealed (script_seal.c),
 * random numbers are reseeded, and the effects of its commands belong to the transaction or the
 * request.
 *
 * A run that is ended early (it has to wait, or was killed) is unwound by a Lua error that no Lua
 * code can catch: see `is_over` and script_base.c.
 *
 * Threads: a state belongs to its worker's thread.
 */
#ifndef VELLUM_SCRIPT_STATE_H
#define VELLUM_SCRIPT_STATE_H

#include <lua.h>

#include "server/core/command.h"
#include "server/script/script.h"
#include "server/script/script_cjson.h"

struct effects;
struct function_index;
struct loaded_function;
struct worker;

/* The limit for the Lua states of all workers, including the memory of the commands that their runs
 * execute (until those runs end) and their replies. It is a fraction of memory, but at most
 * SCRIPT_MEMORY_MAX. The output buffer of a library is limited to the same size separately. */
#define SCRIPT_MEMORY_SHARE 2
#define SCRIPT_MEMORY_MAX (256u * 1024 * 1024)

#define SCRIPT_HOOK_INSTRUCTIONS 2000 /* between two interrupt checks */

struct script_state {
    lua_State *lua;
    struct worker *worker;
    size_t bytes;               /* allocated by Lua */
    size_t command_bytes;       /* memory of the run's commands, including that in the store */
    size_t reply_bytes;         /* of the script's reply, while it is written */
    int64_t noted_bytes;        /* Lua, commands and reply, as reported to the store */
    size_t granted;             /* this state's part of script_memory_max() */
    bool is_unbounded;          /* briefly without a limit */
    uint64_t flushes;           /* the registry's count when the state was created */
    uint32_t compiled;          /* number of functions kept */
    struct resp_writer reply;   /* of a command that a script runs */
    struct resp_writer scratch; /* output buffer of libraries */
    struct resp_slice *args;    /* of a command that a script runs */
    size_t arg_capacity;

    /* the run */
    struct call *call; /* NULL: no run */
    struct script *script;
    uint8_t client_version; /* of RESP, outside the run */
    bool is_readonly;
    bool allows_oom;     /* commands that add data may run */
    bool is_over_memory; /* at the beginning */
    bool has_written;
    bool is_over;             /* the run is void; see `result` */
    enum store_result result; /* why; STORE_OK: it was killed */
    lua_Hook hook;            /* checks for interrupts */
    bool is_hooked;           /* the hook is set in Lua */
    bool has_arguments;       /* KEYS and ARGV are set */
    int hook_instructions;    /* between two interrupt checks */
    uint32_t tick_weight;     /* of a script_check_clock(): larger if instructions are slow */
    uint32_t ticks;           /* weighted calls of script_check_clock() */
    uint64_t began_nsec;
    uint64_t pause_nsec; /* the earliest time of the next clock check */
    uint16_t random[3];
    uint32_t logged; /* lines written */
    struct script_json json;

    /* functions, see script_function.h */
    bool registers;               /* the code of a library is running */
    uint64_t register_until;      /* it is ended then */
    struct effects *load_effects; /* of FUNCTION LOAD; NULL: what the code logs is ignored */
    const struct function_index *functions; /* in Lua's memory; NULL: not loaded */
    uint64_t functions_stamp;               /* of the libraries that they are from */
    struct loaded_function *function;       /* the run's; NULL: a script's run */
};

/* Without libraries and hook; script_run.c adds them. NULL: out of memory. */
struct script_state *script_state_new(struct worker *worker);
void script_state_free(struct script_state *state); /* or NULL */
/* Makes Lua call the hook every `hook_instructions`. */
void script_set_hook(lua_State *lua, const struct script_state *state);

size_t script_memory_max(const struct script_state *state);
/* Accounts the memory of the run's commands. False: too much to run another one. */
bool script_note_commands(struct script_state *state, const struct call *outer);
/* Accounts a reply of this length in advance. False: it is too long. */
bool script_note_reply(struct script_state *state, size_t bytes);
/* Called after a run or a compilation: returns unused memory to the other workers. */
void script_settle_memory(struct script_state *state);

/* A value in Lua's registry, whose key is this address. The second one takes it from the stack. */
void script_push_kept(lua_State *lua, const void *key);
void script_keep(lua_State *lua, const void *key);

static inline struct script_state *script_state_of(lua_State *lua)
{
    void *state;
    lua_getallocf(lua, &state);
    return state;
}

/* Whether a single instruction of this run may take unusually long. */
static inline bool script_has_large_blocks(const struct script_state *state)
{
    return state->tick_weight > 1;
}

/* script_scratch() returns an empty output buffer for a library, which must not call anything that
 * may use it too. script_push_scratch() pushes its bytes as a string. The library must check the
 * limit while it writes. */
struct resp_writer *script_scratch(lua_State *lua);
void script_check_scratch(lua_State *lua); /* raises an error if it takes too much memory */
void script_push_scratch(lua_State *lua);

#endif
