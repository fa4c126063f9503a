#include "server/core/command.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "server/config/config.h"
#include "server/core/call.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* FNV-1a of the name in lower case, mixed once more because only the low bits choose the slot. */
static uint32_t hash_name(const char *name, size_t len)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)lower(name[i])) * 16777619u;
    return hash ^ (hash >> 15);
}

static bool is_named(const struct command_slot *slot, struct resp_slice name)
{
    if (slot->len != name.len)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (slot->name[i] != lower(name.data[i]))
            return false;
    return true;
}

static void index_insert(struct command_index *index, const char *name, uint32_t row)
{
    size_t len = strlen(name);
    assert(len > 0 && len <= COMMAND_NAME_MAX);
    uint32_t at = hash_name(name, len) % COMMAND_INDEX_SLOTS;
    while (index->slots[at].name != NULL)
        at = (at + 1) % COMMAND_INDEX_SLOTS;
    index->slots[at] = (struct command_slot){.name = name, .len = (uint32_t)len, .row = row};
}

static const struct command_rename *find_rename(const char *name,
                                                const struct command_rename *renames, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(renames[i].from, name) == 0)
            return &renames[i];
    return NULL;
}

static bool is_subcommand(const struct command *command)
{
    return strchr(command->name, '|') != NULL;
}

static void index_add_all(struct command_index *index, const struct command_rename *renames,
                          size_t count)
{
    for (uint32_t row = 0; index->table[row].name != NULL; row++) {
        const struct command *command = &index->table[row];
        if (!is_subcommand(command) && find_rename(command->name, renames, count) == NULL)
            index_insert(index, command->name, row);
    }
}

static const struct command *find_row(const struct command *table, const char *name)
{
    for (const struct command *row = table; row->name != NULL; row++)
        if (!is_subcommand(row) && strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

static size_t count_rows(const struct command *table)
{
    size_t count = 0;
    while (table[count].name != NULL)
        count++;
    return count;
}

const char *command_index_build(struct command_index *index, const struct command *table,
                                const struct command_rename *renames, size_t rename_count)
{
    memset(index, 0, sizeof *index);
    index->table = table;
    index->count = count_rows(table);
    /* At most half full: a search for an unknown name must find an empty slot soon. */
    assert(index->count < COMMAND_INDEX_SLOTS / 2);
    index_add_all(index, renames, rename_count);
    for (size_t i = 0; i < rename_count; i++) {
        const struct command *row = find_row(table, renames[i].from);
        if (row == NULL)
            return "No such command in rename-command";
        const char *to = renames[i].to;
        struct resp_slice name = {.data = to, .len = strlen(to)};
        if (command_find(index, name) != NULL)
            return "Target command name already exists";
        if (name.len > 0)
            index_insert(index, to, (uint32_t)(row - table));
    }
    return NULL;
}

const struct command *command_find(const struct command_index *index, struct resp_slice name)
{
    if (name.len == 0 || name.len > COMMAND_NAME_MAX)
        return NULL;
    uint32_t at = hash_name(name.data, name.len) % COMMAND_INDEX_SLOTS;
    for (;; at = (at + 1) % COMMAND_INDEX_SLOTS) {
        const struct command_slot *slot = &index->slots[at];
        if (slot->name == NULL)
            return NULL;
        if (is_named(slot, name))
            return &index->table[slot->row];
    }
}

bool command_is_reachable(const struct command_index *index, const struct command *command)
{
    while (is_subcommand(command)) /* as reachable as its container */
        command--;
    for (size_t at = 0; at < COMMAND_INDEX_SLOTS; at++)
        if (index->slots[at].name != NULL && &index->table[index->slots[at].row] == command)
            return true;
    return false;
}

/* Subcommands follow their container in the table. */
const struct command *command_find_sub(const struct command *container, struct resp_slice name)
{
    assert(command_is_container(container));
    size_t prefix = strlen(container->name);
    for (const struct command *row = container + 1; row->name != NULL; row++) {
        if (strncmp(row->name, container->name, prefix) != 0 || row->name[prefix] != '|')
            break;
        if (slice_is(name, row->name + prefix + 1))
            return row;
    }
    return NULL;
}

/* In upper case. */
static void container_name(const struct command *command, char name[COMMAND_NAME_MAX + 1])
{
    for (const char *at = command->name; *at != '|' && *at != '\0'; at++)
        *name++ = (char)(*at - 'a' + 'A');
    *name = '\0';
}

bool call_wrong_subcommand(struct call *call)
{
    const size_t most = 128; /* shown by Redis */
    char name[COMMAND_NAME_MAX + 1];
    struct resp_slice given = call->argv[1];
    container_name(call->command, name);
    resp_errorf(call->reply,
                "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try %s HELP.",
                (int)(given.len < most ? given.len : most), given.data, name);
    return false;
}

void call_help(struct call *call, const char *const *lines)
{
    size_t count = 0;
    while (lines[count] != NULL)
        count++;
    char name[COMMAND_NAME_MAX + 1], heading[COMMAND_NAME_MAX + 80];
    container_name(call->command, name);
    snprintf(heading, sizeof heading,
             "%s <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", name);
    resp_array(call->reply, count + 3);
    resp_status(call->reply, heading);
    for (size_t i = 0; i < count; i++)
        resp_status(call->reply, lines[i]);
    resp_status(call->reply, "HELP");
    resp_status(call->reply, "    Show these lines.");
}
