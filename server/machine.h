/*
 * What the machine has and what this process uses of it.
 */
#ifndef VELLUM_MACHINE_H
#define VELLUM_MACHINE_H

#include <stdint.h>

#include "config.h"

/* File descriptors needed besides those of clients. */
#define MACHINE_RESERVED_FILES 64

/* Of the machine, or of the control group where that is less. */
uint64_t machine_memory(void);

/* maxmemory; where that is 0, half of the machine's memory. This is what the store is opened with.
 */
uint64_t machine_memory_bound(const struct config *config);

/* Bytes of this process in memory. */
uint64_t machine_resident(void);

#endif
