/* Reading, showing, changing and rewriting the configuration. */
#include "server/config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/core/command.h"
#include "server/config/config_directive.h"
#include "server/config/config_file.h"
#include "server/config/config_rewrite.h"
#include "server/config/config_words.h"
#include "server/pubsub/notify.h"
#include "storage/store.h"

struct fixture {
    struct config config;
    char directory[64], path[128]; /* of a configuration file */
    char *out, *err;
    size_t out_len, err_len;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_true(config_init(&fixture->config));
    strcpy(fixture->directory, "/tmp/test_config.XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(fixture->path, sizeof fixture->path, "%s/v.conf", fixture->directory);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    config_free(&fixture->config);
    free(fixture->out);
    free(fixture->err);
    unlink(fixture->path);
    char other[128];
    snprintf(other, sizeof other, "%s/other.conf", fixture->directory);
    unlink(other);
    assert_int_equal(rmdir(fixture->directory), 0); /* nothing else was left behind */
    free(fixture);
    return 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static char *read_file(const char *path)
{
    static char text[16384];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* Starts with the given arguments, up to NULL; into a configuration of defaults. */
static enum config_start start(struct fixture *fixture, ...)
{
    char *argv[32] = {"vellum-server"};
    int argc = 1;
    va_list args;
    va_start(args, fixture);
    while ((argv[argc] = va_arg(args, char *)) != NULL) {
        argv[argc] = strdup(argv[argc]); /* passwords are overwritten */
        argc++;
    }
    va_end(args);
    config_free(&fixture->config);
    assert_true(config_init(&fixture->config));
    free(fixture->out);
    free(fixture->err);
    FILE *out = open_memstream(&fixture->out, &fixture->out_len);
    FILE *err = open_memstream(&fixture->err, &fixture->err_len);
    enum config_start result = config_read(&fixture->config, argc, argv, out, err);
    fclose(out);
    fclose(err);
    for (int i = 1; i < argc; i++)
        free(argv[i]);
    return result;
}

static enum config_start start_with_file(struct fixture *fixture, const char *text)
{
    write_file(fixture->path, text);
    return start(fixture, fixture->path, NULL);
}

static void assert_shown(struct fixture *fixture, const char *name, const char *value)
{
    size_t row = directive_find(name);
    assert_true(row < directive_count);
    char *shown = config_show(&fixture->config, row);
    assert_string_equal(shown, value);
    free(shown);
}

/* As CONFIG SET does; returns the objection, or NULL. */
static const char *set(struct fixture *fixture, const char *name, const char *text)
{
    static char error[DIRECTIVE_ERROR_MAX];
    struct config_value value;
    char *argument = (char *)text;
    size_t row = directive_find(name);
    assert_true(row < directive_count);
    if (!directive_parse(&fixture->config, row, 1, &argument, &value, error))
        return error;
    config_take(&fixture->config, row, &value);
    return NULL;
}

/* ---- the table ---- */

static void defaults_are_those_of_redis(void **state)
{
    struct fixture *fixture = *state;
    assert_shown(fixture, "port", "6379");
    assert_shown(fixture, "bind", "* -::*");
    assert_shown(fixture, "appendfsync", "everysec");
    assert_int_equal(config_number(&fixture->config, CONFIG_APPENDFSYNC), STORE_SYNC_EVERYSEC);
    assert_shown(fixture, "maxmemory-policy", "noeviction");
    assert_shown(fixture, "loglevel", "notice");
    assert_int_equal(config_number(&fixture->config, CONFIG_LOGLEVEL), CONFIG_LOG_NOTICE);
    assert_shown(fixture, "client-output-buffer-limit",
                 "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60");
    assert_shown(fixture, "proto-max-bulk-len", "536870912");
    assert_shown(fixture, "latency-tracking-info-percentiles", "50 99 99.9");
    assert_false(config_has_password(&fixture->config));
}

static void names_are_unique_and_defaults_valid(void **state)
{
    struct fixture *fixture = *state;
    for (size_t row = 0; row < directive_count; row++) {
        const struct directive *directive = &directive_table[row];
        assert_non_null(directive->name);
        assert_int_equal(directive_find(directive->name), row);
        if (directive->alias != NULL)
            assert_int_equal(directive_find(directive->alias), row);
        if (directive->type != DIRECTIVE_WORDS || directive->initial[0] != '\0')
            assert_null(set(fixture, directive->name, directive->initial));
    }
}

static void aliases_are_the_same_directive(void **state)
{
    struct fixture *fixture = *state;
    assert_null(set(fixture, "slave-priority", "7"));
    assert_shown(fixture, "replica-priority", "7");
    assert_null(set(fixture, "LUA-Time-Limit", "9"));
    assert_shown(fixture, "busy-reply-threshold", "9");
}

/* ---- values ---- */

static void numbers_are_checked(void **state)
{
    struct fixture *fixture = *state;
    assert_null(set(fixture, "timeout", "30"));
    assert_int_equal(config_number(&fixture->config, CONFIG_TIMEOUT), 30);
    assert_string_equal(set(fixture, "timeout", "-1"),
                        "argument must be between 0 and 2147483647 inclusive");
    static const char *const bad[] = {"", "x", "1x", " 1", "1 ", "1.5", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_string_equal(set(fixture, "timeout", bad[i]),
                            "argument couldn't be parsed into an integer");
    assert_int_equal(config_number(&fixture->config, CONFIG_TIMEOUT), 30);
    assert_null(set(fixture, "hz", "0"));
    assert_shown(fixture, "hz", "1");
    assert_null(set(fixture, "hz", "501"));
    assert_shown(fixture, "hz", "500");
    assert_null(set(fixture, "partitions", "64"));
    assert_string_equal(set(fixture, "partitions", "12"), "argument must be a power of two");
    assert_string_equal(set(fixture, "databases", "17"), "there are always 16 databases");
    assert_null(set(fixture, "unixsocketperm", "770"));
    assert_int_equal(config_number(&fixture->config, CONFIG_UNIXSOCKETPERM), 0770);
    assert_shown(fixture, "unixsocketperm", "770");
    assert_string_equal(set(fixture, "unixsocketperm", "800"),
                        "argument couldn't be parsed as an octal number");
    assert_string_equal(set(fixture, "unixsocketperm", "7777"),
                        "argument must be between 0 and 777 inclusive");
}

static void memory_has_units(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"0", 0},           {"5b", 5},
                {"2k", 2000},       {"2KB", 2048},
                {"3m", 3000000},    {"3mb", 3 << 20},
                {"1g", 1000000000}, {"1Gb", 1 << 30},
                {"100", 100},       {"8589934591gb", 8589934591 * (1ll << 30)}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_null(set(fixture, "maxmemory", good[i].text));
        assert_int_equal(config_number(&fixture->config, CONFIG_MAXMEMORY), good[i].bytes);
    }
    static const char *const bad[] = {"", "-1", "1tb", "mb", "1 mb", "8589934592gb", "1e3"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_string_equal(set(fixture, "maxmemory", bad[i]), "argument must be a memory value");
    assert_null(set(fixture, "maxmemory-clients", "5%"));
    assert_shown(fixture, "maxmemory-clients", "5%");
    assert_null(set(fixture, "maxmemory-clients", "5mb"));
    assert_shown(fixture, "maxmemory-clients", "5242880");
    assert_string_equal(set(fixture, "maxmemory-clients", "101%"),
                        "percentage argument must be less or equal to 100");
    assert_string_equal(set(fixture, "maxmemory-clients", "%"),
                        "argument must be a memory or percent value");
}

static void choices_are_named(void **state)
{
    struct fixture *fixture = *state;
    assert_null(set(fixture, "appendfsync", "ALWAYS"));
    assert_int_equal(config_number(&fixture->config, CONFIG_APPENDFSYNC), STORE_SYNC_ALWAYS);
    assert_shown(fixture, "appendfsync", "always");
    assert_string_equal(set(fixture, "appendfsync", "often"),
                        "argument(s) must be one of the following: everysec, always, no");
    assert_null(set(fixture, "loglevel", "nothing"));
    assert_true(config_number(&fixture->config, CONFIG_LOGLEVEL) > CONFIG_LOG_WARNING);
    assert_null(set(fixture, "protected-mode", "No"));
    assert_int_equal(config_number(&fixture->config, CONFIG_PROTECTED_MODE), 0);
    assert_string_equal(set(fixture, "protected-mode", "1"), "argument must be 'yes' or 'no'");
}

static void special_forms(void **state)
{
    struct fixture *fixture = *state;
    assert_null(set(fixture, "notify-keyspace-events", "KEA"));
    assert_shown(fixture, "notify-keyspace-events", "AKE");
    uint32_t classes = config_notify_classes(&fixture->config);
    assert_true((classes & NOTIFY_KEYEVENT) != 0 && (classes & NOTIFY_STREAM) != 0);
    assert_int_equal(classes & (NOTIFY_KEY_MISS | NOTIFY_NEW), 0);
    assert_null(set(fixture, "notify-keyspace-events", "Kx$"));
    assert_shown(fixture, "notify-keyspace-events", "$xK");
    assert_int_equal(config_notify_classes(&fixture->config),
                     NOTIFY_KEYSPACE | NOTIFY_STRING | NOTIFY_EXPIRED);
    assert_null(set(fixture, "notify-keyspace-events", "gx"));
    assert_int_equal(config_notify_classes(&fixture->config), 0);
    assert_string_equal(set(fixture, "notify-keyspace-events", "q"),
                        "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
    assert_null(set(fixture, "save", "900 1 300 10"));
    assert_shown(fixture, "save", "900 1 300 10");
    assert_string_equal(set(fixture, "save", "900"), "Invalid save parameters");
    assert_string_equal(set(fixture, "save", "0 1"), "Invalid save parameters");
    assert_null(set(fixture, "save", ""));
    assert_shown(fixture, "save", "");
    assert_null(set(fixture, "client-output-buffer-limit", "pubsub 2mb 1mb 9 normal 5 4 3"));
    struct config_output_limit limit = config_output_limit(&fixture->config, CONFIG_CLIENT_PUBSUB);
    assert_true(limit.hard_bytes == 2 << 20 && limit.soft_bytes == 1 << 20 &&
                limit.soft_seconds == 9);
    limit = config_output_limit(&fixture->config, CONFIG_CLIENT_REPLICA);
    assert_true(limit.hard_bytes == 256 << 20); /* was not named: as before */
    assert_string_equal(set(fixture, "client-output-buffer-limit", "normal 5 4"),
                        "Wrong number of arguments in buffer limit configuration.");
    assert_string_equal(set(fixture, "client-output-buffer-limit", "odd 5 4 3"),
                        "Invalid client class specified in buffer limit configuration.");
    limit = config_output_limit(&fixture->config, CONFIG_CLIENT_NORMAL);
    assert_true(limit.hard_bytes == 5 && limit.soft_bytes == 4 && limit.soft_seconds == 3);
}

static void passwords(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    assert_null(set(fixture, "requirepass", "secret"));
    assert_true(config_has_password(config));
    assert_true(config_password_matches(config, "secret", 6));
    assert_false(config_password_matches(config, "secret", 5));
    assert_false(config_password_matches(config, "secret\0", 7));
    assert_false(config_password_matches(config, "secreT", 6));
    assert_false(config_password_matches(config, "", 0));
    char longest[CONFIG_PASSWORD_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[CONFIG_PASSWORD_MAX + 1] = '\0';
    assert_non_null(set(fixture, "requirepass", longest));
    longest[CONFIG_PASSWORD_MAX] = '\0';
    assert_null(set(fixture, "requirepass", longest));
    assert_true(config_password_matches(config, longest, CONFIG_PASSWORD_MAX));
    assert_false(config_password_matches(config, longest, CONFIG_PASSWORD_MAX - 1));
    assert_null(set(fixture, "requirepass", ""));
    assert_false(config_has_password(config));
}

/* ---- lines ---- */

static void lines_are_split_as_in_redis(void **state)
{
    (void)state;
    static const struct {
        const char *line, *words; /* words joined by | ; NULL: refused */
    } cases[] = {
        {"a b c", "a|b|c"},
        {"  a\t b ", "a|b"},
        {"", ""},
        {"a \"b c\" d", "a|b c|d"},
        {"a 'b c'", "a|b c"},
        {"a \"\"", "a|"},
        {"a \"x\\\"y\\\\z\"", "a|x\"y\\z"},
        {"a \"\\x41\\n\"", "a|A\n"},
        {"a 'it\\'s' '\\n'", "a|it's|\\n"},
        {"a b\"c d\"", "a|bc d"},
        {"a \"b", NULL},
        {"a 'b", NULL},
        {"a \"b\"c", NULL},
        {"a \"b\\", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config_words words;
        bool good = config_split(cases[i].line, &words);
        assert_int_equal(good, cases[i].words != NULL);
        if (!good)
            continue;
        char joined[64] = "";
        for (size_t k = 0; k < words.count; k++) {
            strcat(joined, k > 0 ? "|" : "");
            strcat(joined, words.words[k]);
        }
        assert_string_equal(joined, cases[i].words);
        config_words_free(&words);
    }
}

static void quoted_words_are_read_back(void **state)
{
    (void)state;
    static const char *const texts[] = {"plain", "", "a b", "\"", "'", "\\", "\n\x01\xff", "#"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char *quoted = config_quote(texts[i]);
        struct config_words words;
        assert_true(config_split(quoted, &words));
        assert_int_equal(words.count, 1);
        assert_string_equal(words.words[0], texts[i]);
        config_words_free(&words);
        free(quoted);
    }
}

/* ---- file and command line ---- */

static void file_then_command_line(void **state)
{
    struct fixture *fixture = *state;
    write_file(fixture->path, "# a comment\n"
                              "\n"
                              "port 7001\r\n"
                              "  timeout 5  \n"
                              "BIND 127.0.0.1 -::1\n"
                              "logfile \"/tmp/with space\"\n"
                              "client-output-buffer-limit replica 1mb 2mb 3\n"
                              "client-output-buffer-limit pubsub 4 5 6\n");
    assert_int_equal(start(fixture, fixture->path, "--port", "7002", "--dir", "data", NULL),
                     CONFIG_START);
    assert_shown(fixture, "port", "7002");
    assert_shown(fixture, "timeout", "5");
    assert_shown(fixture, "bind", "127.0.0.1 -::1");
    assert_shown(fixture, "logfile", "/tmp/with space");
    assert_shown(fixture, "client-output-buffer-limit",
                 "normal 0 0 0 slave 1048576 2097152 3 pubsub 4 5 6");
    assert_string_equal(fixture->config.file, fixture->path);
    char cwd[256], expected[512];
    assert_non_null(getcwd(cwd, sizeof cwd));
    snprintf(expected, sizeof expected, "%s/data", cwd);
    assert_shown(fixture, "dir", expected);
    assert_int_equal(fixture->err_len, 0);
}

static void command_line_rules(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(start(fixture, "--bind", "127.0.0.1", "::1", "--save", "--timeout", "9", NULL),
                     CONFIG_START);
    assert_shown(fixture, "bind", "127.0.0.1 ::1");
    assert_shown(fixture, "save", "");
    assert_shown(fixture, "timeout", "9");
    assert_int_equal(start(fixture, "--bind", "127.0.0.1 ::1", "--save", "60 1", NULL),
                     CONFIG_START);
    assert_shown(fixture, "bind", "127.0.0.1 ::1");
    assert_shown(fixture, "save", "60 1");
    write_file(fixture->path, "");
    assert_int_equal(start(fixture, fixture->path, "loglevel", "verbose", "--timeout", "4", NULL),
                     CONFIG_START);
    assert_shown(fixture, "loglevel", "verbose");
    assert_shown(fixture, "timeout", "4");
    /* The first value may look like an option. */
    assert_int_equal(start(fixture, "--requirepass", "--x", "--port", "1", NULL), CONFIG_START);
    assert_true(config_password_matches(&fixture->config, "--x", 3));
    assert_int_equal(start(fixture, "--maxmemory 5mb", "--logfile '--a b'", "--timeout", "3", NULL),
                     CONFIG_START);
    assert_shown(fixture, "maxmemory", "5242880");
    assert_shown(fixture, "logfile", "--a b");
    assert_shown(fixture, "timeout", "3");
    assert_null(fixture->config.file);
}

/* `text` is what the standard input has next. */
static void write_input(struct fixture *fixture, const char *text)
{
    write_file(fixture->path, text);
    assert_non_null(freopen(fixture->path, "r", stdin));
}

static void a_dash_is_the_standard_input(void **state)
{
    struct fixture *fixture = *state;
    char other[128];
    snprintf(other, sizeof other, "%s/other.conf", fixture->directory);
    write_file(other, "timeout 1\nport 1\nhz 1\n");
    write_input(fixture, "timeout 2\nport 2");
    assert_int_equal(start(fixture, other, "--port", "3", "-", NULL), CONFIG_START);
    assert_shown(fixture, "hz", "1");
    assert_shown(fixture, "timeout", "2");
    assert_shown(fixture, "port", "3");
    assert_string_equal(fixture->config.file, other);
    write_input(fixture, "timeout 4\n");
    assert_int_equal(start(fixture, "-", "--port", "5", NULL), CONFIG_START);
    assert_shown(fixture, "timeout", "4");
    assert_shown(fixture, "port", "5");
    assert_null(fixture->config.file);
    write_input(fixture, "\nport x\n");
    assert_int_equal(start(fixture, "-", NULL), CONFIG_EXIT_FAILURE);
    assert_non_null(strstr(fixture->err, "at line 2"));
}

static void help_and_version_exit_well(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(start(fixture, "--version", NULL), CONFIG_EXIT_SUCCESS);
    assert_non_null(strstr(fixture->out, "Vellum server v="));
    assert_int_equal(start(fixture, "--help", NULL), CONFIG_EXIT_SUCCESS);
    assert_non_null(strstr(fixture->out, "Usage: "));
    assert_int_equal(fixture->err_len, 0);
}

static void save_lines_add_up(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(start_with_file(fixture, "save 900 1\nsave 300 10 60 100\n"), CONFIG_START);
    assert_shown(fixture, "save", "900 1 300 10 60 100");
    assert_int_equal(start_with_file(fixture, "save 900 1\nsave \"\"\nsave 5 6\n"), CONFIG_START);
    assert_shown(fixture, "save", "5 6");
    assert_int_equal(start_with_file(fixture, "save\n"), CONFIG_START);
    assert_shown(fixture, "save", "");
    assert_int_equal(start_with_file(fixture, "save 5 6\nsave\nsave 7 8\n"), CONFIG_START);
    assert_shown(fixture, "save", "5 6 7 8");
}

static void words_are_checked_one_by_one(void **state)
{
    struct fixture *fixture = *state;
    assert_null(set(fixture, "latency-tracking-info-percentiles", "50.000 1e1 99.95 100 0"));
    assert_shown(fixture, "latency-tracking-info-percentiles", "50 10 99.95 100 0");
    static const char *const bad[] = {"50 x", "50 1x", "nan", "50 101", "-1", "inf"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_string_equal(set(fixture, "latency-tracking-info-percentiles", bad[i]),
                            i < 3 ? "Invalid latency-tracking-info-percentiles parameters"
                                  : "latency-tracking-info-percentiles parameters should sit "
                                    "between [0.0,100.0]");
    assert_shown(fixture, "latency-tracking-info-percentiles", "50 10 99.95 100 0");
    assert_null(set(fixture, "latency-tracking-info-percentiles", ""));
    assert_shown(fixture, "latency-tracking-info-percentiles", "");
    assert_null(set(fixture, "oom-score-adj-values", "-2000 010 +2000"));
    assert_shown(fixture, "oom-score-adj-values", "-2000 10 2000");
    static const char *const outside[] = {"1 2 2001", "-2001 2 3", "1 2 x"};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        assert_string_equal(set(fixture, "oom-score-adj-values", outside[i]),
                            "Invalid oom-score-adj-values, elements must be between -2000 and "
                            "2000.");
    assert_string_equal(set(fixture, "oom-score-adj-values", "1 2"), "wrong number of arguments");
    assert_int_equal(start_with_file(fixture, "oom-score-adj-values 1 2 3000\n"),
                     CONFIG_EXIT_FAILURE);
}

static void words_are_plain(void **state)
{
    struct fixture *fixture = *state;
    static const char *const bad[] = {"127.0.0.1 \"-x\nport 1\"",
                                      "\"a\\\"b\"",
                                      "'a\\b'",
                                      "\"a b\"",
                                      "\"\\x07\"",
                                      "\xc3\xa4",
                                      "\"\""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_string_equal(set(fixture, "bind", bad[i]),
                            "argument contains a quote, a backslash or an unprintable character");
    assert_shown(fixture, "bind", "* -::*");
    assert_null(set(fixture, "bind", ""));
    assert_null(set(fixture, "bind", "\"127.0.0.1\" -fe80::1%eth0"));
    assert_shown(fixture, "bind", "127.0.0.1 -fe80::1%eth0");
}

static void stop_words_are_those_of_redis(void **state)
{
    struct fixture *fixture = *state;
    assert_null(set(fixture, "shutdown-on-sigterm", "force NOW nosave now"));
    assert_shown(fixture, "shutdown-on-sigterm", "nosave now force");
    static const char *const bad[] = {"now soon", "\"now\nport 1\"", "'a\"b'", "0"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_non_null(set(fixture, "shutdown-on-sigterm", bad[i]));
    assert_string_equal(
        set(fixture, "shutdown-on-sigterm", "soon"),
        "argument(s) must be one of the following: default, save, nosave, now, force");
    assert_string_equal(set(fixture, "shutdown-on-sigint", "save now nosave"),
                        "shutdown options SAVE and NOSAVE can't be used simultaneously");
    assert_shown(fixture, "shutdown-on-sigterm", "nosave now force");
    assert_null(set(fixture, "shutdown-on-sigterm", "default default"));
    assert_shown(fixture, "shutdown-on-sigterm", "default");
}

static void what_is_not_asked_for_is_not_refused(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(start_with_file(fixture, "aclfile \"\"\ntls-port 0\ncluster-enabled no\n"
                                              "replicaof no one\n"),
                     CONFIG_START);
    assert_shown(fixture, "replicaof", "");
    assert_null(set(fixture, "tls-port", "0"));
    assert_string_equal(set(fixture, "tls-port", "6380"), "TLS is not supported");
}

static void mistakes_end_the_start(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *file, *where, *what, *why;
    } cases[] = {
        {"port 1\nfoo bar\n", "at line 2", ">>> 'foo bar'",
         "Bad directive or wrong number of arguments"},
        {"maxmemory abc\n", "at line 1", ">>> 'maxmemory abc'", "argument must be a memory value"},
        {"port\n", "at line 1", ">>> 'port'", "wrong number of arguments"},
        {"\nport 1 2\n", "at line 2", ">>> 'port 1 2'", "wrong number of arguments"},
        {"timeout \"1\n", "at line 1", ">>> 'timeout \"1'", "Unbalanced quotes"},
        {"port 7\nrequirepass \"abc\\x00def\"\n", "at line 2", ">>> 'requirepass \"abc\\x00def\"'",
         "zero byte"},
        {"databases 17\n", "at line 1", ">>> 'databases 17'", "16 databases"},
        {"user default on\n", "at line 1", ">>> 'user default on'", "ACL users"},
        {"loadmodule /x.so\n", "at line 1", ">>> 'loadmodule /x.so'", "modules"},
        {"aclfile /etc/users.acl\n", "at line 1", ">>> 'aclfile /etc/users.acl'", "requirepass"},
        {"tls-port 6380\n", "at line 1", ">>> 'tls-port 6380'", "TLS is not supported"},
        {"cluster-enabled yes\n", "at line 1", ">>> 'cluster-enabled yes'", "cluster mode"},
        {"replicaof 127.0.0.1 6379\n", "at line 1", ">>> 'replicaof 127.0.0.1 6379'",
         "replication"},
        {"slaveof \"no one\"\nslaveof h 1\n", "at line 2", ">>> 'slaveof h 1'", "replication"},
        {"rename-command get\n", "at line 1", ">>> 'rename-command get'", "wrong number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(start_with_file(fixture, cases[i].file), CONFIG_EXIT_FAILURE);
        assert_non_null(strstr(fixture->err, "*** FATAL CONFIG FILE ERROR (Vellum "));
        assert_non_null(strstr(fixture->err, cases[i].where));
        assert_non_null(strstr(fixture->err, cases[i].what));
        assert_non_null(strstr(fixture->err, cases[i].why));
    }
    assert_int_equal(start(fixture, "--port", "x", NULL), CONFIG_EXIT_FAILURE);
    assert_non_null(strstr(fixture->err, ">>> 'port \"x\"'"));
    assert_int_equal(start(fixture, "--nosuch", "x", NULL), CONFIG_EXIT_FAILURE);
    assert_int_equal(start(fixture, "--port", NULL), CONFIG_EXIT_FAILURE);
    assert_int_equal(start(fixture, "-x", NULL), CONFIG_EXIT_FAILURE);
    assert_int_equal(start(fixture, "--", NULL), CONFIG_EXIT_FAILURE);
    assert_int_equal(start(fixture, "/nonexistent/v.conf", NULL), CONFIG_EXIT_FAILURE);
    assert_non_null(strstr(fixture->err, "can't open config file '/nonexistent/v.conf'"));
}

static void includes(void **state)
{
    struct fixture *fixture = *state;
    char other[128], text[512];
    snprintf(other, sizeof other, "%s/other.conf", fixture->directory);
    write_file(other, "timeout 8\nhz 20\n");
    snprintf(text, sizeof text, "hz 30\ninclude %s/oth*.conf\ntimeout 9\n", fixture->directory);
    assert_int_equal(start_with_file(fixture, text), CONFIG_START);
    assert_shown(fixture, "timeout", "9");
    assert_shown(fixture, "hz", "20");
    write_file(other, "port 1\nbad line\n");
    assert_int_equal(start_with_file(fixture, text), CONFIG_EXIT_FAILURE);
    assert_non_null(strstr(fixture->err, "at line 2 of "));
    assert_null(strstr(fixture->err, "include")); /* said once, where it is */
    snprintf(text, sizeof text, "include %s\n", fixture->path);
    assert_int_equal(start_with_file(fixture, text), CONFIG_EXIT_FAILURE);
    assert_non_null(strstr(fixture->err, "too deeply"));
    assert_int_equal(start_with_file(fixture, "include /nonexistent/x\n"), CONFIG_EXIT_FAILURE);
    assert_int_equal(start_with_file(fixture, "include /nonexistent/*\n"), CONFIG_START);
}

static void count_notes(void *arg, const char *text)
{
    int *counts = arg;
    counts[0]++;
    counts[1] += strncmp(text, "directive 'save' has no effect: ", 32) == 0;
}

static void what_has_no_effect_is_said_once(void **state)
{
    struct fixture *fixture = *state;
    int counts[2] = {0, 0};
    assert_int_equal(
        start_with_file(fixture, "port 1\nsave 900 1\nsave 60 1\nappendonly yes\nhz 50\n"),
        CONFIG_START);
    config_each_note(&fixture->config, count_notes, counts);
    assert_int_equal(counts[0], 3);
    assert_int_equal(counts[1], 1);
    assert_shown(fixture, "appendonly", "yes");
    assert_shown(fixture, "hz", "50");
}

static void renames_are_kept(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(
        start_with_file(fixture, "rename-command CONFIG Hidden\nrename-command flushall \"\"\n"),
        CONFIG_START);
    const struct config *config = &fixture->config;
    assert_int_equal(config->rename_count, 2);
    assert_string_equal(config->renames[0].from, "config");
    assert_string_equal(config->renames[0].to, "hidden");
    assert_string_equal(config->renames[1].from, "flushall");
    assert_string_equal(config->renames[1].to, "");
}

/* ---- rewriting ---- */

static void rewrite_keeps_comments_and_order(void **state)
{
    struct fixture *fixture = *state;
    char error[DIRECTIVE_ERROR_MAX], expected[1024];
    assert_int_equal(start_with_file(fixture, "# mine\n"
                                              "port 7001\n"
                                              "\n"
                                              "dir /tmp/d\n"
                                              "# between\n"
                                              "maxmemory 1mb\n"
                                              "save 60 1\n"
                                              "save 30 2\n"
                                              "rename-command get fetch\n"
                                              "timeout 0"),
                     CONFIG_START);
    assert_int_equal(chmod(fixture->path, 0640), 0);
    assert_null(set(fixture, "maxmemory", "2mb"));
    assert_null(set(fixture, "requirepass", "a \"b\""));
    assert_null(set(fixture, "client-output-buffer-limit", "normal 1 2 3"));
    snprintf(expected, sizeof expected,
             "# mine\nport 7001\n\ndir /tmp/d\n# between\nmaxmemory 2097152\nsave 60 1 30 2\n"
             "rename-command get fetch\ntimeout 0\n"
             "# Written by CONFIG REWRITE\n"
             "requirepass \"a \\\"b\\\"\"\n"
             "client-output-buffer-limit normal 1 2 3\n"
             "client-output-buffer-limit slave 268435456 67108864 60\n"
             "client-output-buffer-limit pubsub 33554432 8388608 60\n");
    assert_true(config_rewrite(&fixture->config, error));
    assert_string_equal(read_file(fixture->path), expected);
    assert_true(config_rewrite(&fixture->config, error)); /* again: nothing more changes */
    assert_string_equal(read_file(fixture->path), expected);
    struct stat stat_of_file;
    assert_int_equal(stat(fixture->path, &stat_of_file), 0);
    assert_int_equal(stat_of_file.st_mode & 0777, 0640);
    /* What was written means what was set. */
    assert_int_equal(start(fixture, fixture->path, NULL), CONFIG_START);
    assert_true(config_password_matches(&fixture->config, "a \"b\"", 5));
    assert_shown(fixture, "save", "60 1 30 2");
}

static void a_file_that_is_gone_is_written_anew(void **state)
{
    struct fixture *fixture = *state;
    char error[DIRECTIVE_ERROR_MAX];
    struct stat made;
    mode_t before = umask(027);
    assert_int_equal(start_with_file(fixture, "timeout 1\n"), CONFIG_START);
    umask(before);
    assert_int_equal(unlink(fixture->path), 0);
    assert_true(config_rewrite(&fixture->config, error));
    assert_int_equal(stat(fixture->path, &made), 0);
    assert_int_equal(made.st_mode & 0777, 0640);
    assert_int_equal(start(fixture, fixture->path, NULL), CONFIG_START);
    assert_shown(fixture, "timeout", "1");
    char *directory = strrchr(fixture->config.file, '/');
    memcpy(directory - 2, "no", 2); /* there is no such directory */
    assert_false(config_rewrite(&fixture->config, error));
    assert_string_equal(error, "No such file or directory");
}

static void every_directive_survives_a_rewrite(void **state)
{
    struct fixture *fixture = *state;
    char error[DIRECTIVE_ERROR_MAX];
    char *shown[CONFIG_ROW_MAX];
    assert_int_equal(start_with_file(fixture, "timeout 1\n"), CONFIG_START);
    for (size_t row = 0; row < directive_count; row++) {
        const struct directive *directive = &directive_table[row];
        if (directive->check != NULL || directive->check_text != NULL)
            ; /* most values are refused */
        else if (directive->type == DIRECTIVE_BOOL)
            assert_null(set(fixture, directive->name,
                            strcmp(directive->initial, "yes") == 0 ? "no" : "yes"));
        else if (directive->type == DIRECTIVE_ENUM)
            assert_null(set(fixture, directive->name, directive->choices[1].name));
        else if (directive->type == DIRECTIVE_TEXT)
            assert_null(set(fixture, directive->name, "/a 'strange' text"));
        shown[row] = config_show(&fixture->config, row);
    }
    assert_true(config_rewrite(&fixture->config, error));
    assert_int_equal(start(fixture, fixture->path, NULL), CONFIG_START);
    for (size_t row = 0; row < directive_count; row++) {
        assert_shown(fixture, directive_table[row].name, shown[row]);
        free(shown[row]);
    }
}

static void a_failed_rewrite_leaves_the_file(void **state)
{
    struct fixture *fixture = *state;
    char error[DIRECTIVE_ERROR_MAX] = "";
    assert_int_equal(start_with_file(fixture, "timeout 1\n"), CONFIG_START);
    free(fixture->config.file);
    fixture->config.file = strdup("/proc/version"); /* readable, but no file can be made beside */
    assert_false(config_rewrite(&fixture->config, error));
    assert_true(error[0] != '\0');
    assert_string_equal(read_file(fixture->path), "timeout 1\n");
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(defaults_are_those_of_redis),
        TEST(names_are_unique_and_defaults_valid),
        TEST(aliases_are_the_same_directive),
        TEST(numbers_are_checked),
        TEST(memory_has_units),
        TEST(choices_are_named),
        TEST(special_forms),
        TEST(passwords),
        TEST(lines_are_split_as_in_redis),
        TEST(quoted_words_are_read_back),
        TEST(file_then_command_line),
        TEST(command_line_rules),
        TEST(a_dash_is_the_standard_input),
        TEST(help_and_version_exit_well),
        TEST(save_lines_add_up),
        TEST(words_are_checked_one_by_one),
        TEST(words_are_plain),
        TEST(stop_words_are_those_of_redis),
        TEST(what_is_not_asked_for_is_not_refused),
        TEST(mistakes_end_the_start),
        TEST(includes),
        TEST(what_has_no_effect_is_said_once),
        TEST(renames_are_kept),
        TEST(rewrite_keeps_comments_and_order),
        TEST(every_directive_survives_a_rewrite),
        TEST(a_failed_rewrite_leaves_the_file),
        TEST(a_file_that_is_gone_is_written_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
