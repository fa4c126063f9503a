/*
 * The script registry: a hash table by SHA-1 under one lock, and an LRU list of the scripts that
 * were added by EVAL only.
 *
 * Invariants:
 * 1. The registry holds a reference to each script in the table. A script in the list is also in
 *    the table and not `is_loaded`.
 * 2. `flushes` is incremented after the table was emptied. So a thread that reads the new number
 *    and then looks up a script cannot get one from before the flush.
 */
#include "server/script/script.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "server/config/config_words.h"
#include "storage/base/checks.h"

#define SLOTS_MIN 64
#define CHECKED_MOST 256 /* scripts that scripts_check() walks over */

struct scripts {
    pthread_mutex_t lock;
    struct script **slots;
    size_t slot_count, count;                  /* slot_count: a power of two */
    uint64_t made;                             /* total */
    TAILQ_HEAD(scripts_by_use, script) by_use; /* EVAL's scripts, least recently used first */
    uint32_t listed;
    uint64_t loaded_bytes;       /* of scripts that are not in the list */
    _Atomic uint64_t told_bytes; /* reported by scripts_take_change() */
    _Atomic uint64_t bytes, shown_count, flushes;
};

/* ---- invariants ---- */

/* Asserts invariant 1, and that the counters agree with the table and the list. */
static void scripts_check(const struct scripts *scripts)
{
    size_t count = 0;
    uint64_t bytes = 0, loaded_bytes = 0;
    uint32_t listed = 0;
    if (scripts->count > CHECKED_MOST)
        return;
    for (size_t i = 0; i < scripts->slot_count; i++) {
        for (const struct script *script = scripts->slots[i]; script != NULL;
             script = script->next) {
            assert(script->is_listed != script->is_loaded && atomic_load(&script->holders) > 0);
            count++;
            bytes += sizeof *script + script->len + 1;
            loaded_bytes += script->is_loaded ? sizeof *script + script->len + 1 : 0;
        }
    }
    const struct script *script;
    TAILQ_FOREACH (script, &scripts->by_use, by_use) {
        assert(script->is_listed);
        listed++;
    }
    assert(count == scripts->count && bytes == atomic_load(&scripts->bytes));
    assert(listed == scripts->listed && loaded_bytes == scripts->loaded_bytes);
}

/* ---- lifecycle ---- */

struct scripts *scripts_new(void)
{
    struct scripts *scripts = calloc(1, sizeof *scripts);
    if (scripts == NULL)
        return NULL;
    TAILQ_INIT(&scripts->by_use);
    scripts->slot_count = SLOTS_MIN;
    scripts->slots = calloc(SLOTS_MIN, sizeof *scripts->slots);
    if (scripts->slots == NULL || pthread_mutex_init(&scripts->lock, NULL) != 0) {
        free(scripts->slots);
        free(scripts);
        return NULL;
    }
    return scripts;
}

void scripts_free(struct scripts *scripts)
{
    if (scripts == NULL)
        return;
    scripts_flush(scripts);
    pthread_mutex_destroy(&scripts->lock);
    free(scripts->slots);
    free(scripts);
}

static void hold(struct script *script)
{
    uint32_t before = atomic_fetch_add_explicit(&script->holders, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
}

void script_release(struct script *script)
{
    if (script == NULL)
        return;
    uint32_t before = atomic_fetch_sub_explicit(&script->holders, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1)
        free(script);
}

/* ---- table and list, under the lock ---- */

static struct script **slot_of(struct scripts *scripts, const char *sha)
{
    uint64_t hash;
    memcpy(&hash, sha, sizeof hash);
    hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15; /* digits have few random bits */
    return &scripts->slots[hash >> 32 & (scripts->slot_count - 1)];
}

static struct script **place_of(struct scripts *scripts, const char *sha)
{
    struct script **at = slot_of(scripts, sha);
    while (*at != NULL && memcmp((*at)->sha, sha, SHA1_HEX_LEN) != 0)
        at = &(*at)->next;
    return at;
}

static void unlist(struct scripts *scripts, struct script *script)
{
    if (!script->is_listed)
        return;
    assert(!script->is_loaded && scripts->listed > 0);
    TAILQ_REMOVE(&scripts->by_use, script, by_use);
    script->is_listed = false;
    scripts->listed--;
}

static void list_newest(struct scripts *scripts, struct script *script)
{
    assert(!script->is_loaded && !script->is_listed);
    TAILQ_INSERT_TAIL(&scripts->by_use, script, by_use);
    script->is_listed = true;
    scripts->listed++;
}

static void note_access(struct scripts *scripts, struct script *script)
{
    if (!script->is_listed || TAILQ_LAST(&scripts->by_use, scripts_by_use) == script)
        return;
    unlist(scripts, script);
    list_newest(scripts, script);
}

static uint64_t bytes_of(const struct script *script)
{
    return sizeof *script + script->len + 1;
}

static void take_out(struct scripts *scripts, struct script **at)
{
    struct script *script = *at;
    *at = script->next;
    if (script->is_loaded)
        scripts->loaded_bytes -= bytes_of(script);
    unlist(scripts, script);
    assert(scripts->count > 0 && atomic_load(&scripts->bytes) >= bytes_of(script));
    scripts->count--;
    atomic_fetch_sub(&scripts->bytes, bytes_of(script));
    atomic_store(&scripts->shown_count, scripts->count);
    script_release(script);
}

/* If memory is short the table keeps its size and gets longer chains. */
static void grow(struct scripts *scripts)
{
    size_t old_count = scripts->slot_count;
    struct script **old = scripts->slots;
    struct script **slots = calloc(2 * old_count, sizeof *slots);
    if (slots == NULL)
        return;
    scripts->slots = slots;
    scripts->slot_count = 2 * old_count;
    for (size_t i = 0; i < old_count; i++) {
        for (struct script *script = old[i], *next; script != NULL; script = next) {
            next = script->next;
            struct script **slot = slot_of(scripts, script->sha);
            script->next = *slot;
            *slot = script;
        }
    }
    free(old);
}

static void put_in(struct scripts *scripts, struct script *script)
{
    if (scripts->count == scripts->slot_count)
        grow(scripts);
    struct script **slot = slot_of(scripts, script->sha);
    script->next = *slot;
    *slot = script;
    scripts->count++;
    atomic_fetch_add(&scripts->bytes, bytes_of(script));
    atomic_store(&scripts->shown_count, scripts->count);
    if (script->is_loaded)
        scripts->loaded_bytes += bytes_of(script);
    else
        list_newest(scripts, script);
}

/* May evict even the newest script: its caller holds a reference. */
static void forget_oldest(struct scripts *scripts, uint64_t most)
{
    while (!TAILQ_EMPTY(&scripts->by_use) &&
           (scripts->listed > SCRIPTS_OF_EVAL_MAX || atomic_load(&scripts->bytes) > most))
        take_out(scripts, place_of(scripts, TAILQ_FIRST(&scripts->by_use)->sha));
}

/* ---- the first line ---- */

const struct script_flag_name script_flag_names[] = {
    {"no-writes", SCRIPT_NO_WRITES},
    {"allow-oom", SCRIPT_ALLOW_OOM},
    {"allow-stale", SCRIPT_ALLOW_STALE},
    {"no-cluster", SCRIPT_NO_CLUSTER},
    {"allow-cross-slot-keys", SCRIPT_ALLOW_CROSS_SLOT},
    {NULL, 0}};

uint32_t script_flag(const char *name)
{
    for (const struct script_flag_name *at = script_flag_names; at->name != NULL; at++)
        if (strcasecmp(at->name, name) == 0)
            return at->flag;
    return 0;
}

/* What is wrong with the first line: malloc'd text, or NULL if there is no memory for it. */
static bool refuse(char **problem, const char *text, const char *word)
{
    if (asprintf(problem, "ERR %s%s", text, word) < 0)
        *problem = NULL;
    return false;
}

static bool read_flags(struct script *script, char *list, char **problem)
{
    for (char *word = list, *next; *list != '\0' && word != NULL; word = next) {
        char *comma = strchr(word, ',');
        next = comma != NULL ? comma + 1 : NULL;
        if (comma != NULL)
            *comma = '\0';
        const struct script_flag_name *flag = script_flag_names;
        while (flag->name != NULL && strcmp(word, flag->name) != 0)
            flag++;
        if (flag->name == NULL)
            return refuse(problem, "Unexpected flag in script shebang: ", word);
        script->flags |= flag->flag;
    }
    return true;
}

static bool read_words(struct script *script, const struct config_words *words, char **problem)
{
    const char prefix[] = "flags=";
    const size_t prefix_len = sizeof prefix - 1;
    if (strcmp(words->words[0], "#!lua") != 0)
        return refuse(problem, "Unexpected engine in script shebang: ", words->words[0]);
    for (size_t i = 1; i < words->count; i++) {
        if (strncmp(words->words[i], prefix, prefix_len) != 0)
            return refuse(problem, "Unknown lua shebang option: ", words->words[i]);
        if (!read_flags(script, words->words[i] + prefix_len, problem))
            return false;
    }
    return true;
}

/* "#!lua flags=no-writes,allow-oom" */
static bool read_shebang(struct script *script, char **problem)
{
    struct config_words words;
    if (script->len < 2 || memcmp(script->text, "#!", 2) != 0)
        return true;
    char *end = strchr(script->text, '\n');
    if (end == NULL)
        return refuse(problem, "Invalid script shebang", "");
    script->flags = SCRIPT_HAS_SHEBANG;
    script->code_at = (size_t)(end - script->text); /* the newline stays: it counts as a line */
    *end = '\0';
    bool is_split = config_split(script->text, &words);
    *end = '\n';
    if (!is_split)
        return refuse(problem, "Invalid engine in script shebang", "");
    bool is_good = read_words(script, &words, problem);
    config_words_free(&words);
    return is_good;
}

/* ---- queries ---- */

struct script *scripts_find(struct scripts *scripts, const char sha[SHA1_HEX_LEN])
{
    pthread_mutex_lock(&scripts->lock);
    struct script *script = *place_of(scripts, sha);
    if (script != NULL) {
        hold(script);
        note_access(scripts, script);
    }
    pthread_mutex_unlock(&scripts->lock);
    return script;
}

static struct script *make(struct resp_slice text, const char *sha, bool is_loaded, char **problem)
{
    struct script *script = malloc(sizeof *script + text.len + 1);
    if (script == NULL)
        return NULL;
    *script = (struct script){.is_loaded = is_loaded, .holders = 1, .len = text.len};
    memcpy(script->sha, sha, sizeof script->sha);
    if (text.len > 0)
        memcpy(script->text, text.data, text.len);
    script->text[text.len] = '\0';
    if (read_shebang(script, problem))
        return script;
    free(script);
    return NULL;
}

static struct script *add_new(struct scripts *scripts, struct resp_slice text, const char *sha,
                              bool is_loaded, char **problem)
{
    struct script *script = make(text, sha, is_loaded, problem);
    if (script == NULL)
        return NULL;
    script->number = ++scripts->made;
    put_in(scripts, script);
    return script;
}

static void keep_loaded(struct scripts *scripts, struct script *script)
{
    unlist(scripts, script);
    script->is_loaded = true;
    scripts->loaded_bytes += bytes_of(script);
}

struct script *scripts_add(struct scripts *scripts, struct resp_slice text, bool is_loaded,
                           uint64_t most, char **problem)
{
    char sha[SHA1_HEX_LEN + 1];
    sha1_hex(text.data, text.len, sha);
    *problem = NULL;
    pthread_mutex_lock(&scripts->lock);
    struct script *script = *place_of(scripts, sha);
    bool is_kept = script != NULL && script->is_loaded;
    bool is_refused =
        is_loaded && !is_kept && scripts->loaded_bytes + sizeof *script + text.len + 1 > most;
    if (is_refused)
        script = NULL;
    else if (script == NULL)
        script = add_new(scripts, text, sha, is_loaded, problem);
    else if (is_loaded && !is_kept)
        keep_loaded(scripts, script);
    else
        note_access(scripts, script);
    if (script != NULL)
        hold(script);
    forget_oldest(scripts, most);
    if (storage_checks_enabled())
        scripts_check(scripts);
    pthread_mutex_unlock(&scripts->lock);
    return script;
}

struct script *script_of_function(struct resp_slice name)
{
    struct script *script = malloc(sizeof *script + name.len + 1);
    if (script == NULL)
        return NULL;
    *script = (struct script){.is_function = true, .holders = 1, .len = name.len};
    memcpy(script->text, name.data, name.len);
    script->text[name.len] = '\0';
    return script;
}

void scripts_forget(struct scripts *scripts, struct script *script)
{
    pthread_mutex_lock(&scripts->lock);
    struct script **at = place_of(scripts, script->sha);
    if (*at == script)
        take_out(scripts, at);
    pthread_mutex_unlock(&scripts->lock);
}

int64_t scripts_take_change(struct scripts *scripts)
{
    if (atomic_load(&scripts->bytes) == atomic_load(&scripts->told_bytes))
        return 0;
    pthread_mutex_lock(&scripts->lock);
    uint64_t bytes = atomic_load(&scripts->bytes);
    int64_t change = (int64_t)(bytes - atomic_exchange(&scripts->told_bytes, bytes));
    pthread_mutex_unlock(&scripts->lock);
    return change;
}

void scripts_flush(struct scripts *scripts)
{
    pthread_mutex_lock(&scripts->lock);
    for (size_t i = 0; i < scripts->slot_count; i++)
        while (scripts->slots[i] != NULL)
            take_out(scripts, &scripts->slots[i]);
    assert(scripts->count == 0 && scripts->listed == 0 && scripts->loaded_bytes == 0);
    atomic_fetch_add(&scripts->flushes, 1);
    pthread_mutex_unlock(&scripts->lock);
}

uint64_t scripts_flushes(const struct scripts *scripts)
{
    return atomic_load(&scripts->flushes);
}

uint64_t scripts_count(const struct scripts *scripts)
{
    return atomic_load(&scripts->shown_count);
}

uint64_t scripts_bytes(const struct scripts *scripts)
{
    return atomic_load(&scripts->bytes);
}
