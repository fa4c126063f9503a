/*
 * Spoils what stands on a medium and makes the checksums right again: as a fault of our own, or of
 * the memory before the write, would have left it. Lengths, counts, page numbers and flags get
 * values at bounds, or random ones.
 */
#ifndef VELLUM_TEST_STORAGE_SPOIL_H
#define VELLUM_TEST_STORAGE_SPOIL_H

#include "tests/storage/fault_disk.h"

enum spoil {
    SPOIL_SUPERBLOCK,
    SPOIL_SEGMENT,
    SPOIL_ITEM,      /* its header, or what it names */
    SPOIL_HOME,      /* of a collection: a partition that the store does not have */
    SPOIL_KEY_DEPTH, /* of a long key's root: a node, where the root itself would do */
    SPOIL_NODE,      /* of a tree */
    SPOIL_EXTENTS,   /* a node of a large value, with the root's checksum of it */
    SPOIL_JOURNAL,
    SPOIL_INDEX,
    SPOIL_TWIN, /* one item says what another one does of what it names */
    SPOILS
};

/* One field, or a few. Says what in `text`. False: there is no such thing on the medium. */
bool spoil(struct rng *rng, struct medium *medium, enum spoil kind, char text[160]);

/* The field of one operation in the journal, counted from the oldest, gets a value that is too
 * large whatever the operation. Returns its kind (enum format_op), -1: there are fewer. */
enum spoil_operation { SPOIL_OPERATION_LENGTH, SPOIL_OPERATION_SLOT };
int spoil_operation(struct medium *medium, uint32_t number, enum spoil_operation field);

#endif
