/*
 * A server below its sockets, for tests: a store, which is the model's unless the test brings its
 * own, connections over a transport of memory, and workers whose rounds the test calls, all in its
 * own thread.
 */
#ifndef VELLUM_FIXTURE_H
#define VELLUM_FIXTURE_H

#include "server/net/conn.h"
#include "server/core/server.h"
#include "server/net/transport.h"
#include "server/core/worker.h"

#define FIXTURE_PEERS 6
#define FIXTURE_WORKERS 2

struct bytes {
    char *data;
    size_t len, capacity;
};

void add_bytes(struct bytes *bytes, const void *data, size_t len);

/* The far end of a connection: what it sends and what it has received. The fixture's, because it
 * has to outlive the transport also when a test fails. */
struct peer {
    struct transport *transport; /* NULL: the server has closed it */
    struct bytes sent, received;
    size_t taken;    /* of `sent`, by the server */
    size_t cut;      /* the server may take bytes before this position of `sent` */
    size_t may_read; /* how much more the client reads */
    bool has_ended;  /* nothing comes after `sent` */
    unsigned wanted;
};

struct fixture {
    struct server server;
    struct worker *workers[FIXTURE_WORKERS];
    struct worker *worker; /* the first */
    struct peer peers[FIXTURE_PEERS];
    int peer_count;
};

/* On this store, which is the fixture's from now on; free: what closing it has resulted in. */
struct fixture *fixture_new(struct store *store, uint32_t workers);
enum store_result fixture_free(struct fixture *fixture);

/* On the model (fixture_model.c). */
int set_up(void **state); /* with one worker */
int set_up_workers(void **state, uint32_t workers);
int tear_down(void **state);

struct peer *connect_peer(struct fixture *fixture); /* to the first worker */
struct peer *connect_peer_to(struct fixture *fixture, uint32_t index);
struct conn *conn_of(const struct peer *peer);

void turn(struct fixture *fixture); /* of the first worker */
void turn_all(struct fixture *fixture, int rounds);
/* Tells the server what the peer's transport is ready for, if it wants to know. */
void poke(struct peer *peer);
void run(struct fixture *fixture, struct peer *peer, int rounds); /* of the first worker */

void send_text(struct peer *peer, const char *text);
void assert_received(struct peer *peer, const char *text); /* and forgets it */
void wait_always(struct fixture *fixture);                 /* the model does, at every read */

#endif
