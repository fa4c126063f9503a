/*
 * The redo journal: one ring of groups for the whole store. Every commit is a record in it; records
 * are collected in memory and written as a group. While one group is in flight, the next may be
 * started: a device completes two writes in less time than one after the other.
 *
 * Invariants
 * 1. Commit numbers are consecutive in the order of records; so are the sequence numbers of groups.
 * 2. At most JOURNAL_FLIGHTS groups are in flight. Their writes may complete in any order;
 *    `durable` is the last commit of the last completed group that no group in flight precedes. It
 *    never decreases. So after a power cut fewer than JOURNAL_FLIGHTS groups may follow a missing
 *    one: they were never acknowledged, and recovery ends at the missing one.
 * 3. From the tail (the last checkpoint) to `position` the ring holds every group without a gap: an
 *    append that would reach the tail is refused until a checkpoint moves it.
 * 4. A group is sealed only when the data outside of the ring that its records name (long_record.c)
 *    is durable.
 * 5. After a failed write nothing is appended, written or acknowledged any more.
 *
 *     append: filling --start--> in flight --written--> durable --checkpoint--> released
 *
 * Threads: all functions but journal_init, journal_free and journal_start_at lock inside. Between
 * journal_begin and journal_end the lock is held, and only observers' locks (exec/change.c) are
 * taken. The write runs on the queue of the thread that started it, which also completes it.
 */
#ifndef VELLUM_STORE_JOURNAL_H
#define VELLUM_STORE_JOURNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "storage/base/disk.h"
#include "storage/base/env.h"
#include "storage/format/format.h"

#define JOURNAL_MIN_BYTES SIZES_JOURNAL_MIN
#define JOURNAL_MAX_BYTES (8ull << 30) /* lengths of records fit 32 bits */
#define JOURNAL_GROUP_TARGET                                                                       \
    SIZES_GROUP_TARGET /* unless `always`, a write starts once so many bytes are collected */
#define JOURNAL_GROUP_LIMIT SIZES_GROUP_LIMIT /* then writers wait for a group to complete */
#define JOURNAL_FLIGHTS 2u
#define JOURNAL_OVERDUE_MS 1000
/* Longer buffers are freed once their group is durable. */
#define JOURNAL_BUFFER_KEPT (8u << 20)
#define JOURNAL_RECORD_SHARE 8u /* the largest share of the ring that one record may take: 1/8 */

struct journal_buffer {
    char *memory;
    uint64_t capacity;
    uint64_t length; /* header included; 0: no record yet */
    uint64_t first_commit;
    uint32_t record_count;
};

/* A group in flight. */
struct journal_flight {
    struct journal *journal;
    struct journal_buffer group;
    bool arrived;
    struct disk_queue *queue; /* the queue of its write */
    int64_t began_ns;         /* when it was queued there */
    struct disk_op operation;
    struct iovec vector;
};

/* A group boundary: redo can begin here. */
struct journal_mark {
    uint64_t position, sequence, previous, commit;
    struct format_databases databases;
};

struct journal {
    pthread_mutex_t lock;
    struct env *env;
    /* Set by the owner before the first use: */
    uint64_t seed;    /* the store's, for every group */
    _Atomic int sync; /* enum store_sync; may change at any time */
    /* `durable` has advanced. here: the queue whose completions this thread is handling. No
     * lock is held. */
    void (*on_durable)(void *arg, const struct disk_queue *here);
    void (*on_growth)(void *arg, uint64_t bytes); /* a buffer has grown; the lock is held */
    void *arg;
    struct disk_file *file;
    uint64_t size;
    uint64_t epoch;
    uint64_t sequence; /* of the next group to be sealed */
    uint64_t previous; /* checksum of the last sealed group */
    uint64_t position; /* offset of the next group */
    uint64_t used;     /* from the tail to position */
    /* Of `used`, beside the ring's size: recovery holds all of it in memory. */
    _Atomic uint64_t bound;
    uint64_t next_commit;
    int64_t oldest_ms; /* when the oldest record of `filling` was appended (monotonic clock) */
    struct journal_buffer filling;
    struct journal_flight flights[JOURNAL_FLIGHTS]; /* a ring: flight_count from the oldest on */
    uint32_t oldest_flight, flight_count;
    struct format_databases databases, sealed_databases;
    /* Of commits after the tail (long_record.c). */
    STAILQ_HEAD(, long_record) long_records;
    uint32_t long_record_unwritten; /* of records in `filling`, whose sealing waits for them */
    uint64_t long_record_bytes;     /* of the runs of all of them */
    _Atomic uint64_t durable;
    _Atomic uint64_t appended;
    _Atomic uint64_t bytes_written, groups;
    _Atomic int64_t slowest_ns; /* of the groups' writes, since it was last taken */
};

STORE_MUST_CHECK bool journal_init(struct journal *journal, struct env *env, uint64_t size);
void journal_free(struct journal *journal);
/* Starts a new history at `mark`, after recovery or in a new store. */
void journal_start_at(struct journal *journal, const struct journal_mark *mark, uint64_t epoch);

/* Reserves room for a record of exactly `length` bytes (a multiple of 8) and its commit number.
 * STORE_WAIT: the ring or the buffers are full, or the device is too slow for `everysec`.
 * STORE_TOO_LARGE; STORE_NO_MEMORY. STORE_REFUSED: the store has failed. On STORE_OK the lock is
 * held until journal_end. */
STORE_MUST_CHECK enum store_result journal_begin(struct journal *journal, uint64_t length,
                                                 char **record, uint64_t *commit);
/* databases: the new map if the record changes it, or NULL. */
void journal_end(struct journal *journal, const struct format_databases *databases);

/* Starts writing the collected records, if they are at least `least` bytes and a flight is
 * free. */
void journal_kick(struct journal *journal, struct disk_queue *queue, uint64_t least);
/* Milliseconds since the oldest record that is neither in flight nor durable was appended; -1:
 * there is none. */
int64_t journal_age(struct journal *journal, int64_t now_ms);
uint64_t journal_buffer_bytes(struct journal *journal);

/* The last durable commit. */
static inline uint64_t journal_durable(const struct journal *journal)
{
    return atomic_load_explicit(&journal->durable, memory_order_acquire);
}

void journal_mark(struct journal *journal, struct journal_mark *mark);
/* A checkpoint at `mark` is durable: the part of the ring before it may be reused. */
void journal_release(struct journal *journal, const struct journal_mark *mark);
/* Most of the ring is used, or more than journal_bound allows. */
bool journal_needs_checkpoint(struct journal *journal);
/* Beyond so many bytes a checkpoint is due, beyond twice as many records wait for it. The smallest
 * ring's worth is always allowed. */
void journal_bound(struct journal *journal, uint64_t bytes);
uint64_t journal_long_record_bytes(struct journal *journal);

/* Checks and checksums, shared with recovery. */
uint64_t journal_group_checksum(const struct format_group *header, const char *records);

static inline uint64_t journal_padded(uint64_t length)
{
    return (length + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
}

/* Bytes of the longest possible group: up to the limit, and then one more record. */
static inline uint64_t journal_group_most(uint64_t size)
{
    return journal_padded(JOURNAL_GROUP_LIMIT + size / JOURNAL_RECORD_SHARE);
}

#endif
