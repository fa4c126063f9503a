/*
 * Libraries of functions as they are stored. All libraries of a store are one value (numbers are
 * little-endian):
 *
 *     OFFSET  SIZE
 *          0     8  stamp: random, another one after each change
 *          8     4  the number of libraries
 *         12     4  the number of their functions
 *         16        the libraries, one after the other
 *
 *     a library
 *          0     8  id: random, another one for each FUNCTION LOAD
 *          8     4  length of its name
 *         12     4  the number of its functions
 *         16     4  length of the functions
 *         20     4  length of the code
 *         24        name, functions, code (with its first line)
 *
 *     a function
 *          0     4  length of its name
 *          4     4  length of its description; UINT32_MAX: it has none
 *          8     4  flags: enum script_flags
 *         12        name, description
 *
 * The functions are those that the code registered when it was loaded, so that they can be listed
 * without running it. No value and an empty one mean: no libraries. The layout is part of the data
 * format.
 */
#ifndef VELLUM_SCRIPT_LIBRARY_H
#define VELLUM_SCRIPT_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/resp.h"

struct call;

#define LIBRARIES_HEAD 16
#define LIBRARY_LENGTH_MAX (UINT32_MAX - 1) /* of each part */

struct libraries {
    uint64_t stamp; /* 0: there are none */
    uint32_t count, function_count;
    const char *bytes; /* NULL: only the head has been read */
    size_t len;
};

struct library {
    uint64_t id;
    struct resp_slice name, functions, code;
    uint32_t function_count;
};

struct library_function {
    struct resp_slice name, description; /* description.data: NULL if there is none */
    uint32_t flags;
};

/* ---- reading ---- */

/* `len`: that of the whole value; `bytes` has at least its head. False: it is malformed. */
bool libraries_read_head(struct libraries *libraries, const char *bytes, size_t len);
/* The library at *at, which begins with 0. False: there is none left. */
bool libraries_next(const struct libraries *libraries, size_t *at, struct library *library);
bool library_next_function(const struct library *library, size_t *at,
                           struct library_function *function);
bool libraries_find(const struct libraries *libraries, struct resp_slice name,
                    struct library *library);

/* Two functions have the same name but for its case: 1, and the name; otherwise 0. -1: out of
 * memory. */
int libraries_find_twice(const struct libraries *libraries, struct resp_slice *name);

/* ---- writing ---- */

void libraries_begin(struct resp_writer *to, uint64_t stamp);
void libraries_add(struct resp_writer *to, const struct library *library);
void library_add_function(struct resp_writer *functions, const struct library_function *function);

/* ---- code ---- */

/* The library's name from the first line of its code. False: an error reply was written. */
bool library_read_name(struct call *call, struct resp_slice code, struct resp_slice *name);
/* Of a library or a function. */
bool library_name_is_good(struct resp_slice name);
#define LIBRARY_BAD_NAME                                                                           \
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one " \
    "character long"

#endif
