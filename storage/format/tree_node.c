#include "storage/format/tree_node.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define OUTSIDE 0x8000u /* in the key length of a leaf's entry */
#define LOOSE 0x8000u   /* in the separator length of a child */
#define LENGTH 0x7fffu
#define ENTRY_BYTES 48u /* bytes read of most entries */
#define FREE_BEFORE 16u /* free cells left in front, in a leaf made by splitting another one */

struct entry_head {
    uint16_t key_len, value_len;
};

static char *bytes_of(struct format_node *node)
{
    return (char *)node;
}

static uint32_t cell_size(const struct format_node *node)
{
    return node->level ? (uint32_t)sizeof(struct format_child)
                       : (uint32_t)sizeof(struct format_cell);
}

/* Where the cells (a leaf's, or an inner node's children) end. */
static uint32_t cells_end(const struct format_node *node)
{
    return NODE_BEGIN + (node->first + node->count) * cell_size(node);
}

static struct format_cell *cells(const struct format_node *node)
{
    return (struct format_cell *)((char *)node + NODE_BEGIN) + node->first;
}

static struct format_child *children(const struct format_node *node)
{
    return (struct format_child *)((char *)node + NODE_BEGIN);
}

void node_init(struct format_node *node, uint64_t collection, uint32_t level)
{
    memset(node, 0, PAGE_SIZE);
    node->item =
        (struct format_item){.database = FORMAT_HIDDEN,
                             .key_len = sizeof node->collection,
                             .payload_len = PAGE_SIZE - sizeof node->item - sizeof node->collection,
                             .flags = FORMAT_NODE};
    node->collection = collection;
    node->level = (uint8_t)level;
    node->heap = PAGE_SIZE;
}

uint32_t node_used(const struct format_node *node)
{
    return node->count * cell_size(node) + PAGE_SIZE - node->heap - node->garbage;
}

/* ---- validation ---- */

/* *size: the cell's bytes in the heap. */
static bool cell_is_sound(const struct format_node *node, uint32_t place, uint32_t *size)
{
    const struct format_cell *cell = &cells(node)[place];
    struct entry_head head;
    if (cell->offset < node->heap || cell->offset > PAGE_SIZE - sizeof head)
        return false;
    memcpy(&head, (const char *)node + cell->offset, sizeof head);
    uint32_t key_len = head.key_len & LENGTH;
    *size = (uint32_t)sizeof head + key_len + head.value_len;
    return key_len >= node->shared && key_len <= STORE_TREE_KEY_MAX &&
           *size + sizeof *cell <= NODE_ENTRY_MAX && *size <= PAGE_SIZE - cell->offset &&
           (!(head.key_len & OUTSIDE) || head.value_len == sizeof(struct format_overflow));
}

static bool child_is_sound(const struct format_node *node, uint32_t place, uint32_t *size)
{
    const struct format_child *child = &children(node)[place];
    *size = child->separator_len & LENGTH;
    return child->page % SEGMENT_PAGES != 0 && *size <= STORE_TREE_KEY_MAX &&
           (*size == 0 ||
            (child->separator >= node->heap && child->separator <= PAGE_SIZE - *size));
}

bool node_is_sound(const struct format_node *node)
{
    uint32_t used = 0, size = 0;
    if (node->item.key_len != sizeof node->collection || node->level >= STORE_TREE_HEIGHT_MAX ||
        (node->level > 0 && node->first > 0) || node->heap > PAGE_SIZE ||
        cells_end(node) > node->heap)
        return false;
    for (uint32_t i = 0; i < node->count; i++, used += size)
        if (!(node->level ? child_is_sound(node, i, &size) : cell_is_sound(node, i, &size)))
            return false;
    return used + node->garbage == PAGE_SIZE - node->heap && node_used(node) <= NODE_ROOM;
}

int node_compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

/* ---- the heap ---- */

static uint32_t entry_bytes(const struct format_node *node, uint32_t offset)
{
    struct entry_head head;
    memcpy(&head, (const char *)node + offset, sizeof head);
    return (uint32_t)sizeof head + (head.key_len & LENGTH) + head.value_len;
}

/* Bytes that cell number `place` has in the heap; 0: none. */
static uint32_t heap_bytes(const struct format_node *node, uint32_t place)
{
    if (node->level)
        return children(node)[place].separator_len & LENGTH;
    return entry_bytes(node, cells(node)[place].offset);
}

static uint16_t *heap_offset(const struct format_node *node, uint32_t place)
{
    return node->level ? &children(node)[place].separator : &cells(node)[place].offset;
}

static void compact(struct format_node *node)
{
    char old[PAGE_SIZE];
    memcpy(old, node, PAGE_SIZE);
    uint32_t heap = PAGE_SIZE;
    for (uint32_t i = 0; i < node->count; i++) {
        uint32_t size = heap_bytes((const struct format_node *)old, i);
        uint16_t *offset = heap_offset(node, i);
        heap -= size;
        memcpy(bytes_of(node) + heap, old + *offset, size);
        *offset = (uint16_t)heap;
    }
    node->heap = (uint16_t)heap;
    node->garbage = 0;
    if (node->first) {
        memmove(bytes_of(node) + NODE_BEGIN, cells(node), node->count * cell_size(node));
        node->first = 0;
    }
}

/* Allocates room for one more cell and `size` bytes; returns where the bytes begin. */
static uint32_t take_heap(struct format_node *node, uint32_t size, uint32_t cell)
{
    if (node->heap < cells_end(node) + cell + size)
        compact(node);
    assert(node->heap >= cells_end(node) + cell + size);
    node->heap = (uint16_t)(node->heap - size);
    return node->heap;
}

static void give_heap(struct format_node *node, uint32_t place)
{
    uint32_t size = heap_bytes(node, place);
    if (size && *heap_offset(node, place) == node->heap)
        node->heap = (uint16_t)(node->heap + size);
    else
        node->garbage = (uint16_t)(node->garbage + size);
}

/* Shifts the cells from `place` on by one. */
static void open_cell(struct format_node *node, uint32_t place)
{
    uint32_t size = cell_size(node);
    char *at = bytes_of(node) + NODE_BEGIN + place * size;
    memmove(at + size, at, (node->count - place) * size);
    node->count++;
}

static void close_cell(struct format_node *node, uint32_t place)
{
    uint32_t size = cell_size(node);
    char *at = bytes_of(node) + NODE_BEGIN + place * size;
    node->count--;
    memmove(at, at + size, (node->count - place) * size);
}

void node_truncate(struct format_node *node, uint32_t first)
{
    while (node->count > first) {
        give_heap(node, node->count - 1u);
        node->count--;
    }
}

/* ---- plans ---- */

#define HEAD_AT offsetof(struct format_node, level)

/* Adds a range; returns where its bytes go, if `bytes` is NULL. */
static char *plan_range(struct node_plan *plan, uint32_t offset, uint32_t length, const char *bytes)
{
    struct format_range range = {(uint16_t)offset, (uint16_t)length};
    char *to = plan->bytes + plan->length + sizeof range;
    plan->length += (uint32_t)sizeof range + length;
    assert(plan->length <= NODE_PLAN_BYTES);
    memcpy(to - sizeof range, &range, sizeof range);
    if (bytes)
        memcpy(to, bytes, length);
    return to;
}

void node_patch(struct format_node *node, const char *ranges, uint32_t length)
{
    for (const char *end = ranges + length; ranges < end;) {
        struct format_range range;
        memcpy(&range, ranges, sizeof range);
        memcpy(bytes_of(node) + range.offset, ranges + sizeof range, range.length);
        ranges += sizeof range + range.length;
    }
}

/* ---- leaves ---- */

void leaf_get(const struct format_node *node, uint32_t place, struct node_entry *entry)
{
    assert(place < node->count && node->level == 0);
    const char *at = (const char *)node + cells(node)[place].offset;
    struct entry_head head;
    memcpy(&head, at, sizeof head);
    entry->overflow = (head.key_len & OUTSIDE) != 0;
    entry->key_len = head.key_len & LENGTH;
    entry->value_len = head.value_len;
    entry->key = at + sizeof head;
    entry->value = entry->key + entry->key_len;
}

uint32_t leaf_entry_size(const struct node_entry *entry)
{
    return (uint32_t)(sizeof(struct format_cell) + sizeof(struct entry_head)) + entry->key_len +
           entry->value_len;
}

uint32_t leaf_size_at(const struct format_node *node, uint32_t place)
{
    return (uint32_t)sizeof(struct format_cell) + entry_bytes(node, cells(node)[place].offset);
}

/* ---- shared prefix of the keys ---- */

/* The two bytes after the shared prefix: ordered like the keys, except for ties. */
static uint16_t hint_of(const struct format_node *node, const char *key, size_t len)
{
    const unsigned char *at = (const unsigned char *)key + node->shared;
    uint32_t high = len > node->shared ? at[0] : 0, low = len > node->shared + 1u ? at[1] : 0;
    return (uint16_t)(high << 8 | low);
}

/* Compares the key with the prefix that all keys of the leaf share, as found in the entry at
 * `place`. */
static int compare_shared(const struct format_node *node, uint32_t place, const char *key,
                          size_t len)
{
    struct node_entry entry;
    leaf_get(node, place, &entry);
    return node_compare(key, len < node->shared ? len : node->shared, entry.key, node->shared);
}

static void set_shared(struct format_node *node, uint32_t shared)
{
    node->shared = (uint8_t)shared;
    for (uint32_t i = 0; i < node->count; i++) {
        struct node_entry entry;
        leaf_get(node, i, &entry);
        cells(node)[i].hint = hint_of(node, entry.key, entry.key_len);
    }
}

static uint32_t count_shared(const char *a, uint32_t a_len, const char *b, uint32_t b_len)
{
    uint32_t most = a_len < b_len ? a_len : b_len, same = 0;
    while (same < most && same < UINT8_MAX && a[same] == b[same])
        same++;
    return same;
}

void leaf_rehash(struct format_node *node)
{
    struct node_entry first, last;
    if (node->count < 2)
        return;
    leaf_get(node, 0, &first);
    leaf_get(node, node->count - 1u, &last);
    set_shared(node, count_shared(first.key, first.key_len, last.key, last.key_len));
}

/* Shortens the shared prefix so that the key may be inserted. */
static void share_with(struct format_node *node, const struct node_entry *entry)
{
    struct node_entry other;
    uint32_t shared = 0;
    if (node->count) {
        leaf_get(node, 0, &other);
        shared = count_shared(entry->key, entry->key_len, other.key, other.key_len);
    }
    if (shared < node->shared)
        set_shared(node, shared);
}

/* ---- searching ---- */

static uint32_t seek_hint(const struct format_node *node, uint16_t hint)
{
    const struct format_cell *cell = cells(node);
    uint32_t low = 0, high = node->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        bool less = cell[middle].hint < hint;
        low = less ? middle + 1 : low;
        high = less ? high : middle;
    }
    return low;
}

uint32_t leaf_guess(const struct format_node *node, const char *key, size_t len)
{
    uint32_t place = seek_hint(node, hint_of(node, key, len));
    return place < node->count || place == 0 ? place : place - 1;
}

void leaf_prefetch(const struct format_node *node, uint32_t place)
{
    const char *entry = (const char *)node + cells(node)[place].offset;
    __builtin_prefetch(entry);
    __builtin_prefetch(entry + ENTRY_BYTES);
    __builtin_prefetch((const char *)node + node->heap);
}

static uint32_t seek_among(const struct format_node *node, uint32_t low, uint32_t high,
                           const char *key, size_t len)
{
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        struct node_entry entry;
        leaf_get(node, middle, &entry);
        if (node_compare(entry.key, entry.key_len, key, len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t leaf_seek(const struct format_node *node, const char *key, size_t len)
{
    uint16_t hint = hint_of(node, key, len);
    uint32_t low = seek_hint(node, hint), high = low;
    if (node->count == 0)
        return 0;
    int order = compare_shared(node, low < node->count ? low : low - 1, key, len);
    if (order != 0)
        return order < 0 ? 0 : node->count;
    while (high < node->count && cells(node)[high].hint == hint)
        high++;
    return seek_among(node, low, high, key, len);
}

/* The node's own fields, after the change. */
static void plan_head(struct node_plan *plan, const struct format_node *head)
{
    plan->length = 0;
    plan_range(plan, HEAD_AT, NODE_BEGIN - HEAD_AT, (const char *)head + HEAD_AT);
}

/* Whether to shift the cells before the place rather than those after it: there are fewer of
 * them. */
static bool moves_front(const struct format_node *node, uint32_t place)
{
    return place < node->count - place;
}

/* Whether a new cell gets its room before the existing ones. */
static bool grows_backwards(const struct format_node *node, uint32_t place)
{
    return node->first && (moves_front(node, place) || place == 0);
}

static bool is_in_order(const struct format_node *node, uint32_t place,
                        const struct node_entry *entry)
{
    uint32_t saved = grows_backwards(node, place) ? (uint32_t)sizeof(struct format_cell) : 0;
    if (node->heap < cells_end(node) + leaf_entry_size(entry) - saved)
        return false;
    if (SIZES_ARE_TINY && node_used(node) + leaf_entry_size(entry) > NODE_ROOM)
        return false; /* in other builds the end of the page gives the same limit */
    if (node->shared == 0)
        return true;
    return node->count && compare_shared(node, place < node->count ? place : place - 1, entry->key,
                                         entry->key_len) == 0;
}

/* Plans the new cell, and the cells that shift. */
static void plan_cell(struct node_plan *plan, const struct format_node *node, uint32_t place,
                      struct format_cell cell)
{
    bool backwards = grows_backwards(node, place);
    uint32_t begin = backwards ? node->first - 1u : node->first + place;
    uint32_t before = backwards ? place : 0, behind = backwards ? 0 : node->count - place;
    char *to = plan_range(plan, (uint32_t)(NODE_BEGIN + begin * sizeof cell),
                          (uint32_t)((before + 1 + behind) * sizeof cell), NULL);
    memcpy(to, cells(node), before * sizeof cell);
    memcpy(to + before * sizeof cell, &cell, sizeof cell);
    memcpy(to + (before + 1) * sizeof cell, cells(node) + place, behind * sizeof cell);
}

bool leaf_plan_insert(const struct format_node *node, uint32_t place,
                      const struct node_entry *entry, struct node_plan *plan)
{
    assert(place <= node->count && node->level == 0);
    if (!is_in_order(node, place, entry))
        return false;
    uint32_t size = leaf_entry_size(entry) - (uint32_t)sizeof(struct format_cell);
    struct format_cell cell = {(uint16_t)(node->heap - size),
                               hint_of(node, entry->key, entry->key_len)};
    struct format_node fresh = *node;
    fresh.count++;
    fresh.heap = cell.offset;
    fresh.first = (uint16_t)(fresh.first - grows_backwards(node, place));
    plan_head(plan, &fresh);
    plan_cell(plan, node, place, cell);
    char *to = plan_range(plan, cell.offset, size, NULL);
    struct entry_head head = {(uint16_t)(entry->key_len | (entry->overflow ? OUTSIDE : 0)),
                              (uint16_t)entry->value_len};
    memcpy(to, &head, sizeof head);
    if (entry->key_len)
        memcpy(to + sizeof head, entry->key, entry->key_len);
    if (entry->value_len)
        memcpy(to + sizeof head + entry->key_len, entry->value, entry->value_len);
    return true;
}

void leaf_insert(struct format_node *node, uint32_t place, const struct node_entry *entry)
{
    struct node_plan plan;
    bool planned = leaf_plan_insert(node, place, entry, &plan);
    if (!planned) {
        share_with(node, entry);
        if (node->heap < cells_end(node) + leaf_entry_size(entry))
            compact(node);
        planned = leaf_plan_insert(node, place, entry, &plan);
    }
    assert(planned);
    node_patch(node, plan.bytes, plan.length);
}

void leaf_plan_remove(const struct format_node *node, uint32_t place, struct node_plan *plan)
{
    assert(place < node->count && node->level == 0);
    const struct format_cell *cell = cells(node);
    uint32_t size = heap_bytes(node, place), behind = node->count - place - 1;
    struct format_node fresh = *node;
    bool is_lowest = cell[place].offset == node->heap, front = place < behind;
    fresh.count--;
    fresh.heap = (uint16_t)(fresh.heap + (is_lowest ? size : 0));
    fresh.garbage = (uint16_t)(fresh.garbage + (is_lowest ? 0 : size));
    fresh.first = (uint16_t)(fresh.first + front);
    plan_head(plan, &fresh);
    uint32_t begin = NODE_BEGIN + (node->first + (front ? 1 : place)) * (uint32_t)sizeof *cell;
    uint32_t moved = front ? place : behind;
    if (moved)
        plan_range(plan, begin, moved * (uint32_t)sizeof *cell,
                   (const char *)(front ? cell : cell + place + 1));
}

void leaf_remove(struct format_node *node, uint32_t place)
{
    struct node_plan plan;
    leaf_plan_remove(node, place, &plan);
    node_patch(node, plan.bytes, plan.length);
}

void leaf_plan_overwrite(const struct format_node *node, uint32_t place, const char *value,
                         struct node_plan *plan)
{
    struct node_entry entry;
    leaf_get(node, place, &entry);
    plan->length = 0;
    if (entry.value_len)
        plan_range(plan, (uint32_t)(entry.value - (const char *)node), entry.value_len, value);
}

void leaf_grow_backwards(struct format_node *node, const struct node_entry *entry)
{
    assert(node->count == 0);
    node->first = (uint16_t)(NODE_ROOM / leaf_entry_size(entry));
}

void leaf_append(struct format_node *to, const struct format_node *from, uint32_t first,
                 uint32_t end)
{
    if (to->count == 0)
        to->first = FREE_BEFORE;
    for (uint32_t i = first; i < end; i++) {
        struct node_entry entry;
        leaf_get(from, i, &entry);
        leaf_insert(to, to->count, &entry);
    }
    leaf_rehash(to);
}

uint32_t leaf_middle(const struct format_node *node, uint32_t place, uint32_t size, bool *is_left)
{
    uint32_t half = (node_used(node) + size) / 2, passed = 0;
    for (uint32_t i = 0;; i++) {
        *is_left = place < i;
        if (i == place) {
            if (passed && passed + size > half)
                return i;
            passed += size;
            *is_left = true;
        }
        uint32_t next = leaf_size_at(node, i);
        if (passed && passed + next > half)
            return i;
        passed += next;
    }
}

void leaf_divide(const struct format_node *left, const struct format_node *right,
                 struct node_child *child)
{
    struct node_entry before, after;
    leaf_get(left, left->count - 1u, &before);
    leaf_get(right, 0, &after);
    uint32_t same = 0;
    while (same < before.key_len && same < after.key_len && before.key[same] == after.key[same])
        same++;
    child->separator = after.key;
    child->loose = same == after.key_len;
    child->separator_len = child->loose ? same : same + 1;
}

/* ---- inner nodes ---- */

void inner_get(const struct format_node *node, uint32_t place, struct node_child *child)
{
    assert(place < node->count && node->level > 0);
    const struct format_child *cell = &children(node)[place];
    *child = (struct node_child){.page = cell->page,
                                 .count = cell->count,
                                 .separator = (const char *)node + cell->separator,
                                 .separator_len = cell->separator_len & LENGTH,
                                 .loose = (cell->separator_len & LOOSE) != 0};
}

uint32_t inner_page(const struct format_node *node, uint32_t place)
{
    return children(node)[place].page;
}

uint32_t inner_count(const struct format_node *node, uint32_t place)
{
    return children(node)[place].count;
}

void inner_add_count(struct format_node *node, uint32_t place, int32_t change)
{
    children(node)[place].count += (uint32_t)change;
}

void inner_patch_count(const struct format_node *node, uint32_t place, int32_t change,
                       char patch[NODE_COUNT_PATCH])
{
    const struct format_child *cell = &children(node)[place];
    uint32_t count = cell->count + (uint32_t)change;
    struct format_range range = {(uint16_t)((const char *)&cell->count - (const char *)node),
                                 sizeof count};
    static_assert(sizeof range + sizeof count == NODE_COUNT_PATCH, "one range, and its bytes");
    memcpy(patch, &range, sizeof range);
    memcpy(patch + sizeof range, &count, sizeof count);
}

void inner_set_page(struct format_node *node, uint32_t place, uint32_t page)
{
    children(node)[place].page = page;
}

uint32_t inner_child_size(const struct node_child *child)
{
    return (uint32_t)sizeof(struct format_child) + child->separator_len;
}

/* The first four bytes of a key as a number, ordered like the keys, except for ties. */
static uint32_t head_of(const char *key, size_t len)
{
    uint32_t head = 0;
    if (len >= sizeof head)
        memcpy(&head, key, sizeof head);
    else if (len > 0)
        memcpy(&head, key, len);
    return __builtin_bswap32(head);
}

/* Whether all entries before the child are less than the key. */
static bool begins_before(const struct format_node *node, const struct format_child *cell,
                          const char *key, size_t len)
{
    int order =
        node_compare((const char *)node + cell->separator, cell->separator_len & LENGTH, key, len);
    return order < 0 || (order == 0 && !(cell->separator_len & LOOSE));
}

uint32_t inner_seek(const struct format_node *node, const char *key, size_t len)
{
    const struct format_child *cell = children(node);
    uint32_t low = 1, high = node->count, head = head_of(key, len);
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        bool before = cell[middle].head < head;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    for (high = low; high < node->count && cell[high].head == head;)
        high++;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (begins_before(node, &cell[middle], key, len))
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

uint64_t inner_rank(const struct format_node *node, uint32_t place)
{
    const struct format_child *cell = children(node);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < place; i++)
        sum += cell[i].count;
    return sum;
}

uint32_t inner_seek_rank(const struct format_node *node, uint64_t total, uint64_t *rank)
{
    const struct format_child *cell = children(node);
    uint32_t i = 0;
    if (*rank < total / 2) {
        while (i + 1 < node->count && *rank >= cell[i].count)
            *rank -= cell[i++].count;
        return i;
    }
    uint64_t begin = total; /* of the child */
    i = node->count;
    do
        begin -= cell[--i].count;
    while (i > 0 && *rank < begin);
    *rank -= begin;
    return i;
}

void inner_insert(struct format_node *node, uint32_t place, const struct node_child *child)
{
    assert(place <= node->count && node->level > 0);
    uint32_t offset = take_heap(node, child->separator_len, sizeof(struct format_child));
    if (child->separator_len)
        memcpy(bytes_of(node) + offset, child->separator, child->separator_len);
    open_cell(node, place);
    children(node)[place] = (struct format_child){
        .page = child->page,
        .count = child->count,
        .separator = (uint16_t)offset,
        .separator_len = (uint16_t)(child->separator_len | (child->loose ? LOOSE : 0)),
        .head = head_of(child->separator, child->separator_len)};
}

void inner_remove(struct format_node *node, uint32_t place)
{
    assert(place < node->count && node->level > 0);
    give_heap(node, place);
    close_cell(node, place);
}

void inner_append(struct format_node *to, const struct format_node *from, uint32_t first,
                  uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        struct node_child child;
        inner_get(from, i, &child);
        inner_insert(to, to->count, &child);
    }
}

uint32_t inner_middle(const struct format_node *node)
{
    uint32_t half = node_used(node) / 2, passed = 0, i = 0;
    while (i + 1 < node->count && (passed < half || i == 0)) {
        struct node_child child;
        inner_get(node, i++, &child);
        passed += inner_child_size(&child);
    }
    return i;
}
