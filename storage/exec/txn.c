/*
 * The life of a transaction, from its request to the free list, and the calls of a run function
 * that combine several kinds of value. Changes are buffered (write_set.c), and visible to the
 * transaction's own reads; they have no other effect before commit.c applies them.
 */
#include "storage/exec/txn.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/checks.h"
#include "storage/tree/tree.h"
#include "storage/tree/tree_owner.h"
#include "storage/tree/tree_edit.h"
#include "storage/value/long_key.h"
#include "storage/cache/access_clock.h"
#include "storage/txn/txn_memory.h"
#include "storage/txn/txn_state.h"
#include "storage/exec/commit.h"
#include "storage/value/large_value.h"
#include "storage/value/lookup.h"
#include "storage/value/write_set.h"
#include "storage/txn/load.h"
#include "storage/txn/databases.h"
#include "storage/value/extent.h"

#define KEPT_ENTRIES 128u /* longer arrays are not kept for the next transaction */
#define SPARES_MOST 64u   /* so many free transactions of a worker keep their memory */

/* ---- lifetime ---- */

/* Frees what few transactions need; otherwise each pooled transaction would grow to the size of the
 * largest command so far, and the pool to that of the largest crowd. The transaction itself stays:
 * others may still look at its generation. */
static void trim(struct store_txn *txn)
{
    bool is_spare = txn->worker->free_txn_count < SPARES_MOST;
    if (!is_spare) {
        txn_memory_free(txn, txn->blocks);
        txn->blocks = NULL;
    }
    if (txn->write_capacity > (is_spare ? KEPT_ENTRIES : 0)) {
        free(txn->writes);
        free(txn->write_table);
        txn->writes = NULL;
        txn->write_table = NULL;
        txn->write_capacity = txn->write_table_room = 0;
        txn_memory_note(txn);
    }
    if (txn->pin_capacity > KEPT_ENTRIES) {
        free(txn->pins);
        txn->pins = NULL;
        txn->pin_capacity = 0;
    }
    if (txn->key_lock_capacity > KEPT_ENTRIES) {
        free(txn->key_locks);
        txn->key_locks = NULL;
        txn->key_lock_capacity = 0;
    }
    if (txn->trees.table_size > KEPT_ENTRIES) {
        free(txn->trees.table);
        txn->trees.table = NULL;
        txn->trees.table_size = 0;
    }
}

void txn_begin(struct store_txn *txn, struct store_request *request)
{
    assert(txn_state(txn) == TXN_FREE && txn->hold == HOLDS_NOTHING);
    txn->request = request;
    txn->phase = TXN_RUN;
    txn->failure = STORE_OK;
    txn->shown = 0;
    txn->cause = STORE_BY_REQUEST;
    txn->leaves_no_trace = false;
    txn->used_page = 0;
    txn->room_since_ms = 0;
    txn->attempt = ++txn->worker->attempts;
    request->shown = 0;
    request->worker = txn->worker;
    request->parked = txn;
}

void txn_discard(struct store_txn *txn)
{
    commit_abandon(txn);
    tree_discard(txn);
    if (txn->readers)
        txn->store->hooks->run_discarded(txn);
    txn->attempt = ++txn->worker->attempts;
    txn->write_count = 0;
    txn->write_table_size = 0;
    txn->written_count = 0;
    txn->arrangement.changed = false;
    txn->shown = 0;
    txn->cause = STORE_BY_REQUEST;
    txn_memory_release(txn);
}

void txn_reset(struct store_txn *txn)
{
    if (txn->readers)
        txn->store->hooks->run_finished(txn);
    txn->write_count = 0;
    txn->write_table_size = 0;
    txn->written_count = 0;
    txn->arrangement.changed = false;
    txn_memory_release(txn);
    extent_drop_loads(txn);
    if (txn->pin_count)
        load_release_pins(txn);
    tree_forget(txn);
    trim(txn);
    txn->more[0] = txn->more[1] = 0;
    txn->more_has_keys = false;
    txn_move(txn, TXN_FREE);
    txn->hold = HOLDS_NOTHING;
    txn->again = AGAIN_WHEN_LOADED;
    txn->generation++;
    txn->blocking_io = txn->refuses = false;
    txn->reruns = 0;
    txn->frame_waits = 0;
    txn->failed_file = NULL;
    txn->extent_write_error = 0;
    txn->bulk_load = NULL;
    if (storage_checks_enabled())
        txn_check(txn);
    SLIST_INSERT_HEAD(&txn->worker->free_txns, txn, of_free);
    txn->worker->free_txn_count++;
}

void txn_free(struct store_txn *txn)
{
    assert(txn_state(txn) == TXN_FREE && !txn->readers);
    txn_memory_release(txn);
    free(txn->blocks);
    free(txn->writes);
    free(txn->write_table);
    txn->worker->unreported_bytes -= txn->noted_bytes;
    free(txn->trees.table);
    free(txn->pins);
    free(txn->key_locks);
    free(txn);
}

int64_t store_now(const struct store_txn *txn)
{
    return txn->request->now_ms;
}

static bool same_key(const struct store_key *a, const struct store_key *b)
{
    return a->hash == b->hash && a->db == b->db && a->len == b->len &&
           memcmp(a->data, b->data, a->len) == 0;
}

/* ---- access data ---- */

void store_count_access(struct store_txn *txn, bool counts)
{
    txn->leaves_no_trace = !counts;
}

enum store_result store_get_access(struct store_txn *txn, const struct store_key *key,
                                   struct store_access *use)
{
    struct store *store = txn->store;
    const struct page_file *file = &engine_partition(store, key->slot)->file;
    uint32_t database = databases_committed(txn, databases_place(txn, key->db));
    int64_t now_ms = txn->request->now_ms;
    struct found found = {0};
    *use = (struct store_access){.idle_ms = 0};
    enum store_result result = database ? txn_find(txn, key, database, &found) : STORE_ABSENT;
    if (result != STORE_OK || !found.item)
        return result == STORE_OK ? STORE_ABSENT : result;
    if (access_kind(&store->cache.uses) == USE_IGNORED)
        access_want(&store->cache.uses, USE_TIME, env_now_ms(&store->env));
    if (access_kind(&store->cache.uses) == USE_FREQUENCY)
        use->frequency = access_frequency(file, found.page, found.slot, now_ms);
    else
        use->idle_ms = access_idle_ms(file, found.page, found.slot, now_ms);
    return STORE_OK;
}

void store_set_access(struct store_txn *txn, const struct store_key *key,
                      const struct store_access *use)
{
    struct write *write = txn_find_write(txn, key);
    int64_t now_ms = txn->request->now_ms;
    if (write && access_kind(&txn->store->cache.uses) == USE_TIME)
        write->use = access_by_idle(&txn->store->cache.uses, now_ms, use->idle_ms);
    else if (write && access_kind(&txn->store->cache.uses) == USE_FREQUENCY)
        write->use = access_by_frequency(now_ms, use->frequency);
}

/* ---- changing ---- */

/* Puts the item again, under `key` and with this expiry. */
static enum store_result put_same(struct store_txn *txn, const struct store_key *key,
                                  const struct store_item *item, int64_t expire_ms)
{
    if (item->trees) {
        struct collection *collection;
        enum store_result result = tree_find(txn, key, item, &collection);
        return result == STORE_OK ? txn_put_trees(txn, key, collection, item->type, expire_ms)
                                  : result;
    }
    if (item->large)
        return large_value_put_again(txn, key, item, expire_ms) ? STORE_OK : STORE_NO_MEMORY;
    char *bytes = store_alloc(txn, item->length + 1);
    if (!bytes)
        return STORE_NO_MEMORY;
    memcpy(bytes, item->bytes, item->length);
    enum store_result result = store_put(txn, key, item->type, bytes, item->length, expire_ms);
    if (result == STORE_OK && item->wake_ms != STORE_NO_EXPIRY)
        store_set_wake(txn, key, item->wake_ms);
    return result;
}

enum store_result store_set_expiry(struct store_txn *txn, const struct store_key *key,
                                   const struct store_item *item, int64_t expire_ms)
{
    return put_same(txn, key, item, expire_ms);
}

enum store_result store_rename(struct store_txn *txn, const struct store_key *from,
                               const struct store_item *item, const struct store_key *to)
{
    if (same_key(from, to))
        return STORE_OK;
    if (to->len > STORE_KEY_MAX)
        return STORE_TOO_LARGE;
    enum store_result result = put_same(txn, to, item, item->expire_ms);
    return result == STORE_OK ? store_delete(txn, from) : result;
}
