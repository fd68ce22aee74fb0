/* Which access of a grid's threads comes before which (happens-before; Flanagan and Freund, "FastTrack", PLDI 2009), on the
 * clocks of their blocks.
 *
 * Everything that orders accesses takes the next number on its block's clock: a barrier of the block, a __syncwarp, a release.
 * A thread's time is that of the last one that it took part in. So an access comes before all that threads of its block do
 * behind a barrier of a later time, and likewise in a warp. Beyond that, a thread knows what was released and it acquired: a
 * clock of few entries, each saying up to when (exclusive) accesses of a block, warp or thread come before what it does now. */
#ifndef EMULATION_RACES_ORDER_H
#define EMULATION_RACES_ORDER_H

#include <utility>
#include <vector>

#include "../grid.h"

namespace emulation
{

/* What is known of others: pairs of a key and a time, by key. */
class knowledge
{
  public:
    enum kind { BLOCK, WARP, THREAD };
    void raise(kind, uint32_t who, uint32_t time);
    void join(const knowledge &);
    /* Is an access of that thread at that time among it? */
    bool has(uint32_t who, uint32_t time) const;
    void
    clear()
    {
        entries.clear();
    }
    bool
    empty() const
    {
        return entries.empty();
    }

  private:
    uint32_t until(kind, uint32_t who) const;
    std::vector<std::pair<uint64_t, uint32_t>> entries;
};

/* The clock of the running grid's thread. */
static inline uint32_t
time_of(const fiber *f)
{
    uint32_t t = f->released;
    t = f->warp->met > t ? f->warp->met : t;
    return f->block->met > t ? f->block->met : t;
}

/* Does what thread `who` did at `time` come before what f does now? By its own block's meetings, or at all. */
static inline bool
met_since(uint32_t who, uint32_t time, const fiber *f)
{
    return who == f->who || (who >> THREAD_BITS == f->who >> THREAD_BITS &&
                             (time < f->block->met || (who >> 5 == f->who >> 5 && time < f->warp->met)));
}
bool comes_before(uint32_t who, uint32_t time, const fiber *f);
/* It would, had a thread of the block put a fence behind a relaxed load of its, and met f. */
bool would_come_before(uint32_t who, uint32_t time, const fiber *f);

/* ---- what happens (watch.h) ---- */

void order_grid_begins();
void order_blocks_begin();
void order_block_met(block *);
void order_lanes_met(warp *, uint32_t lanes);
void order_warp_came(warp *, unsigned id);
void order_named_met(block *, unsigned id, uint32_t waits);
void order_fenced();
void order_atomic(const void *, atomic_kind, unsigned order);

} // namespace emulation

#endif
