/* Passes the reports of device code about the order of its accesses to the race checker, except those that a mutation
 * leaves out (mutations/omit.cc). */
#include "tests/emulator/threads/watch.h"

namespace emulation
{

const watcher *watching = nullptr;

void
fence(site where)
{
    if (keeps(FENCE, where) && watching != nullptr)
        watching->fenced();
}

void
atomic(const void *p, size_t n, atomic_kind kind, unsigned order, site where)
{
    if ((order & ACQUIRES) && !keeps(ACQUIRE, where))
        order &= ~(unsigned)ACQUIRES;
    if ((order & RELEASES) && !keeps(RELEASE, where))
        order &= ~(unsigned)RELEASES;
    if (order != RELAXED && !keeps(SCOPE, where))
        order = NARROW;
    if (watching != nullptr)
        watching->atomic(p, n, kind, order, where);
}

void
constant(const void *p, size_t n, site where)
{
    if (watching != nullptr)
        watching->constant(p, n, where);
}

void
loaded(const void *p, size_t n, site where)
{
    if (!keeps(CLASS, where))
        constant(p, n, where);
}

} // namespace emulation
