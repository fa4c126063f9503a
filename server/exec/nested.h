/*
 * Commands that run inside another command's transaction. The outer call (EXEC's) has a list of
 * nested calls, in the order in which they run:
 *
 *     nested_calls_begin  at the start of each run of the outer function
 *     nested_run          each command, in the transaction of the outer call
 *     nested_defer        a command without transaction (CMD_LOCAL, but not CMD_LOCAL_IDEMPOTENT)
 *
 * A deferred command runs only after the transaction has been committed, so that it takes effect
 * exactly once, and not at all if the transaction fails. Its reply is inserted at the place where
 * it was deferred.
 *
 * The result of a nested command's function is passed up as always: STORE_WAIT repeats everything
 * from the top. Each nested call keeps its own `progress` over the reruns until it has ended. A
 * nested command that fails by itself (a damaged value, a key too long) answers with its error,
 * without its writes, and the commands after it still run.
 *
 * Threads: nested calls belong to the thread of their request.
 */
#ifndef VELLUM_NESTED_H
#define VELLUM_NESTED_H

#include <sys/queue.h>

#include "server/base/input_buffer.h"
#include "server/core/command.h"
#include "server/core/errorstats.h"
#include "server/core/collected.h"
#include "server/exec/declared_keys.h"
#include "server/exec/written.h"

struct request;
struct watch;

struct nested {
    struct call call; /* its outer call is call.outer */
    TAILQ_ENTRY(nested) link;
    uint64_t place;             /* nested_calls_call: its number in the run */
    struct nested_args *args;   /* or NULL */
    struct input_buffer *block; /* the arguments lie in it; NULL: in this struct */
    uint64_t bytes;             /* of memory, arguments included */
    uint64_t nsec;              /* its time, multiplied by the number of calls it is a sample of */
    uint64_t slow_from;         /* start of its time, see slowlog.h; 0: not measured */
    uint64_t took_ns;           /* from then until its first end */
    bool is_timed;              /* took_ns is set */
    uint32_t weight;            /* the number of calls in nsec */
    uint64_t path;              /* of the writes before it, when it last ran (written.h) */
    bool has_run;               /* or is deferred, and will run */
    bool is_ended;              /* in this run or an earlier one */
    char *kept;      /* the reply of a walk in steps or a script that is not repeated; or NULL */
    size_t kept_len; /* if short, it is counted in `bytes`, */
    struct collected collected; /* otherwise here */
    bool is_deferred;
    size_t gap;                          /* deferred: offset of its reply in the outer reply */
    enum store_result failure;           /* why it failed in an earlier run, which was discarded */
    char error[ERRORSTATS_CODE_MAX + 2]; /* the start of its reply, if an error */
    struct resp_slice argv[];
};

struct nested_calls {
    TAILQ_HEAD(, nested) list;
    uint32_t count;
    uint64_t bytes;           /* of all nested calls */
    uint64_t block_bytes;     /* EXEC: of these, in the connection's own input blocks */
    uint64_t slow_bytes;      /* nested_calls_call: of the calls kept for SLOWLOG in this run */
    bool is_aborted;          /* EXEC: a command could not be queued */
    struct watch *watch;      /* EXEC: the watched keys; NULL: none */
    struct nested *passed;    /* nested_calls_call: the last one of this run; NULL: none yet */
    struct nested *before;    /* the one before it */
    uint64_t place;           /* of the next one */
    uint32_t restarts;        /* how often a run differed from the one before */
    struct nested_args *args; /* of dropped calls, but referred to by this run's writes */
    struct nested_calls_tally *tallies; /* of all dropped calls */
    uint32_t tally_count;
    size_t tally_capacity;
    uint64_t random;
    uint64_t began_nsec; /* a script: its first run */
    bool is_checked;     /* EXEC: the watched keys have been checked */
    bool has_begun;
    bool has_effects;      /* a script: this run has done more than read */
    bool error_is_counted; /* a script: its error reply comes from one of its commands */
    bool wait_is_counted;  /* EXEC: as part of its first command's time */
    uint32_t db;           /* the session's, at the beginning */
    uint8_t resp_version;
    bool defers;                  /* this run has deferred commands */
    struct nested *next_deferred; /* the first that may still have to run */
    size_t shift;                 /* bytes inserted into the outer reply by deferred replies */
    struct resp_writer reply;     /* of the deferred command that is running */
    struct written written;       /* of the outermost list: by this run */
    struct declared_keys declared_keys; /* of the outermost list */
};

/* EXEC has failed: what its commands have done to the session (SELECT, HELLO) is undone. */
void nested_calls_undo(const struct call *outer);

struct nested_calls *nested_calls_new(void); /* NULL: out of memory */
void nested_calls_free(struct nested_calls *nested_calls);

/* Adds a command with its arguments, which the list owns from here on: by a hold on `block`, if
 * they are long and it is given, or as a copy. NULL: out of memory. */
struct nested *nested_calls_add(struct nested_calls *nested_calls, const struct command *command,
                                size_t argc, const struct resp_slice *argv,
                                struct input_buffer *block);

/* The sum of its arguments' lengths. */
uint64_t nested_argument_bytes(const struct nested *nested);

/* Moves the command's long value, if it has one, to the nested call. It counts as if it were in
 * memory, so that queued commands cannot fill the device. */
void nested_calls_take_upload(struct nested_calls *nested_calls, struct nested *nested,
                              struct call *from);

/* All listed commands will run inside `outer`, which owns the list from here on and frees it with
 * its request. */
void nested_calls_settle(struct nested_calls *nested_calls, struct call *outer);

void nested_calls_begin(struct call *outer);
/* Before the outer call runs in another transaction: what its calls have found in the one before
 * may have changed. */
void nested_calls_begin_anew(struct nested_calls *nested_calls);
STORE_MUST_CHECK enum store_result nested_run(struct nested *nested, struct resp_writer *reply);
void nested_defer(struct nested *nested);

/*
 * For an outer command that does not know in advance what it will run (a script): returns the next
 * nested command of this run. It is the one at the same position in the previous run, if equal, or
 * else a new one. NULL: out of memory. The list is created empty and settled before the first run.
 * A command that is CMD_LOCAL but not CMD_LOCAL_IDEMPOTENT cannot be run like this.
 *
 * A run may have millions of them. nested_calls_forget: the last one has run, and is dropped unless
 * the next run needs to know something about it. refers: the transaction's writes may refer to its
 * arguments, which are kept then.
 */
struct nested *nested_calls_call(struct call *outer, const struct command *command, size_t argc,
                                 const struct resp_slice *argv);
void nested_calls_forget(struct nested_calls *nested_calls, bool refers);
/* Its run has ended: calls that only earlier runs have reached do not count. */
void nested_calls_end(struct nested_calls *nested_calls);
/* A command that this run refuses, with the error "-ERR ...". NULL: no command has that name. */
void nested_calls_refuse(struct nested_calls *nested_calls, const struct command *command,
                         const char *error);
/* Before nested_run: declares its keys, in the session's database as of now. STORE_INVALID, to be
 * passed up: the outer request has not declared them; it will run again with all keys. */
STORE_MUST_CHECK enum store_result nested_declare(struct nested *nested);

static inline bool nested_is_local(const struct nested *nested)
{
    const uint32_t flags = nested->call.command->flags;
    return (flags & (CMD_LOCAL | CMD_ALL_WORKERS)) != 0 && (flags & CMD_LOCAL_IDEMPOTENT) == 0;
}

/* ---- after the transaction ---- */

/* Prepares the next deferred command; NULL: none is left. The caller runs its function. */
struct call *nested_calls_next_deferred(struct nested_calls *nested_calls);

/* The deferred command's function has returned `result`: inserts its reply. */
void nested_calls_finish_deferred(struct call *call, enum store_result result);

/* Adds the nested commands to INFO's statistics, and those inside them. */
void nested_calls_account(const struct nested_calls *nested_calls, struct worker *worker);

#endif
