/* nvcc's PTX on the emulation (tests/cuda/ptx): each instruction that the translator knows against its definition, over edges and
 * random numbers; state spaces, lanes, atomics, calls; and what ends a grid. SPECSCOPE_SEED=N chooses the numbers. */
#include <ctime>

#include "tests/cuda/ptx/forms/definitions.h"
#include "tests/cuda/ptx/machine/registry.h"
#include "tests/rigs/emulation_rig.cuh"

/* Waited for; what the device complains of, or "". */
static const char *
ran(const ptx::kernel &k, const std::vector<unsigned char> &params, unsigned blocks, unsigned threads, size_t dynamic)
{
    assert_int_equal(params.size(), k.params);
    const size_t room = k.shared + dynamic;
    SUCCEEDS(emulated_launch(
        k.name, &k, [&k, params, room] { k.run(params.data(), (u32)room); }, blocks, threads, room, false, nullptr));
    if (cudaDeviceSynchronize() == cudaSuccess)
        return "";
    emulated_cuda_fail(0, EMULATED_LOST);
    return emulated_cuda_complaint();
}

template <class... T>
static std::vector<unsigned char>
params_of(T... values)
{
    std::vector<unsigned char> all;
    auto put = [&all](auto v) {
        while (all.size() % sizeof v != 0)
            all.push_back(0);
        all.insert(all.end(), (unsigned char *)&v, (unsigned char *)&v + sizeof v);
    };
    (put(values), ...);
    return all;
}

/* ---- rows ---- */

struct form {
    const char *text, *type; /* of the result */
    unsigned size, units;
    const ptx::kernel *kernel;
    u64 (*expected)(const u64 *operands, bool p);
    const char *types[3];
};

/* Operands as numbers, results as bits. */
#define INTEGER(T)                                                                                                     \
    static inline T number_##T(u64 x)                                                                                  \
    {                                                                                                                  \
        return (T)x;                                                                                                   \
    }                                                                                                                  \
    static inline u64 code_##T(T x)                                                                                    \
    {                                                                                                                  \
        return (u64)x & (~0ull >> (64 - 8 * sizeof(T)));                                                               \
    }
INTEGER(u8)
INTEGER(u16)
INTEGER(u32)
INTEGER(u64)
INTEGER(s16)
INTEGER(s32)
INTEGER(s64)
#define number_b16   number_u16
#define number_b32   number_u32
#define number_b64   number_u64
#define number_f16x2 number_u32
#define code_b16     code_u16
#define code_b32     code_u32
#define code_b64     code_u64
#define code_f16x2   code_u32
#define code_bf16x2  code_u32
static inline float
number_f32(u64 x)
{
    return bits_as_float((u32)x);
}
static inline u64
code_f32(float x)
{
    return x != x ? 0x7fffffff : float_bits(x);
}
static inline double
number_f64(u64 x)
{
    double d;
    memcpy(&d, &x, 8);
    return d;
}
static inline u64
code_f64(double x)
{
    u64 b;
    memcpy(&b, &x, 8);
    return b;
}
static inline double
number_f16(u64 x)
{
    return half_number((u32)x & 0xffff);
}
static inline double
number_bf16(u64 x)
{
    return (double)bits_as_float((u32)(x & 0xffff) << 16);
}
#define code_f16  half_code
#define code_bf16 bf16_code

#include "rows.h"

static u64
random_operand(const char *type)
{
    static const u64 edges[] = {0,          1,          2,          3,          31,         32,         33,
                                0x7f,       0x80,       0xff,       0x7fff,     0x8000,     0xffff,     0x3c00,
                                0x7c00,     0x7bff,     0x8001,     0x7fffffff, ~0ull,      0x80000000, 0xffffffff,
                                0x3f800000, 0x7f800000, 0xff800000, 0x7f7fffff, 0x00800000, 1 << 22,    0x7fc00000,
                                0x4f000000, 0xcf000000, 1ull << 63, ~0ull >> 1};
    const bool wide = strstr(type, "64") != nullptr;
    switch (below(5)) {
    case 0: return edges[below(sizeof edges / sizeof *edges)];
    case 1: return (u64)(s64)((int)below(200) - 100);
    case 2:
        if (type[0] == 'f' && wide) {
            const double x = (double)uniform() * pow(2, (int)below(80) - 40);
            return code_f64(x);
        }
        return type[0] == 'f' && strcmp(type, "f32") == 0 ? float_bits(uniform() * ldexpf(1, (int)below(40) - 20))
                                                          : random64();
    default: return random64();
    }
}

static u64
distance(u64 a, u64 b)
{
    return a > b ? a - b : b - a;
}

/* The same bits; of numbers that are none any; where the manual gives a bound, as near as that. */
static bool
as_expected(const form &r, u64 got, u64 want)
{
    const bool is_float = r.type[0] == 'f' && strcmp(r.type, "f32") == 0;
    if (strcmp(r.type, "f64") == 0 && number_f64(want) != number_f64(want))
        return number_f64(got) != number_f64(got);
    if (is_float && want == 0x7fffffff)
        return number_f32(got) != number_f32(got);
    return got == want || (is_float && r.units > 0 && (got ^ want) >> 31 == 0 && distance(got, want) <= r.units);
}

static void
test_each_instruction_is_what_the_manual_says(void **)
{
    enum { N = 1024 };
    array<u64> in(4 * N), out(N);
    for (const form &r : rows) {
        for (size_t i = 0; i < 4 * N; i++)
            in[i] = i % 4 < 3 && r.types[i % 4] != nullptr ? random_operand(r.types[i % 4]) : random64();
        const char *said = ran(*r.kernel, params_of(in.p, out.p, (u64)N), N / 64, 64, 0);
        if (said[0] != '\0')
            fail_msg("%s: %s", r.text, said);
        for (size_t i = 0; i < N; i++) {
            const u64 want = r.expected(&in[4 * i], in[4 * i + 3] & 1);
            if (!as_expected(r, out[i], want))
                fail_msg("%s of %llx, %llx, %llx, %d is %llx, not %llx", r.text, (unsigned long long)in[4 * i],
                         (unsigned long long)in[4 * i + 1], (unsigned long long)in[4 * i + 2], (int)(in[4 * i + 3] & 1),
                         (unsigned long long)out[i], (unsigned long long)want);
        }
    }
}

/* ---- threads.ptx ---- */

extern const ptx::kernel ptx_threads_0, ptx_threads_1, ptx_threads_2, ptx_threads_3, ptx_threads_4, ptx_threads_5,
    ptx_threads_6;

static void
assert_lanes(const array<u32> &out, unsigned n, u32 (*want)(const u32 *in, u32 lane), const array<u32> &in)
{
    for (u32 lane = 0; lane < 32; lane++)
        if (out.p[32 * n + lane] != want(in.p, lane))
            fail_msg("result %u of lane %u is %x, not %x", n, lane, out.p[32 * n + lane], want(in.p, lane));
}

template <class Op>
static u32
over_lanes(const u32 *in, u32 all, Op op)
{
    for (u32 i = 0; i < 32; i++)
        all = op(all, in[i]);
    return all;
}

static void
test_lanes_exchange_vote_and_add_up(void **)
{
    array<u32> in(32), out(18 * 32);
    for (u32 i = 0; i < 32; i++)
        in[i] = (u32)random64();
    assert_string_equal(ran(ptx_threads_0, params_of(in.p, out.p), 1, 32, 0), "");
    static u32 (*const want[])(const u32 *, u32) = {
        [](const u32 *x, u32 i) { return x[i ^ 5]; },
        [](const u32 *x, u32 i) { return x[i / 8 * 8 + 1]; },
        [](const u32 *x, u32 i) { return x[i % 16 >= 3 ? i - 3 : i]; },
        [](const u32 *, u32 i) { return (u32)(i % 16 >= 3); },
        [](const u32 *x, u32 i) { return x[i + 6 < 32 ? i + 6 : i]; },
        [](const u32 *, u32 i) { return (u32)(i + 6 < 32); },
        [](const u32 *x, u32) {
            u32 bits = 0;
            for (u32 i = 0; i < 32; i++)
                bits |= (x[i] & 1) << i;
            return bits;
        },
        [](const u32 *x, u32) { return (over_lanes(x, 0, [](u32 a, u32 b) { return a | (b & 1); }) ? 1u : 2u) + 12; },
        [](const u32 *x, u32) { return over_lanes(x, 0, [](u32 a, u32 b) { return a + b; }); },
        [](const u32 *x, u32) { return over_lanes(x, x[0], [](u32 a, u32 b) { return (s32)a < (s32)b ? a : b; }); },
        [](const u32 *x, u32) { return over_lanes(x, 0, [](u32 a, u32 b) { return a < b ? b : a; }); },
        [](const u32 *x, u32) { return over_lanes(x, 0, [](u32 a, u32 b) { return a ^ b; }); },
        [](const u32 *x, u32) {
            return over_lanes(x, ~0u, [](u32 a, u32 b) { return a & b; }) ^
                   over_lanes(x, 0, [](u32 a, u32 b) { return a | b; });
        },
        [](const u32 *, u32 i) { return 0xffu << i / 8 * 8; },
        [](const u32 *, u32) { return 5u; },
        [](const u32 *, u32 i) { return (u32)(i == 0); },
        [](const u32 *, u32 i) { return ~(1u << i); },
        [](const u32 *, u32 i) { return i < 16 ? (1u << i) + 120 : 7; },
    };
    for (unsigned n = 0; n < sizeof want / sizeof *want; n++)
        assert_lanes(out, n, want[n], in);
}

/* a, b, c as PTX ISA says which lane has what. */
static void
test_matrices_lie_in_lanes_as_the_manual_says(void **)
{
    array<u32> in(32 * 16), out(32 * 16);
    for (u32 i = 0; i < 32 * 16; i++)
        in[i] = i % 16 >= 4 && i % 16 < 8 ? float_bits(1 + (float)(i % 5))
                                          : (0x3c003c00u ^ (i * 0x02000040u & 0x03c003c0u));
    assert_string_equal(ran(ptx_threads_1, params_of(in.p, out.p), 1, 32, 512), "");
    auto half = [](u32 w, u32 k) { return half_number(w >> 16 * (k % 2) & 0xffff); };
    for (u32 row = 0; row < 16; row++)
        for (u32 col = 0; col < 8; col++) {
            const u32 lane = row % 8 * 4 + col / 2, place = row / 8 * 2 + col % 2;
            double sum = (double)bits_as_float(in[16 * lane + 4 + place]);
            for (u32 k = 0; k < 16; k++)
                sum += half(in[16 * (row % 8 * 4 + k % 8 / 2) + row / 8 + k / 8 * 2], k) *
                       half(in[16 * (col * 4 + k % 8 / 2) + 8 + k / 8], k);
            const float got = bits_as_float(out[16 * lane + place]);
            assert_true(fabs((double)got - sum) < 1e-4 * fabs(sum));
        }
    u16 stored[256];
    for (u32 i = 0; i < 128; i++)
        memcpy(&stored[2 * i], &in[16 * (i / 4) + i % 4], 4);
    for (u32 lane = 0; lane < 32; lane++) {
        const u32 g = lane / 4, c = lane % 4 * 2;
        for (u32 m = 0; m < 4; m++)
            assert_int_equal(out[16 * lane + 8 + m],
                             stored[64 * m + 8 * g + c] | (u32)stored[64 * m + 8 * g + c + 1] << 16);
        for (u32 m = 0; m < 2; m++)
            assert_int_equal(out[16 * lane + 12 + m],
                             stored[64 * m + 8 * c + g] | (u32)stored[64 * m + 8 * c + 8 + g] << 16);
        assert_int_equal(out[16 * lane + 14], out[16 * lane + 8]);
    }
}

static void
test_addresses_of_each_space_lead_there(void **)
{
    array<u64> out(14);
    std::vector<unsigned char> params = params_of(out.p, (u64)0x1234);
    params.resize(22);
    params[21] = 0xf0;
    const char *said = ran(ptx_threads_2, params, 1, 1, 64);
    assert_string_equal(said, "");
    const u64 words = 16, room = 16 + 256; /* odd has the first 6 bytes; what nobody uses has none */
    const u64 want[] = {0x1234,
                        (u64)-16,
                        77,
                        254,
                        4 + 40 + 40,
                        4 + 80 - 5,
                        0,
                        7,
                        words | (room - words) << 16 | 9 << 8,
                        64 | (room + 64) << 16,
                        1,
                        0x1234 - 16,
                        0,
                        2 /* arguments printed */};
    for (u32 i = 0; i < 14; i++)
        if (out[i] != want[i])
            fail_msg("result %u is %llx, not %llx", i, (unsigned long long)out[i], (unsigned long long)want[i]);
}

static void
test_atomics_say_what_was_there(void **)
{
    array<u32> out(25);
    out[18] = out[19] = 0;
    assert_string_equal(ran(ptx_threads_3, params_of(out.p), 1, 1, 16), "");
    static const u32 want[] = {0, 0, 1000, 1005, (u32)-3, (u32)-3, 0xfd, 0x1fd, 0x1fe,
                               0, 2, 3,    0,    9,       50,      0,    51,    0x3f800000};
    for (u32 i = 2; i < sizeof want / sizeof *want; i++)
        if (i != 9 && i != 15 && out[i] != want[i])
            fail_msg("result %u is %x, not %x", i, out[i], want[i]);
    assert_int_equal(out[0], float_bits(3));
    assert_int_equal((s32)out[20], -2);
    assert_int_equal(out[18], (u32)-2);
    assert_int_equal(out[22], 30);
    assert_int_equal(out[23], 37);
}

static void
test_branches_and_calls_come_back(void **)
{
    array<u64> out(8);
    assert_string_equal(ran(ptx_threads_4, params_of(out.p), 1, 8, 0), "");
    const u64 want[] = {10, 102, 55, 30, 10, 0, 0, 0};
    for (u32 i = 0; i < 8; i++)
        assert_int_equal(out[i], want[i]);
}

static void
test_barriers_count(void **)
{
    array<u32> out(64);
    assert_string_equal(ran(ptx_threads_5, params_of(out.p), 1, 64, 0), "");
    for (u32 i = 0; i < 64; i++)
        assert_int_equal(out[i], (63 - i) | 32 << 8 | 0x10000);
}

static void
test_what_a_gpu_would_not_do_ends_the_grid(void **)
{
    static const char *const said[] = {
        "is at 8 bytes of global memory at",
        "is at 4 bytes of shared memory at",
        "is at 4 bytes of shared memory from byte 256 on",
        "which is no memory of the device",
        "which is no memory of the device",
        "one is no multiple of 16",
        "is at 512 bytes from",
        "ends the kernel",
        "which is no memory of the device",
    };
    for (u32 which = 0; which < sizeof said / sizeof *said; which++) {
        u64 *out; /* goes with the device that is lost */
        SUCCEEDS(cudaMalloc(&out, 256));
        const char *got = ran(ptx_threads_6, params_of(out, which), 1, 1, 256);
        if (strstr(got, said[which]) == nullptr)
            fail_msg("case %u: '%s' does not say '%s'", which, got, said[which]);
    }
}

int
main(void)
{
    state_of_random = seed_or((uint64_t)time(nullptr));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_instruction_is_what_the_manual_says),
        cmocka_unit_test(test_lanes_exchange_vote_and_add_up),
        cmocka_unit_test(test_matrices_lie_in_lanes_as_the_manual_says),
        cmocka_unit_test(test_addresses_of_each_space_lead_there),
        cmocka_unit_test(test_atomics_say_what_was_there),
        cmocka_unit_test(test_branches_and_calls_come_back),
        cmocka_unit_test(test_barriers_count),
        cmocka_unit_test(test_what_a_gpu_would_not_do_ends_the_grid),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
