/* Decides which access of a grid's threads precedes which (happens-before; Flanagan and Freund, "FastTrack", PLDI 2009), by the clocks of
 * their blocks.
 *
 * Everything that orders accesses takes the next number of its block's clock: a barrier of the block, a __syncwarp, a release. A thread's
 * time is the number of the last one that it took part in. So an access precedes all that threads of its block do after a barrier with a
 * later number; the same holds within a warp. A thread also knows what others released and it acquired. This is a clock of few entries. An
 * entry has the time up to which (exclusive) accesses of a block, warp or thread precede what this thread does now. */
#ifndef EMULATION_RACES_ORDER_H
#define EMULATION_RACES_ORDER_H

#include <utility>
#include <vector>

#include "../grid.h"

namespace emulation
{

/* Knowledge of others: pairs of a key and a time, by key. */
class knowledge
{
  public:
    enum kind { BLOCK, WARP, THREAD };
    void raise(kind, uint32_t who, uint32_t time);
    void join(const knowledge &);
    /* Returns true if the thread's access at that time is known. */
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

/* Returns true if what thread `who` did at `time` precedes what f does now: by a meeting of the block, or by knowledge. */
static inline bool
met_since(uint32_t who, uint32_t time, const fiber *f)
{
    return who == f->who || (who >> THREAD_BITS == f->who >> THREAD_BITS &&
                             (time < f->block->met || (who >> 5 == f->who >> 5 && time < f->warp->met)));
}
bool comes_before(uint32_t who, uint32_t time, const fiber *f);
/* Returns true if it would, had a thread of the block executed a fence after one of its relaxed loads, and met f. */
bool would_come_before(uint32_t who, uint32_t time, const fiber *f);

/* ---- events (watch.h) ---- */

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
