/*
 * LCS: the longest common subsequence of two strings.
 *
 * The lengths of the common subsequences of all prefixes form a table, which is filled row by row.
 * Only one row is kept, and for the walk back one bit per cell: the direction out of a cell whose
 * bytes differ. If they are equal the walk always takes the diagonal. Rows run over the shorter
 * string, so that the row is small compared with the bits.
 *
 * A large table is filled in steps, and long strings are copied in steps before. The intermediate
 * state is kept in call->progress and accounted with that of other commands (collected_set).
 */
#include "server/commands/commands.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/commands/cmd_string.h"
#include "server/core/collected.h"
#include "server/exec/keyspace.h"
#include "server/exec/long_run.h"
#include "server/types/string_walk.h"
#include "server/core/call.h"

#define LCS_STEP_CELLS (512 * 1024) /* takes a millisecond or two */
#define LCS_WALK_STEPS (64 * 1024)  /* of the walk back, between two checks of the clock */

struct lcs_options {
    bool length_only, ranges, with_match_len;
    int64_t min_match_len;
};

struct lcs {
    struct resp_slice a, b;
    bool swapped;    /* rows run over a, not over b */
    uint32_t length; /* of the longest common subsequence */
    uint8_t *way;    /* one bit per cell: go to the previous byte of a, or else of b */
    uint32_t *row;   /* one cell more than the shorter string has bytes */
    size_t next;     /* the first row not yet filled */

    /* only if the table is filled in steps */
    struct collected collected;
    char *bytes; /* both strings, a's first; kept, or read again in each run */
    size_t loaded;
};

struct lcs_match {
    size_t a_first, b_first, len;
};

static bool read_options(struct call *call, struct lcs_options *options)
{
    *options = (struct lcs_options){0};
    for (size_t i = 3; i < call->argc; i++) {
        if (slice_is(call->argv[i], "IDX")) {
            options->ranges = true;
        } else if (slice_is(call->argv[i], "LEN")) {
            options->length_only = true;
        } else if (slice_is(call->argv[i], "WITHMATCHLEN")) {
            options->with_match_len = true;
        } else if (slice_is(call->argv[i], "MINMATCHLEN") && i + 1 < call->argc) {
            if (!call_int64(call, call->argv[++i], &options->min_match_len))
                return false;
        } else {
            return call_syntax_error(call);
        }
    }
    if (!options->ranges || !options->length_only)
        return true;
    resp_error(call->reply, "ERR If you want both the length and indexes, please just use IDX.");
    return false;
}

/* The limit is on the size of the whole table at 4 bytes per cell, as in Redis; it also bounds the
 * time. */
static bool table_fits(struct call *call, size_t a_len, size_t b_len)
{
    uint64_t cells = ((uint64_t)a_len + 1) * ((uint64_t)b_len + 1);
    if (cells <= string_limit(call) / sizeof(uint32_t))
        return true;
    resp_error(call->reply,
               "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
    return false;
}

static size_t cell_of(const struct lcs *lcs, size_t in_a, size_t in_b)
{
    return lcs->swapped ? in_b * lcs->a.len + in_a : in_a * lcs->b.len + in_b;
}

/* Fills rows, `most` cells or slightly more. False: rows are left. */
static bool fill(struct lcs *lcs, size_t most)
{
    struct resp_slice outer = lcs->swapped ? lcs->b : lcs->a;
    struct resp_slice inner = lcs->swapped ? lcs->a : lcs->b;
    uint32_t *row = lcs->row;
    assert(lcs->next <= outer.len);
    size_t cell = lcs->next * inner.len, end = cell + most;
    for (; lcs->next < outer.len && cell < end; lcs->next++) {
        size_t i = lcs->next;
        uint32_t diagonal = 0;
        for (size_t j = 0; j < inner.len; j++, cell++) {
            uint32_t above = row[j + 1], left = row[j];
            if (outer.data[i] == inner.data[j])
                row[j + 1] = diagonal + 1;
            else if (above < left)
                row[j + 1] = left;
            bool over_a = lcs->swapped ? left > above : above > left;
            if (over_a && lcs->way != NULL)
                lcs->way[cell / 8] |= (uint8_t)(1u << (cell % 8));
            diagonal = above;
        }
    }
    lcs->length = row[inner.len];
    return lcs->next == outer.len;
}

static size_t row_bytes(const struct lcs *lcs)
{
    return ((lcs->swapped ? lcs->a.len : lcs->b.len) + 1) * sizeof *lcs->row;
}

static size_t way_bytes(const struct lcs *lcs)
{
    return lcs->a.len * lcs->b.len / 8 + 1;
}

/* Finds the last match before (*a_end, *b_end): a longest run of bytes equal in both strings. Moves
 * both ends to its beginning. STORE_ABSENT: the beginning of a string was reached. */
static enum store_result match_before(struct call *call, const struct lcs *lcs, size_t *a_end,
                                      size_t *b_end, struct lcs_match *match)
{
    size_t i = *a_end, j = *b_end, len = 0;
    assert(i <= lcs->a.len && j <= lcs->b.len);
    while (i > 0 && j > 0) {
        enum store_result result = (i + j) % LCS_WALK_STEPS < 2 ? call_yield(call) : STORE_OK;
        if (result != STORE_OK)
            return result;
        if (lcs->a.data[i - 1] == lcs->b.data[j - 1]) {
            i--, j--, len++;
            continue;
        }
        if (len > 0)
            break;
        size_t cell = cell_of(lcs, i - 1, j - 1);
        if ((lcs->way[cell / 8] >> (cell % 8) & 1) != 0)
            i--;
        else
            j--;
    }
    *match = (struct lcs_match){.a_first = i, .b_first = j, .len = len};
    *a_end = i;
    *b_end = j;
    return len > 0 ? STORE_OK : STORE_ABSENT;
}

static void reply_range(struct resp_writer *reply, size_t first, size_t len)
{
    resp_array(reply, 2);
    resp_integer(reply, (int64_t)first);
    resp_integer(reply, (int64_t)(first + len - 1));
}

static void reply_match(struct resp_writer *reply, const struct lcs_match *match, bool with_len)
{
    resp_array(reply, with_len ? 3 : 2);
    reply_range(reply, match->a_first, match->len);
    reply_range(reply, match->b_first, match->len);
    if (with_len)
        resp_integer(reply, (int64_t)match->len);
}

/* Walks back over all matches that are long enough: counts them, or adds them to the reply. */
static enum store_result walk_matches(struct call *call, const struct lcs *lcs,
                                      const struct lcs_options *options, uint64_t *count,
                                      struct resp_writer *reply)
{
    struct lcs_match match;
    size_t i = lcs->a.len, j = lcs->b.len;
    enum store_result result;
    while ((result = match_before(call, lcs, &i, &j, &match)) == STORE_OK) {
        if ((int64_t)match.len < options->min_match_len)
            continue;
        ++*count;
        if (reply != NULL)
            reply_match(reply, &match, options->with_match_len);
    }
    return result == STORE_ABSENT ? STORE_OK : result;
}

static enum store_result reply_matches(struct call *call, const struct lcs *lcs,
                                       const struct lcs_options *options)
{
    uint64_t count = 0, shown = 0;
    /* Walks the same way twice, because the reply starts with the number of matches. */
    enum store_result result = walk_matches(call, lcs, options, &count, NULL);
    if (result != STORE_OK)
        return result;
    resp_map(call->reply, 2);
    resp_bulk_string(call->reply, "matches");
    resp_array(call->reply, count);
    result = walk_matches(call, lcs, options, &shown, call->reply);
    if (result != STORE_OK)
        return result;
    assert(shown == count);
    resp_bulk_string(call->reply, "len");
    resp_integer(call->reply, lcs->length);
    return STORE_OK;
}

static enum store_result reply_subsequence(struct call *call, const struct lcs *lcs)
{
    char *text = store_alloc(call->txn, (size_t)lcs->length + 1);
    if (text == NULL)
        return STORE_NO_MEMORY;
    size_t end = lcs->length, i = lcs->a.len, j = lcs->b.len;
    struct lcs_match match;
    enum store_result result;
    while ((result = match_before(call, lcs, &i, &j, &match)) == STORE_OK) {
        assert(match.len <= end);
        end -= match.len;
        memcpy(text + end, lcs->a.data + match.a_first, match.len);
    }
    if (result != STORE_ABSENT)
        return result;
    assert(end == 0); /* the way back is as long as the table says, or `text` has a gap */
    resp_bulk(call->reply, text, lcs->length);
    return STORE_OK;
}

/* LCS has an error of its own for other types instead of WRONGTYPE. */
static enum store_result find_both(struct call *call, struct string_value values[2])
{
    for (int i = 0; i < 2; i++) {
        struct string_value *value = &values[i];
        enum store_result result = call_find(call, &call->keys[i], &value->item);
        if (result != STORE_OK && result != STORE_ABSENT)
            return result;
        value->exists = result == STORE_OK;
        value->length = value->exists ? value->item.length : 0;
    }
    for (int i = 0; i < 2; i++) {
        if (!values[i].exists || item_type(&values[i].item) == TYPE_STRING)
            continue;
        resp_error(call->reply, "ERR The specified keys must contain string values");
        return STORE_ANSWERED;
    }
    return STORE_OK;
}

/* ---- in one run ---- */

static enum store_result load(struct call *call, const struct string_value *value,
                              struct resp_slice *bytes)
{
    return string_view(call, &value->item, 0, value->length, &bytes->data);
}

static enum store_result compute_at_once(struct call *call, struct lcs *lcs,
                                         const struct string_value values[2], bool walk_back)
{
    enum store_result result = load(call, &values[0], &lcs->a);
    if (result == STORE_OK)
        result = load(call, &values[1], &lcs->b);
    if (result != STORE_OK)
        return result;
    lcs->row = store_alloc(call->txn, row_bytes(lcs));
    if (walk_back)
        lcs->way = store_alloc(call->txn, way_bytes(lcs));
    if (lcs->row == NULL || (walk_back && lcs->way == NULL))
        return STORE_NO_MEMORY;
    memset(lcs->row, 0, row_bytes(lcs));
    if (walk_back)
        memset(lcs->way, 0, way_bytes(lcs));
    bool is_full = fill(lcs, SIZE_MAX / 2);
    assert(is_full);
    (void)is_full;
    return STORE_OK;
}

/* ---- in steps ---- */

static void free_kept(void *progress)
{
    struct lcs *lcs = progress;
    collected_set(&lcs->collected, 0);
    free(lcs->bytes);
    free(lcs->row);
    free(lcs->way);
    free(lcs);
}

/* Creates the state in the first run. NULL: out of memory. */
static struct lcs *new_kept(struct call *call, const struct lcs *lcs, bool walk_back)
{
    struct lcs *kept = malloc(sizeof *kept);
    if (kept == NULL)
        return NULL;
    *kept = *lcs;
    kept->collected.server = call->server;
    call->progress = kept;
    call->progress_free = free_kept;
    size_t len = lcs->a.len + lcs->b.len;
    if (!collected_set(&kept->collected, len + row_bytes(lcs) + (walk_back ? way_bytes(lcs) : 0)))
        return NULL;
    kept->bytes = malloc(len);
    kept->row = calloc(1, row_bytes(lcs));
    if (walk_back)
        kept->way = calloc(1, way_bytes(lcs));
    if (kept->bytes == NULL || kept->row == NULL || (walk_back && kept->way == NULL))
        return NULL;
    kept->a.data = kept->bytes;
    kept->b.data = kept->bytes + lcs->a.len;
    return kept;
}

/* Copies the next piece of one string, if any is left. */
static enum store_result copy_piece(struct call *call, struct lcs *kept,
                                    const struct string_value *value, uint64_t at, char **room,
                                    uint32_t *work)
{
    struct store_piece piece = {.length = value->length - at};
    enum store_result result;
    if (value->item.large && value->length > STRING_SHORT) {
        if (*room == NULL && (*room = store_alloc(call->txn, STORE_READER_PIECE)) == NULL)
            return STORE_NO_MEMORY;
        result = store_read_piece(call->txn, &value->item, at, *room, &piece);
    } else {
        result = string_view(call, &value->item, at, piece.length, &piece.bytes);
    }
    if (result != STORE_OK)
        return result;
    if (piece.length > value->length - at)
        piece.length = value->length - at;
    if (piece.length > STORE_READER_PIECE) /* a hole */
        piece.length = STORE_READER_PIECE;
    if (piece.bytes != NULL)
        memcpy(kept->bytes + kept->loaded, piece.bytes, piece.length);
    else
        memset(kept->bytes + kept->loaded, 0, piece.length);
    kept->loaded += piece.length;
    *work += STRING_PIECE_WORK;
    return STORE_OK;
}

static enum store_result copy_both(struct call *call, struct lcs *kept,
                                   const struct string_value values[2])
{
    char *room = NULL;
    uint32_t work = 0;
    while (kept->loaded < kept->a.len + kept->b.len) {
        size_t before = kept->loaded < kept->a.len ? 0 : kept->a.len;
        if (string_step_is_full(call, work))
            return store_step(call->txn);
        enum store_result result = copy_piece(call, kept, &values[before == 0 ? 0 : 1],
                                              kept->loaded - before, &room, &work);
        if (result != STORE_OK)
            return result;
    }
    return STORE_OK;
}

static enum store_result compute_in_steps(struct call *call, struct lcs *lcs,
                                          const struct string_value values[2], bool walk_back)
{
    struct lcs *kept = call->progress;
    /* An earlier write in the same transaction has failed. */
    if (kept != NULL && (kept->a.len != lcs->a.len || kept->b.len != lcs->b.len))
        call_drop_progress(call);
    if (call->progress == NULL)
        kept = new_kept(call, lcs, walk_back);
    if (kept == NULL) {
        call_drop_progress(call);
        return STORE_NO_MEMORY;
    }
    enum store_result result = copy_both(call, kept, values);
    if (result != STORE_OK)
        return result;
    if (!fill(kept, LCS_STEP_CELLS * (call->outer != NULL ? STRING_NESTED_STEPS : 1)))
        return store_step(call->txn);
    *lcs = *kept;
    return STORE_OK;
}

static enum store_result compute(struct call *call, struct lcs *lcs,
                                 const struct string_value values[2], bool walk_back)
{
    lcs->a.len = values[0].length;
    lcs->b.len = values[1].length;
    size_t cells = lcs->a.len * lcs->b.len;
    if (cells == 0) {
        lcs->a.len = lcs->b.len = 0;
        return STORE_OK;
    }
    lcs->swapped = lcs->a.len < lcs->b.len;
    bool many = cells > LCS_STEP_CELLS || lcs->a.len + lcs->b.len > STRING_SHORT;
    return many ? compute_in_steps(call, lcs, values, walk_back)
                : compute_at_once(call, lcs, values, walk_back);
}

enum store_result cmd_lcs(struct call *call)
{
    struct string_value values[2];
    struct lcs_options options;
    struct lcs lcs = {.a = {"", 0}, .b = {"", 0}};
    enum store_result result = find_both(call, values);
    if (result != STORE_OK)
        return result;
    if (!read_options(call, &options) || !table_fits(call, values[0].length, values[1].length))
        return STORE_OK;
    result = compute(call, &lcs, values, !options.length_only);
    if (result != STORE_OK)
        return result;
    if (options.ranges)
        return reply_matches(call, &lcs, &options);
    if (!options.length_only)
        return reply_subsequence(call, &lcs);
    resp_integer(call->reply, lcs.length);
    return STORE_OK;
}
