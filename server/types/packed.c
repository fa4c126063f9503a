#include "server/types/packed.h"

#include <assert.h>
#include <string.h>

static uint32_t length_size(size_t len)
{
    uint32_t size = 1;
    for (; len >= 0x80; len >>= 7)
        size++;
    return size;
}

size_t packed_size(size_t len)
{
    return len + 2 * length_size(len);
}

/* Reads the length at `from` in direction `step` (1 or -1), from at most `left` bytes. Returns its
 * size in bytes, 0 if it is not valid. */
static uint32_t read_length(const char *from, int step, uint32_t left, uint32_t *len)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < left && i < PACKED_LENGTH_MAX; i++) {
        uint8_t byte = (uint8_t)from[step * (int)i];
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *len = (uint32_t)value;
            return value <= UINT32_MAX ? i + 1 : 0;
        }
    }
    return 0;
}

static void write_length(char *to, int step, size_t len)
{
    for (; len >= 0x80; len >>= 7, to += step)
        *to = (char)(uint8_t)(len | 0x80);
    *to = (char)len;
}

/* Whether a complete entry begins at `at`. *end is the position after it. */
static bool is_entry(const struct packed *packed, uint32_t at, uint32_t *end)
{
    uint32_t len, mirrored, left = packed->len - at;
    uint32_t size = read_length(packed->bytes + at, 1, left, &len);
    if (size == 0 || size != length_size(len) || len > left || 2 * size > left - len)
        return false;
    *end = at + 2 * size + len;
    return read_length(packed->bytes + *end - 1, -1, size, &mirrored) == size && mirrored == len;
}

bool packed_open(struct packed *packed, const char *bytes, uint64_t len)
{
    if (len > PACKED_MAX)
        return false;
    *packed = (struct packed){.bytes = bytes, .len = (uint32_t)len};
    for (uint32_t at = 0; at < packed->len; packed->count++)
        if (!is_entry(packed, at, &at))
            return false;
    return true;
}

/* ---- walking ---- */

bool packed_next(const struct packed *packed, struct packed_entry *entry)
{
    if (entry->end == packed->len)
        return false;
    assert(entry->end < packed->len);
    uint32_t len, at = entry->end;
    uint32_t size = read_length(packed->bytes + at, 1, packed->len - at, &len);
    assert(size > 0);
    *entry = (struct packed_entry){
        .slice = {packed->bytes + at + size, len}, .at = at, .end = at + 2 * size + len};
    assert(entry->end <= packed->len);
    return true;
}

bool packed_prev(const struct packed *packed, struct packed_entry *entry)
{
    if (entry->at == 0)
        return false;
    assert(entry->at <= packed->len);
    uint32_t len, end = entry->at;
    uint32_t size = read_length(packed->bytes + end - 1, -1, end, &len);
    assert(size > 0 && 2 * size + len <= end);
    *entry = (struct packed_entry){
        .slice = {packed->bytes + end - size - len, len}, .at = end - 2 * size - len, .end = end};
    return true;
}

struct packed_entry packed_at(const struct packed *packed, uint32_t index)
{
    assert(index < packed->count);
    struct packed_entry entry = {.at = 0};
    if (index < packed->count / 2) {
        for (uint32_t i = 0; i <= index; i++)
            packed_next(packed, &entry);
    } else {
        entry = packed_end(packed);
        for (uint32_t i = packed->count; i > index; i--)
            packed_prev(packed, &entry);
    }
    return entry;
}

bool packed_find(const struct packed *packed, struct resp_slice bytes, uint32_t step,
                 struct packed_entry *entry)
{
    assert(packed->count % step == 0);
    *entry = (struct packed_entry){.at = 0};
    while (packed_next(packed, entry)) {
        if (entry->slice.len == bytes.len && memcmp(entry->slice.data, bytes.data, bytes.len) == 0)
            return true;
        for (uint32_t i = 1; i < step; i++)
            packed_next(packed, entry);
    }
    return false;
}

bool packed_keep(struct packed *packed, struct store_txn *txn)
{
    if (packed->is_kept || packed->len == 0)
        return true;
    char *copy = store_alloc(txn, packed->len);
    if (copy == NULL)
        return false;
    packed->bytes = memcpy(copy, packed->bytes, packed->len);
    packed->is_kept = true;
    return true;
}

/* ---- building ---- */

struct packed packed_empty(void)
{
    return (struct packed){.bytes = ""};
}

bool packed_own(struct packed *packed, struct store_txn *txn)
{
    if (packed->own != NULL)
        return true;
    packed->own = store_alloc(txn, PACKED_MAX);
    if (packed->own == NULL)
        return false;
    memcpy(packed->own, packed->bytes, packed->len);
    packed->bytes = packed->own;
    packed->is_kept = true;
    return true;
}

static uint32_t count_between(const struct packed *packed, uint32_t at, uint32_t end)
{
    uint32_t count = 0;
    struct packed_entry entry = {.end = at};
    for (; entry.end < end; count++)
        packed_next(packed, &entry);
    assert(entry.end == end);
    return count;
}

static char *write_entry(char *to, struct resp_slice entry)
{
    uint32_t size = length_size(entry.len);
    write_length(to, 1, entry.len);
    if (entry.len > 0)
        memcpy(to + size, entry.data, entry.len);
    to += entry.len + 2 * size;
    write_length(to - 1, -1, entry.len);
    return to;
}

bool packed_splice(struct packed *packed, uint32_t at, uint32_t end,
                   const struct resp_slice *entries, uint32_t count)
{
    assert(packed->own != NULL && at <= end && end <= packed->len);
    size_t len = packed->len - (end - at);
    for (uint32_t i = 0; i < count && len <= PACKED_MAX; i++)
        len += packed_size(entries[i].len);
    if (len > PACKED_MAX)
        return false;
    uint32_t removed = count_between(packed, at, end);
    uint32_t behind = packed->len - end;
    memmove(packed->own + len - behind, packed->own + end, behind);
    char *to = packed->own + at;
    for (uint32_t i = 0; i < count; i++)
        to = write_entry(to, entries[i]);
    assert(to == packed->own + len - behind);
    packed->len = (uint32_t)len;
    packed->count += count - removed;
    return true;
}

void packed_cut(struct packed *packed, uint32_t at, uint32_t end)
{
    bool fits = packed_splice(packed, at, end, NULL, 0);
    assert(fits);
    (void)fits;
}

uint32_t packed_read_length(const char *from, uint64_t left, uint32_t *len)
{
    uint32_t most = left < PACKED_LENGTH_MAX ? (uint32_t)left : PACKED_LENGTH_MAX;
    return read_length(from, 1, most, len);
}

uint32_t packed_write_length(char *to, uint32_t len)
{
    write_length(to, 1, len);
    return length_size(len);
}
