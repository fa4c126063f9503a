/* SHA-1 as redis.sha1hex gives it: FIPS 180's examples, and lengths around a block's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/base/sha1.h"

static void must_be(const char *data, size_t len, const char *expected)
{
    char hex[SHA1_HEX_LEN + 1];
    sha1_hex(data, len, hex);
    assert_string_equal(hex, expected);
}

static void examples(void **state)
{
    (void)state;
    must_be("abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
    must_be("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

/* Nothing may have no address, as an empty argument of a script has. */
static void nothing(void **state)
{
    (void)state;
    must_be(NULL, 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    must_be("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

static void whole_blocks(void **state)
{
    (void)state;
    char data[128];
    memset(data, 'a', sizeof data);
    must_be(data, 63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5");
    must_be(data, 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d");
    must_be(data, 65, "11655326c708d70319be2610e8a57d9a5b959d3b");
    must_be(data, 128, "ad5b3fdbcb526778c2839d2f151ea753995e26a0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples),
        cmocka_unit_test(nothing),
        cmocka_unit_test(whole_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
