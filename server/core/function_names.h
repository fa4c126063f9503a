/*
 * Names of functions and libraries, which are the same in any case; and the set of those functions
 * that do not write (flag no-writes), as of the last commit of the libraries: a worker that has not
 * loaded them can nevertheless tell what FCALL may do.
 *
 * Threads: a set has one owner until it is published, and does not change after that;
 * `readonly_names` may be used by any thread.
 */
#ifndef VELLUM_FUNCTION_NAMES_H
#define VELLUM_FUNCTION_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/resp.h"

/* Hash, order and equality in any case. */
uint32_t function_name_hash(struct resp_slice name);
int function_name_compare(struct resp_slice a, struct resp_slice b);
bool function_name_same(struct resp_slice a, struct resp_slice b);

/* A set of at most `most` names, of `bytes` in all. NULL: out of memory. */
struct name_set *name_set_new(uint32_t most, size_t bytes);
void name_set_free(struct name_set *set); /* NULL: nothing */
void name_set_add(struct name_set *set, struct resp_slice name);

struct readonly_names *readonly_names_new(void); /* NULL: out of memory */
void readonly_names_free(struct readonly_names *names);
/* From now on they are these. Takes ownership; NULL: none. */
void readonly_names_publish(struct readonly_names *names, struct name_set *set);
bool readonly_names_has(struct readonly_names *names, struct resp_slice name);

#endif
