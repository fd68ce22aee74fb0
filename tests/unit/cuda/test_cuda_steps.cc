/* The steps of a sweep between its products (test_cuda_products.cc) on the emulation (tests/cuda/emulation), each against its
 * definition in double: norms, rotations, attention; and that bits do not depend on what else is in a call.
 * SPECSCOPE_SEED=N chooses shapes and numbers. */
#include "tests/rigs/cuda_steps.h"

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/norm.cuh"
#include "kernels/cuda/rope.cuh"

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
    SHARED_MEMORY(struct attend_place, place);
    const struct attend_scene c = {&a.sweep, &a.model, a.layer, a.splits, a.apart};
    attend_rows<KV, PAIRS, DIMS>(c, place);
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
    round_and_own(std::vector<float> &x, uint32_t dim, uint32_t room, bool exact)
    {
        std::vector<uint16_t> halves;
        for (size_t i = 0; i < x.size(); i++) {
            float &v = x[i];
            v = i % room < dim ? uniform() : 0;
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
        const uint32_t dim = m.head_dim, room = head_room(dim);
        keys.resize((size_t)2 * s.slots * m.kv_heads * room);
        values.resize(keys.size());
        q.resize((size_t)n * m.heads * m.head_dim);
        s.keys = round_and_own(keys, dim, room, exact);
        s.values = round_and_own(values, dim, room, exact);
        s.q = (float *)round_and_own(q, 1, 1, true);
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
        const size_t at = ((c.a.sweep.store.slots + (size_t)slot) * m.kv_heads + head / (m.heads / m.kv_heads)) *
                          head_room(m.head_dim);
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
    c.a.apart = false; /* one block walks all splits: the same bits */
    memset(c.a.sweep.store.attended, 0, bytes);
    run_attention(c.a);
    assert_memory_equal(c.a.sweep.store.attended, apart.data(), bytes);
}

struct attention_shape {
    uint32_t heads, kv_heads, dim, window, n_trunk, n;
    bool exact;
};

static void
check_shapes(const std::vector<struct attention_shape> &shapes)
{
    for (const auto &k : shapes) {
        attention_case c(k.heads, k.kv_heads, k.dim, k.window, k.n_trunk, k.n, k.exact);
        check_attention(c);
    }
}

static void
test_attention_is_a_softmax_over_the_path_and_has_the_same_bits_split_or_not(void **)
{
    check_shapes({{4, 4, 16, 0, 300, 9, false},
                  {2, 1, 16, 0, 64, 1, false},
                  {6, 2, 64, 0, 150, 21, false},
                  {8, 1, 8, 50, 280, 6, false},
                  {3, 3, 12, 0, 0, 12, false},
                  {2, 1, 128, 0, 40, 5, false},
                  {2, 2, 160, 0, 130, 4, false},
                  {4, 2, 256, 140, 300, 3, true},
                  {9, 3, 20, 0, 129, 17, true},
                  {5, 5, 6, 3, 127, 8, true}});
}

static void
test_attention_over_several_splits_too(void **)
{
    check_shapes({{4, 2, 64, 0, 3 * ATTEND_SPLIT + 70, 5, false},  /* four of them */
                  {2, 1, 24, 0, 2 * ATTEND_SPLIT - 3, 6, false},   /* the tail begins in one and ends in the next */
                  {6, 2, 12, 600, 3 * ATTEND_SPLIT - 9, 9, false}, /* windows, each beginning elsewhere */
                  {3, 3, 16, ATTEND_SPLIT, 2 * ATTEND_SPLIT, 40, false},
                  {2, 2, 192, 0, 2 * ATTEND_SPLIT + 31, 2, false},
                  {2, 1, 10, 40, ATTEND_SPLIT + 2, 17, true}});
    if (getenv("SPECSCOPE_LONG") != NULL)
        check_shapes({{32, 32, 128, 0, 4 * ATTEND_SPLIT, 40, false}, /* of 7B */
                      {32, 8, 128, 0, 9 * ATTEND_SPLIT + 1, 8, false},
                      {8, 1, 256, 4096, 12 * ATTEND_SPLIT, 9, false},
                      {16, 4, 64, 0, 9 * ATTEND_SPLIT - 1, 33, true}});
}

static void
test_a_row_attends_with_the_same_bits_alone(void **)
{
    attention_case c(6, 2, 32, 0, 2 * ATTEND_SPLIT - 4, 24, false);
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
    state_of_random = seed_or((uint64_t)time(nullptr));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_normed_by_their_root_mean_square),
        cmocka_unit_test(test_turns_are_exact_at_position_100000_too),
        cmocka_unit_test(test_attention_is_a_softmax_over_the_path_and_has_the_same_bits_split_or_not),
        cmocka_unit_test(test_attention_over_several_splits_too),
        cmocka_unit_test(test_a_row_attends_with_the_same_bits_alone),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
