/*
 * What a store should hold: every key of a few databases, in plain memory. Calls are applied to it
 * in the order of their commits; what they found in the store must be what the oracle has.
 */
#ifndef VELLUM_TEST_STORAGE_ORACLE_H
#define VELLUM_TEST_STORAGE_ORACLE_H

#include "tests/storage/harness.h"

#define ORACLE_DBS 3u
#define ORACLE_KEYS 400u

struct oracle_entry {
    struct blob *blob; /* NULL: absent */
    int64_t expire_ms;
    uint8_t type;
};

struct oracle {
    struct oracle_entry entries[ORACLE_DBS][ORACLE_KEYS];
};

/* The name of key `id`; their lengths differ, and some are long keys. Returns the length. */
uint32_t oracle_name(uint32_t id, char name[CALL_NAME_MAX]);
/* The id that has this name, or ORACLE_KEYS. */
uint32_t oracle_id(const char *name, uint32_t len);
/* Declares key `id` of `db` in the call. */
uint32_t oracle_key(struct call *call, uint32_t db, uint32_t id);

/* Applies the call's steps and, with `compare`, checks what they found. Returns whether it has
 * certainly changed something, and so has a commit of its own. */
bool oracle_apply(struct oracle *oracle, const struct call *call, bool compare);

bool oracle_lives(const struct oracle_entry *entry, int64_t now_ms);
void oracle_copy(struct oracle *to, const struct oracle *from);
void oracle_clear(struct oracle *oracle);

/* Every key, a whole scan and the counts. */
void oracle_compare(struct oracle *oracle, struct rig *rig);

#endif
