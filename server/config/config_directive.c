/*
 * A directive's values: parsing, applying and showing them.
 *
 * Invariants:
 * 1. config_take() changes a value only to one that directive_parse() accepted.
 * 2. has_password says whether requirepass is non-empty, and notify_classes holds the parsed
 *    notify-keyspace-events. Both change together with the texts, under `lock`.
 */
#include "server/config/config_directive.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/config/config_words.h"
#include "server/config/notify_class.h"

#define HZ_MIN 1
#define HZ_MAX 500
#define TEXT_MAX ((size_t)4096) /* bytes of a text, where the table has no other bound */

/* ---- reading values ---- */

static bool fail(char error[DIRECTIVE_ERROR_MAX], const char *text)
{
    snprintf(error, DIRECTIVE_ERROR_MAX, "%s", text);
    return false;
}

static bool read_integer(const char *text, int base, int64_t *number)
{
    if (!isdigit((unsigned char)text[0]) && text[0] != '-')
        return false;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, base);
    if (errno != 0 || end == text || *end != '\0')
        return false;
    *number = value;
    return true;
}

static bool read_unit(const char *unit, uint64_t *factor)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {
        {"", 1},
        {"b", 1},
        {"k", 1000},
        {"kb", 1024},
        {"m", 1000 * 1000},
        {"mb", 1024 * 1024},
        {"g", 1000 * 1000 * 1000},
        {"gb", 1024 * 1024 * 1024},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcasecmp(unit, units[i].name) == 0) {
            *factor = units[i].factor;
            return true;
        }
    }
    return false;
}

bool config_read_memory(const char *text, int64_t *number)
{
    if (!isdigit((unsigned char)text[0]))
        return false;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    uint64_t factor;
    if (errno != 0 || !read_unit(end, &factor) || value > (uint64_t)INT64_MAX / factor)
        return false;
    *number = (int64_t)(value * factor);
    return true;
}

/* "5%" becomes -5. False without an error text: this is no percentage at all. */
static bool read_percent(const char *text, int64_t *number, char error[DIRECTIVE_ERROR_MAX])
{
    char digits[16];
    size_t len = strlen(text);
    error[0] = '\0';
    if (len < 2 || len > sizeof digits || text[len - 1] != '%')
        return false;
    memcpy(digits, text, len - 1);
    digits[len - 1] = '\0';
    if (!read_integer(digits, 10, number) || *number < 0)
        return false;
    if (*number > 100)
        return fail(error, "percentage argument must be less or equal to 100");
    *number = -*number;
    return true;
}

static bool read_choice(const struct directive_choice *choices, const char *text, int64_t *number,
                        char error[DIRECTIVE_ERROR_MAX])
{
    for (int i = 0; choices[i].name != NULL; i++) {
        if (strcasecmp(choices[i].name, text) == 0) {
            *number = choices[i].number;
            return true;
        }
    }
    size_t used = (size_t)snprintf(error, DIRECTIVE_ERROR_MAX,
                                   "argument(s) must be one of the following: %s", choices[0].name);
    for (int i = 1; choices[i].name != NULL && used < DIRECTIVE_ERROR_MAX; i++)
        used += (size_t)snprintf(error + used, DIRECTIVE_ERROR_MAX - used, ", %s", choices[i].name);
    return false;
}

static bool read_number(const struct directive *directive, const char *text, int64_t *number,
                        char error[DIRECTIVE_ERROR_MAX])
{
    switch ((enum directive_type)directive->type) {
    case DIRECTIVE_BOOL:
        *number = strcasecmp(text, "yes") == 0;
        return *number == 1 || strcasecmp(text, "no") == 0 ||
               fail(error, "argument must be 'yes' or 'no'");
    case DIRECTIVE_INT:
        return read_integer(text, 10, number) ||
               fail(error, "argument couldn't be parsed into an integer");
    case DIRECTIVE_OCTAL:
        return read_integer(text, 8, number) ||
               fail(error, "argument couldn't be parsed as an octal number");
    case DIRECTIVE_MEMORY:
        return config_read_memory(text, number) || fail(error, "argument must be a memory value");
    case DIRECTIVE_PERCENT:
        if (read_percent(text, number, error) || config_read_memory(text, number))
            return true;
        return error[0] == '\0' ? fail(error, "argument must be a memory or percent value") : false;
    case DIRECTIVE_ENUM:
        return read_choice(directive->choices, text, number, error);
    default:
        assert(false);
        return false;
    }
}

static bool parse_number(const struct directive *directive, const char *text, int64_t *number,
                         char error[DIRECTIVE_ERROR_MAX])
{
    if (!read_number(directive, text, number, error))
        return false;
    if (directive->type == DIRECTIVE_ENUM || (directive->type == DIRECTIVE_PERCENT && *number < 0))
        return true;
    if (*number < directive->min || *number > directive->max) {
        const char *form = directive->type == DIRECTIVE_OCTAL
                               ? "argument must be between %llo and %llo inclusive"
                               : "argument must be between %lld and %lld inclusive";
        snprintf(error, DIRECTIVE_ERROR_MAX, form, (long long)directive->min,
                 (long long)directive->max);
        return false;
    }
    if (directive == &directive_table[CONFIG_HZ]) /* as in Redis it is not refused */
        *number = *number < HZ_MIN ? HZ_MIN : *number > HZ_MAX ? HZ_MAX : *number;
    const char *objection = directive->check == NULL ? NULL : directive->check(*number);
    return objection == NULL || fail(error, objection);
}

#define WORD_SHOWN_MAX 32

/* Parses each word and joins them in the form in which they are shown. */
static char *join_checked(const struct directive *directive, size_t argc, char *const argv[],
                          char error[DIRECTIVE_ERROR_MAX])
{
    char *text = calloc(argc + 1, WORD_SHOWN_MAX);
    char *at = text;
    for (size_t i = 0; i < argc && text != NULL; i++) {
        char shown[WORD_SHOWN_MAX];
        const char *objection = directive->read_word(argv[i], shown, sizeof shown);
        if (objection != NULL) {
            free(text);
            fail(error, objection);
            return NULL;
        }
        at += sprintf(at, "%s%s", i > 0 ? " " : "", shown);
    }
    if (text == NULL)
        fail(error, "out of memory");
    return text;
}

/* Whoever may set such words must not be able to write other lines into the file, or into the log:
 * nothing that needs quotes is accepted. */
static bool are_plain(size_t argc, char *const argv[])
{
    for (size_t i = 0; i < argc; i++) {
        for (const char *at = argv[i]; *at != '\0'; at++)
            if ((unsigned char)*at > '~' || *at <= ' ' || strchr("\"'\\", *at) != NULL)
                return false;
        if (argv[i][0] == '\0')
            return false;
    }
    return true;
}

static char *join(size_t argc, char *const argv[])
{
    size_t size = 1;
    for (size_t i = 0; i < argc; i++)
        size += strlen(argv[i]) + 1;
    char *text = malloc(size);
    if (text == NULL)
        return NULL;
    char *at = text;
    *at = '\0';
    for (size_t i = 0; i < argc; i++) {
        if (i > 0)
            *at++ = ' ';
        at = stpcpy(at, argv[i]);
    }
    return text;
}

static bool check_save(size_t argc, char *const argv[], char error[DIRECTIVE_ERROR_MAX])
{
    bool good = argc % 2 == 0;
    for (size_t i = 0; i < argc && good; i++) {
        int64_t number;
        good = read_integer(argv[i], 10, &number) && number >= (i % 2 == 0 ? 1 : 0) &&
               number <= INT_MAX;
    }
    return good || fail(error, "Invalid save parameters");
}

/* Letters in the order in which Redis shows them. 'A' stands for all classes except key misses and
 * new keys. */
static char *parse_events(const char *text, char error[DIRECTIVE_ERROR_MAX])
{
    static const char classes[] = "g$lshzxetd", others[] = "nKEm";
    if (text[strspn(text, "Ag$lshzxeKEtmdn")] != '\0') {
        fail(error, "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
        return NULL;
    }
    char shown[sizeof classes + sizeof others];
    size_t len = 0;
    for (const char *letter = classes; *letter != '\0'; letter++)
        if (strchr(text, 'A') != NULL || strchr(text, *letter) != NULL)
            shown[len++] = *letter;
    if (len == sizeof classes - 1) {
        shown[0] = 'A';
        len = 1;
    }
    for (const char *letter = others; *letter != '\0'; letter++)
        if (strchr(text, *letter) != NULL)
            shown[len++] = *letter;
    shown[len] = '\0';
    char *copy = strdup(shown);
    if (copy == NULL)
        fail(error, "out of memory");
    return copy;
}

static int client_class(const char *name)
{
    static const char *const names[] = {"normal", "slave", "pubsub"};
    if (strcasecmp(name, "replica") == 0)
        return CONFIG_CLIENT_REPLICA;
    for (int i = 0; i < CONFIG_CLIENT_CLASSES; i++)
        if (strcasecmp(name, names[i]) == 0)
            return i;
    return -1;
}

static bool parse_limits(size_t argc, char *const argv[], uint64_t *limits,
                         char error[DIRECTIVE_ERROR_MAX])
{
    if (argc == 0 || argc % 4 != 0)
        return fail(error, "Wrong number of arguments in buffer limit configuration.");
    for (size_t i = 0; i < argc; i += 4) {
        int limited = client_class(argv[i]);
        if (limited < 0)
            return fail(error, "Invalid client class specified in buffer limit configuration.");
        int64_t hard, soft, seconds;
        if (!config_read_memory(argv[i + 1], &hard) || !config_read_memory(argv[i + 2], &soft) ||
            !read_integer(argv[i + 3], 10, &seconds) || seconds < 0)
            return fail(error, "Error in hard, soft or soft_seconds setting in buffer limit "
                               "configuration.");
        limits[limited * 3] = (uint64_t)hard;
        limits[limited * 3 + 1] = (uint64_t)soft;
        limits[limited * 3 + 2] = (uint64_t)seconds;
    }
    return true;
}

static size_t bytes_of(size_t argc, char *const argv[])
{
    size_t sum = 0;
    for (size_t i = 0; i < argc; i++)
        sum += strlen(argv[i]) + 1;
    return sum;
}

static bool check_text(const struct directive *directive, struct config_value *value,
                       char error[DIRECTIVE_ERROR_MAX])
{
    const char *objection =
        directive->check_text == NULL ? NULL : directive->check_text(value->text);
    if (objection == NULL)
        return true;
    free(value->text);
    value->text = NULL;
    return fail(error, objection);
}

static bool join_words(const struct directive *directive, size_t argc, char *const argv[],
                       struct config_value *value, char error[DIRECTIVE_ERROR_MAX])
{
    if (directive->read_word != NULL) {
        value->text = join_checked(directive, argc, argv, error);
    } else {
        value->text = join(argc, argv);
        if (value->text == NULL)
            fail(error, "out of memory");
    }
    return value->text != NULL && check_text(directive, value, error);
}

/* A directive of several words: separate arguments in a file, one text in CONFIG SET. */
static bool parse_words(const struct directive *directive, size_t argc, char *const argv[],
                        struct config_value *value, char error[DIRECTIVE_ERROR_MAX])
{
    bool good = true;
    if (directive->type == DIRECTIVE_LIMITS)
        return parse_limits(argc, argv, value->limits, error);
    if (directive->type == DIRECTIVE_SAVE)
        good = check_save(argc, argv, error);
    else if (argc < (size_t)directive->min || argc > (size_t)directive->max)
        good = fail(error, "wrong number of arguments");
    if (good && bytes_of(argc, argv) > TEXT_MAX)
        good = fail(error, "argument is too long");
    if (good && !are_plain(argc, argv))
        good = fail(error, "argument contains a quote, a backslash or an unprintable character");
    return good && join_words(directive, argc, argv, value, error);
}

static bool parse_single(const struct directive *directive, const char *text,
                         struct config_value *value, char error[DIRECTIVE_ERROR_MAX])
{
    if (directive_is_number(directive))
        return parse_number(directive, text, &value->number, error);
    if (directive->type == DIRECTIVE_EVENTS) {
        value->text = parse_events(text, error);
        return value->text != NULL;
    }
    assert(directive->type == DIRECTIVE_TEXT);
    if (strlen(text) > (directive->max > 0 ? (size_t)directive->max : TEXT_MAX))
        return fail(error, "argument is too long");
    value->text = strdup(text);
    return value->text != NULL ? check_text(directive, value, error) : fail(error, "out of memory");
}

bool directive_parse(const struct config *config, size_t row, size_t argc, char *const argv[],
                     struct config_value *value, char error[DIRECTIVE_ERROR_MAX])
{
    assert(row < directive_count);
    const struct directive *directive = &directive_table[row];
    *value = (struct config_value){.text = NULL};
    for (int i = 0; i < CONFIG_CLIENT_CLASSES * 3; i++)
        value->limits[i] = atomic_load_explicit(&config->output_limits[i], memory_order_relaxed);
    bool several = directive->type == DIRECTIVE_WORDS || directive->type == DIRECTIVE_SAVE ||
                   directive->type == DIRECTIVE_LIMITS;
    if (!several)
        return argc == 1 ? parse_single(directive, argv[0], value, error)
                         : fail(error, "wrong number of arguments");
    if (argc != 1)
        return argc > 0 ? parse_words(directive, argc, argv, value, error)
                        : fail(error, "wrong number of arguments");
    struct config_words words;
    if (!config_split(argv[0], &words))
        return fail(error, "Unbalanced quotes in configuration line");
    bool good = words.has_zero ? fail(error, "argument contains a zero byte")
                               : parse_words(directive, words.count, words.words, value, error);
    config_words_free(&words);
    return good;
}

size_t directive_find(const char *name)
{
    for (size_t row = 0; row < directive_count; row++) {
        const struct directive *directive = &directive_table[row];
        if (strcasecmp(directive->name, name) == 0 ||
            (directive->alias != NULL && strcasecmp(directive->alias, name) == 0))
            return row;
    }
    return directive_count;
}

/* ---- values in effect ---- */

/* The classes named by the letters, in the form that parse_events() writes. Empty unless K or E is
 * among them, because then nothing is published. */
static uint32_t event_classes(const char *letters)
{
    static const struct {
        char letter;
        enum notify_class bit;
    } classes[] = {{'K', NOTIFY_KEYSPACE}, {'E', NOTIFY_KEYEVENT}, {'g', NOTIFY_GENERIC},
                   {'$', NOTIFY_STRING},   {'l', NOTIFY_LIST},     {'s', NOTIFY_SET},
                   {'h', NOTIFY_HASH},     {'z', NOTIFY_ZSET},     {'x', NOTIFY_EXPIRED},
                   {'e', NOTIFY_EVICTED},  {'t', NOTIFY_STREAM},   {'m', NOTIFY_KEY_MISS},
                   {'d', NOTIFY_MODULE},   {'n', NOTIFY_NEW}};
    uint32_t set = 0;
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        bool is_all = strchr(letters, 'A') != NULL && classes[i].bit != NOTIFY_KEYSPACE &&
                      classes[i].bit != NOTIFY_KEYEVENT && classes[i].bit != NOTIFY_KEY_MISS &&
                      classes[i].bit != NOTIFY_NEW;
        if (is_all || strchr(letters, classes[i].letter) != NULL)
            set |= classes[i].bit;
    }
    return (set & (NOTIFY_KEYSPACE | NOTIFY_KEYEVENT)) != 0 ? set : 0;
}

void config_take(struct config *config, size_t row, struct config_value *value)
{
    assert(row < directive_count);
    const struct directive *directive = &directive_table[row];
    if (directive_is_number(directive)) {
        atomic_store_explicit(&config->numbers[row], value->number, memory_order_relaxed);
        return;
    }
    if (directive->type == DIRECTIVE_LIMITS) {
        for (int i = 0; i < CONFIG_CLIENT_CLASSES * 3; i++)
            atomic_store_explicit(&config->output_limits[i], value->limits[i],
                                  memory_order_relaxed);
        return;
    }
    assert(value->text != NULL);
    pthread_mutex_lock(&config->lock);
    free(config->texts[row]);
    config->texts[row] = value->text;
    if (row == CONFIG_REQUIREPASS)
        atomic_store_explicit(&config->has_password, value->text[0] != '\0', memory_order_relaxed);
    if (row == CONFIG_NOTIFY_KEYSPACE_EVENTS)
        atomic_store_explicit(&config->notify_classes, event_classes(value->text),
                              memory_order_relaxed);
    pthread_mutex_unlock(&config->lock);
    value->text = NULL;
}

/* ---- showing values ---- */

static const char *choice_name(const struct directive_choice *choices, int64_t number)
{
    while (choices->number != number || choices->name == NULL) {
        assert(choices->name != NULL);
        choices++;
    }
    return choices->name;
}

static char *show_number(const struct directive *directive, int64_t number)
{
    char text[32];
    switch ((enum directive_type)directive->type) {
    case DIRECTIVE_BOOL:
        return strdup(number != 0 ? "yes" : "no");
    case DIRECTIVE_ENUM:
        return strdup(choice_name(directive->choices, number));
    case DIRECTIVE_OCTAL:
        snprintf(text, sizeof text, "%llo", (unsigned long long)number);
        break;
    case DIRECTIVE_PERCENT:
        snprintf(text, sizeof text, number < 0 ? "%lld%%" : "%lld",
                 (long long)(number < 0 ? -number : number));
        break;
    default:
        snprintf(text, sizeof text, "%lld", (long long)number);
    }
    return strdup(text);
}

static char *show_limits(const struct config *config)
{
    static const char *const names[] = {"normal", "slave", "pubsub"};
    char text[CONFIG_CLIENT_CLASSES * 80];
    size_t used = 0;
    for (int i = 0; i < CONFIG_CLIENT_CLASSES; i++) {
        struct config_output_limit limit = config_output_limit(config, i);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %llu %llu %llu",
                                 i > 0 ? " " : "", names[i], (unsigned long long)limit.hard_bytes,
                                 (unsigned long long)limit.soft_bytes,
                                 (unsigned long long)limit.soft_seconds);
    }
    return strdup(text);
}

char *config_show(struct config *config, size_t row)
{
    const struct directive *directive = &directive_table[row];
    if (directive_is_number(directive))
        return show_number(directive, config_number(config, (enum config_id)row));
    if (directive->type == DIRECTIVE_LIMITS)
        return show_limits(config);
    pthread_mutex_lock(&config->lock);
    char *text = strdup(config->texts[row]);
    pthread_mutex_unlock(&config->lock);
    return text;
}
