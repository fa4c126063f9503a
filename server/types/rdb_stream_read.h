/*
 * Decodes RDB values of streams, in the forms of Redis 5 (type 15), 7.0 (19) and 7.2 (21):
 *
 *     count of nodes, nodes, length, last ID, [first ID, highest deleted ID, entries added],
 *     count of groups, groups; what is in brackets since type 19
 *
 *     node       master ID, as a string of 16 bytes; a listpack, as a string
 *     listpack   live, deleted, count of fields, fields, 0; then entries:
 *                flags, ms and seq as differences from the master ID,
 *                [count of fields], fields and values in turn, count of elements; or with
 *                SAME_FIELDS the values alone
 *     group      name, last ID, [entries read], count, pending entries, count, consumers
 *     pending    16 bytes of ID, 8 of the delivery time in milliseconds, count of deliveries
 *     consumer   name, 8 bytes of the time when it was seen, in type 21 8 more of that when it was
 *                active, count, IDs of its pending entries
 *
 * Counts and the numbers of IDs outside nodes are RDB lengths; raw IDs are big-endian, times
 * little-endian. The format is that of rdb.c and t_stream.c of Redis.
 *
 * Beyond what Redis checks without sanitize-dump-payload, IDs and names must rise, counts agree,
 * and each pending entry of a group have one consumer.
 */
#ifndef VELLUM_RDB_STREAM_READ_H
#define VELLUM_RDB_STREAM_READ_H

#include "server/types/rdb_packed.h"
#include "server/types/stream_id.h"

#define RDB_STREAM_UNKNOWN UINT64_MAX /* rdb_stream_group.read */

enum rdb_stream_type { RDB_STREAM_5 = 15, RDB_STREAM_7_0 = 19, RDB_STREAM_7_2 = 21 };

/* Slices, raw IDs and listpacks lie in the payload or in memory of the caller. */
struct rdb_stream_node {
    struct stream_id master;
    struct resp_slice listpack;
};

struct rdb_stream_consumer {
    struct resp_slice name;
    int64_t seen_ms, active_ms; /* -1: never */
    const char *ids;            /* STREAM_ID_BYTES each */
    uint64_t id_count;
};

struct rdb_stream_pending {
    struct stream_id id;
    int64_t delivered_ms;
    uint64_t count;
    uint64_t consumer; /* its index */
};

struct rdb_stream_group {
    struct resp_slice name;
    struct stream_id last;
    uint64_t read;
    struct rdb_stream_pending *pending;
    struct rdb_stream_consumer *consumers;
    uint64_t pending_count, consumer_count;
};

struct rdb_stream {
    struct rdb_stream_node *nodes;
    struct rdb_stream_group *groups;
    uint64_t node_count, group_count;
    uint64_t length, added;
    uint64_t bytes; /* of fields and values of all entries, or a little more */
    struct stream_id first, last, max_deleted; /* `first`: of the entries; or zero */
};

/* Reads and checks all of it: reader->value->stream. */
enum rdb_result rdb_read_stream(struct rdb_reader *reader, enum rdb_stream_type type);

/* The pending entry of the group with this ID. NULL: there is none. */
struct rdb_stream_pending *rdb_stream_find_pending(const struct rdb_stream_group *group,
                                                   struct stream_id id);

/* ---- entries ---- */

/* Where a walk over the entries is; a copy of it continues from there. */
struct rdb_stream_walk {
    const struct rdb_stream *stream;
    uint64_t node;              /* the next one to begin */
    struct rdb_listpack rest;   /* of the one begun */
    struct rdb_listpack fields; /* of its master entry */
    struct stream_id master, last;
    uint64_t field_count, field_bytes;
    uint64_t live, deleted; /* entries: still to come in the node */
};

struct rdb_stream_entry {
    struct stream_id id;
    bool is_deleted, has_same_fields;
    uint64_t count; /* of fields */
    uint64_t bytes; /* of fields and values, or a little more */
    struct rdb_listpack fields, values;
};

struct rdb_stream_walk rdb_stream_begin(const struct rdb_stream *stream);
/* RDB_OK with *found false: there are no more. Memory of `caller` is not used. *elements counts
 * those read, for go_on. */
enum rdb_result rdb_stream_next(struct rdb_stream_walk *walk, const struct rdb_caller *caller,
                                size_t *elements, struct rdb_stream_entry *entry, bool *found);
/* The next field and value of an entry that rdb_stream_next has returned. */
void rdb_stream_next_field(struct rdb_stream_entry *entry, struct rdb_element *field,
                           struct rdb_element *value);

#endif
