/*
 * Commands about replicas, cluster and modules, on a server that has none of them.
 */
#include "server/commands/commands.h"

enum store_result cmd_role(struct call *call)
{
    resp_array(call->reply, 3);
    resp_bulk_string(call->reply, "master");
    resp_integer(call->reply, 0); /* the replication offset, as in INFO */
    resp_array(call->reply, 0);
    return STORE_OK;
}

/* READONLY, CLUSTER HELP and the like, which only a cluster node supports. */
enum store_result cmd_cluster(struct call *call)
{
    resp_error(call->reply, "ERR This instance has cluster support disabled");
    return STORE_OK;
}

enum store_result cmd_module_list(struct call *call)
{
    resp_array(call->reply, 0);
    return STORE_OK;
}

enum store_result cmd_module_help(struct call *call)
{
    static const char *const lines[] = {
        "LIST",
        "    The modules that are loaded: none.",
        NULL,
    };
    call_help(call, lines);
    return STORE_OK;
}
