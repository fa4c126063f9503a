/*
 * Fibers, on ucontext(3).
 *
 * Invariants:
 * 1. A fiber's stack is as large as a thread's, because commands do not know which one they run
 *    on. The kernel backs only the pages that were touched. A guard page lies below the stack.
 * 2. Each switch is reported to the sanitizers, which keep their state per stack.
 */
#include "server/base/fiber.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES ((size_t)8 << 20)
#define GUARD_BYTES ((size_t)64 << 10)
#define KEPT_BYTES ((size_t)64 << 10) /* of a spare fiber's stack */
#define PAGE_BYTES ((size_t)4096)

struct fiber {
    ucontext_t self, caller;
    char *stack;
    void (*function)(void *arg);
    void *arg;
    bool has_begun, has_ended;
    uint64_t bytes;               /* counted in its pool */
    void *own_mark, *caller_mark; /* sanitizer state */
    const void *caller_stack;
    size_t caller_bytes;
};

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN
#elif __has_feature(thread_sanitizer)
#define FIBER_TSAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN
#elif defined(__SANITIZE_THREAD__)
#define FIBER_TSAN
#endif

#if defined(FIBER_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

static void before_entering(struct fiber *fiber)
{
    __sanitizer_start_switch_fiber(&fiber->caller_mark, fiber->stack + GUARD_BYTES, STACK_BYTES);
}

static void after_entering(struct fiber *fiber)
{
    __sanitizer_finish_switch_fiber(fiber->own_mark, &fiber->caller_stack, &fiber->caller_bytes);
}

static void before_leaving(struct fiber *fiber)
{
    __sanitizer_start_switch_fiber(fiber->has_ended ? NULL : &fiber->own_mark, fiber->caller_stack,
                                   fiber->caller_bytes);
}

static void after_leaving(struct fiber *fiber)
{
    __sanitizer_finish_switch_fiber(fiber->caller_mark, NULL, NULL);
}

/* The frames of a function that was given up keep their redzones otherwise. */
static void forget_marks(struct fiber *fiber)
{
    fiber->own_mark = NULL;
    __asan_unpoison_memory_region(fiber->stack + GUARD_BYTES, STACK_BYTES);
}
#elif defined(FIBER_TSAN)
#include <sanitizer/tsan_interface.h>

static void before_entering(struct fiber *fiber)
{
    if (fiber->own_mark == NULL)
        fiber->own_mark = __tsan_create_fiber(0);
    fiber->caller_mark = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber->own_mark, 0);
}

static void after_entering(struct fiber *fiber)
{
    (void)fiber;
}

static void before_leaving(struct fiber *fiber)
{
    __tsan_switch_to_fiber(fiber->caller_mark, 0);
}

static void after_leaving(struct fiber *fiber)
{
    (void)fiber;
}

static void forget_marks(struct fiber *fiber)
{
    if (fiber->own_mark != NULL)
        __tsan_destroy_fiber(fiber->own_mark);
    fiber->own_mark = NULL;
}
#else
static void before_entering(struct fiber *fiber)
{
    (void)fiber;
}

static void after_entering(struct fiber *fiber)
{
    (void)fiber;
}

static void before_leaving(struct fiber *fiber)
{
    (void)fiber;
}

static void after_leaving(struct fiber *fiber)
{
    (void)fiber;
}

static void forget_marks(struct fiber *fiber)
{
    (void)fiber;
}
#endif

static void set_bytes(struct fiber_pool *pool, struct fiber *fiber, uint64_t bytes)
{
    uint64_t all = atomic_load_explicit(&pool->bytes, memory_order_relaxed);
    atomic_store_explicit(&pool->bytes, all + bytes - fiber->bytes, memory_order_relaxed);
    fiber->bytes = bytes;
}

/* Stacks grow downwards: the lowest resident page tells how deep it has been. */
uint64_t fiber_measure(struct fiber_pool *pool, struct fiber *fiber)
{
    unsigned char is_resident[STACK_BYTES / PAGE_BYTES];
    size_t page = 0, pages = sizeof is_resident;
    if (mincore(fiber->stack + GUARD_BYTES, STACK_BYTES, is_resident) == 0) {
        while (page < pages && (is_resident[page] & 1) == 0)
            page++;
        set_bytes(pool, fiber, (pages - page) * PAGE_BYTES);
    }
    return fiber->bytes;
}

struct fiber *fiber_new(struct fiber_pool *pool)
{
    if (pool->spare_count > 0) {
        pool->used_count++;
        return pool->spares[--pool->spare_count];
    }
    struct fiber *fiber = calloc(1, sizeof *fiber);
    if (fiber == NULL)
        return NULL;
    fiber->stack = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (fiber->stack == MAP_FAILED || mprotect(fiber->stack, GUARD_BYTES, PROT_NONE) != 0) {
        if (fiber->stack != MAP_FAILED)
            munmap(fiber->stack, GUARD_BYTES + STACK_BYTES);
        free(fiber);
        return NULL;
    }
    pool->used_count++;
    return fiber;
}

static void destroy(struct fiber *fiber)
{
    munmap(fiber->stack, GUARD_BYTES + STACK_BYTES);
    free(fiber);
}

void fiber_free(struct fiber_pool *pool, struct fiber *fiber)
{
    if (fiber == NULL)
        return;
    forget_marks(fiber);
    fiber->has_begun = fiber->has_ended = false;
    pool->used_count--;
    if (pool->spare_count == FIBER_SPARES) {
        set_bytes(pool, fiber, 0);
        destroy(fiber);
        return;
    }
    set_bytes(pool, fiber, fiber->bytes < KEPT_BYTES ? fiber->bytes : KEPT_BYTES);
    madvise(fiber->stack + GUARD_BYTES, STACK_BYTES - KEPT_BYTES, MADV_DONTNEED);
    pool->spares[pool->spare_count++] = fiber;
}

void fiber_pool_free(struct fiber_pool *pool)
{
    while (pool->spare_count > 0) {
        struct fiber *fiber = pool->spares[--pool->spare_count];
        set_bytes(pool, fiber, 0);
        destroy(fiber);
    }
}

/* makecontext() passes ints, so the pointer is passed in two halves. */
static void begin(unsigned high, unsigned low)
{
    struct fiber *fiber = (struct fiber *)((uintptr_t)high << 32 | low);
    after_entering(fiber);
    fiber->function(fiber->arg);
    fiber->has_ended = true;
    before_leaving(fiber);
    swapcontext(&fiber->self, &fiber->caller);
}

bool fiber_enter(struct fiber *fiber, void (*function)(void *arg), void *arg)
{
    if (!fiber->has_begun) {
        uintptr_t self = (uintptr_t)fiber;
        fiber->has_begun = true;
        fiber->function = function;
        fiber->arg = arg;
        getcontext(&fiber->self);
        fiber->self.uc_stack.ss_sp = fiber->stack + GUARD_BYTES;
        fiber->self.uc_stack.ss_size = STACK_BYTES;
        fiber->self.uc_link = NULL;
        makecontext(&fiber->self, (void (*)(void))begin, 2, (unsigned)(self >> 32), (unsigned)self);
    }
    before_entering(fiber);
    swapcontext(&fiber->caller, &fiber->self);
    after_leaving(fiber);
    return fiber->has_ended;
}

void fiber_leave(struct fiber *fiber)
{
    before_leaving(fiber);
    swapcontext(&fiber->self, &fiber->caller);
    after_entering(fiber);
}
