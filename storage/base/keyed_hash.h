/*
 * A hash that is unpredictable without its key: SipHash-1-3, of Aumasson and Bernstein. Clients
 * choose the hashed data; they must not be able to choose the hash value.
 */
#ifndef VELLUM_STORE_KEYED_HASH_H
#define VELLUM_STORE_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t store_keyed_hash(const uint64_t key[2], const char *data, size_t len);

#endif
