#include "server/config/log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void log_init(struct log *log, struct config *config)
{
    log->config = config;
    config_text(config, CONFIG_LOGFILE, log->file, sizeof log->file);
}

static int log_open(const struct log *log)
{
    return open(log->file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

bool log_file_usable(const struct log *log)
{
    if (log->file[0] == '\0')
        return true;
    int fd = log_open(log);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static size_t log_prefix(char *line, size_t size, enum config_loglevel level)
{
    static const char marks[] = ".-*#";
    struct timespec now;
    struct tm parts;
    char date[64];
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &parts);
    strftime(date, sizeof date, "%d %b %Y %H:%M:%S", &parts);
    int len = snprintf(line, size, "%d:M %s.%03ld %c ", (int)getpid(), date, now.tv_nsec / 1000000,
                       marks[level]);
    return len < 0 ? 0 : (size_t)len;
}

/* If the log cannot be written, the line is lost: the server must not stop for that. */
static void log_write(const struct log *log, const char *line, size_t len)
{
    int fd = log->file[0] == '\0' ? STDOUT_FILENO : log_open(log);
    if (fd < 0)
        return;
    ssize_t written = write(fd, line, len);
    (void)written;
    if (fd != STDOUT_FILENO)
        close(fd);
}

void log_line(const struct log *log, enum config_loglevel level, const char *format, ...)
{
    if ((int64_t)level < config_number(log->config, CONFIG_LOGLEVEL))
        return;
    char line[LOG_LINE_MAX];
    size_t len = log_prefix(line, sizeof line, level);
    va_list args;
    va_start(args, format);
    int text_len = vsnprintf(line + len, sizeof line - len - 1, format, args);
    va_end(args);
    if (text_len < 0)
        return;
    len += strlen(line + len);
    line[len++] = '\n';
    log_write(log, line, len);
}
