/*
 * Scripts: the server's registry of them, by the SHA-1 of their text. What runs them is a Lua state
 * of each worker's own, see script_state.h, which compiles them when it needs them.
 *
 * Threads: the registry is everybody's. A script does not change but for `wants_all`, and lives
 * while it is held.
 */
#ifndef VELLUM_SCRIPT_H
#define VELLUM_SCRIPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "protocol/resp.h"
#include "server/base/sha1.h"

/* Beyond so many scripts that only EVAL has brought, the one not used for longest is forgotten. */
#define SCRIPTS_OF_EVAL_MAX 500

enum script_flags {
    SCRIPT_NO_WRITES = 1 << 0,
    SCRIPT_ALLOW_OOM = 1 << 1,
    SCRIPT_ALLOW_STALE = 1 << 2,
    SCRIPT_NO_CLUSTER = 1 << 3,
    SCRIPT_ALLOW_CROSS_SLOT = 1 << 4,
    SCRIPT_HAS_SHEBANG = 1 << 5,
};

struct script {
    struct script *next;        /* of the same slot */
    TAILQ_ENTRY(script) by_use; /* EVAL's */
    bool is_loaded;             /* by SCRIPT LOAD: it stays */
    bool is_listed;             /* among EVAL's */
    _Atomic uint32_t holders;   /* the registry is one */
    _Atomic bool wants_all;     /* has used keys that were not declared */
    uint32_t flags;             /* enum script_flags */
    uint64_t number;            /* no other script has or had it */
    char sha[SHA1_HEX_LEN + 1];
    size_t len, code_at; /* `code_at`: behind the first line, if that is a shebang */
    char text[];
};

/* What the texts of all scripts may take, of maxmemory. EVAL's oldest ones are forgotten beyond it,
 * and SCRIPT LOAD is refused. */
#define SCRIPTS_TEXT_SHARE 8

struct scripts;

struct scripts *scripts_new(void); /* NULL: out of memory */
void scripts_free(struct scripts *scripts);

/* Both hold it; NULL: there is none. scripts_add gives the one that is there, if there is one; or
 * NULL, and an error reply: about its first line, or memory. `most`: bytes for all. */
struct script *scripts_find(struct scripts *scripts, const char sha[SHA1_HEX_LEN]);
#define SCRIPT_PROBLEM_MAX 160
struct script *scripts_add(struct scripts *scripts, struct resp_slice text, bool is_loaded,
                           uint64_t most, char problem[SCRIPT_PROBLEM_MAX]);
void script_release(struct script *script);

/* Out of the registry: its text is no script after all. */
void scripts_forget(struct scripts *scripts, struct script *script);
void scripts_flush(struct scripts *scripts);

uint64_t scripts_flushes(const struct scripts *scripts); /* how often */
uint64_t scripts_count(const struct scripts *scripts);
uint64_t scripts_bytes(const struct scripts *scripts);
/* By how much the bytes have changed since the last call. */
int64_t scripts_take_change(struct scripts *scripts);

#endif
