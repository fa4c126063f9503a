/*
 * Common to SCAN, HSCAN, SSCAN and ZSCAN: the cursor, the options, and the head of the reply.
 */
#ifndef VELLUM_SCAN_ARGS_H
#define VELLUM_SCAN_ARGS_H

#include "server/base/glob.h"
#include "server/core/command.h"

struct scan_filter {
    bool any_name, any_type;
    struct resp_slice pattern, type;
    struct glob glob; /* of `pattern`; set by scan_prepare */
    uint64_t count;   /* the number of entries to examine */
};

/* A filter for this pattern, any type, and the default count. */
struct scan_filter scan_filter(struct resp_slice pattern);
/* Called before names are matched, in each run. */
STORE_MUST_CHECK enum store_result scan_prepare(struct call *call, struct scan_filter *filter);
bool scan_matches(const struct scan_filter *filter, struct resp_slice name);

/* On invalid arguments each replies with Redis's error and returns false. Options begin at
 * argv[first]; TYPE is accepted only with `has_types`. */
bool scan_read_cursor(struct call *call, struct resp_slice arg, uint64_t *cursor);
bool scan_read_options(struct call *call, size_t first, bool has_types, struct scan_filter *filter);

/* The head of the reply; the caller adds the array of results. */
void scan_reply_cursor(struct call *call, uint64_t cursor);

#endif
