/*
 * The stored libraries of functions, as FUNCTION's subcommands read and change them.
 */
#ifndef VELLUM_FUNCTION_VALUE_H
#define VELLUM_FUNCTION_VALUE_H

#include "server/core/command.h"
#include "server/script/script_library.h"

#define FUNCTION_VALUE_SHARE 8 /* fraction of maxmemory that the libraries may take */
#define FUNCTION_LIBRARIES_MAX 10000

/* The key of the libraries, in a database that no client sees. */
void function_value_key(const struct call *call, struct store_key *key, enum store_mode mode);

/* `known`: the stamp of libraries that need not be read again, which then are not; 0: none. */
STORE_MUST_CHECK enum store_result function_value_read(struct call *call, uint64_t known,
                                                       struct libraries *libraries);

/* Both put what is left. */
STORE_MUST_CHECK enum store_result
function_value_remove(struct call *call, const struct libraries *libraries, struct resp_slice name);
STORE_MUST_CHECK enum store_result function_value_clear(struct call *call);

enum function_policy {
    FUNCTION_LOAD,    /* one library, which must be new */
    FUNCTION_RELOAD,  /* one, which may replace another */
    FUNCTION_APPEND,  /* several, which must be new */
    FUNCTION_REPLACE, /* several, which may replace others */
    FUNCTION_ALONE    /* several, which replace all */
};

/* Loads code, and stores the libraries. STORE_OK with *name: done. STORE_OK without it: an error
 * reply was written. */
STORE_MUST_CHECK enum store_result function_value_add(struct call *call,
                                                      const struct resp_slice *codes, size_t count,
                                                      enum function_policy policy,
                                                      struct resp_slice *name);

/* Lets INFO show what the store has, before the worker's thread runs. */
void function_value_show_stored(struct server *server, struct worker *worker);

#endif
