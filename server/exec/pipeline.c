#include "server/exec/pipeline.h"

#include <assert.h>

#include "server/net/client_memory.h"
#include "server/net/conn.h"

bool pipeline_may_prefetch(const struct command *command)
{
    const uint32_t apart = CMD_ALL_KEYS | CMD_NO_KEYS | CMD_BLOCKING | CMD_NESTS;
    return (command->flags & CMD_FAST) != 0 && (command->flags & apart) == 0 &&
           command->declare == NULL;
}

bool pipeline_is_read(const struct command *command)
{
    const uint32_t apart =
        CMD_LOCAL | CMD_ALL_WORKERS | CMD_ALL_KEYS | CMD_WRITE | CMD_BLOCKING | CMD_CACHES_RESULT;
    return (command->flags & CMD_READONLY) != 0 && (command->flags & apart) == 0;
}

/* For rule 1. A command that may turn out to need all keys might then see writes that a read after
 * it has not seen. */
static bool may_run_beside(const struct request *request)
{
    return request->is_read && (request->named == NULL || request->named->declare == NULL);
}

/* Keys in the same lock queue of the store have the same ordering key, even if they differ. */
uint64_t pipeline_ordering_key(const struct request *request, const struct command *command)
{
    const uint32_t apart = CMD_LOCAL | CMD_ALL_WORKERS | CMD_CACHES_RESULT;
    bool is_plain = pipeline_may_prefetch(command) && (command->flags & apart) == 0 &&
                    (command->flags & (CMD_WRITE | CMD_READONLY)) != 0;
    if (!is_plain || request->call.key_count != 1)
        return 0;
    return request->keys[0].hash + request->keys[0].db;
}

static bool may_start_in_line(const struct conn *conn, const struct request *request)
{
    return request->line != 0 && request->line == conn->line &&
           (conn->running_writes > 0 || !request->is_read) && !client_memory_is_short(conn->worker);
}

bool pipeline_may_start(const struct conn *conn, const struct request *request)
{
    return conn->running == 0 || (may_run_beside(request) && conn->running_writes == 0) ||
           may_start_in_line(conn, request);
}

void pipeline_note_start(struct conn *conn, const struct request *request)
{
    if (conn->running == 0)
        conn->line = request->line;
    else if (conn->line != request->line)
        conn->line = 0;
    conn->running++;
    conn->worker->running++;
    conn->running_writes += !may_run_beside(request);
}

void pipeline_note_end(struct conn *conn, const struct request *request)
{
    assert(conn->running > 0 && conn->worker->running > 0);
    assert(may_run_beside(request) || conn->running_writes > 0);
    conn->running--;
    conn->worker->running--;
    conn->running_writes -= !may_run_beside(request);
}
