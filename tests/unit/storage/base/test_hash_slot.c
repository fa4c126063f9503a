/* Hash slots: known values, which part of a key counts, and the table against the plain CRC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/store.h"

static uint32_t slot_of(const char *key)
{
    return store_hash_slot(key, strlen(key));
}

/* One bit at a time, as the polynomial is defined. */
static uint32_t plain_slot(const unsigned char *data, size_t len)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (uint32_t)data[i] << 8;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 0x8000 ? (crc << 1 ^ 0x1021) & 0xffff : crc << 1;
        }
    }
    return crc % STORE_SLOT_COUNT;
}

/* As CLUSTER KEYSLOT of a stock server answers. */
static void known_keys_have_their_slots(void **state)
{
    (void)state;
    assert_int_equal(store_hash_slot(NULL, 0), 0);
    assert_int_equal(slot_of("123456789"), 0x31c3);
    assert_int_equal(slot_of("foo"), 12182);
    assert_int_equal(slot_of("bar"), 5061);
    assert_int_equal(slot_of("somekey"), 11058);
    assert_int_equal(slot_of("foo{hash_tag}"), 2515);
}

static void only_the_first_tag_counts(void **state)
{
    (void)state;
    assert_int_equal(slot_of("{user1000}.following"), slot_of("user1000"));
    assert_int_equal(slot_of("{user1000}.followers"), slot_of("user1000"));
    assert_int_equal(slot_of("foo{bar}{zap}"), slot_of("bar"));
    assert_int_equal(slot_of("foo{{bar}}zap"), slot_of("{bar"));
    assert_int_equal(slot_of("}{bar}"), slot_of("bar"));
}

static uint32_t whole(const char *key)
{
    return plain_slot((const unsigned char *)key, strlen(key));
}

static void without_a_tag_the_whole_key_counts(void **state)
{
    (void)state;
    const char *keys[] = {"foo{}{bar}", "foo{bar", "foo}bar{", "{}", "{", "}", "a{}b"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        assert_int_equal(slot_of(keys[i]), whole(keys[i]));
    }
    assert_int_equal(store_hash_slot("{bar}", 4), whole("{bar"));
}

static void every_length_and_byte_agrees_with_the_plain_crc(void **state)
{
    (void)state;
    unsigned char data[100] = {0};
    for (size_t len = 1; len <= sizeof data; len++) {
        for (size_t i = 0; i < len; i++) {
            for (int byte = 1; byte < 256; byte++) {
                if (byte != '{') {
                    data[i] = (unsigned char)byte;
                    assert_int_equal(store_hash_slot((char *)data, len), plain_slot(data, len));
                }
            }
            data[i] = (unsigned char)(len + 37 * i) == '{' ? 1 : (unsigned char)(len + 37 * i);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_keys_have_their_slots),
        cmocka_unit_test(only_the_first_tag_counts),
        cmocka_unit_test(without_a_tag_the_whole_key_counts),
        cmocka_unit_test(every_length_and_byte_agrees_with_the_plain_crc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
