/* Streams and events. Each stream has a thread of the host. What is queued stays queued until somebody waits for it or
 * asks, and then only as much goes on as has to: so that results that are read too early, or by another stream that did
 * not wait, are what was there before. */
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>

#include "world.h"

using emulation::all;

namespace
{

struct record {
    bool done = true;
    double ms = 0;
};

} // namespace

struct emulated_event {
    std::shared_ptr<record> last = std::make_shared<record>();
    cudaStream_t stream = nullptr; /* that it was recorded in */
    unsigned asked = 0;            /* since then */
};

struct emulated_stream {
    std::deque<std::function<cudaError_t()>> queue;
    size_t released = 0; /* how much of the queue may run */
    bool busy = false, ending = false;
    std::thread worker;
};

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
            const cudaError_t said = next();
            hold.lock();
            s->busy = false;
            if (said != cudaSuccess && w.lost == cudaSuccess)
                w.lost = w.last = said;
        }
        w.news.notify_all();
    }
}

bool
idle(const emulated_stream *s)
{
    return s->queue.empty() && !s->busy;
}

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
    all().news.wait_for(hold, std::chrono::microseconds(100)); /* asking takes time, which the asked can use */
    return all().lost != cudaSuccess ? all().lost : cudaErrorNotReady;
}

} // namespace

cudaStream_t
emulation::default_stream()
{
    static emulated_stream *made = nullptr;
    if (made == nullptr) {
        made = new emulated_stream;
        made->worker = std::thread(work, made);
        made->worker.detach();
        all().streams.insert(made);
    }
    return made;
}

void
emulation::enqueue(cudaStream_t s, std::function<cudaError_t()> what)
{
    (s != nullptr ? s : default_stream())->queue.push_back(std::move(what));
}

cudaError_t
emulation::wait_for(std::unique_lock<std::mutex> &hold, cudaStream_t s)
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
    return all().lost;
}

void
emulated_allow_shared(const void *kernel, size_t shared)
{
    std::lock_guard<std::mutex> hold(all().lock);
    all().allowed[kernel] = shared;
}

cudaError_t
emulated_launch(const char *name, const void *kernel, std::function<void()> thread, dim3 grid, dim3 block,
                size_t shared, bool cooperative, cudaStream_t to)
{
    bool later = false;
    ENTER(emulation::LAUNCHES, &later);
    const uint64_t threads = (uint64_t)block.x * block.y * block.z, blocks = (uint64_t)grid.x * grid.y * grid.z;
    if (threads == 0 || threads > 1024 || blocks == 0 || grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535)
        return all().last = cudaErrorInvalidConfiguration;
    const auto allowed = all().allowed.find(kernel);
    if (shared > emulation::shared_memory() ||
        (shared > 48 << 10 && (allowed == all().allowed.end() || shared > allowed->second)))
        return all().last = cudaErrorInvalidValue;
    if (cooperative && blocks > emulation::multiprocessors())
        return all().last = cudaErrorCooperativeLaunchTooLarge;
    const emulation::launched what = {std::move(thread), name, grid, block, shared, cooperative, all().seed};
    emulation::enqueue(to, [=] {
        char complaint[sizeof all().complaint];
        if (later)
            return cudaErrorLaunchFailure;
        if (emulation::run_grid(what, complaint, sizeof complaint))
            return cudaSuccess;
        if (what.seed != 0)
            fprintf(stderr, "emulated GPU: with EMULATED_CUDA_SEED=%llu,\n", (unsigned long long)what.seed);
        fprintf(stderr, "emulated GPU: %s\n", complaint);
        std::lock_guard<std::mutex> inner(all().lock);
        memcpy(all().complaint, complaint, sizeof complaint);
        return cudaErrorLaunchFailure;
    });
    return cudaSuccess;
}

extern "C" {

cudaError_t
emulated_cuda_enqueue(cudaStream_t to, cudaError_t (*work)(void *), void *what)
{
    bool later = false;
    ENTER(emulation::LAUNCHES, &later);
    if (all().streams.count(to) == 0)
        return all().last = cudaErrorInvalidResourceHandle;
    emulation::enqueue(to, [=] {
        const cudaError_t said = work(what);
        return later ? cudaErrorLaunchFailure : said;
    });
    return cudaSuccess;
}

/* ---- streams ---- */

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    *out = nullptr;
    ENTER(emulation::ANY);
    auto *s = new emulated_stream;
    s->worker = std::thread(work, s);
    all().streams.insert(s);
    *out = s;
    return cudaSuccess;
}

cudaError_t
cudaStreamDestroy(cudaStream_t s)
{
    std::unique_lock<std::mutex> hold;
    const cudaError_t said = emulation::enter(hold, emulation::ANY);
    if (all().streams.count(s) == 0)
        return cudaErrorInvalidResourceHandle;
    emulation::wait_for(hold, s); /* on a lost device too: nothing is done there any more */
    s->ending = true;
    all().news.notify_all();
    hold.unlock();
    s->worker.join();
    hold.lock();
    all().streams.erase(s);
    delete s;
    return said;
}

cudaError_t
cudaStreamSynchronize(cudaStream_t s)
{
    ENTER(emulation::ANY);
    return emulation::wait_for(hold, s != nullptr ? s : emulation::default_stream());
}

cudaError_t
cudaStreamQuery(cudaStream_t s)
{
    ENTER(emulation::ANY);
    release_all();
    return idle(s != nullptr ? s : emulation::default_stream()) ? all().lost : not_ready(hold);
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
    ENTER(emulation::ANY);
    emulation::enqueue(s, [record = e->last] {
        std::unique_lock<std::mutex> inner(all().lock);
        release_all();
        all().news.wait(inner, [&] { return record->done || all().lost != cudaSuccess; });
        return cudaSuccess;
    });
    return cudaSuccess;
}

cudaError_t
cudaDeviceSynchronize(void)
{
    ENTER(emulation::ANY);
    return emulation::wait_for(hold, nullptr);
}

/* ---- events ---- */

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *out, unsigned)
{
    *out = nullptr;
    ENTER(emulation::ANY);
    *out = new emulated_event;
    return cudaSuccess;
}

cudaError_t
cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, 0);
}

cudaError_t
cudaEventDestroy(cudaEvent_t e)
{
    std::unique_lock<std::mutex> hold;
    const cudaError_t said = emulation::enter(hold, emulation::ANY);
    delete e;
    return said;
}

cudaError_t
cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    ENTER(emulation::ANY);
    e->last = std::make_shared<record>();
    e->last->done = false;
    e->stream = s != nullptr ? s : emulation::default_stream();
    e->asked = 0;
    emulation::enqueue(s, [record = e->last] {
        std::lock_guard<std::mutex> inner(all().lock);
        record->done = true;
        record->ms =
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
        return cudaSuccess;
    });
    return cudaSuccess;
}

/* Who asks once gets the event's own stream to go on; who asks again gives time to all. Counts as one call, however often
 * it is asked: programs that ask in a loop then make the same calls every time. */
cudaError_t
cudaEventQuery(cudaEvent_t e)
{
    std::unique_lock<std::mutex> hold;
    if (e->asked == 0) {
        if (const cudaError_t refused = emulation::enter(hold, emulation::ANY))
            return refused;
        if (all().streams.count(e->stream) != 0)
            release(e->stream);
    } else {
        hold = std::unique_lock<std::mutex>(all().lock);
        release_all();
    }
    e->asked++;
    if (all().lost != cudaSuccess)
        return all().lost;
    return e->last->done ? cudaSuccess : not_ready(hold);
}

cudaError_t
cudaEventSynchronize(cudaEvent_t e)
{
    ENTER(emulation::ANY);
    if (all().streams.count(e->stream) != 0)
        release(e->stream);
    const std::shared_ptr<record> record = e->last;
    all().news.wait(hold, [&] { return record->done || all().lost != cudaSuccess; });
    return all().lost;
}

cudaError_t
cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    ENTER(emulation::ANY);
    if (!from->last->done || !to->last->done)
        return all().last = cudaErrorNotReady;
    *ms = (float)(to->last->ms - from->last->ms);
    return cudaSuccess;
}
}
