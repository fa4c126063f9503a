/*
 * vellum-check DIRECTORY: verifies a data directory that no server has open, and never writes.
 *
 * Exit status: 0: nothing is wrong; 1: something is damaged; 2: it could not be checked.
 */
#include <stdio.h>
#include <string.h>

#include "storage/store.h"
#include "server/core/server.h"

enum { NOTHING_WRONG, DAMAGED, NOT_CHECKED };

static void say(void *arg, enum store_log_level level, const char *line)
{
    (void)arg;
    if (level == STORE_LOG_WARNING)
        printf("%s\n", line);
}

static void sum_up(const struct store_check *found)
{
    printf(
        "%llu items, %llu large values (%llu extents), %llu collections (%llu nodes, %llu values "
        "beside them), %llu commits in the journal\n",
        (unsigned long long)found->items, (unsigned long long)found->large_values,
        (unsigned long long)found->extents, (unsigned long long)found->collections,
        (unsigned long long)found->nodes, (unsigned long long)found->overflow,
        (unsigned long long)found->commits);
    printf(found->has_index ? "the index checkpoint is whole and right\n"
                            : "no index checkpoint: a start reads the slabs\n");
    if (found->faults)
        printf("%llu faults\n", (unsigned long long)found->faults);
    else
        printf("nothing wrong\n");
}

static const char usage[] = "usage: vellum-check DIRECTORY\n"
                            "       vellum-check -v or --version\n"
                            "       vellum-check -h or --help\n"
                            "Verifies a data directory that no server has open; never writes.\n"
                            "Exit status: 0 nothing is wrong, 1 damage, 2 could not be checked.\n";

/* What was asked for instead of a directory. */
static int answer(const char *option)
{
    if (strcmp(option, "-h") == 0 || strcmp(option, "--help") == 0) {
        fputs(usage, stdout);
        return NOTHING_WRONG;
    }
    if (strcmp(option, "-v") == 0 || strcmp(option, "--version") == 0) {
        puts("vellum-check " VELLUM_VERSION);
        return NOTHING_WRONG;
    }
    fprintf(stderr, "vellum-check: there is no option '%s'\n%s", option, usage);
    return NOT_CHECKED;
}

int main(int argc, char **argv)
{
    struct store_check found;
    char message[STORE_MESSAGE_MAX];
    if (argc == 2 && argv[1][0] == '-')
        return answer(argv[1]);
    if (argc != 2) {
        fputs(usage, stderr);
        return NOT_CHECKED;
    }
    enum store_result result = store_check(argv[1], say, NULL, &found, message);
    if (result != STORE_OK) {
        fprintf(stderr, "%s\n", message);
        return result == STORE_CORRUPT ? DAMAGED : NOT_CHECKED;
    }
    sum_up(&found);
    return found.faults ? DAMAGED : NOTHING_WRONG;
}
