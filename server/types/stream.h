/*
 * Streams: entries in the order of their IDs, and a state besides them. A value of two trees.
 *
 * Part of the data format. Numbers are big-endian; V and the lengths before bytes are those of
 * packed.h. The first tree holds the entries:
 *
 *     key      16   ID
 *     value    .    fields and values in turn, each a length and its bytes
 *
 * The second one holds the state; the first byte of a key says what its entry is:
 *
 *     KEY                    SIZE   VALUE
 *     0                      1      header; absent: zeros
 *                            16     last ID, if it is above that of the last entry; or zeros
 *                            16     highest ID of a deleted entry
 *                            8      how many entries were added and are not there any more
 *
 * so that an XADD that trims nothing only appends to the first tree. Either tree may be empty: a
 * stream without entries exists.
 *
 * Callers pass up every result except STORE_OK.
 */
#ifndef VELLUM_STREAM_H
#define VELLUM_STREAM_H

#include "server/core/command.h"
#include "server/types/stream_id.h"
#include "storage/collections.h"

enum { STREAM_ENTRIES, STREAM_STATE, STREAM_TREES };

/* What Redis keeps in a stream's head. */
struct stream_head {
    struct stream_id last;        /* the highest ID ever used */
    struct stream_id max_deleted; /* of what XDEL has deleted */
    uint64_t added;               /* entries ever added */
};

struct stream {
    struct call *call;
    const struct store_key *key;
    bool exists;
    struct store_tree *entries, *state; /* NULL if it does not exist */
    struct stream_head head;            /* after stream_load_head() */
    struct stream_head stored;          /* as it was loaded */
    uint64_t stored_count;              /* of the entries, then */
    struct stream_id first;             /* if knows_first: of the first entry, or zeros */
    bool knows_first;
};

/* Its bytes are valid until the next call on the stream. */
struct stream_entry {
    struct stream_id id;
    struct store_item fields;
};

/* Walks fields and values of an entry. */
struct stream_fields {
    const char *at, *end;
};

/* An absent one is empty. STORE_ANSWERED: the key has another type. */
STORE_MUST_CHECK enum store_result stream_find(struct call *call, const struct store_key *key,
                                               struct stream *stream);
/* The same for an item already found, which must be a stream. */
STORE_MUST_CHECK enum store_result stream_open(struct call *call, const struct store_key *key,
                                               const struct store_item *item,
                                               struct stream *stream);
/* Makes one that does not exist. */
STORE_MUST_CHECK enum store_result stream_create(struct stream *stream);

uint64_t stream_count(const struct stream *stream); /* entries */

/* Reads the head, also of a stream that does not exist. Call it before any change. */
STORE_MUST_CHECK enum store_result stream_load_head(struct stream *stream);
/* The ID of the first entry; zeros: there is none. */
STORE_MUST_CHECK enum store_result stream_first_entry(struct stream *stream, struct stream_id *id);
/* The last of the entries, which is not deleted; STORE_ABSENT: there is none. */
STORE_MUST_CHECK enum store_result stream_last_entry(struct stream *stream, struct stream_id *id);

/* The cursor at the first entry whose ID is not less, with its rank; or at the end. */
STORE_MUST_CHECK enum store_result stream_seek(struct stream *stream, struct stream_id id,
                                               struct store_cursor *cursor);
/* The entry with this ID: the cursor is at it. *found: false: the stream does not have it. */
STORE_MUST_CHECK enum store_result stream_find_entry(struct stream *stream, struct stream_id id,
                                                     struct store_cursor *cursor,
                                                     struct stream_entry *entry, bool *found);
/* STORE_ABSENT at the end. */
STORE_MUST_CHECK enum store_result stream_get(struct store_cursor *cursor,
                                              struct stream_entry *entry);
/* How many entries there are from `first` to `last`, both included, and the rank of the first. */
STORE_MUST_CHECK enum store_result stream_range(struct stream *stream, struct stream_id first,
                                                struct stream_id last, uint64_t *rank,
                                                uint64_t *count);

/* The bytes of an entry's fields, in one piece. */
STORE_MUST_CHECK enum store_result
stream_fields_read(struct call *call, const struct store_item *item, struct stream_fields *fields);
/* *count: of fields and values. False: the bytes are malformed. */
STORE_MUST_CHECK bool stream_fields_count(struct stream_fields fields, uint64_t *count);
/* The next field or value; there must be one. */
struct resp_slice stream_fields_next(struct stream_fields *fields);

/* ---- changes; the head is stored by stream_save ---- */

/* Appends an entry, whose ID must be above head.last. Fields and values are copied. */
STORE_MUST_CHECK enum store_result stream_append(struct stream *stream, struct stream_id id,
                                                 const struct resp_slice *fields, size_t count);
/* *removed: the stream had the entry. */
STORE_MUST_CHECK enum store_result stream_delete(struct stream *stream, struct stream_id id,
                                                 bool *removed);
/* Removes the first `count` entries, in steps. */
STORE_MUST_CHECK enum store_result stream_trim(struct stream *stream, uint64_t count);
STORE_MUST_CHECK enum store_result stream_save(struct stream *stream);

#endif
