#include "storage/cache/access_clock.h"

#include <stdlib.h>

#define FIRST_TIME (UINT32_C(1) << 31) /* the clock starts here: idle times reach back 397 days */
#define MINUTE_MS 60000
#define SECOND_MS 1024
#define SECOND_MASK 0xfffffu
#define COUNT_BITS 12
#define COUNT_MASK 0xfffu
#define STEP 16u /* fractions of one count */
#define FREQUENCY_MAX 255u

/* ---- the arrays ---- */

void access_want(struct access_clock *clock, enum access_kind kind, int64_t now_ms)
{
    uint32_t state = atomic_load(&clock->state);
    if ((state & 3) == (uint32_t)kind)
        return;
    atomic_store(&clock->base_ms, now_ms - (int64_t)FIRST_TIME * USE_UNIT_MS);
    atomic_store(&clock->state, ((state >> 2) + 1) << 2 | (uint32_t)kind);
}

void access_drop(struct page_file *file)
{
    for (uint32_t i = 0; i < file->segment_room && counter_read(&file->access_bytes) > 0; i++) {
        free(file->uses[i]);
        file->uses[i] = NULL;
    }
    counter_set(&file->access_bytes, 0);
}

void access_drop_segment(struct page_file *file, uint32_t segment)
{
    if (!file->uses[segment])
        return;
    uint64_t slots = SEGMENT_PAGES * format_class_slots(file->segment_class[segment]);
    free(file->uses[segment]);
    file->uses[segment] = NULL;
    counter_add(&file->access_bytes, -slots * sizeof **file->uses);
}

void access_tidy(struct page_cache *cache)
{
    uint32_t state = atomic_load(&cache->uses.state);
    for (uint32_t i = 0; i < cache->page_file_count; i++) {
        struct page_file *file = cache->page_files[i];
        if (file->id == FORMAT_EXTENT_FILE) /* extents hold no items */
            continue;
        pthread_mutex_lock(&file->lock);
        if (file->access_state != state)
            access_drop(file);
        file->access_state = state;
        pthread_mutex_unlock(&file->lock);
    }
}

static size_t place_of(const struct page_file *file, uint32_t page, uint32_t slot)
{
    return (size_t)(page % SEGMENT_PAGES) * format_class_slots(page_file_class_of(file, page)) +
           slot;
}

/* Another thread may change what is recorded at any time: then all words of earlier are dropped. */
static void follow_state(struct page_file *file)
{
    uint32_t state = atomic_load_explicit(&file->cache->uses.state, memory_order_relaxed);
    if (file->access_state == state)
        return;
    access_drop(file);
    file->access_state = state;
}

/* After follow_state(). NULL: out of memory; the access is not tracked. */
static uint32_t *word_at(struct page_file *file, uint32_t page, uint32_t slot)
{
    uint32_t **segment = &file->uses[page / SEGMENT_PAGES];
    if (!*segment) {
        size_t count = (size_t)SEGMENT_PAGES * format_class_slots(page_file_class_of(file, page));
        *segment = calloc(count, sizeof **segment);
        if (!*segment)
            return NULL;
        counter_add(&file->access_bytes, count * sizeof **segment);
    }
    return &(*segment)[place_of(file, page, slot)];
}

static uint32_t word_of(const struct page_file *file, uint32_t page, uint32_t slot)
{
    const uint32_t *segment = file->uses[page / SEGMENT_PAGES];
    uint32_t state = atomic_load_explicit(&file->cache->uses.state, memory_order_relaxed);
    return segment && file->access_state == state ? segment[place_of(file, page, slot)] : 0;
}

/* ---- by time ---- */

static uint32_t time_word(const struct access_clock *clock, int64_t now_ms)
{
    int64_t units =
        (now_ms - atomic_load_explicit(&clock->base_ms, memory_order_relaxed)) / USE_UNIT_MS;
    return units < 1 ? 1 : units > UINT32_MAX ? UINT32_MAX : (uint32_t)units;
}

uint32_t access_by_idle(const struct access_clock *clock, int64_t now_ms, int64_t idle_ms)
{
    int64_t most = (int64_t)FIRST_TIME * USE_UNIT_MS;
    return time_word(clock, now_ms - (idle_ms < most ? idle_ms : most));
}

int64_t access_idle_ms(const struct page_file *file, uint32_t page, uint32_t slot, int64_t now_ms)
{
    uint32_t word = word_of(file, page, slot), now = time_word(&file->cache->uses, now_ms);
    if (word == 0)
        word = FIRST_TIME;
    return now > word ? (int64_t)(now - word) * USE_UNIT_MS : 0;
}

/* ---- by frequency ---- */

static uint32_t second_of(int64_t now_ms)
{
    return (uint32_t)(now_ms / SECOND_MS) & SECOND_MASK;
}

static uint32_t idle_seconds(uint32_t word, int64_t now_ms)
{
    return (second_of(now_ms) - (word >> COUNT_BITS)) & SECOND_MASK;
}

/* The counter with its fraction, less the decay up to now. */
static uint32_t decayed(const struct access_clock *clock, uint32_t word, int64_t now_ms)
{
    uint32_t decay = atomic_load_explicit(&clock->decay_minutes, memory_order_relaxed);
    if (word == 0)
        return USE_FREQUENCY_NEW * STEP;
    uint32_t count = word & COUNT_MASK;
    uint64_t minutes = (uint64_t)idle_seconds(word, now_ms) * SECOND_MS / MINUTE_MS;
    uint64_t loss = decay == 0 ? 0 : minutes / decay;
    return loss > count / STEP ? 0 : count - (uint32_t)loss * STEP;
}

/* An increment below one part is added with the matching probability. */
static uint32_t counted(const struct access_clock *clock, uint32_t count, uint64_t *random)
{
    uint32_t factor = atomic_load_explicit(&clock->log_factor, memory_order_relaxed);
    uint32_t over = count / STEP > USE_FREQUENCY_NEW ? count / STEP - USE_FREQUENCY_NEW : 0;
    uint64_t uses = (uint64_t)over * factor + 1;
    if (count / STEP == FREQUENCY_MAX)
        return count;
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    return count + (uint32_t)(STEP / uses) + ((*random >> 32) % uses < STEP % uses);
}

static uint32_t frequency_word(uint32_t count, int64_t now_ms)
{
    return second_of(now_ms) << COUNT_BITS | count;
}

uint32_t access_by_frequency(int64_t now_ms, uint32_t frequency)
{
    uint32_t word = frequency_word(frequency * STEP, now_ms);
    return word ? word : 1;
}

uint32_t access_frequency(const struct page_file *file, uint32_t page, uint32_t slot,
                          int64_t now_ms)
{
    return decayed(&file->cache->uses, word_of(file, page, slot), now_ms) / STEP;
}

/* ---- both ---- */

uint64_t access_rank(const struct page_file *file, uint32_t page, uint32_t slot, int64_t now_ms)
{
    const struct access_clock *clock = &file->cache->uses;
    uint32_t word = word_of(file, page, slot);
    if (access_kind(clock) == USE_TIME)
        return word;
    uint64_t recent = word ? SECOND_MASK - idle_seconds(word, now_ms) : 0;
    return (uint64_t)decayed(clock, word, now_ms) << 32 | recent;
}

static void use_again(struct page_file *file, uint32_t *word, int64_t now_ms, uint64_t *random)
{
    const struct access_clock *clock = &file->cache->uses;
    if (access_kind(clock) == USE_TIME)
        *word = time_word(clock, now_ms);
    else
        *word = frequency_word(counted(clock, decayed(clock, *word, now_ms), random), now_ms);
}

void access_touch(struct page_file *file, uint32_t page, uint32_t slot, int64_t now_ms,
                  uint64_t *random)
{
    follow_state(file);
    uint32_t *word = word_at(file, page, slot);
    if (word)
        use_again(file, word, now_ms, random);
}

void access_move(struct page_file *file, const struct access_move *move, uint64_t *random)
{
    follow_state(file);
    uint32_t *old = move->old_page ? word_at(file, move->old_page, move->old_slot) : NULL;
    uint32_t *fresh = word_at(file, move->new_page, move->new_slot);
    uint32_t known = old ? *old : 0;
    if (old)
        *old = 0;
    if (!fresh)
        return;
    *fresh = move->given ? move->given : known;
    bool is_new = !move->old_page && access_kind(&file->cache->uses) == USE_FREQUENCY;
    if (!move->given && is_new)
        *fresh = frequency_word(USE_FREQUENCY_NEW * STEP, move->now_ms);
    else if (!move->given && !(known && move->is_counted))
        use_again(file, fresh, move->now_ms, random);
}
