/*
 * Reads the commands of a pipeline before they run: their keys are prefetched together, so that the
 * waits for memory and for the device overlap, and what was found out about each command is handed
 * on, so that nothing is parsed, looked up or hashed twice.
 */
#ifndef VELLUM_READ_AHEAD_H
#define VELLUM_READ_AHEAD_H

#include "server/core/worker.h"

#define READ_AHEAD_COMMANDS 16 /* taken between two looks */
#define READ_AHEAD_ARGS 64     /* theirs together */

/* A command that has arrived. What is known of it stays true whatever the commands before it do,
 * but for the database of its key. */
struct ahead {
    const struct resp_slice *args;
    size_t count, consumed;
    const struct command *command; /* by args[0], maybe a container; NULL: there is none */
    const struct store_key *key;   /* the command_first_key; NULL: not looked at */
};

/* For one stretch of a connection's input. Everything points into itself or to the input. */
struct read_ahead {
    struct worker *worker;
    const struct session *session;
    struct ahead commands[READ_AHEAD_COMMANDS];
    uint32_t count, next;
    bool is_cut; /* what comes behind these is for the parser */
    struct resp_slice args[READ_AHEAD_ARGS];
    struct store_key keys[READ_AHEAD_COMMANDS];
};

/* is_middle: the parser has begun the first command. */
void read_ahead_begin(struct read_ahead *look, struct worker *worker, const struct session *session,
                      bool is_middle);

/* The command that begins at `data`: one that was read ahead, after reading on if there is none
 * left, or what the parser makes of the bytes. */
enum resp_status read_ahead_next(struct read_ahead *look, struct resp_parser *parser,
                                 const char *data, size_t len, const struct ahead **next);

/* Those that were read ahead behind it. */
static inline uint32_t read_ahead_left(const struct read_ahead *look)
{
    return look->count - look->next;
}

/* `count` of them are taken; returns their bytes. */
size_t read_ahead_skip(struct read_ahead *look, uint32_t count);

/* Forgets what was read ahead: other limits hold from here on. */
void read_ahead_forget(struct read_ahead *look);

#endif
