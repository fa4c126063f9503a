/* The fixture on the model store. */
#include "tests/unit/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/model/model_store.h"

int set_up_workers(void **state, uint32_t workers)
{
    struct store *store;
    char message[STORE_MESSAGE_MAX];
    struct store_options options = {.directory = "unused",
                                    .partition_count = 1,
                                    .worker_count = workers,
                                    .memory_bytes = 64 << 20,
                                    .journal_bytes = 64 << 20,
                                    .sync = STORE_SYNC_EVERYSEC};
    assert_int_equal(store_open(&options, &store, message), STORE_OK);
    model_store_set_waits(store, 1, 0);
    *state = fixture_new(store, workers);
    return 0;
}

int set_up(void **state)
{
    return set_up_workers(state, 1);
}

void wait_always(struct fixture *fixture)
{
    model_store_set_waits(fixture->server.store, 7, 1000);
}
