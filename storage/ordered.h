/*
 * The engine's public interface, continued: walking the keys of a database in the order of their
 * bytes. Only in a directory that keeps this order, which costs every commit that adds or removes a
 * key a change of a tree (store_options.ordered_keys; decision 022).
 *
 * A walk is an object of its own, which outlives the runs of its request: it reads a batch of each
 * partition's keys and merges them. So it shows each partition as of the moment of each batch, not
 * one moment of all. Keys that are in the range all the time are shown once, in order.
 *
 * Two keys of more than STORE_TREE_KEY_MAX - 8 bytes that agree in that many are in an order of the
 * store's own.
 */
#ifndef VELLUM_ORDERED_H
#define VELLUM_ORDERED_H

#include "storage/store.h"

/* The keys between two others, each excluded or not; NULL: no bound. */
struct store_range_bound {
    const char *bytes;
    uint32_t len;
    bool is_excluded;
};

struct store_range_options {
    uint32_t db;
    struct store_range_bound low, high;
    bool is_reverse; /* from high to low */
    uint64_t skip;   /* so many keys at first */
    uint64_t most;   /* how many keys the caller is going to ask for, at most */
    /* NULL: keys alone; or whether the value of an item of this type is wanted. */
    bool (*wants_value)(uint8_t type);
    uint64_t loaded_most; /* as in store_load_within, for large values */
};

/* Valid until the next call. */
struct store_range_entry {
    const char *key, *value; /* value NULL: not wanted, or it has none */
    uint32_t key_len;
    uint64_t value_len;
};

struct store_range;

bool store_is_ordered(const struct store *store);
/* NULL: out of memory. The bounds are copied. */
struct store_range *store_range_new(struct store *store, const struct store_range_options *options);
/* In a run with STORE_SCOPE_NONE that has written nothing: the next key that has not expired.
 * STORE_ABSENT at the end. After STORE_WAIT the next run of the same request goes on where this one
 * was. STORE_DAMAGED, STORE_IO, STORE_NO_MEMORY. Keys whose items are damaged are skipped. */
STORE_MUST_CHECK enum store_result
store_range_next(struct store_txn *txn, struct store_range *range, struct store_range_entry *entry);
uint64_t store_range_bytes(const struct store_range *range); /* the memory that it takes */
void store_range_free(struct store_range *range);            /* at any time, not within a call */

#endif
