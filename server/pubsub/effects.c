#include "server/pubsub/effects.h"

#include <stdlib.h>
#include <string.h>

/* A log line. */
struct effects_line {
    struct effects_line *next;
    enum config_loglevel level;
    char text[];
};

void effects_add(struct effects *effects, struct publication *publication)
{
    publication->next = NULL;
    if (effects->first == NULL)
        effects->first = publication;
    else
        effects->last->next = publication;
    effects->last = publication;
}

bool effects_log(struct effects *effects, enum config_loglevel level, struct resp_slice text)
{
    struct effects_line *line = malloc(sizeof *line + text.len + 1);
    if (line == NULL)
        return false;
    line->next = NULL;
    line->level = level;
    if (text.len > 0)
        memcpy(line->text, text.data, text.len);
    line->text[text.len] = '\0';
    if (effects->lines == NULL)
        effects->lines = line;
    else
        effects->last_line->next = line;
    effects->last_line = line;
    return true;
}

static void drop_lines(struct effects *effects)
{
    struct effects_line *line;
    while ((line = effects->lines) != NULL) {
        effects->lines = line->next;
        free(line);
    }
    effects->last_line = NULL;
}

void effects_write_lines(struct effects *effects, const struct log *log)
{
    for (struct effects_line *line = effects->lines; line != NULL; line = line->next)
        log_line(log, line->level, "%s", line->text);
    drop_lines(effects);
}

void effects_drop(struct effects *effects)
{
    struct publication *next;
    for (struct publication *one = effects->first; one != NULL; one = next) {
        next = one->next;
        publication_release(one);
    }
    drop_lines(effects);
    *effects = (struct effects){.first = NULL};
}
