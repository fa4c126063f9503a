/*
 * What INFO and MEMORY show of the memory of the process.
 */
#ifndef VELLUM_MEMORY_FIGURES_H
#define VELLUM_MEMORY_FIGURES_H

#include <stdint.h>

#include "storage/store.h"

struct server;

struct memory_figures {
    struct store_stats store;
    uint64_t bound;    /* maxmemory, or its default */
    uint64_t used;     /* not evictable: the heap and the engine's structures, no clean pages */
    uint64_t data;     /* of `used`: index and dirty pages */
    uint64_t peak;     /* the highest `used` that has been measured */
    uint64_t resident; /* as the system counts it */
    uint64_t resident_besides; /* of that, beside the clean pages of the cache */
    uint64_t heap_in_use, heap_size;
    uint64_t clients; /* their buffers */
    uint64_t lua, scripts, script_texts;
    uint64_t libraries, functions;
    uint64_t library_bytes; /* of their value, which is in the page cache like all values */
};

/* Right for some moment of the call. Takes as long as heap_measure. */
void memory_measure(struct server *server, struct memory_figures *figures);

static inline double ratio_of(uint64_t a, uint64_t b)
{
    return b == 0 ? 0 : (double)a / (double)b;
}

#endif
