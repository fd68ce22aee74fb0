/* Operations in which threads wait for each other: barriers of a block, collectives of a warp, loops on memory. */
#include <cstring>

#include "tests/emulator/threads/watch.h"

namespace emulation
{

/* Number of consecutive atomics after which a thread lets others run. */
static constexpr unsigned MOST_TOUCHES = 256;

static void
let_through(block *b)
{
    b->result = b->sum;
    b->waiting = b->sum = 0;
    b->met = ++b->clock;
    if (watching != nullptr)
        watching->block_met(b);
    for (unsigned i = 0; i < b->n_warps; i++) {
        make_ready(&b->warps[i], b->warps[i].waiting);
        b->warps[i].waiting = 0;
    }
}

unsigned
block_barrier(unsigned value, site where)
{
    fiber *f = running.now;
    block *b = f->block;
    running.moved = true;
    if (!keeps(BLOCK_BARRIER, where))
        return value;
    f->touches = 0;
    if (b->waiting == 0)
        b->where = where;
    else if (b->where.line != where.line || b->where.file != where.file)
        misuse(where, "is at another barrier than threads of its block, which are at %s:%d", b->where.file,
               b->where.line);
    b->sum += value;
    if (++b->waiting == b->live) {
        let_through(b);
    } else {
        f->warp->waiting |= 1u << f->at.lane;
        wait_as(AT_BARRIER, where);
    }
    return b->result; /* still this barrier's, because the next one cannot complete without this thread */
}

/* Among the collectives only __syncwarp orders accesses to memory (programming guide, warp shuffle, vote and matrix
 * functions). */
static void
put_in_order(warp *w, uint32_t lanes)
{
    if (w->kind != SYNC)
        return;
    block *b = w->lanes[0].block;
    b->clock++;
    if (lanes == w->there)
        w->met = b->clock;
    if (watching != nullptr)
        watching->lanes_met(w, lanes);
}

/* All lanes of a collective have arrived. */
static void
do_together(warp *w)
{
    const uint32_t came = w->came;
    w->came = 0;
    put_in_order(w, came);
    w->work(w->data);
    make_ready(w, came);
}

void
together(collective kind, uint32_t mask, void *data, void (*work)(void *const data[32]), site where)
{
    fiber *f = running.now;
    warp *w = f->warp;
    const uint32_t own = 1u << f->at.lane;
    running.moved = true;
    f->touches = 0;
    f->kind = kind;
    if (kind == SYNC && !keeps(WARP_SYNC, where))
        return;
    if (!(mask & own))
        misuse(where, "is not in its own mask");
    if (kind == MATRIX && (w->there != UINT32_MAX || mask != UINT32_MAX))
        misuse(where, "is at a matrix instruction without all lanes of its warp");
    if (w->came == 0) {
        w->kind = kind;
        w->mask = mask;
        w->where = where;
        w->work = work;
        memset(w->data, 0, sizeof w->data);
    } else if (w->kind != kind || w->mask != mask || w->work != work ||
               (kind != SYNC && (w->where.line != where.line || w->where.file != where.file))) {
        misuse(where, "diverges from lanes of its warp, which are at %s:%d, masks %08x and %08x", w->where.file,
               w->where.line, mask, w->mask);
    }
    w->data[f->at.lane] = data;
    if ((w->came | own) == (mask & w->there)) {
        const uint32_t others = w->came;
        w->came = 0;
        put_in_order(w, others | own);
        work(w->data);
        make_ready(w, others);
        return;
    }
    w->came |= own;
    wait_as(AT_COLLECTIVE, where);
}

/* ---- named barriers ---- */

struct arrival {
    unsigned id, threads;
    bool waits;
};

/* Counts a warp's arrival, and wakes the waiting warps if it is the last one. */
static void
count_warp(void *const data[32])
{
    warp *w = running.now->warp;
    block *b = running.now->block;
    unsigned lane = 0;
    while (data[lane] == nullptr)
        lane++;
    const arrival &first = *(const arrival *)data[lane];
    const uint32_t own = 1u << (w - b->warps);
    named_barrier &at = b->named[first.id];
    for (; lane < 32; lane++)
        if (const arrival *c = (const arrival *)data[lane])
            if (c->id != first.id || c->threads != first.threads)
                misuse(w->where, "is at another barrier than lanes of its warp");
    if (at.came != 0 && at.threads != first.threads)
        misuse(w->where, "arrives at a barrier of %u threads with %u", at.threads, first.threads);
    if (first.threads % 32 != 0 || (at.waits & own) != 0)
        misuse(w->where, "is at a barrier of %u threads, at which it waits already or warps are incomplete",
               first.threads);
    at.threads = first.threads;
    at.waits |= first.waits ? own : 0;
    if (watching != nullptr)
        watching->warp_came(w, first.id);
    if ((at.came += 32) < at.threads)
        return;
    if (watching != nullptr)
        watching->named_met(b, first.id, at.waits);
    for (unsigned i = 0; i < b->n_warps; i++)
        make_ready(&b->warps[i], at.waiting[i]);
    at = {0, 0, at.turn + 1, 0, {}};
}

void
come_to_barrier(unsigned id, unsigned threads, bool waits, site where)
{
    fiber *f = running.now;
    if (!keeps(BLOCK_BARRIER, where))
        return;
    named_barrier &at = f->block->named[id];
    const unsigned turn = at.turn;
    arrival own = {id, threads, waits};
    together(NAMED, UINT32_MAX, &own, count_warp, where);
    if (!waits || at.turn != turn)
        return;
    at.waiting[f->warp - f->block->warps] |= 1u << f->at.lane;
    wait_as(AT_BARRIER, where);
}

void
spin(site where)
{
    running.now->warp->spinning |= 1u << running.now->at.lane;
    wait_as(SPINNING, where);
}

void
touch(site where)
{
    if (++running.now->touches < MOST_TOUCHES)
        return;
    running.now->touches = 0;
    spin(where);
}

void
finish()
{
    fiber *f = running.now;
    block *b = f->block;
    warp *w = f->warp;
    f->state = DONE;
    running.moved = true;
    b->live--;
    w->there &= ~(1u << f->at.lane);
    if (b->live > 0 && b->waiting == b->live)
        let_through(b);
    for (const named_barrier &at : b->named)
        if (b->live == 0 && at.came != 0)
            complain("barrier %td: only %u of %u threads arrived", &at - b->named, at.came, at.threads);
    if (w->came != 0 && w->came == (w->mask & w->there)) {
        if (w->kind == MATRIX)
            complain("%s:%d: a lane of the warp has returned before the matrix instruction", w->where.file,
                     w->where.line);
        else
            do_together(w);
    }
    give_way(true);
}

} // namespace emulation
