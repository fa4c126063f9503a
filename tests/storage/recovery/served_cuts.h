/* Power cuts under commands, on a whole server on the engine: commands are drawn by letters, the
 * medium is recorded before each I/O that changes it, and servers are started on these moments
 * afterwards, with what was unflushed kept, lost, torn and mixed. What such a server tells is what
 * the first one told after one of the commands, the last that it had acknowledged or a later one.
 * Work goes on, and the power goes once more.
 *
 * VELLUM_SCRIPT with VELLUM_SEED runs the commands of these letters alone, with all their states.
 */
#ifndef VELLUM_SERVED_CUTS_H
#define VELLUM_SERVED_CUTS_H

#include "tests/storage/harness.h"
#include "tests/unit/served.h"

/* Commands under way. */
struct cuts {
    const struct cuts_subject *subject;
    struct served *served;
    struct rng rng;
    uint32_t next; /* a number for the subject's use, from 1 on */
    uint32_t size; /* likewise, as given to cuts_run */
};

/* What the commands are about. */
struct cuts_subject {
    const char *alphabet; /* of the commands; `p` is a checkpoint */
    const char *picture;  /* commands: their replies are what a server tells */
    size_t command_most;  /* bytes of a command */
    bool one_commit;      /* each makes one at most */
    void (*fill)(struct cuts *cuts);
    void (*write)(struct cuts *cuts, char letter, char *to, size_t size);
    /* New work after a cut: on that server, not on cuts->served. */
    void (*go_on)(struct cuts *cuts, struct served *served);
};

void cuts_demand(struct served *served, const char *command, const char *begins);
/* Returns how many states were tried. */
uint32_t cuts_run(const struct cuts_subject *subject, const char *letters, uint32_t size,
                  uint64_t seed);
/* Random letters, each in its turn the last one, for so long, or for VELLUM_SECONDS. */
void cuts_run_random(const struct cuts_subject *subject, const char *name, uint32_t size,
                     uint32_t seconds);
uint32_t cuts_seconds(uint32_t otherwise); /* VELLUM_SECONDS */

#endif
