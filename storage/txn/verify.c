/*
 * Whether the bytes of a slot are an item as it was written, in this place. Other code uses an
 * item's lengths and counts unchecked: they are checked here.
 */
#include "storage/txn/verify.h"

#include <string.h>

#include "storage/txn/databases.h"

static bool is_as_written(const struct page_file *file, uint32_t page, uint32_t slot,
                          const struct format_item *item, uint32_t length)
{
    uint32_t mix = format_place_mix(file->engine->superblock.latest.seed, file->id, page, slot);
    return length && item->checksum == format_item_checksum(item, length, mix);
}

/* Only the id is damaged: with the id of a live database the checksum matches. */
static bool was_living(const struct page_file *file, uint32_t page, uint32_t slot,
                       const struct format_item *item, uint32_t length)
{
    char bytes[FORMAT_ITEM_MAX] __attribute__((aligned(8)));
    struct format_item *copy = (struct format_item *)bytes;
    memcpy(bytes, item, length);
    for (uint32_t db = 0; length && db < STORE_DB_COUNT; db++) {
        copy->database = file->engine->databases.ids[db];
        if (is_as_written(file, page, slot, copy, length))
            return true;
    }
    copy->database = FORMAT_META;
    return length && is_as_written(file, page, slot, copy, length);
}

/* Checks the references to other partitions and hash slots. The slot of a plain key follows from
 * the key. */
static bool is_of_store(const struct page_file *file, const struct format_item *item)
{
    const struct store *store = file->engine;
    if (item->flags & FORMAT_NODE)
        return true;
    if (item->flags & FORMAT_TREES) {
        struct format_trees trees;
        memcpy(&trees, format_payload(item), sizeof trees);
        if (trees.home >= store->partition_count)
            return false;
    }
    if (item->database == FORMAT_HIDDEN) {
        struct format_overflow_key key;
        memcpy(&key, format_key(item), sizeof key);
        return key.slot >> store->slot_shift == file->id;
    }
    return !(item->flags & (FORMAT_LONG_KEY | FORMAT_KEY_TREE)) ||
           format_key_slot(item) >> store->slot_shift == file->id;
}

enum slot_state verify_slot(const struct page_file *file, uint32_t page, uint32_t slot,
                            const struct format_item *item)
{
    static const struct format_item blank;
    if (memcmp(item, &blank, sizeof blank) == 0)
        return SLOT_BLANK;
    uint32_t length = format_item_length(item, format_class_size(page_file_class_of(file, page)));
    if (is_as_written(file, page, slot, item, length))
        return format_item_is_sound(item) && is_of_store(file, item) ? SLOT_ITEM : SLOT_DAMAGED;
    bool past = databases_is_past(file->engine, item->database);
    return past && !was_living(file, page, slot, item, length) ? SLOT_REMAINS : SLOT_DAMAGED;
}
