/*
 * Logical databases. Each has an id that is part of its items and of their hashes; a flush gives
 * the database a new id, a swap exchanges two. So either is one operation in the journal, and
 * touches no item: items whose id is no longer in the map are dead.
 *
 * A transaction may mix flushes and swaps with changes of keys, in any order. While it runs, it has
 * an arrangement of its own: which place, the contents of which database, each logical database
 * shows. A flush shows a new, empty place, a swap exchanges two, and a write belongs to a place and
 * a key, not to a number that may soon show another place. So a place's writes move with it in
 * swaps, and are void when it is no longer shown.
 *
 *   SET a; FLUSHDB; SET b; SWAPDB 0 1:   places 0 1 | 17 1 | 17 1 | 1 17     writes a@0 b@17
 *
 * Invariants
 * 1. Each of the store's places that is no longer shown was flushed, and exactly as many new ones
 *    are shown in their stead.
 * 2. A void write to one of the store's places is committed nevertheless, as a deletion, if other
 *    writes remain: a large value may live on under another name in another place, and the dead
 *    item must not free its runs.
 */
#include "storage/txn/databases.h"

#include <assert.h>
#include <string.h>

bool databases_is_dead(const struct store *store, uint32_t id)
{
    return id != FORMAT_HIDDEN && databases_logical(store, id) < 0;
}

bool databases_is_past(const struct store *store, uint32_t id)
{
    return id < store->databases.next_id && databases_is_dead(store, id);
}

int databases_logical(const struct store *store, uint32_t id)
{
    for (int db = 0; db < STORE_DB_COUNT; db++)
        if (store->databases.ids[db] == id)
            return db;
    return -1;
}

/* ---- counts ---- */

static uint64_t expiry_units(int64_t expire_ms)
{
    uint64_t units = expire_ms > 0 ? (uint64_t)expire_ms / EXPIRY_UNIT_MS : 0;
    return units < DATABASES_EXPIRY_UNITS_MOST ? units : DATABASES_EXPIRY_UNITS_MOST;
}

void databases_count_key(struct partition *partition, uint32_t db, int64_t expire_ms)
{
    struct database_count *count = &partition->databases[db];
    counter_add(&count->keys, 1);
    if (expire_ms == STORE_NO_EXPIRY)
        return;
    counter_add(&count->expires, 1);
    counter_add(&count->expiries, expiry_units(expire_ms));
}

void databases_uncount_key(struct partition *partition, uint32_t db, int64_t expire_ms)
{
    struct database_count *count = &partition->databases[db];
    assert(counter_read(&count->keys) > 0);
    counter_add(&count->keys, -1ull);
    if (expire_ms == STORE_NO_EXPIRY)
        return;
    assert(counter_read(&count->expires) > 0);
    counter_add(&count->expires, -1ull);
    counter_add(&count->expiries, -expiry_units(expire_ms));
}

struct store_db_stats store_db_stats(const struct store *store, uint32_t db)
{
    struct store_db_stats sum = {0};
    uint64_t expiries = 0;
    for (uint32_t i = 0; i < store->partition_count; i++) {
        const struct database_count *count = &store->partitions[i].databases[db];
        sum.keys += counter_read(&count->keys);
        sum.expires += counter_read(&count->expires);
        expiries += counter_read(&count->expiries);
    }
    if (sum.expires > 0)
        sum.mean_expiry_ms = (int64_t)(expiries / sum.expires * EXPIRY_UNIT_MS);
    return sum;
}

/* ---- while the transaction runs ---- */

static struct arrangement *arrange(struct store_txn *txn)
{
    struct arrangement *arrangement = &txn->arrangement;
    assert(txn->request->scope == STORE_SCOPE_ALL);
    if (!arrangement->changed) {
        arrangement->changed = true;
        arrangement->flushes = 0;
        for (uint32_t db = 0; db < STORE_DB_COUNT; db++)
            arrangement->places[db] = db;
    }
    return arrangement;
}

void store_flush_db(struct store_txn *txn, uint32_t db)
{
    struct arrangement *arrangement = arrange(txn);
    arrangement->places[db] = PLACE_FRESH + arrangement->flushes++;
}

void store_flush_all(struct store_txn *txn)
{
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++)
        store_flush_db(txn, db);
}

void store_swap_db(struct store_txn *txn, uint32_t a, uint32_t b)
{
    uint32_t *places = arrange(txn)->places, place = places[a];
    places[a] = places[b];
    places[b] = place;
}

/* ---- settling ---- */

/* The logical database that shows the place at the end, or -1. */
static int shown_as(const struct arrangement *arrangement, uint32_t place)
{
    for (int db = 0; db < STORE_DB_COUNT; db++)
        if (arrangement->places[db] == place)
            return db;
    return -1;
}

/* The origin of a flushed database is its former place if that is no longer shown, or else another
 * such place. */
static void find_origins(struct arrangement *arrangement)
{
    uint32_t gone = 0;
    for (uint32_t place = 0; place < STORE_DB_COUNT; place++)
        if (shown_as(arrangement, place) < 0)
            gone |= 1u << place;
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++)
        if (arrangement->places[db] < STORE_DB_COUNT)
            arrangement->origins[db] = (uint8_t)arrangement->places[db];
        else
            arrangement->origins[db] = gone >> db & 1 ? (uint8_t)db : UINT8_MAX;
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++)
        if (arrangement->places[db] >= STORE_DB_COUNT && arrangement->origins[db] == db)
            gone &= ~(1u << db);
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++)
        if (arrangement->origins[db] == UINT8_MAX) {
            assert(gone); /* as many places are new as are gone */
            arrangement->origins[db] = (uint8_t)__builtin_ctz(gone);
            gone &= gone - 1;
        }
}

static bool nothing_changes(const struct arrangement *arrangement)
{
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++)
        if (arrangement->places[db] != db)
            return false;
    return true;
}

/* Sorts the writes: first the doomed ones, then those that stay; the others are dropped. */
static void settle_writes(struct store_txn *txn)
{
    struct arrangement *arrangement = &txn->arrangement;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < txn->write_count; i++) {
        struct write write = txn->writes[i];
        int db = shown_as(arrangement, write.place);
        if (write.place == STORE_HIDDEN_DB)
            db = STORE_HIDDEN_DB;
        if (db < 0 && write.place >= PLACE_FRESH)
            continue;
        if (db < 0) {
            struct store_key key = write.key;
            key.db = (uint8_t)write.place;
            write = (struct write){.key = key, .place = write.place, .kind = WRITE_DELETE};
            txn->writes[kept++] = txn->writes[arrangement->doomed];
            txn->writes[arrangement->doomed++] = write;
        } else {
            write.key.db = (uint8_t)db;
            txn->writes[kept++] = write;
        }
    }
    assert(arrangement->doomed <= kept && kept <= txn->write_count);
    txn->write_count = kept > arrangement->doomed ? kept : 0;
    if (txn->write_count == 0)
        arrangement->doomed = 0;
}

/* No id is used twice: items of a flushed database may be in free slots on the disk. */
static bool has_ids_left(const struct store *store)
{
    if (store->databases.next_id + (uint64_t)STORE_DB_COUNT < FORMAT_HIDDEN)
        return true;
    env_log(&store->env, STORE_LOG_WARNING,
            "This data directory has seen 4 billion flushes: FLUSHDB and FLUSHALL are refused. "
            "Remedy: copy the data to a new directory");
    return false;
}

enum store_result databases_settle(struct store_txn *txn)
{
    const struct store *store = txn->store;
    struct arrangement *arrangement = &txn->arrangement;
    if (!arrangement->changed)
        return STORE_OK;
    arrangement->doomed = 0;
    settle_writes(txn);
    txn->write_table_size = 0;
    if (nothing_changes(arrangement)) {
        arrangement->changed = false;
        return STORE_OK;
    }
    if (arrangement->flushes > 0 && !has_ids_left(store))
        return STORE_FULL;
    find_origins(arrangement);
    arrangement->databases = store->databases;
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++) {
        uint32_t origin = arrangement->origins[db];
        bool is_new = arrangement->places[db] != origin && store_db_stats(store, origin).keys > 0;
        arrangement->databases.ids[db] =
            is_new ? arrangement->databases.next_id++ : store->databases.ids[origin];
    }
    return STORE_OK;
}

/* ---- the commit ---- */

static void read_count(const struct database_count *count, uint64_t values[3])
{
    values[0] = counter_read(&count->keys);
    values[1] = counter_read(&count->expires);
    values[2] = counter_read(&count->expiries);
}

static void write_count(struct database_count *count, const uint64_t values[3])
{
    counter_set(&count->keys, values[0]);
    counter_set(&count->expires, values[1]);
    counter_set(&count->expiries, values[2]);
}

uint64_t databases_change(struct store_txn *txn, uint64_t commit)
{
    struct store *store = txn->store;
    const struct arrangement *arrangement = &txn->arrangement;
    uint64_t dead = 0;
    assert(arrangement->changed && commit > store->databases_commit);
    for (uint32_t i = 0; i < store->partition_count; i++) {
        struct partition *partition = &store->partitions[i];
        uint64_t was[STORE_DB_COUNT][3];
        for (uint32_t db = 0; db < STORE_DB_COUNT; db++)
            read_count(&partition->databases[db], was[db]);
        for (uint32_t db = 0; db < STORE_DB_COUNT; db++) {
            static const uint64_t nothing[3];
            const uint64_t *origin = was[arrangement->origins[db]];
            bool is_shown = arrangement->places[db] == arrangement->origins[db];
            dead += is_shown ? 0 : origin[0];
            write_count(&partition->databases[db], is_shown ? origin : nothing);
        }
        partition->last_removal = commit;
    }
    store->databases = arrangement->databases;
    store->databases_commit = commit;
    return dead;
}
