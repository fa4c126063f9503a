/*
 * The engine alone, without the server: storage/store.h driven from one thread, which keeps `depth`
 * requests under way. Says what to do by lines on stdin, so that a store stays open while its peer
 * is measured in between; each answers with one line of name=value, "error: ..." if it failed.
 *
 *     engine-bench --dir D --memory BYTES [--journal BYTES] [--ordered]
 *         fill  items=N [from=N] value=BYTES          each key once, in order
 *         run   items=N value=BYTES reads=PERCENT [zipfian=1] [depth=64] [seconds=5] [sync=always]
 *         run   items=N value=BYTES scans=PERCENT ...  YCSB E: a scan is of 1 to 100 keys in order,
 *                                                      with their values; the rest inserts keys
 *         quiet                                       waits until nothing is written any more
 *         stats                                       memory and keys
 *
 * Invariants
 * 1. A slot is free, parked in the engine, or (under `always`) done and waiting to be durable.
 * 2. A latency runs from store_execute to where a server could send the reply.
 * 3. A run that makes no progress for STALL_S ends the program.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "storage/ordered.h"
#include "storage/store.h"
#include "benchmarks/histogram.h"
#include "benchmarks/keys.h"

#define DEPTH_MAX 1024u
#define STALL_S 60
#define SUBMIT_EVERY 8 /* the device starts while the rest is being submitted */
#define VALUE_MAX 65536u
#define SCAN_MOST 100u

struct job {
    uint64_t items, from;
    uint32_t value_len, read_percent, scan_percent, depth;
    bool fill, zipfian;
    double seconds;
    enum store_sync sync;
};

struct slot {
    struct store_request request; /* first: the engine gives it back */
    struct bench *bench;
    struct store_key key;
    char name[KEY_LEN];
    bool reads;
    struct store_range *range; /* of a scan */
    uint32_t wanted, found;    /* keys of a scan */
    int64_t start_ns;
    struct slot *next;
};

struct bench {
    struct store *store;
    struct store_worker *worker;
    struct job job;
    struct keys keys;
    struct slot slots[DEPTH_MAX];
    struct slot *free;
    struct slot *undurable, *undurable_last; /* in the order of their commits */
    uint32_t under_way;                      /* parked or undurable */
    uint64_t next_item, finished, reads, absent, failed, scanned;
    enum store_result failure;
    int64_t now_ms, deadline_ns, progress_ns;
    struct histogram latencies;
    char value[VALUE_MAX];
};

/* What is compared before and after a run. */
struct usage {
    double cpu_s;
    int64_t ns;
    uint64_t device_bytes; /* written by this process, as the kernel counts */
    struct store_stats stats;
};

/* ---- requests ---- */

static enum store_result run_scan(struct store_txn *txn, struct store_request *request)
{
    struct slot *slot = (struct slot *)request;
    struct store_range_entry entry;
    enum store_result result = STORE_OK;
    while (slot->found < slot->wanted &&
           (result = store_range_next(txn, slot->range, &entry)) == STORE_OK)
        slot->found++;
    return result == STORE_ABSENT ? STORE_OK : result;
}

static enum store_result run_request(struct store_txn *txn, struct store_request *request)
{
    struct slot *slot = (struct slot *)request;
    struct bench *b = slot->bench;
    if (!slot->reads)
        return store_put(txn, &slot->key, 0, b->value, b->job.value_len, STORE_NO_EXPIRY);
    struct store_item item;
    enum store_result result = store_get(txn, &slot->key, &item);
    if (result == STORE_ABSENT)
        b->absent++;
    return result == STORE_ABSENT ? STORE_OK : result;
}

static void finish(struct bench *b, struct slot *slot, int64_t now_ns)
{
    histogram_add(&b->latencies, (uint64_t)(now_ns - slot->start_ns), 1);
    if (slot->range)
        store_range_free(slot->range);
    slot->range = NULL;
    b->scanned += slot->found;
    b->finished++;
    b->reads += slot->reads;
    b->progress_ns = now_ns;
    slot->next = b->free;
    b->free = slot;
}

static void executed(struct bench *b, struct slot *slot, enum store_result result)
{
    if (result != STORE_OK && b->failed++ == 0)
        b->failure = result;
    bool waits = b->job.sync == STORE_SYNC_ALWAYS && result == STORE_OK &&
                 slot->request.shown > store_durable(b->store);
    if (!waits) {
        finish(b, slot, bench_now_ns());
        return;
    }
    b->under_way++;
    slot->next = NULL;
    if (b->undurable)
        b->undurable_last->next = slot;
    else
        b->undurable = slot;
    b->undurable_last = slot;
}

static void request_done(struct store_request *request, enum store_result result)
{
    struct slot *slot = (struct slot *)request;
    slot->bench->under_way--;
    executed(slot->bench, slot, result);
}

static bool wants_value(uint8_t type)
{
    (void)type;
    return true;
}

/* False: it is an insert. */
static bool begin_scan(struct bench *b, struct slot *slot)
{
    if (keys_random(&b->keys) % 100 >= b->job.scan_percent)
        return false;
    keys_format(slot->name, keys_next(&b->keys));
    slot->wanted = 1 + (uint32_t)(keys_random(&b->keys) % SCAN_MOST);
    struct store_range_options options = {.low = {.bytes = slot->name, .len = KEY_LEN},
                                          .most = slot->wanted,
                                          .wants_value = wants_value,
                                          .loaded_most = VALUE_MAX * (uint64_t)DEPTH_MAX};
    slot->range = store_range_new(b->store, &options);
    slot->request = (struct store_request){
        .run = run_scan, .done = request_done, .scope = STORE_SCOPE_NONE, .now_ms = b->now_ms};
    return slot->range;
}

static void make_request(struct bench *b, struct slot *slot)
{
    const struct job *job = &b->job;
    slot->found = 0;
    slot->reads = false;
    if (job->scan_percent > 0 && begin_scan(b, slot))
        return;
    bool is_new = job->fill || job->scan_percent > 0;
    slot->reads = !is_new && keys_random(&b->keys) % 100 < job->read_percent;
    keys_format(slot->name, is_new ? b->next_item++ : keys_next(&b->keys));
    store_key(b->store, &slot->key, 0, slot->name, KEY_LEN,
              slot->reads ? STORE_SHARED : STORE_EXCLUSIVE);
    slot->request = (struct store_request){.run = run_request,
                                           .done = request_done,
                                           .keys = &slot->key,
                                           .key_count = 1,
                                           .scope = STORE_SCOPE_KEYS,
                                           .now_ms = b->now_ms};
}

static void start_request(struct bench *b, struct slot *slot)
{
    make_request(b, slot);
    slot->start_ns = bench_now_ns();
    enum store_result result = store_execute(b->worker, &slot->request);
    if (result == STORE_WAIT)
        b->under_way++;
    else
        executed(b, slot, result);
}

/* Only requests that show an older commit are out of order: those wait, too. */
static void release_durable(struct bench *b)
{
    uint64_t durable = store_durable(b->store);
    int64_t now = b->undurable ? bench_now_ns() : 0;
    while (b->undurable && b->undurable->request.shown <= durable) {
        struct slot *slot = b->undurable;
        b->undurable = slot->next;
        b->under_way--;
        finish(b, slot, now);
    }
}

/* ---- jobs ---- */

static bool wants_more(const struct bench *b)
{
    if (b->failed > 0)
        return false;
    return b->job.fill ? b->next_item < b->job.items : bench_now_ns() < b->deadline_ns;
}

static void wait_for_store(struct bench *b)
{
    struct pollfd poll_fd = {.fd = store_worker_fd(b->worker), .events = POLLIN};
    if (poll(&poll_fd, 1, 1000) == 0 && bench_now_ns() - b->progress_ns > STALL_S * 1000000000ll) {
        printf("error: stalled with %u under way, %u parked, after %llu\n", b->under_way,
               store_parked(b->worker), (unsigned long long)b->finished);
        fflush(stdout);
        _exit(1);
    }
}

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Each round starts as many requests as are free, at most twice the depth of them where all are
 * answered at once, and looks for what has arrived. */
static void run_job(struct bench *b)
{
    bool more = true;
    while (more || b->under_way > 0) {
        b->now_ms = wall_ms();
        for (uint32_t i = 0; i < 2 * b->job.depth && b->free && (more = more && wants_more(b));
             i++) {
            struct slot *slot = b->free;
            b->free = slot->next;
            start_request(b, slot);
            if (i % SUBMIT_EVERY == SUBMIT_EVERY - 1)
                store_submit(b->worker);
        }
        more = more && wants_more(b);
        store_submit(b->worker);
        if (b->under_way > 0 && (!b->free || !more))
            wait_for_store(b);
        store_poll(b->worker);
        release_durable(b);
    }
}

static uint64_t device_bytes_written(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    char line[128];
    unsigned long long bytes = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "write_bytes: %llu", &bytes) == 1)
            break;
    if (file)
        fclose(file);
    return bytes;
}

static struct usage usage_now(struct bench *b)
{
    struct usage usage = {
        .ns = bench_now_ns(), .device_bytes = device_bytes_written(), .cpu_s = bench_cpu_seconds()};
    store_stats(b->store, &usage.stats);
    return usage;
}

static void report(const struct bench *b, const struct usage *from, const struct usage *to)
{
    const struct store_stats *x = &from->stats, *y = &to->stats;
    double ops = (double)b->finished, seconds = (double)(to->ns - from->ns) / 1e9;
    printf("ops=%llu reads=%llu absent=%llu scanned=%llu seconds=%.6f rate=%.1f cpu_us=%.3f ",
           (unsigned long long)b->finished, (unsigned long long)b->reads,
           (unsigned long long)b->absent, (unsigned long long)b->scanned, seconds, ops / seconds,
           (to->cpu_s - from->cpu_s) * 1e6 / ops);
    printf("pages_read=%llu pages_written=%llu journal_bytes=%llu journal_groups=%llu "
           "checkpoints=%llu device_bytes=%llu throttled=%llu reruns=%llu ",
           (unsigned long long)(y->pages_read - x->pages_read),
           (unsigned long long)(y->pages_written - x->pages_written),
           (unsigned long long)(y->journal_bytes_written - x->journal_bytes_written),
           (unsigned long long)(y->journal_groups - x->journal_groups),
           (unsigned long long)(y->checkpoints - x->checkpoints),
           (unsigned long long)(to->device_bytes - from->device_bytes),
           (unsigned long long)(y->throttled_commits - x->throttled_commits),
           (unsigned long long)(y->reruns - x->reruns));
    histogram_print(&b->latencies);
    printf("\n");
}

static void prepare_job(struct bench *b)
{
    const struct job *job = &b->job;
    store_set_sync(b->store, job->sync);
    keys_init(&b->keys, job->items, job->zipfian && !job->fill, (uint64_t)bench_now_ns());
    b->free = b->undurable = b->undurable_last = NULL;
    for (uint32_t i = 0; i < job->depth; i++) {
        b->slots[i] = (struct slot){.bench = b, .next = b->free};
        b->free = &b->slots[i];
    }
    b->next_item = job->scan_percent > 0 ? store_db_stats(b->store, 0).keys : job->from;
    b->under_way = 0;
    b->finished = b->reads = b->absent = b->failed = b->scanned = 0;
    histogram_clear(&b->latencies);
    b->progress_ns = bench_now_ns();
    b->deadline_ns = b->progress_ns + (int64_t)(job->seconds * 1e9);
}

static void do_job(struct bench *b)
{
    prepare_job(b);
    struct usage from = usage_now(b);
    run_job(b);
    struct usage to = usage_now(b);
    if (b->failed > 0 || b->finished == 0)
        printf("error: %llu of %llu requests failed, the first with result %d\n",
               (unsigned long long)b->failed, (unsigned long long)b->finished, b->failure);
    else
        report(b, &from, &to);
}

/* ---- between jobs ---- */

/* Serves the store for `ms`, so that its own work, such as completing a journal write, continues.
 */
static void idle(struct bench *b, int ms)
{
    int64_t until = bench_now_ns() + ms * 1000000ll;
    while (bench_now_ns() < until) {
        struct pollfd poll_fd = {.fd = store_worker_fd(b->worker), .events = POLLIN};
        poll(&poll_fd, 1, 50);
        store_poll(b->worker);
        store_submit(b->worker);
    }
}

static void do_quiet(struct bench *b)
{
    uint64_t before = UINT64_MAX;
    int tenths = 0, same = 0;
    for (; tenths < 600 && same < 10; tenths++) {
        struct store_stats stats;
        store_stats(b->store, &stats);
        uint64_t written = stats.pages_written * 4096 + stats.journal_bytes_written;
        same = written == before ? same + 1 : 0;
        before = written;
        idle(b, 100);
    }
    printf("quiet=%d waited_s=%.1f\n", same >= 10, tenths / 10.0);
}

static void do_stats(struct bench *b)
{
    struct store_stats s;
    store_stats(b->store, &s);
    printf("keys=%llu index_bytes=%llu table_bytes=%llu frame_bytes=%llu dirty_bytes=%llu "
           "store_bytes=%llu damaged=%llu direct_io=%d recovery_ms=%llu recovered=%llu "
           "checkpoints=%llu\n",
           (unsigned long long)store_db_stats(b->store, 0).keys, (unsigned long long)s.index_bytes,
           (unsigned long long)s.table_bytes, (unsigned long long)s.frame_bytes,
           (unsigned long long)s.dirty_bytes, (unsigned long long)s.store_bytes,
           (unsigned long long)s.damaged_items, s.direct_io, (unsigned long long)s.recovery_ms,
           (unsigned long long)s.recovered_items, (unsigned long long)s.checkpoints);
}

/* ---- commands ---- */

static bool set_word(struct job *job, const char *name, const char *text)
{
    double number = strtod(text, NULL);
    if (strcmp(name, "items") == 0)
        job->items = (uint64_t)number;
    else if (strcmp(name, "from") == 0)
        job->from = (uint64_t)number;
    else if (strcmp(name, "value") == 0)
        job->value_len = (uint32_t)number;
    else if (strcmp(name, "reads") == 0)
        job->read_percent = (uint32_t)number;
    else if (strcmp(name, "scans") == 0)
        job->scan_percent = (uint32_t)number;
    else if (strcmp(name, "depth") == 0)
        job->depth = (uint32_t)number;
    else if (strcmp(name, "zipfian") == 0)
        job->zipfian = number != 0;
    else if (strcmp(name, "seconds") == 0)
        job->seconds = number;
    else if (strcmp(name, "sync") == 0)
        job->sync = strcmp(text, "always") == 0 ? STORE_SYNC_ALWAYS : STORE_SYNC_EVERYSEC;
    else
        return false;
    return true;
}

static bool parse_job(const struct store *store, struct job *job, char **rest)
{
    *job = (struct job){.depth = 64, .seconds = 5, .sync = STORE_SYNC_EVERYSEC};
    for (char *word; (word = strtok_r(NULL, " \n", rest)) != NULL;) {
        char *equals = strchr(word, '=');
        if (equals == NULL)
            return false;
        *equals = '\0';
        if (!set_word(job, word, equals + 1))
            return false;
    }
    if (job->scan_percent > 0 && !store_is_ordered(store))
        return false;
    return job->items > 0 && job->value_len <= VALUE_MAX && job->depth - 1 < DEPTH_MAX;
}

static void obey(struct bench *b, char *line)
{
    char *rest, *name = strtok_r(line, " \n", &rest);
    if (name == NULL)
        return;
    b->job.fill = false;
    if (strcmp(name, "quiet") == 0) {
        do_quiet(b);
    } else if (strcmp(name, "stats") == 0) {
        do_stats(b);
    } else if ((strcmp(name, "run") == 0 || strcmp(name, "fill") == 0) &&
               parse_job(b->store, &b->job, &rest)) {
        b->job.fill = name[0] == 'f';
        do_job(b);
    } else {
        printf("error: not understood\n");
    }
    fflush(stdout);
}

/* Until the end of stdin. */
static void obey_all(struct bench *b)
{
    char line[512];
    size_t len = 0;
    for (;;) {
        struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                                {.fd = store_worker_fd(b->worker), .events = POLLIN}};
        poll(fds, 2, -1);
        if (fds[1].revents) {
            store_poll(b->worker);
            store_submit(b->worker);
        }
        if (!fds[0].revents)
            continue;
        ssize_t n = read(STDIN_FILENO, line + len, 1);
        if (n <= 0)
            return;
        len += (size_t)n;
        if (line[len - 1] != '\n' && len < sizeof line - 1)
            continue;
        line[len] = '\0';
        len = 0;
        obey(b, line);
    }
}

static void log_line(void *arg, enum store_log_level level, const char *line)
{
    (void)arg;
    if (level >= STORE_LOG_NOTICE)
        fprintf(stderr, "engine: %s\n", line);
}

static const char USAGE[] =
    "usage: bench-engine --dir D --memory BYTES [--journal BYTES] [--ordered]\n";

static bool parse_options(int argc, char **argv, struct store_options *o)
{
    static const struct option names[] = {{"dir", 1, NULL, 'd'},     {"memory", 1, NULL, 'm'},
                                          {"journal", 1, NULL, 'j'}, {"ordered", 0, NULL, 'o'},
                                          {"help", 0, NULL, 'h'},    {NULL, 0, NULL, 0}};
    *o = (struct store_options){.partition_count = 16,
                                .worker_count = 1,
                                .journal_bytes = 256u << 20,
                                .sync = STORE_SYNC_EVERYSEC,
                                .log = log_line};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (c == 'd')
            o->directory = optarg;
        else if (c == 'm')
            o->memory_bytes = strtoull(optarg, NULL, 10);
        else if (c == 'j')
            o->journal_bytes = strtoull(optarg, NULL, 10);
        else if (c == 'o')
            o->ordered_keys = STORE_ORDERED_YES;
        else if (c != 'h')
            return false;
        if (c == 'h') {
            fputs(USAGE, stdout);
            exit(0);
        }
    }
    return o->directory != NULL && o->memory_bytes > 0;
}

int main(int argc, char **argv)
{
    struct store_options options;
    char message[STORE_MESSAGE_MAX];
    struct bench *b = calloc(1, sizeof *b);
    if (b == NULL || !parse_options(argc, argv, &options)) {
        fputs(USAGE, stderr);
        return 2;
    }
    for (uint32_t i = 0; i < VALUE_MAX; i++)
        b->value[i] = (char)('a' + i * 7 % 26);
    int64_t start_ns = bench_now_ns();
    if (store_open(&options, &b->store, message) != STORE_OK ||
        store_attach(b->store, 0, &b->worker, message) != STORE_OK) {
        printf("error: %s\n", message);
        return 1;
    }
    printf("opened_s=%.3f\n", (double)(bench_now_ns() - start_ns) / 1e9);
    fflush(stdout);
    obey_all(b);
    store_detach(b->worker);
    start_ns = bench_now_ns();
    bool closed = store_close(b->store) == STORE_OK;
    printf("closed=%d closed_s=%.3f\n", closed, (double)(bench_now_ns() - start_ns) / 1e9);
    free(b);
    return closed ? 0 : 1;
}
