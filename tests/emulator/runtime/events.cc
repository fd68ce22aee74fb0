/* Events. */
#include <chrono>

#include "tests/emulator/runtime/streams.h"
#include "tests/emulator/threads/watch.h"

using emulation::all;

extern "C" {

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
    const cudaError_t status = emulation::enter(hold, emulation::ANY);
    delete e;
    return status;
}

cudaError_t
cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    ENTER(emulation::ANY);
    if (!emulation::keeps_call(emulation::RECORD))
        return cudaSuccess;
    e->last = std::make_shared<emulation::record>();
    e->last->done = false;
    e->stream = s != nullptr ? s : emulation::default_stream();
    e->asked = 0;
    e->last->op = emulation::enqueue(s, "an event", [record = e->last](uint32_t) {
        std::lock_guard<std::mutex> inner(all().lock);
        record->done = true;
        record->ms =
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
        return cudaSuccess;
    });
    return cudaSuccess;
}

/* The first query of an event lets the event's own stream run; further queries let all streams run. All queries of an
 * event count as one call, so that a program that queries in a loop makes the same calls in every run. */
cudaError_t
cudaEventQuery(cudaEvent_t e)
{
    std::unique_lock<std::mutex> hold;
    if (e->asked == 0) {
        if (const cudaError_t refused = emulation::enter(hold, emulation::ANY))
            return refused;
        if (all().streams.count(e->stream) != 0)
            emulation::release(e->stream);
    } else {
        hold = std::unique_lock<std::mutex>(all().lock);
        emulation::release_all();
    }
    e->asked++;
    if (all().lost != cudaSuccess)
        return all().lost;
    if (!emulation::keeps_call(emulation::WAIT))
        return cudaSuccess;
    if (!e->last->done)
        return emulation::not_ready(hold);
    emulation::has_waited_for(e->last->op);
    return cudaSuccess;
}

cudaError_t
cudaEventSynchronize(cudaEvent_t e)
{
    ENTER(emulation::ANY);
    if (!emulation::keeps_call(emulation::WAIT))
        return cudaSuccess;
    if (all().streams.count(e->stream) != 0)
        emulation::release(e->stream);
    const std::shared_ptr<emulation::record> record = e->last;
    all().news.wait(hold, [&] { return record->done || all().lost != cudaSuccess; });
    if (record->done)
        emulation::has_waited_for(record->op);
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
