/*
 * The store's pages, registered with the device: see page_registration.c.
 */
#ifndef VELLUM_RDMA_PAGE_REGISTRATION_H
#define VELLUM_RDMA_PAGE_REGISTRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rdma_job;
struct rdma_service;
struct rdma_worker;

#define REGIONS_MAX 4096 /* of the store's pages */

/* Finds the key of the region that contains these bytes of the store's pages. False: there is
 * none yet; the helper has been asked to register one, which may fail. */
bool rdma_pages_key(struct rdma_worker *worker, const void *address, size_t len, uint32_t *lkey);
void rdma_job_register(struct rdma_service *service, struct rdma_job *job);
void rdma_pages_free(struct rdma_service *service); /* call when no queue pair is left */

#endif
