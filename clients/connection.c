/*
 * The state of a connection: its error, and its output with the splices in it.
 *
 * Invariant: a connection with an error has no queue pair. The application takes an error for the
 * end of its requests, and uses their memory for something else.
 */
#include "clients/connection.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <hiredis/sds.h>

/* What has arrived is taken before: it is lost with the queue pair. */
void vellum_end_access(struct vellum *vellum)
{
    if (vellum->channel == NULL || vellum_channel_is_stopped(vellum->channel))
        return;
    vellum_channel_poll(vellum->channel);
    vellum_channel_stop(vellum->channel);
    shutdown(vellum->tcp->fd, SHUT_RDWR); /* the server learns of it, and an event loop wakes up */
}

void vellum_fail(struct vellum *vellum, const char *text)
{
    if (vellum->error[0] == '\0')
        snprintf(vellum->error, sizeof vellum->error, "%s", text);
    vellum_end_access(vellum);
}

bool vellum_has_failed(struct vellum *vellum)
{
    if (vellum->tcp == NULL)
        vellum_fail(vellum, "out of memory");
    else if (vellum->tcp->err != 0)
        vellum_fail(vellum, vellum->tcp->errstr);
    return vellum->error[0] != '\0';
}

size_t vellum_output_length(const struct vellum *vellum)
{
    return sdslen(vellum->tcp->obuf) - vellum->sent;
}

bool vellum_has_output(const struct vellum *vellum)
{
    return vellum_output_length(vellum) > 0 || !STAILQ_EMPTY(&vellum->splices);
}

/* hiredis counts a command's bytes in an int. */
bool vellum_command_fits(int argc, const char **argv, const size_t *lengths)
{
    const size_t head = 64; /* more than there is before a word */
    size_t left = INT_MAX;
    for (int i = 0; i < argc; i++) {
        size_t length = lengths != NULL ? lengths[i] : strlen(argv[i]);
        if (left < head || length > left - head)
            return false;
        left -= head + length;
    }
    return true;
}

int vellum_append_bytes(struct vellum *vellum, const char *bytes, size_t length)
{
    if (vellum_has_failed(vellum))
        return REDIS_ERR;
    int status = redisAppendFormattedCommand(vellum->tcp, bytes, length);
    return vellum_has_failed(vellum) ? REDIS_ERR : status;
}

int vellum_splice(struct vellum *vellum, enum vellum_splice_kind kind,
                  const struct vellum_span *span)
{
    struct vellum_splice *made = malloc(sizeof *made);
    if (made == NULL) {
        vellum_fail(vellum, "out of memory");
        return REDIS_ERR;
    }
    *made = (struct vellum_splice){
        .kind = kind, .span = *span, .before = vellum_output_length(vellum) - vellum->spliced};
    vellum->spliced += made->before;
    STAILQ_INSERT_TAIL(&vellum->splices, made, link);
    return REDIS_OK;
}
