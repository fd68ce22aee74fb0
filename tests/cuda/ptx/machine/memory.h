/* Loads, stores, atomics, fences, prefetches: of pointers that thread.h made of addresses. */
#ifndef PTX_MEMORY_H
#define PTX_MEMORY_H

#include "floats.h"
#include "halves.h"
#include "thread.h"

namespace ptx
{

template <class T>
static inline T
load(const unsigned char *p)
{
    T v;
    memcpy(&v, p, sizeof v);
    return v;
}
template <class T>
static inline void
store(unsigned char *p, T v)
{
    memcpy(p, &v, sizeof v);
}

/* Loads of what other threads may be writing: they get a turn. */
static inline void
before_volatile(const where &at)
{
    emulation::touch(at);
}
static inline void
before_acquire(const unsigned char *p, size_t n, const where &at)
{
    emulation::spin(at);
    emulation::atomic(p, n, emulation::LOADS, emulation::ACQUIRES, at);
}
static inline void
before_release(const unsigned char *p, size_t n, const where &at)
{
    emulation::atomic(p, n, emulation::STORES, emulation::RELEASES, at);
}

/* ---- atomics ---- */

enum atomic_op { ADD, MIN, MAX, INC, DEC, AND, OR, XOR, EXCH, CAS };

template <class T, atomic_op OP>
static inline bits<T>
after(bits<T> was, bits<T> b, bits<T> c)
{
    if constexpr (OP == EXCH) {
        return b;
    } else if constexpr (OP == CAS) {
        return was == b ? c : was;
    } else if constexpr (OP == ADD) {
        if constexpr (std::is_integral<T>::value)
            return (bits<T>)(was + b);
        else
            return op_add<T>(was, b);
    } else {
        static_assert(std::is_integral<T>::value, "no such atomic");
        if constexpr (OP == MIN)
            return (T)b < (T)was ? b : was;
        else if constexpr (OP == MAX)
            return (T)was < (T)b ? b : was;
        else if constexpr (OP == INC)
            return was >= b ? 0 : was + 1;
        else if constexpr (OP == DEC)
            return was == 0 || was > b ? b : was - 1;
        else if constexpr (OP == AND)
            return was & b;
        else if constexpr (OP == OR)
            return was | b;
        else
            return was ^ b;
    }
}

/* order: emulation::RELAXED, or of ACQUIRES and RELEASES. */
template <class T, atomic_op OP, unsigned ORDER>
static inline bits<T>
op_atom(unsigned char *p, const where &at, bits<T> b, bits<T> c = 0)
{
    emulation::touch(at);
    emulation::atomic(p, sizeof(T), emulation::CHANGES, ORDER, at);
    const bits<T> was = load<bits<T>>(p);
    store(p, after<T, OP>(was, b, c));
    return was;
}
/* Without an answer, which nobody waits for. */
template <class T, atomic_op OP, unsigned ORDER>
static inline void
op_red(unsigned char *p, const where &at, bits<T> b)
{
    emulation::atomic(p, sizeof(T), emulation::CHANGES, ORDER, at);
    store(p, after<T, OP>(load<bits<T>>(p), b, 0));
}

/* ---- into L2 ---- */

static inline void
op_prefetch(const thread &t, u64 address, const where &at)
{
    look_up(t, at, address / 32 * 32, 32, false);
}
static inline void
op_bulk_prefetch(const thread &t, u64 address, u32 bytes, const where &at)
{
    if (address % 16 != 0 || bytes % 16 != 0)
        emulation::misuse(at, "fetches %u bytes ahead, from %#llx: one is no multiple of 16 (line %d of the PTX)",
                          bytes, (unsigned long long)address, at.row);
    if (bytes > 0)
        look_up(t, at, address, bytes, false);
}

[[noreturn]] static inline void
op_trap(const where &at)
{
    emulation::misuse(at, "ends the kernel (line %d of the PTX)", at.row);
}

} // namespace ptx

#endif
