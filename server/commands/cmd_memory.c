/*
 * MEMORY: the size of a key (values are on the device, so the bytes there are reported), and what
 * the process takes.
 */
#include "server/commands/commands.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/commands/memory_figures.h"
#include "server/core/server.h"
#include "server/exec/collector.h"
#include "server/core/call.h"
#include "storage/collections.h"

#define ITEM_OVERHEAD 48 /* estimate: header, slack of the slot, index entry */
#define ENTRY_OVERHEAD 6 /* estimate per tree entry: overhead and its share of the inner nodes */
#define DEFAULT_SAMPLES 5

/* ---- a key ---- */

/* Adds the size of the entry with this rank to collector->count. */
static enum store_result sample(struct store_tree *tree, uint64_t rank, struct collector *collector)
{
    struct store_cursor cursor;
    struct store_entry entry;
    enum store_result result = store_tree_seek_rank(tree, rank, &cursor);
    if (result == STORE_OK)
        result = store_tree_get(&cursor, &entry);
    if (result == STORE_OK)
        collector->count += entry.key_len + entry.value.length + ENTRY_OVERHEAD;
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

/* Estimates the size from `samples` evenly spaced entries; 0: from all. collector->count is the sum
 * for this tree. */
static enum store_result measure_tree(struct call *call, struct store_tree *tree,
                                      struct collector *collector, uint64_t samples, uint64_t *size)
{
    uint64_t count = store_tree_count(tree);
    if (samples == 0 || samples > count)
        samples = count;
    while (collector->at < samples) {
        uint64_t rank = (uint64_t)((__uint128_t)collector->at * count / samples);
        enum store_result result = sample(tree, rank, collector);
        if (result != STORE_OK)
            return result;
        collector->at++;
        if (collector_step_is_full(collector))
            return collector_step(call, collector);
    }
    *size = samples == 0 ? 0 : (uint64_t)((__uint128_t)collector->count * count / samples);
    return STORE_OK;
}

/* One after the other. */
static enum store_result measure_trees(struct call *call, const struct store_item *item,
                                       struct collector *collector, uint32_t count,
                                       uint64_t samples, uint64_t *size)
{
    for (; collector->source < count; collector_next_source(collector)) {
        struct store_tree *tree;
        enum store_result result =
            store_tree_open(call->txn, call->keys, item, collector->source, &tree);
        if (result == STORE_OK)
            result = measure_tree(call, tree, collector, samples, size);
        if (result != STORE_OK)
            return result;
        collector->measured += *size;
        collector->count = 0;
    }
    *size = collector->measured;
    return STORE_OK;
}

/* All trees of a collection have as many entries, or the same members, and one is measured; but for
 * those of a stream, and of a hash of which some fields expire. */
static enum store_result measure(struct call *call, const struct store_item *item, uint64_t samples,
                                 uint64_t *size)
{
    bool differ = item_type(item) == TYPE_STREAM || item_type(item) == TYPE_HASH;
    *size = item->length;
    if (item->trees == 0)
        return STORE_OK;
    struct collector *collector = collector_get(call);
    if (collector == NULL)
        return STORE_NO_MEMORY;
    enum store_result result =
        measure_trees(call, item, collector, differ ? item->trees : 1, samples, size);
    if (!differ)
        *size *= item->trees;
    return result;
}

static bool usage_options(struct call *call, uint64_t *samples)
{
    int64_t number;
    *samples = DEFAULT_SAMPLES;
    for (size_t i = 3; i < call->argc; i += 2) {
        if (!slice_is(call->argv[i], "samples") || i + 1 == call->argc)
            return call_syntax_error(call);
        if (!call_int64(call, call->argv[i + 1], &number))
            return false;
        if (number < 0)
            return call_syntax_error(call);
        *samples = (uint64_t)number;
    }
    return true;
}

enum store_result cmd_memory_usage(struct call *call)
{
    struct store_item item;
    uint64_t samples, size;
    if (!usage_options(call, &samples))
        return STORE_OK;
    enum store_result result = store_get(call->txn, call->keys, &item);
    if (result == STORE_ABSENT) {
        resp_null(call->reply);
        return STORE_OK;
    }
    if (result == STORE_OK)
        result = measure(call, &item, samples, &size);
    if (result == STORE_OK)
        resp_integer(call->reply, (int64_t)(ITEM_OVERHEAD + call->keys->len + size));
    return result;
}

/* ---- the process ---- */

static void add_field(struct resp_writer *to, const char *name, int64_t value)
{
    resp_bulk_string(to, name);
    resp_integer(to, value);
}

static void add_ratio(struct resp_writer *to, const char *name, double value)
{
    resp_bulk_string(to, name);
    resp_double(to, value);
}

/* The databases share the index, which has the expiry tables in its figure: each gets as much of it
 * as it has of the keys. */
static uint64_t add_databases(struct resp_writer *to, const struct server *server,
                              const struct memory_figures *memory, uint64_t total)
{
    uint64_t count = 0;
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++) {
        uint64_t keys = store_db_stats(server->store, db).keys;
        if (keys == 0 || total == 0)
            continue;
        char name[16];
        snprintf(name, sizeof name, "db.%u", db);
        resp_bulk_string(to, name);
        resp_map(to, 3);
        add_field(to, "overhead.hashtable.main",
                  (int64_t)((double)memory->store.index_bytes * ratio_of(keys, total)));
        add_field(to, "overhead.hashtable.expires", 0);
        add_field(to, "overhead.hashtable.slot-to-keys", 0);
        count++;
    }
    return count;
}

static void add_data(struct resp_writer *to, const struct memory_figures *memory, uint64_t keys)
{
    add_field(to, "overhead.total", (int64_t)(memory->used - memory->data));
    add_field(to, "keys.count", (int64_t)keys);
    add_field(to, "keys.bytes-per-key", keys > 0 ? (int64_t)(memory->used / keys) : 0);
    add_field(to, "dataset.bytes", (int64_t)memory->data);
    add_ratio(to, "dataset.percentage", 100 * ratio_of(memory->data, memory->used));
    add_ratio(to, "peak.percentage", 100 * ratio_of(memory->used, memory->peak));
}

static void add_allocator(struct resp_writer *to, const struct memory_figures *memory)
{
    int64_t resident = (int64_t)memory->resident_besides, size = (int64_t)memory->heap_size;
    add_field(to, "allocator.allocated", (int64_t)memory->heap_in_use);
    add_field(to, "allocator.active", size);
    add_field(to, "allocator.resident", size);
    add_ratio(to, "allocator-fragmentation.ratio",
              ratio_of(memory->heap_size, memory->heap_in_use));
    add_field(to, "allocator-fragmentation.bytes", size - (int64_t)memory->heap_in_use);
    add_ratio(to, "allocator-rss.ratio", 1);
    add_field(to, "allocator-rss.bytes", 0);
    add_ratio(to, "rss-overhead.ratio", ratio_of(memory->resident_besides, memory->heap_size));
    add_field(to, "rss-overhead.bytes", resident - size);
    add_ratio(to, "fragmentation", ratio_of(memory->resident_besides, memory->used));
    add_field(to, "fragmentation.bytes", resident - (int64_t)memory->used);
}

#define STATS_FIELDS 27 /* besides those of databases */

/* The figures are INFO's. */
enum store_result cmd_memory_stats(struct call *call)
{
    struct memory_figures memory;
    struct resp_writer databases;
    uint64_t keys = 0;
    memory_measure(call->server, &memory);
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++)
        keys += store_db_stats(call->server->store, db).keys;
    resp_writer_init(&databases, call->reply->version);
    uint64_t count = add_databases(&databases, call->server, &memory, keys);
    resp_map(call->reply, STATS_FIELDS + count);
    add_field(call->reply, "peak.allocated", (int64_t)memory.peak);
    add_field(call->reply, "total.allocated", (int64_t)memory.used);
    add_field(call->reply, "startup.allocated", 0);
    add_field(call->reply, "replication.backlog", 0);
    add_field(call->reply, "clients.slaves", 0);
    add_field(call->reply, "clients.normal", (int64_t)memory.clients);
    add_field(call->reply, "cluster.links", 0);
    add_field(call->reply, "aof.buffer", 0);
    add_field(call->reply, "lua.caches", (int64_t)memory.script_texts);
    add_field(call->reply, "functions.caches", (int64_t)memory.library_bytes);
    if (count > 0)
        resp_raw(call->reply, databases.data, databases.len);
    add_data(call->reply, &memory, keys);
    add_allocator(call->reply, &memory);
    bool failed = databases.failed;
    resp_writer_free(&databases);
    return failed ? STORE_NO_MEMORY : STORE_OK;
}

#define MB(bytes) ((double)(bytes) / (1 << 20))

enum store_result cmd_memory_malloc_stats(struct call *call)
{
    struct memory_figures memory;
    char text[256];
    memory_measure(call->server, &memory);
    int len = snprintf(
        text, sizeof text,
        "libc malloc: %.1f MB in blocks, %.1f MB free between them.\n"
        "Beside it the engine maps %.1f MB for index and expiry tables, %.1f MB for page "
        "tables, %.1f MB for cached pages.\n",
        MB(memory.heap_in_use), MB(memory.heap_size - memory.heap_in_use),
        MB(memory.store.index_bytes), MB(memory.store.table_bytes), MB(memory.store.frame_bytes));
    resp_verbatim(call->reply, "txt", text, (size_t)len);
    return STORE_OK;
}

enum store_result cmd_memory_purge(struct call *call)
{
    server_purge_heap(call->server);
    resp_ok(call->reply);
    return STORE_OK;
}

/* ---- DOCTOR ---- */

#define FEW_PAGES_SHARE 4  /* of the bound: less for pages is worth a word */
#define GAPS_SHARE 16      /* of the bound: so much free between blocks is, too */
#define LOOKUPS_LEAST 1000 /* for a share of them to mean anything */

/* Each returns whether there is something to be said. */

static bool tell_of_pages(FILE *to, const struct memory_figures *memory)
{
    const struct store_stats *store = &memory->store;
    if (store->over_memory)
        fprintf(to, "- Index and buffers leave too little memory for pages: keys are evicted, or "
                    "commands that "
                    "add data refused. A higher maxmemory would help.\n");
    else if (store->frame_limit_bytes < memory->bound / FEW_PAGES_SHARE)
        fprintf(
            to,
            "- Only %.1f MB are left for pages: index %.1f MB, clients %.1f MB, scripts %.1f MB.\n",
            MB(store->frame_limit_bytes), MB(store->index_bytes), MB(memory->clients),
            MB(memory->lua + memory->script_texts));
    else
        return false;
    return true;
}

static bool tell_of_misses(FILE *to, const struct memory_figures *memory)
{
    const struct store_stats *store = &memory->store;
    uint64_t lookups = store->page_hits + store->page_misses;
    bool is_full = store->frame_bytes > store->frame_limit_bytes / 10 * 9;
    if (lookups < LOOKUPS_LEAST || !is_full || store->page_misses < lookups / 10)
        return false;
    fprintf(to,
            "- The page cache is full, and %.0f %% of the look-ups of pages had to read the "
            "device. With more "
            "memory there would be fewer reads.\n",
            100 * ratio_of(store->page_misses, lookups));
    return true;
}

static bool tell_of_clients(FILE *to, const struct server *server,
                            const struct memory_figures *memory)
{
    uint64_t limit = atomic_load_explicit(&server->client_limit, memory_order_relaxed);
    uint64_t spooled = atomic_load_explicit(&server->spooled_bytes, memory_order_relaxed);
    bool is_much = limit > 0 && memory->clients > limit / 2;
    if (is_much)
        fprintf(to,
                "- Clients' buffers take %.1f MB. From %.1f MB on (maxmemory-clients) those with "
                "the largest ones "
                "are closed. CLIENT LIST shows them (tot-mem).\n",
                MB(memory->clients), MB(limit));
    if (spooled > 0)
        fprintf(to,
                "- %.1f MB of clients' commands wait in the files, until the clients read their "
                "replies.\n",
                MB(spooled));
    return is_much || spooled > 0;
}

static bool tell_of_gaps(FILE *to, const struct memory_figures *memory)
{
    uint64_t gaps = memory->heap_size - memory->heap_in_use;
    if (gaps < memory->bound / GAPS_SHARE)
        return false;
    fprintf(to,
            "- %.1f MB of the heap are free between its blocks. MEMORY PURGE returns what it can "
            "to the "
            "system.\n",
            MB(gaps));
    return true;
}

static void write_doctors_report(FILE *to, struct server *server)
{
    struct memory_figures memory;
    memory_measure(server, &memory);
    fprintf(to,
            "The process takes %.1f MB, and is bound to %.1f MB. %.1f MB cannot be released at "
            "once (at most "
            "%.1f MB so far), %.1f MB are cached pages, which give way.\n",
            MB(memory.resident), MB(memory.bound), MB(memory.used), MB(memory.peak),
            MB(memory.store.frame_bytes - memory.store.dirty_bytes));
    bool has_more = tell_of_pages(to, &memory);
    has_more |= tell_of_misses(to, &memory);
    has_more |= tell_of_clients(to, server, &memory);
    has_more |= tell_of_gaps(to, &memory);
    if (!has_more)
        fprintf(to, "Nothing stands out.\n");
}

enum store_result cmd_memory_doctor(struct call *call)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    if (to == NULL)
        return STORE_NO_MEMORY;
    write_doctors_report(to, call->server);
    bool is_whole = fclose(to) == 0;
    if (is_whole)
        resp_verbatim(call->reply, "txt", text, len);
    free(text);
    return is_whole ? STORE_OK : STORE_NO_MEMORY;
}

enum store_result cmd_memory_help(struct call *call)
{
    static const char *const lines[] = {
        "DOCTOR",
        "    Tell what stands out in the process's use of memory.",
        "MALLOC-STATS",
        "    Show how much the heap holds.",
        "PURGE",
        "    Return unused pages of the heap to the system.",
        "STATS",
        "    Show the figures of memory.",
        "USAGE <key> [SAMPLES <count>]",
        "    The bytes that a key and its value take on the device, estimated from so many of a",
        "    large collection's elements (5; 0: all of them).",
        NULL,
    };
    call_help(call, lines);
    return STORE_OK;
}
