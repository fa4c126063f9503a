/*
 * Invariants:
 * 1. Between turns of its connection, bytes of the value are in the connection's input only while
 *    `waits` is set.
 * 2. The store is asked to finish the upload when the value is complete, and again each time the
 *    store has caught up.
 */
#include "server/exec/upload.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/core/command.h"
#include "server/net/conn.h"
#include "server/exec/monitor.h"
#include "server/core/server.h"
#include "server/net/transport.h"

#define VECTORS_MAX (STORE_READER_PIECE / 4096)
#define TURN_BYTES (1024 * 1024) /* received per turn of a connection */
#define SINK_BYTES (16 * 1024)

/* ---- beginning ---- */

/* A client that exceeds the limit is to be closed while the value arrives, not answered at the
 * end. */
static bool is_within_query_limit(const struct conn *conn, uint64_t bytes)
{
    const struct config *config = &conn->worker->server->config;
    int64_t limit = config_number(config, CONFIG_CLIENT_QUERY_BUFFER_LIMIT);
    return limit <= 0 || bytes <= (uint64_t)limit;
}

static bool is_stranger(const struct conn *conn)
{
    return !conn->session.authenticated && config_has_password(&conn->worker->server->config);
}

bool upload_is_referred_to(const struct conn *conn)
{
    return conn->spool == NULL && conn->transport->ops->refers != NULL &&
           conn->transport->ops->refers(conn->transport);
}

/* Bytes that would be copied into the transaction are worth an upload only if they are many; bytes
 * received by reference always are. */
static bool is_long_enough(const struct conn *conn, size_t len)
{
    return len >= STORE_UPLOAD_MIN || (len >= STORE_UPLOAD_SHORTEST && upload_is_referred_to(conn));
}

/* Monitors are shown the whole command, which therefore has to be in memory. */
static bool is_due(const struct conn *conn, const struct resp_bulk *bulk, const char *data,
                   size_t len)
{
    const struct server *server = conn->worker->server;
    if (!is_long_enough(conn, bulk->len) || bulk->argument == 0 || len - bulk->begin >= bulk->len)
        return false;
    if (is_stranger(conn) || monitor_any(server) ||
        !is_within_query_limit(conn, bulk->begin + bulk->len))
        return false;
    const struct command *command =
        command_find(&server->commands, resp_argument(conn->parser, 0, data));
    return command != NULL && command->value_at != 0 &&
           bulk->argument == (size_t)command->value_at && command_arity_ok(command, bulk->argc);
}

static void on_ready(void *arg);

bool upload_start(struct conn *conn, const char *data, size_t len)
{
    struct resp_bulk bulk;
    if (conn->upload != NULL || conn->parser == NULL || !resp_pending_bulk(conn->parser, &bulk) ||
        !is_due(conn, &bulk, data, len))
        return false;
    struct upload *upload = malloc(sizeof *upload);
    if (upload == NULL || !resp_divert_bulk(conn->parser)) {
        free(upload);
        return false;
    }
    *upload = (struct upload){.conn = conn,
                              .length = bulk.len,
                              .head = bulk.begin,
                              .argument = bulk.argument,
                              .result = STORE_WAIT};
    enum store_result result =
        store_upload_begin(conn->worker->store, bulk.len, on_ready, upload, &upload->store);
    if (result != STORE_OK) {
        upload->store = NULL;
        upload->result = result;
    }
    conn->upload = upload;
    counter_add(&conn->worker->counters.uploads, 1);
    return true;
}

/* ---- the store's side ---- */

static void uncount(struct upload *upload)
{
    if (upload->counted > 0) {
        assert(upload->conn->unsettled_uploads >= upload->counted);
        upload->conn->unsettled_uploads -= upload->counted;
    }
    upload->counted = 0;
}

static void settle(struct upload *upload)
{
    if (!upload_is_whole(upload) || upload_is_settled(upload))
        return;
    upload->result = store_upload_finish(upload->store);
    if (upload_is_settled(upload))
        uncount(upload);
}

static void on_ready(void *arg)
{
    struct upload *upload = arg;
    upload->waits = false;
    if (upload->conn == NULL)
        return;
    settle(upload);
    conn_mark_ready(upload->conn);
}

/* False: the store has to catch up. A count of 0: it has failed, and the input is discarded. */
static bool find_space(struct upload *upload, const struct iovec **vectors, int *count)
{
    *count = 0;
    if (upload_is_settled(upload))
        return true;
    enum store_result result = store_upload_space(upload->store, vectors, count);
    if (result == STORE_OK)
        return true;
    *count = 0;
    if (result == STORE_WAIT)
        upload->waits = true;
    else
        upload->result = result;
    return result != STORE_WAIT;
}

static void note_received(struct upload *upload, size_t len, bool is_stored)
{
    upload->received += len;
    if (is_stored)
        store_upload_filled(upload->store, len);
    settle(upload);
}

/* ---- receiving ---- */

size_t upload_take(struct upload *upload, const char *data, size_t len)
{
    size_t taken = 0;
    const struct iovec *vectors;
    int count;
    while (taken < len && find_space(upload, &vectors, &count)) {
        size_t before = taken;
        for (int i = 0; i < count && taken < len; i++) {
            size_t part = vectors[i].iov_len < len - taken ? vectors[i].iov_len : len - taken;
            memcpy(vectors[i].iov_base, data + taken, part);
            taken += part;
        }
        if (count == 0)
            taken = len;
        note_received(upload, taken - before, count > 0);
    }
    return taken;
}

static size_t length_of(const struct iovec *vectors, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++)
        total += vectors[i].iov_len;
    return total;
}

/* Reads once. *is_filled: the read filled the space, so there may be more. */
static ssize_t read_once(struct upload *upload, char *tail, size_t *tailed, bool *is_filled)
{
    char sink[SINK_BYTES];
    struct iovec vectors[VECTORS_MAX + 1];
    const struct iovec *space;
    int count;
    assert(upload->received <= upload->length);
    uint64_t left = upload->length - upload->received;
    if (!find_space(upload, &space, &count))
        return TRANSPORT_AGAIN;
    bool is_stored = count > 0;
    if (is_stored)
        memcpy(vectors, space, (size_t)count * sizeof *vectors);
    else
        vectors[count++] = (struct iovec){sink, left < sizeof sink ? (size_t)left : sizeof sink};
    size_t wanted = length_of(vectors, count);
    if (wanted == left)
        vectors[count++] = (struct iovec){tail, UPLOAD_TAIL};
    ssize_t got = conn_read_vectors(upload->conn, vectors, count);
    if (got < 0)
        return got;
    *is_filled = (size_t)got >= wanted;
    *tailed = *is_filled ? (size_t)got - wanted : 0;
    note_received(upload, *is_filled ? wanted : (size_t)got, is_stored);
    return got;
}

ssize_t upload_read(struct upload *upload, char tail[UPLOAD_TAIL], size_t *tailed)
{
    ssize_t total = 0;
    bool is_filled = true;
    *tailed = 0;
    while (is_filled && !upload_is_whole(upload) && total < TURN_BYTES) {
        ssize_t got = read_once(upload, tail, tailed, &is_filled);
        if (got < 0)
            return total > 0 ? total : got;
        total += got;
    }
    return total;
}

/* ---- its command ---- */

struct upload *upload_pass_on(struct conn *conn)
{
    struct upload *upload = conn->upload;
    conn->upload = NULL;
    conn->expects_long = upload != NULL;
    if (!upload_is_settled(upload)) {
        upload->counted = upload->length < STORE_UPLOAD_MIN ? 1 : UPLOAD_WEIGHT;
        conn->unsettled_uploads += upload->counted;
    }
    return upload;
}

void upload_free(struct upload *upload)
{
    if (upload == NULL)
        return;
    uncount(upload);
    if (upload->store != NULL)
        store_upload_close(upload->store);
    free(upload);
}

static void free_let_go(void *upload)
{
    upload_free(upload);
}

void upload_abandon(struct upload *upload, struct transport *transport)
{
    if (upload == NULL)
        return;
    assert(upload->counted == 0);
    if (transport->ops->let_go == NULL || transport->ops->let_go(transport, free_let_go, upload))
        upload_free(upload);
    else
        upload->conn = NULL;
}
