/*
 * CLIENT TRACKING and its companions. TRACKING is broadcast: each worker looks whether the client
 * to redirect to is one of its own; the client's own worker, the last one, changes the mode. The
 * target found is kept in the call.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/commands/commands.h"
#include "server/core/call.h"
#include "server/core/session.h"
#include "server/core/worker.h"
#include "server/exec/prefix_table.h"
#include "server/exec/request.h"
#include "server/exec/tracking.h"
#include "server/net/conn.h"

/* ---- TRACKING ---- */

struct tracking_args {
    uint32_t options;
    int64_t redirect; /* 0: not given */
    size_t prefix_count;
};

static uint32_t option_of(struct resp_slice arg)
{
    static const struct {
        const char *name;
        uint32_t option;
    } names[] = {{"bcast", TRACKER_BCAST},
                 {"optin", TRACKER_OPTIN},
                 {"optout", TRACKER_OPTOUT},
                 {"noloop", TRACKER_NOLOOP}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_is(arg, names[i].name))
            return names[i].option;
    return 0;
}

/* Two options are followed by a value. */
static bool takes_value(const struct call *call, size_t i, const char *name)
{
    return i + 1 < call->argc && slice_is(call->argv[i], name);
}

static void target_free(void *progress)
{
    tracking_target_release(progress);
}

static struct conn *find_client(const struct worker *worker, uint64_t id)
{
    struct conn *conn;
    LIST_FOREACH (conn, &worker->conns, of_worker)
        if (conn->session.id == id && !conn->kill)
            return conn;
    return NULL;
}

/* Keeps the client to redirect to, if it is one of this worker's. False: out of memory. */
static bool look_for_target(struct call *call)
{
    int64_t id = 0;
    for (size_t i = 3; i < call->argc && id == 0; i++) {
        const struct resp_slice *value = &call->argv[i + 1];
        if (takes_value(call, i, "redirect") && !resp_read_int64(value->data, value->len, &id))
            return true;
        i += takes_value(call, i, "redirect") || takes_value(call, i, "prefix");
    }
    struct conn *conn = id > 0 ? find_client(call->worker, (uint64_t)id) : NULL;
    if (conn == NULL)
        return true;
    call->progress = tracking_target_of(conn);
    call->progress_free = target_free;
    return call->progress != NULL;
}

static bool refuse(struct call *call, const char *error)
{
    resp_error(call->reply, error);
    return false;
}

static bool parse_redirect(struct call *call, struct resp_slice arg, struct tracking_args *args)
{
    if (args->redirect != 0)
        return refuse(call, "ERR A client can only redirect to a single other client");
    if (!call_int64(call, arg, &args->redirect))
        return false;
    return call->progress != NULL ||
           refuse(call, "ERR The client ID you want redirect to does not exist");
}

static bool parse_options(struct call *call, struct tracking_args *args)
{
    for (size_t i = 3; i < call->argc; i++) {
        uint32_t option = option_of(call->argv[i]);
        args->options |= option;
        if (takes_value(call, i, "redirect")) {
            if (!parse_redirect(call, call->argv[++i], args))
                return false;
        } else if (takes_value(call, i, "prefix")) {
            args->prefix_count++;
            i++;
        } else if (option == 0) {
            return call_syntax_error(call);
        }
    }
    return true;
}

/* ---- its prefixes ---- */

/* An option PREFIX. */
struct given_prefix {
    struct resp_slice name;
    uint32_t at; /* among the options, from 0 */
    bool overlaps_other, overlaps_existing;
    struct resp_slice existing; /* if so, the first of these */
};

/* In the order of their names, and of the options if these are the same. */
struct given_prefixes {
    struct given_prefix *sorted;
    uint32_t count;
};

static int compare_given(const void *a, const void *b)
{
    const struct given_prefix *x = a, *y = b;
    int order = prefix_compare(x->name, y->name);
    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

/* False: out of memory. */
static bool gather_prefixes(const struct call *call, const struct tracking_args *args,
                            struct given_prefixes *given)
{
    given->sorted = calloc(args->prefix_count + 1, sizeof *given->sorted);
    if (given->sorted == NULL)
        return false;
    for (size_t i = 3; i < call->argc; i++) {
        if (takes_value(call, i, "prefix")) {
            given->sorted[given->count].at = given->count;
            given->sorted[given->count++].name = call->argv[++i];
        } else if (takes_value(call, i, "redirect")) {
            i++;
        }
    }
    assert(given->count == args->prefix_count);
    qsort(given->sorted, given->count, sizeof *given->sorted, compare_given);
    return true;
}

static bool begins_with(struct resp_slice name, struct resp_slice prefix)
{
    return name.len >= prefix.len &&
           (prefix.len == 0 || memcmp(name.data, prefix.data, prefix.len) == 0);
}

static bool overlap(struct resp_slice a, struct resp_slice b)
{
    return begins_with(a, b) || begins_with(b, a);
}

/* What begins with a name follows it without a gap. */
static void mark_overlaps(const struct given_prefixes *given)
{
    struct given_prefix *shortest = given->sorted;
    for (uint32_t i = 1; i < given->count; i++) {
        struct given_prefix *next = &given->sorted[i];
        if (begins_with(next->name, shortest->name))
            next->overlaps_other = shortest->overlaps_other = true;
        else
            shortest = next;
    }
}

struct existing_walk {
    const struct given_prefixes *given;
    uint32_t next; /* the first that the existing ones so far are not behind */
};

static void note_existing(struct given_prefix *given, struct resp_slice existing)
{
    if (given->overlaps_existing)
        return;
    given->overlaps_existing = true;
    given->existing = existing;
}

/* Existing ones do not overlap, but for an empty one, which comes first. */
static void compare_existing(void *arg, struct resp_slice existing)
{
    struct existing_walk *walk = arg;
    const struct given_prefixes *given = walk->given;
    while (walk->next < given->count &&
           prefix_compare(given->sorted[walk->next].name, existing) < 0) {
        struct given_prefix *before = &given->sorted[walk->next++];
        if (begins_with(existing, before->name))
            note_existing(before, existing);
    }
    for (uint32_t i = walk->next; i < given->count && begins_with(given->sorted[i].name, existing);
         i++)
        note_existing(&given->sorted[i], existing);
}

#define SHOWN_MAX 128 /* of a prefix, in an error */

static int shown(struct resp_slice name)
{
    return (int)(name.len < SHOWN_MAX ? name.len : SHOWN_MAX);
}

static bool refuse_overlap(struct call *call, const char *which, struct resp_slice prefix,
                           struct resp_slice other)
{
    resp_errorf(call->reply,
                "ERR Prefix '%.*s' overlaps with %s prefix '%.*s'. Prefixes for a single client "
                "must not overlap.",
                shown(prefix), prefix.data, which, shown(other), other.data);
    return false;
}

/* Of the later options the first that overlaps with one. */
static const struct given_prefix *overlapping(const struct given_prefixes *given,
                                              const struct given_prefix *with)
{
    const struct given_prefix *first = NULL;
    for (uint32_t i = 0; i < given->count; i++) {
        const struct given_prefix *other = &given->sorted[i];
        if (other->at > with->at && (first == NULL || other->at < first->at) &&
            overlap(other->name, with->name))
            first = other;
    }
    return first;
}

/* As Redis does, it refuses the first option that overlaps with anything. */
static bool check_prefixes(struct call *call, const struct given_prefixes *given)
{
    struct existing_walk walk = {.given = given};
    const struct given_prefix *first = NULL;
    mark_overlaps(given);
    if (call->session->tracker != NULL)
        prefix_each(call->session->tracker, compare_existing, &walk);
    for (uint32_t i = 0; i < given->count; i++) {
        const struct given_prefix *next = &given->sorted[i];
        if ((next->overlaps_existing || next->overlaps_other) &&
            (first == NULL || next->at < first->at))
            first = next;
    }
    if (first == NULL)
        return true;
    if (first->overlaps_existing)
        return refuse_overlap(call, "an existing", first->name, first->existing);
    return refuse_overlap(call, "another provided", first->name, overlapping(given, first)->name);
}

/* Whether the options go together, and with those that are in force. */
static bool check_options(struct call *call, const struct tracking_args *args)
{
    const uint32_t both = TRACKER_OPTIN | TRACKER_OPTOUT;
    const struct tracker *tracker = call->session->tracker;
    uint32_t now = tracker != NULL ? tracker_options(tracker) : 0, next = args->options;
    if ((next & TRACKER_BCAST) == 0 && args->prefix_count > 0)
        return refuse(call, "ERR PREFIX option requires BCAST mode to be enabled");
    if (tracker != NULL && ((now ^ next) & TRACKER_BCAST) != 0)
        return refuse(call, "ERR You can't switch BCAST mode on/off before disabling tracking for "
                            "this client, and then re-enabling it with a different mode.");
    if ((next & TRACKER_BCAST) != 0 && (next & both) != 0)
        return refuse(call, "ERR OPTIN and OPTOUT are not compatible with BCAST");
    if ((next & both) == both)
        return refuse(call, "ERR You can't specify both OPTIN mode and OPTOUT mode");
    if (((next & TRACKER_OPTIN) != 0 && (now & TRACKER_OPTOUT) != 0) ||
        ((next & TRACKER_OPTOUT) != 0 && (now & TRACKER_OPTIN) != 0))
        return refuse(call, "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for "
                            "this client, and then re-enabling it with a different mode.");
    return true;
}

/* False: out of memory. */
static bool add_prefixes(struct conn *conn, const struct given_prefixes *given)
{
    const struct resp_slice all_keys = {"", 0};
    if (given->count == 0)
        return tracking_add_prefixes(conn, &all_keys, 1);
    struct resp_slice *names = calloc(given->count, sizeof *names);
    if (names == NULL)
        return false;
    for (uint32_t i = 0; i < given->count; i++)
        names[i] = given->sorted[i].name;
    bool are_added = tracking_add_prefixes(conn, names, given->count);
    free(names);
    return are_added;
}

/* False: out of memory. */
static bool turn_on(struct call *call, const struct tracking_args *args,
                    const struct given_prefixes *given)
{
    struct conn *conn = call->session->conn;
    if (conn->transport == NULL) /* it is closed, and nothing would turn it off */
        return true;
    if (!tracking_begin(conn, args->options, args->redirect != 0 ? call->progress : NULL))
        return false;
    return (args->options & TRACKER_BCAST) == 0 || add_prefixes(conn, given);
}

static enum store_result track(struct call *call, const struct tracking_args *args)
{
    struct given_prefixes given = {.count = 0};
    if (!check_options(call, args))
        return STORE_OK;
    if (!gather_prefixes(call, args, &given))
        return STORE_NO_MEMORY;
    bool is_right = check_prefixes(call, &given);
    bool has_memory = !is_right || turn_on(call, args, &given);
    free(given.sorted);
    if (is_right && has_memory)
        resp_ok(call->reply);
    return has_memory ? STORE_OK : STORE_NO_MEMORY;
}

enum store_result cmd_client_tracking(struct call *call)
{
    struct tracking_args args = {.options = 0};
    if (call->progress == NULL && !look_for_target(call))
        call->cursor = 1; /* a broadcast can fail only at its last stop */
    if (!call->broadcast_last)
        return STORE_OK;
    if (call->cursor != 0)
        return STORE_NO_MEMORY;
    if (!parse_options(call, &args))
        return STORE_OK;
    if (slice_is(call->argv[2], "on"))
        return track(call, &args);
    if (slice_is(call->argv[2], "off")) {
        tracking_end(call->session->conn);
        resp_ok(call->reply);
    } else {
        call_syntax_error(call);
    }
    return STORE_OK;
}

/* ---- CACHING ---- */

/* In a transaction it concerns the commands after it in this run. */
static void set_caching(struct call *call)
{
    if (call->outer != NULL)
        request_of_call(call)->caches = true;
    else
        call->session->caching = true;
    resp_ok(call->reply);
}

enum store_result cmd_client_caching(struct call *call)
{
    const struct tracker *tracker = call->session->tracker;
    bool yes = slice_is(call->argv[2], "yes"), no = slice_is(call->argv[2], "no");
    uint32_t options = tracker != NULL ? tracker_options(tracker) : 0;
    if (tracker == NULL)
        refuse(call, "ERR CLIENT CACHING can be called only when the client is in tracking mode "
                     "with OPTIN or OPTOUT mode enabled");
    else if (!yes && !no)
        call_syntax_error(call);
    else if (yes && (options & TRACKER_OPTIN) == 0)
        refuse(call,
               "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
    else if (no && (options & TRACKER_OPTOUT) == 0)
        refuse(call,
               "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
    else
        set_caching(call);
    return STORE_OK;
}

/* ---- queries ---- */

static int64_t redirect_of(const struct session *session)
{
    const struct tracker *tracker = session->tracker;
    if (tracker == NULL)
        return -1;
    return tracker->target != NULL ? (int64_t)tracker->target->id : 0;
}

enum store_result cmd_client_getredir(struct call *call)
{
    resp_integer(call->reply, redirect_of(call->session));
    return STORE_OK;
}

#define FLAGS_MOST 6

static void write_flags(const struct session *session, struct resp_writer *reply)
{
    const struct tracker *tracker = session->tracker;
    uint32_t options = tracker != NULL ? tracker_options(tracker) : 0, count = 0;
    const char *flags[FLAGS_MOST];
    flags[count++] = tracker != NULL ? "on" : "off";
    if ((options & TRACKER_BCAST) != 0)
        flags[count++] = "bcast";
    if ((options & TRACKER_OPTIN) != 0)
        flags[count++] = "optin";
    if ((options & TRACKER_OPTIN) != 0 && session->caching)
        flags[count++] = "caching-yes";
    if ((options & TRACKER_OPTOUT) != 0)
        flags[count++] = "optout";
    if ((options & TRACKER_OPTOUT) != 0 && session->caching)
        flags[count++] = "caching-no";
    if ((options & TRACKER_NOLOOP) != 0)
        flags[count++] = "noloop";
    if (tracker != NULL && tracker->is_broken)
        flags[count++] = "broken_redirect";
    assert(count <= FLAGS_MOST);
    resp_set(reply, count);
    for (uint32_t i = 0; i < count; i++)
        resp_bulk_string(reply, flags[i]);
}

static void write_prefix(void *arg, struct resp_slice prefix)
{
    resp_bulk(arg, prefix.data, prefix.len);
}

enum store_result cmd_client_trackinginfo(struct call *call)
{
    const struct tracker *tracker = call->session->tracker;
    struct resp_writer *reply = call->reply;
    resp_map(reply, 3);
    resp_bulk_string(reply, "flags");
    write_flags(call->session, reply);
    resp_bulk_string(reply, "redirect");
    resp_integer(reply, redirect_of(call->session));
    resp_bulk_string(reply, "prefixes");
    resp_array(reply, tracker != NULL ? tracker->prefix_count : 0);
    if (tracker != NULL)
        prefix_each(tracker, write_prefix, reply);
    return STORE_OK;
}
