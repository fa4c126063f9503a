/*
 * Helpers that command functions share; see call.h.
 */
#include "server/core/call.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "server/core/server.h"
#include "server/core/session.h"

#define NAMES_SHARE 4 /* of commands, in one call, as a multiple of their number */

const char *call_type_name(uint8_t type)
{
    type &= ITEM_TYPE_MASK;
    static const char *const names[] = {
        [TYPE_STRING] = "string", [TYPE_LIST] = "list", [TYPE_SET] = "set",
        [TYPE_ZSET] = "zset",     [TYPE_HASH] = "hash", [TYPE_STREAM] = "stream"};
    return type < sizeof(names) / sizeof(names[0]) ? names[type] : "unknown";
}

bool slice_is(struct resp_slice slice, const char *text)
{
    for (size_t i = 0; i < slice.len; i++) {
        unsigned char a = (unsigned char)slice.data[i], b = (unsigned char)text[i];
        if (b == '\0') /* also stays within `text` */
            return false;
        if (a >= 'A' && a <= 'Z')
            a |= 0x20;
        if (b >= 'A' && b <= 'Z')
            b |= 0x20;
        if (a != b)
            return false;
    }
    return text[slice.len] == '\0';
}

bool call_int64(struct call *call, struct resp_slice arg, int64_t *value)
{
    if (resp_read_int64(arg.data, arg.len, value))
        return true;
    resp_error(call->reply, "ERR value is not an integer or out of range");
    return false;
}

bool call_int64_between(struct call *call, struct resp_slice arg, int64_t least, int64_t most,
                        int64_t *value)
{
    if (!call_int64(call, arg, value))
        return false;
    if (*value >= least && *value <= most)
        return true;
    resp_errorf(call->reply,
                "ERR value is out of range, value must between %" PRId64 " and %" PRId64, least,
                most);
    return false;
}

bool call_int64_from(struct call *call, struct resp_slice arg, int64_t least, const char *error,
                     int64_t *value)
{
    if (resp_read_int64(arg.data, arg.len, value) && *value >= least)
        return true;
    resp_error(call->reply, error);
    return false;
}

bool call_count(struct call *call, struct resp_slice arg, int64_t *value)
{
    return call_int64_from(call, arg, 0, "ERR value is out of range, must be positive", value);
}

bool call_double(struct call *call, struct resp_slice arg, const char *error, double *value)
{
    if (resp_read_double(arg.data, arg.len, value))
        return true;
    resp_error(call->reply, error != NULL ? error : "ERR value is not a valid float");
    return false;
}

void rank_range(int64_t from, int64_t to, uint64_t total, uint64_t *first, uint64_t *count)
{
    int64_t end = (int64_t)total;
    if (from < 0)
        from = from + end < 0 ? 0 : from + end;
    if (to < 0)
        to += end;
    if (to >= end)
        to = end - 1;
    *first = from <= to ? (uint64_t)from : 0;
    *count = from <= to ? (uint64_t)(to - from) + 1 : 0;
    assert(*first <= total && *count <= total - *first);
}

bool call_timeout(struct call *call, struct resp_slice arg, int64_t *timeout_ms)
{
    long double seconds;
    if (!resp_read_long_double(arg.data, arg.len, &seconds)) {
        resp_error(call->reply, "ERR timeout is not a float or out of range");
        return false;
    }
    if (seconds * 1000 >= (long double)(INT64_MAX - call->now_ms)) {
        resp_error(call->reply, "ERR timeout is out of range");
        return false;
    }
    if (seconds * 1000 <= -1) {
        resp_error(call->reply, "ERR timeout is negative");
        return false;
    }
    *timeout_ms = (int64_t)(seconds * 1000);
    *timeout_ms += (long double)*timeout_ms < seconds * 1000; /* never earlier than asked for */
    return true;
}

bool call_timeout_ms(struct call *call, struct resp_slice arg, int64_t *timeout_ms)
{
    const char *error = NULL;
    if (!resp_read_int64(arg.data, arg.len, timeout_ms))
        error = "ERR timeout is not an integer or out of range";
    else if (*timeout_ms < 0)
        error = "ERR timeout is negative";
    else if (*timeout_ms > INT64_MAX - call->now_ms)
        error = "ERR timeout is out of range";
    if (error != NULL)
        resp_error(call->reply, error);
    return error == NULL;
}

bool call_too_many_names(struct call *call)
{
    if (call->argc - 2 <= NAMES_SHARE * call->server->commands.count)
        return false;
    resp_error(call->reply, "ERR too many command names");
    return true;
}

bool call_syntax_error(struct call *call)
{
    resp_error(call->reply, "ERR syntax error");
    return false;
}

bool call_wrong_type(struct call *call)
{
    resp_error(call->reply, "WRONGTYPE Operation against a key holding the wrong kind of value");
    return false;
}

bool call_counts_access(const struct call *call)
{
    if ((call->command->flags & CMD_NO_TOUCH) != 0)
        return false;
    return !call->session->no_touch || call->command->role == ROLE_TOUCH;
}

bool call_same_name(const struct store_key *a, const struct store_key *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* The keys after STREAMS, in the arguments of XREAD or XREADGROUP. */
static void stream_keys(size_t from, size_t argc, const struct resp_slice *argv, size_t *begin,
                        size_t *end)
{
    for (size_t i = from; i < argc; i++) {
        if (slice_is(argv[i], "streams")) {
            size_t left = argc - i - 1;
            *begin = i + 1;
            *end = left % 2 == 0 ? *begin + left / 2 : *begin;
            return;
        }
        if (slice_is(argv[i], "block") || slice_is(argv[i], "count"))
            i++;
        else if (slice_is(argv[i], "group"))
            i += 2;
        else if (!slice_is(argv[i], "noack"))
            return;
    }
}

void command_counted_keys(const struct command *command, size_t argc, const struct resp_slice *argv,
                          size_t *begin, size_t *end)
{
    size_t at = (size_t)command->key_count_at;
    int64_t count;
    *begin = *end = 0;
    if (command->streams_at != 0)
        stream_keys((size_t)command->streams_at, argc, argv, begin, end);
    if (at == 0 || at >= argc || !resp_read_int64(argv[at].data, argv[at].len, &count) ||
        count <= 0 || (uint64_t)count > argc - at - 1)
        return;
    *begin = at + 1;
    *end = *begin + (size_t)count;
}

size_t command_first_key(const struct command *command, size_t argc, const struct resp_slice *argv)
{
    size_t begin, end;
    if (command->first_key > 0)
        return (size_t)command->first_key;
    command_counted_keys(command, argc, argv, &begin, &end);
    return begin;
}

/* As in Redis, the last of the options counts. */
static size_t georadius_store_key(size_t argc, const struct resp_slice *argv)
{
    size_t found = 0;
    for (size_t i = 5; i + 1 < argc; i++)
        if (slice_is(argv[i], "store") || slice_is(argv[i], "storedist"))
            found = ++i;
    return found;
}

size_t command_store_key(const struct command *command, size_t argc, const struct resp_slice *argv)
{
    size_t found = 0;
    if ((command->flags & CMD_STORE_OPTION) == 0)
        return 0;
    if (command->role == ROLE_GEORADIUS)
        return georadius_store_key(argc, argv);
    for (size_t i = 2; i + 1 < argc; i++) {
        bool is_store = slice_is(argv[i], "store");
        if (is_store)
            found = i + 1;
        if (slice_is(argv[i], "limit"))
            i += 2;
        else if (is_store || slice_is(argv[i], "by") || slice_is(argv[i], "get"))
            i++;
    }
    return found;
}

/* The database named by COPY's options; false: none is named, or COPY will refuse the options. */
static bool copy_db(size_t argc, const struct resp_slice *argv, int64_t *db)
{
    bool named = false;
    for (size_t i = 3; i < argc; i++) {
        if (slice_is(argv[i], "replace"))
            continue;
        if (!slice_is(argv[i], "db") || ++i == argc ||
            !resp_read_int64(argv[i].data, argv[i].len, db))
            return false;
        named = true;
    }
    return named && *db >= 0 && *db < STORE_DB_COUNT;
}

/* COPY and MOVE access a key in another database than the session's. Arguments that the command
 * will refuse have no effect. */
static uint32_t other_db_keys(const struct command *command, size_t argc,
                              const struct resp_slice *argv, struct store_key *keys,
                              uint32_t key_count)
{
    int64_t db = 0;
    if (command->role == ROLE_COPY) {
        if (key_count == 2 && copy_db(argc, argv, &db))
            keys[1].db = (uint8_t)db;
    } else if (key_count == 1 && argc == 3 && resp_read_int64(argv[2].data, argv[2].len, &db) &&
               db >= 0 && db < STORE_DB_COUNT && db != keys[0].db) {
        keys[1] = keys[0];
        keys[1].db = (uint8_t)db;
        return 2;
    }
    return key_count;
}

static void name_key(const struct store *store, const struct store_key *known, uint32_t db,
                     struct resp_slice name, enum store_mode mode, struct store_key *key)
{
    if (known == NULL) {
        store_key(store, key, db, name.data, name.len, mode);
        return;
    }
    *key = *known;
    key->db = (uint8_t)db;
    key->mode = (uint8_t)mode;
}

size_t call_most_keys(const struct command *command, size_t argc)
{
    bool any = command->last_key < 0 || command->key_count_at != 0 || command->streams_at != 0;
    size_t most = any || (size_t)command->last_key > argc ? argc : (size_t)command->last_key;
    return most + 1; /* of a STORE option, or in another database */
}

uint32_t call_table_keys(const struct store *store, const struct command *command, size_t argc,
                         const struct resp_slice *argv, uint32_t db, const struct store_key *known,
                         struct store_key *keys)
{
    const uint32_t writes = CMD_WRITE | CMD_CACHES_RESULT;
    enum store_mode mode = (command->flags & writes) != 0 ? STORE_EXCLUSIVE : STORE_SHARED;
    int64_t last = command->last_key < 0 ? (int64_t)argc + command->last_key : command->last_key;
    if (last >= (int64_t)argc)
        last = (int64_t)argc - 1;
    uint32_t count = 0;
    size_t begin, end;
    for (int64_t i = command->first_key; i > 0 && i <= last; i += command->key_step, known = NULL)
        name_key(store, known, db, argv[i], mode, &keys[count++]);
    command_counted_keys(command, argc, argv, &begin, &end);
    for (size_t i = begin; i < end; i++, known = NULL)
        name_key(store, known, db, argv[i], mode, &keys[count++]);
    size_t to = command_store_key(command, argc, argv);
    if (to != 0)
        store_key(store, &keys[count++], db, argv[to].data, argv[to].len, mode);
    if ((command->flags & CMD_OTHER_DB) != 0)
        count = other_db_keys(command, argc, argv, keys, count);
    return count;
}

bool call_only_reads(const struct call *call, const struct store_key *key)
{
    const char *flags = call->command->key_flags, *next;
    if ((call->command->flags & CMD_READONLY) != 0)
        return true;
    for (; key > call->keys && (next = strchr(flags, ';')) != NULL; key--)
        flags = next + 1;
    return flags[0] == 'R' && flags[1] == 'O';
}

enum store_scope command_scope(const struct command *command)
{
    if ((command->flags & CMD_ALL_KEYS) != 0)
        return STORE_SCOPE_ALL;
    return (command->flags & CMD_NO_KEYS) != 0 ? STORE_SCOPE_NONE : STORE_SCOPE_KEYS;
}

void call_drop_progress(struct call *call)
{
    if (call->progress != NULL && call->progress_free != NULL)
        call->progress_free(call->progress);
    call->progress = NULL;
    call->progress_free = NULL;
    call->progress_lasts = false;
    call->cursor = 0;
}
