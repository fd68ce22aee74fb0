#include "thread.h"

#include "kernels/base/clock.h"
#include "tests/cuda/emulation/grid.h"
#include "tests/cuda/emulation/world.h"

namespace ptx
{

range known[KNOWN];
static uint64_t known_in; /* number of the grid that they were found in: between grids memory comes and goes */
static const variable *variables;

variable::variable(const void *start, size_t size) : at{(u64)start, size}, next(variables)
{
    variables = this;
}

thread::thread(const kernel &k, const unsigned char *params_, u32 room_)
    : here(emulation::here), params(params_), n_params((u32)k.params), shared((unsigned char *)here->shared),
      room(room_), fixed((u32)k.shared)
{
    if (known_in == emulation::running.number)
        return;
    known_in = emulation::running.number;
    memset(known, 0, sizeof known);
}

void
misaligned(const where &at, const char *space, u64 address, size_t n)
{
    emulation::misuse(at, "is at %zu bytes of %s memory at %#llx, which is no multiple of that (line %d of the PTX)", n,
                      space, (unsigned long long)address, at.row);
}

void
beyond_shared(const where &at, u64 address, size_t n, u32 room)
{
    emulation::misuse(at,
                      "is at %zu bytes of shared memory from byte %lld on, of which there are %u (line %d of the PTX)",
                      n, (long long)(address - SHARED_BASE), room, at.row);
}

bool
in_own_stack(u64 address)
{
    const emulation::context &c = emulation::running.now->own;
    return address - (u64)c.low < c.size;
}

static bool
within(const range &r, u64 address, size_t n)
{
    return n <= r.size && address - r.start <= r.size - n;
}

/* An allocation, or a variable of the module, that has all of it; {0, 0}: there is none. */
static range
found(u64 address, size_t n)
{
    emulation::world &w = emulation::all();
    std::lock_guard<std::mutex> hold(w.lock);
    for (const auto *map : {&w.device, &w.pinned}) {
        auto at = map->upper_bound((const char *)address);
        if (at == map->begin())
            continue;
        --at;
        const range r = {(u64)at->first, at->second};
        if (within(r, address, n))
            return r;
    }
    for (const variable *v = variables; v != nullptr; v = v->next)
        if (within(v->at, address, n))
            return v->at;
    return {0, 0};
}

void
look_up(const thread &t, const where &at, u64 address, size_t n, bool generic)
{
    const range params = {(u64)t.params, t.n_params};
    if (generic && (in_own_stack(address) || t.in_shared(address, n) || within(params, address, n)))
        return;
    const range r = found(address, n);
    if (r.size == 0)
        emulation::misuse(at, "is at %zu bytes from %#llx, which is no memory of the device (line %d of the PTX)", n,
                          (unsigned long long)address, at.row);
    known[address >> 16 & (KNOWN - 1)] = r;
}

u64
timer()
{
    return clock_ns();
}

} // namespace ptx
