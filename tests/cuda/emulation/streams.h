/* The contents of streams and events. The world's lock protects all of them. */
#ifndef EMULATION_STREAMS_H
#define EMULATION_STREAMS_H

#include <deque>
#include <memory>
#include <thread>

#include "world.h"

struct emulated_stream {
    std::deque<std::function<cudaError_t()>> queue;
    size_t released = 0; /* how much of the queue may run */
    bool busy = false, ending = false;
    uint32_t number = 0, last = 0; /* its own clock, and that of the last queued operation (watch.h) */
    std::thread worker;
};

namespace emulation
{

struct record {
    bool done = true;
    double ms = 0;
    uint32_t op = 0; /* 0: never recorded */
};

} // namespace emulation

struct emulated_event {
    std::shared_ptr<emulation::record> last = std::make_shared<emulation::record>();
    cudaStream_t stream = nullptr; /* that it was recorded in */
    unsigned asked = 0;            /* since then */
};

namespace emulation
{

/* Lets the work that is queued so far run. */
void release(emulated_stream *);
void release_all();
/* Returns the result of a call that queries too early. */
cudaError_t not_ready(std::unique_lock<std::mutex> &);
/* Records that the host knows this operation to be done; 0: nothing was queued. */
void has_waited_for(uint32_t op);
/* Returns false if the thread's present call must not order anything (EMULATED_CUDA_DROP). */
bool keeps_call(ordering);

} // namespace emulation

#endif
