/* Feature drafters on the CUDA backend. Rows that are fed features, or outputs of earlier rows, and the blocks of block
 * drafters, are compared with the CPU backend in F32, for each form of drafter and each type of weights. Their bits
 * must not depend on other rows of the call. The emulator compares the bits for a third of the forms, which the seed
 * chooses, a real GPU for all. */
#include <math.h>

#include "kernels/request.h"
#include "kernels/synthetic.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

enum { WIDTH = 64, HEADS = 4, KV_HEADS = 2, DIM = 16, FFN = 96, VOCAB = 90, NAMED = 41, FEATURES = 3 * WIDTH };
enum { FED = 37, BRANCH = FED + 2, ROWS = FED + 3, MATRICES = 24 };
enum { DEPTH = 2, BLOCK = 5, BLOCKS = 2, DRAFTED = BLOCKS * BLOCK, RANK = 96 }; /* of block drafters */
/* A block begins just before the end of 32 positions, the other one just before the end of 512 (layout.h). */
enum { LONGEST = 509, CTX = LONGEST + BLOCK };
static const uint32_t trunks[BLOCKS] = {30, LONGEST};
#define LARGE 3e6f /* features that are too large for F16 */

struct form {
    const char *name;
    bool joins, projects, norms, input_normed, output_normed, named, block, causal, markov;
    bool mixed; /* the first layer is causal and has the window */
    uint32_t window;
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
    {"block", .block = true, .projects = true, .type = WEIGHT_F16, .scale = LARGE},
    {"block, Markov head", .block = true, .projects = true, .markov = true, .type = WEIGHT_Q8_0, .scale = 1},
    {"block, causal", .block = true, .causal = true, .markov = true, .named = true, .type = WEIGHT_BF16, .scale = 1},
    {"block, window", .block = true, .projects = true, .norms = true, .markov = true, .named = true, .window = 7,
     .type = WEIGHT_Q8_0, .scale = 5},
    {"block, mixed layers", .block = true, .mixed = true, .window = 7, .type = WEIGHT_F16, .projects = true,
     .scale = 1},
};
#define FORMS (sizeof forms / sizeof *forms)

#define NUMBERS 3 /* seed of weights and features with which no token's probability is near the cut */

static uint64_t seed; /* chooses the third of the forms */

struct made {
    const struct form *form;
    struct synthetic synthetic[MATRICES];
    float norms[4 + 4 * DEPTH][FEATURES], features[FED][FEATURES];
    token_t tokens[NAMED], token[ROWS];
    struct layer_desc layers[DEPTH];
    struct drafter_desc drafter;
    struct model_desc desc;
    uint32_t n, n_norms;
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
norm(struct made *m, uint32_t n, uint64_t *random)
{
    float *values = m->norms[m->n_norms++];
    for (uint32_t k = 0; k < n; k++)
        values[k] = 1 + 0.3f * number(random);
    return (struct tensor){.data = values, .type = WEIGHT_F32, .rows = 1, .cols = n};
}

static void
make_layer(struct made *m, const struct form *f, int i, uint64_t *random)
{
    struct layer_desc *l = &m->layers[i];
    const uint32_t in = f->joins || f->block ? WIDTH : 2 * WIDTH;
    l->wq = matrix(m, f, HEADS * DIM, in);
    l->wk = matrix(m, f, KV_HEADS * DIM, in);
    l->wv = matrix(m, f, KV_HEADS * DIM, in);
    l->wo = matrix(m, f, WIDTH, HEADS * DIM);
    l->gate = matrix(m, f, FFN, WIDTH);
    l->up = matrix(m, f, FFN, WIDTH);
    l->down = matrix(m, f, WIDTH, FFN);
    if (f->mixed)
        l->form = (struct layer_form){.causal = i == 0, .sees_all = i > 0};
    l->ffn_norm = norm(m, WIDTH, random);
    if (!f->block)
        return;
    l->attn_norm = norm(m, WIDTH, random);
    l->q_norm = norm(m, DIM, random);
    l->k_norm = norm(m, DIM, random);
}

static void
make(struct made *m, const struct form *f)
{
    uint64_t random = NUMBERS;
    const uint32_t features = f->projects ? FEATURES : WIDTH, outputs = f->named ? NAMED : VOCAB;
    *m = (struct made){.form = f};
    make_layer(m, f, 0, &random);
    for (int l = 1; l < DEPTH && f->block; l++)
        make_layer(m, f, l, &random);
    m->drafter = (struct drafter_desc){.features = features,
                                       .parts = f->projects ? 3 : 1,
                                       .input_normed = f->input_normed,
                                       .output_normed = f->output_normed,
                                       .token_norm = norm(m, WIDTH, &random),
                                       .feature_norm = norm(m, WIDTH, &random)};
    if (f->norms)
        m->drafter.norm = norm(m, features, &random);
    if (f->projects)
        m->drafter.projection = matrix(m, f, WIDTH, features);
    if (f->joins)
        m->drafter.join = matrix(m, f, WIDTH, 2 * WIDTH);
    if (f->block) {
        m->drafter.block = BLOCK;
        m->drafter.mask = VOCAB - 1;
        m->drafter.causal = f->causal;
    }
    if (f->markov) {
        m->drafter.markov_w1 = matrix(m, f, VOCAB, RANK);
        m->drafter.markov_w2 = matrix(m, f, outputs, RANK);
    }
    m->desc = (struct model_desc){.n_layers = f->block ? DEPTH : 1,
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
                                  .window = f->window,
                                  .embedding = matrix(m, f, VOCAB, WIDTH),
                                  .head = matrix(m, f, outputs, WIDTH),
                                  .final_norm = norm(m, WIDTH, &random),
                                  .layers = m->layers,
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
    float hidden[ROWS][2][WIDTH], logits[ROWS][VOCAB], dists[1 + DRAFTED][VOCAB];
    struct prediction prediction[ROWS], biased[DRAFTED];
    uint32_t n, depth; /* rows, and their depth */
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

/* Runs chains, whose first rows are fed features, and the other ones the outputs of earlier rows. */
static uint32_t
run_chains(const struct running *r, uint32_t at_once, uint32_t *depth)
{
    for (uint32_t i = 0; i < FED; i += at_once) {
        const uint32_t n = FED - i < at_once ? FED - i : at_once;
        feed(r, i, n, NULL);
        advance(r, i, n);
    }
    feed(r, FED, 1, &(uint32_t){FED - 1});
    advance(r, FED, 1);
    feed(r, FED + 1, 2, (const uint32_t[]){FED, FED});
    advance(r, FED + 1, 1);
    advance(r, BRANCH, 1);
    *depth = 1;
    return ROWS;
}

/* Runs a block after each of two trunks, together or one after the other. The longer trunk repeats its slots. */
static uint32_t
run_blocks(const struct running *r, uint32_t at_once, uint32_t *depth)
{
    const struct drafter_desc *d = &r->made->drafter;
    struct row rows[DRAFTED];
    slot_t trunk[LONGEST], tails[DRAFTED];
    for (uint32_t i = 0; i < LONGEST; i++)
        trunk[i] = i % FED;
    for (uint32_t i = 0; i < DRAFTED; i++) {
        const uint32_t seq = i / BLOCK, j = i % BLOCK;
        tails[i] = FED + i;
        rows[i] = (struct row){.token = j == 0 ? r->made->token[seq] : d->mask,
                               .slot = tails[i],
                               .ring = i,
                               .seq = seq,
                               .n_trunk = trunks[seq],
                               .tail = seq * BLOCK,
                               .n_tail = j + 1,
                               .n_after = d->causal ? 0 : BLOCK - 1 - j};
    }
    for (uint32_t i = 0; i < FED; i += at_once)
        feed(r, i, FED - i < at_once ? FED - i : at_once, NULL);
    for (seq_t seq = 0; seq < BLOCKS; seq++)
        assert_true(r->ops->trunk(r->kv_cache, seq, 0, trunk, trunks[seq]));
    assert_true(r->ops->embed(r->kv_cache, rows, DRAFTED));
    const uint32_t n = at_once == FED ? DRAFTED : BLOCK;
    for (uint32_t i = 0; i < DRAFTED; i += n) {
        const struct forward_pass w = {.rows = rows + i, .n = n, .tails = tails, .n_tails = DRAFTED, .to = DEPTH};
        assert_true(r->ops->step(r->kv_cache, &w));
    }
    *depth = DEPTH;
    return DRAFTED;
}

/* Makes predictions and distributions from the logits that the last predictions kept; of some rows without a bias. */
static void
follow(const struct running *r, struct outputs *out)
{
    struct probe probes[DRAFTED];
    struct dist_req dists[DRAFTED];
    for (uint32_t i = 0; i < DRAFTED; i++) {
        const token_t before = i % 4 == 2 || !r->made->form->markov ? TOKEN_NONE : r->made->token[i];
        probes[i] = (struct probe){.ring = i, .layer = DEPTH, .temperature = 1, .kept = true, .before = before};
        dists[i] = (struct dist_req){.ring = i,
                                     .layer = DEPTH,
                                     .sampling = {.temperature = 0.8f, .top_p = 0.9f},
                                     .out = 1 + i,
                                     .kept = true,
                                     .before = before};
    }
    assert_true(r->ops->predict(r->kv_cache, probes, DRAFTED, out->biased));
    assert_true(r->ops->predict(r->kv_cache, probes + 1, 1, out->biased + 1)); /* logits are kept longer than a call */
    assert_true(r->ops->dist(r->kv_cache, dists, DRAFTED));
    for (uint32_t i = 0; i < DRAFTED; i++)
        assert_true(r->ops->read_dist(r->kv_cache, 1 + i, out->dists[1 + i]));
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
    assert_ok(ops->dists(b, VOCAB, 1 + DRAFTED, &dists, &err), err);
    struct kv_cache_desc desc = kv_cache_defaults(CTX);
    desc.dists = dists;
    assert_ok(ops->kv_cache(w, &desc, &r.kv_cache, &err), err);
    out->n = m->form->block ? run_blocks(&r, at_once, &out->depth) : run_chains(&r, at_once, &out->depth);
    struct probe probes[ROWS];
    for (uint32_t i = 0; i < out->n; i++) {
        probes[i] = (struct probe){.ring = i, .layer = out->depth, .temperature = 1};
        assert_true(ops->read_hidden(r.kv_cache, i, 0, out->hidden[i][0]));
        assert_true(ops->read_hidden(r.kv_cache, i, out->depth, out->hidden[i][1]));
        assert_true(ops->read_logits(r.kv_cache, i, out->depth, out->logits[i]));
    }
    const struct dist_req dist = {
        .ring = out->n - 1, .layer = out->depth, .sampling = {.temperature = 0.8f, .top_p = 0.9f}};
    assert_true(ops->predict(r.kv_cache, probes, out->n, out->prediction));
    assert_true(ops->dist(r.kv_cache, &dist, 1) && ops->read_dist(r.kv_cache, 0, out->dists[0]));
    if (m->form->block)
        follow(&r, out);
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
    double worst = 0;
    for (uint32_t i = 0; i < (f->block ? 1 + DRAFTED : 1); i++)
        worst = fmax(worst, distance(got->dists[i], want->dists[i], VOCAB));
    for (uint32_t i = 0; i < got->n; i++) {
        for (int depth = 0; depth < 2; depth++)
            worst = fmax(worst, distance(got->hidden[i][depth], want->hidden[i][depth], WIDTH));
        worst = fmax(worst, distance(got->logits[i], want->logits[i], outputs));
        uint32_t best = 0;
        for (uint32_t o = 1; o < outputs; o++)
            best = got->logits[i][o] > got->logits[i][best] ? o : best;
        assert_int_equal(got->prediction[i].token, f->named ? (token_t)((best * 37 + 5) % VOCAB) : (token_t)best);
    }
    for (uint32_t i = 0; i < DRAFTED && f->block; i++) {
        assert_int_equal(got->biased[i].token, want->biased[i].token);
        worst = fmax(worst, fabs((double)got->biased[i].confidence - (double)want->biased[i].confidence));
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
            assert_memory_equal(all.dists, some.dists, sizeof all.dists);
        }
    }
}

TEST_SEED(seed, 1);
