/*
 * vellum-benchmark: measures a server by several transports side by side. For each test and size:
 * what must be there is put there; then rounds, each of them by every transport in turn, beginning
 * with another one each time, so that what changes in between harms all alike.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/bench_report.h"
#include "benchmarks/bench_run.h"
#include "benchmarks/bench_server.h"

#define ROUNDS_MAX 1000
#define TESTS_MAX 64
#define RECORD_BYTES_USUAL (64ull << 20) /* of all records of a mix, without -r */
#define RECORDS_USUAL 100000
#define FILL_PIPELINE 64

struct plan {
    struct bench_options options;
    struct vellum *control; /* fills, and asks for INFO */
    const struct bench_test *tests[TESTS_MAX];
    uint32_t test_count;
    struct bench_row *rows;
    uint32_t row_count;
};

/* One test with one size. */
struct bout {
    const struct bench_test *test; /* NULL: the user's own command */
    uint64_t size, keys;
    const char *names[BENCH_NAMES_MAX];
    int name_count;
    struct bench_inserts inserts;
    struct bench_run run;
    double *rates; /* of transports, round by round */
};

/* ---- which tests ---- */

static void add_test(struct plan *plan, const struct bench_test *test)
{
    if (plan->test_count == TESTS_MAX)
        bench_give_up("-t names more than %d tests", TESTS_MAX);
    plan->tests[plan->test_count++] = test;
}

static void choose_tests(struct plan *plan)
{
    const char *at = plan->options.tests;
    for (size_t i = 0; at == NULL && bench_test_at(i) != NULL; i++)
        if (bench_test_at(i)->is_usual)
            add_test(plan, bench_test_at(i));
    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, ",");
        size_t before = plan->test_count;
        for (size_t i = 0; bench_test_at(i) != NULL; i++)
            if (bench_test_is_called(bench_test_at(i), at, length))
                add_test(plan, bench_test_at(i));
        if (plan->test_count == before)
            bench_give_up("no test is called '%.*s'", (int)length, at);
        at += length + (at[length] == ',');
    }
    if (plan->test_count == 0)
        bench_give_up("-t wants a test");
}

/* ---- what must be there ---- */

static void fill(struct plan *plan, struct bout *bout, const char *command, uint64_t count,
                 bool has_numbers)
{
    struct bench_result *result = malloc(sizeof *result);
    struct bench_run run = {.options = &plan->options,
                            .transport = plan->options.transports[0],
                            .counts_up = true,
                            .wanted_length = -1,
                            .wanted_elements = -1,
                            .requests = count,
                            .clients = 1,
                            .threads = 1,
                            .pipeline = FILL_PIPELINE};
    if (result == NULL)
        bench_give_up("out of memory");
    bench_command_make(&run.command, command, bout->size, has_numbers);
    struct bench_team *team = bench_team_gather(&run);
    bench_team_run(team, result);
    bench_team_free(team);
    bench_command_free(&run.command);
    free(result);
}

static void prepare(struct plan *plan, struct bout *bout)
{
    const struct bench_options *options = &plan->options;
    const struct bench_test *test = bout->test;
    bool has_numbers = options->keys > 0 || bench_test_is_mix(test);
    switch (test->need) {
    case BENCH_NOTHING:
        break;
    case BENCH_EVERY_KEY:
        fill(plan, bout, test->fill, has_numbers ? bout->keys : 1, has_numbers);
        break;
    case BENCH_EVERY_REQUEST:
        fill(plan, bout, test->fill, options->requests * options->transport_count, true);
        break;
    case BENCH_LONG_LIST:
        fill(plan, bout, test->fill, BENCH_LONG_LIST_LENGTH, false);
        break;
    }
}

/* ---- runs ---- */

static uint64_t records_of(const struct bench_options *options, const struct bench_test *test,
                           uint64_t size)
{
    if (options->keys > 0)
        return options->keys;
    if (test == NULL || !bench_test_is_mix(test))
        return 1;
    uint64_t fitting = RECORD_BYTES_USUAL / size;
    return fitting < 100 ? 100 : fitting > RECORDS_USUAL ? RECORDS_USUAL : fitting;
}

static void make_mix(struct bout *bout)
{
    bool scans = bout->test->mix.scans;
    bench_command_make(&bout->run.read, scans ? BENCH_SCAN : BENCH_READ, bout->size, true);
    bench_command_make(&bout->run.update, BENCH_UPDATE, bout->size, true);
    bout->run.mix = &bout->test->mix;
    bout->run.inserts = &bout->inserts;
    bout->run.wanted_length = (int64_t)bout->size;
    bout->names[bout->name_count++] = bout->run.read.name;
    bout->names[bout->name_count++] = bout->run.update.name;
}

static void make_command(const struct bench_options *options, struct bout *bout)
{
    const struct bench_test *test = bout->test;
    bool has_numbers = options->keys > 0;
    if (test == NULL)
        bench_command_make_argv(&bout->run.command, options->word_count, options->words, bout->size,
                                has_numbers);
    else if (bench_test_is_inline(test))
        bench_command_make_inline(&bout->run.command, test->command);
    else
        bench_command_make(&bout->run.command, test->command, bout->size, has_numbers);
    if (test != NULL && test->need == BENCH_EVERY_KEY)
        bout->run.wanted_length = (int64_t)bout->size;
    if (test != NULL && test->need == BENCH_LONG_LIST)
        bout->run.wanted_elements = atoi(strrchr(test->command, ' ') + 1) + 1;
    bout->names[bout->name_count++] = bout->run.command.name;
}

static void make_bout(struct plan *plan, struct bout *bout, const struct bench_test *test,
                      uint64_t size)
{
    const struct bench_options *options = &plan->options;
    *bout = (struct bout){
        .test = test,
        .size = size,
        .keys = records_of(options, test, size),
        .rates = calloc((size_t)options->rounds * options->transport_count, sizeof(double))};
    if (bout->rates == NULL)
        bench_give_up("out of memory");
    pthread_mutex_init(&bout->inserts.lock, NULL);
    bout->inserts.next = bout->inserts.there = bout->keys;
    bout->run = (struct bench_run){.options = options,
                                   .wanted_length = -1,
                                   .wanted_elements = -1,
                                   .rate = options->rate,
                                   .clients = options->clients,
                                   .threads = options->threads,
                                   .pipeline = options->pipeline};
    if (options->seconds > 0)
        bout->run.seconds = options->seconds / options->rounds;
    keys_init(&bout->run.keys, bout->keys, test != NULL && bench_test_is_mix(test), 0);
    if (test != NULL && bench_test_is_mix(test))
        make_mix(bout);
    else
        make_command(options, bout);
}

static void free_bout(struct bout *bout)
{
    bench_command_free(&bout->run.command);
    bench_command_free(&bout->run.read);
    bench_command_free(&bout->run.update);
    pthread_mutex_destroy(&bout->inserts.lock);
    free(bout->rates);
}

static void add_result(struct bench_row *row, const struct bench_result *result,
                       const struct bench_figures *before, const struct bench_figures *after)
{
    bench_result_add(&row->result, result);
    row->server_cpu_s += after->cpu_s - before->cpu_s;
    row->copied_bytes += after->copied_bytes - before->copied_bytes;
    row->calls += after->calls - before->calls;
}

static void run_once(struct plan *plan, struct bout *bout, struct bench_row *rows, uint32_t round,
                     uint32_t transport)
{
    const struct bench_options *options = &plan->options;
    struct bench_figures before, after;
    struct bench_result *result = malloc(sizeof *result);
    struct bench_run *run = &bout->run;
    if (result == NULL)
        bench_give_up("out of memory");
    run->transport = options->transports[transport];
    /* With the same for every transport the first one would create the keys of each round. */
    run->seed = (options->seed * ROUNDS_MAX + round) * BENCH_TRANSPORTS_MAX + transport;
    if (options->seconds == 0)
        run->requests =
            options->requests / options->rounds + (round < options->requests % options->rounds);
    struct bench_team *team = bench_team_gather(run);
    bench_figures_take(&before, plan->control, bout->name_count, bout->names);
    bench_team_run(team, result);
    bench_figures_take(&after, plan->control, bout->name_count, bout->names);
    bench_team_free(team);
    bout->rates[transport * options->rounds + round] = (double)result->operations / result->seconds;
    /* For sockets the kernel copies; what is copied for channels the server reports. */
    rows[transport].has_copied = run->transport->is_rdma && after.has_copied;
    add_result(&rows[transport], result, &before, &after);
    free(result);
}

static int compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof *values, compare);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static struct bench_row *add_rows(struct plan *plan, const struct bout *bout, const char *title,
                                  bool has_data)
{
    const struct bench_options *options = &plan->options;
    size_t wanted = plan->row_count + options->transport_count;
    struct bench_row *rows = realloc(plan->rows, wanted * sizeof *rows);
    if (rows == NULL)
        bench_give_up("out of memory");
    plan->rows = rows;
    rows += plan->row_count;
    memset(rows, 0, options->transport_count * sizeof *rows);
    for (uint32_t i = 0; i < options->transport_count; i++) {
        rows[i].name = bout->test != NULL ? bout->test->name : title;
        rows[i].test = title;
        rows[i].transport = options->transports[i]->name;
        rows[i].size = has_data ? bout->size : 0;
        rows[i].records = options->keys > 0 || bout->run.mix != NULL ? bout->keys : 0;
    }
    return rows;
}

/* The size of values matters. test NULL: the user's own command. */
static bool has_data(const struct bench_options *options, const struct bench_test *test)
{
    return test != NULL ? bench_test_has_data(test)
                        : bench_words_have_data(options->word_count, options->words);
}

static void measure(struct plan *plan, const struct bench_test *test, uint64_t size)
{
    const struct bench_options *options = &plan->options;
    struct bout bout;
    make_bout(plan, &bout, test, size);
    if (test != NULL)
        prepare(plan, &bout);
    struct bench_row *rows = add_rows(plan, &bout, test != NULL ? test->title : options->words[0],
                                      has_data(options, test));
    for (uint32_t round = 0; round < options->rounds; round++)
        for (uint32_t i = 0; i < options->transport_count; i++)
            run_once(plan, &bout, rows, round, (round + i) % options->transport_count);
    for (uint32_t i = 0; i < options->transport_count; i++)
        rows[i].rate = median(bout.rates + i * options->rounds, options->rounds);
    bench_report_test(options, rows, options->transport_count, plan->row_count == 0);
    plan->row_count += options->transport_count;
    free_bout(&bout);
}

static void measure_sizes(struct plan *plan, const struct bench_test *test)
{
    const struct bench_options *options = &plan->options;
    for (uint32_t i = 0; i < (has_data(options, test) ? options->size_count : 1); i++)
        measure(plan, test, options->sizes[i]);
}

static void measure_all(struct plan *plan)
{
    const struct bench_options *options = &plan->options;
    plan->row_count = 0;
    for (uint32_t i = 0; i < plan->test_count; i++)
        measure_sizes(plan, plan->tests[i]);
    if (options->word_count > 0)
        measure_sizes(plan, NULL);
}

/* Opens idle connections by every transport, until interrupted. */
static void wait_idly(const struct bench_options *options)
{
    printf("%u connections by each transport do nothing; to be ended by a signal\n",
           options->clients);
    fflush(stdout);
    for (uint32_t i = 0; i < options->transport_count; i++)
        for (uint32_t j = 0; j < options->clients; j++)
            bench_connect(options, options->transports[i]);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    static const struct bench_transport tcp = {.name = "tcp"},
                                        socket = {.name = "unix", .is_unix = true};
    struct plan plan = {.test_count = 0};
    int status;
    if (!bench_options_parse(&plan.options, argc, argv, &status))
        return status;
    if (plan.options.word_count == 0)
        choose_tests(&plan);
    signal(SIGPIPE, SIG_IGN);
    if (plan.options.only_waits)
        wait_idly(&plan.options);
    bool only_unix = plan.options.transport_count == 1 && plan.options.transports[0]->is_unix;
    plan.control = bench_connect(&plan.options, only_unix ? &socket : &tcp);
    bench_report_begin(&plan.options);
    do
        measure_all(&plan);
    while (plan.options.repeats);
    bench_report_end(&plan.options);
    if (plan.options.plot != NULL)
        bench_plot(&plan.options, plan.rows, plan.row_count);
    vellum_free(plan.control);
    free(plan.rows);
    return EXIT_SUCCESS;
}
