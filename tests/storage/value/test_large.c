/* Large values that change their form: from an item to extents, from extents to nodes, over holes
 * of any length and back to a short value. They are compared with a plain model; and what a root or
 * a node says that cannot be true is damage, also behind a right checksum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/txn/engine.h"
#include "tests/storage/fault_disk.h"

/* ---- the model: a sparse array of bytes ---- */

#define MODEL_PAGES (STORE_VALUE_MAX / PAGE_SIZE)
#define NODE (FORMAT_NODE_FANOUT * FORMAT_EXTENT_BYTES)
#define MARKS 256u
#define WINDOW 300u

struct model {
    uint64_t length; /* 0: there is no value */
    char **pages;    /* NULL: zeros */
    uint64_t marks[MARKS];
    uint32_t mark_count;
};

static void model_clear(struct model *model)
{
    for (uint64_t i = 0; i < MODEL_PAGES; i++) {
        free(model->pages[i]);
        model->pages[i] = NULL;
    }
    model->length = 0;
    model->mark_count = 0;
}

static void model_mark(struct model *model, uint64_t offset)
{
    model->marks[model->mark_count++ % MARKS] = offset;
}

static void model_write(struct model *model, uint64_t offset, const struct blob *bytes)
{
    for (uint64_t i = 0; i < bytes->len; i++) {
        char **page = &model->pages[(offset + i) / PAGE_SIZE];
        if (!*page)
            *page = calloc(1, PAGE_SIZE);
        must(*page, "out of memory");
        (*page)[(offset + i) % PAGE_SIZE] = bytes->bytes[i];
    }
    if (offset + bytes->len > model->length)
        model->length = offset + bytes->len;
    model_mark(model, offset);
    model_mark(model, offset + bytes->len);
}

static char model_at(const struct model *model, uint64_t offset)
{
    const char *page = model->pages[offset / PAGE_SIZE];
    return page ? page[offset % PAGE_SIZE] : 0;
}

/* ---- looking ---- */

/* Where a value's form changes: item, extents, nodes, another node. */
static const uint64_t boundaries[] = {1,
                                      4000,
                                      PAGE_SIZE,
                                      FORMAT_EXTENT_BYTES,
                                      2 * FORMAT_EXTENT_BYTES,
                                      FORMAT_ROOT_EXTENTS *FORMAT_EXTENT_BYTES,
                                      FORMAT_NODE_FANOUT *FORMAT_EXTENT_BYTES,
                                      2ull * FORMAT_NODE_FANOUT *FORMAT_EXTENT_BYTES,
                                      63ull * FORMAT_NODE_FANOUT *FORMAT_EXTENT_BYTES / 4,
                                      STORE_VALUE_MAX};
#define BOUNDARIES (sizeof boundaries / sizeof *boundaries)

static enum store_result run(struct rig *rig, struct call *call)
{
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    if (call->result == STORE_OK)
        rig_sync(rig, call->request.shown);
    return call->result;
}

static void read_window(struct rig *rig, const struct model *model, uint64_t middle)
{
    uint64_t first = middle < WINDOW ? 0 : middle - WINDOW;
    struct call *call = call_new();
    struct step *step = call_step(call, STEP_READ, call_key(call, 0, 0, "key", 3));
    step->offset = first;
    step->length = 2 * WINDOW;
    must(run(rig, call) == STORE_OK, "reading at %llu of %llu gives %d", (unsigned long long)first,
         (unsigned long long)model->length, call->result);
    must(step->found == (model->length > 0), "whether it is there");
    if (step->found)
        must(step->item.length == model->length, "its length is %llu, not %llu",
             (unsigned long long)step->item.length, (unsigned long long)model->length);
    for (uint64_t i = 0; step->found && i < step->value->len; i++)
        must(step->value->bytes[i] == model_at(model, first + i), "byte %llu of %llu is another",
             (unsigned long long)(first + i), (unsigned long long)model->length);
    call_free(call);
}

static void compare_all(struct rig *rig, const struct model *model)
{
    uint32_t marks = model->mark_count < MARKS ? model->mark_count : MARKS;
    for (uint32_t i = 0; i < marks; i++)
        read_window(rig, model, model->marks[i]);
    for (uint32_t i = 0; i < BOUNDARIES; i++)
        read_window(rig, model, boundaries[i]);
}

static void compare_some(struct rig *rig, const struct model *model, struct rng *rng)
{
    uint32_t marks = model->mark_count < MARKS ? model->mark_count : MARKS;
    for (uint32_t i = 0; i < 4 && marks; i++)
        read_window(rig, model, model->marks[rng_below(rng, marks)]);
    read_window(rig, model, boundaries[rng_below(rng, BOUNDARIES)]);
    read_window(rig, model, model->length);
}

static uint32_t used_runs(struct rig *rig)
{
    struct page_file *file = &rig->store->extents;
    pthread_mutex_lock(&file->lock);
    uint32_t used = page_file_used_runs(file, NULL);
    pthread_mutex_unlock(&file->lock);
    return used;
}

static void say(void *arg, enum store_log_level level, const char *line)
{
    (void)arg;
    if (level == STORE_LOG_WARNING)
        fprintf(stderr, "# check: %s\n", line);
}

/* The check finds nothing, and the next start has all of it, from the index or by a scan. */
static void open_again(struct rig *rig, const struct model *model, bool scans)
{
    struct store_check found;
    char message[STORE_MESSAGE_MAX];
    rig_close_well(rig);
    must(store_check(rig->options.directory, say, NULL, &found, message) == STORE_OK, "check: %s",
         message);
    must(found.faults == 0, "the check finds %llu faults", (unsigned long long)found.faults);
    rig->options.scans = scans;
    must(rig_open(rig, NULL) == STORE_OK, "open: %s", rig->message);
    must(rig->warnings == 0, "the start says: %s", rig->last_warning);
    compare_all(rig, model);
}

/* ---- changing ---- */

static uint64_t near(struct rng *rng, const struct model *model, uint64_t most)
{
    uint64_t place = boundaries[rng_below(rng, BOUNDARIES)];
    if (model->mark_count && rng_chance(rng, 30))
        place = model->marks[rng_below(rng, model->mark_count < MARKS ? model->mark_count : MARKS)];
    place += rng_below(rng, 9);
    place = place < 4 ? 0 : place - 4;
    return place < most ? place : most;
}

static struct blob *some_bytes(struct rng *rng)
{
    static const uint32_t lengths[] = {1, 1, 1, 50, 5000, FORMAT_EXTENT_BYTES, 300000};
    uint32_t about = lengths[rng_below(rng, sizeof lengths / sizeof *lengths)];
    return blob_random(rng, about + rng_below(rng, 3));
}

static void put(struct call *call, struct model *model, struct rng *rng)
{
    uint64_t len =
        near(rng, model, FORMAT_ROOT_EXTENTS * FORMAT_EXTENT_BYTES + FORMAT_EXTENT_BYTES);
    struct step *step = call_step(call, STEP_PUT, 0);
    step->blob = blob_random(rng, len ? len : 1);
    model_clear(model);
    model_write(model, 0, step->blob);
}

static void patch(struct call *call, struct model *model, struct rng *rng)
{
    struct step *step = call_step(call, STEP_PATCH, 0);
    step->blob = some_bytes(rng);
    step->offset = near(rng, model, STORE_VALUE_MAX - step->blob->len);
    model_write(model, step->offset, step->blob);
}

/* To another name and back, with another expiry: the same value under new items. */
static void move(struct call *call)
{
    uint32_t other = call_key(call, 0, 1, "other", 5);
    call_step(call, STEP_RENAME, 0)->other = other;
    call_step(call, STEP_EXPIRE, other)->expire_ms = 4000000000000ll;
    call_step(call, STEP_RENAME, other)->other = 0;
}

static void change(struct rig *rig, struct model *model, struct rng *rng)
{
    struct call *call = call_new();
    uint32_t dice = rng_below(rng, 100);
    call_key(call, 0, 0, "key", 3);
    if (model->length == 0 || dice < 15)
        put(call, model, rng);
    if (dice < 80)
        patch(call, model, rng);
    if (dice % 3 == 0)
        patch(call, model, rng);
    if (dice >= 80 && dice < 95)
        move(call);
    if (dice >= 97) {
        call_step(call, STEP_DELETE, 0);
        model_clear(model);
    }
    must(run(rig, call) == STORE_OK, "changing gives %d", call->result);
    call_free(call);
}

static void must_come_back(struct rig *rig)
{
    must(do_delete(rig, "key") == STORE_OK, "delete");
    for (uint32_t waited = 0; used_runs(rig) != 0; waited += 10) {
        must(waited < 20000, "%u runs are still in use", used_runs(rig));
        rig_run(rig, 10);
    }
    must(rig->warnings == 0, "it says: %s", rig->last_warning);
}

static void open_scratch(struct rig *rig, char directory[256])
{
    rig_defaults(rig);
    rig->options.memory_bytes = 4 << 20;
    rig->options.partition_count = 1;
    scratch_make(directory);
    rig->options.directory = directory;
    must(rig_open(rig, NULL) == STORE_OK, "open: %s", rig->message);
}

#define CHANGES 150u
#define ROUND 10u

static void a_value_of_any_form_is_what_was_written(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("large values")};
    struct model model = {.pages = calloc(MODEL_PAGES, sizeof *model.pages)};
    char directory[256];
    struct rig rig;
    must(model.pages, "out of memory");
    open_scratch(&rig, directory);
    for (uint32_t i = 0; i < CHANGES; i++) {
        change(&rig, &model, &rng);
        compare_some(&rig, &model, &rng);
        if (i % ROUND == ROUND - 1)
            open_again(&rig, &model, rng_chance(&rng, 50));
    }
    must_come_back(&rig);
    rig_close_well(&rig);
    scratch_remove(directory);
    model_clear(&model);
    free(model.pages);
}

/* From extents named by the root straight to several nodes, at each number of extents. */
static bool answer(const struct store_request *request)
{
    return *(const bool *)((const struct call *)request)->arg;
}

/* A commit waits for the write of a large value; meanwhile its result may become unwanted. */
static void a_commit_that_waits_may_be_dropped(void **state)
{
    (void)state;
    struct rng rng = {3};
    struct rig rig;
    struct medium *medium = medium_new(1);
    rig_defaults(&rig);
    rig_open_on(&rig, medium);
    must(do_set(&rig, "key", "before") == STORE_OK, "put");
    for (int i = 0; i < 2; i++) {
        bool is_wanted = i;
        struct call *call = call_new();
        call_step(call, STEP_PUT, call_key(call, 0, 0, "key", 3))->blob = blob_random(&rng, 100000);
        call_start(rig.workers[0], call);
        must(!call->finished, "it has not waited");
        call->arg = &is_wanted;
        call->request.is_wanted = answer;
        call_wait(&rig, call);
        must(call->result == (is_wanted ? STORE_OK : STORE_CANCELLED), "put: %d", call->result);
        must(has_value(&rig, "key", "before") == !is_wanted, "another value");
        call_free(call);
    }
    rig_close_well(&rig);
    medium_free(medium);
}

static void it_grows_far_behind_its_end(void **state)
{
    (void)state;
    static const uint64_t ends[] = {5 * NODE / 2, NODE, NODE - 1, STORE_VALUE_MAX - 1};
    struct rng rng = {rng_seed("growing far")};
    struct model model = {.pages = calloc(MODEL_PAGES, sizeof *model.pages)};
    char directory[256];
    struct rig rig;
    must(model.pages, "out of memory");
    open_scratch(&rig, directory);
    for (uint32_t extents = 1; extents <= FORMAT_ROOT_EXTENTS + 1; extents += 3) {
        struct blob *value = blob_random(&rng, (extents - 1) * FORMAT_EXTENT_BYTES + PAGE_SIZE),
                    *byte;
        model_clear(&model);
        model_write(&model, 0, value);
        must(do_put(&rig, "key", value) == STORE_OK, "put");
        struct call *call = call_new();
        struct step *step = call_step(call, STEP_PATCH, call_key(call, 0, 0, "key", 3));
        step->blob = byte = blob_random(&rng, 1);
        step->offset = ends[extents % 4];
        model_write(&model, step->offset, byte);
        must(run(&rig, call) == STORE_OK, "growing gives %d", call->result);
        call_free(call);
        compare_all(&rig, &model);
        if (extents % 4 == 1)
            open_again(&rig, &model, extents % 8 == 1);
        must_come_back(&rig);
    }
    rig_close_well(&rig);
    scratch_remove(directory);
    model_clear(&model);
    free(model.pages);
}

/* ---- what cannot be true, behind a right checksum ---- */

#define LENGTH 300000u                                                         /* three extents */
#define DEEP (FORMAT_ROOT_EXTENTS * FORMAT_EXTENT_BYTES + FORMAT_EXTENT_BYTES) /* one node */

struct lie {
    const char *of;
    uint32_t at, size; /* of the root, or the node */
    uint64_t value;
};

#define ROOT_LIE(field, number)                                                                    \
    {                                                                                              \
        "root." #field, offsetof(struct format_root, field),                                       \
            sizeof((struct format_root *)0)->field, number                                         \
    }
#define EXTENT_LIE(which, field, number)                                                           \
    {                                                                                              \
        "extent." #field,                                                                          \
            (which) * sizeof(struct format_extent) + offsetof(struct format_extent, field),        \
            sizeof((struct format_extent *)0)->field, number                                       \
    }

static const struct lie root_lies[] = {
    ROOT_LIE(length, 0),          ROOT_LIE(length, 1),         ROOT_LIE(length, UINT64_MAX),
    ROOT_LIE(length, 1ull << 40), ROOT_LIE(count, 0),          ROOT_LIE(count, 2),
    ROOT_LIE(count, 255),         ROOT_LIE(count, UINT32_MAX), ROOT_LIE(depth, 1),
    ROOT_LIE(depth, 2),           ROOT_LIE(depth, UINT32_MAX),
};

static const struct lie extent_lies[] = {
    EXTENT_LIE(1, page, 0),
    EXTENT_LIE(1, page, 2),
    EXTENT_LIE(1, page, SEGMENT_PAGES),
    EXTENT_LIE(1, page, 1u << 20),
    EXTENT_LIE(1, page, UINT32_MAX),
    EXTENT_LIE(1, page, UINT32_MAX - FORMAT_EXTENT_PAGES + 1),
    EXTENT_LIE(1, length, 0),
    EXTENT_LIE(1, length, FORMAT_EXTENT_BYTES + 1),
    EXTENT_LIE(1, length, UINT32_MAX),
    EXTENT_LIE(1, length, UINT32_MAX - 100),
};

static struct medium *store_with(struct rig *rig, const struct blob *value)
{
    struct medium *medium = medium_new(1);
    rig_defaults(rig);
    rig->options.partition_count = 1;
    rig_open_on(rig, medium);
    must(do_set(rig, "well", "value") == STORE_OK, "set");
    must(do_put(rig, "hurt", blob_ref((struct blob *)(uintptr_t)value)) == STORE_OK, "put");
    rig_close_well(rig);
    return medium;
}

static uint64_t find_root(struct medium *medium, uint64_t length, uint32_t count, uint32_t depth)
{
    struct format_root root = {.length = length, .count = count, .depth = depth};
    uint64_t at = medium_find(medium, "slabs-00", &root, sizeof root);
    must(at != UINT64_MAX, "the root is not in its file");
    return at;
}

/* The item of the root gets a checksum anew. */
static void sign(struct medium *medium, uint64_t root_at)
{
    struct format_superblock super;
    struct format_segment segment;
    char bytes[PAGE_SIZE] __attribute__((aligned(8)));
    struct format_item *item = (struct format_item *)bytes;
    uint64_t at = root_at - 4 - sizeof *item; /* with a key of four bytes */
    uint32_t page = (uint32_t)(at / PAGE_SIZE);
    medium_peek(medium, "superblock", 0, &super, sizeof super);
    medium_peek(medium, "slabs-00", (uint64_t)(page / SEGMENT_PAGES) * SEGMENT_BYTES, &segment,
                sizeof segment);
    uint32_t size = format_class_size(segment.size_class);
    uint32_t slot = (uint32_t)(at % PAGE_SIZE) / size;
    medium_peek(medium, "slabs-00", at, bytes, size);
    uint32_t length = format_item_length(item, size);
    must(length, "the item cannot be found");
    item->checksum =
        format_item_checksum(item, length, format_place_mix(super.seed, 0, page, slot));
    medium_poke(medium, "slabs-00", at, &item->checksum, sizeof item->checksum);
}

static struct step *patch_step(struct call *call, struct rng *rng, uint64_t offset, uint64_t len)
{
    struct step *step = call_step(call, STEP_PATCH, call_key(call, 0, 0, "hurt", 4));
    step->offset = offset;
    step->blob = blob_random(rng, len);
    return step;
}

static uint64_t damaged(const struct rig *rig)
{
    struct store_stats stats;
    store_stats(rig->store, &stats);
    return stats.damaged_items;
}

/* Read, changed, deleted: refused or right, counted, and the rest goes on. */
static void live_with(struct rig *rig, const struct blob *value, const struct lie *lie)
{
    struct rng rng = {1};
    enum store_result result;
    struct blob *found = do_get(rig, "hurt", &result);
    must(!found, "%s = %llu: it is served", lie->of, (unsigned long long)lie->value);
    must(result == STORE_DAMAGED || result == STORE_ABSENT, "%s = %llu: reading gives %d", lie->of,
         (unsigned long long)lie->value, result);
    must(damaged(rig) > 0 && rig->warnings > 0, "%s = %llu: it is not counted", lie->of,
         (unsigned long long)lie->value);
    static const uint64_t places[] = {0, 140000, LENGTH - 1, DEEP + 1, 40u << 20};
    for (uint32_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct call *call = call_new();
        patch_step(call, &rng, places[i], i == 1 ? 200000 : 10);
        result = run(rig, call);
        must(result == STORE_OK || result == STORE_DAMAGED, "%s = %llu: a patch gives %d", lie->of,
             (unsigned long long)lie->value, result);
        call_free(call);
    }
    must(do_delete(rig, "hurt") == STORE_OK, "%s = %llu: it cannot be deleted", lie->of,
         (unsigned long long)lie->value);
    rig_run(rig, 5);
    must(has_value(rig, "well", "value"), "the rest is not served");
    must(do_put(rig, "hurt", blob_ref((struct blob *)(uintptr_t)value)) == STORE_OK, "put");
    found = do_get(rig, "hurt", &result);
    must(found && memcmp(found->bytes, value->bytes, value->len) == 0, "the new one: %d", result);
    blob_unref(found);
}

static void try_lie(struct rig *rig, struct medium *hurt, const struct blob *value,
                    const struct lie *lie)
{
    for (uint32_t scans = 0; scans < 2; scans++) {
        struct medium *copy = medium_copy(hurt);
        rig->options.scans = scans;
        rig_open_on(rig, copy);
        live_with(rig, value, lie);
        rig_close_well(rig);
        rig->options.scans = false;
        rig_open_on(rig, copy);
        must(has_value(rig, "well", "value"), "opened again");
        rig_end(rig, copy);
    }
}

static void a_root_that_cannot_be_true(void **state)
{
    (void)state;
    struct rng rng = {3};
    struct rig rig;
    struct blob *value = blob_random(&rng, LENGTH);
    struct medium *medium = store_with(&rig, value);
    uint64_t root = find_root(medium, LENGTH, 3, 0);
    for (uint32_t i = 0; i < sizeof root_lies / sizeof *root_lies; i++) {
        struct medium *hurt = medium_copy(medium);
        medium_poke(hurt, "slabs-00", root + root_lies[i].at, &root_lies[i].value,
                    root_lies[i].size);
        sign(hurt, root);
        try_lie(&rig, hurt, value, &root_lies[i]);
        medium_free(hurt);
    }
    for (uint32_t i = 0; i < sizeof extent_lies / sizeof *extent_lies; i++) {
        struct medium *hurt = medium_copy(medium);
        medium_poke(hurt, "slabs-00", root + sizeof(struct format_root) + extent_lies[i].at,
                    &extent_lies[i].value, extent_lies[i].size);
        sign(hurt, root);
        try_lie(&rig, hurt, value, &extent_lies[i]);
        medium_free(hurt);
    }
    blob_unref(value);
    medium_free(medium);
}

/* The root's descriptor of the node becomes right for what the node is now. */
static void sign_node(struct medium *medium, uint64_t root, uint32_t length)
{
    struct format_extent node;
    char page[PAGE_SIZE];
    uint64_t at = root + sizeof(struct format_root);
    medium_peek(medium, "slabs-00", at, &node, sizeof node);
    medium_peek(medium, "extents", (uint64_t)node.page * PAGE_SIZE, page, sizeof page);
    node.length = length;
    node.checksum = format_checksum(page, length);
    medium_poke(medium, "slabs-00", at, &node, sizeof node);
    sign(medium, root);
}

static void a_node_that_cannot_be_true(void **state)
{
    (void)state;
    static const struct lie shorter = {"node's length", 0, 0, 96}; /* six descriptors */
    struct rng rng = {4};
    struct rig rig;
    struct format_extent node;
    struct blob *value = blob_random(&rng, DEEP);
    struct medium *medium = store_with(&rig, value);
    uint64_t root = find_root(medium, DEEP, 1, 1);
    medium_peek(medium, "slabs-00", root + sizeof(struct format_root), &node, sizeof node);
    for (uint32_t i = 0; i < sizeof extent_lies / sizeof *extent_lies; i++) {
        struct medium *hurt = medium_copy(medium);
        medium_poke(hurt, "extents", (uint64_t)node.page * PAGE_SIZE + extent_lies[i].at,
                    &extent_lies[i].value, extent_lies[i].size);
        sign_node(hurt, root, PAGE_SIZE);
        try_lie(&rig, hurt, value, &extent_lies[i]);
        medium_free(hurt);
    }
    sign_node(medium, root, (uint32_t)shorter.value);
    try_lie(&rig, medium, value, &shorter);
    blob_unref(value);
    medium_free(medium);
}

/* ---- the runs of old values ---- */

static enum store_result put_only(struct rig *rig, const char *key, struct blob *value)
{
    struct call *call = call_new();
    call_step(call, STEP_PUT, call_key(call, 0, 0, key, (uint32_t)strlen(key)))->blob = value;
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    enum store_result result = call->result;
    call_free(call);
    return result;
}

/* An overwrite that the journal has not taken is undone by a crash: the old value's run must have
 * the old value until then, however many others want room. */
static void an_old_value_stays_until_the_new_one_is_durable(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 21);
    struct rng rng = {21};
    enum store_result result;
    rig.options.sync = STORE_SYNC_NO;
    rig_open_on(&rig, medium);
    struct blob *old = blob_ref(blob_random(&rng, FORMAT_EXTENT_BYTES));
    must(do_put(&rig, "key", old) == STORE_OK, "put");
    must(put_only(&rig, "page", blob_random(&rng, 100)) == STORE_OK, "put");
    rig_run(&rig, 1100);
    medium_hold(medium, FAULT_WRITE, "journal", 0);
    must(put_only(&rig, "key", blob_random(&rng, FORMAT_EXTENT_BYTES)) == STORE_OK, "overwrite");
    for (uint32_t i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "other:%u", i);
        rig_run(&rig, 5); /* the maintenance thread frees what it may */
        must(put_only(&rig, name, blob_random(&rng, FORMAT_EXTENT_BYTES)) == STORE_OK, "put");
    }
    medium_cut_now(medium);
    must(rig_close(&rig) != STORE_OK, "closing without power");
    rig_open_on(&rig, medium);
    struct blob *found = do_get(&rig, "key", &result);
    must(found && found->len == old->len && memcmp(found->bytes, old->bytes, old->len) == 0,
         "the old value is %s", found ? "another" : "gone");
    blob_unref(found);
    blob_unref(old);
    rig_end(&rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_that_waits_may_be_dropped),
        cmocka_unit_test(it_grows_far_behind_its_end),
        cmocka_unit_test(a_value_of_any_form_is_what_was_written),
        cmocka_unit_test(a_root_that_cannot_be_true),
        cmocka_unit_test(a_node_that_cannot_be_true),
        cmocka_unit_test(an_old_value_stays_until_the_new_one_is_durable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
