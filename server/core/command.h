/*
 * What a command function sees, and the one table of all commands.
 *
 * A command is a plain function over a transaction (see storage/store.h): it reads, writes its
 * reply and puts its changes into the transaction. A read that returns anything but STORE_OK or
 * STORE_ABSENT is passed up at once: on STORE_WAIT the function is run again from the top, on the
 * rest the runner answers with the error. The reply is discarded in both cases, so a command
 * function needs no clean-up; it must have no effect besides reply, transaction and what is put off
 * until the writes are committed (call_notify).
 *
 * Commands that touch no keys and no transaction (PING, CLIENT, CONFIG ...) are CMD_LOCAL: they run
 * once, with txn == NULL.
 */
#ifndef VELLUM_COMMAND_H
#define VELLUM_COMMAND_H

#include "protocol/resp.h"
#include "storage/store.h"

struct server;
struct worker;
struct session;
struct ahead;
struct command_rename;
struct command;
struct effects;
struct nested_calls;
struct upload;

/* Item types as kept in the engine; part of the data format: never renumber. */
enum item_type { TYPE_STRING = 0, TYPE_LIST = 1, TYPE_SET = 2, TYPE_ZSET = 3, TYPE_HASH = 4 };

/*
 * Beside the type stand bits about the form in which Redis would keep the value, for OBJECT
 * ENCODING; how the store keeps it goes by its size alone. Forms only grow, as in Redis. Part of
 * the data format, too.
 */
#define ITEM_TYPE_MASK 0x0f
/* A string that was changed in place: whatever its length, Redis would have made room for more
 * changes, and the name is `raw`. */
#define ITEM_RAW 0x80
/* A collection that has outgrown Redis's compact form: quicklist, hashtable, skiplist. */
#define ITEM_BIG 0x40
/* A set in which there have only been integers, and which is not ITEM_BIG: intset. */
#define ITEM_INTEGERS 0x20
/* A string that is text although it may read as an integer: not `int`. */
#define ITEM_TEXT 0x20

static inline enum item_type item_type(const struct store_item *item)
{
    return (enum item_type)(item->type & ITEM_TYPE_MASK);
}

struct call {
    struct server *server;
    struct worker *worker;
    struct session *session;
    const struct command *command;
    struct store_txn *txn;
    struct resp_writer *reply;
    size_t argc;
    const struct resp_slice *argv; /* argv[0] is the command's name */
    struct upload *upload;        /* where the value is, its argument being empty; or NULL: there */
    const struct store_key *keys; /* the declared keys, in the order of their arguments */
    uint32_t key_count;
    int64_t now_ms;       /* fixed at first entry, the same in every rerun */
    uint64_t random_seed; /* likewise */

    /* Kept over reruns, for commands that work in steps (KEYS): what is collected so far. 0 and
     * NULL at first. The runner calls progress_free(progress), if both are set, when the request
     * ends. */
    uint64_t cursor;
    void *progress;
    void (*progress_free)(void *progress);
    bool progress_lasts; /* it is whole: when another run is needed it may begin with that */

    /* Keyspace lookups of this run, counted by commands. The runner clears them before each run and
     * adds them to INFO's figures after the last. */
    uint32_t hits, misses;

    /* What the run does besides reply and transaction: see effects.h. Discarded before each run. */
    struct effects *effects;
    /* The call this one runs inside, as part of the same transaction; NULL: none. And what runs
     * inside this one: see nested.h. */
    struct call *outer;
    struct nested_calls *nested_calls;

    /* Commands that this run may go on with, and how many it has: see batch.h and
     * call_next_in_batch. */
    const struct ahead *batch;
    uint32_t batch_left, batch_taken;

    /* CMD_ALL_WORKERS: the function is called once on each worker's thread, `worker` being the one
     * whose turn it is, last on the connection's own. `reply`, `cursor` and `progress` live through
     * the whole tour; `session` may be written on the last call only (its fields that no command
     * changes may be read before). txn is NULL. */
    uint32_t broadcast_index; /* 0 at the first call, then 1, 2 ... */
    bool broadcast_last;
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
    CMD_LOCAL = 1 << 9,        /* no transaction */
    CMD_ALL_KEYS = 1 << 10,    /* scope STORE_SCOPE_ALL */
    CMD_NO_KEYS = 1 << 11,     /* scope STORE_SCOPE_NONE: scans and counters */
    CMD_ALL_WORKERS = 1 << 12, /* visits every worker in turn: see worker.h */
    CMD_NO_MULTI = 1 << 13,
    CMD_MOVABLE_KEYS = 1 << 14,
    CMD_PUBSUB = 1 << 15,
    CMD_BLOCKING = 1 << 16,
    CMD_SKIP_MONITOR = 1 << 17,
    CMD_CONTAINER = 1 << 18, /* its subcommands are the following rows, as "config|get" */
    CMD_ALLOW_BUSY = 1 << 19,
    CMD_OTHER_DB = 1 << 20, /* may touch a key in another database: see call_table_keys */
    CMD_SKIP_SLOWLOG = 1 << 21,
    CMD_LOCAL_IDEMPOTENT = 1 << 22, /* CMD_LOCAL and harmless to run again: inside a transaction it
                               runs in its turn, where other CMD_LOCAL commands run behind it */
    CMD_NESTS = 1 << 23,            /* runs other commands inside itself: see nested.h */
    CMD_NOT_QUEUED = 1 << 24,       /* after MULTI it is not queued, but runs */
    CMD_SUBSCRIBED = 1 << 25,       /* allowed to subscribers also in RESP2 */
    CMD_PUSHES = 1 << 26,           /* replies in pushes, which CLIENT REPLY does not silence */
    CMD_CACHES_RESULT = 1 << 27,    /* CMD_READONLY, yet writes down what it has found out: its keys
                                   are    held as a writer's */
    CMD_STORE_OPTION = 1 << 28,     /* a key stands behind the option STORE, as SORT has it */
    CMD_KEYS_OPTIONAL = 1 << 29,    /* as COMMAND tells: their count may be 0 */
    CMD_NO_TOUCH = 1 << 30,         /* looking at a key this way is no use of it */
};

/* Once, before the first run: declares the keys that the table's positions do not tell, in the
 * request's `keys` and `store` (see request.h). False: out of memory. */
typedef bool declare_fn(struct call *call);

/* What a command is going to look at in the trees of its key, as far as its arguments tell: fills
 * `probes`, and returns how many there are. `before`: so many commands may take elements from the
 * ends first. */
#define PROBES_MOST 2 /* of one command */
typedef uint32_t prefetch_hints_fn(const struct store *store, const struct ahead *ahead,
                                   uint32_t before,
                                   struct store_prefetch_hint prefetch_hints[PROBES_MOST]);

/* What the rooms below commands/ have to know of a command beyond its flags. */
enum command_role {
    ROLE_NONE,
    ROLE_EXEC,
    ROLE_SELECT,
    ROLE_PUBLISH,      /* PUBLISH and SPUBLISH: has an effect beyond its reply */
    ROLE_TOUCH,        /* looking at a key is a use of it, whatever CLIENT NO-TOUCH says */
    ROLE_COPY,         /* CMD_OTHER_DB: its option DB names the second key's database */
    ROLE_CLIENT_REPLY, /* heard although the reply before it was to be skipped */
    ROLE_EVALSHA,      /* its script is a cached one, named by its digest */
};

/* Which of its arguments MONITOR and SLOWLOG do not show. */
enum command_redact {
    REDACT_NOTHING,
    REDACT_ALL,        /* but the name */
    REDACT_AFTER_AUTH, /* the two behind the word AUTH */
    REDACT_PASSWORDS,  /* values of directives that are passwords */
};

/* A call's key flags where they depend on its arguments. */
struct variable_flags {
    int from;                   /* the argument where options begin */
    const char *options;        /* space separated */
    const char *with, *without; /* the flags of a call with one of them, or with none */
};

struct command {
    const char *name; /* lower case; subcommands stand under their container as "config|get" */
    command_fn *run;  /* NULL for a container that cannot be called by itself */
    int arity;        /* as Redis: the name included, negative: at least */
    uint32_t flags;
    int first_key, last_key,
        key_step;    /* as Redis's COMMAND: last < 0 counts from the end; 0: none */
    const char *acl; /* ACL categories besides those the flags imply, space separated */
    const char *since;
    const char *group; /* COMMAND DOCS: "string", "generic", "bitmap", "connection", "server" */
    const char *complexity;
    const char *summary;
    const char *syntax;    /* of its arguments, see command_syntax.h; NULL: it has none */
    const char *key_flags; /* COMMAND's key specs: flags, space separated. Several specs are divided
                              by ';': each but the last is about one key, the last about the rest;
                              behind '?' stand those of keys that arguments alone do not tell */
    struct variable_flags variable; /* of commands with the key flag "variable_flags" */
    const char *tips;               /* COMMAND's tips, space separated; NULL: none */
    const char *deprecated; /* COMMAND DOCS: version, a space, what replaces it; NULL: it is not */
    int key_count_at;    /* argument that tells how many keys follow it, besides those at first_key
                            to last_key (and with the last part of key_flags); 0: none does */
    declare_fn *declare; /* NULL: the positions above are all */
    int value_at; /* argument that, if it is long, goes to its place while it arrives: see upload.h;
                     0: none does */
    /* What it looks up in its key's trees, for fetching ahead: the argument that is a member, and
     * the one that is its new score; 0: none is. The member's old score leads further. Or it takes
     * the element at an end of the order. */
    int member_at, score_at;
    bool follows_score, takes_first, takes_last;
    prefetch_hints_fn *prefetch_hints; /* of these five columns; NULL: none is set */
    enum command_role role;
    enum command_redact redact;
};

/*
 * Where to find a command by name: an open-addressing hash over the lower-cased names, built once
 * at start (rename-command gives some other names, or none) and read-only from then on. Owned by
 * struct server.
 */
#define COMMAND_INDEX_SLOTS 1024

struct command_slot {
    const char *name; /* lower case; NULL: empty slot */
    uint32_t len, row;
};

struct command_index {
    const struct command *table;
    size_t count; /* rows of the table */
    struct command_slot slots[COMMAND_INDEX_SLOTS];
};

/* `table`: rows, and one without a name behind them. Subcommands are not in the index; `renames`
 * may be empty. Keeps pointers into the names given, and the table. Returns NULL, or what is wrong
 * with the renames. */
STORE_MUST_CHECK const char *command_index_build(struct command_index *index,
                                                 const struct command *table,
                                                 const struct command_rename *renames,
                                                 size_t rename_count);

/* Case-insensitive; NULL if unknown. command_find_sub looks below a container. */
const struct command *command_find(const struct command_index *index, struct resp_slice name);
const struct command *command_find_sub(const struct command *container, struct resp_slice name);
/* Whether it can be found at all: rename-command may have taken it away. */
bool command_is_reachable(const struct command_index *index, const struct command *command);
static inline bool command_is_container(const struct command *command)
{
    return (command->flags & CMD_CONTAINER) != 0;
}
static inline bool command_arity_ok(const struct command *command, size_t argc)
{
    return command->arity >= 0 ? argc == (size_t)command->arity : argc >= (size_t)-command->arity;
}

static inline bool command_has_keys(const struct command *command)
{
    return command->first_key != 0 || command->key_count_at != 0;
}

/* Of a subcommand that refuses its arguments by itself: "-ERR unknown subcommand or wrong number of
 * arguments ..."; always false. */
bool call_wrong_subcommand(struct call *call);

/* The answer to a container's HELP: a heading, `lines` (up to NULL), and HELP's own line. */
void call_help(struct call *call, const char *const *lines);

#endif
