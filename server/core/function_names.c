#include "server/core/function_names.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A hash table with open addressing; at most half of its slots are taken. */
struct name_set {
    uint32_t mask, count, most;
    size_t used, size;
    char *bytes; /* the names, one after the other */
    struct resp_slice slots[];
};

struct readonly_names {
    pthread_mutex_t lock;
    struct name_set *set; /* NULL: there are none */
};

/* ---- names ---- */

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

uint32_t function_name_hash(struct resp_slice name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ lower(name.data[i])) * 16777619u;
    return hash;
}

int function_name_compare(struct resp_slice a, struct resp_slice b)
{
    for (size_t i = 0; i < a.len && i < b.len; i++) {
        int difference = lower(a.data[i]) - lower(b.data[i]);
        if (difference != 0)
            return difference;
    }
    return a.len < b.len ? -1 : a.len > b.len;
}

bool function_name_same(struct resp_slice a, struct resp_slice b)
{
    return a.len == b.len && function_name_compare(a, b) == 0;
}

/* ---- sets ---- */

struct name_set *name_set_new(uint32_t most, size_t bytes)
{
    uint32_t slots = 8;
    while (slots / 2 < most)
        slots *= 2;
    struct name_set *set = calloc(1, sizeof *set + slots * sizeof *set->slots);
    if (set == NULL)
        return NULL;
    set->mask = slots - 1;
    set->most = most;
    set->size = bytes;
    set->bytes = malloc(bytes + 1);
    if (set->bytes == NULL) {
        free(set);
        return NULL;
    }
    return set;
}

void name_set_free(struct name_set *set)
{
    if (set != NULL)
        free(set->bytes);
    free(set);
}

/* Where the name is, or a free slot for it. */
static uint32_t find(const struct name_set *set, struct resp_slice name)
{
    uint32_t at = function_name_hash(name) & set->mask;
    while (set->slots[at].data != NULL && !function_name_same(set->slots[at], name))
        at = (at + 1) & set->mask;
    return at;
}

void name_set_add(struct name_set *set, struct resp_slice name)
{
    uint32_t at = find(set, name);
    if (set->slots[at].data != NULL)
        return;
    assert(set->count < set->most && name.len <= set->size - set->used);
    char *copy = set->bytes + set->used;
    memcpy(copy, name.data, name.len);
    set->slots[at] = (struct resp_slice){copy, name.len};
    set->used += name.len;
    set->count++;
}

/* ---- what workers share ---- */

struct readonly_names *readonly_names_new(void)
{
    struct readonly_names *names = calloc(1, sizeof *names);
    if (names != NULL && pthread_mutex_init(&names->lock, NULL) != 0) {
        free(names);
        return NULL;
    }
    return names;
}

void readonly_names_free(struct readonly_names *names)
{
    if (names == NULL)
        return;
    name_set_free(names->set);
    pthread_mutex_destroy(&names->lock);
    free(names);
}

void readonly_names_publish(struct readonly_names *names, struct name_set *set)
{
    pthread_mutex_lock(&names->lock);
    struct name_set *old = names->set;
    names->set = set;
    pthread_mutex_unlock(&names->lock);
    name_set_free(old);
}

bool readonly_names_has(struct readonly_names *names, struct resp_slice name)
{
    pthread_mutex_lock(&names->lock);
    const struct name_set *set = names->set;
    bool has = set != NULL && set->slots[find(set, name)].data != NULL;
    pthread_mutex_unlock(&names->lock);
    return has;
}
