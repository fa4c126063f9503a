/*
 * Basic services of a connection for all rooms: mark it ready, close it, read its next bytes, its
 * names and its memory. Its life cycle and turns belong to the loop: see conn_turn.h.
 */
#include "server/net/conn.h"

#include <stdatomic.h>
#include <string.h>

#include "server/base/input_buffer.h"
#include "server/net/rdma.h"
#include "server/net/spool.h"
#include "server/net/transport.h"

void conn_mark_ready(struct conn *conn)
{
    if (conn->is_ready)
        return;
    conn->is_ready = true;
    conn->ready_next = conn->worker->ready_conns;
    conn->worker->ready_conns = conn;
}

void conn_put_off(struct conn *conn)
{
    if (conn->is_put_off)
        return;
    conn->is_put_off = true;
    conn->put_off_next = conn->worker->put_off;
    conn->worker->put_off = conn;
}

void conn_kill(struct conn *conn)
{
    conn->kill = true;
    conn_mark_ready(conn);
}

void conn_give_up_channel(struct conn *conn)
{
    if (conn->connecting != NULL)
        atomic_store(&conn->connecting->is_given_up, true);
}

/* ---- input ---- */

static void count_read(struct conn *conn, ssize_t count)
{
    if (count <= 0)
        return;
    counter_add(&conn->worker->counters.reads, 1);
    counter_add(&conn->worker->counters.input_bytes, (uint64_t)count);
}

ssize_t conn_receive(struct conn *conn, void *to, size_t size)
{
    ssize_t count = conn->transport->ops->read(conn->transport, to, size);
    count_read(conn, count);
    return count;
}

ssize_t conn_read(struct conn *conn, void *to, size_t size)
{
    if (conn->spool != NULL)
        return spool_read(conn->spool, to, size);
    return conn_receive(conn, to, size);
}

static ssize_t read_one_by_one(struct conn *conn, const struct iovec *vectors, int count)
{
    ssize_t total = 0;
    for (int i = 0; i < count; i++) {
        ssize_t got = conn_read(conn, vectors[i].iov_base, vectors[i].iov_len);
        if (got < 0)
            return total > 0 ? total : got;
        total += got;
        if ((size_t)got < vectors[i].iov_len)
            break;
    }
    return total;
}

ssize_t conn_read_vectors(struct conn *conn, const struct iovec *vectors, int count)
{
    struct transport *transport = conn->transport;
    if (conn->spool != NULL || transport->ops->read_vectors == NULL)
        return read_one_by_one(conn, vectors, count);
    ssize_t got = transport->ops->read_vectors(transport, vectors, count);
    count_read(conn, got);
    return got;
}

/* ---- for CLIENT LIST ---- */

const char *conn_peer_name(const struct conn *conn)
{
    return conn->transport == NULL ? "?:0" : conn->transport->peer;
}

const char *conn_local_name(const struct conn *conn)
{
    return conn->transport == NULL ? "?:0" : conn->transport->local;
}

int conn_fd(const struct conn *conn)
{
    return conn->transport == NULL ? -1 : conn->transport->fd;
}

bool conn_is_channel(const struct conn *conn)
{
    return conn->transport != NULL && strcmp(conn->transport->kind, "rdma") == 0;
}

bool conn_is_unix(const struct conn *conn)
{
    return conn->transport != NULL && conn->transport->is_unix;
}

size_t conn_query_bytes(const struct conn *conn)
{
    size_t spill = conn->spool != NULL ? spool_bytes(conn->spool) : 0;
    return conn->input_end - conn->input_start + spill;
}

size_t conn_query_free(const struct conn *conn)
{
    return conn->input == NULL ? 0 : conn->input->capacity - conn->input_end;
}

size_t conn_output_list(const struct conn *conn)
{
    return conn->segment_count;
}

uint64_t conn_output_memory(const struct conn *conn)
{
    return conn->output_bytes + conn->held_bytes;
}

uint64_t conn_total_memory(const struct conn *conn)
{
    uint64_t total = sizeof *conn + conn_output_memory(conn) + conn->session.queued_bytes -
                     conn->session.queued_block_bytes + conn->request_bytes + conn->block_bytes +
                     conn->session.watched_bytes + conn->session.pubsub.bytes +
                     conn->session.tracking_bytes + conn->session.invalidation_bytes +
                     conn->session.text_bytes;
    if (conn->spool != NULL)
        total += spool_memory(conn->spool);
    if (conn->parser != NULL)
        total += sizeof *conn->parser + conn->parser->args_capacity * sizeof(struct resp_slice);
    return total;
}

const char *conn_events(const struct conn *conn)
{
    return conn->send_blocked ? "rw" : "r";
}
