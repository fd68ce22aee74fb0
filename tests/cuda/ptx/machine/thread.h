/* What a translated kernel's thread has: its block's shared memory, its parameters, and the memory that it may reach. Addresses
 * of global and local memory are the host's; those of shared memory begin at SHARED_BASE, as on GPUs that keep the first KiB. */
#ifndef PTX_THREAD_H
#define PTX_THREAD_H

#include "cuda_runtime.h"

#include "numbers.h"

namespace ptx
{

/* An instruction: the line of the source that it comes from, and its own in the PTX. */
struct where : emulation::site {
    int row;
};

constexpr u32 SHARED_BASE = 1024;

/* Allocations of the device's, found lately. */
struct range {
    u64 start, size;
};
constexpr unsigned KNOWN = 64;
extern range known[KNOWN];

/* A variable of the module's, .global or .const. */
struct variable {
    variable(const void *start, size_t size);
    range at;
    const variable *next;
};

/* A kernel as nvcc compiled it. */
struct kernel {
    const char *name;
    void (*run)(const unsigned char *params, u32 room); /* of shared memory, in bytes */
    size_t params, shared; /* bytes: of its parameters, of the shared memory that is not dynamic */
    unsigned threads;      /* of a block at most; 0: not said */
};

struct thread {
    const emulation::place *here;
    const unsigned char *params;
    u32 n_params;
    unsigned char *shared;
    u32 room, fixed; /* bytes of it: all, those that are not dynamic */
    thread(const kernel &, const unsigned char *params_, u32 room_);
    bool
    in_shared(u64 address, size_t n) const
    {
        const u64 at = address - (u64)shared;
        return at < room && n <= room - at;
    }
};

/* ---- addresses to pointers, or the end of the grid ---- */

[[noreturn]] void misaligned(const where &, const char *space, u64 address, size_t n);
[[noreturn]] void beyond_shared(const where &, u64 address, size_t n, u32 room);
/* Of an address that is not among the known ones; generic: in the thread's own memory, too. */
void look_up(const thread &, const where &, u64 address, size_t n, bool generic);

static inline unsigned char *
at_global(const thread &t, u64 address, size_t n, const where &at)
{
    const range &r = known[address >> 16 & (KNOWN - 1)];
    if (address % n != 0)
        misaligned(at, "global", address, n);
    if (n > r.size || address - r.start > r.size - n)
        look_up(t, at, address, n, false);
    return (unsigned char *)address;
}
static inline unsigned char *
at_generic(const thread &t, u64 address, size_t n, const where &at)
{
    if (address % n != 0)
        misaligned(at, "generic", address, n);
    if (!t.in_shared(address, n)) {
        const range &r = known[address >> 16 & (KNOWN - 1)];
        if (n > r.size || address - r.start > r.size - n)
            look_up(t, at, address, n, true);
    }
    return (unsigned char *)address;
}
static inline unsigned char *
at_shared(const thread &t, u64 address, size_t n, const where &at)
{
    if (address % n != 0)
        misaligned(at, "shared", address, n);
    if (address - SHARED_BASE >= t.room || n > t.room - (address - SHARED_BASE))
        beyond_shared(at, address, n, t.room);
    return t.shared + (address - SHARED_BASE);
}
/* Local memory and what lies in the translated program itself. */
static inline unsigned char *
at_own(const thread &, u64 address, size_t n, const where &at)
{
    if (address % n != 0)
        misaligned(at, "local", address, n);
    return (unsigned char *)address;
}

/* ---- from space to space ---- */

static inline u64
shared_to_generic(const thread &t, u64 address)
{
    return (u64)t.shared + (address - SHARED_BASE);
}
/* Of what is not shared: an address that is nowhere. */
static inline u64
generic_to_shared(const thread &t, u64 address)
{
    return t.in_shared(address, 0) || address == (u64)t.shared + t.room ? address - (u64)t.shared + SHARED_BASE
                                                                        : 0xfffffff0u;
}
bool in_own_stack(u64 address);

/* ---- special registers ---- */

u64 timer(); /* nanoseconds */
static inline u32
threads_of_block()
{
    return blockDim.x * blockDim.y * blockDim.z;
}
static inline u32
warp_of(const thread &t)
{
    return (t.here->thread.x + blockDim.x * (t.here->thread.y + blockDim.y * t.here->thread.z)) / 32;
}

} // namespace ptx

#endif
