/*
 * The engine's public interface: a durable, transactional key-value store on an SSD.
 *
 * A store is a data directory opened by one process. It is divided into partitions (fixed when the
 * directory is made); any number of worker threads, each with its own struct store_worker, execute
 * requests on it. A request is a straight-line function over a transaction:
 *
 *     run, wait, run again: a read whose page is not in memory returns STORE_WAIT; the function
 *     returns that at once, the engine loads what is missing and calls it again from the top. Its
 *     buffered writes are discarded in between: until its last run it must have no other effect.
 *
 * Units: bytes, and Unix milliseconds unless the name says otherwise. A store_worker and its
 * requests belong to one thread. Functions that can fail return enum store_result.
 */
#ifndef VELLUM_STORE_H
#define VELLUM_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "storage/sizes.h"

#define STORE_DB_COUNT 16
#define STORE_META_DB 17 /* items outside all databases: no scan, flush or eviction sees them */
#define STORE_SLOT_COUNT 16384 /* Redis Cluster's hash slots */
#define STORE_NO_EXPIRY (-1)

#define STORE_MUST_CHECK __attribute__((warn_unused_result))

enum store_result {
    STORE_OK = 0,
    STORE_WAIT,      /* not in memory yet: the run function must return this at once */
    STORE_ABSENT,    /* the key does not exist */
    STORE_FULL,      /* no room on disk (maxstore or the file system) for this write */
    STORE_REFUSED,   /* a write or flush has failed: no more writes are accepted */
    STORE_DAMAGED,   /* checksum mismatch: the item is lost; it was logged */
    STORE_IO,        /* a read from the device failed */
    STORE_NO_MEMORY, /* allocation failed */
    STORE_TOO_LARGE, /* key, value or transaction over its limit */
    STORE_LOCKED,    /* at open: another process has the directory */
    STORE_FOREIGN, /* at open: not a data directory of ours, or its files do not belong together */
    STORE_VERSION, /* at open: an unknown format version */
    STORE_CORRUPT, /* at open: superblock or journal damaged beyond use */
    STORE_INVALID, /* at open: a bad option */
    STORE_BUSY,    /* a run that refuses others holds its keys: see store_pause */
    STORE_CANCELLED, /* the result is no longer wanted */
    STORE_ANSWERED,  /* of a run's helpers, for the run: their work is finished */
};

enum store_ordered { STORE_ORDERED_NO, STORE_ORDERED_YES, STORE_ORDERED_AS_FOUND };
enum store_sync { STORE_SYNC_ALWAYS, STORE_SYNC_EVERYSEC, STORE_SYNC_NO };
enum store_log_level { STORE_LOG_DEBUG, STORE_LOG_INFO, STORE_LOG_NOTICE, STORE_LOG_WARNING };

struct store;
struct store_worker;
struct store_txn;

/* Which keys are evicted when the disk, or memory beside the page frames, is full. */
enum store_evict {
    STORE_EVICT_NOTHING, /* none: writes fail with STORE_FULL */
    STORE_EVICT_RANDOM,
    STORE_EVICT_LRU, /* least recently accessed */
    STORE_EVICT_LFU, /* least frequently accessed */
    STORE_EVICT_TTL, /* earliest expiry */
};

struct store_policy {
    enum store_evict evicts;
    bool only_expiring;         /* only keys that have an expiry */
    uint32_t samples;           /* more samples are closer to the exact order; at least 1 */
    uint32_t lfu_log_factor;    /* a higher factor needs more accesses per increment */
    uint32_t lfu_decay_minutes; /* without access, per decrement; 0: no decay */
};

struct store_options {
    const char *directory;    /* created if missing (the last component only) */
    uint32_t partition_count; /* power of two up to 128; used only when the directory is made */
    uint32_t worker_count;    /* how many store_workers will be attached */
    uint64_t memory_bytes; /* bound for the process, as measured by process_bytes; without it, or if
                              it returns 0, for index, page frames and journal buffers */
    /* Any thread. mapped: by the store. noted: all reports. is_short: give unused memory back. */
    uint64_t (*process_bytes)(void *arg, uint64_t mapped, int64_t noted, bool is_short);
    void *process_arg;
    uint64_t max_store_bytes; /* bound for the files; 0: no bound but the file system's */
    uint64_t journal_bytes;   /* size of the journal; used only when the directory is made */
    uint64_t record_bytes; /* longer transactions are beside the journal; 0, at most: an eighth */
    enum store_sync sync;
    uint32_t scan_threads; /* threads that read the slabs at the start; 0: as many as workers */
    bool scans;            /* read all slabs at the start, even if an index checkpoint would do */
    enum store_ordered ordered_keys; /* see ordered.h; not as the directory has it: STORE_INVALID */
    void (*log)(void *arg, enum store_log_level level, const char *line);
    void *log_arg;
};

/* ---- opening and closing ---- */

/* Recovers, with progress on the log, and returns when the data are ready to be served. On failure
 * *message (size STORE_MESSAGE_MAX) names the problem and its remedy. */
#define STORE_MESSAGE_MAX 512
STORE_MUST_CHECK enum store_result store_open(const struct store_options *options,
                                              struct store **store,
                                              char message[STORE_MESSAGE_MAX]);

/* All workers must be detached. Makes everything acknowledged durable (whatever the policy), writes
 * back dirty pages, marks the directory clean. Returns STORE_REFUSED if a write failed. */
enum store_result store_close(struct store *store);

/* ---- checking a directory that no server has open ---- */

struct store_check {
    uint64_t commits; /* in the journal, since the last checkpoint */
    uint64_t items, collections, large_values;
    uint64_t nodes, overflow; /* of collections: pages, and values beside them */
    uint64_t extents;
    bool has_index;  /* the next start loads a checkpoint of the index, which is correct */
    uint64_t faults; /* each was logged as a warning */
};

/* Verifies everything in the directory, as it would be after a start, and changes nothing.
 * STORE_OK: it was read to the end, and `found` has the results. STORE_CORRUPT, STORE_ABSENT and
 * others, with a message: it cannot be opened. */
STORE_MUST_CHECK enum store_result
store_check(const char *directory,
            void (*log)(void *arg, enum store_log_level level, const char *line), void *log_arg,
            struct store_check *found, char message[STORE_MESSAGE_MAX]);

/* May be changed while running. */
void store_set_sync(struct store *store, enum store_sync sync);
void store_set_memory(struct store *store, uint64_t memory_bytes);
/* Reports memory that the process has taken or given back beside the store's: page frames make room
 * at once, before process_bytes is called again. It counts as not freeable. Any thread. */
void store_note_memory(struct store *store, int64_t change);
/* Whether the process may grow by so much, beside a reserve for what does not ask. Any thread. */
bool store_has_memory(struct store *store, uint64_t bytes);
/* Evicts frames beyond their limit at once, this many bytes or a little more. Not in a run. */
void store_give_way(struct store *store, uint64_t bytes);
void store_set_max_store(struct store *store, uint64_t max_store_bytes);
void store_set_policy(struct store *store, const struct store_policy *policy);
/* Whether expired keys are searched for; those that reads find are deleted in any case. */
void store_set_active_expiry(struct store *store, bool active);
/* Up to this time, of store_clock_ms: no expired key is deleted, none evicted to gain memory. */
void store_hold_still(struct store *store, int64_t until_ms);

/* Unix time that never runs backwards, not even over restarts (as of the last checkpoint or start):
 * expired keys stay expired when the machine's clock is set back. The clock does not stop then, but
 * runs at 7/8 of its speed until the machine's has caught up. Any thread. */
int64_t store_clock_ms(struct store *store);

/* For keyed hashes: random, made with the directory, never changed, never disclosed. */
struct store_secret {
    uint64_t words[2];
};
struct store_secret store_secret(const struct store *store);

/* Greater than every number that it has returned for this directory, over restarts too; never 0. */
uint64_t store_next_sequence(struct store *store);

/* ---- workers ---- */

/* index: 0 .. worker_count - 1. STORE_NO_MEMORY; STORE_IO with a message: too few AIO slots. */
STORE_MUST_CHECK enum store_result store_attach(struct store *store, uint32_t index,
                                                struct store_worker **worker,
                                                char message[STORE_MESSAGE_MAX]);
void store_detach(struct store_worker *worker); /* no request may be in progress on it */

/* An eventfd, readable when store_poll has something to do. */
int store_worker_fd(const struct store_worker *worker);

/* Reaps I/O, reruns requests that became ready, calls their done functions. Never blocks. Other
 * workers are notified of commits that it finds durable; this one checks store_durable then. */
void store_poll(struct store_worker *worker);

/* Ends a round: submits queued reads in one system call and starts the journal's next group. Must
 * be called before the thread blocks. */
void store_submit(struct store_worker *worker);

/* The number of requests parked on this worker. */
uint32_t store_parked(const struct store_worker *worker);

/* ---- durability ---- */

/* Commits up to this number are durable. */
uint64_t store_durable(const struct store *store);

/* Registers one more waiter for durability, or (-1) removes one: while there are any, all workers'
 * descriptors become readable when store_durable moves; under STORE_SYNC_ALWAYS they do in any
 * case. Any thread. */
void store_await_durable(struct store *store, int change);

/* A write or flush has failed: nothing can be committed or made durable any more. */
bool store_has_failed(const struct store *store);

/* Index and buffers leave too little memory for pages, and no key can be evicted: add none. */
bool store_is_over_memory(const struct store *store);

/* ---- requests ---- */

enum store_mode { STORE_SHARED, STORE_EXCLUSIVE };

/* A key as the engine sees it, by store_key(). Its bytes must live as long as the request. */
struct store_key {
    const char *data;
    uint32_t len;
    uint16_t slot; /* hash slot */
    uint8_t db;    /* 0 .. STORE_DB_COUNT - 1, or STORE_META_DB */
    uint8_t mode;  /* enum store_mode: what the request may do with it */
    uint64_t hash;
};

/* `len`: less than 4 GB; over STORE_KEY_MAX no key can be written. */
void store_key(const struct store *store, struct store_key *key, uint32_t db, const char *data,
               size_t len, enum store_mode mode);
uint32_t store_hash_slot(const char *data, size_t len); /* CRC16 of the {tag}, as Redis Cluster */

enum store_scope {
    STORE_SCOPE_KEYS, /* touches only the declared keys */
    STORE_SCOPE_NONE, /* declares nothing: may only use store_scan and the counters */
    STORE_SCOPE_ALL,  /* the whole store, alone: undeclared keys, flushes, swaps */
};

/* Embedded in the caller's own request. Requests on one key take effect in the order of their
 * store_execute calls; requests that wait delay only those that share a key with them. */
struct store_request {
    /* set by the caller */
    enum store_result (*run)(struct store_txn *txn, struct store_request *request);
    void (*done)(struct store_request *request, enum store_result result);
    /* NULL, or called with the final result, under the store's locks, while it holds its keys. */
    void (*leave)(struct store_request *request, enum store_result result);
    /* NULL, or asked when a commit goes on that had to wait; false: it fails, STORE_CANCELLED. */
    bool (*is_wanted)(const struct store_request *request);
    const struct store_key *keys; /* declared keys; the same key may occur twice */
    uint32_t key_count;
    enum store_scope scope;
    int64_t now_ms;      /* the time that all its runs see; decides expiry */
    bool may_be_refused; /* with STORE_BUSY, instead of waiting for a run that refuses others */
    bool may_prefetch;   /* see store_is_prefetch_run */

    /* set by the engine when it is finished */
    uint64_t shown; /* commit number that must be durable before the reply may leave under
                       STORE_SYNC_ALWAYS: the newest that it shows, reports or made */

    /* the engine's own */
    struct store_worker *worker;
    struct store_txn *parked;
    struct store_txn *registered_waiter; /* see store_wait_register */
};

/* Runs the request. Returns its final result at once (done is not called), or STORE_WAIT: then done
 * is called later from store_poll on the same thread, and request, keys and everything the run
 * function uses must live until then. The final result is what run returned, or why its writes
 * could not be committed; if it is not STORE_OK, none of its writes happened. */
STORE_MUST_CHECK enum store_result store_execute(struct store_worker *worker,
                                                 struct store_request *request);

/* Starts reading pages that the keys need, without waiting; only a hint. Returns which of the first
 * 64 keys seem to have trees, a bit each. */
uint64_t store_prefetch(struct store_worker *worker, const struct store_key *keys, uint32_t count);

/* ---- inside a run function ---- */

/*
 * Lets others have a turn during a very long run: its locks are released, but it keeps its keys, as
 * if it waited for a page. `refuses`: from now on requests that need these keys, including those
 * that wait for them, get STORE_BUSY. Items that the run has seen are invalid afterwards. Between
 * the two calls the thread may execute other requests, and nothing else. False: out of memory; the
 * locks are still held, and store_go_on must not be called.
 */
STORE_MUST_CHECK bool store_pause(struct store_txn *txn, bool refuses);
void store_go_on(struct store_txn *txn);

/* A prefetch run: a request that waits for its keys runs only to start its reads. Its results and
 * effects are discarded; the caller undoes any effect of the run outside of the transaction. */
bool store_is_prefetch_run(const struct store_txn *txn);

/* A value as found. `bytes` is the whole value if it is small, NULL if it is large; valid until the
 * run function returns. Types belong to the caller: the engine only stores the number. */
struct store_item {
    const char *bytes;
    uint64_t length;    /* of the value */
    int64_t expire_ms;  /* or STORE_NO_EXPIRY */
    int64_t wake_ms;    /* likewise: see store_set_wake */
    uint64_t version;   /* commit number that wrote it; 0: written by this transaction */
    uint8_t type;       /* 0 .. 255, the caller's */
    bool large;         /* stored in extents: use store_read or store_load */
    uint8_t trees;      /* how many trees it has, and no bytes; 0: not a collection of trees */
    const void *origin; /* the engine's own */
};

/* STORE_OK, STORE_ABSENT (also when expired), STORE_WAIT, STORE_DAMAGED, STORE_IO. Sees this
 * transaction's own writes. The key must be declared, or the scope STORE_SCOPE_ALL. */
STORE_MUST_CHECK enum store_result store_get(struct store_txn *txn, const struct store_key *key,
                                             struct store_item *item);

/* Copies bytes [offset, offset + len) of the value, which must lie within it. */
STORE_MUST_CHECK enum store_result store_read(struct store_txn *txn, const struct store_item *item,
                                              uint64_t offset, size_t len, char *to);

/* The bytes from `offset` to the end of their piece of STORE_READER_PIECE, or a hole, which may be
 * longer. Those of a large value are copied into `room`, which has that size. If the caller keeps
 * its position across runs, the request need not wait in blocking mode. */
struct store_piece {
    const char *bytes; /* NULL: zeros */
    uint64_t length;
};
STORE_MUST_CHECK enum store_result store_read_piece(struct store_txn *txn,
                                                    const struct store_item *item, uint64_t offset,
                                                    char *room, struct store_piece *piece);

/* The whole value in one piece, valid until the request is finished. */
STORE_MUST_CHECK enum store_result store_load(struct store_txn *txn, const struct store_item *item,
                                              const char **bytes);
/* STORE_NO_MEMORY: all requests together would have loaded over `most` bytes of large values. */
STORE_MUST_CHECK enum store_result store_load_within(struct store_txn *txn,
                                                     const struct store_item *item, uint64_t most,
                                                     const char **bytes);
/* Frees the loaded values: nothing refers to them any more, and no later run needs them. */
void store_drop_loaded(struct store_txn *txn);

/* Replaces the value, type and expiry of a key. `bytes` must live until the request is finished,
 * like arguments of the request and memory from store_alloc. Bytes that this run has read from
 * pages (of items and entries) are allowed too: here, in store_patch and in the trees. */
STORE_MUST_CHECK enum store_result store_put(struct store_txn *txn, const struct store_key *key,
                                             uint8_t type, const char *bytes, size_t len,
                                             int64_t expire_ms);

/* Overwrites bytes of an existing value from `offset` on, extending it where needed, with zeros in
 * between. Keeps type and expiry. Costs a few I/Os whatever the value's length. */
STORE_MUST_CHECK enum store_result store_patch(struct store_txn *txn, const struct store_key *key,
                                               const struct store_item *item, uint64_t offset,
                                               const char *bytes, size_t len);

STORE_MUST_CHECK enum store_result store_set_expiry(struct store_txn *txn,
                                                    const struct store_key *key,
                                                    const struct store_item *item,
                                                    int64_t expire_ms);

STORE_MUST_CHECK enum store_result store_delete(struct store_txn *txn, const struct store_key *key);
/* When the first part of a value expires: for a key that this run has put, not of a large value. It
 * outlives changes of expiry, type, trees and name, but not store_put and store_tree_create. */
void store_set_wake(struct store_txn *txn, const struct store_key *key, int64_t wake_ms);
/* Run for a key whose wake time has passed, by the store's own request: removes some of the parts
 * expired by store_now, at least one, counts them in *removed, and sets the new wake time or
 * deletes the key; runs again if that time has passed. Set before the first worker is attached. */
typedef enum store_result store_waker(void *arg, struct store_txn *txn, const struct store_key *key,
                                      uint32_t *removed);
void store_on_wake(struct store *store, store_waker *waker, void *arg);
/* Whether reads of this run from here on count as accesses; by default they do. */
void store_count_access(struct store_txn *txn, bool counts);

/* Access data of a committed key. Under STORE_EVICT_LFU `frequency` is its logarithmic counter, and
 * idle_ms is unknown. Otherwise idle_ms is the time since its last access; if the policy does not
 * track accesses, tracking begins with the first query. */
struct store_access {
    int64_t idle_ms;
    uint32_t frequency; /* to 255 */
};
STORE_MUST_CHECK enum store_result
store_get_access(struct store_txn *txn, const struct store_key *key, struct store_access *use);
/* Sets the access data of a key that this run has put, and does not change any more. */
void store_set_access(struct store_txn *txn, const struct store_key *, const struct store_access *);

/* Gives the item found at `from` the name `to`, replacing any item there; `from` is deleted. Takes
 * no longer for a large value than for a small one. */
STORE_MUST_CHECK enum store_result store_rename(struct store_txn *txn, const struct store_key *from,
                                                const struct store_item *item,
                                                const struct store_key *to);

/* A large value that is read piece by piece after its request is finished. It keeps showing the
 * version it was opened on, even if overwritten or deleted, and holds one piece in memory. */
struct store_reader;

/* From byte `offset` on, before the end. `ready(arg)` is called from store_poll of the same worker
 * after store_reader_next returned STORE_WAIT. Discarded with the other effects of the run on a
 * rerun, unless it is kept: then it belongs to the caller from there on. */
STORE_MUST_CHECK enum store_result store_reader_open(struct store_txn *txn,
                                                     const struct store_item *item, uint64_t offset,
                                                     struct store_reader **reader);
/* Whether a reader is possible: not of a value that this transaction itself has changed. */
bool store_needs_reader(const struct store_item *item);
/* Called before its first piece: the reader ends after this many bytes. */
void store_reader_end_after(struct store_reader *reader, uint64_t length);
struct store_upload;
/* A reader of a finished upload that no key has; the upload may be closed before the reader. */
STORE_MUST_CHECK enum store_result store_reader_open_upload(struct store_txn *txn,
                                                            struct store_upload *upload,
                                                            struct store_reader **reader);
/* Likewise from byte `offset` on, outside of any request; the caller's from the start. */
STORE_MUST_CHECK enum store_result store_upload_read(struct store_worker *worker,
                                                     struct store_upload *upload, uint64_t offset,
                                                     struct store_reader **reader);
void store_reader_keep(struct store_reader *reader);
void store_reader_on_ready(struct store_reader *reader, void (*ready)(void *arg), void *arg);

/* The next piece, at most STORE_READER_PIECE bytes, as `*count` vectors that stay valid and
 * unchanged until the next call: STORE_OK, _WAIT, _IO or _DAMAGED; STORE_ABSENT at the end. */
#define STORE_READER_PIECE ((int)(SIZES_EXTENT_PAGES * 4096u)) /* 128 KB */
STORE_MUST_CHECK enum store_result store_reader_next(struct store_reader *reader,
                                                     const struct iovec **vectors, int *count);
/* Frees the last piece, of which only `taken` bytes, not all, were used: the next begins there. */
void store_reader_put_back(struct store_reader *reader, uint64_t taken);
void store_reader_close(struct store_reader *reader); /* at any time, also before the end */

/*
 * A large value that is written to its place while it arrives, before any request runs. Filled
 * spans go to the device without a copy. Belongs to its worker's thread; `ready` is called from
 * store_poll of that worker after a call that returned STORE_WAIT.
 *
 *     store_upload_begin -> (store_upload_space, fill, store_upload_filled) until complete ->
 *     store_upload_finish -> a request whose run function calls store_put_upload ->
 *     store_upload_close, when the request is finished
 *
 * The value is invisible before that request has committed; without a commit its disk space is
 * freed when it is closed, or at the next start. After a failure space, finish and store_put_upload
 * return the error again.
 *
 * The spans are frames of the page cache as long as uploads hold no more than a quarter of it, else
 * memory of the upload's own. A span does not move until it was filled or the upload is closed: it
 * may be given to a device (a NIC's RDMA READ, a zero-copy socket), provided that the upload is not
 * closed before the device has released it.
 */
/* `length`: at least STORE_UPLOAD_SHORTEST; STORE_TOO_LARGE beyond STORE_VALUE_MAX. Or
 * STORE_UPLOAD_OPEN: the value ends where it is finished, after any number of whole pieces of
 * STORE_READER_PIECE. No key can have it: it is spilled data, to be read once by a reader. If there
 * is no room for another piece, the earlier ones remain valid. */
#define STORE_UPLOAD_MIN (64 * 1024) /* not worthwhile below this, if bytes are copied */
#define STORE_UPLOAD_SHORTEST 4096   /* values that do not fit into an item anyway */
#define STORE_UPLOAD_OPEN UINT64_MAX
STORE_MUST_CHECK enum store_result store_upload_begin(struct store_worker *worker, uint64_t length,
                                                      void (*ready)(void *arg), void *arg,
                                                      struct store_upload **upload);
/* Memory for the next bytes, at most STORE_READER_PIECE; until all of it is filled, the unfilled
 * rest of it. STORE_WAIT: for the device, or for room on it. */
STORE_MUST_CHECK enum store_result store_upload_space(struct store_upload *upload,
                                                      const struct iovec **vectors, int *count);
/* The first `len` bytes of this memory have been filled. */
void store_upload_filled(struct store_upload *upload, size_t len);
/* Instead of both: the next STORE_READER_PIECE bytes, or what remains, are these followed by zeros;
 * none: a hole. After STORE_WAIT the same bytes must be put again. */
STORE_MUST_CHECK enum store_result store_upload_put(struct store_upload *upload, const char *bytes,
                                                    size_t len);
/* After all bytes were filled. STORE_OK: the value is durable. */
STORE_MUST_CHECK enum store_result store_upload_finish(struct store_upload *upload);
/* At any time, except while a request that has put it is in progress. */
void store_upload_close(struct store_upload *upload);
/* In a run function: gives one key the value of a finished upload; to be repeated in each rerun. */
STORE_MUST_CHECK enum store_result store_put_upload(struct store_txn *txn,
                                                    const struct store_key *key, uint8_t type,
                                                    struct store_upload *upload, int64_t expire_ms);

/* The range of page memory that contains an address of a reader's piece or of an upload's span, to
 * be registered with a device as a whole: from now on it stays allocated until the store is closed.
 * False: no range contains the address. Any thread. */
STORE_MUST_CHECK bool store_hold_pages(struct store *store, const void *address, void **start,
                                       size_t *size);

/* ---- long runs ---- */

/* For work in steps: the run function keeps its position in memory of its own, and after some pages
 * returns the result of this call, STORE_WAIT. It keeps its keys, releases its pages, lets others
 * have a turn, and is run again. Its writes are discarded, so steps must come before writes. */
STORE_MUST_CHECK enum store_result store_step(struct store_txn *txn);

/* store_step, but the run's writes are kept, and the next run continues with them: store_attempt is
 * unchanged then. After any other wait the writes are discarded, and the number is a new one. */
STORE_MUST_CHECK enum store_result store_yield(struct store_txn *txn);
uint64_t store_attempt(const struct store_txn *txn);

/* store_step, but the next run waits for store_resume, with its keys held and no pages: the caller
 * polls store_has_waiters. On the request's thread, between runs; no effect if not suspended. */
STORE_MUST_CHECK enum store_result store_suspend(struct store_txn *txn);
void store_resume(struct store_request *request);
bool store_has_waiters(const struct store_request *request);

uint64_t store_shown(const struct store_txn *txn); /* store_request.shown, of this run so far */

/* Memory that lives until the request is finished, or its run is discarded. NULL: out of memory. */
void *store_alloc(struct store_txn *txn, size_t size);
uint64_t store_memory(const struct store_txn *txn); /* that it has allocated so far */

/* A long run holds its partitions' page frames: if memory is short this makes room, between two
 * operations of the run. Items that it has seen are invalid afterwards. */
void store_make_room(struct store_txn *txn);

/* For a run that does many things in sequence: frees the memory that store_alloc gave since the
 * mark, and the items read since. False: nothing is freed, since pending changes refer to them. */
struct store_mark {
    const void *block, *collection, *reader;
    size_t used;
    uint64_t copied_bytes;
    uint32_t write_count, tree_buffers;
};
void store_mark(const struct store_txn *txn, struct store_mark *mark);
bool store_forget(struct store_txn *txn, const struct store_mark *mark);

int64_t store_now(const struct store_txn *txn); /* the request's now_ms */

/* Walks the index: calls `visit` for each live item of `db` from *cursor on, at most *budget index
 * entries, which it subtracts from *budget, and advances *cursor (0: begin, and 0 again: the end is
 * reached). Only at the end may it visit none. Sees the writes, flushes and swaps of this
 * transaction: its own writes once each, at their position in the walk and beyond the budget. Not
 * with STORE_SCOPE_KEYS. An item present from the first call to the last is visited at least once,
 * whatever grows, shrinks or restarts in between. Each call either makes progress or returns
 * STORE_WAIT; unless it returns STORE_OK, nothing was visited and *cursor is unchanged. Damaged
 * items are skipped. Key and item are valid until the visit ends. */
typedef void store_visit(void *arg, const char *key, uint32_t key_len,
                         const struct store_item *item);
STORE_MUST_CHECK enum store_result store_scan(struct store_txn *txn, uint32_t db, uint64_t *cursor,
                                              uint32_t *budget, store_visit *visit, void *arg);

/* For RANDOMKEY: a cursor for store_scan at a position chosen by `random`, weighted by where
 * committed keys are, as far as that is cheap. */
uint64_t store_scan_at(const struct store_txn *txn, uint32_t db, uint64_t random);

/* Scope STORE_SCOPE_ALL only. O(1), the space is freed in the background. They are ordered with the
 * transaction's other calls: earlier writes are flushed or swapped along, later calls see and
 * change the databases as they are then. */
void store_flush_db(struct store_txn *txn, uint32_t db);
void store_flush_all(struct store_txn *txn);
void store_swap_db(struct store_txn *txn, uint32_t a, uint32_t b);

/* For tests, in a request of scope STORE_SCOPE_ALL that has written nothing: makes all commits
 * durable, drops all state that is only in memory, and recovers from the files, as a start does.
 * STORE_LOCKED: a reader or snapshot is open, nothing was done. After any other failure the data in
 * memory must not be served any more: nothing is written from then on. *message has the reason. */
STORE_MUST_CHECK enum store_result store_reload(struct store_txn *txn,
                                                char message[STORE_MESSAGE_MAX]);

/* ---- observing changes ---- */

enum store_change_kind { STORE_CHANGE_KEY, STORE_CHANGE_FLUSH, STORE_CHANGE_SWAP };
enum store_cause { STORE_BY_REQUEST, STORE_BY_TAKER, STORE_BY_EXPIRY, STORE_BY_EVICTION };

/* A rename changes two keys; a write that leaves the key as it was is a change too. */
struct store_change {
    enum store_change_kind kind;
    enum store_cause cause;
    struct store_worker *worker;   /* the worker that makes it */
    struct store_request *request; /* by which it is made; may be the store's own */
    uint64_t commit;               /* the same for all changes of a transaction */
    int64_t now_ms;                /* of its request: expired items were absent for it */
    const struct store_key *key;   /* KEY; with the logical database */
    /* KEY: the item before, even if expired, and after; NULL: absent. If large: without bytes. */
    const struct store_item *old, *fresh;
    uint32_t dbs; /* FLUSH: the emptied databases, a bit each; SWAP: the two */
};

/* Called for every change before it is applied; those of one key in the order of their commits, a
 * flush or swap before the transaction's changes of keys. On any thread, with locks of the store
 * held: it must be quick, must call nothing of this header but store_hand_off, and its arguments
 * are invalid when it returns. A transaction that flushes or swaps between other changes is
 * reported in this order: the deletion of keys in databases that are flushed then (not of all keys
 * there); the net swaps, then the net flush; the changes of keys, with their databases then. */
#define STORE_OBSERVER_MAX 8
typedef void store_observer(void *arg, const struct store_change *change);

/* Not from within a run function or an observer. STORE_INVALID: there are STORE_OBSERVER_MAX (open
 * snapshots count). After store_unobserve, with the same arguments, it is not called again. */
STORE_MUST_CHECK enum store_result store_observe(struct store *store, store_observer *observer,
                                                 void *arg);
void store_unobserve(struct store *store, store_observer *observer, void *arg);

/* In a run: its changes' cause; default: BY_REQUEST. BY_TAKER: a request that adds nothing. */
void store_set_cause(struct store_txn *txn, enum store_cause cause);

/* ---- lock hand-off ---- */

/*
 * A request that finds nothing to do may wait until one of its keys is handed to it: its run
 * registers it as a waiter and returns STORE_OK. So do store_execute and done, but the request and
 * its keys must live until it was cancelled, or was handed a key and has run again. Scope
 * STORE_SCOPE_KEYS.
 */
STORE_MUST_CHECK enum store_result store_wait_register(struct store_txn *txn);
/* Not after a hand-off; no effect if it is not a registered waiter. On its own thread. */
void store_wait_cancel(struct store_request *request);
/* Hands the key, one of its keys, to a registered waiter: its own thread runs it again after the
 * calling request has ended, and before any other request with that key. At most once, and only
 * from an observer, for a change of the key (a swap: of any), or from `leave` of a request with
 * that key; `from` is the calling worker. */
void store_hand_off(struct store_request *request, const struct store_key *key,
                    struct store_worker *from);
/* After a hand-off: keeps a second of the waiter's keys, by its index, for it likewise when it
 * runs. Allowed where store_hand_off for that key would be. */
void store_hand_off_also(struct store_request *request, uint32_t index, struct store_worker *from);
/* Runs this worker's waiters that its own requests have handed keys to; store_poll runs others. */
void store_run_handoffs(struct store_worker *worker);

/* ---- snapshots ---- */

/*
 * All data in the store at one commit, item by item, while writers continue. Hash slot by hash
 * slot, in no order within one; but an item that a writer was about to change comes as soon as it
 * was handed over. No command uses snapshots yet: first the contents of trees must be given out.
 * Belongs to the worker's thread. While one is open, the disk space of large values given up since
 * and of flushed databases is not freed.
 */
struct store_snapshot;

struct store_snapshot_options {
    uint64_t memory_bytes;    /* limit for copies handed over by writers and not yet given out */
    int64_t now_ms;           /* items expired by then are left out */
    void (*ready)(void *arg); /* from store_poll, after STORE_WAIT of the snapshot or its reader */
    void *arg;
};

struct store_snapshot_item {
    uint8_t db, type;
    uint32_t key_len;
    const char *key;
    int64_t expire_ms; /* or STORE_NO_EXPIRY */
    uint64_t version;
    uint64_t length;             /* of the value */
    const char *bytes;           /* NULL: large */
    uint8_t trees;               /* how many trees it has; their contents are not given out yet */
    struct store_reader *reader; /* of a large value; the snapshot closes it */
};

/* Not from within a run function or an observer. STORE_INVALID: too many observers. */
STORE_MUST_CHECK enum store_result
store_snapshot_begin(struct store_worker *worker, const struct store_snapshot_options *options,
                     struct store_snapshot **snapshot);
/* It shows exactly the commits up to this one; not all of them need be durable yet. */
uint64_t store_snapshot_commit(const struct store_snapshot *snapshot);
/* The next item, valid until the next call: STORE_OK; STORE_WAIT; STORE_ABSENT at the end.
 * STORE_TOO_LARGE: writers have changed more than memory_bytes between two calls. This, STORE_IO
 * and STORE_NO_MEMORY are final: the output so far is incomplete. Damaged items are skipped. */
STORE_MUST_CHECK enum store_result store_snapshot_next(struct store_snapshot *snapshot,
                                                       const struct store_snapshot_item **item);
void store_snapshot_end(struct store_snapshot *snapshot); /* at any time, also before the end */

/* ---- statistics ---- */

/* Any thread may call these, also in a run function and with any scope. */

struct store_db_stats {
    uint64_t keys, expires;
    int64_t mean_expiry_ms; /* average of the keys with an expiry; approximate */
};
/* Keys that have expired but were not yet removed are included. */
struct store_db_stats store_db_stats(const struct store *store, uint32_t db);
/* In a run function, with any scope: the same including the writes, flushes and swaps of its
 * transaction (but not in mean_expiry_ms). May have to look up the replaced items. */
STORE_MUST_CHECK enum store_result store_txn_db_stats(struct store_txn *txn, uint32_t db,
                                                      struct store_db_stats *stats);

struct store_stats {
    uint64_t index_bytes;       /* index and expiry tables */
    uint64_t table_bytes;       /* page tables, free slots */
    uint64_t frame_limit_bytes; /* the limit that all other memory leaves */
    uint64_t frame_bytes, dirty_bytes, journal_buffer_bytes;
    uint64_t store_bytes;        /* size of all files */
    uint64_t live_slots;         /* items in slabs */
    uint64_t segments_reclaimed; /* of 1 MB, taken from classes that had emptied them */
    uint64_t page_hits, page_misses;
    uint64_t pages_read, pages_written; /* 4096 B each */
    uint64_t journal_bytes_written, journal_groups, checkpoints;
    uint64_t reruns, exclusive_runs, throttled_commits;
    uint64_t commits, expired_keys, evicted_keys;
    uint64_t expired_parts; /* by store_waker */
    uint64_t read_errors, write_errors, damaged_items;
    uint64_t recovered_items, recovered_commits, recovery_ms;
    uint32_t partition_count, worker_count;
    bool is_loaded; /* started from an index checkpoint, without a scan */
    bool direct_io, failed;
    bool full;        /* the files cannot grow */
    bool over_memory; /* index and buffers leave too little for pages */
};
void store_stats(const struct store *store, struct store_stats *stats);
void store_reset_counters(struct store *store);
/* Of journal groups, steps of expiry or eviction since the last call: the longest; 0: none. */
enum store_work { STORE_WORK_JOURNAL, STORE_WORK_EXPIRY, STORE_WORK_EVICTION, STORE_WORKS };
uint64_t store_take_slowest_ns(struct store *store, enum store_work work);

#endif
