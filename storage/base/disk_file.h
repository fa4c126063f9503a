/*
 * The disk of real files. Private to storage/.
 */
#ifndef VELLUM_STORE_DISK_FILE_H
#define VELLUM_STORE_DISK_FILE_H

#include "storage/base/disk.h"

/* Real files under `directory`, which is created if missing. Locks the directory, and each file
 * while it is open: EBUSY if another server holds the lock. */
STORE_MUST_CHECK enum store_result disk_open_directory(const char *directory, struct disk **disk,
                                                       char message[STORE_MESSAGE_MAX]);

#endif
