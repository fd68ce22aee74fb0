/* What the parts of the emulated runtime share: one process's view of its emulated GPUs. */
#ifndef EMULATION_WORLD_H
#define EMULATION_WORLD_H

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_set>

#include "cuda_runtime.h"

namespace emulation
{

struct world {
    std::mutex lock; /* of all below, and of streams and events */
    std::condition_variable news;
    std::unordered_set<emulated_stream *> streams;
    std::map<const char *, size_t> device, pinned; /* allocations by address */
    std::map<const void *, size_t> allowed;        /* dynamic shared memory of kernels */
    size_t used = 0;                               /* bytes of device */
    uint64_t calls = 0, fail_at, seed;
    emulated_failure kind;
    cudaError_t last = cudaSuccess; /* what cudaGetLastError says */
    cudaError_t lost = cudaSuccess; /* what every call says, once it is not success */
    char complaint[512] = "";
    world();
};
world &all(); /* never goes: threads of streams may outlive main() */

/* An environment variable's number. */
uint64_t setting(const char *name, uint64_t otherwise);
unsigned multiprocessors();
size_t memory_size();
size_t shared_memory(); /* most of a block's */

enum call { ANY, ALLOCATES, LAUNCHES };
/* Every call begins with it: takes the lock, counts the call, lets it fail where that was asked for. *later: the call
 * succeeds, and what it queues will fail. */
cudaError_t enter(std::unique_lock<std::mutex> &, call, bool *later = nullptr);
#define ENTER(...)                                                                                                     \
    std::unique_lock<std::mutex> hold;                                                                                 \
    if (const cudaError_t refused = emulation::enter(hold, __VA_ARGS__))                                               \
    return refused

/* With the lock held: puts work at the end of a stream (NULL: the default one), which is told its number (watch.h). It stays
 * there until somebody waits. `what` stays, and begins with a name. Returns the number. */
uint32_t enqueue(cudaStream_t, const char *what, std::function<cudaError_t(uint32_t op)>);
/* Lets what is queued run, and waits until it is done; NULL: of all streams. Returns what the device says then. */
cudaError_t wait_for(std::unique_lock<std::mutex> &, cudaStream_t);
/* The same where CUDA waits and promises nothing: who drops a stream, or frees memory, has not waited. */
void drain(std::unique_lock<std::mutex> &, cudaStream_t);
cudaStream_t default_stream();
site called(); /* where the calling thread made its call */
/* Is [p, p + n) inside one allocation of the map? */
bool within(const std::map<const char *, size_t> &, const void *p, size_t n);
void forget_allocations();

} // namespace emulation

#endif
