/*
 * An invalidation on its way to a client:
 *
 *     pending --the client's worker takes it--> waiting --earlier replies are out--> output
 *        ^                                         |
 *     changes, on any thread                       '--> the target's worker --> its output
 *
 * The worker is woken by a message. It also looks before each command of the client, so that a
 * change that was acknowledged to one client before another one sent a command is told to that one
 * before its reply.
 *
 * Invariants:
 * 1. A change is noted under the lock of its key's partition. A run that has read the value before
 *    belongs to a request that is answered when the invalidation arrives at its worker, or has
 *    begun and is not. `due` is the number of answers after which all of these are; so the
 *    invalidation comes after the value that it concerns. What arrives while one is waiting stays
 *    pending until that is sent: commands that follow each other closely cannot delay it for ever.
 * 2. A request that is parked has read nothing; nor has one that is blocked: it will run again.
 * 3. `is_posted`: the message is on its way. `has_pending`: `pending` is not empty.
 * 4. A name is in `pending` once. It gets there again only after another read of the client, so
 *    their memory is bounded by what the client has read.
 */
#include "server/exec/tracker.h"

#include <assert.h>
#include <stdlib.h>

#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/exec/request.h"
#include "server/net/conn.h"
#include "server/net/conn_output.h"

/* ---- targets ---- */

struct tracking_target *tracking_target_of(struct conn *conn)
{
    struct tracking_target *target = conn->session.tracking_target;
    if (target == NULL) {
        target = calloc(1, sizeof *target);
        if (target == NULL)
            return NULL;
        target->holders = 1;
        target->id = conn->session.id;
        target->worker = conn->worker;
        target->conn = conn;
        conn->session.tracking_target = target;
    }
    atomic_fetch_add(&target->holders, 1);
    return target;
}

void tracking_target_release(struct tracking_target *target)
{
    if (target != NULL && atomic_fetch_sub(&target->holders, 1) == 1)
        free(target);
}

void tracking_target_leave(struct conn *conn)
{
    struct tracking_target *target = conn->session.tracking_target;
    conn->session.tracking_target = NULL;
    if (target == NULL)
        return;
    target->conn = NULL;
    atomic_store(&target->is_gone, true);
    tracking_target_release(target);
}

/* ---- trackers ---- */

struct tracker *tracker_new(struct conn *conn)
{
    struct tracker *tracker = calloc(1, sizeof *tracker);
    if (tracker == NULL)
        return NULL;
    tracker->holders = 1;
    tracker->worker = conn->worker;
    tracker->conn = conn;
    LIST_INIT(&tracker->prefixes);
    pthread_mutex_init(&tracker->lock, NULL);
    return tracker;
}

void tracker_hold(struct tracker *tracker)
{
    atomic_fetch_add_explicit(&tracker->holders, 1, memory_order_relaxed);
}

void tracker_release(struct tracker *tracker)
{
    uint32_t before = atomic_fetch_sub_explicit(&tracker->holders, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1)
        return;
    assert(tracker->conn == NULL && LIST_EMPTY(&tracker->prefixes));
    invalidation_clear(&tracker->pending);
    pthread_mutex_destroy(&tracker->lock);
    free(tracker);
}

void tracker_end(struct tracker *tracker)
{
    atomic_store(&tracker->has_ended, true);
    tracker->conn = NULL;
    tracking_target_release(tracker->target);
    tracker->target = NULL;
    invalidation_clear(&tracker->waiting);
    tracker->is_waiting = false;
    pthread_mutex_lock(&tracker->lock);
    invalidation_clear(&tracker->pending);
    pthread_mutex_unlock(&tracker->lock);
    tracker_release(tracker);
}

/* ---- output ---- */

static void put_out(struct conn *conn, struct resp_writer *writer)
{
    const struct resp_slice bytes = {writer->data, writer->len};
    struct resp_writer *output = &conn->worker->output;
    conn_output_settle(conn, output->len); /* replies of this turn, if it is the connection's */
    resp_truncate(output, 0);
    if (writer->failed)
        conn_kill(conn);
    else
        conn_output_push(conn, &bytes, 1, NULL);
    resp_writer_free(writer);
}

/* A subscriber gets them also in RESP2, in which messages of other kinds are unknown; but only as
 * the target of another client, since its own replies could not be told apart from them. */
static void push(struct conn *conn, const struct invalidation *invalidation, bool is_grouped,
                 bool is_redirected)
{
    uint8_t version = conn->session.resp_version;
    if (version != 3 && !(is_redirected && pubsub_is_subscriber(&conn->session.pubsub)))
        return;
    struct resp_writer writer;
    resp_writer_init(&writer, version);
    invalidation_write(invalidation, is_grouped, &writer);
    put_out(conn, &writer);
}

/* An invalidation on its way to the worker of a target. */
struct redirected {
    struct worker_message message;
    struct tracking_target *target;
    struct invalidation invalidation;
    bool is_grouped;
};

static void on_redirected(struct worker *worker, struct worker_message *message)
{
    struct redirected *redirected = (struct redirected *)message;
    struct tracking_target *target = redirected->target;
    assert(target->worker == worker);
    (void)worker;
    if (target->conn != NULL)
        push(target->conn, &redirected->invalidation, redirected->is_grouped, true);
    invalidation_clear(&redirected->invalidation);
    tracking_target_release(target);
    free(redirected);
}

_Static_assert(offsetof(struct redirected, message) == 0, "a redirected one is its message");

static void redirect(struct tracker *tracker)
{
    struct redirected *redirected = malloc(sizeof *redirected);
    if (redirected == NULL) {
        conn_kill(tracker->conn);
        return;
    }
    struct tracking_target *target = tracker->target;
    atomic_fetch_add(&target->holders, 1);
    *redirected = (struct redirected){
        .message = {.visit = on_redirected, .is_urgent = true},
        .target = target,
        .invalidation = tracker->waiting,
        .is_grouped = (tracker_options(tracker) & TRACKER_BCAST) != 0,
    };
    tracker->waiting = (struct invalidation){.all = false};
    if (target->worker == tracker->worker)
        worker_post_self(target->worker, &redirected->message);
    else
        worker_post(target->worker, &redirected->message);
}

static void tell_broken(struct conn *conn, uint64_t target_id)
{
    struct resp_writer writer;
    if (conn->session.resp_version != 3)
        return;
    resp_writer_init(&writer, 3);
    resp_push(&writer, 2);
    resp_bulk_string(&writer, "tracking-redir-broken");
    resp_integer(&writer, (int64_t)target_id);
    put_out(conn, &writer);
}

static void send_waiting(struct tracker *tracker)
{
    const struct tracking_target *target = tracker->target;
    struct conn *conn = tracker->conn;
    if (target == NULL) {
        bool is_grouped = (tracker_options(tracker) & TRACKER_BCAST) != 0;
        push(conn, &tracker->waiting, is_grouped, false);
    } else if (!atomic_load(&target->is_gone)) {
        redirect(tracker);
    } else {
        tracker->is_broken = true;
        tell_broken(conn, target->id);
    }
    invalidation_clear(&tracker->waiting);
    tracker->is_waiting = false;
}

/* ---- waiting ---- */

/* Requests of the connection that have begun and are not answered. */
static uint32_t begun(const struct conn *conn)
{
    uint32_t count = 0;
    const struct request *request = STAILQ_FIRST(&conn->requests);
    for (; request != conn->first_parked; request = STAILQ_NEXT(request, of_conn))
        count++;
    return count;
}

static void take_pending(struct tracker *tracker)
{
    pthread_mutex_lock(&tracker->lock);
    tracker->waiting = tracker->pending;
    tracker->pending = (struct invalidation){.all = false};
    atomic_store_explicit(&tracker->has_pending, false, memory_order_relaxed);
    pthread_mutex_unlock(&tracker->lock);
    tracker->is_waiting = true;
    tracker->due = tracker->conn->answered + begun(tracker->conn);
}

static bool has_pending(const struct tracker *tracker)
{
    return atomic_load_explicit(&tracker->has_pending, memory_order_acquire);
}

static void note_memory(struct tracker *tracker)
{
    struct session *session = &tracker->conn->session;
    session->invalidation_bytes = tracker->waiting.bytes;
    if (!has_pending(tracker))
        return;
    pthread_mutex_lock(&tracker->lock);
    session->invalidation_bytes += tracker->pending.bytes;
    pthread_mutex_unlock(&tracker->lock);
}

void tracker_advance(struct tracker *tracker)
{
    const struct conn *conn = tracker->conn;
    while (tracker->is_waiting || has_pending(tracker)) {
        if (!tracker->is_waiting)
            take_pending(tracker);
        if (conn->answered < tracker->due && !conn->stands_by)
            break;
        send_waiting(tracker);
    }
    note_memory(tracker);
}

/* ---- messages ---- */

static void receive(struct worker *worker, struct worker_message *message)
{
    struct tracker *tracker =
        (struct tracker *)((char *)message - offsetof(struct tracker, message));
    assert(tracker->worker == worker);
    (void)worker;
    pthread_mutex_lock(&tracker->lock);
    tracker->is_posted = false;
    pthread_mutex_unlock(&tracker->lock);
    if (tracker->conn != NULL)
        tracker_turn(tracker);
    tracker_release(tracker);
}

/* On the thread that has made the change, after its turn. */
static void pass_on(struct worker *worker, struct worker_message *message)
{
    struct tracker *tracker =
        (struct tracker *)((char *)message - offsetof(struct tracker, message));
    if (tracker->worker == worker) {
        receive(worker, message);
        return;
    }
    message->visit = receive;
    worker_post(tracker->worker, message);
}

static void post(struct tracker *tracker, struct worker *self)
{
    tracker_hold(tracker);
    tracker->message = (struct worker_message){.is_urgent = true};
    tracker->message.visit = self != NULL ? pass_on : receive;
    if (self != NULL)
        worker_post_self(self, &tracker->message);
    else
        worker_post(tracker->worker, &tracker->message);
}

/* The lock is held. Returns whether the message has to be posted. */
static bool note_pending(struct tracker *tracker)
{
    bool posts = !tracker->is_posted;
    tracker->is_posted = true;
    atomic_store_explicit(&tracker->has_pending, true, memory_order_release);
    return posts;
}

void tracker_note(struct tracker *tracker, const struct store_key *key, uint32_t group,
                  struct worker *self)
{
    if (atomic_load_explicit(&tracker->has_ended, memory_order_relaxed))
        return;
    pthread_mutex_lock(&tracker->lock);
    invalidation_add(&tracker->pending, key, group);
    bool posts = note_pending(tracker);
    pthread_mutex_unlock(&tracker->lock);
    if (posts)
        post(tracker, self);
}

void tracker_note_all(struct tracker *tracker, struct worker *self)
{
    pthread_mutex_lock(&tracker->lock);
    invalidation_add_all(&tracker->pending);
    bool posts = note_pending(tracker);
    pthread_mutex_unlock(&tracker->lock);
    if (posts)
        post(tracker, self);
}
