/*
 * The engine's inner structures. Private to storage/.
 *
 * THREADS. Worker threads execute requests; any worker may execute any request, under the locks of
 * the partitions it touches. One maintenance thread does the work that needs no client: it grows
 * files, writes dirty pages back, makes checkpoints and flushes the journal for the everysec
 * policy.
 *
 * LOCKS, outermost first; a thread takes further ones only downwards in this list
 *   1. partitions' locks (struct page_file.lock), in rising order of their numbers
 *   2. free_lock
 *   3. extents.lock
 *   4. store_lock_mutex
 *   5. throttle_lock
 *   6. journal.lock, then the locks of observers of changes (change.c)
 *   7. leaves: arena.lock, a worker's inbox_lock, maintenance_lock, dropped_trees_lock
 * Only the eviction of frames takes a lock out of this order, with trylock.
 *
 * The states of a transaction are drawn in txn_state.h.
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
#define RERUN_LIMIT 3u /* then a run waits for the disk while it holds its locks */
#define QUEUE_DEPTH 512u
#define KEY_LOCK_BUCKETS 1024u

/* ---- key locks (key_locks.c) ---- */

/* A transaction's place in the lock queue of one key. Queues are found by the key's hash: after a
 * collision two keys share one queue, which delays requests but does no harm. */
struct key_lock {
    struct key_lock *next, *previous; /* in the same key's queue */
    struct store_txn *txn;
    uint64_t hash;
    uint16_t partition;
    bool exclusive;
    bool granted; /* in turn; or not waited for: refused, or kept for a hand-off */
    bool in_turn; /* granted because it was its turn */
    struct {
        struct key_lock *next_bucket; /* first of the next key's queue */
        struct key_lock *last;
        struct key_lock *waiting;                    /* the first that is not in turn */
        uint32_t exclusive_ahead, exclusive_from_it; /* entries before `waiting`; from it on */
    } queue;                                         /* kept by the first entry of a queue */
};

/* ---- partitions ---- */

/* The counters of a logical database in one partition. */
struct database_count {
    counter keys, expires;
    counter expiries; /* sum of the expiry times, in units of EXPIRY_UNIT_MS */
};

/* Requests for room in a partition, or in the extents (evict.c). */
struct eviction {
    uint64_t wanted;        /* size classes in which room is wanted, a bit each */
    uint64_t fruitless[64]; /* by size class: entries visited since the last evictable one */
    int64_t search_ms[64];  /* when that began */
    int64_t barren_ms[64];  /* when the last search that found nothing to evict began */
};

/* A hand for each class, that of runs included: two rounds of one are two looks at each entry. */
#define EVICTION_HANDS (FORMAT_RUN_CLASS + FORMAT_EXTENT_PAGES + 1)

struct partition {
    struct page_file file; /* its lock is the partition's lock */
    struct index index;
    struct ttl ttl;
    struct key_lock *key_locks[KEY_LOCK_BUCKETS];
    uint32_t key_lock_count;
    uint64_t
        last_removal; /* newest commit that made a key absent; a reply "absent" depends on it */
    struct database_count databases[STORE_DB_COUNT + 1]; /* the last one is STORE_HIDDEN_DB's */
    counter expired;                                     /* items deleted because they expired */
    counter evicted;                                     /* items deleted to make room */
    struct eviction eviction;
    struct index_cursor eviction_hands[EVICTION_HANDS]; /* by size class: where to continue */
} __attribute__((aligned(64)));

/* ---- transactions ---- */

enum write_kind { WRITE_PUT, WRITE_DELETE };

/* A large value to be written: `base` with patches over it (extent_write.c). */
struct large_write {
    uint64_t length;
    const struct format_root *base; /* a copy of the old root, or NULL */
    struct patches *patches;        /* or NULL */
    struct format_root *root;       /* the result, once all extents are durable */
    uint32_t root_bytes;
    struct extent_write *extent_write; /* in progress */
    struct store_upload *upload;       /* the upload whose runs `base` names, or NULL */
};

/* A change buffered by the transaction. */
struct write {
    struct store_key key;
    uint32_t place; /* of the transaction's databases (see struct arrangement) */
    enum write_kind kind;
    uint8_t type;
    bool is_key_tree; /* the root of a tree of keys (key_tree.h): `key` has no name, only its place
                       */
    int64_t expire_ms, wake_ms;
    const char *bytes; /* small value */
    uint32_t len;
    struct large_write *large;
    struct collection *trees; /* set: `bytes` are its roots */
    struct long_key
        *long_key; /* found when its extents are written; NULL: the key is stored in the item */
    uint32_t use;  /* access data to store with the item; 0: accessed now (access_clock.h) */

    /* found by prepare, from scratch at each attempt */
    uint32_t database;
    uint32_t tag;
    uint32_t old_page, old_slot; /* old_page 0: the key is absent */
    uint32_t old_frame, new_frame;
    uint32_t item_len;
    const struct format_root *old_root;   /* of a large value that this write frees */
    const struct format_trees *old_trees; /* of a collection that this write drops */
    const struct format_root *old_key;    /* of the bytes of a long key, if they are freed */
    bool reserved;                        /* room in the index is reserved */
    /* kept between attempts */
    uint32_t new_page, new_slot;
    bool slot_taken;
};

/* The transaction's view of the databases (databases.c). A place is the contents of one database:
 * those below STORE_DB_COUNT are the store's contents before the transaction, STORE_HIDDEN_DB never
 * changes, and each flush makes a new, empty one. */
#define PLACE_FRESH (STORE_META_DB + 1)
struct arrangement {
    bool changed; /* otherwise places[db] is db, and the array is not filled */
    uint32_t flushes;
    uint32_t places[STORE_DB_COUNT];
    /* computed for the commit */
    uint8_t origins[STORE_DB_COUNT];   /* the place itself, or the place whose flush made it */
    struct format_databases databases; /* the store's new map */
    uint32_t doomed; /* the first writes, this many, are applied before the new map: deletions in
                        the old one */
};

/* The transaction's state: txn_state.h has the diagram and what each state means. */
enum txn_state {
    TXN_FREE,
    TXN_REGISTERED,
    TXN_HANDED_OFF,
    TXN_QUEUED,
    TXN_READY,
    TXN_RUNNING,
    TXN_PAUSED,
    TXN_PARKED,
    TXN_SUSPENDED,
    TXN_STATES
};

/* What the next attempt does; TXN_RUN in all states before the first attempt. */
enum txn_phase {
    TXN_RUN,    /* run() of its request */
    TXN_BUILD,  /* commits the step of a bulk load that run() has ended with, then TXN_RUN again */
    TXN_COMMIT, /* commits what run() has written */
};

/* What the transaction holds to keep others from its keys. */
enum txn_hold {
    HOLDS_NOTHING, /* nothing yet, or the request names no key */
    HOLDS_KEYS,    /* its key locks, granted or not: an exclusive request must wait for it */
    HOLDS_STORE,   /* the store lock */
};

/* How a run that returned STORE_WAIT continues. A later demand does not undo an earlier one: the
 * greatest counts. */
enum txn_again {
    AGAIN_WHEN_LOADED,  /* it waits for a page, or for something else that `waits` counts */
    AGAIN_AT_ONCE,      /* it ended only to begin again: not counted as a rerun for a page */
    AGAIN_IN_TURN,      /* after other requests had their turn: store_step */
    AGAIN_WHEN_RESUMED, /* likewise, but not before store_resume: store_suspend */
    AGAIN_AFTER_YIELD,  /* in turn, keeping what this run has written: store_yield */
};

/* Progress of a queued transaction's prefetch run: see prefetch_run.c. */
enum txn_prefetch_run {
    PREFETCH_RUN_NONE,   /* no prefetch run allowed, or the transaction has run for real */
    PREFETCH_RUN_LISTED, /* not begun: the transaction is in the worker's list */
    PREFETCH_RUN_ACTIVE, /* it starts reads and does not wait for them */
    PREFETCH_RUN_DONE,   /* finished; the transaction still waits for its turn */
};

#define TOUCHED_MOST 64u
struct touched {
    struct page_file *file;
    uint32_t page;
};

/* Trees opened by the transaction, and the nodes that it changes (tree.h). */
struct tree_txn {
    struct collection *collections;
    struct tree_edit *edits;
    struct tree_edit **table; /* edits by place */
    uint32_t table_size, edit_count;
    uint32_t buffers; /* pieces of the transaction's memory given to reads of trees */
    bool is_settled;
};

/* Linked by of_list: a worker's ready, handed_off and inbox, and the store lock's queue. */
STAILQ_HEAD(txn_list, store_txn);

struct store_txn {
    struct store *store;
    struct store_worker *worker;
    struct store_request *request;
    SLIST_ENTRY(store_txn) of_free;
    STAILQ_ENTRY(store_txn) of_list; /* see struct txn_list */
    STAILQ_ENTRY(store_txn) of_throttled;
    enum store_cause cause; /* of its changes, reported to observers */

    /* The state. Only txn_move changes `state`. */
    _Atomic uint8_t state; /* enum txn_state */
    enum txn_phase phase;
    enum txn_hold hold;
    enum txn_again again;
    enum txn_prefetch_run prefetch_run;
    enum store_result failure; /* to be returned once nothing is pending any more */
    _Atomic uint32_t waits;    /* loads, locks, extent writes, the maintenance thread, a hand-off,
                                  store_resume; one more during an attempt */

    /* Flags that may be set in several of those states. */
    bool throttled;       /* in store->throttled, under throttle_lock: one of `waits` */
    bool refuses;         /* refuses others that need its keys; under their partitions' locks */
    bool blocking_io;     /* from now on it blocks on the disk instead of returning STORE_WAIT */
    bool leaves_no_trace; /* its reads do not count as accesses */
    /* Results of its last attempt or prefetch run. */
    bool starved;      /* no frame was available */
    bool found_absent; /* the prefetch run missed a page */

    uint32_t prefetch_runs;
    TAILQ_ENTRY(store_txn) of_unprefetched;
    uint64_t generation; /* changes when the struct is reused for another request */
    uint32_t reruns;
    uint32_t frame_waits;
    int64_t frames_since_ms;   /* start of its wait for frames */
    uint32_t held_frames;      /* by the commit that is being prepared */
    int64_t room_since_ms;     /* start of its wait for room on disk; 0: it does not wait */
    uint64_t room_checkpoints; /* store->checkpoints at that time */
    uint8_t used_file, used_slot;
    uint32_t used_page; /* the item whose access was counted last; 0: none */
    uint64_t shown;     /* the newest commit that its result depends on */
    uint64_t locked[2]; /* partitions whose locks this attempt holds */
    uint64_t more[2];   /* partitions to lock besides those of its keys */
    bool more_has_keys; /* `more` includes the partitions of its keys */
    uint64_t attempt;   /* see store_attempt */

    struct write *writes;
    uint32_t write_count;
    size_t write_capacity;
    uint32_t *write_table; /* open addressing over writes, when there are many; 0: empty */
    uint32_t write_table_size, write_table_room;
    uint32_t written_count; /* the first writes, this many, have their large values durable */

    struct pin *pins;
    uint32_t pin_count;
    size_t pin_capacity;
    struct key_lock *key_locks;
    uint32_t key_lock_count;
    size_t key_lock_capacity;
    _Atomic uint32_t ungranted; /* key locks not granted yet */
    struct key_lock handoffs; /* the key that was handed off to it; txn NULL: none, or no longer */
    struct store_reader *readers; /* opened by this run */
    int extent_write_error;       /* enum store_result: returned once none is in flight */
    struct whole *wholes;         /* large values being collected for store_load */
    struct tree_txn trees;
    uint32_t leavings; /* how often load_leave_pages was called */

    struct page_file *failed_file; /* a page whose read failed: it is not read again */
    uint32_t failed_page;
    struct arrangement arrangement;
    struct store_bulk_load *bulk_load; /* a step of it is to be committed, or is being committed */
    struct long_record *long_record; /* holds its operations if they are too long for the journal */

    struct memory_block *blocks; /* allocated by store_alloc */
    uint64_t block_bytes;        /* total size of `blocks` */
    int64_t noted_bytes;         /* its memory, as counted last (txn_memory.c) */
    uint64_t copied_bytes;       /* bytes of items copied by this run in blocking mode */
    uint64_t random;             /* generator state: access counters, WAIT=1 build */
#ifdef VELLUM_WAIT
    uint32_t touched_count; /* pages visited since load_leave_pages */
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
    struct disk_queue *sync_queue; /* for blocking reads: nothing else completes on it */
    int fd;
    TAILQ_HEAD(, store_txn) unprefetched;
    uint32_t prefetched;        /* transactions in PREFETCH_RUN_DONE */
    uint32_t prefetch_run_luck; /* decides whether a prefetch run is repeated (prefetch_run.c) */
    TAILQ_HEAD(, load) low_priority; /* low-priority reads held back (load.c) */
    uint32_t low_priority_reads;     /* low-priority reads in flight */
    SLIST_HEAD(, store_txn) free_txns;
    uint32_t free_txn_count;
    struct txn_list ready;      /* to be attempted by this thread */
    struct txn_list handed_off; /* likewise, before `ready` */
    bool answers;               /* inside store_run_handoffs */
    uint32_t steps;             /* made by requests; only compared with itself */
    uint64_t attempts;          /* begun by its requests */
    uint32_t parked;
    bool polling;
    bool stopping;                            /* being detached: starts no work of its own */
    uint32_t removals[STORE_BY_EVICTION + 1]; /* in progress, by cause (removal.c) */
    STAILQ_HEAD(, removal) waking;            /* keys of which more parts are due (removal.c) */
    uint64_t removal_bytes;                   /* of long keys read by removals in progress */
    int64_t unreported_bytes; /* change of its transactions' memory since the last report */
    struct unreadable_name unreadable[EXPIRED_NOTES]; /* the most recent ones, a ring */
    uint32_t unreadable_count;
    _Atomic bool expire_due; /* set by the maintenance thread's clock */
    uint32_t expire_left;    /* partitions to visit in this tick (expire.c) */
    int64_t expire_ns;       /* time taken since the last tick */
    uint32_t expire_partition;
    _Atomic bool evict_due;    /* another transaction or thread wants room */
    uint32_t evict_next_place; /* where the next step of eviction begins: see evict_step */
    struct expired_name noted[EXPIRED_NOTES];
    uint32_t noted_count;
    struct dropped_tree *dropped; /* the one that it purges (tree_purge.c) */

    pthread_mutex_t inbox_lock;
    struct txn_list inbox; /* made ready by other threads */
};

/* ---- the store ---- */

/* A reader that does not hold the key's lock. The runs of the version that it reads stay
 * allocated. */
struct run_reader {
    LIST_ENTRY(run_reader) link;
    uint64_t seen; /* it sees the commits up to this one */
};

/* Which keys may be evicted, and in which order: set by store_set_policy. */
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
    struct format_superblock stopped; /* as found at the start */
    bool is_ordered;                  /* it keeps trees of keys (key_tree.h) */
    bool was_clean;                   /* clean shutdown: an index checkpoint may belong to it */
    uint32_t scan_threads;
    bool scans;              /* scan at the start even if there is an index checkpoint */
    struct page_cache cache; /* its page files: the partitions in their order, then the extents */
    struct journal journal;
    uint64_t record_most; /* longer transactions go to a long record (long_record.c) */
    struct partition *partitions;
    uint32_t partition_count;
    uint32_t slot_shift; /* hash slot >> slot_shift = partition */
    struct page_file extents;
    struct format_databases databases; /* changed under all partitions' locks */
    uint64_t databases_commit;         /* the commit that changed them; likewise */
    uint32_t observer_count;           /* likewise; read at every commit */
    struct observer observers[STORE_OBSERVER_MAX];
    store_waker *waker; /* store_on_wake; or NULL */
    void *waker_arg;
    LIST_HEAD(, store_snapshot)
    snapshots; /* open ones; changed under all partitions' locks and extents.lock */

    struct store_worker **workers;
    uint32_t worker_count;
    _Atomic uint32_t durable_awaited; /* store_await_durable's sum */
    _Atomic uint64_t memory_bytes, max_store_bytes, store_bytes;
    _Atomic bool full;
    _Atomic int64_t taken_bytes;  /* memory of everything but frames, at the last measurement */
    _Atomic int64_t noted_bytes;  /* store_note_memory's sum */
    _Atomic int64_t noted_before; /* its value at that measurement */
    uint64_t (*process_bytes)(void *arg, uint64_t mapped, int64_t noted, bool is_short);
    void *process_arg;
    _Atomic int64_t memory_measured_ms; /* by the maintenance thread */
    _Atomic int64_t memory_asked_ms;    /* by others */
    _Atomic bool measurement_runs;      /* by one of them */
    _Atomic bool over_memory;           /* index and buffers leave too little for frames */
    _Atomic bool eviction_exhausted;    /* over memory, and no evictable key found */
    _Atomic bool room_wanted;           /* a transaction waits for deferred runs to become free */
    struct policy policy;
    struct eviction extents_eviction;        /* under extents.lock */
    _Atomic uint32_t evict_turn;             /* the next partition that eviction takes room from */
    _Atomic bool walks_expired;              /* store_set_active_expiry */
    _Atomic int64_t still_until_ms;          /* store_hold_still */
    _Atomic int64_t slowest_ns[STORE_WORKS]; /* store_take_slowest_ns, but for the journal's */
    _Atomic uint64_t tree_ids;               /* given out in this epoch (tree_owner.c) */
    _Atomic uint64_t sequences;              /* likewise, by store_next_sequence */
    _Atomic uint32_t reader_pages;           /* pinned by value readers */
    _Atomic uint64_t loaded_bytes; /* of values loaded as a whole, while their requests last */

    pthread_mutex_t store_lock_mutex; /* guards the store lock's queue and holder */
    struct txn_list store_lock;
    struct store_txn *store_lock_holder;
    _Atomic uint32_t store_lock_count; /* queued, and the holder */
    _Atomic uint32_t active;           /* parked transactions with key locks */
    _Atomic uint32_t refusing;         /* transactions that refuse others */

    pthread_mutex_t
        throttle_lock; /* transactions waiting for the maintenance thread, oldest first */
    STAILQ_HEAD(, store_txn) throttled;
    _Atomic uint64_t throttle_count, reruns, blocking_io_runs;

    pthread_mutex_t free_lock;                     /* taken before extents.lock */
    STAILQ_HEAD(, deferred_free) deferred;         /* under extents.lock */
    LIST_HEAD(, run_reader) readers;               /* under extents.lock */
    LIST_HEAD(, store_upload) open_uploads;        /* likewise */
    _Atomic uint32_t upload_pages;                 /* frames held by uploads */
    _Atomic(struct store_txn *) long_record_owner; /* reserves a long record; NULL: none */
    _Atomic int64_t apart_bytes; /* memory of runs being written outside the cache (run_write.c) */

    /* Runs and collections that two items named in the scan at the start: deleting one of the items
     * does not free them. */
    struct number_list disputed_runs;        /* first pages; under extents.lock */
    struct number_list disputed_collections; /* ids; not changed while workers run */

    pthread_mutex_t dropped_trees_lock; /* a leaf */
    struct dropped_tree *dropped_trees; /* collections to purge (tree_drop.c) */
    _Atomic uint32_t dropped_tree_count;
    uint64_t generation; /* of the data in memory: changes when all of it is dropped */

    pthread_t maintenance_thread;
    bool maintenance_running;
    pthread_mutex_t maintenance_lock;
    pthread_cond_t maintenance_wake;
    bool maintenance_stop, maintenance_asked;
    int64_t tick_at_ms;            /* the maintenance thread's */
    _Atomic int64_t grow_retry_ms; /* next attempt to grow after ENOSPC */
    _Atomic bool reloading;        /* uploads wait before they reserve a run */
    _Atomic bool sweep_asked;      /* items of flushed databases are still in the index */
    uint32_t sweep_left; /* partitions to visit; the maintenance thread's, like its position */
    uint32_t sweep_partition, sweep_segment;
    uint32_t sweep_skipped; /* segments that the last sweep could not read */

    _Atomic uint64_t segments_reclaimed;
    _Atomic uint64_t pages_read, pages_written, read_errors, checkpoints;
    _Atomic uint64_t damaged;
    _Atomic bool scan_wanted;                    /* space was lost that only a scan can recover */
    bool is_loaded;                              /* from the index checkpoint */
    _Atomic uint64_t hits_before, misses_before; /* when the counters were reset */
    _Atomic uint64_t expired_before, evicted_before;
    _Atomic uint64_t expired_parts; /* of values: counted by store_waker */
    uint64_t recovered_items, recovered_commits, recovery_ms;
};

/* Whether it is to make no changes of its own: see store_hold_still. */
static inline bool engine_holds_still(struct store *store)
{
    int64_t until_ms = atomic_load_explicit(&store->still_until_ms, memory_order_relaxed);
    return until_ms > 0 && env_now_ms(&store->env) <= until_ms;
}

/* For store_take_slowest_ns: work of this kind has taken so long. */
static inline void engine_note_work(_Atomic int64_t *slowest_ns, int64_t nsec)
{
    int64_t known = atomic_load_explicit(slowest_ns, memory_order_relaxed);
    while (nsec > known && !atomic_compare_exchange_weak(slowest_ns, &known, nsec)) {
    }
}

/* ---- look-up ---- */

static inline struct partition *engine_partition(struct store *store, uint32_t slot)
{
    return &store->partitions[slot >> store->slot_shift];
}

static inline uint32_t engine_tag(uint64_t key_hash, uint32_t database)
{
    uint64_t mixed = (key_hash ^ database * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
    return (uint32_t)(mixed >> (64 - INDEX_TAG_BITS));
}

/* The part of an item's flags that the index keeps. */
static inline uint32_t engine_flags(uint32_t flags)
{
    return (flags & FORMAT_TREES ? INDEX_TREES : 0u) |
           (flags & (FORMAT_LARGE | FORMAT_LONG_KEY) ? INDEX_LARGE : 0u) |
           (flags & FORMAT_HAS_EXPIRY ? INDEX_EXPIRES : 0u);
}

/* Pages are numbered with 32 bits, those of slabs with the bits of an index entry. */
static inline uint32_t engine_segments_max(const struct page_file *file)
{
    uint32_t most = file->id == FORMAT_EXTENT_FILE ? UINT32_MAX : INDEX_PAGE_MAX;
    return most / SEGMENT_PAGES;
}

static inline uint32_t engine_database(const struct store *store, uint32_t db)
{
    if (db == STORE_META_DB)
        return FORMAT_META;
    return db == STORE_HIDDEN_DB ? FORMAT_HIDDEN : store->databases.ids[db];
}

#endif
