/*
 * libvellum on libevent: commands are given together with the function that gets their reply, as in
 * hiredis's asynchronous form. Connections are made, upgraded to a channel and, if wanted, made
 * again while the loop runs.
 *
 *     struct vellum_async_events events = {.connected = on_connected, .disconnected = on_gone};
 *     struct vellum_async *async = vellum_async_connect(base, &options, &events, my_data);
 *     vellum_async_command(async, on_value, my_data, "GET %s", key);
 *     event_base_dispatch(base);
 *
 * Threads: a connection belongs to the thread that runs its event_base; everything here, and every
 * callback, runs there. Resolving a host's name, and connecting a queue pair (for a moment), block.
 *
 * Callbacks may call anything here, vellum_async_free() too. Replies are freed after the callback
 * returns. Commands given before the connection is open are sent when it is.
 */
#ifndef VELLUM_ASYNC_H
#define VELLUM_ASYNC_H

#include "vellum.h"

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;
struct vellum_async;

/* `reply` is NULL if the connection was lost or freed before the reply arrived: whether the
 * command was executed is unknown. The server can then neither read nor write registered memory
 * any more: the callback may use it for something else. */
typedef void vellum_reply_fn(struct vellum_async *async, redisReply *reply, void *data);

/* Each may be NULL. */
struct vellum_async_events {
    /* REDIS_OK: connected; vellum_async_transport() names the transport. REDIS_ERR: see
     * vellum_async_error(); without `reconnect_ms` the connection is freed after this returns. */
    void (*connected)(struct vellum_async *async, int status, void *data);

    /* REDIS_OK: by vellum_async_disconnect() or _free(). REDIS_ERR: lost, see
     * vellum_async_error(). The connection is freed after this returns, unless it was lost and
     * `reconnect_ms` is set. */
    void (*disconnected)(struct vellum_async *async, int status, void *data);

    /* Pushed data: messages of subscriptions, lines of MONITOR. */
    void (*message)(struct vellum_async *async, redisReply *reply, void *data);

    int reconnect_ms; /* pause before reconnecting; 0: do not reconnect */
};

/* NULL: out of memory. Other failures are reported to `connected`. */
struct vellum_async *vellum_async_connect(struct event_base *base,
                                          const struct vellum_options *options,
                                          const struct vellum_async_events *events, void *data);

/* `fn` may be NULL. SUBSCRIBE and the like call it once per channel that they name (they must
 * name at least one). REDIS_ERR: the connection is ending, the command is longer than 2 GB (not
 * checked in formats), or out of memory; `fn` will not be called. */
int vellum_async_command(struct vellum_async *async, vellum_reply_fn *fn, void *data,
                         const char *format, ...);
int vellum_async_vcommand(struct vellum_async *async, vellum_reply_fn *fn, void *data,
                          const char *format, va_list arguments);
int vellum_async_command_argv(struct vellum_async *async, vellum_reply_fn *fn, void *data, int argc,
                              const char **argv, const size_t *lengths);

/* SET from memory that was registered by vellum_register(vellum_async_connection(async), ...);
 * only when connected. The bytes must not change until `fn` is called. */
int vellum_async_set_from(struct vellum_async *async, vellum_reply_fn *fn, void *data,
                          const char *key, size_t key_length, const struct vellum_memory *memory,
                          size_t offset, size_t length);
/* GET into registered memory, like vellum_append_get_into(). The application must not use the
 * memory until `fn` is called. */
int vellum_async_get_into(struct vellum_async *async, vellum_reply_fn *fn, void *data,
                          const char *key, size_t key_length, const struct vellum_memory *memory,
                          size_t offset, size_t size);
struct vellum *vellum_async_connection(struct vellum_async *async);

/* Disconnects when all replies have arrived. */
void vellum_async_disconnect(struct vellum_async *async);

/* Disconnects now: pending callbacks get NULL. From a callback: after it has returned. */
void vellum_async_free(struct vellum_async *async);

const char *vellum_async_error(const struct vellum_async *async); /* NULL: no error */
const char *vellum_async_transport(const struct vellum_async *async);
const char *vellum_async_reason(const struct vellum_async *async); /* why it is not "rdma" */

#ifdef __cplusplus
}
#endif

#endif
