/*
 * Spooled input: the bytes that a client sends while none of its commands can be taken, because it
 * does not read their replies, or because the current command waits for another client. The
 * transport is read all the same: a client that writes a whole pipeline before it reads would
 * otherwise deadlock. The end of the input is in memory, everything before it on the device:
 *
 *     transport -> tail -> pieces of an upload -> the next -> ... -> a reader -> conn_read
 *
 * Invariants:
 * 1. Bytes are read in the order they arrived: those of the chunks, then the tail.
 * 2. A chunk is sealed before it is read. Only the last chunk may be unsealed; it takes whole
 *    pieces, or one tail.
 * 3. While the piece of a chunk is partly filled, the tail is the rest of it, and nothing is
 *    received.
 * 4. One piece is in memory while it is read, and none when client memory is short and no command
 *    can be taken.
 *
 * Nothing persistent refers to the data on the device: its space is free when it has been read,
 * when the client has disconnected, and after a crash.
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
/* The same, or whether more can be received after the connection's next turn, which writes a tail
 * that is due: it may be due since memory became short. */
bool spool_is_open(const struct spool *spool);
/* Where to receive to, if there is room; NULL: out of memory. */
char *spool_room(struct spool *spool, size_t *size);
void spool_received(struct spool *spool, size_t len);
void spool_end(struct spool *spool); /* the client sends nothing more */
bool spool_has_ended(const struct spool *spool);

/* At the end of a connection's turn, after which commands can be taken (is_read) or not: writes
 * the tail if it is due. If the device is full, nothing more is received until the client has
 * read. */
void spool_settle(struct spool *spool, bool is_read);
/* Every second: closes the connection if it is stuck for too long. The client has neither sent nor
 * read anything for idle_ms. */
void spool_tick(struct spool *spool, int64_t idle_ms);

/* ---- the connection's side ---- */

/* Like a transport's read. TRANSPORT_AGAIN: the connection gets a turn when there is data. */
ssize_t spool_read(struct spool *spool, void *to, size_t size);
bool spool_is_ready(const struct spool *spool); /* spool_read need not return TRANSPORT_AGAIN */
bool spool_is_empty(const struct spool *spool); /* everything was read */

uint64_t spool_bytes(const struct spool *spool);  /* not read yet */
uint64_t spool_memory(const struct spool *spool); /* in memory */

#endif
