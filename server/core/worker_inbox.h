/*
 * Messages from any thread to a worker thread.
 *
 * Threads: worker_post and worker_wake may be called by any thread, the rest by the worker's.
 */
#ifndef VELLUM_WORKER_INBOX_H
#define VELLUM_WORKER_INBOX_H

#include <stdbool.h>

struct worker;

/* A call to run on another worker's thread. The message is embedded in the object that it concerns,
 * so posting cannot fail. It must stay allocated until `visit` is called, which may free it or post
 * it again. */
struct worker_message {
    void (*visit)(struct worker *worker, struct worker_message *message);
    struct worker_message *next;
    bool is_urgent; /* may run while a long script is running: see loop_hooks */
};

/* Calls message->visit on the thread of `to` in its next round. Messages from one thread arrive in
 * order. Callable from any thread. */
void worker_post(struct worker *to, struct worker_message *message);

/* worker_post by the worker's own thread, without a wake-up: the message is visited later in this
 * round. Only within the worker's round. */
void worker_post_self(struct worker *self, struct worker_message *message);

void worker_wake(struct worker *worker);

/* Opens the inbox. False: out of memory or descriptors; it must be closed nevertheless, when it is
 * empty and no thread posts any more. Its descriptor is readable when a message has been posted. */
bool worker_open_inbox(struct worker *worker);
void worker_close_inbox(struct worker *worker);
int worker_inbox_fd(const struct worker *worker);
bool worker_has_messages(const struct worker *worker);
/* Visits messages in order. If they have pushed much output, the rest is held for the next visit:
 * the subscribers' connections need turns in between, to send their output and to count it. */
void worker_visit_inbox(struct worker *worker);
void worker_visit_urgent(struct worker *worker); /* the others are held, in order */
void worker_visit_rest(struct worker *worker);   /* what is left, after the worker has ended */

#endif
