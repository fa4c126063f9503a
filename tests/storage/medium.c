/*
 * Invariants
 * 1. A file's `pages` are what a read sees: every completed write. `stable` pages are what is
 *    certainly on the medium.
 * 2. Each unflushed page write is a version, oldest first. A flush makes the versions stable that
 *    had completed when it was submitted; a durable write makes stable what it wrote alone.
 * 3. Once the power is cut nothing changes any more.
 */
#include "tests/storage/medium.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

/* ---- pages ---- */

static struct stored_page *new_page(const char *bytes)
{
    struct stored_page *page = malloc(sizeof *page);
    must(page, "out of memory");
    page->refs = 1;
    page->digest = 0;
    memcpy(page->bytes, bytes, PAGE);
    return page;
}

static struct stored_page *page_ref(struct stored_page *page)
{
    if (page)
        page->refs++;
    return page;
}

static void page_unref(struct stored_page *page)
{
    if (page && --page->refs == 0)
        free(page);
}

/* Takes the reference over. */
static void put_page(struct stored_page **at, struct stored_page *page)
{
    page_unref(*at);
    *at = page;
}

/* The page at this place, not shared with another medium. */
static char *own_page(struct stored_page **at)
{
    static const char zeros[PAGE];
    if (!*at || (*at)->refs > 1)
        put_page(at, new_page(*at ? (*at)->bytes : zeros));
    (*at)->digest = 0;
    return (*at)->bytes;
}

static void make_room(struct stored_file *file, uint64_t pages)
{
    if (pages <= file->room)
        return;
    file->pages = realloc(file->pages, pages * sizeof *file->pages);
    file->stable = realloc(file->stable, pages * sizeof *file->stable);
    must(file->pages && file->stable, "out of memory");
    memset(file->pages + file->room, 0, (pages - file->room) * sizeof *file->pages);
    memset(file->stable + file->room, 0, (pages - file->room) * sizeof *file->stable);
    file->room = pages;
}

/* ---- versions ---- */

static void add_version(struct stored_file *file, struct version *version)
{
    if (file->versions)
        file->versions_last->next = version;
    else
        file->versions = version;
    file->versions_last = version;
}

static void new_version(struct stored_file *file, uint32_t page, struct stored_page *bytes,
                        uint64_t order)
{
    struct version *version = malloc(sizeof *version);
    must(version, "out of memory");
    *version = (struct version){.page = page, .order = order, .bytes = bytes};
    add_version(file, version);
}

/* Takes out the versions up to `order`, of one page or (UINT32_MAX) of all, and makes them stable
 * if asked to. */
static void retire(struct stored_file *file, uint32_t page, uint64_t order, bool keep)
{
    struct version *versions = file->versions;
    file->versions = file->versions_last = NULL;
    while (versions) {
        struct version *version = versions;
        versions = version->next;
        version->next = NULL;
        if (version->order > order || (page != UINT32_MAX && version->page != page)) {
            add_version(file, version);
            continue;
        }
        if (keep)
            put_page(&file->stable[version->page], page_ref(version->bytes));
        page_unref(version->bytes);
        free(version);
    }
}

void medium_store_page(struct stored_file *file, uint32_t page, const char *from, uint64_t order,
                       bool stable)
{
    put_page(&file->pages[page], new_page(from));
    new_version(file, page, page_ref(file->pages[page]), order);
    if (stable)
        retire(file, page, UINT64_MAX, true);
}

void medium_trace_page(struct stored_file *file, uint32_t page, const char *from, uint64_t order)
{
    new_version(file, page, new_page(from), order);
}

void medium_flush(struct stored_file *file, uint64_t order)
{
    retire(file, UINT32_MAX, order, true);
}

/* ---- the power goes and comes ---- */

/* Sectors of unflushed pages are each old or of any of the versions; often a page keeps together.
 */
static void settle_version(struct medium *medium, struct stored_file *file,
                           const struct version *version)
{
    static const enum fate mixed[] = {FATE_KEPT, FATE_TORN, FATE_LOST, FATE_LOST};
    enum fate fate = medium->fate == FATE_MIXED ? mixed[rng_below(&medium->rng, 4)] : medium->fate;
    if (fate == FATE_KEPT)
        put_page(&file->stable[version->page], page_ref(version->bytes));
    if (fate != FATE_TORN)
        return;
    char *to = own_page(&file->stable[version->page]);
    for (uint32_t i = 0; i < PAGE / SECTOR; i++)
        if (rng_chance(&medium->rng, 50))
            memcpy(to + i * SECTOR, version->bytes->bytes + i * SECTOR, SECTOR);
}

static bool entry_is_lost(struct medium *medium, const struct stored_file *file)
{
    if (!file->exists || file->in_directory || medium->fate == FATE_KEPT)
        return false;
    return medium->fate == FATE_LOST || rng_chance(&medium->rng, 50);
}

static void settle_file(struct medium *medium, struct stored_file *file)
{
    for (const struct version *v = file->versions; v; v = v->next)
        settle_version(medium, file, v);
    retire(file, UINT32_MAX, UINT64_MAX, false);
    bool lost = entry_is_lost(medium, file);
    if (lost) {
        file->exists = false;
        file->size = 0;
    }
    for (uint64_t i = 0; i < file->room; i++) {
        if (lost)
            put_page(&file->stable[i], NULL);
        if (file->pages[i] != file->stable[i])
            put_page(&file->pages[i], page_ref(file->stable[i]));
    }
}

void medium_settle(struct medium *medium)
{
    for (uint32_t i = 0; i < FILES; i++)
        settle_file(medium, &medium->files[i]);
    medium->cut_at = 0;
    medium->cut = false;
}

static uint64_t page_digest(struct stored_page *page)
{
    if (page->digest == 0)
        page->digest = XXH3_64bits(page->bytes, PAGE);
    return page->digest;
}

static uint64_t file_digest(const struct stored_file *file)
{
    uint64_t digest = XXH3_64bits_withSeed(file->name, sizeof file->name, file->size);
    for (uint64_t i = 0; i < file->size / PAGE; i++)
        if (file->pages[i]) {
            uint64_t placed[2] = {i, page_digest(file->pages[i])};
            digest = XXH3_64bits_withSeed(placed, sizeof placed, digest);
        }
    return digest;
}

uint64_t medium_digest(struct medium *medium)
{
    uint64_t digest = 0;
    pthread_mutex_lock(&medium->lock);
    if (medium->cut)
        medium_settle(medium);
    for (uint32_t i = 0; i < FILES; i++)
        if (medium->files[i].exists)
            digest += file_digest(&medium->files[i]);
    pthread_mutex_unlock(&medium->lock);
    return digest;
}

bool medium_event(struct medium *medium)
{
    medium->events++;
    if (!medium->cut && medium->cut_at && medium->events >= medium->cut_at) {
        medium->cut = true;
        pthread_cond_broadcast(&medium->changed);
    }
    return !medium->cut;
}

/* ---- faults ---- */

int medium_fault(struct medium *medium, enum fault_kind kind, const struct stored_file *file)
{
    struct fault *fault = &medium->faults[kind];
    if (fault->nth == 0 || strncmp(file->name, fault->file, strlen(fault->file)) != 0)
        return 0;
    if (fault->nth > 1) {
        fault->nth--;
        return 0;
    }
    fault->nth = fault->lasting;
    return fault->error;
}

bool medium_holds(struct medium *medium, enum fault_kind kind, const struct stored_file *file)
{
    struct hold *hold = &medium->hold;
    if (hold->holds && (medium->cut || (hold->until_ms && clock_ms() >= hold->until_ms)))
        hold->holds = false;
    return hold->holds && hold->kind == kind &&
           strncmp(file->name, hold->file, strlen(hold->file)) == 0;
}

void medium_hold(struct medium *medium, enum fault_kind kind, const char *file, uint32_t most_ms)
{
    pthread_mutex_lock(&medium->lock);
    medium->hold =
        (struct hold){.holds = true, .kind = kind, .until_ms = most_ms ? clock_ms() + most_ms : 0};
    snprintf(medium->hold.file, sizeof medium->hold.file, "%s", file);
    pthread_mutex_unlock(&medium->lock);
}

void medium_release(struct medium *medium)
{
    pthread_mutex_lock(&medium->lock);
    medium->hold.holds = false;
    pthread_cond_broadcast(&medium->changed);
    pthread_mutex_unlock(&medium->lock);
}

void medium_fail(struct medium *medium, enum fault_kind kind, const char *file, uint32_t nth,
                 int error, bool lasting)
{
    pthread_mutex_lock(&medium->lock);
    struct fault *fault = &medium->faults[kind];
    *fault = (struct fault){.nth = nth, .error = error, .lasting = lasting};
    snprintf(fault->file, sizeof fault->file, "%s", file ? file : "");
    pthread_mutex_unlock(&medium->lock);
}

/* ---- the medium ---- */

struct medium *medium_new(uint64_t seed)
{
    struct medium *medium = calloc(1, sizeof *medium);
    must(medium, "out of memory");
    pthread_mutex_init(&medium->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&medium->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    medium->rng.state = seed;
    return medium;
}

static void copy_file(struct stored_file *to, const struct stored_file *from)
{
    *to = *from;
    to->room = 0;
    to->pages = to->stable = NULL;
    to->versions = to->versions_last = NULL;
    make_room(to, from->room);
    for (uint64_t i = 0; i < from->room; i++) {
        to->pages[i] = page_ref(from->pages[i]);
        to->stable[i] = page_ref(from->stable[i]);
    }
    for (const struct version *v = from->versions; v; v = v->next)
        new_version(to, v->page, page_ref(v->bytes), v->order);
}

struct medium *medium_copy_locked(const struct medium *medium)
{
    struct medium *copy = medium_new(medium->rng.state);
    for (uint32_t i = 0; i < FILES; i++)
        copy_file(&copy->files[i], &medium->files[i]);
    copy->events = medium->events;
    copy->room = medium->room;
    copy->cut = medium->cut;
    copy->fate = medium->fate;
    return copy;
}

struct medium *medium_copy(const struct medium *medium)
{
    pthread_mutex_t *lock = &((struct medium *)medium)->lock;
    pthread_mutex_lock(lock);
    struct medium *copy = medium_copy_locked(medium);
    pthread_mutex_unlock(lock);
    return copy;
}

void medium_free(struct medium *medium)
{
    for (uint32_t i = 0; i < FILES; i++) {
        struct stored_file *file = &medium->files[i];
        retire(file, UINT32_MAX, UINT64_MAX, false);
        for (uint64_t page = 0; page < file->room; page++) {
            page_unref(file->pages[page]);
            page_unref(file->stable[page]);
        }
        free(file->pages);
        free(file->stable);
    }
    pthread_cond_destroy(&medium->changed);
    pthread_mutex_destroy(&medium->lock);
    free(medium);
}

void medium_cut_after(struct medium *medium, uint64_t events)
{
    pthread_mutex_lock(&medium->lock);
    medium->cut_at = events ? medium->events + events : 0;
    pthread_mutex_unlock(&medium->lock);
}

void medium_cut_now(struct medium *medium)
{
    pthread_mutex_lock(&medium->lock);
    medium->cut = true;
    pthread_cond_broadcast(&medium->changed);
    pthread_mutex_unlock(&medium->lock);
}

bool medium_is_cut(struct medium *medium)
{
    pthread_mutex_lock(&medium->lock);
    bool is_cut = medium->cut;
    pthread_mutex_unlock(&medium->lock);
    return is_cut;
}

void medium_set_fate(struct medium *medium, enum fate fate)
{
    pthread_mutex_lock(&medium->lock);
    medium->fate = fate;
    pthread_mutex_unlock(&medium->lock);
}

void medium_record(struct medium *medium, medium_visitor *visit, void *arg)
{
    pthread_mutex_lock(&medium->lock);
    medium->visit = visit;
    medium->visit_arg = arg;
    pthread_mutex_unlock(&medium->lock);
}

void medium_set_room(struct medium *medium, uint64_t bytes)
{
    pthread_mutex_lock(&medium->lock);
    medium->room = bytes;
    pthread_mutex_unlock(&medium->lock);
}

uint64_t medium_used(const struct medium *medium)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < FILES; i++)
        bytes += medium->files[i].size;
    return bytes;
}

uint64_t medium_bytes(struct medium *medium)
{
    pthread_mutex_lock(&medium->lock);
    uint64_t bytes = medium_used(medium);
    pthread_mutex_unlock(&medium->lock);
    return bytes;
}

/* ---- files, and direct access to them ---- */

struct stored_file *medium_find_file(struct medium *medium, const char *name)
{
    for (uint32_t i = 0; i < FILES; i++)
        if (medium->files[i].exists && strcmp(medium->files[i].name, name) == 0)
            return &medium->files[i];
    return NULL;
}

void medium_lengthen(struct stored_file *file, uint64_t to)
{
    if (to <= file->size)
        return;
    make_room(file, to / PAGE);
    file->size = to;
}

static struct stored_file *existing(struct medium *medium, const char *name)
{
    struct stored_file *file = medium_find_file(medium, name);
    must(file, "there is no file %s", name);
    return file;
}

uint64_t medium_size(struct medium *medium, const char *file)
{
    return existing(medium, file)->size;
}

void medium_peek(struct medium *medium, const char *name, uint64_t offset, void *to, size_t len)
{
    struct stored_file *file = existing(medium, name);
    for (size_t done = 0; done < len;) {
        const struct stored_page *page = file->pages[(offset + done) / PAGE];
        size_t within = (offset + done) % PAGE, step = PAGE - within;
        step = step < len - done ? step : len - done;
        if (page)
            memcpy((char *)to + done, page->bytes + within, step);
        else
            memset((char *)to + done, 0, step);
        done += step;
    }
}

void medium_poke(struct medium *medium, const char *name, uint64_t offset, const void *from,
                 size_t len)
{
    struct stored_file *file = existing(medium, name);
    retire(file, UINT32_MAX, UINT64_MAX, true);
    for (size_t i = 0; i < len; i++, offset++) {
        uint64_t page = offset / PAGE;
        own_page(&file->pages[page])[offset % PAGE] = ((const char *)from)[i];
        put_page(&file->stable[page], page_ref(file->pages[page]));
    }
}

uint64_t medium_find(struct medium *medium, const char *name, const void *bytes, size_t len)
{
    uint64_t size = medium_size(medium, name);
    char *all = malloc(size);
    must(all, "out of memory");
    medium_peek(medium, name, 0, all, size);
    const char *found = memmem(all, size, bytes, len);
    uint64_t offset = found ? (uint64_t)(found - all) : UINT64_MAX;
    free(all);
    return offset;
}

void medium_shorten(struct medium *medium, const char *name, uint64_t to)
{
    struct stored_file *file = existing(medium, name);
    retire(file, UINT32_MAX, UINT64_MAX, true);
    for (uint64_t page = to / PAGE; page < file->size / PAGE; page++) {
        put_page(&file->pages[page], NULL);
        put_page(&file->stable[page], NULL);
    }
    file->size = to;
}

void medium_flip(struct medium *medium, const char *file, uint64_t offset, uint8_t mask)
{
    uint8_t byte;
    medium_peek(medium, file, offset, &byte, 1);
    byte ^= mask;
    medium_poke(medium, file, offset, &byte, 1);
}
