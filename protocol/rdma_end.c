#include "rdma_end.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "rdma_frame.h"

/* The GID comes first, and is no number. */
struct attribute {
    const char *name;
    size_t offset;
    uint32_t min, max;
};

static const struct attribute attributes[RDMA_END_ATTRIBUTES] = {
    {.name = "GID"},
    {"LID", offsetof(struct rdma_end, lid), 0, 0xffff},
    {"QPN", offsetof(struct rdma_end, qpn), 1, 0xffffff},
    {"PSN", offsetof(struct rdma_end, psn), 0, 0xffffff},
    {"MTU", offsetof(struct rdma_end, mtu), 256, 4096},
    {"FRAME", offsetof(struct rdma_end, frame_bytes), RDMA_FRAME_BYTES_MIN, RDMA_FRAME_BYTES_MAX},
    {"CREDITS", offsetof(struct rdma_end, credits), RDMA_CREDITS_MIN, RDMA_CREDITS_MAX},
};

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

static bool read_number(uint32_t *number, const char *value, size_t len)
{
    uint32_t sum = 0;
    if (len == 0 || len > 8)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9')
            return false;
        sum = sum * 10 + (uint32_t)(value[i] - '0');
    }
    *number = sum;
    return true;
}

static bool read_value(struct rdma_end *end, const struct attribute *attribute, const char *value,
                       size_t len)
{
    uint32_t number;
    if (attribute == attributes)
        return read_gid(end->gid, value, len);
    if (!read_number(&number, value, len) || number < attribute->min || number > attribute->max)
        return false;
    if (attribute->offset == offsetof(struct rdma_end, mtu) && (number & (number - 1)) != 0)
        return false;
    memcpy((char *)end + attribute->offset, &number, sizeof number);
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
    for (uint32_t i = 0; i < RDMA_END_ATTRIBUTES; i++)
        if ((end->present & 1u << i) == 0)
            return attributes[i].name;
    return NULL;
}

const char *rdma_end_print(const struct rdma_end *end, uint32_t index,
                           char value[RDMA_END_TEXT_MAX])
{
    const struct attribute *attribute = &attributes[index];
    uint32_t number;
    if (index == 0) {
        for (size_t i = 0; i < sizeof end->gid; i++)
            snprintf(value + 2 * i, 3, "%02x", end->gid[i]);
    } else {
        memcpy(&number, (const char *)end + attribute->offset, sizeof number);
        snprintf(value, RDMA_END_TEXT_MAX, "%u", number);
    }
    return attribute->name;
}
