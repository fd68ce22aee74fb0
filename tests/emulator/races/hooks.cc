/* Code that is compiled with -fsanitize=thread calls these functions at each access. They replace ThreadSanitizer's
 * library, which does not support fibers, and check whether the accesses are ordered. */
#include <cstring>

#include "tests/emulator/races/flow.h"
#include "tests/emulator/races/order.h"
#include "tests/emulator/races/report.h"
#include "tests/emulator/races/shadow.h"
#include "tests/emulator/threads/watch.h"

namespace emulation
{

/* Host code is instrumented, too, but does not run on a fiber's stack. Threads do not share their stacks, so accesses
 * to them are ignored. */
static inline void
seen(const void *p, size_t n, access what, const void *from)
{
    const char *frame = (const char *)__builtin_frame_address(0);
    if (!running.room.has(frame))
        shadow_host(p, n, what, where_of_code(from));
    else if (!running.room.has(p))
        shadow_access(p, n, what, 0, where_of_code(from));
}

static void
atomic_seen(const void *p, size_t n, atomic_kind kind, unsigned order, site where)
{
    shadow_access(p, n, kind == LOADS ? READ : WRITE, (order & NARROW) != 0 ? 2 : 1, where_of_site(where));
    order_atomic(p, kind, order);
}

static void
constant_seen(const void *p, size_t n, site where)
{
    shadow_constant(p, n, where_of_site(where));
}

static void
grid_begins()
{
    order_grid_begins();
    shadow_grid_begins();
}

static void
blocks_begin()
{
    order_blocks_begin();
    shadow_blocks_begin();
}

static void
frees(const void *p, size_t n, site where)
{
    shadow_frees(p, n, where_of_site(where));
}

static const watcher here_it_is = {
    shadow_allocated, shadow_freed,    grid_begins,  blocks_begin,    order_block_met, order_lanes_met,
    order_warp_came,  order_named_met, order_fenced, atomic_seen,     constant_seen,   flow_stream_begins,
    flow_stream_ends, flow_queued,     flow_follows, flow_waited_for, frees,           shadow_moves};

__attribute__((constructor)) static void
watch()
{
    watching = &here_it_is;
}

} // namespace emulation

using emulation::READ;
using emulation::WRITE;
#define HOOK extern "C" __attribute__((visibility("default"), noinline)) void
#define ACCESS(name, bytes, what)                                                                                      \
    HOOK __tsan_##name##bytes(const void *p)                                                                           \
    {                                                                                                                  \
        emulation::seen(p, bytes, what, __builtin_return_address(0));                                                  \
    }
#define ACCESSES(bytes)                                                                                                \
    ACCESS(read, bytes, READ)                                                                                          \
    ACCESS(write, bytes, WRITE)                                                                                        \
    ACCESS(unaligned_read, bytes, READ)                                                                                \
    ACCESS(unaligned_write, bytes, WRITE)                                                                              \
    ACCESS(read_write, bytes, WRITE)                                                                                   \
    ACCESS(unaligned_read_write, bytes, WRITE)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

HOOK
__tsan_read_range(const void *p, size_t n)
{
    emulation::seen(p, n, READ, __builtin_return_address(0));
}
HOOK
__tsan_write_range(const void *p, size_t n)
{
    emulation::seen(p, n, WRITE, __builtin_return_address(0));
}
HOOK
__tsan_vptr_update(const void *p, const void *)
{
    emulation::seen(p, sizeof p, WRITE, __builtin_return_address(0));
}
HOOK
__tsan_vptr_read(const void *p)
{
    emulation::seen(p, sizeof p, READ, __builtin_return_address(0));
}
/* Atomics of host threads are not checked here; `make SANITIZE=thread test` checks them. */
#define FLAGS(bits)                                                                                                    \
    extern "C" __attribute__((visibility("default")))                                                                  \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *p, int)                                   \
    {                                                                                                                  \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                   \
    }                                                                                                                  \
    HOOK __tsan_atomic##bits##_store(volatile uint##bits##_t *p, uint##bits##_t v, int)                                \
    {                                                                                                                  \
        __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                                      \
    }
FLAGS(8)
FLAGS(32)

/* memcpy() and memset() are not instrumented, because they are in a library. moves.h renames them. */
#define MOVES(name)                                                                                                    \
    extern "C" __attribute__((visibility("default"))) void *name(void *to, const void *from, size_t n)                 \
    {                                                                                                                  \
        emulation::seen(from, n, READ, __builtin_return_address(0));                                                   \
        emulation::seen(to, n, WRITE, __builtin_return_address(0));                                                    \
        return memmove(to, from, n);                                                                                   \
    }
#define FILLS(name)                                                                                                    \
    extern "C" __attribute__((visibility("default"))) void *name(void *to, int value, size_t n)                        \
    {                                                                                                                  \
        emulation::seen(to, n, WRITE, __builtin_return_address(0));                                                    \
        return memset(to, value, n);                                                                                   \
    }
MOVES(emulated_move)
FILLS(emulated_fill)
MOVES(__tsan_memcpy) /* newer versions of clang call these */
MOVES(__tsan_memmove)
FILLS(__tsan_memset)
HOOK
__tsan_func_entry(const void *)
{
}
HOOK
__tsan_func_exit()
{
}
HOOK
__tsan_init()
{
}
