/* Tests the emulator (tests/emulator) by the definitions in the CUDA programming guide: how sums of matrix instructions
 * are truncated, and the collectives of a warp, in order and in random orders of threads. SPECSCOPE_SEED=N chooses the
 * numbers. */
#include "kernels/cuda/device/ptx.cuh"
#include "tests/rigs/emulation_rig.cuh"

/* ---- sums of matrix instructions (their fragments, and numbers of 16 bits: tests/cuda/smoke) ---- */

/* Returns the sum of c, one product of its own, and n products of the same two numbers. */
static float
add_up(const char *way, float c, const float (&first)[2], unsigned n, const float (&others)[2])
{
    static float x[16][16], y[16][8], sum[16][8];
    for (unsigned k = 0; k < 16; k++) {
        x[0][k] = k == 0 ? first[0] : k <= n ? others[0] : 0;
        y[k][0] = k == 0 ? first[1] : others[1];
    }
    sum[0][0] = c;
    assert_true(emulation::add_up_like(way));
    emulation::multiply_matrices(x, y, sum, -13);
    assert_true(emulation::add_up_like("in-order"));
    return sum[0][0];
}

TEST(sums_of_matrix_instructions_are_cut_off_where_one_chooses)
{
    const float next = 1 + 0x1p-23f, least = 0x1p-24f; /* the least half */
    assert_true(add_up("in-order", 1, {0, 0}, 8, {0x1p-12f, 0x1p-13f}) == 1);
    assert_true(add_up("exact", 1, {0, 0}, 8, {0x1p-12f, 0x1p-13f}) == 1 + 0x1p-22f);
    assert_true(add_up("aligned24", 1, {0, 0}, 8, {0x1p-12f, 0x1p-13f}) == 1);
    for (const char *rounds : {"in-order", "exact"})
        assert_true(add_up(rounds, 1, {1.5f, least}, 0, {0, 0}) == next);
    for (const char *cuts : {"truncated", "aligned24", "aligned14"}) {
        assert_true(add_up(cuts, 1, {1.5f, least}, 0, {0, 0}) == 1);
        assert_true(add_up(cuts, 1, {2, least}, 8, {2, least}) == 1 + 9 * 0x1p-23f);
    }
    /* Products with the least half, aligned as if its first bit were the tenth. */
    for (const char *all : {"in-order", "exact", "truncated", "aligned24"})
        assert_true(add_up(all, 0, {1, least}, 1, {0x1p-13f, least}) == least + 0x1p-37f);
    assert_true(add_up("aligned14", 0, {1, least}, 1, {0x1p-12f, least}) == least + 0x1p-36f);
    assert_true(add_up("aligned14", 0, {1, least}, 1, {0x1p-13f, least}) == least);
}

/* ---- lanes ---- */

enum shuffle { BY_INDEX, BY_XOR, UP, DOWN, SHUFFLES };

struct shuffle_args {
    shuffle kind;
    uint32_t mask;
    int width, by[LANES]; /* UP and DOWN use by[0] */
    uint64_t *values;     /* (32), replaced by the shuffled values */
};

static __global__ void
exchange(struct shuffle_args s)
{
    const unsigned lane = threadIdx.x;
    if (!(s.mask >> lane & 1))
        return;
    uint64_t v = s.values[lane];
    switch (s.kind) {
    case BY_INDEX: v = __shfl_sync(s.mask, v, s.by[lane], s.width); break;
    case BY_XOR: v = __shfl_xor_sync(s.mask, v, s.by[0], s.width); break;
    case UP: v = __shfl_up_sync(s.mask, v, (unsigned)s.by[0], s.width); break;
    default: v = __shfl_down_sync(s.mask, v, (unsigned)s.by[0], s.width);
    }
    s.values[lane] = v;
}

static int
source_of(const struct shuffle_args *s, int lane)
{
    const int group = lane / s->width * s->width;
    switch (s->kind) {
    case BY_INDEX: return group + s->by[lane] % s->width;
    case BY_XOR: return (lane ^ s->by[0]) < group + s->width ? lane ^ s->by[0] : lane;
    case UP: return lane - s->by[0] >= group ? lane - s->by[0] : lane;
    default: return lane + s->by[0] < group + s->width ? lane + s->by[0] : lane;
    }
}

TEST(shuffles_bring_the_lane_that_they_name)
{
    for (int i = 0; i < 400; i++) {
        array<uint64_t> values(LANES);
        shuffle_args s = {
            (shuffle)(i % SHUFFLES), i % 3 ? 0xffffffffu : (uint32_t)random64() | 1, 1 << i % 6, {}, values.p};
        uint64_t before[LANES];
        for (int lane = 0; lane < LANES; lane++) {
            before[lane] = values[(size_t)lane] = random64();
            s.by[lane] = (int)(random64() % LANES);
        }
        RUN(i % ORDERS, launch(exchange, 1, LANES, s, nullptr));
        for (int lane = 0; lane < LANES; lane++) {
            const int from = source_of(&s, lane);
            if (!(s.mask >> lane & 1))
                assert_true(values[(size_t)lane] == before[lane]);
            else if (s.mask >> from & 1)
                assert_true(values[(size_t)lane] == before[from]);
            else
                assert_true(values[(size_t)lane] == 0xcbcbcbcbcbcbcbcbu); /* undefined, so it is the poison pattern */
        }
    }
}

struct vote_args {
    uint32_t mask, *values; /* (32) */
    uint32_t (*said)[8];    /* (32, 8) */
};

static __global__ void
vote(struct vote_args a)
{
    const unsigned lane = threadIdx.x;
    if (!(a.mask >> lane & 1))
        return;
    const uint32_t v = a.values[lane];
    uint32_t *const out = a.said[lane];
    out[0] = __ballot_sync(a.mask, v & 4);
    out[1] = (uint32_t)__any_sync(a.mask, v & 1);
    out[2] = (uint32_t)__all_sync(a.mask, v & 2);
    out[3] = __reduce_max_sync(a.mask, v);
    out[4] = __reduce_min_sync(a.mask, v);
    out[5] = __reduce_add_sync(a.mask, v);
    out[6] = (uint32_t)__reduce_max_sync(a.mask, (int)v);
    out[7] = (uint32_t)__reduce_min_sync(a.mask, (int)v);
}

TEST(votes_and_reductions_count_the_lanes_of_the_mask)
{
    for (int i = 0; i < 60; i++) {
        array<uint32_t> values(LANES);
        array<uint32_t[8]> said(LANES);
        const uint32_t mask = i % 2 ? 0xffffffffu : (uint32_t)random64() | 1u << i % 32;
        uint32_t expected[8] = {0, 0, 1, 0, UINT32_MAX, 0, 0x80000000u, 0x7fffffff};
        for (unsigned lane = 0; lane < LANES; lane++) {
            const uint32_t v = values[lane] = ((uint32_t)random64() & (i % 3 ? 0xffffffffu : ~1u)) | (i % 5 ? 0u : 2u);
            if (!(mask >> lane & 1))
                continue;
            expected[0] |= (v & 4 ? 1u : 0u) << lane;
            expected[1] |= v & 1;
            expected[2] &= v >> 1 & 1;
            expected[3] = v > expected[3] ? v : expected[3];
            expected[4] = v < expected[4] ? v : expected[4];
            expected[5] += v;
            expected[6] = (int)v > (int)expected[6] ? v : expected[6];
            expected[7] = (int)v < (int)expected[7] ? v : expected[7];
        }
        RUN(i % ORDERS, launch(vote, 1, LANES, vote_args{mask, values.p, said.p}, nullptr));
        for (unsigned lane = 0; lane < LANES; lane++)
            if (mask >> lane & 1)
                assert_memory_equal(said[lane], expected, sizeof expected);
    }
}
