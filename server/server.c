#include "server.h"

#include <assert.h>
#include <unistd.h>

#include "process.h"

#define STORE_MEMORY_MIN (64ull * 1024 * 1024)

void server_stop(struct server *server)
{
    if (atomic_exchange(&server->stopping, true))
        return;
    uint64_t one = 1;
    ssize_t written = write(server->stop_fd, &one, sizeof one);
    assert(written == sizeof one);
}

uint64_t server_store_memory(uint64_t maxmemory)
{
    uint64_t whole = maxmemory != 0 ? maxmemory : process_memory() / 2;
    uint64_t share = whole - whole / 8;
    return share < STORE_MEMORY_MIN ? STORE_MEMORY_MIN : share;
}
