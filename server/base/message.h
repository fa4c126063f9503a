/*
 * Calls from one thread to a worker's.
 */
#ifndef VELLUM_MESSAGE_H
#define VELLUM_MESSAGE_H

#include <stdbool.h>

struct worker;

/* A call to be made on another worker's thread: embedded in what it is about, so that posting
 * cannot fail. Must live until `visit` is called; visit may free or post it again. */
struct worker_message {
    void (*visit)(struct worker *worker, struct worker_message *message);
    struct worker_message *next;
    bool is_urgent; /* not to wait for a script that runs for long: see loop_hooks */
};

/* Calls message->visit on the thread of `to` in its next round; messages of one thread arrive in
 * order. From any thread. */
void worker_post(struct worker *to, struct worker_message *message);

#endif
