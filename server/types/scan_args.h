/*
 * What SCAN, HSCAN, SSCAN and ZSCAN have in common: cursor, options, the head of the reply.
 */
#ifndef VELLUM_SCAN_ARGS_H
#define VELLUM_SCAN_ARGS_H

#include "server/core/command.h"

struct scan_filter {
    bool any_name, any_type;
    struct resp_slice pattern, type;
    uint64_t count; /* how many to look at */
};

/* All that match a pattern. */
struct scan_filter scan_filter(struct resp_slice pattern);
bool scan_matches(const struct scan_filter *filter, struct resp_slice name);

/* Each answers with Redis's error and returns false when the arguments are not what they should be.
 * Options stand from argv[first] on; TYPE is one of them only where there are types. */
bool scan_read_cursor(struct call *call, struct resp_slice arg, uint64_t *cursor);
bool scan_read_options(struct call *call, size_t first, bool has_types, struct scan_filter *filter);

/* The reply's head; the array of what was found is to follow. */
void scan_reply_cursor(struct call *call, uint64_t cursor);

#endif
