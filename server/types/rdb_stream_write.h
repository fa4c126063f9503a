/*
 * Encodes RDB values of streams as Redis 7.0 does (type 19), which the time when a consumer was
 * last active does not go into. The format is in rdb_stream_read.h; the parts are put in its order:
 *
 *     rdb_put_stream, the nodes, rdb_put_stream_head, for each group rdb_put_group, its pending
 *     entries, their consumers' count as a length, and for each rdb_put_consumer and its IDs
 */
#ifndef VELLUM_RDB_STREAM_WRITE_H
#define VELLUM_RDB_STREAM_WRITE_H

#include "server/types/rdb_stream_read.h"

/* The nodes that Redis makes unless it is configured otherwise. */
#define RDB_NODE_ENTRIES 100
#define RDB_NODE_BYTES 4096 /* of fields and values, unless one entry is larger */

/* What a node has been given. It depends on sizes alone, so that nodes can be counted first. */
struct rdb_node_size {
    uint64_t entries, bytes;
};

/* Whether an entry of so many bytes still belongs to the node; then it is added. */
bool rdb_node_takes(struct rdb_node_size *size, uint64_t bytes);

/* A node that is being made. */
struct rdb_node {
    struct resp_writer *out; /* its listpack */
    struct stream_id master;
    uint64_t entries, elements;
    size_t names_begin, names_end; /* of its master entry */
};

/* `out` must be empty. The first entry gives the node its ID and the names of its fields. */
void rdb_node_begin(struct rdb_node *node, struct resp_writer *out, struct stream_id id,
                    const struct resp_slice *fields, size_t count);
/* Fields and values alternate; `count` is that of both. */
void rdb_node_add(struct rdb_node *node, struct stream_id id, const struct resp_slice *fields,
                  size_t count);
/* Completes it, and puts it. node->out may have failed. */
void rdb_node_put(struct rdb_node *node, struct resp_writer *out);

void rdb_put_stream(struct resp_writer *out, uint64_t nodes);
/* stream->length, added, first, last, max_deleted and group_count. */
void rdb_put_stream_head(struct resp_writer *out, const struct rdb_stream *stream);
/* Up to the count of its pending entries. */
void rdb_put_group(struct resp_writer *out, const struct rdb_stream_group *group);
void rdb_put_pending(struct resp_writer *out, const struct rdb_stream_pending *pending);
/* Up to the count of its IDs. */
void rdb_put_consumer(struct resp_writer *out, const struct rdb_stream_consumer *consumer);
void rdb_put_raw_id(struct resp_writer *out, struct stream_id id);

#endif
