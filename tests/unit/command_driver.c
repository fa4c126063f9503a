#include "tests/unit/command_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/config/config_directive.h"
#include "server/core/server.h"
#include "server/exec/request_reply.h"
#include "server/core/call.h"
#include "server/types/hash.h"
#include "tests/model/model_store.h"

#define KEYS_MAX 64
#define FIRST_NOW_MS 1700000000000
#define WAITS_PER_MILLE 400
#define MEMORY (1u << 30)

struct driver {
    struct store_request request;
    struct call call;
    struct server server;
    struct store_worker *worker;
    struct store_key keys[KEYS_MAX];
    struct resp_writer reply;
    struct resp_parser parser;
    uint64_t random_state;
    bool is_done;
    uint32_t hits, misses; /* of the last command */
    enum store_result result;
};

/* ---- what the driver itself can do ---- */

static enum store_result own_list(struct call *call)
{
    resp_ok(call->reply);
    return store_put(call->txn, call->keys, TYPE_LIST, "element", 7, STORE_NO_EXPIRY);
}

static enum store_result own_fill(struct call *call)
{
    int64_t len;
    assert_true(resp_read_int64(call->argv[2].data, call->argv[2].len, &len));
    char *bytes = store_alloc(call->txn, (size_t)len);
    assert_non_null(bytes);
    memset(bytes, call->argv[3].data[0], (size_t)len);
    resp_ok(call->reply);
    return store_put(call->txn, call->keys, TYPE_STRING, bytes, (size_t)len, STORE_NO_EXPIRY);
}

static enum store_result own_ttl(struct call *call)
{
    struct store_item item;
    enum store_result result = store_get(call->txn, call->keys, &item);
    if (result == STORE_WAIT)
        return result;
    if (result == STORE_ABSENT)
        resp_integer(call->reply, -2);
    else
        resp_integer(call->reply,
                     item.expire_ms == STORE_NO_EXPIRY ? -1 : item.expire_ms - call->now_ms);
    return STORE_OK;
}

static enum store_result own_expire(struct call *call)
{
    struct store_item item;
    int64_t ms;
    assert_true(resp_read_int64(call->argv[2].data, call->argv[2].len, &ms));
    enum store_result result = store_get(call->txn, call->keys, &item);
    if (result == STORE_OK)
        result = store_set_expiry(call->txn, call->keys, &item, call->now_ms + ms);
    resp_ok(call->reply);
    return result;
}

static enum store_result own_wake(struct call *call)
{
    uint32_t removed;
    enum store_result result = hash_wake(call->server, call->txn, call->keys, &removed);
    resp_integer(call->reply, removed);
    return result;
}

static enum store_result own_pass(struct call *call)
{
    struct driver *driver = (struct driver *)call->session;
    int64_t ms;
    assert_true(resp_read_int64(call->argv[1].data, call->argv[1].len, &ms));
    driver->request.now_ms += ms;
    resp_ok(call->reply);
    return STORE_OK;
}

static enum store_result own_lookups(struct call *call)
{
    const struct driver *driver = (struct driver *)call->session;
    resp_array(call->reply, 2);
    resp_integer(call->reply, driver->hits);
    resp_integer(call->reply, driver->misses);
    return STORE_OK;
}

static enum store_result own_keys(struct call *call)
{
    resp_integer(call->reply, (int64_t)store_db_stats(call->server->store, 0).keys);
    return STORE_OK;
}

static enum store_result own_limit(struct call *call)
{
    int64_t bytes;
    assert_true(resp_read_int64(call->argv[1].data, call->argv[1].len, &bytes));
    call->server->config.numbers[CONFIG_PROTO_MAX_BULK_LEN] = bytes;
    resp_ok(call->reply);
    return STORE_OK;
}

static enum store_result own_config(struct call *call)
{
    char name[64];
    int64_t number;
    snprintf(name, sizeof(name), "%.*s", (int)call->argv[1].len, call->argv[1].data);
    size_t row = directive_find(name);
    assert_true(row < directive_count);
    assert_true(resp_read_int64(call->argv[2].data, call->argv[2].len, &number));
    call->server->config.numbers[row] = number;
    resp_ok(call->reply);
    return STORE_OK;
}

/* Redis's name for the form, as OBJECT ENCODING has it, and ours: whether there are trees. */
static enum store_result own_form(struct call *call)
{
    struct store_item item;
    enum store_result result = store_get(call->txn, call->keys, &item);
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    char text[64] = "none";
    if (result == STORE_OK)
        snprintf(text, sizeof(text), "%s%s%s%s", call_type_name(item.type),
                 (item.type & ITEM_INTEGERS) != 0 ? " integers" : "",
                 (item.type & ITEM_BIG) != 0 ? " big" : "", item.trees > 0 ? " tree" : "");
    resp_status(call->reply, text);
    return STORE_OK;
}

/* Stands for the connection's, which streams large values. */
enum store_result call_reply_range(struct call *call, const struct store_item *item,
                                   uint64_t offset, uint64_t len)
{
    const char *bytes = item->bytes;
    if (item->large) {
        enum store_result result = store_load(call->txn, item, &bytes);
        if (result != STORE_OK)
            return result;
    }
    resp_bulk(call->reply, bytes + offset, len);
    return STORE_OK;
}

enum store_result call_reply_part(struct call *call, const struct store_item *item, uint64_t offset)
{
    return call_reply_range(call, item, offset, item->length - offset);
}

enum store_result call_reply_item(struct call *call, const struct store_item *item)
{
    return call_reply_part(call, item, 0);
}

#define WRITES(word, first, last, step)                                                            \
    {                                                                                              \
        .name = #word, .run = cmd_##word, .flags = CMD_WRITE, .key_flags = "RW",                   \
        .first_key = first, .last_key = last, .key_step = step                                     \
    }
#define READS(word, first, last, step)                                                             \
    {                                                                                              \
        .name = #word, .run = cmd_##word, .flags = CMD_READONLY, .first_key = first,               \
        .last_key = last, .key_step = step                                                         \
    }

static const struct command known[] = {
    WRITES(append, 1, 1, 1),
    READS(bitcount, 1, 1, 1),
    WRITES(bitfield, 1, 1, 1),
    READS(bitfield_ro, 1, 1, 1),
    {.name = "bitop",
     .run = cmd_bitop,
     .flags = CMD_WRITE,
     .key_flags = "OW;RO",
     .first_key = 2,
     .last_key = -1,
     .key_step = 1},
    READS(bitpos, 1, 1, 1),
    WRITES(decr, 1, 1, 1),
    WRITES(decrby, 1, 1, 1),
    WRITES(delifeq, 1, 1, 1),
    WRITES(geoadd, 1, 1, 1),
    READS(geodist, 1, 1, 1),
    READS(geohash, 1, 1, 1),
    READS(geopos, 1, 1, 1),
    {.name = "georadius",
     .run = cmd_georadius,
     .flags = CMD_WRITE | CMD_STORE_OPTION,
     .role = ROLE_GEORADIUS,
     .key_flags = "RO;OW",
     .first_key = 1,
     .last_key = 1,
     .key_step = 1},
    READS(georadius_ro, 1, 1, 1),
    {.name = "georadiusbymember",
     .run = cmd_georadiusbymember,
     .flags = CMD_WRITE | CMD_STORE_OPTION,
     .role = ROLE_GEORADIUS,
     .key_flags = "RO;OW",
     .first_key = 1,
     .last_key = 1,
     .key_step = 1},
    READS(georadiusbymember_ro, 1, 1, 1),
    READS(geosearch, 1, 1, 1),
    {.name = "geosearchstore",
     .run = cmd_geosearchstore,
     .flags = CMD_WRITE,
     .key_flags = "OW;RO",
     .first_key = 1,
     .last_key = 2,
     .key_step = 1},
    READS(get, 1, 1, 1),
    READS(getbit, 1, 1, 1),
    WRITES(getdel, 1, 1, 1),
    WRITES(getex, 1, 1, 1),
    READS(getrange, 1, 1, 1),
    WRITES(getset, 1, 1, 1),
    WRITES(hdel, 1, 1, 1),
    READS(hexists, 1, 1, 1),
    WRITES(hexpire, 1, 1, 1),
    WRITES(hexpireat, 1, 1, 1),
    READS(hexpiretime, 1, 1, 1),
    READS(hget, 1, 1, 1),
    READS(hgetall, 1, 1, 1),
    WRITES(hgetdel, 1, 1, 1),
    WRITES(hgetex, 1, 1, 1),
    WRITES(hincrby, 1, 1, 1),
    WRITES(hincrbyfloat, 1, 1, 1),
    READS(hkeys, 1, 1, 1),
    READS(hlen, 1, 1, 1),
    READS(hmget, 1, 1, 1),
    WRITES(hmset, 1, 1, 1),
    WRITES(hpersist, 1, 1, 1),
    WRITES(hpexpire, 1, 1, 1),
    WRITES(hpexpireat, 1, 1, 1),
    READS(hpexpiretime, 1, 1, 1),
    READS(hpttl, 1, 1, 1),
    READS(hrandfield, 1, 1, 1),
    READS(hscan, 1, 1, 1),
    WRITES(hset, 1, 1, 1),
    WRITES(hsetex, 1, 1, 1),
    WRITES(hsetnx, 1, 1, 1),
    READS(hstrlen, 1, 1, 1),
    READS(httl, 1, 1, 1),
    READS(hvals, 1, 1, 1),
    WRITES(incr, 1, 1, 1),
    WRITES(incrby, 1, 1, 1),
    WRITES(incrbyfloat, 1, 1, 1),
    READS(lcs, 1, 2, 1),
    READS(lindex, 1, 1, 1),
    WRITES(linsert, 1, 1, 1),
    READS(llen, 1, 1, 1),
    WRITES(lmove, 1, 2, 1),
    {.name = "lmpop", .run = cmd_lmpop, .flags = CMD_WRITE, .key_flags = "RW", .key_count_at = 1},
    WRITES(lpop, 1, 1, 1),
    READS(lpos, 1, 1, 1),
    WRITES(lpush, 1, 1, 1),
    WRITES(lpushx, 1, 1, 1),
    READS(lrange, 1, 1, 1),
    WRITES(lrem, 1, 1, 1),
    WRITES(lset, 1, 1, 1),
    WRITES(ltrim, 1, 1, 1),
    READS(mget, 1, -1, 1),
    WRITES(mset, 1, -1, 2),
    WRITES(msetnx, 1, -1, 2),
    WRITES(psetex, 1, 1, 1),
    WRITES(rpop, 1, 1, 1),
    WRITES(rpoplpush, 1, 2, 1),
    WRITES(rpush, 1, 1, 1),
    WRITES(rpushx, 1, 1, 1),
    WRITES(sadd, 1, 1, 1),
    READS(scard, 1, 1, 1),
    READS(sdiff, 1, -1, 1),
    WRITES(sdiffstore, 1, -1, 1),
    WRITES(set, 1, 1, 1),
    WRITES(setbit, 1, 1, 1),
    WRITES(setex, 1, 1, 1),
    WRITES(setnx, 1, 1, 1),
    WRITES(setrange, 1, 1, 1),
    READS(sinter, 1, -1, 1),
    {.name = "sintercard", .run = cmd_sintercard, .flags = CMD_READONLY, .key_count_at = 1},
    WRITES(sinterstore, 1, -1, 1),
    READS(sismember, 1, 1, 1),
    READS(smembers, 1, 1, 1),
    READS(smismember, 1, 1, 1),
    WRITES(smove, 1, 2, 1),
    WRITES(spop, 1, 1, 1),
    READS(srandmember, 1, 1, 1),
    WRITES(srem, 1, 1, 1),
    READS(sscan, 1, 1, 1),
    READS(strlen, 1, 1, 1),
    READS(substr, 1, 1, 1),
    READS(sunion, 1, -1, 1),
    WRITES(sunionstore, 1, -1, 1),
    WRITES(zadd, 1, 1, 1),
    READS(zcard, 1, 1, 1),
    READS(zcount, 1, 1, 1),
    {.name = "zdiff", .run = cmd_zdiff, .flags = CMD_READONLY, .key_count_at = 1},
    {.name = "zdiffstore",
     .run = cmd_zdiffstore,
     .flags = CMD_WRITE,
     .key_flags = "RW",
     .first_key = 1,
     .last_key = 1,
     .key_step = 1,
     .key_count_at = 2},
    WRITES(zincrby, 1, 1, 1),
    {.name = "zinter", .run = cmd_zinter, .flags = CMD_READONLY, .key_count_at = 1},
    {.name = "zintercard", .run = cmd_zintercard, .flags = CMD_READONLY, .key_count_at = 1},
    {.name = "zinterstore",
     .run = cmd_zinterstore,
     .flags = CMD_WRITE,
     .key_flags = "RW",
     .first_key = 1,
     .last_key = 1,
     .key_step = 1,
     .key_count_at = 2},
    READS(zlexcount, 1, 1, 1),
    {.name = "zmpop", .run = cmd_zmpop, .flags = CMD_WRITE, .key_flags = "RW", .key_count_at = 1},
    READS(zmscore, 1, 1, 1),
    WRITES(zpopmax, 1, 1, 1),
    WRITES(zpopmin, 1, 1, 1),
    READS(zrandmember, 1, 1, 1),
    READS(zrange, 1, 1, 1),
    READS(zrangebylex, 1, 1, 1),
    READS(zrangebyscore, 1, 1, 1),
    WRITES(zrangestore, 1, 2, 1),
    READS(zrank, 1, 1, 1),
    WRITES(zrem, 1, 1, 1),
    WRITES(zremrangebylex, 1, 1, 1),
    WRITES(zremrangebyrank, 1, 1, 1),
    WRITES(zremrangebyscore, 1, 1, 1),
    READS(zrevrange, 1, 1, 1),
    READS(zrevrangebylex, 1, 1, 1),
    READS(zrevrangebyscore, 1, 1, 1),
    READS(zrevrank, 1, 1, 1),
    READS(zscan, 1, 1, 1),
    READS(zscore, 1, 1, 1),
    {.name = "zunion", .run = cmd_zunion, .flags = CMD_READONLY, .key_count_at = 1},
    {.name = "zunionstore",
     .run = cmd_zunionstore,
     .flags = CMD_WRITE,
     .key_flags = "RW",
     .first_key = 1,
     .last_key = 1,
     .key_step = 1,
     .key_count_at = 2},
    {.name = "@list",
     .run = own_list,
     .flags = CMD_WRITE,
     .key_flags = "RW",
     .first_key = 1,
     .last_key = 1,
     .key_step = 1},
    {.name = "@fill",
     .run = own_fill,
     .flags = CMD_WRITE,
     .key_flags = "RW",
     .first_key = 1,
     .last_key = 1,
     .key_step = 1},
    {.name = "@ttl",
     .run = own_ttl,
     .flags = CMD_READONLY,
     .first_key = 1,
     .last_key = 1,
     .key_step = 1},
    {.name = "@expire",
     .run = own_expire,
     .flags = CMD_WRITE,
     .key_flags = "RW",
     .first_key = 1,
     .last_key = 1,
     .key_step = 1},
    {.name = "@form",
     .run = own_form,
     .flags = CMD_READONLY,
     .first_key = 1,
     .last_key = 1,
     .key_step = 1},
    {.name = "@wake",
     .run = own_wake,
     .flags = CMD_WRITE,
     .key_flags = "RW",
     .first_key = 1,
     .last_key = 1,
     .key_step = 1},
    {.name = "@pass", .run = own_pass},
    {.name = "@lookups", .run = own_lookups},
    {.name = "@keys", .run = own_keys},
    {.name = "@limit", .run = own_limit},
    {.name = "@config", .run = own_config},
};

static const struct command *find_command(struct resp_slice name)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (slice_is(name, known[i].name))
            return &known[i];
    fail_msg("no command %.*s", (int)name.len, name.data);
    return NULL;
}

/* ---- running ---- */

static enum store_result run(struct store_txn *txn, struct store_request *request)
{
    struct driver *driver = (struct driver *)request;
    resp_truncate(&driver->reply, 0);
    driver->call.hits = driver->call.misses = 0;
    driver->call.txn = txn;
    return call_run(&driver->call);
}

static void done(struct store_request *request, enum store_result result)
{
    struct driver *driver = (struct driver *)request;
    driver->is_done = true;
    driver->result = result;
}

static void log_nothing(void *arg, enum store_log_level level, const char *line)
{
    (void)arg, (void)level, (void)line;
}

struct driver *driver_open(uint8_t resp_version, uint64_t wait_seed)
{
    char message[STORE_MESSAGE_MAX];
    struct store_options options = {.directory = "unused",
                                    .partition_count = 1,
                                    .worker_count = 1,
                                    .memory_bytes = 64 << 20,
                                    .journal_bytes = 64 << 20,
                                    .sync = STORE_SYNC_NO,
                                    .log = log_nothing};
    struct driver *driver = calloc(1, sizeof(*driver));
    assert_non_null(driver);
    assert_int_equal(store_open(&options, &driver->server.store, message), STORE_OK);
    assert_int_equal(store_attach(driver->server.store, 0, &driver->worker, message), STORE_OK);
    if (wait_seed != DRIVER_NO_WAITS)
        model_store_set_waits(driver->server.store, wait_seed, WAITS_PER_MILLE);
    atomic_store(&driver->server.memory_bound, MEMORY);
    atomic_store(&driver->server.client_soft_limit, MEMORY);
    assert_true(config_init(&driver->server.config));
    resp_writer_init(&driver->reply, resp_version);
    resp_parser_init(&driver->parser,
                     (struct resp_limits){.bulk_max = STORE_VALUE_MAX, .count_max = 1024});
    driver->request = (struct store_request){
        .run = run, .done = done, .keys = driver->keys, .now_ms = FIRST_NOW_MS};
    return driver;
}

void driver_close(struct driver *driver)
{
    store_detach(driver->worker);
    assert_int_equal(store_close(driver->server.store), STORE_OK);
    resp_writer_free(&driver->reply);
    resp_parser_free(&driver->parser);
    config_free(&driver->server.config);
    free(driver);
}

static void declare_keys(struct driver *driver, const struct command *command,
                         const struct resp_slice *argv, size_t argc)
{
    assert_true(argc < KEYS_MAX);
    driver->request.key_count =
        call_table_keys(driver->server.store, command, argc, argv, 0, NULL, driver->keys);
}

struct resp_slice driver_run(struct driver *driver, const struct resp_slice *argv, size_t argc)
{
    const struct command *command = find_command(argv[0]);
    declare_keys(driver, command, argv, argc);
    driver->call = (struct call){.server = &driver->server,
                                 .session = (struct session *)driver,
                                 .command = command,
                                 .reply = &driver->reply,
                                 .argc = argc,
                                 .argv = argv,
                                 .keys = driver->keys,
                                 .key_count = driver->request.key_count,
                                 .now_ms = driver->request.now_ms,
                                 .random_seed = driver->random_state += 0x9e3779b97f4a7c15u};
    driver->is_done = false;
    driver->result = store_execute(driver->worker, &driver->request);
    bool waited = driver->result == STORE_WAIT;
    for (int rounds = 0; waited && !driver->is_done; rounds++) {
        assert_true(rounds < 100000);
        store_submit(driver->worker);
        store_poll(driver->worker);
    }
    if (driver->call.progress != NULL && driver->call.progress_free != NULL)
        driver->call.progress_free(driver->call.progress);
    assert_int_equal(driver->result, STORE_OK);
    assert_false(driver->reply.failed);
    driver->hits = driver->call.hits;
    driver->misses = driver->call.misses;
    return (struct resp_slice){driver->reply.data, driver->reply.len};
}

struct resp_slice driver_run_line(struct driver *driver, const char *line)
{
    char buffer[8192];
    int len = snprintf(buffer, sizeof(buffer), "%s\r\n", line);
    assert_in_range(len, 3, sizeof(buffer) - 1);
    assert_int_equal(resp_parse(&driver->parser, buffer, (size_t)len), RESP_COMPLETE);
    return driver_run(driver, driver->parser.args, driver->parser.count);
}

/* ---- scripts ---- */

/* The reply with zero bytes made visible, as scripts write them. */
static void show(struct resp_slice reply, char *to, size_t size)
{
    size_t len = 0;
    for (size_t i = 0; i < reply.len && len + 3 < size; i++) {
        if (reply.data[i] == '\0')
            to[len++] = '\\';
        to[len++] = reply.data[i] == '\0' ? '0' : reply.data[i];
    }
    to[len] = '\0';
}

/* RESP2's null in a literal becomes RESP3's. */
static void as_version3(const char *reply, char *to, size_t size)
{
    size_t len = 0;
    while (*reply != '\0' && len + 2 < size) {
        bool null = strncmp(reply, NIL, strlen(NIL)) == 0;
        if (null)
            to[len++] = '_';
        else
            to[len++] = *reply;
        reply += null ? strlen("$-1") : 1;
    }
    to[len] = '\0';
}

static void run_steps(const struct step *script, uint8_t version, uint64_t wait_seed)
{
    enum { SIZE = 4096 };
    char expected[SIZE], shown[SIZE];
    struct driver *driver = driver_open(version, wait_seed);
    for (; script->command != NULL; script++) {
        show(driver_run_line(driver, script->command), shown, SIZE);
        if (version == 3 && script->reply3 == NULL)
            as_version3(script->reply, expected, SIZE);
        else
            snprintf(expected, SIZE, "%s", version == 3 ? script->reply3 : script->reply);
        if (strcmp(shown, expected) != 0)
            fail_msg("RESP%d, waits %d: %s\nexpected: %s\nreplied:  %s", version, wait_seed != 0,
                     script->command, expected, shown);
    }
    driver_close(driver);
}

void driver_run_script(const struct step *script)
{
    for (uint8_t version = 2; version <= 3; version++) {
        run_steps(script, version, DRIVER_NO_WAITS);
        for (uint64_t seed = 1; seed <= 5; seed++)
            run_steps(script, version, seed);
    }
}

/* ---- by hand ---- */

const char *driver_text(struct driver *driver, const char *format, ...)
{
    char line[8000];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    assert_in_range(len, 1, sizeof(line) - 1);
    driver_run_line(driver, line);
    char *end = resp_reserve(&driver->reply, 1);
    assert_non_null(end);
    *end = '\0';
    return driver->reply.data;
}

int driver_number(const char *reply)
{
    assert_non_null(strchr(":*%~", reply[0]));
    return atoi(reply + 1);
}

void driver_in_stores(void (*test)(struct driver *driver))
{
    for (uint64_t seed = DRIVER_NO_WAITS; seed < DRIVER_NO_WAITS + 3; seed++) {
        struct driver *driver = driver_open(2, seed);
        test(driver);
        driver_close(driver);
    }
}
