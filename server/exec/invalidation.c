/*
 * A hash table of names, which are also in a list, in the order of their arrival.
 */
#include "server/exec/invalidation.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS_MIN 8
#define ENTRY_MORE 32 /* malloc's and the buckets' overhead of a name */

struct invalidated {
    struct invalidated *next, *next_bucket;
    uint64_t hash;
    uint32_t len, group;
    char name[];
};

static struct invalidated **bucket_of(const struct invalidation *invalidation, uint64_t hash)
{
    return &invalidation->buckets[hash & (invalidation->size - 1)];
}

static bool has(const struct invalidation *invalidation, const struct store_key *key,
                uint32_t group)
{
    const struct invalidated *at =
        invalidation->size > 0 ? *bucket_of(invalidation, key->hash) : NULL;
    while (at != NULL && (at->hash != key->hash || at->group != group || at->len != key->len ||
                          memcmp(at->name, key->data, key->len) != 0))
        at = at->next_bucket;
    return at != NULL;
}

static void put_in_bucket(struct invalidation *invalidation, struct invalidated *name)
{
    struct invalidated **bucket = bucket_of(invalidation, name->hash);
    name->next_bucket = *bucket;
    *bucket = name;
}

/* False: out of memory, and there are no buckets; otherwise longer chains will do. */
static bool grow(struct invalidation *invalidation)
{
    uint32_t size = invalidation->size == 0 ? BUCKETS_MIN : 2 * invalidation->size;
    struct invalidated **buckets = calloc(size, sizeof(struct invalidated *));
    if (buckets == NULL)
        return invalidation->size > 0;
    free(invalidation->buckets);
    invalidation->buckets = buckets;
    invalidation->size = size;
    for (struct invalidated *name = invalidation->first; name != NULL; name = name->next)
        put_in_bucket(invalidation, name);
    return true;
}

static bool add(struct invalidation *invalidation, const struct store_key *key, uint32_t group)
{
    if (invalidation->count == invalidation->size && !grow(invalidation))
        return false;
    struct invalidated *name = malloc(sizeof *name + key->len);
    if (name == NULL)
        return false;
    *name = (struct invalidated){.hash = key->hash, .len = key->len, .group = group};
    memcpy(name->name, key->data, key->len);
    put_in_bucket(invalidation, name);
    *(invalidation->last == NULL ? &invalidation->first : &invalidation->last->next) = name;
    invalidation->last = name;
    invalidation->count++;
    invalidation->bytes += sizeof *name + key->len + ENTRY_MORE;
    return true;
}

void invalidation_add(struct invalidation *invalidation, const struct store_key *key,
                      uint32_t group)
{
    if (!has(invalidation, key, group) && !add(invalidation, key, group))
        invalidation_add_all(invalidation);
}

void invalidation_clear(struct invalidation *invalidation)
{
    for (struct invalidated *name; (name = invalidation->first) != NULL;) {
        invalidation->first = name->next;
        free(name);
    }
    free(invalidation->buckets);
    *invalidation = (struct invalidation){.all = false};
}

void invalidation_add_all(struct invalidation *invalidation)
{
    invalidation_clear(invalidation);
    invalidation->all = true;
}

void invalidation_each(const struct invalidation *invalidation,
                       void (*visit)(void *arg, const struct store_key *key), void *arg)
{
    for (const struct invalidated *name = invalidation->first; name != NULL; name = name->next) {
        const struct store_key key = {.data = name->name, .len = name->len, .hash = name->hash};
        visit(arg, &key);
    }
}

/* ---- writing ---- */

static void write_head(struct resp_writer *to)
{
    if (to->version == 3) {
        resp_push(to, 2);
        resp_bulk_string(to, "invalidate");
        return;
    }
    resp_array(to, 3);
    resp_bulk_string(to, "message");
    resp_bulk_string(to, "__redis__:invalidate");
}

static void write_group(const struct invalidated *first, uint32_t count, struct resp_writer *to)
{
    write_head(to);
    resp_array(to, count);
    uint32_t group = first->group;
    for (const struct invalidated *name = first; count > 0; name = name->next) {
        if (name->group != group)
            continue;
        resp_bulk(to, name->name, name->len);
        count--;
    }
}

static bool is_first_of_group(const struct invalidation *invalidation,
                              const struct invalidated *name)
{
    const struct invalidated *at = invalidation->first;
    while (at->group != name->group)
        at = at->next;
    return at == name;
}

static uint32_t group_size(const struct invalidated *first)
{
    uint32_t count = 0;
    for (const struct invalidated *name = first; name != NULL; name = name->next)
        count += name->group == first->group;
    return count;
}

void invalidation_write(const struct invalidation *invalidation, bool is_grouped,
                        struct resp_writer *to)
{
    if (invalidation->all) {
        write_head(to);
        resp_null(to);
    }
    for (const struct invalidated *name = invalidation->first; name != NULL; name = name->next) {
        if (!is_grouped)
            write_group(name, 1, to);
        else if (is_first_of_group(invalidation, name))
            write_group(name, group_size(name), to);
    }
}
