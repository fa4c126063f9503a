#include "tests/unit/generic_driver.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model_store.h"
#include "server/core/call.h"

struct run {
    struct store_request request; /* first: the engine hands it back */
    struct call call;
    struct driver *driver;
    bool done;
    enum store_result result;
    const char *value; /* driver_put alone */
    size_t value_len;
    enum item_type type;
    int64_t expire_ms;
};

void driver_open(struct driver *driver, const struct command *table, uint32_t wait_per_mille)
{
    char message[STORE_MESSAGE_MAX];
    struct store_options options = {.partition_count = 1, .worker_count = 1};
    memset(driver, 0, sizeof(*driver));
    atomic_store(&driver->server.memory_bound, 1u << 30);
    atomic_store(&driver->server.client_soft_limit, 1u << 30);
    if (store_open(&options, &driver->server.store, message) != STORE_OK ||
        store_attach(driver->server.store, 0, &driver->worker, message) != STORE_OK) {
        fprintf(stderr, "model store: %s\n", message);
        abort();
    }
    model_store_set_waits(driver->server.store, 7, wait_per_mille);
    resp_parser_init(&driver->parser,
                     (struct resp_limits){.bulk_max = STORE_VALUE_MAX, .count_max = INT32_MAX});
    resp_writer_init(&driver->reply, 2);
    driver->table = table;
    driver->session.resp_version = 2;
    driver->now_ms = 1700000000000;
}

void driver_close(struct driver *driver)
{
    store_detach(driver->worker);
    assert(store_close(driver->server.store) == STORE_OK);
    resp_writer_free(&driver->reply);
    resp_parser_free(&driver->parser);
}

static void on_done(struct store_request *request, enum store_result result)
{
    struct run *run = (struct run *)request;
    run->done = true;
    run->result = result;
}

/* Executes and sees it through all its waits. */
static enum store_result execute(struct run *run)
{
    struct store_worker *worker = run->driver->worker;
    run->request.done = on_done;
    run->request.now_ms = run->driver->now_ms;
    enum store_result result = store_execute(worker, &run->request);
    if (result != STORE_WAIT)
        return result;
    while (!run->done) {
        struct pollfd fd = {.fd = store_worker_fd(worker), .events = POLLIN};
        store_submit(worker);
        if (poll(&fd, 1, 5000) != 1) {
            fprintf(stderr, "the store waits and nothing wakes it\n");
            abort();
        }
        store_poll(worker);
    }
    return run->result;
}

static enum store_result run_command(struct store_txn *txn, struct store_request *request)
{
    struct run *run = (struct run *)request;
    run->call.txn = txn;
    run->call.hits = run->call.misses = 0;
    resp_truncate(run->call.reply, 0);
    enum store_result result = call_run(&run->call);
    run->driver->reruns += result == STORE_WAIT;
    return result;
}

static const struct command *find_command(const struct driver *driver, struct resp_slice *argv,
                                          size_t argc)
{
    char name[COMMAND_NAME_MAX] = "";
    if (argc > 1)
        snprintf(name, sizeof(name), "%.*s|%.*s", (int)argv[0].len, argv[0].data, (int)argv[1].len,
                 argv[1].data);
    struct resp_slice sub = {.data = name, .len = strlen(name)};
    for (const struct command *row = driver->table; row->name != NULL; row++)
        if (slice_is(argv[0], row->name) || slice_is(sub, row->name))
            return row;
    fprintf(stderr, "not in the test's table: %.*s\n", (int)argv[0].len, argv[0].data);
    abort();
}

static struct store_key *declare_keys(struct run *run)
{
    struct call *call = &run->call;
    struct store_key *keys = calloc(call->argc + 1, sizeof(*keys));
    uint32_t count = call_table_keys(call->server->store, call->command, call->argc, call->argv,
                                     call->session->db, NULL, keys);
    call->keys = run->request.keys = keys;
    call->key_count = run->request.key_count = count;
    return keys;
}

static enum store_result run_parsed(struct driver *driver)
{
    struct run run = {
        .driver = driver,
        .request.run = run_command,
        .call = {.server = &driver->server,
                 .session = &driver->session,
                 .command = find_command(driver, driver->parser.args, driver->parser.count),
                 .reply = &driver->reply,
                 .argc = driver->parser.count,
                 .argv = driver->parser.args,
                 .now_ms = driver->now_ms,
                 .random_seed = driver->random_seed += 0x9e3779b97f4a7c15u}};
    uint32_t flags = run.call.command->flags;
    driver->reply.version = driver->session.resp_version;
    if ((flags & CMD_LOCAL) != 0)
        return call_run(&run.call);
    run.request.scope = command_scope(run.call.command);
    struct store_key *keys = declare_keys(&run);
    enum store_result result = execute(&run);
    if (run.call.progress != NULL && run.call.progress_free != NULL)
        run.call.progress_free(run.call.progress);
    driver->hits += run.call.hits;
    driver->misses += run.call.misses;
    free(keys);
    return result;
}

const char *driver_run(struct driver *driver, const char *line)
{
    size_t len = strlen(line);
    char *input = malloc(len + 2);
    memcpy(input, line, len);
    memcpy(input + len, "\r\n", 2);
    resp_truncate(&driver->reply, 0);
    if (resp_parse(&driver->parser, input, len + 2) != RESP_COMPLETE || driver->parser.count == 0) {
        fprintf(stderr, "not a command line: %s\n", line);
        abort();
    }
    enum store_result result = run_parsed(driver);
    if (result != STORE_OK) {
        resp_truncate(&driver->reply, 0);
        resp_errorf(&driver->reply, "store result %d", (int)result);
    }
    free(input);
    resp_raw(&driver->reply, "", 1);
    return driver->reply.data;
}

static enum store_result run_put(struct store_txn *txn, struct store_request *request)
{
    struct run *run = (struct run *)request;
    return store_put(txn, &request->keys[0], (uint8_t)run->type, run->value, run->value_len,
                     run->expire_ms);
}

void driver_put(struct driver *driver, uint32_t db, const char *key, enum item_type type,
                const char *value, size_t len, int64_t expire_ms)
{
    struct store_key declared;
    store_key(driver->server.store, &declared, db, key, strlen(key), STORE_EXCLUSIVE);
    struct run run = {.driver = driver,
                      .request = {.run = run_put, .keys = &declared, .key_count = 1},
                      .value = value,
                      .value_len = len,
                      .type = type,
                      .expire_ms = expire_ms};
    if (execute(&run) != STORE_OK)
        abort();
}
