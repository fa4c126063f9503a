/*
 * A connection: a session, its transport, unfinished input and unsent output. What its commands do
 * is the runner's business (runner.h), its turns are the loop's (conn_turn.h).
 *
 * Threads: a connection belongs to its worker's thread.
 */
#ifndef VELLUM_CONN_H
#define VELLUM_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "protocol/resp.h"
#include "server/core/round_clock.h"
#include "server/core/session.h"
#include "server/core/worker.h"

struct input_buffer;
struct publication;
struct request;
struct segment;
struct spool;
struct transport;
struct upload;
struct waiter;

/* With more unsent output no command is started, and input is set aside (spool.h). Strangers get
 * little room, and nothing is set aside for them: they may be many. */
#define CONN_OUTPUT_BOUND (1024 * 1024)
#define CONN_STRANGER_OUTPUT_BOUND 4096

struct conn {
    struct session session;
    struct worker *worker;
    struct transport *transport;  /* NULL: closed */
    struct conn *previous, *next; /* worker->conns */

    /* input: bytes [input_start, input_end) of `input`; both 0 and NULL when there are none */
    struct input_buffer *input;
    size_t input_start, input_end;
    struct resp_parser *parser; /* in the middle of a command; NULL: at the start of one */
    struct upload *upload;      /* of that command: its long value, see upload.h; or NULL */
    struct spool *spool;        /* what has come behind that; NULL: nothing */
    uint32_t unsettled_uploads; /* of commands that have been taken, by weight: see upload.h */
    bool expects_long;          /* one has just been taken */
    bool has_published;         /* since its worker was choked last: see pubsub_throttles */

    struct rdma_request *connecting; /* RDMA CONNECT under way, or NULL */

    /* the runner's: commands not yet answered, in order */
    struct request *requests, *last_request;
    uint32_t request_count;
    struct request *first_parked; /* the first of them that has not started */
    uint32_t running;             /* of them: started and not finished */
    uint32_t running_writes;      /* of these: all but reads */
    uint64_t line;                /* that all of them are in, 0: none; see pipeline.h */
    bool refused;                 /* a protocol error: no more input is taken */
    char *refusal;                /* its text, while it has to wait behind requests */
    uint64_t request_bytes;       /* their memory, but for their replies */
    uint64_t held_bytes;          /* of replies that wait behind others */
    uint64_t counted_bytes;       /* of all its buffers: see client_memory.h */
    uint64_t counted_unsent;      /* of its replies */

    struct waiter *waiter; /* the command that runs waits for a key: see blocked.h; or NULL */

    /* output */
    struct segment *output, *last_output;
    struct segment *held, *last_held; /* pushes, while a reply flows: see reply_stream.h */
    bool is_flowing;
    uint64_t flowed_bytes; /* of that reply, sent or not; 0: none flows */
    uint64_t output_bytes; /* in both */
    uint64_t shared_bytes; /* of these in publications, which others may have, too */
    uint32_t segment_count;
    uint64_t shown;              /* newest commit shown by the bytes in worker->output */
    uint64_t newest_shown;       /* newest commit shown by any command that has run */
    uint64_t newest_written;     /* newest commit shown by those that may write */
    int64_t soft_limit_since_ms; /* 0: under the soft limit */

    struct conn *ready_next, *undurable_next, *put_off_next;
    bool is_ready, is_undurable;
    bool is_put_off;    /* no command is taken before the next round: on worker->put_off */
    bool has_corked;    /* replies of its last turn are in worker->late */
    bool send_blocked;  /* the transport took less than it was given */
    bool send_yielded;  /* it would take more: the other connections' turn */
    bool input_ended;   /* the peer sends no more */
    bool peer_has_gone; /* it does not even read */
    bool kill;          /* to be closed, without waiting for anything */
};

/* Puts it on the list of connections to be looked at in this round. */
void conn_mark_ready(struct conn *conn);

/* The round has taken long: the connection takes no more commands in it, and goes on in the next.
 */
void conn_put_off(struct conn *conn);

/* A command of the connection has run; NULL: one that is not known. */
static inline void conn_note_command(struct conn *conn, const struct command *command)
{
    if (round_clock_note(conn->worker, round_clock_weight(command)))
        conn_put_off(conn);
}

/* Closes at the end of the round, unsent replies lost: safe in the middle of anything, and for the
 * connection of the running command (which should use session.close_after_reply instead, so that
 * its reply leaves). */
void conn_kill(struct conn *conn);

/* Reads what was set aside, or else from its transport: as a transport does. */
ssize_t conn_read(struct conn *conn, void *to, size_t size);
ssize_t conn_read_vectors(struct conn *conn, const struct iovec *vectors, int count);
/* Reads from its transport, whatever was set aside. */
ssize_t conn_receive(struct conn *conn, void *to, size_t size);

/* Nobody waits for a channel that is being made for it. */
void conn_give_up_channel(struct conn *conn);

/* ---- for CLIENT LIST ---- */

const char *conn_peer_name(const struct conn *conn); /* "127.0.0.1:40000", "/path/socket:0" */
const char *conn_local_name(const struct conn *conn);
int conn_fd(const struct conn *conn);
bool conn_is_channel(const struct conn *conn);
bool conn_is_unix(const struct conn *conn);
size_t conn_query_bytes(const struct conn *conn);     /* qbuf */
size_t conn_query_free(const struct conn *conn);      /* qbuf-free */
size_t conn_output_list(const struct conn *conn);     /* oll: pieces that wait */
uint64_t conn_output_memory(const struct conn *conn); /* omem */
uint64_t conn_total_memory(const struct conn *conn);  /* tot-mem */
const char *conn_events(const struct conn *conn);     /* "r" or "rw" */

/* ---- output; on failure (memory) the connection is killed ---- */

/* In place of what shows commits that will never be durable, see conn_withholds. */
#define CONN_UNKEPT_TEXT                                                                           \
    "MISCONF Errors writing to the journal: whether the change that this reply would show or "     \
    "acknowledge is kept is not known until the server is started again. See the log."

/* A write has failed, and by the policy a reply or message that shows this commit must not leave:
 * neither now nor later. */
bool conn_withholds(const struct conn *conn, uint64_t shown);

/* A reply, the last one, stands in worker->output; not `is_whole`: the end of one. */
void conn_output_count(struct conn *conn, bool is_whole);

/* Appends the first bytes of worker->output to the queue, all the replies counted there. */
void conn_output_settle(struct conn *conn, size_t len);

/* Each appends part of a reply to the queue, behind which worker->output follows: that must be
 * empty. */
void conn_output_piece(struct conn *conn, const char *data, size_t len);
void conn_output_reader(struct conn *conn, struct store_reader *reader, uint64_t length);

/* Appends a push: `head`, which is copied, and the publication's bytes, which are shared if they
 * are long. Between turns only; the connection gets one in this round. */
void conn_output_push(struct conn *conn, const struct resp_slice *head, int head_count,
                      struct publication *publication);

/* Moves a writer's buffer behind everything written so far, without copying it. */
void conn_output_take(struct conn *conn, struct resp_writer *writer);

/* What was held back while a reply flowed comes behind it. */
void conn_output_release(struct conn *conn);

/* Sends what may leave and what the transport takes, a short reply together with others' at the
 * latest when conn_output_uncork is called; keeps the rest. */
void conn_output_flush(struct conn *conn);
/* Sends the short replies of all connections of this round. Connections may need attention then. */
void conn_output_uncork(struct worker *worker);
void conn_output_free(struct conn *conn);

#endif
