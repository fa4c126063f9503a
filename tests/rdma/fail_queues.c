/*
 * Preloaded into the server under test: queues of the kind that VELLUM_FAILING names (cq, srq, qp)
 * cannot be had, with the error VELLUM_ERRNO.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

typedef struct ibv_cq *create_cq(struct ibv_context *context, int size, void *arg,
                                 struct ibv_comp_channel *channel, int vector);
typedef struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attributes);
typedef struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes);

static bool fails(const char *kind)
{
    const char *failing = getenv("VELLUM_FAILING"), *error = getenv("VELLUM_ERRNO");
    if (failing == NULL || error == NULL || strcmp(failing, kind) != 0)
        return false;
    errno = atoi(error);
    return true;
}

static uintptr_t real(const char *name)
{
    return (uintptr_t)dlsym(RTLD_NEXT, name);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int size, void *arg,
                             struct ibv_comp_channel *channel, int vector)
{
    create_cq *create = (create_cq *)real("ibv_create_cq");
    return fails("cq") ? NULL : create(context, size, arg, channel, vector);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attributes)
{
    create_srq *create = (create_srq *)real("ibv_create_srq");
    return fails("srq") ? NULL : create(pd, attributes);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes)
{
    create_qp *create = (create_qp *)real("ibv_create_qp");
    return fails("qp") ? NULL : create(pd, attributes);
}
