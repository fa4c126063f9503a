#include "tests/storage/harness.h"

#include "storage/recovery/open.h"
#include "storage/txn/engine.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static uint64_t printed_seed;

void must_failed(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s:%d: not so: %s (seed %llu): ", file, line, condition,
            (unsigned long long)printed_seed);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

/* ---- randomness ---- */

uint64_t rng_next(struct rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

uint32_t rng_below(struct rng *rng, uint32_t bound)
{
    return (uint32_t)((rng_next(rng) >> 32) * bound >> 32);
}

bool rng_chance(struct rng *rng, uint32_t percent)
{
    return rng_below(rng, 100) < percent;
}

uint64_t rng_seed(const char *test)
{
    const char *given = getenv("VELLUM_SEED");
    uint64_t seed;
    if (given)
        seed = strtoull(given, NULL, 10);
    else if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        seed = (uint64_t)time(NULL);
    if (!given)
        seed %= 1000000000;
    fprintf(stderr, "# %s: VELLUM_SEED=%llu\n", test, (unsigned long long)seed);
    printed_seed = seed;
    signal(SIGSEGV, SIG_DFL); /* cmocka would go on: a core tells more */
    return seed;
}

/* ---- values ---- */

struct blob *blob_new(uint64_t len)
{
    struct blob *blob = calloc(1, sizeof *blob + len + 1);
    must(blob, "out of memory");
    blob->refs = 1;
    blob->len = len;
    return blob;
}

/* Each word differs, so that a page in the wrong place shows. */
struct blob *blob_random(struct rng *rng, uint64_t len)
{
    struct blob *blob = blob_new(len);
    for (uint64_t i = 0; i < len; i += 8) {
        uint64_t word = rng_next(rng);
        memcpy(blob->bytes + i, &word, len - i < 8 ? len - i : 8);
    }
    return blob;
}

struct blob *blob_text(const char *text)
{
    struct blob *blob = blob_new(strlen(text));
    memcpy(blob->bytes, text, blob->len);
    return blob;
}

struct blob *blob_ref(struct blob *blob)
{
    if (blob)
        blob->refs++;
    return blob;
}

void blob_unref(struct blob *blob)
{
    if (blob && --blob->refs == 0)
        free(blob);
}

/* ---- a store with its workers ---- */

static void log_line(void *arg, enum store_log_level level, const char *line)
{
    struct rig *rig = arg;
    if (getenv("VELLUM_TEST_LOG"))
        fprintf(stderr, "# store: %s\n", line);
    if (level != STORE_LOG_WARNING)
        return;
    if (atomic_fetch_add(&rig->warnings, 1) == 0)
        snprintf(rig->last_warning, sizeof rig->last_warning, "%s", line);
}

void rig_defaults(struct rig *rig)
{
    *rig = (struct rig){.options = {.partition_count = 4,
                                    .worker_count = 1,
                                    .memory_bytes = 1 << 20,
                                    .journal_bytes = JOURNAL_MIN_BYTES,
                                    .sync = STORE_SYNC_ALWAYS,
                                    .log = log_line}};
}

enum store_result rig_open(struct rig *rig, struct disk *disk)
{
    rig->options.log_arg = rig;
    rig->worker_count = 0;
    rig->warnings = 0;
    rig->store = NULL;
    memset(rig->message, 0, sizeof rig->message);
    enum store_result result = disk ? store_open_on(disk, &rig->options, &rig->store, rig->message)
                                    : store_open(&rig->options, &rig->store, rig->message);
    if (result != STORE_OK)
        return result;
    for (; rig->worker_count < rig->options.worker_count; rig->worker_count++) {
        result = store_attach(rig->store, rig->worker_count, &rig->workers[rig->worker_count],
                              rig->message);
        must(result == STORE_OK, "attach: %s", rig->message);
    }
    return STORE_OK;
}

enum store_result rig_close(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->worker_count; i++)
        store_detach(rig->workers[i]);
    rig->worker_count = 0;
    struct store *store = rig->store;
    rig->store = NULL;
    return store_close(store);
}

void rig_close_well(struct rig *rig)
{
    must(rig_close(rig) == STORE_OK, "close: %s", rig->last_warning);
}

static void submit_all(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->worker_count; i++)
        store_submit(rig->workers[i]);
}

void rig_round(struct rig *rig)
{
    struct pollfd fds[RIG_WORKERS];
    submit_all(rig);
    for (uint32_t i = 0; i < rig->worker_count; i++)
        fds[i] = (struct pollfd){.fd = store_worker_fd(rig->workers[i]), .events = POLLIN};
    poll(fds, rig->worker_count, 1);
    for (uint32_t i = 0; i < rig->worker_count; i++)
        store_poll(rig->workers[i]);
    submit_all(rig);
}

static int64_t now_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

void rig_sync(struct rig *rig, uint64_t commit)
{
    while (store_durable(rig->store) < commit && !store_has_failed(rig->store))
        rig_round(rig);
}

void rig_run(struct rig *rig, uint32_t milliseconds)
{
    int64_t until = now_ms(CLOCK_MONOTONIC) + milliseconds;
    while (now_ms(CLOCK_MONOTONIC) < until)
        rig_round(rig);
}

/* ---- scratch directories ---- */

void scratch_make(char path[256])
{
    const char *base = getenv("TMPDIR");
    snprintf(path, 256, "%s/vellum-test-XXXXXX", base ? base : "/tmp");
    must(mkdtemp(path), "cannot make a directory in %s", base ? base : "/tmp");
}

void scratch_remove(const char *path)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    must(system(command) == 0, "cannot remove %s", path);
}

/* ---- calls: the run function ---- */

static void forget_found(struct step *step)
{
    blob_unref(step->value);
    step->value = NULL;
    step->reader = NULL;
    step->found = step->large = false;
}

static enum store_result take_value(struct store_txn *txn, struct step *step)
{
    const struct store_item *item = &step->item;
    uint64_t offset = 0, length = item->length;
    const char *bytes;
    if (step->kind == STEP_READ) {
        offset = step->offset < item->length ? step->offset : item->length;
        length = step->length < item->length - offset ? step->length : item->length - offset;
        step->value = blob_new(length);
        return store_read(txn, item, offset, length, step->value->bytes);
    }
    enum store_result result = store_load(txn, item, &bytes);
    if (result != STORE_OK)
        return result;
    step->value = blob_new(length);
    memcpy(step->value->bytes, bytes, length);
    return STORE_OK;
}

static void note_name(void *arg, const char *key, uint32_t key_len, const struct store_item *item)
{
    struct names_shown *walk = arg;
    (void)item;
    must(walk->count < WALK_NAMES && walk->len + key_len <= sizeof walk->bytes,
         "a walk shows too much");
    memcpy(walk->bytes + walk->len, key, key_len);
    walk->names[walk->count].at = walk->len;
    walk->names[walk->count++].len = key_len;
    walk->len += key_len;
}

static enum store_result walk_all(struct store_txn *txn, struct step *step)
{
    uint64_t cursor = 0;
    if (!step->walk)
        step->walk = malloc(sizeof *step->walk);
    must(step->walk, "out of memory");
    step->walk->count = step->walk->len = 0;
    enum store_result result = store_txn_db_stats(txn, step->key, &step->walk->stats);
    do {
        uint32_t budget = 32;
        if (result == STORE_OK)
            result = store_scan(txn, step->key, &cursor, &budget, note_name, step->walk);
    } while (result == STORE_OK && cursor != 0);
    return result;
}

static enum store_result change(struct store_txn *txn, struct call *call, struct step *step)
{
    const struct store_key *key = &call->declared[step->key];
    switch (step->kind) {
    case STEP_PATCH:
        return store_patch(txn, key, &step->item, step->offset, step->blob->bytes, step->blob->len);
    case STEP_EXPIRE:
        return store_set_expiry(txn, key, &step->item, step->expire_ms);
    case STEP_RENAME:
        return store_rename(txn, key, &step->item, &call->declared[step->other]);
    case STEP_STREAM:
        return step->large && step->item.version
                   ? store_reader_open(txn, &step->item, 0, &step->reader)
                   : STORE_OK;
    default:
        return take_value(txn, step);
    }
}

static enum store_result run_step(struct store_txn *txn, struct call *call, struct step *step)
{
    const struct store_key *key = &call->declared[step->key];
    forget_found(step);
    switch (step->kind) {
    case STEP_PUT:
        return store_put(txn, key, step->type, step->blob->bytes, step->blob->len, step->expire_ms);
    case STEP_DELETE:
        return store_delete(txn, key);
    case STEP_WALK:
        return walk_all(txn, step);
    case STEP_FLUSH_DB:
        store_flush_db(txn, step->key);
        return STORE_OK;
    case STEP_FLUSH_ALL:
        store_flush_all(txn);
        return STORE_OK;
    case STEP_SWAP_DB:
        store_swap_db(txn, step->key, step->other);
        return STORE_OK;
    default:
        break;
    }
    enum store_result result = store_get(txn, key, &step->item);
    if (result != STORE_OK)
        return result == STORE_ABSENT ? STORE_OK : result;
    step->found = true;
    step->large = step->item.large;
    return change(txn, call, step);
}

static enum store_result run_call(struct store_txn *txn, struct store_request *request)
{
    struct call *call = (struct call *)request;
    for (uint32_t i = 0; i < call->step_count; i++) {
        enum store_result result = run_step(txn, call, &call->steps[i]);
        if (result != STORE_OK)
            return result;
    }
    return STORE_OK;
}

static void call_done(struct store_request *request, enum store_result result)
{
    struct call *call = (struct call *)request;
    must(!call->finished, "a request is done twice");
    call->finished = true;
    call->result = result;
    if (call->on_finish)
        call->on_finish(call);
}

/* ---- calls: making them ---- */

struct call *call_new(void)
{
    struct call *call = calloc(1, sizeof *call);
    must(call, "out of memory");
    return call;
}

void call_free(struct call *call)
{
    for (uint32_t i = 0; i < call->step_count; i++) {
        blob_unref(call->steps[i].blob);
        blob_unref(call->steps[i].value);
        free(call->steps[i].walk);
    }
    for (uint32_t i = 0; i < call->key_count; i++)
        free(call->keys[i].name);
    free(call);
}

uint32_t call_key(struct call *call, uint32_t db, uint32_t id, const char *name, uint32_t len)
{
    must(call->key_count < CALL_KEYS, "the test's own limits");
    struct call_key *key = &call->keys[call->key_count];
    *key = (struct call_key){.db = db, .id = id, .len = len, .name = malloc(len + 1)};
    must(key->name, "out of memory");
    memcpy(key->name, name, len);
    return call->key_count++;
}

struct step *call_step(struct call *call, enum step_kind kind, uint32_t key)
{
    must(call->step_count < CALL_STEPS, "the test's own limits");
    struct step *step = &call->steps[call->step_count++];
    *step = (struct step){.kind = kind, .key = key, .expire_ms = STORE_NO_EXPIRY};
    return step;
}

static bool only_reads(const struct call *call)
{
    for (uint32_t i = 0; i < call->step_count; i++) {
        enum step_kind kind = call->steps[i].kind;
        if (kind != STEP_GET && kind != STEP_READ && kind != STEP_STREAM)
            return false;
    }
    return true;
}

void call_start(struct store_worker *worker, struct call *call)
{
    enum store_mode mode = only_reads(call) ? STORE_SHARED : STORE_EXCLUSIVE;
    for (uint32_t i = 0; i < call->key_count; i++)
        store_key(worker->store, &call->declared[i], call->keys[i].db, call->keys[i].name,
                  call->keys[i].len, mode);
    call->request =
        (struct store_request){.run = run_call,
                               .done = call_done,
                               .keys = call->declared,
                               .key_count = call->exclusive ? 0 : call->key_count,
                               .scope = call->exclusive ? STORE_SCOPE_ALL : STORE_SCOPE_KEYS,
                               .now_ms = now_ms(CLOCK_REALTIME)};
    enum store_result result = store_execute(worker, &call->request);
    if (result != STORE_WAIT)
        call_done(&call->request, result);
}

void call_wait(struct rig *rig, struct call *call)
{
    while (!call->finished)
        rig_round(rig);
}

void call_wait_on(struct store_worker *worker, struct call *call)
{
    while (!call->finished) {
        struct pollfd fd = {.fd = store_worker_fd(worker), .events = POLLIN};
        store_submit(worker);
        poll(&fd, 1, 1);
        store_poll(worker);
    }
    store_submit(worker);
}

/* ---- one-liners ---- */

static enum store_result run_one(struct rig *rig, struct call *call)
{
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    enum store_result result = call->result;
    if (result == STORE_OK)
        rig_sync(rig, call->request.shown);
    if (result == STORE_OK && store_durable(rig->store) < call->request.shown)
        result = STORE_REFUSED;
    return result;
}

enum store_result do_put(struct rig *rig, const char *key, struct blob *value)
{
    struct call *call = call_new();
    call_step(call, STEP_PUT, call_key(call, 0, 0, key, (uint32_t)strlen(key)))->blob = value;
    enum store_result result = run_one(rig, call);
    call_free(call);
    return result;
}

enum store_result do_set(struct rig *rig, const char *key, const char *value)
{
    return do_put(rig, key, blob_text(value));
}

void put_until(struct rig *rig, const char *key, const char *value, int64_t expire_ms)
{
    struct call *call = call_new();
    struct step *step = call_step(call, STEP_PUT, call_key(call, 0, 0, key, (uint32_t)strlen(key)));
    step->blob = blob_text(value);
    step->expire_ms = expire_ms;
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    must(call->result == STORE_OK, "put: %d", call->result);
    call_free(call);
}

enum store_result do_delete(struct rig *rig, const char *key)
{
    struct call *call = call_new();
    call_step(call, STEP_DELETE, call_key(call, 0, 0, key, (uint32_t)strlen(key)));
    enum store_result result = run_one(rig, call);
    call_free(call);
    return result;
}

void flush_db(struct rig *rig, uint32_t db)
{
    struct call *call = call_new();
    call->exclusive = true;
    call_step(call, STEP_FLUSH_DB, db);
    must(run_one(rig, call) == STORE_OK, "flush: %d", call->result);
    call_free(call);
}

struct blob *do_get(struct rig *rig, const char *key, enum store_result *result)
{
    struct call *call = call_new();
    struct step *step = call_step(call, STEP_GET, call_key(call, 0, 0, key, (uint32_t)strlen(key)));
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    *result = call->result;
    if (call->result == STORE_OK && !step->found)
        *result = STORE_ABSENT;
    struct blob *value = *result == STORE_OK ? blob_ref(step->value) : NULL;
    call_free(call);
    return value;
}

bool has_value(struct rig *rig, const char *key, const char *value)
{
    enum store_result result;
    struct blob *found = do_get(rig, key, &result);
    bool same =
        value ? found && found->len == strlen(value) && memcmp(found->bytes, value, found->len) == 0
              : result == STORE_ABSENT;
    blob_unref(found);
    return same;
}
