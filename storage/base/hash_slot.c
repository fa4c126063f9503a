/*
 * The hash slot of a key: CRC-16 (polynomial 0x1021, not reflected, initially 0) of the key, or
 * of its {tag} if it has one, modulo 16384. Clients and cluster tools compute the same.
 *
 * The CRC is computed eight bytes at a time. Row k of the table holds the remainder of each byte
 * value followed by k zero bytes. Since the CRC is linear, that of eight bytes is the sum (XOR)
 * of eight independent look-ups. The compiler computes the rows from the remainders of single
 * bits.
 */
#include "storage/store.h"

#include <string.h>

#define BIT(b, i, remainder) (((b) >> (i)&1) * (remainder))
#define AT(b, r0, r1, r2, r3, r4, r5, r6, r7)                                                      \
    (BIT(b, 0, r0) ^ BIT(b, 1, r1) ^ BIT(b, 2, r2) ^ BIT(b, 3, r3) ^ BIT(b, 4, r4) ^               \
     BIT(b, 5, r5) ^ BIT(b, 6, r6) ^ BIT(b, 7, r7))
#define AT4(b, ...)                                                                                \
    AT((b), __VA_ARGS__), AT((b) + 1, __VA_ARGS__), AT((b) + 2, __VA_ARGS__),                      \
        AT((b) + 3, __VA_ARGS__)
#define AT16(b, ...)                                                                               \
    AT4((b), __VA_ARGS__), AT4((b) + 4, __VA_ARGS__), AT4((b) + 8, __VA_ARGS__),                   \
        AT4((b) + 12, __VA_ARGS__)
#define AT64(b, ...)                                                                               \
    AT16((b), __VA_ARGS__), AT16((b) + 16, __VA_ARGS__), AT16((b) + 32, __VA_ARGS__),              \
        AT16((b) + 48, __VA_ARGS__)
#define ROW(...)                                                                                   \
    {                                                                                              \
        AT64(0, __VA_ARGS__), AT64(64, __VA_ARGS__), AT64(128, __VA_ARGS__),                       \
            AT64(192, __VA_ARGS__)                                                                 \
    }

/* Row k: the remainders of x^(16 + 8k) ... x^(23 + 8k). */
static const uint16_t remainder_of[8][256] = {
    ROW(0x1021, 0x2042, 0x4084, 0x8108, 0x1231, 0x2462, 0x48c4, 0x9188),
    ROW(0x3331, 0x6662, 0xccc4, 0x89a9, 0x0373, 0x06e6, 0x0dcc, 0x1b98),
    ROW(0x3730, 0x6e60, 0xdcc0, 0xa9a1, 0x4363, 0x86c6, 0x1dad, 0x3b5a),
    ROW(0x76b4, 0xed68, 0xcaf1, 0x85c3, 0x1ba7, 0x374e, 0x6e9c, 0xdd38),
    ROW(0xaa51, 0x4483, 0x8906, 0x022d, 0x045a, 0x08b4, 0x1168, 0x22d0),
    ROW(0x45a0, 0x8b40, 0x06a1, 0x0d42, 0x1a84, 0x3508, 0x6a10, 0xd420),
    ROW(0xb861, 0x60e3, 0xc1c6, 0x93ad, 0x377b, 0x6ef6, 0xddec, 0xabf9),
    ROW(0x47d3, 0x8fa6, 0x0f6d, 0x1eda, 0x3db4, 0x7b68, 0xf6d0, 0xfd81),
};

static uint32_t crc16(const unsigned char *p, size_t len)
{
    const uint16_t(*row)[256] = remainder_of;
    uint32_t crc = 0;
    for (; len >= 8; p += 8, len -= 8) {
        crc = row[7][p[0] ^ crc >> 8] ^ row[6][p[1] ^ (crc & 0xff)] ^ row[5][p[2]] ^ row[4][p[3]] ^
              row[3][p[4]] ^ row[2][p[5]] ^ row[1][p[6]] ^ row[0][p[7]];
    }
    if (len >= 4) {
        crc = row[3][p[0] ^ crc >> 8] ^ row[2][p[1] ^ (crc & 0xff)] ^ row[1][p[2]] ^ row[0][p[3]];
        p += 4;
        len -= 4;
    }
    for (; len > 0; p++, len--) {
        crc = (crc << 8 & 0xffff) ^ row[0][*p ^ crc >> 8];
    }
    return crc;
}

uint32_t store_hash_slot(const char *data, size_t len)
{
    /* Only the first { counts, with the first } after it, and only with at least one byte
     * between them. */
    const char *open = len > 0 ? memchr(data, '{', len) : NULL;
    if (open != NULL) {
        const char *tag = open + 1;
        size_t rest = len - (size_t)(tag - data);
        const char *close = memchr(tag, '}', rest);
        if (close != NULL && close != tag) {
            return crc16((const unsigned char *)tag, (size_t)(close - tag)) % STORE_SLOT_COUNT;
        }
    }
    return crc16((const unsigned char *)data, len) % STORE_SLOT_COUNT;
}
