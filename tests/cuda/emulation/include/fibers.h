/* The threads of a grid, as fibers on one thread of the host. A fiber runs until it has to wait for others: at a barrier of its block, at a
 * collective of its warp, or when it spins on memory. */
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

/* A line of device code. Functions that wait have it as their last parameters, EMULATED_SITE, by default the caller's line. */
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

/* Waits for all lanes of `mask` that have not returned. Each has its `data`; the last one runs `work` on all of them (NULL: a lane that
 * does not exist). It is an error if a lane is at another place, or never comes. */
void together(collective, uint32_t mask, void *data, void (*work)(void *const data[32]), site);
/* Waits for all threads of the block that have not returned. Returns the sum of their values. */
unsigned block_barrier(unsigned value, site);
/* Arrives at the named barrier `id` of `threads` threads in whole warps; with `waits`, returns when all have arrived. */
void come_to_barrier(unsigned id, unsigned threads, bool waits, site);
/* Lets others run, in loops that wait for memory to change. */
void spin(site);
/* Called by atomics: the thread may wait for another one in a loop of them. */
void touch(site);
/* ---- the order of accesses to memory (watch.h) ---- */

/* Operations that order accesses. Each place of device code with one can be omitted, for a test of tests (watch.cc). */
enum ordering {
    BLOCK_BARRIER,
    WARP_SYNC,
    FENCE,
    ACQUIRE,
    RELEASE,
    MEETING,
    SCOPE,  /* of an acquire or release: otherwise it is only for its block */
    CLASS,  /* of a load: otherwise it is a load of constants */
    PARITY, /* the choice of two buffers: otherwise it is always the same one */
    WAIT,   /* and the host: */
    RECORD
};
bool keeps(ordering, site); /* true if it is not omitted */
bool meets(site);           /* the same for a barrier of the grid, which all threads pass equally often */

enum atomic_kind { LOADS, STORES, CHANGES };
enum { RELAXED = 0, ACQUIRES = 1, RELEASES = 2, NARROW = 4 /* other blocks need not notice it */ };
/* Reports an access of the running thread before it happens. */
void atomic(const void *p, size_t n, atomic_kind, unsigned order, site);
void constant(const void *p, size_t n, site); /* by an instruction that does not notice others' writes */
void loaded(const void *p, size_t n, site);   /* by a load that does; its class can be omitted */
void fence(site);
/* Returns true if the whole range is in one allocation of the device. */
bool on_device(const void *, size_t bytes);
/* A function whose accesses are reported as these, or not at all. */
#define EMULATED_UNSEEN __attribute__((no_sanitize("thread")))

/* Reports an error of the running thread, which ends the grid. */
[[noreturn]] void misuse(site, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* sum (16, 8) += x (16, 16) y (16, 8), in the way that EMULATED_CUDA_MATRIX or the last call selects: in-order, in F32, by ascending k (the
 * default); exact, rounded once; truncated after each addition; aligned24, to the largest exponent, with all terms truncated to 24 bits;
 * aligned14, the same by stored exponents, so that subnormal numbers may keep only 14 bits. `least`: 2^least is twice the smallest normal
 * number of x and y. Returns false if there is no such way. */
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
    uint64_t seed; /* of the order in which threads take turns; 0: in order */
    uint32_t op;   /* of its stream (watch.h) */
};

/* Runs a grid: block after block, or all blocks at once if it is cooperative. Returns false if a thread did something that would hang or is
 * undefined; `complaint` describes it. */
bool run_grid(const launched &, char *complaint, size_t room);
uint64_t switches_so_far();

} // namespace emulation

#endif
