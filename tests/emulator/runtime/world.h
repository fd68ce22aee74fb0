/* State that the parts of the emulated runtime share. A process has one. */
#ifndef EMULATION_WORLD_H
#define EMULATION_WORLD_H

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_set>

#include <cuda_runtime.h>

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
    cudaError_t last = cudaSuccess; /* result of cudaGetLastError() */
    cudaError_t lost = cudaSuccess; /* an error that every later call returns */
    char complaint[512] = "";
    world();
};
world &all(); /* never freed: threads of streams may outlive main() */

/* Returns the number in an environment variable. */
uint64_t setting(const char *name, uint64_t otherwise);
unsigned multiprocessors();
size_t memory_size();
size_t shared_memory(); /* limit of a block */

enum call { ANY, ALLOCATES, LAUNCHES };
/* Begins every call of the runtime: takes the lock, counts the call, and returns an error if the call must fail. If
 * *later is set, the call succeeds and the work that it queues fails. */
cudaError_t enter(std::unique_lock<std::mutex> &, call, bool *later = nullptr);
#define ENTER(...)                                                                                                     \
    std::unique_lock<std::mutex> hold;                                                                                 \
    if (const cudaError_t refused = emulation::enter(hold, __VA_ARGS__))                                               \
    return refused

/* Appends work to a stream (NULL: the default one). The caller holds the lock. The work stays queued until a call
 * waits. It receives its number (watch.h), which is also returned. `what` names the work and must stay valid. */
uint32_t enqueue(cudaStream_t, const char *what, std::function<cudaError_t(uint32_t op)>);
/* Runs the queued work of a stream (NULL: of all streams) and waits for it. Returns the device's error. */
cudaError_t wait_for(std::unique_lock<std::mutex> &, cudaStream_t);
/* The same without an order for the race checker: CUDA waits when a stream is destroyed or memory is freed, but does
 * not promise it. */
void drain(std::unique_lock<std::mutex> &, cudaStream_t);
cudaStream_t default_stream();
site called(); /* returns the place of the calling thread's last call */
/* Returns true if [p, p + n) is inside one allocation of the map. */
bool within(const std::map<const char *, size_t> &, const void *p, size_t n);
void forget_allocations();

} // namespace emulation

#endif
