#include "server/exec/declared_keys.h"

#include <assert.h>
#include <stdlib.h>

#include "server/exec/keyspace.h"

#define FEW_KEYS 16 /* compared one by one */

/* The cell of an equal key, or the empty one where it would be. */
static uint32_t *find(const struct declared_keys *declared_keys,
                      const struct store_request *request, const struct store_key *key)
{
    size_t at = (size_t)(key->hash + key->db) & declared_keys->mask;
    while (declared_keys->places[at] != 0 &&
           !key_equals(&request->keys[declared_keys->places[at] - 1], key))
        at = (at + 1) & declared_keys->mask;
    return &declared_keys->places[at];
}

static bool build(struct declared_keys *declared_keys, struct server *server,
                  const struct store_request *request)
{
    size_t size = 2 * FEW_KEYS;
    while (size < 2 * (size_t)request->key_count)
        size *= 2;
    declared_keys->collected.server = server;
    if (collected_set(&declared_keys->collected, size * sizeof *declared_keys->places))
        declared_keys->places = calloc(size, sizeof *declared_keys->places);
    if (declared_keys->places == NULL) {
        collected_set(&declared_keys->collected, 0);
        return false;
    }
    declared_keys->mask = size - 1;
    declared_keys->count = request->key_count;
    for (uint32_t i = 0; i < request->key_count; i++) {
        uint32_t *place = find(declared_keys, request, &request->keys[i]);
        if (*place == 0 || request->keys[*place - 1].mode < request->keys[i].mode)
            *place = i + 1;
    }
    return true;
}

static bool is_among(const struct store_request *request, const struct store_key *key)
{
    for (uint32_t i = 0; i < request->key_count; i++)
        if (request->keys[i].mode >= key->mode && key_equals(&request->keys[i], key))
            return true;
    return false;
}

bool declared_keys_include(struct declared_keys *declared_keys, struct server *server,
                           const struct store_request *request, const struct store_key *key)
{
    bool is_built = declared_keys->places != NULL;
    if (!is_built && request->key_count > FEW_KEYS)
        is_built = build(declared_keys, server, request);
    if (!is_built) /* few keys, or no memory for the table */
        return is_among(request, key);
    assert(declared_keys->count == request->key_count);
    uint32_t place = *find(declared_keys, request, key);
    return place != 0 && request->keys[place - 1].mode >= key->mode;
}

void declared_keys_free(struct declared_keys *declared_keys)
{
    free(declared_keys->places);
    if (declared_keys->collected.bytes > 0)
        collected_set(&declared_keys->collected, 0);
}
