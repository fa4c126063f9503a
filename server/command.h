/*
 * What a command function sees, and the one table of all commands.
 *
 * A command is a plain function over a transaction (see storage/store.h): it reads, writes its
 * reply and puts its changes into the transaction. A read that returns anything but STORE_OK or
 * STORE_ABSENT is passed up at once: on STORE_WAIT the function is run again from the top, on the
 * rest the runner answers with the error. The reply is discarded in both cases, so a command
 * function needs no clean-up; it must have no effect besides reply and transaction.
 *
 * Commands that touch no keys and no transaction (PING, CLIENT, CONFIG ...) are CMD_LOCAL: they run
 * once, with txn == NULL.
 */
#ifndef VELLUM_COMMAND_H
#define VELLUM_COMMAND_H

#include "../protocol/resp.h"
#include "../storage/store.h"

struct server;
struct worker;
struct session;
struct command;

/* Item types as kept in the engine; part of the data format: never renumber. */
enum item_type { TYPE_STRING = 0, TYPE_LIST = 1, TYPE_SET = 2, TYPE_ZSET = 3, TYPE_HASH = 4 };

struct call {
    struct server *server;
    struct worker *worker;
    struct session *session;
    const struct command *command;
    struct store_txn *txn;
    struct resp_writer *reply;
    size_t argc;
    const struct resp_slice *argv; /* argv[0] is the command's name */
    const struct store_key *keys;  /* the declared keys, in the order of their arguments */
    uint32_t key_count;
    int64_t now_ms;       /* fixed at first entry, the same in every rerun */
    uint64_t random_seed; /* likewise */
    uint64_t cursor;      /* CMD_STEPS: progress kept between steps; 0 at first */
};

typedef enum store_result command_fn(struct call *call);

enum command_flags {
    CMD_WRITE = 1 << 0,
    CMD_READONLY = 1 << 1,
    CMD_DENYOOM = 1 << 2,
    CMD_ADMIN = 1 << 3,
    CMD_NOSCRIPT = 1 << 4,
    CMD_LOADING = 1 << 5,
    CMD_STALE = 1 << 6,
    CMD_FAST = 1 << 7,
    CMD_NO_AUTH = 1 << 8,
    CMD_LOCAL = 1 << 9,     /* no transaction */
    CMD_ALL_KEYS = 1 << 10, /* scope STORE_SCOPE_ALL */
    CMD_NO_KEYS = 1 << 11,  /* scope STORE_SCOPE_NONE: scans and counters */
    CMD_TOUR = 1 << 12,     /* visits every worker in turn: see worker.h */
    CMD_NO_MULTI = 1 << 13,
    CMD_MOVABLE_KEYS = 1 << 14,
    CMD_PUBSUB = 1 << 15,
    CMD_BLOCKING = 1 << 16,
    CMD_SKIP_MONITOR = 1 << 17,
};

struct command {
    const char *name; /* lower case; subcommands stand under their container as "config|get" */
    command_fn *run;  /* NULL for a container of subcommands */
    int arity;        /* as Redis: the name included, negative: at least */
    uint32_t flags;
    int first_key, last_key,
        key_step;    /* as Redis's COMMAND: last < 0 counts from the end; 0: none */
    const char *acl; /* ACL categories besides those the flags imply, space separated */
    const char *since;
    const char *group; /* COMMAND DOCS: "string", "generic", "bitmap", "connection", "server" */
    const char *complexity;
    const char *summary;
};

/* All commands and subcommands, sorted by group; command_count of them. */
extern const struct command command_table[];
extern const size_t command_count;

/* Case-insensitive; NULL if unknown. command_find_sub looks below a container. */
const struct command *command_find(struct resp_slice name);
const struct command *command_find_sub(const struct command *container, struct resp_slice name);
bool command_is_container(const struct command *command);
bool command_arity_ok(const struct command *command, size_t argc);

/* ---- helpers that command functions share ---- */

bool slice_is(struct resp_slice slice, const char *text); /* case-insensitive */

/* Each answers with Redis's error and returns false when the argument is not what it should be. */
bool call_int64(struct call *call, struct resp_slice arg, int64_t *value); /* "-ERR value is not an
                                                                 integer or out of range" */
bool call_syntax_error(struct call *call);                                 /* always false */
bool call_wrong_type(struct call *call);                                   /* always false */

/* store_get and a check of the type: on another type than `type` answers WRONGTYPE, sets *done and
 * returns STORE_OK. */
enum store_result call_get(struct call *call, const struct store_key *key, enum item_type type,
                           struct store_item *item, bool *done);

/* Writes a value as a bulk reply; a large one is streamed from the store after the reply's other
 * bytes, so that its length never stands in memory. */
enum store_result call_reply_item(struct call *call, const struct store_item *item);

#endif
