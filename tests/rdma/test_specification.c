/*
 * A client written from protocol/RDMA.md alone: verbs and sockets, none of the project's own code.
 * Whatever it had to guess would be missing in the specification.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#define FRAME_MAX 4096
#define CREDITS_MAX 9
#define SENDS 16
#define LONG (1u << 20)
#define LIMIT_S 15

enum type { DATA = 1, CREDIT, PULL, GRANT, PLACED, END, RELEASE };

/* What the other end has told of itself. */
struct end {
    union ibv_gid gid;
    unsigned lid, qpn, psn, mtu, frame, credits;
    uint64_t ring, rkey;
};

/* Sent to, read from and written to by the device. */
struct memory {
    char received[CREDITS_MAX * FRAME_MAX];
    char sent[SENDS][FRAME_MAX];
    char from[LONG];
    char to[LONG];
};

struct client {
    bool writes;            /* mode write */
    unsigned frame, window; /* bytes of each receive of ours; how many there are */
    size_t longest;         /* value */
    bool is_deaf;           /* leaves payloads unread; their receives, not posted again: */
    uint64_t unposted[CREDITS_MAX];
    unsigned unposted_count;
    int tcp;
    long id;
    struct ibv_context *context;
    uint8_t gid_index;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct ibv_mw *window_of; /* the memory that a reference is to */
    struct memory *memory;
    struct end other;
    unsigned credits, owed, sending, sends, slot_out, slot_in;
    uint64_t placed, placed_to;
    unsigned released;
    uint32_t invalidated; /* by the last RELEASE or PLACED, in mode send */
    bool ended;
    char *stream; /* of replies, not yet read from `at` on */
    size_t at, length, room;
};

/* ---- frames that come ---- */

static void keep(struct client *client, const char *bytes, size_t length)
{
    if (client->length + length > client->room) {
        client->room = 2 * (client->length + length);
        client->stream = realloc(client->stream, client->room);
        assert_non_null(client->stream);
    }
    memcpy(client->stream + client->length, bytes, length);
    client->length += length;
}

static void take_frame(struct client *client, unsigned type, const char *payload, uint32_t length)
{
    uint64_t place[2];
    switch (type) {
    case DATA:
        assert_true(length > 0);
        keep(client, payload, length);
        break;
    case PLACED:
        assert_int_equal(length, sizeof place);
        memcpy(place, payload, sizeof place);
        assert_true(le64toh(place[0]) + le64toh(place[1]) <= LONG);
        keep(client, client->memory->to + le64toh(place[0]), le64toh(place[1]));
        client->placed += le64toh(place[1]);
        client->placed_to = le64toh(place[0]) + le64toh(place[1]);
        break;
    default:
        assert_true(type == CREDIT || type == RELEASE || type == END);
        assert_int_equal(length, 0);
        client->released += type == RELEASE;
        client->ended = client->ended || type == END;
    }
}

static char *received(struct client *client, uint64_t number)
{
    return client->memory->received + number * client->frame;
}

static void post_receive(struct client *client, uint64_t number)
{
    struct ibv_sge piece = {.addr = (uintptr_t)received(client, number),
                            .length = client->frame,
                            .lkey = client->mr->lkey};
    struct ibv_recv_wr *bad,
        request = {.wr_id = number, .sg_list = &piece, .num_sge = !client->writes};
    assert_int_equal(ibv_post_recv(client->qp, &request, &bad), 0);
}

static void take_received(struct client *client, const struct ibv_wc *completion)
{
    uint32_t type, credits, length;
    const char *payload = received(client, completion->wr_id);
    if (client->writes) {
        uint32_t word = be32toh(completion->imm_data);
        type = word >> 28, credits = word >> 17 & 0x7ff, length = word & 0x1ffff;
        payload = received(client, client->slot_in);
        if (length > 0)
            client->slot_in = (client->slot_in + 1) % client->window;
    } else {
        const uint8_t *header = (const uint8_t *)payload;
        assert_true(completion->byte_len >= 8);
        memcpy(&length, header + 4, 4);
        type = header[0], credits = header[2] | (unsigned)header[3] << 8, length = le32toh(length);
        assert_int_equal(header[1], 0);
        assert_int_equal(length, completion->byte_len - 8);
        payload += 8;
        if (type == RELEASE || type == PLACED) /* there may be none: Soft-RoCE has no right flag */
            client->invalidated = completion->invalidated_rkey;
    }
    client->credits += credits;
    assert_true(client->credits <= client->other.credits);
    take_frame(client, type, payload, length);
    if (client->is_deaf && length > 0) {
        assert_true(client->unposted_count < client->window);
        client->unposted[client->unposted_count++] = completion->wr_id;
        return;
    }
    post_receive(client, completion->wr_id);
    client->owed++;
}

static void listen_again(struct client *client)
{
    client->is_deaf = false;
    client->owed += client->unposted_count;
    while (client->unposted_count > 0)
        post_receive(client, client->unposted[--client->unposted_count]);
}

/* ---- frames that go ---- */

static void post(struct client *client, struct ibv_send_wr *request)
{
    struct ibv_send_wr *bad;
    request->send_flags |= IBV_SEND_SIGNALED;
    assert_int_equal(ibv_post_send(client->qp, request, &bad), 0);
    client->sending++;
}

static void post_frame(struct client *client, enum type type, const void *payload, size_t length)
{
    char *message = client->memory->sent[client->sends++ % SENDS];
    size_t head = client->writes ? 0 : 8;
    struct ibv_sge piece = {
        .addr = (uintptr_t)message, .length = (uint32_t)(head + length), .lkey = client->mr->lkey};
    struct ibv_send_wr request = {.sg_list = &piece, .num_sge = piece.length > 0};
    if (client->writes) {
        request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        request.imm_data = htobe32((uint32_t)(type << 28 | client->owed << 17 | length));
        request.wr.rdma.rkey = (uint32_t)client->other.rkey;
        request.wr.rdma.remote_addr =
            client->other.ring + (uint64_t)client->slot_out * client->other.frame;
        if (length > 0)
            client->slot_out = (client->slot_out + 1) % client->other.credits;
    } else {
        uint32_t field = htole32((uint32_t)length);
        request.opcode = IBV_WR_SEND;
        memcpy(message, (char[]){(char)type, 0, (char)client->owed, 0}, 4);
        memcpy(message + 4, &field, 4);
    }
    memcpy(message + head, payload, length);
    client->credits--;
    client->owed = 0;
    post(client, &request);
}

/* Whatever has come; and what the other end has to know of it. */
static void turn(struct client *client, time_t limit)
{
    struct ibv_wc completion;
    while (ibv_poll_cq(client->cq, 1, &completion) == 1) {
        if (completion.status != IBV_WC_SUCCESS)
            fail_msg("%s", ibv_wc_status_str(completion.status));
        if (completion.opcode & IBV_WC_RECV)
            take_received(client, &completion);
        else
            client->sending--;
    }
    if (client->owed >= client->window / 2 && client->owed > 0 && client->credits > 0 &&
        client->sending < SENDS)
        post_frame(client, CREDIT, "", 0);
    if (time(NULL) > limit)
        fail_msg("nothing comes: %u credits, %zu bytes not read", client->credits,
                 client->length - client->at);
}

static void speak(struct client *client, enum type type, const void *payload, size_t length)
{
    time_t limit = time(NULL) + LIMIT_S;
    while (client->credits < 2 || client->sending >= SENDS - 1)
        turn(client, limit);
    post_frame(client, type, payload, length);
}

static void refer(struct client *client, enum type type, const void *at, uint64_t length,
                  uint32_t rkey, bool is_window)
{
    uint64_t payload[] = {htole64((uintptr_t)at), htole64(length),
                          htole64((uint64_t)is_window << 32 | rkey)};
    speak(client, type, payload, sizeof payload);
}

/* ---- the stream ---- */

static void say_bytes(struct client *client, const char *bytes, size_t length)
{
    size_t most = client->other.frame - (client->writes ? 0 : 8);
    most = most < FRAME_MAX - 8 ? most : FRAME_MAX - 8;
    for (size_t part; length > 0; bytes += part, length -= part) {
        part = length < most ? length : most;
        speak(client, DATA, bytes, part);
    }
}

static void say(struct client *client, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    say_bytes(client, text, (size_t)length);
}

static const char *hear_bytes(struct client *client, size_t length)
{
    time_t limit = time(NULL) + LIMIT_S;
    if (client->at == client->length)
        client->at = client->length = 0;
    while (client->length - client->at < length)
        turn(client, limit);
    client->at += length;
    return client->stream + client->at - length;
}

static void hear(struct client *client, const char *wanted)
{
    assert_memory_equal(hear_bytes(client, strlen(wanted)), wanted, strlen(wanted));
}

/* ---- beginning and end ---- */

static int dial(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(getenv("VELLUM_PORT")))};
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    inet_pton(AF_INET, getenv("VELLUM_HOST"), &address.sin_addr);
    assert_int_equal(connect(tcp, (struct sockaddr *)&address, sizeof address), 0);
    return tcp;
}

/* The device, and the place in its table, that has the address which the connection comes from. */
static void open_device(struct client *client, union ibv_gid *gid)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    struct ibv_device **devices = ibv_get_device_list(NULL);
    uint8_t mapped[16] = {[10] = 0xff, 0xff};
    assert_int_equal(getsockname(client->tcp, (struct sockaddr *)&address, &size), 0);
    memcpy(mapped + 12, &address.sin_addr, 4);
    for (int i = 0; devices[i] != NULL; i++) {
        client->context = ibv_open_device(devices[i]);
        assert_non_null(client->context);
        for (int j = 0; ibv_query_gid(client->context, 1, j, gid) == 0 && j < 16; j++)
            if (memcmp(gid->raw, mapped, 16) == 0) {
                client->gid_index = (uint8_t)j;
                ibv_free_device_list(devices);
                return;
            }
        ibv_close_device(client->context);
    }
    fail_msg("no device has the connection's address");
}

static void make_queue_pair(struct client *client)
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    client->pd = ibv_alloc_pd(client->context);
    client->cq = ibv_create_cq(client->context, SENDS + CREDITS_MAX, NULL, NULL, 0);
    client->mr =
        ibv_reg_mr(client->pd, client->memory, sizeof *client->memory, access | IBV_ACCESS_MW_BIND);
    client->window_of = ibv_alloc_mw(client->pd, IBV_MW_TYPE_2);
    assert_true(client->cq != NULL && client->mr != NULL && client->window_of != NULL);
    struct ibv_qp_init_attr wanted = {.qp_type = IBV_QPT_RC,
                                      .send_cq = client->cq,
                                      .recv_cq = client->cq,
                                      .cap = {.max_send_wr = SENDS,
                                              .max_recv_wr = CREDITS_MAX,
                                              .max_send_sge = 1,
                                              .max_recv_sge = 1}};
    client->qp = ibv_create_qp(client->pd, &wanted);
    assert_non_null(client->qp);
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = (unsigned)access,
    };
    assert_int_equal(
        ibv_modify_qp(client->qp, &init,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    for (uint64_t i = 0; i < client->window; i++)
        post_receive(client, i);
}

static void begin(struct client *client)
{
    unsigned mtu = client->other.mtu < 1024 ? client->other.mtu : 1024;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu == 1024  ? IBV_MTU_1024
                    : mtu == 512 ? IBV_MTU_512
                                 : IBV_MTU_256,
        .dest_qp_num = client->other.qpn,
        .rq_psn = client->other.psn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 12,
        .ah_attr = {
            .is_global = 1,
            .port_num = 1,
            .dlid = (uint16_t)client->other.lid,
            .grh = {.dgid = client->other.gid, .sgid_index = client->gid_index, .hop_limit = 64}}};
    assert_int_equal(ibv_modify_qp(client->qp, &attr,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                       IBV_QP_MIN_RNR_TIMER),
                     0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6, .rnr_retry = 6, .sq_psn = 4711};
    assert_int_equal(ibv_modify_qp(client->qp, &attr,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
    client->credits = client->other.credits;
}

static void note(struct client *client, const char *name, const char *value)
{
    struct end *other = &client->other;
    const struct {
        const char *name;
        unsigned *at;
    } small[] = {{"LID", &other->lid}, {"QPN", &other->qpn},     {"PSN", &other->psn},
                 {"MTU", &other->mtu}, {"FRAME", &other->frame}, {"CREDITS", &other->credits}};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        if (strcmp(name, small[i].name) == 0)
            *small[i].at = (unsigned)strtoul(value, NULL, 10);
    for (int i = 0; i < 16 && strcmp(name, "GID") == 0; i++)
        assert_int_equal(sscanf(value + 2 * i, "%2hhx", &other->gid.raw[i]), 1);
    if (strcmp(name, "RING") == 0)
        other->ring = strtoull(value, NULL, 10);
    if (strcmp(name, "RKEY") == 0)
        other->rkey = strtoull(value, NULL, 10);
    if (strcmp(name, "ID") == 0)
        client->id = strtol(value, NULL, 10);
}

/* A map, in RESP2: an array, of names and values in lines of their own. */
static void read_answer(struct client *client)
{
    char text[2048], *line, *rest = text, *name = NULL;
    size_t length = 0;
    long lines = 0, left;
    do {
        ssize_t got = read(client->tcp, text + length, sizeof text - 1 - length);
        assert_true(got > 0);
        text[length += (size_t)got] = '\0';
        left = strtol(text + 1, NULL, 10);
        for (lines = 0, line = text; (line = strstr(line, "\r\n")) != NULL; line += 2)
            left -= line[2] != '$' && line[2] != '\0';
    } while (*text == '*' && (left > 0 || strcmp(text + length - 2, "\r\n") != 0));
    if (*text != '*')
        fail_msg("%s", text);
    while ((line = strtok_r(rest, "\r\n", &rest)) != NULL) {
        if (lines++ == 0 || *line == '$')
            continue;
        if (name != NULL)
            note(client, name, line + (*line == ':'));
        name = name == NULL ? line : NULL;
    }
}

static struct client *meet(bool writes, unsigned frame, unsigned window)
{
    struct client *client = calloc(1, sizeof *client);
    char text[1024], digits[33];
    union ibv_gid gid;
    assert_non_null(client);
    client->writes = writes;
    client->frame = frame;
    client->window = window;
    client->tcp = dial();
    client->memory = calloc(1, sizeof *client->memory);
    assert_non_null(client->memory);
    open_device(client, &gid);
    make_queue_pair(client);
    for (int i = 0; i < 16; i++)
        snprintf(digits + 2 * i, 3, "%02x", gid.raw[i]);
    int length =
        snprintf(text, sizeof text,
                 "RDMA CONNECT 1 %s GID %s LID 0 QPN %u PSN 4711 MTU 1024 FRAME %u "
                 "CREDITS %u RING %llu RKEY %u\r\n",
                 writes ? "write" : "send", digits, client->qp->qp_num, frame, window,
                 (unsigned long long)(uintptr_t)client->memory->received, client->mr->rkey);
    assert_int_equal(write(client->tcp, text, (size_t)length), length);
    read_answer(client);
    begin(client);
    return client;
}

static void is_hung_up(struct client *client)
{
    char byte;
    assert_true(read(client->tcp, &byte, 1) <= 0); /* the end, or a reset */
}

static void forget(struct client *client)
{
    close(client->tcp);
    ibv_destroy_qp(client->qp);
    ibv_dealloc_mw(client->window_of);
    ibv_dereg_mr(client->mr);
    ibv_destroy_cq(client->cq);
    ibv_dealloc_pd(client->pd);
    ibv_close_device(client->context);
    free(client->memory);
    free(client->stream);
    free(client);
}

static void part(struct client *client)
{
    time_t limit = time(NULL) + LIMIT_S;
    say(client, "RDMA CLOSE %ld\r\n", client->id);
    hear(client, "+OK\r\n");
    while (!client->ended)
        turn(client, limit);
    is_hung_up(client);
    assert_int_equal(client->at, client->length);
    forget(client);
}

/* ---- cases ---- */

static void fill(struct client *client, int seed)
{
    for (size_t i = 0; i < LONG; i++)
        client->memory->from[i] = (char)(i * 7 + i / 251 + (size_t)seed);
}

static void hear_value(struct client *client, size_t length)
{
    char header[32];
    snprintf(header, sizeof header, "$%zu\r\n", length);
    hear(client, header);
    assert_memory_equal(hear_bytes(client, length), client->memory->from, length);
    hear(client, "\r\n");
}

static void by_copy(struct client *client)
{
    const size_t sizes[] = {10, 5 * 1024, client->longest};
    say(client, "PING\r\n");
    hear(client, "+PONG\r\n");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        say(client, "*3\r\n$3\r\nSET\r\n$4\r\nspec\r\n$%zu\r\n", sizes[i]);
        say_bytes(client, client->memory->from, sizes[i]);
        say(client, "\r\nGET spec\r\n");
        hear(client, "+OK\r\n");
        hear_value(client, sizes[i]);
    }
}

static void set_by_reference(struct client *client, size_t length, uint32_t rkey, bool is_window)
{
    say(client, "*3\r\n$3\r\nSET\r\n$4\r\nspec\r\n$%zu\r\n", length);
    refer(client, PULL, client->memory->from, length, rkey, is_window);
    say(client, "\r\n");
    hear(client, "+OK\r\n");
}

/* By references and by bytes in turn; behind the first there is no memory that may be read. */
static void in_parts(struct client *client)
{
    enum { PART = 10000 };
    char *end = client->memory->to + LONG - PART;
    memcpy(end, client->memory->from, PART);
    say(client, "*3\r\n$3\r\nSET\r\n$4\r\nspec\r\n$%d\r\n", 3 * PART);
    refer(client, PULL, end, PART, client->mr->rkey, false);
    say_bytes(client, client->memory->from + PART, PART);
    refer(client, PULL, client->memory->from + (size_t)2 * PART, PART, client->mr->rkey, false);
    say(client, "\r\nGET spec\r\n");
    hear(client, "+OK\r\n");
    hear_value(client, (size_t)3 * PART);
}

/* Parts of it may come by DATA, above all at first. */
static void get_placed(struct client *client, size_t length, uint64_t granted, uint32_t rkey,
                       bool is_window)
{
    memset(client->memory->to, 0, LONG);
    client->placed = client->placed_to = client->invalidated = 0;
    refer(client, GRANT, client->memory->to, granted, rkey, is_window);
    say(client, "GET spec\r\n");
    hear_value(client, length);
}

static void get_by_reference(struct client *client, size_t length)
{
    get_placed(client, length, client->longest, client->mr->rkey, false);
    if (client->placed_to < length)
        speak(client, GRANT, "", 0);
}

/* A grant is for one value, and for one that fits. */
static void grants_that_end(struct client *client)
{
    get_by_reference(client, client->longest);
    assert_int_equal(client->placed, client->longest);
    say(client, "GET spec\r\n");
    hear_value(client, client->longest);
    assert_int_equal(client->placed, client->longest);
    get_placed(client, client->longest, client->longest - 1, client->mr->rkey, false);
    assert_int_equal(client->placed, 0);
    refer(client, GRANT, client->memory->to, client->longest, client->mr->rkey, false);
    speak(client, GRANT, "", 0);
    say(client, "GET spec\r\n");
    hear_value(client, client->longest);
    assert_int_equal(client->placed, 0);
}

static void by_reference(struct client *client)
{
    const size_t sizes[] = {10, 5 * 1024, client->longest};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fill(client, (int)i + 1);
        set_by_reference(client, sizes[i], client->mr->rkey, false);
        for (int tries = 0; tries < 50; tries++) {
            get_by_reference(client, sizes[i]);
            if (sizes[i] < client->longest || client->placed == client->longest)
                break;
        }
    }
    assert_int_equal(client->placed, client->longest);
    assert_int_equal(client->released, 0);
}

static uint32_t open_window(struct client *client, char *bytes, unsigned access)
{
    struct ibv_send_wr request = {.opcode = IBV_WR_BIND_MW,
                                  .bind_mw = {.mw = client->window_of,
                                              .rkey = ibv_inc_rkey(client->window_of->rkey),
                                              .bind_info = {.mr = client->mr,
                                                            .addr = (uintptr_t)bytes,
                                                            .length = client->longest,
                                                            .mw_access_flags = access}}};
    post(client, &request);
    client->window_of->rkey = request.bind_mw.rkey; /* not every provider keeps it */
    return request.bind_mw.rkey;
}

/* In mode send the server has ended it. */
static void close_window(struct client *client, uint32_t rkey)
{
    struct ibv_send_wr end = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = rkey};
    if (client->writes)
        post(client, &end);
    else
        assert_int_equal(client->invalidated, rkey);
}

static void by_window(struct client *client)
{
    uint32_t rkey = open_window(client, client->memory->from, IBV_ACCESS_REMOTE_READ);
    fill(client, 9);
    set_by_reference(client, client->longest, rkey, true);
    assert_int_equal(client->released, 1);
    close_window(client, rkey);
    say(client, "GET spec\r\n");
    hear_value(client, client->longest);
    for (int tries = 0; tries < 50 && client->placed < client->longest; tries++)
        get_by_reference(client, client->longest); /* until the pages are registered */
    rkey = open_window(client, client->memory->to, IBV_ACCESS_REMOTE_WRITE);
    get_placed(client, client->longest, client->longest, rkey, true);
    assert_int_equal(client->placed, client->longest);
    close_window(client, rkey);
}

/* A reply waits for credits, and comes no faster than there are some. */
static void held_up(struct client *client)
{
    time_t limit = time(NULL) + LIMIT_S;
    client->is_deaf = true;
    say(client, "GET spec\r\n");
    while (client->unposted_count < client->window - 1)
        turn(client, limit);
    usleep(200000);
    turn(client, limit);
    assert_in_range(client->unposted_count, client->window - 1, client->window);
    listen_again(client);
    hear_value(client, client->longest);
}

static void deep(struct client *client)
{
    for (int i = 0; i < 1000; i++)
        say(client, "ECHO %d\r\n%s", i, i % 10 == 0 ? "GET spec:short\r\n" : "");
    for (int i = 0; i < 1000; i++) {
        char text[32], number[16];
        int length = snprintf(number, sizeof number, "%d", i);
        snprintf(text, sizeof text, "$%d\r\n%s\r\n%s", length, number,
                 i % 10 == 0 ? "$-1\r\n" : "");
        hear(client, text);
    }
}

/* Comes unasked, while the client sends nothing. */
static void pushed(struct client *client)
{
    static const char publish[] = "PUBLISH spec news\r\n";
    char answer[8] = "";
    int other = dial();
    say(client, "HELLO 3\r\nPING\r\n");
    hear(client, "%");
    while (memcmp(hear_bytes(client, 1), "+", 1) != 0)
        continue;
    hear(client, "PONG\r\n");
    say(client, "SUBSCRIBE spec\r\n");
    hear(client, ">3\r\n$9\r\nsubscribe\r\n$4\r\nspec\r\n:1\r\n");
    assert_int_equal(write(other, publish, sizeof publish - 1), sizeof publish - 1);
    hear(client, ">3\r\n$7\r\nmessage\r\n$4\r\nspec\r\n$4\r\nnews\r\n");
    assert_int_equal(read(other, answer, sizeof answer), 4);
    assert_string_equal(answer, ":1\r\n");
    close(other);
}

#define ROUNDS 74
#define ROUNDS_PER_LONG 4     /* GET of the longest value, and SET of it by reference */
#define ROUNDS_PER_BLOCKED 37 /* BLPOP of a list that is not there */

static int blocked_lists(int rounds)
{
    return (rounds + ROUNDS_PER_BLOCKED - 1) / ROUNDS_PER_BLOCKED;
}

static void say_round(struct client *client, int round, size_t length)
{
    say(client, "*3\r\n$3\r\nSET\r\n$5\r\nspec:\r\n$%zu\r\n", length);
    say_bytes(client, client->memory->from + round, length);
    say(client, "\r\nECHO %d\r\nGET spec:\r\n", 1000 + round % 9000);
    if (round % ROUNDS_PER_LONG == 0)
        say(client, "GET spec\r\n");
    if (round % ROUNDS_PER_LONG == 1) {
        say(client, "*3\r\n$3\r\nSET\r\n$4\r\nspec\r\n$%zu\r\n", client->longest);
        refer(client, PULL, client->memory->from, client->longest, client->mr->rkey, false);
        say(client, "\r\n");
    }
    if (round % ROUNDS_PER_BLOCKED == 0)
        say(client, "SUBSCRIBE spec\r\nUNSUBSCRIBE spec\r\nBLPOP spec:list:%03d 0\r\n",
            round / ROUNDS_PER_BLOCKED);
}

static void hear_round(struct client *client, int round, size_t length)
{
    char text[64];
    snprintf(text, sizeof text, "+OK\r\n$4\r\n%d\r\n$%zu\r\n", 1000 + round % 9000, length);
    hear(client, text);
    assert_memory_equal(hear_bytes(client, length), client->memory->from + round, length);
    hear(client, "\r\n");
    if (round % ROUNDS_PER_LONG == 0)
        hear_value(client, client->longest);
    if (round % ROUNDS_PER_LONG == 1)
        hear(client, "+OK\r\n");
    if (round % ROUNDS_PER_BLOCKED == 0) {
        hear(client, "*3\r\n$9\r\nsubscribe\r\n$4\r\nspec\r\n:1\r\n"
                     "*3\r\n$11\r\nunsubscribe\r\n$4\r\nspec\r\n:0\r\n");
        snprintf(text, sizeof text, "*2\r\n$13\r\nspec:list:%03d\r\n$1\r\n1\r\n",
                 round / ROUNDS_PER_BLOCKED);
        hear(client, text);
    }
}

/* What the blocked commands wait for, by TCP. */
static void serve(int lists)
{
    char text[64], answer[64];
    int other = dial();
    for (int i = 0; i < lists; i++) {
        int length = snprintf(text, sizeof text, "LPUSH spec:list:%03d 1\r\n", i);
        assert_int_equal(write(other, text, (size_t)length), length);
        assert_int_equal(read(other, answer, sizeof answer), 4);
        assert_memory_equal(answer, ":1\r\n", 4);
    }
    close(other);
}

/* A pipeline is sent whole before the client reads its first reply: the server takes all of it,
 * though its replies find no credits and some of its commands block. */
static void written_first(struct client *client)
{
    const char *rounds_wanted = getenv("VELLUM_ROUNDS");
    int rounds = rounds_wanted != NULL ? atoi(rounds_wanted) : ROUNDS;
    size_t length = client->longest / 32;
    client->is_deaf = true;
    for (int round = 0; round < rounds; round++)
        say_round(client, round, length);
    serve(blocked_lists(rounds));
    listen_again(client);
    for (int round = 0; round < rounds; round++)
        hear_round(client, round, length);
    say(client, "DEL spec:\r\n");
    hear(client, ":1\r\n");
}

static void everything(bool writes, unsigned frame, unsigned window)
{
    struct client *client = meet(writes, frame, window);
    client->longest = frame == FRAME_MAX ? LONG : 40000; /* many times what is on its way at once */
    fill(client, 0);
    by_copy(client);
    by_reference(client);
    grants_that_end(client);
    in_parts(client);
    by_window(client);
    held_up(client);
    deep(client);
    written_first(client);
    pushed(client);
    say(client, "DEL spec\r\n");
    hear(client, ":1\r\n");
    part(client);
}

static void in_mode_send(void **state)
{
    (void)state;
    everything(false, FRAME_MAX, CREDITS_MAX);
}

static void in_mode_write(void **state)
{
    (void)state;
    everything(true, FRAME_MAX, CREDITS_MAX);
}

/* The smallest that a client may have. */
static void with_four_small_receives(void **state)
{
    (void)state;
    everything(false, 256, 4);
    everything(true, 256, 4);
}

/* A frame that breaks the rules ends the channel, and TCP tells of it. */
static void a_breach(void **state)
{
    (void)state;
    for (int writes = 0; writes < 2; writes++) {
        struct client *client = meet(writes, FRAME_MAX, CREDITS_MAX);
        say(client, "PING\r\n");
        hear(client, "+PONG\r\n");
        post_frame(client, (enum type)9, "", 0);
        is_hung_up(client);
        forget(client);
    }
}

/* The end of TCP ends the channel: no answer comes over it. */
static void an_end_by_tcp(void **state)
{
    (void)state;
    for (int writes = 0; writes < 2; writes++) {
        struct client *client = meet(writes, FRAME_MAX, CREDITS_MAX);
        struct ibv_wc completion = {.status = IBV_WC_SUCCESS};
        time_t limit = time(NULL) + LIMIT_S;
        say(client, "PING\r\n");
        hear(client, "+PONG\r\n");
        shutdown(client->tcp, SHUT_RDWR);
        usleep(200000);
        post_frame(client, DATA, "PING\r\n", 6);
        while (completion.status == IBV_WC_SUCCESS) {
            assert_true(time(NULL) < limit);
            ibv_poll_cq(client->cq, 1, &completion);
        }
        forget(client);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_mode_send),
        cmocka_unit_test(in_mode_write),
        cmocka_unit_test(with_four_small_receives),
        cmocka_unit_test(a_breach),
        cmocka_unit_test(an_end_by_tcp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
