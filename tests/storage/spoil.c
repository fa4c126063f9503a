#include "tests/storage/spoil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "storage/format/format.h"
#include "storage/format/tree_node.h"
#include "storage/journal/journal.h"

struct field {
    const char *name;
    uint32_t offset, width;
};
#define FIELD(type, member)                                                                        \
    {                                                                                              \
#type "." #member, offsetof(struct type, member), sizeof(((struct type *)0)->member)       \
    }
#define LENGTH_OF(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

/* ---- values ---- */

static uint64_t get(const char *at, uint32_t width)
{
    uint64_t value = 0;
    memcpy(&value, at, width);
    return value;
}

/* At a bound of the width, of a page, of a segment, near the old one; or any. */
static uint64_t odd_value(struct rng *rng, uint64_t old, uint32_t width)
{
    const uint64_t top = width == 8 ? UINT64_MAX : (1ull << 8 * width) - 1;
    const uint64_t values[] = {0,
                               1,
                               2,
                               old + 1,
                               old - 1,
                               old * 2,
                               old / 2,
                               old ^ 1ull << rng_below(rng, 8 * width),
                               top,
                               top - 1,
                               top / 2,
                               top / 2 + 1,
                               PAGE_SIZE,
                               PAGE_SIZE - 1,
                               SEGMENT_PAGES,
                               SEGMENT_PAGES - 1,
                               SEGMENT_PAGES + 1,
                               FORMAT_EXTENT_BYTES + 1,
                               STORE_VALUE_MAX + 1ull,
                               rng_below(rng, 64),
                               rng_below(rng, 4 * SEGMENT_PAGES),
                               rng_next(rng)};
    return values[rng_below(rng, LENGTH_OF(values))];
}

static void spoil_field(struct rng *rng, char *bytes, const struct field *field, char text[160])
{
    char *at = bytes + field->offset;
    uint32_t width = field->width <= 8 ? field->width : 4;
    at += width == field->width ? 0 : rng_below(rng, field->width / 4) * 4; /* of an array */
    uint64_t old = get(at, width), value = odd_value(rng, old, width);
    memcpy(at, &value, width);
    snprintf(text + strlen(text), 160 - strlen(text), " %s at %u: %llx -> %llx", field->name,
             (uint32_t)(at - bytes), (unsigned long long)old, (unsigned long long)get(at, width));
}

#define SPOIL_ONE(rng, bytes, fields, text)                                                        \
    spoil_field(rng, bytes, &(fields)[rng_below(rng, LENGTH_OF(fields))], text)

/* ---- the superblock ---- */

static struct format_superblock latest(struct medium *medium)
{
    struct format_superblock copies[2];
    for (uint32_t i = 0; i < 2; i++)
        medium_peek(medium, "superblock", i * PAGE_SIZE, &copies[i], sizeof copies[i]);
    return copies[copies[1].sequence > copies[0].sequence];
}

static bool spoil_superblock(struct rng *rng, struct medium *medium, char text[160])
{
    static const struct field fields[] = {
        FIELD(format_superblock, version),          FIELD(format_superblock, partition_count),
        FIELD(format_superblock, journal_bytes),    FIELD(format_superblock, epoch),
        FIELD(format_superblock, tail_position),    FIELD(format_superblock, tail_sequence),
        FIELD(format_superblock, tail_commit),      FIELD(format_superblock, clock_ms),
        FIELD(format_superblock, databases),        FIELD(format_superblock, clean),
        FIELD(format_superblock, databases.next_id)};
    struct format_superblock super = latest(medium);
    SPOIL_ONE(rng, (char *)&super, fields, text);
    super.checksum = format_checksum(&super, offsetof(struct format_superblock, checksum));
    for (uint32_t i = 0; i < 2; i++)
        if (i == super.sequence % 2 || rng_chance(rng, 50))
            medium_poke(medium, "superblock", i * PAGE_SIZE, &super, sizeof super);
    return true;
}

/* ---- segments ---- */

static const char *file_of(uint32_t file, char name[16])
{
    snprintf(name, 16, file == FORMAT_EXTENT_FILE ? "extents" : "slabs-%02x", file);
    return name;
}

static bool spoil_segment(struct rng *rng, struct medium *medium, char text[160])
{
    static const struct field fields[] = {
        FIELD(format_segment, size_class), FIELD(format_segment, size_class),
        FIELD(format_segment, segment), FIELD(format_segment, file)};
    struct format_superblock super = latest(medium);
    uint32_t file = rng_below(rng, super.partition_count + 1);
    char name[16];
    file_of(file == super.partition_count ? FORMAT_EXTENT_FILE : file, name);
    uint64_t at = rng_below(rng, (uint32_t)(medium_size(medium, name) / SEGMENT_BYTES)) *
                  (uint64_t)SEGMENT_BYTES;
    struct format_segment header;
    medium_peek(medium, name, at, &header, sizeof header);
    if (header.magic != FORMAT_SEGMENT_MAGIC)
        return false;
    SPOIL_ONE(rng, (char *)&header, fields, text);
    header.checksum = format_checksum(&header, offsetof(struct format_segment, checksum));
    medium_poke(medium, name, at, &header, sizeof header);
    medium_poke(medium, name, at + FORMAT_SEGMENT_COPY, &header, sizeof header);
    return true;
}

/* ---- items ---- */

struct place {
    uint32_t file, page, slot, slot_size;
    char bytes[PAGE_SIZE] __attribute__((aligned(8)));
};

static struct format_item *item_at(struct place *place)
{
    return (struct format_item *)place->bytes;
}

static uint32_t mix_of(const struct format_superblock *super, const struct place *place)
{
    return format_place_mix(super->seed, place->file, place->page, place->slot);
}

static bool is_item(const struct format_superblock *super, struct place *place)
{
    struct format_item *item = item_at(place);
    uint32_t length = format_item_length(item, place->slot_size);
    return length && item->database &&
           item->checksum == format_item_checksum(item, length, mix_of(super, place));
}

static void look_in_page(struct medium *medium, struct place *place, const char *name,
                         void (*visit)(void *arg, struct place *place), void *arg,
                         uint32_t size_class)
{
    struct format_superblock super = latest(medium);
    place->slot_size = format_class_size(size_class);
    for (place->slot = 0; place->slot < format_class_slots(size_class); place->slot++) {
        medium_peek(medium, name,
                    (uint64_t)place->page * PAGE_SIZE + place->slot * place->slot_size,
                    place->bytes, place->slot_size);
        if (is_item(&super, place))
            visit(arg, place);
    }
}

static void look_at_items(struct medium *medium, void (*visit)(void *arg, struct place *place),
                          void *arg)
{
    struct place place;
    struct format_segment header;
    char name[16];
    uint32_t partitions = latest(medium).partition_count;
    for (place.file = 0; place.file < partitions; place.file++) {
        file_of(place.file, name);
        uint32_t pages = (uint32_t)(medium_size(medium, name) / PAGE_SIZE);
        for (uint32_t first = 0; first < pages; first += SEGMENT_PAGES) {
            medium_peek(medium, name, (uint64_t)first * PAGE_SIZE, &header, sizeof header);
            if (header.magic != FORMAT_SEGMENT_MAGIC)
                continue;
            for (uint32_t page = first + 1; page < first + SEGMENT_PAGES; page++) {
                place.page = page;
                look_in_page(medium, &place, name, visit, arg, header.size_class);
            }
        }
    }
}

/* Any one of those that have a flag (0: that have none of these), or their place in the flags. */
struct choice {
    struct rng *rng;
    uint32_t flag, seen;
    struct place chosen;
};

static void choose(void *arg, struct place *place)
{
    struct choice *choice = arg;
    const uint32_t forms = FORMAT_LARGE | FORMAT_TREES | FORMAT_NODE | FORMAT_LONG_KEY;
    uint32_t flags = item_at(place)->flags;
    bool fits = choice->flag ? flags & choice->flag : !(flags & forms);
    if (fits && rng_below(choice->rng, ++choice->seen) == 0)
        choice->chosen = *place;
}

static bool choose_item(struct rng *rng, struct medium *medium, uint32_t flag, struct place *place)
{
    struct choice choice = {.rng = rng, .flag = flag};
    look_at_items(medium, choose, &choice);
    *place = choice.chosen;
    return choice.seen > 0;
}

static void write_item(struct medium *medium, struct place *place)
{
    struct format_superblock super = latest(medium);
    struct format_item *item = item_at(place);
    char name[16];
    uint32_t length = format_item_length(item, place->slot_size);
    if (length)
        item->checksum = format_item_checksum(item, length, mix_of(&super, place));
    medium_poke(medium, file_of(place->file, name),
                (uint64_t)place->page * PAGE_SIZE + place->slot * place->slot_size, place->bytes,
                place->slot_size);
}

/* A root's field, or one of its descriptors'. */
static void spoil_root(struct rng *rng, char *root, char text[160])
{
    static const struct field fields[] = {FIELD(format_root, length), FIELD(format_root, count),
                                          FIELD(format_root, depth)};
    static const struct field extents[] = {FIELD(format_extent, page), FIELD(format_extent, page),
                                           FIELD(format_extent, length)};
    struct format_root head;
    memcpy(&head, root, sizeof head);
    if (rng_chance(rng, 50) || head.count == 0)
        SPOIL_ONE(rng, root, fields, text);
    else
        SPOIL_ONE(rng, root + sizeof head + 16 * rng_below(rng, head.count), extents, text);
}

static void spoil_trees(struct rng *rng, char *payload, char text[160])
{
    static const struct field fields[] = {FIELD(format_trees, collection),
                                          FIELD(format_trees, home), FIELD(format_trees, count)};
    static const struct field trees[] = {FIELD(format_tree, count), FIELD(format_tree, root),
                                         FIELD(format_tree, height),
                                         FIELD(format_tree, has_overflow)};
    if (rng_chance(rng, 40))
        SPOIL_ONE(rng, payload, fields, text);
    else
        SPOIL_ONE(rng, payload + sizeof(struct format_trees), trees, text);
}

static void spoil_named(struct rng *rng, struct format_item *item, char text[160])
{
    static const struct field keys[] = {FIELD(format_long_key, hashes),
                                        FIELD(format_long_key, slot)};
    static const struct field outside[] = {FIELD(format_overflow_key, collection),
                                           FIELD(format_overflow_key, element),
                                           FIELD(format_overflow_key, slot)};
    char *key = (char *)format_key(item), *payload = (char *)format_payload(item);
    if (item->flags & FORMAT_TREES)
        spoil_trees(rng, payload, text);
    else if (item->flags & FORMAT_LARGE && rng_chance(rng, 70))
        spoil_root(rng, payload, text);
    else if (item->flags & FORMAT_LONG_KEY && rng_chance(rng, 50))
        spoil_root(rng, key + sizeof(struct format_long_key), text);
    else if (item->flags & FORMAT_LONG_KEY)
        SPOIL_ONE(rng, key, keys, text);
    else if (item->database == FORMAT_HIDDEN)
        SPOIL_ONE(rng, key, outside, text);
}

static bool spoil_item(struct rng *rng, struct medium *medium, char text[160])
{
    static const struct field fields[] = {FIELD(format_item, database), FIELD(format_item, key_len),
                                          FIELD(format_item, payload_len), FIELD(format_item, type),
                                          FIELD(format_item, flags)};
    static const uint8_t flags[] = {0, FORMAT_LARGE, FORMAT_LONG_KEY, FORMAT_TREES,
                                    FORMAT_HAS_EXPIRY};
    struct place place;
    if (!choose_item(rng, medium, flags[rng_below(rng, LENGTH_OF(flags))], &place))
        return false;
    struct format_item *item = item_at(&place);
    snprintf(text, 160, "item of flags %x in %u:%u:%u", item->flags, place.file, place.page,
             place.slot);
    if (rng_chance(rng, 10)) /* one above all commits has the scan refuse the journal */
        item->version = 0;
    else if (rng_chance(rng, 40))
        SPOIL_ONE(rng, place.bytes, fields, text);
    else
        spoil_named(rng, item, text);
    write_item(medium, &place);
    return true;
}

static bool spoil_home(struct rng *rng, struct medium *medium, char text[160])
{
    struct place place;
    struct format_trees head;
    uint32_t partitions = latest(medium).partition_count;
    if (!choose_item(rng, medium, FORMAT_TREES, &place))
        return false;
    char *payload = (char *)format_payload(item_at(&place));
    memcpy(&head, payload, sizeof head);
    head.home = partitions + rng_below(rng, FORMAT_PARTITION_MAX - partitions);
    memcpy(payload, &head, sizeof head);
    snprintf(text, 160, "home %u in %u:%u:%u", (uint32_t)head.home, place.file, place.page,
             place.slot);
    write_item(medium, &place);
    return true;
}

/* Its first descriptor is said to name a node; those behind it are taken out. */
static bool spoil_key_depth(struct rng *rng, struct medium *medium, char text[160])
{
    struct place place;
    struct format_root root;
    for (uint32_t tries = 0; tries < 32; tries++) {
        if (!choose_item(rng, medium, FORMAT_LONG_KEY, &place))
            return false;
        struct format_item *item = item_at(&place);
        char *at = (char *)format_key_root(item), *payload = (char *)format_payload(item);
        memcpy(&root, at, sizeof root);
        if (root.depth > 0 || root.count < 2)
            continue;
        uint32_t more = (root.count - 1) * (uint32_t)sizeof(struct format_extent);
        memmove(payload - more, payload, item->payload_len);
        item->key_len -= (uint16_t)more;
        root.depth = root.count = 1;
        memcpy(at, &root, sizeof root);
        snprintf(text, 160, "a long key's depth in %u:%u:%u", place.file, place.page, place.slot);
        write_item(medium, &place);
        return true;
    }
    return false;
}

/* ---- nodes of trees ---- */

static bool spoil_node(struct rng *rng, struct medium *medium, char text[160])
{
    static const struct field heads[] = {
        FIELD(format_node, collection), FIELD(format_node, level),
        FIELD(format_node, shared),     FIELD(format_node, count),
        FIELD(format_node, heap),       FIELD(format_node, garbage),
        FIELD(format_node, first),      FIELD(format_node, item.key_len)};
    static const struct field cells[] = {FIELD(format_cell, offset), FIELD(format_cell, hint)};
    static const struct field children[] = {
        FIELD(format_child, count),         FIELD(format_child, page),
        FIELD(format_child, page),          FIELD(format_child, separator),
        FIELD(format_child, separator_len), FIELD(format_child, head)};
    static const struct field entry[] = {{"entry.key_len", 0, 2}, {"entry.value_len", 2, 2}};
    struct place place;
    if (!choose_item(rng, medium, FORMAT_NODE, &place))
        return false;
    struct format_node *node = (struct format_node *)place.bytes;
    snprintf(text, 160, "node of level %u in %u:%u", node->level, place.file, place.page);
    uint32_t which = rng_below(rng, 3), any = rng_below(rng, node->count ? node->count : 1);
    if (which == 0)
        SPOIL_ONE(rng, place.bytes, heads, text);
    else if (node->level)
        SPOIL_ONE(rng, place.bytes + NODE_BEGIN + any * sizeof(struct format_child), children,
                  text);
    else if (which == 1)
        SPOIL_ONE(rng, place.bytes + NODE_BEGIN + (node->first + any) * 4, cells, text);
    else
        SPOIL_ONE(rng, place.bytes + get(place.bytes + NODE_BEGIN + (node->first + any) * 4, 2),
                  entry, text);
    write_item(medium, &place);
    return true;
}

/* ---- nodes of large values ---- */

static bool spoil_extents(struct rng *rng, struct medium *medium, char text[160])
{
    static const struct field fields[] = {FIELD(format_extent, page), FIELD(format_extent, page),
                                          FIELD(format_extent, length),
                                          FIELD(format_extent, checksum)};
    struct place place;
    struct format_root *root;
    char page[PAGE_SIZE];
    for (uint32_t tries = 0; tries < 8; tries++) {
        if (!choose_item(rng, medium, FORMAT_LARGE, &place))
            return false;
        root = (struct format_root *)(void *)format_payload(item_at(&place));
        struct format_root head;
        memcpy(&head, root, sizeof head);
        if (head.depth == 0)
            continue;
        char *at = (char *)root + sizeof head + rng_below(rng, head.count) * 16;
        struct format_extent node;
        memcpy(&node, at, sizeof node);
        medium_peek(medium, "extents", (uint64_t)node.page * PAGE_SIZE, page, sizeof page);
        snprintf(text, 160, "large node at %u", node.page);
        SPOIL_ONE(rng, page + rng_below(rng, FORMAT_NODE_FANOUT) * 16, fields, text);
        medium_poke(medium, "extents", (uint64_t)node.page * PAGE_SIZE, page, sizeof page);
        node.checksum = format_checksum(page, FORMAT_NODE_BYTES);
        memcpy(at, &node, sizeof node);
        write_item(medium, &place);
        return true;
    }
    return false;
}

/* ---- two that name one ---- */

static bool spoil_twin(struct rng *rng, struct medium *medium, char text[160])
{
    struct place one, other;
    uint32_t flag = rng_chance(rng, 50) ? FORMAT_LARGE : FORMAT_TREES;
    if (!choose_item(rng, medium, flag, &one) || !choose_item(rng, medium, flag, &other))
        return false;
    char *from = (char *)format_payload(item_at(&one)),
         *to = (char *)format_payload(item_at(&other));
    snprintf(text, 160, "twins of flag %x: %u:%u:%u and %u:%u:%u", flag, one.file, one.page,
             one.slot, other.file, other.page, other.slot);
    if (flag == FORMAT_TREES)
        memcpy(to, from, sizeof(struct format_trees) + sizeof(struct format_tree));
    else
        memcpy(to + sizeof(struct format_root), from + sizeof(struct format_root), 16);
    write_item(medium, &other);
    return true;
}

/* ---- the journal ---- */

struct history {
    uint64_t at[256]; /* where its groups are */
    uint32_t count;
};

static void find_history(struct medium *medium, struct history *history)
{
    struct format_superblock super = latest(medium);
    struct format_group group;
    uint64_t at = super.tail_position, sequence = super.tail_sequence;
    for (history->count = 0; history->count < LENGTH_OF(history->at);) {
        medium_peek(medium, "journal", at, &group, sizeof group);
        bool follows = group.magic == FORMAT_GROUP_MAGIC && group.seed == super.seed &&
                       group.sequence == sequence;
        if (!follows && at == 0)
            return;
        if (follows) {
            history->at[history->count++] = at;
            sequence++;
        }
        at = follows ? at + journal_padded(group.length) : 0;
        if (at >= super.journal_bytes)
            at = 0;
    }
}

/* The group's checksum, and so on: each has that of the one before. */
static void mend_chain(struct medium *medium, const struct history *history, uint32_t from,
                       char *bytes, uint64_t room)
{
    uint64_t checksum = 0;
    for (uint32_t i = from; i < history->count; i++) {
        struct format_group *group = (struct format_group *)bytes;
        medium_peek(medium, "journal", history->at[i], bytes, PAGE_SIZE);
        if (group->length < sizeof *group || group->length > room)
            return;
        medium_peek(medium, "journal", history->at[i], bytes, group->length);
        if (i > from)
            group->previous = checksum;
        group->checksum = checksum = journal_group_checksum(group, bytes + sizeof *group);
        medium_poke(medium, "journal", history->at[i], bytes, sizeof *group);
    }
}

/* Somewhere in the group's bytes: a record's or an operation's field, if `steps` leads there. */
static void spoil_group(struct rng *rng, char *bytes, char text[160])
{
    static const struct field heads[] = {FIELD(format_group, record_count),
                                         FIELD(format_group, length),
                                         FIELD(format_group, first_commit)};
    static const struct field records[] = {FIELD(format_record, length),
                                           FIELD(format_record, op_count)};
    static const struct field operations[] = {
        FIELD(format_operation, kind), FIELD(format_operation, file),
        FIELD(format_operation, length), FIELD(format_operation, page),
        FIELD(format_operation, slot)};
    static const struct field body[] = {{"body", 0, 2}, {"body", 2, 2},  {"body", 0, 4},
                                        {"body", 4, 4}, {"body", 16, 2}, {"body", 18, 2}};
    struct format_group *group = (struct format_group *)bytes;
    char *at = bytes + sizeof *group;
    for (uint32_t skip = rng_below(rng, group->record_count); skip > 0; skip--)
        at += get(at, 4);
    uint32_t which = rng_below(rng, 10);
    if (which == 0)
        SPOIL_ONE(rng, bytes, heads, text);
    else if (which <= 3)
        SPOIL_ONE(rng, at, records, text);
    else {
        char *operation = at + sizeof(struct format_record);
        for (uint32_t skip = rng_below(rng, (uint32_t)get(at + 4, 4)); skip > 0; skip--)
            operation += sizeof(struct format_operation) + ((get(operation + 2, 2) + 7) & ~7ull);
        snprintf(text + strlen(text), 160 - strlen(text), " operation %d", *operation);
        if (which <= 7 || get(operation + 2, 2) < 20)
            SPOIL_ONE(rng, operation, operations, text);
        else
            SPOIL_ONE(rng, operation + sizeof(struct format_operation), body, text);
    }
}

static bool spoil_journal(struct rng *rng, struct medium *medium, char text[160])
{
    struct history history;
    find_history(medium, &history);
    if (history.count == 0)
        return false;
    uint64_t room = medium_size(medium, "journal");
    char *bytes = calloc(1, room);
    uint32_t which = rng_below(rng, history.count);
    struct format_group group;
    medium_peek(medium, "journal", history.at[which], &group, sizeof group);
    medium_peek(medium, "journal", history.at[which], bytes, group.length);
    snprintf(text, 160, "group %u of %u", which, history.count);
    spoil_group(rng, bytes, text);
    medium_poke(medium, "journal", history.at[which], bytes, group.length);
    mend_chain(medium, &history, which, bytes, room - history.at[which]);
    free(bytes);
    return true;
}

/* The operation with this number in the group's bytes; or NULL, and `number` is what is left. */
static struct format_operation *find_operation(char *bytes, uint32_t *number)
{
    const struct format_group *group = (const void *)bytes;
    char *record = bytes + sizeof *group;
    for (uint32_t i = 0; i < group->record_count; i++) {
        char *at = record + sizeof(struct format_record);
        for (uint64_t left = get(record + 4, 4); left > 0; left--, (*number)--) {
            struct format_operation *operation = (struct format_operation *)at;
            if (*number == 0)
                return operation;
            at += sizeof *operation + ((operation->length + 7) & ~7u);
        }
        record += get(record, 4);
    }
    return NULL;
}

int spoil_operation(struct medium *medium, uint32_t number, enum spoil_operation field)
{
    struct history history;
    find_history(medium, &history);
    uint64_t room = medium_size(medium, "journal");
    char *bytes = calloc(1, room);
    int kind = -1;
    for (uint32_t i = 0; i < history.count && kind < 0; i++) {
        struct format_group group;
        medium_peek(medium, "journal", history.at[i], &group, sizeof group);
        medium_peek(medium, "journal", history.at[i], bytes, group.length);
        struct format_operation *operation = find_operation(bytes, &number);
        if (!operation)
            continue;
        kind = operation->kind;
        if (field == SPOIL_OPERATION_LENGTH)
            operation->length = UINT16_MAX - 7;
        else
            operation->slot = UINT8_MAX;
        medium_poke(medium, "journal", history.at[i], bytes, group.length);
        mend_chain(medium, &history, i, bytes, room - history.at[i]);
    }
    free(bytes);
    return kind;
}

/* ---- the index ---- */

static bool spoil_index(struct rng *rng, struct medium *medium, char text[160])
{
    uint64_t size = medium_size(medium, "index");
    struct format_superblock super = latest(medium);
    char *block = calloc(1, FORMAT_INDEX_BLOCK);
    struct format_index_block *head = (struct format_index_block *)block;
    if (size == 0) {
        free(block);
        return false;
    }
    medium_peek(medium, "index", 0, block, size < FORMAT_INDEX_BLOCK ? size : FORMAT_INDEX_BLOCK);
    uint64_t identity =
        XXH3_64bits_withSeed(head + 1, sizeof(struct format_index_head), super.seed);
    uint64_t blocks = (size + FORMAT_INDEX_BLOCK - 1) / FORMAT_INDEX_BLOCK;
    uint64_t at = rng_below(rng, (uint32_t)blocks) * (uint64_t)FORMAT_INDEX_BLOCK;
    uint64_t length = size - at < FORMAT_INDEX_BLOCK ? size - at : FORMAT_INDEX_BLOCK;
    medium_peek(medium, "index", at, block, length);
    uint32_t tries = 1 + rng_below(rng, 3);
    for (uint32_t i = 0; i < tries; i++) {
        uint32_t width = rng_chance(rng, 50) ? 4 : 8, offset;
        do
            offset = (uint32_t)sizeof *head + rng_below(rng, head->length / width) * width;
        while (get(block + offset, width) == 0 && rng_chance(rng, 90));
        const struct field field = {"index", offset, width};
        if (offset + width <= length)
            spoil_field(rng, block, &field, text);
    }
    head->checksum = XXH3_64bits_withSeed(block + 8, 8 + head->length, identity);
    medium_poke(medium, "index", at, block, length);
    free(block);
    return true;
}

bool spoil(struct rng *rng, struct medium *medium, enum spoil kind, char text[160])
{
    static bool (*const kinds[SPOILS])(struct rng *, struct medium *, char[160]) = {
        spoil_superblock, spoil_segment, spoil_item,    spoil_home,  spoil_key_depth,
        spoil_node,       spoil_extents, spoil_journal, spoil_index, spoil_twin};
    text[0] = 0;
    return kinds[kind](rng, medium, text);
}
