#include "machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* The first number of a file of /proc or /sys at or after field `field`; UINT64_MAX if there is
 * none ("max", or no such file). */
static uint64_t read_field(const char *path, int field)
{
    uint64_t value = UINT64_MAX, number;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return value;
    for (int i = 0; i <= field; i++)
        if (fscanf(file, "%" SCNu64, &number) == 1 && i == field)
            value = number;
    fclose(file);
    return value;
}

uint64_t machine_memory(void)
{
    static const char *const limits[] = {
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    };
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        uint64_t limit = read_field(limits[i], 0);
        if (limit < bytes)
            bytes = limit;
    }
    return bytes;
}

uint64_t machine_memory_bound(const struct config *config)
{
    uint64_t given = (uint64_t)config_number(config, CONFIG_MAXMEMORY);
    return given != 0 ? given : machine_memory() / 2;
}

uint64_t machine_resident(void)
{
    uint64_t pages = read_field("/proc/self/statm", 1);
    return pages == UINT64_MAX ? 0 : pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
