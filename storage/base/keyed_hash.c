#include "storage/base/keyed_hash.h"

#include <string.h>

struct state {
    uint64_t a, b, c, d;
};

static uint64_t rotate(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static void mix(struct state *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = rotate(s->b, 13) ^ s->a;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a = rotate(s->a, 32);
    s->c += s->b;
    s->a += s->d;
    s->b = rotate(s->b, 17) ^ s->c;
    s->d = rotate(s->d, 21) ^ s->a;
    s->c = rotate(s->c, 32);
}

static void absorb(struct state *s, uint64_t word)
{
    s->d ^= word;
    mix(s);
    s->a ^= word;
}

/* Little-endian, like this machine. */
uint64_t store_keyed_hash(const uint64_t key[2], const char *data, size_t len)
{
    struct state s = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                      key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
    uint64_t word, last = (uint64_t)len << 56;
    size_t whole = len / 8 * 8;
    for (size_t at = 0; at < whole; at += 8) {
        memcpy(&word, data + at, 8);
        absorb(&s, word);
    }
    for (size_t i = whole; i < len; i++)
        last |= (uint64_t)(uint8_t)data[i] << (8 * (i - whole));
    absorb(&s, last);
    s.c ^= 0xff;
    for (int i = 0; i < 3; i++)
        mix(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}
