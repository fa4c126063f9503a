#include "server/exec/written.h"

#include "server/core/call.h"
#include "storage/base/keyed_hash.h"

/* Cheap, since EXEC calls it for each command: what clients choose is in keyed hashes already. */
static uint64_t mix(uint64_t path, uint64_t what)
{
    path = (path ^ what) * 0x9e3779b97f4a7c15;
    return path ^ path >> 32;
}

void written_clear(struct written *written)
{
    written->count = 0;
    written->others = 0;
}

/* How many bytes of arguments lie one after the other, from argument `first` on; `*end`: the next
 * argument. Those of a script's calls all do. */
static size_t joined_bytes(const struct call *call, size_t first, size_t *end)
{
    const struct resp_slice *argv = call->argv;
    size_t bytes = argv[first].len, i = first + 1;
    for (; i < call->argc && argv[i].data == argv[first].data + bytes; i++)
        bytes += argv[i].len;
    *end = i;
    return bytes;
}

uint64_t written_hash(const struct call *call)
{
    uint64_t hash = (uintptr_t)call->command;
    for (size_t i = 0, end; i < call->argc; i = end) {
        size_t bytes = joined_bytes(call, i, &end);
        hash = store_keyed_hash((const uint64_t[]){hash, i}, call->argv[i].data, bytes);
    }
    for (size_t i = 0; i < call->argc; i++)
        hash = mix(hash, call->argv[i].len);
    return hash;
}

/* The key's place; `count`: it has none. */
static uint32_t find(const struct written *written, const struct store_key *key)
{
    uint32_t at = 0;
    while (at < written->count &&
           (written->keys[at].hash != key->hash || written->keys[at].db != key->db))
        at++;
    return at;
}

static void note_key(struct written *written, const struct store_key *key, uint64_t what)
{
    uint32_t at = find(written, key);
    if (at == written->count && at < WRITTEN_KEYS)
        written->keys[written->count++] = (struct written_key){.hash = key->hash, .db = key->db};
    uint64_t *to = at < written->count ? &written->keys[at].path : &written->others;
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

bool written_has(const struct written *written, const struct store_key *key)
{
    return find(written, key) < written->count;
}

/* SORT by its patterns, which move its keys without a count of them, and scripts. */
static bool may_read_undeclared(const struct command *command)
{
    bool has_patterns = (command->flags & CMD_MOVABLE_KEYS) != 0 && command->key_count_at == 0;
    return has_patterns || command->declare != NULL;
}

uint64_t written_path(const struct written *written, const struct call *call)
{
    uint64_t path = written->others;
    if (call->key_count == 0 || call->key_count > WRITTEN_KEYS ||
        may_read_undeclared(call->command)) {
        for (uint32_t i = 0; i < written->count; i++)
            path = mix(path, written->keys[i].path);
        return path;
    }
    for (uint32_t i = 0; i < call->key_count; i++) {
        uint32_t at = find(written, &call->keys[i]);
        path = mix(path, call->keys[i].hash + call->keys[i].db);
        path = at < written->count ? mix(path, written->keys[at].path) : path;
    }
    return path;
}
