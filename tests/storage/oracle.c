#include "tests/storage/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/storage/ordered_walk.h"

/* Up to 59 letters behind the number, or what makes a long key of it. */
static uint32_t letters_of(uint32_t id)
{
    if (id == 211)
        return 140000; /* two extents */
    return id % 40 == 11 ? 2043 + id % 7 * 2500 : id % 60;
}

uint32_t oracle_name(uint32_t id, char name[CALL_NAME_MAX])
{
    int len = snprintf(name, CALL_NAME_MAX, "key:%u", id);
    uint32_t letters = letters_of(id);
    for (uint32_t i = 0; i < letters; i++)
        name[len++] = (char)('a' + (id + i) % 26);
    return (uint32_t)len;
}

uint32_t oracle_id(const char *name, uint32_t len)
{
    char own[CALL_NAME_MAX];
    uint32_t id = 0;
    for (uint32_t i = 4; i < len && name[i] >= '0' && name[i] <= '9' && id < ORACLE_KEYS; i++)
        id = id * 10 + (uint32_t)(name[i] - '0');
    if (id >= ORACLE_KEYS || oracle_name(id, own) != len || memcmp(own, name, len) != 0)
        return ORACLE_KEYS;
    return id;
}

uint32_t oracle_key(struct call *call, uint32_t db, uint32_t id)
{
    char name[CALL_NAME_MAX];
    uint32_t len = oracle_name(id, name);
    for (uint32_t i = 0; i < call->key_count; i++)
        if (call->keys[i].db == db && call->keys[i].id == id)
            return i;
    return call_key(call, db, id, name, len);
}

bool oracle_lives(const struct oracle_entry *entry, int64_t now_ms)
{
    return entry->blob && (entry->expire_ms == STORE_NO_EXPIRY || entry->expire_ms >= now_ms);
}

static void set_entry(struct oracle_entry *entry, struct blob *blob, uint8_t type,
                      int64_t expire_ms)
{
    blob_unref(entry->blob);
    *entry = (struct oracle_entry){blob, expire_ms, type};
}

static void clear_entry(struct oracle_entry *entry)
{
    set_entry(entry, NULL, 0, STORE_NO_EXPIRY);
}

static struct oracle_entry *entry_of(struct oracle *oracle, const struct call *call, uint32_t key)
{
    return &oracle->entries[call->keys[key].db][call->keys[key].id];
}

/* Keys with an expiry may have been deleted meanwhile, others not. */
static void compare_stats(const struct oracle *oracle, uint32_t db, struct store_db_stats stats)
{
    uint64_t lasting = 0, expiring = 0;
    for (uint32_t id = 0; id < ORACLE_KEYS; id++) {
        const struct oracle_entry *entry = &oracle->entries[db][id];
        lasting += entry->blob && entry->expire_ms == STORE_NO_EXPIRY;
        expiring += entry->blob && entry->expire_ms != STORE_NO_EXPIRY;
    }
    must(stats.keys - stats.expires == lasting && stats.expires <= expiring,
         "db %u counts %llu keys, %llu with an expiry, instead of %llu and %llu", db,
         (unsigned long long)stats.keys, (unsigned long long)stats.expires,
         (unsigned long long)(lasting + expiring), (unsigned long long)expiring);
}

/* ---- what was found ---- */

static void compare_bytes(const struct call *call, const struct step *step,
                          const struct blob *expected, uint64_t offset, uint64_t length)
{
    const struct blob *got = step->value;
    const struct call_key *key = &call->keys[step->key];
    must(got->len == length, "db %u key %u: %llu bytes read instead of %llu", key->db, key->id,
         (unsigned long long)got->len, (unsigned long long)length);
    for (uint64_t i = 0; i < length; i++)
        must(got->bytes[i] == expected->bytes[offset + i],
             "db %u key %u of %llu bytes, version %llu: byte %llu is not as written", key->db,
             key->id, (unsigned long long)expected->len, (unsigned long long)step->item.version,
             (unsigned long long)(offset + i));
}

static void compare_found(const struct call *call, const struct step *step,
                          const struct oracle_entry *entry)
{
    const struct call_key *key = &call->keys[step->key];
    bool lives = oracle_lives(entry, call->request.now_ms);
    must(step->found == lives, "db %u key %u (%.*s) is %s, version %llu", key->db, key->id,
         key->len < 80 ? (int)key->len : 80, key->name,
         step->found ? "there, but should not be" : "missing",
         (unsigned long long)step->item.version);
    if (!lives)
        return;
    must(step->item.type == entry->type && step->item.expire_ms == entry->expire_ms,
         "db %u key %u: type or expiry is another", key->db, key->id);
    must(step->item.length == entry->blob->len, "db %u key %u: %llu bytes instead of %llu", key->db,
         key->id, (unsigned long long)step->item.length, (unsigned long long)entry->blob->len);
    uint64_t len = entry->blob->len;
    uint64_t offset = step->kind != STEP_READ ? 0 : step->offset < len ? step->offset : len;
    uint64_t length =
        step->kind == STEP_READ && step->length < len - offset ? step->length : len - offset;
    if (step->value)
        compare_bytes(call, step, entry->blob, offset, length);
}

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

/* Expired keys are counted or not, but not shown. What expires while the walk waits for its turn
 * may be gone. */
static void compare_walk(const struct oracle *oracle, const struct call *call,
                         const struct step *step)
{
    const struct names_shown *walk = step->walk;
    bool seen[ORACLE_KEYS] = {false};
    for (uint32_t i = 0; i < walk->count; i++) {
        uint32_t id = oracle_id(walk->bytes + walk->names[i].at, walk->names[i].len);
        must(id < ORACLE_KEYS && !seen[id], "a walk over db %u shows key %u twice", step->key, id);
        seen[id] = true;
    }
    compare_stats(oracle, step->key, walk->stats);
    for (uint32_t id = 0; id < ORACLE_KEYS; id++) {
        const struct oracle_entry *entry = &oracle->entries[step->key][id];
        must(!seen[id] || oracle_lives(entry, call->request.now_ms),
             "a walk over db %u shows key %u", step->key, id);
        must(seen[id] || !oracle_lives(entry, wall_ms()), "a walk over db %u omits key %u",
             step->key, id);
    }
}

/* ---- applying ---- */

static void patch(struct oracle_entry *entry, const struct step *step)
{
    uint64_t end = step->offset + step->blob->len, len = entry->blob->len;
    struct blob *patched = blob_new(end > len ? end : len);
    memcpy(patched->bytes, entry->blob->bytes, len);
    memcpy(patched->bytes + step->offset, step->blob->bytes, step->blob->len);
    set_entry(entry, patched, entry->type, entry->expire_ms);
}

static void swap(struct oracle *oracle, uint32_t a, uint32_t b)
{
    struct oracle_entry was[ORACLE_KEYS];
    memcpy(was, oracle->entries[a], sizeof was);
    memcpy(oracle->entries[a], oracle->entries[b], sizeof was);
    memcpy(oracle->entries[b], was, sizeof was);
}

static void flush(struct oracle *oracle, uint32_t db)
{
    for (uint32_t id = 0; id < ORACLE_KEYS; id++)
        clear_entry(&oracle->entries[db][id]);
}

static bool apply_to_databases(struct oracle *oracle, const struct step *step)
{
    if (step->kind == STEP_SWAP_DB)
        swap(oracle, step->key, step->other);
    else if (step->kind == STEP_FLUSH_DB)
        flush(oracle, step->key);
    else
        oracle_clear(oracle);
    return true;
}

static bool rename_entry(struct oracle *oracle, const struct call *call, const struct step *step)
{
    struct oracle_entry *from = entry_of(oracle, call, step->key);
    struct oracle_entry *to = entry_of(oracle, call, step->other);
    if (from == to)
        return false;
    set_entry(to, blob_ref(from->blob), from->type, from->expire_ms);
    clear_entry(from);
    return true;
}

static bool apply_to_living(struct oracle *oracle, const struct call *call, const struct step *step)
{
    struct oracle_entry *entry = entry_of(oracle, call, step->key);
    if (step->kind == STEP_PATCH)
        patch(entry, step);
    else if (step->kind == STEP_EXPIRE)
        entry->expire_ms = step->expire_ms;
    else if (step->kind == STEP_DELETE)
        clear_entry(entry);
    else
        return rename_entry(oracle, call, step);
    return true;
}

static bool apply_step(struct oracle *oracle, const struct call *call, const struct step *step,
                       bool compare)
{
    if (step->kind == STEP_WALK && compare)
        compare_walk(oracle, call, step);
    if (step->kind == STEP_WALK)
        return false;
    if (step->kind >= STEP_FLUSH_DB)
        return apply_to_databases(oracle, step);
    struct oracle_entry *entry = entry_of(oracle, call, step->key);
    bool reads = step->kind == STEP_GET || step->kind == STEP_READ || step->kind == STEP_STREAM;
    if (reads && compare)
        compare_found(call, step, entry);
    if (reads)
        return false;
    if (step->kind == STEP_PUT) {
        set_entry(entry, blob_ref(step->blob), step->type, step->expire_ms);
        return true;
    }
    return oracle_lives(entry, call->request.now_ms) && apply_to_living(oracle, call, step);
}

bool oracle_apply(struct oracle *oracle, const struct call *call, bool compare)
{
    bool changed = false;
    for (uint32_t i = 0; i < call->step_count; i++)
        changed |= apply_step(oracle, call, &call->steps[i], compare);
    return changed;
}

void oracle_clear(struct oracle *oracle)
{
    for (uint32_t db = 0; db < ORACLE_DBS; db++)
        flush(oracle, db);
}

void oracle_copy(struct oracle *to, const struct oracle *from)
{
    oracle_clear(to);
    *to = *from;
    for (uint32_t db = 0; db < ORACLE_DBS; db++)
        for (uint32_t id = 0; id < ORACLE_KEYS; id++)
            blob_ref(to->entries[db][id].blob);
}

/* ---- the whole store ---- */

static void compare_keys(struct oracle *oracle, struct rig *rig, uint32_t db)
{
    for (uint32_t id = 0; id < ORACLE_KEYS; id += 8) {
        struct call *call = call_new();
        for (uint32_t i = id; i < id + 8 && i < ORACLE_KEYS; i++)
            call_step(call, STEP_GET, oracle_key(call, db, i));
        call_start(rig->workers[id / 8 % rig->worker_count], call);
        call_wait(rig, call);
        must(call->result == STORE_OK, "reading keys from %u on: result %d; %s", id, call->result,
             rig->last_warning);
        oracle_apply(oracle, call, true);
        call_free(call);
    }
}

struct whole_scan {
    struct store_request request;
    struct oracle *oracle;
    uint32_t db;
    uint64_t cursor;
    bool finished;
    bool seen[ORACLE_KEYS];
};

static void seen_by_scan(void *arg, const char *key, uint32_t key_len,
                         const struct store_item *item)
{
    struct whole_scan *scan = arg;
    uint32_t id = oracle_id(key, key_len);
    must(id < ORACLE_KEYS, "a scan of db %u shows a key that never was: %.*s", scan->db,
         key_len < 80 ? (int)key_len : 80, key);
    const struct oracle_entry *entry = &scan->oracle->entries[scan->db][id];
    must(oracle_lives(entry, scan->request.now_ms) && entry->blob->len == item->length,
         "a scan of db %u shows key %u, which is not there", scan->db, id);
    scan->seen[id] = true;
}

static enum store_result run_scan(struct store_txn *txn, struct store_request *request)
{
    struct whole_scan *scan = (struct whole_scan *)request;
    uint32_t budget = 20;
    return store_scan(txn, scan->db, &scan->cursor, &budget, seen_by_scan, scan);
}

static void scanned(struct store_request *request, enum store_result result)
{
    must(result == STORE_OK, "a scan ends with %d", result);
    ((struct whole_scan *)request)->finished = true;
}

static void compare_scan(struct oracle *oracle, struct rig *rig, uint32_t db)
{
    int64_t now_ms = wall_ms();
    struct whole_scan scan = {.oracle = oracle, .db = db};
    do {
        scan.request = (struct store_request){
            .run = run_scan, .done = scanned, .scope = STORE_SCOPE_NONE, .now_ms = now_ms};
        scan.finished = false;
        enum store_result result = store_execute(rig->workers[0], &scan.request);
        if (result != STORE_WAIT)
            scanned(&scan.request, result);
        while (!scan.finished)
            rig_round(rig);
    } while (scan.cursor);
    now_ms = wall_ms();
    for (uint32_t id = 0; id < ORACLE_KEYS; id++)
        must(scan.seen[id] || !oracle_lives(&oracle->entries[db][id], now_ms),
             "a whole scan of db %u omits key %u", db, id);
}

void oracle_compare(struct oracle *oracle, struct rig *rig)
{
    for (uint32_t db = 0; db < ORACLE_DBS; db++) {
        compare_keys(oracle, rig, db);
        compare_scan(oracle, rig, db);
        compare_stats(oracle, db, store_db_stats(rig->store, db));
        if (store_is_ordered(rig->store))
            ordered_compare(rig, db);
    }
}
