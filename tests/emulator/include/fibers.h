/* The threads of a grid, as fibers on one thread of the host. A fiber runs until it waits: at a barrier of its block,
 * at a collective of its warp, or in a loop on memory. */
#ifndef EMULATION_FIBERS_H
#define EMULATION_FIBERS_H

#include <cstddef>
#include <cstdint>

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

namespace emulation
{

/* The position of the running thread. One grid runs at a time, so these are plain variables. */
struct place {
    dim3 thread, block;
    unsigned lane;
    void *shared; /* dynamic shared memory of its block */
};
struct extent {
    dim3 block_size, grid_size;
};
extern place *here;
extern extent all_of_it;

/* A line of device code. EMULATED_SITE declares it as the last parameters of a function; their default is the caller's
 * line. */
struct site {
    const char *file;
    int line;
};
#define EMULATED_SITE const char *file_ = __builtin_FILE(), int line_ = __builtin_LINE()
#define EMULATED_HERE                                                                                                  \
    emulation::site                                                                                                    \
    {                                                                                                                  \
        file_, line_                                                                                                   \
    }

enum collective { SYNC, SHUFFLE, VOTE, REDUCE, MATRIX, NAMED };

/* Waits for all lanes of `mask` that have not returned. Each has its `data`; the last one runs `work` on all of them
 * (NULL: a lane that does not exist). It is an error if a lane waits at another place or does not arrive. */
void together(collective, uint32_t mask, void *data, void (*work)(void *const data[32]), site);
/* Waits for all threads of the block that have not returned. Returns the sum of their values. */
unsigned block_barrier(unsigned value, site);
/* Arrives at the named barrier `id` of `threads` threads in whole warps; with `waits`, returns when all have
 * arrived. */
void come_to_barrier(unsigned id, unsigned threads, bool waits, site);
/* Lets other threads run. A loop that waits for a change of memory calls it. */
void spin(site);
/* Counts the thread's atomics, and lets other threads run after many of them, because a loop of atomics may wait for
 * another thread. */
void touch(site);
/* ---- the order of accesses to memory (watch.h) ---- */

/* Operations that order accesses. A mutation omits one of them at one place (mutations/omit.cc). */
enum ordering {
    BLOCK_BARRIER,
    WARP_SYNC,
    FENCE,
    ACQUIRE,
    RELEASE,
    MEETING,
    SCOPE,  /* of an acquire or release; omitted: the scope is the block */
    CLASS,  /* of a load; omitted: it is a read-only load */
    PARITY, /* of two buffers; omitted: the first buffer is always used */
    WAIT,   /* of the host */
    RECORD  /* of an event by the host */
};
bool keeps(ordering, site); /* Returns true if it is not omitted. */
bool meets(site);           /* The same for a barrier of the grid. */

enum atomic_kind { LOADS, STORES, CHANGES };
enum { RELAXED = 0, ACQUIRES = 1, RELEASES = 2, NARROW = 4 /* its scope is the block */ };
/* Reports an access of the running thread before it happens. */
void atomic(const void *p, size_t n, atomic_kind, unsigned order, site);
void constant(const void *p, size_t n, site); /* by a read-only load, which may return old data */
void loaded(const void *p, size_t n, site);   /* by another load; a mutation can make it a read-only load */
void fence(site);
/* Returns true if the whole range is in one allocation of the device. */
bool on_device(const void *, size_t bytes);
/* The compiler does not instrument this function; it reports its accesses itself, if at all. */
#define EMULATED_UNSEEN __attribute__((no_sanitize("thread")))

/* Reports an error of the running thread, which ends the grid. */
[[noreturn]] void misuse(site, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* sum (16, 8) += x (16, 16) y (16, 8), in the way that EMULATED_CUDA_MATRIX or the last call selects: in-order, in F32,
 * by ascending k (the default); exact, rounded once; truncated after each addition; aligned24, to the largest exponent,
 * with all terms truncated to 24 bits; aligned14, the same by stored exponents, so that subnormal numbers may keep only
 * 14 bits. `least`: 2^least is twice the smallest normal number of x and y. Returns false if there is no such way. */
void multiply_matrices(const float x[16][16], const float y[16][8], float sum[16][8], int least);
bool add_up_like(const char *way);

/* The contents of memory that was never written. */
constexpr unsigned char POISON = 0xcb;

struct launched {
    void (*thread)(const void *kernel, const void *argument);
    const void *kernel, *argument;
    const char *name; /* begins with the kernel's */
    dim3 grid, block;
    size_t shared;
    bool cooperative;
    uint64_t seed; /* selects the order of threads; 0: by number */
    uint32_t op;   /* its number in the race checker (watch.h) */
};

/* Runs a grid: block after block, or all blocks at once if it is cooperative. Returns false if a thread did something
 * that would hang or is undefined, and describes it in `complaint`. */
bool run_grid(const launched &, char *complaint, size_t room);
uint64_t switches_so_far();

} // namespace emulation

#endif
