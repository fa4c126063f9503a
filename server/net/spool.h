/*
 * Input that is set aside: what a client sends while none of its commands can be taken, since it
 * does not read their replies, or the one before them waits for another client. It is read from the
 * transport all the same: a client that writes all of a pipeline before it reads would otherwise
 * wait for ever. The last of it stands in memory, what is before that on the device:
 *
 *     transport -> tail -> pieces of an upload -> the next -> ... -> a stream -> conn_read
 *
 * Invariants:
 * 1. Bytes are read in the order they came in: those of the chunks, then the tail.
 * 2. A chunk is read when it is sealed. Only the last is not; it takes whole pieces, or one tail.
 * 3. While the piece of a chunk is partly filled, the tail is the rest of it, and nothing is
 * received.
 * 4. One piece is in memory, while it is read, and none when clients hold much memory and no
 *    command can be taken.
 *
 * Nothing names what is on the device: it is free when it has been read, when the client has gone,
 * and after a crash.
 *
 * Threads: a spool belongs to its connection's worker.
 */
#ifndef VELLUM_SPOOL_H
#define VELLUM_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct conn;
struct spool;

struct spool *spool_new(struct conn *conn); /* NULL: out of memory */
void spool_free(struct spool *spool);       /* or NULL */

/* ---- the transport's side ---- */

/* Whether more can be received now. */
bool spool_has_room(const struct spool *spool);
/* Likewise, or after the connection's next turn, which writes what has become due: memory may have
 * become short since the last one. */
bool spool_is_open(const struct spool *spool);
/* Where it goes, if there is room; NULL: out of memory. */
char *spool_room(struct spool *spool, size_t *size);
void spool_received(struct spool *spool, size_t len);
void spool_end(struct spool *spool); /* nothing more will come */
bool spool_has_ended(const struct spool *spool);

/* The end of a connection's turn, after which commands can be taken or not: writes what is due. If
 * that is refused, since the device is full, nothing more is received until the client has read. */
void spool_settle(struct spool *spool, bool is_read);
/* Every second: closes the connection if that takes too long. The client has neither sent nor read
 * anything for so long. */
void spool_tick(struct spool *spool, int64_t idle_ms);

/* ---- the connection's side ---- */

/* As a transport's read. TRANSPORT_AGAIN: the connection gets a turn when there is something. */
ssize_t spool_read(struct spool *spool, void *to, size_t size);
bool spool_is_ready(const struct spool *spool); /* that would not say TRANSPORT_AGAIN, so far */
bool spool_is_empty(const struct spool *spool); /* all was read */

uint64_t spool_bytes(const struct spool *spool);  /* that were not read yet */
uint64_t spool_memory(const struct spool *spool); /* what it takes */

#endif
