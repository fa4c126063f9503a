/* The operations of a commit's record, as format.h has them. Private to storage/. */
#ifndef VELLUM_STORE_RECORD_H
#define VELLUM_STORE_RECORD_H

#include "storage/format/format.h"

static inline uint64_t commit_padded(uint64_t length)
{
    return (length + 7) & ~7ull;
}

/* Begins an operation at `at`; returns where its bytes go. */
char *commit_add_operation(char *at, enum format_op kind, uint32_t file, uint32_t page,
                           uint32_t slot, uint32_t length);

#endif
