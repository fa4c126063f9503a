/*
 * The effects of a command besides its reply and its transaction: messages to be published. They
 * are collected during a run, discarded when the function is run again or fails, and sent in order
 * once it has succeeded and its writes are committed.
 *
 * Threads: effects belong to the thread of their request.
 */
#ifndef VELLUM_EFFECTS_H
#define VELLUM_EFFECTS_H

#include <sys/queue.h>

#include "server/core/command.h"
#include "server/config/log.h"
#include "server/pubsub/pubsub.h"
#include "server/core/worker.h"
#include "server/net/publication.h"

struct effects {
    STAILQ_HEAD(, publication) messages;
    STAILQ_HEAD(, effects_line) lines;
    struct libraries_shown libraries;
};

void effects_init(struct effects *effects);

void effects_add(struct effects *effects, struct publication *publication); /* takes ownership */
bool effects_log(struct effects *effects, enum config_loglevel level,
                 struct resp_slice text); /* false: out of memory */
void effects_drop(struct effects *effects);
void effects_write_lines(struct effects *effects, const struct log *log); /* and frees them */
static inline bool effects_any(const struct effects *effects)
{
    return __builtin_expect(!STAILQ_EMPTY(&effects->messages) || !STAILQ_EMPTY(&effects->lines) ||
                                effects->libraries.is_set,
                            0);
}

#endif
