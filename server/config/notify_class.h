/*
 * The classes of keyspace notifications that notify-keyspace-events selects from.
 */
#ifndef VELLUM_NOTIFY_CLASS_H
#define VELLUM_NOTIFY_CLASS_H

enum notify_class {
    NOTIFY_KEYSPACE = 1 << 0,  /* K: publish on __keyspace@<db>__:<key>; not a class of event */
    NOTIFY_KEYEVENT = 1 << 1,  /* E: publish on __keyevent@<db>__:<event> */
    NOTIFY_GENERIC = 1 << 2,   /* g: commands on keys of any type */
    NOTIFY_STRING = 1 << 3,    /* $ */
    NOTIFY_LIST = 1 << 4,      /* l */
    NOTIFY_SET = 1 << 5,       /* s */
    NOTIFY_HASH = 1 << 6,      /* h */
    NOTIFY_ZSET = 1 << 7,      /* z */
    NOTIFY_EXPIRED = 1 << 8,   /* x */
    NOTIFY_EVICTED = 1 << 9,   /* e */
    NOTIFY_STREAM = 1 << 10,   /* t */
    NOTIFY_KEY_MISS = 1 << 11, /* m: key miss; not part of A */
    NOTIFY_MODULE = 1 << 12,   /* d */
    NOTIFY_NEW = 1 << 13,      /* n: new key; not part of A */
};

#endif
