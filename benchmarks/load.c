/*
 * A load generator for servers that speak Redis's protocol: GET and SET, or any other command, on
 * many connections, each with one batch of `pipeline` commands under way, from one thread.
 *
 * redis-benchmark spends more on a command than the servers measured do once commands come 16 at a
 * time, and shows itself then; here a command is copied from a pattern, and only its numbers are
 * written into it.
 *
 * Invariants
 * 1. A connection sends its next batch when all replies to the last one are there.
 * 2. A latency runs from the start of sending the batch to the read that brought the reply.
 * 3. Nothing waits longer than STALL_S for a server: it is an error then.
 *
 * Prints one line of name=value; exit code 1, with a line on stderr, on any error of the network or
 * when a reply is an error.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "benchmarks/histogram.h"
#include "benchmarks/keys.h"
#include "benchmarks/pattern.h"

#define STALL_S 60
#define CONNECTIONS_MAX 4096
#define PIPELINE_MAX 1024
#define INPUT_BYTES (256u << 10)

struct options {
    uint32_t port, connections, pipeline, value_len;
    uint32_t read_percent; /* the rest are SETs */
    uint64_t keys, members;
    uint64_t ops;             /* at most so many commands; 0: as many as there is time for */
    const char *words;        /* the command, as pattern.h has it; NULL: GET and SET */
    bool help, fill, zipfian; /* fill: once for each member of each key, in order */
    double seconds;
    uint64_t seed;
};

struct conn {
    int fd;
    char *batch;
    size_t len, sent;
    uint32_t awaited; /* replies */
    int64_t sent_ns;
    size_t skip; /* bytes of a value, with its end of line, still to come */
    char line[32];
    uint32_t line_len;
    uint64_t elements; /* of an array, still to come */
    bool writing;      /* registered for EPOLLOUT */
};

struct load {
    struct options options;
    struct pattern get, set; /* with a command of its own: both are that */
    size_t longest;          /* of the two */
    struct keys keys, members;
    struct histogram latencies;
    struct conn *conns;
    int epoll;
    uint32_t busy;            /* connections with a batch under way */
    uint64_t commands, limit; /* begun, and to be begun */
    uint64_t replies, errors, absent;
    int64_t deadline_ns, last_reply_ns;
    char first_error[sizeof((struct conn *)0)->line];
    char *input;
};

/* ---- commands ---- */

static uint64_t next_number(struct load *load, char kind)
{
    const struct options *o = &load->options;
    if (o->fill)
        return kind == 'k' ? load->commands / o->members : load->commands % o->members;
    return keys_next(kind == 'k' ? &load->keys : &load->members);
}

static void add_command(struct load *load, struct conn *conn)
{
    const struct options *o = &load->options;
    bool reads = !o->fill && keys_random(&load->keys) % 100 < o->read_percent;
    const struct pattern *t = reads ? &load->get : &load->set;
    char *at = conn->batch + conn->len;
    memcpy(at, t->bytes, t->len);
    for (uint32_t i = 0; i < t->place_count; i++)
        keys_digits(at + t->places[i].at, next_number(load, t->places[i].kind));
    conn->len += t->len;
    conn->awaited++;
    load->commands++;
}

/* False: there is nothing more to be sent. */
static bool make_batch(struct load *load, struct conn *conn, int64_t now_ns)
{
    const struct options *o = &load->options;
    conn->len = conn->sent = 0;
    conn->awaited = 0;
    if (!o->fill && now_ns >= load->deadline_ns)
        return false;
    while (conn->awaited < o->pipeline && load->commands < load->limit)
        add_command(load, conn);
    conn->sent_ns = now_ns;
    return conn->awaited > 0;
}

static bool watch(struct load *load, struct conn *conn, bool writing)
{
    struct epoll_event event = {.events = EPOLLIN | (writing ? EPOLLOUT : 0u), .data.ptr = conn};
    conn->writing = writing;
    return epoll_ctl(load->epoll, EPOLL_CTL_MOD, conn->fd, &event) == 0;
}

static bool send_batch(struct load *load, struct conn *conn)
{
    while (conn->sent < conn->len) {
        ssize_t n = send(conn->fd, conn->batch + conn->sent, conn->len - conn->sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            conn->sent += (size_t)n;
        else if (errno == EAGAIN)
            return conn->writing || watch(load, conn, true);
        else if (errno != EINTR)
            return false;
    }
    return !conn->writing || watch(load, conn, false);
}

/* ---- replies ---- */

/* A whole value has arrived: a reply, or the next element of one. */
static uint32_t end_value(struct conn *conn)
{
    conn->elements -= conn->elements > 0;
    return conn->elements == 0;
}

/* Handles the whole line in conn->line; returns whether it ends a reply. */
static uint32_t take_line(struct load *load, struct conn *conn)
{
    const char *line = conn->line;
    long length = line[0] == '$' || line[0] == '*' ? strtol(line + 1, NULL, 10) : -1;
    if (line[0] == '$' && length >= 0) {
        conn->skip = (size_t)length + 2;
        return 0;
    }
    if (line[0] == '*' && length > 0) {
        conn->elements += (uint64_t)length - (conn->elements > 0);
        return 0;
    }
    load->absent += line[0] == '$' || line[0] == '*';
    if (line[0] == '-' && load->errors++ == 0)
        memcpy(load->first_error, line, sizeof load->first_error);
    return end_value(conn);
}

/* How many replies end in these bytes. Of long lines (errors) the beginning is kept. */
static uint32_t count_replies(struct load *load, struct conn *conn, const char *p, size_t len)
{
    const char *end = p + len;
    uint32_t replies = 0;
    while (p < end) {
        if (conn->skip > 0) {
            size_t n = (size_t)(end - p) < conn->skip ? (size_t)(end - p) : conn->skip;
            p += n;
            conn->skip -= n;
            if (conn->skip == 0)
                replies += end_value(conn);
            continue;
        }
        char c = *p++;
        if (c == '\n') {
            conn->line[conn->line_len] = '\0';
            conn->line_len = 0;
            replies += take_line(load, conn);
        } else if (c != '\r' && conn->line_len < sizeof conn->line - 1) {
            conn->line[conn->line_len++] = c;
        }
    }
    return replies;
}

static bool receive(struct load *load, struct conn *conn)
{
    ssize_t n = recv(conn->fd, load->input, INPUT_BYTES, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        return false;
    int64_t now = bench_now_ns();
    uint32_t replies = count_replies(load, conn, load->input, (size_t)n);
    if (replies > conn->awaited)
        return false;
    conn->awaited -= replies;
    load->replies += replies;
    if (replies > 0)
        histogram_add(&load->latencies, (uint64_t)(now - conn->sent_ns), replies);
    load->last_reply_ns = now;
    if (conn->awaited > 0 || conn->sent < conn->len)
        return true;
    if (make_batch(load, conn, now))
        return send_batch(load, conn);
    load->busy--;
    return true;
}

/* ---- running ---- */

static bool open_connection(struct load *load, struct conn *conn)
{
    const struct options *o = &load->options;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)o->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    *conn = (struct conn){.batch = malloc(o->pipeline * load->longest)};
    conn->fd = socket(AF_INET, SOCK_STREAM, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};
    if (conn->batch == NULL || conn->fd < 0)
        return false;
    if (connect(conn->fd, (struct sockaddr *)&to, sizeof to) != 0)
        return false;
    setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return epoll_ctl(load->epoll, EPOLL_CTL_ADD, conn->fd, &event) == 0;
}

static bool prepare(struct load *load)
{
    const struct options *o = &load->options;
    bool good = pattern_make(&load->get, o->words ? o->words : "GET key:%k", o->value_len) &&
                pattern_make(&load->set, o->words ? o->words : "SET key:%k %v", o->value_len);
    load->longest = load->set.len > load->get.len ? load->set.len : load->get.len;
    load->limit = o->fill ? o->keys * o->members : o->ops > 0 ? o->ops : UINT64_MAX;
    load->conns = calloc(o->connections, sizeof *load->conns);
    load->input = malloc(INPUT_BYTES);
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!good || !load->conns || !load->input || load->epoll < 0)
        return false;
    keys_init(&load->keys, o->keys, o->zipfian, o->seed);
    keys_init(&load->members, o->members, false, ~o->seed);
    for (uint32_t i = 0; i < o->connections; i++)
        if (!open_connection(load, &load->conns[i]))
            return false;
    return true;
}

static bool start(struct load *load)
{
    for (uint32_t i = 0; i < load->options.connections; i++) {
        struct conn *conn = &load->conns[i];
        if (!make_batch(load, conn, bench_now_ns()))
            continue;
        load->busy++;
        if (!send_batch(load, conn))
            return false;
    }
    return true;
}

static const char *run(struct load *load)
{
    struct epoll_event events[256];
    if (!start(load))
        return "sending failed";
    while (load->busy > 0) {
        int n = epoll_wait(load->epoll, events, 256, STALL_S * 1000);
        if (n == 0)
            return "the server has not answered for a minute";
        if (n < 0 && errno != EINTR)
            return "waiting failed";
        for (int i = 0; i < n; i++) {
            struct conn *conn = events[i].data.ptr;
            if (events[i].events & EPOLLOUT && !send_batch(load, conn))
                return "sending failed";
            if (events[i].events & ~(uint32_t)EPOLLOUT && !receive(load, conn))
                return "the server closed a connection, or said more than it was asked";
        }
    }
    return load->errors > 0 ? load->first_error : NULL;
}

static void report(const struct load *load, int64_t start_ns, double cpu)
{
    double seconds = (double)(load->last_reply_ns - start_ns) / 1e9;
    printf("ops=%llu seconds=%.6f rate=%.1f absent=%llu errors=%llu own_cpu_us=%.3f ",
           (unsigned long long)load->replies, seconds, (double)load->replies / seconds,
           (unsigned long long)load->absent, (unsigned long long)load->errors,
           cpu * 1e6 / (double)load->replies);
    histogram_print(&load->latencies);
    printf("\n");
}

static bool parse(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {
        {"port", 1, NULL, 'p'},    {"connections", 1, NULL, 'c'}, {"pipeline", 1, NULL, 'P'},
        {"value", 1, NULL, 'v'},   {"reads", 1, NULL, 'r'},       {"keys", 1, NULL, 'k'},
        {"seconds", 1, NULL, 's'}, {"seed", 1, NULL, 'S'},        {"fill", 0, NULL, 'f'},
        {"zipfian", 0, NULL, 'z'}, {"members", 1, NULL, 'm'},     {"ops", 1, NULL, 'o'},
        {"command", 1, NULL, 'C'}, {"help", 0, NULL, 'h'},        {NULL, 0, NULL, 0}};
    *o = (struct options){.connections = 50,
                          .pipeline = 1,
                          .value_len = 100,
                          .keys = 1000000,
                          .members = 1,
                          .seconds = 3};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        uint64_t number = optarg ? strtoull(optarg, NULL, 10) : 0;
        switch (c) {
        case 'p':
            o->port = (uint32_t)number;
            break;
        case 'c':
            o->connections = (uint32_t)number;
            break;
        case 'P':
            o->pipeline = (uint32_t)number;
            break;
        case 'v':
            o->value_len = (uint32_t)number;
            break;
        case 'r':
            o->read_percent = (uint32_t)number;
            break;
        case 'k':
            o->keys = number;
            break;
        case 's':
            o->seconds = strtod(optarg, NULL);
            break;
        case 'S':
            o->seed = number;
            break;
        case 'm':
            o->members = number;
            break;
        case 'o':
            o->ops = number;
            break;
        case 'C':
            o->words = optarg;
            break;
        case 'f':
            o->fill = true;
            break;
        case 'z':
            o->zipfian = true;
            break;
        case 'h':
            o->help = true;
            return true;
        default:
            return false;
        }
    }
    return optind == argc && o->port > 0 && o->port < 65536 && o->keys > 0 && o->members > 0 &&
           o->connections - 1 < CONNECTIONS_MAX && o->pipeline - 1 < PIPELINE_MAX;
}

static const char usage[] = "usage: bench-load --port PORT [--connections N] [--pipeline N] "
                            "[--value BYTES] [--reads PERCENT] [--command WORDS] [--keys N] "
                            "[--members N] [--zipfian] [--seconds S] [--ops N] [--seed N] "
                            "[--fill]\n";

int main(int argc, char **argv)
{
    struct load *load = calloc(1, sizeof *load);
    if (load == NULL || !parse(argc, argv, &load->options)) {
        fputs(usage, stderr);
        return 2;
    }
    if (load->options.help) {
        fputs(usage, stdout);
        return 0;
    }
    if (!prepare(load)) {
        fprintf(stderr, "no such command, or no connection to port %u: %s\n", load->options.port,
                strerror(errno));
        return 1;
    }
    double cpu = bench_cpu_seconds();
    int64_t start_ns = bench_now_ns();
    load->deadline_ns = start_ns + (int64_t)(load->options.seconds * 1e9);
    const char *complaint = run(load);
    if (complaint != NULL) {
        fprintf(stderr, "after %llu replies: %s\n", (unsigned long long)load->replies, complaint);
        return 1;
    }
    report(load, start_ns, bench_cpu_seconds() - cpu);
    return 0;
}
