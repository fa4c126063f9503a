/*
 * What a server can do with the keys that libvellum has given it: a server of the test's own speaks
 * protocol/RDMA.md to it, and uses a key again when the reply has been taken, or for the first time
 * when the request has failed.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "clients/vellum_async.h"
#include "tests/rdma/raw.h"

#define PORT 7690
#define VALUE 20000u
#define LIMIT_MS 10000
#define SHORT_LIMIT_MS 3000 /* within that an emulated machine connects */

struct server {
    int listener, tcp;
    enum rdma_mode mode;
    struct raw end; /* its memory: a frame that is sent, behind it a value */
    uint32_t slots_sent, slots_received;
    struct rdma_reference reference; /* what the client has told of last */
};

/* The client, on a thread of its own. */
struct client {
    enum rdma_mode mode;
    bool gets;
    int timeout_ms;
    struct vellum *vellum;
    struct vellum_memory *memory;
    char bytes[3 * VALUE];
    redisReply *reply;

    /* of an asynchronous one */
    struct vellum_async *async;
    struct event_base *base;
    int socket; /* by it, the client and the server wait for each other */
    bool has_lost, has_ended;
};

static struct vellum_options options_of(const struct client *client)
{
    return (struct vellum_options){.host = getenv("VELLUM_HOST"),
                                   .port = PORT,
                                   .rdma = VELLUM_RDMA_ONLY,
                                   .mode = client->mode == RDMA_MODE_WRITE ? VELLUM_RDMA_WRITE
                                                                           : VELLUM_RDMA_SEND,
                                   .timeout_ms = client->timeout_ms};
}

static void *run_client(void *arg)
{
    struct client *client = arg;
    struct vellum_options options = options_of(client);
    client->vellum = vellum_connect(&options);
    if (vellum_error(client->vellum) != NULL)
        return NULL;
    client->memory = vellum_register(client->vellum, client->bytes, sizeof client->bytes);
    client->reply = client->gets
                        ? vellum_get_into(client->vellum, "k", 1, client->memory, VALUE, VALUE)
                        : vellum_set_from(client->vellum, "k", 1, client->memory, VALUE, VALUE);
    return NULL;
}

static void say(int socket)
{
    assert_int_equal(write(socket, "", 1), 1);
}

static void hear(int socket)
{
    char byte;
    assert_int_equal(read(socket, &byte, 1), 1);
}

/* The memory is the application's again: the server tries to use it before this returns. */
static void on_reply(struct vellum_async *async, redisReply *reply, void *data)
{
    struct client *client = data;
    (void)async;
    client->has_lost = reply == NULL;
    say(client->socket);
    hear(client->socket);
}

static void on_open(struct vellum_async *async, int status, void *data)
{
    struct client *client = data;
    if (status != REDIS_OK)
        return;
    client->memory =
        vellum_register(vellum_async_connection(async), client->bytes, sizeof client->bytes);
    if (client->gets)
        vellum_async_get_into(async, on_reply, client, "k", 1, client->memory, VALUE, VALUE);
    else
        vellum_async_set_from(async, on_reply, client, "k", 1, client->memory, VALUE, VALUE);
}

static void on_gone(struct vellum_async *async, int status, void *data)
{
    struct client *client = data;
    (void)async;
    client->has_ended = status == REDIS_OK;
    vellum_unregister(client->memory);
    event_base_loopbreak(client->base);
}

static void on_told(evutil_socket_t fd, short what, void *arg)
{
    struct client *client = arg;
    (void)what;
    hear(fd);
    vellum_async_free(client->async);
}

static void *run_async_client(void *arg)
{
    struct client *client = arg;
    struct vellum_options options = options_of(client);
    struct vellum_async_events events = {.connected = on_open, .disconnected = on_gone};
    client->base = event_base_new();
    client->async = vellum_async_connect(client->base, &options, &events, client);
    struct event *told = event_new(client->base, client->socket, EV_READ, on_told, client);
    event_add(told, NULL);
    event_base_dispatch(client->base);
    event_free(told);
    event_base_free(client->base);
    return NULL;
}

/* ---- the server ---- */

static void listen_here(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int on = 1;
    inet_pton(AF_INET, getenv("VELLUM_HOST"), &address.sin_addr);
    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server->listener, 1), 0);
}

/* The next command's words. */
static redisReply *read_words(struct server *server)
{
    char bytes[4096];
    redisReader *reader = redisReaderCreate();
    void *parsed = NULL;
    while (parsed == NULL) {
        ssize_t got = read(server->tcp, bytes, sizeof bytes);
        assert_true(got > 0);
        redisReaderFeed(reader, bytes, (size_t)got);
        assert_int_equal(redisReaderGetReply(reader, &parsed), REDIS_OK);
    }
    redisReaderFree(reader);
    return parsed;
}

/* RDMA INFO, and then RDMA CONNECT 1 mode name value ... */
static void read_question(struct server *server)
{
    redisReply *words = read_words(server);
    assert_string_equal(words->element[1]->str, "INFO");
    freeReplyObject(words);
    assert_int_equal(write(server->tcp, "*0\r\n", 4), 4);
    words = read_words(server);
    for (size_t i = 4; i + 1 < words->elements; i += 2)
        assert_true(rdma_end_read(&server->end.theirs, words->element[i]->str,
                                  words->element[i]->len, words->element[i + 1]->str,
                                  words->element[i + 1]->len));
    freeReplyObject(words);
}

static void answer(struct server *server)
{
    char text[2048], value[RDMA_END_TEXT_MAX];
    uint32_t count = rdma_end_attributes(&server->end.ours);
    int length = snprintf(text, sizeof text, "*%u\r\n", 2 * count);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = rdma_end_print(&server->end.ours, i, value);
        length +=
            snprintf(text + length, sizeof text - (size_t)length, "$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
                     strlen(name), name, strlen(value), value);
    }
    assert_int_equal(write(server->tcp, text, (size_t)length), length);
}

static void accept_client(struct server *server)
{
    struct raw *end = &server->end;
    server->tcp = accept(server->listener, NULL, NULL);
    assert_true(server->tcp >= 0);
    raw_open_end(end, server->mode, getenv("VELLUM_HOST"));
    assert_true(end->device.has_windows);
    raw_post_receives(end, RECEIVES);
    read_question(server);
    raw_begin(end);
    answer(server);
}

static void free_server(struct server *server)
{
    close(server->tcp);
    close(server->listener);
    raw_free(&server->end);
}

/* The next completion; it comes within ten seconds. */
static struct ibv_wc await(struct server *server)
{
    struct ibv_wc completion;
    for (int i = 0; i < 10000; i++) {
        if (ibv_poll_cq(server->end.cq, 1, &completion) == 1)
            return completion;
        usleep(1000);
    }
    fail_msg("nothing completes");
    return completion;
}

static char *value_of(struct server *server)
{
    return server->end.memory + FRAME;
}

/* One request; what it ends with. Frames that come meanwhile are remembered if they refer. */
static enum ibv_wc_status post(struct server *server, struct ibv_send_wr *request, void *bytes,
                               size_t len)
{
    struct ibv_sge piece = {
        .addr = (uintptr_t)bytes, .length = (uint32_t)len, .lkey = server->end.mr->lkey};
    struct ibv_send_wr *bad;
    request->wr_id = UINT64_MAX;
    request->sg_list = &piece;
    request->num_sge = len > 0;
    request->send_flags = IBV_SEND_SIGNALED;
    assert_int_equal(ibv_post_send(server->end.qp, request, &bad), 0);
    for (;;) {
        struct ibv_wc completion = await(server);
        if (completion.wr_id == UINT64_MAX)
            return completion.status;
    }
}

static enum ibv_wc_status reach(struct server *server, enum ibv_wr_opcode opcode)
{
    struct ibv_send_wr request = {.opcode = opcode};
    request.wr.rdma.remote_addr = server->reference.address;
    request.wr.rdma.rkey = server->reference.rkey;
    return post(server, &request, value_of(server), VALUE);
}

/* A frame; in mode send, with a key that it ends if there is one. */
static void send_frame(struct server *server, enum rdma_frame_type type, const void *payload,
                       size_t len, uint32_t key)
{
    struct rdma_frame frame = {.type = type, .length = (uint32_t)len};
    struct ibv_send_wr request = {.opcode = key != 0 ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND};
    char *message = server->end.memory;
    size_t head = 0;
    request.invalidate_rkey = key;
    if (server->mode == RDMA_MODE_SEND) {
        rdma_frame_write(message, &frame);
        head = RDMA_HEADER_BYTES;
    } else {
        request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        request.imm_data = htobe32(rdma_word_write(&frame));
        request.wr.rdma.remote_addr = server->end.theirs.ring + server->slots_sent * FRAME;
        request.wr.rdma.rkey = server->end.theirs.ring_key;
        server->slots_sent += len > 0;
    }
    memcpy(message + head, payload, len);
    assert_int_equal(post(server, &request, message, head + len), IBV_WC_SUCCESS);
}

/* Until such a frame has come; what it refers to is remembered. */
static void await_frame(struct server *server, enum rdma_frame_type wanted)
{
    struct rdma_frame frame = {.type = RDMA_FRAME_CREDIT};
    while (frame.type != wanted) {
        struct ibv_wc completion = await(server);
        const char *payload = raw_received(&server->end, completion.wr_id) + RDMA_HEADER_BYTES;
        assert_int_equal(completion.status, IBV_WC_SUCCESS);
        if (server->mode == RDMA_MODE_SEND) {
            assert_true(rdma_frame_read(&frame, payload - RDMA_HEADER_BYTES, completion.byte_len));
        } else {
            assert_true(rdma_word_read(&frame, be32toh(completion.imm_data)));
            payload = raw_received(&server->end, server->slots_received);
            server->slots_received += frame.length > 0;
        }
        if (frame.length == RDMA_REFERENCE_BYTES && frame.type != RDMA_FRAME_DATA)
            assert_true(rdma_reference_read(&server->reference, payload));
    }
    assert_true(server->reference.is_window);
    assert_int_equal(server->reference.length, VALUE);
}

/* ---- cases ---- */

struct meeting {
    struct server server;
    struct client client;
    pthread_t thread;
};

static struct meeting *prepare(enum rdma_mode mode, bool gets, int timeout_ms)
{
    struct meeting *meeting = calloc(1, sizeof *meeting);
    assert_non_null(meeting);
    meeting->server.mode = meeting->client.mode = mode;
    meeting->client.gets = gets;
    meeting->client.timeout_ms = timeout_ms;
    memset(meeting->client.bytes, 'a', VALUE);
    memset(meeting->client.bytes + VALUE, 'b', VALUE);
    memset(meeting->client.bytes + 2 * VALUE, 'c', VALUE);
    return meeting;
}

/* Until the server can use the client's memory. */
static void begin(struct meeting *meeting, void *(*run)(void *))
{
    listen_here(&meeting->server);
    assert_int_equal(pthread_create(&meeting->thread, NULL, run, &meeting->client), 0);
    accept_client(&meeting->server);
    await_frame(&meeting->server, meeting->client.gets ? RDMA_FRAME_GRANT : RDMA_FRAME_PULL);
    if (meeting->client.gets)
        await_frame(&meeting->server, RDMA_FRAME_DATA); /* the command */
}

static struct meeting *meet(enum rdma_mode mode, bool gets)
{
    struct meeting *meeting = prepare(mode, gets, LIMIT_MS);
    begin(meeting, run_client);
    return meeting;
}

/* The client has its reply, or an error. */
static void await_client(struct meeting *meeting)
{
    assert_int_equal(pthread_join(meeting->thread, NULL), 0);
}

static void part(struct meeting *meeting)
{
    if (meeting->client.reply != NULL)
        freeReplyObject(meeting->client.reply);
    vellum_unregister(meeting->client.memory);
    vellum_free(meeting->client.vellum);
    free_server(&meeting->server);
    free(meeting);
}

/* `ends`: as the server should in mode send; otherwise the client has to. */
static void read_again(enum rdma_mode mode, bool ends)
{
    struct meeting *meeting = meet(mode, false);
    struct server *server = &meeting->server;
    assert_int_equal(reach(server, IBV_WR_RDMA_READ), IBV_WC_SUCCESS);
    for (uint32_t i = 0; i < VALUE; i++)
        assert_int_equal(value_of(server)[i], 'b');
    send_frame(server, RDMA_FRAME_RELEASE, "", 0, ends ? server->reference.rkey : 0);
    send_frame(server, RDMA_FRAME_DATA, "+OK\r\n", 5, 0);
    await_client(meeting);
    assert_non_null(meeting->client.reply);
    assert_string_equal(vellum_revoking(meeting->client.vellum), "reply");
    assert_int_equal(reach(server, IBV_WR_RDMA_READ), IBV_WC_REM_ACCESS_ERR);
    part(meeting);
}

static void what_was_read_is_closed(void **state)
{
    (void)state;
    read_again(RDMA_MODE_SEND, true);
    read_again(RDMA_MODE_SEND, false);
    read_again(RDMA_MODE_WRITE, false);
}

static void write_again(enum rdma_mode mode, bool ends)
{
    struct meeting *meeting = meet(mode, true);
    struct server *server = &meeting->server;
    struct rdma_place place = {.offset = 0, .length = VALUE};
    char payload[RDMA_PLACE_BYTES];
    memset(value_of(server), 'x', VALUE);
    assert_int_equal(reach(server, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
    rdma_place_write(payload, &place);
    send_frame(server, RDMA_FRAME_DATA, "$20000\r\n", 8, 0);
    send_frame(server, RDMA_FRAME_PLACED, payload, sizeof payload,
               ends ? server->reference.rkey : 0);
    send_frame(server, RDMA_FRAME_DATA, "\r\n", 2, 0);
    await_client(meeting);
    assert_non_null(meeting->client.reply);
    assert_int_equal(meeting->client.reply->integer, VALUE);
    assert_memory_equal(meeting->client.bytes + VALUE - 1, "ax", 2);
    assert_memory_equal(meeting->client.bytes + 2 * VALUE - 1, "xc", 2);
    assert_int_equal(reach(server, IBV_WR_RDMA_WRITE), IBV_WC_REM_ACCESS_ERR);
    part(meeting);
}

static void what_was_written_is_closed(void **state)
{
    (void)state;
    write_again(RDMA_MODE_SEND, true);
    write_again(RDMA_MODE_SEND, false);
    write_again(RDMA_MODE_WRITE, false);
}

/* A value that was not placed leaves the window to the client. */
static void what_was_sent_is_closed(void **state)
{
    (void)state;
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++) {
        struct meeting *meeting = meet((enum rdma_mode)mode, true);
        send_frame(&meeting->server, RDMA_FRAME_DATA, "$3\r\nabc\r\n", 9, 0);
        await_client(meeting);
        assert_int_equal(meeting->client.reply->integer, 3);
        assert_int_equal(reach(&meeting->server, IBV_WR_RDMA_WRITE), IBV_WC_REM_ACCESS_ERR);
        part(meeting);
    }
}

/* What is to be read is not written, and what is to be written not read. */
static void only_what_was_granted(void **state)
{
    (void)state;
    for (int gets = 0; gets < 2; gets++) {
        struct meeting *meeting = meet(RDMA_MODE_SEND, gets);
        assert_int_equal(reach(&meeting->server, gets ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE),
                         IBV_WC_REM_ACCESS_ERR);
        assert_memory_equal(meeting->client.bytes + VALUE, "bbbb", 4);
        close(meeting->server.tcp);
        await_client(meeting);
        assert_null(meeting->client.reply);
        part(meeting);
    }
}

static void assert_unreachable(struct meeting *meeting)
{
    char *bytes = meeting->client.bytes + VALUE;
    memset(bytes, 'y', VALUE); /* as the application may now */
    memset(value_of(&meeting->server), 'x', VALUE);
    assert_int_not_equal(
        reach(&meeting->server, meeting->client.gets ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ),
        IBV_WC_SUCCESS);
    for (uint32_t i = 0; i < VALUE; i++) {
        assert_int_equal(bytes[i], 'y');
        assert_int_equal(value_of(&meeting->server)[i], 'x');
    }
}

/* The server has the request, and does not answer in time. */
static void a_timeout_ends_access(void **state)
{
    (void)state;
    for (int gets = 0; gets < 2; gets++) {
        struct meeting *meeting = prepare(RDMA_MODE_SEND, gets, SHORT_LIMIT_MS);
        begin(meeting, run_client);
        await_client(meeting);
        assert_null(meeting->client.reply);
        assert_string_equal(vellum_error(meeting->client.vellum), "the time for the reply is over");
        assert_unreachable(meeting);
        part(meeting);
    }
}

/* `frees`: the application does, while the request waits; otherwise the server closes TCP, and
 * keeps its queue pair. */
static void lose_request(bool gets, bool frees)
{
    int sockets[2];
    struct meeting *meeting = prepare(RDMA_MODE_SEND, gets, LIMIT_MS);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    meeting->client.socket = sockets[0];
    begin(meeting, run_async_client);
    if (frees)
        say(sockets[1]);
    else
        shutdown(meeting->server.tcp, SHUT_RDWR);
    hear(sockets[1]); /* the callback runs */
    assert_true(meeting->client.has_lost);
    assert_unreachable(meeting);
    say(sockets[1]);
    await_client(meeting);
    assert_true(meeting->client.has_ended == frees);
    close(sockets[0]);
    close(sockets[1]);
    free_server(&meeting->server);
    free(meeting);
}

static void callbacks_come_after_access(void **state)
{
    (void)state;
    for (int gets = 0; gets < 2; gets++) {
        lose_request(gets, false);
        lose_request(gets, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_read_is_closed), cmocka_unit_test(what_was_written_is_closed),
        cmocka_unit_test(what_was_sent_is_closed), cmocka_unit_test(only_what_was_granted),
        cmocka_unit_test(a_timeout_ends_access),   cmocka_unit_test(callbacks_come_after_access),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
