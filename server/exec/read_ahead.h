/*
 * Reads the commands of a pipeline before they run. Their keys are prefetched together, so that the
 * waits for memory and device overlap. The results are passed on with each command, so that
 * nothing is parsed, looked up or hashed twice.
 */
#ifndef VELLUM_READ_AHEAD_H
#define VELLUM_READ_AHEAD_H

#include "server/core/worker.h"

#define READ_AHEAD_COMMANDS 16 /* commands per read-ahead */
#define READ_AHEAD_ARGS 64     /* of all of them */

/* A command that has arrived. All its fields stay valid whatever the commands before it do, except
 * for the database of its key. */
struct ahead {
    const struct resp_slice *args;
    size_t count, consumed;
    const struct command *command; /* by args[0], maybe a container; NULL: unknown command */
    const struct store_key *key;   /* the command_first_key; NULL: not determined */
};

/* For one stretch of a connection's input. All pointers lead into this struct or into the input. */
struct read_ahead {
    struct worker *worker;
    const struct session *session;
    struct ahead commands[READ_AHEAD_COMMANDS];
    uint32_t count, next;
    bool is_cut; /* the input after these commands is for the parser */
    struct resp_slice args[READ_AHEAD_ARGS];
    struct store_key keys[READ_AHEAD_COMMANDS];
};

/* is_middle: the parser is in the middle of the first command. */
void read_ahead_begin(struct read_ahead *look, struct worker *worker, const struct session *session,
                      bool is_middle);

/* Returns the command that begins at `data`: from the read-ahead, which is refilled if it is used
 * up, or else from the parser. */
enum resp_status read_ahead_next(struct read_ahead *look, struct resp_parser *parser,
                                 const char *data, size_t len, const struct ahead **next);

/* Commands that were read ahead after the current one. */
static inline uint32_t read_ahead_left(const struct read_ahead *look)
{
    return look->count - look->next;
}

/* Takes `count` of them; returns their bytes. */
size_t read_ahead_skip(struct read_ahead *look, uint32_t count);

/* Discards the read-ahead: other limits apply from here on. */
void read_ahead_forget(struct read_ahead *look);

#endif
