#include "server/commands/protection.h"

#include <string.h>

#include "server/core/server.h"
#include "server/core/session.h"
#include "server/net/conn.h"

static bool is_local(const struct conn *conn)
{
    const char *peer = conn_peer_name(conn);
    return conn_is_unix(conn) || strncmp(peer, "127.", 4) == 0 || strncmp(peer, "[::1]:", 6) == 0;
}

bool protection_allows(const struct call *call, enum config_id id)
{
    int64_t protection = config_number(&call->server->config, id);
    return protection == CONFIG_PROTECT_YES ||
           (protection == CONFIG_PROTECT_LOCAL && is_local(call->session->conn));
}
