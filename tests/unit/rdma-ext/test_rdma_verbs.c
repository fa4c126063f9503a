/*
 * Opening a device, on a system whose devices and their failures the test says.
 */
#include "rdma-ext/verbs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define DEVICES 2

/* ---- in place of libibverbs ---- */

static struct {
    struct ibv_device device;
    struct ibv_context context;
    struct ibv_pd pd;
    const char *name;
    int open_error, pd_error; /* -1: it fails and gives no reason */
    bool is_down;
    size_t gids; /* more than the one at the place 0 */
} the[DEVICES];

static int opened;

static int number_of(const struct ibv_device *device)
{
    return device == &the[1].device;
}

struct ibv_device **ibv_get_device_list(int *count)
{
    static struct ibv_device *list[DEVICES + 1];
    *count = 0;
    for (int i = 0; i < DEVICES; i++)
        if (the[i].name != NULL)
            list[(*count)++] = &the[i].device;
    list[*count] = NULL;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    (void)list;
    errno = EBADF;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return the[number_of(device)].name;
}

int ibv_get_device_index(struct ibv_device *device)
{
    return number_of(device);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    int i = number_of(device);
    if (the[i].open_error > 0)
        errno = the[i].open_error;
    if (the[i].open_error != 0)
        return NULL;
    opened++;
    the[i].context.device = device;
    return &the[i].context;
}

int ibv_close_device(struct ibv_context *context)
{
    (void)context;
    opened--;
    errno = EBADF;
    return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    int i = number_of(context->device);
    if (the[i].pd_error > 0)
        errno = the[i].pd_error;
    return the[i].pd_error == 0 ? &the[i].pd : NULL;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    (void)pd;
    return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *limits)
{
    (void)context;
    *limits = (struct ibv_device_attr){.phys_port_cnt = 1};
    return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t number, struct _compat_ibv_port_attr *port)
{
    (void)number;
    ((struct ibv_port_attr *)(void *)port)->state =
        the[number_of(context->device)].is_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                             size_t most, uint32_t flags, size_t size)
{
    const size_t gids = the[number_of(context->device)].gids;
    (void)flags;
    (void)size;
    if (most <= gids || most * sizeof *entries > UINT16_MAX)
        return -EINVAL;
    entries[0] = (struct ibv_gid_entry){.port_num = 1, .gid_type = IBV_GID_TYPE_ROCE_V2};
    for (uint32_t i = 1; i <= gids; i++)
        entries[i] = (struct ibv_gid_entry){
            .port_num = 1,
            .gid_index = i,
            .gid_type = IBV_GID_TYPE_ROCE_V2,
            .gid = {.raw = {1, [14] = (uint8_t)(i >> 8), [15] = (uint8_t)i}}};
    return (ssize_t)gids + 1;
}

/* ---- cases ---- */

static int set_up(void **state)
{
    (void)state;
    memset(the, 0, sizeof the);
    the[0].name = "first";
    the[1].name = "second";
    opened = 0;
    return 0;
}

static void is_refused(const char *name, const char *reason)
{
    const struct rdma_choice choice = {.name = name, .gid_index = -1};
    struct rdma_device device;
    char message[RDMA_MESSAGE_MAX] = "";
    assert_false(rdma_device_open(&device, &choice, message));
    assert_string_equal(message, reason);
    assert_int_equal(opened, 0);
}

static void what_cannot_be_opened_is_told_with_the_reason(void **state)
{
    (void)state;
    the[0].open_error = EACCES;
    the[1].is_down = true;
    is_refused("", "the RDMA device first cannot be opened: Permission denied");
    is_refused("second first", "the RDMA device first cannot be opened: Permission denied");
    the[0].open_error = -1;
    is_refused("", "the RDMA device first cannot be opened: no reason is given");
    the[0].open_error = 0;
    the[0].pd_error = ENOMEM;
    is_refused("", "the RDMA device first cannot be opened: Cannot allocate memory");
    the[1].open_error = EMFILE;
    is_refused("", "the RDMA device first cannot be opened: Cannot allocate memory");
}

static void what_does_not_fit_is_told(void **state)
{
    (void)state;
    the[0].is_down = the[1].is_down = true;
    is_refused("", "none of 2 RDMA devices has a port that is active and fits");
    is_refused("second", "the RDMA device second has no port that is active and fits");
    is_refused("third", "no RDMA device is called 'third'");
    the[0].open_error = EACCES;
    is_refused("second", "the RDMA device second has no port that is active and fits");
    the[0].name = the[1].name = NULL;
    is_refused("", "there is no RDMA device");
}

static void the_next_one_is_opened_instead(void **state)
{
    (void)state;
    const struct rdma_choice choice = {.gid_index = -1};
    struct rdma_device device;
    char message[RDMA_MESSAGE_MAX];
    the[0].open_error = EACCES;
    assert_true(rdma_device_open(&device, &choice, message));
    assert_string_equal(device.name, "second");
    rdma_device_close(&device);
    assert_int_equal(opened, 0);
}

/* Those beyond the 255th cannot be named to the system. */
static void a_device_with_many_gids(void **state)
{
    (void)state;
    static uint8_t gids[1000][16];
    const uint8_t far[16] = {1, [14] = 1, [15] = 44}, near[16] = {1, [15] = 200};
    struct rdma_choice choice = {.gid_index = -1, .address = near};
    struct rdma_device device;
    char message[RDMA_MESSAGE_MAX];
    uint32_t count;
    the[0].gids = 2000;
    assert_true(rdma_device_open(&device, &choice, message));
    assert_int_equal(device.gid_index, 200);
    assert_true(rdma_device_gids(&device, gids, 1000, &count));
    assert_int_equal(count, 256);
    rdma_device_close(&device);
    the[1].name = NULL;
    choice.address = far;
    assert_false(rdma_device_open(&device, &choice, message));
}

static void gids_that_cannot_be_listed(void **state)
{
    (void)state;
    uint8_t gids[4][16];
    const struct rdma_choice choice = {.gid_index = -1};
    struct rdma_device device;
    char message[RDMA_MESSAGE_MAX];
    uint32_t count;
    assert_true(rdma_device_open(&device, &choice, message));
    the[0].gids = SIZE_MAX;
    assert_false(rdma_device_gids(&device, gids, 4, &count));
    rdma_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_cannot_be_opened_is_told_with_the_reason, set_up),
        cmocka_unit_test_setup(what_does_not_fit_is_told, set_up),
        cmocka_unit_test_setup(the_next_one_is_opened_instead, set_up),
        cmocka_unit_test_setup(a_device_with_many_gids, set_up),
        cmocka_unit_test_setup(gids_that_cannot_be_listed, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
