/*
 * FUNCTION DUMP and FUNCTION RESTORE: libraries in the encoding of Redis's RDB files, an opcode and
 * the code of each, with the footer of DUMP's payloads.
 */
#include "server/commands/commands.h"

#include <string.h>

#include "server/commands/function_value.h"
#include "server/core/call.h"
#include "server/core/server.h"
#include "server/types/rdb_read.h"
#include "server/types/rdb_reader.h"
#include "server/types/rdb_write.h"
#include "storage/base/array.h"

/* Opcodes of RDB files. */
#define OPCODE_FUNCTION 245
#define OPCODE_FUNCTION_BEFORE_7_0 246 /* of release candidates */

enum store_result cmd_function_dump(struct call *call)
{
    struct libraries libraries;
    struct library library;
    struct resp_writer out;
    const char opcode = (char)OPCODE_FUNCTION;
    char footer[RDB_FOOTER_BYTES];
    uint64_t sum = 0;
    enum store_result result = function_value_read(call, 0, &libraries);
    if (result != STORE_OK)
        return result;
    resp_writer_init(&out, 2);
    for (size_t at = 0; libraries_next(&libraries, &at, &library);) {
        resp_raw(&out, &opcode, 1);
        rdb_put_string(&out, library.code);
    }
    if (out.failed) {
        resp_writer_free(&out);
        return STORE_NO_MEMORY;
    }
    if (out.len > 0)
        rdb_add_to_checksum(&sum, &out, 0);
    rdb_footer(sum, RDB_VERSION_WRITTEN, footer);
    resp_bulk_header(call->reply, out.len + sizeof footer);
    resp_raw(call->reply, out.data, out.len);
    resp_raw(call->reply, footer, sizeof footer);
    resp_raw(call->reply, "\r\n", 2);
    resp_writer_free(&out);
    return STORE_OK;
}

/* ---- RESTORE ---- */

static void *alloc(void *arg, size_t size)
{
    return store_alloc(((struct call *)arg)->txn, size);
}

/* Returns NULL, or the error. */
static const char *read_code(struct rdb_reader *reader, struct resp_slice *code)
{
    const uint8_t *opcode;
    if (!rdb_take(reader, 1, &opcode))
        return "ERR can not read data type";
    if (*opcode == OPCODE_FUNCTION_BEFORE_7_0)
        return "ERR Pre-release function format not supported.";
    if (*opcode != OPCODE_FUNCTION)
        return "ERR given type is not a function";
    switch (rdb_read_string(reader, code)) {
    case RDB_OK:
        return NULL;
    case RDB_NO_MEMORY:
        return "OOM command not allowed when used memory > 'maxmemory'.";
    default:
        return "ERR Failed loading library payload";
    }
}

/* The codes in the payload, in memory of the transaction. False: an error reply was written. */
static bool read_payload(struct call *call, struct resp_slice payload, struct resp_slice **codes,
                         size_t *count)
{
    const uint8_t *at = (const uint8_t *)payload.data;
    struct rdb_reader reader = {.at = at,
                                .end = at + payload.len - RDB_FOOTER_BYTES,
                                .caller = {.alloc = alloc, .arg = call}};
    size_t capacity = 0;
    *codes = NULL;
    *count = 0;
    while (reader.at < reader.end) {
        if (*count == capacity) {
            struct resp_slice *more = store_alloc(call->txn, (2 * capacity + 16) * sizeof **codes);
            if (more != NULL && *count > 0)
                memcpy(more, *codes, *count * sizeof *more);
            *codes = more;
            capacity = 2 * capacity + 16;
        }
        const char *problem = "OOM command not allowed when used memory > 'maxmemory'.";
        if (*codes != NULL)
            problem = read_code(&reader, &(*codes)[*count]);
        if (problem != NULL) {
            resp_error(call->reply, problem);
            return false;
        }
        ++*count;
    }
    return true;
}

static bool is_payload_good(const struct call *call, struct resp_slice payload)
{
    if (!rdb_version_is_good(payload))
        return false;
    if (atomic_load_explicit(&call->server->skips_checksums, memory_order_relaxed))
        return true;
    return rdb_checksum_is_good(
        payload, rdb_checksum(0, (struct resp_slice){payload.data, payload.len - 8}));
}

static bool read_policy(struct call *call, enum function_policy *policy)
{
    *policy = FUNCTION_APPEND;
    if (call->argc > 4)
        return call_wrong_subcommand(call);
    if (call->argc == 3 || slice_is(call->argv[3], "append"))
        return true;
    if (slice_is(call->argv[3], "replace")) {
        *policy = FUNCTION_REPLACE;
    } else if (slice_is(call->argv[3], "flush")) {
        *policy = FUNCTION_ALONE;
    } else {
        resp_error(call->reply, "ERR Wrong restore policy given, value should be either FLUSH, "
                                "APPEND or REPLACE.");
        return false;
    }
    return true;
}

enum store_result cmd_function_restore(struct call *call)
{
    enum function_policy policy;
    struct resp_slice *codes, name;
    size_t count;
    if (!read_policy(call, &policy))
        return STORE_OK;
    if (!is_payload_good(call, call->argv[2])) {
        resp_error(call->reply, "ERR DUMP payload version or checksum are wrong");
        return STORE_OK;
    }
    if (!read_payload(call, call->argv[2], &codes, &count))
        return STORE_OK;
    enum store_result result = function_value_add(call, codes, count, policy, &name);
    if (result == STORE_OK && name.data != NULL)
        resp_ok(call->reply);
    return result;
}
