/* Bytes laid over a large value, against a value that has them; and very many of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/value/patches.h"
#include "storage/store.h"

#define ROOM 3000u
#define ROUNDS 200u
#define MANY 200000u

/* ---- the transaction's memory ---- */

struct store_txn {
    char *bytes;
    size_t used, size;
};

void *store_alloc(struct store_txn *txn, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (txn->size - txn->used < size)
        return NULL;
    void *memory = txn->bytes + txn->used;
    txn->used += size;
    return memory;
}

static struct store_txn memory_of(size_t size)
{
    struct store_txn txn = {.bytes = malloc(size), .size = size};
    assert_non_null(txn.bytes);
    return txn;
}

static uint32_t below(uint64_t *random, uint32_t bound)
{
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((*random >> 33) % bound);
}

/* ---- against a model ---- */

struct model {
    char bytes[ROOM], laid[ROOM]; /* whether a patch says it */
};

static bool covers(const struct model *model, uint32_t offset, uint32_t len)
{
    return memchr(model->laid + offset, 0, len) == NULL;
}

static void compare(const struct patches *patches, const struct model *model, uint64_t *random)
{
    char room[ROOM] = {0};
    uint32_t offset = below(random, ROOM - 1), len = 1 + below(random, ROOM - offset);
    patches_overlay(patches, offset, len, room);
    for (uint32_t i = 0; i < len; i++)
        assert_int_equal(room[i], model->laid[offset + i] ? model->bytes[offset + i] : 0);
    assert_int_equal(patches_cover(patches, offset, len), covers(model, offset, len));
    const char *behind = memchr(model->laid + offset, 1, ROOM - offset);
    const struct patch *patch = patches_behind(patches, offset);
    assert_int_equal(patch != NULL, behind != NULL);
    if (patch && patch->offset > offset)
        assert_int_equal(patch->offset, behind - model->laid);
    const char *before = memrchr(model->laid, 1, offset);
    uint64_t end = patches_end_before(patches, offset);
    assert_int_equal(end > 0, before != NULL);
    if (before && before - model->laid < (int64_t)offset - 1)
        assert_int_equal(end, before - model->laid + 1);
    else if (before)
        assert_true(end >= offset);
}

static void they_are_as_if_written(void **state)
{
    (void)state;
    uint64_t random = 1;
    char source[2 * ROOM];
    for (uint32_t i = 0; i < sizeof source; i++)
        source[i] = (char)(1 + below(&random, 100));
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct store_txn txn = memory_of(1 << 16);
        struct model model = {.laid = {0}};
        struct patches *patches = NULL;
        uint32_t longest = 1 + below(&random, round % 2 ? 40 : ROOM - 1);
        for (uint32_t i = 0; i < 150; i++) {
            uint32_t offset = below(&random, ROOM);
            uint32_t len = below(&random, longest + 1);
            if (len > ROOM - offset)
                len = ROOM - offset;
            const char *bytes = source + below(&random, ROOM);
            assert_true(patches_lay(&txn, &patches, offset, bytes, len));
            memcpy(model.bytes + offset, bytes, len);
            memset(model.laid + offset, 1, len);
            compare(patches, &model, &random);
        }
        free(txn.bytes);
    }
}

static void memory_may_be_short(void **state)
{
    (void)state;
    for (size_t size = 0; size < 1024; size += 16) {
        struct store_txn txn = memory_of(1024);
        struct patches *patches = NULL;
        txn.size = size;
        bool all = patches_lay(&txn, &patches, 10, "aaaaaaaaaa", 10) &&
                   patches_lay(&txn, &patches, 12, "b", 1) &&
                   patches_lay(&txn, &patches, 0, "cccccccccccccccccccc", 20);
        if (all)
            assert_true(patches_cover(patches, 0, 20));
        free(txn.bytes);
    }
}

/* As many as one transaction may have: each is laid and looked at in a few steps. */
static void very_many_take_no_longer_each(void **state)
{
    (void)state;
    struct store_txn txn = memory_of((size_t)256 << 20);
    struct patches *patches = NULL;
    char byte, text[] = "0123456789";
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t offset = i * 2654435761u % (16 * MANY);
        assert_true(patches_lay(&txn, &patches, offset, text, 10));
        patches_overlay(patches, offset + 9, 1, &byte);
        assert_int_equal(byte, '9');
    }
    assert_true(txn.used < MANY * (size_t)200);
    free(txn.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_as_if_written),
        cmocka_unit_test(memory_may_be_short),
        cmocka_unit_test(very_many_take_no_longer_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
