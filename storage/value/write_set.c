/*
 * The changes that a transaction has buffered.
 *
 * Invariants
 * 1. There is one write per (place, key): a later change of the same key replaces it. A
 *    place is the contents of a logical database when the key was written: see databases.c.
 * 2. Everything that a write refers to is in the request's arguments or the transaction's own
 *    memory: a frame may be evicted before the commit, so bytes in a frame are copied.
 */
#include "storage/value/write_set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"
#include "storage/txn/txn_memory.h"
#include "storage/value/long_key.h"
#include "storage/txn/databases.h"

#define WRITES_SEARCHED 8u /* a longer list gets a table */

static bool is_of(const struct write *write, const struct store_key *key, uint32_t place)
{
    return write->key.hash == key->hash && write->place == place && write->key.len == key->len &&
           memcmp(write->key.data, key->data, key->len) == 0;
}

static uint32_t *table_cell(const struct store_txn *txn, const struct store_key *key,
                            uint32_t place)
{
    uint32_t mask = txn->write_table_size - 1;
    uint32_t at = (uint32_t)(key->hash + place) & mask;
    while (txn->write_table[at] && !is_of(&txn->writes[txn->write_table[at] - 1], key, place))
        at = (at + 1) & mask;
    return &txn->write_table[at];
}

struct write *txn_find_write(struct store_txn *txn, const struct store_key *key)
{
    uint32_t place = databases_place(txn, key->db);
    if (txn->write_table_size) {
        uint32_t number = *table_cell(txn, key, place);
        return number ? &txn->writes[number - 1] : NULL;
    }
    for (uint32_t i = 0; i < txn->write_count; i++)
        if (is_of(&txn->writes[i], key, place))
            return &txn->writes[i];
    return NULL;
}

/* Deletions get memory in any case: they give some back. */
static bool grow_writes(struct store_txn *txn, enum write_kind kind)
{
    if (kind != WRITE_DELETE && !txn_memory_for_writes(txn))
        return false;
    if (!array_reserve(&txn->writes, &txn->write_capacity, txn->write_count + 1,
                       sizeof *txn->writes))
        return false;
    txn_memory_note(txn);
    return true;
}

static bool build_table(struct store_txn *txn)
{
    uint32_t size = WRITE_CELLS * (uint32_t)txn->write_capacity;
    if (size > txn->write_table_room) {
        uint32_t *table = realloc(txn->write_table, size * sizeof *table);
        if (!table)
            return false;
        txn->write_table = table;
        txn->write_table_room = size;
    }
    assert((size & (size - 1)) == 0); /* a cell's number is masked */
    memset(txn->write_table, 0, size * sizeof *txn->write_table);
    txn->write_table_size = size;
    for (uint32_t i = 0; i < txn->write_count; i++)
        *table_cell(txn, &txn->writes[i].key, txn->writes[i].place) = i + 1;
    return true;
}

bool write_set_outlives_pages(struct store_txn *txn, const char **bytes, size_t len)
{
    if (!arena_has(&txn->store->cache.arena, *bytes))
        return true;
    char *copy = store_alloc(txn, len);
    if (copy)
        *bytes = memcpy(copy, *bytes, len);
    return copy;
}

struct write *write_set_add(struct store_txn *txn, const struct store_key *key,
                            enum write_kind kind)
{
    struct write *write = txn->write_count ? txn_find_write(txn, key) : NULL;
    uint32_t place = databases_place(txn, key->db);
    if (!write) {
        bool grows = txn->write_count == txn->write_capacity;
        if (grows && !grow_writes(txn, kind))
            return NULL;
        bool table_due = txn->write_count == WRITES_SEARCHED || (grows && txn->write_table_size);
        if (table_due && !build_table(txn))
            return NULL;
        assert(txn->write_count < txn->write_capacity);
        write = &txn->writes[txn->write_count++];
        if (txn->write_table_size)
            *table_cell(txn, key, place) = txn->write_count;
    }
    *write = (struct write){.key = *key,
                            .place = place,
                            .kind = kind,
                            .expire_ms = STORE_NO_EXPIRY,
                            .wake_ms = STORE_NO_EXPIRY};
    return write_set_outlives_pages(txn, &write->key.data, key->len) ? write : NULL;
}

/* The table gets cells, which base_cell() of commit.c counts on. */
struct write *write_set_append(struct store_txn *txn)
{
    bool grows = txn->write_count == txn->write_capacity;
    if (grows && !grow_writes(txn, WRITE_DELETE))
        return NULL;
    if (grows && txn->write_table_size && !build_table(txn))
        return NULL;
    return &txn->writes[txn->write_count++];
}

bool write_set_fits(const struct store_key *key, uint64_t len, int64_t expire_ms)
{
    uint64_t head = format_head_with(expire_ms != STORE_NO_EXPIRY, false);
    return head + long_key_in_item(key) + len <= FORMAT_ITEM_VALUE;
}

enum store_result write_set_put(struct store_txn *txn, const struct store_key *key, uint8_t type,
                                const char *bytes, size_t len, int64_t expire_ms)
{
    struct write *write =
        write_set_outlives_pages(txn, &bytes, len) ? write_set_add(txn, key, WRITE_PUT) : NULL;
    if (!write)
        return STORE_NO_MEMORY;
    assert(len <= FORMAT_ITEM_VALUE);
    write->type = type;
    write->bytes = bytes;
    write->len = (uint32_t)len;
    write->expire_ms = expire_ms;
    return STORE_OK;
}

enum store_result store_delete(struct store_txn *txn, const struct store_key *key)
{
    return write_set_add(txn, key, WRITE_DELETE) ? STORE_OK : STORE_NO_MEMORY;
}
