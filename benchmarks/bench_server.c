#include "benchmarks/bench_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/bench_options.h"

static const char *find(const char *info, const char *name)
{
    char line[64];
    int length = snprintf(line, sizeof line, "\n%s:", name);
    const char *at = strstr(info, line);
    return at != NULL ? at + length : NULL;
}

static double figure(const char *info, const char *name)
{
    const char *at = find(info, name);
    return at != NULL ? atof(at) : 0;
}

/* Of the command and its subcommands. */
static uint64_t calls_of(const char *info, const char *name)
{
    char line[64];
    uint64_t calls = 0;
    int length = snprintf(line, sizeof line, "\ncmdstat_%s", name);
    for (const char *at = info; (at = strstr(at, line)) != NULL; at++) {
        const char *value = strchr(at, '=');
        if ((at[length] == ':' || at[length] == '|') && value != NULL)
            calls += strtoull(value + 1, NULL, 10);
    }
    return calls;
}

static void take(struct bench_figures *figures, const char *info, int count,
                 const char *const *names)
{
    figures->cpu_s += figure(info, "used_cpu_sys") + figure(info, "used_cpu_user");
    figures->copied_bytes += figure(info, "rdma_copied_bytes");
    figures->has_copied = figures->has_copied || find(info, "rdma_copied_bytes") != NULL;
    for (int i = 0; i < count; i++)
        figures->calls += calls_of(info, names[i]);
}

void bench_figures_take(struct bench_figures *figures, struct vellum *control, int count,
                        const char *const *names)
{
    redisReply *reply = vellum_command(control, "INFO everything");
    if (reply == NULL)
        bench_give_up("%s", vellum_error(control));
    if (reply->type != REDIS_REPLY_STRING)
        bench_give_up("INFO: %s", reply->str != NULL ? reply->str : "no text");
    *figures = (struct bench_figures){.cpu_s = 0};
    take(figures, reply->str, count, names);
    freeReplyObject(reply);
}
