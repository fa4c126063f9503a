/* A server with one client, on a store that the test has opened. Apart from fixture.h, which cannot
 * be included beside the headers of the engine and its tests. */
#ifndef VELLUM_SERVED_H
#define VELLUM_SERVED_H

#include "storage/store.h"

struct served;

/* The store is the server's from now on. It has one worker; a reply comes when all that it shows is
 * durable. */
struct served *served_start(struct store *store);
enum store_result served_stop(struct served *served); /* what closing the store has resulted in */
/* The replies to an inline command, or to several. The caller frees them. */
char *served_ask(struct served *served, const char *commands);
/* Lets it work on without a client. */
void served_round(struct served *served);

#endif
