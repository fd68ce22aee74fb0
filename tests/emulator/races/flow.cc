#include "tests/emulator/races/flow.h"

#include <mutex>
#include <unordered_map>
#include <vector>

#include "tests/emulator/races/report.h"

namespace emulation
{

/* ---- operations by number: their addresses do not change, so reading them needs no lock ---- */

static constexpr uint32_t CHUNK = 1u << 14, CHUNKS = 1u << 13;
static operation *chunks[CHUNKS];
static uint32_t n_operations = 1; /* 0 is none */
static std::mutex hold;           /* protects all static data of this file, and cells */

static uint32_t
add(operation o)
{
    const uint32_t number = n_operations++ % (CHUNK * CHUNKS);
    operation *&chunk = chunks[number / CHUNK];
    if (chunk == nullptr)
        chunk = new operation[CHUNK];
    chunk[number % CHUNK] = std::move(o);
    return number;
}

const operation &
flow_operation(uint32_t op)
{
    return chunks[op / CHUNK][op % CHUNK];
}

/* ---- clocks ---- */

struct stream {
    uint32_t time = 0;
    /* the host's time since which all operations of the ended stream come before; 0: not yet */
    uint32_t gone = 0;
    bool ends = false;
    clocks waited; /* for events */
};

static std::vector<stream> streams(1); /* 0 is the host */
static uint32_t host_time = 1;
static std::shared_ptr<const clocks> host_knows = std::make_shared<clocks>();
static std::unordered_map<uint64_t, uint32_t>
    host_does; /* the host's accesses since its last queueing or wait, by place */

static void
raise(clocks *all, uint32_t party, uint32_t time)
{
    uint32_t &own = (*all)[party];
    own = own < time ? time : own;
}

static void
raise(clocks *all, const operation &o)
{
    for (const auto &each : *o.others)
        raise(all, each.first, each.second);
    raise(all, o.party, o.time);
}

static void
host_continues()
{
    host_time++;
    host_does.clear();
}

uint32_t
flow_stream_begins()
{
    std::lock_guard<std::mutex> held(hold);
    streams.emplace_back();
    return (uint32_t)streams.size() - 1;
}

void
flow_stream_ends(uint32_t number)
{
    std::lock_guard<std::mutex> held(hold);
    streams[number].ends = true;
}

uint32_t
flow_queued(uint32_t number, const char *what, site where)
{
    std::lock_guard<std::mutex> held(hold);
    stream &s = streams[number];
    std::shared_ptr<const clocks> others = host_knows;
    if (!s.waited.empty()) {
        auto more = std::make_shared<clocks>(*host_knows);
        for (const auto &each : s.waited)
            raise(more.get(), each.first, each.second);
        others = more;
    }
    const uint32_t op = add({number, ++s.time, host_time, others, what, where_of_site(where), false});
    host_continues();
    return op;
}

void
flow_follows(uint32_t op, uint32_t other)
{
    std::lock_guard<std::mutex> held(hold);
    operation &o = chunks[op / CHUNK][op % CHUNK];
    auto more = std::make_shared<clocks>(*o.others);
    raise(more.get(), flow_operation(other));
    raise(&streams[o.party].waited, flow_operation(other));
    o.others = more;
}

/* The host waited for all streams: clocks of streams that have ended are no longer needed. */
static void
host_waited_for_all(clocks *known)
{
    host_continues();
    for (uint32_t i = 1; i < streams.size(); i++) {
        stream &s = streams[i];
        if (s.gone != 0)
            continue;
        if (s.ends) {
            s.gone = host_time;
            s.waited.clear();
            known->erase(i);
        } else if (s.time > 0) {
            raise(known, i, s.time);
        }
    }
}

void
flow_waited_for(uint32_t op)
{
    std::lock_guard<std::mutex> held(hold);
    auto more = std::make_shared<clocks>(*host_knows);
    if (op != 0)
        raise(more.get(), flow_operation(op));
    else
        host_waited_for_all(more.get());
    host_knows = more;
    host_continues();
}

void
flow_grid_begins(uint32_t op)
{
    chunks[op / CHUNK][op % CHUNK].is_grid = true;
}

uint32_t
flow_host(const char *what, uint64_t where)
{
    std::lock_guard<std::mutex> held(hold);
    uint32_t &op = host_does[where];
    if (op == 0)
        op = add({HOST, host_time, host_time, host_knows, what, where, false});
    return op;
}

/* ---- cells ---- */

static bool
comes_before(const operation &old, const operation &now)
{
    if (old.party == now.party)
        return old.time <= now.time;
    if (old.party == HOST)
        return old.time <= now.host;
    const uint32_t gone = streams[old.party].gone;
    if (gone != 0 && gone <= now.host)
        return true;
    const auto known = now.others->find(old.party);
    return known != now.others->end() && known->second >= old.time;
}

/* Atomics of two kernels need no order. Neither do a copy of a word and atomic loads of kernels: in this way the host
 * informs a running kernel. The last write must be unambiguous in every case. */
static bool
may_meet(mark old, access was, mark now, access is)
{
    if (!(old & now & 1))
        return false;
    return was == READ || is == READ || (flow_operation(old / 2).is_grid && flow_operation(now / 2).is_grid);
}

static bool
races(mark old, access was, mark now, access is)
{
    /* the last ordered pair, because many consecutive words belong to the same two operations */
    static mark last_old, last_now;
    if (old == 0 || old / 2 == now / 2 || (old == last_old && now == last_now) || may_meet(old, was, now, is))
        return false;
    if (!comes_before(flow_operation(old / 2), flow_operation(now / 2)))
        return true;
    last_old = old;
    last_now = now;
    return false;
}

/* Stores a read in place of a read of the same stream or one that comes before; otherwise in place of any read. */
static void
remember_read(flow_cell *c, mark now)
{
    const operation &own = flow_operation(now / 2);
    mark *place = &c->reads[now / 2 % flow_cell::READS];
    for (mark &r : c->reads)
        if (r == 0 || flow_operation(r / 2).party == own.party || comes_before(flow_operation(r / 2), own)) {
            place = &r;
            break;
        }
    if (*place / 2 != now / 2 || !(now & 1)) /* an atomic read does not replace a plain read of the same operation */
        __atomic_store_n(place, now, __ATOMIC_RELAXED);
}

/* Returns true if the cell contains the operation's mark, or one that includes it. Only the operation's own thread
 * writes this mark, so reading it needs no lock. */
static bool
is_known(flow_cell *c, access what, mark now)
{
    const mark write = __atomic_load_n(&c->writes[0], __ATOMIC_RELAXED);
    if (write == now || (write | 1) == now)
        return true;
    for (mark &r : c->reads)
        if (what == READ && (__atomic_load_n(&r, __ATOMIC_RELAXED) | (now & 1)) == now)
            return true;
    return false;
}

static void
remember_write(flow_cell *c, mark now)
{
    const mark before = c->writes[0];
    const bool stays =
        before / 2 != now / 2 && before != 0 && !comes_before(flow_operation(before / 2), flow_operation(now / 2));
    c->writes[1] = stays ? before : 0;
    __atomic_store_n(&c->writes[0], now, __ATOMIC_RELAXED);
    for (mark &r : c->reads)
        __atomic_store_n(&r, 0, __ATOMIC_RELAXED);
}

mark
flow_look(flow_cell *c, access what, mark now, access *was)
{
    if (is_known(c, what, now))
        return 0;
    std::lock_guard<std::mutex> held(hold);
    *was = WRITE;
    for (const mark w : c->writes)
        if (races(w, WRITE, now, what))
            return w;
    *was = READ;
    for (const mark r : c->reads)
        if (what == WRITE && races(r, READ, now, what))
            return r;
    if (what == READ)
        remember_read(c, now);
    else
        remember_write(c, now);
    return 0;
}

} // namespace emulation
