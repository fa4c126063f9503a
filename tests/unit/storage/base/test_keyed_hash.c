/* The keyed hash is SipHash-1-3: it is part of the data format, and must stay what it is. */
#include "storage/base/keyed_hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* With a key of zeros; CPython, whose bytes are hashed so under PYTHONHASHSEED=0, agrees. */
static void hashes_are_those_of_siphash(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t hash;
    } known[] = {
        {"a", 0x407448d2b89b1813},         {"abc", 0xc03bc3a0042630f2},
        {"1234567", 0xa33d651594fdae81},   {"12345678", 0x3489982430560a87},
        {"123456789", 0x0fbc0f0007965fcf},
    };
    static const uint64_t key[2] = {0, 0};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_true(store_keyed_hash(key, known[i].text, strlen(known[i].text)) == known[i].hash);
    char text[100];
    memset(text, 'x', sizeof text);
    assert_true(store_keyed_hash(key, text, sizeof text) == 0x12de6d6e12e5750c);
}

static void the_key_counts(void **state)
{
    (void)state;
    static const uint64_t keys[][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            assert_true(store_keyed_hash(keys[i], "abc", 3) != store_keyed_hash(keys[j], "abc", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_those_of_siphash),
        cmocka_unit_test(the_key_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
