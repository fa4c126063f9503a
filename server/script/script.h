/*
 * Scripts: the server's registry of them, by the SHA-1 of their text. They run in a Lua state that
 * each worker has (script_state.h) and compiles them on demand.
 *
 * Threads: the registry may be used from any thread. A script is immutable except for `wants_all`
 * and its place in the registry, which the registry's lock protects. It lives while a reference to
 * it is held.
 */
#ifndef VELLUM_SCRIPT_H
#define VELLUM_SCRIPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "protocol/resp.h"
#include "server/base/sha1.h"

/* With more scripts than this that were added by EVAL only, the least recently used one is evicted.
 */
#define SCRIPTS_OF_EVAL_MAX 500

enum script_flags {
    SCRIPT_NO_WRITES = 1 << 0,
    SCRIPT_ALLOW_OOM = 1 << 1,
    SCRIPT_ALLOW_STALE = 1 << 2,
    SCRIPT_NO_CLUSTER = 1 << 3,
    SCRIPT_ALLOW_CROSS_SLOT = 1 << 4,
    SCRIPT_HAS_SHEBANG = 1 << 5,
};

/* The flags that code may give itself. Ends with an entry without a name. */
struct script_flag_name {
    const char *name;
    uint32_t flag;
};
extern const struct script_flag_name script_flag_names[];
uint32_t script_flag(const char *name); /* whatever the name's case; 0: there is none */

struct script {
    struct script *next;        /* in the same hash slot */
    TAILQ_ENTRY(script) by_use; /* position in the LRU list */
    bool is_loaded;             /* by SCRIPT LOAD: never evicted */
    bool is_listed;             /* in the LRU list */
    bool is_function; /* stands for a function, and is in no registry; the text is its name */
    _Atomic uint32_t holders; /* references, including the registry's */
    _Atomic bool wants_all;   /* it has used undeclared keys */
    uint32_t flags;           /* enum script_flags */
    uint64_t number;          /* unique, never reused */
    char sha[SHA1_HEX_LEN + 1];
    size_t len, code_at; /* `code_at`: after the first line if that is a shebang */
    char text[];
};

/* The fraction of maxmemory that the texts of all scripts may take. Beyond it EVAL's least
 * recently used scripts are evicted and SCRIPT LOAD is refused. */
#define SCRIPTS_TEXT_SHARE 8

struct scripts;

struct scripts *scripts_new(void); /* NULL: out of memory */
void scripts_free(struct scripts *scripts);

/* Both return a reference, or NULL. scripts_find: NULL if there is no such script. scripts_add:
 * returns the existing script if there is one; on failure NULL and what is wrong with the first
 * line, malloc'd, or NULL if memory is missing. `most`: limit for all texts, in bytes. */
struct script *scripts_find(struct scripts *scripts, const char sha[SHA1_HEX_LEN]);
struct script *scripts_add(struct scripts *scripts, struct resp_slice text, bool is_loaded,
                           uint64_t most, char **problem);
void script_release(struct script *script);
/* Stands for a function where a script is expected. NULL: out of memory. */
struct script *script_of_function(struct resp_slice name);
/* For messages: the SHA-1, or a function's name. */
static inline const char *script_name(const struct script *script)
{
    return script->is_function ? script->text : script->sha;
}

/* Removes a script that does not compile from the registry. */
void scripts_forget(struct scripts *scripts, struct script *script);
void scripts_flush(struct scripts *scripts);

uint64_t scripts_flushes(const struct scripts *scripts); /* number of flushes */
uint64_t scripts_count(const struct scripts *scripts);
uint64_t scripts_bytes(const struct scripts *scripts);
/* The change of the bytes since the last call. */
int64_t scripts_take_change(struct scripts *scripts);

#endif
