/* The emulation of device code (tests/cuda/emulation) by the definitions in the CUDA programming guide and the PTX manual:
 * what lanes, blocks and grids compute together. Every kernel runs with threads taking turns in order, and in random
 * orders. SPECSCOPE_SEED=N chooses the numbers. */
#include <cinttypes>
#include <cmath>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

extern "C" {
#include <cmocka.h>
}

#include "kernels/clock.h"
#include "kernels/cuda/grid.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/rng.h"

enum { ORDERS = 5, LANES = 32 };

static uint64_t seed, state_of_random;

static uint64_t
random64()
{
    return splitmix64(&state_of_random);
}

/* Memory of the device that the test looks into when nothing runs. */
template <class T> struct array {
    T *p;
    explicit array(size_t n, bool zero = false)
    {
        assert_int_equal(cudaMalloc(&p, n * sizeof *p), cudaSuccess);
        if (zero)
            memset((void *)p, 0, n * sizeof *p);
    }
    ~array()
    {
        assert_int_equal(cudaFree(p), cudaSuccess);
    }
    array(const array &) = delete;
    T &
    operator[](size_t i)
    {
        return p[i];
    }
};

/* Runs a kernel in order, or for order > 0 in a random one. */
#define RUN(order, ...)                                                                                                \
    do {                                                                                                               \
        emulated_cuda_seed((order) == 0 ? 0 : random64() | 1);                                                         \
        assert_int_equal(__VA_ARGS__, cudaSuccess);                                                                    \
        assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);                                                        \
    } while (0)

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
check_matrix(int order, bool bf16, bool whole)
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
            assert_true(fabs((double)c[i][n] - expected[i][n]) <= (whole ? 0 : 17 * 0x1p-24 * size[i][n]));
}

static void
test_matrix_instructions_multiply_the_fragments_of_the_ptx_manual(void **)
{
    for (int i = 0; i < 40; i++)
        check_matrix(i % ORDERS, i / ORDERS % 2, i % 2);
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

/* ---- blocks ---- */

enum { THREADS = 200 };

struct block_args {
    uint32_t *values; /* (blocks, THREADS), becomes the sums before each thread, in the block */
    uint32_t *counts; /* (blocks, 3) */
    bool forgets;     /* a barrier */
};

/* Sums before each thread, in log steps; static and dynamic shared memory take turns. */
static __global__ void
scan(struct block_args a)
{
    __shared__ uint32_t even[THREADS];
    SHARED_MEMORY(uint32_t, odd);
    const unsigned t = threadIdx.x;
    uint32_t *const values = a.values + blockIdx.x * THREADS, *from = even, *to = odd;
    from[t] = values[t];
    for (unsigned step = 1; step < THREADS; step *= 2) {
        if (!a.forgets)
            __syncthreads();
        to[t] = t >= step ? from[t] + from[t - step] : from[t];
        uint32_t *const other = from;
        from = to;
        to = other;
    }
    const int count = __syncthreads_count(values[t] % 3 == 0), all = __syncthreads_and(values[t] < 1000),
              any = __syncthreads_or(values[t] == 7);
    if (t == 0) {
        a.counts[blockIdx.x * 3] = (uint32_t)count;
        a.counts[blockIdx.x * 3 + 1] = (uint32_t)all;
        a.counts[blockIdx.x * 3 + 2] = (uint32_t)any;
    }
    values[t] = from[t];
}

/* How many blocks come out wrong. */
static unsigned
scan_once(int order, bool forgets)
{
    enum { BLOCKS = 4 };
    array<uint32_t> values(BLOCKS * THREADS), counts(BLOCKS * 3);
    uint32_t before[BLOCKS * THREADS];
    unsigned wrong = 0;
    for (size_t i = 0; i < BLOCKS * THREADS; i++)
        before[i] = values[i] = (uint32_t)(random64() % 1001);
    RUN(order,
        launch(scan, BLOCKS, THREADS, block_args{values.p, counts.p, forgets}, nullptr, THREADS * sizeof(uint32_t)));
    for (unsigned b = 0; b < BLOCKS; b++) {
        uint32_t sum = 0, expected[3] = {0, 1, 0};
        bool same = true;
        for (unsigned t = 0; t < THREADS; t++) {
            const uint32_t v = before[b * THREADS + t];
            same = same && values[b * THREADS + t] == (sum += v);
            expected[0] += v % 3 == 0;
            expected[1] &= v < 1000;
            expected[2] |= v == 7;
        }
        wrong += !same;
        assert_memory_equal(&counts[b * 3], expected, sizeof expected);
    }
    return wrong;
}

static void
test_blocks_meet_at_barriers(void **)
{
    for (int order = 0; order < 12; order++)
        assert_int_equal(scan_once(order, false), 0);
}

static void
test_a_barrier_that_was_forgotten_shows(void **)
{
    unsigned wrong = 0;
    for (int order = 0; order < 4; order++)
        wrong += scan_once(order, true);
    assert_true(wrong > 0);
}

struct exit_args {
    uint32_t *sums; /* (3) */
};

/* Threads that have returned are not waited for: not by their block, nor by their warp. */
static __global__ void
leave_early(struct exit_args a)
{
    const unsigned t = threadIdx.x;
    if (t % 2 == 1 && t < 32)
        return;
    if (t < 32)
        atomicAdd(&a.sums[0], __popc(__ballot_sync(0xffffffffu, 1)));
    __syncthreads();
    if (t < 64)
        return;
    atomicAdd(&a.sums[1], (uint32_t)__syncthreads_count(1));
    if (t == 64)
        a.sums[2] = blockDim.x * gridDim.y + blockIdx.y * 1000 + threadIdx.z;
}

static void
test_threads_that_returned_are_not_waited_for(void **)
{
    for (int order = 0; order < ORDERS; order++) {
        array<uint32_t> sums(3, true);
        RUN(order, launch(leave_early, dim3(1, 2), 96, exit_args{sums.p}, nullptr));
        assert_int_equal(sums[0], 2 * 16 * 16);
        assert_int_equal(sums[1], 2 * 32 * 32);
        assert_int_equal(sums[2], 96 * 2 + 1000);
    }
}

/* ---- grids ---- */

enum { ROUNDS = 9 };

struct ring_args {
    struct dev_barrier *barrier;
    uint32_t *cells; /* (2, threads of the grid) */
};

/* Each thread adds what its neighbours in the grid had in the round before. */
static __global__ void
ring(struct ring_args a)
{
    const unsigned all = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    struct grid_barrier barrier = grid_barrier_of(a.barrier);
    a.cells[i] = i;
    for (unsigned round = 0; round < ROUNDS; round++) {
        grid_sync(barrier, [] {});
        const uint32_t *const from = a.cells + round % 2 * all;
        a.cells[(round + 1) % 2 * all + i] = from[(i + 1) % all] + from[(i + all - 1) % all];
    }
}

static void
test_the_blocks_of_a_cooperative_grid_meet(void **)
{
    enum { BLOCKS = 3, ALL = BLOCKS * 96 };
    static uint32_t expected[2][ALL];
    for (unsigned i = 0; i < ALL; i++)
        expected[0][i] = i;
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < ALL; i++)
            expected[(round + 1) % 2][i] =
                expected[round % 2][(i + 1) % ALL] + expected[round % 2][(i + ALL - 1) % ALL];
    for (int order = 0; order < 12; order++) {
        array<struct dev_barrier> barrier(1, true);
        array<uint32_t> cells(2 * ALL);
        RUN(order, launch_cooperative(ring, BLOCKS, 96, ring_args{barrier.p, cells.p}, nullptr));
        assert_memory_equal(&cells[ROUNDS % 2 * ALL], expected[ROUNDS % 2], sizeof expected[0]);
        assert_int_equal(barrier[0].arrived, 0);
    }
}

struct atomic_args {
    uint32_t *words; /* (8) */
    float *sum;
};

static __global__ void
count_up(struct atomic_args a)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&a.words[0], i);
    atomicMax(&a.words[1], i * 7 % 1000);
    atomicMin(&a.words[2], 1000000 - i);
    atomicInc(&a.words[3], 9);
    atomicOr(&a.words[4], 1u << i % 32);
    atomicAdd(a.sum, 0.5f);
    while (atomicCAS(&a.words[5], 0u, 1u) != 0) {} /* a lock */
    a.words[6]++;
    if (i % 64 == 0)
        __syncwarp(1u << threadIdx.x % 32); /* others run meanwhile */
    atomicExch(&a.words[5], 0u);
}

static void
test_atomics_lose_nothing(void **)
{
    enum { ALL = 3 * 128 };
    for (int order = 0; order < ORDERS; order++) {
        array<uint32_t> words(8, true);
        array<float> sum(1, true);
        words[2] = UINT32_MAX;
        RUN(order, launch_cooperative(count_up, 3, 128, atomic_args{words.p, sum.p}, nullptr));
        uint32_t most = 0;
        for (uint32_t i = 0; i < ALL; i++)
            most = i * 7 % 1000 > most ? i * 7 % 1000 : most;
        assert_int_equal(words[0], ALL * (ALL - 1) / 2);
        assert_int_equal(words[1], most);
        assert_int_equal(words[2], 1000000 - (ALL - 1));
        assert_int_equal(words[3], ALL % 10);
        assert_int_equal(words[4], 0xffffffffu);
        assert_int_equal(words[5], 0);
        assert_int_equal(words[6], ALL);
        assert_true(sum[0] == 0.5f * ALL);
    }
}

/* ---- speed ---- */

struct sum_args {
    float *out;
    unsigned times;
};

static __global__ void
sum_and_meet(struct sum_args a)
{
    float x = (float)threadIdx.x;
    for (unsigned i = 0; i < a.times; i++) {
        for (int apart = 16; apart > 0; apart /= 2)
            x += __shfl_xor_sync(0xffffffffu, x, apart);
        x *= 0x1p-5f;
        __syncthreads();
    }
    a.out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

static void
test_how_fast_threads_take_turns(void **)
{
    enum { TIMES = 100 };
    array<float> out(3 * 512);
    const uint64_t before = emulated_cuda_switches();
    const uint64_t start = clock_ns();
    RUN(0, launch_cooperative(sum_and_meet, 3, 512, sum_args{out.p, TIMES}, nullptr));
    const double s = (double)(clock_ns() - start) * 1e-9;
    const uint64_t n = emulated_cuda_switches() - before;
    print_message("%" PRIu64 " switches, %.1f million a second\n", n, (double)n / s * 1e-6);
    assert_true(n >= 3 * 512 * TIMES * 5 * 31 / 32); /* a thread in each warp goes on by itself */
    for (size_t i = 0; i < 3 * 512; i++)
        assert_true(out[i] == 15.5f + (float)(i % 512 / 32 * 32));
}

int
main(void)
{
    const char *given = getenv("SPECSCOPE_SEED");
    seed = state_of_random = given != nullptr ? strtoull(given, nullptr, 10) : (uint64_t)time(nullptr);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves_are_the_numbers_that_ieee_754_says),
        cmocka_unit_test(test_floats_round_to_the_nearest_half_ties_to_even),
        cmocka_unit_test(test_floats_round_to_the_nearest_bf16_ties_to_even),
        cmocka_unit_test(test_bytes_become_halves_lowest_first),
        cmocka_unit_test(test_matrix_instructions_multiply_the_fragments_of_the_ptx_manual),
        cmocka_unit_test(test_shuffles_bring_the_lane_that_they_name),
        cmocka_unit_test(test_votes_and_reductions_count_the_lanes_of_the_mask),
        cmocka_unit_test(test_blocks_meet_at_barriers),
        cmocka_unit_test(test_a_barrier_that_was_forgotten_shows),
        cmocka_unit_test(test_threads_that_returned_are_not_waited_for),
        cmocka_unit_test(test_the_blocks_of_a_cooperative_grid_meet),
        cmocka_unit_test(test_atomics_lose_nothing),
        cmocka_unit_test(test_how_fast_threads_take_turns),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
