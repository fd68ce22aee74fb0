/* The running grid: its threads, warps and blocks, and which of them wait for which. */
#ifndef EMULATION_GRID_H
#define EMULATION_GRID_H

#include <string>
#include <vector>

#include "context.h"
#include "fibers.h"
#include "shared.h"

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
    unsigned meetings; /* of the grid that it passed */
    uint32_t who;      /* number of its block, and its own */
    uint32_t released; /* when, by its block's clock */
    collective kind;
    site where; /* it waits */
    context own;
};

struct warp {
    fiber *lanes;     /* (32), those of `there` */
    uint32_t there;   /* lanes that have not returned */
    uint32_t ready;   /* of them, those that can run */
    uint32_t came;    /* to a collective */
    uint32_t mask;    /* that it is for */
    uint32_t waiting; /* at the block's barrier */
    uint32_t spinning;
    uint32_t met; /* all lanes, when */
    collective kind;
    site where;
    void *data[32];
    void (*work)(void *const data[32]);
};

/* A named barrier, at which whole warps arrive. */
struct named_barrier {
    unsigned threads, came, turn;
    uint32_t waits;       /* warps that wait for others */
    uint32_t waiting[32]; /* lanes of each */
};

struct block {
    warp *warps;
    uint32_t ready; /* warps with lanes that can run */
    unsigned n_warps, live, waiting, sum, result;
    site where;          /* the barrier */
    uint32_t clock, met; /* counts the operations that order accesses; the barrier's time by it */
    block_memory shared;
    named_barrier named[16];
};

/* The grid that runs. */
struct grid {
    const launched *what;
    uint64_t number; /* of all grids so far, including this one */
    std::vector<fiber> fibers;
    std::vector<block> blocks;
    std::vector<warp> warps;
    stacks room;
    context scheduler;
    fiber *now;
    unsigned block_now; /* number of now's block */
    uint64_t random;
    bool moved; /* since spinning threads were last woken: something happened */
    bool broken;
    char *complaint;
    size_t complaint_room;
};
extern grid running;

#define THREAD_BITS 10 /* of a fiber's `who` */

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
void complain_of_standing_still();

/* ---- together.cc ---- */
/* Records that the running thread has returned. Others may have waited for this thread alone. */
void finish();

} // namespace emulation

#endif
