/*
 * Which device serves a connection, and devices that come and go: on a system that has the devices
 * the test says, and with one worker, whose messages the test visits.
 */
#include "rdma-ext/channel.h"
#include "rdma-ext/devices.h"
#include "rdma-ext/failure.h"
#include "rdma-ext/poll_group.h"
#include "rdma-ext/service.h"
#include "rdma-ext/watch.h"
#include "rdma-ext/watch_ask.h"
#include "rdma-ext/completion_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define DEVICES 4
#define WORKERS_MAX 64
#define LONG_NS 2000000000

/* ---- the system ---- */

struct system_device {
    char name[8];
    int index; /* 0: it is not there */
    bool is_up, is_useless;
    uint8_t gid[16];
};

static struct {
    pthread_mutex_t lock;
    struct system_device devices[DEVICES];
    struct worker_message *messages, *last;
    uint64_t now_ns;
    uint32_t opened, freed, tried; /* tried: and found to be of no use */
    int slow;          /* the index of a device to which no worker can be attached yet */
    bool is_attaching; /* one waits for that */
} the = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void address(uint8_t gid[16], uint8_t last)
{
    const uint8_t whole[16] = {[10] = 0xff, 0xff, 127, 0, 0, last};
    memcpy(gid, whole, sizeof whole);
}

static void plug(uint32_t at, int index)
{
    pthread_mutex_lock(&the.lock);
    struct system_device *device = &the.devices[at];
    *device = (struct system_device){.index = index, .is_up = true};
    snprintf(device->name, sizeof device->name, "dev%u", at);
    address(device->gid, (uint8_t)(at + 1));
    pthread_mutex_unlock(&the.lock);
}

static void unplug(uint32_t at)
{
    pthread_mutex_lock(&the.lock);
    the.devices[at].index = 0;
    pthread_mutex_unlock(&the.lock);
}

uint64_t rdma_clock_ns(void)
{
    pthread_mutex_lock(&the.lock);
    uint64_t now = the.now_ns;
    pthread_mutex_unlock(&the.lock);
    return now;
}

static void let_time_pass(void)
{
    pthread_mutex_lock(&the.lock);
    the.now_ns += LONG_NS;
    pthread_mutex_unlock(&the.lock);
}

void worker_post(struct worker *to, struct worker_message *message)
{
    (void)to;
    pthread_mutex_lock(&the.lock);
    message->next = NULL;
    if (the.messages == NULL)
        the.messages = message;
    else
        the.last->next = message;
    the.last = message;
    pthread_mutex_unlock(&the.lock);
}

static bool visit_one(void)
{
    pthread_mutex_lock(&the.lock);
    struct worker_message *message = the.messages;
    if (message != NULL)
        the.messages = message->next;
    pthread_mutex_unlock(&the.lock);
    if (message != NULL)
        message->visit(NULL, message);
    return message != NULL;
}

static uint32_t freed(void)
{
    pthread_mutex_lock(&the.lock);
    uint32_t count = the.freed;
    pthread_mutex_unlock(&the.lock);
    return count;
}

/* ---- in place of the rest ---- */

bool rdma_devices_list(struct rdma_listed *listed, uint32_t size, uint32_t *count)
{
    (void)size;
    pthread_mutex_lock(&the.lock);
    *count = 0;
    for (uint32_t i = 0; i < DEVICES; i++)
        if (the.devices[i].index != 0) {
            listed[*count].index = the.devices[i].index;
            snprintf(listed[*count].name, sizeof listed[0].name, "%s", the.devices[i].name);
            ++*count;
        }
    pthread_mutex_unlock(&the.lock);
    return true;
}

static struct rdma_service *open_one(struct rdma_devices *devices, struct system_device *found)
{
    struct rdma_service *service = calloc(1, sizeof *service);
    assert_non_null(service);
    pthread_mutex_init(&service->lock, NULL);
    service->devices = devices;
    service->max_channels = 16;
    service->device = (struct rdma_device){.name = found->name,
                                           .index = found->index,
                                           .port = 1,
                                           .port_count = 1,
                                           .is_ethernet = true};
    memcpy(service->device.gid.raw, found->gid, sizeof found->gid);
    memcpy(service->gids[0], found->gid, sizeof found->gid);
    service->gid_count = 1;
    service->is_active = found->is_up;
    service->workers = calloc(WORKERS_MAX, sizeof(struct rdma_worker *));
    the.opened++;
    return service;
}

struct rdma_service *rdma_service_open(struct rdma_devices *devices,
                                       const struct rdma_choice *choice,
                                       struct rdma_listed *unusable, char message[RDMA_ERROR_MAX])
{
    struct rdma_service *service = NULL;
    snprintf(message, RDMA_ERROR_MAX, "none");
    unusable->name[0] = '\0';
    pthread_mutex_lock(&the.lock);
    for (uint32_t i = 0; i < DEVICES && service == NULL; i++) {
        struct system_device *device = &the.devices[i];
        if (device->index == 0 ||
            choice->is_left_out(choice->arg, device->name, device->index, 0) ||
            choice->is_left_out(choice->arg, device->name, device->index, 1))
            continue;
        if (device->is_useless) {
            snprintf(message, RDMA_ERROR_MAX, "useless");
            snprintf(unusable->name, sizeof unusable->name, "%s", device->name);
            unusable->index = device->index;
            the.tried++;
            break;
        }
        service = open_one(devices, device);
    }
    pthread_mutex_unlock(&the.lock);
    return service;
}

void rdma_service_halt(struct rdma_service *service)
{
    assert_false(service->is_halted);
    service->is_halted = true;
}

void rdma_service_free(struct rdma_service *service)
{
    for (uint32_t i = 0; i < service->worker_count; i++) {
        close(service->workers[i]->events->fd);
        free(service->workers[i]->events);
        free(service->workers[i]);
    }
    pthread_mutex_destroy(&service->lock);
    free(service->workers);
    free(service);
    pthread_mutex_lock(&the.lock);
    the.freed++;
    pthread_mutex_unlock(&the.lock);
}

/* Waits while the device is the slow one. */
static void attach_slowly(const struct rdma_service *service)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    pthread_mutex_lock(&the.lock);
    while (the.slow == service->device.index) {
        the.is_attaching = true;
        pthread_mutex_unlock(&the.lock);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&the.lock);
    }
    pthread_mutex_unlock(&the.lock);
}

struct rdma_worker *rdma_service_attach(struct rdma_service *service, struct rdma_poll_group *group)
{
    attach_slowly(service);
    struct rdma_worker *worker = calloc(1, sizeof *worker);
    assert_non_null(worker);
    worker->service = service;
    worker->group = group;
    worker->events = calloc(1, sizeof *worker->events);
    assert_non_null(worker->events);
    worker->events->fd = eventfd(0, EFD_NONBLOCK);
    service->workers[service->worker_count++] = worker;
    return worker;
}

void rdma_service_describe(struct rdma_service *service, struct rdma_port_info *port)
{
    *port = (struct rdma_port_info){.port = service->device.port};
    snprintf(port->device, sizeof port->device, "%s", service->device.name);
}

void rdma_service_gids(struct rdma_service *service, struct rdma_info *info)
{
    memcpy(info->gids, service->gids, sizeof info->gids);
    info->gid_count = service->gid_count;
}

void rdma_service_count(struct rdma_service *service, struct rdma_info *info)
{
    (void)service;
    info->opened++;
}

void rdma_device_gone(struct rdma_service *service)
{
    atomic_store(&service->is_lost, true);
}

void rdma_on_leaving(struct worker *owner, struct worker_message *message)
{
    (void)owner;
    struct rdma_worker *worker =
        (struct rdma_worker *)((char *)message - offsetof(struct rdma_worker, leaving));
    worker->is_leaving = true;
    if (worker->channel_count == 0)
        rdma_group_leave(worker);
}

static struct rdma_worker *connected_by;

bool rdma_worker_connect(struct rdma_worker *worker, struct rdma_request *request)
{
    (void)request;
    connected_by = worker;
    return true;
}

bool rdma_worker_poll(struct rdma_worker *worker)
{
    (void)worker;
    return false;
}

bool rdma_worker_sleep(struct rdma_worker *worker)
{
    (void)worker;
    return true;
}

bool rdma_worker_has_ended(const struct rdma_worker *worker)
{
    (void)worker;
    return true;
}

bool rdma_worker_woken(struct rdma_worker *worker)
{
    (void)worker;
    return true;
}

struct transport *rdma_channel_wrap(struct rdma_channel *channel, struct transport *tcp)
{
    (void)channel;
    return tcp;
}

bool rdma_channel_stats(const struct transport *transport, struct rdma_stats *stats)
{
    (void)transport;
    (void)stats;
    return false;
}

void rdma_end_channel(struct rdma_channel *channel)
{
    (void)channel;
}

/* ---- what is done to it ---- */

static struct rdma_devices *devices;
static struct rdma_poll_group *group;

static void warn(void *arg, const char *text)
{
    (void)arg;
    (void)text;
}

static const struct rdma_options options = {
    .device = "", .gid_index = -1, .max_channels = 16, .warn = warn};

static void clear(void)
{
    memset(the.devices, 0, sizeof the.devices);
    the.opened = the.freed = the.tried = 0;
}

static void start(void)
{
    char message[RDMA_ERROR_MAX];
    devices = rdma_verbs_ops.start(&options, message);
    assert_non_null(devices);
    group = rdma_verbs_ops.attach(devices, NULL);
    assert_non_null(group);
}

static int set_up(void **state)
{
    (void)state;
    clear();
    plug(0, 10);
    plug(1, 11);
    start();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rdma_verbs_ops.halt(devices);
    while (visit_one())
        ;
    rdma_verbs_ops.stop(devices);
    assert_int_equal(the.opened, the.freed);
    return 0;
}

/* Whether it comes about. */
static bool await(bool (*is_so)(void))
{
    for (int i = 0; i < 20000 && !is_so(); i++) {
        const struct timespec pause = {.tv_nsec = 1000000};
        if (!visit_one())
            nanosleep(&pause, NULL);
    }
    return is_so();
}

static bool is_connected(void)
{
    return connected_by != NULL;
}

/* The index of the device that serves such a connection; `last`: of the address it has come to, 0:
 * it has none; of the peer's address. */
static int served_by(uint8_t last, uint8_t peer)
{
    static struct rdma_request request;
    request = (struct rdma_request){.path = {.has_local = last != 0, .has_peer = true}};
    address(request.path.local, last);
    address(request.path.peer, peer);
    connected_by = NULL;
    assert_true(rdma_verbs_ops.connect(group, &request));
    assert_true(await(is_connected));
    return connected_by->service->device.index;
}

static uint32_t ports_in_use(void)
{
    static struct rdma_info info;
    rdma_verbs_ops.info(devices, NULL, &info);
    return info.port_count;
}

static bool is_one_in_use(void)
{
    return ports_in_use() == 1;
}

static bool are_two_in_use(void)
{
    return ports_in_use() == 2;
}

static bool is_one_freed(void)
{
    return freed() == 1;
}

/* ---- cases ---- */

static void the_address_decides(void **state)
{
    (void)state;
    assert_int_equal(served_by(1, 200), 10);
    assert_int_equal(served_by(2, 200), 11);
    assert_int_equal(served_by(9, 200), 10);
}

/* What is sent to 127.0.0.2 comes from 127.0.0.1. */
static void else_the_route(void **state)
{
    (void)state;
    address(devices->services[0]->gids[0], 7);
    address(devices->services[1]->gids[0], 1);
    assert_int_equal(served_by(0, 2), 11);
    assert_int_equal(served_by(9, 2), 11);
}

static void a_port_that_is_down_gives_way(void **state)
{
    (void)state;
    devices->services[1]->is_active = false;
    assert_int_equal(served_by(2, 200), 10);
    devices->services[1]->is_active = true;
    assert_int_equal(served_by(2, 200), 11);
}

static void one_that_comes_serves_who_needs_it(void **state)
{
    (void)state;
    plug(2, 12);
    let_time_pass();
    assert_int_equal(served_by(3, 200), 12);
}

/* Its channels end first, and what was posted about it is visited. */
static void one_that_goes_is_let_go_of(void **state)
{
    (void)state;
    struct rdma_worker *worker = group->workers[1];
    worker->channel_count = 1;
    unplug(1);
    let_time_pass();
    assert_true(await(is_one_in_use));
    assert_int_equal(served_by(2, 200), 10);
    while (!worker->is_leaving)
        visit_one();
    assert_int_equal(group->worker_count, 2);
    assert_int_equal(freed(), 0);
    worker->channel_count = 0;
    rdma_group_leave(worker);
    assert_int_equal(group->worker_count, 1);
    assert_true(await(is_one_freed));
    plug(1, 21);
    let_time_pass();
    assert_true(await(are_two_in_use));
    assert_int_equal(served_by(2, 200), 21);
}

/* A service is kept as long as a worker has not visited the message that it is to leave. */
static void it_is_not_freed_too_early(void **state)
{
    (void)state;
    unplug(1);
    let_time_pass();
    while (group->worker_count == 2) {
        ports_in_use();
        visit_one();
    }
    for (int i = 0; i < 200; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
        assert_int_equal(freed(), 0);
    }
    assert_true(await(is_one_freed));
}

static void what_has_failed_is_left_alone(void **state)
{
    (void)state;
    rdma_device_gone(devices->services[1]);
    rdma_devices_changed(devices);
    assert_true(await(is_one_freed));
    for (int i = 0; i < 3; i++) {
        let_time_pass();
        assert_int_equal(served_by(2, 200), 10); /* after a look */
    }
    assert_int_equal(the.opened, 2);
    plug(1, 22); /* reset */
    let_time_pass();
    assert_int_equal(served_by(2, 200), 22);
}

static bool is_attaching(void)
{
    pthread_mutex_lock(&the.lock);
    bool is = the.is_attaching;
    pthread_mutex_unlock(&the.lock);
    return is;
}

static void make_slow(int index)
{
    pthread_mutex_lock(&the.lock);
    the.slow = index;
    pthread_mutex_unlock(&the.lock);
}

static bool are_three_in_use(void)
{
    return ports_in_use() == 3;
}

/* Each of them can serve by the new device, which is joined once. */
static void one_that_comes_while_groups_are_added(void **state)
{
    (void)state;
    make_slow(12);
    plug(2, 12);
    let_time_pass();
    ports_in_use(); /* has it looked for */
    assert_true(await(is_attaching));
    struct rdma_poll_group *second = rdma_verbs_ops.attach(devices, NULL);
    assert_non_null(second);
    make_slow(0);
    assert_true(await(are_three_in_use));
    struct rdma_poll_group *third = rdma_verbs_ops.attach(devices, NULL);
    assert_non_null(third);
    for (int i = 0; i < 100; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};
        visit_one();
        nanosleep(&pause, NULL);
    }
    assert_int_equal(group->worker_count, 3);
    assert_int_equal(second->worker_count, 3);
    assert_int_equal(third->worker_count, 3);
}

static void plug_useless(uint32_t at, int index)
{
    plug(at, index);
    pthread_mutex_lock(&the.lock);
    the.devices[at].is_useless = true;
    pthread_mutex_unlock(&the.lock);
}

/* It hides none of those behind it, is tried once, and again when it has been replaced. */
static void what_is_of_no_use_is_passed_over(void **state)
{
    clear();
    plug_useless(0, 10);
    plug(1, 11);
    start();
    assert_int_equal(ports_in_use(), 1);
    assert_int_equal(served_by(2, 200), 11);
    plug_useless(2, 12);
    plug(3, 13);
    let_time_pass();
    assert_true(await(are_two_in_use));
    for (int i = 0; i < 3; i++) {
        let_time_pass();
        assert_int_equal(served_by(9, 200), 11); /* after a look */
    }
    assert_int_equal(the.tried, 2);
    plug(0, 20);
    let_time_pass();
    assert_int_equal(served_by(1, 200), 20);
    tear_down(state);
}

static void the_reason_is_told_if_there_is_no_other(void **state)
{
    (void)state;
    char message[RDMA_ERROR_MAX];
    clear();
    plug_useless(0, 10);
    assert_null(rdma_verbs_ops.start(&options, message));
    assert_string_equal(message, "useless");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_address_decides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(else_the_route, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_port_that_is_down_gives_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_comes_serves_who_needs_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_comes_while_groups_are_added, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_goes_is_let_go_of, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_is_not_freed_too_early, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_has_failed_is_left_alone, set_up, tear_down),
        cmocka_unit_test(what_is_of_no_use_is_passed_over),
        cmocka_unit_test(the_reason_is_told_if_there_is_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
