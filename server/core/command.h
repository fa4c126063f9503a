/*
 * The interface of command functions, and the table of all commands.
 *
 * A command is a plain function over a transaction (see storage/store.h): it reads, writes its
 * reply and puts its changes into the transaction. If a read returns anything but STORE_OK or
 * STORE_ABSENT, the function returns that result at once: on STORE_WAIT it is run again from the
 * top, on other results the runner answers with the error. The reply is discarded in both cases, so
 * a command function needs no clean-up. It must have no effects besides the reply, the transaction,
 * and those deferred until the writes are committed (call_notify).
 *
 * Commands that access no keys and no transaction (PING, CLIENT, CONFIG ...) are CMD_LOCAL: they
 * run once, with txn == NULL.
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
struct store_prefetch_hint;
struct upload;

/* Item types as kept in the engine; part of the data format: never renumber. */
enum item_type {
    TYPE_STRING = 0,
    TYPE_LIST = 1,
    TYPE_SET = 2,
    TYPE_ZSET = 3,
    TYPE_HASH = 4,
    TYPE_STREAM = 5
};

/*
 * Besides the type, the byte has flags for the encoding in which Redis would keep the value, for
 * OBJECT ENCODING; the store's own representation depends on the size alone. As in Redis, encodings
 * are only upgraded. Part of the data format, too.
 */
#define ITEM_TYPE_MASK 0x0f
/* A string that was modified in place: Redis would have reserved room for further changes, so its
 * encoding is `raw` whatever its length. */
#define ITEM_RAW 0x80
/* A collection that has outgrown Redis's compact form: quicklist, hashtable, skiplist. */
#define ITEM_BIG 0x40
/* A set that has only ever held integers and is not ITEM_BIG: intset. */
#define ITEM_INTEGERS 0x20
/* A hash of which some field has, or has had, an expiry: listpackex. */
#define ITEM_TIMED 0x10
/* A string that stays text although it reads as an integer: not `int`. */
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
    struct upload *upload;         /* the uploaded value, whose argument is empty; or NULL: none */
    const struct store_key *keys;  /* the declared keys, in argument order */
    uint32_t key_count;
    int64_t now_ms;       /* the same in every rerun; renewed after a blocking wait */
    uint64_t random_seed; /* the same in every rerun */

    /* Kept over reruns, for commands that work in steps (KEYS): the results collected so far. 0
     * and NULL at first. progress_free(progress) is called, if both are set, when the request is
     * freed (call_drop_progress). */
    uint64_t cursor;
    void *progress;
    void (*progress_free)(void *progress);
    bool progress_lasts; /* it is complete: a rerun may start from it */

    /* Keyspace look-ups of this run, counted by commands. Cleared before each run, and added to
     * INFO's statistics after the last. */
    uint32_t hits, misses;

    /* The effects of the run besides reply and transaction: see effects.h. Discarded before each
     * run. */
    struct effects *effects;
    /* The call that this one is nested in, as part of the same transaction; NULL: none. And the
     * calls nested in this one: see nested.h. */
    struct call *outer;
    struct nested_calls *nested_calls;

    /* The next commands, which this run may batch, their number, and the number of commands batched
     * so far: see call_next_in_batch in batch.h. */
    const struct ahead *batch;
    uint32_t batch_left, batch_taken;

    /* CMD_ALL_WORKERS: the function is called once on each worker's thread, with `worker` being
     * that worker, and on the connection's own worker last. `reply`, `cursor` and `progress` are
     * kept during the whole broadcast. `session` may be written by the last call only; before it,
     * only fields that no command changes may be read. txn is NULL. */
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
    CMD_ALL_WORKERS = 1 << 12, /* visits every worker in turn: see struct call */
    CMD_NO_MULTI = 1 << 13,
    CMD_MOVABLE_KEYS = 1 << 14,
    CMD_PUBSUB = 1 << 15,
    CMD_BLOCKING = 1 << 16,
    CMD_SKIP_MONITOR = 1 << 17,
    CMD_CONTAINER = 1 << 18, /* its subcommands are the table entries after it, as "config|get" */
    CMD_ALLOW_BUSY = 1 << 19,
    CMD_OTHER_DB = 1 << 20, /* may access a key in another database: see call_table_keys */
    CMD_SKIP_SLOWLOG = 1 << 21,
    CMD_LOCAL_IDEMPOTENT = 1 << 22, /* CMD_LOCAL and harmless to repeat: in a transaction it runs in
                                       order, while other CMD_LOCAL commands are deferred */
    CMD_NESTS = 1 << 23,            /* runs nested commands: see nested.h */
    CMD_NOT_QUEUED = 1 << 24,       /* runs at once after MULTI */
    CMD_SUBSCRIBED = 1 << 25,       /* allowed to subscribers also in RESP2 */
    CMD_PUSHES = 1 << 26,           /* replies with pushes, which CLIENT REPLY does not silence */
    CMD_CACHES_RESULT = 1 << 27, /* CMD_READONLY, but stores a computed result: locks as a writer */
    CMD_STORE_OPTION = 1 << 28,  /* the option STORE is followed by a key, as in SORT */
    CMD_KEYS_OPTIONAL = 1 << 29, /* for COMMAND: the count of keys may be 0 */
    CMD_NO_TOUCH = 1 << 30,      /* its key look-ups do not count as accesses */
};

/* Called once, before the first run: declares the keys that the table's positions do not name, in
 * the request's `keys` and `store` (see request.h). False: out of memory. */
typedef bool declare_fn(struct call *call);

/* Whether a call may change data or tell others something, if its flags do not say so. Of `call`
 * only server, worker, command and arguments are set. */
typedef bool may_write_fn(struct call *call);

/* The tree positions that a command will look up, as far as its arguments tell: fills
 * `prefetch_hints`, of PROBES_MOST, and returns their number. `before`: number of earlier commands
 * that may remove elements from the ends first. */
#define PROBES_MOST 2 /* of one command */
typedef uint32_t prefetch_hints_fn(const struct store *store, const struct ahead *ahead,
                                   uint32_t before, struct store_prefetch_hint *prefetch_hints);

/* What lower rooms must know of a command beyond its flags. */
enum command_role {
    ROLE_NONE,
    ROLE_EXEC,
    ROLE_SELECT,
    ROLE_PUBLISH,      /* has an effect beyond its reply */
    ROLE_TOUCH,        /* its look-ups count as accesses even under CLIENT NO-TOUCH */
    ROLE_COPY,         /* CMD_OTHER_DB: its option DB names the second key's database */
    ROLE_CLIENT,       /* its subcommands do not use up CLIENT CACHING */
    ROLE_CLIENT_REPLY, /* answered even if its reply was to be skipped */
    ROLE_EVALSHA,      /* runs a cached script, named by its digest */
    ROLE_GEORADIUS,    /* CMD_STORE_OPTION: STOREDIST is followed by a key, too */
};

/* Which arguments MONITOR and SLOWLOG redact. */
enum command_redact {
    REDACT_NOTHING,
    REDACT_ALL,        /* all but the name */
    REDACT_AFTER_AUTH, /* the two after the word AUTH */
    REDACT_PASSWORDS,  /* values of directives that are passwords */
};

/* The key flags of a call, if they depend on its arguments. */
struct variable_flags {
    int from;                   /* index of the first option */
    const char *options;        /* space separated */
    const char *with, *without; /* the flags of a call with one of the options, or with none */
};

struct command {
    const char *name; /* lower case; subcommands stand under their container as "config|get" */
    command_fn *run;  /* NULL for a container that cannot be called by itself */
    int arity;        /* as Redis: the name included, negative: at least */
    uint32_t flags;
    int first_key, last_key,
        key_step;    /* as Redis's COMMAND: last < 0 counts from the end; 0: none */
    const char *acl; /* ACL categories besides those implied by the flags, space separated */
    const char *since;
    const char *group; /* COMMAND DOCS: "string", "generic", "bitmap", "connection", "server" */
    const char *complexity;
    const char *summary;
    const char *syntax;    /* of its arguments, see command_syntax.h; NULL: it has none */
    const char *key_flags; /* COMMAND's key specs: flags, space separated. ';' separates several
                              specs: each but the last is about one key, the last about the rest.
                              After '?' stand those of keys that the arguments do not name, after
                              "@6 STORE" those of the key after the word STORE, the seventh or a
                              later argument */
    struct variable_flags variable; /* of commands with the key flag "variable_flags" */
    const char *tips;               /* COMMAND's tips, space separated; NULL: none */
    const char *deprecated; /* COMMAND DOCS: version, a space, what replaces it; NULL: it is not */
    const char *history; /* COMMAND DOCS: a line for each change since, beginning with its version;
                            NULL: none */
    int key_count_at;    /* index of the argument that is the number of the keys after it, besides
                            those at first_key to last_key (and with the last part of key_flags); 0:
                            none */
    int streams_at;      /* index from which the option STREAMS is sought: the first half of the
                            arguments after it are keys; 0: none */
    declare_fn *declare; /* NULL: the positions above name all keys */
    may_write_fn *may_write; /* NULL: see command_has_effect */
    int value_at; /* index of the argument that, if long, is uploaded while it arrives: see
                     upload.h; 0: none */
    /* Look-ups in the key's trees, for prefetching: the index of the argument that is a member, and
     * of its new score (0: none); whether the member's old score is looked up next; whether the
     * command takes the first or the last element instead. */
    int member_at, score_at;
    bool follows_score, takes_first, takes_last;
    prefetch_hints_fn *prefetch_hints; /* for these five columns; NULL: none is set */
    enum command_role role;
    enum command_redact redact;
};

/*
 * Finds commands by name: an open-addressing hash table over the lower-cased names, built once at
 * start (rename-command renames or removes some) and read-only from then on. Owned by struct
 * server.
 */
#define COMMAND_INDEX_SLOTS 1024

struct command_slot {
    const char *name; /* lower case; NULL: empty slot */
    uint32_t len, row;
};

struct command_index {
    const struct command *table;
    size_t count; /* entries of the table */
    struct command_slot slots[COMMAND_INDEX_SLOTS];
};

/* `table` ends with an entry without a name. Subcommands are not in the index; `renames` may be
 * empty. Keeps pointers to the names given and to the table. Returns NULL, or the error in the
 * renames. */
STORE_MUST_CHECK const char *command_index_build(struct command_index *index,
                                                 const struct command *table,
                                                 const struct command_rename *renames,
                                                 size_t rename_count);

/* Case-insensitive; NULL if unknown. command_find_sub searches the subcommands of a container. */
const struct command *command_find(const struct command_index *index, struct resp_slice name);
const struct command *command_find_sub(const struct command *container, struct resp_slice name);
/* Whether it can be called at all: rename-command may have removed it. */
bool command_is_reachable(const struct command_index *index, const struct command *command);
static inline bool command_is_container(const struct command *command)
{
    return (command->flags & CMD_CONTAINER) != 0;
}
static inline bool command_arity_ok(const struct command *command, size_t argc)
{
    return command->arity >= 0 ? argc == (size_t)command->arity : argc >= (size_t)-command->arity;
}

/* Besides its reply: it may change data, or send messages. */
static inline bool command_has_effect(const struct command *command)
{
    return (command->flags & (CMD_WRITE | CMD_CACHES_RESULT)) != 0 || command->role == ROLE_PUBLISH;
}

static inline bool command_has_keys(const struct command *command)
{
    return command->first_key != 0 || command->key_count_at != 0 || command->streams_at != 0;
}

/* For a subcommand that rejects its arguments by itself: "-ERR unknown subcommand or wrong number
 * of arguments ..."; always false. */
bool call_wrong_subcommand(struct call *call);

/* The reply to a container's HELP: a heading, `lines` (up to NULL), and HELP's own line. */
void call_help(struct call *call, const char *const *lines);

#endif
