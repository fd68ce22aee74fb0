/* Decides which operations of streams and accesses of the host are ordered.
 *
 * An operation comes after earlier operations of its stream, after everything that the host did or waited for before
 * it queued the operation, and after the events that the stream waits for. The host comes after the operations that it
 * waits for. All threads of the host count as one, because the thread sanitizer checks their order. Each stream has a
 * clock that counts its operations, and the host has one that counts its queueing. An operation stores the clocks of
 * other streams that it comes after. */
#ifndef EMULATION_RACES_FLOW_H
#define EMULATION_RACES_FLOW_H

#include <cstdint>
#include <map>
#include <memory>

#include "tests/emulator/races/shadow.h"
#include "tests/emulator/threads/grid.h"

namespace emulation
{

using clocks = std::map<uint32_t, uint32_t>; /* for each stream: how many of its operations come before */

/* An operation of a stream, or the accesses of the host at one place between two queueings. */
struct operation {
    uint32_t party, time; /* a stream or HOST, and its clock */
    uint32_t host;        /* the host's clock */
    std::shared_ptr<const clocks> others;
    const char *what;
    uint64_t where; /* report.h */
    bool is_grid;   /* a kernel that has begun */
};
constexpr uint32_t HOST = 0;

/* The operation's number times two, plus 1 for an atomic access: atomics, and copies of one word. */
using mark = uint32_t;

/* The last writes to a word of memory that streams and the host share, and the reads since. There may be two writes:
 * atomics of two streams. */
struct flow_cell {
    enum { WRITES = 2, READS = 2 };
    mark writes[WRITES], reads[READS];
};

/* ---- reports (watch.h) ---- */

uint32_t flow_stream_begins();
void flow_stream_ends(uint32_t stream);
uint32_t flow_queued(uint32_t stream, const char *what, site);
void flow_follows(uint32_t op, uint32_t other);
void flow_waited_for(uint32_t op);
void flow_grid_begins(uint32_t op);

/* ---- accesses ---- */

/* Returns the operation for accesses of the calling host thread at the place `where`. `what` names it in messages. */
uint32_t flow_host(const char *what, uint64_t where);
const operation &flow_operation(uint32_t op);
/* Records that an operation accesses a word. Returns the mark of another operation that accesses it without an order
 * between the two, or 0, and stores the kind of the other access in *was. */
mark flow_look(flow_cell *, access what, mark now, access *was);

} // namespace emulation

#endif
