/* Acceptance heads: the file, p̂ against the definition, gradients against finite differences, and training on data
 * that can be learned. */
#include <math.h>
#include <unistd.h>

#include "base/rng.h"
#include "engine/model/files/safetensors.h"
#include "engine/model/model.h"
#include "engine/model/trained/accept_head.h"
#include "engine/training/accept_training.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define WIDTH 10
#define ROWS  23

static uint64_t seed;
static char path[64];

static float
noise(uint64_t *random_state)
{
    return (float)((double)(splitmix64(random_state) >> 11) * 0x1p-52 - 1);
}

static void
fill(uint64_t *random_state, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = noise(random_state);
}

static struct accept_head *
random_head(uint32_t blocks, bool shared, uint64_t *random_state)
{
    struct accept_head *h;
    struct err err = {0};
    assert_ok(accept_head_new(&h, WIDTH, blocks, shared, &err), err);
    fill(random_state, h->values, h->n_values);
    return h;
}

/* Computes the header's definition in double. */
static double
probability(const struct accept_head *h, const float *row)
{
    double x[WIDTH], next[WIDTH], z[2];
    for (int i = 0; i < WIDTH; i++)
        x[i] = (double)row[i];
    for (uint32_t d = 0; d < h->n_blocks; d++) {
        for (int i = 0; i < WIDTH; i++) {
            double y = (double)h->block[d].b[i];
            for (int k = 0; k < WIDTH; k++)
                y += (double)h->block[d].w[i * WIDTH + k] * x[k];
            next[i] = x[i] + y / (1 + exp(-y));
        }
        memcpy(x, next, sizeof x);
    }
    for (int j = 0; j < 2; j++) {
        z[j] = (double)h->c[j];
        for (int k = 0; k < WIDTH; k++)
            z[j] += (double)h->v[j * WIDTH + k] * x[k];
    }
    return exp(z[1]) / (exp(z[0]) + exp(z[1]));
}

TEST(probabilities_are_the_definitions)
{
    uint64_t random_state = seed;
    for (uint32_t blocks = 0; blocks <= 4; blocks++) {
        struct accept_head *h = random_head(blocks, blocks % 2 == 0, &random_state);
        struct blocks buffers = {0};
        struct accept_work *work = accept_work_open(h, ROWS, &buffers);
        struct accept_predictor *predictor;
        struct err err = {0};
        float x[ROWS * WIDTH], label[ROWS] = {0}, p[ROWS];
        assert_ok(accept_predictor_open(&predictor, h, 1, &err), err);
        fill(&random_state, x, ROWS * WIDTH);
        struct accept_score score = {0};
        accept_loss(h, &(struct accept_batch){ROWS, x, label}, 1, work, p, NULL, &score);
        assert_int_equal(score.n, ROWS);
        for (int i = 0; i < ROWS; i++) {
            const double expected = probability(h, x + i * WIDTH);
            assert_near(accept_predictor_ask(predictor, x + i * WIDTH), expected, 1e-6);
            assert_near((double)p[i], expected, 1e-5);
        }
        accept_predictor_close(predictor);
        blocks_free(&buffers);
        accept_head_free(h);
    }
}

TEST(the_loss_is_the_papers)
{
    uint64_t random_state = seed;
    struct accept_head *h = random_head(2, false, &random_state);
    struct blocks buffers = {0};
    struct accept_work *work = accept_work_open(h, ROWS, &buffers);
    float x[ROWS * WIDTH], label[ROWS];
    fill(&random_state, x, ROWS * WIDTH);
    double loss = 0, weight = 0, kl = 0;
    const double w = 6;
    for (int i = 0; i < ROWS; i++) {
        label[i] = i == 0 ? 0 : i == 1 ? 1 : fabsf(noise(&random_state));
        const double a = (double)label[i], p = probability(h, x + i * WIDTH);
        loss -= a * log(p) + w * (1 - a) * log(1 - p);
        weight += a + w * (1 - a);
        kl += (a > 0 ? a * log(a / p) : 0) + (a < 1 ? (1 - a) * log((1 - a) / (1 - p)) : 0);
    }
    struct accept_score score = {0};
    accept_loss(h, &(struct accept_batch){ROWS, x, label}, w, work, NULL, NULL, &score);
    assert_near(score.loss, loss, 1e-4 * loss);
    assert_near(score.weight, weight, 1e-4 * weight);
    assert_near(score.kl, kl, 1e-4 * kl);
    blocks_free(&buffers);
    accept_head_free(h);
}

static void
check_gradient(uint32_t blocks, bool shared, uint64_t *random_state)
{
    struct accept_head *h = random_head(blocks, shared, random_state);
    for (size_t i = 0; i < h->n_values; i++)
        h->values[i] *= 0.5f;
    struct blocks buffers = {0};
    struct accept_work *work = accept_work_open(h, ROWS, &buffers);
    float x[ROWS * WIDTH], label[ROWS], *slopes = calloc(h->n_values, sizeof *slopes);
    fill(random_state, x, ROWS * WIDTH);
    for (int i = 0; i < ROWS; i++)
        label[i] = fabsf(noise(random_state));
    const struct accept_batch batch = {ROWS, x, label};
    struct accept_score score = {0};
    accept_loss(h, &batch, 6, work, NULL, slopes, &score);
    double off = 0, size = 0;
    for (size_t i = 0; i < h->n_values; i++) {
        const float was = h->values[i], step = 1e-2f;
        struct accept_score up = {0}, down = {0};
        h->values[i] = was + step;
        accept_loss(h, &batch, 6, work, NULL, NULL, &up);
        h->values[i] = was - step;
        accept_loss(h, &batch, 6, work, NULL, NULL, &down);
        h->values[i] = was;
        const double slope = (up.loss - down.loss) / (2 * (double)step);
        off += (slope - (double)slopes[i]) * (slope - (double)slopes[i]);
        size += slope * slope;
    }
    assert_greater(size, 0);
    assert_less(sqrt(off / size), 2e-3);
    free(slopes);
    blocks_free(&buffers);
    accept_head_free(h);
}

TEST(gradients_are_those_of_finite_differences)
{
    uint64_t random_state = seed;
    for (uint32_t blocks = 0; blocks <= 3; blocks++) {
        check_gradient(blocks, false, &random_state);
        check_gradient(blocks, true, &random_state);
    }
}

/* A function of the row determines the labels, so they can be learned: the binary KL approaches 0. */
TEST(training_reduces_the_loss)
{
    enum { N = 4096 };
    uint64_t random_state = seed;
    float *x = malloc(N * WIDTH * sizeof *x), *label = malloc(N * sizeof *label);
    fill(&random_state, x, N * WIDTH);
    for (size_t i = 0; i < N; i++) /* not linear in x, so a block is needed */
        label[i] = 1 / (1 + expf(-6 * (fabsf(x[i * WIDTH]) - 0.5f) - 2 * x[i * WIDTH + 1]));
    double kl[2];
    for (uint32_t blocks = 0; blocks <= 1; blocks++) {
        struct accept_head *h;
        struct accept_training *t;
        struct err err = {0};
        assert_ok(accept_head_new(&h, WIDTH, 2 * blocks, false, &err), err);
        const struct accept_training_options options = {.threads = 2, .batch = 256, .w_reject = 1};
        assert_ok(accept_training_open(&t, h, seed, &options, &err), err);
        for (int step = 0; step < 1500; step++) {
            const size_t at = (size_t)step * 256 % N;
            accept_training_step(t, &(struct accept_batch){256, x + at * WIDTH, label + at}, 3e-3);
        }
        const struct accept_score s = accept_training_score(t, &(struct accept_batch){N, x, label});
        assert_int_equal(s.n, N);
        kl[blocks] = s.kl / N;
        accept_training_close(t);
        accept_head_free(h);
    }
    assert_greater(kl[0], 0.1); /* a linear head cannot learn it */
    assert_less(kl[1], 0.02);
    free(x);
    free(label);
}

/* ---- the file ---- */

static struct model draft_model = {.name = "a draft", .hash = 0x1234, .desc = {.width = WIDTH}};
static const struct accept_whose draft_whose = {.draft = &draft_model};

TEST(a_head_is_read_as_it_was_written)
{
    uint64_t random_state = seed;
    for (uint32_t blocks = 0; blocks <= 3; blocks++)
        for (int shared = 0; shared <= 1; shared++) {
            struct accept_head *h = random_head(blocks, shared == 1, &random_state), *back;
            struct err err = {0};
            h->draft_hash = draft_model.hash;
            h->target_hash = 77;
            h->draft_layers = blocks;
            snprintf(h->draft, sizeof h->draft, "a draft");
            snprintf(h->target, sizeof h->target, "a target");
            assert_ok(accept_head_write(h, path, &err), err);
            assert_false(accept_head_read(&back, path, &(struct accept_whose){&draft_model, blocks + 1}, &err));
            assert_contains(err.text, "this is self:");
            assert_ok(accept_head_read(&back, path, &(struct accept_whose){&draft_model, blocks}, &err), err);
            assert_int_equal(back->draft_layers, blocks);
            assert_int_equal(back->n_blocks, blocks);
            assert_int_equal(back->shared, h->shared);
            assert_int_equal(back->n_values, h->n_values);
            assert_memory_equal(back->values, h->values, h->n_values * sizeof *h->values);
            assert_int_equal(back->target_hash, 77);
            assert_string_equal(back->target, "a target");
            accept_head_free(h);
            accept_head_free(back);
        }
}

/* The format of the released checkpoints: one block's weights, a last layer whose index gives the number of blocks, and
 * no metadata of specscope. */
TEST(a_released_checkpoint_is_read)
{
    uint64_t random_state = seed;
    float w[WIDTH * WIDTH], b[WIDTH], v[2 * WIDTH], c[2];
    fill(&random_state, w, WIDTH * WIDTH);
    fill(&random_state, b, WIDTH);
    fill(&random_state, v, 2 * WIDTH);
    fill(&random_state, c, 2);
    const struct safetensors_part parts[] = {{"model.0.linear.weight", WIDTH, WIDTH, w, NULL},
                                             {"model.0.linear.bias", 0, WIDTH, b, NULL},
                                             {"model.3.weight", 2, WIDTH, v, NULL},
                                             {"model.3.bias", 0, 2, c, NULL}};
    struct err err = {0};
    struct accept_head *h;
    assert_ok(safetensors_write(path, NULL, 0, parts, 4, &err), err);
    assert_ok(accept_head_read(&h, path, &draft_whose, &err), err);
    assert_int_equal(h->n_blocks, 3);
    assert_true(h->shared);
    assert_ptr_equal(h->block[2].w, h->block[0].w);
    assert_memory_equal(h->block[0].w, w, sizeof w);
    assert_memory_equal(h->c, c, sizeof c);
    accept_head_free(h);
}

static void
refused(const struct safetensors_note *notes, size_t n_notes, const struct safetensors_part *parts, size_t n,
        const char *said)
{
    struct err err = {0};
    struct accept_head *h;
    assert_ok(safetensors_write(path, notes, n_notes, parts, n, &err), err);
    assert_false(accept_head_read(&h, path, &draft_whose, &err));
    assert_null(h);
    assert_int_equal(err.kind, ERR_WORK);
    assert_contains(err.text, said);
    assert_contains(err.text, path);
}

TEST(heads_of_other_models_are_refused_in_one_line)
{
    float v[4 * WIDTH] = {0}, c[2] = {0}, nan[2] = {NAN, 0};
    const struct safetensors_note other[] = {{"draft", "another"}, {"draft_hash", "99"}};
    const struct safetensors_part head[] = {{"model.0.weight", 2, WIDTH, v, NULL}, {"model.0.bias", 0, 2, c, NULL}};
    const struct safetensors_part wide[] = {{"model.0.weight", 2, 2 * WIDTH, v, NULL}, {"model.0.bias", 0, 2, c, NULL}};
    const struct safetensors_part torn[] = {{"model.1.weight", 2, WIDTH, v, NULL}, {"model.1.bias", 0, 2, c, NULL}};
    const struct safetensors_part odd[] = {{"model.0.weight", 2, WIDTH, v, NULL}, {"model.0.bias", 0, 1, c, NULL}};
    const struct safetensors_part no_number[] = {{"model.0.weight", 2, WIDTH, v, NULL},
                                                 {"model.0.bias", 0, 2, nan, NULL}};
    refused(other, 2, head, 2, "trained for another model, another (this is ");
    refused(NULL, 0, wide, 2, "another model's");
    refused(NULL, 0, torn, 2, "model.0.linear.weight is missing");
    refused(NULL, 0, odd, 2, "expected numbers");
    refused(NULL, 0, no_number, 2, "not finite");
    refused(NULL, 0, head + 1, 1, "not an acceptance head");
}

int
main(void)
{
    seed = seed_or(20261122);
    snprintf(path, sizeof path, "/tmp/accept-head-%ld.safetensors", (long)getpid());
    const int failed = run_listed_tests();
    unlink(path);
    return failed;
}
