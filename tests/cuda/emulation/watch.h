/* Whoever looks at what threads, streams and the host do to memory (races/, in builds that have it), and what is told to them. */
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
    void (*warp_came)(warp *, unsigned id); /* at a named barrier */
    void (*named_met)(block *, unsigned id, uint32_t waits);
    /* Of the running thread: */
    void (*fenced)();
    void (*atomic)(const void *p, size_t n, atomic_kind, unsigned order, site);
    void (*constant)(const void *p, size_t n, site); /* read as what nobody writes while the grid runs */
    /* Of streams, which have numbers, and of what is queued there, which has too; with the world's lock held: */
    uint32_t (*stream_begins)();
    void (*stream_ends)(uint32_t stream);
    uint32_t (*queued)(uint32_t stream, const char *what, site);
    void (*follows)(uint32_t op,
                    uint32_t other); /* it, and what is queued behind it, waits for one of another stream */
    void (*waited_for)(uint32_t op); /* the host has, and so for all that comes before it; 0: for all there is */
    /* The host frees memory, of which it must know that nobody uses it: CUDA may wait first, but says so nowhere. */
    void (*frees)(const void *p, size_t n, site);
    /* Of an operation that runs: */
    void (*moves)(uint32_t op, const void *p, size_t n, bool writes);
};
extern const watcher *watching; /* NULL: nobody */

/* Something is wrong, and was said: with EMULATED_CUDA_DROP that is enough, and this ends the process. */
void found();
constexpr int FOUND = 97; /* its status */

constexpr size_t WATCHED_PAGE = 4096;

} // namespace emulation

#endif
