/* Values that are written while they arrive: what becomes of them and of their space, when they are
 * put under a key, given up, cut off by the power, or met by a device that fails. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/txn/engine.h"
#include "tests/storage/fault_disk.h"
#include "tests/storage/sender.h"

#define MANY 40u

/* ---- uploading ---- */

static enum store_result upload(struct rig *rig, const char *key, struct blob *value,
                                struct rng *rng)
{
    struct sender *sender = sender_new(rig, key, strlen(key), blob_ref(value));
    enum store_result result = sender_send_until(sender, rng, value->len);
    if (result == STORE_OK)
        result = sender_put(sender);
    uint64_t commit = sender->request.shown;
    sender_free(sender);
    if (result == STORE_OK)
        rig_sync(rig, commit);
    return result;
}

/* ---- looking ---- */

static void must_have(struct rig *rig, const char *key, const struct blob *value)
{
    enum store_result result;
    struct blob *found = do_get(rig, key, &result);
    must(found, "%s is not there: %d", key, result);
    must(found->len == value->len && memcmp(found->bytes, value->bytes, value->len) == 0,
         "%s has another value", key);
    blob_unref(found);
}

static uint32_t used_runs(struct rig *rig)
{
    struct page_file *file = &rig->store->extents;
    pthread_mutex_lock(&file->lock);
    uint32_t used = page_file_used_runs(file, NULL);
    page_file_check(file);
    pthread_mutex_unlock(&file->lock);
    return used;
}

/* What was given up is free, be it after a while. */
static void must_use(struct rig *rig, uint32_t runs)
{
    for (uint32_t waited = 0; used_runs(rig) != runs; waited += 10) {
        must(waited < 20000, "%u runs are in use, not %u", used_runs(rig), runs);
        rig_run(rig, 10);
    }
}

static uint32_t frames_referenced(struct rig *rig)
{
    struct page_file *file = &rig->store->extents;
    uint32_t found = 0;
    pthread_mutex_lock(&file->lock);
    for (uint32_t page = 0; page < file->segment_count * SEGMENT_PAGES; page++)
        found += file->table[page] && arena_frame(file->arena, file->table[page])->refs > 0;
    pthread_mutex_unlock(&file->lock);
    return found;
}

static void start(struct rig *rig, struct medium **medium)
{
    *medium = medium_new(1);
    rig_defaults(rig);
    rig_open_on(rig, *medium);
}

static void end(struct rig *rig, struct medium *medium)
{
    rig_end(rig, medium);
}

/* ---- values of all lengths ---- */

static void what_was_sent_is_there(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {5000,        65536,           131071,
                                       131072,      131073,          1000000,
                                       64 * 131072, 64 * 131072 + 1, (33u << 20) + 5};
    struct rng rng = {rng_seed("uploads")};
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct blob *value = blob_random(&rng, lengths[i]);
        must(upload(&rig, "key", value, &rng) == STORE_OK, "upload");
        must_have(&rig, "key", value);
        rig_reopen(&rig, medium);
        must_have(&rig, "key", value);
        uint32_t extents = (uint32_t)((lengths[i] + 131071) / 131072);
        must_use(&rig, extents + (extents > 64 ? (extents + 255) / 256 : 0));
        blob_unref(value);
    }
    end(&rig, medium);
}

/* Put, and then changed in the same transaction: patched, moved, deleted. */
static enum store_result run_and_change(struct store_txn *txn, struct store_request *request)
{
    struct sender *sender = (struct sender *)request;
    struct store_key other;
    struct store_item item;
    enum store_result result = sender_run_put(txn, request);
    if (result == STORE_OK)
        result = store_get(txn, &sender->key, &item);
    if (result == STORE_OK)
        result = store_patch(txn, &sender->key, &item, 200000, "patched", 7);
    if (result == STORE_OK)
        result = store_get(txn, &sender->key, &item);
    store_key(sender->rig->store, &other, 0, "other", 5, STORE_EXCLUSIVE);
    return result == STORE_OK ? store_rename(txn, &sender->key, &item, &other) : result;
}

static void it_is_a_value_like_others_in_its_transaction(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("changes")};
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    struct blob *value = blob_random(&rng, 1000000);
    struct sender *sender = sender_new(&rig, "key", 3, blob_ref(value));
    must(sender_send_until(sender, &rng, value->len) == STORE_OK, "send");
    while (store_upload_finish(sender->upload) == STORE_WAIT)
        sender_await(sender);
    sender->request = (struct store_request){
        .run = run_and_change, .done = sender_put_done, .scope = STORE_SCOPE_ALL, .now_ms = 1000};
    if (store_execute(rig.workers[0], &sender->request) == STORE_WAIT)
        while (!sender->is_done)
            rig_round(&rig);
    must(sender->result == STORE_OK, "changing: %d", sender->result);
    sender_free(sender);
    memcpy(value->bytes + 200000, "patched", 7);
    must(has_value(&rig, "key", NULL), "it was renamed");
    must_have(&rig, "other", value);
    must_use(&rig, 8);
    blob_unref(value);
    end(&rig, medium);
}

/* ---- giving up ---- */

static void page_file_comes_back(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("giving up")};
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    for (uint32_t i = 0; i < 60; i++) {
        struct blob *value = blob_random(&rng, 65536 + rng_below(&rng, 9u << 20));
        struct sender *sender = sender_new(&rig, "key", 3, value);
        uint64_t until = i % 3 ? rng_below(&rng, (uint32_t)value->len + 1) : value->len;
        must(sender_send_until(sender, &rng, until) == STORE_OK, "send");
        if (until < value->len && i % 2) { /* in the middle of what a wait may be for */
            const struct iovec *vectors;
            int count;
            (void)!store_upload_space(sender->upload, &vectors, &count);
        }
        enum store_result result = until == value->len ? store_upload_finish(sender->upload) : 0;
        must(result == STORE_OK || result == STORE_WAIT, "finish: %d", result);
        sender_free(sender);
        must_use(&rig, 0);
        must(frames_referenced(&rig) == 0, "frames stay referenced");
        must(atomic_load(&rig.store->upload_pages) == 0, "pages are still counted");
    }
    must(has_value(&rig, "key", NULL), "nothing was put");
    end(&rig, medium);
}

static void flushing_everything_leaves_uploads_alone(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("flushes")};
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    struct blob *value = blob_random(&rng, 1000000);
    must(upload(&rig, "old", value, &rng) == STORE_OK, "upload");
    struct sender *sender = sender_new(&rig, "key", 3, blob_ref(value));
    must(sender_send_until(sender, &rng, 300000) == STORE_OK, "send");
    struct call *call = call_new();
    call->exclusive = true;
    call_step(call, STEP_FLUSH_ALL, 0);
    call_start(rig.workers[0], call);
    call_wait(&rig, call);
    must(call->result == STORE_OK, "flush: %d", call->result);
    call_free(call);
    must_use(&rig, 3);
    must(sender_send_until(sender, &rng, value->len) == STORE_OK && sender_put(sender) == STORE_OK,
         "put");
    sender_free(sender);
    must_use(&rig, 8);
    must_have(&rig, "key", value);
    blob_unref(value);
    end(&rig, medium);
}

/* ---- many at once ---- */

/* With 256 pages of cache there are frames for a few uploads only; no upload waits for slow ones.
 * */
static void slow_ones_hold_up_nobody(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("many")};
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    struct sender *senders[MANY];
    struct blob *value = blob_random(&rng, 700000);
    for (uint32_t i = 0; i < MANY; i++) {
        char key[16];
        snprintf(key, sizeof key, "slow:%u", i);
        senders[i] = sender_new(&rig, key, strlen(key), blob_ref(value));
        must(sender_send_until(senders[i], &rng, 100000) == STORE_OK, "send");
    }
    uint64_t memory = atomic_load(&rig.store->memory_bytes);
    must((uint64_t)atomic_load(&rig.store->apart_bytes) <=
             memory / 8 + FORMAT_EXTENT_BYTES + MANY * PAGE_SIZE,
         "too much memory besides");
    must(atomic_load(&rig.store->upload_pages) <= 256 / 4 + FORMAT_EXTENT_PAGES, "too many frames");
    must(upload(&rig, "quick", value, &rng) == STORE_OK, "upload");
    must_have(&rig, "quick", value);
    for (uint32_t i = 0; i < MANY; i++) { /* every other one goes, with writes under way perhaps */
        uint64_t until = i % 2 ? value->len : value->len / 2 + i * 1000;
        must(sender_send_until(senders[i], &rng, until) == STORE_OK, "send");
        if (i % 2)
            must(sender_put(senders[i]) == STORE_OK, "put");
        sender_free(senders[i]);
    }
    must_use(&rig, 6 * (MANY / 2 + 1));
    must(atomic_load(&rig.store->apart_bytes) == 0, "memory was lost");
    for (uint32_t i = 1; i < MANY; i += 2) {
        char key[16];
        snprintf(key, sizeof key, "slow:%u", i);
        must_have(&rig, key, value);
    }
    blob_unref(value);
    end(&rig, medium);
}

/* The device does not get on: no more than a few extents are on their way. */
static void a_slow_device_is_waited_for(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("stalls")};
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    struct blob *value = blob_random(&rng, 4 << 20);
    must(do_put(&rig, "other", blob_random(&rng, 200000)) == STORE_OK, "put");
    medium_hold(medium, FAULT_WRITE, "extents", 0);
    struct sender *sender = sender_new(&rig, "key", 3, value);
    enum store_result result;
    while ((result = sender_send(sender, STORE_READER_PIECE)) == STORE_OK || sender->is_woken)
        sender->is_woken = false;
    must(result == STORE_WAIT, "send: %d", result);
    rig_run(&rig, 50);
    must(sender->sent <= 5 * 131072, "%llu bytes were taken", (unsigned long long)sender->sent);
    must(do_set(&rig, "small", "value") == STORE_OK, "others go on");
    medium_release(medium);
    must(sender_send_until(sender, &rng, value->len) == STORE_OK && sender_put(sender) == STORE_OK,
         "put");
    must_have(&rig, "key", value);
    sender_free(sender);
    end(&rig, medium);
}

/* ---- of unknown length: spilled, and read by a value reader ---- */

struct reply_spill {
    struct store_request request; /* opens the stream */
    struct rig *rig;
    struct store_upload *upload;
    struct store_reader *reader;
    const struct blob *value;
    bool is_woken;
};

static void reply_spill_ready(void *arg)
{
    ((struct reply_spill *)arg)->is_woken = true;
}

static void reply_spill_await(struct reply_spill *aside)
{
    for (uint32_t rounds = 0; !aside->is_woken; rounds++) {
        must(rounds < 20000, "nobody wakes it");
        rig_round(aside->rig);
    }
    aside->is_woken = false;
}

/* The value's pieces, as many as go. */
static enum store_result reply_spill_put(struct reply_spill *aside)
{
    enum store_result result = store_upload_begin(aside->rig->workers[0], STORE_UPLOAD_OPEN,
                                                  reply_spill_ready, aside, &aside->upload);
    must(result == STORE_OK, "begin: %d", result);
    for (uint64_t at = 0; at < aside->value->len && result == STORE_OK;) {
        const struct iovec *vectors;
        int count;
        while ((result = store_upload_space(aside->upload, &vectors, &count)) == STORE_WAIT)
            reply_spill_await(aside);
        for (int i = 0; i < count && result == STORE_OK; i++) {
            memcpy(vectors[i].iov_base, aside->value->bytes + at, vectors[i].iov_len);
            at += vectors[i].iov_len;
            store_upload_filled(aside->upload, vectors[i].iov_len);
        }
    }
    enum store_result finished;
    while ((finished = store_upload_finish(aside->upload)) == STORE_WAIT)
        reply_spill_await(aside);
    return result == STORE_OK || finished != STORE_OK ? finished : result;
}

static enum store_result run_open(struct store_txn *txn, struct store_request *request)
{
    struct reply_spill *aside = (struct reply_spill *)request;
    enum store_result result = store_reader_open_upload(txn, aside->upload, &aside->reader);
    if (result == STORE_OK)
        store_reader_keep(aside->reader);
    return result;
}

static enum store_result run_open_in_vain(struct store_txn *txn, struct store_request *request)
{
    struct reply_spill *aside = (struct reply_spill *)request;
    enum store_result result = store_reader_open_upload(txn, aside->upload, &aside->reader);
    return result == STORE_OK ? STORE_ABSENT : result;
}

static void never_done(struct store_request *request, enum store_result result)
{
    (void)request;
    must(false, "it did not have to wait: %d", result);
}

static enum store_result reply_spill_run(struct reply_spill *aside,
                                         enum store_result (*run)(struct store_txn *,
                                                                  struct store_request *))
{
    aside->request =
        (struct store_request){.run = run, .done = never_done, .scope = STORE_SCOPE_NONE};
    return store_execute(aside->rig->workers[0], &aside->request);
}

/* What the stream says is the value's beginning; how much it was. */
static uint64_t reply_spill_read(struct reply_spill *aside, uint64_t most)
{
    const struct iovec *vectors;
    int count;
    uint64_t at = 0;
    enum store_result result = STORE_OK;
    store_reader_on_ready(aside->reader, reply_spill_ready, aside);
    while (at < most &&
           (result = store_reader_next(aside->reader, &vectors, &count)) != STORE_ABSENT) {
        if (result == STORE_WAIT) {
            reply_spill_await(aside);
            continue;
        }
        must(result == STORE_OK, "stream: %d", result);
        for (int i = 0; i < count; at += vectors[i++].iov_len)
            must(memcmp(aside->value->bytes + at, vectors[i].iov_base, vectors[i].iov_len) == 0,
                 "other bytes from %llu on", (unsigned long long)at);
    }
    return at;
}

static void what_is_put_aside_is_read_once(void **state)
{
    (void)state;
    static const uint32_t pieces[] = {1, 3, 64, 65, 300};
    struct rng rng = {rng_seed("aside")};
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    for (uint32_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct blob *value = blob_random(&rng, (uint64_t)pieces[i] * STORE_READER_PIECE);
        struct reply_spill aside = {.rig = &rig, .value = value};
        must(reply_spill_put(&aside) == STORE_OK, "put");
        must(reply_spill_run(&aside, run_open_in_vain) == STORE_ABSENT, "its run was for nothing");
        must(reply_spill_run(&aside, run_open) == STORE_OK, "open");
        store_upload_close(aside.upload);
        must_use(&rig, pieces[i]); /* the stream keeps it */
        must(reply_spill_read(&aside, i % 2 ? UINT64_MAX : value->len / 2) >= value->len / 2,
             "short");
        store_reader_close(aside.reader);
        must_use(&rig, 0);
        must(frames_referenced(&rig) == 0, "frames stay referenced");
        must(atomic_load(&rig.store->upload_pages) == 0, "pages are still counted");
        blob_unref(value);
    }
    end(&rig, medium);
}

static void what_was_put_aside_is_good_when_there_is_no_more_room(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("aside, full")};
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    struct store_stats stats;
    store_stats(rig.store, &stats);
    store_set_max_store(rig.store, stats.store_bytes + (8u << 20));
    struct blob *value = blob_random(&rng, 40u << 20);
    struct reply_spill aside = {.rig = &rig, .value = value};
    must(reply_spill_put(&aside) == STORE_FULL, "there is no room for that");
    must(reply_spill_run(&aside, run_open) == STORE_OK, "open");
    uint64_t there = reply_spill_read(&aside, UINT64_MAX);
    must(there >= 4u << 20 && there < value->len, "%llu bytes", (unsigned long long)there);
    store_reader_close(aside.reader);
    store_upload_close(aside.upload);
    must_use(&rig, 0);
    blob_unref(value);
    end(&rig, medium);
}

static void what_was_put_aside_is_gone_with_the_power(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("aside, cut")};
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    struct blob *value = blob_random(&rng, 1 << 20);
    struct reply_spill aside = {.rig = &rig, .value = value};
    must(do_set(&rig, "key", "value") == STORE_OK, "set");
    must(reply_spill_put(&aside) == STORE_OK, "put");
    struct medium *cut = medium_copy(medium);
    store_upload_close(aside.upload);
    end(&rig, medium);
    rig_open_on(&rig, cut);
    must_use(&rig, 0);
    blob_unref(value);
    end(&rig, cut);
}

/* ---- no room, no device ---- */

static void a_full_disk_ends_it(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("full")};
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    struct blob *value = blob_random(&rng, 40u << 20);
    struct store_stats stats;
    store_stats(rig.store, &stats);
    store_set_max_store(rig.store, stats.store_bytes + (20u << 20));
    must(upload(&rig, "key", value, NULL) == STORE_FULL, "there is no room for that");
    must_use(&rig, 0);
    store_set_max_store(rig.store, 0);
    rig_run(&rig, 1200); /* a full disk is asked again each second */
    must(upload(&rig, "key", value, NULL) == STORE_OK, "there is room now");
    must_have(&rig, "key", value);
    blob_unref(value);
    end(&rig, medium);
}

static void a_failing_write_ends_it(void **state)
{
    (void)state;
    for (uint32_t nth = 1; nth <= 8; nth++) {
        struct rng rng = {rng_seed("failures")};
        struct medium *medium;
        struct rig rig;
        start(&rig, &medium);
        struct blob *value = blob_random(&rng, 1000000);
        must(upload(&rig, "old", value, &rng) == STORE_OK, "upload");
        medium_fail(medium, FAULT_WRITE, "extents", nth, EIO, false);
        must(upload(&rig, "key", value, &rng) == STORE_REFUSED, "write %u has failed", nth);
        must_have(&rig, "old", value);
        must(rig_close(&rig) == STORE_REFUSED, "close");
        medium_fail(medium, FAULT_WRITE, NULL, 0, 0, false);
        rig_open_on(&rig, medium);
        must_have(&rig, "old", value);
        must(has_value(&rig, "key", NULL), "it was not written");
        must_use(&rig, 8);
        blob_unref(value);
        end(&rig, medium);
    }
}

/* ---- power cuts ---- */

struct moment {
    struct medium *medium;
    bool is_put; /* acknowledged */
};

struct moments {
    struct moment at[4096];
    uint32_t count;
    _Atomic bool is_put;
};

static void record(void *arg, struct medium *medium)
{
    struct moments *moments = arg;
    must(moments->count < 4096, "the test's own limit");
    moments->at[moments->count++] = (struct moment){medium, moments->is_put};
}

/* The old value or the new one, whole, and no space is in use but theirs. */
static void try_moment(const struct moment *moment, enum fate fate, const struct blob *old,
                       const struct blob *fresh)
{
    struct rig rig;
    rig_defaults(&rig);
    struct medium *medium = medium_copy(moment->medium);
    medium_set_fate(medium, fate);
    rig_open_on(&rig, medium);
    enum store_result result;
    struct blob *found = do_get(&rig, "key", &result);
    must(found && (!moment->is_put || found->len == fresh->len), "found %p: %d", (void *)found,
         result);
    must_have(&rig, "key", found->len == old->len ? old : fresh);
    must_use(&rig, (uint32_t)((found->len + 131071) / 131072) + (found->len > 64 * 131072));
    rig_close_well(&rig);
    blob_unref(found);
    medium_free(medium);
}

static void cut_with(struct rng *rng, uint64_t length)
{
    struct moments *moments = calloc(1, sizeof *moments);
    must(moments, "out of memory");
    struct blob *old = blob_random(rng, 150000), *fresh = blob_random(rng, length);
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    must(upload(&rig, "key", old, NULL) == STORE_OK, "upload");
    medium_record(medium, record, moments);
    struct sender *abandoned = sender_new(&rig, "other", 5, blob_ref(fresh));
    must(sender_send_until(abandoned, NULL, 140000) == STORE_OK, "send");
    must(upload(&rig, "key", fresh, NULL) == STORE_OK, "upload");
    moments->is_put = true;
    must(do_set(&rig, "small", "value") == STORE_OK, "set");
    sender_free(abandoned);
    rig_close_well(&rig);
    medium_record(medium, NULL, NULL);
    uint32_t step = 1 + moments->count / 30;
    for (uint32_t i = rng_below(rng, step); i < moments->count; i += step)
        for (enum fate fate = 0; fate < FATES; fate++)
            try_moment(&moments->at[i], fate, old, fresh);
    for (uint32_t i = 0; i < moments->count; i++)
        medium_free(moments->at[i].medium);
    free(moments);
    blob_unref(old);
    blob_unref(fresh);
    medium_free(medium);
}

static void the_power_goes_at_any_time(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("power cuts")};
    cut_with(&rng, 500000);
    cut_with(&rng, 64 * 131072 + 5000); /* with a node */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sent_is_there),
        cmocka_unit_test(it_is_a_value_like_others_in_its_transaction),
        cmocka_unit_test(page_file_comes_back),
        cmocka_unit_test(flushing_everything_leaves_uploads_alone),
        cmocka_unit_test(slow_ones_hold_up_nobody),
        cmocka_unit_test(a_slow_device_is_waited_for),
        cmocka_unit_test(what_is_put_aside_is_read_once),
        cmocka_unit_test(what_was_put_aside_is_good_when_there_is_no_more_room),
        cmocka_unit_test(what_was_put_aside_is_gone_with_the_power),
        cmocka_unit_test(a_full_disk_ends_it),
        cmocka_unit_test(a_failing_write_ends_it),
        cmocka_unit_test(the_power_goes_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
