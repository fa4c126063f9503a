#include "server/exec/source_index.h"

#include <assert.h>
#include <stdlib.h>

#define MEMBERS_MOST (UINT32_MAX / 4)

struct entry {
    uint32_t hash, source;
    uint32_t next; /* in the chain: its index plus one; 0: none */
};

struct source_index {
    struct entry *entries;
    uint32_t *chains; /* the first entry's index plus one; 0: none */
    uint32_t count, capacity, mask;
};

/* A power of two, at least the number of members. */
static uint64_t chain_count(uint64_t members)
{
    uint64_t chains = 16;
    while (chains < members)
        chains *= 2;
    return chains;
}

uint64_t source_index_bytes(uint64_t members)
{
    if (members > MEMBERS_MOST)
        return 0;
    return sizeof(struct source_index) + members * sizeof(struct entry) +
           chain_count(members) * sizeof(uint32_t);
}

struct source_index *source_index_new(uint64_t members)
{
    struct source_index *index = calloc(1, sizeof(*index));
    assert(members <= MEMBERS_MOST);
    if (index == NULL)
        return NULL;
    uint64_t chains = chain_count(members);
    index->capacity = (uint32_t)members;
    index->mask = (uint32_t)chains - 1;
    index->entries = malloc((members + 1) * sizeof(*index->entries));
    index->chains = calloc(chains, sizeof(*index->chains));
    if (index->entries != NULL && index->chains != NULL)
        return index;
    source_index_free(index);
    return NULL;
}

void source_index_free(struct source_index *index)
{
    if (index == NULL)
        return;
    free(index->entries);
    free(index->chains);
    free(index);
}

void source_index_add(struct source_index *index, uint64_t hash, uint32_t source)
{
    uint32_t *chain = &index->chains[(uint32_t)hash & index->mask];
    assert(index->count < index->capacity);
    assert(*chain == 0 || index->entries[*chain - 1].source >= source);
    index->entries[index->count++] = (struct entry){(uint32_t)hash, source, *chain};
    *chain = index->count;
}

struct source_walk source_walk_begin(const struct source_index *index, uint64_t hash)
{
    uint32_t entry = index == NULL ? 0 : index->chains[(uint32_t)hash & index->mask];
    return (struct source_walk){.index = index, .hash = (uint32_t)hash, .entry = entry};
}

uint32_t source_walk_indexed(struct source_walk *walk)
{
    while (walk->entry != 0) {
        const struct entry *entry = &walk->index->entries[walk->entry - 1];
        walk->entry = entry->next;
        if (entry->hash != walk->hash || entry->source < walk->next)
            continue; /* another member, or one more of the same source */
        walk->next = entry->source + 1;
        return entry->source;
    }
    return SOURCE_NONE;
}
