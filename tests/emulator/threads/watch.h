/* The interface of the race checker (races/): functions that receive reports about accesses of threads, streams and the
 * host. */
#ifndef EMULATION_WATCH_H
#define EMULATION_WATCH_H

#include "tests/emulator/threads/grid.h"

namespace emulation
{

struct watcher {
    void (*allocated)(const void *p, size_t bytes); /* memory that threads share, in whole pages */
    void (*freed)(const void *p, size_t bytes);
    void (*grid_begins)();
    void (*blocks_begin)(); /* the threads of the next blocks are set up */
    void (*block_met)(block *);
    void (*lanes_met)(warp *, uint32_t lanes);
    void (*warp_came)(warp *, unsigned id); /* at a named barrier */
    void (*named_met)(block *, unsigned id, uint32_t waits);
    /* Reports of the running thread: */
    void (*fenced)();
    void (*atomic)(const void *p, size_t n, atomic_kind, unsigned order, site);
    void (*constant)(const void *p, size_t n, site); /* a read-only load */
    /* Reports of streams and of their operations, both by number; with the world's lock held: */
    uint32_t (*stream_begins)();
    void (*stream_ends)(uint32_t stream);
    uint32_t (*queued)(uint32_t stream, const char *what, site);
    /* the operation, and those queued after it, wait for an operation of another stream */
    void (*follows)(uint32_t op, uint32_t other);
    /* the host has waited for the operation and all that precedes it; 0: for all operations */
    void (*waited_for)(uint32_t op);
    /* The host frees memory, which no operation may use any more. CUDA may wait first, but does not document this. */
    void (*frees)(const void *p, size_t n, site);
    /* Reports of a running operation: */
    void (*moves)(uint32_t op, const void *p, size_t n, bool writes);
};
extern const watcher *watching; /* NULL: there is no race checker */

/* Ends the process after an error was reported, if EMULATED_CUDA_DROP is set. */
void found();
constexpr int FOUND = 97; /* its status */

constexpr size_t WATCHED_PAGE = 4096;

} // namespace emulation

#endif
