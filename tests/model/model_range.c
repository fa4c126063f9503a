/* Walks over keys in order, of storage/ordered.h: each call looks for the next key among all. */
#include "tests/model/model_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/ordered.h"

struct name {
    char *bytes; /* NULL: none */
    uint32_t len;
};

struct store_range {
    struct store_range_options options;
    struct name low, high, last; /* last: the key returned last */
};

static struct name copied(const char *bytes, uint32_t len)
{
    struct name name = {.len = len};
    if (bytes == NULL)
        return name;
    name.bytes = model_alloc(len + 1u);
    memcpy(name.bytes, bytes, len);
    return name;
}

static int compare(const char *a, uint32_t a_len, const char *b, uint32_t b_len)
{
    uint32_t shorter = a_len < b_len ? a_len : b_len;
    int order = shorter > 0 ? memcmp(a, b, shorter) : 0;
    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

bool store_is_ordered(const struct store *store)
{
    (void)store;
    return true;
}

struct store_range *store_range_new(struct store *store, const struct store_range_options *options)
{
    struct store_range *range = model_alloc(sizeof *range);
    (void)store;
    range->options = *options;
    range->low = copied(options->low.bytes, options->low.len);
    range->high = copied(options->high.bytes, options->high.len);
    return range;
}

void store_range_free(struct store_range *range)
{
    free(range->low.bytes);
    free(range->high.bytes);
    free(range->last.bytes);
    free(range);
}

uint64_t store_range_bytes(const struct store_range *range)
{
    return sizeof *range;
}

static bool is_within(const struct store_range *range, const struct entry *entry)
{
    const struct name *low = &range->low, *high = &range->high, *last = &range->last;
    int after_low = low->bytes ? compare(entry->key, entry->key_len, low->bytes, low->len) : 1;
    int after_high = high->bytes ? compare(entry->key, entry->key_len, high->bytes, high->len) : -1;
    int after_last = last->bytes ? compare(entry->key, entry->key_len, last->bytes, last->len) : 0;
    bool is_next = range->options.is_reverse ? after_last < 0 : after_last > 0;
    return (last->bytes == NULL || is_next) &&
           (after_low > 0 || (after_low == 0 && !range->options.low.is_excluded)) &&
           (after_high < 0 || (after_high == 0 && !range->options.high.is_excluded));
}

static const struct entry *find_next(const struct store_txn *txn, const struct store_range *range)
{
    const struct table *table = &txn->worker->store->dbs[range->options.db];
    const struct entry *first = NULL;
    for (uint64_t i = 0; table->buckets != NULL && i < (uint64_t)1 << table->bits; i++)
        for (const struct entry *entry = table->buckets[i]; entry; entry = entry->next) {
            if (entry_expired(entry, txn->request->now_ms) || !is_within(range, entry))
                continue;
            int order = first ? compare(entry->key, entry->key_len, first->key, first->key_len) : 0;
            if (first == NULL || (range->options.is_reverse ? order > 0 : order < 0))
                first = entry;
        }
    return first;
}

enum store_result store_range_next(struct store_txn *txn, struct store_range *range,
                                   struct store_range_entry *entry)
{
    assert(txn->request->scope == STORE_SCOPE_NONE);
    for (;;) {
        if (must_wait(txn))
            return STORE_WAIT;
        const struct entry *found = find_next(txn, range);
        if (found == NULL)
            return STORE_ABSENT;
        free(range->last.bytes);
        range->last = copied(found->key, found->key_len);
        *entry = (struct store_range_entry){.key = range->last.bytes, .key_len = found->key_len};
        if (range->options.wants_value && found->value->tree_count == 0 &&
            range->options.wants_value(found->type)) {
            entry->value = found->value->bytes;
            entry->value_len = found->value->len;
        }
        if (range->options.skip == 0)
            return STORE_OK;
        range->options.skip--;
    }
}
