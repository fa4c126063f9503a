#include "server/types/rdb_reader.h"

#include <string.h>

uint64_t rdb_number(const uint8_t *from, size_t size)
{
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++)
        number |= (uint64_t)from[i] << (8 * i);
    return number;
}

int64_t rdb_signed(const uint8_t *from, size_t size)
{
    unsigned unused = 64 - 8 * (unsigned)size;
    return (int64_t)(rdb_number(from, size) << unused) >> unused;
}

static enum rdb_result grow(struct rdb_reader *reader)
{
    struct rdb_value *value = reader->value;
    size_t capacity = reader->capacity == 0 ? 16 : reader->capacity * 2;
    struct rdb_caller caller = reader->caller;
    struct resp_slice *slices = caller.alloc(caller.arg, capacity * sizeof *slices);
    double *scores = caller.alloc(caller.arg, capacity * sizeof *scores);
    if (slices == NULL || scores == NULL)
        return RDB_NO_MEMORY;
    if (value->count > 0) {
        memcpy(slices, value->slices, value->count * sizeof *slices);
        memcpy(scores, value->scores, value->count * sizeof *scores);
    }
    value->slices = slices;
    value->scores = scores;
    reader->capacity = capacity;
    return RDB_OK;
}

enum rdb_result rdb_add(struct rdb_reader *reader, struct resp_slice slice)
{
    enum rdb_result result = reader->value->count == reader->capacity ? grow(reader) : RDB_OK;
    if (result != RDB_OK)
        return result;
    size_t count = ++reader->value->count;
    reader->value->slices[count - 1] = slice;
    bool goes_on = reader->caller.go_on == NULL || reader->caller.go_on(reader->caller.arg, count);
    return goes_on ? RDB_OK : RDB_STOPPED;
}

enum rdb_result rdb_number_text(struct rdb_reader *reader, int64_t number, struct resp_slice *text)
{
    char *copy = reader->caller.alloc(reader->caller.arg, 24);
    if (copy == NULL)
        return RDB_NO_MEMORY;
    *text = (struct resp_slice){copy, resp_print_int64(copy, number)};
    return RDB_OK;
}

enum rdb_result rdb_add_number(struct rdb_reader *reader, int64_t number)
{
    struct resp_slice text;
    enum rdb_result result = rdb_number_text(reader, number, &text);
    return result == RDB_OK ? rdb_add(reader, text) : result;
}
