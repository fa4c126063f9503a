/*
 * A worker's Lua state and the account of its memory. Threads: see script_state.h.
 *
 * Invariant: Lua never has more memory than it was granted, except briefly while `is_unbounded`.
 */
#include "server/script/script_state.h"

#include <assert.h>
#include <lauxlib.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "server/core/server.h"
#include "server/core/session.h"
#include "server/core/worker.h"
#include "server/exec/nested.h"

#define HOOK_FEWEST 10
#define HUGE_PAGE ((size_t)2 << 20)
/* Bytes. One instruction may walk a whole block, so between two interrupt checks at most this many
 * bytes per instruction are allowed: HOOK_BLOCK * SCRIPT_HOOK_INSTRUCTIONS. */
#define HOOK_BLOCK (64 * 1024)
#define SCRATCH_KEPT (64 * 1024)
#define GRANT_BYTES ((size_t)64 * 1024)
#define NOTE_STEP (256 * 1024) /* smaller changes need not be reported to the store at once */
#define GRANT_ALWAYS ((size_t)1024 * 1024) /* for the libraries and a small script */

/* ---- memory ---- */

void script_set_hook(lua_State *lua, const struct script_state *state)
{
    lua_sethook(lua, state->hook, LUA_MASKCOUNT, state->hook_instructions);
}

/* Instructions may take longer the larger the script's blocks are, so the hook must run more often.
 */
static void note_block(struct script_state *state, size_t size)
{
    assert(size > HOOK_BLOCK && state->call != NULL);
    int most = (int)((uint64_t)SCRIPT_HOOK_INSTRUCTIONS * HOOK_BLOCK / size);
    if (most < HOOK_FEWEST)
        most = HOOK_FEWEST;
    if (most >= state->hook_instructions)
        return;
    state->hook_instructions = most;
    state->tick_weight = (uint32_t)(SCRIPT_HOOK_INSTRUCTIONS / most);
    script_set_hook(state->lua, state);
}

size_t script_memory_max(const struct script_state *state)
{
    uint64_t memory =
        atomic_load_explicit(&state->worker->server->memory_bound, memory_order_relaxed);
    uint64_t share = memory / SCRIPT_MEMORY_SHARE;
    return share < SCRIPT_MEMORY_MAX ? share : SCRIPT_MEMORY_MAX;
}

/* The transaction's memory is known to the store already. */
static void tell_store(struct script_state *state, uint64_t apart)
{
    size_t bytes = state->bytes + state->reply_bytes + state->scratch.capacity;
    int64_t change = (int64_t)(bytes + apart) - state->noted_bytes;
    if (change < NOTE_STEP && change > -NOTE_STEP)
        return;
    state->noted_bytes += change;
    store_note_memory(state->worker->server->store, change);
}

/* Whether Lua may have `bytes`. Memory is granted in units, so that workers do not contend for the
 * counter at every block; each is reported, since a script may take much in small blocks. */
static bool is_granted(struct script_state *state, size_t bytes)
{
    if (bytes <= state->granted || state->is_unbounded)
        return true;
    _Atomic uint64_t *of_all = &state->worker->server->script_bytes;
    size_t more = (bytes - state->granted + GRANT_BYTES - 1) / GRANT_BYTES * GRANT_BYTES;
    uint64_t before = atomic_fetch_add_explicit(of_all, more, memory_order_relaxed);
    if (bytes > GRANT_ALWAYS && (before + more > script_memory_max(state) ||
                                 !store_has_memory(state->worker->server->store, more))) {
        atomic_fetch_sub_explicit(of_all, more, memory_order_relaxed);
        return false;
    }
    state->granted += more;
    if (state->call != NULL)
        tell_store(state, state->call->nested_calls->bytes);
    return true;
}

static size_t all_bytes(const struct script_state *state)
{
    return state->bytes + state->command_bytes + state->reply_bytes + state->scratch.capacity;
}

static bool is_within_grant(struct script_state *state)
{
    if (is_granted(state, all_bytes(state)))
        return true;
    lua_gc(state->lua, LUA_GCCOLLECT, 0);
    return is_granted(state, all_bytes(state));
}

bool script_note_commands(struct script_state *state, const struct call *outer)
{
    assert(state->call == outer);
    state->command_bytes = outer->nested_calls->bytes + store_memory(outer->txn);
    tell_store(state, outer->nested_calls->bytes);
    return is_within_grant(state);
}

/* Called after a run: returns unused grants to the other workers. */
static void give_grants_back(struct script_state *state)
{
    size_t kept = (state->bytes + GRANT_BYTES - 1) / GRANT_BYTES * GRANT_BYTES;
    if (kept >= state->granted)
        return;
    atomic_fetch_sub_explicit(&state->worker->server->script_bytes, state->granted - kept,
                              memory_order_relaxed);
    state->granted = kept;
}

static void keep_scratch_small(struct script_state *state)
{
    if (state->scratch.failed || state->scratch.capacity > SCRATCH_KEPT)
        resp_writer_free(&state->scratch);
}

void script_settle_memory(struct script_state *state)
{
    state->command_bytes = state->reply_bytes = 0;
    keep_scratch_small(state);
    give_grants_back(state);
    tell_store(state, 0);
    atomic_store_explicit(&state->worker->script.bytes, state->bytes, memory_order_relaxed);
}

/* Called before a large block is filled. */
static void make_room(struct script_state *state)
{
    assert(state->call != NULL);
    tell_store(state, state->call->nested_calls->bytes);
    store_make_room(state->call->txn);
}

bool script_note_reply(struct script_state *state, size_t bytes)
{
    if (bytes < state->reply_bytes + NOTE_STEP)
        return true;
    const struct server *server = state->worker->server;
    uint64_t limit = atomic_load_explicit(&server->client_limit, memory_order_relaxed);
    if (bytes > limit && !state->call->session->no_evict) /* the client would be closed */
        return false;
    state->reply_bytes = bytes;
    make_room(state);
    return is_within_grant(state);
}

/* A large string is written at once, by a function of C: it takes a page fault for each page. */
static void use_huge_pages(char *block, size_t size)
{
    uintptr_t begin = ((uintptr_t)block + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)block + size) & ~(HUGE_PAGE - 1);
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

static void *allocate(void *arg, void *block, size_t old_size, size_t size)
{
    struct script_state *state = arg;
    if (size == 0) {
        free(block);
        assert(state->bytes >= old_size);
        state->bytes -= old_size;
        return NULL;
    }
    if (size > old_size && !is_granted(state, all_bytes(state) + (size - old_size)))
        return NULL;
    void *moved = realloc(block, size);
    if (moved != NULL)
        state->bytes += size - old_size;
    if (moved != NULL && size >= 2 * HUGE_PAGE)
        use_huge_pages(moved, size);
    if (size > HOOK_BLOCK && state->is_hooked)
        note_block(state, size);
    if (size >= old_size + NOTE_STEP && state->is_hooked)
        make_room(state);
    return moved;
}

struct resp_writer *script_scratch(lua_State *lua)
{
    struct script_state *state = script_state_of(lua);
    keep_scratch_small(state);
    resp_truncate(&state->scratch, 0);
    return &state->scratch;
}

void script_check_scratch(lua_State *lua)
{
    struct script_state *state = script_state_of(lua);
    const struct resp_writer *scratch = &state->scratch;
    if (scratch->failed || scratch->len > script_memory_max(state) || !is_within_grant(state))
        luaL_error(lua, "not enough memory");
}

void script_push_scratch(lua_State *lua)
{
    struct resp_writer *scratch = &script_state_of(lua)->scratch;
    script_check_scratch(lua);
    lua_pushlstring(lua, scratch->data, scratch->len);
}

/* ---- lifecycle ---- */

struct script_state *script_state_new(struct worker *worker)
{
    struct script_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return NULL;
    state->worker = worker;
    resp_writer_init(&state->reply, 2);
    resp_writer_init(&state->scratch, 2);
    state->flushes = scripts_flushes(worker->server->scripts);
    state->lua = lua_newstate(allocate, state);
    if (state->lua != NULL)
        return state;
    script_state_free(state);
    return NULL;
}

void script_state_free(struct script_state *state)
{
    if (state == NULL)
        return;
    assert(state->call == NULL); /* no run */
    if (state->lua != NULL)
        lua_close(state->lua);
    assert(state->bytes == 0);
    store_note_memory(state->worker->server->store, -state->noted_bytes);
    give_grants_back(state);
    resp_writer_free(&state->reply);
    resp_writer_free(&state->scratch);
    free(state->args);
    free(state);
}

void script_push_kept(lua_State *lua, const void *key)
{
    lua_pushlightuserdata(lua, (void *)key);
    lua_rawget(lua, LUA_REGISTRYINDEX);
}

void script_keep(lua_State *lua, const void *key)
{
    lua_pushlightuserdata(lua, (void *)key);
    lua_insert(lua, -2);
    lua_rawset(lua, LUA_REGISTRYINDEX);
}
