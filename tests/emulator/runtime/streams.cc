/* Streams. Each stream has a thread of the host. Work stays queued until a call waits for it or queries it, and then
 * only the necessary part runs. So a program that reads a result too early, or in another stream without a wait, reads
 * the earlier contents. */
#include "tests/emulator/runtime/streams.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/emulator/threads/watch.h"

using emulation::all;

namespace
{

void
work(emulated_stream *s)
{
    emulation::world &w = all();
    std::unique_lock<std::mutex> hold(w.lock);
    for (;;) {
        w.news.wait(hold, [&] { return s->ending || s->released > 0; });
        if (s->released == 0)
            return;
        const std::function<cudaError_t()> next = std::move(s->queue.front());
        s->queue.pop_front();
        s->released--;
        if (w.lost == cudaSuccess) {
            s->busy = true;
            hold.unlock();
            const cudaError_t status = next();
            hold.lock();
            s->busy = false;
            if (status != cudaSuccess && w.lost == cudaSuccess)
                w.lost = w.last = status;
        }
        w.news.notify_all();
    }
}

bool
idle(const emulated_stream *s)
{
    return s->queue.empty() && !s->busy;
}

emulated_stream *
make_stream()
{
    auto *s = new emulated_stream;
    if (emulation::watching != nullptr)
        s->number = emulation::watching->stream_begins();
    s->worker = std::thread(work, s);
    all().streams.insert(s);
    return s;
}

} // namespace

namespace emulation
{

/* Only threads of the host that make calls use it, not threads that run grids (shared.h). */
static thread_local site place = {"", 0};

void
release(emulated_stream *s)
{
    if (s->released == s->queue.size())
        return;
    s->released = s->queue.size();
    all().news.notify_all();
}

void
release_all()
{
    for (emulated_stream *s : all().streams)
        release(s);
}

cudaError_t
not_ready(std::unique_lock<std::mutex> &hold)
{
    all().news.wait_for(hold, std::chrono::microseconds(100)); /* gives the stream time to run */
    return all().lost != cudaSuccess ? all().lost : cudaErrorNotReady;
}

void
has_waited_for(uint32_t op)
{
    if (watching != nullptr && op != 0)
        watching->waited_for(op);
}

site
called()
{
    return place;
}

bool
keeps_call(ordering kind)
{
    return keeps(kind, place);
}

} // namespace emulation

cudaStream_t
emulation::default_stream()
{
    static emulated_stream *made = nullptr;
    if (made == nullptr) {
        made = make_stream();
        made->worker.detach();
    }
    return made;
}

uint32_t
emulation::enqueue(cudaStream_t to, const char *what, std::function<cudaError_t(uint32_t)> todo)
{
    emulated_stream *const s = to != nullptr ? to : default_stream();
    const uint32_t op = watching != nullptr ? watching->queued(s->number, what, place) : 0;
    s->last = op;
    s->queue.push_back([op, todo = std::move(todo)] { return todo(op); });
    return op;
}

void
emulation::drain(std::unique_lock<std::mutex> &hold, cudaStream_t s)
{
    if (s != nullptr)
        release(s);
    else
        release_all();
    all().news.wait(hold, [&] {
        if (s != nullptr)
            return idle(s);
        for (const emulated_stream *each : all().streams)
            if (!idle(each))
                return false;
        return true;
    });
}

cudaError_t
emulation::wait_for(std::unique_lock<std::mutex> &hold, cudaStream_t s)
{
    drain(hold, s);
    if (s != nullptr)
        has_waited_for(s->last);
    else if (watching != nullptr)
        watching->waited_for(0);
    return all().lost;
}

void
emulated_allow_shared(const void *kernel, size_t shared)
{
    std::lock_guard<std::mutex> hold(all().lock);
    all().allowed[kernel] = shared;
}

cudaError_t
emulated_launch(const emulation::launched &asked, size_t size, cudaStream_t to)
{
    bool later = false;
    ENTER(emulation::LAUNCHES, &later);
    const dim3 grid = asked.grid, block = asked.block;
    const uint64_t threads = (uint64_t)block.x * block.y * block.z, blocks = (uint64_t)grid.x * grid.y * grid.z;
    if (threads == 0 || threads > 1024 || blocks == 0 || grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535)
        return all().last = cudaErrorInvalidConfiguration;
    const auto allowed = all().allowed.find(asked.kernel);
    if (asked.shared > emulation::shared_memory() ||
        (asked.shared > 48 << 10 && (allowed == all().allowed.end() || asked.shared > allowed->second)))
        return all().last = cudaErrorInvalidValue;
    if (asked.cooperative && blocks > emulation::multiprocessors())
        return all().last = cudaErrorCooperativeLaunchTooLarge;
    emulation::launched what = asked;
    what.seed = all().seed;
    std::vector<max_align_t> argument(size / sizeof(max_align_t) + 1);
    memcpy(argument.data(), asked.argument, size);
    emulation::enqueue(to, what.name, [later, what, argument](uint32_t op) mutable {
        char complaint[sizeof all().complaint];
        if (later)
            return cudaErrorLaunchFailure;
        what.op = op;
        what.argument = argument.data();
        if (emulation::run_grid(what, complaint, sizeof complaint))
            return cudaSuccess;
        if (what.seed != 0)
            fprintf(stderr, "emulated GPU: with EMULATED_CUDA_SEED=%llu,\n", (unsigned long long)what.seed);
        fprintf(stderr, "emulated GPU: %s\n", complaint);
        emulation::found();
        std::lock_guard<std::mutex> inner(all().lock);
        memcpy(all().complaint, complaint, sizeof complaint);
        return cudaErrorLaunchFailure;
    });
    return cudaSuccess;
}

extern "C" {

void
emulated_cuda_place(const char *file, int line)
{
    emulation::place = {file, line};
}

cudaError_t
emulated_cuda_enqueue(cudaStream_t to, cudaError_t (*work)(void *), void *what, const struct emulated_range *ranges,
                      size_t n)
{
    bool later = false;
    ENTER(emulation::LAUNCHES, &later);
    if (all().streams.count(to) == 0)
        return all().last = cudaErrorInvalidResourceHandle;
    const std::vector<emulated_range> touched(ranges, ranges + n);
    emulation::enqueue(to, "a library's kernel", [=](uint32_t op) {
        for (const emulated_range &each : touched)
            if (emulation::watching != nullptr)
                emulation::watching->moves(op, each.p, each.bytes, each.writes);
        const cudaError_t status = work(what);
        return later ? cudaErrorLaunchFailure : status;
    });
    return cudaSuccess;
}

/* ---- streams ---- */

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    *out = nullptr;
    ENTER(emulation::ANY);
    *out = make_stream();
    return cudaSuccess;
}

cudaError_t
cudaStreamDestroy(cudaStream_t s)
{
    std::unique_lock<std::mutex> hold;
    const cudaError_t status = emulation::enter(hold, emulation::ANY);
    if (all().streams.count(s) == 0)
        return cudaErrorInvalidResourceHandle;
    emulation::drain(hold, s); /* the queue of a lost device is discarded */
    if (emulation::watching != nullptr)
        emulation::watching->stream_ends(s->number);
    s->ending = true;
    all().news.notify_all();
    hold.unlock();
    s->worker.join();
    hold.lock();
    all().streams.erase(s);
    delete s;
    return status;
}

cudaError_t
cudaStreamSynchronize(cudaStream_t s)
{
    ENTER(emulation::ANY);
    return emulation::keeps_call(emulation::WAIT)
               ? emulation::wait_for(hold, s != nullptr ? s : emulation::default_stream())
               : cudaSuccess;
}

cudaError_t
cudaStreamQuery(cudaStream_t s)
{
    ENTER(emulation::ANY);
    emulation::release_all();
    const emulated_stream *const asked = s != nullptr ? s : emulation::default_stream();
    if (!idle(asked))
        return emulation::not_ready(hold);
    emulation::has_waited_for(asked->last);
    return all().lost;
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
    ENTER(emulation::ANY);
    if (!emulation::keeps_call(emulation::WAIT))
        return cudaSuccess;
    const uint32_t op = emulation::enqueue(s, "a wait of a stream", [record = e->last](uint32_t) {
        std::unique_lock<std::mutex> inner(all().lock);
        emulation::release_all();
        all().news.wait(inner, [&] { return record->done || all().lost != cudaSuccess; });
        return cudaSuccess;
    });
    if (emulation::watching != nullptr && e->last->op != 0)
        emulation::watching->follows(op, e->last->op);
    return cudaSuccess;
}

cudaError_t
cudaDeviceSynchronize(void)
{
    ENTER(emulation::ANY);
    return emulation::keeps_call(emulation::WAIT) ? emulation::wait_for(hold, nullptr) : cudaSuccess;
}
}
