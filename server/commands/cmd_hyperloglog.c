/*
 * PFADD, PFCOUNT and PFMERGE, and for tests PFDEBUG and PFSELFTEST.
 */
#include "server/commands/commands.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/commands/cmd_string.h"
#include "server/exec/long_run.h"
#include "server/types/hyperloglog.h"
#include "server/core/server.h"
#include "server/pubsub/notify.h"
#include "server/core/call.h"

static uint64_t sparse_max(const struct call *call)
{
    return (uint64_t)config_number(&call->server->config, CONFIG_HLL_SPARSE_MAX_BYTES);
}

static enum store_result check_state(struct call *call, enum hll_state state)
{
    if (state == HLL_GOOD)
        return STORE_OK;
    resp_error(call->reply, state == HLL_FOREIGN
                                ? "WRONGTYPE Key is not a valid HyperLogLog string value."
                                : "INVALIDOBJ Corrupted HLL object detected");
    return STORE_ANSWERED;
}

/* The string that was found, whose header is checked; empty if the key is absent. */
static enum store_result load(struct call *call, const struct string_value *value,
                              struct resp_slice *string)
{
    enum store_result result = STORE_OK;
    *string = (struct resp_slice){NULL, 0};
    if (!value->exists)
        return STORE_OK;
    string->len = value->length;
    if (value->length <= HLL_BYTES_MAX)
        result = store_load(call->txn, &value->item, &string->data);
    if (result != STORE_OK)
        return result;
    bool is_one = string->data != NULL && hll_is_one(*string);
    return check_state(call, is_one ? HLL_GOOD : HLL_FOREIGN);
}

/* The first key's HyperLogLog, to be changed; a new one if the key is absent. */
static enum store_result find_own(struct call *call, const struct store_key *key,
                                  struct string_value *value, struct hll **hll)
{
    struct resp_slice string;
    enum store_result result = string_find(call, key, value);
    if (result == STORE_OK)
        result = load(call, value, &string);
    if (result != STORE_OK)
        return result;
    *hll = store_alloc(call->txn, sizeof **hll);
    if (*hll == NULL)
        return STORE_NO_MEMORY;
    assert(!value->exists || string.data != NULL); /* load() has answered others */
    if (value->exists)
        return check_state(call, hll_open(*hll, string));
    hll_make(*hll);
    return STORE_OK;
}

static void tell(struct call *call, const struct string_value *value)
{
    if (!value->exists)
        call_notify(call, NOTIFY_NEW, "new", call->keys);
    call_notify(call, NOTIFY_STRING, "pfadd", call->keys);
}

static enum store_result write_own(struct call *call, const struct store_key *key,
                                   const struct string_value *value, const struct hll *hll)
{
    return store_put(call->txn, key, TYPE_STRING | ITEM_RAW, (const char *)hll->bytes, hll->len,
                     value->exists ? value->item.expire_ms : STORE_NO_EXPIRY);
}

enum store_result cmd_pfadd(struct call *call)
{
    struct string_value value;
    struct hll *hll;
    enum store_result result = find_own(call, call->keys, &value, &hll);
    if (result != STORE_OK)
        return result;
    bool changed = !value.exists;
    for (size_t i = 2; i < call->argc; i++) {
        changed |= hll_add(hll, call->argv[i], sparse_max(call));
        result = call_yield_at(call, i);
        if (result != STORE_OK)
            return result;
    }
    resp_integer(call->reply, changed);
    if (!changed)
        return STORE_OK;
    hll_forget(hll);
    tell(call, &value);
    return write_own(call, call->keys, &value, hll);
}

/* For one key: the estimate is cached in its header if it was out of date. */
static enum store_result count_one(struct call *call)
{
    struct string_value value;
    struct resp_slice string;
    uint8_t registers[HLL_REGISTERS] = {0};
    uint64_t estimate = 0;
    enum store_result result = string_find(call, call->keys, &value);
    if (result == STORE_OK)
        result = load(call, &value, &string);
    if (result != STORE_OK)
        return result;
    bool is_kept = !value.exists || hll_kept(string, &estimate);
    if (!is_kept) {
        result = check_state(call, hll_collect(registers, string));
        if (result != STORE_OK)
            return result;
        estimate = hll_estimate(registers);
    }
    resp_integer(call->reply, (int64_t)estimate);
    if (is_kept)
        return STORE_OK;
    char *bytes = store_alloc(call->txn, 8);
    if (bytes == NULL)
        return STORE_NO_MEMORY;
    hll_keep(bytes, estimate);
    return string_write(call, call->keys, &value, HLL_KEPT_AT, bytes, 8);
}

/* *any_dense: at least one of them was dense. */
static enum store_result collect(struct call *call, uint8_t registers[HLL_REGISTERS],
                                 bool *any_dense)
{
    enum store_result result = STORE_OK;
    *any_dense = false;
    for (uint32_t i = 0; i < call->key_count && result == STORE_OK; i++) {
        struct string_value value;
        struct resp_slice string;
        result = string_look_up(call, &call->keys[i], &value);
        if (result == STORE_OK)
            result = load(call, &value, &string);
        if (result != STORE_OK || !value.exists)
            continue;
        *any_dense |= !hll_is_sparse(string);
        result = check_state(call, hll_collect(registers, string));
        if (result == STORE_OK)
            result = call_yield(call);
    }
    return result;
}

enum store_result cmd_pfcount(struct call *call)
{
    uint8_t registers[HLL_REGISTERS] = {0};
    bool any_dense;
    if (call->key_count == 1)
        return count_one(call);
    enum store_result result = collect(call, registers, &any_dense);
    if (result == STORE_OK)
        resp_integer(call->reply, (int64_t)hll_estimate(registers));
    return result;
}

enum store_result cmd_pfmerge(struct call *call)
{
    uint8_t registers[HLL_REGISTERS] = {0};
    struct string_value value;
    struct hll *hll;
    bool any_dense;
    enum store_result result = collect(call, registers, &any_dense);
    if (result == STORE_OK)
        result = find_own(call, call->keys, &value, &hll);
    if (result != STORE_OK)
        return result;
    if (any_dense && hll_is_sparse(hll_slice(hll)))
        hll_make_dense(hll);
    for (uint32_t i = 0; i < HLL_REGISTERS; i++)
        if (registers[i] > 0)
            hll_raise(hll, i, registers[i], sparse_max(call));
    hll_forget(hll);
    resp_ok(call->reply);
    tell(call, &value);
    return write_own(call, call->keys, &value, hll);
}

/* ---- PFDEBUG, PFSELFTEST ---- */

static enum store_result debug_registers(struct call *call, const struct hll *hll)
{
    uint8_t registers[HLL_REGISTERS] = {0};
    enum store_result result = check_state(call, hll_collect(registers, hll_slice(hll)));
    if (result != STORE_OK)
        return result;
    resp_array(call->reply, HLL_REGISTERS);
    for (uint32_t i = 0; i < HLL_REGISTERS; i++)
        resp_integer(call->reply, registers[i]);
    return STORE_OK;
}

static enum store_result debug_decode(struct call *call, const struct hll *hll)
{
    struct resp_writer text;
    resp_writer_init(&text, call->reply->version);
    hll_describe(&text, hll_slice(hll));
    bool failed = text.failed;
    if (!failed)
        resp_bulk(call->reply, text.data, text.len);
    resp_writer_free(&text);
    return failed ? STORE_NO_MEMORY : STORE_OK;
}

enum store_result cmd_pfdebug(struct call *call)
{
    struct string_value value;
    struct hll *hll;
    struct resp_slice what = call->argv[1];
    enum store_result result = find_own(call, call->keys, &value, &hll);
    if (result != STORE_OK)
        return result;
    bool is_sparse = hll_is_sparse(hll_slice(hll)), becomes_dense = false;
    if (!value.exists) {
        resp_error(call->reply, "ERR The specified key does not exist");
        return STORE_OK;
    }
    if (slice_is(what, "getreg")) {
        becomes_dense = is_sparse;
        result = debug_registers(call, hll);
    } else if (slice_is(what, "encoding")) {
        resp_status(call->reply, is_sparse ? "sparse" : "dense");
    } else if (slice_is(what, "todense")) {
        becomes_dense = is_sparse;
        resp_integer(call->reply, is_sparse);
    } else if (slice_is(what, "decode") && is_sparse) {
        result = debug_decode(call, hll);
    } else if (slice_is(what, "decode")) {
        resp_error(call->reply, "ERR HLL encoding is not sparse");
    } else {
        resp_errorf(call->reply, "ERR Unknown PFDEBUG subcommand '%.*s'",
                    (int)(what.len < 128 ? what.len : 128), what.data);
    }
    if (result != STORE_OK || !becomes_dense)
        return result;
    hll_make_dense(hll);
    return write_own(call, call->keys, &value, hll);
}

/* State of PFSELFTEST between steps. */
struct selftest {
    uint64_t done; /* elements */
    struct hll sparse, dense;
};

static struct selftest *selftest_of(struct call *call)
{
    struct selftest *test = call->progress;
    if (test == NULL && (test = malloc(sizeof *test)) != NULL) {
        test->done = 0;
        hll_make(&test->sparse);
        hll_make(&test->dense);
        hll_make_dense(&test->dense);
        call->progress = test;
        call->progress_free = free;
    }
    return test;
}

/* Sparse and dense registers must be equal, and the estimate within four standard errors. */
static bool selftest_is_right(const struct selftest *test)
{
    const double error = 4 * 1.04 / 128;
    uint8_t a[HLL_REGISTERS] = {0}, b[HLL_REGISTERS] = {0};
    if (hll_collect(a, hll_slice(&test->sparse)) != HLL_GOOD ||
        hll_collect(b, hll_slice(&test->dense)) != HLL_GOOD || memcmp(a, b, sizeof a) != 0)
        return false;
    double off = hll_estimate(b) / (double)test->done - 1;
    return off <= error && off >= -error;
}

/* From the first element to many, in steps of a few milliseconds. */
enum store_result cmd_pfselftest(struct call *call)
{
    enum { ELEMENTS = 60000, LOOK = 1000, STEP = 200 };
    struct selftest *test = selftest_of(call);
    if (test == NULL)
        return STORE_NO_MEMORY;
    while (test->done < ELEMENTS) {
        uint64_t i = ++test->done;
        struct resp_slice element = {(const char *)&i, sizeof i};
        bool same =
            hll_add(&test->sparse, element, HLL_BYTES_MAX) == hll_add(&test->dense, element, 0);
        if (!same || (i % LOOK == 0 && !selftest_is_right(test))) {
            resp_errorf(call->reply, "TESTFAILED after %d elements", (int)i);
            return STORE_OK;
        }
        if (i % STEP == 0 && i < ELEMENTS)
            return store_step(call->txn);
    }
    resp_ok(call->reply);
    return STORE_OK;
}
