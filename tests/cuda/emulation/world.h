/* State that the parts of the emulated runtime share: a process's view of its emulated GPUs. */
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
    std::mutex lock; /* of all members below, and of streams and events */
    std::condition_variable news;
    std::unordered_set<emulated_stream *> streams;
    std::map<const char *, size_t> device, pinned; /* allocations by address */
    std::map<const void *, size_t> allowed;        /* dynamic shared memory of kernels */
    size_t used = 0;                               /* bytes of device */
    uint64_t calls = 0, fail_at, seed;
    emulated_failure kind;
    cudaError_t last = cudaSuccess; /* what cudaGetLastError says */
    cudaError_t lost = cudaSuccess; /* what every call returns, once it is not success */
    char complaint[512] = "";
    world();
};
world &all(); /* never freed: threads of streams may outlive main() */

/* Returns the number in an environment variable. */
uint64_t setting(const char *name, uint64_t otherwise);
unsigned multiprocessors();
size_t memory_size();
size_t shared_memory(); /* most of a block's */

enum call { ANY, ALLOCATES, LAUNCHES };
/* Every call begins with it: it takes the lock, counts the call, and lets it fail if this was requested. *later: the call succeeds, and the
 * work that it queues will fail. */
cudaError_t enter(std::unique_lock<std::mutex> &, call, bool *later = nullptr);
#define ENTER(...)                                                                                                     \
    std::unique_lock<std::mutex> hold;                                                                                 \
    if (const cudaError_t refused = emulation::enter(hold, __VA_ARGS__))                                               \
    return refused

/* With the lock held: puts work at the end of a stream (NULL: the default one). The work receives its number (watch.h), and stays queued
 * until a call waits. `what` must stay valid; it begins with a name. Returns the number. */
uint32_t enqueue(cudaStream_t, const char *what, std::function<cudaError_t(uint32_t op)>);
/* Runs the queued work, and waits until it is done; NULL: of all streams. Returns the device's error after it. */
cudaError_t wait_for(std::unique_lock<std::mutex> &, cudaStream_t);
/* The same for calls for which CUDA waits but does not promise it: a caller that drops a stream, or frees memory, has not waited. */
void drain(std::unique_lock<std::mutex> &, cudaStream_t);
cudaStream_t default_stream();
site called(); /* where the calling thread made its call */
/* Returns true if [p, p + n) is inside one allocation of the map. */
bool within(const std::map<const char *, size_t> &, const void *p, size_t n);
void forget_allocations();

} // namespace emulation

#endif
