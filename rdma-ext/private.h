/*
 * The server's side of channels, inside: a service for each port of a device (devices.c), with a
 * helper thread and its part in each worker. A channel's life, and who acts on it:
 *
 *     worker            helper thread           worker
 *     rdma_worker_connect   rdma_job_connect   rdma_on_made: it may use the queues and memory
 *                           rdma_resolve       (a resolver's thread, resolve.c)
 *                           rdma_job_connected rdma_on_connected: wrapped or dropped
 *     rdma_end_channel      rdma_job_stop      its last request completes
 *                           (waits for that)   rdma_on_settled: everything is polled
 *                           rdma_job_destroy   rdma_on_destroyed: freed
 *
 * Invariants:
 * 1. Verbs calls that may take long are made by the helper thread, and that which waits for the
 *    network by resolvers; they work on a channel, an engine or a chunk only between its job's
 *    submission and its message back.
 * 2. An engine has posted at least as many shared receives as its channels of mode send have
 * credits together: those of a channel's place are posted when it is first taken, so that few take
 * turns, and each that has come is posted again.
 * In mode write receives have no memory, and each queue pair has its own.
 * 3. A queue pair is destroyed when nothing of it can still be in the completion queue, or that is
 *    not polled any more; buffers are freed after that, all together, when the worker's last one
 *    has gone.
 * 4. The queues of a worker that has failed (failure.c) are not used: no completion is taken or
 *    waited for. They are made anew when its last channel has gone.
 */
#ifndef VELLUM_RDMA_PRIVATE_H
#define VELLUM_RDMA_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/net/rdma.h"
#include "rdma-ext/link.h"
#include "rdma-ext/verbs.h"

#define FRAME_BYTES 4096
#define CREDITS 8        /* receives per channel */
#define SEND_BUFFERS 4   /* per channel */
#define CHUNK_CHANNELS 8 /* whose memory is registered together */
#define CHUNK_RECEIVES (CHUNK_CHANNELS * CREDITS)
#define STAGES 4 /* buffers for pulled bytes, shared by a worker's channels */
#define STAGE_BYTES (32 * 1024)
#define REGIONS_MAX 4096                         /* of the store's pages */
#define CHANNEL_HASH 256                         /* by queue pair number */
#define RESOLVERS_MAX 64                         /* threads */
#define GROUP_WORKERS_MAX (2 * RDMA_DEVICES_MAX) /* those that leave included */

/* wr_id: a receive has the top bit, and chunk and buffer below (or WR_OWN: one of the queue pair's
 * own); a send has its channel's place in bits 32 to 60, and the link's number below. */
#define WR_RECEIVE (1ull << 63)
#define WR_DRAIN (1ull << 62)
#define WR_OWN (1ull << 61)
#define WR_BIND WR_OWN /* among sends: of the window to the ring */
#define WR_PLACE(wr_id) (((wr_id) & ~(WR_DRAIN | WR_BIND)) >> 32)

struct rdma_service;
struct rdma_worker;

struct rdma_job {
    void (*run)(struct rdma_service *service, struct rdma_job *job);
    struct rdma_job *next;
    uint64_t due_ns; /* 0: at once */
};

struct rdma_chunk {
    struct ibv_mr *mr;
    char *memory;    /* SEND_BUFFERS per channel, then the receives */
    uint32_t posted; /* bit n: the receives of its channel n are */
};

/* Memory of one channel of mode write. The ring is a region of its own without remote access,
 * opened by a window that only the channel's queue pair can use. */
struct rdma_ring {
    struct ibv_mr *sends, *mr;
    struct ibv_mw *window;
    uint32_t key; /* the window's */
};

/* Of one worker, while it has channels. */
struct rdma_engine {
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_mr *staging;
};

/* What carries the connection: TCP, until the channel's first frame arrives. */
struct rdma_transport {
    struct transport base;
    struct transport *tcp;
    struct rdma_channel *channel; /* NULL: the connection continued by TCP */
    unsigned wanted;
    bool is_open; /* bytes travel by the channel */
};

struct rdma_channel {
    struct rdma_worker *worker;
    struct rdma_transport *transport; /* NULL: not wrapped yet, or closed */
    struct rdma_link link;
    struct transport *tcp; /* only while is_ending: closed when the last frame is sent */
    bool is_ending;        /* closed by the connection; written bytes are still sent */
    bool is_gone;          /* being destroyed */
    bool is_broken;        /* the connection must be notified that it is closed */
    bool is_ready, is_touched, has_block;
    bool awaits_window;      /* complete but for the window: the client has no reply yet */
    _Atomic bool is_drained; /* its last request has completed */
    bool is_bound;
    uint32_t place, block; /* in worker->channels; of send buffers */

    void (*let_go)(void *arg); /* to be called when no READ fills pages any more, or NULL */
    void *let_go_arg;
    struct transport_place *placing; /* its part is being written to the client, or NULL */
    uint64_t placed, held;           /* bytes of that part; as counted in held_bytes */

    struct rdma_channel *hash_next, *ready_next, *touched_next;

    /* for the helper */
    struct rdma_job job;
    struct worker_message message, made;
    struct rdma_request *request;
    struct rdma_device speaker; /* the device, with the address that it speaks from */
    struct rdma_channel *resolve_next;
    int resolve_error; /* what the resolver found, or another for the same peer; else 0 */
    struct rdma_engine engine;
    struct ibv_qp *qp;
    struct worker_message trouble; /* an event reported that its queue pair failed */
    bool is_troubled;              /* that was posted */
    uint32_t max_inline;
    bool makes_chunk;
    struct rdma_chunk chunk;
    struct rdma_ring ring;
};

/* Counters for INFO. Each is written by one thread, read by any. */
struct rdma_counters {
    _Atomic uint64_t opened, refused, breaches, broken, frames_in, frames_out, bytes_in, bytes_out,
        copied_bytes, placed_bytes, pulled_bytes, held_bytes;
};

struct rdma_worker {
    struct rdma_service *service;
    struct rdma_poll_group *group;
    struct worker *owner;
    bool is_leaving; /* the group lets go of it when it has no channels */
    struct worker_message joining, leaving, farewell;
    struct ibv_comp_channel *events;
    bool is_armed;
    _Atomic bool has_failed; /* its queues, or the device: all channels end */
    bool is_ending_all;      /* the channels have been ended for that */
    bool is_deaf;            /* completion events have stopped for good */

    struct rdma_engine engine; /* cq NULL: none, or being created by the helper */
    struct rdma_chunk *chunks; /* room for service->chunks_max */
    uint32_t chunk_count;
    uint32_t *free_blocks; /* a stack */
    uint32_t free_count;
    struct rdma_channel **channels; /* by place; NULL: free */
    uint32_t channel_count;         /* including those being created or destroyed */
    uint32_t connecting, making;    /* of mode send: being created; with a new chunk */
    struct rdma_channel *by_number[CHANNEL_HASH];
    struct rdma_channel *ready, *touched;
    struct rdma_channel *stages[STAGES]; /* who uses it */
    uint32_t last_region;                /* where a page was found */

    struct rdma_counters counters;

    /* the helper's */
    struct rdma_engine made;
    struct worker_message failing;
    _Atomic bool is_failing_posted;
    struct rdma_job recycling;
    uint32_t recycled_chunks;
};

/* See resolve.c. Under the service's lock. */
struct rdma_resolving {
    pthread_cond_t wake;
    struct rdma_channel *queue;
    struct rdma_channel *under_way[RESOLVERS_MAX];
    pthread_t threads[RESOLVERS_MAX];
    uint32_t thread_count, idle;
    uint32_t channels; /* with resolvers now */
};

struct rdma_seeking;

/* All that the process uses: see devices.c and watch.c. */
struct rdma_devices {
    struct rdma_options options;
    char names[RDMA_DEVICES_MAX * RDMA_NAME_MAX];
    _Atomic uint32_t channel_count;
    _Atomic uint64_t pinned_bytes;

    pthread_mutex_t lock; /* over the rest; taken before a service's */
    pthread_cond_t wake;  /* of the watcher */
    struct rdma_service *services[RDMA_DEVICES_MAX], *leaving[RDMA_DEVICES_MAX];
    uint32_t service_count, leaving_count;
    struct rdma_poll_group **groups; /* all, from the start on */
    uint32_t group_count;
    struct rdma_listed failed[RDMA_DEVICES_MAX]; /* not to be opened again */
    uint32_t failed_count;
    struct rdma_info past; /* counts of services that are no more */

    pthread_t watcher;
    bool has_watcher, is_asked, is_stopping;
    uint64_t looked_ns;
    struct rdma_seeking *seekers;
};

/* One port of a device, in use. */
struct rdma_service {
    struct rdma_device device;
    struct rdma_devices *devices;
    _Atomic uint32_t staying; /* workers that have it, while it is leaving */
    bool is_halted;
    uint32_t max_channels, chunks_max;
    uint32_t max_held_bytes;         /* of each channel */
    bool is_gid_fixed;               /* all channels use the device's */
    uint8_t gids[RDMA_GIDS_MAX][16]; /* of its port, as last seen by the helper */
    uint32_t gid_count;
    bool is_active;     /* the port; device.lid and device.mtu are its, too */
    bool is_looking;    /* the helper has been asked to look at it */
    uint64_t looked_ns; /* when it did last */
    struct rdma_job looking;
    void (*warn)(void *arg, const char *text);
    void *warn_arg;
    _Atomic uint32_t channel_count;
    _Atomic uint64_t failures; /* calls refused, queues and devices that failed */
    _Atomic uint64_t said_ns;  /* last log line of a kind that clients can cause */
    _Atomic bool is_lost;      /* the device has failed, or was removed */
    struct rdma_worker **workers;
    uint32_t worker_count;

    /* pages.c */
    bool (*pages_around)(void *arg, const void *address, void **start, size_t *size);
    void *pages_arg;
    struct ibv_mr **regions; /* room for REGIONS_MAX */
    _Atomic uint32_t region_count;
    _Atomic uint64_t registered_bytes;
    _Atomic bool is_registering;
    const void *wanted_page;
    struct rdma_job registering;

    pthread_t helper;
    pthread_mutex_t lock; /* over jobs, stopping, GIDs, the port, the list of workers */
    struct rdma_job *jobs, *last_job;
    struct rdma_resolving resolving;
    bool is_stopping;
    int wake_fd;

    /* the helper's own */
    struct rdma_job *delayed;
    int error;       /* why pinning memory or creating a queue failed the last time */
    bool has_warned; /* of that */
};

/* ---- devices.c ---- */

/* A worker's queues with each device, in the order in which these came into use. */
struct rdma_poll_group {
    struct rdma_devices *devices;
    struct worker *owner;
    int epoll_fd; /* of the workers' completion channels */
    struct rdma_worker *workers[GROUP_WORKERS_MAX];
    uint32_t worker_count;
};

/* Opens the next port that fits and is not in use. NULL: there is none, and message tells why. By
 * the watcher. */
struct rdma_service *rdma_devices_open_next(struct rdma_devices *devices,
                                            char message[RDMA_ERROR_MAX]);
/* By the worker's thread. */
void rdma_group_join(struct rdma_worker *worker);
void rdma_group_leave(struct rdma_worker *worker);
/* As rdma_ops.connect, with the devices that the group has. */
bool rdma_group_connect(struct rdma_poll_group *group, struct rdma_request *request);

/* ---- watch.c ---- */

bool rdma_watcher_start(struct rdma_devices *devices);
void rdma_watcher_stop(struct rdma_devices *devices); /* when the workers' threads have ended */
/* Has the watcher look whether devices have come or gone, once a second at most; the lock is held.
 */
void rdma_devices_ask(struct rdma_devices *devices);
void rdma_devices_changed(struct rdma_devices *devices); /* at once; the lock is not held */
/* Connects when the watcher has looked. False: out of memory. */
bool rdma_devices_seek(struct rdma_poll_group *group, struct rdma_request *request);
void rdma_has_left(struct rdma_worker *worker); /* by its thread: the group has let go of it */

/* ---- choose.c ---- */

/* Which of these serves a channel of that path best. NULL: there is none. `fits`: it is up, and has
 * the path's address, or is of the peer's subnet. */
struct rdma_service *rdma_choose(struct rdma_service *const *services, uint32_t count,
                                 const struct rdma_path *path, bool *fits);
bool rdma_is_address_of_any(struct rdma_service *const *services, uint32_t count,
                            const struct rdma_path *path);
/* Whether it would speak to the peer from an address of its family. */
bool rdma_reaches(struct rdma_service *service, const struct rdma_path *path);
/* The address that the system would send from. False: it knows no way. */
bool rdma_route(const uint8_t peer[16], uint8_t source[16]);

/* ---- service.c ---- */

/* Opens a device and begins to serve. NULL: none fits, and message tells why. */
struct rdma_service *rdma_service_open(struct rdma_devices *devices,
                                       const struct rdma_choice *choice,
                                       char message[RDMA_ERROR_MAX]);
/* As rdma_ops has them, of one device. */
void rdma_service_halt(struct rdma_service *service);
void rdma_service_free(struct rdma_service *service);
struct rdma_worker *rdma_service_attach(struct rdma_service *service,
                                        struct rdma_poll_group *group);
/* What it is like, the GIDs that its channels may speak from, and what it adds to the counts. By
 * any thread. */
void rdma_service_describe(struct rdma_service *service, struct rdma_port_info *port);
void rdma_service_gids(struct rdma_service *service, struct rdma_info *info);
void rdma_service_count(struct rdma_service *service, struct rdma_info *info);

void rdma_submit(struct rdma_service *service, struct rdma_job *job);
void rdma_submit_locked(struct rdma_service *service, struct rdma_job *job); /* the lock is held */
void rdma_delay(struct rdma_service *service, struct rdma_job *job,
                uint64_t ns); /* by the helper */

uint64_t rdma_clock_ns(void);
/* By the helper: addresses come and go, and the port's state, LID and MTU change. */
void rdma_look_at_gids(struct rdma_service *service);
void rdma_look_at_port(struct rdma_service *service);

/* ---- failure.c ---- */

/* A call on the worker's queues failed (error 0: no reason given), or an event reported their
 * failure. All its channels end at the next poll. Threads: the worker's or the helper. */
void rdma_worker_fail(struct rdma_worker *worker, const char *what, int error);
/* The same for one channel. Thread: its worker's. */
void rdma_channel_fail(struct rdma_channel *channel, const char *what, int error);
/* To be called first in each poll. True: channels were ended. */
bool rdma_worker_end_failed(struct rdma_worker *worker);
/* A client has invalidated a key. No client may: the key may have been that of another client's
 * ring. */
void rdma_key_ended(struct rdma_worker *worker, uint32_t key);
/* The device has been removed: its channels end. Thread: the watcher. */
void rdma_device_gone(struct rdma_service *service);
/* Logs at most once a second: clients could otherwise fill the disk. */
void rdma_say(struct rdma_service *service, const char *text);
/* Thread: the helper. False: no more events can be read. */
bool rdma_take_events(struct rdma_service *service);

/* ---- engine.c: on the helper thread; at the end, where there is none any more ---- */

/* Whether the memory of a first channel can be pinned. Called before the helper starts. */
bool rdma_may_pin_at_all(struct rdma_service *service, char message[RDMA_ERROR_MAX]);
/* Capacity that a completion queue needs. */
uint32_t rdma_most_completions(const struct rdma_service *service);
void rdma_engine_free(struct rdma_service *service, struct rdma_engine *engine);
void rdma_chunk_free(struct rdma_service *service, struct rdma_chunk *chunk);
void rdma_channel_dismantle(struct rdma_service *service, struct rdma_channel *channel);
/* Jobs: of a channel's steps (above), and of a worker without channels. */
void rdma_job_connect(struct rdma_service *service, struct rdma_job *job);
void rdma_job_connected(struct rdma_service *service, struct rdma_job *job);
void rdma_job_stop(struct rdma_service *service, struct rdma_job *job);
void rdma_job_destroy(struct rdma_service *service, struct rdma_job *job);
void rdma_job_recycle(struct rdma_service *service, struct rdma_job *job);

/* ---- resolve.c ---- */

/* Thread: the helper. Has the channel's queue pair connected, then submits rdma_job_connected. */
void rdma_resolve(struct rdma_service *service, struct rdma_channel *channel);
/* When is_stopping is set and the helper has ended: joins the threads. */
void rdma_resolvers_stop(struct rdma_service *service);

/* ---- pages.c ---- */

/* The key of the region that holds these bytes of the store's pages. False: none does yet; the
 * helper has been asked for one and may fail. */
bool rdma_pages_key(struct rdma_worker *worker, const void *address, size_t len, uint32_t *lkey);
void rdma_job_register(struct rdma_service *service, struct rdma_job *job);
void rdma_pages_free(struct rdma_service *service); /* call when no queue pair is left */

/* ---- worker.c ---- */

struct rdma_worker *rdma_worker_new(struct rdma_service *service, struct rdma_poll_group *group);
void rdma_worker_free(struct rdma_worker *worker); /* when no thread uses it */
bool rdma_worker_connect(struct rdma_worker *worker, struct rdma_request *request);
bool rdma_worker_poll(struct rdma_worker *worker);
bool rdma_worker_sleep(struct rdma_worker *worker);
bool rdma_worker_woken(struct rdma_worker *worker);

/* Messages from the helper. */
void rdma_on_made(struct worker *owner, struct worker_message *message);
void rdma_on_connected(struct worker *owner, struct worker_message *message);
void rdma_on_settled(struct worker *owner, struct worker_message *message);
void rdma_on_destroyed(struct worker *owner, struct worker_message *message);
/* And the watcher: the device is not used any more. */
void rdma_on_leaving(struct worker *owner, struct worker_message *message);

void rdma_note_ready(struct rdma_channel *channel);   /* its callback is to be called */
void rdma_note_touched(struct rdma_channel *channel); /* it may owe credits */
const char *rdma_received_frame(const struct rdma_worker *worker, uint32_t buffer);
void rdma_post_receive(struct rdma_worker *worker, uint32_t buffer);
void rdma_end_channel(struct rdma_channel *channel);    /* released by its connection */
void rdma_break_off(struct rdma_channel *channel);      /* as rdma_break, and counted */
void rdma_give_up_window(struct rdma_channel *channel); /* refuses a waiting client */

/* Increments a counter that one thread writes. */
static inline void rdma_count(_Atomic uint64_t *counter, uint64_t amount)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + amount, memory_order_relaxed);
}

/* Posts a receive of a queue pair's own. */
void rdma_post_own_receive(struct rdma_link *link, uint32_t buffer);

/* ---- channel.c ---- */

struct transport *rdma_channel_wrap(struct rdma_channel *channel, struct transport *tcp);
bool rdma_channel_stats(const struct transport *transport, struct rdma_stats *stats);
void rdma_channel_received(struct rdma_channel *channel, const struct ibv_wc *completion);
void rdma_channel_pulled(struct rdma_channel *channel); /* no READ fills pages any more */
void rdma_channel_placed(struct rdma_channel *channel); /* placed memory is not needed any more */
void rdma_count_held(struct rdma_channel *channel);
void rdma_channel_break(struct rdma_channel *channel); /* nothing more is received or sent */
unsigned rdma_channel_readiness(const struct rdma_channel *channel);

#endif
