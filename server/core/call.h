/*
 * Determines the keys and the scope of a call before it runs; and helpers shared by command
 * functions.
 */
#ifndef VELLUM_CALL_H
#define VELLUM_CALL_H

#include "server/core/command.h"

/* The arguments [*begin, *end) that are the keys counted by key_count_at, or follow STREAMS; none
 * if the command will not accept the count. */
void command_counted_keys(const struct command *command, size_t argc, const struct resp_slice *argv,
                          size_t *begin, size_t *end);

/* Index of the argument that is the first key; 0: the table names none. It may be beyond the last
 * argument. */
size_t command_first_key(const struct command *command, size_t argc, const struct resp_slice *argv);

/* Index of the argument that is the key of CMD_STORE_OPTION; 0: none. */
size_t command_store_key(const struct command *command, size_t argc, const struct resp_slice *argv);

/* An upper bound of the number of keys that call_table_keys finds. */
size_t call_most_keys(const struct command *command, size_t argc);

/*
 * The keys of a command that runs in database `db`, by the table's positions: fills `keys` (room
 * for call_most_keys) and returns their number. `known`: the command_first_key if it has been
 * hashed already, for any database; or NULL.
 */
uint32_t call_table_keys(const struct store *store, const struct command *command, size_t argc,
                         const struct resp_slice *argv, uint32_t db, const struct store_key *known,
                         struct store_key *keys);
/* Whether the command only reads one of call->keys, as its `key_flags` say. */
bool call_only_reads(const struct call *call, const struct store_key *key);

/* Runs the command's function once. A reply written by one of its helpers (STORE_ANSWERED) counts
 * as success. */
static inline enum store_result call_run(struct call *call)
{
    enum store_result result = call->command->run(call);
    return result == STORE_ANSWERED ? STORE_OK : result;
}

enum store_scope command_scope(const struct command *command);

/* Frees what the call kept over reruns. */
void call_drop_progress(struct call *call);

/* ---- helpers that command functions share ---- */

const char *call_type_name(uint8_t type); /* of an item, as TYPE names it: "string" */

bool slice_is(struct resp_slice slice, const char *text); /* case-insensitive */

/* Each answers with Redis's error and returns false if the argument is invalid. call_int64_from:
 * with `error`, whatever is wrong. */
bool call_int64(struct call *call, struct resp_slice arg, int64_t *value);
bool call_int64_between(struct call *call, struct resp_slice arg, int64_t least, int64_t most,
                        int64_t *value);
bool call_int64_from(struct call *call, struct resp_slice arg, int64_t least, const char *error,
                     int64_t *value);
/* `error`: NULL for Redis's usual one. */
bool call_double(struct call *call, struct resp_slice arg, const char *error, double *value);
bool call_count(struct call *call, struct resp_slice arg, int64_t *value); /* not negative */
bool call_syntax_error(struct call *call);                                 /* always false */
bool call_wrong_type(struct call *call);                                   /* always false */

/* For a command that describes those it is given: no client needs so many names, and the reply,
 * many times as long, is made at once. True: the error has been written. */
bool call_too_many_names(struct call *call);

/* Seconds, with fractions; milliseconds. */
bool call_timeout(struct call *call, struct resp_slice arg, int64_t *timeout_ms);
bool call_timeout_ms(struct call *call, struct resp_slice arg, int64_t *timeout_ms);

/* Whether look-ups count as accesses of the keys, for eviction. */
bool call_counts_access(const struct call *call);

/* Compares the names alone, not the databases. */
bool call_same_name(const struct store_key *a, const struct store_key *b);

/* The elements from position `from` to `to` (counted from the end if negative) of a sequence of
 * `total`: *count elements from *first on. */
void rank_range(int64_t from, int64_t to, uint64_t total, uint64_t *first, uint64_t *count);

#endif
