/*
 * Walks over keys in order, for tests of directories with ordered keys: what a walk shows has to be
 * what a scan of the hash index shows.
 */
#ifndef VELLUM_TEST_STORAGE_ORDERED_WALK_H
#define VELLUM_TEST_STORAGE_ORDERED_WALK_H

#include "storage/ordered.h"
#include "tests/storage/harness.h"

struct ordered_name {
    char *bytes;
    uint32_t len;
};

struct ordered_names {
    struct ordered_name *at;
    uint32_t count;
    size_t capacity;
};
void ordered_names_free(struct ordered_names *names);

/* The names that a walk with these options shows to a client at this time. */
enum store_result ordered_walk(struct rig *rig, const struct store_range_options *options,
                               int64_t now_ms, struct ordered_names *names);
/* Both directions, over the whole database; nobody writes meanwhile, but keys may expire. */
void ordered_compare(struct rig *rig, uint32_t db);

#endif
