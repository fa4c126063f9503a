/*
 * Large values within a transaction: reading, writing, patching.
 */
#include "storage/value/large_value.h"

#include <assert.h>
#include <string.h>

#include "storage/txn/txn_memory.h"
#include "storage/value/patches.h"
#include "storage/value/write_set.h"
#include "storage/value/extent.h"

static enum store_result read_own(struct store_txn *txn, const struct large_write *large,
                                  uint64_t offset, size_t len, char *to)
{
    assert(offset <= large->length && len <= large->length - offset);
    memset(to, 0, len);
    if (large->base && offset < large->base->length) {
        uint64_t left = large->base->length - offset;
        enum store_result result =
            extent_read(txn, large->base, offset, left < len ? left : len, to);
        if (result != STORE_OK)
            return result;
    }
    patches_overlay(large->patches, offset, len, to);
    return STORE_OK;
}

enum store_result store_read(struct store_txn *txn, const struct store_item *item, uint64_t offset,
                             size_t len, char *to)
{
    assert(offset <= item->length && len <= item->length - offset);
    if (!item->large) {
        memcpy(to, item->bytes + offset, len);
        return STORE_OK;
    }
    if (item->version == 0)
        return read_own(txn, item->origin, offset, len, to);
    const struct format_root *root = txn_copy_root(txn, item);
    return root ? extent_read(txn, root, offset, len, to) : STORE_NO_MEMORY;
}

enum store_result store_load(struct store_txn *txn, const struct store_item *item,
                             const char **bytes)
{
    return store_load_within(txn, item, UINT64_MAX, bytes);
}

enum store_result store_load_within(struct store_txn *txn, const struct store_item *item,
                                    uint64_t most, const char **bytes)
{
    if (!item->large) {
        *bytes = item->bytes;
        return STORE_OK;
    }
    if (item->version != 0)
        return extent_load(txn, item, most, bytes);
    char *memory = txn->block_bytes + item->length > most ? NULL : store_alloc(txn, item->length);
    *bytes = memory;
    return memory ? store_read(txn, item, 0, item->length, memory) : STORE_NO_MEMORY;
}

static bool add_patch(struct store_txn *txn, struct large_write *large, uint64_t offset,
                      const char *bytes, size_t len)
{
    assert(offset <= STORE_VALUE_MAX && len <= STORE_VALUE_MAX - offset);
    if (!write_set_outlives_pages(txn, &bytes, len) ||
        !patches_lay(txn, &large->patches, offset, bytes, len))
        return false;
    if (offset + len > large->length)
        large->length = offset + len;
    return true;
}

struct large_write *large_value_put(struct store_txn *txn, const struct store_key *key,
                                    uint8_t type, int64_t expire_ms)
{
    struct large_write *large = store_alloc(txn, sizeof *large);
    struct write *write = large ? write_set_add(txn, key, WRITE_PUT) : NULL;
    if (!write)
        return NULL;
    *large = (struct large_write){0};
    write->type = type;
    write->expire_ms = expire_ms;
    write->large = large;
    return large;
}

struct large_write *large_value_put_again(struct store_txn *txn, const struct store_key *key,
                                          const struct store_item *item, int64_t expire_ms)
{
    struct large_write from = {0};
    if (item->version == 0) {
        from = *(const struct large_write *)item->origin;
    } else {
        from.base = txn_copy_root(txn, item);
        from.length = item->length;
        if (!from.base)
            return NULL;
    }
    struct large_write *large = large_value_put(txn, key, item->type, expire_ms);
    if (large)
        *large = from;
    return large;
}

enum store_result store_put(struct store_txn *txn, const struct store_key *key, uint8_t type,
                            const char *bytes, size_t len, int64_t expire_ms)
{
    if (key->len > STORE_KEY_MAX || len > STORE_VALUE_MAX)
        return STORE_TOO_LARGE;
    if (write_set_fits(key, len, expire_ms))
        return write_set_put(txn, key, type, bytes, len, expire_ms);
    struct large_write *large = large_value_put(txn, key, type, expire_ms);
    return large && add_patch(txn, large, 0, bytes, len) ? STORE_OK : STORE_NO_MEMORY;
}

static enum store_result patch_small(struct store_txn *txn, const struct store_key *key,
                                     const struct store_item *item, uint64_t length,
                                     uint64_t offset, const char *bytes, size_t len)
{
    assert(item->length <= length && offset + len <= length);
    char *memory = store_alloc(txn, length + 1);
    if (!memory)
        return STORE_NO_MEMORY;
    memcpy(memory, item->bytes, item->length);
    memset(memory + item->length, 0, length - item->length);
    memcpy(memory + offset, bytes, len);
    return write_set_put(txn, key, item->type, memory, length, item->expire_ms);
}

enum store_result store_patch(struct store_txn *txn, const struct store_key *key,
                              const struct store_item *item, uint64_t offset, const char *bytes,
                              size_t len)
{
    if (offset > STORE_VALUE_MAX || len > STORE_VALUE_MAX - offset)
        return STORE_TOO_LARGE;
    uint64_t length = offset + len > item->length ? offset + len : item->length;
    if (!item->large && write_set_fits(key, length, item->expire_ms))
        return patch_small(txn, key, item, length, offset, bytes, len);
    struct large_write *large;
    if (item->large) {
        large = large_value_put_again(txn, key, item, item->expire_ms);
    } else {
        char *old = store_alloc(txn, item->length + 1);
        uint64_t old_len = item->length;
        if (!old)
            return STORE_NO_MEMORY;
        memcpy(old, item->bytes, old_len);
        large = large_value_put(txn, key, item->type, item->expire_ms);
        if (large && !add_patch(txn, large, 0, old, old_len))
            large = NULL;
    }
    return large && add_patch(txn, large, offset, bytes, len) ? STORE_OK : STORE_NO_MEMORY;
}
