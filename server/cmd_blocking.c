/*
 * Commands that wait: for an element, or for a time.
 */
#include "commands.h"

/* ---- WAIT ---- */

/* There are no replicas: it takes its time, and none has acknowledged. */
enum store_result cmd_wait(struct call *call)
{
    int64_t replicas, timeout_ms;
    if (!call_int64(call, call->argv[1], &replicas))
        return STORE_OK;
    if (!resp_read_int64(call->argv[2].data, call->argv[2].len, &timeout_ms)) {
        resp_error(call->reply, "ERR timeout is not an integer or out of range");
        return STORE_OK;
    }
    if (timeout_ms < 0) {
        resp_error(call->reply, "ERR timeout is negative");
        return STORE_OK;
    }
    if (timeout_ms > INT64_MAX - call->now_ms) {
        resp_error(call->reply, "ERR timeout is out of range");
        return STORE_OK;
    }
    resp_integer(call->reply, 0);
    return replicas <= 0 ? STORE_OK : call_block(call, NULL, 0, TYPE_STRING, timeout_ms);
}
