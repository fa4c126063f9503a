#include "server/core/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/config/log.h"

#define RESERVED_DESCRIPTORS 32 /* listening sockets, store files besides the slabs, log */
#define WORKER_DESCRIPTORS 16
#define PIDFILE_DEFAULT "/var/run/vellum.pid"

uint64_t process_own_descriptors(const struct config *config)
{
    uint64_t workers = (uint64_t)config_number(config, CONFIG_WORKERS);
    uint64_t slabs = (uint64_t)config_number(config, CONFIG_PARTITIONS); /* a file each */
    return RESERVED_DESCRIPTORS + workers * WORKER_DESCRIPTORS + slabs;
}

bool process_raise_descriptors(struct server *server)
{
    struct config *config = &server->config;
    rlim_t clients = (rlim_t)config_number(config, CONFIG_MAXCLIENTS);
    rlim_t own = process_own_descriptors(config);
    rlim_t wanted = clients + own;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return true;
    rlim_t had = limit.rlim_cur;
    struct rlimit raised = {.rlim_cur = wanted, .rlim_max = limit.rlim_max};
    if (raised.rlim_max < wanted)
        raised.rlim_max = wanted; /* permitted to root alone */
    if (setrlimit(RLIMIT_NOFILE, &raised) != 0) {
        raised.rlim_max = limit.rlim_max;
        raised.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &raised) != 0)
            raised.rlim_cur = had;
    }
    if (raised.rlim_cur >= wanted) {
        log_line(&server->log, CONFIG_LOG_NOTICE,
                 "Increased maximum number of open files to %llu (it was originally set to %llu).",
                 (unsigned long long)wanted, (unsigned long long)had);
        return true;
    }
    if (raised.rlim_cur <= own) {
        log_line(&server->log, CONFIG_LOG_WARNING,
                 "The limit of %llu open files leaves none for clients: raise it (ulimit -n)",
                 (unsigned long long)raised.rlim_cur);
        return false;
    }
    rlim_t granted = raised.rlim_cur - own;
    atomic_store_explicit(&config->numbers[CONFIG_MAXCLIENTS], (int64_t)granted,
                          memory_order_relaxed);
    log_line(&server->log, CONFIG_LOG_WARNING,
             "maxclients lowered from %llu to %llu: the system allows %llu open files (ulimit -n)",
             (unsigned long long)clients, (unsigned long long)granted,
             (unsigned long long)raised.rlim_cur);
    return true;
}

bool process_is_daemon(const struct config *config)
{
    return config_number(config, CONFIG_DAEMONIZE) != 0 &&
           strcmp(process_supervised(config), "no") == 0;
}

bool process_daemonize(void)
{
    pid_t child = fork();
    if (child < 0)
        return false;
    if (child > 0)
        _exit(0);
    setsid();
    int null = open("/dev/null", O_RDWR);
    if (null < 0)
        return true;
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    if (null > STDERR_FILENO)
        close(null);
    return true;
}

static uint64_t read_number_file(const char *path, uint64_t otherwise)
{
    uint64_t number = otherwise;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return otherwise;
    if (fscanf(file, "%" SCNu64, &number) != 1) /* "max" is no number */
        number = otherwise;
    fclose(file);
    return number;
}

/* False: no pidfile is to be written. */
static bool pidfile_name(struct server *server, char *name, size_t size)
{
    if (config_text(&server->config, CONFIG_PIDFILE, name, size) > 0)
        return true;
    snprintf(name, size, "%s", PIDFILE_DEFAULT);
    return process_is_daemon(&server->config);
}

void process_write_pidfile(struct server *server)
{
    char name[4096];
    if (!pidfile_name(server, name, sizeof name))
        return;
    FILE *file = fopen(name, "w");
    if (file == NULL) {
        log_line(&server->log, CONFIG_LOG_WARNING, "Failed to write PID file %s: %s", name,
                 strerror(errno));
        return;
    }
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
}

/* Another server may have written it since. */
void process_remove_pidfile(struct server *server)
{
    char name[4096];
    if (pidfile_name(server, name, sizeof name) && read_number_file(name, 0) == (uint64_t)getpid())
        unlink(name);
}

/* ---- service managers ---- */

const char *process_supervised(const struct config *config)
{
    int64_t mode = config_number(config, CONFIG_SUPERVISED);
    bool is_auto = mode == CONFIG_SUPERVISED_AUTO;
    if ((is_auto || mode == CONFIG_SUPERVISED_UPSTART) && getenv("UPSTART_JOB") != NULL)
        return "upstart";
    if ((is_auto || mode == CONFIG_SUPERVISED_SYSTEMD) && getenv("NOTIFY_SOCKET") != NULL)
        return "systemd";
    return "no";
}

/* As sd_notify(3) does. */
static void tell_systemd(const struct log *log, const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = strlen(path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    errno = ENAMETOOLONG;
    int fd = -1;
    ssize_t sent = -1;
    if (length <= sizeof address.sun_path) {
        memcpy(address.sun_path, path, length);
        if (path[0] == '@') /* an abstract socket's name begins with a zero byte */
            address.sun_path[0] = '\0';
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    }
    if (fd >= 0)
        sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, size);
    if (sent < 0)
        log_line(log, CONFIG_LOG_WARNING, "Cannot notify systemd at %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
}

void process_tell_ready(struct server *server)
{
    int64_t mode = config_number(&server->config, CONFIG_SUPERVISED);
    const char *by = process_supervised(&server->config);
    if (strcmp(by, "systemd") == 0)
        tell_systemd(&server->log, "READY=1\nSTATUS=Ready to accept connections\n");
    else if (strcmp(by, "upstart") == 0)
        raise(SIGSTOP); /* which upstart waits for; it lets the process continue */
    else if (mode == CONFIG_SUPERVISED_SYSTEMD)
        log_line(&server->log, CONFIG_LOG_WARNING,
                 "systemd supervision requested, but NOTIFY_SOCKET not found");
    else if (mode == CONFIG_SUPERVISED_UPSTART)
        log_line(&server->log, CONFIG_LOG_WARNING,
                 "upstart supervision requested, but UPSTART_JOB not found");
}

void process_tell_stopping(struct server *server)
{
    if (strcmp(process_supervised(&server->config), "systemd") == 0)
        tell_systemd(&server->log, "STOPPING=1\nSTATUS=Shutting down\n");
}

/* ---- oom_score_adj ---- */

#define OOM_SCORE_FILE "/proc/self/oom_score_adj"

static bool read_oom_score(const struct log *log, int *score)
{
    char text[32] = "";
    int fd = open(OOM_SCORE_FILE, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (len < 0)
        log_line(log, CONFIG_LOG_WARNING, "Unable to read oom_score_adj: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    *score = atoi(text);
    return len >= 0;
}

static bool write_oom_score(const struct log *log, long score)
{
    char text[32];
    int len = snprintf(text, sizeof text, "%ld\n", score);
    int fd = open(OOM_SCORE_FILE, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, (size_t)len) == len;
    if (!good)
        log_line(log, CONFIG_LOG_WARNING, "Unable to write oom_score_adj: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return good;
}

bool process_adjust_oom_score(struct server *server, int64_t mode, const char *values)
{
    const struct log *log = &server->log;
    if (mode == CONFIG_OOM_NO) {
        if (!server->oom_score_is_ours)
            return true;
        server->oom_score_is_ours = false;
        return write_oom_score(log, server->oom_score_before);
    }
    if (!server->oom_score_is_ours && !read_oom_score(log, &server->oom_score_before))
        return false;
    server->oom_score_is_ours = true;
    long score = strtol(values, NULL, 10);
    if (mode == CONFIG_OOM_RELATIVE)
        score += server->oom_score_before;
    return write_oom_score(log, score > 1000 ? 1000 : score < -1000 ? -1000 : score);
}

/* ---- signals ---- */

static void ending_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
}

/* As in Redis, only SIGINT is final: `timeout` and service managers may send SIGTERM twice, and
 * that must not lose writes that everysec has acknowledged. */
static void *wait_for_signals(void *arg)
{
    struct server *server = arg;
    sigset_t set;
    ending_signals(&set);
    for (bool is_stopping = false;; is_stopping = true) {
        int number = 0;
        if (sigwait(&set, &number) != 0)
            continue;
        const char *name = number == SIGTERM ? "SIGTERM" : "SIGINT";
        if (is_stopping && number == SIGINT) {
            log_line(&server->log, CONFIG_LOG_WARNING, "%s again: exiting at once", name);
            _exit(1);
        }
        log_line(&server->log, CONFIG_LOG_WARNING, "%s received%s: stopping in order", name,
                 is_stopping ? " again" : "");
        server_stop(server);
        if (atomic_exchange(&server->is_opening, false)) {
            log_line(&server->log, CONFIG_LOG_WARNING, "Ending at once: the store is not open yet");
            server->leave_nothing(server);
            _exit(0);
        }
    }
    return NULL;
}

bool process_catch_signals(struct server *server, pthread_t *thread)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* exceeding the file size limit becomes an error like others */
    sigset_t set;
    ending_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return pthread_create(thread, NULL, wait_for_signals, server) == 0;
}

void process_release_signals(pthread_t thread)
{
    pthread_cancel(thread);
    pthread_join(thread, NULL);
}

/* ---- memory ---- */

uint64_t process_resident(uint64_t *shared)
{
    *shared = 0;
#ifdef VELLUM_SANITIZED
    return 0;
#else
    char text[64] = "";
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    unsigned long long size, pages, of_files;
    if (length <= 0 || sscanf(text, "%llu %llu %llu", &size, &pages, &of_files) != 3)
        return 0;
    *shared = of_files * (uint64_t)sysconf(_SC_PAGESIZE);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
#endif
}

uint64_t process_memory(void)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t group = read_number_file("/sys/fs/cgroup/memory.max", machine);
    uint64_t old_group = read_number_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", machine);
    if (group < machine)
        machine = group;
    return old_group < machine ? old_group : machine;
}
