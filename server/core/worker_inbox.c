/*
 * A worker's inbox.
 *
 * Invariants:
 * 1. The worker sees the messages of one thread in the order in which they were posted; in nested
 *    rounds the urgent ones overtake the others.
 * 2. A thread that posts into an empty inbox wakes the worker; later ones need not. The worker does
 *    not wake itself (worker_post_self): it visits the inbox before its round ends.
 * 3. Messages taken out and held come before all that are still in the inbox.
 */
#include "server/core/worker_inbox.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "server/core/worker.h"

#define PUSH_SHARE 4 /* of the soft limit: pushed bytes after which connections get turns */

struct worker_inbox {
    _Atomic(struct worker_message *) newest; /* linked, newest first */
    struct worker_message *held, *last_held; /* taken out but not visited, oldest first */
    int wake_fd;
};

bool worker_open_inbox(struct worker *worker)
{
    worker->inbox = calloc(1, sizeof *worker->inbox);
    if (worker->inbox == NULL)
        return false;
    worker->inbox->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return worker->inbox->wake_fd >= 0;
}

void worker_close_inbox(struct worker *worker)
{
    if (worker->inbox == NULL)
        return;
    if (worker->inbox->wake_fd >= 0)
        close(worker->inbox->wake_fd);
    free(worker->inbox);
    worker->inbox = NULL;
}

int worker_inbox_fd(const struct worker *worker)
{
    return worker->inbox->wake_fd;
}

void worker_wake(struct worker *worker)
{
    uint64_t one = 1;
    ssize_t written = write(worker->inbox->wake_fd, &one, sizeof one);
    assert(written == sizeof one || errno == EAGAIN);
}

/* Returns whether the inbox was empty before. */
static bool push_message(struct worker *to, struct worker_message *message)
{
    _Atomic(struct worker_message *) *newest = &to->inbox->newest;
    struct worker_message *head = atomic_load_explicit(newest, memory_order_relaxed);
    do
        message->next = head;
    while (!atomic_compare_exchange_weak_explicit(newest, &head, message, memory_order_release,
                                                  memory_order_relaxed));
    return head == NULL;
}

void worker_post(struct worker *to, struct worker_message *message)
{
    if (push_message(to, message)) /* otherwise an earlier poster has woken it */
        worker_wake(to);
}

static bool inbox_is_empty(const struct worker *worker)
{
    return atomic_load_explicit(&worker->inbox->newest, memory_order_relaxed) == NULL;
}

bool worker_has_messages(const struct worker *worker)
{
    return worker->inbox->held != NULL || !inbox_is_empty(worker);
}

/* Appends the inbox to the held messages. */
static void take_inbox(struct worker *worker)
{
    struct worker_inbox *inbox = worker->inbox;
    struct worker_message *newest =
        atomic_exchange_explicit(&inbox->newest, NULL, memory_order_acquire);
    struct worker_message *oldest = NULL, *last = newest;
    while (newest != NULL) {
        struct worker_message *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    if (oldest == NULL)
        return;
    *(inbox->held == NULL ? &inbox->held : &inbox->last_held->next) = oldest;
    inbox->last_held = last;
}

/* Takes the held messages and those that came since, in order. */
static struct worker_message *take_all(struct worker *worker)
{
    struct worker_inbox *inbox = worker->inbox;
    take_inbox(worker);
    struct worker_message *first = inbox->held;
    inbox->held = inbox->last_held = NULL;
    return first;
}

/* Puts messages before the held ones. */
static void put_back(struct worker *worker, struct worker_message *first)
{
    struct worker_inbox *inbox = worker->inbox;
    struct worker_message *last = first;
    while (last->next != NULL)
        last = last->next;
    last->next = inbox->held;
    if (inbox->held == NULL)
        inbox->last_held = last;
    inbox->held = first;
}

static uint64_t pushed_most(const struct worker *worker)
{
    return atomic_load_explicit(&worker->server->client_soft_limit, memory_order_relaxed) /
           PUSH_SHARE;
}

void worker_visit_inbox(struct worker *worker)
{
    uint64_t most = pushed_most(worker);
    struct worker_message *next = take_all(worker);
    worker->pushed_bytes = 0;
    for (struct worker_message *message; (message = next) != NULL;) {
        next = message->next;
        message->visit(worker, message);
        if (next != NULL && worker->pushed_bytes > most) {
            put_back(worker, next);
            return;
        }
    }
}

void worker_visit_rest(struct worker *worker)
{
    do
        worker_visit_inbox(worker);
    while (worker->inbox->held != NULL);
}

void worker_visit_urgent(struct worker *worker)
{
    struct worker_inbox *inbox = worker->inbox;
    uint64_t most = pushed_most(worker);
    struct worker_message *next = take_all(worker);
    worker->pushed_bytes = 0;
    for (struct worker_message *message; (message = next) != NULL;) {
        next = message->next;
        if (message->is_urgent && worker->pushed_bytes <= most) {
            message->visit(worker, message);
            continue;
        }
        message->next = NULL;
        *(inbox->held == NULL ? &inbox->held : &inbox->last_held->next) = message;
        inbox->last_held = message;
    }
    if (inbox->held != NULL)
        worker_wake(worker);
}

void worker_post_self(struct worker *self, struct worker_message *message)
{
    push_message(self, message);
}
