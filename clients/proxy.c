/*
 * vellum-rdma-proxy: listens on a local port or Unix socket and carries the bytes of each
 * connection over an RDMA channel of its own, so that stock clients of the Redis protocol can use
 * it unchanged.
 *
 * The proxy makes the channel, so it knows the password; clients need not send it, but may.
 *
 * Invariants:
 * 1. A pair holds at most one piece (PIECE_BYTES) per direction: a slow end throttles the other.
 * 2. The end that closes first, client or server, ends the pair; what the server sent before is
 *    delivered. A channel cannot be half-closed, so a client that sends no more counts as gone:
 *    otherwise a client that disconnected while waiting in BLPOP would still take elements.
 * 3. The end of a client comes after its last bytes, which the server may not take while a command
 *    waits. So it is checked every LOOK_S while nothing is read from the client, and if the server
 *    has taken nothing since the previous check, the pair ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>

#include "clients/upgrade.h"
#include "clients/vellum.h"

#define PIECE_BYTES (64 * 1024)
#define DIAL_LIMIT_S 5 /* for the connection, and for each answer until there is a channel */
#define LOOK_S 3
#define RETRY_S 1 /* when a connection could not be accepted for want of descriptors or memory */
#define SPIN_ROUNDS 200 /* polls in which nothing moved, before the proxy sleeps */

struct proxy {
    struct event_base *base;
    const char *where, *host, *password, *user, *device;
    enum rdma_mode mode;
    int port;
    struct pair *pairs;
    struct event *arrivals; /* of connections; not awaited while there are no descriptors */
    struct event *retry;    /* they are awaited again */
};

struct piece {
    char bytes[PIECE_BYTES];
    size_t start, end;
};

struct pair {
    struct proxy *proxy;
    struct pair *next;
    int client;
    redisContext *tcp;
    struct vellum_channel *channel;
    struct event *client_in, *client_out, *channel_in, *tcp_in;
    struct event *look;    /* checks for the client's end */
    struct piece up, down; /* to the server, to the client */
    uint64_t taken,
        taken_before; /* how often the server took something; the same at the last check */
    bool client_ended, server_ended, is_over;
};

/* ---- bytes ---- */

static bool is_empty(const struct piece *piece)
{
    return piece->start == piece->end;
}

/* Converts the result of read() or write(): bytes, 0 for none now, -1 for the end. */
static ssize_t outcome(ssize_t moved)
{
    if (moved > 0)
        return moved;
    return moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
}

static bool fill(struct piece *piece, ssize_t got, bool *has_ended)
{
    piece->start = 0;
    piece->end = got > 0 ? (size_t)got : 0;
    *has_ended = *has_ended || got < 0;
    return got > 0;
}

static bool empty(struct piece *piece, ssize_t sent, bool *has_ended)
{
    if (sent > 0)
        piece->start += (size_t)sent;
    *has_ended = *has_ended || sent < 0;
    return sent > 0;
}

static bool move_up(struct pair *pair)
{
    bool has_moved = false;
    if (is_empty(&pair->up) && !pair->client_ended)
        has_moved = fill(&pair->up, outcome(read(pair->client, pair->up.bytes, PIECE_BYTES)),
                         &pair->client_ended);
    if (!is_empty(&pair->up) && !pair->server_ended) {
        struct iovec vector = {.iov_base = pair->up.bytes + pair->up.start,
                               .iov_len = pair->up.end - pair->up.start};
        ssize_t sent = vellum_channel_write(pair->channel, &vector, 1);
        bool is_taken = empty(&pair->up, sent, &pair->server_ended);
        pair->taken += is_taken;
        has_moved = is_taken || has_moved;
    }
    return has_moved;
}

static bool move_down(struct pair *pair)
{
    bool has_moved = false;
    if (is_empty(&pair->down)) {
        ssize_t got = vellum_channel_read(pair->channel, pair->down.bytes, PIECE_BYTES);
        has_moved = fill(&pair->down, got, &pair->server_ended);
    }
    if (!is_empty(&pair->down) && !pair->client_ended) {
        ssize_t sent = outcome(write(pair->client, pair->down.bytes + pair->down.start,
                                     pair->down.end - pair->down.start));
        has_moved = empty(&pair->down, sent, &pair->client_ended) || has_moved;
    }
    return has_moved;
}

/* ---- pairs ---- */

static void watch(struct event *event, bool is_wanted)
{
    if (is_wanted)
        event_add(event, NULL);
    else
        event_del(event);
}

static void end_pair(struct pair *pair)
{
    struct event *events[] = {pair->client_in, pair->client_out, pair->channel_in, pair->tcp_in,
                              pair->look};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (events[i] != NULL)
            event_free(events[i]);
    close(pair->client);
    vellum_channel_free(pair->channel);
    if (pair->tcp != NULL)
        redisFree(pair->tcp);
    event_add(pair->proxy->arrivals, NULL); /* there are descriptors again */
    free(pair);
}

static void begin_looking(struct pair *pair)
{
    const struct timeval time = {.tv_sec = LOOK_S};
    pair->taken_before = pair->taken;
    event_add(pair->look, &time);
}

/* libevent reports an error of a socket as readiness, so an event for its end would not see it. */
static bool has_gone(const struct pair *pair)
{
    struct pollfd end = {.fd = pair->client, .events = POLLRDHUP};
    return poll(&end, 1, 0) > 0;
}

/* The next round ends the pair. */
static void on_look(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct pair *pair = arg;
    if (!is_empty(&pair->up) && pair->taken == pair->taken_before)
        pair->client_ended = pair->client_ended || has_gone(pair);
}

/* Moves what can be moved now. True: something was moved. */
static bool serve(struct pair *pair)
{
    bool has_moved = false, moves = true;
    for (int i = 0; i < 16 && moves; i++) {
        moves = move_up(pair);
        moves = move_down(pair) || moves;
        has_moved = has_moved || moves;
    }
    pair->is_over = pair->client_ended || (pair->server_ended && is_empty(&pair->down));
    if (!pair->is_over) {
        watch(pair->client_in, is_empty(&pair->up));
        watch(pair->client_out, !is_empty(&pair->down));
        watch(pair->channel_in, !pair->server_ended);
        if (!is_empty(&pair->up) && !event_pending(pair->look, EV_TIMEOUT, NULL))
            begin_looking(pair);
    }
    return has_moved;
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg; /* the round serves every pair */
}

static void on_server_gone(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct pair *pair = arg;
    vellum_channel_poll(pair->channel);
    pair->server_ended = true;
    event_del(pair->tcp_in);
}

/* All other pairs wait meanwhile. Keepalive detects a server that vanishes while a channel is
 * idle. */
static redisContext *dial(const struct proxy *proxy)
{
    const struct timeval limit = {.tv_sec = DIAL_LIMIT_S};
    redisContext *tcp = redisConnectWithTimeout(proxy->host, proxy->port, limit);
    if (tcp != NULL && tcp->err == 0) {
        redisSetTimeout(tcp, limit);
        redisEnableKeepAlive(tcp);
    }
    return tcp;
}

/* An error is no reason to stop: a server without a password replies with one, too. It is put into
 * `refusal`, which is empty otherwise. */
static void log_in(struct pair *pair, char refusal[RDMA_MESSAGE_MAX])
{
    const struct proxy *proxy = pair->proxy;
    refusal[0] = '\0';
    if (proxy->password == NULL)
        return;
    redisReply *reply = proxy->user != NULL
                            ? redisCommand(pair->tcp, "AUTH %s %s", proxy->user, proxy->password)
                            : redisCommand(pair->tcp, "AUTH %s", proxy->password);
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
        snprintf(refusal, RDMA_MESSAGE_MAX, "%s", reply->str);
    if (reply != NULL)
        freeReplyObject(reply);
}

static bool upgrade(struct pair *pair)
{
    struct proxy *proxy = pair->proxy;
    char message[RDMA_MESSAGE_MAX] = "out of memory", refusal[RDMA_MESSAGE_MAX] = "";
    struct vellum_channel_options options = {.device = proxy->device, .mode = proxy->mode};
    pair->tcp = dial(proxy);
    if (pair->tcp != NULL && pair->tcp->err == 0)
        log_in(pair, refusal);
    if (pair->tcp != NULL && pair->tcp->err == 0)
        pair->channel = vellum_upgrade(pair->tcp, &options, message);
    else if (pair->tcp != NULL)
        snprintf(message, sizeof message, "%s", pair->tcp->errstr);
    if (pair->channel == NULL)
        dprintf(pair->client, "-ERR vellum-rdma-proxy: %s%s%s\r\n", message,
                refusal[0] != '\0' ? "; the reply to AUTH was: " : "", refusal);
    return pair->channel != NULL;
}

static bool make_events(struct pair *pair)
{
    struct event_base *base = pair->proxy->base;
    const short in = EV_READ | EV_PERSIST;
    pair->client_in = event_new(base, pair->client, in, on_ready, pair);
    pair->client_out = event_new(base, pair->client, EV_WRITE | EV_PERSIST, on_ready, pair);
    pair->channel_in =
        event_new(base, vellum_channel_descriptor(pair->channel), in, on_ready, pair);
    pair->tcp_in = event_new(base, pair->tcp->fd, in, on_server_gone, pair);
    pair->look = evtimer_new(base, on_look, pair);
    return pair->client_in != NULL && pair->client_out != NULL && pair->channel_in != NULL &&
           pair->tcp_in != NULL && pair->look != NULL && event_add(pair->channel_in, NULL) == 0 &&
           event_add(pair->tcp_in, NULL) == 0 && event_add(pair->client_in, NULL) == 0;
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct proxy *proxy = arg;
    event_add(proxy->arrivals, NULL);
}

/* A connection that cannot be accepted stays where it is: the listening socket would be reported as
 * readable for ever. */
static void rest_if_exhausted(struct proxy *proxy, int error)
{
    const struct timeval time = {.tv_sec = RETRY_S};
    if ((error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) &&
        event_add(proxy->retry, &time) == 0)
        event_del(proxy->arrivals);
}

static void on_connection(evutil_socket_t listening, short what, void *arg)
{
    (void)what;
    struct proxy *proxy = arg;
    int yes = 1, fd = accept((int)listening, NULL, NULL);
    if (fd < 0)
        rest_if_exhausted(proxy, errno);
    struct pair *pair = fd >= 0 ? calloc(1, sizeof *pair) : NULL;
    if (pair == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    pair->proxy = proxy;
    pair->client = fd;
    if (!upgrade(pair) || !make_events(pair)) {
        end_pair(pair);
        return;
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    pair->next = proxy->pairs;
    proxy->pairs = pair;
}

/* ---- the loop ---- */

static bool serve_all(struct proxy *proxy)
{
    bool has_moved = false;
    for (struct pair **at = &proxy->pairs; *at != NULL;) {
        struct pair *pair = *at;
        has_moved = serve(pair) || has_moved;
        if (pair->is_over) {
            *at = pair->next;
            end_pair(pair);
        } else {
            at = &pair->next;
        }
    }
    return has_moved;
}

/* False: something has arrived meanwhile, or the channel has closed. Where the server's end has
 * been noticed already, only the client is waited for. */
static bool may_sleep_beside(struct pair *pair)
{
    if (pair->server_ended || vellum_channel_sleep(pair->channel))
        return true;
    pair->server_ended = !vellum_channel_poll(pair->channel);
    return false;
}

static bool may_sleep(struct proxy *proxy)
{
    bool may = true;
    for (struct pair *pair = proxy->pairs; pair != NULL; pair = pair->next)
        may = may_sleep_beside(pair) && may;
    return may;
}

static void run(struct proxy *proxy)
{
    for (unsigned quiet = 0;;) {
        quiet = serve_all(proxy) ? 0 : quiet + 1;
        bool sleeps = quiet > SPIN_ROUNDS && may_sleep(proxy);
        event_base_loop(proxy->base, EVLOOP_ONCE | (sleeps ? 0 : EVLOOP_NONBLOCK));
    }
}

/* ---- starting ---- */

static int listen_tcp(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* our password serves only local clients */
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 128) == 0)
        return fd;
    return -1;
}

static int listen_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    unlink(path);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(fd, 128) == 0)
        return fd;
    return -1;
}

static const char USAGE[] =
    "usage: vellum-rdma-proxy --listen PORT|/PATH [OPTION...]\n"
    "\n"
    "Carries the connections of any client of the Redis protocol to a Vellum server by RDMA.\n"
    "\n"
    "  --listen PORT      of this machine alone, where clients connect to\n"
    "  --listen /PATH     or a Unix socket, which is made\n"
    "  --server HOST      the server's name or address (127.0.0.1)\n"
    "  --port PORT        its port (6379)\n"
    "  --user NAME        to log in as; a password is taken from the environment, "
    "VELLUM_PASSWORD\n"
    "  --device NAME      of RDMA, at this end (the one with the connection's address)\n"
    "  --mode send|write  how frames travel (send)\n"
    "  -h, --help; -v, --version\n";

static bool refuse(const char *option, const char *value)
{
    fprintf(stderr, "vellum-rdma-proxy: %s cannot be '%s'; see --help\n", option, value);
    return false;
}

/* 0: the text is not a port. */
static int port_of(const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && number < 65536 ? (int)number : 0;
}

static bool take_option(struct proxy *proxy, int option, const char *value)
{
    switch (option) {
    case 'l':
        proxy->where = value;
        return value[0] == '/' || port_of(value) != 0 || refuse("--listen", value);
    case 's':
        proxy->host = value;
        return true;
    case 'p':
        proxy->port = port_of(value);
        return proxy->port != 0 || refuse("--port", value);
    case 'u':
        proxy->user = value;
        return true;
    case 'd':
        proxy->device = value;
        return true;
    case 'm':
        return rdma_mode_read(&proxy->mode, value, strlen(value)) || refuse("--mode", value);
    default:
        fputs("Try vellum-rdma-proxy --help.\n", stderr);
        return false;
    }
}

/* False: the program must exit with *status. */
static bool read_options(struct proxy *proxy, int argc, char **argv, int *status)
{
    static const struct option options[] = {{"listen", required_argument, NULL, 'l'},
                                            {"server", required_argument, NULL, 's'},
                                            {"port", required_argument, NULL, 'p'},
                                            {"user", required_argument, NULL, 'u'},
                                            {"device", required_argument, NULL, 'd'},
                                            {"mode", required_argument, NULL, 'm'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'v'},
                                            {NULL, 0, NULL, 0}};
    int option;
    *status = EXIT_SUCCESS;
    while ((option = getopt_long(argc, argv, "hv", options, NULL)) != -1) {
        if (option == 'h' || option == 'v') {
            fputs(option == 'h' ? USAGE : "vellum-rdma-proxy " VELLUM_VERSION "\n", stdout);
            return false;
        }
        if (take_option(proxy, option, optarg))
            continue;
        *status = EXIT_FAILURE;
        return false;
    }
    if (proxy->where != NULL && optind == argc)
        return true;
    *status = EXIT_FAILURE;
    if (optind < argc)
        fprintf(stderr, "vellum-rdma-proxy: '%s' is no option; see --help\n", argv[optind]);
    else
        fputs("vellum-rdma-proxy: --listen is missing; see --help\n", stderr);
    return false;
}

/* Each connection takes several. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit); /* else with what there is */
}

static bool await_arrivals(struct proxy *proxy, int fd)
{
    proxy->base = event_base_new();
    if (fd < 0 || proxy->base == NULL)
        return false;
    proxy->arrivals = event_new(proxy->base, fd, EV_READ | EV_PERSIST, on_connection, proxy);
    proxy->retry = evtimer_new(proxy->base, on_retry, proxy);
    return proxy->arrivals != NULL && proxy->retry != NULL && event_add(proxy->arrivals, NULL) == 0;
}

int main(int argc, char **argv)
{
    struct proxy proxy = {.host = "127.0.0.1", .port = 6379, .password = getenv("VELLUM_PASSWORD")};
    int status;
    if (!read_options(&proxy, argc, argv, &status))
        return status;
    const char *where = proxy.where;
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    int fd = where[0] == '/' ? listen_unix(where) : listen_tcp(port_of(where));
    if (!await_arrivals(&proxy, fd)) {
        fprintf(stderr, "vellum-rdma-proxy: cannot listen on %s: %s\n", where, strerror(errno));
        return EXIT_FAILURE;
    }
    run(&proxy);
}
