/*
 * A connection: a session, its transport, unfinished input and unsent output. Its commands are run
 * by the runner (runner.h), its turns by the loop (conn_turn.h).
 *
 * Threads: a connection belongs to its worker's thread.
 */
#ifndef VELLUM_CONN_H
#define VELLUM_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "protocol/resp.h"
#include "server/base/input_buffer.h"
#include "server/core/round_clock.h"
#include "server/core/session.h"
#include "server/core/worker.h"

struct input_buffer;
struct request;
struct segment;
struct spool;
struct transport;
struct upload;
struct waiter;

/* With more unsent output no command is started, and input is spooled (spool.h). Unauthenticated
 * clients get little room, and their input is not spooled: there may be many. */
#define CONN_OUTPUT_BOUND (1024 * 1024)
#define CONN_STRANGER_OUTPUT_BOUND 4096

struct conn {
    struct session session;
    struct worker *worker;
    struct transport *transport; /* NULL: closed */
    LIST_ENTRY(conn) of_worker;  /* worker->conns */
    LIST_ENTRY(conn) of_paused;  /* worker->paused */

    /* input: bytes [input_start, input_end) of `input`; both 0 and NULL when there are none */
    struct input_buffer *input;
    size_t input_start, input_end;
    struct resp_parser *parser; /* in the middle of a command; NULL: between commands */
    struct upload *upload;      /* the command's long value, see upload.h; or NULL */
    struct spool *spool;        /* input that arrived after that in `input`; NULL: none */
    uint32_t unsettled_uploads; /* weight of the uploads of taken commands: see upload.h */
    bool expects_long;          /* a long value has just been taken */
    bool has_published;         /* since the worker's last throttling: see pubsub_throttles */

    struct rdma_request *connecting; /* RDMA CONNECT under way, or NULL */

    /* the runner's queue: commands not yet answered, in order */
    STAILQ_HEAD(requests, request) requests;
    uint32_t request_count;
    uint64_t answered;            /* of the queue's commands, ever */
    struct request *first_parked; /* the first of them that has not started */
    uint32_t running;             /* of them: started and not finished */
    uint32_t running_writes;      /* of these: all but reads */
    uint64_t line;                /* ordering key of all of them, 0: none; see pipeline.h */
    bool refused;                 /* a protocol error: no more input is taken */
    char *refusal;                /* its text, while earlier requests are unanswered */
    uint64_t request_bytes;       /* their memory, without replies and the client's blocks */
    uint64_t block_bytes;         /* of the client's own input blocks, held by it or by requests */
    uint64_t held_bytes;          /* of replies that wait for earlier ones */
    uint64_t counted_bytes;       /* of all its buffers: see client_memory.h */
    uint64_t counted_unsent;      /* of its replies */
    uint64_t counted_leaving;     /* counted_bytes, of one that is killed or closed */

    struct waiter *waiter; /* the running command is blocked: see blocked.h; or NULL */
    bool stands_by;        /* then: it waits, and will run again unless its time is over */

    /* output */
    STAILQ_HEAD(segments, segment) output;
    struct segments held; /* pushes that must not come yet: see conn_output.c */
    bool is_streaming;
    uint64_t streamed_bytes; /* of the streamed reply, sent or not; 0: none */
    uint64_t output_bytes;   /* in both queues: see conn_output.c */
    uint64_t shared_bytes;   /* of these in publications, which may be shared */
    uint32_t segment_count;
    uint64_t shown;              /* newest commit shown by the bytes in worker->output */
    uint64_t newest_shown;       /* newest commit shown by any command that has run */
    uint64_t newest_written;     /* newest commit shown by commands that may write */
    int64_t soft_limit_since_ms; /* 0: under the soft limit */

    struct conn *ready_next, *undurable_next, *put_off_next;
    union {
        struct {
            bool is_put_off; /* until the next round: on worker->put_off */
            bool is_paused;  /* until the end of a pause: see pause.h */
        };
        uint16_t is_held; /* either of them: no command is taken */
    };
    bool is_ready, is_undurable;
    bool has_corked;    /* it has an entry in worker->corked */
    bool send_blocked;  /* the transport took less than it was given */
    bool send_yielded;  /* the transport would take more, but other connections get their turn */
    bool input_ended;   /* the peer sends no more */
    bool peer_has_gone; /* it does not read any more either */
    bool kill;          /* close it without waiting for anything */
    bool awaits_memory; /* see client_memory_defers */
    bool is_evicted;    /* killed for its memory: its commands are not to begin again */
};

/* Adds it to the list of connections to be served in this round. */
void conn_mark_ready(struct conn *conn);

/* The round has taken long: the connection takes its next commands in the next round. */
void conn_put_off(struct conn *conn);

/* A command of the connection has run; NULL: an unknown one. */
static inline void conn_note_command(struct conn *conn, const struct command *command)
{
    if (round_clock_note(conn->worker, round_clock_weight(command)))
        conn_put_off(conn);
}

/* Closes the connection at the end of the round; unsent replies are lost. Safe at any point, also
 * for the connection of the running command (which should use session.close_after_reply instead,
 * so that its reply is sent). */
void conn_kill(struct conn *conn);

/* Reads spooled input, or else from the transport; results are those of a transport. */
ssize_t conn_read(struct conn *conn, void *to, size_t size);
ssize_t conn_read_vectors(struct conn *conn, const struct iovec *vectors, int count);
/* Reads from the transport, even if there is spooled input. */
ssize_t conn_receive(struct conn *conn, void *to, size_t size);

/* The connection does not wait any more for the channel being set up for it. */
void conn_give_up_channel(struct conn *conn);

/* ---- for CLIENT LIST ---- */

const char *conn_peer_name(const struct conn *conn); /* "127.0.0.1:40000", "/path/socket:0" */
const char *conn_local_name(const struct conn *conn);
int conn_fd(const struct conn *conn);
bool conn_is_channel(const struct conn *conn);
bool conn_is_unix(const struct conn *conn);
size_t conn_query_bytes(const struct conn *conn);     /* qbuf */
size_t conn_query_free(const struct conn *conn);      /* qbuf-free */
size_t conn_output_list(const struct conn *conn);     /* oll: unsent segments */
uint64_t conn_output_memory(const struct conn *conn); /* omem */
static inline bool conn_owns(const struct conn *conn, const struct input_buffer *block)
{
    return block->counted == &conn->block_bytes;
}
uint64_t conn_total_memory(const struct conn *conn); /* tot-mem */
const char *conn_events(const struct conn *conn);    /* "r" or "rw" */

#endif
