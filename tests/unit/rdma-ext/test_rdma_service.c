/*
 * The helper's list of jobs, on a device that has only a port to look at.
 */
#include "rdma-ext/devices.h"
#include "rdma-ext/setup_jobs.h"
#include "rdma-ext/failure.h"
#include "rdma-ext/page_registration.h"
#include "rdma-ext/port.h"
#include "rdma-ext/resolve.h"
#include "rdma-ext/service.h"
#include "rdma-ext/completion_loop.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- in place of the rest ---- */

static struct ibv_context context;
static int completions = 65536, receives = 65536; /* the most that the device has */

bool rdma_device_open(struct rdma_device *device, const struct rdma_choice *choice,
                      char message[RDMA_MESSAGE_MAX])
{
    (void)choice;
    (void)message;
    context.async_fd = eventfd(0, EFD_NONBLOCK);
    *device = (struct rdma_device){.context = &context,
                                   .name = "device",
                                   .index = 7,
                                   .port = 1,
                                   .max_cqe = completions,
                                   .max_srq_wr = receives};
    return context.async_fd >= 0;
}

void rdma_device_close(struct rdma_device *device)
{
    close(device->context->async_fd);
}

bool rdma_device_gids(const struct rdma_device *device, uint8_t gids[][16], uint32_t size,
                      uint32_t *count)
{
    (void)device;
    (void)size;
    memset(gids[0], 0, sizeof gids[0]);
    *count = 1;
    return true;
}

bool rdma_device_look(const struct rdma_device *device, struct rdma_port *port)
{
    (void)device;
    port->is_active = true;
    return true;
}

uint32_t rdma_mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

bool rdma_may_pin_at_all(struct rdma_service *service, char message[RDMA_ERROR_MAX])
{
    (void)service;
    (void)message;
    return true;
}

bool rdma_take_events(struct rdma_service *service)
{
    (void)service;
    return true;
}

void rdma_resolvers_stop(struct rdma_service *service)
{
    (void)service;
}

void rdma_pages_free(struct rdma_service *service)
{
    free(service->regions);
}

struct rdma_worker *rdma_worker_new(struct rdma_service *service, struct rdma_poll_group *group)
{
    (void)service;
    (void)group;
    return NULL;
}

void rdma_worker_free(struct rdma_worker *worker)
{
    (void)worker;
}

/* ---- jobs that take as long as the test wants ---- */

struct slow_job {
    struct rdma_job job; /* first */
    bool looks;          /* like one that connects */
    sem_t begun, let_go, done;
};

static void run(struct rdma_service *service, struct rdma_job *job)
{
    struct slow_job *slow = (struct slow_job *)job;
    sem_post(&slow->begun);
    sem_wait(&slow->let_go);
    if (slow->looks)
        rdma_look_at_port(service);
    sem_post(&slow->done);
}

static void submit(struct rdma_service *service, struct slow_job *slow, bool looks)
{
    slow->job.run = run;
    slow->looks = looks;
    sem_init(&slow->begun, 0, 0);
    sem_init(&slow->let_go, 0, 0);
    sem_init(&slow->done, 0, 0);
    rdma_submit(service, &slow->job);
}

static bool has_ended(struct slow_job *slow)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    return sem_timedwait(&slow->done, &until) == 0;
}

/* Long enough for what was seen of the port to be old. */
static void grow_old(void)
{
    const struct timespec time = {.tv_sec = 1, .tv_nsec = 100 * 1000 * 1000};
    nanosleep(&time, NULL);
}

/* Figures are requested again and again while the helper is slow, so that it also queries the port
 * by itself: no job may be lost. */
static void no_job_is_lost(void **state)
{
    (void)state;
    const struct rdma_options options = {.device = "", .gid_index = -1, .max_channels = 16};
    const struct rdma_choice choice = {.gid_index = -1};
    static struct rdma_devices devices;
    struct rdma_port_info figures;
    char message[RDMA_ERROR_MAX];
    devices.options = options;
    struct rdma_listed unusable;
    struct rdma_service *service = rdma_service_open(&devices, &choice, &unusable, message);
    assert_non_null(service);
    assert_string_equal(unusable.name, "");
    static struct slow_job connecting, other, last;
    submit(service, &connecting, true);
    submit(service, &other, false);
    grow_old();
    rdma_service_describe(service, &figures);
    submit(service, &last, false);
    sem_post(&connecting.let_go);
    sem_wait(&other.begun);
    grow_old();
    rdma_service_describe(service, &figures);
    sem_post(&other.let_go);
    sem_post(&last.let_go);
    assert_true(has_ended(&last));
    rdma_service_halt(service);
    rdma_service_free(service);
}

/* With queues that have no room for a channel the device is of no use, and is not opened. */
static void short_queues_are_refused(void **state)
{
    (void)state;
    static const struct {
        int completions, receives;
        bool is_enough;
    } cases[] = {{0, 65536, false},  {100, 65536, false},  {49 * 16, 65536, false},
                 {65536, 1, false},  {65536, 128, false},  {49 * 17, 136, true},
                 {-1, 65536, false}, {49 * 17, 135, false}};
    const struct rdma_options options = {.device = "", .gid_index = -1, .max_channels = 16};
    const struct rdma_choice choice = {.gid_index = -1};
    static struct rdma_devices devices;
    devices.options = options;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[RDMA_ERROR_MAX] = "";
        completions = cases[i].completions;
        receives = cases[i].receives;
        struct rdma_listed unusable;
        struct rdma_service *service = rdma_service_open(&devices, &choice, &unusable, message);
        assert_int_equal(service != NULL, cases[i].is_enough);
        if (service == NULL) {
            assert_non_null(strstr(message, "queues are too short"));
            assert_string_equal(unusable.name, "device");
            assert_int_equal(unusable.index, 7);
            continue;
        }
        assert_int_equal(service->max_channels, 1);
        rdma_service_halt(service);
        rdma_service_free(service);
    }
    completions = receives = 65536;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_job_is_lost),
        cmocka_unit_test(short_queues_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
