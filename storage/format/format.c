#include "storage/format/format.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "storage/base/keyed_hash.h"
#include "storage/format/tree_node.h"

/* Slots in a page and, in the lower half, bytes in a slot. Sizes are about 12 % apart, so that
 * rounding wastes 6 % on average. */
#define CLASS(count) ((count) << 16 | (PAGE_SIZE / (count) & ~7u))
static const uint32_t classes[FORMAT_SLAB_CLASSES + 1] = {
    0,         CLASS(64), CLASS(56), CLASS(50), CLASS(44), CLASS(40), CLASS(36),
    CLASS(32), CLASS(28), CLASS(25), CLASS(22), CLASS(20), CLASS(18), CLASS(16),
    CLASS(14), CLASS(12), CLASS(11), CLASS(10), CLASS(9),  CLASS(8),  CLASS(7),
    CLASS(6),  CLASS(5),  CLASS(4),  CLASS(3),  CLASS(2),  CLASS(1)};

uint32_t format_class_slots(uint32_t size_class)
{
    assert(size_class <= FORMAT_SLAB_CLASSES && size_class > 0);
    return classes[size_class] >> 16;
}

uint32_t format_class_size(uint32_t size_class)
{
    assert(size_class <= FORMAT_SLAB_CLASSES && size_class > 0);
    return classes[size_class] & 0xffff;
}

uint32_t format_class_for(uint32_t item_len)
{
    assert(item_len <= FORMAT_ITEM_MAX);
    uint32_t low = 1, high = FORMAT_SLAB_CLASSES;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (format_class_size(middle) >= item_len)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint32_t format_run_class_for(uint32_t bytes)
{
    uint32_t pages = (bytes + PAGE_SIZE - 1) / PAGE_SIZE;
    assert(pages > 0 && pages <= FORMAT_EXTENT_PAGES);
    if (pages > 16)
        pages = (pages + 3) & ~3u;
    else if (pages > 8)
        pages = (pages + 1) & ~1u;
    return FORMAT_RUN_CLASS + pages;
}

uint32_t format_place_mix(uint64_t seed, uint32_t file, uint32_t page, uint32_t slot)
{
    uint64_t place = (uint64_t)file << 56 | (uint64_t)slot << 40 | page;
    uint64_t mixed = (place ^ seed) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(mixed >> 32);
}

uint32_t format_item_checksum(const struct format_item *item, uint32_t length, uint32_t place_mix)
{
    if (item->flags & FORMAT_NODE)
        return format_node_checksum(item) ^ place_mix;
    return (uint32_t)XXH3_64bits((const char *)item + 4, length - 4) ^ place_mix;
}

uint32_t format_item_length(const struct format_item *item, uint32_t slot_size)
{
    uint32_t length = format_head_length(item) + item->key_len + item->payload_len;
    bool fits = item->flags & FORMAT_NODE ? length == PAGE_SIZE && slot_size == PAGE_SIZE
                                          : length <= slot_size;
    return fits ? length : 0;
}

bool format_extent_is_sound(const struct format_extent *extent)
{
    if (extent->page == 0)
        return extent->length == 0 && extent->checksum == 0;
    return extent->length > 0 && extent->length <= FORMAT_EXTENT_BYTES;
}

/* The number of descriptors in the root of a value of this length; 0: no such root is possible. */
static uint64_t root_count(const struct format_root *root)
{
    uint64_t extents = (root->length + FORMAT_EXTENT_BYTES - 1) / FORMAT_EXTENT_BYTES;
    if (root->length == 0 || root->length > STORE_VALUE_MAX || root->depth > 1)
        return 0;
    if (root->depth == 0)
        return extents <= FORMAT_ROOT_EXTENTS ? extents : 0;
    return (extents + FORMAT_NODE_FANOUT - 1) / FORMAT_NODE_FANOUT;
}

static bool root_is_sound(const char *at, uint32_t bytes)
{
    struct format_root root;
    struct format_extent extent;
    if (bytes < sizeof root)
        return false;
    memcpy(&root, at, sizeof root);
    uint64_t count = root_count(&root);
    if (count == 0 || root.count != count || bytes != sizeof root + count * sizeof extent)
        return false;
    for (at += sizeof root; count > 0; count--, at += sizeof extent) {
        memcpy(&extent, at, sizeof extent);
        if (!format_extent_is_sound(&extent))
            return false;
    }
    return true;
}

/* Its bytes were written at once: its depth follows from its length, and long_key_room() relies on
 * that. */
static bool key_root_is_sound(const char *at, uint32_t bytes)
{
    struct format_root root;
    if (!root_is_sound(at, bytes))
        return false;
    memcpy(&root, at, sizeof root);
    uint32_t most = FORMAT_ROOT_EXTENTS * FORMAT_EXTENT_BYTES;
    return root.depth == (root.length > most);
}

static bool trees_are_sound(const char *at, uint32_t bytes)
{
    struct format_trees head;
    struct format_tree tree;
    if (bytes < sizeof head)
        return false;
    memcpy(&head, at, sizeof head);
    if (head.count == 0 || head.count > STORE_TREES || head.home >= FORMAT_PARTITION_MAX ||
        bytes != sizeof head + head.count * sizeof tree)
        return false;
    at += sizeof head;
    for (uint32_t i = 0; i < head.count; i++, at += sizeof tree) {
        memcpy(&tree, at, sizeof tree);
        bool is_empty = tree.height == 0;
        if (tree.height > STORE_TREE_HEIGHT_MAX || is_empty != (tree.root == 0) ||
            is_empty != (tree.count == 0) || tree.count > UINT32_MAX)
            return false;
    }
    return true;
}

bool format_item_is_sound(const struct format_item *item)
{
    const uint8_t forms = item->flags & (FORMAT_LARGE | FORMAT_TREES);
    uint32_t head = sizeof(struct format_long_key);
    if (item->version == 0) /* a transaction's own write has none */
        return false;
    if (item->flags & FORMAT_NODE)
        return item->flags == FORMAT_NODE && item->database == FORMAT_HIDDEN &&
               node_is_sound((const struct format_node *)item);
    if (item->flags & FORMAT_KEY_TREE &&
        (item->flags != (FORMAT_TREES | FORMAT_KEY_TREE) || item->key_len != sizeof(uint16_t)))
        return false;
    if (item->flags >= 2 * FORMAT_KEY_TREE || forms == (FORMAT_LARGE | FORMAT_TREES))
        return false;
    if (item->database == FORMAT_HIDDEN &&
        (item->key_len != sizeof(struct format_overflow_key) || item->flags & ~FORMAT_LARGE))
        return false;
    if (item->flags & FORMAT_HAS_WAKE && item->flags & FORMAT_LARGE)
        return false;
    if (item->flags & FORMAT_LONG_KEY &&
        (item->key_len < head ||
         !key_root_is_sound(format_key_root(item), format_key_root_length(item))))
        return false;
    if (item->flags & FORMAT_TREES)
        return trees_are_sound(format_payload(item), item->payload_len);
    return !(item->flags & FORMAT_LARGE) || root_is_sound(format_payload(item), item->payload_len);
}

bool format_databases_are_sound(const struct format_databases *databases)
{
    for (uint32_t i = 0; i < STORE_DB_COUNT; i++) {
        if (databases->ids[i] == 0 || databases->ids[i] >= databases->next_id)
            return false;
        for (uint32_t j = 0; j < i; j++)
            if (databases->ids[i] == databases->ids[j])
                return false;
    }
    return databases->next_id < FORMAT_META;
}

int64_t format_expiry(const struct format_item *item)
{
    int64_t expiry = STORE_NO_EXPIRY;
    if (item->flags & FORMAT_HAS_EXPIRY)
        memcpy(&expiry, item + 1, sizeof expiry);
    return expiry;
}

void format_make_secret(const struct format_superblock *super, struct format_secret *secret)
{
    struct {
        uint64_t seed, word;
        uint8_t store_id[16];
    } from = {.seed = super->seed};
    memcpy(from.store_id, super->store_id, sizeof from.store_id);
    for (; from.word < FORMAT_SECRET_WORDS; from.word++)
        secret->words[from.word] = XXH3_64bits(&from, sizeof from);
    for (; from.word < FORMAT_SECRET_WORDS + 4; from.word++)
        secret->long_keys[from.word / 2 % 2][from.word % 2] = XXH3_64bits(&from, sizeof from);
}

/* A separate function, so that a short key does not pay for the registers that this one needs. */
static __attribute__((noinline)) uint64_t hash_long(const struct format_secret *secret,
                                                    const char *data, size_t len)
{
    if (len > FORMAT_KEY_INLINE)
        return store_keyed_hash(secret->long_keys[0], data, len);
    return XXH3_64bits_withSecret(data, len, secret->words, sizeof secret->words);
}

__attribute__((flatten)) uint64_t format_hash(const struct format_secret *secret, const char *data,
                                              size_t len)
{
    static_assert(sizeof secret->words == XXH_SECRET_DEFAULT_SIZE, "what XXH3 itself uses");
    return len > 32 ? hash_long(secret, data, len)
                    : XXH3_64bits_withSecret(data, len, secret->words, sizeof secret->words);
}

uint64_t format_second_hash(const struct format_secret *secret, const char *data, size_t len)
{
    return store_keyed_hash(secret->long_keys[1], data, len);
}

static struct format_long_key long_key(const struct format_item *item)
{
    struct format_long_key key;
    memcpy(&key, format_key(item), sizeof key);
    return key;
}

uint64_t format_key_hash(const struct format_secret *secret, const struct format_item *item)
{
    return item->flags & FORMAT_LONG_KEY ? long_key(item).hashes[0]
                                         : format_hash(secret, format_key(item), item->key_len);
}

uint32_t format_key_slot(const struct format_item *item)
{
    uint16_t slot;
    if (item->flags & FORMAT_KEY_TREE)
        return memcpy(&slot, format_key(item), sizeof slot), slot;
    return item->flags & FORMAT_LONG_KEY ? long_key(item).slot
                                         : store_hash_slot(format_key(item), item->key_len);
}

uint64_t format_checksum(const void *data, size_t len)
{
    return XXH3_64bits(data, len);
}
