/*
 * A data directory opened read-only. Private to storage/.
 */
#ifndef VELLUM_STORE_DISK_READONLY_H
#define VELLUM_STORE_DISK_READONLY_H

#include "storage/base/disk.h"

/* The files under `directory`, which no server may have open. Writes are kept in memory and
 * read back from there; files cannot be created or extended. For one thread. */
STORE_MUST_CHECK enum store_result disk_open_readonly(const char *directory, struct disk **disk,
                                                      char message[STORE_MESSAGE_MAX]);

#endif
