/*
 * LATENCY.
 */
#include "server/commands/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "server/core/call.h"
#include "server/core/latency.h"
#include "server/core/server.h"
#include "server/exec/slowlog.h"

#define U(value) ((unsigned long long)(value))

/* ---- events ---- */

/* LATENCY_EVENTS: there is none of this name. Redis knows HISTORY's by its exact name. */
static enum latency_event find_event(struct resp_slice name)
{
    enum latency_event event = 0;
    while (event < LATENCY_EVENTS && (strlen(latency_name(event)) != name.len ||
                                      memcmp(latency_name(event), name.data, name.len) != 0))
        event++;
    return event;
}

static void read_history(struct call *call, enum latency_event event,
                         struct latency_history *history)
{
    latency_note_store(call->server);
    if (event < LATENCY_EVENTS)
        latency_history(call->server->latency, event, history);
    else
        history->count = 0;
}

enum store_result cmd_latency_history(struct call *call)
{
    struct latency_history history;
    read_history(call, find_event(call->argv[2]), &history);
    resp_array(call->reply, history.count);
    for (uint32_t i = 0; i < history.count; i++) {
        resp_array(call->reply, 2);
        resp_integer(call->reply, history.samples[i].time_s);
        resp_integer(call->reply, (int64_t)history.samples[i].ms);
    }
    return STORE_OK;
}

/* Adds to the reply what was written aside, since its head needed the number of rows; frees it. */
static enum store_result append_rows(struct call *call, struct resp_writer *rows)
{
    if (rows->len > 0)
        resp_raw(call->reply, rows->data, rows->len);
    bool failed = rows->failed;
    resp_writer_free(rows);
    return failed ? STORE_NO_MEMORY : STORE_OK;
}

enum store_result cmd_latency_latest(struct call *call)
{
    struct resp_writer events;
    struct latency_history history;
    uint64_t count = 0;
    resp_writer_init(&events, 2);
    for (enum latency_event event = 0; event < LATENCY_EVENTS; event++) {
        read_history(call, event, &history);
        if (history.count == 0)
            continue;
        count++;
        resp_array(&events, 4);
        resp_bulk_string(&events, latency_name(event));
        resp_integer(&events, history.samples[history.count - 1].time_s);
        resp_integer(&events, (int64_t)history.samples[history.count - 1].ms);
        resp_integer(&events, (int64_t)history.worst_ms);
    }
    resp_array(call->reply, count);
    return append_rows(call, &events);
}

enum store_result cmd_latency_reset(struct call *call)
{
    int64_t count = 0;
    latency_note_store(call->server); /* what was before does not come after it */
    for (enum latency_event event = 0; event < LATENCY_EVENTS; event++) {
        bool is_named = call->argc == 2;
        for (size_t i = 2; i < call->argc && !is_named; i++)
            is_named = slice_is(call->argv[i], latency_name(event));
        count += is_named && latency_reset(call->server->latency, event);
    }
    resp_integer(call->reply, count);
    return STORE_OK;
}

/* ---- GRAPH ---- */

#define GRAPH_ROWS 4
#define GRAPH_WIDTH 80
#define AGE_MAX 24

/* "12s", "3m", "5h", "2d" */
static void write_age(char text[AGE_MAX], int64_t seconds)
{
    static const struct {
        int64_t seconds;
        char letter;
    } units[] = {{24 * 3600, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    size_t i = 0;
    while (i < 3 && seconds < units[i].seconds)
        i++;
    snprintf(text, AGE_MAX, "%lld%c", (long long)(seconds / units[i].seconds), units[i].letter);
}

/* The samples from `first` on, a column each; the lowest has one mark, the highest GRAPH_ROWS.
 * Below them, from top to bottom, how long ago they were. */
static void draw(FILE *to, const struct latency_history *history, uint32_t first, uint32_t count,
                 uint64_t low, uint64_t high)
{
    int64_t now_s = (int64_t)time(NULL);
    for (uint32_t row = GRAPH_ROWS; row > 0; row--) {
        for (uint32_t i = first; i < first + count; i++) {
            uint64_t above = history->samples[i].ms - low;
            uint64_t height = high > low ? above * (GRAPH_ROWS - 1) / (high - low) + 1 : 1;
            fputc(height > row ? '|' : height == row ? '#' : ' ', to);
        }
        fputc('\n', to);
    }
    fputc('\n', to);
    for (size_t line = 0, left = 1; left > 0; line++) {
        left = 0;
        for (uint32_t i = first; i < first + count; i++) {
            char age[AGE_MAX];
            write_age(age, now_s - history->samples[i].time_s);
            size_t len = strlen(age);
            fputc(line < len ? age[line] : ' ', to);
            left += line + 1 < len;
        }
        fputc('\n', to);
    }
}

static void write_graph(FILE *to, enum latency_event event, const struct latency_history *history)
{
    uint64_t low = UINT64_MAX, high = 0;
    for (uint32_t i = 0; i < history->count; i++) {
        uint64_t ms = history->samples[i].ms;
        low = ms < low ? ms : low;
        high = ms > high ? ms : high;
    }
    fprintf(to, "%s: %llu to %llu ms; the worst since the last reset took %llu ms\n",
            latency_name(event), U(low), U(high), U(history->worst_ms));
    for (int i = 0; i < GRAPH_WIDTH; i++)
        fputc('-', to);
    fputc('\n', to);
    for (uint32_t first = 0; first < history->count; first += GRAPH_WIDTH) {
        uint32_t left = history->count - first;
        draw(to, history, first, left < GRAPH_WIDTH ? left : GRAPH_WIDTH, low, high);
    }
}

enum store_result cmd_latency_graph(struct call *call)
{
    struct latency_history history;
    struct resp_slice name = call->argv[2];
    enum latency_event event = find_event(name);
    read_history(call, event, &history);
    if (history.count == 0) {
        resp_errorf(call->reply, "ERR No samples available for event '%.*s'",
                    name.len < 128 ? (int)name.len : 128, name.data);
        return STORE_OK;
    }
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    if (to == NULL)
        return STORE_NO_MEMORY;
    write_graph(to, event, &history);
    bool is_whole = fclose(to) == 0;
    if (is_whole)
        resp_verbatim(call->reply, "txt", text, len);
    free(text);
    return is_whole ? STORE_OK : STORE_NO_MEMORY;
}

/* ---- DOCTOR ---- */

static void describe(FILE *to, enum latency_event event, const struct latency_history *history)
{
    double sum = 0, deviation = 0, count = history->count;
    for (uint32_t i = 0; i < history->count; i++)
        sum += (double)history->samples[i].ms;
    for (uint32_t i = 0; i < history->count; i++) {
        double from_mean = (double)history->samples[i].ms - sum / count;
        deviation += from_mean < 0 ? -from_mean : from_mean;
    }
    int64_t period = (int64_t)time(NULL) - history->samples[0].time_s;
    fprintf(to,
            "- %s: in %u of the last %lld seconds, %.0f ms in the mean (mean deviation %.0f ms), "
            "at worst %llu ms.\n",
            latency_name(event), history->count, (long long)(period > 0 ? period : 1), sum / count,
            deviation / count, U(history->worst_ms));
}

static void advise_commands(FILE *to, struct server *server, const struct store_stats *stats)
{
    int64_t slower_than = config_number(&server->config, CONFIG_SLOWLOG_LOG_SLOWER_THAN);
    uint64_t threshold_us = latency_threshold_ms(server) * 1000;
    uint64_t looked_up = stats->page_hits + stats->page_misses;
    if (slower_than < 0 || (uint64_t)slower_than > threshold_us)
        fprintf(to,
                "  SLOWLOG would name the commands, but does not list all of them: CONFIG SET "
                "slowlog-log-slower-than %llu.\n",
                U(threshold_us > 0 ? threshold_us : 10000));
    else
        fprintf(to, "  SLOWLOG GET names the commands; it has %llu entries.\n",
                U(slowlog_count(server->slowlog)));
    if (looked_up > 0)
        fprintf(to,
                "  A command's time includes its waits. Of the look-ups of pages, %.1f %% had to "
                "read the device.\n",
                100.0 * (double)stats->page_misses / (double)looked_up);
    if (stats->throttled_commits > 0)
        fprintf(to,
                "  Commands have waited %llu times for the maintenance thread, which writes pages "
                "back and makes room.\n",
                U(stats->throttled_commits));
}

static void advise(FILE *to, struct server *server, enum latency_event event,
                   const struct store_stats *stats)
{
    switch (event) {
    case LATENCY_COMMAND:
    case LATENCY_FAST_COMMAND:
        advise_commands(to, server, stats);
        break;
    case LATENCY_FSYNC_ALWAYS:
        fprintf(to, "  Every write waits for the device under appendfsync always; everysec would "
                    "not have it wait.\n");
        break;
    case LATENCY_WRITE:
        fprintf(
            to,
            "  The device took this long for a write to the journal: other work may share it.\n");
        break;
    case LATENCY_EVICTION:
        fprintf(to, "  Keys evicted so far: %llu. maxstore and maxmemory bound what is kept.\n",
                U(stats->evicted_keys));
        break;
    case LATENCY_EXPIRY:
        fprintf(to,
                "  Keys expired so far: %llu. A step is meant to end after a millisecond: the "
                "machine may be busy.\n",
                U(stats->expired_keys));
        break;
    case LATENCY_EVENTS:
        break;
    }
}

static void write_report(FILE *to, struct call *call)
{
    struct server *server = call->server;
    struct latency_history history;
    struct store_stats stats;
    uint64_t threshold = latency_threshold_ms(server);
    uint32_t count = 0;
    store_stats(server->store, &stats);
    if (threshold > 0)
        fprintf(to, "Noted is what takes %llu ms or longer (latency-monitor-threshold).\n",
                U(threshold));
    else
        fprintf(to, "Nothing is noted now: CONFIG SET latency-monitor-threshold <milliseconds> "
                    "begins it.\n");
    for (enum latency_event event = 0; event < LATENCY_EVENTS; event++) {
        read_history(call, event, &history);
        if (history.count == 0)
            continue;
        count++;
        describe(to, event, &history);
        advise(to, server, event, &stats);
    }
    if (count == 0 && threshold > 0)
        fprintf(to, "There has been no such event since the start or the last LATENCY RESET.\n");
}

enum store_result cmd_latency_doctor(struct call *call)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    if (to == NULL)
        return STORE_NO_MEMORY;
    write_report(to, call);
    bool is_whole = fclose(to) == 0;
    if (is_whole)
        resp_verbatim(call->reply, "txt", text, len);
    free(text);
    return is_whole ? STORE_OK : STORE_NO_MEMORY;
}

/* ---- HISTOGRAM ---- */

/* In powers of two from 1024 ns on; each bound is shown as Redis shows it, in whole microseconds:
 * its buckets reach a 128th further. */
#define FIRST_BITS 10

static void write_distribution(struct resp_writer *to, const char *name,
                               const struct times_sum *sum)
{
    uint64_t below[TIMES_BITS + 1], before = 0, lines = 0;
    for (uint32_t bits = FIRST_BITS; bits <= TIMES_BITS; bits++) {
        below[bits] = times_below(sum, bits);
        lines += below[bits] > before;
        before = below[bits];
    }
    resp_bulk_string(to, name);
    resp_map(to, 2);
    resp_bulk_string(to, "calls");
    resp_integer(to, (int64_t)sum->total);
    resp_bulk_string(to, "histogram_usec");
    resp_map(to, lines);
    before = 0;
    for (uint32_t bits = FIRST_BITS; bits <= TIMES_BITS; bits++) {
        if (below[bits] > before) {
            resp_integer(to, (int64_t)((1ull << bits) + (1ull << (bits - 7)) - 1) / 1000);
            resp_integer(to, (int64_t)below[bits]);
        }
        before = below[bits];
    }
}

static uint64_t write_row(struct call *call, struct resp_writer *to, const struct command *command)
{
    struct times_sum sum;
    size_t row = (size_t)(command - call->server->commands.table);
    if (!command_times_sum(call->server, row, &sum))
        return 0;
    write_distribution(to, command->name, &sum);
    return 1;
}

/* A container's subcommands are the rows after it. */
static uint64_t write_named(struct call *call, struct resp_writer *to, struct resp_slice name)
{
    const struct command *command = NULL;
    const char *bar = memchr(name.data, '|', name.len);
    struct resp_slice first = {name.data, bar != NULL ? (size_t)(bar - name.data) : name.len};
    command = command_find(&call->server->commands, first);
    if (command != NULL && bar != NULL)
        command =
            command_is_container(command)
                ? command_find_sub(command, (struct resp_slice){bar + 1, name.len - first.len - 1})
                : NULL;
    if (command == NULL)
        return 0;
    uint64_t count = write_row(call, to, command);
    size_t len = strlen(command->name);
    for (const struct command *sub = command + 1;
         command_is_container(command) && sub->name != NULL &&
         strncmp(sub->name, command->name, len) == 0 && sub->name[len] == '|';
         sub++)
        count += write_row(call, to, sub);
    return count;
}

enum store_result cmd_latency_histogram(struct call *call)
{
    struct resp_writer rows;
    uint64_t count = 0;
    if (call_too_many_names(call))
        return STORE_OK;
    resp_writer_init(&rows, call->reply->version);
    for (size_t i = 2; i < call->argc; i++)
        count += write_named(call, &rows, call->argv[i]);
    for (size_t row = 0; call->argc == 2 && row < call->server->commands.count; row++)
        count += write_row(call, &rows, &call->server->commands.table[row]);
    resp_map(call->reply, count);
    return append_rows(call, &rows);
}

enum store_result cmd_latency_help(struct call *call)
{
    static const char *const lines[] = {
        "DOCTOR",
        "    Tell what has taken long, and what may be the reason.",
        "GRAPH <event>",
        "    Draw the newest samples of an event.",
        "HISTOGRAM [<command> ...]",
        "    Show how long calls have taken, cumulatively (default: of all commands).",
        "HISTORY <event>",
        "    Show the newest samples of an event: a time, and milliseconds.",
        "LATEST",
        "    Show the last sample of each event, and its worst.",
        "RESET [<event> ...]",
        "    Forget the samples (default: of all events).",
        NULL,
    };
    call_help(call, lines);
    return STORE_OK;
}
