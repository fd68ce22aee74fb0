/* Decides which operation of a stream, or access of the host, precedes which.
 *
 * An operation in a stream comes after those that were queued there before, after all that the host did or waited for before it queued the
 * operation, and after the events that the stream waits for. The host comes after what it waits for. All threads of the host count as one,
 * because the thread sanitizer checks their order. Each stream has a clock that counts its operations, and the host has one that counts its
 * queueing. An operation stores the clocks of other streams that it knows. */
#ifndef EMULATION_RACES_FLOW_H
#define EMULATION_RACES_FLOW_H

#include <cstdint>
#include <map>
#include <memory>

#include "../grid.h"
#include "shadow.h"

namespace emulation
{

using clocks = std::map<uint32_t, uint32_t>; /* by stream: how many of its operations are known */

/* An operation in a stream, or what the host does at a place between one queueing and the next. */
struct operation {
    uint32_t party, time; /* a stream and its clock; HOST */
    uint32_t host;        /* the host's clock */
    std::shared_ptr<const clocks> others;
    const char *what;
    uint64_t where; /* report.h */
    bool is_grid;   /* of threads, that runs or did */
};
constexpr uint32_t HOST = 0;

/* The operation's number, times two; plus 1 if it is atomic in a word: atomics, and copies of a word. */
using mark = uint32_t;

/* A word of memory that streams and the host share: its last write, and the reads since. Two writes: atomics of two streams. */
struct flow_cell {
    enum { WRITES = 2, READS = 2 };
    mark writes[WRITES], reads[READS];
};

/* ---- what happens (watch.h) ---- */

uint32_t flow_stream_begins();
void flow_stream_ends(uint32_t stream);
uint32_t flow_queued(uint32_t stream, const char *what, site);
void flow_follows(uint32_t op, uint32_t other);
void flow_waited_for(uint32_t op);
void flow_grid_begins(uint32_t op);

/* ---- accesses ---- */

/* For the calling thread of the host at the place `where`; `what`: "the host", or more. */
uint32_t flow_host(const char *what, uint64_t where);
const operation &flow_operation(uint32_t op);
/* Records that an operation accesses a word. Returns the mark of another operation that accesses it without an order between them, or 0;
 * *was: the other's kind of access. */
mark flow_look(flow_cell *, access what, mark now, access *was);

} // namespace emulation

#endif
