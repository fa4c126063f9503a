#include "server/base/heap.h"

#include <malloc.h>

/* Blocks from this size on are mapped; pieces of values and blocks of input, which come and go all
 * the time, are smaller. */
#define MAPPED_MIN (288 * 1024)
#define TRIM_MIN (1024 * 1024) /* so much unused memory at the heap's end is given back at once */

void heap_tune(void)
{
    mallopt(M_MMAP_THRESHOLD, MAPPED_MIN);
    mallopt(M_TRIM_THRESHOLD, TRIM_MIN);
}

void heap_measure(struct heap_usage *usage)
{
    struct mallinfo2 heap = mallinfo2();
    *usage = (struct heap_usage){.allocated = heap.uordblks + heap.hblkhd, .unused = heap.fordblks};
}

void heap_purge(void)
{
    malloc_trim(0);
}
