/* setp, set, selp, slct. */
#ifndef PTX_COMPARE_H
#define PTX_COMPARE_H

#include "halves.h"

namespace ptx
{

/* Those that end in U are true, too, if one of the two is no number; LO to HS are those of unsigned integers. */
enum comparison { EQ, NE, LT, LE, GT, GE, LO, LS, HI, HS, EQU, NEU, LTU, LEU, GTU, GEU, NUM, NAN_ };

template <comparison C, class T>
static inline bool
compared(T a, T b)
{
    const bool unordered = a != a || b != b;
    switch (C) {
    case EQ: return a == b;
    case NE: return !unordered && a != b;
    case LT:
    case LO: return a < b;
    case LE:
    case LS: return a <= b;
    case GT:
    case HI: return a > b;
    case GE:
    case HS: return a >= b;
    case EQU: return unordered || a == b;
    case NEU: return unordered || a != b;
    case LTU: return unordered || a < b;
    case LEU: return unordered || a <= b;
    case GTU: return unordered || a > b;
    case GEU: return unordered || a >= b;
    case NUM: return !unordered;
    default: return unordered;
    }
}

template <class T, comparison C, unsigned F = 0>
static inline bool
op_setp(bits<T> a, bits<T> b)
{
    if constexpr (half_traits<T>::is_half)
        return compared<C>(half_source<T, F>(a), half_source<T, F>(b));
    else if constexpr (std::is_floating_point<T>::value)
        return compared<C>(flushed<F>(value<T>(a)), flushed<F>(value<T>(b)));
    else
        return compared<C>((T)a, (T)b);
}

/* All ones or 1.0, of type D. */
template <class D>
static inline bits<D>
op_set(bool p)
{
    if constexpr (std::is_floating_point<D>::value)
        return raw((D)p);
    else
        return p ? (bits<D>)~(bits<D>)0 : (bits<D>)0;
}

template <class T>
static inline bits<T>
op_selp(bits<T> a, bits<T> b, bool p)
{
    return p ? a : b;
}
template <class T, class C, unsigned F = 0>
static inline bits<T>
op_slct(bits<T> a, bits<T> b, bits<C> c)
{
    if constexpr (std::is_floating_point<C>::value)
        return flushed<F>(value<C>(c)) >= 0 ? a : b;
    else
        return (C)c >= 0 ? a : b;
}

} // namespace ptx

#endif
