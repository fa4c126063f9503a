/*
 * libvellum: a client of Vellum, and of any server that speaks the Redis protocol. It connects by
 * TCP or a Unix socket; where the server offers an RDMA channel and this machine has a device for
 * it, commands and replies use the channel from then on, and otherwise the connection continues as
 * it is: vellum_transport() says which, vellum_reason() why. Replies are hiredis's, to be freed
 * with freeReplyObject(); formats are those of redisCommand().
 *
 *     struct vellum_options options = {.host = "10.0.0.1", .port = 6379};
 *     struct vellum *vellum = vellum_connect(&options);
 *     if (vellum_error(vellum) != NULL) ...
 *     redisReply *reply = vellum_command(vellum, "SET %s %b", key, value, length);
 *
 * Threads: a connection belongs to one thread at a time; different connections share nothing. After
 * fork() the child may neither use nor free connections of the parent.
 */
#ifndef VELLUM_H
#define VELLUM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

#define VELLUM_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

struct vellum;

enum vellum_rdma {
    VELLUM_RDMA_IF_OFFERED, /* else TCP */
    VELLUM_RDMA_NEVER,
    VELLUM_RDMA_ONLY, /* else an error */
};

/* How a channel transfers frames: as messages, or written into the other end's ring. */
enum vellum_rdma_mode { VELLUM_RDMA_SEND, VELLUM_RDMA_WRITE };

struct vellum_options {
    const char *host;            /* NULL: 127.0.0.1 */
    int port;                    /* 0: 6379 */
    const char *path;            /* of a Unix socket, instead of host and port */
    const char *user, *password; /* NULL: none */
    enum vellum_rdma rdma;
    enum vellum_rdma_mode mode;
    const char *device; /* NULL: the one that has the connection's address */
    unsigned spin_us;   /* how long to poll for replies before sleeping; 0: the default */
    int timeout_ms;     /* to connect, and for each reply; 0: none */
};

/* NULL only when memory is exhausted. Check vellum_error(). */
struct vellum *vellum_connect(const struct vellum_options *options);
void vellum_free(struct vellum *vellum);

/* Connects again with the same options, after an error or without one. Outstanding replies are
 * lost, and whether their commands were executed is unknown. Registered memory stays registered;
 * the transport may have changed: ask again. REDIS_OK, or REDIS_ERR: see vellum_error(). */
int vellum_reconnect(struct vellum *vellum);

/* NULL: no error. After an error, such as a timeout, the connection is unusable until
 * vellum_reconnect(), and the server can neither read nor write registered memory any more: it
 * may be used for something else as soon as a function has returned the error. */
const char *vellum_error(const struct vellum *vellum);

const char *vellum_transport(const struct vellum *vellum); /* "tcp", "unix" or "rdma" */
const char *vellum_reason(const struct vellum *vellum);    /* why it is not "rdma"; else "" */

/* Over a channel: when the server's access to the caller's memory ends. "reply": before the
 * reply is returned, and it covers only the value's bytes; "unregister": the device has no
 * memory windows, and access lasts as long as the memory is registered. Over other transports:
 * "". */
const char *vellum_revoking(const struct vellum *vellum);

/* Executes one command and returns its reply; NULL on an error. Earlier replies must have been
 * fetched. A command cannot be longer than 2 GB: with a format the caller has to see to that. */
redisReply *vellum_command(struct vellum *vellum, const char *format, ...);
redisReply *vellum_vcommand(struct vellum *vellum, const char *format, va_list arguments);
redisReply *vellum_command_argv(struct vellum *vellum, int argc, const char **argv,
                                const size_t *lengths);

/* Pipelines: commands are buffered and sent when a reply is requested. REDIS_OK or REDIS_ERR. */
int vellum_append(struct vellum *vellum, const char *format, ...);
int vellum_vappend(struct vellum *vellum, const char *format, va_list arguments);
int vellum_append_argv(struct vellum *vellum, int argc, const char **argv, const size_t *lengths);
/* Appends whole commands in RESP form. */
int vellum_append_formatted(struct vellum *vellum, const char *bytes, size_t length);
int vellum_get_reply(struct vellum *vellum, redisReply **reply);

/*
 * Values from the caller's own memory, without a copy here. Over a channel the server READs them
 * from that memory (pinned while it is registered), over TCP they are sent. The bytes must not
 * change until the reply, or an error, has been returned. NULL: failed, see vellum_error().
 */
struct vellum_memory;
struct vellum_memory *vellum_register(struct vellum *vellum, void *bytes, size_t size);
void vellum_unregister(struct vellum_memory *memory); /* call before vellum_free */

/* SET key to `length` bytes at `offset` of the memory, registered with this connection. Earlier
 * replies must have been fetched. */
redisReply *vellum_set_from(struct vellum *vellum, const char *key, size_t key_length,
                            const struct vellum_memory *memory, size_t offset, size_t length);
/* The same in a pipeline. */
int vellum_append_set_from(struct vellum *vellum, const char *key, size_t key_length,
                           const struct vellum_memory *memory, size_t offset, size_t length);

/* GET key into the memory, which has `size` bytes for it at `offset`. The reply is an integer,
 * the length of the value, which is in the memory; over a channel the server has written it
 * there. A longer value comes as GET's own reply, as do nil and errors, and the memory's
 * contents are undefined. Earlier replies must have been fetched. */
redisReply *vellum_get_into(struct vellum *vellum, const char *key, size_t key_length,
                            const struct vellum_memory *memory, size_t offset, size_t size);

/* The same in a pipeline, which it interrupts: over a channel the command is sent when all
 * replies before it have been taken, and later commands when its own reply has arrived. Not to
 * be mixed with subscription commands in one pipeline. */
int vellum_append_get_into(struct vellum *vellum, const char *key, size_t key_length,
                           const struct vellum_memory *memory, size_t offset, size_t size);

/*
 * Buffers of one size that are registered together, once. A pool belongs to its connection's
 * thread, and is freed before it. NULL: out of memory, or it cannot be registered.
 */
struct vellum_pool;
struct vellum_pool *vellum_pool_new(struct vellum *vellum, size_t buffer_bytes, size_t count);
void vellum_pool_free(struct vellum_pool *pool);
void *vellum_pool_take(struct vellum_pool *pool);             /* NULL: none is free */
int vellum_pool_give(struct vellum_pool *pool, void *buffer); /* REDIS_ERR: not of this pool */

/* The memory and offset of a buffer, for vellum_set_from(). */
const struct vellum_memory *vellum_pool_memory(const struct vellum_pool *pool);
size_t vellum_pool_offset(const struct vellum_pool *pool, const void *buffer);

/*
 * For the application's own event loop, which waits for several connections: without waiting,
 * vellum_try() sends as much of the buffered commands as it can, and takes one reply if it has
 * arrived (otherwise *reply is NULL). If there is none, vellum_sleep() says what to wait for, with
 * poll() or the like: one of the descriptors becoming readable (or writable, with `writes`).
 * False: try again at once.
 */
struct vellum_wait {
    int descriptor; /* of the socket */
    int channel;    /* -1: there is none */
    bool writes;    /* wait for the socket to be writable, too */
};
int vellum_try(struct vellum *vellum, redisReply **reply);
bool vellum_sleep(struct vellum *vellum, struct vellum_wait *wait);

/* Sends what is buffered, as far as the server accepts it, without waiting for replies. */
int vellum_flush(struct vellum *vellum);

#ifdef __cplusplus
}
#endif

#endif
