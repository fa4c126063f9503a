/*
 * Values, keys and hash tables of the model store.
 *
 * Invariants:
 * 1. A bucket holds the hashes with the same top `bits`; its list is sorted by hash. So a table is
 *    sorted by hash as a whole, whatever its size.
 * 2. A key stands in a table once.
 */
#include "tests/model/model_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void *model_alloc(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL)
        abort();
    return memory;
}

uint64_t model_random(uint64_t *state)
{
    uint64_t x = (*state += 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* ---- values and entries ---- */

struct value *value_new(uint64_t len)
{
    struct value *value = model_alloc(sizeof(*value) + len + 1);
    value->refs = 1;
    value->len = len;
    return value;
}

struct value *value_ref(struct value *value)
{
    atomic_fetch_add(&value->refs, 1);
    return value;
}

void value_unref(struct value *value)
{
    if (value != NULL && atomic_fetch_sub(&value->refs, 1) == 1) {
        trees_free(value);
        free(value);
    }
}

struct entry *entry_new(const struct store_key *key)
{
    struct entry *entry = model_alloc(sizeof(*entry) + key->len);
    entry->hash = key->hash;
    entry->key_len = key->len;
    entry->expire_ms = entry->wake_ms = STORE_NO_EXPIRY;
    memcpy(entry->key, key->data, key->len);
    return entry;
}

void entry_free(struct entry *entry)
{
    value_unref(entry->value);
    free(entry);
}

bool entry_expired(const struct entry *entry, int64_t now_ms)
{
    return entry->expire_ms != STORE_NO_EXPIRY && now_ms > entry->expire_ms;
}

/* ---- tables ---- */

static uint64_t bucket_of(const struct table *table, uint64_t hash)
{
    return table->bits == 0 ? 0 : hash >> (64 - table->bits);
}

/* The link that holds the key's entry or, when there is none, that where it belongs. */
static struct entry **table_place(const struct table *table, uint64_t hash, const char *key,
                                  uint32_t len)
{
    struct entry **link = &table->buckets[bucket_of(table, hash)];
    for (; *link != NULL && (*link)->hash <= hash; link = &(*link)->next)
        if ((*link)->hash == hash && (*link)->key_len == len && memcmp((*link)->key, key, len) == 0)
            break;
    return link;
}

struct entry *table_find(const struct table *table, const struct store_key *key)
{
    if (table->buckets == NULL)
        return NULL;
    struct entry *entry = *table_place(table, key->hash, key->data, key->len);
    bool same = entry != NULL && entry->hash == key->hash && entry->key_len == key->len &&
                memcmp(entry->key, key->data, key->len) == 0;
    return same ? entry : NULL;
}

struct entry *table_from(const struct table *table, uint64_t hash)
{
    if (table->buckets == NULL)
        return NULL;
    uint64_t bucket_count = (uint64_t)1 << table->bits;
    for (uint64_t i = bucket_of(table, hash); i < bucket_count; i++)
        for (struct entry *entry = table->buckets[i]; entry != NULL; entry = entry->next)
            if (entry->hash >= hash)
                return entry;
    return NULL;
}

void table_unlink(struct table *table, struct entry *entry)
{
    struct entry **link = table_place(table, entry->hash, entry->key, entry->key_len);
    assert(*link == entry);
    *link = entry->next;
    table->count--;
    table->expires -= entry->expire_ms != STORE_NO_EXPIRY;
}

void table_remove(struct table *table, struct entry *entry)
{
    table_unlink(table, entry);
    entry_free(entry);
}

static void table_grow(struct table *table)
{
    struct table old = *table;
    table->bits = old.buckets == NULL ? 4 : old.bits + 1;
    table->buckets = model_alloc(sizeof(struct entry *) << table->bits);
    uint64_t old_count = old.buckets == NULL ? 0 : (uint64_t)1 << old.bits;
    for (uint64_t i = 0; i < old_count; i++)
        for (struct entry *entry = old.buckets[i], *next; entry != NULL; entry = next) {
            next = entry->next;
            struct entry **link = table_place(table, entry->hash, entry->key, entry->key_len);
            entry->next = *link;
            *link = entry;
        }
    free(old.buckets);
}

void table_insert(struct table *table, struct entry *entry)
{
    if (table->buckets == NULL || table->count >> table->bits != 0)
        table_grow(table);
    struct entry **link = table_place(table, entry->hash, entry->key, entry->key_len);
    entry->next = *link;
    *link = entry;
    table->count++;
    table->expires += entry->expire_ms != STORE_NO_EXPIRY;
}

void table_clear(struct table *table)
{
    uint64_t bucket_count = table->buckets == NULL ? 0 : (uint64_t)1 << table->bits;
    for (uint64_t i = 0; i < bucket_count; i++)
        for (struct entry *entry = table->buckets[i], *next; entry != NULL; entry = next) {
            next = entry->next;
            entry_free(entry);
        }
    free(table->buckets);
    memset(table, 0, sizeof(*table));
}

bool same_key(const struct store_key *a, const struct store_key *b)
{
    return a->hash == b->hash && a->db == b->db && a->len == b->len &&
           memcmp(a->data, b->data, a->len) == 0;
}

/* ---- keys ---- */

/* CRC16 with polynomial 0x1021 from 0, bit by bit: slow and plain. */
static uint32_t crc16(const char *data, size_t len)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (uint32_t)(unsigned char)data[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1) ^ ((crc & 0x8000) != 0 ? 0x1021 : 0);
        crc &= 0xffff;
    }
    return crc;
}

uint32_t store_hash_slot(const char *data, size_t len)
{
    const char *open = len == 0 ? NULL : memchr(data, '{', len);
    if (open != NULL) {
        const char *tag = open + 1;
        const char *end = memchr(tag, '}', (size_t)(data + len - tag));
        if (end != NULL && end != tag)
            return crc16(tag, (size_t)(end - tag)) % STORE_SLOT_COUNT;
    }
    return crc16(data, len) % STORE_SLOT_COUNT;
}

void store_key(const struct store *store, struct store_key *key, uint32_t db, const char *data,
               size_t len, enum store_mode mode)
{
    (void)store; /* it keeps no secret */
    assert((db < STORE_DB_COUNT || db == STORE_META_DB) && len <= UINT32_MAX);
    uint64_t hash = len;
    for (size_t i = 0; i < len; i++) {
        uint64_t state = hash ^ (unsigned char)data[i];
        hash = model_random(&state);
    }
    *key = (struct store_key){.data = data,
                              .len = (uint32_t)len,
                              .slot = (uint16_t)store_hash_slot(data, len),
                              .db = (uint8_t)db,
                              .mode = (uint8_t)mode,
                              .hash = hash};
}
