/* The head with a vocabulary of 152,000. Logits, predictions and distributions are compared with definitions on the
 * host, and their bits between calls of different numbers of rows. */
#include "tests/cuda/smoke/run.h"

#include "kernels/cuda/device/launch.h"
#include "tests/rigs/cuda_matrix.h"
extern "C" {
#include "kernels/cpu/sampling.h"
#include "tests/rigs/prediction_definition.h"
}

enum { LAYERS = 1, MOST_ROWS = 40 };

struct head_shape {
    uint32_t vocab, width;
};

static struct head_shape
shape_of(const struct smoke *s)
{
    return s->size == SMOKE_TINY   ? head_shape{9000, 64}
           : s->size == SMOKE_REAL ? head_shape{152000, 128}
                                   : head_shape{152000, 896};
}

/* A model that is only a head, hidden states at depth 1, and memory. */
struct head_case {
    const test_matrix head;
    std::vector<float> norm, hidden; /* (width), (MOST_ROWS, 2, width) */
    struct dev_model sizes = {}, *model;
    struct dev_kv_cache kv_cache = {};
    std::vector<void *> owned;

    head_case(enum weight_type type, const struct head_shape &k) : head(type, k.vocab, k.width, false)
    {
        for (uint32_t i = 0; i < k.width; i++)
            norm.push_back(1 + 0.5f * uniform());
        for (uint32_t i = 0; i < MOST_ROWS * (LAYERS + 1) * k.width; i++)
            hidden.push_back(3 * uniform());
        sizes.n_layers = LAYERS;
        sizes.width = k.width;
        sizes.heads = sizes.kv_heads = 1;
        sizes.head_dim = 16;
        sizes.vocab = k.vocab;
        sizes.rms_eps = 1e-5f;
        sizes.head = head.m;
        sizes.final_norm = {own(norm), NULL};
        model = own(std::vector<struct dev_model>(1, sizes));
        kv_cache.ring = kv_cache.head_rows = MOST_ROWS;
        kv_cache.hidden = own(hidden);
        kv_cache.head_normed = own(std::vector<uint16_t>((size_t)64 * units_of(k.width) * UNIT, 0));
        kv_cache.head_logits = own(std::vector<float>((size_t)MOST_ROWS * k.vocab, NAN));
        kv_cache.head_pieces = own(std::vector<struct head_piece>((size_t)MOST_ROWS * head_pieces_of(k.vocab)));
        SUCCEEDS(
            cudaMemset(kv_cache.head_pieces, 0, MOST_ROWS * head_pieces_of(k.vocab) * sizeof *kv_cache.head_pieces));
        kv_cache.dists_vocab = k.vocab;
        kv_cache.dists_p = own(std::vector<float>((size_t)4 * k.vocab, NAN));
    }
    head_case(const head_case &) = delete;
    ~head_case()
    {
        for (void *p : owned)
            cudaFree(p);
    }
    template <class T>
    T *
    own(const std::vector<T> &from)
    {
        T *p = on_device(from);
        owned.push_back(p);
        return p;
    }

    /* Computes logits of these ring entries, and predictions where there is room for them; the last row is the final
     * one of the others. */
    std::vector<float>
    ask(const std::vector<uint32_t> &which, std::vector<struct prediction> *predictions, uint32_t blocks)
    {
        std::vector<struct head_row> rows;
        const uint32_t n = (uint32_t)which.size();
        for (uint32_t i = 0; i < n; i++)
            rows.push_back({which[i], LAYERS, false, 0.5f + (float)i / 8, i + 1 < n ? (int32_t)n - 1 : -1, {}});
        struct head_row *rows_there = on_device(rows);
        struct prediction *predictions_there =
            predictions != NULL ? on_device(std::vector<struct prediction>(n)) : NULL;
        struct head_args a = {};
        a.model = model;
        a.kv_cache = kv_cache;
        a.rows = rows_there;
        a.n = n;
        a.predictions = predictions_there;
        a.blocks = blocks;
        SUCCEEDS(launch_head(a, &sizes, nullptr));
        SUCCEEDS(cudaDeviceSynchronize());
        if (predictions != NULL)
            *predictions = fetched(predictions_there, n);
        SUCCEEDS(cudaFree(rows_there));
        SUCCEEDS(cudaFree(predictions_there));
        return fetched(kv_cache.head_logits, (size_t)n * sizes.vocab);
    }
};

static uint32_t
head_blocks(const struct smoke *s)
{
    uint32_t blocks;
    SUCCEEDS(head_prepare(s->device));
    SUCCEEDS(forward_prepare(s->device, &blocks));
    return blocks < s->blocks ? blocks : s->blocks;
}

static std::vector<double>
define_logits(const head_case &c, uint32_t ring)
{
    const uint32_t width = c.sizes.width;
    const float *h = &c.hidden[(ring * (LAYERS + 1) + LAYERS) * width];
    std::vector<double> z(c.sizes.vocab);
    double squares = 0;
    for (uint32_t k = 0; k < width; k++)
        squares += (double)h[k] * (double)h[k];
    const double inverse = 1 / sqrt(squares / width + (double)c.sizes.rms_eps);
#pragma omp parallel for
    for (uint32_t v = 0; v < c.sizes.vocab; v++)
        for (uint32_t k = 0; k < width; k++)
            z[v] += (double)c.head.values[(size_t)v * width + k] * (double)h[k] * inverse * (double)c.norm[k];
    return z;
}

static bool
check_logits(struct smoke *s, enum weight_type type, double *worst)
{
    static const std::vector<uint32_t> whole_counts = {1, 8, 9, 17, 32, 33}, some = {1, 9};
    head_case c(type, shape_of(s));
    const uint32_t vocab = c.sizes.vocab, blocks = head_blocks(s), most = s->size == SMOKE_WHOLE ? MOST_ROWS : 33;
    std::vector<uint32_t> all;
    for (uint32_t r = 0; r < most; r++)
        all.push_back(r * 7 % most);
    const std::vector<float> z = c.ask(all, NULL, blocks);
    for (uint32_t i = 0; i < most; i += 16) {
        const double off = difference(define_logits(c, all[i]), &z[(size_t)i * vocab]);
        *worst = off > *worst ? off : *worst;
        if (!(off < 1e-3))
            return smoke_says(s, false, "%s: logits of row %u are %.2g from the definition", type_name(type), i, off);
    }
    for (uint32_t count : s->size == SMOKE_WHOLE ? whole_counts : some) {
        const std::vector<float> fewer = c.ask({all.begin() + 3, all.begin() + 3 + count}, NULL, blocks);
        if (memcmp(fewer.data(), &z[(size_t)3 * vocab], fewer.size() * sizeof(float)) != 0)
            return smoke_says(s, false, "%s: logits have other bits in a call of %u rows than of %u", type_name(type),
                              count, most);
    }
    return true;
}

bool
smoke_logits(struct smoke *s)
{
    static const std::vector<enum weight_type> whole_types = {WEIGHT_F16,  WEIGHT_BF16, WEIGHT_Q8_0,
                                                              WEIGHT_Q4_0, WEIGHT_Q4_K, WEIGHT_Q6_K};
    static const std::vector<enum weight_type> some = {WEIGHT_F16, WEIGHT_Q8_0};
    double worst = 0;
    begin(s);
    for (enum weight_type type : s->size == SMOKE_WHOLE ? whole_types : some) {
        struct head_shape k = shape_of(s);
        if ((type == WEIGHT_Q4_K || type == WEIGHT_Q6_K) && k.width % SUPER != 0)
            k.width = k.width / SUPER * SUPER; /* these types need such a width */
        if (!check_logits(s, type, &worst))
            return false;
    }
    return smoke_says(s, true, "vocabulary %u, off by %.1g, the same bits", shape_of(s).vocab, worst);
}

/* ---- predictions ---- */

static bool
near(float got, float want, double bound)
{
    return want != want ? got != got : fabs((double)got - (double)want) <= bound * fmax(1, fabs((double)want));
}

bool
smoke_predictions(struct smoke *s)
{
    begin(s);
    head_case c(WEIGHT_F16, shape_of(s));
    const uint32_t vocab = c.sizes.vocab, n = s->size == SMOKE_WHOLE ? 9 : 3;
    std::vector<struct prediction> got;
    std::vector<uint32_t> which;
    for (uint32_t i = 0; i < n; i++)
        which.push_back(i);
    const std::vector<float> z = c.ask(which, &got, head_blocks(s));
    for (uint32_t i = 0; i < n; i++) {
        const float *final = i + 1 < n ? &z[(size_t)(n - 1) * vocab] : NULL;
        const struct prediction want = prediction_by_definition(&z[(size_t)i * vocab], vocab, 0.5 + i / 8.0, final);
        const struct prediction &g = got[i];
        if (g.token != want.token || memcmp(g.top, want.top, sizeof g.top) != 0 || g.rank_final != want.rank_final)
            return smoke_says(s, false, "row %u: token %d, rank of the final %d, not %d, %d", i, g.token, g.rank_final,
                              want.token, want.rank_final);
        if (!near(g.confidence, want.confidence, 1e-5) || !near(g.annealed, want.annealed, 1e-5) ||
            !near(g.entropy, want.entropy, 1e-4) || !near(g.kl_final, want.kl_final, 1e-4))
            return smoke_says(s, false, "row %u: confidence %g %g, annealed %g %g, entropy %g %g, KL %g %g", i,
                              (double)g.confidence, (double)want.confidence, (double)g.annealed, (double)want.annealed,
                              (double)g.entropy, (double)want.entropy, (double)g.kl_final, (double)want.kl_final);
    }
    return smoke_says(s, true, "%u rows", n);
}

bool
smoke_distributions(struct smoke *s)
{
    static const struct sampling ways[] = {{1, 0, 1}, {0.8f, 40, 1}, {1.3f, 0, 0.9f}, {0.7f, 1000, 0.8f}};
    const uint32_t n = sizeof ways / sizeof *ways;
    begin(s);
    head_case c(WEIGHT_F16, shape_of(s));
    const uint32_t vocab = c.sizes.vocab;
    const std::vector<float> z = c.ask({3, 5, 7, 11}, NULL, head_blocks(s));
    std::vector<struct dist_req> requests(n);
    for (uint32_t i = 0; i < n; i++) {
        requests[i].sampling = ways[i];
        requests[i].out = n - 1 - i;
    }
    struct dist_args a = {};
    a.model = c.model;
    a.kv_cache = c.kv_cache;
    a.requests = c.own(requests);
    a.n = n;
    SUCCEEDS(launch_dist(a, nullptr));
    SUCCEEDS(cudaDeviceSynchronize());
    const std::vector<float> p = fetched(c.kv_cache.dists_p, (size_t)n * vocab);
    std::vector<float> want(vocab);
    std::vector<uint32_t> order(vocab);
    for (uint32_t i = 0; i < n; i++) {
        const float *const got = &p[(size_t)(n - 1 - i) * vocab];
        double sum = 0, least = 1, moved = 0; /* probability of the tokens that rounding moved across a threshold */
        sampling_dist(&z[(size_t)i * vocab], vocab, &ways[i], want.data(), order.data());
        for (uint32_t v = 0; v < vocab; v++)
            least = want[v] > 0 && (double)want[v] < least ? (double)want[v] : least;
        for (uint32_t v = 0; v < vocab; v++)
            moved += (got[v] > 0) != (want[v] > 0) ? (double)(got[v] + want[v]) : 0;
        for (uint32_t v = 0; v < vocab; v++) {
            const double is = (double)got[v], should = (double)want[v];
            const bool cut = (is > 0) != (should > 0);
            sum += is;
            if (cut ? is + should > least * 1.001 : fabs(is - should) > should * (1e-4 + 2 * moved))
                return smoke_says(s, false, "temperature %g, top-k %u, top-p %g: p(%u) is %g, not %g",
                                  (double)ways[i].temperature, ways[i].top_k, (double)ways[i].top_p, v, is, should);
        }
        if (fabs(sum - 1) > 1e-5)
            return smoke_says(s, false, "a distribution's sum is %.8f", sum);
    }
    return smoke_says(s, true, "%u settings", n);
}
