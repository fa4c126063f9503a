/* What stands on disk is not believed, also behind a right checksum: fields of every structure get
 * impossible values, and the store is opened, read, overwritten and emptied. It may refuse to open,
 * with a reason; what is spoiled may be lost. But nothing else happens: what is written afterwards
 * stays, and vellum-check gets to its end. VELLUM_TRIALS says how often for each structure. */
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "storage/format/format.h"
#include "storage/recovery/check.h"
#include "tests/storage/fault_disk.h"
#include "tests/storage/spoil.h"
#include "tests/storage/tree_job.h"

#define LATER_MS 4000000000000ll
#define SMALL 24u
#define LARGE 4u
#define LONG 3u
#define TREES 4u
#define FRESH 12u
#define NAMES (SMALL + LARGE + LONG + TREES)
#define NAME_BYTES (FORMAT_KEY_INLINE + LONG * FORMAT_EXTENT_BYTES + 64)
#define TRIALS (SIZES_ARE_TINY ? 40u : 6u)
#define TRIAL_SECONDS 300u /* only what never ends takes so long */
#define WALKED_MOST 100000u
#define OPERATION_KINDS (FORMAT_LONG_RECORD + 1)

static char doing[256];

/* The seed alone does not say which of the trials it was. */
static void on_abort(int signal_number)
{
    ssize_t written = write(STDERR_FILENO, doing, strlen(doing));
    (void)written;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* ---- what there is ---- */

static const char *name_of(uint32_t number, char name[NAME_BYTES])
{
    bool is_long = number >= SMALL + LARGE && number < SMALL + LARGE + LONG;
    uint32_t length = (uint32_t)sprintf(name, "name:%u:", number);
    if (is_long) {
        uint32_t more = FORMAT_KEY_INLINE + (number - SMALL - LARGE) * FORMAT_EXTENT_BYTES;
        memset(name + length, 'x', more);
        length += more;
    }
    name[length] = 0;
    return name;
}

static bool is_tree(uint32_t number)
{
    return number >= NAMES - TREES;
}

static uint64_t length_of(uint32_t number)
{
    const uint64_t large[LARGE] = {FORMAT_EXTENT_BYTES - 100, 3 * FORMAT_EXTENT_BYTES,
                                   (FORMAT_ROOT_EXTENTS + 2) * FORMAT_EXTENT_BYTES - 77,
                                   2 * FORMAT_ROOT_EXTENTS * FORMAT_EXTENT_BYTES};
    if (number >= SMALL && number < SMALL + LARGE)
        return large[number - SMALL];
    return number == SMALL + LARGE ? 2 * FORMAT_EXTENT_BYTES : 5 + 19 * (number % 27);
}

static void put(struct rig *rig, struct rng *rng, uint32_t number)
{
    char name[NAME_BYTES];
    must(do_put(rig, name_of(number, name), blob_random(rng, length_of(number))) == STORE_OK,
         "putting %u", number);
}

static void fill(struct rig *rig, struct rng *rng)
{
    char name[NAME_BYTES];
    for (uint32_t i = 0; i < NAMES - TREES; i++)
        put(rig, rng, i);
    for (uint32_t i = 0; i < SMALL; i += 5)
        put_until(rig, name_of(i, name), "for a while", LATER_MS);
    for (uint32_t i = NAMES - TREES; i < NAMES; i++)
        tree_job_fill(rig, name_of(i, name), i % 2 ? 40 : 500, i % 2 ? FORMAT_ITEM_VALUE / 2 : 16);
}

/* What a journal has of everything: puts, deletions, patches of nodes, a long record, databases. */
static void change(struct rig *rig, struct rng *rng)
{
    char name[NAME_BYTES];
    for (uint32_t i = 0; i < NAMES - TREES; i += 2)
        put(rig, rng, i);
    must(do_delete(rig, name_of(1, name)) == STORE_OK, "delete");
    must(do_delete(rig, name_of(SMALL + 1, name)) == STORE_OK, "delete");
    flush_db(rig, 3);
    for (uint32_t i = NAMES - TREES; i < NAMES; i++) {
        struct tree_job job = {
            .from = 100 + i, .count = 10, .value_len = 20, .act = tree_job_insert};
        enum store_result result = tree_job_do(rig, name_of(i, name), &job);
        must(result == STORE_OK, "inserting: %d, %s", result, rig->last_warning);
    }
}

/* Stopped in order; or what a crash leaves, with all that was changed in the journal. */
static struct medium *make(struct rig *rig, bool stopped)
{
    struct rng rng = {7};
    struct medium *medium = medium_new(1);
    rig_defaults(rig);
    rig->options.partition_count = 2;
    rig->options.memory_bytes = 8 << 20;
    rig_open_on(rig, medium);
    fill(rig, &rng);
    rig_close_well(rig);
    if (stopped)
        return medium;
    rig->options.record_bytes = 600;
    rig_open_on(rig, medium);
    change(rig, &rng);
    medium_set_fate(medium, FATE_KEPT);
    medium_cut_now(medium);
    must(rig_close(rig) != STORE_OK, "closing without power");
    return medium;
}

/* ---- everything is used ---- */

/* From the start, with something put in and taken out now and then. */
static enum store_result disturb(struct store_txn *txn, struct tree_job *job,
                                 struct store_tree *tree)
{
    struct store_cursor cursor;
    struct store_entry entry;
    char name[16];
    (void)txn;
    enum store_result result = store_tree_seek_rank(tree, 0, &cursor);
    for (uint32_t i = 0; result == STORE_OK && i < WALKED_MOST; i++) {
        result = store_tree_get(&cursor, &entry);
        if (result == STORE_OK)
            result = store_tree_next(&cursor);
    }
    if (result == STORE_WAIT)
        return result;
    for (uint32_t i = 0; i < job->count; i++) {
        uint32_t len = tree_job_name(job->from + i * 37, name);
        result = store_tree_seek(tree, name, len, &cursor);
        if (result == STORE_OK && i % 3 == 0)
            result = store_tree_insert(&cursor, name, len, name, len);
        else if (result == STORE_OK && i % 3 == 1)
            result = store_tree_remove(&cursor);
        else if (result == STORE_OK)
            result = store_tree_replace(&cursor, name, len);
        if (result != STORE_OK && result != STORE_ABSENT)
            return result;
    }
    return STORE_OK;
}

/* Reads every name, and changes or deletes it; what comes of it is no matter. */
static void use_all(struct rig *rig, struct rng *rng, bool deletes)
{
    char name[NAME_BYTES];
    for (uint32_t i = 0; i < NAMES; i++) {
        enum store_result result;
        blob_unref(do_get(rig, name_of(i, name), &result));
        if (is_tree(i) && rng_chance(rng, 70)) {
            struct tree_job job = {.from = rng_below(rng, 600), .count = 24, .act = disturb};
            (void)tree_job_do(rig, name, &job);
        }
        if (deletes)
            (void)do_delete(rig, name);
        else if (!is_tree(i) && rng_chance(rng, 40))
            (void)do_put(rig, name, blob_random(rng, length_of(i)));
    }
    rig_run(rig, 2);
}

/* ---- what is written then stays ---- */

struct fresh {
    struct blob *values[FRESH];
};

static void put_fresh(struct rig *rig, struct rng *rng, struct fresh *fresh, uint32_t from,
                      uint32_t to)
{
    char name[32];
    for (uint32_t i = from; i < to; i++) {
        uint64_t length = i % 3 ? length_of(i) : length_of(SMALL + i % LARGE);
        snprintf(name, sizeof name, "fresh:%u", i);
        fresh->values[i] = blob_random(rng, length);
        must(do_put(rig, name, blob_ref(fresh->values[i])) == STORE_OK, "%s: no fresh value",
             doing);
    }
}

static void check_fresh(struct rig *rig, const struct fresh *fresh, uint32_t to, const char *when)
{
    char name[32];
    for (uint32_t i = 0; i < to; i++) {
        enum store_result result;
        snprintf(name, sizeof name, "fresh:%u", i);
        struct blob *found = do_get(rig, name, &result);
        must(found && found->len == fresh->values[i]->len &&
                 memcmp(found->bytes, fresh->values[i]->bytes, found->len) == 0,
             "%s: %s is another one %s: %d", doing, name, when, result);
        blob_unref(found);
    }
}

static void log_nothing(void *arg, enum store_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static void judge_check(enum store_result result, const char *message)
{
    must(result == STORE_OK || strlen(message) > 10, "%s: no reason for %d", doing, result);
}

/* As vellum-check, without a directory. */
static void check_medium(const struct medium *medium)
{
    char message[STORE_MESSAGE_MAX] = "";
    struct store_check found;
    struct medium *copy = medium_copy(medium);
    judge_check(check_disk(medium_disk(copy), log_nothing, NULL, &found, message), message);
    medium_free(copy);
}

/* The medium's files, for vellum-check. */
static void check_directory(struct medium *medium)
{
    static const char *const files[] = {"superblock", "journal", "slabs-00",
                                        "slabs-01",   "extents", "index"};
    char path[256], file[300], page[PAGE_SIZE], message[STORE_MESSAGE_MAX];
    static const char zeros[PAGE_SIZE];
    struct store_check found;
    scratch_make(path);
    for (uint32_t i = 0; i < sizeof files / sizeof *files; i++) {
        uint64_t size = medium_size(medium, files[i]);
        snprintf(file, sizeof file, "%s/%s", path, files[i]);
        int fd = open(file, O_CREAT | O_RDWR, 0600);
        must(fd >= 0 && ftruncate(fd, (off_t)size) == 0, "cannot make %s", file);
        for (uint64_t at = 0; at + PAGE_SIZE <= size; at += PAGE_SIZE) {
            medium_peek(medium, files[i], at, page, sizeof page);
            must(memcmp(page, zeros, sizeof page) == 0 ||
                     pwrite(fd, page, sizeof page, (off_t)at) == PAGE_SIZE,
                 "cannot write %s", file);
        }
        close(fd);
    }
    enum store_result result = store_check(path, log_nothing, NULL, &found, message);
    judge_check(result, message);
    scratch_remove(path);
}

/* ---- trials ---- */

static void live_on(struct rig *rig, struct rng *rng, struct medium *medium)
{
    struct fresh fresh;
    put_fresh(rig, rng, &fresh, 0, FRESH / 2);
    use_all(rig, rng, false);
    put_fresh(rig, rng, &fresh, FRESH / 2, FRESH);
    check_fresh(rig, &fresh, FRESH, "before the deletions");
    use_all(rig, rng, true);
    check_fresh(rig, &fresh, FRESH, "after the deletions");
    rig_close_well(rig);
    rig->options.scans = rng_chance(rng, 50);
    rig_open_on(rig, medium);
    check_fresh(rig, &fresh, FRESH, "after the start");
    use_all(rig, rng, true);
    check_fresh(rig, &fresh, FRESH, "in the end");
    rig_close_well(rig);
    for (uint32_t i = 0; i < FRESH; i++)
        blob_unref(fresh.values[i]);
}

static void put_elsewhere(struct rig *rig)
{
    struct call *call = call_new();
    struct step *step = call_step(call, STEP_PUT, call_key(call, 1, 0, "key", 3));
    step->blob = blob_text("value");
    step->expire_ms = STORE_NO_EXPIRY;
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    must(call->result == STORE_OK, "put: %d", call->result);
    call_free(call);
}

/* Another database has a key, so all that there is has to be swept, from the disk as it stands. */
static void flush_at_once(struct rig *rig, struct rng *rng, struct medium *medium)
{
    struct fresh fresh;
    put_elsewhere(rig);
    flush_db(rig, 0);
    for (uint32_t i = 0; i < 15; i++)
        rig_run(rig, 2);
    put_fresh(rig, rng, &fresh, 0, FRESH);
    check_fresh(rig, &fresh, FRESH, "after the flush");
    rig_reopen(rig, medium);
    check_fresh(rig, &fresh, FRESH, "after the start");
    rig_close_well(rig);
    for (uint32_t i = 0; i < FRESH; i++)
        blob_unref(fresh.values[i]);
}

typedef void life_fn(struct rig *rig, struct rng *rng, struct medium *medium);

static void try_once(struct rig *rig, struct rng *rng, const struct medium *whole, enum spoil kind,
                     life_fn *live)
{
    struct medium *medium = medium_copy(whole);
    char text[160];
    /* Of nested structures one: where the next field is, a spoiled one cannot tell. */
    bool is_nested =
        kind == SPOIL_ITEM || kind == SPOIL_NODE || kind == SPOIL_EXTENTS || kind == SPOIL_JOURNAL;
    uint32_t most = is_nested || rng_chance(rng, 70) ? 1 : 4;
    for (uint32_t i = 0; i < most; i++)
        if (!spoil(rng, medium, kind, text))
            text[0] = 0;
    snprintf(doing, sizeof doing, "%u spoiled, the last: %s\n", most, text);
    alarm(TRIAL_SECONDS);
    if (rng_chance(rng, SIZES_ARE_TINY ? 5 : 20))
        check_directory(medium);
    else if (SIZES_ARE_TINY)
        check_medium(medium);
    /* An index checkpoint stands for the headers, and for who names a run: they are not read. */
    rig->options.scans = kind == SPOIL_SEGMENT || kind == SPOIL_TWIN ||
                         (live == live_on && kind != SPOIL_INDEX && rng_chance(rng, 50));
    enum store_result result = rig_open(rig, medium_disk(medium));
    if (result == STORE_OK)
        live(rig, rng, medium);
    else
        must(strlen(rig->message) > 10, "%s: refused without a reason: %d", doing, result);
    alarm(0);
    medium_free(medium);
}

static void believe_nothing(enum spoil kind, bool stopped, life_fn *live, const char *test)
{
    const char *asked = getenv("VELLUM_TRIALS");
    uint32_t trials = asked ? (uint32_t)atoi(asked) : TRIALS;
    struct rng rng = {rng_seed(test)};
    struct rig rig;
    signal(SIGABRT, on_abort);
    signal(SIGALRM, on_abort);
    struct medium *medium = make(&rig, stopped);
    for (uint32_t i = 0; i < (live == live_on ? trials : (trials + 1) / 2); i++)
        try_once(&rig, &rng, medium, kind, live);
    medium_free(medium);
}

#define TEST(name, kind, stopped, live)                                                            \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        believe_nothing(kind, stopped, live, #name);                                               \
    }

TEST(superblocks, SPOIL_SUPERBLOCK, true, live_on)
TEST(superblocks_after_a_crash, SPOIL_SUPERBLOCK, false, live_on)
TEST(headers_of_segments, SPOIL_SEGMENT, true, live_on)
TEST(items, SPOIL_ITEM, true, live_on)
TEST(long_keys, SPOIL_KEY_DEPTH, true, live_on)
TEST(flushed_items, SPOIL_ITEM, true, flush_at_once)
TEST(flushed_collections, SPOIL_HOME, true, flush_at_once)
TEST(nodes_of_trees, SPOIL_NODE, true, live_on)
TEST(nodes_of_large_values, SPOIL_EXTENTS, true, live_on)
TEST(journals, SPOIL_JOURNAL, false, live_on)
TEST(indexes, SPOIL_INDEX, true, live_on)
TEST(two_that_name_one, SPOIL_TWIN, true, live_on)

/* Some of each kind that is there: what the journal says is checked before anything else would
 * notice. */
static void operations_that_cannot_be(void **state)
{
    (void)state;
    static const char *const fields[] = {"length", "slot"};
    const uint32_t each = SIZES_ARE_TINY ? 10 : 2;
    uint32_t tried[OPERATION_KINDS][2] = {{0}};
    struct rig rig;
    struct medium *whole = make(&rig, false);
    for (uint32_t number = 0;; number++)
        for (uint32_t field = SPOIL_OPERATION_LENGTH; field <= SPOIL_OPERATION_SLOT; field++) {
            struct medium *medium = medium_copy(whole);
            int kind = spoil_operation(medium, number, field);
            bool has_slot = kind != FORMAT_LONG_RECORD && kind != FORMAT_DATABASES;
            if (kind >= 0 && (field == SPOIL_OPERATION_LENGTH || has_slot) &&
                tried[kind][field]++ < each) {
                enum store_result result = rig_open(&rig, medium_disk(medium));
                must(result == STORE_CORRUPT, "operation %u, of kind %d, with an impossible %s: %d",
                     number, kind, fields[field], result);
            }
            medium_free(medium);
            if (kind < 0)
                goto end;
        }
end:
    must(tried[FORMAT_PUT][SPOIL_OPERATION_LENGTH] > 0, "there is nothing to be spoiled");
    medium_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(superblocks),
        cmocka_unit_test(superblocks_after_a_crash),
        cmocka_unit_test(headers_of_segments),
        cmocka_unit_test(items),
        cmocka_unit_test(long_keys),
        cmocka_unit_test(flushed_items),
        cmocka_unit_test(flushed_collections),
        cmocka_unit_test(nodes_of_trees),
        cmocka_unit_test(nodes_of_large_values),
        cmocka_unit_test(journals),
        cmocka_unit_test(operations_that_cannot_be),
        cmocka_unit_test(indexes),
        cmocka_unit_test(two_that_name_one),
    };
    /* Every trial needs the same memory again: the system would zero it each time. */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
