/* What the lanes of a warp, and the threads of a block, do together. */
#ifndef PTX_WARP_H
#define PTX_WARP_H

#include "kernels/cuda/device/ptx.cuh" /* the emulation's */

#include "thread.h"

namespace ptx
{

/* ---- shuffles ---- */

enum shuffle { UP, DOWN, BFLY, IDX };

/* c: the last lane that may be read, and from bit 8 on the bits of the lane's number that its group has in common. */
template <shuffle HOW>
static inline u32
op_shfl(const thread &t, u32 value, u32 b, u32 c, u32 members, bool *there, const where &at)
{
    const u32 lane = t.here->lane, by = b & 31, group = c >> 8 & 31, least = lane & group,
              last = least | (c & 31 & ~group);
    u32 from = HOW == UP ? lane - by : HOW == DOWN ? lane + by : HOW == BFLY ? lane ^ by : least | (by & ~group);
    *there = HOW == UP ? (s32)from >= (s32)last : from <= last;
    from = *there ? from : lane;
    return emulated_shuffle(members, value, from, at);
}

/* ---- votes and reductions ---- */

static inline u32
op_ballot(bool p, u32 members, const where &at)
{
    return emulated_ballot(members, p, at.file, at.line);
}
static inline bool
op_vote_any(bool p, u32 members, const where &at)
{
    return op_ballot(p, members, at) != 0;
}
static inline bool
op_vote_all(bool p, u32 members, const where &at)
{
    return op_ballot(!p, members, at) == 0;
}
static inline bool
op_vote_uni(bool p, u32 members, const where &at)
{
    struct each {
        u32 value, same;
    } mine = {p, 0};
    auto work = [](void *const *data) {
        u32 seen = 0;
        for (unsigned i = 0; i < 32; i++)
            if (data[i] != nullptr)
                seen |= 1u << ((struct each *)data[i])->value;
        for (unsigned i = 0; i < 32; i++)
            if (data[i] != nullptr)
                ((struct each *)data[i])->same = seen != 3;
    };
    emulation::together(emulation::VOTE, members, &mine, work, at);
    return mine.same != 0;
}

template <class T, char OP> struct reduction { /* OP: + < > & | ^ */
    static constexpr unsigned none = OP == '<'   ? (unsigned)std::numeric_limits<T>::max()
                                     : OP == '>' ? (unsigned)std::numeric_limits<T>::min()
                                     : OP == '&' ? 0xffffffffu
                                                 : 0;
    static unsigned
    with(unsigned all, unsigned value, unsigned)
    {
        switch (OP) {
        case '+': return all + value;
        case '<': return (T)value < (T)all ? value : all;
        case '>': return (T)all < (T)value ? value : all;
        case '&': return all & value;
        case '|': return all | value;
        default: return all ^ value;
        }
    }
};
template <class T, char OP>
static inline u32
op_redux(u32 value, u32 members, const where &at)
{
    return emulated_reduce<reduction<T, OP>>(emulation::REDUCE, members, value, at);
}

/* The lanes that have the same number. */
static inline u32
op_match_any(u64 value, u32 members, const where &at)
{
    struct each {
        u64 value;
        u32 same;
    } mine = {value, 0};
    auto work = [](void *const *data) {
        for (unsigned i = 0; i < 32; i++)
            for (unsigned k = 0; k < 32 && data[i] != nullptr; k++)
                if (data[k] != nullptr && ((struct each *)data[i])->value == ((struct each *)data[k])->value)
                    ((struct each *)data[i])->same |= 1u << k;
    };
    emulation::together(emulation::VOTE, members, &mine, work, at);
    return mine.same;
}
static inline u32
op_match_all(u64 value, u32 members, bool *all, const where &at)
{
    const u32 same = op_match_any(value, members, at);
    *all = op_ballot(same == members, members, at) == members;
    return *all ? members : 0;
}
static inline u32
op_elect(const thread &t, u32 members, bool *chosen)
{
    *chosen = t.here->lane == (u32)__builtin_ctz(members);
    return (u32)__builtin_ctz(members);
}
static inline void
op_warp_sync(u32 members, const where &at)
{
    emulation::together(
        emulation::SYNC, members, nullptr, [](void *const *) {}, at);
}

/* ---- matrices ---- */

/* d = a b + c, of m16n8k16. */
template <float2 (*UNPACK)(uint32_t), int LEAST>
static inline void
op_mma(u32 *d, const u32 *a, const u32 *b, const u32 *c, const where &at)
{
    float sum[4];
    memcpy(sum, c, sizeof sum);
    emulated_multiply<UNPACK, LEAST>(sum, a, b[0], b[1], at);
    memcpy(d, sum, sizeof sum);
}

/* N matrices (8, 8) of 16 bits; lane 8 i + k has the address of row k of matrix i. Of a matrix, lane 4 g + c gets row g, columns 2 c
 * and 2 c + 1, or TRANSPOSED rows 2 c and 2 c + 1 of column g. */
template <unsigned N, bool TRANSPOSED>
static inline void
op_ldmatrix(const thread &t, u32 *d, u64 address, const where &at)
{
    struct each {
        const unsigned char *row;
        u32 got[N];
    } mine = {t.here->lane < 8 * N ? at_shared(t, address, 16, at) : nullptr, {}};
    auto work = [](void *const *data) {
        for (unsigned lane = 0; lane < 32; lane++)
            for (unsigned i = 0; i < N; i++) {
                u16 two[2];
                for (unsigned k = 0; k < 2; k++) {
                    const unsigned row = TRANSPOSED ? lane % 4 * 2 + k : lane / 4,
                                   col = TRANSPOSED ? lane / 4 : lane % 4 * 2 + k;
                    memcpy(&two[k], ((const struct each *)data[8 * i + row])->row + 2 * col, 2);
                }
                ((struct each *)data[lane])->got[i] = two[0] | (u32)two[1] << 16;
            }
    };
    emulation::together(emulation::MATRIX, 0xffffffffu, &mine, work, at);
    memcpy(d, mine.got, sizeof mine.got);
}

} // namespace ptx

#endif
