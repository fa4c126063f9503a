/*
 * The runs of a sparse HyperLogLog:
 *
 *     BITS               REGISTERS
 *     00llllll           l + 1 zeros
 *     01llllll llllllll  l + 1 zeros, the high bits first
 *     1vvvvvll           l + 1 times v + 1
 *
 * Invariant of a struct hll: its runs cover exactly HLL_REGISTERS registers, and no bytes follow
 * them.
 */
#include "server/types/hyperloglog.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DENSE 0
#define SPARSE 1
#define INDEX_BITS 14
#define RANK_MAX (64 - INDEX_BITS + 1)
#define SPARSE_VALUE_MAX 32
#define SPARSE_RUN_MAX 4 /* of a value */
#define SHORT_ZEROS_MAX 64
#define HASH_SEED UINT64_C(0xadc83b19)
#define OUTDATED 0x80
#define MERGE_LOOKS 5

static const char magic[4] = {'H', 'Y', 'L', 'L'};

static const uint8_t *bytes_of(struct resp_slice string)
{
    return (const uint8_t *)string.data;
}

bool hll_is_one(struct resp_slice string)
{
    if (string.len < HLL_HEADER_BYTES || memcmp(string.data, magic, sizeof magic) != 0)
        return false;
    uint8_t encoding = bytes_of(string)[4];
    return encoding == SPARSE || (encoding == DENSE && string.len == HLL_DENSE_BYTES);
}

bool hll_is_sparse(struct resp_slice string)
{
    return bytes_of(string)[4] == SPARSE;
}

/* ---- registers, dense ---- */

static uint8_t dense_read(const uint8_t *registers, uint32_t index)
{
    uint32_t at = index * 6 / 8, shift = index * 6 % 8;
    unsigned window = registers[at];
    if (shift > 2)
        window |= (unsigned)registers[at + 1] << 8;
    return (window >> shift) & 63;
}

static void dense_write(uint8_t *registers, uint32_t index, uint8_t value)
{
    uint32_t at = index * 6 / 8, shift = index * 6 % 8;
    registers[at] = (uint8_t)((registers[at] & ~(63u << shift)) | (unsigned)value << shift);
    if (shift > 2)
        registers[at + 1] =
            (uint8_t)((registers[at + 1] & ~(63u >> (8 - shift))) | (unsigned)value >> (8 - shift));
}

/* ---- runs ---- */

struct run {
    uint32_t len;
    uint8_t value, size;
};

static struct run read_run(const uint8_t *at)
{
    if ((at[0] & 0x80) != 0)
        return (struct run){(at[0] & 3u) + 1, (uint8_t)(((at[0] >> 2) & 31) + 1), 1};
    if ((at[0] & 0x40) != 0)
        return (struct run){((at[0] & 0x3fu) << 8 | at[1]) + 1, 0, 2};
    return (struct run){at[0] + 1u, 0, 1};
}

static size_t write_run(uint8_t *to, uint32_t len, uint8_t value)
{
    if (len == 0)
        return 0;
    if (value > 0) {
        assert(len <= SPARSE_RUN_MAX && value <= SPARSE_VALUE_MAX);
        to[0] = (uint8_t)(0x80 | (value - 1) << 2 | (len - 1));
        return 1;
    }
    if (len <= SHORT_ZEROS_MAX) {
        to[0] = (uint8_t)(len - 1);
        return 1;
    }
    to[0] = (uint8_t)(0x40 | (len - 1) >> 8);
    to[1] = (uint8_t)(len - 1);
    return 2;
}

/* Raises the registers to those of the runs. False: the runs are malformed. */
static bool collect_runs(uint8_t *registers, const uint8_t *at, const uint8_t *end)
{
    uint32_t first = 0;
    while (at < end) {
        if ((at[0] & 0xc0) == 0x40 && end - at < 2)
            return false;
        struct run run = read_run(at);
        if (run.len > HLL_REGISTERS - first)
            return false;
        for (uint32_t i = first; run.value > 0 && i < first + run.len; i++)
            if (registers[i] < run.value)
                registers[i] = run.value;
        first += run.len;
        at += run.size;
    }
    return first == HLL_REGISTERS;
}

enum hll_state hll_collect(uint8_t registers[HLL_REGISTERS], struct resp_slice string)
{
    if (!hll_is_one(string))
        return HLL_FOREIGN;
    const uint8_t *from = bytes_of(string) + HLL_HEADER_BYTES;
    if (hll_is_sparse(string))
        return collect_runs(registers, from, bytes_of(string) + string.len) ? HLL_GOOD
                                                                            : HLL_CORRUPT;
    for (uint32_t i = 0; i < HLL_REGISTERS; i++) {
        uint8_t value = dense_read(from, i);
        if (registers[i] < value)
            registers[i] = value;
    }
    return HLL_GOOD;
}

/* ---- making ---- */

void hll_make(struct hll *hll)
{
    memset(hll->bytes, 0, HLL_HEADER_BYTES);
    memcpy(hll->bytes, magic, sizeof magic);
    hll->bytes[4] = SPARSE;
    hll->len = HLL_HEADER_BYTES + write_run(hll->bytes + HLL_HEADER_BYTES, HLL_REGISTERS, 0);
}

enum hll_state hll_open(struct hll *hll, struct resp_slice string)
{
    uint8_t registers[HLL_REGISTERS] = {0};
    enum hll_state state = hll_collect(registers, string);
    if (state != HLL_GOOD)
        return state;
    assert(string.len <= HLL_BYTES_MAX); /* a run covers at least one register */
    memcpy(hll->bytes, string.data, string.len);
    hll->len = string.len;
    return HLL_GOOD;
}

void hll_make_dense(struct hll *hll)
{
    uint8_t registers[HLL_REGISTERS] = {0};
    bool whole = collect_runs(registers, hll->bytes + HLL_HEADER_BYTES, hll->bytes + hll->len);
    assert(whole);
    (void)whole;
    hll->len = HLL_DENSE_BYTES;
    hll->bytes[4] = DENSE;
    memset(hll->bytes + HLL_HEADER_BYTES, 0, HLL_DENSE_BYTES - HLL_HEADER_BYTES);
    for (uint32_t i = 0; i < HLL_REGISTERS; i++)
        dense_write(hll->bytes + HLL_HEADER_BYTES, i, registers[i]);
}

/* ---- raising a register ---- */

static void splice(struct hll *hll, size_t at, size_t old_size, const uint8_t *fresh, size_t size)
{
    assert(hll->len - old_size + size <= HLL_BYTES_MAX);
    memmove(hll->bytes + at + size, hll->bytes + at + old_size, hll->len - at - old_size);
    memcpy(hll->bytes + at, fresh, size);
    hll->len = hll->len - old_size + size;
}

/* Merges adjacent runs of equal value, as far as Redis does. */
static void join_runs(struct hll *hll, size_t at)
{
    for (int looks = MERGE_LOOKS; looks > 0 && at < hll->len; looks--) {
        struct run run = read_run(hll->bytes + at);
        size_t behind = at + run.size;
        if (run.value > 0 && behind < hll->len) {
            struct run next = read_run(hll->bytes + behind);
            if (next.value == run.value && next.len + run.len <= SPARSE_RUN_MAX) {
                uint8_t joined;
                write_run(&joined, next.len + run.len, run.value);
                splice(hll, at, 2, &joined, 1);
                continue;
            }
        }
        at = behind;
    }
}

static bool raise_sparse(struct hll *hll, uint32_t index, uint8_t value, uint64_t sparse_max)
{
    size_t at = HLL_HEADER_BYTES, before = at;
    uint32_t first = 0;
    uint8_t fresh[5];
    struct run run = read_run(hll->bytes + at);
    while (first + run.len <= index) {
        first += run.len;
        before = at;
        at += run.size;
        assert(at < hll->len);
        run = read_run(hll->bytes + at);
    }
    if (run.value >= value)
        return false;
    size_t size = 0;
    if (value <= SPARSE_VALUE_MAX) {
        size = write_run(fresh, index - first, run.value);
        size += write_run(fresh + size, 1, value);
        size += write_run(fresh + size, first + run.len - 1 - index, run.value);
    }
    if (size == 0 || (size > run.size && hll->len + size - run.size > sparse_max)) {
        hll_make_dense(hll);
        return hll_raise(hll, index, value, sparse_max);
    }
    splice(hll, at, run.size, fresh, size);
    join_runs(hll, before);
    return true;
}

bool hll_raise(struct hll *hll, uint32_t index, uint8_t value, uint64_t sparse_max)
{
    if (hll->bytes[4] == SPARSE)
        return raise_sparse(hll, index, value, sparse_max);
    uint8_t *registers = hll->bytes + HLL_HEADER_BYTES;
    if (dense_read(registers, index) >= value)
        return false;
    dense_write(registers, index, value);
    return true;
}

/* ---- elements ---- */

static uint64_t read_word(const char *from, size_t len)
{
    uint64_t word = 0;
    for (size_t i = 0; i < len; i++)
        word |= (uint64_t)(uint8_t)from[i] << (8 * i);
    return word;
}

/* MurmurHash64A. */
static uint64_t hash(struct resp_slice bytes)
{
    const uint64_t factor = UINT64_C(0xc6a4a7935bd1e995);
    uint64_t state = HASH_SEED ^ (bytes.len * factor);
    size_t at = 0;
    for (; bytes.len - at >= 8; at += 8) {
        uint64_t word;
        memcpy(&word, bytes.data + at, 8);
        word *= factor;
        word ^= word >> 47;
        state = (state ^ word * factor) * factor;
    }
    if (at < bytes.len)
        state = (state ^ read_word(bytes.data + at, bytes.len - at)) * factor;
    state = (state ^ state >> 47) * factor;
    return state ^ state >> 47;
}

bool hll_add(struct hll *hll, struct resp_slice element, uint64_t sparse_max)
{
    uint64_t bits = hash(element);
    uint32_t index = bits & (HLL_REGISTERS - 1);
    bits = bits >> INDEX_BITS | UINT64_C(1) << (RANK_MAX - 1);
    return hll_raise(hll, index, (uint8_t)(__builtin_ctzll(bits) + 1), sparse_max);
}

/* ---- estimates: Otmar Ertl, New cardinality estimation algorithms for HyperLogLog sketches ----
 */

static double sigma(double x)
{
    if (x == 1)
        return INFINITY;
    double power = 1, sum = x, before;
    do {
        x *= x;
        before = sum;
        sum += x * power;
        power += power;
    } while (sum != before);
    return sum;
}

static double tau(double x)
{
    if (x == 0 || x == 1)
        return 0;
    double power = 1, sum = 1 - x, before;
    do {
        x = sqrt(x);
        before = sum;
        power *= 0.5;
        sum -= (1 - x) * (1 - x) * power;
    } while (sum != before);
    return sum / 3;
}

uint64_t hll_estimate(const uint8_t registers[HLL_REGISTERS])
{
    const double alpha = 0.721347520444481703680; /* 1 / (2 ln 2) */
    const double m = HLL_REGISTERS;
    uint32_t counts[64] = {0};
    for (uint32_t i = 0; i < HLL_REGISTERS; i++)
        counts[registers[i] & 63]++;
    double sum = m * tau((m - counts[RANK_MAX]) / m);
    for (int rank = RANK_MAX - 1; rank >= 1; rank--)
        sum = (sum + counts[rank]) * 0.5;
    sum += m * sigma(counts[0] / m);
    return (uint64_t)llroundl((long double)(alpha * m * m / sum));
}

bool hll_kept(struct resp_slice string, uint64_t *estimate)
{
    *estimate = read_word(string.data + HLL_KEPT_AT, 8);
    return (bytes_of(string)[HLL_HEADER_BYTES - 1] & OUTDATED) == 0;
}

void hll_keep(char bytes[8], uint64_t estimate)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(estimate >> (8 * i));
}

void hll_forget(struct hll *hll)
{
    hll->bytes[HLL_HEADER_BYTES - 1] |= OUTDATED;
}

/* ---- for debugging ---- */

void hll_describe(struct resp_writer *text, struct resp_slice string)
{
    char word[24];
    for (size_t at = HLL_HEADER_BYTES; at < string.len;) {
        struct run run = read_run(bytes_of(string) + at);
        int len;
        if (run.value > 0)
            len = snprintf(word, sizeof word, "v:%u,%u ", run.value, run.len);
        else
            len = snprintf(word, sizeof word, "%c:%u ", run.size == 2 ? 'Z' : 'z', run.len);
        at += run.size;
        resp_raw(text, word, (size_t)len - (at >= string.len)); /* no trailing space */
    }
}
