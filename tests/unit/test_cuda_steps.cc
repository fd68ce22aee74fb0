/* The steps of a sweep on the emulation (tests/cuda/emulation), each against its definition in double: products by strips
 * of every type, norms, rotations, attention; and that bits do not depend on what else is in a call.
 * SPECSCOPE_SEED=N chooses shapes and numbers. */
#include <cmath>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

extern "C" {
#include <cmocka.h>
}

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matmul.cuh"
#include "kernels/cuda/norm.cuh"
#include "kernels/cuda/rope.cuh"

enum { BLOCKS = 3 };

static uint64_t seed, state_of_random;

static uint64_t
random64()
{
    uint64_t z = state_of_random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint32_t
below(uint32_t n)
{
    return (uint32_t)(random64() % n);
}

static float
uniform() /* -1..1 */
{
    return (float)(int64_t)random64() * 0x1p-63f;
}

template <class T>
static T *
on_device(const std::vector<T> &from)
{
    T *p;
    assert_int_equal(cudaMalloc(&p, (from.size() + 1) * sizeof *p), cudaSuccess);
    memcpy((void *)p, from.data(), from.size() * sizeof *p);
    return p;
}

template <class A>
static void
run(void (*kernel)(A), A arguments, size_t shared)
{
    emulated_cuda_seed(random64() | 1);
    assert_int_equal(launch_cooperative(kernel, BLOCKS, SWEEP_THREADS, arguments, nullptr, shared), cudaSuccess);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
}

/* |got - want| / |want|, norms over all of them. */
static double
difference(const std::vector<double> &want, const float *got)
{
    double apart = 0, all = 0;
    for (size_t i = 0; i < want.size(); i++) {
        apart += (want[i] - (double)got[i]) * (want[i] - (double)got[i]);
        all += want[i] * want[i];
    }
    return sqrt(apart / all);
}

/* ---- products ---- */

/* A matrix as the device has it, and its values in plain rows. */
struct test_matrix {
    struct dev_matrix m = {};
    std::vector<float> values; /* (rows, cols), as they are after rounding to the type */

    test_matrix(enum weight_type type, uint32_t rows, uint32_t cols, bool permuted)
    {
        m.type = type;
        m.rows = rows;
        m.cols = cols;
        m.strips = (rows + STRIP - 1) / STRIP + (permuted ? 1 : 0);
        m.units = units_of(cols);
        values.resize((size_t)rows * cols);
        std::vector<uint32_t> source(m.strips * STRIP, UINT32_MAX);
        for (uint32_t r = 0; r < rows; r++)
            source[permuted ? (r * 7 + 3) % source.size() : r] = r;
        for (uint32_t r = 0; permuted && r < rows; r++) /* all of them somewhere, once, whatever was overwritten */
            source[r + STRIP - 1] = rows - 1 - r;
        for (uint32_t s = 0; permuted && s < source.size(); s++)
            if (s < STRIP - 1 || s >= STRIP - 1 + rows)
                source[s] = UINT32_MAX;
        if (permuted)
            m.source = on_device(source);
        fill(source);
    }
    test_matrix(const test_matrix &) = delete;
    ~test_matrix()
    {
        cudaFree((void *)m.quants);
        cudaFree((void *)m.scales);
        cudaFree((void *)m.source);
    }

  private:
    float
    unit_value(uint32_t packed, uint32_t k, uint8_t *quants, uint16_t *scales)
    {
        const uint32_t r = packed % STRIP;
        const size_t unit = (size_t)(packed / STRIP) * m.units + k / UNIT, at = unit * STRIP * UNIT;
        uint16_t *halves = (uint16_t *)(void *)quants, *scale = &scales[unit * STRIP + r % 8 * 2 + r / 8];
        if (m.type == WEIGHT_Q8_0) {
            const int8_t q = (int8_t)(below(255) - 127);
            if (k % UNIT == 0)
                *scale = half_bits(uniform() * 0.01f);
            quants[at + unit_place(r, k % UNIT)] = (uint8_t)q;
            return (float)q * half_value(*scale);
        }
        uint16_t *half = &halves[at + unit_place_16(r, k % UNIT)];
        if (m.type == WEIGHT_BF16) {
            *half = (uint16_t)pack_bf16s(uniform(), 0);
            return unpack_bf16s(*half).x;
        }
        *half = half_bits(uniform());
        return half_value(*half);
    }

    /* Of types that are packed by pairs of units. Columns come in ascending order: a scale is chosen with its first. */
    float
    pair_value(uint32_t packed, uint32_t k, uint8_t *quants, uint8_t *scales)
    {
        const uint32_t r = packed % STRIP, second = r / 8, unit = k % PAIR / UNIT, step = k % PAIR / 16;
        const uint32_t pair_bytes = m.type == WEIGHT_Q6_K ? PAIR_NIBBLES + PAIR_HIGHS : PAIR_NIBBLES;
        uint8_t *of_strip = scales + packed / STRIP * strip_scales(m.type, m.units);
        uint8_t *of_pair = of_strip + k / PAIR * PAIR_SCALES + r % 8 * 8;
        uint16_t *d = (uint16_t *)(void *)(of_strip + m.units / 2 * PAIR_SCALES) +
                      (k / SUPER * STRIP + r % 8 * 2 + second) * super_scales(m.type);
        uint8_t *pair = quants + ((size_t)(packed / STRIP) * (m.units / 2) + k / PAIR) * pair_bytes;
        const uint32_t q = below(m.type == WEIGHT_Q6_K ? 64 : 16);
        pair[nibble_place(r, k % UNIT)] |= (uint8_t)((q & 15) << (4 * unit));
        if (m.type == WEIGHT_Q4_0) {
            uint16_t *scale = (uint16_t *)(void *)of_pair + unit * 2 + second;
            if (k % UNIT == 0)
                *scale = half_bits(uniform() * 0.1f);
            return half_value(*scale) * ((float)q - 8);
        }
        if (k % SUPER == 0)
            for (uint32_t i = 0; i < super_scales(m.type); i++)
                d[i] = half_bits(uniform() * 0.01f);
        if (m.type == WEIGHT_Q4_K) {
            uint8_t *scale = of_pair + second * 4 + unit, *least = scale + 2;
            if (k % UNIT == 0) {
                *scale = (uint8_t)below(64);
                *least = (uint8_t)below(64);
            }
            return half_value(d[0]) * (float)*scale * (float)q - half_value(d[1]) * (float)*least;
        }
        int8_t *scale = (int8_t *)of_pair + second * 4 + step;
        if (k % 16 == 0)
            *scale = (int8_t)(below(256) - 128);
        pair[PAIR_NIBBLES + high_place(r, k % UNIT)] |= (uint8_t)(q >> 4 << (4 * unit + 2 * second));
        return half_value(d[0]) * (float)*scale * ((float)q - 32);
    }

    void
    fill(const std::vector<uint32_t> &source)
    {
        std::vector<uint8_t> quants((size_t)m.strips * m.units * STRIP * UNIT * 2);
        std::vector<uint16_t> scales(m.strips * strip_scales(m.type, m.units) / sizeof(uint16_t));
        for (uint32_t packed = 0; packed < source.size(); packed++)
            for (uint32_t k = 0; source[packed] < m.rows && k < m.cols; k++) {
                float *value = &values[(size_t)source[packed] * m.cols + k];
                *value = has_pairs(m.type) ? pair_value(packed, k, quants.data(), (uint8_t *)scales.data())
                                           : unit_value(packed, k, quants.data(), scales.data());
            }
        if (m.type == WEIGHT_F32) {
            m.quants = on_device(values);
            return;
        }
        m.quants = on_device(quants);
        m.scales = on_device(scales);
    }
};

/* Activations of n rows, as they are after rounding, and packed in whole tiles; beyond n there are NaNs, which must not
 * reach any other row. */
struct test_rows {
    std::vector<float> values; /* (n, cols) */
    void *packed;

    test_rows(uint32_t n, uint32_t cols, bool exact) : values((size_t)n * cols)
    {
        const uint32_t units = units_of(cols), tiles = (n + SWEEP_TILE - 1) / SWEEP_TILE * SWEEP_TILE;
        std::vector<uint16_t> halves((size_t)tiles * units * UNIT);
        for (uint32_t r = 0; r < tiles; r++)
            for (uint32_t k = 0; k < units * UNIT; k++)
                halves[packed_place(units, r, k)] = k >= cols ? 0 : half_bits(r < n ? uniform() : NAN);
        for (uint32_t r = 0; r < n; r++)
            for (uint32_t k = 0; k < cols; k++)
                values[(size_t)r * cols + k] = exact ? uniform() : half_value(halves[packed_place(units, r, k)]);
        packed = exact ? (void *)on_device(values) : (void *)on_device(halves);
    }
    test_rows(const test_rows &) = delete;
    ~test_rows()
    {
        cudaFree(packed);
    }
};

struct product_args {
    struct product product;
    struct dev_model model;
    enum pairing pairing;
    float *out[3]; /* (n, rows) of each matrix */
};

struct put_output {
    const struct product_args &a;
    __device__ void
    operator()(uint32_t which, uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1) const
    {
        const size_t rows = a.product.matrices[which]->rows;
        if (o0 != UINT32_MAX)
            a.out[which][row * rows + o0] = y0;
        if (o1 != UINT32_MAX)
            a.out[which][row * rows + o1] = y1;
    }
};

template <enum weight_type T, int NT>
static __global__ void
multiply_rows(struct product_args a)
{
    SHARED_MEMORY(float, shared);
    uint32_t turn = 0;
    struct put_output put = {a};
    if (T == WEIGHT_F32)
        exact_product(a.product, a.pairing, a.model, shared, &turn, put);
    else
        packed_strips<T == WEIGHT_F32 ? WEIGHT_F16 : T, NT>(a.product, 0, shared, &turn, put);
}

template <enum weight_type T>
static void
run_product(const struct product_args &a)
{
    const uint32_t n = a.product.n;
    run(n <= TILE       ? multiply_rows<T, 1>
        : n <= 2 * TILE ? multiply_rows<T, 2>
                        : multiply_rows<T, PRODUCT_TILES>,
        a, PRODUCT_SHARED);
}

static std::vector<double>
define_product(const test_matrix &w, const test_rows &x, uint32_t n)
{
    std::vector<double> y((size_t)n * w.m.rows);
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t o = 0; o < w.m.rows; o++)
            for (uint32_t k = 0; k < w.m.cols; k++)
                y[(size_t)r * w.m.rows + o] +=
                    (double)w.values[(size_t)o * w.m.cols + k] * (double)x.values[(size_t)r * w.m.cols + k];
    return y;
}

/* A product of up to three matrices; then of its last row alone, whose bits must be the same. */
template <enum weight_type T>
static void
check_product(uint32_t n, uint32_t cols, uint32_t n_matrices)
{
    const bool exact = T == WEIGHT_F32;
    const test_matrix one(T, 1 + below(40), cols, !exact && below(2)), two(T, 1 + below(70), cols, !exact && below(2)),
        three(T, 1 + below(20), cols, false);
    const test_matrix *all[3] = {&one, &two, &three};
    const test_rows x(n, cols, exact);
    struct product_args a = {};
    a.product = {{&one.m, &two.m, &three.m}, n_matrices, x.packed, n};
    a.model.head_dim = 2;
    for (uint32_t i = 0; i < n_matrices; i++)
        a.out[i] = on_device(std::vector<float>((size_t)n * all[i]->m.rows, NAN));
    run_product<T>(a);
    for (uint32_t i = 0; i < n_matrices; i++) {
        const double apart = difference(define_product(*all[i], x, n), a.out[i]);
        if (!(apart < (exact ? 1e-6 : 1e-5)))
            fail_msg("type %d, %u x %u, %u rows, matrix %u: %g apart", (int)T, all[i]->m.rows, cols, n, i, apart);
    }
    std::vector<float> alone(cols), row0(x.values.begin(), x.values.begin() + cols);
    struct product_args b = a;
    b.product.n = 1;
    for (uint32_t i = 0; i < n_matrices; i++)
        b.out[i] = on_device(std::vector<float>(all[i]->m.rows, NAN));
    run_product<T>(b);
    for (uint32_t i = 0; i < n_matrices; i++) {
        assert_memory_equal(a.out[i], b.out[i], all[i]->m.rows * sizeof(float));
        cudaFree(a.out[i]);
        cudaFree(b.out[i]);
    }
}

template <enum weight_type T>
static void
check_products()
{
    static const uint32_t rows[] = {1, 8, 9, 17, 32, 33, 70};
    const uint32_t block = T == WEIGHT_Q4_K || T == WEIGHT_Q6_K   ? SUPER
                           : T == WEIGHT_Q8_0 || T == WEIGHT_Q4_0 ? UNIT
                                                                  : 1;
    for (uint32_t n : rows)
        check_product<T>(n, block == 1 ? 1 + below(1200) : block * (1 + below(1280 / block)), 1 + below(3));
    check_product<T>(3, block == 1 ? 4801 : 4864 / SUPER * SUPER, 1); /* more than one ring of units */
}

static void
test_products_by_strips_are_products_whatever_the_type(void **)
{
    check_products<WEIGHT_F16>();
    check_products<WEIGHT_BF16>();
    check_products<WEIGHT_Q8_0>();
    check_products<WEIGHT_Q4_0>();
    check_products<WEIGHT_Q4_K>();
    check_products<WEIGHT_Q6_K>();
    check_products<WEIGHT_F32>();
}

/* ---- norms ---- */

struct norm_args {
    struct dev_model model;
    const float *from, *weight;
    void *to;
};

static __global__ void
norm_one(struct norm_args a)
{
    SHARED_MEMORY(float, parts);
    if (blockIdx.x == 0)
        norm_row(a.model, a.from, a.weight, a.to, 5, parts);
}

static void
test_rows_are_normed_by_their_root_mean_square(void **)
{
    for (int i = 0; i < 12; i++) {
        struct norm_args a = {};
        const uint32_t width = 1 + below(1500), units = units_of(width);
        std::vector<float> from(width), weight(width), got(width);
        std::vector<double> want(width);
        double squares = 0;
        for (uint32_t k = 0; k < width; k++) {
            from[k] = uniform() * (i % 3 == 0 ? 1e-3f : 300);
            weight[k] = uniform();
            squares += (double)from[k] * (double)from[k];
        }
        a.model.width = width;
        a.model.rms_eps = 1e-5f;
        a.model.exact = i % 2 == 1;
        for (uint32_t k = 0; k < width; k++)
            want[k] = (double)from[k] * (double)weight[k] / sqrt(squares / width + (double)a.model.rms_eps);
        a.from = on_device(from);
        a.weight = on_device(weight);
        a.to = on_device(std::vector<uint32_t>((size_t)8 * units * UNIT, 0x7e007e00u)); /* NaN */
        run(norm_one, a, WARP * sizeof(float));
        for (uint32_t k = 0; k < units * UNIT && (k < width || !a.model.exact); k++) {
            const float x = a.model.exact ? ((const float *)a.to)[(size_t)5 * width + k]
                                          : half_value(((const uint16_t *)a.to)[packed_place(units, 5, k)]);
            if (k < width)
                got[k] = x;
            else
                assert_true(x == 0);
        }
        const double apart = difference(want, got.data());
        if (!(apart < (a.model.exact ? 1e-5 : 1e-3)))
            fail_msg("%u columns: %g apart", width, apart);
        cudaFree((void *)a.from);
        cudaFree((void *)a.weight);
        cudaFree(a.to);
    }
}

/* ---- rotations ---- */

static void
test_turns_are_exact_at_position_100000_too(void **)
{
    const long double two_pi = 6.283185307179586476925286766559L;
    for (int i = 0; i < 20000; i++) {
        const uint32_t position = i % 2 == 0 ? below(200) : 100000 + below(40000);
        const double frequency = pow(1e4, -(double)below(64) / 64);
        const long double angle = fmodl((long double)position * (long double)frequency, two_pi);
        const float x = uniform(), y = uniform();
        float a = x, b = y;
        rotate(turn_of(position, frequency), &a, &b);
        const std::vector<double> want = {(double)(x * cosl(angle) - y * sinl(angle)),
                                          (double)(x * sinl(angle) + y * cosl(angle))};
        const float got[] = {a, b};
        if (!(difference(want, got) < 1e-5))
            fail_msg("position %u, frequency %g: %g apart", position, frequency, difference(want, got));
    }
}

/* ---- attention ---- */

struct attend_args {
    struct sweep_args sweep;
    struct dev_model model;
    uint32_t layer, splits;
    bool apart;
};

template <class KV, int PAIRS, int DIMS>
static __global__ void
attend_all(struct attend_args a)
{
    SHARED_MEMORY(float, shared);
    const struct attend_scene c = {&a.sweep, &a.model, a.layer, a.splits};
    if (a.apart)
        attend_rows<KV, PAIRS, DIMS, true>(c, shared);
    else
        attend_rows<KV, PAIRS / 2, DIMS, false>(c, shared);
}

static void
run_attention(const struct attend_args &a)
{
    if (a.model.exact)
        run(a.model.head_dim <= 128 ? attend_all<float, ATTEND_PAIRS, 4> : attend_all<float, ATTEND_PAIRS / 2, 8>, a,
            ATTEND_SHARED);
    else
        run(a.model.head_dim <= 128 ? attend_all<uint16_t, ATTEND_PAIRS, 4> : attend_all<uint16_t, ATTEND_PAIRS / 2, 8>,
            a, ATTEND_SHARED);
}

/* A tree of rows behind a trunk, with keys, values and queries out of nothing. */
struct attention_case {
    struct attend_args a = {};
    std::vector<struct row> rows;
    std::vector<slot_t> tails, trunk;
    std::vector<struct row_group> groups;
    std::vector<float> keys, values, q; /* as they are after rounding */
    std::vector<void *> owned;

    template <class T>
    T *
    own(const std::vector<T> &from)
    {
        T *p = on_device(from);
        owned.push_back(p);
        return p;
    }
    attention_case(uint32_t heads, uint32_t kv_heads, uint32_t dim, uint32_t window, uint32_t n_trunk, uint32_t n,
                   bool exact)
    {
        struct dev_store &s = a.sweep.store;
        a.model.heads = heads;
        a.model.kv_heads = kv_heads;
        a.model.head_dim = dim;
        a.model.window = window;
        a.model.exact = exact;
        a.layer = 2;
        s.slots = n_trunk + n + 5;
        s.trunk_room = n_trunk + 3;
        s.max_splits = s.slots / ATTEND_SPLIT + 2;
        for (slot_t slot = 0; slot < s.slots; slot++)
            trunk.push_back(slot);
        for (uint32_t i = 0; i + 1 < s.slots; i++)
            std::swap(trunk[i], trunk[i + below(s.slots - i)]);
        const std::vector<slot_t> places(trunk.begin() + n_trunk, trunk.end());
        grow(n_trunk, n, places);
        trunk.resize(s.trunk_room);
        fill(n, exact);
    }
    attention_case(const attention_case &) = delete;
    ~attention_case()
    {
        for (void *p : owned)
            cudaFree(p);
    }

  private:
    /* Chains, some of which end and go on from their own beginnings. */
    void
    grow(uint32_t n_trunk, uint32_t n, const std::vector<slot_t> &places)
    {
        for (uint32_t i = 0; i < n; i++) {
            const bool follows = i > 0 && below(4) > 0;
            struct row r = {};
            r.slot = places[i];
            r.n_trunk = n_trunk;
            r.from = below(5) == 0 ? 2 : below(2); /* 2: does not take part */
            if (follows) {
                r.tail = rows.back().tail;
                r.n_tail = rows.back().n_tail + 1;
                tails.push_back(r.slot);
            } else { /* what row `on` came behind, or the trunk alone */
                r.tail = (uint32_t)tails.size();
                r.n_tail = 1;
                if (i > 0 && below(2)) {
                    const struct row on = rows[below(i)];
                    for (uint32_t t = 0; t < on.n_tail; t++)
                        tails.push_back(tails[on.tail + t]);
                    r.n_tail = on.n_tail + 1;
                }
                tails.push_back(r.slot);
            }
            if (follows && groups.back().n < ATTEND_PAIRS)
                groups.back().n++;
            else
                groups.push_back({i, 1});
            rows.push_back(r);
        }
    }
    void *
    round_and_own(std::vector<float> &x, bool exact)
    {
        std::vector<uint16_t> halves;
        for (float &v : x) {
            v = uniform();
            if (!exact) {
                halves.push_back(half_bits(v));
                v = half_value(halves.back());
            }
        }
        return exact ? (void *)own(x) : (void *)own(halves);
    }
    void
    fill(uint32_t n, bool exact)
    {
        struct dev_store &s = a.sweep.store;
        const struct dev_model &m = a.model;
        const size_t room = (size_t)2 * s.slots * m.kv_heads * m.head_dim;
        keys.resize(room);
        values.resize(room);
        q.resize((size_t)n * m.heads * m.head_dim);
        s.keys = round_and_own(keys, exact);
        s.values = round_and_own(values, exact);
        s.q = (float *)round_and_own(q, true);
        s.trunk = own(trunk);
        s.partials = own(std::vector<float>((size_t)n * m.heads * s.max_splits * (2 + m.head_dim), NAN));
        s.arrivals = own(std::vector<uint32_t>((size_t)n * m.heads, 0));
        s.attended = own(std::vector<float>((size_t)(n + 31) / 32 * 32 * units_of(m.heads * m.head_dim) * UNIT, 0));
        a.sweep.rows = own(rows);
        a.sweep.tails = own(tails);
        a.sweep.groups = own(groups);
        a.sweep.n = n;
        a.sweep.n_groups = (uint32_t)groups.size();
        for (const struct row &r : rows)
            a.splits = std::max(a.splits, (r.n_trunk + r.n_tail - 1) / ATTEND_SPLIT + 1);
    }
};

static float
attended_value(const attention_case &c, uint32_t row, uint32_t k)
{
    const uint32_t cols = c.a.model.heads * c.a.model.head_dim;
    return c.a.model.exact
               ? ((const float *)c.a.sweep.store.attended)[(size_t)row * cols + k]
               : half_value(((const uint16_t *)c.a.sweep.store.attended)[packed_place(units_of(cols), row, k)]);
}

/* softmax(q k) v of one head of a row. */
static std::vector<double>
define_attention(const attention_case &c, const struct row &r, uint32_t i, uint32_t head)
{
    const struct dev_model &m = c.a.model;
    const uint32_t last = r.n_trunk + r.n_tail - 1, first = m.window > 0 && last >= m.window ? last + 1 - m.window : 0;
    const float *q = &c.q[((size_t)i * m.heads + head) * m.head_dim];
    std::vector<double> weights, out(m.head_dim);
    double sum = 0;
    for (uint32_t p = first; p <= last; p++) {
        const slot_t slot = p < r.n_trunk ? c.trunk[p] : c.tails[r.tail + p - r.n_trunk];
        const size_t at =
            ((c.a.sweep.store.slots + (size_t)slot) * m.kv_heads + head / (m.heads / m.kv_heads)) * m.head_dim;
        double z = 0;
        for (uint32_t d = 0; d < m.head_dim; d++)
            z += (double)q[d] * (double)c.keys[at + d];
        for (uint32_t d = 0; d < m.head_dim; d++)
            out[d] += exp(z) * (double)c.values[at + d];
        sum += exp(z);
    }
    for (double &x : out)
        x /= sum;
    return out;
}

static void
check_attention(attention_case &c)
{
    const struct dev_model &m = c.a.model;
    const size_t bytes = (size_t)(c.a.sweep.n + 31) / 32 * 32 * units_of(m.heads * m.head_dim) * UNIT * sizeof(float);
    std::vector<uint8_t> apart(bytes);
    c.a.apart = true;
    run_attention(c.a);
    memcpy(apart.data(), c.a.sweep.store.attended, bytes);
    for (uint32_t i = 0; i < c.a.sweep.n; i++)
        for (uint32_t head = 0; head < m.heads; head++) {
            std::vector<float> got;
            for (uint32_t d = 0; d < m.head_dim; d++)
                got.push_back(attended_value(c, i, head * m.head_dim + d));
            if (c.rows[i].from >= c.a.layer) {
                for (float x : got)
                    assert_true(x == 0); /* not touched */
                continue;
            }
            const double off = difference(define_attention(c, c.rows[i], i, head), got.data());
            if (!(off < (m.exact ? 1e-5 : 1e-3)))
                fail_msg("row %u, head %u of %u on %u, %u dimensions: %g apart", i, head, m.heads, m.kv_heads,
                         m.head_dim, off);
        }
    for (uint32_t i = 0; i < c.a.sweep.n * m.heads; i++)
        assert_int_equal(c.a.sweep.store.arrivals[i], 0);
    c.a.apart = false; /* one warp walks all splits: the same bits */
    memset(c.a.sweep.store.attended, 0, bytes);
    run_attention(c.a);
    assert_memory_equal(c.a.sweep.store.attended, apart.data(), bytes);
}

static void
test_attention_is_a_softmax_over_the_path_and_has_the_same_bits_split_or_not(void **)
{
    static const struct {
        uint32_t heads, kv_heads, dim, window, n_trunk, n;
        bool exact;
    } cases[] = {{4, 4, 16, 0, 300, 9, false},  {2, 1, 16, 0, 64, 1, false},    {6, 2, 64, 0, 150, 21, false},
                 {8, 1, 8, 50, 280, 6, false},  {3, 3, 12, 0, 0, 12, false},    {2, 1, 128, 0, 40, 5, false},
                 {2, 2, 160, 0, 130, 4, false}, {4, 2, 256, 140, 300, 3, true}, {9, 3, 20, 0, 129, 17, true},
                 {5, 5, 6, 3, 127, 8, true}};
    for (const auto &k : cases) {
        attention_case c(k.heads, k.kv_heads, k.dim, k.window, k.n_trunk, k.n, k.exact);
        check_attention(c);
    }
}

static void
test_a_row_attends_with_the_same_bits_alone(void **)
{
    attention_case c(6, 2, 32, 0, 200, 24, false);
    c.a.apart = true;
    run_attention(c.a);
    for (uint32_t i = 0; i < 24; i += 5) {
        if (c.rows[i].from >= c.a.layer)
            continue;
        std::vector<float> together;
        for (uint32_t k = 0; k < 6 * 32; k++)
            together.push_back(attended_value(c, i, k));
        struct attend_args alone = c.a;
        std::vector<struct row_group> one = {{i, 1}};
        alone.sweep.groups = c.own(one);
        alone.sweep.n_groups = 1;
        run_attention(alone);
        for (uint32_t k = 0; k < 6 * 32; k++)
            assert_true(attended_value(c, i, k) == together[k]);
    }
}

int
main(void)
{
    const char *given = getenv("SPECSCOPE_SEED");
    seed = state_of_random = given != nullptr ? strtoull(given, nullptr, 10) : (uint64_t)time(nullptr);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_by_strips_are_products_whatever_the_type),
        cmocka_unit_test(test_rows_are_normed_by_their_root_mean_square),
        cmocka_unit_test(test_turns_are_exact_at_position_100000_too),
        cmocka_unit_test(test_attention_is_a_softmax_over_the_path_and_has_the_same_bits_split_or_not),
        cmocka_unit_test(test_a_row_attends_with_the_same_bits_alone),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
