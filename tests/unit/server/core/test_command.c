/* The command table, finding commands, and commands that need no store. */
#include "server/core/command.h"
#include "server/net/conn.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/core/call.h"
#include "server/core/command_syntax.h"
#include "server/commands/commands.h"
#include "server/core/server.h"
#include "server/core/session.h"
#include "server/core/worker.h"

struct fixture {
    struct server server;
    struct worker worker;
    struct session session;
    struct conn conn; /* subscribed to nothing */
    struct resp_writer reply;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_true(config_init(&fixture->server.config));
    log_init(&fixture->server.log, &fixture->server.config);
    assert_null(command_index_build(&fixture->server.commands, command_table, NULL, 0));
    fixture->worker.server = &fixture->server;
    fixture->session =
        (struct session){.id = 7, .conn = &fixture->conn, .resp_version = 2, .authenticated = true};
    resp_writer_init(&fixture->reply, 2);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    config_free(&fixture->server.config);
    resp_writer_free(&fixture->reply);
    free(fixture->session.name);
    free(fixture->session.lib_name);
    free(fixture);
    return 0;
}

static struct resp_slice slice(const char *text)
{
    return (struct resp_slice){.data = text, .len = strlen(text)};
}

/* Runs a line of words, as the runner would; returns the reply. */
static const char *run(struct fixture *fixture, const char *line)
{
    char *words = strdup(line), *rest = NULL;
    struct resp_slice argv[16];
    struct call call = {.server = &fixture->server,
                        .worker = &fixture->worker,
                        .session = &fixture->session,
                        .reply = &fixture->reply,
                        .argv = argv,
                        .broadcast_last = true};
    for (char *at = strtok_r(words, " ", &rest); at != NULL; at = strtok_r(NULL, " ", &rest))
        argv[call.argc++] = slice(strcmp(at, "''") == 0 ? "" : at);
    call.command = command_find(&fixture->server.commands, argv[0]);
    assert_non_null(call.command);
    if (command_is_container(call.command) && call.argc > 1)
        call.command = command_find_sub(call.command, argv[1]);
    assert_non_null(call.command);
    assert_true(command_arity_ok(call.command, call.argc));
    resp_truncate(&fixture->reply, 0);
    assert_int_equal(call_run(&call), STORE_OK);
    resp_raw(&fixture->reply, "", 1);
    free(words);
    return fixture->reply.data;
}

#define ASSERT_REPLY(line, text) assert_string_equal(run(fixture, line), text)

/* ---- table and index ---- */

/* Shard channels are routed like keys. */
static bool has_keys_of_no_store(const struct command *command)
{
    return command->key_flags != NULL && strcmp(command->key_flags, "not_key") == 0;
}

static void rows_are_well_formed(void **state)
{
    (void)state;
    for (size_t row = 0; row < command_count; row++) {
        const struct command *command = &command_table[row];
        int least = command->arity < 0 ? -command->arity : command->arity;
        assert_true(command->run != NULL || (command->flags & CMD_CONTAINER) != 0);
        bool has_channels = has_keys_of_no_store(command); /* or none, to leave them all */
        assert_true(command->arity != 0 && command->first_key < least + has_channels);
        assert_true(command->last_key < least && command->key_step >= 0);
        assert_true(command->key_count_at < least);
        assert_int_equal(!command_has_keys(command), command->key_flags == NULL);
        assert_true(command->key_count_at == 0 || (command->flags & CMD_MOVABLE_KEYS) != 0);
        assert_int_equal(command->first_key == 0, command->key_step == 0);
        assert_false((command->flags & CMD_WRITE) != 0 && (command->flags & CMD_READONLY) != 0);
        assert_true((command->flags & CMD_LOCAL) == 0 || !command_has_keys(command) ||
                    has_channels);
        assert_non_null(command->since);
        assert_non_null(command->group);
        assert_non_null(command->summary);
        assert_non_null(command->complexity);
        for (const char *at = command->name; *at != '\0'; at++)
            assert_true((*at >= 'a' && *at <= 'z') || strchr("_|-.", *at) != NULL);
    }
}

/* How many words a syntax stands for at least; of a choice, the shortest. */
static size_t least_words(struct resp_slice syntax, bool is_choice)
{
    struct syntax_argument argument;
    size_t sum = 0, least = SIZE_MAX;
    while (syntax_next(&syntax, &argument)) {
        size_t words = (argument.token.len > 0) + (argument.type != SYNTAX_PURE_TOKEN);
        if (syntax_is_group(&argument))
            words += least_words(argument.arguments, argument.type == SYNTAX_ONEOF) - 1;
        if ((argument.flags & SYNTAX_OPTIONAL) != 0)
            words = 0;
        sum += words;
        least = words < least ? words : least;
    }
    return is_choice ? least : sum;
}

/* The highest number of a key specification in it; -1: there is none. */
static int last_key_spec(struct resp_slice syntax)
{
    struct syntax_argument argument;
    int last = -1;
    while (syntax_next(&syntax, &argument)) {
        int inner = syntax_is_group(&argument) ? last_key_spec(argument.arguments) : -1;
        last = argument.key_spec > last ? argument.key_spec : last;
        last = inner > last ? inner : last;
    }
    return last;
}

static int count_key_specs(const char *key_flags)
{
    int count = key_flags != NULL && strcmp(key_flags, "not_key") != 0;
    for (; count > 0 && (key_flags = strchr(key_flags, ';')) != NULL; key_flags++)
        count++;
    return count;
}

static void syntaxes_fit_arities_and_keys(void **state)
{
    (void)state;
    for (size_t row = 0; row < command_count; row++) {
        const struct command *command = &command_table[row];
        const char *syntax = command->syntax != NULL ? command->syntax : "";
        bool varies = strchr(syntax, '[') != NULL || strstr(syntax, "...") != NULL;
        size_t least = (size_t)(command->arity < 0 ? -command->arity : command->arity);
        size_t names = strchr(command->name, '|') != NULL ? 2 : 1;
        assert_true(command->syntax == NULL || syntax[0] != '\0');
        assert_int_equal(last_key_spec(syntax_of(syntax)) + 1, count_key_specs(command->key_flags));
        /* Of CLIENT KILL's filters each may be missing, but not all; QUIT does not look. */
        if (command_is_container(command) || strcmp(command->name, "client|kill") == 0 ||
            strcmp(command->name, "quit") == 0)
            continue;
        assert_int_equal(names + least_words(syntax_of(syntax), false), least);
        assert_int_equal(varies, command->arity < 0);
    }
}

static void every_command_is_found_once(void **state)
{
    struct fixture *fixture = *state;
    const struct command *container = NULL;
    for (size_t row = 0; row < command_count; row++) {
        const struct command *command = &command_table[row];
        char upper[COMMAND_NAME_MAX] = "";
        for (size_t i = 0; command->name[i] != '\0'; i++)
            upper[i] = (char)(i % 2 == 0 ? toupper(command->name[i]) : command->name[i]);
        char *bar = strchr(upper, '|');
        if (bar == NULL) {
            container = command;
            assert_ptr_equal(command_find(&fixture->server.commands, slice(upper)), command);
            assert_ptr_equal(command_find(&fixture->server.commands, slice(command->name)),
                             command);
            continue;
        }
        assert_int_equal(strncmp(container->name, command->name, (size_t)(bar - upper)), 0);
        assert_ptr_equal(command_find_sub(container, slice(bar + 1)), command);
        assert_null(command_find(&fixture->server.commands, slice(command->name)));
    }
}

static void others_are_not_found(void **state)
{
    struct fixture *fixture = *state;
    char longest[COMMAND_NAME_MAX + 2];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    const char *const names[] = {"", "ge", "gett", "get ", "nosuch", longest, longest + 1};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_null(command_find(&fixture->server.commands, slice(names[i])));
    const struct resp_slice binary = {.data = "get\0", .len = 4};
    assert_null(command_find(&fixture->server.commands, binary));
    const struct command *config = command_find(&fixture->server.commands, slice("config"));
    assert_null(command_find_sub(config, slice("nosuch")));
    assert_null(command_find_sub(config, slice("")));
    assert_null(command_find_sub(config, slice("count"))); /* of another container */
}

static void commands_can_be_renamed(void **state)
{
    struct fixture *fixture = *state;
    struct command_index *index = &fixture->server.commands;
    const struct command *get = command_find(index, slice("get"));
    const struct command_rename good[] = {{"get", "fetch"}, {"flushall", ""}, {"set", "get"}};
    assert_null(command_index_build(index, command_table, good, 3));
    assert_ptr_equal(command_find(index, slice("FETCH")), get);
    assert_string_equal(command_find(index, slice("get"))->name, "set");
    assert_null(command_find(index, slice("set")));
    assert_null(command_find(index, slice("flushall")));
    assert_string_equal(run(fixture, "command list filterby pattern flush*"),
                        "*1\r\n$7\r\nflushdb\r\n");
    const struct command_rename unknown[] = {{"nosuch", "x"}};
    assert_string_equal(command_index_build(index, command_table, unknown, 1),
                        "No such command in rename-command");
    const struct command_rename taken[] = {{"get", "set"}};
    assert_string_equal(command_index_build(index, command_table, taken, 1),
                        "Target command name already exists");
}

/* ---- replies ---- */

static void hello_and_auth(void **state)
{
    struct fixture *fixture = *state;
    ASSERT_REPLY("hello 4", "-NOPROTO unsupported protocol version\r\n");
    ASSERT_REPLY("hello x", "-ERR Protocol version is not an integer or out of range\r\n");
    ASSERT_REPLY("hello 3 foo", "-ERR Syntax error in HELLO option 'foo'\r\n");
    assert_int_equal(fixture->session.resp_version, 2);
    ASSERT_REPLY("hello 3 setname me",
                 "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n"
                 "$5\r\n" VELLUM_REDIS_VERSION "\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:7\r\n"
                 "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
                 "$7\r\nmodules\r\n*0\r\n");
    assert_string_equal(fixture->session.name, "me");
    ASSERT_REPLY("client getname", "$2\r\nme\r\n");
    ASSERT_REPLY("reset", "+RESET\r\n");
    ASSERT_REPLY("client getname", "$-1\r\n");
    ASSERT_REPLY("auth x", "-ERR AUTH <password> called without any password configured for the "
                           "default user. Are you sure your configuration is correct?\r\n");
    ASSERT_REPLY("config set requirepass secret", "+OK\r\n");
    ASSERT_REPLY("reset", "+RESET\r\n");
    assert_false(fixture->session.authenticated);
    assert_int_equal(strncmp(run(fixture, "hello 3"), "-NOAUTH HELLO must be called", 28), 0);
    ASSERT_REPLY("auth wrong",
                 "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    ASSERT_REPLY("auth other secret",
                 "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    assert_false(fixture->session.authenticated);
    assert_int_equal(run(fixture, "hello 3 auth default secret")[0], '%');
    assert_true(fixture->session.authenticated);
}

static void config_set_changes_all_or_nothing(void **state)
{
    struct fixture *fixture = *state;
    ASSERT_REPLY("config set timeout 5 hz 20", "+OK\r\n");
    ASSERT_REPLY("config set timeout 6 hz x",
                 "-ERR CONFIG SET failed (possibly related to argument 'hz') - argument couldn't "
                 "be parsed into an integer\r\n");
    ASSERT_REPLY("config set timeout 6 workers 2",
                 "-ERR CONFIG SET failed (possibly related to argument 'workers') - can't set "
                 "immutable config\r\n");
    ASSERT_REPLY("config set timeout 6 Timeout 7",
                 "-ERR CONFIG SET failed (possibly related to argument 'Timeout') - duplicate "
                 "parameter\r\n");
    ASSERT_REPLY("config set timeout 6 nosuch 7",
                 "-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'\r\n");
    ASSERT_REPLY("config set timeout 6 daemonize no",
                 "-ERR CONFIG SET failed (possibly related to argument 'daemonize') - can't set "
                 "immutable config\r\n");
    ASSERT_REPLY("config set port 6379 workers 1 journal-size 256mb", "+OK\r\n");
    ASSERT_REPLY("config get timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n5\r\n");
    ASSERT_REPLY("config get nosuch", "*0\r\n");
    ASSERT_REPLY("config get repl-ping-*period",
                 "*4\r\n$24\r\nrepl-ping-replica-period\r\n$2\r\n10\r\n"
                 "$22\r\nrepl-ping-slave-period\r\n$2\r\n10\r\n");
    ASSERT_REPLY("config rewrite", "-ERR The server is running without a config file\r\n");
}

static void keys_of_commands(void **state)
{
    struct fixture *fixture = *state;
    ASSERT_REPLY("command getkeys mset a 1 b 2", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    ASSERT_REPLY("command getkeys bitop and d a b", "*3\r\n$1\r\nd\r\n$1\r\na\r\n$1\r\nb\r\n");
    ASSERT_REPLY("command getkeys object encoding k", "*1\r\n$1\r\nk\r\n");
    ASSERT_REPLY("command getkeys ping", "-ERR The command has no key arguments\r\n");
    ASSERT_REPLY("command getkeys nosuch", "-ERR Invalid command specified\r\n");
    ASSERT_REPLY("command getkeys get",
                 "-ERR Invalid number of arguments specified for command\r\n");
    ASSERT_REPLY("command getkeysandflags rename a b",
                 "*2\r\n*2\r\n$1\r\na\r\n*3\r\n+RW\r\n+access\r\n+delete\r\n"
                 "*2\r\n$1\r\nb\r\n*2\r\n+OW\r\n+update\r\n");
    ASSERT_REPLY("command getkeysandflags set a b",
                 "*1\r\n*2\r\n$1\r\na\r\n*2\r\n+OW\r\n+update\r\n");
    ASSERT_REPLY("command getkeysandflags set a b GET",
                 "*1\r\n*2\r\n$1\r\na\r\n*3\r\n+RW\r\n+access\r\n+update\r\n");
}

static void client_settings(void **state)
{
    struct fixture *fixture = *state;
    ASSERT_REPLY("client id", ":7\r\n");
    ASSERT_REPLY("client setname me", "+OK\r\n");
    ASSERT_REPLY("client setname \x01",
                 "-ERR Client names cannot contain spaces, newlines or special characters.\r\n");
    ASSERT_REPLY("client getname", "$2\r\nme\r\n");
    ASSERT_REPLY("client setname ''", "+OK\r\n");
    assert_null(fixture->session.name);
    ASSERT_REPLY("client setinfo LIB-NAME vellum", "+OK\r\n");
    assert_string_equal(fixture->session.lib_name, "vellum");
    ASSERT_REPLY("client setinfo lib-foo x", "-ERR Unrecognized option 'lib-foo'\r\n");
    ASSERT_REPLY("client setinfo lib-ver \x7f",
                 "-ERR lib-ver cannot contain spaces, newlines or special characters.\r\n");
    ASSERT_REPLY("client reply skip", "");
    assert_int_equal(fixture->session.reply_mode, SESSION_REPLY_SKIP_NEXT);
    ASSERT_REPLY("client reply off", "");
    ASSERT_REPLY("client reply skip", "");
    assert_int_equal(fixture->session.reply_mode, SESSION_REPLY_OFF);
    ASSERT_REPLY("client reply on", "+OK\r\n");
    ASSERT_REPLY("client no-touch on", "+OK\r\n");
    assert_true(fixture->session.no_touch);
    ASSERT_REPLY("client no-evict maybe", "-ERR syntax error\r\n");
    ASSERT_REPLY("client kill id 0", "-ERR client-id should be greater than 0\r\n");
    ASSERT_REPLY("client kill type odd", "-ERR Unknown client type 'odd'\r\n");
    ASSERT_REPLY("client kill 1.2.3.4:5", "-ERR No such client\r\n");
    ASSERT_REPLY("client kill id 5", ":0\r\n");
    ASSERT_REPLY("client list id x", "-ERR Invalid client ID\r\n");
}

static void databases_are_chosen(void **state)
{
    struct fixture *fixture = *state;
    ASSERT_REPLY("select 15", "+OK\r\n");
    assert_int_equal(fixture->session.db, 15);
    ASSERT_REPLY("select 16", "-ERR DB index is out of range\r\n");
    ASSERT_REPLY("select -1", "-ERR DB index is out of range\r\n");
    ASSERT_REPLY("select x", "-ERR value is not an integer or out of range\r\n");
    assert_int_equal(fixture->session.db, 15);
    ASSERT_REPLY("shutdown save nosave", "-ERR syntax error\r\n");
    ASSERT_REPLY("shutdown abort", "-ERR No shutdown in progress.\r\n");
    assert_false(fixture->server.stopping);
}

static void errors_are_counted_by_code(void **state)
{
    (void)state;
    struct errorstats one = {.used = 0}, other = {.used = 0}, sum = {.used = 0};
    const char *const replies[] = {"-ERR a\r\n",    "-ERR b\r\n",
                                   "-ERRX c\r\n",   "-NOCODE\r\n",
                                   "- no code\r\n", "-A23456789012345678901234 long\r\n"};
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++)
        errorstats_count(&one, replies[i], strlen(replies[i]));
    errorstats_count(&other, "-ERR a\r\n", 8);
    errorstats_add(&sum, &one);
    errorstats_add(&sum, &other);
    assert_int_equal(sum.used, 3);
    assert_string_equal(sum.codes[0], "ERR");
    assert_int_equal(sum.counts[0], 3);
    assert_string_equal(sum.codes[1], "ERRX");
    assert_int_equal(sum.counts[1], 1);
    assert_string_equal(sum.codes[2], "NOCODE");
    for (int i = 0; i < 2 * ERRORSTATS_CODES; i++) {
        char reply[16];
        errorstats_count(&one, reply, (size_t)snprintf(reply, sizeof reply, "-E%d x\r\n", i));
    }
    assert_int_equal(one.used, ERRORSTATS_CODES);
    errorstats_clear(&one);
    errorstats_count(&one, "-ERR a\r\n", 8);
    assert_int_equal(one.counts[0], 1);
    assert_int_equal(one.counts[1], 0);
}

static bool only_reads(const struct fixture *fixture, const char *name, size_t key)
{
    struct store_key keys[80];
    struct call call = {.command = command_find(&fixture->server.commands, slice(name)),
                        .keys = keys};
    return call_only_reads(&call, &keys[key]);
}

static void which_keys_are_only_read(void **state)
{
    const struct fixture *fixture = *state;
    assert_true(only_reads(fixture, "mget", 5));
    assert_true(only_reads(fixture, "pfcount", 0)); /* though it keeps the estimate */
    assert_false(only_reads(fixture, "set", 0));
    assert_false(only_reads(fixture, "lmove", 1));
    assert_false(only_reads(fixture, "zunionstore", 0));
    assert_true(only_reads(fixture, "zunionstore", 1));
    assert_true(only_reads(fixture, "zunionstore", 70));
    assert_true(only_reads(fixture, "copy", 0));
    assert_false(only_reads(fixture, "copy", 1));
    assert_true(only_reads(fixture, "sort", 0));
    assert_false(only_reads(fixture, "sort", 1));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(rows_are_well_formed),
        TEST(syntaxes_fit_arities_and_keys),
        TEST(every_command_is_found_once),
        TEST(others_are_not_found),
        TEST(commands_can_be_renamed),
        TEST(hello_and_auth),
        TEST(config_set_changes_all_or_nothing),
        TEST(keys_of_commands),
        TEST(client_settings),
        TEST(databases_are_chosen),
        TEST(errors_are_counted_by_code),
        TEST(which_keys_are_only_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
