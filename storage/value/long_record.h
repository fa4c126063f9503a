/* Commits that are too long for the journal, see long_record.c. Private to storage/. */
#ifndef VELLUM_STORE_LONG_RECORD_H
#define VELLUM_STORE_LONG_RECORD_H

#include "storage/txn/engine.h"

/* The record of an attempt to commit takes `length` bytes: if that needs a long record, reserves
 * memory and runs for it. STORE_WAIT: the transaction waits; what it has stays reserved. */
STORE_MUST_CHECK enum store_result long_record_reserve(struct store_txn *txn, uint64_t length);
void long_record_abandon(struct store_txn *txn); /* gives its reservation back */
/* Length of the journal record that names it. */
uint64_t long_record_record_length(const struct long_record *long_record);
char *long_record_bytes(const struct long_record *long_record);
/* Between journal_begin and journal_end: the long record is complete, and belongs to the commit
 * from here on. */
void long_record_seal(struct store_txn *txn, char *record, uint64_t commit);

/* Makes the sealed ones durable, so that their groups can be sealed. Called by the thread that uses
 * the maintenance queue. */
void long_record_write(struct store *store);
/* Those that redo would read are many. */
bool long_record_checkpoint_due(struct store *store);
/* A checkpoint is durable: redo no longer reads the long records of commits before this one. */
void long_record_release(struct store *store, uint64_t commit);
/* Like upload_set_apart. */
void long_record_set_apart(struct store *store, bool apart);
void long_record_forget(struct store *store);

/* In recovery: reads the operations of such a commit's record, to be released with free().
 * STORE_CORRUPT: they differ from those written. */
STORE_MUST_CHECK enum store_result long_record_read(struct store *store,
                                                    const struct format_record *record,
                                                    char **bytes, uint64_t *length);

#endif
