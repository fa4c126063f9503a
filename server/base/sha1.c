#include "server/base/sha1.h"

#include <stdint.h>
#include <string.h>

#define BLOCK 64

static uint32_t rotate(uint32_t word, int bits)
{
    return (word << bits) | (word >> (32 - bits));
}

static void expand(const uint8_t *block, uint32_t words[80])
{
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 80; i++)
        words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
}

static void mix(uint32_t state[5], const uint8_t *block)
{
    uint32_t words[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    expand(block, words);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                     : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                     : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                              : (b ^ c ^ d) + 0xca62c1d6;
        uint32_t next = rotate(a, 5) + f + e + words[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

/* The rest of the data, a one bit, padding, and the length in bits. */
static void mix_end(uint32_t state[5], const char *rest, size_t rest_len, uint64_t len)
{
    uint8_t end[2 * BLOCK] = {0};
    size_t size = rest_len + 9 <= BLOCK ? BLOCK : 2 * BLOCK;
    if (rest_len > 0)
        memcpy(end, rest, rest_len);
    end[rest_len] = 0x80;
    for (int i = 0; i < 8; i++)
        end[size - 1 - (size_t)i] = (uint8_t)(len * 8 >> 8 * i);
    for (size_t at = 0; at < size; at += BLOCK)
        mix(state, end + at);
}

void sha1_hex(const char *data, size_t len, char hex[SHA1_HEX_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    size_t at = 0;
    for (; len - at >= BLOCK; at += BLOCK)
        mix(state, (const uint8_t *)data + at);
    mix_end(state, at < len ? data + at : NULL, len - at, len); /* data may be NULL if len is 0 */
    for (int i = 0; i < SHA1_HEX_LEN; i++)
        hex[i] = digits[state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[SHA1_HEX_LEN] = '\0';
}
