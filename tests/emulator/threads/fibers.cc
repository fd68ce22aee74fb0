#include <cstring>
#include <mutex>

#include "tests/emulator/threads/watch.h"

namespace emulation
{

place *here;
extent all_of_it;

/* How often all threads may wake and find their memory unchanged before this is an error. It is large, because they may
 * wait for a copy of another stream. */
static constexpr unsigned MOST_IDLE_PASSES = 10000;

grid running; /* protected by one_at_a_time */
static std::mutex one_at_a_time;
static uint64_t switches;

uint64_t
switches_so_far()
{
    std::lock_guard<std::mutex> hold(one_at_a_time);
    return switches;
}

/* ---- choice of the next fiber ---- */

static uint32_t
dice()
{
    running.random = running.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(running.random >> 33);
}

/* Returns a set bit: the lowest one, or a random one if there is a seed. */
static unsigned
one_of(uint32_t bits)
{
    if (running.what->seed == 0)
        return (unsigned)__builtin_ctz(bits);
    const unsigned turn = dice() & 31;
    const uint32_t turned = bits >> turn | bits << ((32 - turn) & 31);
    return ((unsigned)__builtin_ctz(turned) + turn) & 31;
}

void
make_ready(warp *w, uint32_t lanes)
{
    block *b = w->lanes[0].block;
    w->ready |= lanes;
    if (w->ready != 0)
        b->ready |= 1u << (w - b->warps);
}

/* Prefetches the next stack, because waiting for its memory would take most of a switch's time. */
static void
fetch(const fiber *lanes, uint32_t ready)
{
    const fiber *next = &lanes[__builtin_ctz(ready)];
    prefetch_stack(&next->own);
    ready &= ready - 1;
    if (ready == 0)
        return;
    next = &lanes[__builtin_ctz(ready)];
    __builtin_prefetch(&next->at, 1);
    __builtin_prefetch(&next->own, 1);
}

/* Prefers the same warp and block, whose stacks are in the cache. */
static fiber *
next_fiber()
{
    block *b = &running.blocks[running.block_now];
    if (b->ready == 0 || (running.what->seed != 0 && dice() % 64 == 0)) {
        const unsigned n = (unsigned)running.blocks.size(),
                       first = running.what->seed != 0 ? dice() % n : running.block_now + 1;
        unsigned i = 0;
        while (i < n && running.blocks[(first + i) % n].ready == 0)
            i++;
        if (i == n)
            return nullptr;
        running.block_now = (first + i) % n;
        b = &running.blocks[running.block_now];
    }
    warp *w = running.now != nullptr ? running.now->warp : nullptr;
    if (w == nullptr || w->lanes[0].block != b || w->ready == 0 || (running.what->seed != 0 && dice() % 16 == 0))
        w = &b->warps[one_of(b->ready)];
    const unsigned lane = one_of(w->ready);
    w->ready &= ~(1u << lane);
    if (w->ready == 0)
        b->ready &= ~(1u << (w - b->warps));
    else
        fetch(w->lanes, w->ready);
    return &w->lanes[lane];
}

static void
thread_of_a_grid()
{
    entered();
    running.what->thread(running.what->kernel, running.what->argument);
    finish();
}

void
give_way(bool for_good)
{
    fiber *const from = running.now, *to = running.broken ? nullptr : next_fiber();
    context *target = &running.scheduler;
    if (to == from)
        return;
    if (to != nullptr) {
        if (!to->begun)
            prepare(&to->own, thread_of_a_grid);
        to->begun = true;
        target = &to->own;
        here = &to->at;
    }
    running.now = to;
    switches++;
    if (for_good)
        leave(&from->own, target);
    enter(&from->own, target);
}

void
wait_as(state s, site where)
{
    fiber *f = running.now;
    f->state = s;
    f->where = where;
    give_way(false);
    f->state = READY;
}

/* ---- grids ---- */

static bool
set_up(unsigned first, unsigned n_blocks)
{
    const dim3 size = running.what->grid, own = running.what->block;
    const unsigned threads = own.x * own.y * own.z, warps = (threads + 31) / 32;
    for (unsigned i = 0; i < n_blocks; i++) {
        block &b = running.blocks[i];
        if (!b.shared.fresh(running.what->shared))
            return false;
        b.warps = &running.warps[(size_t)i * warps];
        b.n_warps = warps;
        b.live = threads;
        b.waiting = b.sum = 0;
        b.clock = b.met = 0;
        memset(b.named, 0, sizeof b.named);
        b.ready = warps == 32 ? UINT32_MAX : (1u << warps) - 1;
        const unsigned number = first + i;
        for (unsigned w = 0; w < warps; w++) {
            const unsigned lanes = threads - w * 32 < 32 ? threads - w * 32 : 32;
            b.warps[w] = warp{};
            b.warps[w].lanes = &running.fibers[(size_t)i * threads + w * 32];
            b.warps[w].there = b.warps[w].ready = lanes == 32 ? UINT32_MAX : (1u << lanes) - 1;
        }
        for (unsigned t = 0; t < threads; t++) {
            fiber &f = running.fibers[(size_t)i * threads + t];
            f.at.thread = dim3(t % own.x, t / own.x % own.y, t / own.x / own.y);
            f.at.block = dim3(number % size.x, number / size.x % size.y, number / size.x / size.y);
            f.at.lane = t % 32;
            f.at.shared = b.shared.start();
            f.block = &b;
            f.warp = &b.warps[t / 32];
            f.state = READY;
            f.begun = false;
            f.touches = f.meetings = f.released = 0;
            f.who = number << THREAD_BITS | t;
            running.room.place(&f.own, (size_t)i * threads + t);
        }
    }
    return true;
}

/* Wakes threads that spin on memory. Returns false if there are none. */
static bool
let_spinning_go()
{
    bool any = false;
    for (warp &w : running.warps)
        if (w.spinning != 0) {
            any = true;
            make_ready(&w, w.spinning);
            w.spinning = 0;
        }
    return any;
}

/* Runs all threads of the blocks that are set up to their end. */
static void
run_blocks()
{
    unsigned live = 0, idle = 0;
    running.now = nullptr;
    running.block_now = 0;
    do {
        running.moved = false;
        if (fiber *f = next_fiber()) {
            if (!f->begun)
                prepare(&f->own, thread_of_a_grid);
            f->begun = true;
            here = &f->at;
            running.now = f;
            enter(&running.scheduler, &f->own);
            running.now = nullptr;
        }
        idle = running.moved ? 0 : idle + 1;
        live = 0;
        for (const block &b : running.blocks)
            live += b.live;
        if (live > 0 && !running.broken && (idle > MOST_IDLE_PASSES || !let_spinning_go()))
            complain_of_deadlock();
    } while (live > 0 && !running.broken);
}

bool
run_grid(const launched &what, char *complaint, size_t room)
{
    std::lock_guard<std::mutex> hold(one_at_a_time);
    const unsigned threads = what.block.x * what.block.y * what.block.z,
                   blocks = what.grid.x * what.grid.y * what.grid.z;
    const unsigned at_once = what.cooperative ? blocks : 1;
    running.what = &what;
    running.complaint = complaint;
    running.complaint_room = room;
    running.broken = false;
    running.random = what.seed;
    running.number++;
    all_of_it = {what.block, what.grid};
    place_own(&running.scheduler);
    if (watching != nullptr)
        watching->grid_begins();
    running.fibers.resize((size_t)at_once * threads);
    running.blocks.resize(at_once);
    running.warps.resize((size_t)at_once * ((threads + 31) / 32));
    if (!running.room.at_least(running.fibers.size()))
        complain("not enough memory for the stacks of %zu threads", running.fibers.size());
    for (unsigned first = 0; first < blocks && !running.broken; first += at_once) {
        poison_static_shared();
        if (!set_up(first, at_once))
            complain("not enough memory for %zu bytes of shared memory in %u blocks", what.shared, at_once);
        else {
            if (watching != nullptr)
                watching->blocks_begin();
            run_blocks();
        }
    }
    if (what.cooperative && at_once > 1 && !static_shared_is_poison())
        complain("a cooperative kernel uses static shared memory, which the emulator would share between its blocks");
    if (running.broken)
        running.room.clean();
    here = nullptr;
    return !running.broken;
}

} // namespace emulation
