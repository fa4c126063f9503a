/*
 * The output of a client, on a channel that takes little at a time.
 */
#include "clients/io.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <hiredis/sds.h>

#include "clients/get_into.h"

#define KB 1024u
#define MB (1024u * KB)
#define LARGE (64u * MB)
#define FRAMES_BYTES (7u * 4088u) /* what a real one takes at a time */

/* ---- the channel ---- */

struct vellum_channel {
    struct vellum *vellum;
    const char *wanted; /* the bytes of the stream, in order */
    size_t at, most;    /* bytes taken, in all; at a time */
    uint64_t moved;     /* bytes that were moved to the beginning of the output buffer */
    bool is_polled, is_stopped;
};

static void take(struct vellum_channel *channel, const char *bytes, size_t length)
{
    assert_memory_equal(bytes, channel->wanted + channel->at, length);
    channel->at += length;
}

ssize_t vellum_channel_write(struct vellum_channel *channel, const struct iovec *vectors, int count)
{
    size_t length = vectors[0].iov_len < channel->most ? vectors[0].iov_len : channel->most;
    assert_int_equal(count, 1);
    if (channel->at > 0 && vectors[0].iov_base == channel->vellum->tcp->obuf)
        channel->moved += sdslen(channel->vellum->tcp->obuf);
    take(channel, vectors[0].iov_base, length);
    return (ssize_t)length;
}

bool vellum_channel_pull(struct vellum_channel *channel, const struct vellum_span *span)
{
    take(channel, span->at, span->length);
    return true;
}

bool vellum_channel_poll(struct vellum_channel *channel)
{
    channel->is_polled = !channel->is_stopped;
    return true;
}

void vellum_channel_stop(struct vellum_channel *channel)
{
    channel->is_stopped = true;
}

bool vellum_channel_is_stopped(const struct vellum_channel *channel)
{
    return channel->is_stopped;
}

ssize_t vellum_channel_read(struct vellum_channel *channel, void *to, size_t size)
{
    (void)channel, (void)to, (void)size;
    return 0;
}

bool vellum_channel_readable(const struct vellum_channel *channel)
{
    (void)channel;
    return false;
}

bool vellum_channel_writable(const struct vellum_channel *channel)
{
    (void)channel;
    return true;
}

bool vellum_channel_is_revoking(struct vellum_channel *channel)
{
    (void)channel;
    return false;
}

void vellum_channel_look(struct vellum_channel *channel)
{
    (void)channel;
}

int vellum_channel_descriptor(const struct vellum_channel *channel)
{
    (void)channel;
    return -1;
}

bool vellum_channel_sleep(struct vellum_channel *channel)
{
    (void)channel;
    return true;
}

/* ---- GET into memory: there is none ---- */

bool vellum_into_is_granted(const struct vellum *vellum)
{
    (void)vellum;
    return false;
}

int vellum_into_receive(struct vellum *vellum)
{
    (void)vellum;
    return REDIS_ERR;
}

bool vellum_into_is_due(const struct vellum *vellum)
{
    (void)vellum;
    return false;
}

bool vellum_into_begin(struct vellum *vellum)
{
    (void)vellum;
    return false;
}

redisReply *vellum_answered(struct vellum *vellum, redisReply *reply)
{
    (void)vellum;
    return reply;
}

/* ---- cases ---- */

struct client {
    struct vellum vellum;
    struct vellum_channel channel;
    int peer;
};

static struct client *make_client(const char *wanted, size_t most)
{
    int sockets[2];
    struct client *client = calloc(1, sizeof *client);
    assert_non_null(client);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    client->peer = sockets[1];
    client->vellum.tcp = redisConnectFd(sockets[0]);
    client->vellum.channel = &client->channel;
    STAILQ_INIT(&client->vellum.splices);
    client->channel =
        (struct vellum_channel){.vellum = &client->vellum, .wanted = wanted, .most = most};
    return client;
}

static void free_client(struct client *client)
{
    redisFree(client->vellum.tcp);
    close(client->peer);
    free(client);
}

static char *make_bytes(size_t size)
{
    char *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 31 + i / 977);
    return bytes;
}

/* In all, no more bytes are moved than are sent. */
static void a_large_command(void **state)
{
    (void)state;
    char *bytes = make_bytes(LARGE);
    struct client *client = make_client(bytes, FRAMES_BYTES);
    assert_int_equal(vellum_append_bytes(&client->vellum, bytes, LARGE), REDIS_OK);
    while (vellum_has_output(&client->vellum)) {
        assert_int_equal(vellum_send_some(&client->vellum), REDIS_OK);
        assert_int_equal(vellum_output_length(&client->vellum), LARGE - client->channel.at);
        assert_true(client->channel.moved <= client->channel.at);
    }
    assert_int_equal(client->channel.at, LARGE);
    assert_int_equal(sdslen(client->vellum.tcp->obuf), 0);
    free_client(client);
    free(bytes);
}

/* More is appended before all is sent, over and over. */
static void a_buffer_that_is_never_empty(void **state)
{
    (void)state;
    char *bytes = make_bytes(4 * MB);
    struct client *client = make_client(bytes, 4 * KB);
    size_t appended = 0, longest = 0;
    for (; appended < 4 * MB; appended += 4 * KB) {
        assert_int_equal(vellum_append_bytes(&client->vellum, bytes + appended, 4 * KB), REDIS_OK);
        if (appended >= 64 * KB)
            assert_int_equal(vellum_send_some(&client->vellum), REDIS_OK);
        if (sdslen(client->vellum.tcp->obuf) > longest)
            longest = sdslen(client->vellum.tcp->obuf);
    }
    assert_true(client->channel.moved <= 2 * client->channel.at); /* new bytes count as moved */
    assert_true(longest <= 3 * 64 * KB);
    free_client(client);
    free(bytes);
}

/* Values by reference keep their places between the bytes, however these are sent. */
static void values_by_reference(void **state)
{
    (void)state;
    char *bytes = make_bytes(4 * MB);
    for (size_t most = 1; most < 3000; most = most * 3 + 1) {
        struct client *client = make_client(bytes, most);
        size_t appended = 0;
        for (size_t i = 1; i < 200; i++) {
            struct vellum_span span = {.length = i * 7 % 50 + 1};
            size_t length = i * 37 % 400;
            assert_int_equal(vellum_append_bytes(&client->vellum, bytes + appended, length),
                             REDIS_OK);
            appended += length;
            span.at = bytes + appended;
            if (i % 3 != 0) {
                assert_int_equal(vellum_splice(&client->vellum, SPLICE_PULL, &span), REDIS_OK);
                appended += span.length;
            }
            assert_int_equal(vellum_send_some(&client->vellum), REDIS_OK);
        }
        while (vellum_has_output(&client->vellum))
            assert_int_equal(vellum_send_some(&client->vellum), REDIS_OK);
        assert_int_equal(client->channel.at, appended);
        assert_int_equal(client->vellum.spliced, 0);
        free_client(client);
    }
    free(bytes);
}

/* Errors return memory to the application, so the server must not reach it any more. */
static void an_error_ends_access(void **state)
{
    (void)state;
    char byte;
    struct client *client = make_client("", 1);
    vellum_fail(&client->vellum, "first");
    assert_true(client->channel.is_polled); /* what had arrived is not lost */
    assert_true(client->channel.is_stopped);
    assert_int_equal(read(client->peer, &byte, 1), 0);
    vellum_fail(&client->vellum, "second");
    assert_string_equal(client->vellum.error, "first");
    free_client(client);
}

/* They are not looked at: only their lengths are. */
static void commands_that_fit(void **state)
{
    (void)state;
    const char *words[] = {"SET", "key", "value"};
    assert_true(vellum_command_fits(3, words, NULL));
    assert_true(vellum_command_fits(3, words, (size_t[]){3, 3, INT_MAX - 1000}));
    assert_false(vellum_command_fits(3, words, (size_t[]){3, 3, INT_MAX - 10}));
    assert_false(vellum_command_fits(3, words, (size_t[]){3, INT_MAX - 300, 200}));
    assert_false(vellum_command_fits(3, words, (size_t[]){3, 3, SIZE_MAX}));
    assert_false(vellum_command_fits(3, words, (size_t[]){3, SIZE_MAX, SIZE_MAX}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_command),     cmocka_unit_test(a_buffer_that_is_never_empty),
        cmocka_unit_test(values_by_reference), cmocka_unit_test(an_error_ends_access),
        cmocka_unit_test(commands_that_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
