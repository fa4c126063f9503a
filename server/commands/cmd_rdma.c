/*
 * RDMA: a channel in addition to the connection (../protocol/RDMA.md). LIST and CLOSE are
 * broadcast to all workers.
 */
#include "server/commands/commands.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/rdma_frame.h"
#include "server/net/conn.h"
#include "server/net/rdma.h"
#include "server/exec/executor.h"
#include "server/core/server.h"
#include "server/core/session.h"
#include "server/net/transport.h"
#include "server/core/worker.h"
#include "server/core/call.h"

/* If RDMA is unavailable, replies with the reason. */
static bool is_offered(struct call *call)
{
    if (call->server->rdma != NULL)
        return true;
    resp_errorf(call->reply, "ERR RDMA is not available: %s", call->server->rdma_problem);
    return false;
}

/* Converts "10.9.0.1:7000" or "[::1]:7000" to a GID, with IPv4 in mapped form. False: no such
 * address. */
static bool gid_of_name(const char *name, uint8_t gid[16])
{
    char text[TRANSPORT_NAME_MAX];
    snprintf(text, sizeof text, "%s", name[0] == '[' ? name + 1 : name);
    char *end = name[0] == '[' ? strchr(text, ']') : strrchr(text, ':');
    if (end == NULL)
        return false;
    *end = '\0';
    if (inet_pton(AF_INET6, text, gid) == 1)
        return true;
    memset(gid, 0, 10);
    gid[10] = gid[11] = 0xff;
    return inet_pton(AF_INET, text, gid + 12) == 1;
}

static void find_path(const struct call *call, struct rdma_path *path)
{
    const struct conn *conn = call->session->conn;
    path->has_local = gid_of_name(conn_local_name(conn), path->local);
    path->has_peer = gid_of_name(conn_peer_name(conn), path->peer);
}

/* The RDMA offer to this connection. */
static void ask_info(struct call *call, struct rdma_info *info)
{
    struct rdma_path path;
    find_path(call, &path);
    call->server->rdma_ops->info(call->server->rdma, &path, info);
}

/* ---- INFO ---- */

static void reply_text(struct call *call, const char *name, const char *value)
{
    resp_bulk_string(call->reply, name);
    resp_bulk_string(call->reply, value);
}

static void reply_number(struct call *call, const char *name, uint64_t value)
{
    resp_bulk_string(call->reply, name);
    resp_integer(call->reply, (int64_t)value);
}

static void reply_end(struct call *call, const struct rdma_end *end)
{
    char value[RDMA_END_TEXT_MAX];
    for (uint32_t i = 0; i < rdma_end_attributes(end); i++) {
        const char *name = rdma_end_print(end, i, value);
        reply_text(call, name, value);
    }
}

static void reply_modes(struct call *call, unsigned modes)
{
    resp_bulk_string(call->reply, "modes");
    resp_array(call->reply, (uint64_t)__builtin_popcount(modes));
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++)
        if ((modes & 1u << mode) != 0)
            resp_bulk_string(call->reply, rdma_mode_name((enum rdma_mode)mode));
}

static void reply_gids(struct call *call, const struct rdma_info *info)
{
    char value[RDMA_END_TEXT_MAX];
    resp_bulk_string(call->reply, "gids");
    resp_array(call->reply, info->gid_count);
    for (uint32_t i = 0; i < info->gid_count; i++) {
        struct rdma_end end;
        memcpy(end.gid, info->gids[i], sizeof end.gid);
        rdma_end_print(&end, 0, value);
        resp_bulk_string(call->reply, value);
    }
}

#define PORT_FIELDS 7

static void reply_port(struct call *call, const struct rdma_port_info *port)
{
    char value[RDMA_END_TEXT_MAX];
    reply_text(call, "device", port->device);
    reply_number(call, "port", port->port);
    reply_text(call, "state", port->is_active ? "active" : "down");
    reply_text(call, "link-layer", port->is_ethernet ? "ethernet" : "infiniband");
    rdma_end_print(&port->end, 0, value);
    reply_text(call, "gid", value);
    reply_number(call, "lid", port->end.lid);
    reply_number(call, "mtu", port->end.mtu);
}

static void reply_devices(struct call *call, const struct rdma_info *info)
{
    resp_bulk_string(call->reply, "devices");
    resp_array(call->reply, info->port_count);
    for (uint32_t i = 0; i < info->port_count; i++) {
        resp_map(call->reply, PORT_FIELDS + 1);
        reply_port(call, &info->ports[i]);
        reply_number(call, "channels", info->ports[i].channels);
    }
}

enum store_result cmd_rdma_info(struct call *call)
{
    struct rdma_info info;
    if (!is_offered(call))
        return STORE_OK;
    ask_info(call, &info);
    resp_map(call->reply, PORT_FIELDS + 9);
    reply_number(call, "version", RDMA_VERSION);
    reply_modes(call, info.chosen.modes);
    reply_port(call, &info.chosen);
    reply_gids(call, &info);
    reply_devices(call, &info);
    reply_number(call, "frame", info.chosen.end.frame_bytes);
    reply_number(call, "credits", info.chosen.end.credits);
    reply_number(call, "channels", info.channels);
    reply_number(call, "max-channels", info.max_channels);
    reply_number(call, "pinned-bytes", info.pinned_bytes);
    return STORE_OK;
}

/* ---- CONNECT ---- */

struct connecting {
    struct rdma_request request; /* first, because the implementation returns it */
    struct call *call;
};

static bool refuse(struct call *call, const char *text)
{
    resp_errorf(call->reply, "ERR RDMA: %s", text);
    return false;
}

static bool parse_end(struct call *call, struct rdma_end *end)
{
    if (call->argc % 2 != 0)
        return call_syntax_error(call);
    for (size_t i = 4; i < call->argc; i += 2) {
        struct resp_slice name = call->argv[i], value = call->argv[i + 1];
        if (!rdma_end_read(end, name.data, name.len, value.data, value.len)) {
            resp_errorf(call->reply, "ERR RDMA: invalid value of attribute '%.*s'", (int)name.len,
                        name.data);
            return false;
        }
    }
    const char *missing = rdma_end_missing(end);
    if (missing != NULL)
        resp_errorf(call->reply, "ERR RDMA: attribute %s is missing", missing);
    return missing == NULL;
}

/* A client may only name its own address. Otherwise it could make the server send to anyone. On
 * InfiniBand a GID is not an IP address and the fabric's partitions decide; the implementation
 * checks that. */
static bool is_peers_own(struct call *call, const struct rdma_end *end)
{
    struct conn *conn = call->session->conn;
    uint8_t gid[16];
    if (config_number(&call->server->config, CONFIG_RDMA_CHECK_PEER) == 0 || conn_is_unix(conn))
        return true;
    return gid_of_name(conn_peer_name(conn), gid) && memcmp(gid, end->gid, sizeof gid) == 0;
}

/* Parses the mode. If it is not offered, replies with the modes that are. */
static bool read_mode(struct call *call, enum rdma_mode *mode)
{
    struct rdma_info info;
    struct resp_slice name = call->argv[3];
    ask_info(call, &info);
    if (rdma_mode_read(mode, name.data, name.len) &&
        (info.port_count == 0 || (info.chosen.modes & 1u << *mode) != 0))
        return true;
    return refuse(call, (info.chosen.modes & 1u << RDMA_MODE_WRITE) != 0
                            ? "the modes offered here are send and write"
                            : "the mode offered here is send");
}

static bool may_connect(struct call *call, struct rdma_end *end)
{
    struct rdma_stats stats;
    if (!is_offered(call))
        return false;
    if (!slice_is(call->argv[2], "1"))
        return refuse(call, "the version offered here is 1");
    if (!read_mode(call, &end->mode))
        return false;
    if (!parse_end(call, end))
        return false;
    if (call->server->rdma_ops->stats(call->session->conn->transport, &stats))
        return refuse(call, "this connection has a channel");
    return true;
}

static void reply_connected(struct call *call, const struct rdma_end *ours)
{
    resp_map(call->reply, rdma_end_attributes(ours) + 2);
    reply_number(call, "ID", call->session->id);
    reply_text(call, "MODE", rdma_mode_name(ours->mode));
    reply_end(call, ours);
}

static void on_connected(struct rdma_request *request)
{
    struct call *call = ((struct connecting *)request)->call;
    const struct rdma_ops *ops = call->server->rdma_ops;
    struct conn *conn = call->session->conn;
    struct transport *wrapped = NULL;
    conn->connecting = NULL;
    if (request->channel != NULL && conn->transport != NULL)
        wrapped = ops->wrap(request->channel, conn->transport);
    if (wrapped != NULL) {
        conn->transport = wrapped;
        reply_connected(call, &request->ours);
    } else if (request->channel != NULL) {
        ops->drop(request->channel);
        refuse(call, "out of memory");
    } else {
        refuse(call, request->error);
    }
    executor_finish(call, STORE_OK);
}

enum store_result cmd_rdma_connect(struct call *call)
{
    struct rdma_end theirs = {.present = 0};
    if (!may_connect(call, &theirs))
        return STORE_OK;
    struct connecting *connecting = calloc(1, sizeof *connecting);
    if (connecting == NULL)
        return STORE_NO_MEMORY;
    call->progress = connecting;
    call->progress_free = free;
    connecting->call = call;
    connecting->request.theirs = theirs;
    connecting->request.is_peers_own = is_peers_own(call, &theirs);
    find_path(call, &connecting->request.path);
    memcpy(connecting->request.path.peer, theirs.gid, sizeof theirs.gid);
    connecting->request.path.has_peer = true;
    connecting->request.done = on_connected;
    if (call->server->rdma_ops->connect(call->worker->rdma_group, &connecting->request)) {
        call->session->conn->connecting = &connecting->request;
        return STORE_WAIT;
    }
    refuse(call, connecting->request.error);
    return STORE_OK;
}

/* ---- LIST, CLOSE ---- */

static void list_one(struct call *call, const struct conn *conn, const struct rdma_stats *stats)
{
    resp_map(call->reply, 10);
    reply_number(call, "id", conn->session.id);
    reply_text(call, "addr", conn_peer_name(conn));
    reply_text(call, "mode", rdma_mode_name(stats->mode));
    reply_text(call, "state", stats->state);
    reply_number(call, "qpn", stats->qpn);
    reply_number(call, "credits", stats->credits);
    reply_number(call, "frames-in", stats->frames_in);
    reply_number(call, "frames-out", stats->frames_out);
    reply_number(call, "bytes-in", stats->bytes_in);
    reply_number(call, "bytes-out", stats->bytes_out);
}

/* The elements are collected by the broadcast; their number is known at its end. */
static void free_writer(void *progress)
{
    resp_writer_free(progress);
    free(progress);
}

static bool begin_list(struct call *call)
{
    struct resp_writer *items = malloc(sizeof *items);
    if (items == NULL)
        return false;
    resp_writer_init(items, call->reply->version);
    call->progress = items;
    call->progress_free = free_writer;
    return true;
}

enum store_result cmd_rdma_list(struct call *call)
{
    struct conn *conn;
    if (call->progress == NULL && !begin_list(call))
        return STORE_NO_MEMORY;
    struct resp_writer *items = call->progress, *reply = call->reply;
    struct rdma_stats stats;
    call->reply = items;
    LIST_FOREACH (conn, &call->worker->conns, of_worker)
        if (call->server->rdma != NULL && call->server->rdma_ops->stats(conn->transport, &stats)) {
            list_one(call, conn, &stats);
            call->cursor++;
        }
    call->reply = reply;
    if (!call->broadcast_last)
        return STORE_OK;
    if (items->failed)
        return STORE_NO_MEMORY;
    resp_array(reply, call->cursor);
    resp_raw(reply, items->data, items->len);
    return STORE_OK;
}

enum store_result cmd_rdma_close(struct call *call)
{
    struct conn *conn;
    struct rdma_stats stats;
    int64_t id;
    if (!resp_read_int64(call->argv[2].data, call->argv[2].len, &id) || id < 1) {
        if (call->broadcast_last)
            resp_error(call->reply, "ERR Invalid client ID");
        return STORE_OK;
    }
    LIST_FOREACH (conn, &call->worker->conns, of_worker) {
        if (conn->session.id != (uint64_t)id || call->server->rdma == NULL ||
            !call->server->rdma_ops->stats(conn->transport, &stats))
            continue;
        if (conn == call->session->conn)
            call->session->close_after_reply = true;
        else
            conn_kill(conn);
        call->cursor++;
    }
    if (call->broadcast_last && call->cursor > 0)
        resp_ok(call->reply);
    else if (call->broadcast_last)
        resp_error(call->reply, "ERR No such channel");
    return STORE_OK;
}

enum store_result cmd_rdma_help(struct call *call)
{
    static const char *const lines[] = {
        "CLOSE <client-id>",
        "    End a channel, and the connection that it belongs to.",
        "CONNECT <version> <mode> <attribute> <value> [<attribute> <value> ...]",
        "    Make a channel for this connection.",
        "INFO",
        "    Tell what is offered here.",
        "LIST",
        "    Describe the channels.",
        NULL,
    };
    call_help(call, lines);
    return STORE_OK;
}
