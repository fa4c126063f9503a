/*
 * A card with addresses of both families: a channel speaks from the one that its TCP connection has
 * come to. VELLUM_HOST6 and VELLUM_PEER6 are the server's other address, and ours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/rdma/raw.h"

#define OTHER "10.9.0.9" /* not there yet */

/* Of VELLUM_HOST, VELLUM_HOST6 ... before anything was changed. */
static char host4[64], host6[64], peer4[64], peer6[64];

/* What connects from now on does so by this family's addresses. */
static void use_family(int family)
{
    setenv("VELLUM_HOST", family == 6 ? host6 : host4, 1);
    setenv("VELLUM_PEER", family == 6 ? peer6 : peer4, 1);
}

static const char *text_of(const char *ip)
{
    static char text[RDMA_END_TEXT_MAX];
    struct rdma_end end;
    raw_gid_of(ip, end.gid);
    rdma_end_print(&end, 0, text);
    return text;
}

/* A value of what the server offers, to be freed with `whole`. */
static const redisReply *offered(redisReply *whole, const char *name)
{
    assert_non_null(whole);
    assert_int_equal(whole->type, REDIS_REPLY_ARRAY);
    for (size_t i = 0; i + 1 < whole->elements; i += 2)
        if (strcmp(whole->element[i]->str, name) == 0)
            return whole->element[i + 1];
    fail_msg("%s is not told", name);
    return NULL;
}

static bool is_offered(redisReply *whole, const char *ip)
{
    const redisReply *gids = offered(whole, "gids");
    bool is = false;
    for (size_t i = 0; i < gids->elements; i++)
        is = is || strcmp(gids->element[i]->str, text_of(ip)) == 0;
    freeReplyObject(whole);
    return is;
}

static void is_told(redisReply *whole, const char *gid)
{
    assert_string_equal(offered(whole, "gid")->str, text_of(gid));
    assert_true(is_offered(whole, gid));
}

static void is_refused(redisReply *reply, const char *why)
{
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    if (strstr(reply->str, why) == NULL)
        fail_msg("%s", reply->str);
    freeReplyObject(reply);
}

/* ---- cases ---- */

static void both_at_once(void **state)
{
    (void)state;
    for (int mode = 0; mode < RDMA_MODE_COUNT; mode++) {
        use_family(6);
        struct vellum *six = connect_neighbour((enum rdma_mode)mode);
        use_family(4);
        struct vellum *four = connect_neighbour((enum rdma_mode)mode);
        redisContext *tcp = dial();
        exchange(six, four);
        exchange(four, six);
        assert_int_equal(figure(tcp, "rdma_channels"), 2);
        is_told(vellum_command(four, "RDMA INFO"), host4);
        is_told(vellum_command(six, "RDMA INFO"), host6);
        assert_true(is_offered(vellum_command(six, "RDMA INFO"), host4));
        vellum_free(four);
        vellum_free(six);
        await_figure(tcp, "rdma_channels", 0);
        redisFree(tcp);
    }
}

/* Whichever family it is of. */
static void only_the_peers_own(void **state)
{
    (void)state;
    for (int family = 4; family <= 6; family += 2) {
        struct raw raw;
        char gid[RDMA_END_TEXT_MAX];
        use_family(family);
        raw_open_device(&raw, RDMA_MODE_SEND);
        snprintf(gid, sizeof gid, "%s", text_of(family == 6 ? host6 : host4));
        is_refused(raw_ask(&raw, "GID", gid), "rdma-check-peer");
        snprintf(gid, sizeof gid, "%s", text_of(family == 6 ? peer4 : peer6));
        is_refused(raw_ask(&raw, "GID", gid), "rdma-check-peer");
        freeReplyObject(redisCommand(raw.tcp, "CONFIG SET rdma-check-peer no"));
        is_refused(raw_ask(&raw, "GID", gid), "rdma-gid-index");
        freeReplyObject(redisCommand(raw.tcp, "CONFIG SET rdma-check-peer yes"));
        redisReply *answer = raw_ask(&raw, NULL, NULL);
        assert_string_equal(offered(answer, "GID")->str, text_of(family == 6 ? host6 : host4));
        freeReplyObject(answer);
        raw_free(&raw);
    }
    use_family(4);
}

/* The server learns of it, and of its end. */
static void one_that_comes_later(void **state)
{
    (void)state;
    redisContext *tcp = dial();
    bool is_there = false;
    assert_false(is_offered(redisCommand(tcp, "RDMA INFO"), OTHER));
    assert_int_equal(system("ip address add " OTHER "/32 dev va"), 0);
    for (int i = 0; i < 100 && !is_there; i++) {
        pause_ms(50);
        is_there = is_offered(redisCommand(tcp, "RDMA INFO"), OTHER);
    }
    assert_true(is_there);
    assert_int_equal(system("ip address del " OTHER "/32 dev va"), 0);
    for (int i = 0; i < 100 && is_there; i++) {
        pause_ms(50);
        is_there = is_offered(redisCommand(tcp, "RDMA INFO"), OTHER);
    }
    assert_false(is_there);
    redisFree(tcp);
}

/* rdma-gid-index names the IPv4 one: the other family is refused, and goes on by TCP. */
static void none_but_the_fixed_one(void **state)
{
    (void)state;
    struct vellum *four = connect_neighbour(RDMA_MODE_SEND);
    redisContext *tcp = dial();
    exchange(four, four);
    redisReply *reply = redisCommand(tcp, "RDMA INFO");
    assert_int_equal(offered(reply, "gids")->elements, 1);
    is_told(reply, host4);
    struct vellum_options options = {.host = host6, .port = atoi(getenv("VELLUM_PORT"))};
    struct vellum *six = vellum_connect(&options);
    assert_non_null(six);
    assert_null(vellum_error(six));
    assert_string_equal(vellum_transport(six), "tcp");
    assert_non_null(strstr(vellum_reason(six), "rdma-gid-index"));
    is_told(vellum_command(six, "RDMA INFO"), host4);
    vellum_free(six);
    vellum_free(four);
    await_figure(tcp, "rdma_channels", 0);
    redisFree(tcp);
}

static void await_offered(redisContext *tcp, const char *name, const char *wanted)
{
    char value[64] = "";
    for (int i = 0; i < 100 && strcmp(value, wanted) != 0; i++, pause_ms(100)) {
        redisReply *whole = redisCommand(tcp, "RDMA INFO");
        const redisReply *found = offered(whole, name);
        if (found->type == REDIS_REPLY_INTEGER)
            snprintf(value, sizeof value, "%lld", found->integer);
        else
            snprintf(value, sizeof value, "%s", found->str);
        freeReplyObject(whole);
    }
    assert_string_equal(value, wanted);
}

/* The port is not what it was when the server was started. */
static void a_port_that_changes(void **state)
{
    (void)state;
    struct raw raw;
    use_family(4);
    redisContext *tcp = dial(); /* by the wire, which is there all the time */
    await_offered(tcp, "mtu", "1024");
    assert_int_equal(system("ip link set va mtu 4200 && ip link set vb mtu 4200"), 0);
    await_offered(tcp, "mtu", "4096");
    raw_connect_by(&raw, RDMA_MODE_SEND, RECEIVES);
    assert_int_equal(raw.theirs.mtu, 4096);
    raw_free(&raw);
    assert_int_equal(system("ip link set va mtu 1500 && ip link set vb mtu 1500"), 0);
    raw_connect_by(&raw, RDMA_MODE_SEND, RECEIVES); /* reported without a request for it */
    assert_int_equal(raw.theirs.mtu, 1024);
    raw_free(&raw);
    await_offered(tcp, "mtu", "1024");
    await_offered(tcp, "state", "active");
    await_figure(tcp, "rdma_channels", 0);
    redisFree(tcp);
}

int main(void)
{
    const struct CMUnitTest fixed[] = {
        cmocka_unit_test(none_but_the_fixed_one),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_at_once),
        cmocka_unit_test(only_the_peers_own),
        cmocka_unit_test(one_that_comes_later),
        cmocka_unit_test(a_port_that_changes),
    };
    snprintf(host4, sizeof host4, "%s", getenv("VELLUM_HOST"));
    snprintf(host6, sizeof host6, "%s", getenv("VELLUM_HOST6"));
    snprintf(peer4, sizeof peer4, "%s", getenv("VELLUM_PEER"));
    snprintf(peer6, sizeof peer6, "%s", getenv("VELLUM_PEER6"));
    if (getenv("VELLUM_FIXED") != NULL) /* the server's address is */
        return cmocka_run_group_tests(fixed, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
