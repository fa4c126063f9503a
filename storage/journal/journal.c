#include "storage/journal/journal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "storage/base/checks.h"

static bool make_buffer(struct journal_buffer *buffer)
{
    buffer->capacity = 2 * JOURNAL_GROUP_TARGET;
    buffer->memory = disk_alloc(buffer->capacity);
    return buffer->memory != NULL;
}

bool journal_init(struct journal *journal, struct env *env, uint64_t size)
{
    memset(journal, 0, sizeof *journal);
    pthread_mutex_init(&journal->lock, NULL);
    STAILQ_INIT(&journal->long_records);
    journal->env = env;
    journal->size = size;
    journal_bound(journal, size); /* until the owner knows better */
    bool made = make_buffer(&journal->filling);
    for (uint32_t i = 0; i < JOURNAL_FLIGHTS; i++) {
        journal->flights[i].journal = journal;
        made = make_buffer(&journal->flights[i].group) && made;
    }
    return made;
}

void journal_free(struct journal *journal)
{
    for (uint32_t i = 0; i < JOURNAL_FLIGHTS; i++)
        free(journal->flights[i].group.memory);
    free(journal->filling.memory);
    pthread_mutex_destroy(&journal->lock);
}

void journal_start_at(struct journal *journal, const struct journal_mark *mark, uint64_t epoch)
{
    assert(mark->position % PAGE_SIZE == 0 && mark->position < journal->size && mark->commit > 0);
    assert(journal->flight_count == 0 && journal->filling.length == 0);
    journal->epoch = epoch;
    journal->sequence = mark->sequence;
    journal->previous = mark->previous;
    journal->position = mark->position;
    journal->used = 0;
    journal->next_commit = mark->commit;
    journal->databases = journal->sealed_databases = mark->databases;
    journal->durable = mark->commit - 1;
    journal->appended = mark->commit - 1;
}

/* Invariants 1 to 3, as far as memory shows them; the lock is held. */
static void journal_check(struct journal *journal)
{
    if (!storage_checks_enabled())
        return;
    uint64_t appended = atomic_load(&journal->appended);
    assert(atomic_load(&journal->durable) <= appended && appended < journal->next_commit);
    assert(journal->position % PAGE_SIZE == 0 && journal->position < journal->size);
    assert(journal->used <= journal->size && journal->flight_count <= JOURNAL_FLIGHTS);
    uint64_t next = journal->next_commit;
    const struct journal_buffer *filling = &journal->filling;
    assert(filling->length <= filling->capacity);
    if (filling->length > 0) {
        assert(filling->first_commit + filling->record_count == next);
        next = filling->first_commit;
    }
    for (uint32_t i = journal->flight_count; i > 0; i--) {
        uint32_t at = (journal->oldest_flight + i - 1) % JOURNAL_FLIGHTS;
        const struct journal_buffer *group = &journal->flights[at].group;
        assert(group->length > 0 && group->first_commit + group->record_count == next);
        assert(group->length <= group->capacity);
        next = group->first_commit;
    }
    assert(atomic_load(&journal->durable) + 1 == next || env_failed(journal->env));
}

/* The most bytes of the ring that one record may take. */
static uint64_t record_limit(const struct journal *journal)
{
    return journal->size / JOURNAL_RECORD_SHARE;
}

/* Bytes of the ring that a group of `length` takes, including the gap before a wrap. */
static uint64_t ring_cost(const struct journal *journal, uint64_t length)
{
    uint64_t padded = journal_padded(length);
    assert(journal->position < journal->size && padded <= journal->size);
    uint64_t left = journal->size - journal->position;
    return padded <= left ? padded : left + padded;
}

static bool make_room(const struct journal *journal, struct journal_buffer *buffer, uint64_t length)
{
    uint64_t needed = journal_padded(buffer->length + length);
    if (needed <= buffer->capacity)
        return true;
    uint64_t capacity = journal_padded(needed + needed / 2);
    char *memory = disk_alloc(capacity);
    if (!memory)
        return false;
    memcpy(memory, buffer->memory, buffer->length);
    free(buffer->memory);
    buffer->memory = memory;
    journal->on_growth(journal->arg, capacity - buffer->capacity);
    buffer->capacity = capacity;
    return true;
}

static uint64_t checkpoint_at(uint64_t size)
{
    return size / 8 * 5;
}

/* The ring or the buffer is full, or a checkpoint is overdue, which `used` alone decides: a record
 * longer than the bound would wait forever; or, under `everysec`, a group takes so long that the
 * oldest record waiting for it is a second old: acknowledging more would exceed the permitted loss.
 */
static bool must_wait(struct journal *journal, uint64_t group_length)
{
    if (journal->filling.length > JOURNAL_GROUP_LIMIT ||
        journal->used / 2 > atomic_load_explicit(&journal->bound, memory_order_relaxed) ||
        journal->used + ring_cost(journal, group_length) + PAGE_SIZE > journal->size)
        return true;
    return (journal->flight_count > 0 || journal->long_record_unwritten > 0) &&
           journal->filling.length > 0 &&
           atomic_load_explicit(&journal->sync, memory_order_relaxed) == STORE_SYNC_EVERYSEC &&
           env_clock_ms() - journal->oldest_ms > JOURNAL_OVERDUE_MS;
}

enum store_result journal_begin(struct journal *journal, uint64_t length, char **record,
                                uint64_t *commit)
{
    assert(length % 8 == 0 && length >= sizeof(struct format_record));
    if (length > record_limit(journal))
        return STORE_TOO_LARGE;
    pthread_mutex_lock(&journal->lock);
    struct journal_buffer *filling = &journal->filling;
    uint64_t before = filling->length ? filling->length : sizeof(struct format_group);
    enum store_result result = STORE_OK;
    if (env_failed(journal->env))
        result = STORE_REFUSED;
    else if (must_wait(journal, before + length))
        result = STORE_WAIT;
    else if (!make_room(journal, filling, length + (before - filling->length)))
        result = STORE_NO_MEMORY;
    if (result != STORE_OK) {
        pthread_mutex_unlock(&journal->lock);
        return result;
    }
    if (filling->length == 0) {
        filling->length = before;
        filling->first_commit = journal->next_commit;
        filling->record_count = 0;
        journal->oldest_ms = env_clock_ms();
    }
    *record = filling->memory + filling->length;
    *commit = journal->next_commit++;
    filling->length += length;
    filling->record_count++;
    return STORE_OK;
}

void journal_end(struct journal *journal, const struct format_databases *databases)
{
    if (databases)
        journal->databases = *databases;
    atomic_store_explicit(&journal->appended, journal->next_commit - 1, memory_order_release);
    journal_check(journal);
    pthread_mutex_unlock(&journal->lock);
}

uint64_t journal_group_checksum(const struct format_group *header, const char *records)
{
    uint64_t head = XXH3_64bits(header, offsetof(struct format_group, checksum));
    return XXH3_64bits_withSeed(records, header->length - sizeof *header, head);
}

/* ---- writing a group ---- */

/* After a long record: frees buffer space that most groups do not need. */
static void shrink(struct journal_buffer *buffer)
{
    assert(buffer->length == 0);
    char *memory =
        buffer->capacity > JOURNAL_BUFFER_KEPT ? disk_alloc(2 * JOURNAL_GROUP_TARGET) : NULL;
    if (!memory)
        return;
    free(buffer->memory);
    buffer->memory = memory;
    buffer->capacity = 2 * JOURNAL_GROUP_TARGET;
}

/* Retires completed groups, up to the first one still in flight. False: none was retired. */
static bool land(struct journal *journal)
{
    uint32_t before = journal->flight_count;
    while (journal->flight_count > 0) {
        struct journal_flight *flight = &journal->flights[journal->oldest_flight];
        struct journal_buffer *group = &flight->group;
        if (!flight->arrived)
            break;
        assert(group->first_commit > atomic_load_explicit(&journal->durable, memory_order_relaxed));
        if (!env_failed(journal->env))
            atomic_store_explicit(&journal->durable, group->first_commit + group->record_count - 1,
                                  memory_order_release);
        group->length = 0;
        shrink(group);
        journal->oldest_flight = (journal->oldest_flight + 1) % JOURNAL_FLIGHTS;
        journal->flight_count--;
    }
    return journal->flight_count < before;
}

static void written(struct disk_op *op)
{
    struct journal_flight *flight = op->arg;
    struct journal *journal = flight->journal;
    if (op->error)
        env_fail(journal->env, "writing the journal", op->error);
    pthread_mutex_lock(&journal->lock);
    const struct disk_queue *here = flight->queue;
    assert(!flight->arrived && journal->flight_count > 0);
    flight->arrived = true;
    int64_t took_ns = env_clock_ns() - flight->began_ns;
    if (took_ns > atomic_load_explicit(&journal->slowest_ns, memory_order_relaxed))
        atomic_store_explicit(&journal->slowest_ns, took_ns, memory_order_relaxed);
    bool landed = land(journal);
    journal_check(journal);
    pthread_mutex_unlock(&journal->lock);
    if (landed)
        journal->on_durable(journal->arg, here);
}

static void seal(struct journal *journal, const struct journal_buffer *group)
{
    struct format_group *header = (struct format_group *)group->memory;
    assert(group->record_count > 0 && group->length <= UINT32_MAX);
    *header = (struct format_group){.magic = FORMAT_GROUP_MAGIC,
                                    .epoch = journal->epoch,
                                    .sequence = journal->sequence++,
                                    .first_commit = group->first_commit,
                                    .record_count = group->record_count,
                                    .length = (uint32_t)group->length,
                                    .previous = journal->previous,
                                    .seed = journal->seed,
                                    .durable_commit = atomic_load(&journal->durable)};
    header->checksum = journal_group_checksum(header, (const char *)(header + 1));
    journal->previous = header->checksum;
}

/* A group that does not fit before the end of the ring is written at its start. */
static void queue_write(struct journal_flight *flight, struct disk_queue *queue, uint64_t padded)
{
    struct journal *journal = flight->journal;
    journal->used += ring_cost(journal, flight->group.length);
    assert(journal->used <= journal->size); /* must_wait refuses longer groups */
    if (padded > journal->size - journal->position)
        journal->position = 0;
    flight->vector = (struct iovec){flight->group.memory, padded};
    flight->operation = (struct disk_op){.kind = DISK_WRITE,
                                         .durable = true,
                                         .file = journal->file,
                                         .vectors = &flight->vector,
                                         .vector_count = 1,
                                         .offset = journal->position,
                                         .done = written,
                                         .arg = flight};
    journal->position += padded;
    if (journal->position == journal->size) /* wraps as recovery does: recovery may begin here */
        journal->position = 0;
    flight->queue = queue;
    flight->began_ns = env_clock_ns();
    disk_queue_op(queue, &flight->operation);
    atomic_fetch_add_explicit(&journal->bytes_written, padded, memory_order_relaxed);
    atomic_fetch_add_explicit(&journal->groups, 1, memory_order_relaxed);
}

/* Moves the collected records to a free flight, and takes its buffer for the next ones. */
static struct journal_flight *board(struct journal *journal)
{
    assert(journal->flight_count < JOURNAL_FLIGHTS && journal->long_record_unwritten == 0);
    uint32_t next = (journal->oldest_flight + journal->flight_count++) % JOURNAL_FLIGHTS;
    struct journal_flight *flight = &journal->flights[next];
    struct journal_buffer empty = flight->group;
    assert(empty.length == 0);
    flight->group = journal->filling;
    flight->arrived = false;
    journal->filling = empty;
    journal->sealed_databases = journal->databases;
    return flight;
}

/* With a group in flight, another is started only if it is long: many short ones would cost
 * more than waiting. */
static bool may_set_off(const struct journal *journal, uint64_t least)
{
    if (journal->flight_count > 0) {
        uint32_t newest = (journal->oldest_flight + journal->flight_count - 1) % JOURNAL_FLIGHTS;
        if (least < journal->flights[newest].group.length)
            least = journal->flights[newest].group.length;
    }
    return journal->flight_count < JOURNAL_FLIGHTS && journal->filling.length > 0 &&
           journal->long_record_unwritten == 0 && journal->filling.length >= least &&
           !env_failed(journal->env);
}

void journal_kick(struct journal *journal, struct disk_queue *queue, uint64_t least)
{
    pthread_mutex_lock(&journal->lock);
    if (may_set_off(journal, least)) {
        struct journal_flight *flight = board(journal);
        uint64_t length = flight->group.length, padded = journal_padded(length);
        memset(flight->group.memory + length, 0, padded - length);
        seal(journal, &flight->group);
        queue_write(flight, queue, padded);
        journal_check(journal);
    }
    pthread_mutex_unlock(&journal->lock);
}

int64_t journal_age(struct journal *journal, int64_t now_ms)
{
    pthread_mutex_lock(&journal->lock);
    int64_t age = journal->filling.length ? now_ms - journal->oldest_ms : -1;
    pthread_mutex_unlock(&journal->lock);
    return age;
}

uint64_t journal_buffer_bytes(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    uint64_t bytes = journal->filling.capacity;
    for (uint32_t i = 0; i < JOURNAL_FLIGHTS; i++)
        bytes += journal->flights[i].group.capacity;
    pthread_mutex_unlock(&journal->lock);
    return bytes;
}

/* ---- checkpoints ---- */

void journal_mark(struct journal *journal, struct journal_mark *mark)
{
    pthread_mutex_lock(&journal->lock);
    *mark = (struct journal_mark){.position = journal->position,
                                  .sequence = journal->sequence,
                                  .previous = journal->previous,
                                  .commit = journal->filling.length ? journal->filling.first_commit
                                                                    : journal->next_commit,
                                  .databases = journal->sealed_databases};
    pthread_mutex_unlock(&journal->lock);
}

void journal_release(struct journal *journal, const struct journal_mark *mark)
{
    pthread_mutex_lock(&journal->lock);
    uint64_t before = journal->used;
    journal->used = journal->position >= mark->position
                        ? journal->position - mark->position
                        : journal->size - mark->position + journal->position;
    assert(journal->used <= before); /* the tail only moves forward */
    journal_check(journal);
    pthread_mutex_unlock(&journal->lock);
}

bool journal_needs_checkpoint(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    bool needed = journal->used > checkpoint_at(journal->size) ||
                  journal->used > atomic_load(&journal->bound);
    pthread_mutex_unlock(&journal->lock);
    return needed;
}

void journal_bound(struct journal *journal, uint64_t bytes)
{
    uint64_t least = checkpoint_at(JOURNAL_MIN_BYTES);
    atomic_store(&journal->bound, bytes > least ? bytes : least);
}

uint64_t journal_long_record_bytes(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    uint64_t bytes = journal->long_record_bytes;
    pthread_mutex_unlock(&journal->lock);
    return bytes;
}
