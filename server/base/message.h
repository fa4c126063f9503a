/*
 * Messages from any thread to a worker thread.
 */
#ifndef VELLUM_MESSAGE_H
#define VELLUM_MESSAGE_H

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

#endif
