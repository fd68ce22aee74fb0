/* The race detector (races/, in builds that have it), and the reports that it receives about accesses of threads, streams and the host. */
#ifndef EMULATION_WATCH_H
#define EMULATION_WATCH_H

#include "grid.h"

namespace emulation
{

struct watcher {
    void (*allocated)(const void *p, size_t bytes); /* memory that threads share: whole pages */
    void (*freed)(const void *p, size_t bytes);
    void (*grid_begins)();
    void (*blocks_begin)(); /* threads that run from now on are set up */
    void (*block_met)(block *);
    void (*lanes_met)(warp *, uint32_t lanes);
    void (*warp_came)(warp *, unsigned id); /* at a named barrier */
    void (*named_met)(block *, unsigned id, uint32_t waits);
    /* Reports of the running thread: */
    void (*fenced)();
    void (*atomic)(const void *p, size_t n, atomic_kind, unsigned order, site);
    void (*constant)(const void *p, size_t n, site); /* a read of memory that is constant while the grid runs */
    /* Reports of streams and of their operations, both by number; with the world's lock held: */
    uint32_t (*stream_begins)();
    void (*stream_ends)(uint32_t stream);
    uint32_t (*queued)(uint32_t stream, const char *what, site);
    void (*follows)(uint32_t op,
                    /* the operation, and those queued after it, wait for an operation of another stream */
                    uint32_t other);
    /* the host has waited, also for all that precedes the operation; 0: for everything */
    void (*waited_for)(uint32_t op);
    /* The host frees memory, which must not be in use: CUDA may wait first, but does not document this. */
    void (*frees)(const void *p, size_t n, site);
    /* Reports of a running operation: */
    void (*moves)(uint32_t op, const void *p, size_t n, bool writes);
};
extern const watcher *watching; /* NULL: nobody */

/* Ends the process after an error was reported; one is enough with EMULATED_CUDA_DROP. */
void found();
constexpr int FOUND = 97; /* its status */

constexpr size_t WATCHED_PAGE = 4096;

} // namespace emulation

#endif
