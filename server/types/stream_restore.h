/*
 * Stores a stream that was decoded from RDB. A large one goes in steps to a bulk load, as in
 * bulk_store.h:
 *
 *     stream_restore_is_large(): call stream_restore_go_on() until STORE_OK (pass up all other
 *     results), then stream_restore_put(); otherwise stream_restore_at_once().
 *
 * Invariant: between runs the bulk load contains what is before `at`.
 */
#ifndef VELLUM_STREAM_RESTORE_H
#define VELLUM_STREAM_RESTORE_H

#include "server/core/command.h"
#include "server/types/rdb_stream_read.h"
#include "storage/collections.h"

/* How far it is: in the entries, then in the groups. */
struct stream_restore_place {
    struct rdb_stream_walk walk;  /* unused until has_begun */
    bool has_begun, has_entries;  /* all of them */
    bool has_group, has_consumer; /* the current one is made */
    bool is_over;
    uint64_t group, consumer, pending; /* the current ones; pending entries of the consumer */
};

struct stream_restore {
    struct store_bulk_load *bulk_load;         /* NULL: not begun */
    uint64_t steps;                            /* known to be committed */
    struct stream_restore_place at, filled_to; /* committed, and filled in by the last run */
};

/* Whether the stream is too large to be written in one run. */
bool stream_restore_is_large(const struct rdb_stream *source);

/* STORE_OK: the bulk load is complete. It is placed near the key, which the request has locked. */
STORE_MUST_CHECK enum store_result stream_restore_go_on(struct call *call,
                                                        struct stream_restore *restore,
                                                        const struct store_key *key,
                                                        const struct rdb_stream *source);
/* Then stores it at the key, replacing any value. */
STORE_MUST_CHECK enum store_result stream_restore_put(struct call *call,
                                                      const struct stream_restore *restore,
                                                      const struct store_key *key);
/* In one run, with pauses. */
STORE_MUST_CHECK enum store_result stream_restore_at_once(struct call *call,
                                                          const struct store_key *key,
                                                          const struct rdb_stream *source);

/* Called when the command's progress is freed. */
void stream_restore_free(struct stream_restore *restore);

#endif
