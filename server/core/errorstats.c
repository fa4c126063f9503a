#include "server/core/errorstats.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static uint32_t used_codes(const struct errorstats *stats)
{
    return atomic_load_explicit(&stats->used, memory_order_acquire);
}

static void add(struct errorstats *stats, const char *code, size_t len, uint64_t amount)
{
    uint32_t used = used_codes(stats), at = 0;
    while (at < used && (strncmp(stats->codes[at], code, len) != 0 || stats->codes[at][len] != 0))
        at++;
    if (at == ERRORSTATS_CODES)
        return;
    uint64_t count = atomic_load_explicit(&stats->counts[at], memory_order_relaxed);
    atomic_store_explicit(&stats->counts[at], count + amount, memory_order_relaxed);
    if (at == used) {
        memcpy(stats->codes[at], code, len);
        atomic_store_explicit(&stats->used, used + 1, memory_order_release);
    }
}

void errorstats_count(struct errorstats *stats, const char *reply, size_t len)
{
    assert(len > 0 && reply[0] == '-');
    size_t code_len = 0;
    while (code_len + 1 < len && reply[code_len + 1] > ' ')
        code_len++;
    if (code_len > 0 && code_len < ERRORSTATS_CODE_MAX)
        add(stats, reply + 1, code_len, 1);
}

void errorstats_clear(struct errorstats *stats)
{
    for (uint32_t i = 0; i < used_codes(stats); i++)
        atomic_store_explicit(&stats->counts[i], 0, memory_order_relaxed);
}

void errorstats_add(struct errorstats *sum, const struct errorstats *from)
{
    for (uint32_t i = 0; i < used_codes(from); i++)
        add(sum, from->codes[i], strlen(from->codes[i]),
            atomic_load_explicit(&from->counts[i], memory_order_relaxed));
}
