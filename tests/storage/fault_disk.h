/*
 * A disk in memory with injected failures. The medium outlives the disks on it, as a real one
 * outlives the servers: a test opens a store on a disk, cuts the power, and opens another one.
 *
 * Every operation is two events, when it is submitted and when it completes, and events are
 * counted: `cut_after` and the failures select them by number, so that a test can try each of them
 * once. Alternatively the state of the medium is recorded at every event, to continue from later.
 *
 * A write reads its bytes when it completes: if they are changed while it is in flight, the
 * changed bytes are on disk.
 */
#ifndef VELLUM_TEST_STORAGE_FAULT_DISK_H
#define VELLUM_TEST_STORAGE_FAULT_DISK_H

#include "tests/storage/harness.h"

enum fault_kind {
    FAULT_READ,
    FAULT_WRITE, /* of all writes, the durable ones included */
    FAULT_FLUSH,
    FAULT_EXTEND,
    FAULT_KINDS,
};

/* What becomes of a write that was not flushed when the power went. */
enum fate {
    FATE_MIXED, /* each whole, torn or lost, as the dice fall */
    FATE_KEPT,
    FATE_LOST,
    FATE_TORN, /* each sector of it kept or lost */
    FATES,
};

struct medium;

struct medium *medium_new(uint64_t seed);
/* The same bytes once more, with everything that is not flushed yet; for a store that is closed. */
struct medium *medium_copy(const struct medium *medium);
void medium_free(struct medium *medium);
/* A disk on the medium, for one store. Power is on again. */
struct disk *medium_disk(struct medium *medium);

/* The power goes at the given number of events from now on: everything that a disk is asked for
 * then fails. 0: it stays on. */
void medium_cut_after(struct medium *medium, uint64_t events);
void medium_cut_now(struct medium *medium);
bool medium_is_cut(struct medium *medium);
void medium_set_fate(struct medium *medium, enum fate fate); /* FATE_MIXED unless set */
/* Power is on again. The digest of all that a store will find, so that the same is not tried twice.
 */
uint64_t medium_digest(struct medium *medium);

/* `visit` gets the medium as it would be if the power went now, before each event that changes
 * something: a copy that is its own, what is under way included. It is called with the medium
 * locked, by whatever thread causes the event. NULL: no more. */
typedef void medium_visitor(void *arg, struct medium *state);
void medium_record(struct medium *medium, medium_visitor *visit, void *arg);

/* The nth operation of the kind from now on fails with `error` (1: the next one), and the ones
 * after it as well if `lasting`. `file` (a prefix) limits it, or is NULL. nth 0: none fails. */
void medium_fail(struct medium *medium, enum fault_kind kind, const char *file, uint32_t nth,
                 int error, bool lasting);

/* Operations of the kind on files with this prefix do not complete any more, until they are
 * released, the power goes, or `most_ms` have passed (0: without end). One hold at a time. */
void medium_hold(struct medium *medium, enum fault_kind kind, const char *file, uint32_t most_ms);
void medium_release(struct medium *medium);
uint32_t medium_held(struct medium *medium); /* under way and held back */

/* Bytes of all files together; beyond them ENOSPC. */
void medium_set_room(struct medium *medium, uint64_t bytes);
uint64_t medium_bytes(struct medium *medium);

/* A rig with the defaults, not open yet, and a new medium for it; the end of both. */
struct medium *rig_begin(struct rig *rig, uint64_t seed);
void rig_end(struct rig *rig, struct medium *medium);
/* A store of one partition that scans at each start, open on a new medium. */
struct medium *rig_begin_scanned(struct rig *rig);
/* The power goes, with all that has been written; the store is closed. */
void rig_crash(struct rig *rig, struct medium *medium);
uint64_t rig_damaged(const struct rig *rig); /* items, as the store counts them */
/* Open a store on the medium, which has to succeed; reopen: one that was open, as does closing. */
void rig_open_on(struct rig *rig, struct medium *medium);
void rig_reopen(struct rig *rig, struct medium *medium);
/* The power goes after so many events (0: it stays on). False: it did, and no store is open. */
bool rig_try_open(struct rig *rig, struct medium *medium, uint64_t cut_after);

/* Direct access, while no store is open. */
uint64_t medium_size(struct medium *medium, const char *file);
void medium_peek(struct medium *medium, const char *file, uint64_t offset, void *to, size_t len);
void medium_poke(struct medium *medium, const char *file, uint64_t offset, const void *from,
                 size_t len);
/* Where these bytes stand in the file; UINT64_MAX: nowhere. */
uint64_t medium_find(struct medium *medium, const char *file, const void *bytes, size_t len);
void medium_shorten(struct medium *medium, const char *file, uint64_t to); /* a multiple of 4096 */
void medium_flip(struct medium *medium, const char *file, uint64_t offset, uint8_t mask);

#endif
