/*
 * CONFIG REWRITE: writes the configuration file again with the present values. Lines of directives
 * are replaced in place and everything else is kept. Values that differ from their defaults and
 * have no line yet are appended after a marker. The new file replaces the old one by rename(), so
 * one of the two always exists in full.
 */
#include "server/config/config_rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/config/config_words.h"

#define MARKER "# Written by CONFIG REWRITE"

struct rewrite {
    struct config *config;
    FILE *to;
    bool seen[CONFIG_ROW_MAX];
    bool marked;
    bool failed; /* out of memory */
};

/* The directive set by a line, or directive_count if it sets none. */
static size_t row_of_line(const char *line)
{
    struct config_words words;
    if (line[strspn(line, " \t")] == '#' || !config_split(line, &words))
        return directive_count;
    size_t row = words.count == 0 ? directive_count : directive_find(words.words[0]);
    config_words_free(&words);
    return row;
}

/* One line per client class, as is usual in configuration files. */
static void write_limits(struct rewrite *rewrite, const char *name, char *value)
{
    char *rest = value;
    for (int i = 0; i < CONFIG_CLIENT_CLASSES; i++) {
        char *fields[4];
        for (int k = 0; k < 4; k++)
            fields[k] = strtok_r(k == 0 && i == 0 ? value : NULL, " ", &rest);
        fprintf(rewrite->to, "%s %s %s %s %s\n", name, fields[0], fields[1], fields[2], fields[3]);
    }
}

/* False: out of memory. */
static bool write_words(struct rewrite *rewrite, const char *name, char *value)
{
    fputs(name, rewrite->to);
    char *rest = NULL;
    for (char *word = strtok_r(value, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        char *quoted = config_quote(word);
        if (quoted == NULL)
            return false;
        fprintf(rewrite->to, " %s", quoted);
        free(quoted);
    }
    fputs("\n", rewrite->to);
    return true;
}

static bool write_text(struct rewrite *rewrite, const char *name, const char *value)
{
    char *quoted = config_quote(value);
    if (quoted == NULL)
        return false;
    fprintf(rewrite->to, "%s %s\n", name, quoted);
    free(quoted);
    return true;
}

static void write_row(struct rewrite *rewrite, size_t row)
{
    const struct directive *directive = &directive_table[row];
    char *value = config_show(rewrite->config, row);
    bool has_words = directive->type == DIRECTIVE_WORDS || directive->type == DIRECTIVE_SAVE;
    bool good = value != NULL;
    if (value == NULL)
        ;
    else if (directive->type == DIRECTIVE_LIMITS)
        write_limits(rewrite, directive->name, value);
    else if (directive->type == DIRECTIVE_WORDS && value[0] == '\0' && directive->min > 0)
        ; /* unset: it is not written */
    else if (has_words && value[0] != '\0')
        good = write_words(rewrite, directive->name, value);
    else
        good = write_text(rewrite, directive->name, value);
    rewrite->failed = rewrite->failed || !good;
    free(value);
}

static bool is_initial(struct rewrite *rewrite, const struct config *initial, size_t row)
{
    char *now = config_show(rewrite->config, row);
    char *before = config_show((struct config *)initial, row);
    bool same = now != NULL && before != NULL && strcmp(now, before) == 0;
    if (now == NULL || before == NULL)
        rewrite->failed = true;
    free(now);
    free(before);
    return same;
}

static void rewrite_line(struct rewrite *rewrite, const char *line)
{
    size_t row = row_of_line(line);
    if (row == directive_count) {
        fprintf(rewrite->to, "%s\n", line);
        rewrite->marked = rewrite->marked || strcmp(line, MARKER) == 0;
    } else if (!rewrite->seen[row]) {
        rewrite->seen[row] = true;
        write_row(rewrite, row);
    }
}

static void rewrite_lines(struct rewrite *rewrite, FILE *from)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    while ((len = getline(&line, &size, from)) >= 0) {
        while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
            line[--len] = '\0';
        rewrite_line(rewrite, line);
    }
    free(line);
}

/* `dir` was made absolute at the start and so differs from its default. It always gets a line, and
 * the file means the same wherever the server is started. */
static bool add_missing(struct rewrite *rewrite)
{
    struct config *initial = malloc(sizeof *initial);
    if (initial == NULL || !config_init(initial)) {
        free(initial);
        return false;
    }
    for (size_t row = 0; row < directive_count; row++) {
        if (rewrite->seen[row] || is_initial(rewrite, initial, row))
            continue;
        if (!rewrite->marked)
            fprintf(rewrite->to, "%s\n", MARKER);
        rewrite->marked = true;
        write_row(rewrite, row);
    }
    config_free(initial);
    free(initial);
    return true;
}

static bool sync_parent(const char *path)
{
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash != NULL)
        slash[slash == parent] = '\0';
    int fd = open(slash != NULL ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool good = fsync(fd) == 0;
    close(fd);
    return good;
}

/* `path` is a template for mkostemp(), so that concurrent rewrites use different files. */
static FILE *open_copy(char *path, mode_t mode)
{
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return NULL;
    FILE *file = fchmod(fd, mode) == 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) {
        close(fd);
        unlink(path);
    }
    return file;
}

static bool write_copy(struct config *config, FILE *from, FILE *to)
{
    struct rewrite rewrite = {.config = config, .to = to};
    if (from != NULL)
        rewrite_lines(&rewrite, from);
    if ((from != NULL && ferror(from)) || !add_missing(&rewrite) || rewrite.failed)
        return false;
    return fflush(to) == 0 && !ferror(to) && fsync(fileno(to)) == 0;
}

/* *from is NULL, and `mode` that of a new file, if the file is gone. False: see errno. */
static bool open_original(const struct config *config, FILE **from, mode_t *mode)
{
    struct stat stat;
    *mode = 0644 & ~config->umask;
    *from = fopen(config->file, "re");
    if (*from == NULL)
        return errno == ENOENT;
    if (fstat(fileno(*from), &stat) != 0)
        return false;
    *mode = stat.st_mode & 0777;
    return true;
}

bool config_rewrite(struct config *config, char error[DIRECTIVE_ERROR_MAX])
{
    char path[PATH_MAX];
    mode_t mode;
    FILE *from = NULL, *to = NULL;
    bool good = false;
    errno = 0;
    int len = snprintf(path, sizeof path, "%s.XXXXXX", config->file);
    if (len >= (int)sizeof path)
        errno = ENAMETOOLONG;
    else if (open_original(config, &from, &mode))
        to = open_copy(path, mode);
    if (to != NULL) {
        errno = 0;
        good = write_copy(config, from, to) && rename(path, config->file) == 0 &&
               sync_parent(config->file);
    }
    if (!good)
        snprintf(error, DIRECTIVE_ERROR_MAX, "%s", errno != 0 ? strerror(errno) : "out of memory");
    if (!good && to != NULL)
        unlink(path);
    if (from != NULL)
        fclose(from);
    if (to != NULL)
        fclose(to);
    return good;
}
