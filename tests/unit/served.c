#include "tests/unit/served.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/script/script.h"
#include "tests/unit/fixture.h"

#define LAST "+PONG\r\n"
#define LAST_BYTES (sizeof LAST - 1)
#define AWAITED_ROUNDS 60000
#define MEMORY_BYTES (64 << 20) /* of scripts and libraries an eighth or a half */

struct served {
    struct fixture *fixture;
    struct peer *peer;
    struct scripts *scripts;
};

struct served *served_start(struct store *store)
{
    struct served *served = calloc(1, sizeof *served);
    assert_non_null(served);
    served->fixture = fixture_new(store, 1);
    served->scripts = served->fixture->server.scripts = scripts_new();
    assert_non_null(served->scripts);
    atomic_store(&served->fixture->server.memory_bound, MEMORY_BYTES);
    atomic_store(&served->fixture->server.config.numbers[CONFIG_APPENDFSYNC], STORE_SYNC_ALWAYS);
    served->peer = connect_peer(served->fixture);
    return served;
}

enum store_result served_stop(struct served *served)
{
    enum store_result result = fixture_free(served->fixture);
    scripts_free(served->scripts);
    free(served);
    return result;
}

void served_round(struct served *served)
{
    struct pollfd fd = {.fd = store_worker_fd(served->fixture->worker->store), .events = POLLIN};
    poll(&fd, 1, 1);
    run(served->fixture, served->peer, 1);
}

static bool has_replied(const struct bytes *received)
{
    return received->len >= LAST_BYTES &&
           memcmp(received->data + received->len - LAST_BYTES, LAST, LAST_BYTES) == 0;
}

char *served_ask(struct served *served, const char *commands)
{
    struct bytes *received = &served->peer->received;
    send_text(served->peer, commands);
    send_text(served->peer, "\r\nPING\r\n");
    run(served->fixture, served->peer, 1);
    for (int i = 0; !has_replied(received); i++) {
        if (i == AWAITED_ROUNDS || served->peer->transport == NULL)
            fail_msg("no reply to %.80s", commands);
        served_round(served);
    }
    char *replies = strndup(received->data, received->len - LAST_BYTES);
    assert_non_null(replies);
    received->len = 0;
    return replies;
}
