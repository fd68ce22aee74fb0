/* Whoever looks at what threads do to memory (races/, in builds that have it), and what is told to them. */
#ifndef EMULATION_WATCH_H
#define EMULATION_WATCH_H

#include "grid.h"

namespace emulation
{

struct watcher {
    void (*allocated)(const void *p, size_t bytes); /* memory that threads share: whole pages */
    void (*freed)(const void *p, size_t bytes);
    void (*grid_begins)();
    void (*blocks_begin)(); /* those that run from now on are set up */
    void (*block_met)(block *);
    void (*lanes_met)(warp *, uint32_t lanes);
    /* Of the running thread: */
    void (*fenced)();
    void (*atomic)(const void *p, size_t n, atomic_kind, unsigned order, site);
    void (*constant)(const void *p, size_t n, site); /* read as what nobody writes while the grid runs */
};
extern const watcher *watching; /* NULL: nobody */

constexpr size_t WATCHED_PAGE = 4096;

} // namespace emulation

#endif
