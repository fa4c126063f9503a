/*
 * A worker's life cycle and its rounds: socket events, the store's completions and the inbox; then
 * the ready connections are served (commands run on), all replies are sent, and the store is
 * submitted to.
 */
#ifndef VELLUM_WORKER_LOOP_H
#define VELLUM_WORKER_LOOP_H

#include "server/core/worker.h"

/* All workers must be made before the first is started, and joined before the first is freed: they
 * refer to each other through server->workers. */
STORE_MUST_CHECK bool worker_make(struct server *server, uint32_t index,
                                  char message[STORE_MESSAGE_MAX]);
STORE_MUST_CHECK bool worker_start(struct worker *worker);
void worker_round(struct worker *worker, bool may_block); /* for tests, instead of worker_start */
void worker_join(struct worker *worker);                  /* waits for its end */
void worker_free(struct worker *worker);

#endif
