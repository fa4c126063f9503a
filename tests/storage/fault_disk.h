/*
 * A disk in memory that fails as it is told to. The medium outlives the disks on it, as a real one
 * outlives the servers: a test opens a store on a disk, cuts the power, and opens another one.
 *
 * Every operation is an event, and events are counted: `cut_after` and the failures name them by
 * number, so that a test can have each of them once.
 */
#ifndef VELLUM_TEST_STORAGE_FAULT_DISK_H
#define VELLUM_TEST_STORAGE_FAULT_DISK_H

#include "harness.h"

enum fault_kind {
    FAULT_READ,
    FAULT_WRITE, /* of all writes, the durable ones included */
    FAULT_FLUSH,
    FAULT_EXTEND,
    FAULT_KINDS,
};

struct medium;

struct medium *medium_new(uint64_t seed);
void medium_free(struct medium *medium);
/* A disk on the medium, for one store. Power is on again. */
struct disk *medium_disk(struct medium *medium);

/* The power goes at the given number of events from now on: what was not flushed is kept, lost or
 * torn. Everything that a disk is asked for then fails. 0: it stays on. */
void medium_cut_after(struct medium *medium, uint64_t events);
void medium_cut_now(struct medium *medium);
bool medium_is_cut(struct medium *medium);
uint64_t medium_events(struct medium *medium); /* since medium_new */

/* The nth operation of the kind from now on fails with `error` (1: the next one), and the ones
 * after it as well if `lasting`. `file` (a prefix) limits it, or is NULL. nth 0: none fails. */
void medium_fail(struct medium *medium, enum fault_kind kind, const char *file, uint32_t nth,
                 int error, bool lasting);
/* Bytes of all files together; beyond them ENOSPC. */
void medium_set_room(struct medium *medium, uint64_t bytes);
uint64_t medium_bytes(struct medium *medium);

/* Direct access, while no store is open. */
uint64_t medium_size(struct medium *medium, const char *file);
void medium_peek(struct medium *medium, const char *file, uint64_t offset, void *to, size_t len);
void medium_poke(struct medium *medium, const char *file, uint64_t offset, const void *from,
                 size_t len);

#endif
