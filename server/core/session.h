/*
 * The logical state of one client connection, whatever its transport. Owned by its worker: only
 * that thread accesses it (commands about other workers' clients are broadcast: CMD_ALL_WORKERS).
 */
#ifndef VELLUM_SESSION_H
#define VELLUM_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "protocol/resp.h"

struct conn;
struct nested_calls;
struct subscription;
struct tracker;
struct tracking_target;
struct watch;

/*
 * CLIENT REPLY sets ON, OFF, or SKIP_NEXT. The runner discards the replies under OFF, turns
 * SKIP_NEXT into SKIP when the command that set it has run, and SKIP into ON after one more
 * command. CLIENT REPLY ON answers OK; the others write nothing.
 */
enum session_reply_mode {
    SESSION_REPLY_ON,
    SESSION_REPLY_OFF,
    SESSION_REPLY_SKIP_NEXT,
    SESSION_REPLY_SKIP
};

/* Kinds of subscription. MONITOR is a subscription too: to the one topic of its kind, "". */
enum pubsub_kind { PUBSUB_CHANNEL, PUBSUB_PATTERN, PUBSUB_SHARD, PUBSUB_MONITOR };
#define PUBSUB_KINDS 4

/* A session's subscriptions, newest first. */
struct pubsub_session {
    LIST_HEAD(, subscription) subscriptions[PUBSUB_KINDS];
    uint32_t count[PUBSUB_KINDS];
    uint64_t bytes; /* of memory */
};

static inline bool pubsub_is_subscriber(const struct pubsub_session *session)
{
    return (session->count[PUBSUB_CHANNEL] | session->count[PUBSUB_PATTERN] |
            session->count[PUBSUB_SHARD]) != 0;
}

/* The client may run only some commands: see reply_if_bound. */
static inline bool pubsub_is_bound(const struct pubsub_session *session)
{
    return __builtin_expect(pubsub_is_subscriber(session) || session->count[PUBSUB_MONITOR] != 0,
                            0);
}

struct session {
    uint64_t id; /* CLIENT ID: unique in the process, rising */
    struct conn *conn;
    uint32_t db;
    uint8_t resp_version;   /* 2 or 3; HELLO sets it, and call->reply->version for its own reply */
    bool authenticated;     /* while it is false and a password is set, the executor refuses all but
                               CMD_NO_AUTH commands; true from the start if none was set */
    bool close_after_reply; /* QUIT, protocol errors, CLIENT KILL of itself */
    bool no_evict, no_touch;
    struct nested_calls *multi;           /* between MULTI and EXEC: the queue; else NULL */
    struct watch *watch;                  /* WATCH; NULL: nothing */
    uint64_t queued_bytes, watched_bytes; /* of memory, of both: see multi_note_memory */
    uint64_t queued_block_bytes; /* of queued_bytes: in the connection's own input blocks */
    struct tracker *tracker;     /* CLIENT TRACKING; NULL: off */
    struct tracking_target *tracking_target;     /* others may redirect to it; NULL: none has */
    uint64_t tracking_bytes, invalidation_bytes; /* of memory: of the mode, of what is to be sent */
    bool caching; /* CLIENT CACHING: for the next command, which may be a transaction */
    enum session_reply_mode reply_mode;
    struct pubsub_session pubsub;
    char *name;     /* CLIENT SETNAME, from malloc; NULL: none */
    char *lib_name; /* CLIENT SETINFO, likewise */
    char *lib_ver;
    uint64_t text_bytes;      /* of these three */
    const char *last_command; /* full name of the command last run, from the table; NULL: none */
    int64_t created_ms, last_active_ms;
    uint64_t command_count;
};

#endif
