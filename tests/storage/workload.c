#include "tests/storage/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LARGE_KEYS 12u

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

void workload_init(struct workload *load, struct rig *rig, uint64_t seed)
{
    *load = (struct workload){.rng = {seed},
                              .rig = rig,
                              .window = 8,
                              .large_percent = 10,
                              .alone_permille = 8,
                              .large_max = WORKLOAD_LARGE};
    load->now = calloc(1, sizeof *load->now);
    load->base = calloc(1, sizeof *load->base);
    must(load->now && load->base, "out of memory");
    load->scan.workload = load;
}

static bool tolerates(const struct workload *load)
{
    return load->tolerant || (load->medium && medium_is_cut(load->medium));
}

static void drop_log(struct workload *load)
{
    while (load->log) {
        struct call *call = load->log;
        load->log = call->next;
        call_free(call);
    }
    load->log_last = NULL;
    load->last_commit = 0;
}

void workload_free(struct workload *load)
{
    drop_log(load);
    oracle_clear(load->now);
    oracle_clear(load->base);
    free(load->now);
    free(load->base);
}

/* ---- finished calls ---- */

static void note_missing(struct workload *load)
{
    struct workload_scan *scan = &load->scan;
    int64_t now = wall_ms();
    for (uint32_t id = 0; scan->running && id < ORACLE_KEYS; id++)
        scan->missing[id] |= !oracle_lives(&load->now->entries[scan->db][id], now);
}

/* A call of several steps may undo what it did, and then has no commit of its own. */
static void keep(struct workload *load, struct call *call)
{
    bool committed = call->request.shown > load->last_commit;
    must(committed || call->step_count > 1, "commit %llu is finished after commit %llu",
         (unsigned long long)call->request.shown, (unsigned long long)load->last_commit);
    if (!committed) {
        call_free(call);
        return;
    }
    load->last_commit = call->request.shown;
    call->next = NULL;
    if (load->log)
        load->log_last->next = call;
    else
        load->log = call;
    load->log_last = call;
}

static void adopt_reader(struct workload *load, const struct call *call, const struct step *step)
{
    const struct call_key *key = &call->keys[step->key];
    for (uint32_t i = 0; i < WORKLOAD_STREAMS; i++)
        if (!load->readers[i].reader) {
            load->readers[i] = (struct workload_stream){
                step->reader, blob_ref(load->now->entries[key->db][key->id].blob), 0};
            return;
        }
    store_reader_close(step->reader);
}

/* Keys of these names are others then, at other places of a scan, also those that the same call has
 * put after a flush. */
static bool moves_keys(const struct step *step)
{
    return step->kind == STEP_SWAP_DB || step->kind == STEP_FLUSH_DB ||
           step->kind == STEP_FLUSH_ALL;
}

static void finished(struct call *call)
{
    struct workload *load = call->arg;
    load->under_way--;
    if (call->result != STORE_OK) {
        must(tolerates(load), "a call of %u steps from kind %d on fails with %d; %s",
             call->step_count, call->steps[0].kind, call->result, load->rig->last_warning);
        call_free(call);
        return;
    }
    note_missing(load); /* also what had expired before this call puts it anew */
    bool changed = oracle_apply(load->now, call, true);
    for (uint32_t i = 0; i < call->step_count; i++) {
        if (call->steps[i].kind == STEP_STREAM && call->steps[i].reader)
            adopt_reader(load, call, &call->steps[i]);
        if (moves_keys(&call->steps[i]))
            memset(load->scan.missing, true, sizeof load->scan.missing);
    }
    note_missing(load);
    if (changed)
        keep(load, call);
    else
        call_free(call);
}

/* ---- scans ---- */

static void scan_visit(void *arg, const char *key, uint32_t key_len, const struct store_item *item)
{
    struct workload_scan *scan = arg;
    uint32_t id = oracle_id(key, key_len);
    must(id < ORACLE_KEYS, "a scan shows a key that never was: %.*s",
         key_len < 80 ? (int)key_len : 80, key);
    const struct oracle_entry *entry = &scan->workload->now->entries[scan->db][id];
    must(oracle_lives(entry, scan->request.now_ms), "a scan shows key %u, which is not there", id);
    must(entry->blob->len == item->length && entry->type == item->type,
         "a scan shows key %u with another value: version %llu, %llu bytes instead of %llu", id,
         (unsigned long long)item->version, (unsigned long long)item->length,
         (unsigned long long)entry->blob->len);
    scan->seen[id] = true;
}

static enum store_result scan_run(struct store_txn *txn, struct store_request *request)
{
    struct workload_scan *scan = (struct workload_scan *)request;
    uint32_t budget = 10;
    return store_scan(txn, scan->db, &scan->cursor, &budget, scan_visit, scan);
}

static void scan_done(struct store_request *request, enum store_result result)
{
    struct workload_scan *scan = (struct workload_scan *)request;
    scan->under_way = false;
    if (result != STORE_OK) {
        must(tolerates(scan->workload), "a scan fails with %d", result);
        scan->running = false;
        return;
    }
    if (scan->cursor)
        return;
    scan->running = false;
    note_missing(scan->workload);
    int64_t now = wall_ms();
    for (uint32_t id = 0; id < ORACLE_KEYS; id++) {
        const struct oracle_entry *entry = &scan->workload->now->entries[scan->db][id];
        must(scan->seen[id] || scan->missing[id] || !oracle_lives(entry, now),
             "a scan of db %u omits key %u, which was there all the time: it expires at %lld, and "
             "the scan's last step was at %lld, %lld ms ago",
             scan->db, id, (long long)entry->expire_ms, (long long)scan->request.now_ms,
             (long long)(now - scan->request.now_ms));
    }
}

static void scan_step(struct workload *load)
{
    struct workload_scan *scan = &load->scan;
    if (scan->under_way)
        return;
    if (!scan->running) {
        *scan = (struct workload_scan){
            .workload = load, .db = rng_below(&load->rng, ORACLE_DBS), .running = true};
        note_missing(load);
    }
    scan->request = (struct store_request){
        .run = scan_run, .done = scan_done, .scope = STORE_SCOPE_NONE, .now_ms = wall_ms()};
    scan->under_way = true;
    enum store_result result = store_execute(
        load->rig->workers[rng_below(&load->rng, load->rig->worker_count)], &scan->request);
    if (result != STORE_WAIT)
        scan_done(&scan->request, result);
}

/* ---- streams ---- */

static void close_stream(struct workload_stream *reader)
{
    store_reader_close(reader->reader);
    blob_unref(reader->expected);
    *reader = (struct workload_stream){0};
}

/* One piece more; false when it has to wait. */
static bool reader_step(struct workload *load, struct workload_stream *reader)
{
    const struct iovec *vectors;
    int count;
    enum store_result result = store_reader_next(reader->reader, &vectors, &count);
    if (result == STORE_WAIT)
        return false;
    if (result == STORE_ABSENT)
        must(reader->offset == reader->expected->len, "a stream ends at %llu of %llu",
             (unsigned long long)reader->offset, (unsigned long long)reader->expected->len);
    must(result == STORE_OK || result == STORE_ABSENT || tolerates(load), "a stream fails with %d",
         result);
    if (result != STORE_OK) {
        close_stream(reader);
        return true;
    }
    uint64_t begin = reader->offset;
    for (int i = 0; i < count; i++) {
        must(reader->offset + vectors[i].iov_len <= reader->expected->len &&
                 memcmp(reader->expected->bytes + reader->offset, vectors[i].iov_base,
                        vectors[i].iov_len) == 0,
             "a stream of %llu bytes shows something else at %llu",
             (unsigned long long)reader->expected->len, (unsigned long long)reader->offset);
        reader->offset += vectors[i].iov_len;
    }
    if (rng_chance(&load->rng, 30)) {
        uint64_t taken = rng_next(&load->rng) % (reader->offset - begin);
        store_reader_put_back(reader->reader, taken);
        reader->offset = begin + taken;
    }
    return true;
}

static void readers_step(struct workload *load)
{
    struct workload_stream *reader = &load->readers[rng_below(&load->rng, WORKLOAD_STREAMS)];
    if (reader->reader && rng_chance(&load->rng, 5))
        close_stream(reader);
    else if (reader->reader)
        reader_step(load, reader);
}

/* ---- new calls ---- */

static uint32_t random_db(struct workload *load)
{
    return rng_chance(&load->rng, 80) ? 0 : rng_below(&load->rng, ORACLE_DBS);
}

/* A few keys are more frequent, so that calls meet. */
static uint32_t random_id(struct workload *load)
{
    return rng_below(&load->rng, rng_chance(&load->rng, 30) ? 20 : ORACLE_KEYS);
}

static int64_t random_expiry(struct workload *load)
{
    uint32_t kind = rng_below(&load->rng, 10);
    if (kind < 6)
        return STORE_NO_EXPIRY;
    if (kind < 9)
        return wall_ms() + 3600000 + rng_below(&load->rng, 100000);
    return wall_ms() + rng_below(&load->rng, 300) - 50;
}

static uint64_t random_length(struct workload *load)
{
    struct rng *rng = &load->rng;
    switch (rng_below(rng, 4)) {
    case 0:
        return rng_below(rng, 40);
    case 1:
        return rng_below(rng, 400);
    case 2:
        return FORMAT_ITEM_VALUE - 396 + rng_below(rng, 500); /* about where small ends */
    default:
        return rng_below(rng, 4096);
    }
}

/* At or next to where an extent, what a root names itself, or a node ends; below `reach`, if that
 * is more than an extent. */
static uint64_t random_edge(struct workload *load, uint64_t reach)
{
    static const uint64_t units[] = {PAGE_SIZE, FORMAT_EXTENT_BYTES,
                                     FORMAT_ROOT_EXTENTS * FORMAT_EXTENT_BYTES, WORKLOAD_NODE};
    uint32_t kind = rng_below(&load->rng, sizeof units / sizeof *units);
    while (units[kind] > reach && kind > 0)
        kind--;
    uint64_t edge = units[kind] * (1 + rng_next(&load->rng) % (reach / units[kind] + 1));
    return edge - 1 + rng_below(&load->rng, 3);
}

/* Of a large value, or within it. */
static uint64_t random_reach(struct workload *load, uint64_t reach)
{
    return rng_chance(&load->rng, 30) ? random_edge(load, reach) : rng_next(&load->rng) % reach;
}

static void add_put(struct workload *load, struct call *call)
{
    uint32_t db = random_db(load), id = random_id(load);
    uint64_t len = random_length(load);
    if (rng_chance(&load->rng, load->large_percent)) {
        id = rng_below(&load->rng, LARGE_KEYS);
        db = 0;
        len = 4096 + random_reach(load, load->large_max);
    }
    struct step *step = call_step(call, STEP_PUT, oracle_key(call, db, id));
    step->blob = blob_random(&load->rng, len);
    step->expire_ms = random_expiry(load);
    step->type = (uint8_t)rng_below(&load->rng, 5);
}

static void add_patch(struct workload *load, struct call *call)
{
    bool large = rng_chance(&load->rng, 40);
    uint32_t id = large ? rng_below(&load->rng, LARGE_KEYS) : random_id(load);
    struct step *step = call_step(call, STEP_PATCH, oracle_key(call, 0, id));
    uint32_t most = large ? 3 * FORMAT_EXTENT_BYTES / 2 : 600;
    step->offset = large ? random_reach(load, load->large_max + most) : rng_below(&load->rng, 5000);
    uint64_t len = 1 + rng_below(&load->rng, most);
    if (large && rng_chance(&load->rng, 30)) /* to an edge, or a little */
        len = rng_chance(&load->rng, 50)
                  ? 1
                  : (FORMAT_EXTENT_BYTES - step->offset % FORMAT_EXTENT_BYTES);
    step->blob = blob_random(&load->rng, len);
}

static void add_get(struct workload *load, struct call *call)
{
    uint32_t id = rng_chance(&load->rng, 10) ? rng_below(&load->rng, LARGE_KEYS) : random_id(load);
    uint32_t key = oracle_key(call, random_db(load), id);
    if (rng_chance(&load->rng, 80)) {
        call_step(call, STEP_GET, key);
        return;
    }
    struct step *step = call_step(call, STEP_READ, key);
    step->offset = rng_chance(&load->rng, 50) ? rng_below(&load->rng, 4000)
                                              : random_reach(load, load->large_max);
    step->length = rng_next(&load->rng) % 100000;
}

static void add_change(struct workload *load, struct call *call)
{
    uint32_t kind = rng_below(&load->rng, 100);
    if (kind < 50) {
        add_put(load, call);
    } else if (kind < 62) {
        add_patch(load, call);
    } else if (kind < 77) {
        uint32_t db = random_db(load);
        call_step(call, STEP_DELETE, oracle_key(call, db, random_id(load)));
    } else if (kind < 88) {
        uint32_t key = oracle_key(call, random_db(load), random_id(load));
        call_step(call, STEP_EXPIRE, key)->expire_ms = random_expiry(load);
    } else {
        uint32_t from = oracle_key(call, random_db(load), random_id(load));
        uint32_t to = oracle_key(call, random_db(load), random_id(load));
        call_step(call, STEP_RENAME, from)->other = to;
    }
}

static void add_to_databases(struct workload *load, struct call *call)
{
    uint32_t kind = rng_below(&load->rng, 10), db = rng_below(&load->rng, ORACLE_DBS);
    if (kind < 4)
        call_step(call, STEP_FLUSH_DB, db);
    else if (kind < 5)
        call_step(call, STEP_FLUSH_ALL, 0);
    else
        call_step(call, STEP_SWAP_DB, db)->other = (db + 1) % ORACLE_DBS;
}

/* Up to as many steps as there may be, of any kind in any order. */
static void add_alone(struct workload *load, struct call *call)
{
    call->exclusive = true;
    if (rng_chance(&load->rng, 40)) {
        add_to_databases(load, call);
        return;
    }
    uint32_t steps = 2 + rng_below(&load->rng, CALL_KEYS / 2 - 2);
    for (uint32_t i = 0; i < steps; i++) {
        uint32_t kind = rng_below(&load->rng, 100);
        if (kind < 20)
            add_to_databases(load, call);
        else if (kind < 28)
            call_step(call, STEP_WALK, rng_below(&load->rng, ORACLE_DBS));
        else if (kind < 50)
            add_get(load, call);
        else
            add_change(load, call);
    }
}

static struct call *random_call(struct workload *load)
{
    struct call *call = call_new();
    uint32_t kind = rng_below(&load->rng, 1000);
    if (rng_below(&load->rng, 1000) < load->alone_permille) {
        add_alone(load, call);
    } else if (kind < 300) {
        for (uint32_t i = 0; i < 1 + kind % 4; i++)
            add_get(load, call);
    } else if (kind < 330) {
        uint32_t id = rng_below(&load->rng, LARGE_KEYS);
        call_step(call, STEP_STREAM, oracle_key(call, 0, id));
    } else if (kind < 450) {
        for (uint32_t i = 0; i < 2 + kind % 4; i++)
            rng_chance(&load->rng, 30) ? add_get(load, call) : add_change(load, call);
    } else {
        add_change(load, call);
    }
    return call;
}

void workload_step(struct workload *load)
{
    scan_step(load);
    readers_step(load);
    while (load->under_way >= load->window)
        rig_round(load->rig);
    if (load->under_way == 0 || rng_chance(&load->rng, 30))
        rig_round(load->rig);
    workload_start(load, random_call(load));
}

void workload_start(struct workload *load, struct call *call)
{
    call->on_finish = finished;
    call->arg = load;
    load->under_way++;
    load->calls++;
    uint32_t worker = rng_below(&load->rng, load->rig->worker_count);
    call_start(load->rig->workers[worker], call);
}

/* A closed stream's last request, the engine's own deletions. */
static bool anything_parked(const struct rig *rig)
{
    for (uint32_t i = 0; i < rig->worker_count; i++)
        if (store_parked(rig->workers[i]) > 0)
            return true;
    return false;
}

void workload_drain(struct workload *load)
{
    while (load->under_way || load->scan.under_way)
        rig_round(load->rig);
    load->scan.running = false;
    for (uint32_t i = 0; i < WORKLOAD_STREAMS; i++) {
        struct workload_stream *reader = &load->readers[i];
        while (reader->reader && !tolerates(load))
            if (!reader_step(load, reader))
                rig_round(load->rig);
        if (reader->reader)
            close_stream(reader);
    }
    while (anything_parked(load->rig))
        rig_round(load->rig);
}

void workload_settle(struct workload *load)
{
    oracle_copy(load->base, load->now);
    drop_log(load);
}

void workload_rewind(struct workload *load, uint64_t commit)
{
    for (struct call *call = load->log; call && call->request.shown <= commit; call = call->next)
        oracle_apply(load->base, call, false);
    oracle_copy(load->now, load->base);
    drop_log(load);
}
