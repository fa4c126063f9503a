/*
 * The asynchronous form: a connection that is served whenever one of its descriptors is ready.
 *
 *     DIALLING -> LOGGING_IN -> LOOKING -> ASKING -> OPEN     steps not needed are skipped
 *        ^            |            |          |        |
 *        |            v            v          v        v
 *        +-------- PAUSING <-------- lost -------------+       with reconnect_ms; else the end
 *
 * Invariants:
 * 1. `calls` are the commands whose replies have not arrived, in order. The bytes of those given
 *    before OPEN are in `early`, not in the output.
 * 2. While a callback runs (`depth` > 0) nothing is freed; `is_over` has it freed afterwards.
 * 3. Only serve() takes replies, and only loop events call it: giving a command calls no callback.
 * 4. Calls fail when the server's access to the application's memory has ended: see fail_calls().
 */
#include "clients/vellum_async.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include <event2/event.h>
#include <hiredis/sds.h>

#include "clients/connect.h"
#include "clients/io.h"
#include "clients/upgrade.h"

#define REPLIES_PER_TURN 1000 /* then others in the loop get their turn */

enum state { DIALLING, LOGGING_IN, LOOKING, ASKING, OPEN, PAUSING };

struct call {
    STAILQ_ENTRY(call) link;
    vellum_reply_fn *fn;
    void *data;
    uint32_t replies; /* still to come */
    bool subscribes;  /* or the opposite */
};

struct vellum_async {
    struct vellum *vellum;
    struct event_base *base;
    struct vellum_async_events events;
    void *data;
    enum state state;
    struct event *readable, *writable, *channel_readable;
    struct event *turn; /* serve() is called by the loop, at once or after a pause */
    struct event *late; /* and at the deadline */
    struct vellum_channel *asked;
    STAILQ_HEAD(calls, call) calls;
    sds early;
    uint64_t moved_us, deadline_us; /* 0: none */
    uint64_t waiting_since_us;      /* for the first of `calls` */
    long long subscriptions, shard_subscriptions;
    uint32_t depth;
    bool is_ending, is_over;
};

static uint64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void take_turn(struct vellum_async *async)
{
    event_active(async->turn, EV_TIMEOUT, 0);
}

static void serve(evutil_socket_t fd, short what, void *arg);

/* ---- ends ---- */

static void free_event(struct event **event)
{
    if (*event != NULL)
        event_free(*event);
    *event = NULL;
}

static void forget_connection(struct vellum_async *async)
{
    free_event(&async->readable);
    free_event(&async->writable);
    free_event(&async->channel_readable);
    if (async->late != NULL)
        event_del(async->late);
    vellum_channel_free(async->asked);
    async->asked = NULL;
}

static void destroy(struct vellum_async *async)
{
    forget_connection(async);
    free_event(&async->turn);
    free_event(&async->late);
    vellum_free(async->vellum);
    if (async->early != NULL)
        sdsfree(async->early);
    free(async);
}

static void call_back(struct vellum_async *async, vellum_reply_fn *fn, redisReply *reply,
                      void *data)
{
    async->depth++;
    if (fn != NULL)
        fn(async, reply, data);
    async->depth--;
}

/* Fails the calls whose replies will not arrive. Their callbacks may use the calls' memory for
 * something else at once. */
static void fail_calls(struct vellum_async *async)
{
    struct calls failed = STAILQ_HEAD_INITIALIZER(failed);
    vellum_end_access(async->vellum);
    STAILQ_CONCAT(&failed, &async->calls); /* callbacks may give new commands */
    for (struct call *call; (call = STAILQ_FIRST(&failed)) != NULL;) {
        STAILQ_REMOVE_HEAD(&failed, link);
        call_back(async, call->fn, NULL, call->data);
        free(call);
    }
}

static void tell(struct vellum_async *async, void (*fn)(struct vellum_async *, int, void *),
                 int status)
{
    async->depth++;
    if (fn != NULL)
        fn(async, status, async->data);
    async->depth--;
}

static void end(struct vellum_async *async)
{
    async->is_ending = async->is_over = true;
    fail_calls(async);
    tell(async, async->events.disconnected, REDIS_OK);
    destroy(async);
}

static void pause_before_next(struct vellum_async *async)
{
    int ms = async->events.reconnect_ms;
    struct timeval pause = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    forget_connection(async);
    vellum_close(async->vellum);
    async->state = PAUSING;
    event_add(async->turn, &pause);
}

static void lose(struct vellum_async *async)
{
    bool was_open = async->state == OPEN;
    bool again = async->events.reconnect_ms > 0 && !async->is_ending;
    forget_connection(async);
    async->state = PAUSING; /* commands given in callbacks wait for the next connection */
    async->is_ending = !again;
    if (async->early != NULL)
        sdsclear(async->early);
    fail_calls(async);
    tell(async, was_open ? async->events.disconnected : async->events.connected, REDIS_ERR);
    if (again && !async->is_over) {
        pause_before_next(async);
        return;
    }
    async->is_ending = true;
    fail_calls(async);
    destroy(async);
}

/* ---- steps to a connection ---- */

static bool watch(struct vellum_async *async)
{
    int fd = async->vellum->tcp->fd;
    const short in = EV_READ | EV_PERSIST, out = EV_WRITE | EV_PERSIST;
    async->readable = event_new(async->base, fd, in, serve, async);
    async->writable = event_new(async->base, fd, out, serve, async);
    if (async->readable != NULL && async->writable != NULL &&
        event_add(async->readable, NULL) == 0 && event_add(async->writable, NULL) == 0)
        return true;
    vellum_fail(async->vellum, "out of memory");
    return false;
}

/* When the time to connect, or for the next reply, is over; 0: there is no limit. Subscribers may
 * wait as long as they like. */
static uint64_t end_of_waiting_us(const struct vellum_async *async)
{
    int limit_ms = async->vellum->options.timeout_ms;
    if (async->state != OPEN)
        return async->deadline_us;
    if (limit_ms <= 0 || STAILQ_EMPTY(&async->calls) ||
        async->subscriptions + async->shard_subscriptions > 0)
        return 0;
    return async->waiting_since_us + (uint64_t)limit_ms * 1000;
}

static void arm_deadline(struct vellum_async *async)
{
    uint64_t limit_us = end_of_waiting_us(async);
    if (limit_us == 0)
        return;
    uint64_t now_us = clock_us();
    uint64_t left_us = limit_us > now_us ? limit_us - now_us : 0;
    struct timeval left = {.tv_sec = (time_t)(left_us / 1000000),
                           .tv_usec = (suseconds_t)(left_us % 1000000)};
    event_add(async->late, &left);
}

static bool is_late(const struct vellum_async *async)
{
    uint64_t limit_us = end_of_waiting_us(async);
    return limit_us != 0 && clock_us() >= limit_us;
}

/* False: failed; see the connection's error. */
static bool dial(struct vellum_async *async)
{
    struct vellum *vellum = async->vellum;
    const struct vellum_options *options = &vellum->options;
    vellum->transport = options->path != NULL ? "unix" : "tcp";
    async->deadline_us =
        options->timeout_ms > 0 ? clock_us() + (uint64_t)options->timeout_ms * 1000 : 0;
    async->subscriptions = async->shard_subscriptions = 0;
    vellum->tcp = options->path != NULL ? redisConnectUnixNonBlock(options->path)
                                        : redisConnectNonBlock(options->host, options->port);
    vellum_close_on_exec(vellum->tcp);
    async->state = DIALLING;
    return !vellum_has_failed(vellum) && watch(async);
}

static bool open_up(struct vellum_async *async)
{
    struct vellum *vellum = async->vellum;
    if (vellum->channel != NULL) {
        async->channel_readable = event_new(async->base, vellum_channel_descriptor(vellum->channel),
                                            EV_READ | EV_PERSIST, serve, async);
        if (async->channel_readable == NULL || event_add(async->channel_readable, NULL) != 0) {
            vellum_fail(vellum, "out of memory");
            return false;
        }
    }
    async->state = OPEN;
    async->waiting_since_us = clock_us();
    if (async->early != NULL &&
        vellum_append_formatted(vellum, async->early, sdslen(async->early)) != REDIS_OK)
        return false;
    if (async->early != NULL)
        sdsclear(async->early);
    tell(async, async->events.connected, REDIS_OK);
    return true;
}

static bool look(struct vellum_async *async)
{
    struct vellum *vellum = async->vellum;
    if (vellum->options.rdma == VELLUM_RDMA_NEVER) {
        snprintf(vellum->reason, sizeof vellum->reason, "it was not asked for");
        return open_up(async);
    }
    async->state = LOOKING;
    return vellum_append(vellum, CLIENT_UPGRADE_LOOK) == REDIS_OK;
}

/* Handles the server's answer about channels. */
static bool ask(struct vellum_async *async, const redisReply *reply)
{
    struct vellum *vellum = async->vellum;
    struct vellum_channel_options wanted = vellum_channel_options(vellum);
    if (vellum_upgrade_is_offered(reply, vellum->reason))
        async->asked = vellum_upgrade_ask(vellum->tcp, &wanted, vellum->reason);
    async->state = ASKING;
    if (async->asked != NULL)
        return true;
    vellum_take_channel(vellum, NULL);
    return !vellum_has_failed(vellum) && open_up(async);
}

static bool log_in(struct vellum_async *async)
{
    struct vellum *vellum = async->vellum;
    const struct vellum_options *options = &vellum->options;
    if (options->password == NULL)
        return look(async);
    async->state = LOGGING_IN;
    return (options->user != NULL
                ? vellum_append(vellum, "AUTH %s %s", options->user, options->password)
                : vellum_append(vellum, "AUTH %s", options->password)) == REDIS_OK;
}

/* The socket is ready: it is connected, or connecting has failed. */
static bool end_dialling(struct vellum_async *async)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(async->vellum->tcp->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error == 0 && async->vellum->options.path == NULL)
        redisEnableKeepAlive(async->vellum->tcp);
    if (error == 0)
        return log_in(async);
    vellum_fail(async->vellum, strerror(error));
    return false;
}

static bool take_login(struct vellum_async *async, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ERROR)
        return look(async);
    vellum_fail(async->vellum, reply->str);
    return false;
}

static bool take_answer(struct vellum_async *async, const redisReply *reply)
{
    struct vellum *vellum = async->vellum;
    struct vellum_channel *channel = async->asked;
    async->asked = NULL;
    if (!vellum_upgrade_take(channel, reply, vellum->reason)) {
        vellum_channel_free(channel);
        channel = NULL;
    }
    vellum_take_channel(vellum, channel);
    return !vellum_has_failed(vellum) && open_up(async);
}

/* ---- replies ---- */

static bool first_word_is(const redisReply *reply, const char *const *words, size_t count)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING)
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(reply->element[0]->str, words[i]) == 0)
            return true;
    return false;
}

/* A subscriber's connection carries nothing else but replies to subscribing, and to PING. */
static bool is_message(const struct vellum_async *async, const redisReply *reply)
{
    static const char *const words[] = {"message", "pmessage", "smessage"};
    return async->subscriptions + async->shard_subscriptions > 0 && reply->elements >= 3 &&
           first_word_is(reply, words, sizeof words / sizeof *words);
}

/* Updates the number of subscriptions from the reply; shard channels are counted separately. */
static void count_subscriptions(struct vellum_async *async, const redisReply *reply)
{
    static const char *const shard_words[] = {"ssubscribe", "sunsubscribe"};
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
        reply->element[2]->type != REDIS_REPLY_INTEGER)
        return;
    if (first_word_is(reply, shard_words, sizeof shard_words / sizeof *shard_words))
        async->shard_subscriptions = reply->element[2]->integer;
    else
        async->subscriptions = reply->element[2]->integer;
}

static void take_reply(struct vellum_async *async, redisReply *reply)
{
    struct call *call = STAILQ_FIRST(&async->calls);
    if (call == NULL || is_message(async, reply)) {
        async->depth++;
        if (async->events.message != NULL)
            async->events.message(async, reply, async->data);
        async->depth--;
        return;
    }
    vellum_reply_fn *fn = call->fn;
    void *data = call->data;
    if (call->subscribes)
        count_subscriptions(async, reply);
    /* A single error answers all channels of a command. */
    if (reply->type == REDIS_REPLY_ERROR || --call->replies == 0) {
        STAILQ_REMOVE_HEAD(&async->calls, link);
        free(call);
    }
    call_back(async, fn, reply, data);
}

static bool take(struct vellum_async *async, redisReply *reply)
{
    bool goes_on = true;
    async->moved_us = async->waiting_since_us = clock_us();
    if (async->state == LOGGING_IN)
        goes_on = take_login(async, reply);
    else if (async->state == LOOKING)
        goes_on = ask(async, reply);
    else if (async->state == ASKING)
        goes_on = take_answer(async, reply);
    else
        take_reply(async, reply);
    freeReplyObject(reply);
    return goes_on;
}

/* ---- the loop's calls ---- */

/* Over a channel, replies are polled for a moment before the loop may sleep. */
static bool spins(const struct vellum_async *async)
{
    return async->vellum->channel != NULL && !STAILQ_EMPTY(&async->calls) &&
           clock_us() - async->moved_us < async->vellum->options.spin_us;
}

static void rest(struct vellum_async *async)
{
    struct vellum_wait wait;
    if (spins(async) || !vellum_sleep(async->vellum, &wait))
        take_turn(async);
    else if (wait.writes)
        event_add(async->writable, NULL);
    else
        event_del(async->writable);
}

/* False: the connection is lost. */
static bool take_replies(struct vellum_async *async)
{
    redisReply *reply;
    for (int i = 0; i < REPLIES_PER_TURN; i++) {
        if (vellum_try(async->vellum, &reply) != REDIS_OK)
            return false;
        if (reply == NULL)
            return true;
        if (!take(async, reply))
            return false;
        if (async->is_over)
            return true;
    }
    take_turn(async);
    return true;
}

/* False: the connection is lost, or could not be made. */
static bool go_on(struct vellum_async *async, short what)
{
    if (async->state == PAUSING)
        return dial(async);
    if (async->state != OPEN && is_late(async)) {
        vellum_fail(async->vellum, "the time to connect is over");
        return false;
    }
    if (async->state == DIALLING && (what & (EV_READ | EV_WRITE)) == 0)
        return true;
    if (async->state == DIALLING && !end_dialling(async))
        return false;
    if (!take_replies(async))
        return false;
    if (async->state != OPEN || async->is_over || !is_late(async))
        return true;
    vellum_fail(async->vellum, "the time for the reply is over");
    return false;
}

static bool should_end(const struct vellum_async *async)
{
    return async->is_over || (async->is_ending && STAILQ_EMPTY(&async->calls));
}

static void serve(evutil_socket_t fd, short what, void *arg)
{
    struct vellum_async *async = arg;
    (void)fd;
    if (should_end(async)) {
        end(async);
        return;
    }
    bool is_well = go_on(async, what);
    if (should_end(async)) {
        end(async);
    } else if (!is_well) {
        lose(async);
    } else {
        if (async->state != DIALLING)
            rest(async);
        arm_deadline(async);
    }
}

/* ---- the application's calls ---- */

struct vellum_async *vellum_async_connect(struct event_base *base,
                                          const struct vellum_options *options,
                                          const struct vellum_async_events *events, void *data)
{
    struct vellum_async *async = calloc(1, sizeof *async);
    if (async == NULL)
        return NULL;
    async->base = base;
    async->data = data;
    async->events = *events;
    STAILQ_INIT(&async->calls);
    async->state = PAUSING; /* the loop's first turn dials */
    async->vellum = vellum_new(options);
    async->turn = event_new(base, -1, 0, serve, async);
    async->late = event_new(base, -1, 0, serve, async);
    if (async->vellum == NULL || async->turn == NULL || async->late == NULL) {
        destroy(async);
        return NULL;
    }
    take_turn(async);
    return async;
}

/* The number of names in a SUBSCRIBE or similar command, which is complete; 0: another command. */
static uint32_t names_of(const char *command, size_t length)
{
    static const char suffix[] = "SUBSCRIBE";
    char *at;
    unsigned long words = length > 0 ? strtoul(command + 1, &at, 10) : 0;
    if (words < 2 || at[2] != '$')
        return 0;
    unsigned long name_length = strtoul(at + 3, &at, 10);
    const char *name = at + 2;
    size_t tail = sizeof suffix - 1;
    if (name_length < tail || name_length > tail + 3 ||
        strncasecmp(name + name_length - tail, suffix, tail) != 0)
        return 0;
    return (uint32_t)words - 1;
}

static struct call *new_call(vellum_reply_fn *fn, void *data, uint32_t names)
{
    struct call *call = malloc(sizeof *call);
    if (call != NULL)
        *call = (struct call){
            .fn = fn, .data = data, .replies = names > 0 ? names : 1, .subscribes = names > 0};
    return call;
}

/* Takes ownership of a call, or NULL, whose command was appended with that result. It is allocated
 * before: a command without one would shift all later replies. What could not be appended may have
 * ended the connection, of which nothing else would tell the loop. */
static int add_call(struct vellum_async *async, struct call *call, int status)
{
    if (call == NULL || status != REDIS_OK) {
        free(call);
        if (async->state == OPEN && vellum_error(async->vellum) != NULL)
            take_turn(async);
        return REDIS_ERR;
    }
    if (STAILQ_EMPTY(&async->calls))
        async->waiting_since_us = clock_us();
    STAILQ_INSERT_TAIL(&async->calls, call, link);
    if (async->state == OPEN)
        take_turn(async);
    return REDIS_OK;
}

/* Before the connection is open, commands are kept in `early`, because those that set it up come
 * first. */
static int append(struct vellum_async *async, const char *command, size_t length)
{
    if (async->state == OPEN)
        return vellum_append_formatted(async->vellum, command, length);
    sds early = async->early != NULL ? sdscatlen(async->early, command, length)
                                     : sdsnewlen(command, length);
    if (early == NULL)
        return REDIS_ERR;
    async->early = early;
    return REDIS_OK;
}

static int give(struct vellum_async *async, vellum_reply_fn *fn, void *data, char *command,
                int length)
{
    struct call *call = NULL;
    int status = REDIS_ERR;
    if (length > 0 && !async->is_ending)
        call = new_call(fn, data, names_of(command, (size_t)length));
    if (call != NULL)
        status = append(async, command, (size_t)length);
    status = add_call(async, call, status);
    if (length > 0)
        redisFreeCommand(command);
    return status;
}

int vellum_async_vcommand(struct vellum_async *async, vellum_reply_fn *fn, void *data,
                          const char *format, va_list arguments)
{
    char *command = NULL;
    int length = redisvFormatCommand(&command, format, arguments);
    return give(async, fn, data, command, length);
}

int vellum_async_command(struct vellum_async *async, vellum_reply_fn *fn, void *data,
                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int status = vellum_async_vcommand(async, fn, data, format, arguments);
    va_end(arguments);
    return status;
}

int vellum_async_command_argv(struct vellum_async *async, vellum_reply_fn *fn, void *data, int argc,
                              const char **argv, const size_t *lengths)
{
    char *command = NULL;
    int length = vellum_command_fits(argc, argv, lengths)
                     ? redisFormatCommandArgv(&command, argc, argv, lengths)
                     : -1;
    return give(async, fn, data, command, length);
}

/* For a command that needs an open connection; NULL: there is none, or no memory. */
static struct call *new_call_if_open(struct vellum_async *async, vellum_reply_fn *fn, void *data)
{
    return async->is_ending || async->state != OPEN ? NULL : new_call(fn, data, 0);
}

int vellum_async_set_from(struct vellum_async *async, vellum_reply_fn *fn, void *data,
                          const char *key, size_t key_length, const struct vellum_memory *memory,
                          size_t offset, size_t length)
{
    struct call *call = new_call_if_open(async, fn, data);
    if (call == NULL)
        return REDIS_ERR;
    return add_call(async, call,
                    vellum_append_set_from(async->vellum, key, key_length, memory, offset, length));
}

int vellum_async_get_into(struct vellum_async *async, vellum_reply_fn *fn, void *data,
                          const char *key, size_t key_length, const struct vellum_memory *memory,
                          size_t offset, size_t size)
{
    struct call *call = new_call_if_open(async, fn, data);
    if (call == NULL)
        return REDIS_ERR;
    return add_call(async, call,
                    vellum_append_get_into(async->vellum, key, key_length, memory, offset, size));
}

struct vellum *vellum_async_connection(struct vellum_async *async)
{
    return async->vellum;
}

void vellum_async_disconnect(struct vellum_async *async)
{
    async->is_ending = true;
    take_turn(async);
}

void vellum_async_free(struct vellum_async *async)
{
    async->is_ending = async->is_over = true;
    if (async->depth > 0)
        take_turn(async);
    else
        end(async);
}

const char *vellum_async_error(const struct vellum_async *async)
{
    return vellum_error(async->vellum);
}

const char *vellum_async_transport(const struct vellum_async *async)
{
    return vellum_transport(async->vellum);
}

const char *vellum_async_reason(const struct vellum_async *async)
{
    return vellum_reason(async->vellum);
}
