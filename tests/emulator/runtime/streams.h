/* The contents of streams and events. The world's lock protects all of them. */
#ifndef EMULATION_STREAMS_H
#define EMULATION_STREAMS_H

#include <deque>
#include <memory>
#include <thread>

#include "tests/emulator/runtime/world.h"

struct emulated_stream {
    std::deque<std::function<cudaError_t()>> queue;
    size_t released = 0; /* number of queued operations that may run */
    bool busy = false, ending = false;
    uint32_t number = 0, last = 0; /* in the race checker: the stream, and its last operation (watch.h) */
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
    cudaStream_t stream = nullptr; /* of the last record */
    unsigned asked = 0;            /* queries since then */
};

namespace emulation
{

/* Allows the work that is queued so far to run. */
void release(emulated_stream *);
void release_all();
/* Waits a little, and returns the result of a query before the work is done. */
cudaError_t not_ready(std::unique_lock<std::mutex> &);
/* Reports to the race checker that the host has waited for the operation; 0: nothing was queued. */
void has_waited_for(uint32_t op);
/* Returns false if a mutation omits the thread's present call. */
bool keeps_call(ordering);

} // namespace emulation

#endif
