/*
 * What a run of a transaction has written so far, by key: a nested call may only go on where it
 * stopped in the run before (`progress`, a reply that was kept) if the same writes to its keys have
 * come before it in both runs. Scripts may go another way in each run, since some of what they see
 * is not held by key locks: PUBSUB NUMSUB, INFO.
 *
 * Threads: belongs to the request's thread.
 */
#ifndef VELLUM_WRITTEN_H
#define VELLUM_WRITTEN_H

#include <stdbool.h>
#include <stdint.h>

struct call;
struct store_key;

#define WRITTEN_KEYS 16 /* told apart; writes to others count for every key */

struct written {
    struct written_key {
        uint64_t hash, path; /* of the key; of the writes to it, in order */
        uint32_t db;
    } keys[WRITTEN_KEYS];
    uint32_t count;
    uint64_t others; /* the path of all other writes */
};

void written_clear(struct written *written);

/* The call has succeeded. `what`: the same only for the same command with the same arguments. */
void written_note(struct written *written, const struct call *call, uint64_t what);
uint64_t written_hash(const struct call *call); /* such a value */

/* Whether it is told apart, and has been written to; false: it has not, or that is not known. */
bool written_has(const struct written *written, const struct store_key *key);

/* Equal, but for chance, only if the call's keys are the same and the same has been written to
 * them. */
uint64_t written_path(const struct written *written, const struct call *call);

#endif
