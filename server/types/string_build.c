#include "server/types/string_build.h"

#include <stdlib.h>
#include <string.h>

#include "server/types/string_walk.h"
#include "server/exec/request_reply.h"

static void free_pieces(struct string_build *build)
{
    free(build->piece);
    free(build->room);
    build->piece = build->room = NULL;
    collected_set(&build->collected, 0);
}

static void build_free(void *progress)
{
    struct string_build *build = progress;
    if (build->upload != NULL)
        store_upload_close(build->upload);
    free_pieces(build);
    free(build);
}

static bool begin(struct call *call, struct string_build *build)
{
    if (!collected_set(&build->collected, 2 * STORE_READER_PIECE))
        return false;
    build->piece = malloc(STORE_READER_PIECE);
    build->room = malloc(STORE_READER_PIECE);
    return build->piece != NULL && build->room != NULL &&
           call_upload_begin(call, build->length, &build->upload) == STORE_OK;
}

struct string_build *string_build_get(struct call *call, uint64_t length)
{
    struct string_build *build = call->progress;
    if (build == NULL) {
        build = calloc(1, sizeof *build);
        if (build == NULL)
            return NULL;
        build->collected.server = call->server;
        build->length = length;
        call->progress = build;
        call->progress_free = build_free;
        if (!begin(call, build))
            return NULL;
    }
    build->work = 0;
    return build;
}

enum store_result string_build_read(struct call *call, const struct string_build *build,
                                    const struct store_item *item, size_t len, char *room,
                                    struct store_piece *piece)
{
    enum store_result result = store_read_piece(call->txn, item, build->at, room, piece);
    if (result == STORE_OK && piece->length > len)
        piece->length = len;
    return result;
}

enum store_result string_build_copy(struct call *call, struct string_build *build, size_t len,
                                    void *arg)
{
    const struct store_item *item = arg;
    struct store_piece piece = {NULL, 0};
    enum store_result result = STORE_OK;
    if (build->source > 0)
        return STORE_OK;
    if (build->at < item->length)
        result = string_build_read(call, build, item, len, build->piece, &piece);
    if (result != STORE_OK)
        return result;
    build->used = piece.bytes != NULL ? piece.length : 0;
    build->source = 1;
    return STORE_OK;
}

/* The length without trailing zeros. */
static size_t used_of(const char *bytes, size_t len)
{
    static const char zeros[1024];
    while (len >= sizeof zeros && memcmp(bytes + len - sizeof zeros, zeros, sizeof zeros) == 0)
        len -= sizeof zeros;
    while (len > 0 && bytes[len - 1] == 0)
        len--;
    return len;
}

/* Builds the piece at build->at from its sources and writes it to the device. */
static enum store_result add_piece(struct call *call, struct string_build *build,
                                   string_maker *make, void *arg)
{
    uint64_t left = build->length - build->at;
    size_t len = left < STORE_READER_PIECE ? (size_t)left : STORE_READER_PIECE;
    enum store_result result = make(call, build, len, arg);
    if (result != STORE_OK)
        return result;
    build->used = used_of(build->piece, build->used);
    result = store_upload_put(build->upload, build->piece, build->used);
    if (result != STORE_OK)
        return result == STORE_WAIT ? store_suspend(call->txn) : result;
    build->work += build->used > 0 ? STRING_PIECE_WORK : 1;
    build->at += len;
    build->source = 0;
    build->used = 0;
    return STORE_OK;
}

enum store_result string_build_go_on(struct call *call, struct string_build *build,
                                     string_maker *make, void *arg)
{
    while (build->at < build->length) {
        if (string_step_is_full(call, build->work))
            return store_step(call->txn);
        enum store_result result = add_piece(call, build, make, arg);
        if (result != STORE_OK)
            return result;
    }
    enum store_result result = store_upload_finish(build->upload);
    if (result != STORE_OK)
        return result == STORE_WAIT ? store_suspend(call->txn) : result;
    free_pieces(build);
    call->progress_lasts = true;
    return STORE_OK;
}

enum store_result string_build_put(struct call *call, const struct string_build *build,
                                   const struct store_key *key, uint8_t type, int64_t expire_ms)
{
    return store_put_upload(call->txn, key, type, build->upload, expire_ms);
}
