/* Training with products on a GPU (backend_ops.products; the GPU is emulated or real). Every product equals the BLAS's
 * to F32's rounding, and so do losses, gradients and the results of training. SPECSCOPE_SEED=N chooses the numbers. */
#include <dlfcn.h>
#include <float.h>
#include <math.h>

#include "engine/training/accept_training.h"
#include "engine/training/blas.h"
#include "engine/training/head_training.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define TOLERANCE 1e-5 /* of sums of a few thousand terms, relative to their size */

enum { WIDTH = 48, VOCAB = 260, LAYERS = 3, ROWS = 37 };

static uint64_t seed;

/* ---- a device ---- */

struct device {
    struct engine engine;
    struct blas *blas;
};

/* Returns false without a device or a library for it. */
static bool
open_device(struct device *d)
{
    struct err err = {.kind = ERR_NONE};
    *d = (struct device){.engine = {.ops = cuda_for_tests()}};
    if (d->engine.ops == NULL)
        return false;
    if (d->engine.ops->open(&d->engine.backend, &(struct backend_options){.threads = 1, .gpu = -1}, &err) &&
        blas_open(&d->blas, &d->engine, &err))
        return true;
    print_message("skipped: %s\n", err.text);
    if (d->engine.backend != NULL)
        d->engine.ops->close(d->engine.backend);
    return false;
}

static void
close_device(struct device *d)
{
    struct err err;
    assert_false(blas_failed(d->blas, &err));
    blas_close(d->blas);
    d->engine.ops->close(d->engine.backend);
}
#define NEEDS_DEVICE(d)                                                                                                \
    (void)state;                                                                                                       \
    struct device d;                                                                                                   \
    if (!open_device(&d))                                                                                              \
    skip()

/* ---- numbers ---- */

static float *
noise(size_t n, float scale)
{
    float *x = malloc((n > 0 ? n : 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = ((float)(seed >> 40) / (float)(1u << 23) - 1) * scale;
    }
    return x;
}

/* The distance relative to b's norm, or to `usual` if b is smaller by chance: rounding depends on a sum's terms. */
static double
apart(const float *a, const float *b, size_t n, double usual)
{
    double diff = 0, of_b = 0, norm = usual * usual;
    for (size_t i = 0; i < n; i++) {
        diff += pow((double)a[i] - (double)b[i], 2);
        of_b += pow((double)b[i], 2);
    }
    norm = of_b > norm ? of_b : norm;
    return norm > 0 ? sqrt(diff / norm) : sqrt(diff);
}

/* ---- products ---- */

static void
compare(struct blas *blas, struct host_product p, size_t gap)
{
    const size_t a_rows = p.transpose_a ? p.k : p.m, b_rows = p.transpose_b ? p.n : p.k;
    p.stride_a = (p.transpose_a ? p.m : p.k) + gap;
    p.stride_b = (p.transpose_b ? p.k : p.n) + 2 * gap;
    float *const a = noise(a_rows * p.stride_a, 1), *const b = noise(b_rows * p.stride_b, 1),
                 *const c = noise(p.m * p.n, 1), *const here = malloc(p.m * p.n * sizeof *here);
    assert_non_null(here);
    memcpy(here, c, p.m * p.n * sizeof *here);
    p.a = a;
    p.b = b;
    p.c = c;
    blas_multiply(blas, &p);
    p.c = here;
    blas_multiply(NULL, &p);
    const double usual = sqrt((double)p.m * (double)p.n * (double)p.k) / 3; /* for numbers in [-1, 1] */
    const double error = apart(c, here, p.m * p.n, usual);
    const double bound = fmax(TOLERANCE, FLT_EPSILON / 8 * sqrt((double)p.k)); /* rounding errors are a random walk */
    if (!(error < bound))
        fail_msg("%zux%zux%zu, a %s, b %s, beta %g: %g apart", p.m, p.n, p.k, p.transpose_a ? "turned" : "plain",
                 p.transpose_b ? "turned" : "plain", (double)p.beta, error);
    free(a);
    free(b);
    free(c);
    free(here);
}

TEST(products_are_those_of_the_blas)
{
    NEEDS_DEVICE(d);
    static const uint32_t sizes[][3] = {
        {1, 1, 1}, {7, 5, 3}, {33, 64, 17}, {5, 300, 70}, {64, 2, 129}, {40, 40, 1},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned how = 0; how < 8; how++)
            compare(d.blas,
                    (struct host_product){.transpose_a = how & 1,
                                          .transpose_b = how >> 1 & 1,
                                          .beta = (float)(how >> 2 & 1),
                                          .m = sizes[i][0],
                                          .n = sizes[i][1],
                                          .k = sizes[i][2]},
                    i % 3);
    close_device(&d);
}

/* Some rows are longer than the pinned buffer, and c has more rows than the device stores at a time. */
TEST(products_larger_than_the_buffers_are_cut)
{
    NEEDS_DEVICE(d);
    compare(d.blas, (struct host_product){.transpose_b = true, .m = 2, .n = 1, .k = (9u << 20) / sizeof(float)}, 0);
    compare(d.blas,
            (struct host_product){.transpose_a = true, .m = 1100, .n = (64u << 20) / 1024 / sizeof(float), .k = 1}, 0);
    close_device(&d);
}

TEST(a_matrix_that_is_kept_is_not_copied_again)
{
    NEEDS_DEVICE(d);
    const uint32_t n = 9, k = 20;
    float *const b = noise(n * k, 1), *const before = malloc(n * k * sizeof *before);
    assert_non_null(before);
    memcpy(before, b, n * k * sizeof *before);
    blas_keep(d.blas, b, n * k);
    for (size_t i = 0; i < n * k; i++)
        b[i] = NAN; /* the kept copy is used instead */
    for (int transpose_b = 0; transpose_b < 2; transpose_b++) {
        float *const a = noise(k, 1), got[9], wanted[9];
        struct host_product p = {.transpose_b = transpose_b > 0,
                                 .m = 1,
                                 .n = n,
                                 .k = k,
                                 .a = a,
                                 .stride_a = k,
                                 .b = b,
                                 .stride_b = transpose_b > 0 ? k : n,
                                 .c = got};
        blas_multiply(d.blas, &p);
        p.b = before;
        p.c = wanted;
        blas_multiply(NULL, &p);
        assert_less(apart(got, wanted, n, 0), TOLERANCE);
        free(a);
    }
    free(b);
    free(before);
    close_device(&d);
}

/* ---- training ---- */

struct scene {
    float *norm, *head, *hidden;
    struct lens lens;
};

static void
make_scene(struct scene *s)
{
    *s = (struct scene){.norm = noise(2 * WIDTH, 0.5f), /* weights, biases */
                        .head = noise((size_t)VOCAB * WIDTH, 1),
                        .hidden = noise((size_t)ROWS * (LAYERS + 1) * WIDTH, 2)};
    for (size_t i = 0; i < WIDTH; i++)
        s->norm[i] += 1;
    s->lens = (struct lens){
        .width = WIDTH, .vocab = VOCAB, .norm = {.width = WIDTH, .eps = 1e-5f, .weight = s->norm}, .head = s->head};
}

static void
free_scene(struct scene *s)
{
    free(s->norm);
    free(s->head);
    free(s->hidden);
}

/* Computes the losses and the gradient of one layer's head. */
static void
look_at_loss(const struct lens *lens, enum head_kind kind, const float *hidden, float *values, float *gradient,
             struct head_score *score)
{
    static float final[ROWS * VOCAB];
    static float mass[ROWS];
    static double inside[ROWS];
    static struct head_target target[ROWS];
    struct blocks blocks = {0};
    struct head_work *w = head_work_open(lens, ROWS, &blocks);
    assert_non_null(w);
    struct head_batch batch = {.n = ROWS,
                               .hidden = hidden + (LAYERS - 1) * WIDTH,
                               .stride = LAYERS * WIDTH,
                               .final = final,
                               .mass = mass,
                               .inside = inside,
                               .target = target};
    head_targets(lens, w, batch.hidden, batch.stride, ROWS, target);
    head_final(lens, w, &batch, final, mass, inside);
    struct head_weights weights = {.a = values, .b = values + WIDTH * WIDTH, .weight = values};
    struct head_weights slopes = {.a = gradient, .b = gradient + WIDTH * WIDTH, .weight = gradient};
    batch.hidden = hidden; /* of layer 1 */
    *score = head_loss(lens, kind, &weights, &batch, w, &slopes);
    blocks_free(&blocks);
}

TEST(losses_and_gradients_of_heads_are_those_of_the_cpu)
{
    NEEDS_DEVICE(d);
    for (enum head_kind kind = HEAD_AFFINE; kind <= HEAD_FULL; kind++) {
        const size_t n = kind == HEAD_FULL ? (size_t)VOCAB * WIDTH : (size_t)WIDTH * WIDTH + WIDTH;
        struct scene s;
        make_scene(&s);
        float *const values = noise(n, 0.1f), *const here = calloc(n, sizeof *here),
                     *const there = calloc(n, sizeof *there);
        assert_non_null(here);
        assert_non_null(there);
        struct head_score of_cpu, of_gpu;
        look_at_loss(&s.lens, kind, s.hidden, values, here, &of_cpu);
        s.lens.blas = d.blas;
        blas_keep(d.blas, s.head, (size_t)VOCAB * WIDTH);
        look_at_loss(&s.lens, kind, s.hidden, values, there, &of_gpu);
        assert_near(of_gpu.loss, of_cpu.loss, TOLERANCE * of_cpu.loss);
        assert_greater(of_cpu.loss, 0.1);
        assert_less(apart(there, here, n, 0), 4 * TOLERANCE); /* the softmax is in between */
        free(values);
        free(here);
        free(there);
        free_scene(&s);
    }
    close_device(&d);
}

/* Trains some steps on the same rows. Stores the losses of each layer. */
static void
train_heads(struct scene *s, const struct model *m, enum head_kind kind, double *loss)
{
    struct exit_heads *heads;
    struct head_training *t;
    struct head_score each[LAYERS] = {{0}};
    struct head_target target[ROWS];
    const struct head_rows rows = {s->hidden, target};
    struct err err;
    const struct head_training_options options = {.threads = 2, .batch = ROWS, .decay = 0.01f};
    assert_ok(exit_heads_new(&heads, kind, m, NULL, 0, &err), err);
    assert_ok(head_training_open(&t, heads, &s->lens, &s->lens, &options, &err), err);
    head_training_targets(t, &rows, ROWS);
    for (int i = 0; i < 12; i++)
        head_training_step(t, &rows, ROWS, 3e-3f, each);
    for (uint32_t l = 1; l < LAYERS; l++)
        loss[l] = each[l - 1].loss;
    head_training_close(t);
    exit_heads_free(heads);
}

TEST(heads_are_trained_as_on_the_cpu)
{
    NEEDS_DEVICE(d);
    for (enum head_kind kind = HEAD_AFFINE; kind <= HEAD_FULL; kind++) {
        const struct model m = {.desc = {.n_layers = LAYERS, .width = WIDTH, .vocab = VOCAB}};
        double here[LAYERS + 1] = {0}, there[LAYERS + 1] = {0}, again[LAYERS + 1] = {0};
        struct scene s;
        make_scene(&s);
        train_heads(&s, &m, kind, here);
        s.lens.blas = d.blas;
        train_heads(&s, &m, kind, there);
        train_heads(&s, &m, kind, again);
        for (uint32_t l = 1; l < LAYERS; l++) {
            assert_greater(here[l], 0);
            assert_near(there[l], here[l], 1e-3 * here[l]); /* Adam enlarges the last bits of small values */
            assert_number_equal(there[l], again[l]);        /* results are repeatable */
        }
        free_scene(&s);
    }
    close_device(&d);
}

static void
train_acceptance(struct blas *blas, const float *x, const float *label, struct accept_score *out)
{
    struct accept_head *head;
    struct accept_training *t;
    struct err err;
    const struct accept_training_options options = {.threads = 2, .batch = ROWS, .w_reject = 6, .blas = blas};
    const struct accept_batch batch = {.n = ROWS, .x = x, .label = label};
    assert_ok(accept_head_new(&head, WIDTH, 2, false, &err), err);
    assert_ok(accept_training_open(&t, head, 5, &options, &err), err);
    for (int i = 0; i < 10; i++)
        accept_training_step(t, &batch, 1e-3);
    *out = accept_training_score(t, &batch);
    accept_training_close(t);
    accept_head_free(head);
}

TEST(an_acceptance_head_is_trained_as_on_the_cpu)
{
    NEEDS_DEVICE(d);
    float *const x = noise((size_t)ROWS * WIDTH, 1), *const label = noise(ROWS, 0.5f);
    struct accept_score here, there;
    for (size_t i = 0; i < ROWS; i++)
        label[i] += 0.5f;
    train_acceptance(NULL, x, label, &here);
    train_acceptance(d.blas, x, label, &there);
    assert_greater(here.loss, 0);
    assert_near(there.loss, here.loss, 1e-3 * here.loss);
    free(x);
    free(label);
    close_device(&d);
}

/* ---- a device that fails ---- */

TEST(a_failing_device_reports_once_and_gets_no_further_requests)
{
    NEEDS_DEVICE(d);
    void (*fail_at)(uint64_t, int) = NULL;
    if (cuda_is_emulated()) {
        void *library = dlopen(getenv("SPECSCOPE_CUDA_PLUGIN"), RTLD_NOW | RTLD_NOLOAD);
        assert_non_null(library);
        void *symbol = dlsym(library, "emulated_cuda_fail");
        memcpy(&fail_at, &symbol, sizeof fail_at);
        dlclose(library);
    }
    if (fail_at == NULL) {
        close_device(&d);
        skip();
    }
    float *const a = noise(12, 1), *const b = noise(12, 1), got[9], wanted[9];
    struct host_product p = {.m = 3, .n = 3, .k = 4, .a = a, .stride_a = 4, .b = b, .stride_b = 3, .c = got};
    struct err err = {.kind = ERR_NONE};
    fail_at(2, 0); /* out of memory */
    blas_multiply(d.blas, &p);
    fail_at(0, 0);
    assert_ok(blas_failed(d.blas, &err), err);
    assert_contains(err.text, "GPU 0 (");
    p.c = wanted;
    blas_multiply(NULL, &p);
    assert_memory_equal(got, wanted, sizeof got);
    free(a);
    free(b);
    blas_close(d.blas);
    d.engine.ops->close(d.engine.backend);
}

TEST(the_cpu_backend_has_no_products_for_training)
{
    struct blas *blas;
    struct err err;
    assert_ok(blas_open(&blas, &(struct engine){.ops = &cpu_backend}, &err), err);
    assert_null(blas);
    assert_false(blas_failed(NULL, &err));
}

TEST_SEED(seed, 1);
