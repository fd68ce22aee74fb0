/* Decides which accesses of a grid's threads are ordered (happens-before; Flanagan and Freund, "FastTrack", PLDI 2009),
 * by a clock of each block.
 *
 * Each operation that orders accesses takes the next number of its block's clock: a barrier of the block, a
 * __syncwarp, a release. A thread's time is the number of the last such operation that it took part in. So an access
 * comes before everything that threads of its block do after a barrier with a later number; the same holds within a
 * warp. A thread that acquires gets the releasing thread's knowledge: a short list with the time up to which
 * (exclusive) accesses of a block, warp or thread come before. */
#ifndef EMULATION_RACES_ORDER_H
#define EMULATION_RACES_ORDER_H

#include <utility>
#include <vector>

#include "tests/emulator/threads/grid.h"

namespace emulation
{

/* For blocks, warps and threads: the time up to which their accesses come before. */
class knowledge
{
  public:
    enum kind { BLOCK, WARP, THREAD };
    void raise(kind, uint32_t who, uint32_t time);
    void join(const knowledge &);
    /* Returns true if the thread's access at that time comes before. */
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

/* Returns true if the access of thread `who` at `time` comes before the present access of f by a barrier of the block
 * or warp. */
static inline bool
met_since(uint32_t who, uint32_t time, const fiber *f)
{
    return who == f->who || (who >> THREAD_BITS == f->who >> THREAD_BITS &&
                             (time < f->block->met || (who >> 5 == f->who >> 5 && time < f->warp->met)));
}
/* The same, by a barrier or an acquire. */
bool comes_before(uint32_t who, uint32_t time, const fiber *f);
/* Returns true if it would come before f, had a thread of the block executed a fence after its relaxed load and a
 * barrier with f. */
bool would_come_before(uint32_t who, uint32_t time, const fiber *f);

/* ---- reports (watch.h) ---- */

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
