/*
 * What the commands on strings share: sizes, views of a part of a value, writes at an offset.
 */
#ifndef VELLUM_CMD_STRING_H
#define VELLUM_CMD_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/core/command.h"

/* A string as a command finds it: an absent one has length 0. */
struct string_value {
    struct store_item item; /* only if `exists` */
    uint64_t length;
    bool exists;
};

/* STORE_ANSWERED: there is no string but another type. */
enum store_result string_find(struct call *call, const struct store_key *key,
                              struct string_value *value);

/* The same, counted as a keyspace lookup whatever the command's flags: for commands that write, and
 * yet show what they found. */
enum store_result string_look_up(struct call *call, const struct store_key *key,
                                 struct string_value *value);

/* The command changes its first key, which was found so; "new" stands before the event. */
void string_notify(struct call *call, const struct string_value *value, const char *event);

/* Longest string a command may build: proto-max-bulk-len, but no more than the store keeps. */
uint64_t string_limit(const struct call *call);

/* Answers with an error and returns false if `length` bytes at `offset` end beyond the limit. */
bool string_fits(struct call *call, uint64_t offset, uint64_t length);

/* Overwrites from `offset` on, with zeros before where the string was shorter or absent. Type and
 * expiry stay. `bytes` must live until the request is finished. */
enum store_result string_write(struct call *call, const struct store_key *key,
                               const struct string_value *value, uint64_t offset, const char *bytes,
                               size_t len);

/* A range as clients give it, negative positions counted from the end: cut to [0, total). False if
 * nothing is left of it. */
bool string_range(int64_t *first, int64_t *last, int64_t total);

/* Both from the end, and in the wrong order. GETRANGE and BITCOUNT take such a range as empty even
 * where cutting would leave the first position; BITPOS does not. */
bool string_range_is_backwards(int64_t first, int64_t last);

#endif
