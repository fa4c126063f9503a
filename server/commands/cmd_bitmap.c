#include "server/commands/cmd_bitmap.h"

#include <assert.h>
#include <string.h>

#include "server/commands/cmd_string.h"
#include "server/commands/commands.h"
#include "server/types/string_build.h"
#include "server/types/string_walk.h"
#include "server/exec/keyspace.h"
#include "server/exec/long_run.h"
#include "server/pubsub/notify.h"
#include "server/core/call.h"

/* ---- words ---- */

#define WORD_BYTES sizeof(uint64_t)

static uint64_t load_word(const char *from)
{
    uint64_t word;
    memcpy(&word, from, WORD_BYTES);
    return word;
}

static void store_word(char *to, uint64_t word)
{
    memcpy(to, &word, WORD_BYTES);
}

/* The number of bits set in each byte of a word, in that byte. */
static uint64_t byte_counts(uint64_t word)
{
    word -= word >> 1 & 0x5555555555555555;
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
    return (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
}

static uint64_t sum_of_bytes(uint64_t word)
{
    uint64_t pairs = (word & 0x00ff00ff00ff00ff) + (word >> 8 & 0x00ff00ff00ff00ff);
    return pairs * 0x0001000100010001 >> 48;
}

static uint64_t count_bits(const char *bytes, size_t len)
{
    enum { WORDS = 31 }; /* a byte holds this many counts of 8 */
    uint64_t total = 0;
    size_t i = 0;
    while (len - i >= WORD_BYTES) {
        size_t words = (len - i) / WORD_BYTES;
        uint64_t counts = 0;
        for (size_t n = words < WORDS ? words : WORDS; n > 0; n--, i += WORD_BYTES)
            counts += byte_counts(load_word(bytes + i));
        total += sum_of_bytes(counts);
    }
    for (; i < len; i++)
        total += byte_counts((uint8_t)bytes[i]);
    return total;
}

/* ---- single bits ---- */

bool bitmap_offset(struct call *call, struct resp_slice arg, unsigned field_bits, uint64_t *offset)
{
    int64_t value;
    bool fields = field_bits > 0 && arg.len > 0 && arg.data[0] == '#';
    int64_t unit = fields ? field_bits : 1;
    if (resp_read_int64(arg.data + fields, arg.len - fields, &value) && value >= 0 &&
        value <= INT64_MAX / unit && (uint64_t)(value * unit) / 8 < string_limit(call)) {
        *offset = (uint64_t)(value * unit);
        return true;
    }
    resp_error(call->reply, "ERR bit offset is not an integer or out of range");
    return false;
}

/* The byte of a string at `position`; 0 beyond its end. */
static enum store_result read_byte(struct call *call, const struct string_value *value,
                                   uint64_t position, uint8_t *byte)
{
    const char *bytes = NULL;
    *byte = 0;
    if (position >= value->length)
        return STORE_OK;
    enum store_result result = string_view(call, &value->item, position, 1, &bytes);
    if (result == STORE_OK)
        *byte = (uint8_t)*bytes;
    return result;
}

enum store_result cmd_getbit(struct call *call)
{
    struct string_value value;
    uint64_t offset;
    uint8_t byte;
    if (!bitmap_offset(call, call->argv[2], 0, &offset))
        return STORE_OK;
    enum store_result result = string_find(call, call->keys, &value);
    if (result == STORE_OK)
        result = read_byte(call, &value, offset / 8, &byte);
    if (result == STORE_OK)
        resp_integer(call->reply, byte >> (7 - offset % 8) & 1);
    return result;
}

static enum store_result write_bit(struct call *call, const struct string_value *value,
                                   uint64_t offset, bool on)
{
    uint8_t old;
    enum store_result result = read_byte(call, value, offset / 8, &old);
    if (result != STORE_OK)
        return result;
    uint8_t mask = (uint8_t)(1u << (7 - offset % 8));
    resp_integer(call->reply, (old & mask) != 0);
    if (offset / 8 < value->length && ((old & mask) != 0) == on)
        return STORE_OK;
    char *byte = store_alloc(call->txn, 1);
    if (byte == NULL)
        return STORE_NO_MEMORY;
    *byte = (char)(on ? old | mask : old & ~mask);
    string_notify(call, value, "setbit");
    return string_write(call, call->keys, value, offset / 8, byte, 1);
}

enum store_result cmd_setbit(struct call *call)
{
    struct string_value value;
    uint64_t offset;
    int64_t bit;
    if (!bitmap_offset(call, call->argv[2], 0, &offset))
        return STORE_OK;
    if (!resp_read_int64(call->argv[3].data, call->argv[3].len, &bit) || bit < 0 || bit > 1) {
        resp_error(call->reply, "ERR bit is not an integer or out of range");
        return STORE_OK;
    }
    enum store_result result = string_find(call, call->keys, &value);
    if (result != STORE_OK)
        return result;
    return write_bit(call, &value, offset, bit == 1);
}

/* ---- ranges of bits ---- */

/* [start [end [BYTE|BIT]]] as given, before the string's length is known; afterwards positions in
 * it. */
struct bit_range {
    int64_t first, last;
    bool by_bit;
};

/* Missing arguments keep the defaults set before. */
static bool read_position(struct call *call, size_t at, int64_t *position)
{
    return at >= call->argc || call_int64(call, call->argv[at], position);
}

static bool read_unit(struct call *call, size_t at, bool *by_bit)
{
    if (at >= call->argc)
        return true;
    *by_bit = slice_is(call->argv[at], "BIT");
    return *by_bit || slice_is(call->argv[at], "BYTE") || call_syntax_error(call);
}

/* A part of a range of bits: whole bytes, of which the first and the last may be masked. */
struct bit_span {
    const char *bytes; /* NULL: zeros */
    uint64_t len;
    uint64_t first_bit; /* position in the string of the first bit of its first byte */
    uint8_t skipped_head, skipped_tail; /* masks of the bits outside the range */
};

/* The rest of the range in this string, in bits. False: nothing is left. */
static bool cut_range(const struct string_value *value, struct bit_range *range)
{
    int64_t unit = range->by_bit ? 1 : 8;
    if (!string_range(&range->first, &range->last, (int64_t)value->length * (8 / unit)))
        return false;
    assert(range->first >= 0 && range->first <= range->last);
    *range = (struct bit_range){range->first * unit, range->last * unit + unit - 1, true};
    return true;
}

static struct string_walk *walk_range(struct call *call, const struct string_value *value,
                                      const struct bit_range *range, struct string_walk *here)
{
    uint64_t first = (uint64_t)range->first / 8, last = (uint64_t)range->last / 8;
    assert(first <= last && last < value->length);
    return string_walk(call, &value->item, first, last - first + 1, here);
}

/* Results are those of string_walk_next(). */
static enum store_result next_span(struct call *call, const struct string_value *value,
                                   const struct bit_range *range, struct string_walk *walk,
                                   struct bit_span *span)
{
    uint64_t from = walk->at, first = (uint64_t)range->first, last = (uint64_t)range->last;
    struct store_piece piece;
    enum store_result result = string_walk_next(call, walk, &value->item, &piece);
    if (result != STORE_OK)
        return result;
    *span = (struct bit_span){.bytes = piece.bytes, .len = piece.length, .first_bit = from * 8};
    if (from == first / 8)
        span->skipped_head = (uint8_t) ~(0xff >> first % 8);
    if (walk->at == last / 8 + 1)
        span->skipped_tail = (uint8_t)(0x7f >> last % 8);
    return STORE_OK;
}

static uint64_t count_span(const struct bit_span *span)
{
    if (span->bytes == NULL)
        return 0;
    assert(span->len > 0); /* its last byte is masked */
    uint8_t first = (uint8_t)span->bytes[0], last = (uint8_t)span->bytes[span->len - 1];
    return count_bits(span->bytes, span->len) - byte_counts(first & span->skipped_head) -
           byte_counts(last & span->skipped_tail);
}

static enum store_result count_range(struct call *call, const struct string_value *value,
                                     struct bit_range range, uint64_t *count)
{
    struct string_walk here, *walk;
    struct bit_span span;
    enum store_result result;
    if (!cut_range(value, &range))
        return STORE_OK;
    if ((walk = walk_range(call, value, &range, &here)) == NULL)
        return STORE_NO_MEMORY;
    while ((result = next_span(call, value, &range, walk, &span)) == STORE_OK)
        walk->sum += count_span(&span);
    *count = walk->sum;
    return result == STORE_ABSENT ? STORE_OK : result;
}

enum store_result cmd_bitcount(struct call *call)
{
    struct string_value value;
    struct bit_range range = {.first = 0, .last = -1};
    uint64_t count = 0;
    /* Here, unlike in BITPOS, a start needs an end. */
    if (call->argc == 3 || call->argc > 5) {
        call_syntax_error(call);
        return STORE_OK;
    }
    if (!read_position(call, 2, &range.first) || !read_position(call, 3, &range.last) ||
        !read_unit(call, 4, &range.by_bit))
        return STORE_OK;
    enum store_result result = string_find(call, call->keys, &value);
    if (result == STORE_OK && !string_range_is_backwards(range.first, range.last))
        result = count_range(call, &value, range, &count);
    if (result == STORE_OK)
        resp_integer(call->reply, (int64_t)count);
    return result;
}

/* Index of the first byte in [from, len) other than `skipped`; len if there is none. */
static size_t find_other_byte(const char *bytes, size_t from, size_t len, uint8_t skipped)
{
    assert(from <= len); /* or the subtraction below would wrap */
    uint64_t skipped_word = skipped * UINT64_C(0x0101010101010101);
    while (len - from >= WORD_BYTES && load_word(bytes + from) == skipped_word)
        from += WORD_BYTES;
    while (from < len && (uint8_t)bytes[from] == skipped)
        from++;
    return from;
}

/* For a span of zeros. */
static int64_t find_in_zeros(const struct bit_span *span, bool bit)
{
    uint64_t outside = 0;
    for (uint8_t mask = span->skipped_head; (mask & 0x80) != 0; mask = (uint8_t)(mask << 1))
        outside++;
    return bit ? -1 : (int64_t)(span->first_bit + outside);
}

/* Position in the string of the first bit that equals `bit`, -1 if there is none. */
static int64_t find_bit(const struct bit_span *span, bool bit)
{
    uint8_t other = bit ? 0 : 0xff;
    if (span->bytes == NULL)
        return find_in_zeros(span, bit);
    for (size_t i = 0; i < span->len; i++) {
        /* Bits outside the range are set to the value that is not searched for. */
        uint8_t outside = i == 0 ? span->skipped_head : 0;
        if (i == span->len - 1)
            outside |= span->skipped_tail;
        uint8_t byte = (uint8_t)(((uint8_t)span->bytes[i] & ~outside) | (other & outside));
        for (int n = 0; byte != other && n < 8; n++)
            if ((byte >> (7 - n) & 1) == bit)
                return (int64_t)(span->first_bit + i * 8 + (unsigned)n);
        i = find_other_byte(span->bytes, i + 1, span->len, other) - 1;
    }
    return -1;
}

static enum store_result find_in_range(struct call *call, const struct string_value *value,
                                       const struct bit_range *range, bool bit, int64_t *position)
{
    struct string_walk here, *walk = walk_range(call, value, range, &here);
    struct bit_span span;
    enum store_result result = STORE_OK;
    if (walk == NULL)
        return STORE_NO_MEMORY;
    while (*position < 0 && result == STORE_OK) {
        result = next_span(call, value, range, walk, &span);
        if (result == STORE_OK)
            *position = find_bit(&span, bit);
    }
    return result == STORE_ABSENT ? STORE_OK : result;
}

static bool read_bitpos(struct call *call, bool *bit, struct bit_range *range)
{
    int64_t value;
    if (!call_int64(call, call->argv[2], &value))
        return false;
    if (value != 0 && value != 1) {
        resp_error(call->reply, "ERR The bit argument must be 1 or 0.");
        return false;
    }
    *bit = value == 1;
    *range = (struct bit_range){.first = 0, .last = -1};
    if (call->argc > 6)
        return call_syntax_error(call);
    return read_position(call, 3, &range->first) && read_unit(call, 5, &range->by_bit) &&
           read_position(call, 4, &range->last);
}

enum store_result cmd_bitpos(struct call *call)
{
    struct string_value value;
    struct bit_range range;
    int64_t position = -1;
    bool bit;
    if (!read_bitpos(call, &bit, &range))
        return STORE_OK;
    enum store_result result = string_find(call, call->keys, &value);
    if (result != STORE_OK)
        return result;
    if (!value.exists) { /* an endless run of zeros */
        resp_integer(call->reply, bit ? -1 : 0);
        return STORE_OK;
    }
    bool found = cut_range(&value, &range);
    if (found)
        result = find_in_range(call, &value, &range, bit, &position);
    if (result != STORE_OK)
        return result;
    /* Without an end argument the string is continued by zeros. */
    if (found && position < 0 && !bit && call->argc < 5)
        position = (int64_t)value.length * 8;
    resp_integer(call->reply, position);
    return STORE_OK;
}

/* ---- BITOP ---- */

enum bit_operation { BIT_AND, BIT_OR, BIT_XOR, BIT_NOT };

static bool read_operation(struct call *call, enum bit_operation *operation)
{
    static const char *const names[] = {"AND", "OR", "XOR", "NOT"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!slice_is(call->argv[1], names[i]))
            continue;
        *operation = (enum bit_operation)i;
        if (i != BIT_NOT || call->argc == 4)
            return true;
        resp_error(call->reply, "ERR BITOP NOT must be called with a single source key.");
        return false;
    }
    return call_syntax_error(call);
}

static uint64_t combine_words(enum bit_operation operation, uint64_t a, uint64_t b)
{
    switch (operation) {
    case BIT_AND:
        return a & b;
    case BIT_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

/* to = to OPERATION from. */
static void combine(enum bit_operation operation, char *to, const char *from, size_t len)
{
    size_t i = 0;
    for (; len - i >= WORD_BYTES; i += WORD_BYTES)
        store_word(to + i, combine_words(operation, load_word(to + i), load_word(from + i)));
    for (; i < len; i++)
        to[i] = (char)combine_words(operation, (uint8_t)to[i], (uint8_t)from[i]);
}

static void invert(char *bytes, size_t len)
{
    size_t i = 0;
    for (; len - i >= WORD_BYTES; i += WORD_BYTES)
        store_word(bytes + i, ~load_word(bytes + i));
    for (; i < len; i++)
        bytes[i] = (char)~bytes[i];
}

/* The sources of BITOP; an absent key is an empty string. */
struct bitop {
    enum bit_operation operation;
    struct string_value found[YIELD_EVERY]; /* the sources, unless they are more */
    uint32_t count;
    uint64_t length; /* length of the longest source */
};

/* Others have their turns between more sources than these, and each has to be found again. */
static bool are_few(const struct bitop *bitop)
{
    return bitop->count < YIELD_EVERY;
}

/* Finds all sources first, so that a wrong type is reported before anything is computed. */
static enum store_result find_sources(struct call *call, struct bitop *bitop)
{
    struct string_value one;
    struct store_mark mark;
    enum store_result result = STORE_OK;
    bitop->count = call->key_count - 1;
    bitop->length = 0;
    for (uint32_t i = 0; i < bitop->count && result == STORE_OK; i++) {
        struct string_value *source = are_few(bitop) ? &bitop->found[i] : &one;
        store_mark(call->txn, &mark);
        result = string_find(call, &call->keys[i + 1], source);
        if (result != STORE_OK)
            return result;
        if (source->length > bitop->length)
            bitop->length = source->length;
        if (!are_few(bitop))
            (void)store_forget(call->txn, &mark);
        result = call_yield_at(call, i);
    }
    return result;
}

/* Of a source that was found, and counted as looked up. */
static enum store_result get_source(struct call *call, const struct bitop *bitop, uint32_t i,
                                    struct string_value *source)
{
    if (are_few(bitop)) {
        *source = bitop->found[i];
        return STORE_OK;
    }
    enum store_result result = store_get(call->txn, &call->keys[i + 1], &source->item);
    source->exists = result == STORE_OK;
    source->length = source->exists ? source->item.length : 0;
    return result == STORE_ABSENT ? STORE_OK : result;
}

/* Combines `count` bytes of source number i with the `len` bytes at `to`. The source counts as
 * zeros after `count`, `to` as zeros from *used on. */
static void work_in(enum bit_operation operation, uint32_t i, const char *from, size_t count,
                    char *to, size_t *used, size_t len)
{
    assert(count <= len && *used <= len); /* `to` has room for `len` bytes */
    if (i == 0) {
        memcpy(to, from, count);
        *used = count;
    } else if (operation == BIT_AND) {
        *used = count < *used ? count : *used;
        combine(operation, to, from, *used);
    } else {
        if (count > *used)
            memset(to + *used, 0, count - *used);
        *used = count > *used ? count : *used;
        combine(operation, to, from, count);
    }
    if (operation == BIT_NOT) {
        memset(to + *used, 0, len - *used);
        invert(to, len);
        *used = len;
    }
}

/* a string_maker */
static enum store_result make_piece(struct call *call, struct string_build *build, size_t len,
                                    void *arg)
{
    const struct bitop *bitop = arg;
    for (; build->source < bitop->count; build->source++) {
        struct string_value source;
        struct store_piece piece = {NULL, 0};
        if (string_step_is_full(call, build->work))
            return store_step(call->txn);
        enum store_result result = get_source(call, bitop, build->source, &source);
        if (result == STORE_OK && build->at < source.length)
            result = string_build_read(call, build, &source.item, len, build->room, &piece);
        if (result != STORE_OK)
            return result;
        size_t count = piece.bytes != NULL ? piece.length : 0;
        work_in(bitop->operation, build->source, count > 0 ? piece.bytes : "", count, build->piece,
                &build->used, len);
        build->work += string_work_of(&piece);
    }
    return STORE_OK;
}

static enum store_result put_long(struct call *call, struct bitop *bitop)
{
    struct string_build *build = string_build_get(call, bitop->length);
    if (build == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = string_build_go_on(call, build, make_piece, bitop);
    if (result != STORE_OK)
        return result;
    return string_build_put(call, build, call->keys, TYPE_STRING | ITEM_RAW, STORE_NO_EXPIRY);
}

/* Combines source number i with the bytes at `to`. Its own are in memory no longer than this. */
static enum store_result work_in_short(struct call *call, const struct bitop *bitop, uint32_t i,
                                       char *to, size_t *used)
{
    struct string_value source;
    struct store_mark mark;
    const char *bytes = "";
    store_mark(call->txn, &mark);
    enum store_result result = get_source(call, bitop, i, &source);
    if (result == STORE_OK && source.length > 0)
        result = string_view(call, &source.item, 0, source.length, &bytes);
    if (result != STORE_OK)
        return result;
    work_in(bitop->operation, i, bytes, source.length, to, used, bitop->length);
    (void)store_forget(call->txn, &mark);
    return STORE_OK;
}

static enum store_result put_short(struct call *call, const struct bitop *bitop)
{
    size_t used = 0, len = bitop->length;
    char *to = store_alloc(call->txn, len);
    enum store_result result = to != NULL ? STORE_OK : STORE_NO_MEMORY;
    for (uint32_t i = 0; i < bitop->count && result == STORE_OK; i++) {
        result = work_in_short(call, bitop, i, to, &used);
        if (result == STORE_OK)
            result = call_yield_at(call, i);
    }
    if (result != STORE_OK)
        return result;
    memset(to + used, 0, len - used);
    return store_put(call->txn, call->keys, TYPE_STRING | ITEM_RAW, to, len, STORE_NO_EXPIRY);
}

enum store_result cmd_bitop(struct call *call)
{
    struct bitop bitop;
    if (!read_operation(call, &bitop.operation))
        return STORE_OK;
    enum store_result result = find_sources(call, &bitop);
    if (result != STORE_OK)
        return result;
    resp_integer(call->reply, (int64_t)bitop.length);
    if (bitop.length == 0)
        return call_delete(call, &call->keys[0]);
    result = call_notify_if_new(call, &call->keys[0]);
    if (result != STORE_OK)
        return result;
    call_notify(call, NOTIFY_STRING, "set", &call->keys[0]);
    return bitop.length > STRING_SHORT ? put_long(call, &bitop) : put_short(call, &bitop);
}
