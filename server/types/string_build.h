/*
 * Long strings that are made from others: piece by piece, each written to its place on the device
 * before the next is made, while the keys stay held and others have their turn. No key names what
 * is there before all of it is; then one small commit does. Holes are not written.
 *
 *     string_build_get; string_build_go_on until STORE_OK (all else is passed up); string_build_put
 */
#ifndef VELLUM_STRING_BUILD_H
#define VELLUM_STRING_BUILD_H

#include "server/core/command.h"
#include "server/exec/collector.h"

struct string_build {
    struct collected collected;
    struct store_upload *upload;
    uint64_t at, length; /* so much of the result is made */
    uint32_t source;     /* of the piece that is being made: from here on not worked in yet */
    uint32_t work;       /* of this run; see string_walk.h */
    size_t used;         /* bytes of `piece`; those behind are zeros */
    char *piece, *room;  /* STORE_READER_PIECE each; NULL: all is made */
};

/* The call's own, of a string of so many bytes, more than STRING_SHORT; NULL: there is no memory
 * for it. To be called once in each run. */
struct string_build *string_build_get(struct call *call, uint64_t length);

/* Works into build->piece, from build->source on, what is to stand at build->at, `len` bytes. */
typedef enum store_result string_maker(struct call *call, struct string_build *build, size_t len,
                                       void *arg);
STORE_MUST_CHECK enum store_result string_build_go_on(struct call *call, struct string_build *build,
                                                      string_maker *make, void *arg);
/* What a source has at build->at, in `room` or elsewhere, cut to `len`. */
STORE_MUST_CHECK enum store_result string_build_read(struct call *call,
                                                     const struct string_build *build,
                                                     const struct store_item *item, size_t len,
                                                     char *room, struct store_piece *piece);

/* A string_maker: the same as the struct store_item `arg` is. */
enum store_result string_build_copy(struct call *call, struct string_build *build, size_t len,
                                    void *arg);

STORE_MUST_CHECK enum store_result string_build_put(struct call *call,
                                                    const struct string_build *build,
                                                    const struct store_key *key, uint8_t type,
                                                    int64_t expire_ms);

#endif
