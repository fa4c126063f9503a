/*
 * The values of all directives: defaults and reading.
 *
 * Invariants:
 * 1. Every table row of a number type has its value in numbers[]; every row of a text type has one
 *    in texts[], which is never NULL. LIMITS values exist only in output_limits[].
 * 2. Only config_take() changes a value.
 */
#include "server/config/config.h"

#include <assert.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "server/config/config_directive.h"
#include "server/config/config_file.h"

static bool take_initial(struct config *config, size_t row)
{
    const struct directive *directive = &directive_table[row];
    struct config_value value = {.text = NULL};
    char error[DIRECTIVE_ERROR_MAX];
    char *initial = (char *)directive->initial;
    if (directive_is_number(directive) || directive->type == DIRECTIVE_LIMITS) {
        bool good = directive_parse(config, row, 1, &initial, &value, error);
        assert(good);
    } else {
        value.text = strdup(initial);
        if (value.text == NULL)
            return false;
    }
    config_take(config, row, &value);
    return true;
}

bool config_init(struct config *config)
{
    memset(config, 0, sizeof *config);
    pthread_mutex_init(&config->lock, NULL);
    pthread_mutex_init(&config->changing, NULL);
    for (size_t row = 0; row < directive_count; row++) {
        if (!take_initial(config, row)) {
            config_free(config);
            return false;
        }
    }
    return true;
}

void config_free(struct config *config)
{
    for (size_t row = 0; row < directive_count; row++)
        free(config->texts[row]);
    for (size_t i = 0; i < config->rename_count; i++) {
        free((char *)config->renames[i].from);
        free((char *)config->renames[i].to);
    }
    free(config->renames);
    config_notes_free(config);
    free(config->file);
    pthread_mutex_destroy(&config->lock);
    pthread_mutex_destroy(&config->changing);
    memset(config, 0, sizeof *config);
}

size_t config_text(struct config *config, enum config_id id, char *to, size_t size)
{
    assert(!directive_is_number(&directive_table[id]));
    pthread_mutex_lock(&config->lock);
    size_t len = strlen(config->texts[id]);
    snprintf(to, size, "%s", config->texts[id]);
    pthread_mutex_unlock(&config->lock);
    return len;
}

struct config_output_limit config_output_limit(const struct config *config,
                                               enum config_client_class client)
{
    const _Atomic uint64_t *limits = &config->output_limits[client * 3];
    return (struct config_output_limit){
        .hard_bytes = atomic_load_explicit(&limits[0], memory_order_relaxed),
        .soft_bytes = atomic_load_explicit(&limits[1], memory_order_relaxed),
        .soft_seconds = atomic_load_explicit(&limits[2], memory_order_relaxed),
    };
}

bool config_password_matches(struct config *config, const char *password, size_t len)
{
    /* Always compares the maximum number of bytes, so that timing reveals nothing about the
     * password. */
    char given[CONFIG_PASSWORD_MAX + 1] = {0}, kept[CONFIG_PASSWORD_MAX + 1] = {0};
    memcpy(given, password, len < sizeof given ? len : sizeof given);
    size_t kept_len = config_text(config, CONFIG_REQUIREPASS, kept, sizeof kept);
    volatile unsigned difference = len != kept_len;
    for (size_t i = 0; i < sizeof kept; i++)
        difference |= (unsigned char)(given[i] ^ kept[i]);
    return difference == 0;
}
