#include "benchmarks/bench_options.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define TIMEOUT_MS 60000
#define VALUE_MAX (512ull << 20)
#define USUAL_REQUESTS 100000
#define USUAL_SPIN_US 50
#define ROUNDS_OF_SEVERAL 5
#define POSITIVE_MIN 1e-6

static const struct bench_transport TRANSPORTS[] = {
    {.name = "tcp"},
    {.name = "unix", .is_unix = true},
    {.name = "rdma-send", .is_rdma = true},
    {.name = "rdma-send-ref", .is_rdma = true, .by_reference = true},
    {.name = "rdma-write", .is_rdma = true, .mode = VELLUM_RDMA_WRITE},
    {.name = "rdma-write-ref", .is_rdma = true, .by_reference = true, .mode = VELLUM_RDMA_WRITE},
};

static const char USAGE[] =
    "usage: vellum-benchmark [OPTION...] [COMMAND WORD...]\n"
    "\n"
    "Measures a server that speaks the Redis protocol, by several transports side by side.\n"
    "\n"
    "  -u URI             the server: redis://[[USER]:PASSWORD@][HOST][:PORT][/DATABASE]\n"
    "  -h HOST            its name or address (127.0.0.1)\n"
    "  -p PORT            its port (6379)\n"
    "  -s PATH            its Unix socket\n"
    "  -a PASSWORD        to log in with; also taken from the environment, VELLUM_PASSWORD\n"
    "  --user NAME        with that password\n"
    "  --dbnum N          database (0)\n"
    "  -c N               connections (50)\n"
    "  --threads N        that share them (1)\n"
    "  -n N               requests of each test by each transport (100000)\n"
    "  --seconds S        how long each test takes by each transport; what LPOP and the like take\n"
    "                     is there for -n requests\n"
    "  -d BYTES[,...]     size of values, 8kb and 1mb too; several: one after the other (3)\n"
    "  -P N               pipeline: requests under way per connection (1)\n"
    "  -r N               key space: keys are random, of so many; else there is one\n"
    "  -t TEST[,...]      which tests: the names of redis-benchmark's, and ycsb-a, ycsb-b, "
    "ycsb-c,\n"
    "                     ycsb-d, ycsb-f; ycsb-e with a Vellum that has ordered-keys yes\n"
    "  --rate N           open loop: N requests per second are due, at even intervals, whether or\n"
    "                     not replies come; latency runs from the time a request was due\n"
    "  --transport T,...  in turn, round by round: tcp, unix, rdma-send, rdma-write, and\n"
    "                     rdma-send-ref, rdma-write-ref: the server reads what is SET from our "
    "memory,\n"
    "                     and writes there what is got (tcp, or unix with -s)\n"
    "  --rounds N         the parts each test is done in (1; with several transports 5)\n"
    "  --device NAME      of RDMA, at this end\n"
    "  --spin US          how long to poll busily by RDMA before sleeping (50)\n"
    "  --seed N           of random keys\n"
    "  -l                 for ever\n"
    "  -I                 only connects, and waits\n"
    "  -x                 the command's last word comes from the standard input\n"
    "  -q                 one line for each test\n"
    "  --csv, --json      for programs\n"
    "  --plot FILE        draws a PNG, with gnuplot\n"
    "  --help; -v, --version\n"
    "\n"
    "A command of one's own may hold the words' parts __rand_int__ (a random key, with -r) and "
    "the\n"
    "word __data__ (a value). See vellum-benchmark(1).\n";

void bench_give_up(const char *format, ...)
{
    va_list arguments;
    /* For good: of several threads one ends the program. */
    flockfile(stderr);
    fputs("vellum-benchmark: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(EXIT_FAILURE);
}

static uint64_t number(const char *text, uint64_t min, uint64_t max)
{
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (end == text || *end != '\0' || value < min || value > max || text[0] == '-')
        bench_give_up("'%s' is not a number from %llu to %llu", text, (unsigned long long)min,
                      (unsigned long long)max);
    return value;
}

/* 0 stands for 1, as in redis-benchmark. */
static uint64_t number_above_0(const char *text, uint64_t max)
{
    uint64_t value = number(text, 0, max);
    return value > 0 ? value : 1;
}

static double positive(const char *text, double max)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= POSITIVE_MIN && value <= max))
        bench_give_up("'%s' is not a number from %g to %g", text, POSITIVE_MIN, max);
    return value;
}

static uint64_t size_of(const char *text)
{
    char *end, digits[32];
    uint64_t unit = 1;
    strtoull(text, &end, 10);
    if (strcasecmp(end, "kb") == 0)
        unit = 1024;
    else if (strcasecmp(end, "mb") == 0)
        unit = 1024 * 1024;
    else if (*end != '\0')
        bench_give_up("'%s' is not a size, as 8, 4kb, 1mb", text);
    snprintf(digits, sizeof digits, "%.*s", (int)(end - text), text);
    return unit * number_above_0(digits, VALUE_MAX / unit);
}

static void parse_sizes(struct bench_options *options, char *text)
{
    options->size_count = 0;
    for (char *rest, *size = strtok_r(text, ",", &rest); size != NULL;
         size = strtok_r(NULL, ",", &rest)) {
        if (options->size_count == BENCH_SIZES_MAX)
            bench_give_up("more than %d sizes", BENCH_SIZES_MAX);
        options->sizes[options->size_count++] = size_of(size);
    }
    if (options->size_count == 0)
        bench_give_up("-d wants a size");
}

static const struct bench_transport *find_transport(const char *name)
{
    for (size_t i = 0; i < sizeof TRANSPORTS / sizeof *TRANSPORTS; i++)
        if (strcmp(TRANSPORTS[i].name, name) == 0)
            return &TRANSPORTS[i];
    bench_give_up("no transport is called '%s'", name);
}

static void parse_transports(struct bench_options *options, char *text)
{
    options->transport_count = 0;
    for (char *rest, *name = strtok_r(text, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        if (options->transport_count == BENCH_TRANSPORTS_MAX)
            bench_give_up("more than %d transports", BENCH_TRANSPORTS_MAX);
        for (uint32_t i = 0; i < options->transport_count; i++)
            if (strcmp(options->transports[i]->name, name) == 0)
                bench_give_up("--transport names %s twice", name);
        options->transports[options->transport_count++] = find_transport(name);
    }
    if (options->transport_count == 0)
        bench_give_up("--transport wants a name");
}

/* Checked early: otherwise these errors would appear after the whole measurement. */
static void check_plot(const char *file)
{
    if (system("command -v gnuplot >/dev/null 2>&1") != 0)
        bench_give_up("--plot needs gnuplot, which is not here");
    if (strchr(file, '\'') != NULL)
        bench_give_up("the plot's name may hold no quote");
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL, 0666);
    bool is_new = fd >= 0;
    if (!is_new)
        fd = open(file, O_WRONLY | O_CREAT, 0666);
    if (fd < 0)
        bench_give_up("the plot cannot be written to %s: %s", file, strerror(errno));
    close(fd);
    if (is_new)
        unlink(file);
}

static void check_load(struct bench_options *options)
{
    if (options->requests == 0)
        options->requests = USUAL_REQUESTS;
    if (options->rounds == 0)
        options->rounds = options->transport_count > 1 ? ROUNDS_OF_SEVERAL : 1;
    if (options->threads > options->clients)
        options->threads = options->clients;
    if (options->requests < (uint64_t)options->rounds * options->threads && options->seconds == 0)
        bench_give_up("fewer requests than threads and rounds");
}

static void check(struct bench_options *options)
{
    if (options->transport_count == 0)
        options->transports[options->transport_count++] =
            find_transport(options->path != NULL ? "unix" : "tcp");
    for (uint32_t i = 0; i < options->transport_count; i++)
        if (options->transports[i]->is_unix && options->path == NULL)
            bench_give_up("by unix: -s tells the socket's path");
    if (options->user != NULL && options->password == NULL)
        bench_give_up("--user wants a password: -a, or VELLUM_PASSWORD");
    check_load(options);
    if (options->repeats && (options->format == BENCH_JSON || options->plot != NULL))
        bench_give_up("neither JSON nor a plot comes to an end with -l");
    if (options->plot != NULL)
        check_plot(options->plot);
}

enum {
    SECONDS = 256,
    USER,
    DATABASE,
    THREADS,
    RATE,
    TRANSPORT,
    ROUNDS,
    DEVICE,
    SPIN,
    SEED,
    CSV,
    JSON,
    PLOT,
    HELP,
    VERSION
};

static const struct option LONG[] = {{"seconds", required_argument, NULL, SECONDS},
                                     {"user", required_argument, NULL, USER},
                                     {"dbnum", required_argument, NULL, DATABASE},
                                     {"threads", required_argument, NULL, THREADS},
                                     {"rate", required_argument, NULL, RATE},
                                     {"transport", required_argument, NULL, TRANSPORT},
                                     {"rounds", required_argument, NULL, ROUNDS},
                                     {"device", required_argument, NULL, DEVICE},
                                     {"spin", required_argument, NULL, SPIN},
                                     {"seed", required_argument, NULL, SEED},
                                     {"csv", no_argument, NULL, CSV},
                                     {"json", no_argument, NULL, JSON},
                                     {"plot", required_argument, NULL, PLOT},
                                     {"help", no_argument, NULL, HELP},
                                     {"version", no_argument, NULL, VERSION},
                                     {NULL, 0, NULL, 0}};

/* Decodes %XX where it stands. */
static char *decode(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0'; at++) {
        unsigned byte = (unsigned char)*at;
        if (byte == '%') {
            if (!isxdigit((unsigned char)at[1]) || !isxdigit((unsigned char)at[2]) ||
                sscanf(at + 1, "%2x", &byte) != 1 || byte == 0)
                bench_give_up("a URI's %% has two hexadecimal digits behind it, not 00");
            at += 2;
        }
        *to++ = (char)byte;
    }
    *to = '\0';
    return text;
}

/* redis://user:password@host:port/database; all may be missing. The host stands in brackets if it
 * has colons. */
static void take_uri(struct bench_options *o, char *uri)
{
    static const char scheme[] = "redis://";
    if (strncmp(uri, scheme, sizeof scheme - 1) != 0)
        bench_give_up("'%s' is not a URI of redis://", uri);
    char *host = uri + sizeof scheme - 1, *at = strrchr(host, '@');
    if (at != NULL) {
        char *colon = strchr(host, ':');
        *at = '\0';
        if (colon == NULL || colon > at)
            bench_give_up("a URI's user and password are USER:PASSWORD");
        *colon = '\0';
        o->user = *host != '\0' ? decode(host) : NULL;
        o->password = decode(colon + 1);
        host = at + 1;
    }
    char *end = host;
    if (*host == '[') {
        end = strchr(++host, ']');
        if (end == NULL)
            bench_give_up("'[%s' is not a URI's host", host);
        *end++ = '\0';
        if (strchr(":/", *end) == NULL)
            bench_give_up("behind ']' a URI has :PORT or /DATABASE, not '%s'", end);
    }
    char *slash = strchr(end, '/'), *colon = strchr(end, ':');
    if (slash != NULL)
        *slash = '\0';
    if (slash != NULL && slash[1] != '\0')
        o->database = (uint32_t)number(slash + 1, 0, 1000000);
    if (colon != NULL) {
        *colon = '\0';
        o->port = (uint32_t)number(colon + 1, 1, 65535);
    }
    if (*host != '\0')
        o->host = host;
}

/* Options about the connection. False: not one of these. */
static bool take_connection(struct bench_options *o, int option, char *value)
{
    switch (option) {
    case 'u':
        take_uri(o, value);
        return true;
    case 'h':
        o->host = value;
        return true;
    case 'p':
        o->port = (uint32_t)number(value, 1, 65535);
        return true;
    case 's':
        o->path = value;
        return true;
    case 'a':
        o->password = value;
        return true;
    case USER:
        o->user = value;
        return true;
    case DATABASE:
        o->database = (uint32_t)number(value, 0, 1000000);
        return true;
    case TRANSPORT:
        parse_transports(o, value);
        return true;
    case DEVICE:
        o->device = value;
        return true;
    case SPIN:
        o->spin_us = (uint32_t)number(value, 1, 1000000);
        return true;
    default:
        return false;
    }
}

/* Options about the workload. */
static bool take_load(struct bench_options *o, int option, char *value)
{
    switch (option) {
    case 'c':
        o->clients = (uint32_t)number(value, 1, BENCH_CLIENTS_MAX);
        return true;
    case THREADS:
        o->threads = (uint32_t)number_above_0(value, BENCH_THREADS_MAX);
        return true;
    case 'n':
        o->requests = number(value, 1, 1ull << 40);
        return true;
    case SECONDS:
        o->seconds = positive(value, 1e6);
        return true;
    case 'd':
        parse_sizes(o, value);
        return true;
    case 'P':
        o->pipeline = (uint32_t)number_above_0(value, 100000);
        return true;
    case 'r':
        o->keys = number_above_0(value, 1000000000000);
        return true;
    case 't':
        o->tests = value;
        return true;
    case 'l':
        o->repeats = true;
        return true;
    case 'I':
        o->only_waits = true;
        return true;
    case 'e':
        fputs("-e has no effect: the first error ends the program.\n", stderr);
        return true;
    case RATE:
        o->rate = positive(value, 1e9);
        return true;
    case ROUNDS:
        o->rounds = (uint32_t)number(value, 1, 1000);
        return true;
    case SEED:
        o->seed = number(value, 0, UINT64_MAX);
        return true;
    default:
        return false;
    }
}

static void take_format(struct bench_options *o, enum bench_format format)
{
    if (o->format == BENCH_CSV + BENCH_JSON - format)
        bench_give_up("either --csv or --json");
    o->format = format;
}

static bool take_output(struct bench_options *o, int option, char *value)
{
    switch (option) {
    case 'q':
        if (o->format == BENCH_TEXT)
            o->format = BENCH_QUIET;
        return true;
    case CSV:
        take_format(o, BENCH_CSV);
        return true;
    case JSON:
        take_format(o, BENCH_JSON);
        return true;
    case PLOT:
        o->plot = value;
        return true;
    default:
        return false;
    }
}

/* Reads all of standard input as the command's last word. */
static void take_last_word(struct bench_options *options)
{
    size_t count = (size_t)options->word_count, room = 0;
    const char **words = calloc(count + 1, sizeof *words);
    char *text = NULL;
    if (count == 0)
        bench_give_up("-x is for a command of one's own");
    if (words == NULL || getdelim(&text, &room, '\0', stdin) < 0)
        bench_give_up("the standard input has no word");
    memcpy(words, options->words, count * sizeof *words);
    words[count] = text;
    options->words = words;
    options->word_count++;
}

bool bench_options_parse(struct bench_options *options, int argc, char **argv, int *status)
{
    *options = (struct bench_options){.port = 6379,
                                      .clients = 50,
                                      .threads = 1,
                                      .pipeline = 1,
                                      .spin_us = USUAL_SPIN_US,
                                      .sizes = {3},
                                      .size_count = 1,
                                      .password = getenv("VELLUM_PASSWORD")};
    int option;
    bool is_piped = false;
    *status = EXIT_SUCCESS;
    /* "+": stop at the first non-option, as a command's words may look like options. */
    while ((option = getopt_long(argc, argv, "+h:p:s:a:u:c:n:d:P:r:t:qleIxv", LONG, NULL)) != -1) {
        if (option == HELP || option == VERSION || option == 'v') {
            fputs(option == HELP ? USAGE : "vellum-benchmark " VELLUM_VERSION "\n", stdout);
            return false;
        }
        is_piped = is_piped || option == 'x';
        if (option != 'x' && !take_connection(options, option, optarg) &&
            !take_load(options, option, optarg) && !take_output(options, option, optarg)) {
            fputs("Try vellum-benchmark --help.\n", stderr);
            *status = EXIT_FAILURE;
            return false;
        }
    }
    options->word_count = argc - optind;
    options->words = (const char **)argv + optind;
    if (is_piped)
        take_last_word(options);
    check(options);
    return true;
}

/* Checks a reply to a command of the set-up; by_name: the transport. */
static void expect_good(struct vellum *vellum, redisReply *reply, const char *by_name)
{
    if (reply == NULL)
        bench_give_up("by %s: %s", by_name, vellum_error(vellum));
    if (reply->type == REDIS_REPLY_ERROR)
        bench_give_up("by %s: %s", by_name, reply->str);
    freeReplyObject(reply);
}

struct vellum *bench_connect(const struct bench_options *options,
                             const struct bench_transport *transport)
{
    struct vellum_options to = {.host = options->host,
                                .port = (int)options->port,
                                .path = transport->is_unix ? options->path : NULL,
                                .user = options->user,
                                .password = options->password,
                                .rdma = transport->is_rdma ? VELLUM_RDMA_ONLY : VELLUM_RDMA_NEVER,
                                .mode = transport->mode,
                                .device = options->device,
                                .spin_us = options->spin_us,
                                .timeout_ms = TIMEOUT_MS};
    struct vellum *vellum = vellum_connect(&to);
    if (vellum == NULL || vellum_error(vellum) != NULL)
        bench_give_up("by %s: %s", transport->name,
                      vellum != NULL ? vellum_error(vellum) : "out of memory");
    expect_good(vellum, vellum_command(vellum, "PING"), transport->name);
    if (options->database != 0)
        expect_good(vellum, vellum_command(vellum, "SELECT %u", options->database),
                    transport->name);
    return vellum;
}
