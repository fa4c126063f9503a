/*
 * Counters that one thread at a time changes, under some lock, and any thread reads without it:
 * so that statistics never wait for a lock, and may be read by a thread that holds it. A change
 * costs no more than that of a plain integer. Private to storage/.
 */
#ifndef VELLUM_STORE_COUNTER_H
#define VELLUM_STORE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t counter;

static inline uint64_t counter_read(const counter *of)
{
    return atomic_load_explicit(of, memory_order_relaxed);
}

static inline void counter_set(counter *of, uint64_t value)
{
    atomic_store_explicit(of, value, memory_order_relaxed);
}

/* Modulo 2^64: to subtract, add the complement. */
static inline void counter_add(counter *to, uint64_t change)
{
    counter_set(to, counter_read(to) + change);
}

#endif
