/* <sys/queue.h>, with a macro of the BSDs that glibc leaves out. */
#ifndef VELLUM_STORE_QUEUE_H
#define VELLUM_STORE_QUEUE_H

#include <stddef.h>
#include <sys/queue.h>

/* The last element, a `struct type`; NULL: the queue is empty. */
#ifndef STAILQ_LAST
#define STAILQ_LAST(head, type, field)                                                             \
    (STAILQ_EMPTY(head) ? NULL                                                                     \
                        : (struct type *)(void *)((char *)(head)->stqh_last -                      \
                                                  offsetof(struct type, field.stqe_next)))
#endif

#endif
