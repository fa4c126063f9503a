/*
 * Parses the configuration file and the command line. Every error aborts the start: a server that
 * ignores part of its configuration is worse than one that does not run.
 */
#include "server/config/config_file.h"

#include <assert.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/version.h"
#include "server/config/config_directive.h"
#include "server/config/config_words.h"
#include "storage/base/array.h"

#define INCLUDE_DEPTH_MAX 16

struct config_note {
    struct config_note *next;
    char text[];
};

struct reader {
    struct config *config;
    FILE *err;
    int depth;      /* of includes; 0: the command line */
    bool save_seen; /* a `save` line was read: further ones add to it */
    bool reported;  /* the error of an included file was already printed */
    char error[DIRECTIVE_ERROR_MAX];
};

/* ---- notes ---- */

const char *config_note_ignored(struct config *config, size_t row)
{
    const struct directive *directive = &directive_table[row];
    char text[DIRECTIVE_ERROR_MAX];
    if (directive->ignored == NULL)
        return "";
    snprintf(text, sizeof text, "directive '%s' has no effect: %s", directive->name,
             directive->ignored);
    struct config_note **end = &config->notes;
    for (; *end != NULL; end = &(*end)->next)
        if (strcmp((*end)->text, text) == 0)
            return "";
    struct config_note *note = malloc(sizeof *note + strlen(text) + 1);
    if (note == NULL)
        return NULL;
    note->next = NULL;
    *end = note;
    return strcpy(note->text, text);
}

void config_notes_free(struct config *config)
{
    while (config->notes != NULL) {
        struct config_note *note = config->notes;
        config->notes = note->next;
        free(note);
    }
}

void config_each_note(const struct config *config, void (*line)(void *arg, const char *text),
                      void *arg)
{
    for (const struct config_note *note = config->notes; note != NULL; note = note->next)
        line(arg, note->text);
}

/* ---- directives ---- */

static bool fail(struct reader *reader, const char *text)
{
    snprintf(reader->error, sizeof reader->error, "%s", text);
    return false;
}

static char *lower_copy(const char *name)
{
    char *copy = strdup(name);
    for (char *at = copy; copy != NULL && *at != '\0'; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
    return copy;
}

/* Whether the command exists is checked when the command index is built. */
static bool add_rename(struct reader *reader, const char *from, const char *to)
{
    struct config *config = reader->config;
    if (strlen(to) > COMMAND_NAME_MAX)
        return fail(reader, "the new name of the command is too long");
    if (!array_reserve(&config->renames, &config->rename_capacity, config->rename_count + 1,
                       sizeof *config->renames))
        return fail(reader, "out of memory");
    struct command_rename rename = {.from = lower_copy(from), .to = lower_copy(to)};
    config->renames[config->rename_count++] = rename;
    return (rename.from != NULL && rename.to != NULL) || fail(reader, "out of memory");
}

/* `save` lines accumulate, but an empty one clears those before it. */
static bool add_save(struct reader *reader, size_t row, struct config_value *value)
{
    char *before =
        reader->save_seen && value->text[0] != '\0' ? config_show(reader->config, row) : NULL;
    reader->save_seen = true;
    if (before == NULL || before[0] == '\0') {
        free(before);
        return true;
    }
    char *both = NULL;
    int len = asprintf(&both, "%s %s", before, value->text);
    free(before);
    if (len < 0)
        return fail(reader, "out of memory");
    free(value->text);
    value->text = both;
    return true;
}

static bool note_ignored(struct reader *reader, size_t row)
{
    return config_note_ignored(reader->config, row) != NULL || fail(reader, "out of memory");
}

static bool set_directive(struct reader *reader, struct config_words *words)
{
    size_t row = directive_find(words->words[0]);
    if (row == directive_count)
        return fail(reader, "Bad directive or wrong number of arguments");
    const struct directive *directive = &directive_table[row];
    struct config_value value;
    if (directive->type == DIRECTIVE_SAVE && words->count == 1)
        return note_ignored(reader, row); /* matches nothing */
    if (!directive_parse(reader->config, row, words->count - 1, words->words + 1, &value,
                         reader->error))
        return false;
    if (directive->type == DIRECTIVE_SAVE && !add_save(reader, row, &value)) {
        free(value.text);
        return false;
    }
    config_take(reader->config, row, &value);
    return note_ignored(reader, row);
}

static bool read_file(struct reader *reader, const char *path);

static bool include(struct reader *reader, const char *pattern)
{
    if (reader->depth >= INCLUDE_DEPTH_MAX)
        return fail(reader, "files include each other too deeply");
    glob_t found;
    bool is_pattern = strpbrk(pattern, "*?[") != NULL;
    if (!is_pattern)
        return read_file(reader, pattern);
    int result = glob(pattern, 0, NULL, &found);
    if (result == GLOB_NOMATCH)
        return true;
    if (result != 0)
        return fail(reader, "the files to include cannot be listed");
    bool good = true;
    for (size_t i = 0; i < found.gl_pathc && good; i++)
        good = read_file(reader, found.gl_pathv[i]);
    globfree(&found);
    return good;
}

static bool obey(struct reader *reader, struct config_words *words)
{
    const char *name = words->words[0];
    if (words->has_zero)
        return fail(reader, "argument contains a zero byte");
    if (strcasecmp(name, "include") == 0)
        return words->count == 2 ? include(reader, words->words[1])
                                 : fail(reader, "wrong number of arguments");
    if (strcasecmp(name, "rename-command") == 0)
        return words->count == 3 ? add_rename(reader, words->words[1], words->words[2])
                                 : fail(reader, "wrong number of arguments");
    /* Ignoring these would serve other clients, or other commands, than the administrator asked
     * for. */
    if (strcasecmp(name, "user") == 0)
        return fail(reader, "ACL users are not supported; use requirepass");
    if (strcasecmp(name, "loadmodule") == 0)
        return fail(reader, "modules are not supported");
    return set_directive(reader, words);
}

/* ---- files ---- */

static bool report(struct reader *reader, const char *where, const char *what)
{
    if (!reader->reported)
        fprintf(reader->err, "\n*** FATAL CONFIG FILE ERROR (Vellum %s) ***\n%s\n>>> '%s'\n%s\n",
                VELLUM_VERSION, where, what, reader->error);
    reader->reported = true;
    return false;
}

static char *trim(char *line)
{
    static const char spaces[] = " \t\r\n";
    line += strspn(line, spaces);
    size_t len = strlen(line);
    while (len > 0 && strchr(spaces, line[len - 1]) != NULL)
        line[--len] = '\0';
    return line;
}

static bool obey_line(struct reader *reader, const char *line)
{
    struct config_words words;
    if (line[0] == '#' || line[0] == '\0')
        return true;
    if (!config_split(line, &words))
        return fail(reader, "Unbalanced quotes in configuration line");
    bool good = words.count == 0 || obey(reader, &words);
    config_words_free(&words);
    return good;
}

static bool read_lines(struct reader *reader, FILE *file, const char *path)
{
    char *line = NULL, where[PATH_MAX + 64];
    size_t size = 0;
    ssize_t len;
    bool good = true;
    for (int number = 1; good && (len = getline(&line, &size, file)) >= 0; number++) {
        bool binary = memchr(line, '\0', (size_t)len) != NULL;
        char *text = trim(line);
        good = binary ? fail(reader, "zero byte in the line") : obey_line(reader, text);
        if (good)
            continue;
        if (reader->depth == 1)
            snprintf(where, sizeof where, "Reading the configuration file, at line %d", number);
        else
            snprintf(where, sizeof where, "Reading the configuration file, at line %d of %s",
                     number, path);
        report(reader, where, text);
    }
    free(line);
    return good;
}

static bool read_stream(struct reader *reader, FILE *file, const char *path)
{
    reader->depth++;
    bool good = read_lines(reader, file, path);
    reader->depth--;
    if (good && ferror(file)) {
        fprintf(reader->err, "Fatal error, can't read config file '%s'\n", path);
        reader->reported = true;
        good = false;
    }
    return good;
}

static bool read_file(struct reader *reader, const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fprintf(reader->err, "Fatal error, can't open config file '%s': %s\n", path,
                strerror(errno));
        reader->reported = true;
        return false;
    }
    bool good = read_stream(reader, file, path);
    fclose(file);
    return good;
}

/* ---- the command line ---- */

static const char usage[] =
    "Usage: vellum-server [/path/to/file.conf] [--directive value ...] [-]\n"
    "       vellum-server -v or --version\n"
    "       vellum-server -h or --help\n"
    "\n"
    "The file has the form of redis.conf. Directives on the command line come after it and\n"
    "override it. A dash as the first or last argument reads such lines from the standard input:\n"
    "after the file and before the directives.\n"
    "\n"
    "Examples:\n"
    "       vellum-server\n"
    "       vellum-server --port 7777 --dir /var/lib/vellum --workers 4\n"
    "       vellum-server /etc/vellum.conf --loglevel verbose\n";

/* How many of argv[0 ...] belong to the option argv[0]. As in Redis the first value may begin with
 * dashes, and only `save` and options that contain their values may have no separate value. */
static int option_length(int argc, char *const argv[])
{
    int length = 1;
    bool may_be_alone = strcasecmp(argv[0], "--save") == 0 || strchr(argv[0], ' ') != NULL;
    while (length < argc && (strncmp(argv[length], "--", 2) != 0 || (length == 1 && !may_be_alone)))
        length++;
    return length;
}

static bool obey_words(struct reader *reader, struct config_words *option)
{
    if (option->words[0][0] != '\0' ? obey(reader, option)
                                    : fail(reader, "Bad directive or wrong number of arguments"))
        return true;
    char line[1024];
    size_t used = (size_t)snprintf(line, sizeof line, "%s", option->words[0]);
    for (size_t i = 1; i < option->count && used < sizeof line; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, " \"%s\"", option->words[i]);
    return report(reader, "Reading the command line", line);
}

/* "--port 7000" given as one argument. */
static bool obey_whole_option(struct reader *reader, const char *text)
{
    struct config_words option;
    if (!config_split(text, &option) || option.count == 0) {
        fail(reader, "Unbalanced quotes in configuration line");
        return report(reader, "Reading the command line", text);
    }
    bool good = obey_words(reader, &option);
    config_words_free(&option);
    return good;
}

static bool has_dashes(const char *word)
{
    return strncmp(word, "--", 2) == 0;
}

static bool obey_option(struct reader *reader, int argc, char *const argv[])
{
    char *words[argc + 1];
    char empty[] = "";
    struct config_words option = {.count = (size_t)argc, .words = words};
    words[0] = has_dashes(argv[0]) ? argv[0] + 2 : argv[0];
    if (argc == 1 && strchr(argv[0], ' ') != NULL)
        return obey_whole_option(reader, words[0]);
    for (int i = 1; i < argc; i++)
        words[i] = argv[i];
    if (argc == 1 && strcasecmp(words[0], "save") == 0)
        words[option.count++] = empty;
    return obey_words(reader, &option);
}

/* Any user of the machine can read the command line. */
static void hide_secret(int argc, char *const argv[])
{
    static const char spaces[] = " \t\r\n\v\f";
    char name[64];
    const char *given = has_dashes(argv[0]) ? argv[0] + 2 : argv[0];
    given += strspn(given, spaces);
    size_t len = strcspn(given, spaces);
    snprintf(name, sizeof name, "%.*s", (int)len, given);
    size_t row = directive_find(name);
    if (row == directive_count || (directive_table[row].flags & DIRECTIVE_SECRET) == 0)
        return;
    char *rest = argv[0] + (given - argv[0]) + len; /* "--requirepass x" given as one argument */
    memset(rest, 'x', strlen(rest));
    for (int i = 1; i < argc; i++)
        memset(argv[i], 'x', strlen(argv[i]));
}

/* As in Redis, an option right after the file name may lack its dashes. */
static bool read_options(struct reader *reader, int argc, char *const argv[])
{
    for (int at = 0; at < argc;) {
        if (!has_dashes(argv[at]) && (at > 0 || argv[at][0] == '-')) {
            fail(reader, "this is not an option; see --help");
            return report(reader, "Reading the command line", argv[at]);
        }
        int length = option_length(argc - at, argv + at);
        if (!obey_option(reader, length, argv + at))
            return false;
        hide_secret(length, argv + at);
        at += length;
    }
    return true;
}

/* Of the data directory: the process may change its working directory later. */
static bool make_absolute(struct config *config)
{
    char dir[PATH_MAX], cwd[PATH_MAX];
    config_text(config, CONFIG_DIR, dir, sizeof dir);
    if (dir[0] == '/')
        return true;
    if (getcwd(cwd, sizeof cwd) == NULL)
        return false;
    struct config_value value = {.text = NULL};
    const char *relative = strncmp(dir, "./", 2) == 0 ? dir + 2 : dir;
    if (asprintf(&value.text, "%s/%s", cwd, relative) < 0)
        return false;
    config_take(config, CONFIG_DIR, &value);
    return true;
}

bool config_enter_dir(struct config *config, FILE *err)
{
    char dir[PATH_MAX];
    config_text(config, CONFIG_DIR, dir, sizeof dir);
    if ((mkdir(dir, 0700) == 0 || errno == EEXIST) && chdir(dir) == 0)
        return true;
    fprintf(err, "Cannot enter the data directory %s: %s\n", dir, strerror(errno));
    return false;
}

static bool read_all(struct reader *reader, int argc, char *const argv[])
{
    struct config *config = reader->config;
    if (argc > 1 && argv[1][0] != '-') {
        if (!read_file(reader, argv[1]))
            return false;
        config->file = realpath(argv[1], NULL);
        if (config->file == NULL) {
            fprintf(reader->err, "Fatal error, can't find config file '%s': %s\n", argv[1],
                    strerror(errno));
            return false;
        }
        argc--;
        argv++;
    }
    bool is_first = argc > 1 && strcmp(argv[1], "-") == 0;
    bool is_last = argc > 2 && !is_first && strcmp(argv[argc - 1], "-") == 0;
    if ((is_first || is_last) && !read_stream(reader, stdin, "standard input"))
        return false;
    return read_options(reader, argc - 1 - is_first - is_last, argv + 1 + is_first);
}

enum config_start config_read(struct config *config, int argc, char *const argv[], FILE *out,
                              FILE *err)
{
    const char *first = argc == 2 ? argv[1] : "";
    if (strcmp(first, "-v") == 0 || strcmp(first, "--version") == 0) {
        fprintf(out, "Vellum server v=%s redis=%s bits=%zu\n", VELLUM_VERSION, VELLUM_REDIS_VERSION,
                sizeof(void *) * CHAR_BIT);
        return CONFIG_EXIT_SUCCESS;
    }
    if (strcmp(first, "-h") == 0 || strcmp(first, "--help") == 0) {
        fputs(usage, out);
        return CONFIG_EXIT_SUCCESS;
    }
    struct reader reader = {.config = config, .err = err};
    config->umask = umask(0); /* there are no other threads yet */
    umask(config->umask);
    if (!read_all(&reader, argc, argv))
        return CONFIG_EXIT_FAILURE;
    if (!make_absolute(config)) {
        fprintf(err, "Fatal error, cannot determine the working directory: %s\n", strerror(errno));
        return CONFIG_EXIT_FAILURE;
    }
    return CONFIG_START;
}
