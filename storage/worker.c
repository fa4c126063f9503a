/*
 * Workers: the engine's state of a thread that executes requests.
 */
#include "storage/txn/engine.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/txn/wait.h"
#include "storage/exec/txn.h"
#include "storage/exec/request.h"
#include "storage/maintenance/tree_purge.h"
#include "storage/maintenance/expire.h"
#include "storage/maintenance/evict.h"

static enum store_result queue_failed(int error, char *message)
{
    if (error == EAGAIN)
        snprintf(message, STORE_MESSAGE_MAX,
                 "Too few AIO slots: %u more are needed. Raise /proc/sys/fs/aio-max-nr "
                 "(sysctl -w fs.aio-max-nr=1048576)",
                 QUEUE_DEPTH);
    else
        snprintf(message, STORE_MESSAGE_MAX, "Cannot set up asynchronous I/O: %s", strerror(error));
    return STORE_IO;
}

enum store_result store_attach(struct store *store, uint32_t index, struct store_worker **worker,
                               char message[STORE_MESSAGE_MAX])
{
    assert(index < store->worker_count && !store->workers[index]);
    struct store_worker *w = calloc(1, sizeof *w);
    if (!w) {
        snprintf(message, STORE_MESSAGE_MAX, "Out of memory");
        return STORE_NO_MEMORY;
    }
    w->store = store;
    w->index = w->expire_partition = index;
    TAILQ_INIT(&w->unprefetched);
    TAILQ_INIT(&w->low_priority);
    STAILQ_INIT(&w->ready);
    STAILQ_INIT(&w->handed_off);
    STAILQ_INIT(&w->inbox);
    STAILQ_INIT(&w->waking);
    const struct disk_ops *ops = store->disk->ops;
    int error = ops->queue_create(store->disk, QUEUE_DEPTH, &w->queue);
    if (!error)
        error = ops->queue_create(store->disk, 4, &w->sync_queue);
    if (error) {
        if (w->queue)
            ops->queue_free(w->queue);
        free(w);
        return queue_failed(error, message);
    }
    w->fd = ops->queue_fd(w->queue);
    pthread_mutex_init(&w->inbox_lock, NULL);
    pthread_mutex_lock(&store->maintenance_lock);
    store->workers[index] = w;
    pthread_mutex_unlock(&store->maintenance_lock);
    *worker = w;
    return STORE_OK;
}

void store_detach(struct store_worker *worker)
{
    struct store *store = worker->store;
    worker->stopping = true;
    /* Waits for the engine's own requests (expiry, closed value readers), prefetches, and a
     * journal group. */
    while (worker->parked || worker->queue->in_flight || worker->queue->queued ||
           !STAILQ_EMPTY(&worker->waking)) {
        struct pollfd readable = {.fd = worker->fd, .events = POLLIN};
        store_submit(worker);
        poll(&readable, 1, 10);
        store_poll(worker);
    }
    tree_leave_dropped(worker);
    pthread_mutex_lock(&store->maintenance_lock);
    store->workers[worker->index] = NULL;
    pthread_mutex_unlock(&store->maintenance_lock);
    /* Waits until the thread that woke the last transaction has released the inbox. */
    pthread_mutex_lock(&worker->inbox_lock);
    pthread_mutex_unlock(&worker->inbox_lock);
    for (struct store_txn *txn; (txn = SLIST_FIRST(&worker->free_txns)) != NULL;) {
        SLIST_REMOVE_HEAD(&worker->free_txns, of_free);
        txn_free(txn);
    }
    store_note_memory(store, worker->unreported_bytes);
    store->disk->ops->queue_free(worker->queue);
    store->disk->ops->queue_free(worker->sync_queue);
    pthread_mutex_destroy(&worker->inbox_lock);
    free(worker);
}

int store_worker_fd(const struct store_worker *worker)
{
    return worker->fd;
}

void store_poll(struct store_worker *worker)
{
    uint64_t count;
    if (read(worker->fd, &count, sizeof count) < 0) {
        /* nothing was signalled: polling anyway is cheap */
    }
    worker->polling = true;
    worker->store->disk->ops->reap(worker->queue, 0);
    request_run_ready(worker);
    if (atomic_exchange_explicit(&worker->expire_due, false, memory_order_relaxed))
        expire_tick(worker);
    if (worker->expire_left > 0 || !STAILQ_EMPTY(&worker->waking))
        expire_step(worker);
    if (atomic_exchange_explicit(&worker->evict_due, false, memory_order_relaxed))
        evict_step(worker);
    if (worker->dropped ||
        atomic_load_explicit(&worker->store->dropped_tree_count, memory_order_relaxed))
        tree_purge(worker);
    worker->polling = false;
    if (!STAILQ_EMPTY(&worker->ready) || !STAILQ_EMPTY(&worker->handed_off))
        request_notify(worker);
}

void store_submit(struct store_worker *worker)
{
    struct store *store = worker->store;
    if (worker->noted_count)
        expire_noted(worker);
    int sync = atomic_load_explicit(&store->journal.sync, memory_order_relaxed);
    journal_kick(&store->journal, worker->queue,
                 sync == STORE_SYNC_ALWAYS ? 0 : JOURNAL_GROUP_TARGET);
    if (worker->queue->queued > 0)
        store->disk->ops->submit(worker->queue);
}
