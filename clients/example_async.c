/*
 * vellum-example-async [HOST [PORT]]: counts to a thousand in one pipeline, on libevent.
 * Built against the installed library: cc example_async.c $(pkg-config --cflags --libs
 * vellum-async)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "vellum_async.h"

#define COUNT 1000

struct example {
    int status, replies;
};

static void on_connected(struct vellum_async *async, int status, void *data)
{
    struct example *example = data;
    if (status != REDIS_OK) {
        fprintf(stderr, "%s\n", vellum_async_error(async));
        example->status = EXIT_FAILURE;
        return;
    }
    printf("connected by %s\n", vellum_async_transport(async));
}

static void on_count(struct vellum_async *async, redisReply *reply, void *data)
{
    struct example *example = data;
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER) {
        fprintf(stderr, "%s\n", reply != NULL ? reply->str : "the connection is lost");
        example->status = EXIT_FAILURE;
        vellum_async_disconnect(async);
    } else if (++example->replies == COUNT) {
        printf("%lld\n", reply->integer);
        vellum_async_disconnect(async);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] == '-') {
        bool is_asked = strcmp(argv[1], "--help") == 0;
        fputs("usage: vellum-example-async [HOST [PORT]]\n", is_asked ? stdout : stderr);
        return is_asked ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    struct vellum_options options = {.host = argc > 1 ? argv[1] : NULL,
                                     .port = argc > 2 ? atoi(argv[2]) : 0,
                                     .timeout_ms = 5000};
    struct vellum_async_events events = {.connected = on_connected};
    struct example example = {.status = EXIT_SUCCESS};
    struct event_base *base = event_base_new();
    struct vellum_async *async = vellum_async_connect(base, &options, &events, &example);
    if (async == NULL)
        return EXIT_FAILURE;
    vellum_async_command(async, NULL, NULL, "DEL counter");
    for (int i = 0; i < COUNT; i++)
        vellum_async_command(async, on_count, &example, "INCR counter");
    event_base_dispatch(base); /* until the connection has ended */
    event_base_free(base);
    return example.status;
}
