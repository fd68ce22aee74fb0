/* The threads of a grid, as fibers on one thread of the host. A fiber runs until it has to wait for others: at a barrier
 * of its block, at a collective of its warp, or when it spins on memory. */
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

/* Where the running thread is. One grid runs at a time, so these are plain variables. */
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

/* A line of device code. What waits takes it as its last parameters, EMULATED_SITE: by default the caller's. */
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

/* All lanes of `mask` that have not returned come together: each brings its `data`; the last to come runs `work` on all
 * of them (NULL: a lane that is not there). Lanes that are somewhere else, or never come, are an error. */
void together(collective, uint32_t mask, void *data, void (*work)(void *const data[32]), site);
/* All threads of the block that have not returned. Returns the sum of what each brought. */
unsigned block_barrier(unsigned value, site);
/* Arrives at the named barrier `id` of `threads` threads in whole warps; with `waits`, returns when all have arrived. */
void come_to_barrier(unsigned id, unsigned threads, bool waits, site);
/* Others may run: for loops that wait for memory to change. */
void spin(site);
/* Called by atomics: the thread may be waiting for another in a loop of them. */
void touch(site);
/* ---- the order of accesses to memory (watch.h) ---- */

/* What orders them. Each place where device code has one can be left out, for a test of tests (watch.cc). */
enum ordering {
    BLOCK_BARRIER,
    WARP_SYNC,
    FENCE,
    ACQUIRE,
    RELEASE,
    MEETING,
    SCOPE,  /* of an acquire or release: else it is for its block alone */
    CLASS,  /* of a load; without it, the load is one of constants */
    PARITY, /* which of two buffers: else it is always the same */
    WAIT,   /* and the host: */
    RECORD
};
bool keeps(ordering, site); /* is it there? */
bool meets(site);           /* the same of a barrier of the grid, of which all threads pass as many */

enum atomic_kind { LOADS, STORES, CHANGES };
enum { RELAXED = 0, ACQUIRES = 1, RELEASES = 2, NARROW = 4 /* other blocks need not see it */ };
/* A thread's access that is about to come. */
void atomic(const void *p, size_t n, atomic_kind, unsigned order, site);
void constant(const void *p, size_t n, site); /* through what does not notice that others write */
void loaded(const void *p, size_t n, site);   /* a load that does: its class can be left out */
void fence(site);
/* Is all of it in one allocation of the device's? */
bool on_device(const void *, size_t bytes);
/* A function whose accesses these are, or that nobody need know of. */
#define EMULATED_UNSEEN __attribute__((no_sanitize("thread")))

/* An error of the running thread, which ends the grid. */
[[noreturn]] void misuse(site, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* sum (16, 8) += x (16, 16) y (16, 8), as EMULATED_CUDA_MATRIX says or who called last: in-order, in F32, by ascending k (the
 * usual way); exact, rounded once; truncated after each addition; aligned24, to the largest exponent, all terms cut off
 * behind 24 bits; aligned14, the same by exponents as they are written, so that of subnormal numbers 14 may be left. `least`:
 * 2^least is twice the smallest normal number of x and y. False: there is no such way. */
void multiply_matrices(const float x[16][16], const float y[16][8], float sum[16][8], int least);
bool add_up_like(const char *way);

/* What memory holds that nobody wrote to. */
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

/* Runs a grid: block after block, or all of them at once when cooperative. False: a thread did what would hang or be
 * undefined, and `complaint` says what. */
bool run_grid(const launched &, char *complaint, size_t room);
uint64_t switches_so_far();

} // namespace emulation

#endif
