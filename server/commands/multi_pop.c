#include "server/commands/multi_pop.h"

#include <assert.h>

#include "server/core/call.h"

bool multi_pop_read(struct call *call, size_t at, const char *const words[2], size_t *word,
                    int64_t *count)
{
    int64_t key_count;
    *count = 1;
    if (!call_int64_from(call, call->argv[at], 1, "ERR numkeys should be greater than 0",
                         &key_count))
        return false;
    if ((uint64_t)key_count >= call->argc - at - 1)
        return call_syntax_error(call);
    assert(call->key_count == (uint64_t)key_count); /* what was locked is what is popped from */
    at += (size_t)key_count + 1;
    *word = slice_is(call->argv[at], words[0]) ? 0 : 1;
    if (!slice_is(call->argv[at], words[*word]))
        return call_syntax_error(call);
    if (at + 1 == call->argc)
        return true;
    if (at + 2 == call->argc || !slice_is(call->argv[at + 1], "count"))
        return call_syntax_error(call);
    if (!call_int64_from(call, call->argv[at + 2], 1, "ERR count should be greater than 0", count))
        return false;
    return at + 3 == call->argc || call_syntax_error(call);
}
