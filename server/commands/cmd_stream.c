/*
 * Commands that change a stream's entries, and XLEN. Reading is in cmd_stream_read.c.
 */
#include "server/commands/cmd_stream.h"

#include <assert.h>

#include "server/commands/commands.h"
#include "server/config/config.h"
#include "server/core/call.h"
#include "server/core/server.h"
#include "server/exec/long_run.h"
#include "server/pubsub/notify.h"
#include "server/types/packed.h"

bool stream_bad_id(struct call *call)
{
    resp_error(call->reply, "ERR Invalid stream ID specified as stream command argument");
    return false;
}

bool stream_read_id(struct call *call, struct resp_slice arg, uint64_t missing_seq,
                    struct stream_id *id)
{
    return stream_id_parse(arg, missing_seq, id) == STREAM_ID_WHOLE || stream_bad_id(call);
}

/* Stores the head, and notifies. */
static enum store_result changed(struct stream *stream, const char *event)
{
    call_notify(stream->call, NOTIFY_STREAM, event, stream->key);
    return stream_save(stream);
}

enum store_result cmd_xlen(struct call *call)
{
    struct stream stream;
    enum store_result result = stream_find(call, call->keys, &stream);
    if (result == STORE_OK)
        resp_integer(call->reply, (int64_t)stream_count(&stream));
    return result;
}

/* ---- trimming ---- */

enum trim_kind { TRIM_NOTHING, TRIM_MAXLEN, TRIM_MINID };

struct trim {
    enum trim_kind kind;
    bool is_rough; /* `~` */
    bool has_limit;
    int64_t limit; /* of the entries removed; 0: none */
    int64_t maxlen;
    struct stream_id minid;
};

#define LIMIT_NODES 100 /* Redis's default limit, in nodes */
#define LIMIT_DEFAULT 10000
#define LIMIT_MOST 1000000

static int64_t node_entries(const struct call *call)
{
    return config_number(&call->server->config, CONFIG_STREAM_NODE_MAX_ENTRIES);
}

static int64_t default_limit(const struct call *call)
{
    int64_t nodes = node_entries(call);
    if (nodes <= 0)
        return LIMIT_DEFAULT;
    return nodes > LIMIT_MOST / LIMIT_NODES ? LIMIT_MOST : LIMIT_NODES * nodes;
}

static bool read_not_negative(struct call *call, struct resp_slice arg, const char *error,
                              int64_t *number)
{
    if (!call_int64(call, arg, number))
        return false;
    if (*number < 0)
        resp_error(call->reply, error);
    return *number >= 0;
}

/* Reads what follows MAXLEN or MINID; *i is moved to the last argument. */
static bool read_threshold(struct call *call, size_t *i, enum trim_kind kind, struct trim *trim)
{
    size_t left = call->argc - 1 - *i;
    if (trim->kind != TRIM_NOTHING) {
        resp_error(call->reply, "ERR syntax error, MAXLEN and MINID options at the same time are "
                                "not compatible");
        return false;
    }
    trim->kind = kind;
    trim->is_rough = left >= 2 && slice_is(call->argv[*i + 1], "~");
    if (trim->is_rough || (left >= 2 && slice_is(call->argv[*i + 1], "=")))
        ++*i;
    struct resp_slice arg = call->argv[++*i];
    if (kind == TRIM_MINID)
        return stream_read_id(call, arg, 0, &trim->minid);
    return read_not_negative(call, arg, "ERR The MAXLEN argument must be >= 0.", &trim->maxlen);
}

/* Whether the argument begins an option of trimming, and if so reads it. *is_valid: false if it has
 * been answered with an error. */
static bool read_trim_option(struct call *call, size_t *i, struct trim *trim, bool *is_valid)
{
    if (*i + 1 >= call->argc)
        return false;
    if (slice_is(call->argv[*i], "maxlen"))
        *is_valid = read_threshold(call, i, TRIM_MAXLEN, trim);
    else if (slice_is(call->argv[*i], "minid"))
        *is_valid = read_threshold(call, i, TRIM_MINID, trim);
    else if (slice_is(call->argv[*i], "limit"))
        *is_valid = trim->has_limit = read_not_negative(
            call, call->argv[++*i], "ERR The LIMIT argument must be >= 0.", &trim->limit);
    else
        return false;
    return true;
}

/* After all options. */
static bool check_trim(struct call *call, struct trim *trim, bool is_needed)
{
    const char *error = NULL;
    if (trim->limit > 0 && trim->kind == TRIM_NOTHING)
        error = "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy";
    else if (is_needed && trim->kind == TRIM_NOTHING)
        error = "ERR syntax error, XTRIM must be called with a trimming strategy";
    else if (trim->has_limit && !trim->is_rough)
        error = "ERR syntax error, LIMIT cannot be used without the special ~ option";
    if (error != NULL)
        resp_error(call->reply, error);
    else if (!trim->has_limit)
        trim->limit = trim->is_rough ? default_limit(call) : 0;
    return error == NULL;
}

/* How many entries are to go. With `~` Redis removes whole nodes: so many entries at a time are
 * removed here, too, counted from the first entry ever, which makes one change of many. */
static enum store_result count_trimmed(struct stream *stream, const struct trim *trim,
                                       uint64_t *count)
{
    struct store_cursor cursor;
    uint64_t total = stream_count(stream), node = (uint64_t)node_entries(stream->call);
    *count = 0;
    if (total == 0)
        return STORE_OK;
    if (trim->kind == TRIM_MAXLEN) {
        *count = total > (uint64_t)trim->maxlen ? total - (uint64_t)trim->maxlen : 0;
    } else {
        enum store_result result = stream_seek(stream, trim->minid, &cursor);
        if (result != STORE_OK)
            return result;
        *count = cursor.rank;
    }
    if (trim->limit > 0 && *count > (uint64_t)trim->limit)
        *count = (uint64_t)trim->limit;
    uint64_t odd = node > 0 ? (stream->head.added - total + *count) % node : 0;
    if (trim->is_rough)
        *count -= odd < *count ? odd : *count;
    return STORE_OK;
}

/* *count: of the entries removed. */
static enum store_result trim_stream(struct stream *stream, const struct trim *trim,
                                     uint64_t *count)
{
    *count = 0;
    if (trim->kind == TRIM_NOTHING)
        return STORE_OK;
    enum store_result result = count_trimmed(stream, trim, count);
    return result == STORE_OK ? stream_trim(stream, *count) : result;
}

enum store_result cmd_xtrim(struct call *call)
{
    struct trim trim = {.kind = TRIM_NOTHING};
    struct stream stream;
    uint64_t removed;
    for (size_t i = 2; i < call->argc; i++) {
        bool is_valid;
        if (!read_trim_option(call, &i, &trim, &is_valid)) {
            call_syntax_error(call);
            return STORE_OK;
        }
        if (!is_valid)
            return STORE_OK;
    }
    if (!check_trim(call, &trim, true))
        return STORE_OK;
    enum store_result result = stream_find(call, call->keys, &stream);
    if (result == STORE_OK)
        result = stream_load_head(&stream);
    if (result == STORE_OK)
        result = trim_stream(&stream, &trim, &removed);
    if (result != STORE_OK)
        return result;
    resp_integer(call->reply, (int64_t)removed);
    return removed > 0 ? changed(&stream, "xtrim") : STORE_OK;
}

/* ---- XADD ---- */

struct addition {
    struct trim trim;
    bool only_existing; /* NOMKSTREAM */
    bool is_auto;       /* `*` */
    bool is_auto_seq;   /* `ms-*` */
    struct stream_id id;
    size_t fields_at;
};

static bool read_new_id(struct call *call, struct resp_slice arg, struct addition *addition)
{
    enum stream_id_form form = stream_id_parse(arg, 0, &addition->id);
    addition->is_auto_seq = form == STREAM_ID_AUTO_SEQ;
    return form != STREAM_ID_INVALID || stream_bad_id(call);
}

static bool read_addition(struct call *call, struct addition *addition)
{
    size_t i = 2;
    for (; i < call->argc; i++) {
        bool is_valid = true;
        addition->is_auto = slice_is(call->argv[i], "*");
        if (addition->is_auto)
            break;
        if (read_trim_option(call, &i, &addition->trim, &is_valid)) {
            if (!is_valid)
                return false;
        } else if (slice_is(call->argv[i], "nomkstream")) {
            addition->only_existing = true;
        } else if (read_new_id(call, call->argv[i], addition)) {
            break;
        } else {
            return false;
        }
    }
    if (!check_trim(call, &addition->trim, false))
        return false;
    addition->fields_at = i + 1;
    if (addition->fields_at < call->argc && (call->argc - addition->fields_at) % 2 == 0)
        return true;
    resp_errorf(call->reply, "ERR wrong number of arguments for '%s' command", call->command->name);
    return false;
}

/* Each argument has an own limit; all of them together may still be too long for an entry. */
static bool is_too_large(const struct call *call, size_t from)
{
    uint64_t bytes = 0;
    for (size_t i = from; i < call->argc; i++)
        bytes += call->argv[i].len + PACKED_LENGTH_MAX;
    return bytes > STORE_VALUE_MAX;
}

/* The ID of the new entry. False: the call was answered. */
static bool choose_id(struct call *call, const struct addition *addition, struct stream_id last,
                      struct stream_id *id)
{
    *id = addition->id;
    if (addition->is_auto)
        *id = (struct stream_id){(uint64_t)call->now_ms, 0};
    bool counts_on =
        addition->is_auto ? id->ms <= last.ms : addition->is_auto_seq && id->ms == last.ms;
    if (counts_on) {
        bool is_new_ms = last.seq == UINT64_MAX;
        *id = last;
        if (!stream_id_increment(id) || (is_new_ms && addition->is_auto_seq))
            *id = last;
    }
    if (stream_id_compare(*id, last) > 0)
        return true;
    resp_error(call->reply, "ERR The ID specified in XADD is equal or smaller than the target "
                            "stream top item");
    return false;
}

static enum store_result add_entry(struct stream *stream, const struct addition *addition)
{
    struct call *call = stream->call;
    struct stream_id id;
    uint64_t trimmed;
    bool is_new = !stream->exists;
    if (!choose_id(call, addition, stream->head.last, &id))
        return STORE_OK;
    enum store_result result = STORE_OK;
    if (is_new) {
        struct stream_head head = stream->head;
        result = stream_create(stream);
        stream->head = stream->stored = head;
    }
    if (result == STORE_OK)
        result = stream_append(stream, id, call->argv + addition->fields_at,
                               call->argc - addition->fields_at);
    if (result == STORE_OK)
        result = trim_stream(stream, &addition->trim, &trimmed);
    if (result != STORE_OK)
        return result;
    stream_id_reply(call->reply, id);
    if (is_new)
        call_notify(call, NOTIFY_NEW, "new", stream->key);
    call_notify(call, NOTIFY_STREAM, "xadd", stream->key);
    return trimmed > 0 ? changed(stream, "xtrim") : stream_save(stream);
}

enum store_result cmd_xadd(struct call *call)
{
    struct addition addition = {.fields_at = 0};
    struct stream stream;
    const char *error = NULL;
    if (!read_addition(call, &addition))
        return STORE_OK;
    if (!addition.is_auto && !addition.is_auto_seq && stream_id_is_zero(addition.id)) {
        resp_error(call->reply, "ERR The ID specified in XADD must be greater than 0-0");
        return STORE_OK;
    }
    enum store_result result = stream_find(call, call->keys, &stream);
    if (result == STORE_OK)
        result = stream_load_head(&stream);
    if (result != STORE_OK)
        return result;
    if (!stream.exists && addition.only_existing) {
        resp_null(call->reply);
        return STORE_OK;
    }
    if (stream_id_compare(stream.head.last, STREAM_ID_MAX) == 0)
        error = "ERR The stream has exhausted the last possible ID, unable to add more items";
    else if (is_too_large(call, addition.fields_at))
        error = "ERR Elements are too large to be stored";
    if (error == NULL)
        return add_entry(&stream, &addition);
    resp_error(call->reply, error);
    return STORE_OK;
}

/* ---- XDEL ---- */

enum store_result cmd_xdel(struct call *call)
{
    struct stream stream;
    struct stream_id id;
    int64_t count = 0;
    enum store_result result = stream_find(call, call->keys, &stream);
    if (result != STORE_OK)
        return result;
    if (stream.exists) /* otherwise Redis does not look at the IDs */
        for (size_t i = 2; i < call->argc; i++)
            if (!stream_read_id(call, call->argv[i], 0, &id))
                return STORE_OK;
    result = stream_load_head(&stream);
    for (size_t i = 2; stream.exists && i < call->argc && result == STORE_OK; i++) {
        bool removed;
        if (stream_id_parse(call->argv[i], 0, &id) != STREAM_ID_WHOLE)
            continue;
        result = stream_delete(&stream, id, &removed);
        count += removed;
        if (result == STORE_OK)
            result = call_yield_at(call, i);
    }
    if (result != STORE_OK)
        return result;
    resp_integer(call->reply, count);
    return count > 0 ? changed(&stream, "xdel") : STORE_OK;
}

/* ---- XSETID ---- */

struct new_head {
    struct stream_id id, max_deleted;
    int64_t added; /* -1: not given */
};

static bool read_max_deleted(struct call *call, struct resp_slice arg, struct new_head *head)
{
    if (!stream_read_id(call, arg, 0, &head->max_deleted))
        return false;
    if (stream_id_compare(head->id, head->max_deleted) >= 0)
        return true;
    resp_error(call->reply, "ERR The ID specified in XSETID is smaller than the provided "
                            "max_deleted_entry_id");
    return false;
}

static bool read_new_head(struct call *call, struct new_head *head)
{
    if (!stream_read_id(call, call->argv[2], 0, &head->id))
        return false;
    for (size_t i = 3; i < call->argc; i += 2) {
        bool has_more = i + 1 < call->argc, is_valid;
        if (has_more && slice_is(call->argv[i], "entriesadded"))
            is_valid = read_not_negative(call, call->argv[i + 1],
                                         "ERR entries_added must be positive", &head->added);
        else if (has_more && slice_is(call->argv[i], "maxdeletedid"))
            is_valid = read_max_deleted(call, call->argv[i + 1], head);
        else
            is_valid = call_syntax_error(call);
        if (!is_valid)
            return false;
    }
    return true;
}

/* NULL: the stream can have the new head. */
static enum store_result refuse_head(struct stream *stream, const struct new_head *head,
                                     const char **error)
{
    struct stream_id last;
    *error = NULL;
    if (stream_id_compare(head->id, stream->head.max_deleted) < 0)
        *error = "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id";
    enum store_result result = stream_last_entry(stream, &last);
    if (result != STORE_OK || *error != NULL)
        return result == STORE_ABSENT ? STORE_OK : result;
    if (stream_id_compare(head->id, last) < 0)
        *error = "ERR The ID specified in XSETID is smaller than the target stream top item";
    else if (head->added >= 0 && (uint64_t)head->added < stream_count(stream))
        *error = "ERR The entries_added specified in XSETID is smaller than the target stream "
                 "length";
    return STORE_OK;
}

enum store_result cmd_xsetid(struct call *call)
{
    struct new_head head = {.added = -1};
    struct stream stream;
    const char *error;
    if (!read_new_head(call, &head))
        return STORE_OK;
    enum store_result result = stream_find(call, call->keys, &stream);
    if (result == STORE_OK && !stream.exists) {
        resp_error(call->reply, "ERR no such key");
        return STORE_OK;
    }
    if (result == STORE_OK)
        result = stream_load_head(&stream);
    if (result == STORE_OK)
        result = refuse_head(&stream, &head, &error);
    if (result != STORE_OK)
        return result;
    if (error != NULL) {
        resp_error(call->reply, error);
        return STORE_OK;
    }
    stream.head.last = head.id;
    if (head.added >= 0)
        stream.head.added = (uint64_t)head.added;
    if (!stream_id_is_zero(head.max_deleted))
        stream.head.max_deleted = head.max_deleted;
    resp_ok(call->reply);
    return changed(&stream, "xsetid");
}
