/*
 * Commands that run inside another command's transaction. The outer call (EXEC's) has a nest, in
 * which they stand in the order in which they run:
 *
 *     nested_calls_begin      at the start of each run of the outer function
 *     nested_run      each command, in the transaction of the outer call
 *     nested_defer    a command without transaction (CMD_LOCAL), but those that are
 * CMD_LOCAL_IDEMPOTENT: it runs when the transaction has been committed, and only then, so that it
 * has its effects once, and none if nothing else happens; its reply goes to the place where it was
 * deferred
 *
 * What the function of a nested command returns is passed up as always: STORE_WAIT lets everything
 * run again from the top. Each nested call keeps its own `progress` over the reruns, until it has
 * ended. A nested command that fails by itself (a damaged value, a key too long) answers so,
 * without its writes, and those that follow it run on.
 *
 * Threads: a nest belongs to the thread of its request.
 */
#ifndef VELLUM_NESTED_H
#define VELLUM_NESTED_H

#include "server/base/input_buffer.h"
#include "server/core/command.h"
#include "server/core/errorstats.h"
#include "server/exec/collector.h"

struct request;
struct watch;

/* Arguments of a command that stand apart from it, since they may outlive it. */
struct nested_args {
    struct nested_args *next;
    uint64_t bytes; /* of memory */
    struct resp_slice argv[];
};

struct nested {
    struct call call; /* the outer one is call.outer */
    struct nested *next;
    uint64_t place;             /* nested_calls_call: its number in the run */
    struct nested_args *args;   /* or NULL */
    struct input_buffer *block; /* what the arguments lie in; NULL: in here */
    uint64_t bytes;             /* of memory, arguments included */
    uint64_t nsec;              /* what it took, for all calls that its time stands for */
    uint64_t slow_from;         /* when it began, see slowlog.h; 0: nobody asks */
    uint64_t took_ns;           /* from then on until it ended for the first time */
    bool is_timed;              /* it has */
    bool has_run;               /* or will, if it is deferred */
    bool is_ended;              /* in this run or an earlier one */
    char *kept;                 /* the reply of a walk in steps: it is not made again; or NULL */
    size_t kept_len;            /* of it: counted in `bytes` where it is short, */
    struct collected collected; /* or else here */
    bool is_deferred;
    size_t gap;                /* deferred: its place, from the start of the outer reply */
    enum store_result failure; /* why it failed in an earlier run; that run was thrown away */
    char error[ERRORSTATS_CODE_MAX + 2]; /* the beginning of its reply, if that is an error */
    struct resp_slice argv[];
};

/* INFO's figures of commands that were forgotten, or refused, of one kind and outcome. */
struct nested_calls_tally {
    const struct command *command;
    uint64_t calls, nsec, hits, misses;
    char error[ERRORSTATS_CODE_MAX + 2]; /* its code */
    bool is_refused;                     /* the command, which may be NULL, has not run */
};

struct nested_calls {
    struct nested *first, *last;
    uint32_t count;
    uint64_t bytes;      /* theirs */
    uint64_t slow_bytes; /* nested_calls_call: of those that SLOWLOG is to show, in this run */
    bool is_aborted;     /* EXEC: a command could not be queued */
    struct watch *watch; /* EXEC: what must not have changed; NULL: nothing */
    struct nested
        *passed; /* nested_calls_call: the last one of this run; NULL: there is none yet */
    struct nested *before;    /* and the one before it */
    uint64_t place;           /* of the next one */
    struct nested_args *args; /* of those that this run has forgotten, and its writes refer to */
    struct nested_calls_tally *tallies; /* of all that it has forgotten */
    uint32_t tally_count;
    size_t tally_capacity;
    uint64_t random;
    uint64_t began_nsec; /* a script: its first run */
    bool is_checked;     /* EXEC: the watched keys have been looked at */
    bool has_begun;
    bool error_is_counted; /* a script: its reply is an error that one of its commands has given */
    bool wait_is_counted;  /* EXEC: as part of its first command's time */
    uint32_t db;           /* the session's, at the beginning */
    uint8_t resp_version;
    bool defers;                  /* this run has deferred some */
    struct nested *next_deferred; /* the first that may still have to run */
    size_t shift;                 /* what the deferred replies have put into the outer one */
    struct resp_writer reply;     /* of the deferred one that runs */
};

struct nested_calls *nested_calls_new(void); /* NULL: out of memory */
void nested_calls_free(struct nested_calls *nested_calls);

/* A command with its arguments, the nest's own from here on: in `block`, if they are long and it
 * is given, or copied. NULL: out of memory. */
struct nested *nested_calls_add(struct nested_calls *nested_calls, const struct command *command,
                                size_t argc, const struct resp_slice *argv,
                                struct input_buffer *block);

/* The command's long value, if it has one, is the nested one's from here on, and counts as if it
 * were in memory: nobody's disk is to be filled by what is only queued. */
void nested_calls_take_upload(struct nested_calls *nested_calls, struct nested *nested,
                              struct call *from);

/* All that is in it will run inside `outer`, whose nest it is from here on: it ends with the
 * outer request. */
void nested_calls_settle(struct nested_calls *nested_calls, struct call *outer);

void nested_calls_begin(struct call *outer);
STORE_MUST_CHECK enum store_result nested_run(struct nested *nested, struct resp_writer *reply);
void nested_defer(struct nested *nested);

/*
 * For an outer command that does not know beforehand what it will run (a script): the next nested
 * command of this run; the one that stood there in the run before, if it is the same, else one that
 * is made now. NULL: out of memory. The nest is made empty and settled before the first run. A
 * command that is CMD_LOCAL but not CMD_LOCAL_IDEMPOTENT cannot be run like this.
 *
 * A run may have millions of them. nested_calls_forget: the last one has run, and is forgotten, if
 * there is nothing about it that the next run would have to know. refers: what the transaction is
 * to do may refer to its arguments, which are kept then.
 */
struct nested *nested_calls_call(struct call *outer, const struct command *command, size_t argc,
                                 const struct resp_slice *argv);
void nested_calls_forget(struct nested_calls *nested_calls, bool refers);
/* A command that this run does not run, and why: "-ERR ...". NULL: there is none of that name. */
void nested_calls_refuse(struct nested_calls *nested_calls, const struct command *command,
                         const char *error);
/* Before nested_run: names its keys, in the session's database as it is then. STORE_INVALID, to be
 * passed up: the outer request has not declared them; it will run again with everything. */
STORE_MUST_CHECK enum store_result nested_declare(struct nested *nested);

static inline bool nested_is_local(const struct nested *nested)
{
    const uint32_t flags = nested->call.command->flags;
    return (flags & (CMD_LOCAL | CMD_ALL_WORKERS)) != 0 && (flags & CMD_LOCAL_IDEMPOTENT) == 0;
}

/* ---- after the transaction ---- */

/* Prepares the next deferred command; NULL: there is none. The caller runs its function. */
struct call *nested_calls_next_deferred(struct nested_calls *nested_calls);

/* Its function has returned this: the reply goes to its place. */
void nested_calls_finish_deferred(struct call *call, enum store_result result);

/* The nested commands' part of INFO. */
void nested_calls_account(const struct nested_calls *nested_calls, struct worker *worker);

#endif
