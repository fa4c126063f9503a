/*
 * Any bytes as a value of RDB: what is read must lie in memory, and written and read again be the
 * same.
 */
#include "server/types/rdb.h"
#include "server/types/rdb_read.h"
#include "server/types/rdb_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

/* ---- memory in blocks of just their size, freed together ---- */

struct block {
    struct block *next;
};

static void *alloc(void *arg, size_t size)
{
    struct block **blocks = arg;
    struct block *block = malloc(sizeof *block + size);
    require(block != NULL, "memory for the fuzzer itself");
    block->next = *blocks;
    *blocks = block;
    return block + 1;
}

static void free_blocks(struct block *blocks)
{
    while (blocks != NULL) {
        struct block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
}

/* ---- the property ---- */

static void write_value(struct resp_writer *out, const struct rdb_value *value)
{
    rdb_put_head(out, value->kind, value->kind == RDB_HASH ? value->count / 2 : value->count);
    for (size_t i = 0; i < value->count; i++) {
        rdb_put_string(out, value->slices[i]);
        if (value->kind == RDB_ZSET)
            rdb_put_score(out, value->scores[i]);
    }
}

static void compare(const struct rdb_value *a, const struct rdb_value *b)
{
    require(a->kind == b->kind && a->count == b->count, "as many elements");
    for (size_t i = 0; i < a->count; i++) {
        struct resp_slice x = a->slices[i], y = b->slices[i];
        require(x.len == y.len && (x.len == 0 || memcmp(x.data, y.data, x.len) == 0), "elements");
        require(a->kind != RDB_ZSET || a->scores[i] == b->scores[i], "scores");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct block *blocks = NULL;
    struct rdb_caller caller = {.alloc = alloc, .arg = &blocks};
    struct rdb_value value, again;
    if (rdb_read_value((struct resp_slice){(const char *)data, size}, caller, &value) == RDB_OK) {
        struct resp_writer out;
        resp_writer_init(&out, 2);
        write_value(&out, &value);
        struct resp_slice bytes = {out.data, out.len};
        require(rdb_read_value(bytes, caller, &again) == RDB_OK, "what is written is good");
        compare(&value, &again);
        resp_writer_free(&out);
    }
    free_blocks(blocks);
    return 0;
}
