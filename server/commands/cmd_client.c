/*
 * CLIENT. LIST and KILL are broadcast: they run once on each worker's thread and examine its
 * connections there. The results so far are kept in the call.
 */
#include "server/commands/cmd_client.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/commands/commands.h"
#include "server/core/collected.h"
#include "server/exec/blocked.h"
#include "server/net/conn.h"
#include "server/exec/multi.h"
#include "server/exec/pause.h"
#include "server/core/server.h"
#include "server/core/session.h"
#include "server/exec/tracker.h"
#include "server/exec/watch.h"
#include "server/core/worker.h"
#include "server/core/call.h"
#include "storage/base/array.h"

bool client_name_good(struct resp_slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.data[i] < '!' || name.data[i] > '~')
            return false;
    return true;
}

bool client_set_text(struct session *session, char **text, struct resp_slice value)
{
    char *copy = NULL;
    if (value.len > 0) {
        copy = strndup(value.data, value.len);
        if (copy == NULL)
            return false;
    }
    if (*text != NULL)
        session->text_bytes -= strlen(*text) + 1;
    if (copy != NULL)
        session->text_bytes += strlen(copy) + 1;
    free(*text);
    *text = copy;
    return true;
}

/* ---- this connection ---- */

enum store_result cmd_client_id(struct call *call)
{
    resp_integer(call->reply, (int64_t)call->session->id);
    return STORE_OK;
}

enum store_result cmd_client_getname(struct call *call)
{
    if (call->session->name != NULL)
        resp_bulk_string(call->reply, call->session->name);
    else
        resp_null(call->reply);
    return STORE_OK;
}

enum store_result cmd_client_setname(struct call *call)
{
    if (!client_name_good(call->argv[2])) {
        resp_error(call->reply, "ERR Client names cannot contain spaces, newlines or special "
                                "characters.");
        return STORE_OK;
    }
    if (!client_set_text(call->session, &call->session->name, call->argv[2]))
        return STORE_NO_MEMORY;
    resp_ok(call->reply);
    return STORE_OK;
}

enum store_result cmd_client_setinfo(struct call *call)
{
    struct resp_slice option = call->argv[2];
    int shown = option.len < 128 ? (int)option.len : 128;
    char **text = slice_is(option, "lib-name")  ? &call->session->lib_name
                  : slice_is(option, "lib-ver") ? &call->session->lib_ver
                                                : NULL;
    if (text == NULL) {
        resp_errorf(call->reply, "ERR Unrecognized option '%.*s'", shown, option.data);
        return STORE_OK;
    }
    if (!client_name_good(call->argv[3])) {
        resp_errorf(call->reply, "ERR %.*s cannot contain spaces, newlines or special characters.",
                    shown, option.data);
        return STORE_OK;
    }
    if (!client_set_text(call->session, text, call->argv[3]))
        return STORE_NO_MEMORY;
    resp_ok(call->reply);
    return STORE_OK;
}

enum store_result cmd_client_reply(struct call *call)
{
    struct session *session = call->session;
    struct resp_slice mode = call->argv[2];
    if (slice_is(mode, "on")) {
        session->reply_mode = SESSION_REPLY_ON;
        resp_ok(call->reply);
    } else if (slice_is(mode, "off")) {
        session->reply_mode = SESSION_REPLY_OFF;
    } else if (slice_is(mode, "skip")) {
        if (session->reply_mode != SESSION_REPLY_OFF)
            session->reply_mode = SESSION_REPLY_SKIP_NEXT;
    } else {
        call_syntax_error(call);
    }
    return STORE_OK;
}

static enum store_result set_switch(struct call *call, bool *value)
{
    bool on = slice_is(call->argv[2], "on");
    if (!on && !slice_is(call->argv[2], "off")) {
        call_syntax_error(call);
        return STORE_OK;
    }
    *value = on;
    resp_ok(call->reply);
    return STORE_OK;
}

enum store_result cmd_client_no_evict(struct call *call)
{
    return set_switch(call, &call->session->no_evict);
}

enum store_result cmd_client_no_touch(struct call *call)
{
    return set_switch(call, &call->session->no_touch);
}

enum store_result cmd_client_help(struct call *call)
{
    static const char *const lines[] = {
        "CACHING (YES|NO)",
        "    Track the keys of the next command, or do not, in the modes OPTIN and OPTOUT.",
        "GETNAME",
        "    Tell this connection's name.",
        "GETREDIR",
        "    Tell the number of the connection that gets this one's invalidations.",
        "ID",
        "    Tell this connection's number.",
        "INFO",
        "    Describe this connection.",
        "KILL <ip:port>",
        "    Close the connection from this address.",
        "KILL <option> <value> [<option> <value> [...]]",
        "    Close the connections that fit all of:",
        "    * ADDR (<ip:port>|<unixsocket>:0), LADDR (<ip:port>|<unixsocket>:0)",
        "    * ID <client-id>, USER <username>, TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
        "    * SKIPME (YES|NO): leave out this connection (default: yes)",
        "LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB)] [ID <client-id> [<client-id> ...]]",
        "    Describe connections.",
        "NO-EVICT (ON|OFF)",
        "    Spare this connection when clients' memory is short.",
        "NO-TOUCH (ON|OFF)",
        "    Do not count this connection's reads as use of the keys.",
        "PAUSE <timeout> [WRITE|ALL]",
        "    Hold back all commands, or those that may write, for some milliseconds.",
        "REPLY (ON|OFF|SKIP)",
        "    Choose whether this connection gets replies.",
        "SETINFO (LIB-NAME <name>|LIB-VER <version>)",
        "    Note the client library.",
        "SETNAME <name>",
        "    Name this connection.",
        "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
        "         [OPTIN] [OPTOUT] [NOLOOP]",
        "    Tell this connection of changes of keys that it may have in its cache.",
        "TRACKINGINFO",
        "    Describe this connection's tracking mode.",
        "UNBLOCK <client-id> [TIMEOUT|ERROR]",
        "    End the wait of a connection that is blocked.",
        "UNPAUSE",
        "    End a pause.",
        NULL,
    };
    call_help(call, lines);
    return STORE_OK;
}

/* ---- one line about a connection ---- */

static size_t argument_bytes(const struct call *call)
{
    size_t bytes = 0;
    for (size_t i = 0; i < call->argc; i++)
        bytes += call->argv[i].len;
    return bytes;
}

/* The running command's bytes as received, unless it was an inline command. */
static size_t command_bytes(const struct call *call)
{
    size_t bytes = argument_bytes(call) + (size_t)snprintf(NULL, 0, "*%zu\r\n", call->argc);
    for (size_t i = 0; i < call->argc; i++)
        bytes += (size_t)snprintf(NULL, 0, "$%zu\r\n\r\n", call->argv[i].len);
    return bytes;
}

#define CLIENT_FLAGS_MAX 20

static char *tracking_flags(const struct tracker *tracker, char *to)
{
    *to++ = 't';
    if (tracker->is_broken)
        *to++ = 'R';
    if ((tracker_options(tracker) & TRACKER_BCAST) != 0)
        *to++ = 'B';
    return to;
}

static long long redirected_to(const struct session *session)
{
    if (session->tracker == NULL)
        return -1;
    const struct tracking_target *target = session->tracker->target;
    return target != NULL ? (long long)target->id : 0;
}

static void client_flags(const struct conn *conn, char flags[CLIENT_FLAGS_MAX])
{
    const struct session *session = &conn->session;
    char *to = flags;
    if (session->pubsub.count[PUBSUB_MONITOR] > 0)
        *to++ = 'O';
    if (pubsub_is_subscriber(&session->pubsub))
        *to++ = 'P';
    if (session->multi != NULL)
        *to++ = 'x';
    if (conn->waiter != NULL || conn->is_paused)
        *to++ = 'b';
    if (session->tracker != NULL)
        to = tracking_flags(session->tracker, to);
    if (session->watch != NULL && watch_is_dirty(session->watch))
        *to++ = 'd';
    if (session->close_after_reply)
        *to++ = 'c';
    if (conn->kill)
        *to++ = 'A';
    if (conn_is_unix(conn))
        *to++ = 'U';
    if (session->no_evict)
        *to++ = 'e';
    if (session->no_touch)
        *to++ = 'T';
    if (to == flags)
        *to++ = 'N';
    *to = '\0';
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* Has the fields of Redis 7.2 in their order, because some clients reject any others; only RDMA
 * channels add a field. Replies have no fixed buffer here, so rbs, rbp and obl are 0. */
static int describe(const struct call *call, const struct conn *conn, char **line)
{
    const struct session *session = &conn->session;
    bool self = session->id == call->session->id;
    int64_t now = call->now_ms;
    char flags[CLIENT_FLAGS_MAX];
    client_flags(conn, flags);
    return asprintf(
        line,
        "id=%llu addr=%s laddr=%s fd=%d name=%s age=%lld idle=%lld flags=%s db=%u sub=%u psub=%u "
        "ssub=%u multi=%d qbuf=%zu qbuf-free=%zu argv-mem=%zu multi-mem=%llu rbs=0 rbp=0 obl=0 "
        "oll=%zu omem=%llu tot-mem=%llu events=%s cmd=%s user=default redir=%lld resp=%u "
        "lib-name=%s lib-ver=%s%s\n",
        (unsigned long long)session->id, conn_peer_name(conn), conn_local_name(conn), conn_fd(conn),
        or_empty(session->name),
        (long long)(now > session->created_ms ? (now - session->created_ms) / 1000 : 0),
        (long long)(now > session->last_active_ms ? (now - session->last_active_ms) / 1000 : 0),
        flags, session->db, session->pubsub.count[PUBSUB_CHANNEL],
        session->pubsub.count[PUBSUB_PATTERN], session->pubsub.count[PUBSUB_SHARD],
        multi_count(session), conn_query_bytes(conn) + (self ? command_bytes(call) : 0),
        conn_query_free(conn), self ? argument_bytes(call) : 0,
        (unsigned long long)session->queued_bytes, conn_output_list(conn),
        (unsigned long long)conn_output_memory(conn), (unsigned long long)conn_total_memory(conn),
        conn_events(conn),
        self                            ? call->command->name
        : session->last_command != NULL ? session->last_command
                                        : "NULL",
        redirected_to(session), session->resp_version, or_empty(session->lib_name),
        or_empty(session->lib_ver), conn_is_channel(conn) ? " transport=rdma" : "");
}

enum store_result cmd_client_info(struct call *call)
{
    char *line = NULL;
    int len = describe(call, call->session->conn, &line);
    if (len < 0)
        return STORE_NO_MEMORY;
    resp_verbatim(call->reply, "txt", line, (size_t)len);
    free(line);
    return STORE_OK;
}

/* ---- filters ---- */

/* An argument of CLIENT LIST ID. An array of them is in ascending order of the ids. */
struct wanted {
    uint64_t id, place; /* among the arguments; the first, if it is repeated */
};

struct filter {
    uint64_t id;              /* 0: any */
    const struct wanted *ids; /* NULL: any */
    size_t id_count;
    const struct resp_slice *address, *local_address;
    bool other_type; /* a type that no connection has: nothing matches */
    enum { ANY_TYPE, NORMAL_TYPE, PUBSUB_TYPE } type;
    bool skip_self;
    bool old_form; /* the form CLIENT KILL address */
};

static bool refuse(struct call *call, const char *text, struct resp_slice arg)
{
    resp_errorf(call->reply, "ERR %s '%.*s'", text, arg.len < 128 ? (int)arg.len : 128, arg.data);
    return false;
}

static bool parse_type(struct call *call, struct resp_slice type, struct filter *filter)
{
    if (slice_is(type, "normal"))
        filter->type = NORMAL_TYPE;
    else if (slice_is(type, "pubsub"))
        filter->type = PUBSUB_TYPE;
    else if (slice_is(type, "master") || slice_is(type, "replica") || slice_is(type, "slave"))
        filter->other_type = true;
    else
        return refuse(call, "Unknown client type", type);
    return true;
}

static bool parse_list(struct call *call, struct filter *filter)
{
    const struct resp_slice *argv = call->argv;
    int64_t id;
    if (call->argc == 2)
        return true;
    if (call->argc == 4 && slice_is(argv[2], "type"))
        return parse_type(call, argv[3], filter);
    if (call->argc < 4 || !slice_is(argv[2], "id"))
        return call_syntax_error(call);
    for (size_t i = 3; i < call->argc; i++) {
        if (!resp_read_int64(argv[i].data, argv[i].len, &id)) {
            resp_error(call->reply, "ERR Invalid client ID");
            return false;
        }
    }
    return true;
}

static bool parse_kill_option(struct call *call, struct resp_slice option,
                              const struct resp_slice *value, struct filter *filter)
{
    int64_t id;
    if (slice_is(option, "id")) {
        if (!resp_read_int64(value->data, value->len, &id) || id < 1) {
            resp_error(call->reply, "ERR client-id should be greater than 0");
            return false;
        }
        filter->id = (uint64_t)id;
    } else if (slice_is(option, "type")) {
        return parse_type(call, *value, filter);
    } else if (slice_is(option, "addr")) {
        filter->address = value;
    } else if (slice_is(option, "laddr")) {
        filter->local_address = value;
    } else if (slice_is(option, "user")) {
        if (value->len != 7 || memcmp(value->data, "default", 7) != 0)
            return refuse(call, "No such user", *value);
    } else if (slice_is(option, "skipme") && slice_is(*value, "yes")) {
        filter->skip_self = true;
    } else if (slice_is(option, "skipme") && slice_is(*value, "no")) {
        filter->skip_self = false;
    } else {
        return call_syntax_error(call);
    }
    return true;
}

static bool parse_kill(struct call *call, struct filter *filter)
{
    if (call->argc == 3) {
        filter->old_form = true;
        filter->address = &call->argv[2];
        return true;
    }
    filter->skip_self = true;
    for (size_t i = 2; i < call->argc; i += 2) {
        if (i + 1 == call->argc)
            return call_syntax_error(call);
        if (!parse_kill_option(call, call->argv[i], &call->argv[i + 1], filter))
            return false;
    }
    return true;
}

static bool is_address(const struct resp_slice *wanted, const char *name)
{
    return wanted == NULL ||
           (wanted->len == strlen(name) && memcmp(wanted->data, name, wanted->len) == 0);
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t one = ((const struct wanted *)a)->id, other = ((const struct wanted *)b)->id;
    return (one > other) - (one < other);
}

/* NULL: none of the wanted ones. */
static const struct wanted *find_wanted(const struct filter *filter, uint64_t id)
{
    const struct wanted key = {.id = id};
    return bsearch(&key, filter->ids, filter->id_count, sizeof key, compare_ids);
}

static bool matches(const struct call *call, const struct filter *filter, const struct conn *conn)
{
    uint64_t id = conn->session.id;
    bool is_subscriber = pubsub_is_subscriber(&conn->session.pubsub);
    return !filter->other_type &&
           (filter->type == ANY_TYPE || (filter->type == PUBSUB_TYPE) == is_subscriber) &&
           (filter->id == 0 || filter->id == id) &&
           !(filter->skip_self && id == call->session->id) &&
           (filter->ids == NULL || find_wanted(filter, id) != NULL) &&
           is_address(filter->address, conn_peer_name(conn)) &&
           is_address(filter->local_address, conn_local_name(conn));
}

/* ---- LIST ---- */

struct listing {
    size_t count, capacity;
    struct listed {
        uint64_t rank; /* the place of its id among the arguments, or else the id */
        char *line;
    } * items;
    struct wanted *ids; /* NULL: all */
    size_t id_count;
    struct collected collected; /* the lines, and two copies for the reply */
};

static void listing_free(void *progress)
{
    struct listing *listing = progress;
    for (size_t i = 0; i < listing->count; i++)
        free(listing->items[i].line);
    free(listing->items);
    free(listing->ids);
    collected_set(&listing->collected, 0);
    free(listing);
}

static int compare_wanted(const void *a, const void *b)
{
    uint64_t one = ((const struct wanted *)a)->place, other = ((const struct wanted *)b)->place;
    int by_id = compare_ids(a, b);
    return by_id != 0 ? by_id : (one > other) - (one < other);
}

/* Takes the ids, which parse_list has checked. False: out of memory. */
static bool read_ids(struct listing *listing, const struct resp_slice *args, size_t count)
{
    struct wanted *ids = listing->ids = malloc(count * sizeof *ids);
    if (ids == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        int64_t id = 0;
        bool is_id = resp_read_int64(args[i].data, args[i].len, &id);
        assert(is_id);
        (void)is_id;
        ids[i] = (struct wanted){.id = (uint64_t)id, .place = i};
    }
    qsort(ids, count, sizeof *ids, compare_wanted);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || ids[i].id != ids[i - 1].id)
            ids[listing->id_count++] = ids[i];
    return true;
}

static struct listing *listing_new(const struct call *call)
{
    struct listing *listing = calloc(1, sizeof *listing);
    if (listing != NULL)
        listing->collected.server = call->server;
    bool has_ids = call->argc > 3 && slice_is(call->argv[2], "id");
    if (listing == NULL || !has_ids || read_ids(listing, call->argv + 3, call->argc - 3))
        return listing;
    listing_free(listing);
    return NULL;
}

static bool listing_add(struct listing *listing, const struct call *call,
                        const struct filter *filter, const struct conn *conn)
{
    if (!array_reserve(&listing->items, &listing->capacity, listing->count + 1,
                       sizeof *listing->items))
        return false;
    struct listed *item = &listing->items[listing->count];
    uint64_t id = conn->session.id;
    item->rank = filter->ids != NULL ? find_wanted(filter, id)->place : id;
    int len = describe(call, conn, &item->line);
    if (len < 0)
        return false;
    listing->count++;
    return collected_set(&listing->collected, listing->collected.bytes + 3 * (uint64_t)len);
}

static int by_rank(const void *a, const void *b)
{
    uint64_t one = ((const struct listed *)a)->rank, other = ((const struct listed *)b)->rank;
    return (one > other) - (one < other);
}

static enum store_result reply_listing(struct call *call, struct listing *listing)
{
    size_t size = 0, used = 0;
    for (size_t i = 0; i < listing->count; i++)
        size += strlen(listing->items[i].line);
    char *text = malloc(size + 1);
    if (text == NULL)
        return STORE_NO_MEMORY;
    if (listing->count > 0)
        qsort(listing->items, listing->count, sizeof *listing->items, by_rank);
    for (size_t i = 0; i < listing->count; i++) {
        size_t len = strlen(listing->items[i].line);
        memcpy(text + used, listing->items[i].line, len);
        used += len;
    }
    assert(used == size);
    resp_verbatim(call->reply, "txt", text, size);
    free(text);
    return STORE_OK;
}

static bool list_clients(struct call *call, struct filter *filter)
{
    struct conn *conn;
    struct listing *listing = call->progress;
    if (listing == NULL) {
        call->progress = listing = listing_new(call);
        call->progress_free = listing_free;
    }
    if (listing == NULL)
        return false;
    filter->ids = listing->ids;
    filter->id_count = listing->id_count;
    LIST_FOREACH (conn, &call->worker->conns, of_worker)
        if (matches(call, filter, conn) && !listing_add(listing, call, filter, conn))
            return false;
    return true;
}

/* A broadcast can fail only at its last stop: the cursor keeps an earlier failure. */
enum store_result cmd_client_list(struct call *call)
{
    struct filter filter = {.id = 0};
    size_t reply_start = call->reply->len;
    if (!parse_list(call, &filter)) {
        if (!call->broadcast_last) /* the error is reported once, at the end */
            resp_truncate(call->reply, reply_start);
        return STORE_OK;
    }
    if (!list_clients(call, &filter))
        call->cursor = 1;
    if (!call->broadcast_last)
        return STORE_OK;
    return call->cursor != 0 ? STORE_NO_MEMORY : reply_listing(call, call->progress);
}

/* ---- KILL ---- */

static void kill_conn(struct call *call, struct conn *conn)
{
    if (conn->session.id == call->session->id)
        call->session->close_after_reply = true;
    else
        conn_kill(conn);
    call->cursor++;
}

static void reply_killed(struct call *call, const struct filter *filter)
{
    if (!filter->old_form)
        resp_integer(call->reply, (int64_t)call->cursor);
    else if (call->cursor > 0)
        resp_ok(call->reply);
    else
        resp_error(call->reply, "ERR No such client");
}

enum store_result cmd_client_kill(struct call *call)
{
    struct filter filter = {.id = 0};
    size_t reply_start = call->reply->len;
    if (!parse_kill(call, &filter)) {
        if (!call->broadcast_last)
            resp_truncate(call->reply, reply_start);
        return STORE_OK;
    }
    struct conn *conn, *next;
    for (conn = LIST_FIRST(&call->worker->conns); conn != NULL; conn = next) {
        next = LIST_NEXT(conn, of_worker);
        if (!conn->kill && matches(call, &filter, conn))
            kill_conn(call, conn);
    }
    if (call->broadcast_last)
        reply_killed(call, &filter);
    return STORE_OK;
}

/* ---- UNBLOCK ---- */

static bool parse_unblock(struct call *call, int64_t *id, enum blocked_ending *ending)
{
    *ending = BLOCKED_TIMEOUT;
    if (call->argc > 4)
        return call_wrong_subcommand(call);
    if (call->argc == 4 && slice_is(call->argv[3], "error")) {
        *ending = BLOCKED_ERROR;
    } else if (call->argc == 4 && !slice_is(call->argv[3], "timeout")) {
        resp_error(call->reply, "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
        return false;
    }
    return call_int64(call, call->argv[2], id);
}

enum store_result cmd_client_unblock(struct call *call)
{
    struct conn *conn;
    int64_t id;
    enum blocked_ending ending;
    size_t reply_start = call->reply->len;
    if (!parse_unblock(call, &id, &ending)) {
        if (!call->broadcast_last)
            resp_truncate(call->reply, reply_start);
        return STORE_OK;
    }
    LIST_FOREACH (conn, &call->worker->conns, of_worker) {
        if (conn->session.id != (uint64_t)id || conn->waiter == NULL)
            continue;
        blocked_end(conn, ending);
        call->cursor++;
    }
    if (call->broadcast_last)
        resp_integer(call->reply, (int64_t)call->cursor);
    return STORE_OK;
}

/* ---- PAUSE ---- */

static bool parse_pause(struct call *call, enum pause_mode *mode, int64_t *timeout_ms)
{
    *mode = PAUSE_ALL;
    if (call->argc > 4)
        return call_wrong_subcommand(call);
    if (call->argc == 4 && slice_is(call->argv[3], "write")) {
        *mode = PAUSE_WRITES;
    } else if (call->argc == 4 && !slice_is(call->argv[3], "all")) {
        resp_error(call->reply, "ERR CLIENT PAUSE mode must be WRITE or ALL");
        return false;
    }
    return call_timeout_ms(call, call->argv[2], timeout_ms);
}

/* When it has visited every worker, none is in the middle of a command any more that began to run
 * before the pause. A time-out of 0 extends no pause, but may make it stricter. */
enum store_result cmd_client_pause(struct call *call)
{
    enum pause_mode mode;
    int64_t timeout_ms, now_ms = store_clock_ms(call->server->store);
    size_t reply_start = call->reply->len;
    if (!parse_pause(call, &mode, &timeout_ms)) {
        if (!call->broadcast_last)
            resp_truncate(call->reply, reply_start);
        return STORE_OK;
    }
    if (timeout_ms > 0)
        timeout_ms = timeout_ms < INT64_MAX - now_ms ? now_ms + timeout_ms : INT64_MAX;
    if (call->broadcast_index == 0)
        pause_begin(call->server, mode, timeout_ms);
    if (call->broadcast_last)
        resp_ok(call->reply);
    return STORE_OK;
}

enum store_result cmd_client_unpause(struct call *call)
{
    if (call->broadcast_index == 0)
        pause_end(call->server);
    pause_resume(call->worker);
    if (call->broadcast_last)
        resp_ok(call->reply);
    return STORE_OK;
}
