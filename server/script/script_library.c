#include "server/script/script_library.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/config/config_words.h"
#include "server/core/command.h"
#include "server/core/function_names.h"

#define LIBRARY_HEAD 24
#define FUNCTION_HEAD 12
#define NO_DESCRIPTION UINT32_MAX

/* ---- reading ---- */

static uint32_t number_at(const char *bytes)
{
    uint32_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
}

static uint64_t long_number_at(const char *bytes)
{
    uint64_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
}

bool libraries_read_head(struct libraries *libraries, const char *bytes, size_t len)
{
    *libraries = (struct libraries){.bytes = bytes, .len = len};
    if (len == 0)
        return true;
    if (len < LIBRARIES_HEAD)
        return false;
    libraries->stamp = long_number_at(bytes);
    libraries->count = number_at(bytes + 8);
    libraries->function_count = number_at(bytes + 12);
    return libraries->stamp != 0;
}

/* Takes the next `len` bytes. False: there are not so many. */
static bool take(struct resp_slice *from, uint32_t len, struct resp_slice *part)
{
    if (len > from->len)
        return false;
    *part = (struct resp_slice){from->data, len};
    from->data += len;
    from->len -= len;
    return true;
}

bool libraries_next(const struct libraries *libraries, size_t *at, struct library *library)
{
    size_t begin = *at < LIBRARIES_HEAD ? LIBRARIES_HEAD : *at;
    struct resp_slice head, left;
    if (libraries->len <= begin)
        return false;
    left = (struct resp_slice){libraries->bytes + begin, libraries->len - begin};
    if (!take(&left, LIBRARY_HEAD, &head))
        return false;
    library->id = long_number_at(head.data);
    library->function_count = number_at(head.data + 12);
    if (!take(&left, number_at(head.data + 8), &library->name) ||
        !take(&left, number_at(head.data + 16), &library->functions) ||
        !take(&left, number_at(head.data + 20), &library->code))
        return false;
    *at = libraries->len - left.len;
    return true;
}

bool library_next_function(const struct library *library, size_t *at,
                           struct library_function *function)
{
    if (*at >= library->functions.len)
        return false;
    struct resp_slice head, left = {library->functions.data + *at, library->functions.len - *at};
    if (!take(&left, FUNCTION_HEAD, &head))
        return false;
    uint32_t description_len = number_at(head.data + 4);
    bool is_described = description_len != NO_DESCRIPTION;
    function->flags = number_at(head.data + 8);
    function->description = (struct resp_slice){NULL, 0};
    if (!take(&left, number_at(head.data), &function->name) ||
        (is_described && !take(&left, description_len, &function->description)))
        return false;
    *at = library->functions.len - left.len;
    return true;
}

bool libraries_find(const struct libraries *libraries, struct resp_slice name,
                    struct library *library)
{
    for (size_t at = 0; libraries_next(libraries, &at, library);)
        if (library->name.len == name.len && memcmp(library->name.data, name.data, name.len) == 0)
            return true;
    return false;
}

/* ---- names ---- */

bool library_name_is_good(struct resp_slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '_')
            return false;
    }
    return name.len > 0;
}

static int compare_names(const void *left, const void *right)
{
    const struct resp_slice *a = left, *b = right;
    return function_name_compare(*a, *b);
}

int libraries_find_twice(const struct libraries *libraries, struct resp_slice *name)
{
    struct resp_slice *names = calloc((size_t)libraries->function_count + 1, sizeof *names);
    struct library library;
    struct library_function function;
    size_t count = 0;
    int is_twice = names == NULL ? -1 : 0;
    if (names == NULL)
        return is_twice;
    for (size_t at = 0; libraries_next(libraries, &at, &library);)
        for (size_t in = 0;
             count < libraries->function_count && library_next_function(&library, &in, &function);)
            names[count++] = function.name;
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count && is_twice == 0; i++) {
        *name = names[i];
        is_twice = function_name_same(names[i - 1], names[i]);
    }
    free(names);
    return is_twice;
}

/* ---- writing ---- */

static void add_number(struct resp_writer *to, uint64_t number)
{
    assert(number <= UINT32_MAX);
    uint32_t short_number = (uint32_t)number;
    resp_raw(to, (const char *)&short_number, sizeof short_number);
}

static void add_long_number(struct resp_writer *to, uint64_t number)
{
    resp_raw(to, (const char *)&number, sizeof number);
}

void libraries_begin(struct resp_writer *to, uint64_t stamp)
{
    assert(stamp != 0 && to->len == 0);
    add_long_number(to, stamp);
    add_number(to, 0);
    add_number(to, 0);
}

static void add_to_number(struct resp_writer *to, size_t at, uint32_t more)
{
    uint32_t number = number_at(to->data + at) + more;
    memcpy(to->data + at, &number, sizeof number);
}

void libraries_add(struct resp_writer *to, const struct library *library)
{
    add_long_number(to, library->id);
    add_number(to, library->name.len);
    add_number(to, library->function_count);
    add_number(to, library->functions.len);
    add_number(to, library->code.len);
    resp_raw(to, library->name.data, library->name.len);
    resp_raw(to, library->functions.data, library->functions.len);
    resp_raw(to, library->code.data, library->code.len);
    if (to->failed)
        return;
    add_to_number(to, 8, 1);
    add_to_number(to, 12, library->function_count);
}

void library_add_function(struct resp_writer *functions, const struct library_function *function)
{
    bool is_described = function->description.data != NULL;
    add_number(functions, function->name.len);
    add_number(functions, is_described ? function->description.len : NO_DESCRIPTION);
    add_number(functions, function->flags);
    resp_raw(functions, function->name.data, function->name.len);
    if (is_described)
        resp_raw(functions, function->description.data, function->description.len);
}

/* ---- the first line ---- */

/* The name among the words of the line. NULL: an error reply was written. */
static const char *read_words(const struct config_words *words, struct resp_writer *reply)
{
    static const char option[] = "name=";
    const size_t option_len = sizeof option - 1;
    const char *name = NULL, *engine = words->words[0] + 2;
    for (size_t i = 1; i < words->count; i++) {
        const char *word = words->words[i];
        bool is_name = strncasecmp(word, option, option_len) == 0;
        if (is_name && name == NULL) {
            name = word + option_len;
            continue;
        }
        if (is_name)
            resp_error(reply, "ERR Invalid metadata value, name argument was given multiple times");
        else
            resp_errorf(reply, "ERR Invalid metadata value given: %s", word);
        return NULL;
    }
    if (name == NULL)
        resp_error(reply, "ERR Library name was not given");
    else if (words->has_zero || !library_name_is_good((struct resp_slice){name, strlen(name)}))
        resp_error(reply, "ERR " LIBRARY_BAD_NAME);
    else if (strcasecmp(engine, "lua") != 0)
        resp_errorf(reply, "ERR Engine '%s' not found", engine);
    else
        return name;
    return NULL;
}

/* `line`: a copy of the first one. */
static bool read_line(char *line, struct resp_writer *reply, struct resp_slice *name)
{
    struct config_words words;
    if (!config_split(line, &words)) {
        resp_error(reply, "ERR Invalid library metadata");
        return false;
    }
    const char *found = read_words(&words, reply);
    if (found != NULL) {
        *name = (struct resp_slice){line, strlen(found)}; /* it is shorter than its line */
        memcpy(line, found, name->len);
    }
    config_words_free(&words);
    return found != NULL;
}

bool library_read_name(struct call *call, struct resp_slice code, struct resp_slice *name)
{
    const char *end = code.len > 0 ? memchr(code.data, '\n', code.len) : NULL;
    size_t len = end != NULL ? (size_t)(end - code.data) : 0;
    if (code.len < 2 || memcmp(code.data, "#!", 2) != 0) {
        resp_error(call->reply, "ERR Missing library metadata");
        return false;
    }
    if (end == NULL || memchr(code.data, '\0', len) != NULL) {
        resp_error(call->reply, "ERR Invalid library metadata");
        return false;
    }
    char *line = store_alloc(call->txn, len + 1);
    if (line == NULL) {
        resp_error(call->reply, "OOM command not allowed when used memory > 'maxmemory'.");
        return false;
    }
    memcpy(line, code.data, len);
    line[len] = '\0';
    return read_line(line, call->reply, name);
}
