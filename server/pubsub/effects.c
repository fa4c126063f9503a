#include "server/pubsub/effects.h"

#include <stdlib.h>
#include <string.h>

/* A log line. */
struct effects_line {
    STAILQ_ENTRY(effects_line) link;
    enum config_loglevel level;
    char text[];
};

void effects_init(struct effects *effects)
{
    STAILQ_INIT(&effects->messages);
    STAILQ_INIT(&effects->lines);
    effects->libraries.is_set = false;
}

void effects_add(struct effects *effects, struct publication *publication)
{
    STAILQ_INSERT_TAIL(&effects->messages, publication, link);
}

bool effects_log(struct effects *effects, enum config_loglevel level, struct resp_slice text)
{
    struct effects_line *line = malloc(sizeof *line + text.len + 1);
    if (line == NULL)
        return false;
    line->level = level;
    if (text.len > 0)
        memcpy(line->text, text.data, text.len);
    line->text[text.len] = '\0';
    STAILQ_INSERT_TAIL(&effects->lines, line, link);
    return true;
}

static void drop_lines(struct effects *effects)
{
    for (struct effects_line *line; (line = STAILQ_FIRST(&effects->lines)) != NULL;) {
        STAILQ_REMOVE_HEAD(&effects->lines, link);
        free(line);
    }
}

void effects_write_lines(struct effects *effects, const struct log *log)
{
    const struct effects_line *line;
    STAILQ_FOREACH (line, &effects->lines, link)
        log_line(log, line->level, "%s", line->text);
    drop_lines(effects);
}

void effects_drop(struct effects *effects)
{
    for (struct publication *one; (one = STAILQ_FIRST(&effects->messages)) != NULL;) {
        STAILQ_REMOVE_HEAD(&effects->messages, link);
        publication_release(one);
    }
    drop_lines(effects);
    libraries_shown_drop(&effects->libraries);
}
