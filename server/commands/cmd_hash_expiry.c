/*
 * Commands about the expiry of fields of hashes, with the names, texts and numbers of Redis 8:
 * HEXPIRE, HTTL, HPERSIST and the related ones, and HGETEX, HSETEX, HGETDEL.
 *
 * A time that has come already deletes the field at once. A field that has expired counts as
 * absent, whether it has been removed or not (members_expiry.h).
 */
#include "server/commands/commands.h"

#include <inttypes.h>
#include <limits.h>

#include "server/core/call.h"
#include "server/types/hash.h"
#include "server/types/members_expiry.h"

#define EXPIRY_MAX_MS ((INT64_C(1) << 46) - 1) /* the latest that Redis takes */

/* What HEXPIRE and HPERSIST reply for a field. */
enum outcome { NO_FIELD = -2, NO_EXPIRY = -1, UNMET = 0, DONE = 1, DELETED = 2 };

/* ---- arguments ---- */

/* The word FIELDS at argv[at], the number of fields, and the fields, from *first on. `bad`: the
 * error for a number that is none, or not positive. */
static bool read_fields(struct call *call, size_t at, const char *bad, size_t *first)
{
    int64_t count;
    const char *error = NULL;
    if (at + 1 >= call->argc) {
        resp_errorf(call->reply, "ERR wrong number of arguments for '%s' command",
                    call->command->name);
        return false;
    }
    if (!slice_is(call->argv[at], "fields"))
        error = "ERR Mandatory argument FIELDS is missing or not at the right position";
    else if (!resp_read_int64(call->argv[at + 1].data, call->argv[at + 1].len, &count) || count < 1)
        error = bad;
    else if ((uint64_t)count != call->argc - at - 2)
        error = "ERR The `numfields` parameter must match the number of arguments";
    if (error != NULL)
        resp_error(call->reply, error);
    *first = at + 2;
    return error == NULL;
}

/* What a command does to a field; it replies for it. */
typedef enum store_result field_fn(struct call *call, struct members *hash, struct resp_slice field,
                                   void *arg);

/* Calls `visit` for all fields, and replies with an array of what it does. */
static enum store_result each_field(struct call *call, struct members *hash, size_t first,
                                    field_fn *visit, void *arg)
{
    enum store_result result = STORE_OK;
    resp_array(call->reply, call->argc - first);
    for (size_t i = first; i < call->argc && result == STORE_OK; i++) {
        result = visit(call, hash, call->argv[i], arg);
        if (result == STORE_OK)
            result = members_yield(call, hash, i);
    }
    return result;
}

static bool invalid_time(struct call *call)
{
    resp_errorf(call->reply, "ERR invalid expire time in '%s' command", call->command->name);
    return false;
}

/* In units of `unit_ms` from base_ms on, to a Unix time in milliseconds. */
static bool read_time(struct call *call, struct resp_slice arg, int64_t base_ms, int64_t unit_ms,
                      int64_t *when_ms)
{
    if (!call_int64(call, arg, when_ms))
        return false;
    if (*when_ms < 0) {
        resp_error(call->reply, "ERR invalid expire time, must be >= 0");
        return false;
    }
    if (*when_ms > EXPIRY_MAX_MS / unit_ms || *when_ms * unit_ms > EXPIRY_MAX_MS - base_ms)
        return invalid_time(call);
    *when_ms = *when_ms * unit_ms + base_ms;
    return true;
}

/* An option EX, PX, EXAT or PXAT: from when it counts, and its unit. */
static bool is_time_option(const struct call *call, struct resp_slice arg, int64_t *base_ms,
                           int64_t *unit_ms)
{
    bool is_seconds = slice_is(arg, "ex") || slice_is(arg, "exat");
    bool is_relative = slice_is(arg, "ex") || slice_is(arg, "px");
    *base_ms = is_relative ? call->now_ms : 0;
    *unit_ms = is_seconds ? 1000 : 1;
    return is_seconds || is_relative || slice_is(arg, "pxat");
}

/* ---- changing the expiry of a field ---- */

/* Sets the expiry of a field that is there, or deletes it if the time has come. */
static enum store_result set_expiry(struct call *call, struct members *hash,
                                    struct resp_slice field, int64_t when_ms, bool *deleted)
{
    bool removed;
    *deleted = when_ms != STORE_NO_EXPIRY && when_ms <= call->now_ms;
    return *deleted ? members_remove(call, hash, field, &removed)
                    : members_set_expiry(call, hash, field, when_ms);
}

/* ---- HEXPIRE and related commands ---- */

enum condition { ALWAYS, IF_NONE, IF_ANY, IF_LATER, IF_EARLIER };

static enum condition read_condition(struct resp_slice arg)
{
    static const char *const names[] = {
        [IF_NONE] = "nx", [IF_ANY] = "xx", [IF_LATER] = "gt", [IF_EARLIER] = "lt"};
    for (enum condition i = IF_NONE; i <= IF_EARLIER; i++)
        if (slice_is(arg, names[i]))
            return i;
    return ALWAYS;
}

/* No expiry counts as the latest. */
static bool holds(enum condition condition, int64_t present_ms, int64_t when_ms)
{
    bool expires = present_ms != STORE_NO_EXPIRY;
    switch (condition) {
    case IF_NONE:
        return !expires;
    case IF_ANY:
        return expires;
    case IF_LATER:
        return expires && when_ms > present_ms;
    case IF_EARLIER:
        return !expires || when_ms < present_ms;
    case ALWAYS:
        break;
    }
    return true;
}

struct expiring {
    enum condition condition;
    int64_t when_ms;
    bool any_deleted;
};

static enum store_result expire_field(struct call *call, struct members *hash,
                                      struct resp_slice field, void *arg)
{
    struct expiring *expiring = arg;
    int64_t present_ms;
    bool found = false, deleted = false;
    enum outcome outcome = NO_FIELD;
    enum store_result result = members_get_expiry(call, hash, field, &present_ms, &found);
    if (result == STORE_OK && found) {
        outcome = UNMET;
        if (holds(expiring->condition, present_ms, expiring->when_ms)) {
            result = set_expiry(call, hash, field, expiring->when_ms, &deleted);
            outcome = deleted ? DELETED : DONE;
        }
    }
    expiring->any_deleted |= deleted;
    resp_integer(call->reply, outcome);
    return result;
}

static enum store_result expire_fields(struct call *call, int64_t base_ms, int64_t unit_ms)
{
    struct members hash;
    struct expiring expiring = {.any_deleted = false};
    size_t first;
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result != STORE_OK || !read_time(call, call->argv[2], base_ms, unit_ms, &expiring.when_ms))
        return result;
    expiring.condition = read_condition(call->argv[3]);
    if (!read_fields(call, 3 + (expiring.condition != ALWAYS),
                     "ERR Parameter `numFields` should be greater than 0", &first))
        return STORE_OK;
    result = each_field(call, &hash, first, expire_field, &expiring);
    const char *event = expiring.any_deleted ? "hdel" : "hexpire";
    return result == STORE_OK ? members_write(call, &hash, NOTIFY_HASH, event) : result;
}

enum store_result cmd_hexpire(struct call *call)
{
    return expire_fields(call, call->now_ms, 1000);
}

enum store_result cmd_hpexpire(struct call *call)
{
    return expire_fields(call, call->now_ms, 1);
}

enum store_result cmd_hexpireat(struct call *call)
{
    return expire_fields(call, 0, 1000);
}

enum store_result cmd_hpexpireat(struct call *call)
{
    return expire_fields(call, 0, 1);
}

static const char bad_count[] = "ERR Number of fields must be a positive integer";

static enum store_result persist_field(struct call *call, struct members *hash,
                                       struct resp_slice field, void *arg)
{
    int64_t present_ms;
    bool found = false;
    (void)arg;
    enum store_result result = members_get_expiry(call, hash, field, &present_ms, &found);
    enum outcome outcome = !found ? NO_FIELD : present_ms == STORE_NO_EXPIRY ? NO_EXPIRY : DONE;
    resp_integer(call->reply, outcome);
    return result == STORE_OK && outcome == DONE
               ? members_set_expiry(call, hash, field, STORE_NO_EXPIRY)
               : result;
}

enum store_result cmd_hpersist(struct call *call)
{
    struct members hash;
    size_t first;
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result != STORE_OK || !read_fields(call, 2, bad_count, &first))
        return result;
    result = each_field(call, &hash, first, persist_field, NULL);
    return result == STORE_OK ? members_write(call, &hash, NOTIFY_HASH, "hpersist") : result;
}

/* ---- HTTL and related commands ---- */

/* Each expiry minus base_ms, in units of `unit_ms`, rounded up. */
struct reporting {
    int64_t base_ms, unit_ms;
};

static enum store_result report_field(struct call *call, struct members *hash,
                                      struct resp_slice field, void *arg)
{
    const struct reporting *reporting = arg;
    int64_t expire_ms, base_ms = reporting->base_ms, unit_ms = reporting->unit_ms;
    bool found = false;
    enum store_result result = members_get_expiry(call, hash, field, &expire_ms, &found);
    int64_t answer = found ? NO_EXPIRY : NO_FIELD;
    if (found && expire_ms != STORE_NO_EXPIRY)
        answer = expire_ms < base_ms ? 0 : (expire_ms - base_ms + unit_ms - 1) / unit_ms;
    resp_integer(call->reply, answer);
    return result;
}

static enum store_result report_expiries(struct call *call, int64_t base_ms, int64_t unit_ms)
{
    struct members hash;
    struct reporting reporting = {base_ms, unit_ms};
    size_t first;
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result != STORE_OK || !read_fields(call, 2, bad_count, &first))
        return result;
    return each_field(call, &hash, first, report_field, &reporting);
}

enum store_result cmd_httl(struct call *call)
{
    return report_expiries(call, call->now_ms, 1000);
}

enum store_result cmd_hpttl(struct call *call)
{
    return report_expiries(call, call->now_ms, 1);
}

enum store_result cmd_hexpiretime(struct call *call)
{
    return report_expiries(call, 0, 1000);
}

enum store_result cmd_hpexpiretime(struct call *call)
{
    return report_expiries(call, 0, 1);
}

/* ---- HGETDEL ---- */

static enum store_result take_field(struct call *call, struct members *hash,
                                    struct resp_slice field, void *arg)
{
    bool removed;
    (void)arg;
    enum store_result result = members_reply_value(call, hash, field);
    return result == STORE_OK ? members_remove(call, hash, field, &removed) : result;
}

enum store_result cmd_hgetdel(struct call *call)
{
    struct members hash;
    size_t first;
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result != STORE_OK || !read_fields(call, 2, bad_count, &first))
        return result;
    result = each_field(call, &hash, first, take_field, NULL);
    return result == STORE_OK ? members_write(call, &hash, NOTIFY_HASH, "hdel") : result;
}

/* ---- HGETEX ---- */

struct hgetex {
    bool changes;
    int64_t when_ms; /* STORE_NO_EXPIRY: PERSIST */
    size_t first;
    bool updated, deleted; /* as Redis counts them, of which the first decides the event */
};

static bool hgetex_options(struct call *call, struct hgetex *hgetex)
{
    int64_t base_ms, unit_ms;
    size_t at = 2;
    *hgetex = (struct hgetex){.when_ms = STORE_NO_EXPIRY};
    if (is_time_option(call, call->argv[2], &base_ms, &unit_ms)) {
        hgetex->changes = true;
        at = 4;
        if (!read_time(call, call->argv[3], base_ms, unit_ms, &hgetex->when_ms))
            return false;
    } else if (slice_is(call->argv[2], "persist")) {
        hgetex->changes = true;
        at = 3;
    }
    return read_fields(call, at, bad_count, &hgetex->first);
}

static enum store_result hgetex_field(struct call *call, struct members *hash,
                                      struct resp_slice field, void *arg)
{
    struct hgetex *hgetex = arg;
    int64_t present_ms;
    bool found = false, is_deleted = false;
    enum store_result result = members_reply_value(call, hash, field);
    if (result != STORE_OK || !hgetex->changes)
        return result;
    result = members_get_expiry(call, hash, field, &present_ms, &found);
    bool has_none = present_ms == STORE_NO_EXPIRY && hgetex->when_ms == STORE_NO_EXPIRY;
    if (result != STORE_OK || !found || has_none)
        return result;
    result = set_expiry(call, hash, field, hgetex->when_ms, &is_deleted);
    hgetex->updated |= !is_deleted;
    hgetex->deleted |= is_deleted;
    return result;
}

enum store_result cmd_hgetex(struct call *call)
{
    struct members hash;
    struct hgetex hgetex;
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result != STORE_OK || !hgetex_options(call, &hgetex))
        return result;
    result = each_field(call, &hash, hgetex.first, hgetex_field, &hgetex);
    const char *event = hgetex.when_ms == STORE_NO_EXPIRY ? "hpersist" : "hexpire";
    if (hgetex.deleted && !hgetex.updated)
        event = "hdel";
    return result == STORE_OK ? members_write(call, &hash, NOTIFY_HASH, event) : result;
}

/* ---- HSETEX ---- */

struct hsetex {
    bool is_timed, keeps, if_all, if_none;
    int64_t when_ms;
    size_t first; /* field */
};

static bool hsetex_error(struct call *call, const char *error)
{
    resp_error(call->reply, error);
    return false;
}

/* An option that is none of those about the expiry. */
static bool hsetex_condition(struct call *call, struct resp_slice arg, struct hsetex *hsetex)
{
    bool if_all = slice_is(arg, "fxx"), if_none = slice_is(arg, "fnx");
    if (!if_all && !if_none) {
        resp_errorf(call->reply, "ERR unknown argument: %.*s",
                    arg.len > INT_MAX ? INT_MAX : (int)arg.len, arg.data);
        return false;
    }
    if (hsetex->if_all || hsetex->if_none)
        return hsetex_error(call, "ERR Only one of FXX or FNX arguments can be specified");
    hsetex->if_all = if_all;
    hsetex->if_none = if_none;
    return true;
}

/* An option, at argv[*at]; moves behind it. */
static bool hsetex_option(struct call *call, size_t *at, struct hsetex *hsetex)
{
    int64_t base_ms, unit_ms;
    struct resp_slice arg = call->argv[*at];
    bool is_time = is_time_option(call, arg, &base_ms, &unit_ms), keeps = slice_is(arg, "keepttl");
    ++*at;
    if (!is_time && !keeps)
        return hsetex_condition(call, arg, hsetex);
    if (hsetex->is_timed || hsetex->keeps)
        return hsetex_error(
            call, "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified");
    hsetex->is_timed = is_time;
    hsetex->keeps = keeps;
    if (!is_time)
        return true;
    if (*at == call->argc)
        return hsetex_error(call, "ERR missing expire time");
    return read_time(call, call->argv[(*at)++], base_ms, unit_ms, &hsetex->when_ms);
}

static bool hsetex_options(struct call *call, struct hsetex *hsetex)
{
    size_t at = 2;
    int64_t count;
    *hsetex = (struct hsetex){.when_ms = STORE_NO_EXPIRY};
    while (at < call->argc && !slice_is(call->argv[at], "fields"))
        if (!hsetex_option(call, &at, hsetex))
            return false;
    size_t left = at < call->argc ? call->argc - at : 0;
    bool is_short = left < 4;
    if (!is_short && (!resp_read_int64(call->argv[at + 1].data, call->argv[at + 1].len, &count) ||
                      count < 1 || count > INT_MAX))
        return hsetex_error(call, "ERR invalid number of fields");
    if (is_short || left % 2 != 0 || (uint64_t)count != left / 2 - 1) {
        resp_errorf(call->reply, "ERR wrong number of arguments for '%s' command",
                    call->command->name);
        return false;
    }
    hsetex->first = at + 2;
    return true;
}

/* Whether FXX or FNX lets the fields be set. */
static enum store_result hsetex_may(struct call *call, struct members *hash,
                                    const struct hsetex *hsetex, bool *may)
{
    enum store_result result = STORE_OK;
    *may = true;
    if (!hsetex->if_all && !hsetex->if_none)
        return STORE_OK;
    for (size_t i = hsetex->first; i < call->argc && *may && result == STORE_OK; i += 2) {
        bool found = false;
        result = members_get(call, hash, call->argv[i], NULL, &found);
        *may = found == hsetex->if_all;
        if (result == STORE_OK)
            result = members_yield(call, hash, i / 2);
    }
    return result;
}

static enum store_result hsetex_field(struct call *call, struct members *hash,
                                      const struct resp_slice *pair, const struct hsetex *hsetex,
                                      bool *deleted)
{
    bool added, is_deleted = false;
    hash->keeps_expiry = hsetex->keeps || hsetex->is_timed;
    enum store_result result = hash_set(call, hash, pair[0], pair[1], &added);
    if (result != STORE_OK || !hsetex->is_timed)
        return result;
    result = set_expiry(call, hash, pair[0], hsetex->when_ms, &is_deleted);
    *deleted |= is_deleted;
    return result;
}

enum store_result cmd_hsetex(struct call *call)
{
    struct members hash;
    struct hsetex hsetex;
    bool may, deleted = false;
    if (!hsetex_options(call, &hsetex))
        return STORE_OK;
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result == STORE_OK)
        result = hsetex_may(call, &hash, &hsetex, &may);
    if (result != STORE_OK)
        return result;
    resp_integer(call->reply, may);
    if (!may)
        return STORE_OK;
    hash_expect(call, &hash, call->argv + hsetex.first, call->argc - hsetex.first);
    for (size_t i = hsetex.first; i < call->argc && result == STORE_OK; i += 2) {
        result = hsetex_field(call, &hash, call->argv + i, &hsetex, &deleted);
        if (result == STORE_OK)
            result = members_yield(call, &hash, i / 2);
    }
    if (hsetex.is_timed)
        hash.second_event = deleted ? "hdel" : "hexpire";
    return result == STORE_OK ? members_write(call, &hash, NOTIFY_HASH, "hset") : result;
}
