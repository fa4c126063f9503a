/*
 * INFO, LOLWUT, TIME, SHUTDOWN.
 */
#include "server/commands/commands.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/commands/info.h"
#include "server/exec/runner_reply.h"
#include "server/core/server.h"
#include "server/core/session.h"
#include "server/core/worker.h"
#include "server/core/call.h"

/* ---- INFO ---- */

static bool is_wanted(const struct call *call, const struct info_section *section)
{
    if (call->argc == 1)
        return section->usual;
    for (size_t i = 1; i < call->argc; i++) {
        struct resp_slice name = call->argv[i];
        if (slice_is(name, "everything") || slice_is(name, "all") ||
            slice_is(name, section->name) || (section->usual && slice_is(name, "default")))
            return true;
    }
    return false;
}

static enum store_result write_section(FILE *to, const struct call *call,
                                       const struct info_section *section)
{
    if (call->txn != NULL && section->write_inside != NULL)
        return section->write_inside(to, call->txn);
    section->write(to, call->server);
    return STORE_OK;
}

static enum store_result write_sections(FILE *to, const struct call *call)
{
    bool first = true;
    for (size_t i = 0; i < info_section_count; i++) {
        if (!is_wanted(call, &info_sections[i]))
            continue;
        if (!first)
            fputs("\r\n", to);
        first = false;
        enum store_result result = write_section(to, call, &info_sections[i]);
        if (result != STORE_OK)
            return result;
    }
    return STORE_OK;
}

enum store_result cmd_info(struct call *call)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    if (to == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = write_sections(to, call);
    bool failed = fclose(to) != 0 || text == NULL;
    if (!failed)
        resp_verbatim(call->reply, "txt", text, len);
    free(text);
    return failed ? STORE_NO_MEMORY : result;
}

/* ---- TIME ---- */

/* No picture, whatever VERSION is given: clients look at the last line. */
enum store_result cmd_lolwut(struct call *call)
{
    static const char text[] =
        "Vellum ver. " VELLUM_VERSION "\nRedis ver. " VELLUM_REDIS_VERSION "\n";
    int64_t version;
    if (call->argc > 2 && slice_is(call->argv[1], "version") &&
        !call_int64(call, call->argv[2], &version))
        return STORE_OK;
    resp_verbatim(call->reply, "txt", text, sizeof text - 1);
    return STORE_OK;
}

/* Inside another command the time is fixed, also over its reruns; but a script that is busy may be
 * waiting for it to pass. */
enum store_result cmd_time(struct call *call)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    bool is_busy = atomic_load_explicit(&call->worker->script.is_busy, memory_order_relaxed);
    if (call->outer != NULL && !is_busy) {
        now.tv_sec = call->now_ms / 1000;
        now.tv_nsec = call->now_ms % 1000 * 1000000;
    }
    resp_array(call->reply, 2);
    resp_bulk_integer(call->reply, now.tv_sec);
    resp_bulk_integer(call->reply, now.tv_nsec / 1000);
    return STORE_OK;
}

/* ---- SHUTDOWN ---- */

/* There is nothing to save and there are no replicas to wait for, so the options must only be
 * well-formed. */
enum store_result cmd_shutdown(struct call *call)
{
    bool save = false, nosave = false, abort = false, good = true;
    for (size_t i = 1; i < call->argc && good; i++) {
        if (slice_is(call->argv[i], "save"))
            save = true;
        else if (slice_is(call->argv[i], "nosave"))
            nosave = true;
        else if (slice_is(call->argv[i], "abort"))
            abort = true;
        else
            good = slice_is(call->argv[i], "now") || slice_is(call->argv[i], "force");
    }
    if (!good || (save && nosave) || (abort && call->argc > 2)) {
        call_syntax_error(call);
    } else if (abort) {
        resp_error(call->reply, "ERR No shutdown in progress.");
    } else if (!nosave && worker_any_script_is_busy(call->server)) {
        resp_error(call->reply, reply_busy_text(call->server));
    } else {
        server_stop(call->server);
        call->session->close_after_reply = true; /* as Redis: the connection closes */
    }
    return STORE_OK;
}
