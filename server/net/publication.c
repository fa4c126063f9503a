#include "server/net/publication.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/core/server.h"

static size_t bulk_size(size_t len)
{
    char digits[24];
    return 1 + resp_print_int64(digits, (int64_t)len) + 2 + len + 2;
}

/* Returns the address of the string itself; advances *to past it. */
static const char *write_bulk(char **to, struct resp_slice string)
{
    char *at = *to;
    *at++ = '$';
    at += resp_print_int64(at, (int64_t)string.len); /* its NUL is overwritten */
    memcpy(at, "\r\n", 2);
    at += 2;
    if (string.len > 0)
        memcpy(at, string.data, string.len);
    memcpy(at + string.len, "\r\n", 2);
    *to = at + string.len + 2;
    return at;
}

struct publication *publication_new(const struct server *server, enum pubsub_kind kind,
                                    struct resp_slice channel, struct resp_slice message)
{
    bool is_line = kind == PUBSUB_MONITOR;
    size_t len = is_line ? message.len : bulk_size(channel.len) + bulk_size(message.len);
    size_t visits = server->worker_count * sizeof(struct publication_visit);
    struct publication *publication = malloc(sizeof *publication + visits + len);
    if (publication == NULL)
        return NULL;
    char *to = (char *)publication + sizeof *publication + visits;
    *publication = (struct publication){.holders = 1, .kind = kind, .len = len, .bytes = to};
    if (is_line) {
        memcpy(to, message.data, len);
    } else {
        publication->channel = (struct resp_slice){write_bulk(&to, channel), channel.len};
        write_bulk(&to, message);
    }
    return publication;
}

void publication_hold(struct publication *publication)
{
    atomic_fetch_add_explicit(&publication->holders, 1, memory_order_relaxed);
}

void publication_release(struct publication *publication)
{
    uint32_t before = atomic_fetch_sub_explicit(&publication->holders, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1)
        return;
    if (publication->pending != NULL)
        atomic_fetch_sub_explicit(publication->pending, 1, memory_order_relaxed);
    free(publication);
}
