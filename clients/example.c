/*
 * vellum-example [HOST [PORT]]: sets a key, reads it back, and prints the transport.
 * Built against the installed library: cc example.c $(pkg-config --cflags --libs vellum)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vellum.h"

/* Prints a reply of the kinds that this program gets. */
static int show(struct vellum *vellum, redisReply *reply)
{
    if (reply == NULL) {
        fprintf(stderr, "%s\n", vellum_error(vellum));
        return EXIT_FAILURE;
    }
    printf("%s\n", reply->str != NULL ? reply->str : "(nil)");
    int status = reply->type == REDIS_REPLY_ERROR ? EXIT_FAILURE : EXIT_SUCCESS;
    freeReplyObject(reply);
    return status;
}

int main(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] == '-') {
        bool is_asked = strcmp(argv[1], "--help") == 0;
        fputs("usage: vellum-example [HOST [PORT]]\n", is_asked ? stdout : stderr);
        return is_asked ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    struct vellum_options options = {.host = argc > 1 ? argv[1] : NULL,
                                     .port = argc > 2 ? atoi(argv[2]) : 0,
                                     .timeout_ms = 5000};
    struct vellum *vellum = vellum_connect(&options);
    if (vellum == NULL || vellum_error(vellum) != NULL) {
        fprintf(stderr, "%s\n", vellum != NULL ? vellum_error(vellum) : "out of memory");
        vellum_free(vellum);
        return EXIT_FAILURE;
    }
    printf("connected by %s%s%s\n", vellum_transport(vellum),
           vellum_reason(vellum)[0] != '\0' ? ", because: " : "", vellum_reason(vellum));
    int status = show(vellum, vellum_command(vellum, "SET %s %s", "greeting", "hello"));
    if (status == EXIT_SUCCESS)
        status = show(vellum, vellum_command(vellum, "GET %s", "greeting"));
    vellum_free(vellum);
    return status;
}
