/*
 * The prefixes of keys that clients in broadcasting mode are told of (CLIENT TRACKING ... PREFIX):
 * which clients wait for a key. A search takes a number of steps that does not grow with the table.
 *
 * Threads: whoever reads or changes the table holds its owner's lock. A client's own list belongs
 * to its worker's thread, and is read without it.
 */
#ifndef VELLUM_PREFIX_TABLE_H
#define VELLUM_PREFIX_TABLE_H

#include "protocol/resp.h"
#include "storage/store.h"

struct prefix_table;
struct tracker;
struct worker;

struct prefix_table *prefix_table_new(void);                   /* NULL: out of memory */
void prefix_table_free(struct prefix_table *table);            /* it is empty */
bool prefix_table_is_empty(const struct prefix_table *table);  /* also without the lock */
uint32_t prefix_table_count(const struct prefix_table *table); /* likewise */

/* The order of names: by their bytes, a prefix before what begins with it. */
int prefix_compare(struct resp_slice a, struct resp_slice b);

/* Adds those that the client does not have yet. They are in order, each once, and copied. False:
 * out of memory, and none is added. */
bool prefix_table_add(struct prefix_table *table, struct tracker *tracker,
                      const struct resp_slice *names, uint32_t count);
void prefix_table_drop(struct prefix_table *table, struct tracker *tracker); /* all of a client */

/* Notes a change of the key for all clients with a prefix of its name, but not for `except` (which
 * may be NULL). `self`: see tracker_note. */
void prefix_table_note(const struct prefix_table *table, const struct store_key *key,
                       const struct tracker *except, struct worker *self);

/* Calls `visit` for each prefix of a client, in order. */
void prefix_each(const struct tracker *tracker, void (*visit)(void *arg, struct resp_slice prefix),
                 void *arg);

#endif
