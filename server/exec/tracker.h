/*
 * A client in tracking mode (CLIENT TRACKING): its options, and the invalidations on their way to
 * it, or to the client that it redirects them to.
 *
 * Threads: a tracker belongs to its connection's worker; any thread may hold it and note changes.
 */
#ifndef VELLUM_TRACKER_H
#define VELLUM_TRACKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "server/core/worker_inbox.h"
#include "server/exec/invalidation.h"

struct conn;
struct worker;

enum tracker_option {
    TRACKER_BCAST = 1 << 0,
    TRACKER_OPTIN = 1 << 1,
    TRACKER_OPTOUT = 1 << 2,
    TRACKER_NOLOOP = 1 << 3
};

/* A client that others redirect their invalidations to. */
struct tracking_target {
    _Atomic uint32_t holders;
    _Atomic bool is_gone;
    uint64_t id;
    struct worker *worker;
    struct conn *conn; /* of its worker's thread; NULL: closed */
};

struct tracking_target *tracking_target_of(struct conn *conn); /* with a hold; NULL: no memory */
void tracking_target_release(struct tracking_target *target);  /* may be NULL */
void tracking_target_leave(struct conn *conn);                 /* it is closed */

struct tracker {
    _Atomic uint32_t holders;
    _Atomic uint32_t options; /* of enum tracker_option; its worker's thread writes them */
    _Atomic bool has_ended;
    struct worker *worker;
    LIST_ENTRY(tracker) of_all; /* see tracking.c */

    /* of its worker's thread */
    struct conn *conn;                   /* NULL: it has ended */
    struct tracking_target *target;      /* or NULL */
    bool is_broken;                      /* the target is gone, as the last invalidation found */
    LIST_HEAD(, prefix_member) prefixes; /* in the order of their names, see prefix_table.h */
    uint32_t prefix_count, next_group;
    uint64_t prefix_bytes; /* of memory */
    bool is_waiting;
    struct invalidation waiting;
    uint64_t due; /* of `waiting`: see tracker.c */

    pthread_mutex_t lock; /* a leaf; guards what follows */
    struct invalidation pending;
    bool is_posted;
    struct worker_message message;
    _Atomic bool has_pending; /* may be read without the lock */
};

/* With one hold, its connection's; NULL: out of memory. */
struct tracker *tracker_new(struct conn *conn);
void tracker_hold(struct tracker *tracker);
void tracker_release(struct tracker *tracker);
void tracker_end(struct tracker *tracker); /* nothing more is sent, and the hold is released */

static inline uint32_t tracker_options(const struct tracker *tracker)
{
    return atomic_load_explicit(&tracker->options, memory_order_relaxed);
}

/* Notes that a key, or all, have changed; also by observers of the store. `self`: the worker whose
 * thread calls, within its round: other changes of this turn join this one; NULL: another thread,
 * or unknown. */
void tracker_note(struct tracker *tracker, const struct store_key *key, uint32_t group,
                  struct worker *self);
void tracker_note_all(struct tracker *tracker, struct worker *self);

/* Puts out what may be sent. In a turn of its connection: before each command, so that a client
 * that knows of a change by other ways gets the invalidation before the next reply, and at the end,
 * since commands may have been answered. */
void tracker_advance(struct tracker *tracker);
static inline void tracker_turn(struct tracker *tracker)
{
    if (tracker->is_waiting || atomic_load_explicit(&tracker->has_pending, memory_order_acquire))
        tracker_advance(tracker);
}

#endif
