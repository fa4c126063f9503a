#include "server/commands/memory_figures.h"

#include "server/base/heap.h"
#include "server/core/process.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/net/client_memory.h"
#include "server/script/script.h"

static uint64_t stack_bytes(const struct server *server)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < server->worker_count; i++)
        sum += atomic_load_explicit(&server->workers[i]->fibers.bytes, memory_order_relaxed);
    return sum;
}

static void note_peak(struct server *server, struct memory_figures *figures)
{
    figures->peak = atomic_load_explicit(&server->memory_peak, memory_order_relaxed);
    while (figures->peak < figures->used &&
           !atomic_compare_exchange_weak(&server->memory_peak, &figures->peak, figures->used))
        ;
    if (figures->peak < figures->used)
        figures->peak = figures->used;
}

void memory_measure(struct server *server, struct memory_figures *figures)
{
    const struct store_stats *store = &figures->store;
    struct heap_usage heap;
    uint64_t shared;
    store_stats(server->store, &figures->store);
    heap_measure(&heap);
    figures->bound = atomic_load_explicit(&server->memory_bound, memory_order_relaxed);
    figures->heap_in_use = heap.allocated;
    figures->heap_size = heap.allocated + heap.unused;
    /* The engine maps its index and its page frames; its journal buffers come from the heap. */
    figures->data = store->index_bytes + store->dirty_bytes;
    figures->used = figures->heap_in_use + figures->data + stack_bytes(server);
    note_peak(server, figures);
    figures->resident = process_resident(&shared);
    uint64_t others = figures->resident + store->dirty_bytes;
    figures->resident_besides = others > store->frame_bytes ? others - store->frame_bytes : 0;
    figures->clients = client_memory_total(server);
    figures->lua = 0;
    for (uint32_t i = 0; i < server->worker_count; i++)
        figures->lua +=
            atomic_load_explicit(&server->workers[i]->script.bytes, memory_order_relaxed);
    figures->scripts = scripts_count(server->scripts);
    figures->script_texts = scripts_bytes(server->scripts);
    figures->libraries = atomic_load_explicit(&server->library_count, memory_order_relaxed);
    figures->functions = atomic_load_explicit(&server->function_count, memory_order_relaxed);
    figures->library_bytes = atomic_load_explicit(&server->library_bytes, memory_order_relaxed);
}
