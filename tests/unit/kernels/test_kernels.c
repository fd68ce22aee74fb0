/* Compares the CPU backend with a naive transformer in double precision: layers, trees, skips, rotations. */
#include <math.h>

#include "kernels/cpu/forward.h"
#include "kernels/cpu/kv_cache.h"
#include "kernels/experts.h"
#include "kernels/half.h"
#include "tests/rigs/check_backend.h"
#include "tests/rigs/cpu_shapes.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define MAX_MARKS 128 /* the largest head_dim */

static uint64_t seed; /* printed by main */

/* ---- layers ---- */

/* Decoding reads the KV cache of each head from start to end; rows of other heads in between make that slow. */
static void
check_order(struct rig *r, double bound)
{
    (void)bound;
    const struct kv_cache *s = r->kv_cache;
    static float marks[2][MAX_MARKS];
    for (uint32_t l = 1; l <= r->desc->n_layers; l++) {
        const struct layer_form *form = &s->weights->layer_forms[l];
        const struct layer_sizes n = cpu_layer_sizes(s, l);
        const size_t bytes = n.head_dim * sizeof(uint16_t), all = s->desc.slots * n.kv * sizeof(uint16_t);
        if (form->kind != LAYER_ATTENTION || form->kv_layer > 0)
            continue;
        assert_at_most(n.head_dim, MAX_MARKS);
        assert_greater(s->desc.slots, 8);
        for (size_t i = 0; i < n.head_dim; i++)
            marks[0][i] = 1 + (float)i / 128, marks[1][i] = -marks[0][i];
        for (uint32_t slot = 7; slot < 9; slot++)
            remember(s, l, (uint32_t)n.kv_heads - 1, slot, s->keys, marks[slot - 7]);
        uint16_t both[2 * MAX_MARKS];
        for (size_t i = 0; i < 2 * n.head_dim; i++)
            both[i] = f32_to_f16(marks[i / n.head_dim][i % n.head_dim]);
        assert_non_null(memmem((const uint16_t *)s->keys + s->kv_start[l], all, both, 2 * bytes));
    }
}

TEST(consecutive_slots_of_a_head_are_consecutive_in_memory)
{
    on_every_isa_and_shape(false, seed, check_order);
}

static void
check_tree(struct rig *r, double bound)
{
    rig_tree(r, 20);
    rig_step_all(r);
    for (int node = 0; node < r->n; node += 3)
        rig_assert_near_naive(r, node, 1e-7, bound);
}

TEST(exact_rows_of_a_tree_equal_the_naive_model)
{
    on_every_isa_and_shape(true, seed, check_tree);
}

TEST(fast_rows_of_a_tree_are_near_the_naive_model)
{
    on_every_isa_and_shape(false, seed, check_tree);
}

static void
check_skips(struct rig *r, double bound)
{
    bool attention[RIG_DEPTH + 1] = {false}, none[RIG_DEPTH + 1] = {false}, mlp[RIG_DEPTH + 1] = {false};
    attention[1] = mlp[r->desc->n_layers] = mlp[1] = true;
    int chain[12];
    rig_chain(r, 12);
    for (int i = 0; i < 12; i++)
        chain[i] = i;
    rig_step(r, chain, 6, r->desc->n_layers, 0);
    struct forward_pass forward = *rig_forward(r, chain + 6, 6, r->desc->n_layers, 0); /* a draft after full rows */
    forward.skip_attention = attention;
    forward.skip_mlp = mlp;
    assert_true(r->ops->step(r->kv_cache, &forward));
    for (int i = 6; i < 12; i++) {
        r->nodes[i].skip_attention = attention;
        r->nodes[i].skip_mlp = mlp;
    }
    rig_wait(r);
    rig_assert_near_naive(r, 5, 1e-7, bound);
    rig_assert_near_naive(r, 6, 1e-7, bound);
    rig_assert_near_naive(r, 11, 1e-7, bound);
    forward.skip_attention = none; /* masks that are all false skip nothing */
    forward.skip_mlp = none;
    assert_true(r->ops->step(r->kv_cache, &forward));
    rig_wait(r);
    for (int i = 6; i < 12; i++)
        r->nodes[i].skip_attention = r->nodes[i].skip_mlp = NULL;
    rig_assert_near_naive(r, 11, 1e-7, bound);
}

TEST(skipped_sublayers_leave_the_stream_as_it_was)
{
    on_every_isa_and_shape(true, seed, check_skips);
}

TEST(long_paths_cross_attention_blocks)
{
    struct rig r;
    const double bound = cpu_exact_bound(&cpu_shapes[0]);
    rig_open(&r, &cpu_backend, &cpu_shapes[0], seed, &(struct backend_options){.threads = 2, .exact = true});
    rig_chain(&r, RIG_NODES);
    int all[RIG_NODES];
    for (int i = 0; i < RIG_NODES; i++)
        all[i] = i;
    rig_step(&r, all, 70, r.desc->n_layers, 0);
    rig_trunk(&r, 0, 69);
    rig_step(&r, all + 70, RIG_NODES - 70, r.desc->n_layers, 70);
    rig_assert_near_naive(&r, 60, 1e-7, bound);
    rig_assert_near_naive(&r, 69, 1e-7, bound);
    rig_assert_near_naive(&r, RIG_NODES - 1, 1e-7, bound);
    rig_close(&r);
}

/* ---- experts ---- */

static void
count_touched(struct rig *r, const int *nodes, int n, uint32_t touched[RIG_DEPTH + 1])
{
    struct forward_pass forward = *rig_forward(r, nodes, n, r->desc->n_layers, 0);
    forward.touched = touched;
    assert_true(r->ops->step(r->kv_cache, &forward));
    rig_wait(r);
}

/* One row uses the number of experts in the form, many rows use more. Dense and skipped layers use none. */
TEST(a_forward_pass_reports_how_many_experts_it_read)
{
    const struct naive_shape shape =
        RIG_SHAPE(3, 64, 4, 2, 16, 96, 90, .type = WEIGHT_Q8_0, .dense = 1,
                  .form = {.experts = {.n = 16, .used = 3, .ffn = 32, .shared_ffn = 32, .renormalised = true}});
    const struct backend_ops *const backends[] = {&cpu_backend, &check_backend, cuda_for_tests()};
    for (size_t b = 0; b < 3 && backends[b] != NULL; b++) {
        struct rig r;
        uint32_t one[RIG_DEPTH + 1] = {9, 9, 9, 9}, many[RIG_DEPTH + 1] = {0}, none[RIG_DEPTH + 1] = {0};
        bool skipped[RIG_DEPTH + 1] = {false, false, true, true};
        int nodes[32];
        rig_open(&r, backends[b], &shape, seed, &(struct backend_options){.threads = 2, .gpu = -1});
        rig_chain(&r, 32);
        for (int i = 0; i < 32; i++)
            nodes[i] = i;
        count_touched(&r, nodes, 1, one);
        count_touched(&r, nodes + 1, 30, many);
        struct forward_pass forward = *rig_forward(&r, nodes + 31, 1, 3, 0);
        forward.skip_mlp = skipped;
        forward.touched = none;
        assert_true(r.ops->step(r.kv_cache, &forward));
        rig_wait(&r);
        assert_int_equal(one[1], 0);
        assert_int_equal(many[1], 0);
        for (uint32_t l = 2; l <= 3; l++) {
            assert_int_equal(one[l], 3);
            assert_greater(many[l], 3);
            assert_at_most(many[l], 16);
            assert_int_equal(none[l], 0);
        }
        rig_close(&r);
    }
}

#define ROUTED 12 /* rows */

/* Asserts that the reported routes of a node, row number `row` of the forward pass, are those of the definition. The
 * pass began at layer `from`; earlier layers have no routes. */
static void
assert_naive_routes(struct rig *r, int node, struct route *told, size_t row, uint32_t from)
{
    static double hidden[(RIG_DEPTH + 1) * RIG_WIDTH], logits[RIG_VOCAB], weights[(RIG_DEPTH + 1) * 64];
    const struct experts_form *f = &r->desc->form.experts;
    naive_model_routes(r->model, weights);
    rig_naive(r, node, hidden, logits);
    naive_model_routes(r->model, NULL);
    for (uint32_t l = 0; l <= r->desc->n_layers; l++) {
        const struct route *got = routes_at(told, r->desc, row, l);
        const bool asked = l >= from && l > 0 && r->desc->layers[l - 1].experts != NULL;
        uint32_t n = 0;
        for (uint32_t e = 0; asked && e < f->n; e++) {
            const double weight = weights[l * f->n + e];
            if (!(fabs(weight) > 0)) /* factors of experts may be negative */
                continue;
            if (n >= f->used || got[n].expert != e || !(fabs((double)got[n].weight - weight) < 1e-4))
                fail_msg("%s: node %d at layer %u: expert %u with %g is not told", r->ops->describe(r->backend), node,
                         l, e, weight);
            n++;
        }
        assert_int_equal(n, asked ? f->used : 0);
        for (; n < f->used; n++)
            assert_int_equal(got[n].expert, EXPERT_NONE);
    }
}

static void
step_and_tell(struct rig *r, const int *nodes, int n, uint32_t to, struct route *told)
{
    const size_t entries = (size_t)n * (r->desc->n_layers + 1) * r->desc->form.experts.used;
    for (size_t i = 0; i < entries; i++)
        told[i].expert = 12345;
    struct forward_pass forward = *rig_forward(r, nodes, n, to, 0);
    forward.routes = told;
    assert_true(r->ops->step(r->kv_cache, &forward));
    for (size_t i = 0; i < entries; i++) /* only wait() writes results */
        assert_int_equal(told[i].expert, 12345);
    rig_wait(r);
    for (int i = 0; i < n; i++)
        r->nodes[nodes[i]].depth = to;
}

/* Uses two forward passes, so that rows join at different depths. */
static void
check_routes(struct rig *r, double bound)
{
    static struct route told[ROUTED * (RIG_DEPTH + 1) * 16];
    (void)bound;
    if (r->desc->form.experts.n == 0)
        return;
    assert_at_most(r->desc->form.experts.used, 16);
    int nodes[ROUTED];
    rig_tree(r, ROUTED);
    for (int i = 0; i < ROUTED; i++)
        nodes[i] = i;
    step_and_tell(r, nodes, ROUTED / 2, 1, told);
    for (int i = 0; i < ROUTED / 2; i++)
        for (uint32_t l = 2; l <= r->desc->n_layers; l++)
            assert_int_equal(routes_at(told, r->desc, (size_t)i, l)->expert, EXPERT_NONE);
    step_and_tell(r, nodes, ROUTED, r->desc->n_layers, told);
    for (int i = 0; i < ROUTED; i++)
        assert_naive_routes(r, i, told, (size_t)i, i < ROUTED / 2 ? 2 : 1);
}

TEST(a_forward_pass_reports_the_experts_of_its_rows)
{
    const struct naive_shape shape = RIG_SHAPE(3, 50, 5, 5, 10, 77, 101, .dense = 1,
                                               .form = {.experts = {.n = 9, .used = 2, .ffn = 19, .shared_ffn = 8}});
    struct rig r; /* runs with a worker thread */
    on_every_isa_and_shape(true, seed, check_routes);
    rig_open(&r, &check_backend, &shape, seed, &(struct backend_options){.threads = 2, .exact = true});
    check_routes(&r, 0);
    rig_close(&r);
    for (size_t i = CUDA_MOE; i < CUDA_SHAPES && cuda_for_tests() != NULL; i++) {
        cuda_rig_open(&r, i, true, seed);
        check_routes(&r, 0);
        rig_close(&r);
    }
}

/* ---- rotations ---- */

TEST(rope_rotates_pairs_of_both_layouts_and_leaves_the_rest)
{
    static const float factors[3] = {1, 2, 5};
    for (int layout = 0; layout < 2; layout++) {
        struct naive_model *model = naive_model_random(&cpu_shapes[1], seed);
        assert_non_null(model);
        struct model_desc d = *naive_model_desc(model);
        d.rope = layout == 0 ? ROPE_ADJACENT : ROPE_HALVES;
        d.rope_dims = 6; /* of 10 dimensions */
        d.rope_factors = factors;
        d.rope_scale = 0.5f;
        struct backend *b;
        struct weights *w;
        struct err err;
        assert_ok(cpu_backend.open(&b, &(struct backend_options){.threads = 1}, &err), err);
        assert_ok(cpu_backend.load(b, &d, NULL, NULL, &w, &err), err);
        float turns[6], x[10], was[10];
        for (int i = 0; i < 10; i++)
            was[i] = x[i] = (float)(i * i) - 7;
        rope_rotations(w->rope, w->desc.rope_dims, 1, 1001, turns);
        rope(d.rope, d.rope_dims, turns, x);
        for (int i = 0; i < 3; i++) {
            int a = layout == 0 ? 2 * i : i, c = layout == 0 ? 2 * i + 1 : i + 3;
            double angle = 1001 * 0.5 / factors[i] / pow(10000, 2.0 * i / 6);
            assert_near(x[a], was[a] * cos(angle) - was[c] * sin(angle), 1e-5 * 40);
            assert_near(x[c], was[a] * sin(angle) + was[c] * cos(angle), 1e-5 * 40);
        }
        assert_memory_equal(x + 6, was + 6, 4 * sizeof *x);
        cpu_backend.unload(w);
        cpu_backend.close(b);
        naive_model_free(model);
    }
}

TEST_SEED(seed, 1);
