#include "server/types/scan_args.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/core/call.h"

#define CLASSES_MOST 64u /* read once for all names of a step */

#define DEFAULT_COUNT 10 /* Redis's default */

static bool is_star(struct resp_slice pattern)
{
    return pattern.len == 1 && pattern.data[0] == '*';
}

struct scan_filter scan_filter(struct resp_slice pattern)
{
    return (struct scan_filter){
        .any_name = is_star(pattern), .any_type = true, .pattern = pattern, .count = DEFAULT_COUNT};
}

enum store_result scan_prepare(struct call *call, struct scan_filter *filter)
{
    struct glob *glob = &filter->glob;
    *glob = (struct glob){.pattern = filter->pattern.data, .len = filter->pattern.len};
    size_t count = filter->any_name ? 0 : glob_find_classes(glob, NULL, 0);
    if (count == 0)
        return STORE_OK;
    if (count > CLASSES_MOST)
        count = CLASSES_MOST;
    struct glob_class *classes = store_alloc(call->txn, count * sizeof *classes);
    if (classes == NULL)
        return STORE_NO_MEMORY;
    glob->classes = classes;
    (void)glob_find_classes(glob, classes, count);
    glob->class_count = count;
    return STORE_OK;
}

bool scan_matches(const struct scan_filter *filter, struct resp_slice name)
{
    return filter->any_name || glob_matches(&filter->glob, name.data, name.len);
}

/* Parses as leniently as Redis: accepts a sign, wraps negative numbers, takes an empty text as 0
 * and stops at a zero byte. */
bool scan_read_cursor(struct call *call, struct resp_slice arg, uint64_t *cursor)
{
    size_t len = arg.len > 0 ? strnlen(arg.data, arg.len) : 0;
    bool is_signed = len > 1 && (arg.data[0] == '-' || arg.data[0] == '+');
    bool valid = true;
    *cursor = 0;
    for (size_t i = is_signed; valid && i < len; i++) {
        uint64_t digit = (uint64_t)(unsigned char)arg.data[i] - '0';
        valid = digit <= 9 && *cursor <= (UINT64_MAX - digit) / 10;
        *cursor = *cursor * 10 + digit;
    }
    if (is_signed && arg.data[0] == '-')
        *cursor = 0 - *cursor;
    if (!valid)
        resp_error(call->reply, "ERR invalid cursor");
    return valid;
}

static bool read_count(struct call *call, struct resp_slice arg, uint64_t *count)
{
    int64_t number;
    if (!call_int64(call, arg, &number))
        return false;
    if (number < 1)
        return call_syntax_error(call);
    *count = (uint64_t)number;
    return true;
}

bool scan_read_options(struct call *call, size_t first, bool has_types, struct scan_filter *filter)
{
    *filter = scan_filter((struct resp_slice){"*", 1});
    for (size_t i = first; i < call->argc; i += 2) {
        if (i + 1 == call->argc)
            return call_syntax_error(call);
        struct resp_slice value = call->argv[i + 1];
        if (slice_is(call->argv[i], "count")) {
            if (!read_count(call, value, &filter->count))
                return false;
        } else if (slice_is(call->argv[i], "match")) {
            filter->pattern = value;
            filter->any_name = is_star(value);
        } else if (slice_is(call->argv[i], "type") && has_types) {
            filter->type = value;
            filter->any_type = false;
        } else {
            return call_syntax_error(call);
        }
    }
    return true;
}

void scan_reply_cursor(struct call *call, uint64_t cursor)
{
    char text[24];
    size_t len = (size_t)snprintf(text, sizeof(text), "%" PRIu64, cursor);
    resp_array(call->reply, 2);
    resp_bulk(call->reply, text, len);
}
