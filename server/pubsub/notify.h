/*
 * Keyspace notifications: their classes, as notify-keyspace-events chooses them. Commands tell of
 * what they do with call_notify (command.h).
 */
#ifndef VELLUM_NOTIFY_H
#define VELLUM_NOTIFY_H

#include <stdint.h>

enum notify_class {
    NOTIFY_KEYSPACE = 1 << 0,  /* K: how they are sent, not what is: on __keyspace@<db>__:<key> */
    NOTIFY_KEYEVENT = 1 << 1,  /* E: on __keyevent@<db>__:<event> */
    NOTIFY_GENERIC = 1 << 2,   /* g: commands on keys of any type */
    NOTIFY_STRING = 1 << 3,    /* $ */
    NOTIFY_LIST = 1 << 4,      /* l */
    NOTIFY_SET = 1 << 5,       /* s */
    NOTIFY_HASH = 1 << 6,      /* h */
    NOTIFY_ZSET = 1 << 7,      /* z */
    NOTIFY_EXPIRED = 1 << 8,   /* x */
    NOTIFY_EVICTED = 1 << 9,   /* e */
    NOTIFY_STREAM = 1 << 10,   /* t */
    NOTIFY_KEY_MISS = 1 << 11, /* m: a read found nothing; not among A */
    NOTIFY_MODULE = 1 << 12,   /* d */
    NOTIFY_NEW = 1 << 13,      /* n: a key was made; not among A */
};

struct server;
struct store_key;

/* One message on each of the two channels, as far as they are chosen: NULL where not. */
struct publication;
struct notify_pair {
    struct publication *keyspace, *keyevent;
};
struct notify_pair notify_publications(const struct server *server, const char *event,
                                       const struct store_key *key);

#endif
