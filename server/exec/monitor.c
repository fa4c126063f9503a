#include "server/exec/monitor.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/core/command.h"
#include "server/net/conn.h"
#include "server/pubsub/effects.h"
#include "server/exec/request.h"
#include "server/exec/batch.h"
#include "server/exec/upload.h"
#include "server/core/call.h"

/* Writes text in quotes, with escapes for unprintable bytes. */
static void write_quoted(struct resp_writer *line, struct resp_slice text)
{
    static const char plain[] = "\\\"\n\r\t\a\b", letters[] = "\\\"nrtab";
    char *start = resp_reserve(line, 4 * text.len + 3), *to = start;
    if (start == NULL)
        return;
    *to++ = ' ';
    *to++ = '"';
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.data[i];
        const char *found = byte == '\0' ? NULL : strchr(plain, byte);
        if (found != NULL) {
            *to++ = '\\';
            *to++ = letters[found - plain];
        } else if (byte >= ' ' && byte <= '~') {
            *to++ = byte;
        } else {
            to += sprintf(to, "\\x%02x", (unsigned char)byte);
        }
    }
    *to++ = '"';
    line->len += (size_t)(to - start);
}

/* A directive's value that CONFIG SET keeps secret. */
static bool is_password(const struct call *call, size_t i)
{
    return call->command->redact == REDACT_PASSWORDS && i > 2 && i % 2 == 1 &&
           (slice_is(call->argv[i - 1], "requirepass") ||
            slice_is(call->argv[i - 1], "masterauth") ||
            slice_is(call->argv[i - 1], "masteruser") ||
            slice_is(call->argv[i - 1], "tls-key-file-pass") ||
            slice_is(call->argv[i - 1], "tls-client-key-file-pass"));
}

/* The arguments of AUTH, those after the word AUTH in HELLO, and passwords that are set. */
static bool is_secret(const struct call *call, size_t i)
{
    if (call->command->redact == REDACT_ALL)
        return i > 0;
    if (call->command->redact != REDACT_AFTER_AUTH)
        return is_password(call, i);
    return (i > 2 && slice_is(call->argv[i - 1], "auth")) ||
           (i > 3 && slice_is(call->argv[i - 2], "auth"));
}

struct resp_slice monitor_argument(const struct call *call, size_t i)
{
    if (is_secret(call, i))
        return (struct resp_slice){"(redacted)", 10};
    /* The value was being written to the store before monitoring began. */
    if (call->upload != NULL && call->upload->argument == i)
        return (struct resp_slice){"(long value)", 12};
    return call->argv[i];
}

/* Commands of scripts do not come from the client itself; EXEC's commands do. */
static bool is_of_script(const struct call *call)
{
    return call->outer != NULL && call->outer->command->role != ROLE_EXEC;
}

static void write_head(struct resp_writer *line, const struct call *call)
{
    const struct conn *conn = call->session->conn;
    char text[64];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int len = snprintf(text, sizeof text, "+%lld.%06ld [%u ", (long long)now.tv_sec,
                       now.tv_nsec / 1000, call->session->db);
    resp_raw(line, text, (size_t)len);
    const char *peer = is_of_script(call) ? "lua" : conn_peer_name(conn);
    size_t peer_len = strlen(peer);
    if (!is_of_script(call) && conn_is_unix(conn)) { /* has no port */
        resp_raw(line, "unix:", 5);
        peer_len -= peer_len > 2 && strcmp(peer + peer_len - 2, ":0") == 0 ? 2 : 0;
    }
    resp_raw(line, peer, peer_len);
    resp_raw(line, "]", 1);
}

static void feed(const struct call *call)
{
    struct resp_writer line;
    resp_writer_init(&line, 2);
    write_head(&line, call);
    for (size_t i = 0; i < call->argc; i++)
        write_quoted(&line, monitor_argument(call, i));
    resp_raw(&line, "\r\n", 2);
    struct publication *publication = NULL;
    if (!line.failed)
        publication = publication_new(call->server, PUBSUB_MONITOR, (struct resp_slice){"", 0},
                                      (struct resp_slice){line.data, line.len});
    if (publication != NULL)
        effects_add(call->effects, publication);
    resp_writer_free(&line);
}

void monitor_feed(const struct call *call)
{
    if ((call->command->flags & (CMD_ADMIN | CMD_SKIP_MONITOR)) == 0)
        feed(call);
}

void monitor_feed_script(const struct call *call)
{
    if (monitor_any(call->server))
        feed(call);
}

void monitor_tell(struct request *request)
{
    struct call *call = &request->call;
    const struct resp_slice *first = call->argv;
    bool is_shown = monitor_any(call->server) && !request->is_monitored;
    for (uint32_t left = is_shown ? batch_length(call) : 0; left > 0; left--) {
        monitor_feed(call);
        call->argv += call->argc;
    }
    call->argv = first;
    request->is_monitored = true;
}
