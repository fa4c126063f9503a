/*
 * The engine's inner structures. Private to storage/.
 *
 * WHO RUNS. Worker threads execute requests; any worker may execute any request, under the locks of
 * the partitions it touches. One maintenance thread thread does what needs no client: it grows
 * files, writes dirty pages back, makes checkpoints, keeps the everysec promise.
 *
 * LOCKS, outermost first; a thread takes further ones only downwards in this list
 *   1. partitions' locks (struct space.lock), in rising order of their numbers
 *   2. free_lock
 *   3. extents.lock
 *   4. store_lock_mutex
 *   5. throttle_lock
 *   6. leaves: journal.lock, arena.lock, a worker's inbox_lock, maintenance_lock,
 * dropped_trees_lock Only eviction looks sideways, with trylock.
 *
 * A transaction's way is drawn in txn_state.h.
 */
#ifndef VELLUM_STORE_ENGINE_H
#define VELLUM_STORE_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "storage/cache/arena.h"
#include "storage/base/counter.h"
#include "storage/base/disk.h"
#include "storage/base/env.h"
#include "storage/base/number_list.h"
#include "storage/format/format.h"
#include "storage/index/index.h"
#include "storage/journal/journal.h"
#include "storage/journal/superblock.h"
#include "storage/cache/page_file.h"
#include "storage/store.h"
#include "storage/txn/hooks.h"
#include "storage/index/ttl.h"

#define STORE_HIDDEN_DB STORE_DB_COUNT /* store_key.db of the engine's own items: FORMAT_HIDDEN */
#define EXPIRY_UNIT_MS 128u
#define RERUN_LIMIT 3u /* then a run waits for the disk in place */
#define QUEUE_DEPTH 512u
#define KEY_LOCK_BUCKETS 1024u

/* ---- order per key (key_locks.c) ---- */

/* A parked transaction's place in the queue of one key. Queues are found by the key's hash: a
 * collision makes two keys share one, which delays but does no harm. */
struct key_lock {
    struct key_lock *next, *previous; /* in the same key's queue */
    struct store_txn *txn;
    uint64_t hash;
    uint16_t partition;
    bool exclusive;
    bool granted; /* nobody ahead holds it up; or it is refused, and only has to leave */
    bool in_turn; /* granted because it was its turn */
    struct {
        struct key_lock *next_bucket; /* first of the next key's queue */
        struct key_lock *last;
        struct key_lock *waiting;                    /* the first that is not in turn */
        uint32_t exclusive_ahead, exclusive_from_it; /* claims before `waiting`; from it on */
    } queue;                                         /* kept by the first claim of a queue */
};

/* ---- partitions ---- */

/* What a logical database has in one partition. */
struct database_count {
    counter keys, expires;
    counter expiries; /* their sum, in units of EXPIRY_UNIT_MS */
};

/* Room that is wanted of a partition, or of the extents (evict.c). */
struct eviction {
    uint64_t wanted;        /* classes, a bit each */
    uint64_t barren;        /* those of them in which nothing could be found that may go */
    struct index_cursor at; /* the hand: where to look on */
    uint64_t fruitless;     /* entries looked at since the last that might have gone */
};

struct partition {
    struct page_file file; /* its lock is the partition's */
    struct index index;
    struct ttl ttl;
    struct key_lock *key_locks[KEY_LOCK_BUCKETS];
    uint32_t key_lock_count;
    uint64_t last_removal; /* newest commit that made a key absent: what an absence shows */
    struct database_count databases[STORE_DB_COUNT + 1]; /* the last one's: STORE_HIDDEN_DB */
    counter expired; /* items deleted because their time had come */
    counter evicted; /* for room */
    struct eviction eviction;
} __attribute__((aligned(64)));

/* ---- transactions ---- */

enum write_kind { WRITE_PUT, WRITE_DELETE };

/* A large value to be written: what stays of `base`, with patches over it (extent.c). */
struct large_write {
    uint64_t length;
    const struct format_root *base; /* a copy of the old root, or NULL */
    struct patches *patches;        /* or NULL */
    struct format_root *root;       /* the result, once all extents are durable */
    uint32_t root_bytes;
    struct extent_write *extent_write; /* in progress */
    struct store_upload *upload;       /* whose runs `base` names, or NULL */
};

/* A change buffered by the transaction. */
struct write {
    struct store_key key;
    uint32_t place; /* of the transaction's databases */
    enum write_kind kind;
    uint8_t type;
    int64_t expire_ms;
    const char *bytes; /* small value */
    uint32_t len;
    struct large_write *large;
    struct collection *trees;  /* `bytes` are its roots */
    struct long_key *long_key; /* found when it is staged; NULL: the key stands in the item */
    uint32_t use; /* what is to be remembered of its use; 0: that it was now (access_clock.h) */

    /* found by prepare, all anew at each attempt */
    uint32_t database;
    uint32_t tag;
    uint32_t old_page, old_slot; /* old_page 0: the key is not there */
    uint32_t old_frame, new_frame;
    uint32_t item_len;
    const struct format_root *old_root;   /* of a large value that goes with this write */
    const struct format_trees *old_trees; /* of a collection that does */
    const struct format_root *old_key;    /* of the bytes of a long key, if they are not kept */
    bool reserved;                        /* room in the index */
    /* kept between attempts */
    uint32_t new_page, new_slot;
    bool slot_taken;
};

/* What the transaction makes of the databases (databases.c). A place is a database's contents:
 * those below STORE_DB_COUNT are the store's as they were, STORE_HIDDEN_DB always stays what it is,
 * each flush makes another. */
#define PLACE_FRESH (STORE_HIDDEN_DB + 1)
struct arrangement {
    bool changed; /* otherwise places[db] is db, and not written down */
    uint32_t flushes;
    uint32_t places[STORE_DB_COUNT];
    /* for the commit */
    uint8_t origins[STORE_DB_COUNT];   /* the place, or whose flush made it */
    struct format_databases databases; /* the store's new map */
    uint32_t
        doomed; /* so many of the writes, the first, come before it: deletions in the old one */
};

struct pin {
    struct page_file *file;
    uint32_t frame;
};

/* Where a transaction is: txn_state.h has the diagram and what each state means. */
enum txn_state {
    TXN_FREE,
    TXN_ENLISTED,
    TXN_SUMMONED,
    TXN_QUEUED,
    TXN_READY,
    TXN_RUNNING,
    TXN_PAUSED,
    TXN_PARKED,
    TXN_RESTING,
    TXN_STATES
};

/* What its next attempt does; TXN_RUN in all states before the first. */
enum txn_phase {
    TXN_RUN,    /* run() of its request */
    TXN_BUILD,  /* commits the step of a building that run() has ended with, then TXN_RUN again */
    TXN_COMMIT, /* commits what run() has written */
};

/* What keeps others from its keys meanwhile. */
enum txn_hold {
    HOLDS_NOTHING, /* nothing yet, or it names no key */
    HOLDS_KEYS,    /* its claims, granted or not: an exclusive request must wait for it */
    HOLDS_STORE,   /* the barrier */
};

/* How a run that returned STORE_WAIT goes on; what it asked for last does not undo what it asked
 * for first, so the greatest counts. */
enum txn_again {
    AGAIN_WHEN_LOADED, /* it waits for a page, or another thing that `waits` counts */
    AGAIN_AT_ONCE,     /* it ended only to begin again: no rerun for a page's sake */
    AGAIN_IN_TURN,     /* so that others have their turn: store_step */
    AGAIN_WHEN_ROUSED, /* likewise, and not before store_resume: store_suspend */
    AGAIN_TO_GO_ON,    /* in turn, with what this run has written: store_yield */
};

/* Where one that is queued and may prefetch run is in that: see prefetch_run.c. */
enum txn_scout {
    SCOUT_NEVER,   /* it may not, or has run properly */
    SCOUT_LISTED,  /* not yet: it stands in the worker's list */
    SCOUT_RUNNING, /* reads are begun, and not waited for */
    SCOUT_BEHIND,  /* it has, and still waits for its turn */
};

#define TOUCHED_MOST 64u
struct touched {
    struct page_file *file;
    uint32_t page;
};

/* Trees opened by the transaction, and their nodes that it changes (tree.h). */
struct tree_txn {
    struct collection *collections;
    struct tree_edit *edits;
    struct tree_edit **table; /* edits by place */
    uint32_t table_size, edit_count;
    uint32_t buffers; /* that reads of trees were given, of the transaction's memory */
    bool is_settled;
};

struct store_txn {
    struct store *store;
    struct store_worker *worker;
    struct store_request *request;
    struct store_txn *next; /* in the worker's free list, its ready list, or the barrier */
    struct store_txn *next_throttled;
    enum store_cause cause; /* of its changes, for observers */

    /* Where it is. Only txn_move changes `state`. */
    _Atomic uint8_t state; /* enum txn_state */
    enum txn_phase phase;
    enum txn_hold hold;
    enum txn_again again;
    enum txn_scout prefetch_run;
    enum store_result failure; /* to be returned once nothing is waited for any more */
    _Atomic uint32_t waits; /* loads, grants, staging, throttle; one more while being attempted */

    /* What may be so in several of those states. */
    bool throttled;       /* in store->throttled, under its lock: one of `waits` */
    bool refuses;         /* others that need its keys; under their partitions' locks */
    bool blocking_io;     /* from now on it waits for the disk instead of returning STORE_WAIT */
    bool leaves_no_trace; /* what it reads counts for no use of it */
    /* What its last attempt, or run as a prefetch run, came upon. */
    bool starved;      /* it found no frame */
    bool found_absent; /* as a prefetch run, it has begun a read */

    uint32_t prefetch_runs;
    TAILQ_ENTRY(store_txn) of_unscouted;
    uint64_t generation; /* changes when it is used for another request */
    uint32_t reruns;
    uint32_t frame_waits;
    int64_t room_since_ms; /* since when it waits for room on disk; 0: it does not */
    uint8_t used_space, used_slot;
    uint32_t used_page; /* the item whose use was counted last; 0: none */
    uint64_t shown;
    uint64_t locked[2]; /* partitions whose locks this attempt holds */
    uint64_t more[2];   /* those it needs besides its keys' */
    uint64_t attempt;   /* see store_attempt */

    struct write *writes;
    uint32_t write_count;
    size_t write_capacity;
    uint32_t *write_table; /* open addressing over writes, when there are many; 0: empty */
    uint32_t write_table_size, write_table_room;
    uint32_t written_count; /* writes, the first, whose large values are durable */

    struct pin *pins;
    uint32_t pin_count;
    size_t pin_capacity;
    struct key_lock *key_locks;
    uint32_t key_lock_count;
    size_t key_lock_capacity;
    _Atomic uint32_t ungranted;   /* of its claims */
    struct key_lock handoffs;     /* the key it was called to; its txn NULL: none, or no more */
    struct store_reader *readers; /* opened by this run */
    int stage_error;              /* to be returned once the writes in flight are done */
    struct whole *wholes;         /* large values being gathered for store_load */
    struct tree_txn trees;
    uint32_t leavings; /* how often load_leave_pages was called */

    struct page_file *failed_space; /* a load that failed since the last attempt */
    uint32_t failed_page;
    struct arrangement arrangement;
    struct store_bulk_load *bulk_load; /* its step is to be committed, or is being */
    struct long_record
        *long_record; /* where its operations go if they are too long for the journal */

    struct memory_block *blocks; /* store_alloc's */
    uint64_t block_bytes;        /* theirs */
    int64_t noted_bytes;         /* of its memory, as store_note_memory was told */
    uint64_t copied_bytes;       /* of items that this run has read in place */
    uint64_t random;             /* of the wait build */
#ifdef VELLUM_WAIT
    uint32_t touched_count; /* pages that it has looked at since load_leave_pages */
    struct touched touched[TOUCHED_MOST];
#endif
};

/* ---- workers ---- */

#define EXPIRED_NOTES 16u

struct expired_name { /* a hint: see expire.c */
    uint16_t slot;
    uint32_t tag;
};

struct unreadable_name { /* of a key whose bytes are damaged */
    uint16_t slot;
    uint32_t tag;
    int64_t since_ms;
};

struct store_worker {
    struct store *store;
    uint32_t index;
    struct disk_queue *queue;
    struct disk_queue *sync_queue; /* for waiting in place: nothing else completes on it */
    int fd;
    TAILQ_HEAD(, store_txn) unprefetched;
    uint32_t prefetched; /* that are still behind */
    uint32_t
        prefetch_run_luck; /* how often prefetch runs that went on came upon another page, lately */
    struct load *low_priority,
        *low_priority_last;      /* reads of writers, not handed to the queue yet (load.c) */
    uint32_t low_priority_reads; /* those that were */
    struct store_txn *free_txns;
    struct store_txn *ready, *ready_last;           /* to be attempted by this thread */
    struct store_txn *handed_off, *handed_off_last; /* likewise, before those */
    bool answers;                                   /* is in store_run_handoffs */
    uint32_t steps;    /* that requests have made; for comparison with itself */
    uint64_t attempts; /* that its requests have begun */
    uint32_t parked;
    bool polling;
    bool stopping;                            /* being detached: begins nothing of its own */
    uint32_t removals[STORE_BY_EVICTION + 1]; /* under way, by cause (removal.c) */
    uint64_t removal_bytes;                   /* of their long keys */
    struct unreadable_name unreadable[EXPIRED_NOTES]; /* the last ones, in turn */
    uint32_t unreadable_count;
    _Atomic bool expire_due; /* set by the maintenance thread's clock */
    _Atomic bool evict_due;  /* somebody wants room */
    struct expired_name noted[EXPIRED_NOTES];
    uint32_t noted_count;
    struct dropped_tree *dropped; /* that it digs in (tree_purge.c) */

    pthread_mutex_t inbox_lock;
    struct store_txn *inbox, *inbox_last; /* made ready by other threads */
};

/* ---- the store ---- */

struct deferred_free { /* free.c: runs to be free once `commit` is durable and unseen */
    struct deferred_free *next;
    uint64_t commit;
    uint32_t count, depth;
    struct format_extent extents[];
};

/* Somebody reads a version without holding its key's claim: runs given up since stay. */
struct run_reader {
    LIST_ENTRY(run_reader) link;
    uint64_t seen; /* commits up to this were made when it began */
};

/* Which keys may go, and which go first: as store_set_policy was told. */
struct policy {
    _Atomic int evicts; /* enum store_evict */
    _Atomic bool only_expiring;
    _Atomic uint32_t samples;
};

struct observer { /* change.c */
    store_observer *call;
    void *arg;
};

struct store {
    struct env env;
    const struct hooks *hooks;
    struct disk *disk;
    struct disk_queue *maintenance_queue;
    struct superblock superblock;
    struct format_superblock stopped; /* as the start found it */
    bool was_clean;                   /* so that an index checkpoint may belong to it */
    uint32_t scan_threads;
    bool scans;              /* at the start, whatever the index checkpoint says */
    struct page_cache cache; /* its spaces: the partitions', in their order, and the extents */
    struct journal journal;
    uint64_t record_most; /* longer ones go to a long record (long_record.c) */
    struct partition *partitions;
    uint32_t partition_count;
    uint32_t slot_shift; /* hash slot >> slot_shift = partition */
    struct page_file extents;
    struct format_databases databases; /* changed under all partitions' locks */
    uint64_t databases_commit;         /* by which; likewise */
    uint32_t observer_count;           /* likewise; read at every commit */
    struct observer observers[STORE_OBSERVER_MAX];
    LIST_HEAD(, store_snapshot) snapshots; /* open; changed under those and extents.lock */

    struct store_worker **workers;
    uint32_t worker_count;
    _Atomic uint32_t durable_awaited; /* store_await_durable's sum */
    _Atomic uint64_t memory_bytes, max_store_bytes, store_bytes;
    _Atomic bool full;
    _Atomic int64_t taken_bytes;  /* by all but frames, as of the last measurement */
    _Atomic int64_t noted_bytes;  /* store_note_memory's sum */
    _Atomic int64_t noted_before; /* as it was at that measurement */
    uint64_t (*process_bytes)(void *arg);
    void *process_arg;
    _Atomic int64_t memory_measured_ms;
    _Atomic bool over_memory;  /* index and buffers leave frames too little */
    _Atomic bool nothing_goes; /* and there is no key that may go */
    _Atomic bool room_wanted;  /* by one who waits for what was given up to become free */
    struct policy policy;
    struct eviction extents_eviction; /* under extents.lock */
    _Atomic uint32_t evict_turn;      /* the partition that is to give room next */
    _Atomic bool walks_expired;       /* store_set_active_expiry */
    _Atomic uint64_t tree_ids;        /* given out in this epoch (tree_owner.c) */
    _Atomic uint64_t sequences;       /* likewise, to the caller */
    _Atomic uint32_t reader_pages;    /* pinned by streams */
    _Atomic uint64_t loaded_bytes;    /* of values in one piece, while their requests last */

    pthread_mutex_t store_lock_mutex; /* exclusive requests and all that came behind one */
    struct store_txn *store_lock, *store_lock_last;
    struct store_txn *store_lock_holder;
    _Atomic uint32_t store_lock_count; /* queued, and the holder */
    _Atomic uint32_t active;           /* parked transactions with claims */
    _Atomic uint32_t refusing; /* of them and the barrier's holder: those that refuse others */

    pthread_mutex_t
        throttle_lock; /* transactions that wait for the maintenance thread, the oldest first */
    struct store_txn *throttled, *throttled_last; /* linked by next_throttled */
    _Atomic uint64_t throttle_count, reruns, blocking_io_runs;

    pthread_mutex_t free_lock;                      /* taken before extents.lock */
    struct deferred_free *deferred, *deferred_last; /* under extents.lock */
    LIST_HEAD(, run_reader) readers;                /* under extents.lock */
    LIST_HEAD(, store_upload) open_uploads;         /* likewise */
    _Atomic uint32_t upload_pages;                  /* frames they hold */
    _Atomic int64_t apart_bytes;                    /* memory of runs beside them (run_write.c) */

    /* What the scan at the start found two items to name: neither's end makes it free. */
    struct number_list disputed_runs;        /* first pages; under extents.lock */
    struct number_list disputed_collections; /* ids; not changed while workers run */

    pthread_mutex_t dropped_trees_lock; /* a leaf */
    struct dropped_tree *dropped_trees; /* collections to be taken apart (tree_drop.c) */
    _Atomic uint32_t dropped_tree_count;
    uint64_t generation; /* of what is in memory: changes when all of it is dropped */

    pthread_t maintenance_thread;
    bool maintenance_running;
    pthread_mutex_t maintenance_lock;
    pthread_cond_t maintenance_wake;
    bool maintenance_stop, maintenance_asked;
    _Atomic int64_t grow_retry_ms; /* after ENOSPC */
    _Atomic bool sweep_asked;      /* items of flushed databases are still in the index */
    bool sweeping;                 /* the maintenance thread's own, with where it is */
    uint32_t sweep_partition, sweep_segment;

    _Atomic uint64_t segments_reclaimed;
    _Atomic uint64_t pages_read, pages_written, read_errors, checkpoints;
    _Atomic uint64_t damaged;
    _Atomic bool scan_wanted;                    /* space was lost that only a scan gives back */
    bool is_loaded;                              /* from the index checkpoint */
    _Atomic uint64_t hits_before, misses_before; /* the counters were reset */
    _Atomic uint64_t expired_before, evicted_before;
    uint64_t recovered_items, recovered_commits, recovery_ms;
};

/* ---- store.c ---- */

static inline struct partition *engine_partition(struct store *store, uint32_t slot)
{
    return &store->partitions[slot >> store->slot_shift];
}

static inline uint32_t engine_tag(uint64_t key_hash, uint32_t database)
{
    uint64_t mixed = (key_hash ^ database * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
    return (uint32_t)(mixed >> (64 - INDEX_TAG_BITS));
}

/* What the index knows of an item, by its flags. */
static inline uint32_t engine_flags(uint32_t flags)
{
    return (flags & FORMAT_TREES ? INDEX_TREES : 0u) |
           (flags & (FORMAT_LARGE | FORMAT_LONG_KEY) ? INDEX_LARGE : 0u) |
           (flags & FORMAT_HAS_EXPIRY ? INDEX_EXPIRES : 0u);
}

static inline uint32_t engine_database(const struct store *store, uint32_t db)
{
    return db == STORE_HIDDEN_DB ? FORMAT_HIDDEN : store->databases.ids[db];
}

#endif
