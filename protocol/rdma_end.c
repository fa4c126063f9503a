#include "protocol/rdma_end.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "protocol/rdma_frame.h"

#define SEND_ATTRIBUTES 7

/* The GID is the first attribute and not a number. */
struct attribute {
    const char *name;
    size_t offset;
    uint64_t min, max; /* at most 32 bits, the width of the field */
};

static const struct attribute attributes[RDMA_END_ATTRIBUTES] = {
    {.name = "GID"},
    {"LID", offsetof(struct rdma_end, lid), 0, 0xffff},
    {"QPN", offsetof(struct rdma_end, qpn), 1, 0xffffff},
    {"PSN", offsetof(struct rdma_end, psn), 0, 0xffffff},
    {"MTU", offsetof(struct rdma_end, mtu), 256, 4096},
    {"FRAME", offsetof(struct rdma_end, frame_bytes), RDMA_FRAME_BYTES_MIN, RDMA_FRAME_BYTES_MAX},
    {"CREDITS", offsetof(struct rdma_end, credits), RDMA_CREDITS_MIN, RDMA_CREDITS_MAX},
    {"RING", offsetof(struct rdma_end, ring), 0, UINT64_MAX},
    {"RKEY", offsetof(struct rdma_end, ring_key), 0, UINT32_MAX},
};

static const char *const mode_names[RDMA_MODE_COUNT] = {"send", "write"};

const char *rdma_mode_name(enum rdma_mode mode)
{
    return mode_names[mode];
}

bool rdma_mode_read(enum rdma_mode *mode, const char *name, size_t len)
{
    for (int i = 0; i < RDMA_MODE_COUNT; i++)
        if (strlen(mode_names[i]) == len && strncasecmp(mode_names[i], name, len) == 0) {
            *mode = (enum rdma_mode)i;
            return true;
        }
    return false;
}

uint32_t rdma_end_attributes(const struct rdma_end *end)
{
    return end->mode == RDMA_MODE_WRITE ? RDMA_END_ATTRIBUTES : SEND_ATTRIBUTES;
}

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool read_gid(uint8_t gid[16], const char *value, size_t len)
{
    if (len != 32)
        return false;
    for (size_t i = 0; i < 16; i++) {
        int high = digit(value[2 * i]), low = digit(value[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        gid[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool read_number(uint64_t *number, const char *value, size_t len)
{
    uint64_t sum = 0;
    if (len == 0 || len > 20)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9')
            return false;
        if (__builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(value[i] - '0'), &sum))
            return false;
    }
    *number = sum;
    return true;
}

static bool is_wide(const struct attribute *attribute)
{
    return attribute->max > UINT32_MAX;
}

static bool read_value(struct rdma_end *end, const struct attribute *attribute, const char *value,
                       size_t len)
{
    uint64_t number;
    if (attribute == attributes)
        return read_gid(end->gid, value, len);
    if (!read_number(&number, value, len) || number < attribute->min || number > attribute->max)
        return false;
    if (attribute->offset == offsetof(struct rdma_end, mtu) && (number & (number - 1)) != 0)
        return false;
    uint32_t narrow = (uint32_t)number;
    if (is_wide(attribute))
        memcpy((char *)end + attribute->offset, &number, sizeof number);
    else
        memcpy((char *)end + attribute->offset, &narrow, sizeof narrow);
    return true;
}

bool rdma_end_read(struct rdma_end *end, const char *name, size_t name_len, const char *value,
                   size_t value_len)
{
    for (uint32_t i = 0; i < RDMA_END_ATTRIBUTES; i++) {
        const struct attribute *attribute = &attributes[i];
        if (strlen(attribute->name) != name_len ||
            strncasecmp(attribute->name, name, name_len) != 0)
            continue;
        end->present |= 1u << i;
        return read_value(end, attribute, value, value_len);
    }
    return true;
}

const char *rdma_end_missing(const struct rdma_end *end)
{
    for (uint32_t i = 0; i < rdma_end_attributes(end); i++)
        if ((end->present & 1u << i) == 0)
            return attributes[i].name;
    return NULL;
}

const char *rdma_end_print(const struct rdma_end *end, uint32_t index,
                           char value[RDMA_END_TEXT_MAX])
{
    const struct attribute *attribute = &attributes[index];
    const char *field = (const char *)end + attribute->offset;
    uint32_t narrow;
    uint64_t number;
    if (index == 0) {
        for (size_t i = 0; i < sizeof end->gid; i++)
            snprintf(value + 2 * i, 3, "%02x", end->gid[i]);
        return attribute->name;
    }
    memcpy(&narrow, field, sizeof narrow);
    number = narrow;
    if (is_wide(attribute))
        memcpy(&number, field, sizeof number);
    snprintf(value, RDMA_END_TEXT_MAX, "%llu", (unsigned long long)number);
    return attribute->name;
}
