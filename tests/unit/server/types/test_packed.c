/* Packed sequences: against a plain array of texts, and bytes that are none. */
#include "server/types/packed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/model/model_store.h"
#include "tests/unit/seed.h"

#define ENTRIES_MAX 1024
#define ROUNDS 20000

/* What a sequence should hold: texts of one letter, repeated. */
struct mirror {
    uint32_t count;
    uint32_t lens[ENTRIES_MAX];
    char letters[ENTRIES_MAX];
};

static char text_of[26][PACKED_MAX];

static struct resp_slice text(const struct mirror *mirror, uint32_t index)
{
    return (struct resp_slice){text_of[mirror->letters[index] - 'a'], mirror->lens[index]};
}

static void assert_entry(const struct packed_entry *entry, const struct mirror *mirror, uint32_t i)
{
    assert_int_equal(entry->slice.len, mirror->lens[i]);
    assert_memory_equal(entry->slice.data, text(mirror, i).data, entry->slice.len);
}

/* Forwards, backwards, by number, and read again as if from the disk. */
static void compare(const struct packed *packed, const struct mirror *mirror)
{
    struct packed again;
    struct packed_entry entry = {.at = 0};
    assert_int_equal(packed->count, mirror->count);
    assert_in_range(packed->len, 0, PACKED_MAX);
    for (uint32_t i = 0; i < mirror->count; i++) {
        assert_true(packed_next(packed, &entry));
        assert_entry(&entry, mirror, i);
    }
    assert_false(packed_next(packed, &entry));
    entry = packed_end(packed);
    for (uint32_t i = mirror->count; i-- > 0;) {
        assert_true(packed_prev(packed, &entry));
        assert_entry(&entry, mirror, i);
    }
    assert_false(packed_prev(packed, &entry));
    if (mirror->count > 0) {
        uint32_t index = mirror->lens[0] % mirror->count;
        entry = packed_at(packed, index);
        assert_entry(&entry, mirror, index);
    }
    assert_true(packed_open(&again, packed->bytes, packed->len));
    assert_int_equal(again.count, packed->count);
}

static uint32_t place_of(const struct packed *packed, uint32_t index)
{
    return index == packed->count ? packed->len : packed_at(packed, index).at;
}

static void splice_one(struct packed *packed, struct mirror *mirror)
{
    uint32_t at = (uint32_t)rand() % (mirror->count + 1);
    uint32_t removed = rand() % 3 == 0 ? (uint32_t)rand() % (mirror->count - at + 1) : 0;
    uint32_t added = (uint32_t)rand() % 4, behind = mirror->count - at - removed;
    struct resp_slice fresh[4];
    struct mirror next = *mirror;
    for (uint32_t i = 0; i < added; i++) {
        next.lens[at + i] = (uint32_t)rand() % (rand() % 8 == 0 ? 400 : 12);
        next.letters[at + i] = (char)('a' + rand() % 26);
        fresh[i] = text(&next, at + i);
    }
    memcpy(next.lens + at + added, mirror->lens + at + removed, behind * sizeof(uint32_t));
    memcpy(next.letters + at + added, mirror->letters + at + removed, behind);
    next.count = at + added + behind;
    size_t size = 0;
    for (uint32_t i = 0; i < next.count; i++)
        size += packed_size(next.lens[i]);
    bool fits =
        packed_splice(packed, place_of(packed, at), place_of(packed, at + removed), fresh, added);
    assert_true(fits == (size <= PACKED_MAX));
    if (fits)
        *mirror = next;
}

struct job {
    struct store_request request;
    void (*body)(struct store_txn *txn);
};

static void random_splices(struct store_txn *txn)
{
    static struct mirror mirror;
    struct packed packed = packed_empty();
    assert_true(packed_own(&packed, txn));
    for (int round = 0; round < ROUNDS; round++) {
        splice_one(&packed, &mirror);
        compare(&packed, &mirror);
    }
}

static void changing_leaves_the_source_alone(struct store_txn *txn)
{
    static const char bytes[] = "\1a\1\2bc\2";
    char source[sizeof bytes];
    struct packed packed;
    struct packed_entry entry;
    memcpy(source, bytes, sizeof bytes);
    assert_true(packed_open(&packed, source, sizeof bytes - 1));
    assert_true(packed_own(&packed, txn));
    assert_true(packed_find(&packed, (struct resp_slice){"bc", 2}, 1, &entry));
    packed_cut(&packed, entry.at, entry.end);
    assert_int_equal(packed.count, 1);
    assert_memory_equal(source, bytes, sizeof bytes);
}

static enum store_result run(struct store_txn *txn, struct store_request *request)
{
    ((struct job *)request)->body(txn);
    return STORE_OK;
}

static void in_transaction(void (*body)(struct store_txn *txn))
{
    char message[STORE_MESSAGE_MAX];
    struct store_options options = {.partition_count = 1, .worker_count = 1};
    struct store *store;
    struct store_worker *worker;
    struct job job = {.request.run = run, .body = body};
    assert_int_equal(store_open(&options, &store, message), STORE_OK);
    assert_int_equal(store_attach(store, 0, &worker, message), STORE_OK);
    assert_int_equal(store_execute(worker, &job.request), STORE_OK);
    store_detach(worker);
    assert_int_equal(store_close(store), STORE_OK);
}

static void splices_do_what_an_array_does(void **state)
{
    (void)state;
    for (int letter = 0; letter < 26; letter++)
        memset(text_of[letter], 'a' + letter, PACKED_MAX);
    srand((unsigned)seed_for("splices"));
    in_transaction(random_splices);
}

static void the_source_of_a_change_stays(void **state)
{
    (void)state;
    in_transaction(changing_leaves_the_source_alone);
}

/* ---- as it stands on the disk ---- */

static void entries_are_laid_out_as_documented(void **state)
{
    (void)state;
    char bytes[1 + 1 + 1 + 2 + 200 + 2];
    struct packed packed;
    struct packed_entry entry = {.at = 0};
    memcpy(bytes, "\1x\1\xc8\1", 5);
    memset(bytes + 5, 'y', 200);
    memcpy(bytes + 205, "\1\xc8", 2);
    assert_true(packed_open(&packed, bytes, sizeof bytes));
    assert_int_equal(packed.count, 2);
    assert_true(packed_next(&packed, &entry));
    assert_int_equal(entry.slice.data[0], 'x');
    assert_true(packed_next(&packed, &entry));
    assert_int_equal(entry.slice.len, 200);
    assert_ptr_equal(entry.slice.data, bytes + 5);
}

static void what_is_no_sequence_is_refused(void **state)
{
    (void)state;
    static const struct resp_slice damaged[] = {
        {"\1", 1},                       /* nothing behind the length */
        {"\1x", 2},                      /* no mirrored length */
        {"\1x\2", 3},                    /* another length behind than before */
        {"\2x\1", 3},                    /* likewise */
        {"\x7fxyz\x7f", 5},              /* goes beyond the end */
        {"\x80\x00\x00\x80", 4},         /* a length in more bytes than it needs */
        {"\x80\x80\x80\x80\x80\x80", 6}, /* a length that does not end */
        {"\xff\xff\xff\xff\x7f\x7f", 6}, /* a length beyond all lengths */
        {"\xff\xff\xff\xff\x0f\x0f", 6},
        {"\1x\1\1y", 5}, /* the last one cut */
    };
    struct packed packed;
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++)
        assert_false(packed_open(&packed, damaged[i].data, damaged[i].len));
    assert_false(packed_open(&packed, text_of[0], PACKED_MAX + 1));
    assert_true(packed_open(&packed, "", 0));
    assert_int_equal(packed.count, 0);
}

static void finding_looks_only_where_it_should(void **state)
{
    (void)state;
    static const char bytes[] = "\1a\1\1b\1\1b\1\1c\1";
    struct packed packed;
    struct packed_entry entry;
    assert_true(packed_open(&packed, bytes, sizeof bytes - 1));
    assert_true(packed_find(&packed, (struct resp_slice){"b", 1}, 1, &entry));
    assert_int_equal(entry.at, 3);
    assert_true(packed_find(&packed, (struct resp_slice){"b", 1}, 2, &entry));
    assert_int_equal(entry.at, 6);
    assert_false(packed_find(&packed, (struct resp_slice){"c", 1}, 2, &entry));
    assert_false(packed_find(&packed, (struct resp_slice){"", 0}, 1, &entry));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splices_do_what_an_array_does),
        cmocka_unit_test(the_source_of_a_change_stays),
        cmocka_unit_test(entries_are_laid_out_as_documented),
        cmocka_unit_test(what_is_no_sequence_is_refused),
        cmocka_unit_test(finding_looks_only_where_it_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
