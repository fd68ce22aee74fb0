/* The emulation of device code (tests/cuda/emulation) by the definitions in the CUDA programming guide and the PTX manual:
 * numbers, matrices, and what the lanes of a warp compute together. Every kernel runs with threads taking turns in order,
 * and in random orders. SPECSCOPE_SEED=N chooses the numbers. */
#include <ctime>

#include "kernels/cuda/device/ptx.cuh"
#include "tests/rigs/emulation_rig.cuh"

/* ---- numbers ---- */

static double
value_of_half(unsigned h)
{
    const int e = (int)(h >> 10 & 31), m = (int)(h & 1023);
    const double x = e == 31 ? (m != 0 ? NAN : INFINITY) : e == 0 ? ldexp(m, -24) : ldexp(1024 + m, e - 25);
    return h >> 15 ? -x : x;
}

static void
test_halves_are_the_numbers_that_ieee_754_says(void **)
{
    for (unsigned h = 0; h < 65536; h++) {
        const double x = value_of_half(h);
        const float got = half_value((uint16_t)h);
        assert_true(std::isnan(x) ? std::isnan(got) : (double)got == x && std::signbit(got) == std::signbit(x));
        assert_int_equal(half_bits(got), std::isnan(x) ? 0x7fff : h);
    }
}

static void
test_floats_round_to_the_nearest_half_ties_to_even(void **)
{
    for (int i = 0; i < 300000; i++) {
        uint32_t bits = (uint32_t)random64();
        if (i % 2) /* where halves are: 2^-26 to 2^17, many on ties */
            bits = (bits & 0x80000000u) | ((uint32_t)(random64() % 43) + 101) << 23 | (bits & 0x7ff000u);
        const float x = __uint_as_float(bits);
        if (std::isnan(x))
            continue;
        const uint16_t got = half_bits(x);
        const unsigned magnitude = got & 0x7fff;
        const double a = fabs((double)x), here = magnitude == 0x7c00 ? 65536 : value_of_half(magnitude);
        const double below = magnitude > 0 ? value_of_half(magnitude - 1) : -1;
        const double above = magnitude >= 0x7bff ? 65536 : value_of_half(magnitude + 1);
        const bool even = magnitude % 2 == 0;
        assert_int_equal(got >> 15, bits >> 31);
        assert_true(magnitude <= 0x7c00);
        if (magnitude > 0)
            assert_true(a - below > here - a || (even && a - below == here - a));
        if (magnitude < 0x7c00)
            assert_true(above - a > a - here || (even && above - a == a - here));
    }
}

static void
test_floats_round_to_the_nearest_bf16_ties_to_even(void **)
{
    for (int i = 0; i < 300000; i++) {
        const uint32_t bits = (uint32_t)random64() & (i % 2 ? 0xffff8000u : 0xffffffffu), low = bits << 16;
        if (std::isnan(__uint_as_float(bits)))
            continue;
        const uint32_t up = low > 0x80000000u || (low == 0x80000000u && (bits >> 16 & 1));
        const uint32_t pair = pack_bf16s(__uint_as_float(bits), __uint_as_float(~bits));
        assert_int_equal(pair & 0xffff, (bits >> 16) + up);
        assert_true(__float_as_uint(unpack_bf16s(pair).x) == ((bits >> 16) + up) << 16);
    }
}

static void
test_bytes_become_halves_lowest_first(void **)
{
    for (int i = 0; i < 1000; i++) {
        const uint32_t bytes = (uint32_t)random64();
        uint32_t pairs[2];
        bytes_to_halves(bytes, &pairs[0], &pairs[1]);
        for (int b = 0; b < 4; b++)
            assert_true(half_value((uint16_t)(pairs[b / 2] >> b % 2 * 16)) == (float)(int8_t)(bytes >> b * 8));
    }
    assert_int_equal(__byte_perm(0x44332211, 0x88776655, 0x7152), 0x88226633);
    assert_int_equal(__byte_perm(0x00008011, 0, 0x9910), 0xffff8011);
}

/* ---- matrices ---- */

struct mma_args {
    uint16_t (*a)[16], (*b)[8]; /* (16, 16), (16, 8) */
    float (*c)[8];              /* (16, 8), becomes a b + c */
    bool bf16;
};

/* Fragments as the PTX manual draws them for m16n8k16: a0,a1 (row g, columns 2c, 2c+1), a2,a3 (row g+8), a4,a5 (row g,
 * columns 2c+8, 2c+9), a6,a7 (row g+8); b0,b1 (rows 2c, 2c+1, column g), b2,b3 (rows 2c+8, 2c+9). */
static __global__ void
multiply(struct mma_args m)
{
    const unsigned lane = threadIdx.x, g = lane >> 2, c = lane % 4;
    uint32_t a[4], b[2];
    float d[4];
    for (unsigned i = 0; i < 8; i += 2) {
        const unsigned row = (i < 2 || (i >= 4 && i < 6)) ? g : g + 8, column = c * 2 + (i >= 4 ? 8 : 0);
        a[i / 2] = m.a[row][column] | (uint32_t)m.a[row][column + 1] << 16;
    }
    for (unsigned i = 0; i < 4; i += 2) {
        const unsigned row = c * 2 + (i >= 2 ? 8 : 0);
        b[i / 2] = m.b[row][g] | (uint32_t)m.b[row + 1][g] << 16;
    }
    for (unsigned i = 0; i < 4; i++)
        d[i] = m.c[i < 2 ? g : g + 8][c * 2 + (i & 1)];
    if (m.bf16)
        mma_bf16(d, a, b[0], b[1]);
    else
        mma_f16(d, a, b[0], b[1]);
    for (unsigned i = 0; i < 4; i++)
        m.c[i < 2 ? g : g + 8][c * 2 + (i & 1)] = d[i];
}

/* Small whole numbers: every order of adding gives the same. Others: to within the rounding of 16 additions. */
static void
check_matrix(int order, bool bf16, bool whole, double unit)
{
    array<uint16_t[16]> a(16);
    array<uint16_t[8]> b(16);
    array<float[8]> c(16);
    double x[16][16], y[16][8], expected[16][8], size[16][8];
    auto fill = [&](uint16_t *to, double *value) {
        const float r = whole ? (float)((int)(random64() % 41) - 20) : (float)(random64() >> 40) * 0x1p-23f - 1;
        *to = (uint16_t)(bf16 ? pack_bf16s(r, 0) : half_bits(r));
        *value = (double)(bf16 ? unpack_bf16s(*to).x : half_value(*to));
    };
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 16; k++)
            fill(&a[i][k], &x[i][k]);
    for (int k = 0; k < 16; k++)
        for (int n = 0; n < 8; n++)
            fill(&b[k][n], &y[k][n]);
    for (int i = 0; i < 16; i++)
        for (int n = 0; n < 8; n++) {
            c[i][n] = (float)(random64() % 1000);
            expected[i][n] = size[i][n] = (double)c[i][n];
            for (int k = 0; k < 16; k++) {
                expected[i][n] += x[i][k] * y[k][n];
                size[i][n] += fabs(x[i][k] * y[k][n]);
            }
        }
    RUN(order, launch(multiply, 1, LANES, mma_args{a.p, b.p, c.p, bf16}, nullptr));
    for (int i = 0; i < 16; i++)
        for (int n = 0; n < 8; n++)
            assert_true(fabs((double)c[i][n] - expected[i][n]) <= (whole ? 0 : 18 * unit * size[i][n]));
}

static void
test_matrix_instructions_multiply_the_fragments_of_the_ptx_manual(void **)
{
    static const struct {
        const char *way;
        double unit; /* of what is lost of a term or a sum */
    } ways[] = {
        {"exact", 0x1p-24},     {"truncated", 0x1p-23}, {"aligned24", 0x1p-23},
        {"aligned14", 0x1p-13}, {"in-order", 0x1p-24},
    };
    assert_false(emulation::add_up_like("somehow"));
    for (const auto &each : ways) {
        assert_true(emulation::add_up_like(each.way));
        for (int i = 0; i < 40; i++)
            check_matrix(i % ORDERS, i / ORDERS % 2, i % 2, each.unit);
    }
}

/* c, and n products of two numbers behind a first one of others. */
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

static void
test_sums_of_matrix_instructions_are_cut_off_where_one_chooses(void **)
{
    const float next = 1 + 0x1p-23f, least = 0x1p-24f; /* of halves */
    assert_true(add_up("in-order", 1, {0, 0}, 8, {0x1p-12f, 0x1p-13f}) == 1);
    assert_true(add_up("exact", 1, {0, 0}, 8, {0x1p-12f, 0x1p-13f}) == 1 + 0x1p-22f);
    assert_true(add_up("aligned24", 1, {0, 0}, 8, {0x1p-12f, 0x1p-13f}) == 1);
    for (const char *rounds : {"in-order", "exact"})
        assert_true(add_up(rounds, 1, {1.5f, least}, 0, {0, 0}) == next);
    for (const char *cuts : {"truncated", "aligned24", "aligned14"}) {
        assert_true(add_up(cuts, 1, {1.5f, least}, 0, {0, 0}) == 1);
        assert_true(add_up(cuts, 1, {2, least}, 8, {2, least}) == 1 + 9 * 0x1p-23f);
    }
    /* Of products with the least half, written as if its first bit were the tenth. */
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
    uint64_t *values;     /* (32), become what was shuffled */
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

static void
test_shuffles_bring_the_lane_that_they_name(void **)
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
                assert_true(values[(size_t)lane] == 0xcbcbcbcbcbcbcbcbu); /* undefined: poison */
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

static void
test_votes_and_reductions_count_the_lanes_of_the_mask(void **)
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

int
main(void)
{
    state_of_random = seed_or((uint64_t)time(nullptr));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves_are_the_numbers_that_ieee_754_says),
        cmocka_unit_test(test_floats_round_to_the_nearest_half_ties_to_even),
        cmocka_unit_test(test_floats_round_to_the_nearest_bf16_ties_to_even),
        cmocka_unit_test(test_bytes_become_halves_lowest_first),
        cmocka_unit_test(test_matrix_instructions_multiply_the_fragments_of_the_ptx_manual),
        cmocka_unit_test(test_sums_of_matrix_instructions_are_cut_off_where_one_chooses),
        cmocka_unit_test(test_shuffles_bring_the_lane_that_they_name),
        cmocka_unit_test(test_votes_and_reductions_count_the_lanes_of_the_mask),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
