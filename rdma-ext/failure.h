/*
 * What a failed call or an event of the device ends: see failure.c.
 */
#ifndef VELLUM_RDMA_FAILURE_H
#define VELLUM_RDMA_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

struct rdma_channel;
struct rdma_service;
struct rdma_worker;

/* A call on the worker's queues failed (error 0: no reason given), or an event reported their
 * failure. All its channels end at the next poll. Threads: the worker's or the helper. */
void rdma_worker_fail(struct rdma_worker *worker, const char *what, int error);
/* The same for one channel. Thread: its worker's. */
void rdma_channel_fail(struct rdma_channel *channel, const char *what, int error);
/* To be called first in each poll. True: channels were ended. */
bool rdma_worker_end_failed(struct rdma_worker *worker);
/* A client has invalidated a key, which is a breach: it may be the key of another client's ring. */
void rdma_key_ended(struct rdma_worker *worker, uint32_t key);
/* The device has been removed: its channels end. Thread: the watcher. */
void rdma_device_gone(struct rdma_service *service);
/* Logs at most once a second: clients could otherwise fill the disk. */
void rdma_say(struct rdma_service *service, const char *text);
/* Thread: the helper. False: no more events can be read. */
bool rdma_take_events(struct rdma_service *service);

#endif
