/*
 * BITFIELD: integers of 1 to 64 bits anywhere in a string.
 *
 * The string is accessed through a window: a short range of its bytes, including pending changes.
 * Fields close to each other are read and written together. The window moves, after writing back,
 * when a field lies outside it, so a long string is never read or written as a whole.
 *
 * Invariants of the window:
 * 1. bytes[] contains the string from `start` on, including this command's changes, and zeros
 *    beyond the string's end.
 * 2. [dirty_from, dirty_to) covers all bytes that differ from the store; it is empty if there are
 *    none.
 * 3. `value` is the string as the store has it now, unless it is `stale`: from a write, or a turn
 * of others, until the next access to the store.
 */
#include "server/commands/commands.h"

#include <assert.h>
#include <string.h>

#include "server/commands/cmd_bitmap.h"
#include "server/commands/cmd_string.h"
#include "server/exec/long_run.h"
#include "server/pubsub/notify.h"
#include "server/core/call.h"

#define WINDOW_BYTES 512
#define WINDOW_STEP 256   /* windows start at multiples of this */
#define FIELD_BYTES_MAX 9 /* 64 bits that are not byte-aligned */

_Static_assert(WINDOW_STEP + FIELD_BYTES_MAX <= WINDOW_BYTES, "a field lies in one window");

struct window {
    struct call *call;
    struct string_value value;
    bool stale;
    bool open;
    bool has_written;
    bool has_set; /* a field was written; mere growth of the string is not notified */
    uint64_t start;
    size_t dirty_from, dirty_to;
    uint8_t bytes[WINDOW_BYTES];
};

enum field_action { FIELD_GET, FIELD_SET, FIELD_ADD };
enum field_overflow { OVERFLOW_WRAP, OVERFLOW_SAT, OVERFLOW_FAIL };

struct field {
    enum field_action action;
    enum field_overflow overflow;
    bool is_signed;
    unsigned bits;
    uint64_t offset;
    int64_t argument;
};

/* ---- the window ---- */

/* Reads the string's state again if it is stale. INFO and notifications do not count this as
 * another lookup. */
static enum store_result window_refresh(struct window *window)
{
    struct call *call = window->call;
    struct string_value *value = &window->value;
    if (!window->stale)
        return STORE_OK;
    enum store_result result = store_get(call->txn, call->keys, &value->item);
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    value->exists = result == STORE_OK;
    value->length = value->exists ? value->item.length : 0;
    assert(value->exists || !window->has_written);
    window->stale = false;
    return STORE_OK;
}

static enum store_result window_flush(struct window *window)
{
    assert(window->dirty_from <= window->dirty_to && window->dirty_to <= WINDOW_BYTES);
    size_t len = window->dirty_to - window->dirty_from;
    if (len == 0)
        return STORE_OK;
    enum store_result result = window_refresh(window);
    if (result != STORE_OK)
        return result;
    char *copy = store_alloc(window->call->txn, len);
    if (copy == NULL)
        return STORE_NO_MEMORY;
    memcpy(copy, window->bytes + window->dirty_from, len);
    window->stale = window->has_written = true;
    uint64_t at = window->start + window->dirty_from;
    window->dirty_from = window->dirty_to = 0;
    return string_write(window->call, window->call->keys, &window->value, at, copy, len);
}

/* Moves the window so that it covers the bytes [from, to). */
static enum store_result window_show(struct window *window, uint64_t from, uint64_t to)
{
    assert(from < to && to - from <= FIELD_BYTES_MAX);
    if (window->open && from >= window->start && to <= window->start + WINDOW_BYTES)
        return STORE_OK;
    enum store_result result = window_flush(window);
    if (result == STORE_OK)
        result = window_refresh(window);
    if (result != STORE_OK)
        return result;
    window->start = from - from % WINDOW_STEP;
    window->open = true;
    memset(window->bytes, 0, WINDOW_BYTES);
    if (window->start >= window->value.length)
        return STORE_OK;
    uint64_t len = window->value.length - window->start;
    if (len > WINDOW_BYTES)
        len = WINDOW_BYTES;
    if (window->value.item.large)
        return store_read(window->call->txn, &window->value.item, window->start, len,
                          (char *)window->bytes);
    memcpy(window->bytes, window->value.item.bytes + window->start, len);
    return STORE_OK;
}

/* Writes back the pending changes and extends the string to at least `length` bytes: a write that
 * failed on overflow extends it all the same. */
static enum store_result window_close(struct window *window, uint64_t length)
{
    enum store_result result = window_flush(window);
    if (result == STORE_OK)
        result = window_refresh(window);
    if (result != STORE_OK || window->value.length >= length)
        return result;
    window->has_written = true;
    return string_write(window->call, window->call->keys, &window->value, length - 1, "", 1);
}

/* ---- fields in it ---- */

static uint64_t field_mask(const struct field *field)
{
    assert(field->bits >= 1 && field->bits <= 64);
    return UINT64_MAX >> (64 - field->bits);
}

static uint64_t field_end(const struct field *field)
{
    return (field->offset + field->bits + 7) / 8;
}

/* Bits of the field in the byte at `position`, counted from that byte's low end: [*low, *high). */
static void field_in_byte(const struct field *field, uint64_t position, unsigned *low,
                          unsigned *high)
{
    uint64_t byte_first = position * 8, field_last = field->offset + field->bits;
    *high = field->offset > byte_first ? (unsigned)(8 - (field->offset - byte_first)) : 8;
    *low = field_last < byte_first + 8 ? (unsigned)(byte_first + 8 - field_last) : 0;
}

static uint64_t window_get(const struct window *window, const struct field *field)
{
    uint64_t value = 0;
    for (uint64_t at = field->offset / 8; at < field_end(field); at++) {
        unsigned low, high;
        field_in_byte(field, at, &low, &high);
        uint8_t part = window->bytes[at - window->start] >> low & (0xff >> (8 - (high - low)));
        value = value << (high - low) | part;
    }
    return value;
}

static void window_set(struct window *window, const struct field *field, uint64_t value)
{
    size_t from = field->offset / 8 - window->start, to = field_end(field) - window->start;
    assert(from < to && to <= WINDOW_BYTES);
    for (size_t i = to; i-- > from;) {
        unsigned low, high;
        field_in_byte(field, window->start + i, &low, &high);
        uint8_t mask = (uint8_t)(0xff >> (8 - (high - low)) << low);
        window->bytes[i] = (uint8_t)((window->bytes[i] & ~mask) | (value << low & mask));
        value >>= high - low;
    }
    bool clean = window->dirty_from == window->dirty_to;
    if (clean || from < window->dirty_from)
        window->dirty_from = from;
    if (clean || to > window->dirty_to)
        window->dirty_to = to;
}

/* ---- arithmetic ---- */

/* The field's bits as an integer; an unsigned field has at most 63 bits. */
static int64_t field_value(const struct field *field, uint64_t bits)
{
    uint64_t sign = UINT64_C(1) << (field->bits - 1);
    if (field->is_signed && (bits & sign) != 0)
        bits |= ~field_mask(field);
    return (int64_t)bits;
}

/* base + addend as the field's overflow rule stores it. False: it must not be written. */
static bool field_sum(const struct field *field, int64_t base, int64_t addend, int64_t *sum)
{
    int64_t max = (int64_t)(field_mask(field) >> (field->is_signed ? 1 : 0));
    int64_t min = field->is_signed ? -max - 1 : 0;
    bool wrapped = __builtin_add_overflow(base, addend, sum);
    bool over = wrapped ? addend > 0 : *sum > max;
    bool under = wrapped ? addend < 0 : *sum < min;
    /* A negative value for an unsigned field stands for a huge one. */
    if (field->action == FIELD_SET && !field->is_signed && under) {
        over = true;
        under = false;
    }
    if (!over && !under)
        return true;
    if (field->overflow == OVERFLOW_SAT)
        *sum = over ? max : min;
    else
        *sum = field_value(field, (uint64_t)*sum & field_mask(field));
    return field->overflow != OVERFLOW_FAIL;
}

static enum store_result run_field(struct window *window, const struct field *field)
{
    struct resp_writer *reply = window->call->reply;
    enum store_result result = window_show(window, field->offset / 8, field_end(field));
    if (result != STORE_OK)
        return result;
    int64_t old = field_value(field, window_get(window, field));
    if (field->action == FIELD_GET) {
        resp_integer(reply, old);
        return STORE_OK;
    }
    int64_t updated;
    bool adds = field->action == FIELD_ADD;
    if (!field_sum(field, adds ? old : 0, field->argument, &updated)) {
        resp_null(reply);
        return STORE_OK;
    }
    window->has_set = true;
    resp_integer(reply, adds ? updated : old);
    if (updated != old)
        window_set(window, field, (uint64_t)updated & field_mask(field));
    return STORE_OK;
}

/* ---- arguments ---- */

static bool read_type(struct call *call, struct resp_slice arg, struct field *field)
{
    int64_t bits;
    field->is_signed = arg.len > 0 && arg.data[0] == 'i';
    if (arg.len > 1 && (field->is_signed || arg.data[0] == 'u') &&
        resp_read_int64(arg.data + 1, arg.len - 1, &bits) && bits >= 1 &&
        bits <= (field->is_signed ? 64 : 63)) {
        field->bits = (unsigned)bits;
        return true;
    }
    resp_error(call->reply,
               "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is "
               "not supported but i64 is.");
    return false;
}

static bool read_overflow(struct call *call, struct resp_slice arg, enum field_overflow *overflow)
{
    static const char *const names[] = {"WRAP", "SAT", "FAIL"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (slice_is(arg, names[i])) {
            *overflow = (enum field_overflow)i;
            return true;
        }
    }
    resp_error(call->reply, "ERR Invalid OVERFLOW type specified");
    return false;
}

/* Parses the operation at argv[*at] and advances *at past it. field->overflow is the rule in force.
 * *has_field: it was a field operation, not a new overflow rule. */
static bool read_field(struct call *call, size_t *at, struct field *field, bool *has_field)
{
    const struct resp_slice *arg = &call->argv[*at];
    size_t left = call->argc - *at - 1;
    *has_field = false;
    if (slice_is(arg[0], "OVERFLOW") && left >= 1) {
        *at += 2;
        return read_overflow(call, arg[1], &field->overflow);
    }
    if (slice_is(arg[0], "GET") && left >= 2)
        field->action = FIELD_GET;
    else if (slice_is(arg[0], "SET") && left >= 3)
        field->action = FIELD_SET;
    else if (slice_is(arg[0], "INCRBY") && left >= 3)
        field->action = FIELD_ADD;
    else
        return call_syntax_error(call);
    *has_field = true;
    *at += field->action == FIELD_GET ? 3 : 4;
    return read_type(call, arg[1], field) &&
           bitmap_offset(call, arg[2], field->bits, &field->offset) &&
           (field->action == FIELD_GET || call_int64(call, arg[3], &field->argument));
}

struct fields {
    struct field *list;
    size_t count;
    bool writes;
    uint64_t written_length; /* minimum length of the string afterwards */
};

static enum store_result read_fields(struct call *call, struct fields *fields)
{
    *fields = (struct fields){0};
    fields->list = store_alloc(call->txn, call->argc / 3 * sizeof(struct field) + 1);
    if (fields->list == NULL)
        return STORE_NO_MEMORY;
    struct field field = {.overflow = OVERFLOW_WRAP};
    for (size_t at = 2; at < call->argc;) {
        bool has_field;
        if (!read_field(call, &at, &field, &has_field))
            return STORE_ANSWERED;
        if (!has_field)
            continue;
        enum store_result result = call_yield_at(call, fields->count);
        if (result != STORE_OK)
            return result;
        fields->list[fields->count++] = field;
        if (field.action == FIELD_GET)
            continue;
        fields->writes = true;
        if (field_end(&field) > fields->written_length)
            fields->written_length = field_end(&field);
    }
    return STORE_OK;
}

static enum store_result run_fields(struct call *call, const struct fields *fields)
{
    struct window window = {.call = call};
    enum store_result result = fields->writes ? string_find(call, call->keys, &window.value)
                                              : string_look_up(call, call->keys, &window.value);
    if (result != STORE_OK)
        return result;
    if (!string_fits(call, 0, fields->written_length))
        return STORE_OK;
    const struct string_value found = window.value;
    resp_array(call->reply, fields->count);
    for (size_t i = 0; i < fields->count && result == STORE_OK; i++) {
        result = run_field(&window, &fields->list[i]);
        if (result == STORE_OK && i % YIELD_EVERY == YIELD_EVERY - 1) {
            result = call_yield(call);
            window.stale = true;
        }
    }
    if (result == STORE_OK && fields->writes)
        result = window_close(&window, fields->written_length);
    if (result == STORE_OK && window.has_written && window.has_set)
        string_notify(call, &found, "setbit");
    else if (result == STORE_OK && window.has_written && !found.exists)
        call_notify(call, NOTIFY_NEW, "new", call->keys);
    return result;
}

enum store_result cmd_bitfield(struct call *call)
{
    struct fields fields;
    enum store_result result = read_fields(call, &fields);
    if (result != STORE_OK)
        return result;
    return run_fields(call, &fields);
}

enum store_result cmd_bitfield_ro(struct call *call)
{
    struct fields fields;
    enum store_result result = read_fields(call, &fields);
    if (result != STORE_OK)
        return result;
    if (fields.writes) {
        resp_error(call->reply, "ERR BITFIELD_RO only supports the GET subcommand");
        return STORE_OK;
    }
    return run_fields(call, &fields);
}
