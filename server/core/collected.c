#include "server/core/collected.h"

#include "server/core/server.h"

/* The results collected by all commands together may take at most maxmemory divided by this. */
#define COLLECTED_SHARE 3
#define NOTE_STEP (256 * 1024) /* smaller changes are not reported to the store at once */

/* The collected bytes are about to become `bytes`: reports the change to the store. */
static void tell_store(struct collected *collected, uint64_t bytes)
{
    int64_t change = (int64_t)(bytes - collected->noted);
    if (change < NOTE_STEP && change > -NOTE_STEP && bytes > 0)
        return;
    collected->noted = bytes;
    if (change != 0)
        store_note_memory(collected->server->store, change);
}

bool collected_set(struct collected *collected, uint64_t bytes)
{
    struct server *server = collected->server;
    bool grows = bytes > collected->bytes;
    uint64_t more = bytes - collected->bytes;
    uint64_t all = atomic_fetch_add_explicit(&server->collected_bytes, more, memory_order_relaxed);
    uint64_t memory = atomic_load_explicit(&server->memory_bound, memory_order_relaxed);
    collected->bytes = bytes;
    bool may_be = bytes <= COLLECTED_FEW ||
                  (all + more <= memory / COLLECTED_SHARE &&
                   (!grows || store_has_memory(server->store, bytes - collected->noted)));
    if (may_be)
        tell_store(collected, bytes);
    return may_be;
}
