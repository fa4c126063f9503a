/*
 * A worker's life and its rounds: socket events, the store's completions, the inbox; then the
 * connections that need attention (commands run on), the replies of all are written, and the store
 * is submitted to.
 */
#ifndef VELLUM_WORKER_LOOP_H
#define VELLUM_WORKER_LOOP_H

#include "server/core/worker.h"

/* All workers are made before the first is started, and all joined before the first is freed:
 * they know each other through server->workers. */
STORE_MUST_CHECK bool worker_make(struct server *server, uint32_t index,
                                  char message[STORE_MESSAGE_MAX]);
STORE_MUST_CHECK bool worker_start(struct worker *worker);
void worker_round(struct worker *worker, bool may_block); /* for tests, instead of worker_start */
void worker_join(struct worker *worker);                  /* waits for its end */
void worker_free(struct worker *worker);

#endif
