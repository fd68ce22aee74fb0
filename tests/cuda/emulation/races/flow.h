/* Which operation of a stream, or access of the host, comes before which.
 *
 * Everything that is queued in a stream comes behind what was queued there before, behind all that the host did or waited for
 * before it queued it, and behind the events that the stream waits for. The host comes behind what it waits for. All threads of
 * the host are taken for one: what orders those the thread sanitizer looks at. A clock counts what is queued in a stream, one the
 * host's queueing; what an operation knows of other streams is a clock of theirs. */
#ifndef EMULATION_RACES_FLOW_H
#define EMULATION_RACES_FLOW_H

#include <cstdint>
#include <map>
#include <memory>

#include "../grid.h"
#include "shadow.h"

namespace emulation
{

using clocks = std::map<uint32_t, uint32_t>; /* of streams: how much of each is known */

/* Something queued, or what the host does at a place between one queueing and the next. */
struct operation {
    uint32_t party, time; /* a stream and its clock; HOST */
    uint32_t host;        /* the host's clock */
    std::shared_ptr<const clocks> others;
    const char *what;
    uint64_t where; /* report.h */
    bool is_grid;   /* of threads, that runs or did */
};
constexpr uint32_t HOST = 0;

/* Its number, times two; plus 1 if it is done to a word at once: atomics, copies of a word. */
using mark = uint32_t;

/* Of a word of memory that streams and the host share: who wrote it last, and who read it since. Two writes: atomics of two
 * streams. */
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

/* Of the host's thread that calls, which is at `where`; `what`: "the host", or more. */
uint32_t flow_host(const char *what, uint64_t where);
const operation &flow_operation(uint32_t op);
/* An operation accesses a word. Returns the mark of another one that does and that nothing orders, 0 if there is none; *was: what
 * that one did. */
mark flow_look(flow_cell *, access what, mark now, access *was);

} // namespace emulation

#endif
