/*
 * Listening sockets and the loop that accepts from them, on the main thread.
 *
 * Invariants:
 * 1. Each socket posted to a worker is counted in server->connected_clients and in the worker's
 *    connection_count; the end of the connection, or a failure to open it, decrements both.
 * 2. The Unix socket has its final mode from the moment it is reachable: the umask sets it.
 * 3. Every socket listens from the moment it is kept: what is taken is known before recovery, and
 *    clients that connect during that wait in the backlog.
 * 4. The Unix socket's name is not taken from another server: neither from one that listens there,
 *    nor, at the end, from one that has taken it since.
 * 5. port and addresses are those of the TCP sockets; or those last bound, if binding them again
 *    has failed and there are none.
 */
#include "server/loop/listener.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "server/loop/conn_turn.h"
#include "server/config/log.h"
#include "server/net/transport_socket.h"
#include "server/core/worker.h"

#define SOCKETS_MAX 33 /* 16 addresses, 16 to move to, and the Unix socket */
#define ACCEPTS_PER_EVENT 256
#define BIND_TEXT_MAX 4096
#define LEAVING_NSEC (2 * 1000 * 1000)
#define LEAVING_MOMENTS 10
#define LEAVING_PAUSE_MSEC 100

struct listening {
    struct listener *listener;
    int fd;
    bool is_unix;
    struct event *event;
};

/* A worker's request, which it waits for. */
struct move {
    int port;
    const char *addresses;
    bool is_done, is_good;
};

struct listener {
    struct server *server;
    struct event_base *base;
    struct event *stopped, *resume, *asked;
    struct listening *sockets[SOCKETS_MAX];
    int count;
    int64_t next_wait_ms; /* of wait_for_leavers: not before */
    int port;
    char addresses[BIND_TEXT_MAX];
    int ask_fd;           /* eventfd: `wanted` is set */
    pthread_mutex_t lock; /* guards the following */
    pthread_cond_t answered;
    struct move *wanted;
    bool is_over; /* no request will be answered any more */
    char unix_path[sizeof((struct sockaddr_un *)NULL)->sun_path]; /* empty: none is bound */
    dev_t unix_device; /* this and the next: the file that unix_path was given to */
    ino_t unix_inode;
};

/* An accepted socket on its way to its worker. */
struct arrival {
    struct worker_message message;
    int fd;
    bool is_unix;
};

/* ---- opening ---- */

/* Takes ownership of the socket, also on failure (out of memory). */
static bool keep_socket(struct listener *listener, int fd, bool is_unix)
{
    struct listening *listening = malloc(sizeof *listening);
    if (listening == NULL) {
        close(fd);
        return false;
    }
    *listening = (struct listening){.listener = listener, .fd = fd, .is_unix = is_unix};
    listener->sockets[listener->count++] = listening;
    return true;
}

static void drop_socket(struct listening *listening)
{
    if (listening->event != NULL)
        event_free(listening->event);
    close(listening->fd);
    free(listening);
}

/* Returns the socket, or -1 with *step naming the call that failed, and errno. */
static int bind_address(const struct addrinfo *address, const char **step)
{
    int yes = 1;
    *step = "socket";
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    *step = "setsockopt";
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        (address->ai_family != AF_INET6 ||
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) == 0)) {
        *step = "bind";
        if (bind(fd, address->ai_addr, address->ai_addrlen) == 0)
            return fd;
    }
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/* The address does not exist: not an error if it is marked as optional. */
static bool is_missing(int reason)
{
    return reason == EADDRNOTAVAIL || reason == EAFNOSUPPORT || reason == EPROTONOSUPPORT ||
           reason == EPFNOSUPPORT || reason == ESOCKTNOSUPPORT || reason == ENOPROTOOPT;
}

/* One word of `bind`: "*" and "::*" are all addresses; the prefix "-" makes it optional. A name
 * that does not resolve is an error in any case. */
static bool bind_word(struct listener *listener, const char *word, int port)
{
    const struct log *log = &listener->server->log;
    bool may_be_missing = word[0] == '-';
    const char *name = may_be_missing ? word + 1 : word;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    hints.ai_family = strchr(name, ':') != NULL ? AF_INET6 : AF_INET;
    bool is_any = strcmp(name, "*") == 0 || strcmp(name, "::*") == 0;
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    struct addrinfo *found = NULL;
    int problem = getaddrinfo(is_any ? NULL : name, service, &hints, &found);
    if (problem != 0) {
        log_line(log, CONFIG_LOG_WARNING, "Could not create server TCP listening socket %s:%d: %s",
                 name, port, gai_strerror(problem));
        return false;
    }
    const char *step;
    int fd = bind_address(found, &step);
    int reason = errno;
    freeaddrinfo(found);
    if (fd >= 0)
        return keep_socket(listener, fd, false);
    if (may_be_missing && is_missing(reason))
        return true;
    log_line(log, CONFIG_LOG_WARNING, "Could not create server TCP listening socket %s:%d: %s: %s",
             name, port, step, strerror(reason));
    return false;
}

static int backlog_of(const struct server *server)
{
    return (int)config_number(&server->config, CONFIG_TCP_BACKLOG);
}

/* Clients may connect, and wait: a port that another server has taken is noticed at once. */
static bool listen_from(const struct listener *listener, int first, const char *where, int port)
{
    const struct server *server = listener->server;
    for (int i = first; i < listener->count; i++) {
        if (listen(listener->sockets[i]->fd, backlog_of(server)) == 0)
            continue;
        log_line(&server->log, CONFIG_LOG_WARNING,
                 "Could not create server TCP listening socket %s:%d: listen: %s", where, port,
                 strerror(errno));
        return false;
    }
    return true;
}

static bool bind_tcp(struct listener *listener, int port, const char *addresses)
{
    struct server *server = listener->server;
    if (port == 0)
        return true;
    char text[BIND_TEXT_MAX], *rest = NULL;
    snprintf(text, sizeof text, "%s", addresses);
    bool is_bound = true;
    for (char *word = strtok_r(text, " ", &rest); word != NULL && is_bound;
         word = strtok_r(NULL, " ", &rest)) {
        if (listener->count == SOCKETS_MAX) {
            log_line(&server->log, CONFIG_LOG_WARNING, "Too many addresses to bind");
            return false;
        }
        int before = listener->count;
        const char *name = word[0] == '-' ? word + 1 : word;
        is_bound = bind_word(listener, word, port) && listen_from(listener, before, name, port);
    }
    if (!is_bound)
        log_line(&server->log, CONFIG_LOG_WARNING, "Failed listening on port %d (TCP), aborting.",
                 port);
    return is_bound;
}

/* A socket without a listener was left over by a server that was killed: it is removed. False: the
 * name is that of another file, or of a socket in use; see errno. */
static bool free_unix_name(const struct sockaddr_un *address)
{
    struct stat status;
    if (lstat(address->sun_path, &status) != 0)
        return errno == ENOENT;
    errno = EADDRINUSE;
    if (!S_ISSOCK(status.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool is_left_over = connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
                        errno == ECONNREFUSED;
    close(fd);
    if (is_left_over)
        return unlink(address->sun_path) == 0;
    errno = EADDRINUSE;
    return false;
}

/* Returns the socket, or -1 with errno. */
static int open_unix_name(const struct sockaddr_un *address, mode_t mode, int backlog)
{
    if (!free_unix_name(address))
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    mode_t before = umask(0);
    umask(mode != 0 ? ~mode & 0777 : before);
    bool is_open = bind(fd, (const struct sockaddr *)address, sizeof *address) == 0 &&
                   listen(fd, backlog) == 0;
    int reason = errno;
    umask(before);
    if (is_open)
        return fd;
    close(fd);
    errno = reason;
    return -1;
}

static void note_unix_name(struct listener *listener, const char *path)
{
    struct stat status;
    if (lstat(path, &status) != 0)
        return;
    snprintf(listener->unix_path, sizeof listener->unix_path, "%s", path);
    listener->unix_device = status.st_dev;
    listener->unix_inode = status.st_ino;
}

static bool bind_unix(struct listener *listener)
{
    struct server *server = listener->server;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len =
        config_text(&server->config, CONFIG_UNIXSOCKET, address.sun_path, sizeof address.sun_path);
    if (len == 0)
        return true;
    const char *problem = "path too long";
    if (len < sizeof address.sun_path) {
        int fd =
            open_unix_name(&address, (mode_t)config_number(&server->config, CONFIG_UNIXSOCKETPERM),
                           backlog_of(server));
        if (fd >= 0) {
            note_unix_name(listener, address.sun_path);
            return keep_socket(listener, fd, true);
        }
        problem = strerror(errno);
    }
    log_line(&server->log, CONFIG_LOG_WARNING, "Failed opening Unix socket: bind: %s", problem);
    return false;
}

/* ---- accepting ---- */

static void set_keepalive(int fd, int interval)
{
    int yes = 1, probes = 3, gap = interval / 3 > 0 ? interval / 3 : 1;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &gap, sizeof gap);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

/* Without these options a connection works, only less well: failures are ignored. */
static void set_tcp_options(const struct server *server, int fd)
{
    int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    int interval = (int)config_number(&server->config, CONFIG_TCP_KEEPALIVE);
    if (interval > 0)
        set_keepalive(fd, interval);
}

static bool is_local(const struct sockaddr_storage *peer)
{
    if (peer->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)peer;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)peer;
    return peer->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

static bool is_full(const struct server *server)
{
    uint32_t clients = atomic_load_explicit(&server->connected_clients, memory_order_relaxed);
    return clients >= (uint64_t)config_number(&server->config, CONFIG_MAXCLIENTS);
}

static int64_t clock_msec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A worker may not yet have counted out a client that has just disconnected when the next one
 * arrives: the workers get a few moments, once for all that arrive together. If nobody has left in
 * these, the next that arrive are refused at once for a while: this thread has more to do. */
static void wait_for_leavers(struct listener *listener)
{
    const struct timespec moment = {.tv_nsec = LEAVING_NSEC};
    if (clock_msec() < listener->next_wait_ms)
        return;
    for (int i = 0; i < LEAVING_MOMENTS && is_full(listener->server); i++)
        nanosleep(&moment, NULL);
    if (is_full(listener->server))
        listener->next_wait_ms = clock_msec() + LEAVING_PAUSE_MSEC;
}

/* The error reply for a client that may not connect; NULL: it may. */
static const char *refusal_of(struct server *server, const struct sockaddr_storage *peer,
                              bool is_unix)
{
    const struct config *config = &server->config;
    if (is_full(server))
        return "-ERR max number of clients reached\r\n";
    if (config_number(config, CONFIG_PROTECTED_MODE) != 0 && !config_has_password(config) &&
        !is_unix && !is_local(peer))
        return "-DENIED Vellum is in protected mode: no password is set, so that only clients of "
               "this machine are served. Set a password (requirepass), or, if nobody but trusted "
               "clients can reach this port, turn protected mode off: CONFIG SET protected-mode no "
               "from this machine, protected-mode no in the configuration file, or "
               "--protected-mode no at the start.\r\n";
    return NULL;
}

/* The worker with the fewest connections; one that a busy script occupies is the last choice. */
static struct worker *least_loaded(struct server *server)
{
    struct worker *best = server->workers[0];
    uint32_t best_count = UINT32_MAX;
    for (uint32_t i = 0; i < server->worker_count; i++) {
        struct worker *worker = server->workers[i];
        uint32_t count = atomic_load_explicit(&worker->connection_count, memory_order_relaxed);
        if (atomic_load_explicit(&worker->script.is_busy, memory_order_relaxed) &&
            count < UINT32_MAX / 2)
            count += UINT32_MAX / 2;
        if (count < best_count) {
            best = worker;
            best_count = count;
        }
    }
    return best;
}

/* Runs on the worker's thread. */
static void arrive(struct worker *worker, struct worker_message *message)
{
    struct arrival *arrival = (struct arrival *)message;
    struct transport *transport = transport_socket(worker->base, arrival->fd, arrival->is_unix);
    free(arrival);
    if (transport != NULL) {
        conn_open(worker, transport);
        return;
    }
    atomic_fetch_sub_explicit(&worker->connection_count, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&worker->server->connected_clients, 1, memory_order_relaxed);
}

static void welcome(struct server *server, int fd, const struct sockaddr_storage *peer,
                    bool is_unix)
{
    const char *refusal = refusal_of(server, peer, is_unix);
    struct arrival *arrival = refusal == NULL ? malloc(sizeof *arrival) : NULL;
    if (arrival == NULL) {
        ssize_t written = refusal != NULL ? write(fd, refusal, strlen(refusal)) : 0;
        (void)written; /* a refused client may have disconnected already */
        atomic_fetch_add_explicit(&server->rejected_connections, 1, memory_order_relaxed);
        close(fd);
        return;
    }
    if (!is_unix)
        set_tcp_options(server, fd);
    struct worker *worker = least_loaded(server);
    *arrival = (struct arrival){
        .message = {.visit = arrive, .is_urgent = true}, .fd = fd, .is_unix = is_unix};
    atomic_fetch_add_explicit(&server->total_connections, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&server->connected_clients, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&worker->connection_count, 1, memory_order_relaxed);
    worker_post(worker, &arrival->message);
}

/* No descriptors are left: clients wait in the backlog, and this thread does not spin. */
static void pause_accepting(struct listener *listener)
{
    const struct timeval pause = {.tv_usec = 100 * 1000};
    for (int i = 0; i < listener->count; i++)
        event_del(listener->sockets[i]->event);
    event_add(listener->resume, &pause);
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct listener *listener = arg;
    for (int i = 0; i < listener->count; i++)
        event_add(listener->sockets[i]->event, NULL);
}

static void on_connection(evutil_socket_t listening_fd, short what, void *arg)
{
    (void)what;
    struct listening *listening = arg;
    struct listener *listener = listening->listener;
    bool has_waited = false;
    for (int i = 0; i < ACCEPTS_PER_EVENT; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t len = sizeof peer;
        int fd = accept4((int)listening_fd, (struct sockaddr *)&peer, &len,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            if (!has_waited && is_full(listener->server)) {
                wait_for_leavers(listener);
                has_waited = true;
            }
            welcome(listener->server, fd, &peer, listening->is_unix);
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            log_line(&listener->server->log, CONFIG_LOG_WARNING, "Accepting client connection: %s",
                     strerror(errno));
            pause_accepting(listener);
            return;
        }
    }
}

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct listener *listener = arg;
    event_base_loopbreak(listener->base);
}

/* ---- moving ---- */

static bool watch_one(struct listening *listening)
{
    listening->event = event_new(listening->listener->base, listening->fd, EV_READ | EV_PERSIST,
                                 on_connection, listening);
    return listening->event != NULL && event_add(listening->event, NULL) == 0;
}

/* Opens all of them, or none. */
static bool open_tcp(struct listener *listener, int port, const char *addresses)
{
    int before = listener->count;
    bool good = bind_tcp(listener, port, addresses);
    for (int i = before; i < listener->count && good; i++)
        good = watch_one(listener->sockets[i]);
    while (!good && listener->count > before)
        drop_socket(listener->sockets[--listener->count]);
    return good;
}

/* Closes the TCP sockets among the first `end`. */
static void close_tcp(struct listener *listener, int end)
{
    int kept = 0;
    for (int i = 0; i < listener->count; i++) {
        struct listening *listening = listener->sockets[i];
        if (i < end && !listening->is_unix)
            drop_socket(listening);
        else
            listener->sockets[kept++] = listening;
    }
    listener->count = kept;
}

/* Opens another port before it closes the old one; on the same port it must close first. */
static bool move(struct listener *listener, int port, const char *addresses)
{
    int before = listener->count;
    bool is_same_port = port == listener->port;
    if (is_same_port)
        close_tcp(listener, before);
    bool good = open_tcp(listener, port, addresses);
    if (good && !is_same_port)
        close_tcp(listener, before);
    if (!good && is_same_port && !open_tcp(listener, listener->port, listener->addresses))
        log_line(&listener->server->log, CONFIG_LOG_WARNING,
                 "No client can connect by TCP: the previous addresses cannot be bound again. "
                 "CONFIG SET bind or port to others");
    if (good) {
        listener->port = port;
        snprintf(listener->addresses, sizeof listener->addresses, "%s", addresses);
    }
    return good;
}

static void on_asked(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct listener *listener = arg;
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof count);
    (void)got; /* only resets it */
    pthread_mutex_lock(&listener->lock);
    struct move *wanted = listener->wanted;
    if (wanted != NULL) {
        wanted->is_good = move(listener, wanted->port, wanted->addresses);
        wanted->is_done = true;
        listener->wanted = NULL;
    }
    pthread_cond_broadcast(&listener->answered);
    pthread_mutex_unlock(&listener->lock);
}

bool listener_move(struct listener *listener, int port, const char *addresses)
{
    struct move wanted = {.port = port, .addresses = addresses};
    const uint64_t one = 1;
    pthread_mutex_lock(&listener->lock);
    while (listener->wanted != NULL && !listener->is_over)
        pthread_cond_wait(&listener->answered, &listener->lock);
    if (!listener->is_over) {
        listener->wanted = &wanted;
        ssize_t written = write(listener->ask_fd, &one, sizeof one);
        (void)written; /* the descriptor is readable in any case */
    }
    while (!wanted.is_done && !listener->is_over)
        pthread_cond_wait(&listener->answered, &listener->lock);
    if (listener->wanted == &wanted)
        listener->wanted = NULL;
    pthread_mutex_unlock(&listener->lock);
    return wanted.is_good;
}

/* ---- life cycle ---- */

struct listener *listener_open(struct server *server)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        return NULL;
    listener->server = server;
    pthread_mutex_init(&listener->lock, NULL);
    pthread_cond_init(&listener->answered, NULL);
    listener->base = event_base_new();
    listener->ask_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    listener->port = (int)config_number(&server->config, CONFIG_PORT);
    config_text(&server->config, CONFIG_BIND, listener->addresses, sizeof listener->addresses);
    if (listener->base == NULL || listener->ask_fd < 0 ||
        !bind_tcp(listener, listener->port, listener->addresses) || !bind_unix(listener)) {
        listener_free(listener);
        return NULL;
    }
    if (listener->count == 0)
        log_line(&server->log, CONFIG_LOG_WARNING, "Configured to not listen anywhere, exiting.");
    if (listener->count > 0)
        return listener;
    listener_free(listener);
    return NULL;
}

bool listener_admit(struct listener *listener)
{
    listener->stopped = event_new(listener->base, listener->server->stop_fd, EV_READ | EV_PERSIST,
                                  on_stop, listener);
    listener->resume = event_new(listener->base, -1, 0, on_resume, listener);
    listener->asked =
        event_new(listener->base, listener->ask_fd, EV_READ | EV_PERSIST, on_asked, listener);
    if (listener->stopped == NULL || listener->resume == NULL || listener->asked == NULL ||
        event_add(listener->stopped, NULL) != 0 || event_add(listener->asked, NULL) != 0)
        return false;
    for (int i = 0; i < listener->count; i++)
        if (!watch_one(listener->sockets[i]))
            return false;
    return true;
}

void listener_run(struct listener *listener)
{
    event_base_dispatch(listener->base);
    pthread_mutex_lock(&listener->lock);
    listener->is_over = true;
    pthread_cond_broadcast(&listener->answered);
    pthread_mutex_unlock(&listener->lock);
}

void listener_remove_name(const struct listener *listener)
{
    struct stat status;
    if (listener->unix_path[0] != '\0' && lstat(listener->unix_path, &status) == 0 &&
        status.st_dev == listener->unix_device && status.st_ino == listener->unix_inode)
        unlink(listener->unix_path);
}

void listener_free(struct listener *listener)
{
    for (int i = 0; i < listener->count; i++)
        drop_socket(listener->sockets[i]);
    listener_remove_name(listener);
    if (listener->stopped != NULL)
        event_free(listener->stopped);
    if (listener->resume != NULL)
        event_free(listener->resume);
    if (listener->asked != NULL)
        event_free(listener->asked);
    if (listener->base != NULL)
        event_base_free(listener->base);
    if (listener->ask_fd >= 0)
        close(listener->ask_fd);
    pthread_cond_destroy(&listener->answered);
    pthread_mutex_destroy(&listener->lock);
    free(listener);
}
