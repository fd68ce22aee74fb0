/* Feature drafters on the CUDA backend. Rows that are fed features, or outputs of earlier rows, are compared with the
 * CPU backend in F32, for each form of drafter and each type of weights. Their bits must not depend on other rows of
 * the call. The emulator compares the bits for a third of the forms, which the seed chooses, a real GPU for all. */
#include <math.h>

#include "kernels/request.h"
#include "kernels/synthetic.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

enum { WIDTH = 64, HEADS = 4, KV_HEADS = 2, DIM = 16, FFN = 96, VOCAB = 90, NAMED = 41, FEATURES = 3 * WIDTH };
enum { FED = 37, BRANCH = FED + 2, ROWS = FED + 3, MATRICES = 12 };
#define LARGE 3e6f /* features that are too large for F16 */

struct form {
    const char *name;
    bool joins, projects, norms, input_normed, output_normed, named;
    enum weight_type type;
    float scale; /* of features */
};

static const struct form forms[] = {
    {"pairs", .projects = true, .type = WEIGHT_F16, .scale = 1},
    {"pairs, large features", .projects = true, .named = true, .type = WEIGHT_Q8_0, .scale = LARGE},
    {"pairs, input normed", .projects = true, .input_normed = true, .named = true, .type = WEIGHT_BF16, .scale = 1},
    {"pairs, features normed", .projects = true, .norms = true, .named = true, .type = WEIGHT_Q8_0, .scale = LARGE},
    {"pairs, no projection", .type = WEIGHT_F16, .input_normed = true, .scale = 30},
    {"joined", .joins = true, .type = WEIGHT_Q8_0, .scale = LARGE},
    {"joined, output normed", .joins = true, .norms = true, .output_normed = true, .type = WEIGHT_F16, .scale = 5},
    {"joined, projected", .joins = true, .projects = true, .named = true, .type = WEIGHT_BF16, .scale = 1},
};
#define FORMS (sizeof forms / sizeof *forms)

#define NUMBERS 3 /* seed of weights and features with which no token's probability is near the cut */

static uint64_t seed; /* chooses the third of the forms */

struct made {
    struct synthetic synthetic[MATRICES];
    float norm[5][FEATURES], features[FED][FEATURES];
    token_t tokens[NAMED], token[ROWS];
    struct layer_desc layer;
    struct drafter_desc drafter;
    struct model_desc desc;
    uint32_t n;
};

static struct tensor
matrix(struct made *m, const struct form *f, uint32_t rows, uint32_t cols)
{
    struct synthetic *s = &m->synthetic[m->n++];
    *s = (struct synthetic){synthetic_key(NUMBERS, m->n), synthetic_scale(1 / SYNTHETIC_DEVIATION / sqrt(cols)), rows,
                            cols};
    return (struct tensor){.synthetic = s, .type = f->type, .rows = rows, .cols = cols};
}

static float
number(uint64_t *random)
{
    return (float)(splitmix64(random) % 2001) / 1000 - 1;
}

static struct tensor
norm(struct made *m, int i, uint32_t n, uint64_t *random)
{
    for (uint32_t k = 0; k < n; k++)
        m->norm[i][k] = 1 + 0.3f * number(random);
    return (struct tensor){.data = m->norm[i], .type = WEIGHT_F32, .rows = 1, .cols = n};
}

static void
make(struct made *m, const struct form *f)
{
    uint64_t random = NUMBERS;
    const uint32_t features = f->projects ? FEATURES : WIDTH, in = f->joins ? WIDTH : 2 * WIDTH;
    *m = (struct made){.n = 0};
    struct layer_desc *l = &m->layer;
    l->wq = matrix(m, f, HEADS * DIM, in);
    l->wk = matrix(m, f, KV_HEADS * DIM, in);
    l->wv = matrix(m, f, KV_HEADS * DIM, in);
    l->wo = matrix(m, f, WIDTH, HEADS * DIM);
    l->gate = matrix(m, f, FFN, WIDTH);
    l->up = matrix(m, f, FFN, WIDTH);
    l->down = matrix(m, f, WIDTH, FFN);
    l->ffn_norm = norm(m, 0, WIDTH, &random);
    m->drafter = (struct drafter_desc){.features = features,
                                       .parts = f->projects ? 3 : 1,
                                       .input_normed = f->input_normed,
                                       .output_normed = f->output_normed,
                                       .token_norm = norm(m, 1, WIDTH, &random),
                                       .feature_norm = norm(m, 2, WIDTH, &random)};
    if (f->norms)
        m->drafter.norm = norm(m, 3, features, &random);
    if (f->projects)
        m->drafter.projection = matrix(m, f, WIDTH, features);
    if (f->joins)
        m->drafter.join = matrix(m, f, WIDTH, 2 * WIDTH);
    m->desc = (struct model_desc){.n_layers = 1,
                                  .width = WIDTH,
                                  .heads = HEADS,
                                  .vocab = VOCAB,
                                  .kv_heads = KV_HEADS,
                                  .head_dim = DIM,
                                  .ffn = FFN,
                                  .rope_dims = DIM,
                                  .rope = ROPE_HALVES,
                                  .rope_base = 10000,
                                  .rope_scale = 1,
                                  .rms_eps = 1e-6f,
                                  .embedding = matrix(m, f, VOCAB, WIDTH),
                                  .head = matrix(m, f, f->named ? NAMED : VOCAB, WIDTH),
                                  .final_norm = norm(m, 4, WIDTH, &random),
                                  .layers = l,
                                  .drafter = &m->drafter};
    for (uint32_t i = 0; i < NAMED; i++) /* not in ascending order */
        m->tokens[i] = (token_t)((i * 37 + 5) % VOCAB);
    m->drafter.tokens = f->named ? m->tokens : NULL;
    for (uint32_t i = 0; i < ROWS; i++)
        m->token[i] = (token_t)(splitmix64(&random) % VOCAB);
    for (uint32_t i = 0; i < FED * features; i++)
        (&m->features[0][0])[i] = f->scale * number(&random) * (i / features % 2 == 0 ? 1 : 1e-4f);
}

struct outputs {
    float hidden[ROWS][2][WIDTH], logits[ROWS][VOCAB], dist[VOCAB];
    struct prediction prediction[ROWS];
};

struct running {
    const struct backend_ops *ops;
    const struct made *made;
    struct kv_cache *kv_cache;
};

/* Adds row i of a chain; the last row is a sibling of the row before it. */
static void
advance(const struct running *r, uint32_t first, uint32_t n)
{
    struct row rows[ROWS];
    slot_t tails[ROWS];
    for (uint32_t i = 0; i < first + n; i++)
        tails[i] = i;
    if (first == BRANCH)
        tails[first - 1] = first;
    for (uint32_t i = 0; i < n; i++)
        rows[i] = (struct row){.token = r->made->token[first + i],
                               .slot = first + i,
                               .ring = first + i,
                               .n_tail = first + i + 1 - (first == BRANCH)};
    const struct forward_pass w = {.rows = rows, .n = n, .tails = tails, .n_tails = first + n, .to = 1};
    assert_true(r->ops->step(r->kv_cache, &w));
}

static void
feed(const struct running *r, uint32_t first, uint32_t n, const uint32_t *before)
{
    struct row rows[ROWS];
    for (uint32_t i = 0; i < n; i++)
        rows[i] = (struct row){
            .token = r->made->token[first + i], .slot = first + i, .ring = first + i, .n_trunk = first + i + 1};
    const float *features = &r->made->features[0][0] + (size_t)first * r->made->drafter.features;
    assert_true(r->ops->feed(r->kv_cache, rows, n, before == NULL ? features : NULL, before));
}

/* Feeds `at_once` rows in a call, and runs them in forward passes of so many rows. */
static void
run(const struct backend_ops *ops, bool exact, const struct made *m, uint32_t at_once, struct outputs *out)
{
    struct err err = {0};
    struct backend *b;
    struct weights *w;
    struct dists *dists;
    struct running r = {ops, m, NULL};
    *out = (struct outputs){0};
    assert_ok(ops->open(&b, &(struct backend_options){.threads = 1, .gpu = -1, .exact = exact}, &err), err);
    assert_ok(ops->load(b, &m->desc, NULL, NULL, &w, &err), err);
    assert_ok(ops->dists(b, VOCAB, 1, &dists, &err), err);
    struct kv_cache_desc desc = kv_cache_defaults(64);
    desc.dists = dists;
    assert_ok(ops->kv_cache(w, &desc, &r.kv_cache, &err), err);
    for (uint32_t i = 0; i < FED; i += at_once) {
        const uint32_t n = FED - i < at_once ? FED - i : at_once;
        feed(&r, i, n, NULL);
        advance(&r, i, n);
    }
    feed(&r, FED, 1, &(uint32_t){FED - 1});
    advance(&r, FED, 1);
    feed(&r, FED + 1, 2, (const uint32_t[]){FED, FED});
    advance(&r, FED + 1, 1);
    advance(&r, BRANCH, 1);
    struct probe probes[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        probes[i] = (struct probe){.ring = i, .layer = 1, .temperature = 1};
        assert_true(ops->read_hidden(r.kv_cache, i, 0, out->hidden[i][0]));
        assert_true(ops->read_hidden(r.kv_cache, i, 1, out->hidden[i][1]));
        assert_true(ops->read_logits(r.kv_cache, i, 1, out->logits[i]));
    }
    const struct dist_req dist = {.ring = BRANCH, .layer = 1, .sampling = {.temperature = 0.8f, .top_p = 0.9f}};
    assert_true(ops->predict(r.kv_cache, probes, ROWS, out->prediction));
    assert_true(ops->dist(r.kv_cache, &dist, 1) && ops->read_dist(r.kv_cache, 0, out->dist));
    assert_ok(ops->wait(r.kv_cache, &err), err);
    ops->drop(r.kv_cache);
    ops->drop_dists(dists);
    ops->unload(w);
    ops->close(b);
}

/* Returns the largest difference, relative to the largest number. */
static double
distance(const float *a, const float *b, size_t n)
{
    double most = 0, apart = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)b[i]));
        apart = isnan(a[i]) ? INFINITY : fmax(apart, fabs((double)a[i] - (double)b[i]));
    }
    return apart / most;
}

static void
compare(const struct form *f, const struct outputs *got, const struct outputs *want, double bound)
{
    const uint32_t outputs = f->named ? NAMED : VOCAB;
    double worst = distance(got->dist, want->dist, VOCAB);
    for (uint32_t i = 0; i < ROWS; i++) {
        for (int depth = 0; depth < 2; depth++)
            worst = fmax(worst, distance(got->hidden[i][depth], want->hidden[i][depth], WIDTH));
        worst = fmax(worst, distance(got->logits[i], want->logits[i], outputs));
        uint32_t best = 0;
        for (uint32_t o = 1; o < outputs; o++)
            best = got->logits[i][o] > got->logits[i][best] ? o : best;
        assert_int_equal(got->prediction[i].token, f->named ? (token_t)((best * 37 + 5) % VOCAB) : (token_t)best);
    }
    print_message("%s: %.2g\n", f->name, worst);
    if (!(worst < bound))
        fail_msg("%s: %g, which is more than %g", f->name, worst, bound);
}

TEST(rows_of_a_drafter_are_those_of_the_cpu)
{
    NEEDS_CUDA;
    static struct made m;
    static struct outputs want, got;
    for (size_t i = 0; i < FORMS; i++) {
        make(&m, &forms[i]);
        run(&cpu_backend, true, &m, FED, &want);
        for (int exact = 0; exact < 2; exact++) {
            if (cuda_is_emulated() && getenv("SPECSCOPE_LONG") == NULL && (i + seed + (size_t)exact) % 2 != 0)
                continue; /* the emulator is slow: a form is tested either in F16 or exactly */
            run(cuda, exact > 0, &m, FED, &got);
            compare(&forms[i], &got, &want, exact > 0 ? 1e-5 : 5e-3);
        }
    }
}

TEST(the_bits_of_a_row_do_not_depend_on_the_rows_that_are_fed_with_it)
{
    NEEDS_CUDA;
    static struct made m;
    static struct outputs all, some;
    for (size_t i = 0; i < FORMS; i++) {
        if (cuda_is_emulated() && getenv("SPECSCOPE_LONG") == NULL && (i + seed) % 3 != 0)
            continue;
        make(&m, &forms[i]);
        run(cuda, false, &m, FED, &all);
        for (uint32_t at_once = 1; at_once < 30; at_once += 11) {
            run(cuda, false, &m, at_once, &some);
            assert_memory_equal(all.hidden, some.hidden, sizeof all.hidden);
            assert_memory_equal(all.logits, some.logits, sizeof all.logits);
            assert_memory_equal(all.dist, some.dist, sizeof all.dist);
        }
    }
}

TEST_SEED(seed, 1);
