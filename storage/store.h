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
 * Units: lengths in bytes, times in Unix milliseconds unless the name says otherwise.
 * Threads: a store_worker and its requests belong to one thread; a struct store to all of them.
 * Errors: functions that can fail return enum store_result; nothing exits, prints or keeps errno.
 */
#ifndef VELLUM_STORE_H
#define VELLUM_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "storage/sizes.h"

#define STORE_DB_COUNT 16
#define STORE_SLOT_COUNT 16384 /* Redis Cluster's hash slots */
#define STORE_NO_EXPIRY (-1)

#define STORE_MUST_CHECK __attribute__((warn_unused_result))

enum store_result {
    STORE_OK = 0,
    STORE_WAIT,      /* not in memory yet: return this from the run function at once */
    STORE_ABSENT,    /* no such key */
    STORE_FULL,      /* no room on disk (maxstore or the file system) for this write */
    STORE_REFUSED,   /* a write or flush has failed: no more writes are accepted */
    STORE_DAMAGED,   /* checksum mismatch: the item is lost, and was reported */
    STORE_IO,        /* the device failed to read */
    STORE_NO_MEMORY, /* allocation failed */
    STORE_TOO_LARGE, /* key, value or transaction over its limit */
    STORE_LOCKED,    /* at open: another process has the directory */
    STORE_FOREIGN, /* at open: not a data directory of ours, or its files do not belong together */
    STORE_VERSION, /* at open: a format version we do not know */
    STORE_CORRUPT, /* at open: superblock or journal damaged beyond use */
    STORE_INVALID, /* at open: a bad option */
    STORE_BUSY,    /* its keys are held by a run that refuses others: see store_pause */
    /* These the store passes on, and never returns on its own: */
    STORE_ANSWERED,  /* what a run's helpers had to do is done */
    STORE_CANCELLED, /* nobody waits for the result any more */
};

enum store_sync { STORE_SYNC_ALWAYS, STORE_SYNC_EVERYSEC, STORE_SYNC_NO };
enum store_log_level { STORE_LOG_DEBUG, STORE_LOG_INFO, STORE_LOG_NOTICE, STORE_LOG_WARNING };

struct store;
struct store_worker;
struct store_txn;

/* Which keys go when there is no more room for others: on disk, or in memory for anything but the
 * index and buffers. */
enum store_evict {
    STORE_EVICT_NOTHING, /* none: STORE_FULL */
    STORE_EVICT_RANDOM,
    STORE_EVICT_LRU, /* used longest ago */
    STORE_EVICT_LFU, /* used least often */
    STORE_EVICT_TTL, /* due first */
};

struct store_policy {
    enum store_evict evicts;
    bool only_expiring;         /* only those that have an expiry */
    uint32_t samples;           /* the more, the nearer to exact; at least 1 */
    uint32_t lfu_log_factor;    /* the higher, the more uses it takes to count one more */
    uint32_t lfu_decay_minutes; /* without use, until one less is counted; 0: never */
};

struct store_options {
    const char *directory;    /* created if missing (the last component only) */
    uint32_t partition_count; /* power of two up to 128; used only when the directory is made */
    uint32_t worker_count;    /* how many store_workers will be attached */
    uint64_t memory_bytes; /* bound for the process, as process_bytes tells; where that is NULL or
                              tells 0, for index, page frames and journal buffers */
    uint64_t (*process_bytes)(void *arg); /* asked often, by the maintenance thread and those of
                                             store_set_memory and of who takes much */
    void *process_arg;
    uint64_t max_store_bytes; /* bound for the files; 0: no bound but the file system's */
    uint64_t journal_bytes;   /* size of the journal; used only when the directory is made */
    uint64_t record_bytes; /* what is longer of a transaction stands beside the journal; 0, and at
                              most: an eighth of it */
    enum store_sync sync;
    uint32_t scan_threads; /* that read the slabs at the start; 0: as many as workers */
    bool scans;            /* reads all slabs at the start, even if an index checkpoint would do */
    void (*log)(void *arg, enum store_log_level level, const char *line);
    void *log_arg;
};

/* ---- opening and closing ---- */

/* On failure *message (size STORE_MESSAGE_MAX) tells what is wrong and what helps. Recovers, with
 * progress on the log, and returns when the data are ready to be served. */
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
    bool has_index;  /* the next start loads a checkpoint of the index, and it is right */
    uint64_t faults; /* each was told to the log, as a warning */
};

/* Verifies all that is in the directory, as it would be after a start, and changes nothing.
 * STORE_OK: it could be read to the end, and `found` tells what was there. STORE_CORRUPT,
 * STORE_ABSENT and others, with a message: it cannot be opened. */
STORE_MUST_CHECK enum store_result
store_check(const char *directory,
            void (*log)(void *arg, enum store_log_level level, const char *line), void *log_arg,
            struct store_check *found, char message[STORE_MESSAGE_MAX]);

/* Changeable while running. */
void store_set_sync(struct store *store, enum store_sync sync);
void store_set_memory(struct store *store, uint64_t memory_bytes);
/* The process has taken, or given back, so much memory beside the store's: page frames make room at
 * once, before process_bytes is asked again. Counts as what cannot go. Any thread. */
void store_note_memory(struct store *store, int64_t change);
/* Frames beyond their limit go at once, so many bytes or a little more. Not in a run. */
void store_give_way(struct store *store, uint64_t bytes);
void store_set_max_store(struct store *store, uint64_t max_store_bytes);
void store_set_policy(struct store *store, const struct store_policy *policy); /* at first nothing
                                                                                  is evicted */
/* Whether what has expired is looked for; what reads come upon is deleted in any case. */
void store_set_active_expiry(struct store *store, bool active);

/* Unix time that never runs backwards, not over restarts either (as of the last checkpoint or
 * start): what has once expired stays so when the machine's clock is set back. It does not stand
 * still then, but runs at 7/8 of its speed until the machine's has caught up. Any thread. */
int64_t store_clock_ms(struct store *store);

/* For keyed hashes: made at random with the directory, the same for good, shown to nobody. */
struct store_secret {
    uint64_t words[2];
};
struct store_secret store_secret(const struct store *store);

/* Above every number that it has returned for this directory, over restarts too; never 0. */
uint64_t store_next_sequence(struct store *store);

/* ---- workers ---- */

/* index: 0 .. worker_count - 1. Fails with STORE_NO_MEMORY, or STORE_IO with a message when the
 * kernel has too few AIO slots. */
STORE_MUST_CHECK enum store_result store_attach(struct store *store, uint32_t index,
                                                struct store_worker **worker,
                                                char message[STORE_MESSAGE_MAX]);
void store_detach(struct store_worker *worker); /* no request may be in progress on it */

/* An eventfd that becomes readable when store_poll has something to do. */
int store_worker_fd(const struct store_worker *worker);

/* Reaps I/O, runs requests again that became ready, calls their done functions. Never blocks.
 * What it finds durable it tells other workers: this one is to look at store_durable behind it. */
void store_poll(struct store_worker *worker);

/* Ends a round: submits queued reads in one system call and starts the journal's next group. To be
 * called before the thread blocks. */
void store_submit(struct store_worker *worker);

/* Requests parked on this worker. */
uint32_t store_parked(const struct store_worker *worker);

/* ---- durability ---- */

/* Commits up to this number are durable. */
uint64_t store_durable(const struct store *store);

/* One more who waits for durability, or (-1) one less: while there are any, all workers'
 * descriptors become readable when it moves; under STORE_SYNC_ALWAYS they do in any case. Any
 * thread. */
void store_await_durable(struct store *store, int change);

/* A write or flush has failed: nothing can be committed or made durable any more. */
bool store_has_failed(const struct store *store);

/* Index and buffers leave too little memory for pages, and no key may go: no more should come. */
bool store_is_over_memory(const struct store *store);

/* ---- requests ---- */

enum store_mode { STORE_SHARED, STORE_EXCLUSIVE };

/* A key as the engine sees it. Filled by store_key(); the bytes stay the caller's and must live as
 * long as the request. */
struct store_key {
    const char *data;
    uint32_t len;
    uint16_t slot; /* hash slot */
    uint8_t db;    /* 0 .. STORE_DB_COUNT - 1 */
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
    /* NULL, or called when the request ends so, while its keys are still its own and `shown` is
     * known: with the store's locks held, so that it must be quick. Then done, without them. */
    void (*leave)(struct store_request *request, enum store_result result);
    const struct store_key *keys; /* declared keys; the same key may occur twice */
    uint32_t key_count;
    enum store_scope scope;
    int64_t now_ms;      /* the time this request sees, through all reruns; decides expiry */
    bool may_be_refused; /* with STORE_BUSY, instead of waiting for a run that refuses others */
    bool may_prefetch;   /* see store_is_prefetch_run */

    /* set by the engine when it is finished */
    uint64_t shown; /* commit number that must be durable before the reply may leave under
                       STORE_SYNC_ALWAYS: the newest it shows, reports or made */

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

/* Starts reading what the keys need, without waiting and without a promise. Which of the first 64
 * seem to have trees, a bit each. */
uint64_t store_prefetch(struct store_worker *worker, const struct store_key *keys, uint32_t count);

/* ---- inside a run function ---- */

/*
 * A run that takes very long lets others have their turn now and then: its locks are released, its
 * keys stay its own, as if it waited for a page. `refuses`: from now on whoever needs them, and
 * whoever waits for them, gets STORE_BUSY. What items the run has seen are not to be looked at any
 * more. Between the two calls the thread may execute other requests, and no more than that. False:
 * out of memory; the locks are still held, and store_go_on is not to be called.
 */
STORE_MUST_CHECK bool store_pause(struct store_txn *txn, bool refuses);
void store_go_on(struct store_txn *txn);

/* A prefetch run: a request that waits for its keys runs only to start its reads. Its results and
 * effects are discarded; the caller undoes what the run leaves outside of the transaction. */
bool store_is_prefetch_run(const struct store_txn *txn);

/* A value as found. `bytes` is the whole value while it is small, NULL when it is large; valid
 * until the run function returns. Types are the caller's: the engine only keeps the number. */
struct store_item {
    const char *bytes;
    uint64_t length;    /* of the value */
    int64_t expire_ms;  /* or STORE_NO_EXPIRY */
    uint64_t version;   /* commit number that wrote it; 0: written by this transaction */
    uint8_t type;       /* 0 .. 255, the caller's */
    bool large;         /* kept in extents: use store_read or store_load */
    uint8_t trees;      /* how many trees it is, then without bytes; 0: not a collection of them */
    const void *origin; /* the engine's own */
};

/* STORE_OK, STORE_ABSENT (also when expired), STORE_WAIT, STORE_DAMAGED, STORE_IO. Sees this
 * transaction's own writes. The key must be declared, or the scope STORE_SCOPE_ALL. */
STORE_MUST_CHECK enum store_result store_get(struct store_txn *txn, const struct store_key *key,
                                             struct store_item *item);

/* Copies bytes [offset, offset + len) of the value, which must lie within it. */
STORE_MUST_CHECK enum store_result store_read(struct store_txn *txn, const struct store_item *item,
                                              uint64_t offset, size_t len, char *to);

/* The bytes from `offset` on to the end of their piece of STORE_READER_PIECE, or a hole, which may
 * be longer. A large value's come into `room`, which has so many. The caller keeps over the runs
 * how far it has got: such a request need not wait in place. */
struct store_piece {
    const char *bytes; /* NULL: zeros */
    uint64_t length;
};
STORE_MUST_CHECK enum store_result store_read_piece(struct store_txn *txn,
                                                    const struct store_item *item, uint64_t offset,
                                                    char *room, struct store_piece *piece);

/* The whole value in one piece, until the request is finished. */
STORE_MUST_CHECK enum store_result store_load(struct store_txn *txn, const struct store_item *item,
                                              const char **bytes);
/* STORE_NO_MEMORY: all requests would have loaded more than `most` bytes of large values. */
STORE_MUST_CHECK enum store_result store_load_within(struct store_txn *txn,
                                                     const struct store_item *item, uint64_t most,
                                                     const char **bytes);
/* Nothing refers any more to the values that were loaded, and no later run needs them. */
void store_drop_loaded(struct store_txn *txn);

/* Replaces the value, type and expiry of a key. `bytes` must live until the request is finished:
 * arguments of the request do, and memory from store_alloc. What this run has read from pages (the
 * bytes of items and entries) may be given, too: here, to store_patch and to the trees. */
STORE_MUST_CHECK enum store_result store_put(struct store_txn *txn, const struct store_key *key,
                                             uint8_t type, const char *bytes, size_t len,
                                             int64_t expire_ms);

/* Overwrites bytes of an existing value from `offset` on, making it longer where needed, with zeros
 * in between. Keeps type and expiry. Costs a few I/Os whatever the value's length. */
STORE_MUST_CHECK enum store_result store_patch(struct store_txn *txn, const struct store_key *key,
                                               const struct store_item *item, uint64_t offset,
                                               const char *bytes, size_t len);

STORE_MUST_CHECK enum store_result store_set_expiry(struct store_txn *txn,
                                                    const struct store_key *key,
                                                    const struct store_item *item,
                                                    int64_t expire_ms);

STORE_MUST_CHECK enum store_result store_delete(struct store_txn *txn, const struct store_key *key);

/* Whether what this run reads from here on counts as used; it does unless said. */
void store_count_access(struct store_txn *txn, bool counts);

/* How a committed key was used. Under STORE_EVICT_LFU `frequency` is its logarithmic counter, and
 * idle_ms unknown. Under other policies idle_ms is the time since its last use; where none of
 * them goes by it, since the first time that anybody has asked. */
struct store_access {
    int64_t idle_ms;
    uint32_t frequency; /* to 255 */
};
STORE_MUST_CHECK enum store_result
store_get_access(struct store_txn *txn, const struct store_key *key, struct store_access *use);
/* For a key that this run has put, and changes no more: that is how it was used. */
void store_set_access(struct store_txn *txn, const struct store_key *, const struct store_access *);

/* Gives the item found at `from` the name `to`, over what is there; `from` is gone. Takes no longer
 * for a large value than for a small one. */
STORE_MUST_CHECK enum store_result store_rename(struct store_txn *txn, const struct store_key *from,
                                                const struct store_item *item,
                                                const struct store_key *to);

/*
 * A large value read out piece by piece after its request is finished. It keeps showing the version
 * it was opened on, whatever is overwritten or deleted meanwhile, and holds one piece in memory.
 */
struct store_reader;

/* From byte `offset` on, before the end. `ready(arg)` is called from store_poll of the same worker
 * after store_reader_next said STORE_WAIT. Discarded with the other effects of the run on a rerun,
 * unless it is kept: then it is the caller's from there on. */
STORE_MUST_CHECK enum store_result store_reader_open(struct store_txn *txn,
                                                     const struct store_item *item, uint64_t offset,
                                                     struct store_reader **reader);
/* Whether there can be one: not of what this transaction itself has changed. */
bool store_needs_reader(const struct store_item *item);
/* Before its first piece: it ends after so many bytes. */
void store_reader_end_after(struct store_reader *reader, uint64_t length);
struct store_upload;
/* The same of a finished upload that is of no key; it may be closed before the stream is. */
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
void store_reader_close(struct store_reader *reader); /* at any time, also before the end */

/*
 * A large value that is written to its place while it arrives, before any request runs. Between a
 * span that was filled and the device nothing is copied. Belongs to its worker's thread; `ready` is
 * called from store_poll of that worker after a call that said STORE_WAIT.
 *
 *     store_upload_begin -> (store_upload_space, fill, store_upload_filled) until all is there ->
 *     store_upload_finish -> a request whose run function calls store_put_upload ->
 *     store_upload_close, when the request is finished
 *
 * Nobody sees the value before that request has committed; if none does, its space comes back with
 * the closing, or with the next start. After a failure space and finish return it again, and so
 * does store_put_upload.
 *
 * The spans are frames of the page cache as long as uploads hold no more than a quarter of it, else
 * memory of the upload's own. A span stays where it is until it was filled or the upload is closed:
 * it may be given to a device (a NIC's RDMA READ, a socket with zero copy), if the upload is not
 * closed before the device has let go of it.
 */
/* `length`: STORE_UPLOAD_SHORTEST at least; STORE_TOO_LARGE beyond STORE_VALUE_MAX. Or
 * STORE_UPLOAD_OPEN: it ends where it is finished, behind any number of whole pieces of
 * STORE_READER_PIECE. No key can have it: it is put aside, to be read once by a stream. Where there
 * is no room for another piece, those before it are good. */
#define STORE_UPLOAD_MIN (64 * 1024) /* below this it is not worth while, if bytes are copied */
#define STORE_UPLOAD_SHORTEST 4096   /* what would not go into an item anyway */
#define STORE_UPLOAD_OPEN UINT64_MAX
STORE_MUST_CHECK enum store_result store_upload_begin(struct store_worker *worker, uint64_t length,
                                                      void (*ready)(void *arg), void *arg,
                                                      struct store_upload **upload);
/* Where the next bytes go, at most STORE_READER_PIECE and a part of it what was not filled yet,
 * while not all were filled. STORE_WAIT: the device, or room on it, has to catch up. */
STORE_MUST_CHECK enum store_result store_upload_space(struct store_upload *upload,
                                                      const struct iovec **vectors, int *count);
/* So many of these bytes are there, from the start. */
void store_upload_filled(struct store_upload *upload, size_t len);
/* Instead of both: the next STORE_READER_PIECE bytes, or what is left, are these and zeros behind
 * them; none: a hole. After STORE_WAIT the same is to be put again. */
STORE_MUST_CHECK enum store_result store_upload_put(struct store_upload *upload, const char *bytes,
                                                    size_t len);
/* When all were filled. STORE_OK: the value is durable. */
STORE_MUST_CHECK enum store_result store_upload_finish(struct store_upload *upload);
/* At any time, but not while a request that has put it is not finished. */
void store_upload_close(struct store_upload *upload);
/* In a run function: gives one key the value of a finished upload; again in each rerun. */
STORE_MUST_CHECK enum store_result store_put_upload(struct store_txn *txn,
                                                    const struct store_key *key, uint8_t type,
                                                    struct store_upload *upload, int64_t expire_ms);

/* The stretch of page memory that an address of a stream's piece or of an upload's span lies in, to
 * be registered with a device as a whole: from now on it keeps its memory until the store is
 * closed. False: the address is in none. By any thread. */
STORE_MUST_CHECK bool store_hold_pages(struct store *store, const void *address, void **start,
                                       size_t *size);

/* ---- large collections ---- */

/*
 * A value may be up to STORE_TREES counted B+-trees instead of bytes: collections too large for one
 * item. A tree is a sequence of entries with rising keys; equal keys are allowed, their order is
 * the caller's, and with empty keys it is a list. It knows how many entries stand before each, so
 * that a rank is found in as many pages as the tree is high. Nodes are pages of the partition the
 * collection was made in and belong to it, not to its name: renaming takes one record, and giving
 * it up (deleting, overwriting, expiry, a flush) returns at once, the pages coming back in the
 * background.
 */
#define STORE_TREES 2
#define STORE_TREE_KEY_MAX SIZES_TREE_KEY /* longest key of an entry; values: STORE_VALUE_MAX */

struct store_tree; /* one tree of one key, while the run function runs */

/* A place in a tree: before the entry `rank`, or at the end. Fields are the engine's own but rank.
 * Any change of the tree makes all other cursors on it invalid. */
#define STORE_TREE_HEIGHT_MAX 12
#define STORE_RANK_UNKNOWN UINT64_MAX
struct store_cursor {
    struct store_tree *tree;
    uint64_t rank;
    uint32_t depth;
    uint32_t pages[STORE_TREE_HEIGHT_MAX];
    uint16_t places[STORE_TREE_HEIGHT_MAX];
};

/* An entry as found; its bytes are valid until the next call with a cursor of the same tree. */
struct store_entry {
    const char *key;
    uint32_t key_len;
    struct store_item value; /* large: as with other items, store_read, store_load, streams */
};

/* An entry of a key's trees that is going to be looked at. */
#define STORE_HINT_BYTES 8 /* a key begins with */
#define STORE_HINT_LAST STORE_TREES
struct store_prefetch_hint {
    const struct store_key *key;
    uint8_t tree; /* or STORE_HINT_LAST */
    bool by_rank; /* from the tree's begin, or with from_end; else by `bytes` */
    bool from_end;
    uint32_t rank;
    char bytes[STORE_HINT_BYTES];
    /* NULL, or turns the probe into one for what the entry leads to. False: nothing. */
    bool (*follow)(const struct store *store, const struct store_entry *entry,
                   struct store_prefetch_hint *hint);
};

/* Has what is in memory of the ways to it fetched into the processor's cache. */
void store_prefetch_trees(struct store_worker *worker, const struct store_prefetch_hint *hints,
                          uint32_t count);

/* Gives the key a new value of `count` empty trees. */
STORE_MUST_CHECK enum store_result store_tree_create(struct store_txn *txn,
                                                     const struct store_key *key, uint8_t type,
                                                     uint32_t count, int64_t expire_ms);
/* Tree number `which` of an item that has item->trees > which. What is changed in it is part of the
 * transaction; one (key, which) gives the same tree throughout a run. */
STORE_MUST_CHECK enum store_result store_tree_open(struct store_txn *txn,
                                                   const struct store_key *key,
                                                   const struct store_item *item, uint32_t which,
                                                   struct store_tree **tree);
/* Changes the type byte of a key that has trees. */
STORE_MUST_CHECK enum store_result store_tree_set_type(struct store_txn *txn,
                                                       const struct store_key *key,
                                                       const struct store_item *item, uint8_t type);

uint64_t store_tree_count(const struct store_tree *tree); /* entries */

/* All of these: STORE_OK, STORE_WAIT, STORE_DAMAGED, STORE_IO, STORE_NO_MEMORY; changes also
 * STORE_FULL and STORE_TOO_LARGE. */

/* To the first entry whose key is not less than this one (bytes compared as unsigned, a prefix
 * before what it begins), or to the end. */
STORE_MUST_CHECK enum store_result store_tree_seek(struct store_tree *tree, const char *key,
                                                   size_t len, struct store_cursor *cursor);
/* The same for those who do not need the rank, and quicker: it need not be told. */
STORE_MUST_CHECK enum store_result store_tree_find(struct store_tree *tree, const char *key,
                                                   size_t len, struct store_cursor *cursor);
/* To entry `rank`, at most store_tree_count. */
STORE_MUST_CHECK enum store_result store_tree_seek_rank(struct store_tree *tree, uint64_t rank,
                                                        struct store_cursor *cursor);
/* STORE_ABSENT at the end. */
STORE_MUST_CHECK enum store_result store_tree_get(struct store_cursor *cursor,
                                                  struct store_entry *entry);
/* The entries from the cursor on, and moves behind them: as many as lie together, at least one and
 * at most `most`. Their bytes hold until the next call on the tree. STORE_ABSENT at the end. */
STORE_MUST_CHECK enum store_result store_tree_read(struct store_cursor *cursor,
                                                   struct store_entry *entries, uint32_t most,
                                                   uint32_t *count);
/* One on, one back: STORE_ABSENT, without moving, from the end or from the first entry. */
STORE_MUST_CHECK enum store_result store_tree_next(struct store_cursor *cursor);
STORE_MUST_CHECK enum store_result store_tree_prev(struct store_cursor *cursor);
/* Puts an entry before the cursor, which then stands on it; the keys must stay in order. `value`
 * must live until the request is finished, the key need not. */
STORE_MUST_CHECK enum store_result store_tree_insert(struct store_cursor *cursor, const char *key,
                                                     size_t key_len, const char *value,
                                                     size_t value_len);
/* A new value for the entry at the cursor. */
STORE_MUST_CHECK enum store_result store_tree_replace(struct store_cursor *cursor,
                                                      const char *value, size_t value_len);
/* Takes out the entry at the cursor, which then stands on the one that followed. */
STORE_MUST_CHECK enum store_result store_tree_remove(struct store_cursor *cursor);

/* For work in steps: the run function keeps where it is in memory of its own, and returns what this
 * returns, STORE_WAIT, after some pages. Its keys stay held, its pages do not, others get their
 * turn, and it is run again; what it has written is forgotten, so that steps come before writes. */
STORE_MUST_CHECK enum store_result store_step(struct store_txn *txn);

/* store_step, but what the run has written stays, and the next run goes on with it: it has the same
 * store_attempt then. After any wait all is forgotten, and the number is one that was not yet. */
STORE_MUST_CHECK enum store_result store_yield(struct store_txn *txn);
uint64_t store_attempt(const struct store_txn *txn);

/* store_step, but the next run waits for store_resume, its keys held, no pages: the caller polls
 * store_has_waiters. On the request's thread, between runs; no effect if not suspended. */
STORE_MUST_CHECK enum store_result store_suspend(struct store_txn *txn);
void store_resume(struct store_request *request);
bool store_has_waiters(const struct store_request *request);

uint64_t store_shown(const struct store_txn *txn); /* store_request.shown, of this run so far */

/*
 * A collection that is being made, and that no key names yet: in steps, of which each is committed
 * on its own, so that it may be larger than memory. It lives over the runs of its request. One that
 * no key was given is taken apart in the background; after a crash nothing of it is there.
 */
struct store_bulk_load;

/* In a run, of `count` trees, in the partition of `key`, which the request holds. */
STORE_MUST_CHECK enum store_result store_bulk_load_begin(struct store_txn *txn,
                                                         const struct store_key *key,
                                                         uint32_t count,
                                                         struct store_bulk_load **bulk_load);
/* Tree number `which` as the steps so far have made it, to be changed by this run. */
STORE_MUST_CHECK enum store_result store_bulk_load_tree(struct store_txn *txn,
                                                        struct store_bulk_load *bulk_load,
                                                        uint32_t which, struct store_tree **tree);
/* As store_step, but what the run has changed of the building is committed before the next run. If
 * the run does not return with this, or that fails, it is forgotten like all else. */
STORE_MUST_CHECK enum store_result store_bulk_load_step(struct store_txn *txn,
                                                        struct store_bulk_load *bulk_load);
uint64_t
store_bulk_load_steps(const struct store_bulk_load *bulk_load); /* so many were committed */
/* Gives the key the building as its value, as it is after its last step. */
STORE_MUST_CHECK enum store_result store_put_bulk_load(struct store_txn *txn,
                                                       const struct store_key *key, uint8_t type,
                                                       struct store_bulk_load *bulk_load,
                                                       int64_t expire_ms);
/* Not in a run: nothing will be asked of it any more. */
void store_bulk_load_end(struct store_bulk_load *bulk_load);

/* Memory that lives until the request is finished, or its run is forgotten. NULL: there is none. */
void *store_alloc(struct store_txn *txn, size_t size);

/* What the transaction has by now for all that it was asked for. */
uint64_t store_memory(const struct store_txn *txn);

/* A run that goes on for long holds its partitions' page frames: where memory is short it makes
 * room itself, between two of the things that it does. Items it has seen are gone then. */
void store_make_room(struct store_txn *txn);

/* For a run that does many things, one after the other: whatever store_alloc gave since the mark,
 * and the items that were read, are not needed any more. False: what the run is to do refers to
 * them, and they stay. */
struct store_mark {
    const void *block, *collection, *reader;
    size_t used;
    uint64_t copied_bytes;
    uint32_t write_count, tree_buffers;
};
void store_mark(const struct store_txn *txn, struct store_mark *mark);
bool store_forget(struct store_txn *txn, const struct store_mark *mark);

int64_t store_now(const struct store_txn *txn); /* the request's now_ms */

/* Walks the index: calls `visit` for each live item of `db` from *cursor on, at most *budget
 * index entries, which it takes off *budget, and advances *cursor (0: begin, and 0 again: the end
 * is reached). Only at the end it may look at none. Sees what this transaction has written, flushed
 * and swapped: its own writes each once, at their place in the walk and beyond the budget. Not with
 * STORE_SCOPE_KEYS. An item present from
 * the first call to the last is visited at least once, whatever grows, shrinks or restarts in
 * between. Each call either makes progress or returns STORE_WAIT; unless it returns STORE_OK,
 * nothing was visited and *cursor is as it was. Damaged items are skipped. Key and item
 * are there until the visit ends. */
typedef void store_visit(void *arg, const char *key, uint32_t key_len,
                         const struct store_item *item);
STORE_MUST_CHECK enum store_result store_scan(struct store_txn *txn, uint32_t db, uint64_t *cursor,
                                              uint32_t *budget, store_visit *visit, void *arg);

/* A cursor for store_scan at a place of the walk chosen by `random`, weighted by where committed
 * keys are as well as is cheap: for RANDOMKEY. */
uint64_t store_scan_at(const struct store_txn *txn, uint32_t db, uint64_t random);

/* Scope STORE_SCOPE_ALL only. O(1), the space comes back in the background. They take their place
 * among the transaction's other calls: what was written before is flushed or swapped along, what
 * comes after sees and changes the databases as they are then. */
void store_flush_db(struct store_txn *txn, uint32_t db);
void store_flush_all(struct store_txn *txn);
void store_swap_db(struct store_txn *txn, uint32_t a, uint32_t b);

/* In a request of scope STORE_SCOPE_ALL that has written nothing: makes all commits durable, drops
 * all that is only known in memory, and recovers from the files, as a start does. For tests.
 * STORE_LOCKED: a stream or snapshot is open, nothing was done. After any other failure what is in
 * memory must not be served any more: nothing is written from then on. *message tells why. */
STORE_MUST_CHECK enum store_result store_reload(struct store_txn *txn,
                                                char message[STORE_MESSAGE_MAX]);

/* ---- watching changes ---- */

enum store_change_kind { STORE_CHANGE_KEY, STORE_CHANGE_FLUSH, STORE_CHANGE_SWAP };
enum store_cause { STORE_BY_REQUEST, STORE_BY_EXPIRY, STORE_BY_EVICTION };

/* Renaming changes two keys; a write that finds the key as it should be is a change too. */
struct store_change {
    enum store_change_kind kind;
    enum store_cause cause;
    struct store_worker *worker; /* that makes it */
    uint64_t commit;             /* all changes of a transaction have the same */
    const struct store_key *key; /* KEY; with the logical database */
    /* KEY: what was there, also when it had expired, and what comes; NULL: absent. Of large values
     * without their bytes. */
    const struct store_item *old, *fresh;
    uint32_t dbs; /* FLUSH: those emptied, a bit each; SWAP: the two */
};

/* Called for every change before it is applied; those of one key in the order of their commits, a
 * flush or swap before the transaction's changes of keys. By any thread, with locks of the store
 * held: it must be quick, must not call anything of this header but store_hand_off, and all it is
 * given is gone when it returns. Of a transaction that flushes or swaps in between other changes it
 * is told, in this order: the deletion of keys in databases that are flushed then (not of all keys
 * there); the swaps, then the flush, that it comes to; the changes of keys, with their databases as
 * they are then. */
#define STORE_OBSERVER_MAX 8
typedef void store_observer(void *arg, const struct store_change *change);

/* Not from within a run function or an observer. STORE_INVALID: there are STORE_OBSERVER_MAX (open
 * snapshots count). After store_unobserve, which needs the same pair, it is not called again. */
STORE_MUST_CHECK enum store_result store_observe(struct store *store, store_observer *observer,
                                                 void *arg);
void store_unobserve(struct store *store, store_observer *observer, void *arg);

/* In a run function: why it changes what it does; STORE_BY_REQUEST unless said. */
void store_set_cause(struct store_txn *txn, enum store_cause cause);

/* ---- waiting to be called ---- */

/*
 * A request that finds nothing to do may wait until somebody calls it to one of its keys: its run
 * enlists it and returns STORE_OK. store_execute and done say STORE_OK then, but it is to live on,
 * with its keys, until it was dismissed or, being summoned, has run again. Scope STORE_SCOPE_KEYS.
 */
STORE_MUST_CHECK enum store_result store_wait_register(struct store_txn *txn);
/* Not after it was summoned; one that is not enlisted is left as it is. By its own thread. */
void store_wait_cancel(struct store_request *request);
/* Runs an enlisted request again, by its own thread, as the next on this key of its keys: after
 * whoever calls it has ended, and before any other request with that key. Once, and only by an
 * observer for a change of the key (a swap: of any), or in `leave` of a request with it; `from` is
 * the worker there. */
void store_hand_off(struct store_request *request, const struct store_key *key,
                    struct store_worker *from);
/* Of one that was summoned: a second of its keys, by its index, is to be its own likewise, when it
 * runs. By whoever might summon it to that one. */
void store_hand_off_also(struct store_request *request, uint32_t index, struct store_worker *from);
/* Runs now those of this worker that its own requests have summoned; others come by store_poll. */
void store_run_handoffs(struct store_worker *worker);

/* ---- snapshots ---- */

/*
 * Everything that was in the store at one commit, item by item, while writers go on. Hash slot by
 * hash slot, in no order within one; but what a writer was about to change comes as soon as it was
 * handed over. No command uses them yet: what is in trees has to be given out before one does.
 * Belongs to the worker's thread. While one is open, the disk space of large values
 * given up since and of flushed databases does not come back.
 */
struct store_snapshot;

struct store_snapshot_options {
    uint64_t memory_bytes;    /* most that writers may have handed over and was not yet given out */
    int64_t now_ms;           /* what has expired by then is left out */
    void (*ready)(void *arg); /* from store_poll, after STORE_WAIT of the snapshot or its stream */
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
    uint8_t trees;               /* how many trees it is; what is in them is not given out yet */
    struct store_reader *reader; /* of a large value; the snapshot closes it */
};

/* Not from within a run function or an observer. STORE_INVALID: too many observers. */
STORE_MUST_CHECK enum store_result
store_snapshot_begin(struct store_worker *worker, const struct store_snapshot_options *options,
                     struct store_snapshot **snapshot);
/* Shows just the commits up to this one; not all of them need be durable yet. */
uint64_t store_snapshot_commit(const struct store_snapshot *snapshot);
/* The next item, valid until the next call: STORE_OK; STORE_WAIT; STORE_ABSENT at the end.
 * STORE_TOO_LARGE: writers have changed more than memory_bytes between two calls. That, STORE_IO
 * and STORE_NO_MEMORY are final: what was given out so far is no whole. Damaged items are skipped.
 */
STORE_MUST_CHECK enum store_result store_snapshot_next(struct store_snapshot *snapshot,
                                                       const struct store_snapshot_item **item);
void store_snapshot_end(struct store_snapshot *snapshot); /* at any time, also before the end */

/* ---- figures ---- */

/* All of these by any thread, also in a run function and with any scope. */

struct store_db_stats {
    uint64_t keys, expires;
    int64_t mean_expiry_ms; /* of those that expire; about */
};
/* Keys that have expired but were not yet removed are counted. */
struct store_db_stats store_db_stats(const struct store *store, uint32_t db);
/* In a run function, with any scope: the same with what its transaction has written, flushed and
 * swapped (but not in mean_expiry_ms). May have to look up what is replaced. */
STORE_MUST_CHECK enum store_result store_txn_db_stats(struct store_txn *txn, uint32_t db,
                                                      struct store_db_stats *stats);

struct store_stats {
    uint64_t index_bytes;       /* index and expiry tables */
    uint64_t table_bytes;       /* page tables, free slots */
    uint64_t frame_limit_bytes; /* as many may be in frames beside all else */
    uint64_t frame_bytes, dirty_bytes, journal_buffer_bytes;
    uint64_t store_bytes;        /* size of all files */
    uint64_t live_slots;         /* items in slabs */
    uint64_t segments_reclaimed; /* of 1 MB, from a class that had emptied them */
    uint64_t page_hits, page_misses;
    uint64_t pages_read, pages_written; /* 4096 B each */
    uint64_t journal_bytes_written, journal_groups, checkpoints;
    uint64_t reruns, exclusive_runs, throttled_commits;
    uint64_t commits, expired_keys, evicted_keys;
    uint64_t read_errors, write_errors, damaged_items;
    uint64_t recovered_items, recovered_commits, recovery_ms;
    uint32_t partition_count, worker_count;
    bool is_loaded; /* by the start from an index checkpoint, without a scan */
    bool direct_io, failed;
    bool full;        /* the files can take no more */
    bool over_memory; /* index and buffers leave too little for pages */
};
void store_stats(const struct store *store, struct store_stats *stats);
void store_reset_counters(struct store *store);

#endif
