#include "rdma-ext/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define GIDS_USUAL 255     /* of all ports of a device */
#define GIDS_MAX 2047      /* the system takes up to 64 KB */
#define GID_INDEX_MAX 255  /* that an address has room for */
#define SOFT_ROCE 0xffffff /* its vendor identifier */

/* A message is retransmitted after 4.096 us * 2^16, a quarter of a second, six times: a dead peer
 * is detected after two seconds. Soft-RoCE, and machines that share their processors, sometimes
 * acknowledge late, and retransmissions delay them further. Lost packets are rare where RoCE is
 * used, and usually reported through the packet after them. Seven would mean unlimited retries,
 * both for timeouts and for a receiver that is not ready. */
#define ACK_TIMEOUT 16
#define RETRIES 6

/* ---- choosing ---- */

static bool is_mapped_ipv4(const union ibv_gid *gid)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(gid->raw, prefix, sizeof prefix) == 0;
}

/* RoCE version 2 with an IPv4 address comes before any other address; link-local ones are last. */
static int worth(const struct ibv_gid_entry *entry)
{
    if (entry->gid_type == IBV_GID_TYPE_ROCE_V1)
        return 0;
    if (is_mapped_ipv4(&entry->gid))
        return 3;
    return entry->gid.raw[0] == 0xfe ? 1 : 2;
}

/* Keeps those entries of all ports that belong to this one, and can be used. */
static ssize_t keep_own(const struct rdma_device *device, struct ibv_gid_entry *entries,
                        ssize_t count)
{
    ssize_t kept = 0;
    for (ssize_t i = 0; i < count; i++)
        if (entries[i].port_num == device->port && entries[i].gid_index <= GID_INDEX_MAX)
            entries[kept++] = entries[i];
    return kept;
}

/* Gets the entries of the device's port, which the caller frees, and returns their number; -1: they
 * cannot be had. The system refuses to fill an array that has not room for the entries of all
 * ports. */
static ssize_t own_gids(const struct rdma_device *device, struct ibv_gid_entry **entries)
{
    ssize_t count = -EINVAL;
    *entries = NULL;
    for (size_t size = GIDS_USUAL; count == -EINVAL && size <= GIDS_MAX; size = 2 * size + 1) {
        free(*entries);
        *entries = malloc(size * sizeof **entries);
        if (*entries == NULL)
            return -1;
        count = ibv_query_gid_table(device->context, *entries, size, 0);
    }
    return count < 0 ? -1 : keep_own(device, *entries, count);
}

static bool choose_gid(struct rdma_device *device, const struct rdma_choice *choice)
{
    struct ibv_gid_entry *entries;
    ssize_t count = own_gids(device, &entries);
    int best = -1;
    for (ssize_t i = 0; i < count; i++) {
        const struct ibv_gid_entry *entry = &entries[i];
        if (worth(entry) <= best)
            continue;
        if (choice->gid_index >= 0 && entry->gid_index != (uint32_t)choice->gid_index)
            continue;
        if (choice->address != NULL && memcmp(entry->gid.raw, choice->address, 16) != 0)
            continue;
        best = worth(entry);
        device->gid = entry->gid;
        device->gid_index = (int)entry->gid_index;
    }
    free(entries);
    return best >= 0;
}

static bool is_left_out(const struct rdma_choice *choice, const struct rdma_device *device,
                        uint8_t port)
{
    return choice->is_left_out != NULL &&
           choice->is_left_out(choice->arg, device->name, device->index, port);
}

static bool choose_port(struct rdma_device *device, const struct rdma_choice *choice)
{
    struct ibv_device_attr limits;
    if (ibv_query_device(device->context, &limits) != 0)
        return false;
    device->has_windows = (limits.device_cap_flags &
                           (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) != 0;
    device->ends_key = IBV_WC_WITH_INV;
    if (limits.vendor_id == SOFT_ROCE)
        device->ends_key |= IBV_WC_IP_CSUM_OK; /* Soft-RoCE reports it by the kernel's bit */
    device->port_count = limits.phys_port_cnt;
    device->max_cqe = limits.max_cqe;
    device->max_srq_wr = limits.max_srq_wr;
    device->max_qp_wr = limits.max_qp_wr;
    device->max_sge = limits.max_sge;
    if (limits.max_sge_rd > 0 && limits.max_sge_rd < limits.max_sge)
        device->max_sge = limits.max_sge_rd;
    device->max_read_atomic = limits.max_qp_rd_atom;
    for (int number = 1; number <= limits.phys_port_cnt; number++) {
        struct ibv_port_attr port;
        if ((choice->port != 0 && choice->port != number) ||
            is_left_out(choice, device, (uint8_t)number))
            continue;
        if (ibv_query_port(device->context, (uint8_t)number, &port) != 0 ||
            port.state != IBV_PORT_ACTIVE)
            continue;
        device->port = (uint8_t)number;
        device->lid = port.lid;
        device->mtu = port.active_mtu;
        device->is_ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
        if (choose_gid(device, choice))
            return true;
    }
    return false;
}

static bool is_any(const struct rdma_choice *choice)
{
    return choice->name == NULL || choice->name[0] == '\0';
}

static bool is_called(struct ibv_device *candidate, const struct rdma_choice *choice)
{
    static const char separators[] = " ,";
    const char *name = ibv_get_device_name(candidate), *at = choice->name;
    size_t length = strlen(name);
    if (is_any(choice))
        return true;
    while (*at != '\0') {
        size_t here = strcspn(at, separators);
        if (here == length && memcmp(at, name, length) == 0)
            return true;
        at += here + strspn(at + here, separators);
    }
    return false;
}

/* What came of the devices that were tried. */
struct outcome {
    int count, named;
    const char *refused; /* the name of the first one that the system did not open; or NULL */
    int error;           /* of that */
};

static void note_refused(struct outcome *outcome, struct ibv_device *candidate)
{
    if (outcome->refused != NULL)
        return;
    outcome->error = errno;
    outcome->refused = ibv_get_device_name(candidate);
}

static bool open_one(struct rdma_device *device, struct ibv_device *candidate,
                     const struct rdma_choice *choice, struct outcome *outcome)
{
    *device = (struct rdma_device){.name = ibv_get_device_name(candidate),
                                   .index = ibv_get_device_index(candidate)};
    if (is_left_out(choice, device, 0))
        return false;
    errno = 0;
    device->context = ibv_open_device(candidate);
    if (device->context == NULL) {
        note_refused(outcome, candidate);
        return false;
    }
    device->name = ibv_get_device_name(device->context->device);
    if (choose_port(device, choice)) {
        errno = 0;
        device->pd = ibv_alloc_pd(device->context);
        if (device->pd != NULL)
            return true;
        note_refused(outcome, candidate);
    }
    ibv_close_device(device->context);
    *device = (struct rdma_device){.context = NULL};
    return false;
}

static void describe(const struct outcome *outcome, const struct rdma_choice *choice,
                     char message[RDMA_MESSAGE_MAX])
{
    if (outcome->count == 0)
        snprintf(message, RDMA_MESSAGE_MAX, "there is no RDMA device");
    else if (outcome->named == 0)
        snprintf(message, RDMA_MESSAGE_MAX, "no RDMA device is called '%s'", choice->name);
    else if (outcome->refused != NULL)
        snprintf(message, RDMA_MESSAGE_MAX, "the RDMA device %s cannot be opened: %s",
                 outcome->refused,
                 outcome->error != 0 ? strerror(outcome->error) : "no reason is given");
    else if (is_any(choice))
        snprintf(message, RDMA_MESSAGE_MAX,
                 "none of %d RDMA devices has a port that is active and fits", outcome->count);
    else
        snprintf(message, RDMA_MESSAGE_MAX,
                 "the RDMA device %s has no port that is active and fits", choice->name);
}

bool rdma_device_open(struct rdma_device *device, const struct rdma_choice *choice,
                      char message[RDMA_MESSAGE_MAX])
{
    struct outcome outcome = {.refused = NULL};
    struct ibv_device **list = ibv_get_device_list(&outcome.count);
    bool is_open = false;
    for (int i = 0; i < outcome.count && !is_open; i++) {
        if (!is_called(list[i], choice))
            continue;
        outcome.named++;
        is_open = open_one(device, list[i], choice, &outcome);
    }
    if (!is_open)
        describe(&outcome, choice, message); /* before the names are gone */
    if (list != NULL)
        ibv_free_device_list(list);
    return is_open;
}

bool rdma_devices_list(struct rdma_listed *listed, uint32_t size, uint32_t *count)
{
    int there = 0;
    struct ibv_device **list = ibv_get_device_list(&there);
    bool is_whole = list != NULL && (uint32_t)there <= size;
    for (*count = 0; is_whole && *count < (uint32_t)there; ++*count) {
        struct rdma_listed *entry = &listed[*count];
        snprintf(entry->name, sizeof entry->name, "%s", ibv_get_device_name(list[*count]));
        entry->index = ibv_get_device_index(list[*count]);
    }
    if (list != NULL)
        ibv_free_device_list(list);
    return is_whole;
}

void rdma_device_close(struct rdma_device *device)
{
    ibv_dealloc_pd(device->pd);
    ibv_close_device(device->context);
    *device = (struct rdma_device){.context = NULL};
}

void rdma_device_speak_from(struct rdma_device *device, const uint8_t address[16])
{
    const struct rdma_choice choice = {.gid_index = -1, .address = address};
    choose_gid(device, &choice);
}

static bool is_among(uint8_t gids[][16], uint32_t count, const uint8_t *gid)
{
    uint32_t i = 0;
    while (i < count && memcmp(gids[i], gid, sizeof gids[i]) != 0)
        i++;
    return i < count;
}

bool rdma_device_gids(const struct rdma_device *device, uint8_t gids[][16], uint32_t size,
                      uint32_t *count)
{
    struct ibv_gid_entry *entries;
    ssize_t all = own_gids(device, &entries);
    *count = 0;
    for (ssize_t i = 0; i < all && *count < size; i++)
        if (!is_among(gids, *count, entries[i].gid.raw))
            memcpy(gids[(*count)++], entries[i].gid.raw, sizeof gids[0]);
    free(entries);
    return all >= 0;
}

bool rdma_device_look(const struct rdma_device *device, struct rdma_port *port)
{
    struct ibv_port_attr attributes;
    if (ibv_query_port(device->context, device->port, &attributes) != 0)
        return false;
    port->is_active = attributes.state == IBV_PORT_ACTIVE;
    port->lid = attributes.lid;
    port->mtu = attributes.active_mtu;
    return true;
}

uint32_t rdma_mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

const char rdma_no_pin[] = "memory cannot be pinned";

/* The kernel returns EPERM if the limit on locked memory is 0. */
void rdma_memory_problem(char message[RDMA_MESSAGE_MAX], const char *what, int error)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    int length = snprintf(message, RDMA_MESSAGE_MAX, "%s: %s", what, strerror(error));
    if ((error == ENOMEM || error == EPERM) && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
        limit.rlim_cur != RLIM_INFINITY)
        snprintf(message + length, (size_t)(RDMA_MESSAGE_MAX - length),
                 " (of locked memory %llu KB are allowed: ulimit -l)",
                 (unsigned long long)limit.rlim_cur / 1024);
}

/* ---- queue pairs ---- */

struct ibv_qp *rdma_qp_make(const struct rdma_device *device, struct ibv_qp_init_attr *attributes,
                            unsigned access)
{
    attributes->qp_type = IBV_QPT_RC;
    struct ibv_qp *qp = ibv_create_qp(device->pd, attributes);
    while (qp == NULL && attributes->cap.max_inline_data > 0) {
        attributes->cap.max_inline_data /= 2;
        qp = ibv_create_qp(device->pd, attributes);
    }
    if (qp == NULL)
        return NULL;
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT, .port_num = device->port, .qp_access_flags = access};
    int error = ibv_modify_qp(qp, &init,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error == 0)
        return qp;
    ibv_destroy_qp(qp);
    errno = error;
    return NULL;
}

void rdma_qp_describe(const struct rdma_device *device, const struct ibv_qp *qp, uint32_t psn,
                      struct rdma_end *end)
{
    memcpy(end->gid, device->gid.raw, sizeof end->gid);
    end->lid = device->lid;
    end->qpn = qp->qp_num;
    end->psn = psn;
    end->mtu = rdma_mtu_bytes(device->mtu);
}

static enum ibv_mtu common_mtu(const struct rdma_device *device, uint32_t theirs)
{
    enum ibv_mtu mtu = IBV_MTU_256;
    while (mtu < device->mtu && rdma_mtu_bytes(mtu) < theirs)
        mtu++;
    return mtu;
}

static struct ibv_ah_attr address_of(const struct rdma_device *device,
                                     const struct rdma_end *theirs)
{
    struct ibv_ah_attr address = {
        .is_global = 1, .dlid = (uint16_t)theirs->lid, .port_num = device->port};
    memcpy(address.grh.dgid.raw, theirs->gid, sizeof theirs->gid);
    address.grh.sgid_index = (uint8_t)device->gid_index;
    address.grh.hop_limit = 64;
    return address;
}

int rdma_qp_connect(const struct rdma_device *device, struct ibv_qp *qp,
                    const struct rdma_end *ours, const struct rdma_end *theirs,
                    uint8_t min_rnr_timer)
{
    struct ibv_qp_attr receive = {
        .qp_state = IBV_QPS_RTR,
        .ah_attr = address_of(device, theirs),
        .path_mtu = common_mtu(device, theirs->mtu),
        .dest_qp_num = theirs->qpn,
        .rq_psn = theirs->psn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = min_rnr_timer,
    };
    int error = ibv_modify_qp(qp, &receive,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (error != 0)
        return error;
    struct ibv_qp_attr send = {
        .qp_state = IBV_QPS_RTS,
        .timeout = ACK_TIMEOUT,
        .retry_cnt = RETRIES,
        .rnr_retry = RETRIES,
        .sq_psn = ours->psn,
        .max_rd_atomic = 4,
    };
    return ibv_modify_qp(qp, &send,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}
