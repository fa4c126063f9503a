/*
 * What the parts of the model share: model_store.c (store, workers, requests, streams),
 * model_upload.c, model_txn.c (what run functions call), model_tree.c (what they call about large
 * collections), model_change.c (observers), model_range.c (walks over keys in order), model_table.c
 * (values and hash tables).
 */
#ifndef VELLUM_MODEL_PRIVATE_H
#define VELLUM_MODEL_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "tests/model/model_store.h"
#include "storage/collections.h"

#define MODEL_WORKERS_MAX 64
#define READER_VECTORS 4
#define MAP_EMPTY (-1)

struct branch; /* a tree of a value */

struct value {
    _Atomic uint32_t refs;
    uint8_t tree_count;
    struct branch *trees[STORE_TREES]; /* instead of bytes */
    uint64_t len;
    char bytes[];
};

struct entry {
    struct entry *next;
    struct value *value; /* NULL, only in a transaction's table: the key is deleted */
    int64_t expire_ms, wake_ms;
    uint64_t version;
    uint64_t hash;
    uint32_t key_len;
    uint8_t type;
    char key[];
};

/* A bucket is the top `bits` of the hash; each bucket's list is sorted by hash. */
struct table {
    struct entry **buckets; /* NULL while nothing was ever inserted */
    uint32_t bits;
    uint64_t count, expires;
};

struct store_parked {
    struct store_parked *next;
    struct store_request *request;
    enum store_result result;
    uint64_t loaded;        /* touches that will not wait again */
    struct store_txn *kept; /* it has given way; or NULL */
};

struct store_reader {
    struct store_reader *next; /* of its transaction's, then of its worker's waiting ones */
    struct store_worker *worker;
    struct store_txn *txn; /* that opened it */
    struct value *value;
    uint64_t handed_out, position, end; /* handed_out: where the last piece begins */
    bool waiting;
    bool loaded; /* the next piece has been waited for */
    void (*ready)(void *arg);
    void *arg;
    struct iovec vectors[READER_VECTORS];
};

struct store_worker {
    struct store *store;
    int event_fd;
    uint32_t parked_count;
    uint64_t random;
    struct store_reader *waiting_readers;
    struct store_upload *waiting_uploads;
};

struct observer {
    store_observer *call;
    void *arg;
};

#define MODEL_DBS (STORE_META_DB + 1)

struct store {
    pthread_mutex_t mutex;
    struct observer observers[STORE_OBSERVER_MAX];
    uint32_t observer_count;
    struct table dbs[MODEL_DBS];
    uint64_t attempts;
    struct store_parked *parked;
    struct store_parked *handed_off, *last_handed_off; /* by the request that ends, to be parked */
    struct store_worker *workers[MODEL_WORKERS_MAX];
    uint32_t worker_count;
    uint32_t wait_per_mille;
    uint64_t random;
    int64_t clock_ms; /* latest time seen */
    uint32_t sweep_db;
    uint64_t sweep_hash;
    _Atomic bool keeps_expired; /* store_set_active_expiry */
    struct store_stats stats;
    _Atomic uint64_t commits, durable, sequences;
    _Atomic uint64_t keys[STORE_DB_COUNT], expires[STORE_DB_COUNT];
};

struct chunk {
    struct chunk *next;
    _Alignas(16) char bytes[];
};

struct store_txn {
    struct store_worker *worker;
    struct store_request *request;
    struct table written[MODEL_DBS];
    int map[STORE_DB_COUNT]; /* the store's database that lies under each of ours */
    bool dirty;
    uint64_t touches, *loaded;
    uint64_t attempt;
    bool keeps; /* it gives way */
    enum store_cause cause;
    struct chunk *chunks;
    struct entry *held; /* overwritten within the transaction, readable to its end */
    struct store_reader *readers;
    struct store_tree *trees;
};

/* ---- model_store.c ---- */

void worker_signal(struct store_worker *worker); /* its next store_poll has something to do */
/* A stream from there on; the transaction's if it joins that. */
struct store_reader *model_open_reader(struct store_worker *worker, struct value *value,
                                       uint64_t offset);
void model_join_reader(struct store_txn *txn, struct store_reader *reader);

/* ---- model_upload.c ---- */

void model_wake_uploads(struct store_worker *worker);

/* ---- model_txn.c ---- */

#define MODEL_LARGE_FROM                                                                           \
    4096 /* longer values are shown as large, so that callers meet both kinds */

/* A transaction may only touch what its request declared, and only write what it declared so. */
void check_declared(const struct store_txn *txn, const struct store_key *key, enum store_mode mode);
/* True when this touch has to wait. */
bool must_wait(struct store_txn *txn);
/* The key's live entry as this transaction sees it, or NULL. */
struct entry *txn_find(const struct store_txn *txn, const struct store_key *key);
/* Gives the key this value (NULL: deletes it) in the transaction's own table; takes the value. */
void txn_write(struct store_txn *txn, const struct store_key *key, uint8_t type,
               struct value *value, int64_t expire_ms);
/* The same with the type and wake time of an entry. */
void txn_rewrite(struct store_txn *txn, const struct store_key *key, const struct entry *from,
                 struct value *value, int64_t expire_ms);

void item_fill(struct store_item *item, const struct entry *entry);

/* ---- model_change.c ---- */

/* Tells the observers what the transaction is about to change. */
void model_report(const struct store_txn *txn);

/* ---- model_tree.c ---- */

void trees_free(struct value *value);         /* those of a value that goes */
void txn_forget_trees(struct store_txn *txn); /* those it has opened */

/* ---- model_table.c ---- */

void *model_alloc(size_t size); /* zeroed; ends the process when there is none */
uint64_t model_random(uint64_t *state);

struct value *value_new(uint64_t len);
struct value *value_ref(struct value *value);
void value_unref(struct value *value);

struct entry *entry_new(const struct store_key *key);
void entry_free(struct entry *entry);
bool entry_expired(const struct entry *entry, int64_t now_ms);

struct entry *table_find(const struct table *table, const struct store_key *key);
/* First entry whose hash is not below `hash`. */
struct entry *table_from(const struct table *table, uint64_t hash);
/* The key must not be there yet. */
void table_insert(struct table *table, struct entry *entry);
void table_unlink(struct table *table, struct entry *entry); /* does not free it */
void table_remove(struct table *table, struct entry *entry);
void table_clear(struct table *table);

bool same_key(const struct store_key *a, const struct store_key *b);

#endif
