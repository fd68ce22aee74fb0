/* Block drafters on the CPU backend: blocks of several sequences after rows that are fed, compared with a reference in
 * double precision. The bits of a block must not depend on the rest of the call, on threads, or on how a path is
 * divided. Kept logits with a bias must be those of the head. */
#include <math.h>

#include "base/rng.h"
#include "kernels/request.h"
#include "tests/rigs/block_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

enum { SEQS = 3, CONTEXT = 80, SLOTS = 128, RING = SEQS * BLOCK_MOST + 1, PROBES = SEQS * BLOCK_MOST };

static const struct block_form forms[] = {
    {"one layer", 1, 4, .type = WEIGHT_F32},
    {"Markov head", 3, 7, .type = WEIGHT_F16, .markov = true, .from_anchor = true},
    {"window", 2, 8, .window = 5, .type = WEIGHT_BF16, .named = true},
    {"window within the block", 2, 8, .window = 3, .type = WEIGHT_F16, .markov = true, .named = true},
    {"causal", 3, 5, .type = WEIGHT_Q8_0, .causal = true, .markov = true, .from_anchor = true},
    {"biases", 2, 6, .type = WEIGHT_Q8_0, .plain = true, .markov = true, .named = true},
    {"layers of two kinds", 3, 6, .window = 4, .type = WEIGHT_F16, .mixed = true, .markov = true},
    {"a row", 2, 1, .type = WEIGHT_Q8_0, .from_anchor = true},
};
#define FORMS (sizeof forms / sizeof *forms)

static const uint32_t lengths[SEQS] = {CONTEXT, 65, 0}; /* rows that are fed: across a block of attention, and none */

static uint64_t seed;

/* How a run calls the backend. */
struct way {
    uint32_t threads, at_once; /* rows that are fed in a call */
    uint32_t eighths;          /* of the fed rows are in the trunk */
    bool exact, with[SEQS];    /* sequences of the run */
};

static const struct way all_together = {.threads = 1, .at_once = 64, .eighths = 8, .with = {true, true, true}};

struct inputs {
    float features[SEQS][CONTEXT * 3 * BLOCK_WIDTH];
    token_t tokens[SEQS][BLOCK_MOST], before[SEQS][BLOCK_MOST];
};

struct outputs {
    float hidden[SEQS][BLOCK_MOST][BLOCK_LAYERS + 1][BLOCK_WIDTH], logits[SEQS][BLOCK_MOST][BLOCK_VOCAB];
    struct prediction plain[SEQS][BLOCK_MOST], kept[SEQS][BLOCK_MOST], biased[SEQS][BLOCK_MOST];
    float dist[SEQS][BLOCK_MOST][BLOCK_VOCAB]; /* of kept logits, biased if there is a Markov head */
};

static void
make_inputs(const struct block_model *m, uint64_t random, struct inputs *in)
{
    for (int s = 0; s < SEQS; s++) {
        block_features(m, random + (uint64_t)s, lengths[s], in->features[s]);
        for (uint32_t i = 0; i < BLOCK_MOST; i++) {
            in->tokens[s][i] = i == 0 ? (token_t)(splitmix64(&random) % BLOCK_VOCAB) : m->drafter.mask;
            in->before[s][i] = (token_t)(splitmix64(&random) % BLOCK_VOCAB);
        }
    }
}

static slot_t
slot_of(int s, uint32_t position) /* not in order */
{
    return (slot_t)s * SLOTS + position * 37 % SLOTS;
}

static uint32_t
ring_of(int s, uint32_t i)
{
    return (uint32_t)s * BLOCK_MOST + i;
}

/* A backend with a KV cache of the model. */
struct running {
    const struct block_model *m;
    struct backend *b;
    struct weights *w;
    struct dists *dists;
    struct kv_cache *kv_cache;
};

static void
start(struct running *r, const struct block_model *m, const struct way *way)
{
    struct err err = {0};
    r->m = m;
    const struct backend_options options = {.threads = way->threads, .gpu = -1, .exact = way->exact};
    assert_ok(cpu_backend.open(&r->b, &options, &err), err);
    assert_ok(cpu_backend.load(r->b, &m->desc, NULL, NULL, &r->w, &err), err);
    assert_ok(cpu_backend.dists(r->b, BLOCK_VOCAB, PROBES, &r->dists, &err), err);
    struct kv_cache_desc desc = kv_cache_for_sequences(SLOTS, SEQS);
    desc.ring = RING;
    desc.dists = r->dists;
    assert_ok(cpu_backend.kv_cache(r->w, &desc, &r->kv_cache, &err), err);
}

static void
stop(struct running *r)
{
    cpu_backend.drop(r->kv_cache);
    cpu_backend.drop_dists(r->dists);
    cpu_backend.unload(r->w);
    cpu_backend.close(r->b);
}

static void
wait_for(struct running *r)
{
    struct err err = {0};
    assert_ok(cpu_backend.wait(r->kv_cache, &err), err);
}

static void
feed(struct running *r, const struct inputs *in, int s, uint32_t at_once)
{
    struct row rows[64];
    for (uint32_t first = 0; first < lengths[s]; first += at_once) {
        const uint32_t n = lengths[s] - first < at_once ? lengths[s] - first : at_once;
        for (uint32_t i = 0; i < n; i++)
            rows[i] = (struct row){.slot = slot_of(s, first + i), .ring = RING - 1, .n_trunk = first + i + 1};
        assert_true(
            cpu_backend.feed(r->kv_cache, rows, n, in->features[s] + (size_t)first * r->m->drafter.features, NULL));
    }
}

/* Runs the blocks of all sequences of the run in one forward pass. */
static void
run_blocks(struct running *r, const struct inputs *in, const struct way *way)
{
    const uint32_t block = r->m->drafter.block;
    slot_t tails[SEQS * (CONTEXT + BLOCK_MOST)], slots[CONTEXT];
    struct row rows[PROBES];
    struct forward_pass pass = {.rows = rows, .tails = tails, .to = r->m->desc.n_layers};
    for (int s = 0; s < SEQS; s++) {
        const uint32_t n_trunk = lengths[s] * way->eighths / 8, tail = (uint32_t)pass.n_tails;
        for (uint32_t i = 0; i < lengths[s]; i++)
            slots[i] = slot_of(s, i);
        if (!way->with[s])
            continue;
        assert_true(cpu_backend.trunk(r->kv_cache, (seq_t)s, 0, slots, n_trunk));
        for (uint32_t i = n_trunk; i < lengths[s] + block; i++)
            tails[pass.n_tails++] = slot_of(s, i);
        for (uint32_t i = 0; i < block; i++)
            rows[pass.n++] = (struct row){.token = in->tokens[s][i],
                                          .slot = slot_of(s, lengths[s] + i),
                                          .ring = ring_of(s, i),
                                          .seq = (seq_t)s,
                                          .n_trunk = n_trunk,
                                          .tail = tail,
                                          .n_tail = lengths[s] - n_trunk + i + 1,
                                          .n_after = r->m->drafter.causal ? 0 : block - 1 - i};
    }
    assert_true(cpu_backend.embed(r->kv_cache, rows, pass.n));
    assert_true(cpu_backend.step(r->kv_cache, &pass));
}

/* Predicts all rows of the run; with `kept` from kept logits, with `before` increased. */
static void
predict(struct running *r, const struct inputs *in, const struct way *way, bool kept, bool before,
        struct prediction out[SEQS][BLOCK_MOST])
{
    struct probe probes[PROBES];
    struct prediction got[PROBES];
    size_t n = 0;
    for (int s = 0; s < SEQS; s++)
        for (uint32_t i = 0; i < r->m->drafter.block && way->with[s]; i++)
            probes[n++] = (struct probe){.ring = ring_of(s, i),
                                         .layer = r->m->desc.n_layers,
                                         .temperature = 0.7f,
                                         .kept = kept,
                                         .before = before ? in->before[s][i] : TOKEN_NONE};
    assert_true(cpu_backend.predict(r->kv_cache, probes, n, got));
    wait_for(r);
    n = 0;
    for (int s = 0; s < SEQS; s++)
        for (uint32_t i = 0; i < r->m->drafter.block && way->with[s]; i++)
            out[s][i] = got[n++];
}

static void
read_rows(struct running *r, const struct way *way, struct outputs *out)
{
    for (int s = 0; s < SEQS; s++)
        for (uint32_t i = 0; i < r->m->drafter.block && way->with[s]; i++) {
            for (uint32_t l = 0; l <= r->m->desc.n_layers; l++)
                assert_true(cpu_backend.read_hidden(r->kv_cache, ring_of(s, i), l, out->hidden[s][i][l]));
            assert_true(cpu_backend.read_logits(r->kv_cache, ring_of(s, i), r->m->desc.n_layers, out->logits[s][i]));
        }
    wait_for(r);
}

static void
read_dists(struct running *r, const struct inputs *in, const struct way *way, struct outputs *out)
{
    const bool markov = r->m->drafter.markov_w1.cols > 0;
    struct dist_req requests[PROBES];
    size_t n = 0;
    for (int s = 0; s < SEQS; s++)
        for (uint32_t i = 0; i < r->m->drafter.block && way->with[s]; i++, n++)
            requests[n] = (struct dist_req){.ring = ring_of(s, i),
                                            .layer = r->m->desc.n_layers,
                                            .sampling = {.temperature = 0.8f, .top_p = 1},
                                            .out = (dist_t)n,
                                            .kept = true,
                                            .before = markov ? in->before[s][i] : TOKEN_NONE};
    assert_true(cpu_backend.dist(r->kv_cache, requests, n));
    n = 0;
    for (int s = 0; s < SEQS; s++)
        for (uint32_t i = 0; i < r->m->drafter.block && way->with[s]; i++)
            assert_true(cpu_backend.read_dist(r->kv_cache, (dist_t)n++, out->dist[s][i]));
    wait_for(r);
}

static void
run(const struct block_model *m, const struct inputs *in, const struct way *way, struct outputs *out)
{
    struct running r;
    memset(out, 0, sizeof *out);
    start(&r, m, way);
    for (int s = 0; s < SEQS; s++)
        if (way->with[s])
            feed(&r, in, s, way->at_once);
    run_blocks(&r, in, way);
    predict(&r, in, way, false, false, out->plain);
    predict(&r, in, way, true, false, out->kept);
    if (m->drafter.markov_w1.cols > 0)
        predict(&r, in, way, true, true, out->biased);
    read_rows(&r, way, out);
    read_dists(&r, in, way, out);
    stop(&r);
}

static struct block_model model;
static struct inputs inputs;
static struct outputs got, other;

static void
open_form(size_t i)
{
    block_model_open(&model, &forms[i], seed + i);
    make_inputs(&model, seed + 100 * i, &inputs);
}

static double
distance(const float *a, const double *b, size_t n)
{
    double apart = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        apart += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += b[i] * b[i];
    }
    return sqrt(apart / size);
}

TEST(blocks_are_near_the_reference)
{
    static double hidden[BLOCK_MOST * (BLOCK_LAYERS + 1) * BLOCK_WIDTH], logits[BLOCK_MOST * BLOCK_VOCAB];
    struct way way = all_together;
    way.exact = true;
    for (size_t i = 0; i < FORMS; i++) {
        double worst = 0;
        open_form(i);
        run(&model, &inputs, &way, &got);
        const uint32_t layers = model.desc.n_layers, outputs = model.desc.head.rows;
        for (int s = 0; s < SEQS; s++) {
            block_naive(&model, inputs.features[s], lengths[s], inputs.tokens[s], model.drafter.block, hidden, logits);
            for (uint32_t r = 0; r < model.drafter.block; r++) {
                for (uint32_t l = 0; l <= layers; l++)
                    worst = fmax(worst, distance(got.hidden[s][r][l], hidden + (r * (layers + 1) + l) * BLOCK_WIDTH,
                                                 BLOCK_WIDTH));
                worst = fmax(worst, distance(got.logits[s][r], logits + r * outputs, outputs));
            }
        }
        print_message("%s: %.2g\n", forms[i].name, worst);
        assert_less(worst, 1e-5);
        block_model_close(&model);
    }
}

/* Compares the outputs of the sequences of the run with those of all sequences together. */
static void
assert_same(const struct way *way, const char *name)
{
    run(&model, &inputs, way, &other);
    for (int s = 0; s < SEQS; s++) {
        if (!way->with[s])
            continue;
        if (memcmp(got.hidden[s], other.hidden[s], sizeof *got.hidden) != 0)
            fail_msg("%s: hidden states of sequence %d differ", name, s);
        if (memcmp(got.logits[s], other.logits[s], sizeof *got.logits) != 0)
            fail_msg("%s: logits of sequence %d differ", name, s);
        if (memcmp(got.plain[s], other.plain[s], sizeof *got.plain) != 0)
            fail_msg("%s: predictions of sequence %d differ", name, s);
        if (memcmp(got.biased[s], other.biased[s], sizeof *got.biased) != 0)
            fail_msg("%s: predictions with a bias of sequence %d differ", name, s);
        if (memcmp(got.dist[s], other.dist[s], sizeof *got.dist) != 0)
            fail_msg("%s: distributions of sequence %d differ", name, s);
    }
}

TEST(the_bits_of_a_block_do_not_depend_on_other_sequences)
{
    for (size_t i = 0; i < FORMS; i++) {
        open_form(i);
        run(&model, &inputs, &all_together, &got);
        for (int s = 0; s < SEQS; s++) {
            struct way way = all_together;
            memset(way.with, 0, sizeof way.with);
            way.with[s] = true;
            assert_same(&way, forms[i].name);
        }
        block_model_close(&model);
    }
}

TEST(the_bits_of_a_block_do_not_depend_on_where_the_trunk_ends)
{
    for (size_t i = 0; i < FORMS; i++) {
        open_form(i);
        run(&model, &inputs, &all_together, &got);
        for (uint32_t eighths = 0; eighths < 8; eighths += 3) {
            struct way way = all_together;
            way.eighths = eighths;
            assert_same(&way, forms[i].name);
        }
        block_model_close(&model);
    }
}

TEST(the_bits_of_a_block_do_not_depend_on_the_rows_that_are_fed_together)
{
    for (size_t i = 0; i < FORMS; i++) {
        open_form(i);
        run(&model, &inputs, &all_together, &got);
        for (uint32_t at_once = 1; at_once < 30; at_once += 11) {
            struct way way = all_together;
            way.at_once = at_once;
            assert_same(&way, forms[i].name);
        }
        block_model_close(&model);
    }
}

TEST(the_bits_of_a_block_do_not_depend_on_the_number_of_threads)
{
    for (size_t i = 0; i < FORMS; i++) {
        open_form(i);
        run(&model, &inputs, &all_together, &got);
        struct way way = all_together;
        way.threads = 3;
        assert_same(&way, forms[i].name);
        block_model_close(&model);
    }
}

TEST(weights_of_a_file_give_the_same_bits_before_and_after_they_are_repacked)
{
    for (size_t i = 0; i < FORMS; i++) {
        struct block_form of_file = forms[i];
        struct way way = all_together;
        open_form(i);
        run(&model, &inputs, &way, &got);
        block_model_close(&model);
        of_file.of_file = true;
        way.at_once = 20; /* the second call repacks */
        block_model_open(&model, &of_file, seed + i);
        assert_same(&way, forms[i].name);
        block_model_close(&model);
    }
}

TEST(kept_logits_without_a_bias_give_the_same_predictions)
{
    for (size_t i = 0; i < FORMS; i++) {
        open_form(i);
        run(&model, &inputs, &all_together, &got);
        assert_memory_equal(got.plain, got.kept, sizeof got.plain);
        block_model_close(&model);
    }
}

/* Writes the probabilities of outputs at a temperature, by token. */
static void
softmax(const double *logits, double temperature, double *p)
{
    double sum = 0;
    for (uint32_t o = 0; o < model.desc.head.rows; o++)
        sum += exp(logits[o] / temperature);
    memset(p, 0, BLOCK_VOCAB * sizeof *p);
    for (uint32_t o = 0; o < model.desc.head.rows; o++)
        p[model.drafter.tokens != NULL ? (uint32_t)model.drafter.tokens[o] : o] = exp(logits[o] / temperature) / sum;
}

TEST(kept_logits_are_increased_by_the_markov_head)
{
    struct way way = all_together;
    way.exact = true;
    for (size_t i = 0; i < FORMS; i++) {
        open_form(i);
        run(&model, &inputs, &way, &got);
        for (int s = 0; s < SEQS; s++)
            for (uint32_t r = 0; r < model.drafter.block; r++) {
                double logits[BLOCK_VOCAB], p[BLOCK_VOCAB];
                for (uint32_t o = 0; o < model.desc.head.rows; o++)
                    logits[o] = (double)got.logits[s][r][o];
                if (model.drafter.markov_w1.cols > 0)
                    block_naive_bias(&model, inputs.before[s][r], logits);
                softmax(logits, 0.8, p);
                for (uint32_t v = 0; v < BLOCK_VOCAB; v++)
                    assert_near(got.dist[s][r][v], p[v], 1e-5);
                if (model.drafter.markov_w1.cols == 0)
                    continue;
                softmax(logits, 1, p);
                assert_near(got.biased[s][r].confidence, p[got.biased[s][r].token], 1e-5);
                for (uint32_t v = 0; v < BLOCK_VOCAB; v++)
                    assert_at_most(p[v], p[got.biased[s][r].token] + 1e-6);
            }
        block_model_close(&model);
    }
}

/* ---- requests ---- */

/* Starts the first form with a Markov head, with blocks that were predicted. */
static void
start_predicted(struct running *r, struct way *way)
{
    open_form(1);
    *way = all_together;
    start(r, &model, way);
    for (int s = 0; s < SEQS; s++)
        feed(r, &inputs, s, 64);
    run_blocks(r, &inputs, way);
    predict(r, &inputs, way, false, false, got.plain);
}

static void
stop_predicted(struct running *r)
{
    wait_for(r);
    stop(r);
    block_model_close(&model);
}

static const struct probe good = {.layer = 3, .temperature = 1, .kept = true, .before = 5};

static void
assert_refused(struct probe probe)
{
    struct running r;
    struct way way;
    struct prediction out;
    start_predicted(&r, &way);
    assert_true(cpu_backend.predict(r.kv_cache, &good, 1, &out));
    assert_false(cpu_backend.predict(r.kv_cache, &probe, 1, &out));
    stop_predicted(&r);
}

TEST(kept_logits_of_a_row_that_was_not_predicted_are_refused)
{
    struct probe probe = good;
    probe.ring = RING - 1;
    assert_refused(probe);
}

TEST(kept_logits_of_another_layer_are_refused)
{
    struct probe probe = good;
    probe.layer = 2;
    assert_refused(probe);
}

TEST(kept_logits_with_a_token_outside_the_vocabulary_are_refused)
{
    struct probe probe = good;
    probe.before = BLOCK_VOCAB;
    assert_refused(probe);
}

TEST(a_comparison_with_the_last_layer_from_kept_logits_is_refused)
{
    struct probe probe = good;
    probe.versus_final = true;
    assert_refused(probe);
}

TEST(a_bias_without_a_markov_head_is_refused)
{
    open_form(0);
    const struct kv_cache_desc desc = kv_cache_defaults(16);
    const struct request_limits m = {&model.desc, &desc, {0, 0}};
    struct probe probe = good;
    probe.layer = 1;
    assert_false(request_predict(m, &probe, 1));
    probe.before = TOKEN_NONE;
    assert_true(request_predict(m, &probe, 1));
    block_model_close(&model);
}

TEST(a_call_with_kept_and_other_probes_is_refused)
{
    struct running r;
    struct way way;
    struct probe probes[2] = {good, good};
    struct prediction out[2];
    probes[1].kept = false;
    start_predicted(&r, &way);
    assert_false(cpu_backend.predict(r.kv_cache, probes, 2, out));
    stop_predicted(&r);
}

TEST(rows_that_attend_to_slots_outside_the_tails_are_refused)
{
    open_form(0);
    const struct kv_cache_desc desc = kv_cache_defaults(16);
    const struct request_limits m = {&model.desc, &desc, {0, 0}};
    const slot_t tails[] = {0, 1, 2};
    struct row row = {.slot = 1, .tail = 1, .n_tail = 1, .n_after = 1};
    const struct forward_pass pass = {.rows = &row, .n = 1, .tails = tails, .n_tails = 3, .to = 1};
    assert_true(request_forward(m, &pass));
    row.n_after = 2;
    assert_false(request_forward(m, &pass));
    row.n_after = UINT32_MAX;
    assert_false(request_forward(m, &pass));
    block_model_close(&model);
}

TEST(rows_of_other_models_that_attend_to_later_ones_are_refused)
{
    open_form(0);
    const struct kv_cache_desc desc = kv_cache_defaults(16);
    struct model_desc ordinary = model.desc;
    ordinary.drafter = NULL;
    const struct request_limits m = {&ordinary, &desc, {0, 0}};
    const slot_t tails[] = {0, 1};
    const struct row row = {.slot = 0, .n_tail = 1, .n_after = 1};
    assert_false(
        request_forward(m, &(struct forward_pass){.rows = &row, .n = 1, .tails = tails, .n_tails = 2, .to = 1}));
    block_model_close(&model);
}

TEST(rows_are_not_fed_to_a_block_drafter_without_features)
{
    open_form(0);
    const struct kv_cache_desc desc = kv_cache_defaults(16);
    const struct request_limits m = {&model.desc, &desc, {0, 0}};
    const struct row row = {.n_trunk = 1};
    const uint32_t before = 0;
    assert_true(request_feed(m, &row, 1, inputs.features[0], NULL));
    assert_false(request_feed(m, &row, 1, NULL, &before));
    block_model_close(&model);
}

/* ---- descriptions ---- */

static void
assert_does_not_fit(void)
{
    struct err err = {0};
    assert_false(model_desc_fits(&model.desc, UINT64_MAX, &err));
    print_message("%s\n", err.text);
    block_model_close(&model);
}

TEST(a_block_drafter_without_the_second_matrix_of_its_markov_head_does_not_fit)
{
    open_form(1);
    model.drafter.markov_w2 = (struct tensor){0};
    assert_does_not_fit();
}

TEST(a_block_drafter_whose_markov_head_has_another_vocabulary_does_not_fit)
{
    open_form(1);
    model.drafter.markov_w2.rows--;
    assert_does_not_fit();
}

TEST(a_block_drafter_with_a_narrow_confidence_head_does_not_fit)
{
    open_form(1);
    model.drafter.confidence.cols--;
    assert_does_not_fit();
}

TEST(a_block_drafter_whose_mask_is_no_token_does_not_fit)
{
    open_form(0);
    model.drafter.mask = BLOCK_VOCAB;
    assert_does_not_fit();
}

TEST(a_block_of_one_row_that_predicts_nothing_does_not_fit)
{
    open_form(0);
    model.drafter.block = 1;
    assert_does_not_fit();
}

TEST(a_block_drafter_without_the_norm_of_its_context_does_not_fit)
{
    open_form(0);
    model.drafter.feature_norm = (struct tensor){0};
    assert_does_not_fit();
}

TEST(a_block_drafter_with_a_narrow_projection_does_not_fit)
{
    open_form(0);
    model.drafter.projection.cols--;
    assert_does_not_fit();
}

TEST_SEED(seed, 1);
