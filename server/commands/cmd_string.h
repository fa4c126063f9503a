/*
 * Common to the commands on strings: sizes, views of a part of a value, writes at an offset.
 */
#ifndef VELLUM_CMD_STRING_H
#define VELLUM_CMD_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/core/command.h"

/* A string as found by a command. An absent one has length 0. */
struct string_value {
    struct store_item item; /* only if `exists` */
    uint64_t length;
    bool exists;
};

/* STORE_ANSWERED: the key has another type. */
enum store_result string_find(struct call *call, const struct store_key *key,
                              struct string_value *value);

/* The same, but always counted as a keyspace lookup, for a key that the command may also write. */
enum store_result string_look_up(struct call *call, const struct store_key *key,
                                 struct string_value *value);

/* Reports a change of the first key, which was found in this state. "new", if it applies, precedes
 * the event. */
void string_notify(struct call *call, const struct string_value *value, const char *event);

/* The longest string a command may build: proto-max-bulk-len, but at most the store's limit. */
uint64_t string_limit(const struct call *call);

/* If `length` bytes at `offset` would exceed the limit, replies with the error and returns false.
 */
bool string_fits(struct call *call, uint64_t offset, uint64_t length);

/* Overwrites from `offset` on, and fills with zeros if the string was shorter or absent. Type and
 * expiry are kept. `bytes` must live until the request is finished. */
enum store_result string_write(struct call *call, const struct store_key *key,
                               const struct string_value *value, uint64_t offset, const char *bytes,
                               size_t len);

/* Clips a range as clients give it, where negative positions count from the end, to [0, total).
 * False: nothing is left. */
bool string_range(int64_t *first, int64_t *last, int64_t total);

/* Whether both positions are negative and in the wrong order. GETRANGE and BITCOUNT take such a
 * range as empty even if clipping would leave the first position; BITPOS does not. */
bool string_range_is_backwards(int64_t first, int64_t last);

#endif
