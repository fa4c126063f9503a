#include "tests/storage/ordered_walk.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"
#include "storage/format/format.h"
#include "storage/format/tree_node.h"

#define ATTEMPTS 20u /* a key may expire between scan and walk */

/* ---- names ---- */

static void add(struct ordered_names *names, const char *bytes, uint32_t len)
{
    must(array_reserve(&names->at, &names->capacity, names->count + 1, sizeof *names->at),
         "out of memory");
    struct ordered_name *name = &names->at[names->count++];
    *name = (struct ordered_name){.bytes = malloc(len + 1u), .len = len};
    must(name->bytes, "out of memory");
    memcpy(name->bytes, bytes, len);
}

void ordered_names_free(struct ordered_names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        free(names->at[i].bytes);
    free(names->at);
    *names = (struct ordered_names){0};
}

static int by_bytes(const void *a, const void *b)
{
    const struct ordered_name *x = a, *y = b;
    return node_compare(x->bytes, x->len, y->bytes, y->len);
}

static void sort(struct ordered_names *names)
{
    if (names->count > 0)
        qsort(names->at, names->count, sizeof *names->at, by_bytes);
}

/* Longer names are in order by so many bytes alone. */
static uint32_t ordered_part(const struct ordered_name *name)
{
    return name->len < FORMAT_NAME_WHOLE ? name->len : FORMAT_NAME_WHOLE;
}

static void check_order(const struct ordered_names *names, bool is_reverse)
{
    for (uint32_t i = 1; i < names->count; i++) {
        const struct ordered_name *a = &names->at[i - 1], *b = &names->at[i];
        int order = node_compare(a->bytes, ordered_part(a), b->bytes, ordered_part(b));
        must(is_reverse ? order >= 0 : order <= 0, "key %u of a walk is not in order", i);
    }
}

static bool are_same(const struct ordered_names *a, const struct ordered_names *b)
{
    bool same = a->count == b->count;
    for (uint32_t i = 0; i < a->count && same; i++)
        same = by_bytes(&a->at[i], &b->at[i]) == 0;
    return same;
}

/* ---- requests ---- */

struct walk {
    struct store_request request;
    struct store_range *range;
    struct ordered_names *names;
    uint64_t cursor; /* of a scan */
    uint32_t db;
    enum store_result result;
    bool finished;
};

static enum store_result run_walk(struct store_txn *txn, struct store_request *request)
{
    struct walk *walk = (struct walk *)request;
    enum store_result result;
    struct store_range_entry entry;
    while ((result = store_range_next(txn, walk->range, &entry)) == STORE_OK)
        add(walk->names, entry.key, entry.key_len);
    return result == STORE_ABSENT ? STORE_OK : result;
}

static void seen_by_scan(void *arg, const char *key, uint32_t len, const struct store_item *item)
{
    (void)item;
    add(arg, key, len);
}

static enum store_result run_scan(struct store_txn *txn, struct store_request *request)
{
    struct walk *walk = (struct walk *)request;
    uint32_t budget = 20;
    return store_scan(txn, walk->db, &walk->cursor, &budget, seen_by_scan, walk->names);
}

static void on_done(struct store_request *request, enum store_result result)
{
    struct walk *walk = (struct walk *)request;
    walk->result = result;
    walk->finished = true;
}

static void execute(struct rig *rig, struct walk *walk,
                    enum store_result (*run)(struct store_txn *, struct store_request *),
                    int64_t now_ms)
{
    walk->request = (struct store_request){
        .run = run, .done = on_done, .scope = STORE_SCOPE_NONE, .now_ms = now_ms};
    walk->finished = false;
    enum store_result result = store_execute(rig->workers[0], &walk->request);
    if (result != STORE_WAIT)
        on_done(&walk->request, result);
    while (!walk->finished)
        rig_round(rig);
}

enum store_result ordered_walk(struct rig *rig, const struct store_range_options *options,
                               int64_t now_ms, struct ordered_names *names)
{
    struct walk walk = {.range = store_range_new(rig->store, options), .names = names};
    must(walk.range, "out of memory");
    execute(rig, &walk, run_walk, now_ms);
    store_range_free(walk.range);
    return walk.result;
}

static void scan(struct rig *rig, uint32_t db, int64_t now_ms, struct ordered_names *names)
{
    struct walk walk = {.names = names, .db = db};
    do {
        execute(rig, &walk, run_scan, now_ms);
        must(walk.result == STORE_OK, "a scan ends with %d", walk.result);
    } while (walk.cursor);
}

/* ---- comparing ---- */

static bool is_string(uint8_t type)
{
    (void)type;
    return true;
}

static bool is_as_scanned(struct rig *rig, uint32_t db, bool is_reverse, bool with_values)
{
    struct ordered_names scanned = {0}, walked = {0};
    struct store_range_options options = {.db = db,
                                          .is_reverse = is_reverse,
                                          .most = with_values ? 10 : UINT64_MAX,
                                          .wants_value = with_values ? is_string : NULL,
                                          .loaded_most = UINT64_MAX};
    int64_t now_ms = store_clock_ms(rig->store);
    enum store_result result = ordered_walk(rig, &options, now_ms, &walked);
    must(result == STORE_OK, "a walk over db %u ends with %d; %s", db, result, rig->last_warning);
    check_order(&walked, is_reverse);
    scan(rig, db, now_ms, &scanned);
    sort(&scanned);
    sort(&walked);
    bool same = are_same(&scanned, &walked);
    ordered_names_free(&scanned);
    ordered_names_free(&walked);
    return same;
}

void ordered_compare(struct rig *rig, uint32_t db)
{
    for (uint32_t way = 0; way < 4; way++) {
        uint32_t attempt = 0;
        while (!is_as_scanned(rig, db, way & 1, way & 2)) {
            must(++attempt < ATTEMPTS, "a walk over db %u shows other keys than a scan", db);
            rig_run(rig, 20);
        }
    }
}
