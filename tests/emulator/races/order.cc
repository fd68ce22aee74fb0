#include "tests/emulator/races/order.h"

#include <algorithm>
#include <unordered_map>

namespace emulation
{

/* ---- knowledge ---- */

static uint64_t
key_of(knowledge::kind kind, uint32_t who)
{
    const uint32_t shift = kind == knowledge::BLOCK ? THREAD_BITS : kind == knowledge::WARP ? 5 : 0;
    return (uint64_t)(who >> shift) << 2 | kind;
}

uint32_t
knowledge::until(kind k, uint32_t who) const
{
    const uint64_t key = key_of(k, who);
    for (const auto &e : entries) /* few */
        if (e.first == key)
            return e.second;
    return 0;
}

void
knowledge::raise(kind k, uint32_t who, uint32_t time)
{
    const uint64_t key = key_of(k, who);
    if ((k != BLOCK && until(BLOCK, who) >= time) || (k == THREAD && until(WARP, who) >= time))
        return;
    for (auto &e : entries)
        if (e.first == key) {
            e.second = std::max(e.second, time);
            return;
        }
    entries.emplace_back(key, time);
}

void
knowledge::join(const knowledge &other)
{
    static const uint32_t shifts[] = {THREAD_BITS, 5, 0};
    for (int k = BLOCK; k <= THREAD; k++)
        for (const auto &e : other.entries)
            if ((e.first & 3) == (uint64_t)k)
                raise((kind)k, (uint32_t)(e.first >> 2) << shifts[k], e.second);
    entries.erase(std::remove_if(entries.begin(), entries.end(),
                                 [&](const std::pair<uint64_t, uint32_t> &e) {
                                     const int k = (int)(e.first & 3);
                                     return k != BLOCK &&
                                            until(BLOCK, (uint32_t)(e.first >> 2) << shifts[k]) >= e.second;
                                 }),
                  entries.end());
}

bool
knowledge::has(uint32_t who, uint32_t time) const
{
    return !entries.empty() && (until(BLOCK, who) > time || until(WARP, who) > time || until(THREAD, who) > time);
}

/* ---- knowledge of threads ---- */

struct thread_knows {
    knowledge acquired; /* since it last met its block */
    knowledge seen;     /* read by relaxed loads: a fence acquires it */
    knowledge fenced;   /* of the last fence: relaxed stores release it */
};

static std::vector<thread_knows> threads;                   /* in the order of running.fibers */
static std::vector<knowledge> warps, blocks;                /* in the order of running.warps and running.blocks */
static std::vector<knowledge> named;                        /* released to named barriers, 16 of each block */
static std::vector<size_t> acquirers;                       /* threads of which `acquired` is not empty */
static std::unordered_map<const void *, knowledge> objects; /* released to an address */

static size_t
number_of(const fiber *f)
{
    return (size_t)(f - running.fibers.data());
}

static size_t
number_of(const warp *w)
{
    return (size_t)(w - running.warps.data());
}

static size_t
number_of(const block *b)
{
    return (size_t)(b - running.blocks.data());
}

bool
comes_before(uint32_t who, uint32_t time, const fiber *f)
{
    return met_since(who, time, f) || blocks[number_of(f->block)].has(who, time) ||
           warps[number_of(f->warp)].has(who, time) || threads[number_of(f)].acquired.has(who, time);
}

bool
would_come_before(uint32_t who, uint32_t time, const fiber *f)
{
    for (size_t i = 0; i < threads.size(); i++)
        if (running.fibers[i].block == f->block && threads[i].seen.has(who, time))
            return true;
    return false;
}

/* Returns everything that comes before the next access of f, including its own accesses so far. */
static knowledge
known_to(fiber *f)
{
    knowledge all = blocks[number_of(f->block)];
    all.raise(knowledge::BLOCK, f->who, f->block->met);
    all.join(warps[number_of(f->warp)]);
    all.raise(knowledge::WARP, f->who, f->warp->met);
    all.join(threads[number_of(f)].acquired);
    f->released = ++f->block->clock;
    all.raise(knowledge::THREAD, f->who, f->released);
    return all;
}

static void
acquire(fiber *f, const knowledge &more)
{
    if (more.empty())
        return;
    if (threads[number_of(f)].acquired.empty())
        acquirers.push_back(number_of(f));
    threads[number_of(f)].acquired.join(more);
}

/* ---- reports ---- */

void
order_grid_begins()
{
    objects.clear();
}

void
order_blocks_begin()
{
    threads.assign(running.fibers.size(), {});
    warps.assign(running.warps.size(), {});
    blocks.assign(running.blocks.size(), {});
    named.assign(running.blocks.size() * 16, {});
    acquirers.clear();
}

void
order_block_met(block *b)
{
    knowledge &all = blocks[number_of(b)];
    all.raise(knowledge::BLOCK, b->warps[0].lanes[0].who, b->met); /* makes entries of its warps superfluous */
    size_t others = 0;
    for (const size_t i : acquirers) {
        if (running.fibers[i].block != b) {
            acquirers[others++] = i;
            continue;
        }
        all.join(threads[i].acquired);
        threads[i].acquired.clear();
    }
    acquirers.resize(others);
    for (unsigned i = 0; i < b->n_warps; i++) {
        knowledge &of_warp = warps[number_of(&b->warps[i])];
        if (of_warp.empty())
            continue;
        all.join(of_warp);
        of_warp.clear();
    }
}

void
order_lanes_met(warp *w, uint32_t lanes)
{
    const bool all_of_them = lanes == w->there;
    knowledge together;
    for (uint32_t left = lanes; left != 0; left &= left - 1) {
        fiber *f = &w->lanes[__builtin_ctz(left)];
        if (all_of_them)
            warps[number_of(w)].join(threads[number_of(f)].acquired);
        else
            together.join(known_to(f));
    }
    for (uint32_t left = all_of_them ? 0 : lanes; left != 0; left &= left - 1)
        acquire(&w->lanes[__builtin_ctz(left)], together);
}

/* Releases the accesses and the knowledge of the warp's lanes. */
void
order_warp_came(warp *w, unsigned id)
{
    block *b = w->lanes[0].block;
    const uint32_t who = w->lanes[0].who;
    knowledge all = blocks[number_of(b)];
    all.raise(knowledge::BLOCK, who, b->met);
    all.join(warps[number_of(w)]);
    b->clock++;
    for (uint32_t left = w->there; left != 0; left &= left - 1) {
        fiber *f = &w->lanes[__builtin_ctz(left)];
        all.join(threads[number_of(f)].acquired);
        f->released = b->clock;
    }
    all.raise(knowledge::WARP, who, b->clock);
    named[number_of(b) * 16 + id].join(all);
}

void
order_named_met(block *b, unsigned id, uint32_t waits)
{
    knowledge &all = named[number_of(b) * 16 + id];
    for (; waits != 0; waits &= waits - 1)
        warps[number_of(&b->warps[__builtin_ctz(waits)])].join(all);
    all.clear();
}

void
order_fenced()
{
    fiber *f = running.now;
    thread_knows &own = threads[number_of(f)];
    acquire(f, own.seen);
    own.seen.clear();
    own.fenced = known_to(f);
}

void
order_atomic(const void *p, atomic_kind kind, unsigned order)
{
    fiber *f = running.now;
    thread_knows &own = threads[number_of(f)];
    auto at = objects.find(p);
    if (kind != STORES && at != objects.end()) {
        if (order & ACQUIRES)
            acquire(f, at->second);
        else
            own.seen.join(at->second);
    }
    if (kind == LOADS)
        return;
    if (kind == STORES && at != objects.end())
        at->second.clear();
    if (order & RELEASES)
        objects[p].join(known_to(f));
    else if (!own.fenced.empty())
        objects[p].join(own.fenced);
}

} // namespace emulation
