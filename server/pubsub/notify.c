#include "server/pubsub/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/core/command.h"
#include "server/pubsub/effects.h"
#include "server/core/server.h"

#define PREFIX_MAX 32 /* "__keyspace@15__:" */
#define EVENT_MAX 64
#define KEY_USUAL 1024 /* longer keys need an allocation */

/* ---- notifications of commands ---- */

static struct publication *in_keyspace(const struct server *server, const char *event,
                                       const struct store_key *key)
{
    char usual[PREFIX_MAX + KEY_USUAL];
    char *channel = key->len <= KEY_USUAL ? usual : malloc(PREFIX_MAX + (size_t)key->len);
    if (channel == NULL)
        return NULL;
    int prefix = snprintf(channel, PREFIX_MAX, "__keyspace@%u__:", key->db);
    memcpy(channel + prefix, key->data, key->len);
    struct publication *publication = publication_new(
        server, PUBSUB_CHANNEL, (struct resp_slice){channel, (size_t)prefix + key->len},
        (struct resp_slice){event, strlen(event)});
    if (channel != usual)
        free(channel);
    return publication;
}

static struct publication *as_event(const struct server *server, const char *event,
                                    const struct store_key *key)
{
    char channel[PREFIX_MAX + EVENT_MAX];
    int len = snprintf(channel, sizeof channel, "__keyevent@%u__:%s", key->db, event);
    return publication_new(server, PUBSUB_CHANNEL, (struct resp_slice){channel, (size_t)len},
                           (struct resp_slice){key->data, key->len});
}

struct notify_pair notify_publications(const struct server *server, const char *event,
                                       const struct store_key *key)
{
    struct notify_pair pair = {NULL, NULL};
    uint32_t classes = config_notify_classes(&server->config);
    if ((classes & NOTIFY_KEYSPACE) != 0)
        pair.keyspace = in_keyspace(server, event, key);
    if ((classes & NOTIFY_KEYEVENT) != 0)
        pair.keyevent = as_event(server, event, key);
    return pair;
}

bool call_notifies(const struct call *call, enum notify_class kind)
{
    return (config_notify_classes(&call->server->config) & kind) != 0;
}

/* If memory runs out, the notification is lost: it is not worth failing the command. */
void call_notify(struct call *call, enum notify_class kind, const char *event,
                 const struct store_key *key)
{
    if (__builtin_expect(!call_notifies(call, kind), 1))
        return;
    struct notify_pair pair = notify_publications(call->server, event, key);
    if (pair.keyspace != NULL)
        effects_add(call->effects, pair.keyspace);
    if (pair.keyevent != NULL)
        effects_add(call->effects, pair.keyevent);
}

enum store_result call_notify_if_new(struct call *call, const struct store_key *key)
{
    if (__builtin_expect(!call_notifies(call, NOTIFY_NEW), 1))
        return STORE_OK;
    struct store_item item;
    enum store_result result = store_get(call->txn, key, &item);
    if (result != STORE_ABSENT)
        return result;
    call_notify(call, NOTIFY_NEW, "new", key);
    return STORE_OK;
}
