/* The running grid: its threads, warps and blocks, and where they wait. */
#ifndef EMULATION_GRID_H
#define EMULATION_GRID_H

#include <string>
#include <vector>

#include "tests/emulator/threads/context.h"
#include "tests/emulator/threads/shared.h"
#include <fibers.h>

namespace emulation
{

enum state { READY, AT_BARRIER, AT_COLLECTIVE, SPINNING, DONE };

struct fiber {
    place at;
    struct block *block;
    struct warp *warp;
    enum state state;
    bool begun;
    unsigned touches;
    unsigned meetings; /* barriers of the grid that it has passed */
    uint32_t who;      /* number of its block, and of the thread in it */
    uint32_t released; /* time of its last release, by the block's clock */
    collective kind;
    site where; /* the place where it waits */
    context own;
};

struct warp {
    fiber *lanes;     /* (32); only those in `there` exist */
    uint32_t there;   /* lanes that have not returned */
    uint32_t ready;   /* lanes that can run */
    uint32_t came;    /* lanes that wait at a collective */
    uint32_t mask;    /* lanes that must arrive at the collective */
    uint32_t waiting; /* lanes at the block's barrier */
    uint32_t spinning;
    uint32_t met; /* time of the last __syncwarp of all lanes */
    collective kind;
    site where;
    void *data[32];
    void (*work)(void *const data[32]);
};

/* A named barrier, at which whole warps arrive. */
struct named_barrier {
    unsigned threads, came, turn;
    uint32_t waits;       /* warps that wait here */
    uint32_t waiting[32]; /* waiting lanes of each warp */
};

struct block {
    warp *warps;
    uint32_t ready; /* warps with lanes that can run */
    unsigned n_warps, live, waiting, sum, result;
    site where;          /* of the barrier */
    uint32_t clock, met; /* number of operations that order accesses; the time of the last barrier */
    block_memory shared;
    named_barrier named[16];
};

struct grid {
    const launched *what;
    uint64_t number; /* how many grids have begun */
    std::vector<fiber> fibers;
    std::vector<block> blocks;
    std::vector<warp> warps;
    stacks room;
    context scheduler;
    fiber *now;
    unsigned block_now; /* number of now's block */
    uint64_t random;
    bool moved; /* a thread has progressed since spinning threads were last woken */
    bool broken;
    char *complaint;
    size_t complaint_room;
};
extern grid running;

#define THREAD_BITS 10 /* bits of `who` with the thread's number */

/* ---- choice of the next fiber (fibers.cc) ---- */
void make_ready(warp *, uint32_t lanes);
/* Switches from the running fiber to the next one, or to the scheduler if there is none. */
void give_way(bool for_good);
void wait_as(state, site where);

/* ---- complaints.cc ---- */
/* Returns the kernel's name at the beginning of the text. */
std::string kernel_name(const char *);
/* Reports an error of the grid; only the first one is kept. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reports that no thread can run, and which threads wait where. */
void complain_of_deadlock();

/* ---- together.cc ---- */
/* Ends the running thread, and wakes threads that waited only for it. */
void finish();

} // namespace emulation

#endif
