/*
 * What the tests of the engine share: a store with its workers, driven by the test's own thread,
 * and calls, which are transactions written down as steps.
 *
 * A test that finds a fault says so and aborts: it may be deep inside the engine then, with locks
 * held, and the core shows all of it.
 */
#ifndef VELLUM_TEST_STORAGE_HARNESS_H
#define VELLUM_TEST_STORAGE_HARNESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "storage/base/disk.h"
#include "storage/store.h"

/* ---- faults found ---- */

#define must(condition, ...)                                                                       \
    ((condition) ? (void)0 : must_failed(__FILE__, __LINE__, #condition, __VA_ARGS__))
void must_failed(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));

/* ---- randomness ---- */

struct rng {
    uint64_t state;
};
uint64_t rng_next(struct rng *rng);
uint32_t rng_below(struct rng *rng, uint32_t bound);
bool rng_chance(struct rng *rng, uint32_t percent);
/* VELLUM_SEED, or a fresh one; printed, so that a failure can be replayed. */
uint64_t rng_seed(const char *test);

/* ---- values ---- */

struct blob { /* bytes that several hold */
    _Atomic uint32_t refs;
    uint64_t len;
    char bytes[];
};
struct blob *blob_new(uint64_t len); /* zeros */
struct blob *blob_random(struct rng *rng, uint64_t len);
struct blob *blob_text(const char *text);
struct blob *blob_ref(struct blob *blob);
void blob_unref(struct blob *blob); /* NULL: nothing */

/* ---- a store with its workers ---- */

#define RIG_WORKERS 4u

struct rig {
    struct store_options options;
    struct store *store;
    struct store_worker *workers[RIG_WORKERS];
    uint32_t worker_count;
    _Atomic uint32_t warnings; /* lines the store has logged at that level */
    char last_warning[STORE_MESSAGE_MAX];
    char message[STORE_MESSAGE_MAX];
};

/* The smallest store there is: 256 pages of cache, 8 MB of journal, 4 partitions, 1 worker. */
void rig_defaults(struct rig *rig);
/* On `disk`, or on options.directory if that is NULL; attaches the workers. */
enum store_result rig_open(struct rig *rig, struct disk *disk);
enum store_result rig_close(struct rig *rig); /* no call may be under way */
void rig_close_well(struct rig *rig);         /* which has to succeed */
/* One round of every worker; waits a little when there is nothing to do. */
void rig_round(struct rig *rig);
/* Rounds until commit is durable, or the store has failed. */
void rig_sync(struct rig *rig, uint64_t commit);
void rig_run(struct rig *rig, uint32_t milliseconds);

/* A directory of this test's own, under TMPDIR or /tmp. */
void scratch_make(char path[256]);
void scratch_remove(const char *path);

/* ---- calls ---- */

#define CALL_STEPS 16u
#define CALL_KEYS 24u
#define CALL_NAME_MAX 150000u /* of names made from an id */
#define WALK_NAMES 1024u

enum step_kind {
    STEP_GET,
    STEP_READ, /* part of a value: `offset` and `length` are cut to what is there */
    STEP_PUT,
    STEP_PATCH, /* of what is there; otherwise nothing */
    STEP_DELETE,
    STEP_EXPIRE, /* likewise */
    STEP_RENAME, /* key to other, likewise */
    STEP_STREAM, /* opens one if the value is large */
    STEP_WALK,   /* all keys of database `key`, and their number; of exclusive calls */
    STEP_FLUSH_DB,
    STEP_FLUSH_ALL,
    STEP_SWAP_DB,
};

/* The names that a walk has shown. */
struct names_shown {
    struct store_db_stats stats;
    uint32_t count, len;
    struct {
        uint32_t at, len;
    } names[WALK_NAMES];
    char bytes[WALK_NAMES * 512];
};

struct call_key {
    uint32_t db, id; /* id: the caller's */
    char *name;
    uint32_t len;
};

struct step {
    enum step_kind kind;
    uint32_t key, other; /* of the call's keys, or databases */
    struct blob *blob;   /* PUT, PATCH */
    uint64_t offset, length;
    int64_t expire_ms;
    uint8_t type;

    /* what was found: GET, READ, STREAM */
    bool found, large;
    struct store_item item; /* its pointers are of no use any more */
    struct blob *value;
    struct store_reader *reader;
    struct names_shown *walk; /* WALK */
};

struct call {
    struct store_request request;
    struct store_key declared[CALL_KEYS];
    struct call_key keys[CALL_KEYS];
    uint32_t key_count;
    struct step steps[CALL_STEPS];
    uint32_t step_count;
    bool exclusive; /* STORE_SCOPE_ALL */
    bool finished;
    enum store_result result;
    void (*on_finish)(struct call *call);
    void *arg;
    struct call *next;
};

struct call *call_new(void);
void call_free(struct call *call);
uint32_t call_key(struct call *call, uint32_t db, uint32_t id, const char *name, uint32_t len);
struct step *call_step(struct call *call, enum step_kind kind, uint32_t key);
/* on_finish is called, now or in a later round. */
void call_start(struct store_worker *worker, struct call *call);
void call_wait(struct rig *rig, struct call *call); /* rounds until it is finished */
/* Like call_wait, for a worker that this thread serves alone. */
void call_wait_on(struct store_worker *worker, struct call *call);

/* ---- one-liners, on worker 0, keys by their text in database 0 ---- */

enum store_result do_set(struct rig *rig, const char *key, const char *value);
enum store_result do_put(struct rig *rig, const char *key, struct blob *value); /* takes it over */
void put_until(struct rig *rig, const char *key, const char *value, int64_t expire_ms);
enum store_result do_delete(struct rig *rig, const char *key);
void flush_db(struct rig *rig, uint32_t db);
/* The value, or NULL; *result tells why (STORE_ABSENT when it is not there). */
struct blob *do_get(struct rig *rig, const char *key, enum store_result *result);
/* Whether the key has exactly that value; NULL: is absent. */
bool has_value(struct rig *rig, const char *key, const char *value);

#endif
