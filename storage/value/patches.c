/*
 * Invariants
 * 1. Each part ends where the next begins, or earlier.
 * 2. A part of n levels is in the lists of the levels below n.
 */
#include "storage/value/patches.h"

#include <assert.h>
#include <string.h>

#include "storage/base/checks.h"
#include "storage/store.h"

#define LEVELS 12u        /* each level has a quarter of the parts of the one below */
#define CHECKED_MOST 256u /* parts that patches_check() walks over */

struct patches {
    uint64_t random;
    struct patch *first[LEVELS];
};

static uint64_t end_of(const struct patch *patch)
{
    return patch->offset + patch->len;
}

/* Asserts invariant 1, and that the lowest list has all parts. */
static void patches_check(const struct patches *patches)
{
    uint64_t end = 0;
    uint32_t left = CHECKED_MOST;
    const struct patch *above = patches->first[1];
    for (const struct patch *patch = patches->first[0]; patch && left-- > 0;
         patch = patch->next[0]) {
        assert(patch->len > 0 && patch->offset >= end);
        assert(patch->levels > 0 && patch->levels <= LEVELS);
        assert((patch == above) == (patch->levels > 1));
        if (patch == above)
            above = patch->next[1];
        end = end_of(patch);
    }
}

/* In each level, the link to the first part that ends after `offset`. */
static void find(struct patches *patches, uint64_t offset, struct patch **links[LEVELS])
{
    struct patch **at = patches->first;
    for (uint32_t level = LEVELS; level-- > 0;) {
        while (at[level] && end_of(at[level]) <= offset)
            at = at[level]->next;
        links[level] = &at[level];
    }
}

static uint32_t choose_levels(struct patches *patches)
{
    uint32_t levels = 1;
    patches->random = patches->random * 6364136223846793005ull + 1442695040888963407ull;
    for (uint64_t bits = patches->random >> 32; bits % 4 == 0 && levels < LEVELS; bits /= 4)
        levels++;
    return levels;
}

static bool insert(struct store_txn *txn, struct patches *patches, struct patch **links[LEVELS],
                   const struct patch *what)
{
    uint32_t levels = choose_levels(patches);
    assert(!*links[0] || end_of(what) <= (*links[0])->offset);
    struct patch *patch = store_alloc(txn, sizeof *patch + levels * sizeof patch->next[0]);
    if (!patch)
        return false;
    *patch = *what;
    patch->levels = levels;
    for (uint32_t level = 0; level < levels; level++) {
        patch->next[level] = *links[level];
        *links[level] = patch;
    }
    return true;
}

/* Splits the part that begins before `offset` and ends after it. */
static bool divide(struct store_txn *txn, struct patches *patches, uint64_t offset)
{
    struct patch **links[LEVELS];
    find(patches, offset, links);
    struct patch *patch = *links[0];
    if (!patch || patch->offset >= offset)
        return true;
    uint64_t before = offset - patch->offset;
    struct patch rest = {offset, patch->len - before, patch->bytes + before, 0};
    patch->len = before;
    find(patches, offset, links);
    return insert(txn, patches, links, &rest);
}

static struct patches *begin(struct store_txn *txn)
{
    struct patches *patches = store_alloc(txn, sizeof *patches);
    if (patches)
        *patches = (struct patches){.random = (uint64_t)(uintptr_t)patches};
    return patches;
}

bool patches_lay(struct store_txn *txn, struct patches **all, uint64_t offset, const char *bytes,
                 uint64_t len)
{
    struct patch **links[LEVELS];
    if (len == 0)
        return true;
    if (!*all && !(*all = begin(txn)))
        return false;
    struct patches *patches = *all;
    if (!divide(txn, patches, offset) || !divide(txn, patches, offset + len))
        return false;
    find(patches, offset, links);
    for (struct patch *gone; (gone = *links[0]) && gone->offset < offset + len;)
        for (uint32_t level = 0; level < gone->levels; level++) {
            assert(*links[level] == gone);
            *links[level] = gone->next[level];
        }
    struct patch what = {offset, len, bytes, 0};
    if (!insert(txn, patches, links, &what))
        return false;
    if (storage_checks_enabled())
        patches_check(patches);
    return true;
}

/* ---- looking ---- */

const struct patch *patches_behind(const struct patches *patches, uint64_t offset)
{
    if (!patches)
        return NULL;
    struct patch *const *at = patches->first;
    for (uint32_t level = LEVELS; level-- > 0;)
        while (at[level] && end_of(at[level]) <= offset)
            at = at[level]->next;
    return at[0];
}

uint64_t patches_end_before(const struct patches *patches, uint64_t offset)
{
    uint64_t end = 0;
    if (!patches)
        return 0;
    struct patch *const *at = patches->first;
    for (uint32_t level = LEVELS; level-- > 0;)
        while (at[level] && at[level]->offset < offset) {
            end = end_of(at[level]);
            at = at[level]->next;
        }
    return end;
}

bool patches_cover(const struct patches *patches, uint64_t offset, uint64_t len)
{
    const struct patch *patch = patches_behind(patches, offset);
    uint64_t covered = offset;
    for (; patch && patch->offset <= covered && covered < offset + len; patch = patch->next[0])
        covered = end_of(patch);
    return covered >= offset + len;
}

void patches_overlay(const struct patches *patches, uint64_t offset, uint64_t len, char *to)
{
    const struct patch *patch = patches_behind(patches, offset);
    for (; patch && patch->offset < offset + len; patch = patch->next[0]) {
        uint64_t from = patch->offset > offset ? patch->offset : offset;
        uint64_t end = end_of(patch) < offset + len ? end_of(patch) : offset + len;
        memcpy(to + (from - offset), patch->bytes + (from - patch->offset), end - from);
    }
}
