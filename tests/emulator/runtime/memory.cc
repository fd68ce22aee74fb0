/* Memory of the device and pinned memory of the host. Every allocation is one of the host's, with the address
 * sanitizer's red zones around it, and poisoned. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/emulator/runtime/world.h"
#include "tests/emulator/threads/watch.h"

using emulation::all;

bool
emulation::within(const std::map<const char *, size_t> &map, const void *p, size_t n)
{
    auto at = map.upper_bound((const char *)p);
    if (at == map.begin())
        return false;
    --at;
    return (size_t)((const char *)p - at->first) <= at->second &&
           n <= at->second - (size_t)((const char *)p - at->first);
}

bool
emulation::on_device(const void *p, size_t bytes)
{
    std::lock_guard<std::mutex> hold(all().lock);
    return within(all().device, p, bytes);
}

void
emulation::forget_allocations()
{
    for (auto *map : {&all().device, &all().pinned}) {
        for (const auto &each : *map) {
            if (watching != nullptr)
                watching->freed(each.first, each.second);
            free((void *)each.first);
        }
        map->clear();
    }
    all().used = 0;
}

namespace
{

/* Reports an error in a call of the program. */
cudaError_t
refuse(const char *what, size_t n)
{
    snprintf(all().complaint, sizeof all().complaint, "%s, %zu bytes", what, n);
    fprintf(stderr, "emulated GPU: %s\n", all().complaint);
    return all().last = cudaErrorInvalidValue;
}

cudaError_t
check_copy(const void *to, const void *from, size_t n, cudaMemcpyKind kind)
{
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice,
               from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (n > 0 && emulation::within(all().device, to, n) != to_device)
        return refuse(to_device ? "a copy to an address that is not device memory"
                                : "a copy to the host has the address of device memory",
                      n);
    if (n > 0 && emulation::within(all().device, from, n) != from_device)
        return refuse(from_device ? "a copy from an address that is not device memory"
                                  : "a copy from the host has the address of device memory",
                      n);
    return cudaSuccess;
}

cudaError_t
allocate(std::map<const char *, size_t> &map, void **out, size_t bytes)
{
    emulation::world &w = all();
    const bool on_device = &map == &w.device;
    void *p = nullptr;
    if (on_device && (bytes > emulation::memory_size() || w.used > emulation::memory_size() - bytes))
        return w.last = cudaErrorMemoryAllocation;
    const size_t page = emulation::WATCHED_PAGE,
                 room = emulation::watching != nullptr ? (bytes + page - 1) / page * page : bytes;
    if (posix_memalign(&p, emulation::watching != nullptr ? page : 256, room > 0 ? room : 1) != 0)
        return w.last = cudaErrorMemoryAllocation;
    memset(p, emulation::POISON, bytes);
    map[(const char *)p] = bytes;
    if (emulation::watching != nullptr)
        emulation::watching->allocated(p, room);
    w.used += on_device ? bytes : 0;
    *out = p;
    return cudaSuccess;
}

/* Frees memory after waiting for the device, as CUDA does. */
cudaError_t
release(std::unique_lock<std::mutex> &hold, std::map<const char *, size_t> &map, void *p)
{
    emulation::world &w = all();
    if (p == nullptr)
        return cudaSuccess;
    auto at = map.find((const char *)p);
    if (at != map.end() && emulation::watching != nullptr) {
        const size_t bytes = at->second;
        hold.unlock();
        emulation::watching->frees(p, bytes, emulation::called());
        hold.lock();
    }
    emulation::drain(hold, nullptr);
    at = map.find((const char *)p);
    if (at == map.end())
        return refuse("freed twice, or never allocated", 0);
    w.used -= &map == &w.device ? at->second : 0;
    if (emulation::watching != nullptr)
        emulation::watching->freed(p, at->second);
    map.erase(at);
    free(p);
    return cudaSuccess;
}

void
moves(uint32_t op, const void *p, size_t n, bool writes)
{
    if (emulation::watching != nullptr && n > 0)
        emulation::watching->moves(op, p, n, writes);
}

/* Queues a copy. Data from pageable memory has been read when this returns. Data for pageable memory arrives when the
 * program waits for the stream; CUDA may be faster. */
void
enqueue_copy(void *to, const void *from, size_t n, cudaMemcpyKind kind, cudaStream_t stream)
{
    if (kind == cudaMemcpyHostToDevice && !emulation::within(all().pinned, from, n)) {
        const char *bytes = (const char *)from;
        emulation::enqueue(stream, "a copy", [to, staged = std::vector<char>(bytes, bytes + n)](uint32_t op) {
            moves(op, to, staged.size(), true);
            if (!staged.empty())
                memcpy(to, staged.data(), staged.size());
            return cudaSuccess;
        });
        return;
    }
    emulation::enqueue(stream, "a copy", [=](uint32_t op) {
        moves(op, from, n, false);
        moves(op, to, n, true);
        if (n > 0)
            memcpy(to, from, n);
        return cudaSuccess;
    });
}

__attribute__((destructor)) void
report_leaks()
{
    std::lock_guard<std::mutex> hold(all().lock);
    size_t bytes = 0;
    for (const auto *map : {&all().device, &all().pinned})
        for (const auto &each : *map)
            bytes += each.second;
    if (bytes > 0 && all().lost == cudaSuccess)
        fprintf(stderr, "emulated GPU: %zu allocations, %zu bytes, were not freed\n",
                all().device.size() + all().pinned.size(), bytes);
}

} // namespace

extern "C" {

bool
emulated_cuda_on_device(const void *p, size_t n)
{
    std::lock_guard<std::mutex> hold(all().lock);
    return emulation::within(all().device, p, n);
}

cudaError_t
cudaMalloc(void **out, size_t bytes)
{
    *out = nullptr;
    ENTER(emulation::ALLOCATES);
    return allocate(all().device, out, bytes);
}

cudaError_t
cudaFree(void *p)
{
    ENTER(emulation::ANY);
    return release(hold, all().device, p);
}

cudaError_t
cudaHostAlloc(void **out, size_t bytes, unsigned)
{
    *out = nullptr;
    ENTER(emulation::ALLOCATES);
    return allocate(all().pinned, out, bytes);
}

cudaError_t
cudaFreeHost(void *p)
{
    ENTER(emulation::ANY);
    return release(hold, all().pinned, p);
}

/* Works in the default stream, which is independent of streams that were made with cudaStreamNonBlocking. A copy from
 * pageable memory has read everything when this returns, but has not reached the device yet. */
cudaError_t
cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind)
{
    ENTER(emulation::ANY);
    const cudaError_t status = check_copy(to, from, n, kind);
    if (status != cudaSuccess)
        return status;
    enqueue_copy(to, from, n, kind, nullptr);
    const bool staged = kind == cudaMemcpyHostToDevice && !emulation::within(all().pinned, from, n);
    return staged || kind == cudaMemcpyDeviceToDevice ? cudaSuccess
                                                      : emulation::wait_for(hold, emulation::default_stream());
}

cudaError_t
cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    ENTER(emulation::ANY);
    const cudaError_t status = check_copy(to, from, n, kind);
    if (status == cudaSuccess)
        enqueue_copy(to, from, n, kind, stream);
    return status;
}

/* Copies row by row. As in CUDA, a pitch is at least a row's width and at most 2^31 - 1. */
cudaError_t
cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                  enum cudaMemcpyKind kind, cudaStream_t stream)
{
    ENTER(emulation::ANY);
    if (std::min(to_pitch, from_pitch) < width || std::max(to_pitch, from_pitch) > INT32_MAX)
        return refuse("a copy of rows that are wider than their pitch, or with a pitch that is too large", width);
    for (size_t row = 0; row < height; row++) {
        char *const there = (char *)to + row * to_pitch;
        const char *const here = (const char *)from + row * from_pitch;
        const cudaError_t status = check_copy(there, here, width, kind);
        if (status != cudaSuccess)
            return status;
        enqueue_copy(there, here, width, kind, stream);
    }
    return cudaSuccess;
}

cudaError_t
cudaMemset(void *p, int value, size_t n)
{
    return cudaMemsetAsync(p, value, n, nullptr);
}

cudaError_t
cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t stream)
{
    ENTER(emulation::ANY);
    if (!emulation::within(all().device, p, n))
        return refuse("a memset of an address that is not device memory", n);
    emulation::enqueue(stream, "a memset", [=](uint32_t op) {
        moves(op, p, n, true);
        memset(p, value, n);
        return cudaSuccess;
    });
    return cudaSuccess;
}

cudaError_t
cudaMemGetInfo(size_t *left, size_t *total)
{
    ENTER(emulation::ANY);
    *total = emulation::memory_size();
    *left = *total - all().used;
    return cudaSuccess;
}
}
