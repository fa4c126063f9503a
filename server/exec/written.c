#include "server/exec/written.h"

#include "server/core/call.h"
#include "storage/base/keyed_hash.h"

static uint64_t mix(uint64_t path, uint64_t what)
{
    return store_keyed_hash((const uint64_t[]){path, what}, NULL, 0);
}

void written_clear(struct written *written)
{
    written->count = 0;
    written->others = 0;
}

uint64_t written_hash(const struct call *call)
{
    uint64_t hash = (uintptr_t)call->command;
    for (size_t i = 0; i < call->argc; i++)
        hash = store_keyed_hash((const uint64_t[]){hash, i}, call->argv[i].data, call->argv[i].len);
    return hash;
}

static struct written_key *find(struct written *written, const struct store_key *key)
{
    for (uint32_t i = 0; i < written->count; i++)
        if (written->keys[i].hash == key->hash && written->keys[i].db == key->db)
            return &written->keys[i];
    return NULL;
}

static void note_key(struct written *written, const struct store_key *key, uint64_t what)
{
    struct written_key *known = find(written, key);
    if (known == NULL && written->count < WRITTEN_KEYS) {
        known = &written->keys[written->count++];
        *known = (struct written_key){.hash = key->hash, .db = key->db};
    }
    uint64_t *to = known != NULL ? &known->path : &written->others;
    *to = mix(*to, what);
}

void written_note(struct written *written, const struct call *call, uint64_t what)
{
    if (call->key_count == 0 || call->key_count > WRITTEN_KEYS) {
        written->others = mix(written->others, what);
        return;
    }
    for (uint32_t i = 0; i < call->key_count; i++)
        if (call->keys[i].mode == STORE_EXCLUSIVE)
            note_key(written, &call->keys[i], what);
}

uint64_t written_path(const struct written *written, const struct call *call)
{
    uint64_t path = written->others;
    if (call->key_count == 0 || call->key_count > WRITTEN_KEYS) {
        for (uint32_t i = 0; i < written->count; i++)
            path = mix(path, written->keys[i].path);
        return path;
    }
    for (uint32_t i = 0; i < call->key_count; i++) {
        const struct written_key *known = find((struct written *)written, &call->keys[i]);
        path = mix(path, call->keys[i].hash + call->keys[i].db);
        path = known != NULL ? mix(path, known->path) : path;
    }
    return path;
}
