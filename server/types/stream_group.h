/*
 * Consumer groups, in the state of a stream: groups, their consumers, and the entries that were
 * delivered and not yet acknowledged.
 *
 * Part of the data format (see stream.h). Groups and consumers have numbers, which are not used
 * twice in a directory, so that what is kept for each entry is short whatever their names are:
 *
 *     KEY                    SIZE   VALUE
 *     1, name                8      number of the group
 *                            16     ID of the last entry delivered
 *                            8      how many entries were read, or all bits set: unknown
 *     2, group, name         8      number of the consumer
 *                            8      when it was last seen, in Unix milliseconds
 *                            8      when it last got an entry; all bits set: never
 *     3, group, ID           8      pending entry: number of its consumer
 *                            8      when it was delivered, in Unix milliseconds
 *                            8      how often
 *     4, group, consumer, ID        the same entry, by consumer; empty
 *     5, group, consumer     .      name of the consumer
 *     6, group                      a group that was destroyed, and of which entries may be left;
 *                                   empty
 *
 * The first byte of a key is its kind, numbers have 8 bytes, IDs 16. Of a name longer than
 * STREAM_NAME_MOST the key has only the first bytes, and the value ends with the whole name; such
 * keys may be equal, and are in the order of their names. Groups and consumers are so in the order
 * of their names, as Redis shows them.
 *
 * The trees count their entries: how many are pending, in a group or for a consumer, is the
 * difference of two ranks.
 *
 * Callers pass up every result except STORE_OK.
 */
#ifndef VELLUM_STREAM_GROUP_H
#define VELLUM_STREAM_GROUP_H

#include "server/types/stream.h"
#include "storage/collections.h"

#define STREAM_NAME_MOST (STORE_TREE_KEY_MAX - 9)
#define STREAM_READ_UNKNOWN UINT64_MAX
#define STREAM_NEVER (-1) /* stream_consumer.active_ms */

struct stream_group {
    struct stream *stream;
    struct resp_slice name; /* lives as long as the request */
    uint64_t number;
    struct stream_id last;
    uint64_t read; /* or STREAM_READ_UNKNOWN */
};

struct stream_consumer {
    const struct stream_group *group;
    struct resp_slice name; /* lives as long as the request */
    uint64_t number;
    int64_t seen_ms, active_ms;
};

struct stream_pending {
    struct stream_id id;
    uint64_t consumer; /* its number */
    int64_t delivered_ms;
    uint64_t count; /* of deliveries */
};

/* ---- groups ---- */

/* The name must live as long as the request. *found: false: there is none. */
STORE_MUST_CHECK enum store_result stream_group_find(struct stream *stream, struct resp_slice name,
                                                     struct stream_group *group, bool *found);
/* Makes one that does not exist: group->last and ->read are set. */
STORE_MUST_CHECK enum store_result
stream_group_create(struct stream *stream, struct resp_slice name, struct stream_group *group);
/* Stores its last and read. */
STORE_MUST_CHECK enum store_result stream_group_save(const struct stream_group *group);
/* Removes it. If it has much, stream_group_purge() removes that later. */
STORE_MUST_CHECK enum store_result stream_group_destroy(const struct stream_group *group);
/* Removes some of what destroyed groups have left. Commands on groups that write call it. */
STORE_MUST_CHECK enum store_result stream_group_purge(struct stream *stream);
/* How many groups there are. */
STORE_MUST_CHECK enum store_result stream_group_count(struct stream *stream, uint64_t *count);
/* Group number `i` in the order of names; its name is copied. */
STORE_MUST_CHECK enum store_result stream_group_at(struct stream *stream, uint64_t i,
                                                   struct stream_group *group);

/* ---- consumers ---- */

STORE_MUST_CHECK enum store_result stream_consumer_find(const struct stream_group *group,
                                                        struct resp_slice name,
                                                        struct stream_consumer *consumer,
                                                        bool *found);
/* consumer->seen_ms and ->active_ms are set. */
STORE_MUST_CHECK enum store_result stream_consumer_create(const struct stream_group *group,
                                                          struct resp_slice name,
                                                          struct stream_consumer *consumer);
STORE_MUST_CHECK enum store_result stream_consumer_save(const struct stream_consumer *consumer);
/* With its pending entries, in steps; *pending: their number. */
STORE_MUST_CHECK enum store_result stream_consumer_remove(const struct stream_consumer *consumer,
                                                          uint64_t *pending);
STORE_MUST_CHECK enum store_result stream_consumer_count(const struct stream_group *group,
                                                         uint64_t *count);
STORE_MUST_CHECK enum store_result stream_consumer_at(const struct stream_group *group, uint64_t i,
                                                      struct stream_consumer *consumer);
/* The name of the consumer with this number, which the group has; valid until the next call on the
 * stream. */
STORE_MUST_CHECK enum store_result stream_consumer_name(const struct stream_group *group,
                                                        uint64_t number, struct resp_slice *name);

/* ---- pending entries ---- */

/* How many there are from this ID on: of the group, or of one consumer. */
STORE_MUST_CHECK enum store_result stream_pending_count(const struct stream_group *group,
                                                        const struct stream_consumer *consumer,
                                                        struct stream_id from, uint64_t *count);
/* The last one of the group; STORE_ABSENT: there is none. */
STORE_MUST_CHECK enum store_result stream_pending_last(const struct stream_group *group,
                                                       struct stream_pending *pending);
/* The first one from this ID on, of the group or of one consumer. STORE_ABSENT: there is none. */
STORE_MUST_CHECK enum store_result stream_pending_seek(const struct stream_group *group,
                                                       const struct stream_consumer *consumer,
                                                       struct stream_id id,
                                                       struct stream_pending *pending);
/* The one `n` places behind the first one from this ID on. */
STORE_MUST_CHECK enum store_result stream_pending_nth(const struct stream_group *group,
                                                      const struct stream_consumer *consumer,
                                                      struct stream_id from, uint64_t n,
                                                      struct stream_pending *pending);
STORE_MUST_CHECK enum store_result stream_pending_get(const struct stream_group *group,
                                                      struct stream_id id,
                                                      struct stream_pending *pending, bool *found);
/* Adds it, or replaces the one with its ID. */
STORE_MUST_CHECK enum store_result stream_pending_put(const struct stream_group *group,
                                                      const struct stream_pending *pending);
STORE_MUST_CHECK enum store_result stream_pending_remove(const struct stream_group *group,
                                                         const struct stream_pending *pending);

#endif
