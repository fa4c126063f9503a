/*
 * What a run function calls: reads, buffered writes and scans of the model store's transactions.
 * Everything here happens under the store's mutex (invariant 1 of model_store.c), and writes only
 * into the transaction (invariant 2).
 */
#include "tests/model/model_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- transactions ---- */

void check_declared(const struct store_txn *txn, const struct store_key *key, enum store_mode mode)
{
    const struct store_request *request = txn->request;
    if (request->scope == STORE_SCOPE_ALL)
        return;
    if (key >= request->keys && key < request->keys + request->key_count && key->mode >= mode)
        return;
    for (uint32_t i = 0; i < request->key_count; i++)
        if (request->keys[i].mode >= mode && same_key(&request->keys[i], key))
            return;
    assert(!"key was not declared for this use");
}

/* Reruns repeat their touches in order, so that counting them tells which ones are new. */
bool must_wait(struct store_txn *txn)
{
    struct store *store = txn->worker->store;
    if (store->wait_per_mille == 0 || txn->touches++ < *txn->loaded)
        return false;
    *txn->loaded = txn->touches;
    return model_random(&store->random) % 1000 < store->wait_per_mille;
}

static const struct table *table_below(const struct store_txn *txn, uint32_t db)
{
    static const struct table empty;
    int below = db == STORE_META_DB ? STORE_META_DB : txn->map[db];
    return below == MAP_EMPTY ? &empty : &txn->worker->store->dbs[below];
}

struct entry *txn_find(const struct store_txn *txn, const struct store_key *key)
{
    struct entry *entry = table_find(&txn->written[key->db], key);
    if (entry == NULL)
        entry = table_find(table_below(txn, key->db), key);
    bool live =
        entry != NULL && entry->value != NULL && !entry_expired(entry, txn->request->now_ms);
    return live ? entry : NULL;
}

void item_fill(struct store_item *item, const struct entry *entry)
{
    bool large = entry->value->len > MODEL_LARGE_FROM, trees = entry->value->tree_count > 0;
    *item = (struct store_item){.bytes = large || trees ? NULL : entry->value->bytes,
                                .length = entry->value->len,
                                .expire_ms = entry->expire_ms,
                                .wake_ms = entry->wake_ms,
                                .version = entry->version,
                                .type = entry->type,
                                .large = large,
                                .trees = entry->value->tree_count,
                                .origin = entry->value};
}

enum store_result store_get(struct store_txn *txn, const struct store_key *key,
                            struct store_item *item)
{
    check_declared(txn, key, STORE_SHARED);
    if (must_wait(txn))
        return STORE_WAIT;
    struct entry *entry = txn_find(txn, key);
    if (entry == NULL)
        return STORE_ABSENT;
    item_fill(item, entry);
    return STORE_OK;
}

/* Nothing is evicted here, so use is not remembered: of every key it was now, once. */
void store_count_access(struct store_txn *txn, bool counts)
{
    (void)txn, (void)counts;
}

void store_set_cause(struct store_txn *txn, enum store_cause cause)
{
    txn->cause = cause;
}

enum store_result store_get_access(struct store_txn *txn, const struct store_key *key,
                                   struct store_access *use)
{
    *use = (struct store_access){.frequency = 5};
    return txn_find(txn, key) == NULL ? STORE_ABSENT : STORE_OK;
}

void store_set_access(struct store_txn *txn, const struct store_key *key,
                      const struct store_access *use)
{
    (void)txn, (void)key, (void)use;
}

enum store_result store_read(struct store_txn *txn, const struct store_item *item, uint64_t offset,
                             size_t len, char *to)
{
    const struct value *value = item->origin;
    assert(item->trees == 0);
    assert(offset <= value->len && len <= value->len - offset);
    if (item->large && must_wait(txn))
        return STORE_WAIT;
    memcpy(to, value->bytes + offset, len);
    return STORE_OK;
}

enum store_result store_read_piece(struct store_txn *txn, const struct store_item *item,
                                   uint64_t offset, char *room, struct store_piece *piece)
{
    const struct value *value = item->origin;
    uint64_t left = value->len - offset, most = STORE_READER_PIECE - offset % STORE_READER_PIECE;
    assert(item->trees == 0 && offset < value->len);
    if (item->large && must_wait(txn))
        return STORE_WAIT;
    *piece = (struct store_piece){value->bytes + offset, left < most ? left : most};
    if (!item->large)
        return STORE_OK;
    memcpy(room, piece->bytes, piece->length);
    bool is_hole = room[0] == 0 && memcmp(room, room + 1, piece->length - 1) == 0;
    piece->bytes = is_hole ? NULL : room;
    return STORE_OK;
}

enum store_result store_load(struct store_txn *txn, const struct store_item *item,
                             const char **bytes)
{
    assert(item->trees == 0);
    if (item->large && must_wait(txn))
        return STORE_WAIT;
    *bytes = ((const struct value *)item->origin)->bytes;
    return STORE_OK;
}

enum store_result store_load_within(struct store_txn *txn, const struct store_item *item,
                                    uint64_t most, const char **bytes)
{
    return item->large && item->length > most ? STORE_NO_MEMORY : store_load(txn, item, bytes);
}

void store_drop_loaded(struct store_txn *txn)
{
    (void)txn; /* the model's values are in memory anyway */
}

void txn_write(struct store_txn *txn, const struct store_key *key, uint8_t type,
               struct value *value, int64_t expire_ms)
{
    struct table *table = &txn->written[key->db];
    struct entry *old = table_find(table, key);
    if (old != NULL) { /* items may still point into its value */
        table_unlink(table, old);
        old->next = txn->held;
        txn->held = old;
    }
    struct entry *entry = entry_new(key);
    entry->type = type;
    entry->value = value;
    entry->expire_ms = expire_ms;
    table_insert(table, entry);
    txn->dirty = true;
}

void store_set_wake(struct store_txn *txn, const struct store_key *key, int64_t wake_ms)
{
    struct entry *entry = table_find(&txn->written[key->db], key);
    assert(entry != NULL && entry->value != NULL);
    entry->wake_ms = wake_ms;
}

void txn_rewrite(struct store_txn *txn, const struct store_key *key, const struct entry *from,
                 struct value *value, int64_t expire_ms)
{
    int64_t wake_ms = from->wake_ms;
    txn_write(txn, key, from->type, value, expire_ms);
    store_set_wake(txn, key, wake_ms);
}

enum store_result store_put(struct store_txn *txn, const struct store_key *key, uint8_t type,
                            const char *bytes, size_t len, int64_t expire_ms)
{
    check_declared(txn, key, STORE_EXCLUSIVE);
    if (key->len > STORE_KEY_MAX || len > STORE_VALUE_MAX)
        return STORE_TOO_LARGE;
    struct value *value = value_new(len);
    if (len > 0)
        memcpy(value->bytes, bytes, len);
    txn_write(txn, key, type, value, expire_ms);
    return STORE_OK;
}

enum store_result store_patch(struct store_txn *txn, const struct store_key *key,
                              const struct store_item *item, uint64_t offset, const char *bytes,
                              size_t len)
{
    check_declared(txn, key, STORE_EXCLUSIVE);
    assert(item->trees == 0);
    if (len > STORE_VALUE_MAX || offset > STORE_VALUE_MAX - len)
        return STORE_TOO_LARGE;
    if (item->large && must_wait(txn))
        return STORE_WAIT;
    const struct entry *entry = txn_find(txn, key);
    assert(entry != NULL);
    uint64_t old_len = entry->value->len;
    struct value *value = value_new(old_len > offset + len ? old_len : offset + len);
    memcpy(value->bytes, entry->value->bytes, old_len);
    if (len > 0)
        memcpy(value->bytes + offset, bytes, len);
    txn_write(txn, key, item->type, value, entry->expire_ms);
    return STORE_OK;
}

enum store_result store_set_expiry(struct store_txn *txn, const struct store_key *key,
                                   const struct store_item *item, int64_t expire_ms)
{
    check_declared(txn, key, STORE_EXCLUSIVE);
    (void)item;
    const struct entry *entry = txn_find(txn, key);
    assert(entry != NULL);
    txn_rewrite(txn, key, entry, value_ref(entry->value), expire_ms);
    return STORE_OK;
}

enum store_result store_delete(struct store_txn *txn, const struct store_key *key)
{
    check_declared(txn, key, STORE_EXCLUSIVE);
    if (txn_find(txn, key) != NULL)
        txn_write(txn, key, 0, NULL, STORE_NO_EXPIRY);
    return STORE_OK;
}

enum store_result store_rename(struct store_txn *txn, const struct store_key *from,
                               const struct store_item *item, const struct store_key *to)
{
    check_declared(txn, from, STORE_EXCLUSIVE);
    check_declared(txn, to, STORE_EXCLUSIVE);
    assert(!same_key(from, to));
    if (to->len > STORE_KEY_MAX)
        return STORE_TOO_LARGE;
    (void)item;
    const struct entry *entry = txn_find(txn, from);
    assert(entry != NULL);
    txn_rewrite(txn, to, entry, value_ref(entry->value), entry->expire_ms);
    txn_write(txn, from, 0, NULL, STORE_NO_EXPIRY);
    return STORE_OK;
}

/* Always a break, so that callers meet it; the waits of the next step are its own. */
enum store_result store_step(struct store_txn *txn)
{
    *txn->loaded = 0;
    return STORE_WAIT;
}

enum store_result store_yield(struct store_txn *txn)
{
    txn->keeps = true;
    return STORE_WAIT;
}

uint64_t store_attempt(const struct store_txn *txn)
{
    return txn->attempt;
}

enum store_result store_suspend(struct store_txn *txn)
{
    txn->request->parked = txn; /* it rests: see run_parked */
    return store_step(txn);
}

uint64_t store_shown(const struct store_txn *txn)
{
    return txn->worker->store->commits;
}

void *store_alloc(struct store_txn *txn, size_t size)
{
    struct chunk *chunk = malloc(sizeof(*chunk) + size);
    if (chunk == NULL)
        return NULL;
    chunk->next = txn->chunks;
    txn->chunks = chunk;
    return chunk->bytes;
}

/* Nothing is short here, and all of it stays until the end. */

uint64_t store_memory(const struct store_txn *txn)
{
    (void)txn;
    return 0;
}

void store_mark(const struct store_txn *txn, struct store_mark *mark)
{
    (void)txn;
    *mark = (struct store_mark){.block = NULL};
}

bool store_forget(struct store_txn *txn, const struct store_mark *mark)
{
    (void)txn, (void)mark;
    return false;
}

void store_make_room(struct store_txn *txn)
{
    (void)txn;
}

int64_t store_now(const struct store_txn *txn)
{
    return txn->request->now_ms;
}

/* ---- scans, flushes and swaps ---- */

uint64_t store_scan_at(const struct store_txn *txn, uint32_t db, uint64_t random)
{
    (void)txn, (void)db;
    return random;
}

enum store_result store_txn_db_stats(struct store_txn *txn, uint32_t db,
                                     struct store_db_stats *stats)
{
    const struct table *below = table_below(txn, db), *written = &txn->written[db];
    if (must_wait(txn))
        return STORE_WAIT;
    *stats = (struct store_db_stats){.keys = below->count, .expires = below->expires};
    for (uint64_t i = 0; written->buckets != NULL && i < (uint64_t)1 << written->bits; i++)
        for (const struct entry *entry = written->buckets[i]; entry; entry = entry->next) {
            struct store_key key = {.data = entry->key, .len = entry->key_len, .hash = entry->hash};
            const struct entry *old = table_find(below, &key);
            stats->keys += (entry->value != NULL) - (uint64_t)(old != NULL);
            stats->expires += entry->value != NULL && entry->expire_ms != STORE_NO_EXPIRY;
            stats->expires -= old != NULL && old->expire_ms != STORE_NO_EXPIRY;
        }
    return STORE_OK;
}

/* Visits the live items with exactly this hash; returns how many entries were looked at. */
static uint32_t scan_hash(const struct store_txn *txn, uint32_t db, uint64_t hash,
                          store_visit *visit, void *arg)
{
    uint32_t seen = 0;
    const struct table *layers[2] = {&txn->written[db], table_below(txn, db)};
    for (int layer = 0; layer < 2; layer++) {
        const struct entry *entry = table_from(layers[layer], hash);
        for (; entry != NULL && entry->hash == hash; entry = entry->next, seen++) {
            struct store_key key = {
                .data = entry->key, .len = entry->key_len, .db = (uint8_t)db, .hash = hash};
            if (txn_find(txn, &key) != entry)
                continue; /* deleted, expired, or covered by the upper layer */
            struct store_item item;
            item_fill(&item, entry);
            visit(arg, entry->key, entry->key_len, &item);
        }
    }
    return seen;
}

enum store_result store_scan(struct store_txn *txn, uint32_t db, uint64_t *cursor, uint32_t *budget,
                             store_visit *visit, void *arg)
{
    assert(txn->request->scope != STORE_SCOPE_KEYS && db<STORE_DB_COUNT && * budget> 0);
    if (must_wait(txn))
        return STORE_WAIT;
    while (*budget > 0) {
        const struct entry *upper = table_from(&txn->written[db], *cursor);
        const struct entry *lower = table_from(table_below(txn, db), *cursor);
        if (upper == NULL && lower == NULL) {
            *cursor = 0;
            return STORE_OK;
        }
        bool take_upper = upper != NULL && (lower == NULL || upper->hash < lower->hash);
        uint64_t hash = take_upper ? upper->hash : lower->hash;
        uint32_t seen = scan_hash(txn, db, hash, visit, arg);
        *budget -= seen < *budget ? seen : *budget;
        *cursor = hash + 1;
        if (*cursor == 0)
            break;
    }
    return STORE_OK;
}

void store_flush_db(struct store_txn *txn, uint32_t db)
{
    assert(txn->request->scope == STORE_SCOPE_ALL && db < STORE_DB_COUNT);
    table_clear(&txn->written[db]);
    txn->map[db] = MAP_EMPTY;
    txn->dirty = true;
}

void store_flush_all(struct store_txn *txn)
{
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++)
        store_flush_db(txn, db);
}

void store_swap_db(struct store_txn *txn, uint32_t a, uint32_t b)
{
    assert(txn->request->scope == STORE_SCOPE_ALL && a < STORE_DB_COUNT && b < STORE_DB_COUNT);
    struct table table = txn->written[a];
    txn->written[a] = txn->written[b];
    txn->written[b] = table;
    int map = txn->map[a];
    txn->map[a] = txn->map[b];
    txn->map[b] = map;
    txn->dirty = true;
}
