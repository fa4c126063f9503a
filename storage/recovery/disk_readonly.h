/*
 * A data directory that is only looked at. Private to storage/.
 */
#ifndef VELLUM_STORE_DISK_READONLY_H
#define VELLUM_STORE_DISK_READONLY_H

#include "storage/base/disk.h"

/* The files under `directory`, which no server may have open. What is written stays in memory and
 * is read from there; nothing can be created or made longer. For one thread. */
STORE_MUST_CHECK enum store_result disk_open_readonly(const char *directory, struct disk **disk,
                                                      char message[STORE_MESSAGE_MAX]);

#endif
