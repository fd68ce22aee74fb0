#include "fibers.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "context.h"
#include "shared.h"

namespace emulation
{

place *here;
extent all_of_it;

/* Passes over threads that do nothing but wait for memory to change, before that is an error: many, since what they wait
 * for may be a copy on another stream. */
static constexpr unsigned MOST_IDLE_PASSES = 10000;
/* Atomics in a row before a thread lets others run. */
static constexpr unsigned MOST_TOUCHES = 256;

enum state { READY, AT_BARRIER, AT_COLLECTIVE, SPINNING, DONE };

struct fiber {
    place at;
    struct block *block;
    struct warp *warp;
    enum state state;
    bool begun;
    unsigned touches;
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
    collective kind;
    site where;
    void *data[32];
    void (*work)(void *const data[32]);
};

struct block {
    warp *warps;
    uint32_t ready; /* warps with lanes that can run */
    unsigned n_warps, live, waiting, sum, result;
    site where; /* the barrier */
    block_memory shared;
};

/* The grid that runs. */
struct grid {
    const launched *what;
    std::vector<fiber> fibers;
    std::vector<block> blocks;
    std::vector<warp> warps;
    stacks room;
    context scheduler;
    fiber *now;
    unsigned block_now; /* number of now's block */
    uint64_t random;
    bool moved; /* since spinning threads were last let go: something happened */
    bool broken;
    char *complaint;
    size_t complaint_room;
};

static grid g; /* under one_at_a_time */
static std::mutex one_at_a_time;
static uint64_t switches;

uint64_t
switches_so_far()
{
    std::lock_guard<std::mutex> hold(one_at_a_time);
    return switches;
}

/* ---- whose turn it is ---- */

static uint32_t
dice()
{
    g.random = g.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g.random >> 33);
}

/* A bit that is set: the lowest, or with a seed any. */
static unsigned
one_of(uint32_t bits)
{
    if (g.what->seed == 0)
        return (unsigned)__builtin_ctz(bits);
    const unsigned turn = dice() & 31;
    const uint32_t turned = bits >> turn | bits << ((32 - turn) & 31);
    return ((unsigned)__builtin_ctz(turned) + turn) & 31;
}

static void
make_ready(warp *w, uint32_t lanes)
{
    block *b = w->lanes[0].block;
    w->ready |= lanes;
    if (w->ready != 0)
        b->ready |= 1u << (w - b->warps);
    for (; lanes != 0; lanes &= lanes - 1)
        w->lanes[__builtin_ctz(lanes)].state = READY;
}

/* Stays with the warp and the block as long as it can: their stacks are in the cache. */
static fiber *
next_fiber()
{
    block *b = &g.blocks[g.block_now];
    if (b->ready == 0 || (g.what->seed != 0 && dice() % 64 == 0)) {
        const unsigned n = (unsigned)g.blocks.size(), first = g.what->seed != 0 ? dice() % n : g.block_now + 1;
        unsigned i = 0;
        while (i < n && g.blocks[(first + i) % n].ready == 0)
            i++;
        if (i == n)
            return nullptr;
        g.block_now = (first + i) % n;
        b = &g.blocks[g.block_now];
    }
    warp *w = g.now != nullptr ? g.now->warp : nullptr;
    if (w == nullptr || w->lanes[0].block != b || w->ready == 0 || (g.what->seed != 0 && dice() % 16 == 0))
        w = &b->warps[one_of(b->ready)];
    const unsigned lane = one_of(w->ready);
    w->ready &= ~(1u << lane);
    if (w->ready == 0)
        b->ready &= ~(1u << (w - b->warps));
    return &w->lanes[lane];
}

static void
thread_of_a_grid()
{
    void finish();
    entered();
    g.what->thread();
    finish();
}

/* Leaves the running fiber to whoever is next; the scheduler when there is nobody. */
static void
give_way(bool for_good)
{
    fiber *const from = g.now, *to = g.broken ? nullptr : next_fiber();
    context *target = &g.scheduler;
    if (to == from)
        return;
    if (to != nullptr) {
        if (!to->begun)
            prepare(&to->own, thread_of_a_grid);
        to->begun = true;
        target = &to->own;
        here = &to->at;
    }
    g.now = to;
    switches++;
    if (for_good)
        leave(&from->own, target);
    enter(&from->own, target);
}

static void
wait_as(state s, site where)
{
    g.now->state = s;
    g.now->where = where;
    give_way(false);
}

/* ---- complaints ---- */

static void
complain(const char *format, ...)
{
    if (g.broken)
        return;
    g.broken = true;
    int depth = 0; /* the kernel's name ends with the first comma that is not in its template's arguments */
    size_t name = 0;
    for (; g.what->kernel[name] != '\0' && (g.what->kernel[name] != ',' || depth > 0); name++)
        depth += (g.what->kernel[name] == '<') - (g.what->kernel[name] == '>');
    const int n = snprintf(g.complaint, g.complaint_room, "%.*s: ", (int)name, g.what->kernel);
    va_list args;
    va_start(args, format);
    if (n > 0 && (size_t)n < g.complaint_room)
        vsnprintf(g.complaint + n, g.complaint_room - (size_t)n, format, args);
    va_end(args);
}

void
misuse(site where, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    complain("%s:%d: thread %u of block %u %s", where.file, where.line, g.now->at.thread.x, g.now->at.block.x, text);
    g.now->state = DONE;
    give_way(true);
    __builtin_unreachable();
}

static const char *
name_of(const fiber &f)
{
    static const char *const names[] = {"a __syncwarp", "a shuffle", "a vote", "a reduction", "a matrix instruction"};
    return f.state == AT_BARRIER      ? "a barrier of the block"
           : f.state == AT_COLLECTIVE ? names[f.kind]
                                      : "memory to change";
}

/* Nothing can go on: who waits where. */
static void
complain_of_standing_still()
{
    char text[384];
    size_t n = 0;
    for (state s : {AT_BARRIER, AT_COLLECTIVE, SPINNING}) {
        const fiber *first = nullptr;
        unsigned others = 0;
        for (const fiber &f : g.fibers)
            if (f.state == s && first == nullptr)
                first = &f;
            else if (f.state == s)
                others++;
        if (first == nullptr || n >= sizeof text)
            continue;
        const int more =
            snprintf(text + n, sizeof text - n, "%s thread %u of block %u waits for %s at %s:%d", n > 0 ? ";" : "",
                     first->at.thread.x, first->at.block.x, name_of(*first), first->where.file, first->where.line);
        n += more > 0 ? (size_t)more : 0;
        if (others > 0 && n < sizeof text) {
            const int rest = snprintf(text + n, sizeof text - n, " (so do %u others, there or elsewhere)", others);
            n += rest > 0 ? (size_t)rest : 0;
        }
    }
    complain("stands still:%s", text);
}

/* ---- coming together ---- */

static void
let_through(block *b)
{
    b->result = b->sum;
    b->waiting = b->sum = 0;
    for (unsigned i = 0; i < b->n_warps; i++) {
        make_ready(&b->warps[i], b->warps[i].waiting);
        b->warps[i].waiting = 0;
    }
}

unsigned
block_barrier(unsigned value, site where)
{
    fiber *f = g.now;
    block *b = f->block;
    g.moved = true;
    f->touches = 0;
    if (b->waiting == 0)
        b->where = where;
    else if (b->where.line != where.line || b->where.file != where.file)
        misuse(where, "waits for its block here, others do at %s:%d", b->where.file, b->where.line);
    b->sum += value;
    if (++b->waiting == b->live) {
        let_through(b);
    } else {
        f->warp->waiting |= 1u << f->at.lane;
        wait_as(AT_BARRIER, where);
    }
    return b->result; /* nobody has got to the next barrier's end: that needs this thread too */
}

/* The lanes of a collective are there. */
static void
do_together(warp *w)
{
    const uint32_t came = w->came;
    w->came = 0;
    w->work(w->data);
    make_ready(w, came);
}

void
together(collective kind, uint32_t mask, void *data, void (*work)(void *const data[32]), site where)
{
    fiber *f = g.now;
    warp *w = f->warp;
    const uint32_t own = 1u << f->at.lane;
    g.moved = true;
    f->touches = 0;
    f->kind = kind;
    if (!(mask & own))
        misuse(where, "is not in the mask that it gives");
    if (kind == MATRIX && (w->there != UINT32_MAX || mask != UINT32_MAX))
        misuse(where, "is at a matrix instruction, for which lanes of its warp are missing");
    if (w->came == 0) {
        w->kind = kind;
        w->mask = mask;
        w->where = where;
        w->work = work;
        memset(w->data, 0, sizeof w->data);
    } else if (w->kind != kind || w->mask != mask || w->work != work ||
               (kind != SYNC && (w->where.line != where.line || w->where.file != where.file))) {
        misuse(where, "parts ways with lanes of its warp, which are at %s:%d, masks %08x and %08x", w->where.file,
               w->where.line, mask, w->mask);
    }
    w->data[f->at.lane] = data;
    if ((w->came | own) == (mask & w->there)) {
        const uint32_t others = w->came;
        w->came = 0;
        work(w->data);
        make_ready(w, others);
        return;
    }
    w->came |= own;
    wait_as(AT_COLLECTIVE, where);
}

void
spin(site where)
{
    g.now->warp->spinning |= 1u << g.now->at.lane;
    wait_as(SPINNING, where);
}

void
touch(site where)
{
    if (++g.now->touches < MOST_TOUCHES)
        return;
    g.now->touches = 0;
    spin(where);
}

/* The running thread has returned: others may have waited for nobody else. */
void
finish()
{
    fiber *f = g.now;
    block *b = f->block;
    warp *w = f->warp;
    f->state = DONE;
    g.moved = true;
    b->live--;
    w->there &= ~(1u << f->at.lane);
    if (b->live > 0 && b->waiting == b->live)
        let_through(b);
    if (w->came != 0 && w->came == (w->mask & w->there)) {
        if (w->kind == MATRIX)
            complain("%s:%d: a lane of the warp has returned before the matrix instruction", w->where.file,
                     w->where.line);
        else
            do_together(w);
    }
    give_way(true);
}

/* ---- grids ---- */

static bool
set_up(unsigned first, unsigned n_blocks)
{
    const dim3 size = g.what->grid, own = g.what->block;
    const unsigned threads = own.x * own.y * own.z, warps = (threads + 31) / 32;
    for (unsigned i = 0; i < n_blocks; i++) {
        block &b = g.blocks[i];
        if (!b.shared.fresh(g.what->shared))
            return false;
        b.warps = &g.warps[(size_t)i * warps];
        b.n_warps = warps;
        b.live = threads;
        b.waiting = b.sum = 0;
        b.ready = warps == 32 ? UINT32_MAX : (1u << warps) - 1;
        const unsigned number = first + i;
        for (unsigned w = 0; w < warps; w++) {
            const unsigned lanes = threads - w * 32 < 32 ? threads - w * 32 : 32;
            b.warps[w] = warp{};
            b.warps[w].lanes = &g.fibers[(size_t)i * threads + w * 32];
            b.warps[w].there = b.warps[w].ready = lanes == 32 ? UINT32_MAX : (1u << lanes) - 1;
        }
        for (unsigned t = 0; t < threads; t++) {
            fiber &f = g.fibers[(size_t)i * threads + t];
            f.at.thread = dim3(t % own.x, t / own.x % own.y, t / own.x / own.y);
            f.at.block = dim3(number % size.x, number / size.x % size.y, number / size.x / size.y);
            f.at.lane = t % 32;
            f.at.shared = b.shared.start();
            f.block = &b;
            f.warp = &b.warps[t / 32];
            f.state = READY;
            f.begun = false;
            f.touches = 0;
            g.room.place(&f.own, (size_t)i * threads + t);
        }
    }
    return true;
}

/* Spinning threads look again. False: there are none. */
static bool
let_spinning_go()
{
    bool any = false;
    for (warp &w : g.warps)
        if (w.spinning != 0) {
            any = true;
            make_ready(&w, w.spinning);
            w.spinning = 0;
        }
    return any;
}

/* Lets all threads of the blocks that are set up run to their end. */
static void
run_blocks()
{
    unsigned live = 0, idle = 0;
    g.now = nullptr;
    g.block_now = 0;
    do {
        g.moved = false;
        if (fiber *f = next_fiber()) {
            if (!f->begun)
                prepare(&f->own, thread_of_a_grid);
            f->begun = true;
            here = &f->at;
            g.now = f;
            enter(&g.scheduler, &f->own);
            g.now = nullptr;
        }
        idle = g.moved ? 0 : idle + 1;
        live = 0;
        for (const block &b : g.blocks)
            live += b.live;
        if (live > 0 && !g.broken && (idle > MOST_IDLE_PASSES || !let_spinning_go()))
            complain_of_standing_still();
    } while (live > 0 && !g.broken);
}

bool
run_grid(const launched &what, char *complaint, size_t room)
{
    std::lock_guard<std::mutex> hold(one_at_a_time);
    const unsigned threads = what.block.x * what.block.y * what.block.z,
                   blocks = what.grid.x * what.grid.y * what.grid.z;
    const unsigned at_once = what.cooperative ? blocks : 1;
    g.what = &what;
    g.complaint = complaint;
    g.complaint_room = room;
    g.broken = false;
    g.random = what.seed;
    all_of_it = {what.block, what.grid};
    place_own(&g.scheduler);
    g.fibers.resize((size_t)at_once * threads);
    g.blocks.resize(at_once);
    g.warps.resize((size_t)at_once * ((threads + 31) / 32));
    if (!g.room.at_least(g.fibers.size()))
        complain("there is no memory for the stacks of %zu threads", g.fibers.size());
    for (unsigned first = 0; first < blocks && !g.broken; first += at_once) {
        poison_static_shared();
        if (!set_up(first, at_once))
            complain("there is no memory for %zu bytes of shared memory in %u blocks", what.shared, at_once);
        else
            run_blocks();
    }
    if (what.cooperative && at_once > 1 && !static_shared_is_poison())
        complain("a cooperative kernel uses shared memory that is not dynamic: here all its blocks have it in common");
    if (g.broken)
        g.room.clean();
    here = nullptr;
    return !g.broken;
}

} // namespace emulation
