/* The steps of a forward pass other than products (test_cuda_products.cc) on the emulator (tests/emulator): norms,
 * rotations, attention, choice of experts. Each is compared with its definition in double, and its bits must not depend
 * on other rows of the call. SPECSCOPE_SEED=N chooses shapes and numbers. */
#include "tests/rigs/cuda_steps.h"

#include "kernels/cuda/device/forms.cuh"
#include "kernels/cuda/device/norm.cuh"
#include "tests/rigs/cuda_attention.h"
#include "tests/rigs/cuda_route.h"

/* ---- norms ---- */

struct norm_args {
    struct dev_model model;
    const float *from;
    struct dev_norm norm;
    void *to;
};

static __global__ void
norm_one(struct norm_args a)
{
    SHARED_MEMORY(struct block_scratch, scratch);
    if (blockIdx.x == 0)
        norm_row(a.model, a.model.exact, a.from, a.norm, a.to, 5, scratch);
}

TEST(rows_are_normed_in_every_form)
{
    for (int i = 0; i < 18; i++) {
        struct norm_args a = {};
        const uint32_t width = 2 + below(1500), units = units_of(width); /* a LayerNorm of one element is 0 */
        std::vector<float> from(width), weight(width), bias(width), got(width);
        std::vector<double> want(width);
        const bool none = i % 9 == 8, biased = i % 4 < 2;
        double mean = 0, squares = 0;
        a.model.form.layer_norm = i % 5 > 2;
        for (uint32_t k = 0; k < width; k++) {
            from[k] = (uniform() + (a.model.form.layer_norm ? 3 : 0)) * (i % 3 == 0 ? 1e-3f : 300);
            weight[k] = uniform();
            bias[k] = biased ? uniform() : 0;
            mean += a.model.form.layer_norm ? (double)from[k] / width : 0;
        }
        for (uint32_t k = 0; k < width; k++)
            squares += ((double)from[k] - mean) * ((double)from[k] - mean);
        a.model.width = width;
        a.model.rms_eps = 1e-5f;
        a.model.exact = i % 2 == 1;
        for (uint32_t k = 0; k < width; k++)
            want[k] =
                none ? (double)from[k]
                     : ((double)from[k] - mean) * (double)weight[k] / sqrt(squares / width + (double)a.model.rms_eps) +
                           (double)bias[k];
        a.from = on_device(from);
        const float *const weights = on_device(weight), *const biases = on_device(bias);
        a.norm = {none ? NULL : weights, biased ? biases : NULL};
        a.to = on_device(std::vector<uint32_t>((size_t)8 * units * UNIT, 0x7e007e00u)); /* NaN */
        run(norm_one, a, sizeof(struct block_scratch));
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
        cudaFree((void *)weights);
        cudaFree((void *)biases);
        cudaFree(a.to);
    }
}

/* ---- rotations ---- */

TEST(rotations_are_exact_at_position_100000)
{
    const long double two_pi = 6.283185307179586476925286766559L;
    for (int i = 0; i < 20000; i++) {
        const uint32_t position = i % 2 == 0 ? below(200) : 100000 + below(40000);
        const double frequency = pow(1e4, -(double)below(64) / 64);
        const long double angle = fmodl((long double)position * (long double)frequency, two_pi);
        const float x = uniform(), y = uniform();
        float a = x, b = y;
        rotate(rotation_of(position, frequency), &a, &b);
        const std::vector<double> want = {(double)(x * cosl(angle) - y * sinl(angle)),
                                          (double)(x * sinl(angle) + y * cosl(angle))};
        const float got[] = {a, b};
        if (!(difference(want, got) < 1e-5))
            fail_msg("position %u, frequency %g: %g apart", position, frequency, difference(want, got));
    }
}

/* ---- attention ---- */

static void
check_attention(attention_case &c)
{
    const struct dev_model &m = c.a.model;
    c.a.apart = true;
    run_attention(c.a);
    const std::vector<uint32_t> apart = attended_words(c);
    for (uint32_t i = 0; i < c.a.forward.n; i++)
        for (uint32_t head = 0; head < m.heads; head++) {
            std::vector<float> got;
            for (uint32_t d = 0; d < m.head_dim; d++)
                got.push_back(attended_value(c, apart, i, head * m.head_dim + d));
            if (c.rows[i].from >= c.a.layer) {
                for (float x : got)
                    assert_true(x == 0); /* the kernel must not write it */
                continue;
            }
            const double off = difference(define_attention(c, c.rows[i], i, head), got.data());
            if (!(off < (m.exact ? 1e-5 : 1e-3)))
                fail_msg("row %u, head %u of %u on %u, %u dimensions: %g apart", i, head, m.heads, m.kv_heads,
                         m.head_dim, off);
        }
    for (uint32_t i = 0; i < c.a.forward.n * m.heads; i++)
        assert_int_equal(c.a.forward.kv_cache.arrivals[i], 0);
    for (int way = 0; way < 2; way++) { /* one block for all splits, or blocks for quarters: the same bits */
        c.a.quarters = c.a.apart = way == 1;
        memset(c.a.forward.kv_cache.attended, 0, apart.size() * sizeof apart[0]);
        run_attention(c.a);
        assert_memory_equal(c.a.forward.kv_cache.attended, apart.data(), apart.size() * sizeof apart[0]);
    }
}

struct attention_shape {
    uint32_t heads, kv_heads, dim, window, n_trunk, n;
    bool exact;
    float cap = 0;
    struct alibi alibi = {0, 0, false};
};

static void
check_shapes(const std::vector<struct attention_shape> &shapes)
{
    for (const auto &k : shapes) {
        attention_case c(k.heads, k.kv_heads, k.dim, k.window, k.n_trunk, k.n, k.exact);
        c.a.model.form.attention_cap = k.cap;
        if (k.alibi.most > 0)
            c.use_alibi(k.alibi);
        check_attention(c);
    }
}

TEST(attention_is_a_softmax_over_the_path_and_has_the_same_bits_split_or_not)
{
    check_shapes({{4, 4, 16, 0, 300, 9, false},
                  {2, 1, 16, 0, 64, 1, false},
                  {6, 2, 64, 0, 150, 21, false, 0.7f},
                  {8, 1, 8, 50, 280, 6, false},
                  {3, 3, 12, 0, 0, 12, false},
                  {2, 1, 128, 0, 40, 5, false},
                  {2, 2, 160, 0, 130, 4, false},
                  {4, 2, 256, 140, 300, 3, true, 2},
                  {9, 3, 20, 0, 129, 17, true},
                  {6, 3, 32, 0, 210, 19, false, 0, {8, 0, false}},
                  {12, 2, 24, 90, 170, 11, true, 3, {6, 0.5f, false}},
                  {16, 16, 8, 0, 260, 7, false, 0, {8, 0.25f, true}},
                  {5, 5, 6, 3, 127, 8, true}});
}

TEST(attention_over_several_splits_too)
{
    check_shapes({{4, 2, 64, 0, 3 * ATTEND_SPLIT + 70, 5, false}, /* four splits */
                  {2, 1, 24, 0, 2 * ATTEND_SPLIT - 3, 6, false}, /* the tail begins in one split and ends in the next */
                  {6, 2, 12, 600, 3 * ATTEND_SPLIT - 9, 9, false}, /* windows that begin at different positions */
                  {3, 3, 16, ATTEND_SPLIT, 2 * ATTEND_SPLIT, 40, false},
                  {2, 2, 192, 0, 2 * ATTEND_SPLIT + 31, 2, false},
                  {2, 1, 10, 40, ATTEND_SPLIT + 2, 17, true},
                  {4, 4, 16, 0, 2 * ATTEND_SPLIT + 9, 3, true, 0, {8, 0, false}}});
    if (getenv("SPECSCOPE_LONG") != NULL)
        check_shapes({{32, 32, 128, 0, 4 * ATTEND_SPLIT, 40, false}, /* the shape of a 7B model */
                      {32, 8, 128, 0, 9 * ATTEND_SPLIT + 1, 8, false},
                      {8, 1, 256, 4096, 12 * ATTEND_SPLIT, 9, false},
                      {16, 4, 64, 0, 9 * ATTEND_SPLIT - 1, 33, true}});
}

TEST(a_row_attends_with_the_same_bits_alone)
{
    attention_case c(6, 2, 32, 0, 2 * ATTEND_SPLIT - 4, 24, false);
    c.a.apart = true;
    run_attention(c.a);
    for (uint32_t i = 0; i < 24; i += 5) {
        if (c.rows[i].from >= c.a.layer)
            continue;
        const std::vector<uint32_t> together = attended_words(c);
        struct attend_args alone = c.a;
        std::vector<struct row_group> one = {{i, 1}};
        alone.forward.groups = c.own(one);
        alone.forward.n_groups = 1;
        run_attention(alone);
        const std::vector<uint32_t> by_itself = attended_words(c);
        for (uint32_t k = 0; k < 6 * 32; k++)
            assert_true(attended_value(c, by_itself, i, k) == attended_value(c, together, i, k));
    }
}

struct overflow_args {
    struct attend_args a;
    slot_t slot;
    float x;
};

static __global__ void
store_everywhere(struct overflow_args a)
{
    const struct dev_kv_cache &s = a.a.forward.kv_cache;
    for (uint32_t o = threadIdx.x; blockIdx.x == 0 && o < a.a.model.kv_heads * a.a.model.head_dim; o += blockDim.x) {
        put_kv(a.a.model, s, s.keys, a.a.layer, a.slot, o, a.x);
        put_kv(a.a.model, s, s.values, a.a.layer, a.slot, o, a.x);
    }
}

TEST(a_row_is_the_same_beside_a_draft_that_overflows)
{
    for (int exact = 0; exact < 2; exact++) {
        attention_case c(4, 2, 32, 0, 70, 24, exact);
        const struct row_group group = *std::max_element(
            c.groups.begin(), c.groups.end(), [](struct row_group x, struct row_group y) { return x.n < y.n; });
        const uint32_t last = group.first + group.n - 1;
        assert_true(group.n > 1);
        run_attention(c.a);
        const std::vector<uint32_t> before = attended_words(c);
        for (float x : {INFINITY, -1e30f, NAN}) {
            run(store_everywhere, overflow_args{c.a, c.rows[last].slot, x}, 0);
            run_attention(c.a);
            const std::vector<uint32_t> after = attended_words(c);
            for (uint32_t i = group.first; i < last; i++)
                for (uint32_t k = 0; k < 4 * 32; k++)
                    assert_true(attended_value(c, after, i, k) == attended_value(c, before, i, k));
        }
    }
}

/* ---- experts ---- */

/* Softmaxes sum in another order than on the CPU, so the choice must not depend on their last bits. For SparseMixer few
 * logits, none or all are near the threshold. */
TEST(experts_are_chosen_as_the_cpu_chooses_them)
{
    for (int i = 0; i < 12; i++) {
        struct experts_form f = {};
        f.n = 1 + below(i % 5 == 0 ? MOST_EXPERTS : 70);
        f.used = 1 + below(f.n < 5 ? f.n : 5);
        f.routing = ROUTE_SPARSEMIXER;
        f.jitter = i % 4 == 3 ? 0 : 0.01f + 0.3f * (float)(i % 4);
        f.scale = 2; /* SparseMixer has no scale */
        check_routes(f, i % 2 == 0, i % 3 == 0, i % 3 == 1);
    }
    for (int i = 0; i < 24; i++) {
        const bool few = i % 2 == 0, sigmoid = i % 3 == 0, grouped = sigmoid && i % 2 == 1;
        struct experts_form f = {};
        f.groups = grouped ? 1 + below(8) : 0;
        f.n = grouped ? f.groups * (2 + below(20)) : 1 + below(i % 5 == 0 ? MOST_EXPERTS : 70);
        f.groups_used = grouped ? 1 + below(f.groups) : 0;
        const uint32_t from = f.groups > 1 ? f.n / f.groups * f.groups_used : f.n;
        f.used = 1 + below(from < EXPERTS_USED_MOST ? from : EXPERTS_USED_MOST);
        f.routing = sigmoid ? ROUTE_SIGMOID : ROUTE_SOFTMAX;
        f.renormalised = i % 4 < 2;
        f.scale = i % 3 == 1 ? 2.5f : 1;
        check_routes(f, few, i % 4 == 1, sigmoid && i % 4 != 2);
    }
}
