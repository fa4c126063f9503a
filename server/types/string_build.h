/*
 * Builds long strings from others, piece by piece. Each piece is written to its place on the
 * device before the next one is made. Meanwhile the keys stay locked and other requests run. No
 * key refers to the result until it is complete; then one small commit stores it. Holes are not
 * written.
 *
 *     string_build_get(); string_build_go_on() until STORE_OK (pass up all other results);
 *     string_build_put()
 */
#ifndef VELLUM_STRING_BUILD_H
#define VELLUM_STRING_BUILD_H

#include "server/core/command.h"
#include "server/core/collected.h"

struct string_build {
    struct collected collected;
    struct store_upload *upload;
    uint64_t at, length; /* bytes of the result that are done, and its length */
    uint32_t source;     /* of the current piece: the first source not yet applied */
    uint32_t work;       /* of this run; see string_walk.h */
    size_t used;         /* bytes of `piece` in use; zeros follow */
    char *piece, *room;  /* STORE_READER_PIECE bytes each; NULL: all is done */
};

/* The call's build, for a result of `length` bytes, which must exceed STRING_SHORT. NULL: out of
 * memory. Call it once in each run. */
struct string_build *string_build_get(struct call *call, uint64_t length);

/* Computes `len` bytes of the result, from build->at on, into build->piece: applies the sources
 * from build->source on. */
typedef enum store_result string_maker(struct call *call, struct string_build *build, size_t len,
                                       void *arg);
STORE_MUST_CHECK enum store_result string_build_go_on(struct call *call, struct string_build *build,
                                                      string_maker *make, void *arg);
/* The bytes of a source at build->at, truncated to `len`. They are in `room` or elsewhere. */
STORE_MUST_CHECK enum store_result string_build_read(struct call *call,
                                                     const struct string_build *build,
                                                     const struct store_item *item, size_t len,
                                                     char *room, struct store_piece *piece);

/* A string_maker that copies the large struct store_item that `arg` points to. */
enum store_result string_build_copy(struct call *call, struct string_build *build, size_t len,
                                    void *arg);

STORE_MUST_CHECK enum store_result string_build_put(struct call *call,
                                                    const struct string_build *build,
                                                    const struct store_key *key, uint8_t type,
                                                    int64_t expire_ms);

#endif
